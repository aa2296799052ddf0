//! The listening socket of the client port, which a reconfiguration can move.

use super::bind::{PortSetting, bind_in_task};
use super::listening_socket::{ListeningEvent, ListeningSocket};
use super::resolve;
use crate::member::ListenAddress;
use crate::member::listening::ClientListening;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use tokio::net::{TcpListener, TcpStream};

/// The listening socket, and the address that it is to move to.
pub struct ClientPort {
    machine: ClientListening,
    socket: ListeningSocket,
    backlog: i32,
}

/// What happened at the client port.
pub enum ClientPortEvent {
    Accepted(TcpStream, SocketAddr),
    /// Clients are served there from now on.
    Moved(SocketAddr),
}

impl ClientPort {
    /// # Errors
    /// When the runtime can't take the socket.
    pub fn new(listener: StdListener, backlog: i32) -> io::Result<Self> {
        let socket = ListeningSocket::new(Some(TcpListener::from_std(listener)?));
        Ok(Self { machine: ClientListening::bound(), socket, backlog })
    }

    /// Moves to the address that a new configuration names. Connections stay as they are.
    pub fn move_to(&mut self, address: ListenAddress) {
        let resolved = address.host.as_ref().and_then(|host| resolve(host, address.port).ok());
        let resolved = resolved.map(|address| address.ip());
        if self.machine.move_to(address, self.socket.address(), resolved) {
            self.socket.close();
        }
    }

    /// Waits for the next client, or until the wanted address is bound. May be cancelled by [`Self::move_to`] alone.
    pub async fn next(&mut self) -> ClientPortEvent {
        loop {
            match self.try_next().await {
                ListeningEvent::Bound(address) => {
                    tracing::info!(%address, "client port moved");
                    return ClientPortEvent::Moved(address);
                }
                ListeningEvent::BindFailed { failures: 2.., .. } => {}
                ListeningEvent::BindFailed { error, .. } => tracing::error!(
                    address = self.machine.wanted.as_ref().map(display),
                    %error,
                    "no client can connect: the client address of the new configuration can't be \
                     bound, it is tried again every second; free it or correct it by a reconfig"
                ),
                ListeningEvent::Accepted(stream, peer) => {
                    return ClientPortEvent::Accepted(stream, peer);
                }
                ListeningEvent::AcceptFailed(error) => {
                    tracing::warn!(target: crate::model::STRANGERS, %error, "client not accepted: if the error is about open files, raise ulimit -n")
                }
            }
        }
    }

    async fn try_next(&mut self) -> ListeningEvent {
        let (address, backlog) = (self.machine.wanted.clone(), self.backlog);
        let bind = async || match address.clone() {
            Some(address) => bind_in_task(address, PortSetting::ServerLine, backlog).await,
            None => std::future::pending().await,
        };
        self.socket.next(&mut self.machine.listening, bind).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::bind::bind;
    use std::time::Duration;

    fn at(host: &str, port: u16) -> ListenAddress {
        ListenAddress { host: Some(host.to_owned()), port }
    }

    fn everywhere(port: u16) -> ListenAddress {
        ListenAddress { host: None, port }
    }

    /// Tries to bind the wanted address, as if the pause after the last attempt were over.
    async fn try_once(port: &mut ClientPort) -> Option<SocketAddr> {
        port.socket.began -= Duration::from_secs(1);
        match port.try_next().await {
            ListeningEvent::Bound(address) => Some(address),
            ListeningEvent::BindFailed { .. } => None,
            _ => panic!("the address is bound"),
        }
    }

    // The new address is in use: the old one is closed, as in Java, and the new one is served once it is free.
    #[tokio::test]
    async fn the_old_address_is_closed_and_the_new_one_is_tried_until_it_is_free() {
        let (first, old) = bind(&everywhere(0), 1).unwrap();
        let (taken, new) = bind(&at("127.0.0.1", 0), 1).unwrap();
        let mut socket = ClientPort::new(first, 1).unwrap();
        socket.move_to(everywhere(old.port()));
        assert!(socket.machine.listening.is_bound(), "it is there already");
        socket.move_to(at("127.0.0.1", new.port()));
        for _ in 0..2 {
            assert_eq!(try_once(&mut socket).await, None);
            let refused = std::net::TcpStream::connect(("127.0.0.1", old.port()));
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        }
        drop(taken);
        assert_eq!(try_once(&mut socket).await, Some(new));
        let client = std::net::TcpStream::connect(new).unwrap();
        let ClientPortEvent::Accepted(_, peer) = socket.next().await else { panic!("it moves") };
        assert_eq!(peer, client.local_addr().unwrap());
        assert!(socket.machine.listening.is_bound());
    }

    // Both sockets can't be open at the same time: the first is bound to every address of the port.
    #[tokio::test]
    async fn one_address_follows_all_addresses_of_its_port() {
        let (first, old) = bind(&everywhere(0), 1).unwrap();
        let mut socket = ClientPort::new(first, 1).unwrap();
        socket.move_to(at("127.0.0.1", old.port()));
        let new = SocketAddr::from(([127, 0, 0, 1], old.port()));
        assert_eq!(try_once(&mut socket).await, Some(new));
        let elsewhere = std::net::TcpStream::connect(("127.0.0.2", old.port()));
        assert_eq!(elsewhere.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test]
    async fn all_addresses_follow_one_of_their_port() {
        let (first, old) = bind(&at("127.0.0.1", 0), 1).unwrap();
        let mut socket = ClientPort::new(first, 1).unwrap();
        socket.move_to(everywhere(old.port()));
        assert!(!socket.machine.listening.is_bound(), "clients elsewhere are not served yet");
        assert!(try_once(&mut socket).await.is_some_and(|new| new.ip().is_unspecified()));
    }
}
