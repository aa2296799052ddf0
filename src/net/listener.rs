//! Accepts client connections, within the limits on their number.

use super::bind::{ListenError, bind};
use super::client::{ServerHandles, serve};
use super::client_counts::Counts;
use super::client_port::{ClientPort, ClientPortEvent};
use super::tls_port::{Accepted, TlsPort, open};
use crate::config::Config;
use crate::member::ListenAddress;
use crate::model::sync::Ordering;
use crate::request::{ClientHandle, Connection, Shared};
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::AtomicU16;
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
    /// `None`: connections are plain.
    tls: Option<Arc<TlsPort>>,
    /// Whether to count connections without TLS: this server has TLS for clients, and this port accepts plain connections.
    counts_plain: bool,
}

/// What the connections of all client ports need.
#[derive(Clone)]
pub struct ClientPorts {
    pub shared: Arc<Shared>,
    pub server: ServerHandles,
    /// The connections, each a task.
    pub tasks: TaskTracker,
    pub stop: CancellationToken,
}

impl Listener {
    /// Binds the plain client port; connections wait in the kernel until [`Listener::run`].
    ///
    /// * `tls`: for `client.portUnification`.
    ///
    /// # Errors
    /// [`ListenError`] naming the address.
    pub fn bind(
        port: u16,
        config: &Config,
        tls: Option<Arc<TlsPort>>,
    ) -> Result<Self, ListenError> {
        let address = ListenAddress { host: config.client_host.clone(), port };
        Self::bind_at(&address, config, tls)
    }

    /// Binds a client port at `address`, with the limits of the configuration, which count per port.
    ///
    /// # Errors
    /// [`ListenError`] naming the address.
    pub fn bind_at(
        address: &ListenAddress,
        config: &Config,
        tls: Option<Arc<TlsPort>>,
    ) -> Result<Self, ListenError> {
        let backlog = Some(config.client_port_listen_backlog).filter(|&backlog| backlog > 0);
        let backlog = backlog.unwrap_or(BACKLOG_DEFAULT);
        let (listener, address) = bind(address, backlog)?;
        Ok(Self {
            address,
            listener,
            backlog,
            per_address_max: usize::try_from(config.max_client_cnxns).unwrap_or(0),
            conns_max: config.max_cnxns as usize,
            keep_alive: config.client_tcp_keep_alive,
            counts_plain: config.client_tls.is_some()
                && tls.as_ref().is_none_or(|tls| tls.is_unified),
            tls,
        })
    }

    /// Accepts and serves until the server stops.
    ///
    /// * `moves`: new addresses to listen at; connections stay as they are.
    /// * `port`: set to the port that is bound, for four-letter words.
    ///
    /// # Errors
    /// When the runtime can't take the socket.
    pub async fn run(
        self,
        ports: ClientPorts,
        mut moves: UnboundedReceiver<ListenAddress>,
        port: Arc<AtomicU16>,
    ) -> io::Result<()> {
        let counts = Arc::new(Counts::default());
        let mut socket = ClientPort::new(self.listener, self.backlog)?;
        loop {
            let happened = tokio::select! {
                () = ports.stop.cancelled() => return Ok(()),
                Some(address) = moves.recv() => {
                    socket.move_to(address);
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
            let address = peer.ip();
            let slot = counts.enter(address, self.per_address_max, self.conns_max);
            let Ok(slot) = slot.inspect_err(|limit| {
                ports.server.metrics.connection_rejected.increment();
                tracing::warn!(
                    target: crate::model::STRANGERS, %peer,
                    "connection refused: limit reached, {limit}; see with cons which client holds most connections, or raise the limit"
                );
            }) else {
                continue;
            };
            if let Err(error) = self
                .keep_alive
                .then(|| socket2::SockRef::from(&stream).set_keepalive(true))
                .transpose()
            {
                tracing::debug!(%peer, %error, "can't set SO_KEEPALIVE");
            }
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%peer, %error, "can't set TCP_NODELAY");
            }
            if self.counts_plain {
                let figures = &ports.server.metrics.tls;
                let is_local = address.is_loopback();
                let count =
                    if is_local { &figures.non_mtls_local } else { &figures.non_mtls_remote };
                count.increment();
            }
            let at_ms = ports.server.epoch.elapsed().as_millis() as u64;
            let port = port.load(Ordering::Relaxed);
            ports.start(Accepted { socket: stream, peer, port, slot, at_ms }, self.tls.as_ref());
        }
    }
}

impl ClientPorts {
    fn start(&self, accepted: Accepted, tls: Option<&Arc<TlsPort>>) {
        let (shared, server) = (self.shared.clone(), self.server.clone());
        let Some(tls) = tls else {
            let Accepted { socket, peer, slot, at_ms, .. } = accepted;
            let conn = shared.conns.add(|id| ClientHandle::new(id, peer, at_ms));
            let machine = Connection::new(conn, shared);
            self.tasks.spawn(serve(socket, machine, Vec::new(), server, slot));
            return;
        };
        self.tasks.spawn(open(accepted, tls.clone(), shared, server, self.stop.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Accepts no connection: the system establishes one connection more than the queue's length, and the next one waits.
    // rows: C-19
    #[test]
    fn backlog_holds_as_many_connections_as_are_set() {
        use crate::config::{Environment, Source, parse};
        let waiting = |line: &str, count: usize| {
            let text = format!("dataDir=/d\nclientPort=0\nclientPortAddress=127.0.0.1\n{line}\n");
            let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: None };
            let config = parse(source, &Environment::new(), &[]).unwrap();
            let listener = Listener::bind(0, &config, None).unwrap();
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
