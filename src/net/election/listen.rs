//! Listens at a place and accepts connections there.

use super::socket::Report;
use crate::member::election_connections::Input;
use crate::member::election_listeners::{ListenerId, Place};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::TcpListener;
use tokio::sync::mpsc::Sender;

const BACKLOG: u32 = 50;

/// One attempt to listen: until it cannot, or cannot accept any more. The name is looked up each time.
pub async fn listen(listener: ListenerId, place: Place, reports: Sender<Report>) {
    let failed = match bind(&place).await {
        Ok(socket) => {
            let _ = reports.send(Report::Input(Input::Listening { listener })).await;
            accept(&socket, &reports).await
        }
        Err(error) => error,
    };
    let failed = Input::ListenFailed { listener, error: failed.to_string() };
    // The performer is gone when all is being closed.
    let _ = reports.send(Report::Input(failed)).await;
}

/// Returns when nothing can be accepted any more.
async fn accept(socket: &TcpListener, reports: &Sender<Report>) -> io::Error {
    loop {
        match socket.accept().await {
            Ok((stream, peer)) => {
                let peer = peer.to_string();
                let _ = reports.send(Report::Accepted { stream, peer }).await;
            }
            Err(error) => return error,
        }
    }
}

async fn bind(place: &Place) -> io::Result<TcpListener> {
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
