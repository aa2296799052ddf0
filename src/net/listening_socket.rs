//! One listening socket: performs with it what `member::listening` decides.

use super::descriptors::leaving_enough;
use crate::member::listening::{ListenStep, Listening};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};

/// What happened at a listening socket.
pub enum ListeningEvent {
    Bound(SocketAddr),
    /// * `failures`: attempts that have failed in a row.
    BindFailed {
        error: String,
        failures: u32,
    },
    Accepted(TcpStream, SocketAddr),
    AcceptFailed(io::Error),
}

/// The address of a peer as it is shown and compared: an IPv4 peer at an IPv6 socket has its IPv4 address (P-23a).
pub fn plain_address(peer: SocketAddr) -> SocketAddr {
    SocketAddr::new(peer.ip().to_canonical(), peer.port())
}

pub struct ListeningSocket {
    pub began: Instant,
    /// `None`: nothing is bound.
    listener: Option<TcpListener>,
}

impl ListeningSocket {
    pub fn new(listener: Option<TcpListener>) -> Self {
        Self { began: Instant::now(), listener }
    }

    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    pub fn close(&mut self) {
        self.listener = None;
    }

    /// Waits until something happens. If this is cancelled while the address is being bound, the machine waits for ever for the
    /// end of that attempt.
    ///
    /// * `bind`: tries once to bind the address; the error is a text.
    pub async fn next<F>(&mut self, machine: &mut Listening, bind: impl Fn() -> F) -> ListeningEvent
    where
        F: Future<Output = Result<TcpListener, String>>,
    {
        loop {
            match (machine.next(self.now_ms()), &self.listener) {
                (ListenStep::Bind, _) => {
                    let bound = bind().await.and_then(|listener| {
                        let address = listener.local_addr().map_err(|error| error.to_string())?;
                        Ok((listener, address))
                    });
                    return match bound {
                        Ok((listener, address)) => {
                            self.listener = Some(listener);
                            machine.bound();
                            ListeningEvent::Bound(address)
                        }
                        Err(error) => {
                            let failures = machine.bind_failed(self.now_ms());
                            ListeningEvent::BindFailed { error, failures }
                        }
                    };
                }
                (ListenStep::Accept, Some(listener)) => {
                    let accepted = listener.accept().await.and_then(|(stream, peer)| {
                        leaving_enough(machine.port(), stream).map(|stream| (stream, peer))
                    });
                    return match accepted {
                        Ok((stream, peer)) => ListeningEvent::Accepted(stream, plain_address(peer)),
                        Err(error) => {
                            machine.accept_failed(self.now_ms());
                            ListeningEvent::AcceptFailed(error)
                        }
                    };
                }
                (ListenStep::Wait { until_ms: Some(until_ms) }, _) => {
                    sleep_until(self.began + Duration::from_millis(until_ms)).await;
                }
                (ListenStep::Accept, None) | (ListenStep::Wait { until_ms: None }, _) => {
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_peer_at_an_ipv6_socket_is_shown_by_its_ipv4_address() {
        for (peer, shown) in [
            ("[::ffff:10.0.0.7]:5", "10.0.0.7:5"),
            ("10.0.0.7:5", "10.0.0.7:5"),
            ("[::1]:5", "[::1]:5"),
        ] {
            assert_eq!(plain_address(peer.parse().unwrap()).to_string(), shown);
        }
    }
}
