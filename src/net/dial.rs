//! Dials other servers: performs with sockets what [`Dial`] decides.

use crate::member::dial::{AttemptError, Dial, DialError, DialStep, DialTimeouts};
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

/// A connection that was made.
#[derive(Debug)]
pub struct Dialed {
    pub socket: TcpStream,
    /// The one of the hosts that has answered, as it was named.
    pub host: String,
}

/// Connects to the one of `addresses` that answers first, trying each again for as long as `patience` lasts.
///
/// # Errors
/// That of the last attempt that counts.
pub async fn dial(addresses: Vec<(String, u16)>, patience: DialTimeouts) -> io::Result<Dialed> {
    let dial = Dial::new(names(&addresses), patience, 0);
    perform(addresses, dial).await
}

/// Connects to the one of `addresses` that answers first, trying each once.
///
/// * `grace`: how much longer the other addresses have once one of them has refused; `None`: until each has failed.
///
/// # Errors
/// That of the last attempt that counts.
pub async fn dial_once(
    addresses: Vec<(String, u16)>,
    within: Duration,
    grace: Option<Duration>,
) -> io::Result<Dialed> {
    let dial = Dial::once(names(&addresses), within, grace, 0);
    perform(addresses, dial).await
}

fn names(addresses: &[(String, u16)]) -> Vec<String> {
    addresses.iter().map(|(host, port)| format!("{host}:{port}")).collect()
}

async fn perform(addresses: Vec<(String, u16)>, mut dial: Dial) -> io::Result<Dialed> {
    let began = Instant::now();
    let at = |ms| began + Duration::from_millis(ms);
    let mut attempts = JoinSet::new();
    loop {
        match dial.next(began.elapsed().as_millis() as u64) {
            DialStep::Attempt { address, until_ms } => {
                // Names are resolved at each attempt: an address may have changed meanwhile.
                let (host, port) = addresses[address].clone();
                let connecting = timeout_at(at(until_ms), TcpStream::connect((host, port)));
                attempts.spawn(async move { (address, connecting.await) });
            }
            DialStep::Wait { until_ms } => {
                let pause = async {
                    match until_ms {
                        Some(until_ms) => sleep_until(at(until_ms)).await,
                        None => std::future::pending().await,
                    }
                };
                let (address, error) = tokio::select! {
                    Some(ended) = attempts.join_next() => match ended.map_err(io::Error::other)? {
                        (address, Ok(Ok(socket))) => {
                            let (host, _) = addresses[address].clone();
                            return Ok(Dialed { socket, host });
                        }
                        (address, Ok(Err(error))) => (address, attempt_error(&error)),
                        (address, Err(_)) => (address, AttemptError::Silent),
                    },
                    () = pause => continue,
                };
                dial.attempt_failed(address, error, began.elapsed().as_millis() as u64);
            }
            DialStep::GiveUp(error) => return Err(io::Error::new(kind(&error), error)),
        }
    }
}

fn attempt_error(error: &io::Error) -> AttemptError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => AttemptError::Refused(error.to_string()),
        _ => AttemptError::Other(error.to_string()),
    }
}

