//! TLS of a server: reads the stores at start, and again when they change.

use super::error::ServerError;
use crate::config::Config;
use crate::net::tls::{Engine, Handshakes, Side, Watch};
use crate::net::{PeerSecurity, PeerTls};
use std::io;
use std::sync::Arc;
use tokio_util::task::AbortOnDropHandle;

/// TLS of client ports.
pub struct ClientEngine {
    pub engine: Arc<Engine>,
    pub handshakes: Arc<Handshakes>,
}

/// The engines of a server.
pub struct Tls {
    /// `None`: no client port speaks TLS.
    pub clients: Option<ClientEngine>,
    pub servers: PeerSecurity,
    watches: Vec<Watch>,
}

impl Tls {
    /// Reads the stores.
    ///
    /// # Errors
    /// If a store can't be used.
    pub fn start(config: &Config) -> Result<Self, ServerError> {
        let threads =
            |source: io::Error| ServerError::System { what: "start threads for TLS", source };
        let mut watches = Vec::new();
        let mut clients = None;
        if let Some(tls) = &config.client_tls {
            let (engine, stores) = Engine::new(tls.settings.clone(), Side::Clients)?;
            let engine = Arc::new(engine);
            // Java reads the stores for each connection, with and without client.certReload.
            watches.push(Watch::new(engine.clone(), &stores, true));
            let handshakes = Arc::new(Handshakes::of_clients().map_err(threads)?);
            clients = Some(ClientEngine { engine, handshakes });
        }
        let mut servers = PeerSecurity::default();
        if let (Some(tls), Some(ensemble)) = (&config.quorum_tls, &config.ensemble) {
            let mut settings = tls.settings.clone();
            // As Java: with fips-mode host names are not compared between servers.
            settings.verifies_host &= !tls.fips_mode;
            settings.verifies_client_host &= !tls.fips_mode;
            let (engine, stores) = Engine::new(settings, Side::Servers)?;
            let engine = Arc::new(engine);
            watches.push(Watch::new(engine.clone(), &stores, tls.reloads));
            let security = PeerSecurity::new(Some(PeerTls {
                engine,
                handshakes: Handshakes::of_servers().map_err(threads)?,
                dials: tls.dials,
                is_unified: tls.unified,
                hosts: Default::default(),
            }));
            security.set_hosts(&ensemble.view);
            servers = security;
        }
        Ok(Self { clients, servers, watches })
    }

    /// Watches the stores until the returned tasks are dropped.
    pub fn watch(self) -> Vec<AbortOnDropHandle<()>> {
        let watches = self.watches.into_iter();
        watches.map(|watch| AbortOnDropHandle::new(tokio::spawn(watch.run()))).collect()
    }
}
