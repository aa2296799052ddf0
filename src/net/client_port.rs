//! The socket of the client port, which a reconfiguration can move.

use super::resolve;
use crate::member::ListenAddress;
use crate::model::chain;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener as StdListener};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};

/// An address that a reconfiguration names and that can't be bound is tried again this much later.
const BIND_PAUSE: Duration = Duration::from_secs(1);

/// Why the client port can't be had.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("resolve host {host}")]
    Resolve { host: String, source: io::Error },
    #[error("listen for clients on {address}")]
    Bind { address: SocketAddr, source: io::Error },
}

/// The listening socket, and the address that it is to move to.
pub struct ClientPort {
    /// `None`: the address that is wanted is not bound yet.
    listener: Option<TcpListener>,
    wanted: Option<ListenAddress>,
    /// When it is tried next.
    next_try: Instant,
    /// The log has why it can't be bound.
    is_told: bool,
    backlog: i32,
}

impl ClientPort {
    /// # Errors
    /// When the runtime can't take the socket.
    pub fn new(listener: StdListener, backlog: i32) -> io::Result<Self> {
        let listener = Some(TcpListener::from_std(listener)?);
        Ok(Self { listener, wanted: None, next_try: Instant::now(), is_told: false, backlog })
    }

    /// Waits for ever while nothing is bound.
    ///
    /// # Errors
    /// The kernel's.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.listener {
            Some(listener) => listener.accept().await,
            None => std::future::pending().await,
        }
    }

    /// Closes the socket in favour of the address that a configuration names: whoever is not to reach this server at the old
    /// address any more does not, whether the new one can be bound or not. Connections stay as they are.
    ///
    /// Source: `NIOServerCnxnFactory.reconfigure`, ZooKeeper 3.9.5, which tries once.
    pub fn move_to(&mut self, address: ListenAddress) {
        self.wanted = None;
        let at = self.listener.as_ref().and_then(|listener| listener.local_addr().ok());
        if at.is_some_and(|at| is_served(at, &address)) {
            return; // The first configuration that names it.
        }
        self.listener = None;
        (self.wanted, self.next_try, self.is_told) = (Some(address), Instant::now(), false);
    }

    pub const fn is_wanted(&self) -> bool {
        self.wanted.is_some()
    }

    /// Binds the address that is wanted, once its time has come; in words, why it can't.
    pub async fn bound(&self) -> Result<(StdListener, SocketAddr), String> {
        let Some(address) = self.wanted.clone() else { return std::future::pending().await };
        sleep_until(self.next_try).await;
        let backlog = self.backlog;
        let bind = move || bind_at(&address, backlog).map_err(|error| chain(&error));
        tokio::task::spawn_blocking(bind).await.map_err(|error| chain(&error))?
    }

    /// Takes what [`Self::bound`] gave; gives the address if clients are served there from now on.
    pub fn take(&mut self, bound: Result<(StdListener, SocketAddr), String>) -> Option<SocketAddr> {
        let taken = bound.and_then(|(listener, address)| {
            Ok((TcpListener::from_std(listener).map_err(|error| chain(&error))?, address))
        });
        match taken {
            Ok((listener, address)) => {
                tracing::info!(%address, "clients are served here from now on");
                (self.listener, self.wanted) = (Some(listener), None);
                Some(address)
            }
            Err(error) => {
                self.next_try = Instant::now() + BIND_PAUSE;
                if !std::mem::replace(&mut self.is_told, true) {
                    tracing::error!(
                        error,
                        "no client can connect: the client port of the new configuration can't be bound; it is tried again \
                         every second"
                    );
                }
                None
            }
        }
    }
}

/// Whether who listens at `at` is found at `place`.
fn is_served(at: SocketAddr, (host, port): &ListenAddress) -> bool {
    let is_there = |host: &String| {
        resolve(host, *port).is_ok_and(|found| found.ip().to_canonical() == at.ip().to_canonical())
    };
    at.port() == *port && host.as_ref().map_or(at.ip().is_unspecified(), is_there)
}

