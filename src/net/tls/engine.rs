//! Settings and stores as rustls takes them, replaced as a whole when the stores change.

use super::handshake::HandshakeError;
use super::peer_check::PeerCheck;
use super::refusal::Refusal;
use super::stores::{self, Keys, StoreError};
use super::suites;
use super::verifier::{Refused, Verifier};
use crate::auth::x509::Peer;
use crate::config::tls::{ClientAuth, StoreSettings, TlsSettings, TlsVersion};
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{
    ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection, SignatureScheme,
    SupportedProtocolVersion,
};
use rustls_pki_types::{CertificateDer, ServerName};
use std::sync::{Arc, Mutex, PoisonError};

/// Why the settings and stores can't be used.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("{text}")]
    Store {
        /// The setting to look at.
        key: String,
        text: String,
    },
    #[error("{prefix}keyStore.location is not set, and TLS needs a key and a certificate; set it")]
    NoKeyStore { prefix: &'static str },
    #[error(
        "{prefix}trustStore.location is not set, so no certificate of a peer can be verified; set it{or}"
    )]
    NoTrustStore { prefix: &'static str, or: &'static str },
    #[error("TLS settings {prefix}*")]
    Rustls { prefix: &'static str, source: rustls::Error },
    #[error("{prefix}keyStore.location: {reason}")]
    Ended { prefix: &'static str, reason: String },
    #[error("trust store of {prefix}*: {reason}")]
    Verifier { prefix: &'static str, reason: String },
    #[error("{0}")]
    UnfitKey(String),
}

impl EngineError {
    /// The setting to look at; `None`: the error's text names it.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Store { key, .. } => Some(key),
            _ => None,
        }
    }

    fn of_store<'a>(
        prefix: &'a str,
        store: &'a StoreSettings,
    ) -> impl Fn(StoreError) -> Self + use<'a> {
        move |error| Self::Store {
            key: format!("{prefix}{}", error.setting(store)),
            text: error.line(prefix, store),
        }
    }
}

/// What an engine does at the connections of its port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EngineRole {
    /// The TLS server: connections of clients are accepted, none are made.
    Server,
    /// Between servers: the TLS server of connections that are accepted, the TLS client of those that are made.
    Peer,
}

/// What is read from the stores.
pub struct Stores {
    pub keys: Keys,
    pub trusted: Vec<CertificateDer<'static>>,
}

/// The key, the certificates and the settings in force, for new connections.
struct Configs {
    /// The kind of the key.
    kind: &'static str,
    server: Arc<ServerConfig>,
    /// `None` for client ports.
    client: Option<Arc<ClientConfig>>,
    /// `None`: peers are asked for no certificates.
    verifier: Option<Arc<Verifier>>,
    /// Judges certificates that were shown at another port; `None`: there is no trust store.
    identities: Option<Arc<Verifier>>,
}

/// Makes the TLS of new connections.
pub struct Engine {
    settings: TlsSettings,
    role: EngineRole,
    /// The checks after a handshake.
    check: PeerCheck,
    configs: Mutex<Arc<Configs>>,
}

impl Engine {
    /// Reads the stores.
    ///
    /// # Errors
    /// If a store can't be used, or one that is needed is not named.
    pub fn new(settings: TlsSettings, role: EngineRole) -> Result<(Self, Stores), EngineError> {
        let stores = read_stores(&settings, role)?;
        let configs = configs(&settings, role, &stores)?;
        let check = PeerCheck::new(&settings);
        Ok((Self { settings, role, check, configs: Mutex::new(Arc::new(configs)) }, stores))
    }

    /// Reads the stores again; connections that begin from now on have what is in them. Open connections stay as they are.
    ///
    /// * `may_replace`: looks at what was read; an error keeps the engine as it was.
    ///
    /// # Errors
    /// If a store can't be used: then the engine stays as it was.
    pub fn reload(
        &self,
        may_replace: impl Fn(&Stores) -> Result<(), String>,
    ) -> Result<Stores, EngineError> {
        let stores = read_stores(&self.settings, self.role)?;
        may_replace(&stores)
            .map_err(|reason| EngineError::Ended { prefix: self.settings.prefix, reason })?;
        let configs = configs(&self.settings, self.role, &stores)?;
        *self.configs.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(configs);
        Ok(stores)
    }

