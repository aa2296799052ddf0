//! The client port.

use super::client::{ServerHandles, serve};
use super::resolve;
use crate::config::Config;
use crate::member::ListenAddress;
use crate::model::sync::Ordering;
use crate::request::{Conn, Connection, Shared};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener as StdListener};
use std::sync::atomic::AtomicU16;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections the kernel may queue when `clientPortListenBacklog` is not above 0, as Java's own default.
const BACKLOG_DEFAULT: i32 = 50;
/// After a failed accept (usually: no file descriptors left) the next is tried this much later.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why the client port can't be had.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("resolve host {host}")]
    Resolve { host: String, source: io::Error },
    #[error("listen for clients on {address}")]
    Bind { address: SocketAddr, source: io::Error },
}

/// A bound client port.
pub struct Listener {
    listener: StdListener,
    pub address: SocketAddr,
    backlog: i32,
    per_address_max: usize,
    conns_max: usize,
    keep_alive: bool,
}

impl Listener {
    /// Binds the client port; connections wait in the kernel until [`Listener::run`].
    ///
    /// # Errors
    /// [`ListenError`] naming the address.
    pub fn bind(config: &Config) -> Result<Self, ListenError> {
        let backlog = Some(config.client_port_listen_backlog).filter(|&backlog| backlog > 0);
        let backlog = backlog.unwrap_or(BACKLOG_DEFAULT);
        let place = (config.client_host.clone(), config.client_port);
        let (listener, address) = bind_at(&place, backlog)?;
        Ok(Self {
            address,
            listener,
            backlog,
            per_address_max: usize::try_from(config.max_client_cnxns).unwrap_or(0),
            conns_max: config.max_cnxns as usize,
            keep_alive: config.client_tcp_keep_alive,
        })
    }

    /// Accepts and serves until `stop`; gives the connections that are left, each a task.
    ///
    /// * `moves`: other places to listen at, from now on; connections stay as they are.
    /// * `port`: kept true for those who tell of it.
    ///
    /// # Errors
    /// When the runtime can't take the socket.
    pub async fn run(
        self,
        shared: Arc<Shared>,
        server: ServerHandles,
        mut moves: UnboundedReceiver<ListenAddress>,
        port: Arc<AtomicU16>,
        stop: CancellationToken,
    ) -> io::Result<TaskTracker> {
        let tasks = TaskTracker::new();
        let counts = Arc::new(Counts::default());
        let mut listener = TcpListener::from_std(self.listener)?;
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return Ok(tasks),
                Some(place) = moves.recv() => {
                    let at = listener.local_addr()?;
                    if is_served(at, &place) {
                        continue; // The first configuration that names it.
                    }
                    // Two can't have one port, even if one of them is for every address.
                    let old = (at.port() != place.1).then_some(listener);
                    let moved = move_to(&place, self.backlog);
                    listener = match (moved, old) {
                        (Some((moved, address)), _) => {
                            port.store(address.port(), Ordering::Relaxed);
                            moved
                        }
                        (None, Some(old)) => old,
                        (None, None) => listen_again(at, self.backlog)?,
                    };
                    continue;
                }
                accepted = listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "accept client");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // A client of IPv4 is one, on whatever socket it comes (P-23a).
            let address = peer.ip().to_canonical();
            let peer = SocketAddr::new(address, peer.port());
            let place = counts.enter(address, self.per_address_max, self.conns_max);
            let Ok(place) = place.inspect_err(|limit| {
                server.metrics.connection_rejected.increment();
                tracing::warn!(%peer, "connection refused: {limit} are there already");
            }) else {
                continue;
            };
            if let Err(error) = self
                .keep_alive
                .then(|| socket2::SockRef::from(&stream).set_keepalive(true))
                .transpose()
            {
                tracing::debug!(%peer, %error, "set keep-alive");
            }
            start(stream, peer, &shared, &server, place, &tasks);
        }
    }
}

