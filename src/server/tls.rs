//! TLS of a server: reads the stores at start, and again when they change.

use super::error::ServerError;
use crate::config::Config;
use crate::config::tls::TlsSettings;
use crate::metrics::Registry;
use crate::net::tls::{Engine, EngineError, EngineRole, Handshakes, Stores, Used, Watch};
use crate::net::{HttpTls, PeerSecurity, PeerTls, Plain};
use rustls_pki_types::UnixTime;
use std::io;
use std::sync::Arc;
use tokio_util::task::AbortOnDropHandle;

/// TLS of client ports.
pub struct ClientEngine {
    pub engine: Arc<Engine>,
    pub handshakes: Arc<Handshakes>,
}

/// TLS of HTTP ports; `None`: the port has none.
#[derive(Clone, Default)]
pub struct HttpEngines {
    pub admin: Option<Arc<HttpTls>>,
    pub metrics: Option<Arc<HttpTls>>,
}

/// The engines of a server.
pub struct Tls {
    /// `None`: no client port speaks TLS.
    pub clients: Option<ClientEngine>,
    pub servers: PeerSecurity,
    pub http: HttpEngines,
    watches: Vec<Watch>,
}

impl Tls {
    /// Reads the stores.
    ///
    /// # Errors
    /// If a store can't be used.
    pub fn start(config: &Config, metrics: &Arc<Registry>) -> Result<Self, ServerError> {
        let mut watches = Vec::new();
        let mut clients = None;
        if let Some(tls) = &config.client_tls {
            let (engine, stores) = Engine::new(tls.settings.clone(), EngineRole::Server)?;
            warn_of(&tls.settings, EngineRole::Server, &stores, &[]);
            let engine = Arc::new(engine);
            // Java reads the stores for each connection, with and without client.certReload.
            watches.push(Watch::new(engine.clone(), &stores, true));
            let handshakes = Arc::new(Handshakes::of_clients().map_err(threads)?);
            clients = Some(ClientEngine { engine, handshakes });
        }
        let mut servers = PeerSecurity::default();
        if let Some(tls) = &config.quorum_tls {
            let (engine, stores) = Engine::new(tls.settings.clone(), EngineRole::Peer)?;
            let own = config.ensemble.as_ref().filter(|_| tls.settings.verifies_host);
            let own = own.and_then(|ensemble| ensemble.own());
            let own = own.into_iter().flat_map(|own| &own.addresses);
            let own: Vec<String> = own.map(|address| address.host.to_string()).collect();
            warn_of(&tls.settings, EngineRole::Peer, &stores, &own);
            let engine = Arc::new(engine);
            watches.push(Watch::new(engine.clone(), &stores, tls.reloads));
            servers = PeerSecurity::new(Some(PeerTls {
                engine,
                handshakes: Handshakes::of_servers().map_err(threads)?,
                dials: tls.dials,
                is_unified: tls.unified,
                hosts: Default::default(),
                logged: Default::default(),
                began: tokio::time::Instant::now(),
            }));
        }
        let identities = clients.as_ref().map(|clients| clients.engine.clone());
        let http = http(config, metrics, identities, &mut watches)?;
        Ok(Self { clients, servers, http, watches })
    }

    /// Watches the stores until the returned tasks are dropped.
    pub fn watch(self) -> Vec<AbortOnDropHandle<()>> {
        let watches = self.watches.into_iter();
        watches.map(|watch| AbortOnDropHandle::new(tokio::spawn(watch.run()))).collect()
    }
}

/// * `hosts`: under which other servers dial this one, if they compare names.
fn warn_of(settings: &TlsSettings, role: EngineRole, stores: &Stores, hosts: &[String]) {
    let used = Used { settings, role, keys: &stores.keys, trusted: &stores.trusted, hosts };
    for warning in used.warnings(UnixTime::now()) {
        tracing::warn!("{warning}");
    }
}

fn threads(source: io::Error) -> ServerError {
    ServerError::Thread { what: "threads for TLS", source }
}

/// Stores of HTTP ports are always reloaded when they change: HTTP clients keep no session that a change could break.
///
/// * `identities`: the engine of client ports, which decides whose certificates are identities at AdminServer.
fn http(
    config: &Config,
    metrics: &Arc<Registry>,
    identities: Option<Arc<Engine>>,
    watches: &mut Vec<Watch>,
) -> Result<HttpEngines, ServerError> {
    let mut of = |settings: &TlsSettings, plain, failed: fn(EngineError) -> ServerError| {
        let (engine, stores) = Engine::new(settings.clone(), EngineRole::Server).map_err(failed)?;
        warn_of(settings, EngineRole::Server, &stores, &[]);
        let engine = Arc::new(engine);
        watches.push(Watch::new(engine.clone(), &stores, true));
        let handshakes = Handshakes::of_http().map_err(threads)?;
        Ok::<_, ServerError>(HttpTls { engine, identities: None, handshakes, plain })
    };
    let admin = config.admin.as_ref().and_then(|admin| admin.tls.as_ref());
    let admin = admin.map(|tls| {
        let plain = if tls.is_forced { Plain::Refused } else { Plain::Counted(metrics.clone()) };
        let made = of(&tls.settings, plain, ServerError::AdminTls)?;
        Ok::<_, ServerError>(Arc::new(HttpTls { identities, ..made }))
    });
    let https = config.metrics.prometheus.as_ref().and_then(|ports| {
        let https = ports.https.as_ref()?;
        let plain = if ports.is_shared() { Plain::Served } else { Plain::Refused };
        Some(of(&https.settings, plain, ServerError::MetricsTls).map(Arc::new))
    });
    Ok(HttpEngines { admin: admin.transpose()?, metrics: https.transpose()? })
}