    pub const fn settings(&self) -> &TlsSettings {
        &self.settings
    }

    /// The TLS of a connection that was accepted.
    pub fn accepted(&self) -> Result<Connection, rustls::Error> {
        let config = self.current().server.clone();
        Ok(Connection::Server(ServerConnection::new(config)?))
    }

    /// The TLS of a connection to another server.
    ///
    /// * `name`: the host of the server, sent as SNI. The verifier ignores it; names are compared
    ///   after the handshake (`peer_check.rs`).
    pub fn dialed(&self, name: ServerName<'static>) -> Result<Connection, rustls::Error> {
        let config = self.current().client.clone();
        let config =
            config.ok_or_else(|| rustls::Error::General("clients are not dialed".into()))?;
        Ok(Connection::Client(ClientConnection::new(config, name)?))
    }

    /// Judges what may take seconds, after the handshake and before the first byte: the hosts that the peer's certificate names,
    /// and whether it was revoked.
    ///
    /// * `chain`: as the peer showed it.
    ///
    /// # Errors
    /// Why the connection has to be closed.
    pub async fn check(&self, peer: Peer<'_>, chain: &[CertificateDer<'_>]) -> Result<(), Refused> {
        let Some(verifier) = self.current().verifier.clone() else { return Ok(()) };
        self.check.check_peer(&verifier, peer, chain).await
    }

    /// Judges a certificate that a client has shown at another port, whose engine has another trust store: by this one's trust store, and
    /// whether it was revoked.
    ///
    /// # Errors
    /// Why it is no identity of a client.
    pub async fn check_shown(&self, chain: &[CertificateDer<'_>]) -> Result<(), String> {
        let verifier = self.current().identities.clone();
        let verifier = verifier.ok_or_else(|| "client ports have no trust store".to_owned())?;
        let checked = self.check.check_shown(&verifier, chain).await;
        checked.map_err(|refused| refused.to_string())
    }

    /// Why a handshake of this engine was refused, for the log.
    pub fn refusal(&self, error: &HandshakeError) -> Refusal {
        Refusal::of(error).with_key(self.current().kind)
    }

    fn current(&self) -> Arc<Configs> {
        self.configs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn read_stores(settings: &TlsSettings, role: EngineRole) -> Result<Stores, EngineError> {
    let prefix = settings.prefix;
    let key_store = settings.key_store.as_ref().ok_or(EngineError::NoKeyStore { prefix })?;
    let keys = stores::load_keys(key_store).map_err(EngineError::of_store(prefix, key_store))?;
    let trusted = match (&settings.trust_store, role, settings.client_auth) {
        (Some(store), _, _) => {
            stores::load_trust(store).map_err(EngineError::of_store(prefix, store))?
        }
        (None, EngineRole::Server, ClientAuth::None) => Vec::new(),
        (None, EngineRole::Server, _) => {
            return Err(EngineError::NoTrustStore { prefix, or: ", or set ssl.clientAuth=none" });
        }
        (None, EngineRole::Peer, _) => return Err(EngineError::NoTrustStore { prefix, or: "" }),
    };
    Ok(Stores { keys, trusted })
}

fn configs(
    settings: &TlsSettings,
    role: EngineRole,
    stores: &Stores,
) -> Result<Configs, EngineError> {
    let prefix = settings.prefix;
    let failed = |source| EngineError::Rustls { prefix, source };
    let provider = suites::limited(aws_lc_rs::default_provider(), &settings.cipher_suites);
    let provider = Arc::new(provider);
    if let Some(why) = suites::unfit_key(settings, &stores.keys) {
        return Err(EngineError::UnfitKey(why));
    }
    let versions = versions(&settings.versions);
    let key = OwnKey::of(&stores.keys);
    let asks_clients = (role, settings.client_auth) != (EngineRole::Server, ClientAuth::None);
    let identities = if asks_clients || !stores.trusted.is_empty() {
        let is_mandatory = settings.client_auth != ClientAuth::Want;
        let verifier = Verifier::new(&provider, &stores.trusted, is_mandatory);
        Some(Arc::new(verifier.map_err(|reason| EngineError::Verifier { prefix, reason })?))
    } else {
        None
    };
    let verifier = identities.clone().filter(|_| asks_clients);
    let server = server_config(settings, &provider, &versions, key.clone(), verifier.clone())?;
    let client = match role {
        EngineRole::Server => None,
        EngineRole::Peer => {
            let verifier = verifier.clone().ok_or(EngineError::NoTrustStore { prefix, or: "" })?;
            let mut config = ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(&versions)
                .map_err(failed)?
                .dangerous()
                .with_custom_certificate_verifier(verifier)
                .with_client_cert_resolver(key);
            config.resumption = Resumption::disabled();
            Some(Arc::new(config))
        }
    };
    let kind = suites::kind_of_key(&stores.keys);
    Ok(Configs { kind, server: Arc::new(server), client, verifier, identities })
}

fn server_config(
    settings: &TlsSettings,
    provider: &Arc<CryptoProvider>,
    versions: &[&'static SupportedProtocolVersion],
    key: Arc<OwnKey>,
    verifier: Option<Arc<Verifier>>,
) -> Result<ServerConfig, EngineError> {
    let prefix = settings.prefix;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .map_err(|source| EngineError::Rustls { prefix, source })?;
    let builder = match settings.client_auth {
        ClientAuth::None => builder.with_no_client_auth(),
        ClientAuth::Want | ClientAuth::Need => {
            let verifier = verifier.ok_or(EngineError::NoTrustStore { prefix, or: "" })?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_cert_resolver(key);
    config.ignore_client_order = true; // The server's order counts, as in Java.
    // A resumed session would outlive a change of the stores.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn versions(versions: &[TlsVersion]) -> Vec<&'static SupportedProtocolVersion> {
    let of = |version: &TlsVersion| match version {
        TlsVersion::V12 => &rustls::version::TLS12,
        TlsVersion::V13 => &rustls::version::TLS13,
    };
    versions.iter().map(of).collect()
}

/// The one key that this server has. rustls' own resolvers refuse certificates of version 1.
#[derive(Debug)]
pub(super) struct OwnKey(Arc<CertifiedKey>);

impl OwnKey {
    pub fn of(keys: &Keys) -> Arc<Self> {
        Arc::new(Self(Arc::new(CertifiedKey::new(keys.chain.clone(), keys.signer.clone()))))
    }
}

impl ResolvesServerCert for OwnKey {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

impl ResolvesClientCert for OwnKey {
    fn resolve(&self, _roots: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::tls::test_certificates::{Authority, settings};

    fn refused(settings: TlsSettings, role: EngineRole) -> Option<String> {
        Engine::new(settings, role).err().map(|error| crate::model::chain(&error))
    }

    // rows: C-193 C-194 C-201
    #[test]
    fn stores_that_cannot_be_used_or_are_missing_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path(), "ca");
        let whole = settings(&authority.issue("server"), &authority.trust);
        for role in [EngineRole::Server, EngineRole::Peer] {
            assert_eq!(refused(whole.clone(), role), None);
            let without_key = TlsSettings { key_store: None, ..whole.clone() };
            assert!(
                refused(without_key, role).unwrap().starts_with("ssl.keyStore.location is not set")
            );
        }
        let without_trust =
            |client_auth| TlsSettings { client_auth, trust_store: None, ..whole.clone() };
        for auth in [ClientAuth::Need, ClientAuth::Want] {
            let why = refused(without_trust(auth), EngineRole::Server).unwrap();
            assert!(why.starts_with("ssl.trustStore.location is not set"), "{why}");
        }
        assert_eq!(refused(without_trust(ClientAuth::None), EngineRole::Server), None);
        assert!(refused(without_trust(ClientAuth::None), EngineRole::Peer).is_some());
        let mut wrong = whole;
        wrong.key_store.as_mut().unwrap().path = folder.path().join("nothing.pem");
        let why = refused(wrong, EngineRole::Server).unwrap();
        assert!(why.contains("nothing.pem") && why.matches("can't read it").count() == 1, "{why}");
    }
}