/// Binds; gives the address, which has a port of its own where 0 was asked for.
fn bind_at(
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

/// Where it was before.
fn listen_again(at: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
    let host = Some(at.ip()).filter(|ip| !ip.is_unspecified()).map(|ip| ip.to_string());
    let (listener, _) = bind_at(&(host, at.port()), backlog).map_err(io::Error::other)?;
    TcpListener::from_std(listener)
}

/// Whether who listens at `at` is found at `place`.
fn is_served(at: SocketAddr, (host, port): &ListenAddress) -> bool {
    let is_there = |host: &String| {
        resolve(host, *port).is_ok_and(|found| found.ip().to_canonical() == at.ip().to_canonical())
    };
    at.port() == *port && host.as_ref().map_or(at.ip().is_unspecified(), is_there)
}

/// Binds the place that a reconfiguration names; `None`: it can't be had, and the old one stays.
fn move_to(place: &ListenAddress, backlog: i32) -> Option<(TcpListener, SocketAddr)> {
    let bound = bind_at(place, backlog).map_err(|error| error.to_string());
    let moved = bound.and_then(|(listener, address)| {
        let listener = TcpListener::from_std(listener).map_err(|error| error.to_string())?;
        Ok((listener, address))
    });
    match moved {
        Ok((listener, address)) => {
            tracing::info!(%address, "clients are served here from now on");
            Some((listener, address))
        }
        Err(error) => {
            tracing::error!(
                error,
                "the client port of the new configuration can't be had; the old one is kept"
            );
            None
        }
    }
}

fn start(
    stream: TcpStream,
    peer: SocketAddr,
    shared: &Arc<Shared>,
    server: &ServerHandles,
    place: CountedConnection,
    tasks: &TaskTracker,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "set no-delay");
    }
    let now_ms = server.epoch.elapsed().as_millis() as u64;
    let conn = shared.conns.add(|id| Conn::new(id, peer, now_ms));
    let machine = Connection::new(conn, shared.clone());
    let server = server.clone();
    tasks.spawn(serve(stream, machine, server, place));
}

/// Connections per address (P-23).
#[derive(Default)]
struct Counts {
    by_address: Mutex<(usize, HashMap<IpAddr, usize>)>,
}

/// One connection's place in the count.
struct CountedConnection {
    counts: Arc<Counts>,
    address: IpAddr,
}

impl Counts {
    /// A place, or which of the limits is reached; 0 is no limit.
    fn enter(
        self: &Arc<Self>,
        address: IpAddr,
        per_address_max: usize,
        conns_max: usize,
    ) -> Result<CountedConnection, String> {
        let mut counts = self.by_address.lock().expect("a panic aborts");
        let (all, by_address) = &mut *counts;
        let own = by_address.get(&address).copied().unwrap_or(0);
        if per_address_max > 0 && own >= per_address_max {
            return Err(format!("{own} from {address} (maxClientCnxns)"));
        }
        if conns_max > 0 && *all >= conns_max {
            return Err(format!("{all} (maxCnxns)"));
        }
        by_address.insert(address, own + 1);
        *all += 1;
        Ok(CountedConnection { counts: self.clone(), address })
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut counts = self.counts.by_address.lock().expect("a panic aborts");
        let (all, by_address) = &mut *counts;
        *all -= 1;
        if let Some(own) = by_address.get_mut(&self.address) {
            *own -= 1;
            if *own == 0 {
                by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: P-23 C-111
    #[test]
    fn places_are_counted_per_address() {
        let counts = Arc::new(Counts::default());
        let (a, b) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let first = counts.enter(a, 1, 0).unwrap();
        let refused =
            |address, per_address_max, max| counts.enter(address, per_address_max, max).err();
        assert_eq!(refused(a, 1, 0).unwrap(), "1 from 10.0.0.1 (maxClientCnxns)");
        let _other = counts.enter(b, 1, 2).unwrap();
        assert_eq!(refused(IpAddr::from([10, 0, 0, 3]), 1, 2).unwrap(), "2 (maxCnxns)");
        drop(first);
        assert!(counts.enter(a, 1, 2).is_ok());
        let kept = counts.by_address.lock().unwrap();
        assert_eq!((kept.0, kept.1.len()), (1, 1), "a refused place is not kept");
    }
}