/// Binds; gives the address, which has a port of its own where 0 was asked for.
pub fn bind_at(
    (host, port): &ListenAddress,
    backlog: i32,
) -> Result<(StdListener, SocketAddr), ListenError> {
    let wanted = match host {
        // One socket for both families; IPv4 clients appear as plain IPv4 (P-23a).
        None => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), *port),
        Some(host) => resolve(host, *port)
            .map_err(|source| ListenError::Resolve { host: host.clone(), source })?,
    };
    let bind = |address: SocketAddr| -> io::Result<StdListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        if address.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(backlog)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    };
    let without_v6 = SocketAddr::from(([0, 0, 0, 0], *port));
    let listener = match bind(wanted) {
        // A machine without IPv6 has no dual-stack socket to give.
        Err(error) if host.is_none() && error.kind() != io::ErrorKind::AddrInUse => {
            bind(without_v6)
        }
        other => other,
    };
    let fail = |source| ListenError::Bind { address: wanted, source };
    let listener = listener.map_err(fail)?;
    let address = listener.local_addr().map_err(fail)?;
    Ok((listener, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str, port: u16) -> ListenAddress {
        (Some(host.to_owned()), port)
    }

    async fn try_once(socket: &mut ClientPort) -> Option<SocketAddr> {
        socket.next_try = Instant::now();
        let bound = socket.bound().await;
        socket.take(bound)
    }

    // An address that is taken: the old one is closed, as Java closes it, and the new one is served once it is free.
    #[tokio::test]
    async fn the_old_address_is_closed_and_the_new_one_is_tried_until_it_is_free() {
        let (first, old) = bind_at(&(None, 0), 1).unwrap();
        let (taken, new) = bind_at(&at("127.0.0.1", 0), 1).unwrap();
        let mut socket = ClientPort::new(first, 1).unwrap();
        socket.move_to((None, old.port()));
        assert!(!socket.is_wanted(), "it is there already");
        socket.move_to(at("127.0.0.1", new.port()));
        for _ in 0..2 {
            assert_eq!(try_once(&mut socket).await, None);
            let refused = std::net::TcpStream::connect(("127.0.0.1", old.port()));
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        }
        drop(taken);
        assert_eq!(try_once(&mut socket).await, Some(new));
        let client = std::net::TcpStream::connect(new).unwrap();
        assert_eq!(socket.accept().await.unwrap().1, client.local_addr().unwrap());
        assert!(!socket.is_wanted());
    }

    // Both sockets can't be open at once: the first is for every address of the port.
    #[tokio::test]
    async fn one_address_follows_all_addresses_of_its_port() {
        let (first, old) = bind_at(&(None, 0), 1).unwrap();
        let mut socket = ClientPort::new(first, 1).unwrap();
        socket.move_to(at("127.0.0.1", old.port()));
        let new = SocketAddr::from(([127, 0, 0, 1], old.port()));
        assert_eq!(try_once(&mut socket).await, Some(new));
        let elsewhere = std::net::TcpStream::connect(("127.0.0.2", old.port()));
        assert_eq!(elsewhere.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test]
    async fn all_addresses_follow_one_of_their_port() {
        let (first, old) = bind_at(&at("127.0.0.1", 0), 1).unwrap();
        let mut socket = ClientPort::new(first, 1).unwrap();
        socket.move_to((None, old.port()));
        assert!(socket.is_wanted(), "clients elsewhere are not served yet");
        assert!(try_once(&mut socket).await.is_some_and(|new| new.ip().is_unspecified()));
    }

    #[test]
    fn port_that_is_taken_for_ipv6_is_not_taken_for_ipv4_alone() {
        let socket = Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP));
        let Ok(socket) = socket else { return }; // A host without IPv6.
        socket.set_only_v6(true).unwrap();
        if socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)).into()).is_err() {
            return;
        }
        socket.listen(1).unwrap();
        let port = socket.local_addr().unwrap().as_socket().unwrap().port();
        let Err(ListenError::Bind { source, .. }) = bind_at(&(None, port), 1) else {
            panic!("clients of IPv6 find another server there")
        };
        assert_eq!(source.kind(), io::ErrorKind::AddrInUse);
    }
}
