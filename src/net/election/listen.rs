//! Listens at a place and accepts connections there.

use super::socket::{Report, Reports};
use crate::member::election_connections::Input;
use crate::member::election_listeners::{ElectionAddress, ListenerId};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::TcpListener;

const BACKLOG: u32 = 50;

/// One attempt to listen: until it cannot, or cannot accept any more. The name is looked up each time.
pub async fn listen(listener: ListenerId, place: ElectionAddress, reports: Reports) {
    let failed = match bind(&place).await {
        Ok(socket) => {
            reports.put_input(Input::Listening { listener });
            accept(&socket, &reports).await
        }
        Err(error) => error,
    };
    reports.put_input(Input::ListenFailed { listener, error: failed.to_string() });
}

/// Returns when nothing can be accepted any more.
async fn accept(socket: &TcpListener, reports: &Reports) -> io::Error {
    loop {
        match socket.accept().await {
            Ok((stream, peer)) => {
                let (peer, permit) = (peer.to_string(), reports.permit().await);
                reports.put(Report::Accepted { stream, peer, permit });
            }
            Err(error) => return error,
        }
    }
}

async fn bind(place: &ElectionAddress) -> io::Result<TcpListener> {
    let Some(host) = &place.host else {
        let v6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, place.port));
        return match listener(v6) {
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                listener(SocketAddr::from((Ipv4Addr::UNSPECIFIED, place.port)))
            }
            other => other,
        };
    };
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in tokio::net::lookup_host((host.as_str(), place.port)).await? {
        match listener(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(address),
        socket2::Type::STREAM,
        Some(socket2::Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG as i32)?;
    TcpListener::from_std(socket.into())
}