const fn kind(error: &DialError) -> io::ErrorKind {
    match error {
        DialError::NoAddress => io::ErrorKind::NotFound,
        DialError::Failed { error: AttemptError::Refused(_), .. } => {
            io::ErrorKind::ConnectionRefused
        }
        DialError::Failed { error: AttemptError::Silent, .. } => io::ErrorKind::TimedOut,
        DialError::Failed { .. } => io::ErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    const LONG: Duration = Duration::from_secs(60);

    fn free_port() -> u16 {
        std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    /// A listener that answers nothing, and the connections that keep it from that.
    async fn silent() -> (TcpListener, Vec<TcpStream>) {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(0).unwrap();
        let at = listener.local_addr().unwrap();
        let connect = || tokio::time::timeout(Duration::from_millis(100), TcpStream::connect(at));
        // A connection beyond the listener's queue gets no answer.
        let mut kept = Vec::new();
        while let Ok(stream) = connect().await {
            kept.push(stream.unwrap());
        }
        (listener, kept)
    }

    fn address(listener: &TcpListener) -> (String, u16) {
        let at = listener.local_addr().unwrap();
        (at.ip().to_string(), at.port())
    }

    // rows: Q-60 C-26
    #[tokio::test]
    async fn silent_server_is_dialed_until_patience_ends() {
        let (listener, kept) = silent().await;
        let of = |silence_ms| DialTimeouts {
            silence: Duration::from_millis(silence_ms),
            refusals: LONG,
            others: None,
        };
        let there = || vec![address(&listener)];
        let began = Instant::now();
        let error = dial(there(), of(150)).await.unwrap_err();
        assert!(error.to_string().ends_with("no answer"), "{error}");
        assert!(Duration::from_millis(150) <= began.elapsed() && began.elapsed() < LONG);
        let dialing = tokio::spawn(dial(there(), of(60_000)));
        tokio::time::sleep(Duration::from_millis(50)).await;
        for _ in 0..=kept.len() {
            listener.accept().await.unwrap();
        }
        dialing.await.unwrap().unwrap();
    }

    // rows: Q-60 C-180
    #[tokio::test]
    async fn server_that_refuses_is_dialed_again_until_patience_ends() {
        let port = free_port();
        let there = || vec![("127.0.0.1".to_owned(), port)];
        let short =
            DialTimeouts { silence: LONG, refusals: Duration::from_millis(200), others: None };
        let began = Instant::now();
        let error = dial(there(), short).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(Duration::from_millis(100) <= began.elapsed() && began.elapsed() < LONG);
        // The server begins to listen late.
        let dialing = tokio::spawn(dial(there(), DialTimeouts { refusals: LONG, ..short }));
        tokio::time::sleep(Duration::from_millis(50)).await;
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let (accepted, dialed) = tokio::join!(listener.accept(), dialing);
        assert_eq!(accepted.unwrap().1, dialed.unwrap().unwrap().socket.local_addr().unwrap());
    }

    // rows: Q-30 C-60 C-61
    #[tokio::test]
    async fn dial_takes_the_address_that_answers() {
        let (silent, _kept) = silent().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = listener.local_addr().unwrap();
        let refusing = ("127.0.0.1".to_owned(), free_port());
        let all = vec![address(&silent), address(&listener), refusing];
        let found = dial_once(all.clone(), LONG, None).await.unwrap();
        assert_eq!(found.socket.peer_addr().unwrap(), there);
        // An address that is slow to answer still has some time once another one has refused.
        drop(listener);
        let patience = DialTimeouts { silence: LONG, refusals: LONG, others: Some(LONG) };
        let dialing = tokio::spawn(dial(all, patience));
        tokio::time::sleep(Duration::from_millis(50)).await;
        let _listener = TcpListener::bind(there).await.unwrap();
        assert_eq!(dialing.await.unwrap().unwrap().socket.peer_addr().unwrap(), there);
    }

    // rows: Q-30 C-60 C-61
    #[tokio::test]
    async fn dial_does_not_wait_for_a_dead_address_after_another_one_refuses() {
        let ms = Duration::from_millis;
        let (silent, _kept) = silent().await;
        let both = || vec![address(&silent), ("127.0.0.1".to_owned(), free_port())];
        let dead = dial_once(both(), LONG, Some(ms(20))).await.unwrap_err();
        assert_eq!(dead.kind(), io::ErrorKind::ConnectionRefused);
        let waiting = dial_once(both(), LONG, None);
        assert!(tokio::time::timeout(ms(60), waiting).await.is_err(), "without grace it waits");
        let nowhere = dial_once(Vec::new(), LONG, None).await.unwrap_err();
        assert_eq!(nowhere.kind(), io::ErrorKind::NotFound);
    }
}
