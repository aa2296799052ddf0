//! Binds an address where connections are accepted.

use super::resolve::resolve_all;
use crate::member::ListenAddress;
use crate::model::chain;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener as StdListener};
use tokio::net::TcpListener;

/// Why an address can't be bound.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("can't resolve host {host}")]
    Resolve { host: String, source: io::Error },
    #[error("can't listen on {address}")]
    Bind { address: SocketAddr, source: io::Error },
}

/// Where the port of an address is set. The host is that of this server's line in any case.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PortSetting {
    ServerLine,
    ObserverMasterPort,
}

impl ListenError {
    /// The error, and what to do about it.
    fn with_advice(&self, port: PortSetting) -> String {
        let advice = match (self, port) {
            (Self::Resolve { .. }, _) => {
                "correct the host in this server's line server.N, or let its name resolve here"
            }
            (Self::Bind { source, .. }, port) => match (source.kind(), port) {
                (io::ErrorKind::AddrNotAvailable, _) => {
                    "this machine has no such address: correct dataDir/myid, or the host in this server's line server.N"
                }
                (io::ErrorKind::AddrInUse, PortSetting::ServerLine) => {
                    "free the port, or change it in this server's line server.N"
                }
                (io::ErrorKind::AddrInUse, PortSetting::ObserverMasterPort) => {
                    "free the port, or change observerMasterPort on all servers"
                }
                (_, PortSetting::ServerLine) => "correct this server's line server.N",
                (_, PortSetting::ObserverMasterPort) => "correct observerMasterPort",
            },
        };
        format!("{}; {advice}", chain(self))
    }
}

/// Binds an address, and returns it with the real port where 0 was asked for. If a host name has several addresses, the first
/// that this machine has is bound. "All addresses" is one socket for both families (P-23a); a machine without IPv6 has no such
/// socket and listens for IPv4 alone.
///
/// # Errors
/// When no address can be bound, and when one is in use: fewer peers would find this server at another address.
pub fn bind(at: &ListenAddress, backlog: i32) -> Result<(StdListener, SocketAddr), ListenError> {
    let addresses = match &at.host {
        None => {
            let both = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
            both.map(|ip| SocketAddr::new(ip, at.port)).to_vec()
        }
        Some(host) => resolve_all(host, at.port)
            .map_err(|source| ListenError::Resolve { host: host.clone(), source })?,
    };
    let bound = first(&addresses, |address| {
        let listener = open(address, backlog)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    bound.map_err(|(address, source)| ListenError::Bind { address, source })
}

/// Opens the first of at least one addresses that can be opened; or the address at which the search ended, and why.
fn first<T>(
    addresses: &[SocketAddr],
    mut open: impl FnMut(SocketAddr) -> io::Result<T>,
) -> Result<T, (SocketAddr, io::Error)> {
    let (&last, others) = addresses.split_last().expect("a host that is resolved has an address");
    for &address in others {
        match open(address) {
            Ok(opened) => return Ok(opened),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err((address, error)),
            Err(_) => {}
        }
    }
    open(last).map_err(|error| (last, error))
}

/// [`bind`] for a task; the error is a text that says what to do.
///
/// * `port`: where the port of the address is set.
pub async fn bind_in_task(
    at: ListenAddress,
    port: PortSetting,
    backlog: i32,
) -> Result<TcpListener, String> {
    let bound = tokio::task::spawn_blocking(move || bind(&at, backlog)).await;
    let bound = bound.map_err(|error| chain(&error))?;
    let (listener, _) = bound.map_err(|error| error.with_advice(port))?;
    TcpListener::from_std(listener).map_err(|error| chain(&error))
}

fn open(address: SocketAddr, backlog: i32) -> io::Result<StdListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: Q-30
    #[test]
    fn bind_passes_over_an_address_that_the_machine_lacks_but_not_one_in_use() {
        let addresses: Vec<SocketAddr> =
            ["[::]:7", "0.0.0.0:7"].map(|at| at.parse().unwrap()).to_vec();
        let opened = |at_ipv6: Option<io::ErrorKind>| {
            let open = |address: SocketAddr| match at_ipv6.filter(|_| address.is_ipv6()) {
                Some(error) => Err(error.into()),
                None => Ok(address),
            };
            first(&addresses, open).map_err(|(address, error)| (address, error.kind()))
        };
        assert_eq!(opened(None), Ok(addresses[0]));
        let lacks_ipv6 = Some(io::ErrorKind::Unsupported);
        assert_eq!(opened(lacks_ipv6), Ok(addresses[1]));
        let in_use = io::ErrorKind::AddrInUse;
        assert_eq!(opened(Some(in_use)), Err((addresses[0], in_use)));
    }

    #[test]
    fn errors_of_listening_say_what_to_do() {
        let text_at = |port, kind: io::ErrorKind| {
            let address = "10.0.0.9:2888".parse().unwrap();
            ListenError::Bind { address, source: kind.into() }.with_advice(port)
        };
        let text_of = |kind| text_at(PortSetting::ServerLine, kind);
        assert!(text_of(io::ErrorKind::AddrNotAvailable).contains("correct dataDir/myid"));
        assert!(text_of(io::ErrorKind::AddrInUse).contains("10.0.0.9:2888: address in use; free"));
        let source = io::ErrorKind::NotFound.into();
        let unresolved = ListenError::Resolve { host: "zk2".to_owned(), source };
        let unresolved = unresolved.with_advice(PortSetting::ServerLine);
        assert!(unresolved.starts_with("can't resolve host zk2"), "{unresolved}");
        let for_observers = |kind| text_at(PortSetting::ObserverMasterPort, kind);
        assert!(
            for_observers(io::ErrorKind::AddrInUse)
                .ends_with("or change observerMasterPort on all servers")
        );
        let denied = for_observers(io::ErrorKind::PermissionDenied);
        assert!(denied.ends_with("; correct observerMasterPort"), "{denied}");
        assert!(for_observers(io::ErrorKind::AddrNotAvailable).contains("server.N"), "the host");
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
        let Err(ListenError::Bind { source, .. }) = bind(&ListenAddress { host: None, port }, 1)
        else {
            panic!("IPv6 clients would find another server at this port")
        };
        assert_eq!(source.kind(), io::ErrorKind::AddrInUse);
    }
}
