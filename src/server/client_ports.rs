//! The client ports of a server: the plain one, and with `secureClientPort` one for TLS.

use super::error::ServerError;
use super::tls::ClientEngine;
use crate::config::Config;
use crate::config::tls::ClientTls;
use crate::member::ListenAddress;
use crate::net::{ClientPorts, Listener, TlsPort};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU16;
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// The ports, bound: a port in use is reported before the data is loaded.
pub struct Ports {
    /// `None`: `clientPort` is not set.
    plain: Option<Listener>,
    secure: Option<Listener>,
    /// The port of `plain`, for four-letter words; a reconfiguration may move it. 0: there is none.
    pub plain_port: Arc<AtomicU16>,
}

impl Ports {
    /// # Errors
    /// If an address can't be bound.
    pub fn bind(config: &Config, engine: Option<&ClientEngine>) -> Result<Self, ServerError> {
        let tls = config.client_tls.as_ref().zip(engine);
        let port = |(tls, engine): (&ClientTls, &ClientEngine), is_unified| {
            Arc::new(TlsPort {
                engine: engine.engine.clone(),
                handshakes: engine.handshakes.clone(),
                is_unified,
                handshakes_max: tls.handshakes_max,
                drops_early: tls.drops_early,
                sessionless_max: Duration::from_millis(config.sessionless_cnxn_timeout_ms.into()),
            })
        };
        let unified = tls.filter(|(tls, _)| tls.unified).map(|tls| port(tls, true));
        let plain = config.client_port.map(|port| Listener::bind(port, config, unified));
        let plain = plain.transpose()?;
        let plain_port = plain.as_ref().map_or(0, |plain| plain.address.port());
        let plain_port = Arc::new(AtomicU16::new(plain_port));
        let secure = tls.and_then(|tls| Some((tls, tls.0.secure_port?)));
        let secure = secure.map(|(tls, number)| {
            let place = ListenAddress { host: tls.0.secure_host.clone(), port: number };
            Listener::bind_at(&place, config, Some(port(tls, false)))
        });
        let secure = secure.transpose().map_err(ServerError::ListenSecure)?;
        Ok(Self { plain, secure, plain_port })
    }

    /// The address of the plain port, or of the secure one if that is the only one; and the address of the secure port.
    pub fn addresses(&self) -> (SocketAddr, Option<SocketAddr>) {
        let first = self.plain.as_ref().or(self.secure.as_ref());
        let first = first.expect("settings without any client port are refused").address;
        (first, self.secure_address())
    }

    pub fn secure_address(&self) -> Option<SocketAddr> {
        self.secure.as_ref().map(|listener| listener.address)
    }

    /// Accepts and serves until the server stops; the task then returns the connections that are left.
    ///
    /// * `moves`: new addresses of the plain port.
    pub fn accept(
        self,
        ports: ClientPorts,
        moves: UnboundedReceiver<ListenAddress>,
    ) -> JoinHandle<io::Result<TaskTracker>> {
        let secure = self.secure.map(|listener| {
            // Its address is not in the dynamic configuration, so nothing moves it.
            let (port, (_, stays)) = (listener.address.port(), mpsc::unbounded_channel());
            tokio::spawn(listener.run(ports.clone(), stays, Arc::new(AtomicU16::new(port))))
        });
        tokio::spawn(async move {
            let tasks = ports.tasks.clone();
            match self.plain {
                Some(plain) => plain.run(ports, moves, self.plain_port).await?,
                None => ports.stop.cancelled().await,
            }
            if let Some(secure) = secure {
                secure.await.map_err(io::Error::other)??;
            }
            Ok(tasks)
        })
    }
}
