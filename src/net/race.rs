//! One server at several addresses: which of them is taken.

use std::io;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// The first of several connections that comes about; the others are given up.
///
/// * `calls`: one for each address.
/// * `grace`: how much longer the rest is waited for once a machine has refused, since whoever is called listens at all of
///   its addresses or at none; `None`: until each has ended.
///
/// # Errors
/// The last one met, or that no address is known.
///
/// Source: `MultipleAddresses.getReachableAddress`, `Learner.connectToLeader`, ZooKeeper 3.9.5, which ask by ICMP, or at port
/// 7, which addresses there are, and then call those.
pub async fn first_of(
    mut calls: JoinSet<io::Result<TcpStream>>,
    grace: Option<Duration>,
) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "no address is known");
    let mut until: Option<Instant> = None;
    loop {
        let ended = match until {
            Some(until) => timeout_at(until, calls.join_next()).await,
            None => Ok(calls.join_next().await),
        };
        match ended {
            Ok(Some(Ok(Ok(stream)))) => return Ok(stream),
            Ok(Some(other)) => {
                failed = other.map_err(io::Error::other).flatten().err().unwrap_or(failed);
                if failed.kind() == io::ErrorKind::ConnectionRefused && until.is_none() {
                    until = grace.map(|grace| Instant::now() + grace);
                }
            }
            Ok(None) | Err(_) => return Err(failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    type Call = std::pin::Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

    fn calls(all: Vec<Call>) -> JoinSet<io::Result<TcpStream>> {
        all.into_iter().collect()
    }

    fn silent() -> Call {
        Box::pin(std::future::pending())
    }

    fn refused() -> Call {
        Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) })
    }

    // rows: Q-30 C-60 C-61
    #[tokio::test]
    async fn the_address_that_answers_is_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = listener.local_addr().unwrap();
        let answers = || -> Call { Box::pin(TcpStream::connect(there)) };
        let found = first_of(calls(vec![silent(), answers(), refused()]), None).await.unwrap();
        assert_eq!(found.peer_addr().unwrap(), there);
        // One that is slow to answer still has some time once another one has refused.
        let slow: Call = Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            TcpStream::connect(there).await
        });
        let found = first_of(calls(vec![refused(), slow]), Some(Duration::from_secs(60))).await;
        assert_eq!(found.unwrap().peer_addr().unwrap(), there);
    }

    // rows: Q-30 C-60 C-61
    #[tokio::test]
    async fn a_dead_address_is_not_waited_for_where_another_one_refuses() {
        let ms = Duration::from_millis;
        let dead = first_of(calls(vec![silent(), refused()]), Some(ms(20))).await.unwrap_err();
        assert_eq!(dead.kind(), io::ErrorKind::ConnectionRefused);
        let waiting = first_of(calls(vec![silent(), refused()]), None);
        assert!(tokio::time::timeout(ms(60), waiting).await.is_err(), "unless it is to be");
        let nowhere = first_of(JoinSet::new(), None).await.unwrap_err();
        assert_eq!(nowhere.kind(), io::ErrorKind::NotFound);
    }
}
