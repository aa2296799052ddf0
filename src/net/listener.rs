//! Accepts client connections, within the limits on their number.

use super::bind::{ListenError, bind};
use super::client::{ServerHandles, serve};
use super::client_port::{ClientPort, ClientPortEvent};
use crate::config::Config;
use crate::member::ListenAddress;
use crate::model::sync::Ordering;
use crate::request::{Conn, Connection, Shared};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdListener};
use std::sync::atomic::AtomicU16;
use std::sync::{Arc, Mutex};
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections that the system may queue when `clientPortListenBacklog` is not above 0: it takes its own maximum
/// (net.core.somaxconn) for more. Java's default of 50 drops connects when thousands come at once, and their clients try
/// again after 1, 3 and 7 s.
const BACKLOG_DEFAULT: i32 = i32::MAX;

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
        let port = config.client_port.expect("settings with secureClientPort alone are refused");
        let place = ListenAddress { host: config.client_host.clone(), port };
        let (listener, address) = bind(&place, backlog)?;
        Ok(Self {
            address,
            listener,
            backlog,
            per_address_max: usize::try_from(config.max_client_cnxns).unwrap_or(0),
            conns_max: config.max_cnxns as usize,
            keep_alive: config.client_tcp_keep_alive,
        })
    }

    /// Accepts and serves until `stop`; returns the connections that are left, each a task.
    ///
    /// * `moves`: new addresses to listen at; connections stay as they are.
    /// * `port`: set to the port that is bound, for four-letter words.
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
        let mut socket = ClientPort::new(self.listener, self.backlog)?;
        loop {
            let happened = tokio::select! {
                () = stop.cancelled() => return Ok(tasks),
                Some(place) = moves.recv() => {
                    socket.move_to(place);
                    continue;
                }
                happened = socket.next() => happened,
            };
            let (stream, peer) = match happened {
                ClientPortEvent::Accepted(stream, peer) => (stream, peer),
                ClientPortEvent::Moved(address) => {
                    port.store(address.port(), Ordering::Relaxed);
                    continue;
                }
            };
            // An IPv4 client on an IPv6 socket is shown and counted by its IPv4 address (P-23a).
            let address = peer.ip().to_canonical();
            let peer = SocketAddr::new(address, peer.port());
            let place = counts.enter(address, self.per_address_max, self.conns_max);
            let Ok(place) = place.inspect_err(|limit| {
                server.metrics.connection_rejected.increment();
                tracing::warn!(
                    target: crate::model::STRANGERS, %peer,
                    "connection refused: limit reached, {limit}"
                );
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
    /// Takes a place in the count, or returns which limit is reached; 0 is no limit.
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
            return Err(format!("maxClientCnxns={own} from {address}"));
        }
        if conns_max > 0 && *all >= conns_max {
            return Err(format!("maxCnxns={all}"));
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
    use std::time::Duration;

    // rows: P-23 C-111
    #[test]
    fn connections_are_limited_per_address_and_in_all() {
        let counts = Arc::new(Counts::default());
        let (a, b) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let first = counts.enter(a, 1, 0).unwrap();
        let refused =
            |address, per_address_max, max| counts.enter(address, per_address_max, max).err();
        assert_eq!(refused(a, 1, 0).unwrap(), "maxClientCnxns=1 from 10.0.0.1");
        let _other = counts.enter(b, 1, 2).unwrap();
        assert_eq!(refused(IpAddr::from([10, 0, 0, 3]), 1, 2).unwrap(), "maxCnxns=2");
        drop(first);
        assert!(counts.enter(a, 1, 2).is_ok());
        let kept = counts.by_address.lock().unwrap();
        assert_eq!((kept.0, kept.1.len()), (1, 1), "a refused place is not kept");
    }

    /// No connection is accepted here: one more than the queue's length is established, and the next one waits.
    // rows: C-19
    #[test]
    fn backlog_holds_as_many_connections_as_are_set() {
        use crate::config::{Environment, Source, parse};
        let waiting = |line: &str, count: usize| {
            let text = format!("dataDir=/d\nclientPort=0\nclientPortAddress=127.0.0.1\n{line}\n");
            let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: None };
            let config = parse(source, &Environment::new(), &[]).unwrap();
            let listener = Listener::bind(&config).unwrap();
            let connect = |within| std::net::TcpStream::connect_timeout(&listener.address, within);
            let held: Vec<_> =
                (0..count).map(|_| connect(Duration::from_secs(60)).unwrap()).collect();
            let next = connect(Duration::from_millis(300)).map_err(|error| error.kind());
            assert_eq!(held.len(), count);
            next.map(drop)
        };
        assert_eq!(waiting("clientPortListenBacklog=2", 3), Err(io::ErrorKind::TimedOut));
        assert_eq!(waiting("clientPortListenBacklog=20", 20), Ok(()));
        assert_eq!(waiting("", 100), Ok(()), "the default is the system's maximum");
    }
}
