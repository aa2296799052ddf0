//! TLS of client ports, of the ports between servers and of HTTP ports, as checked settings.
//!
//! Key stores and trust stores are named here; `net::tls` reads them.

use crate::model::Secret;
use std::path::PathBuf;
use std::sync::Arc;

/// A version of TLS that is offered and accepted. Older ones are refused in the settings.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum TlsVersion {
    V12,
    V13,
}

/// `ssl.clientAuth`: whether the dialing end has to show a certificate.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ClientAuth {
    None,
    Want,
    #[default]
    Need,
}

/// A key store or a trust store.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreSettings {
    pub path: PathBuf,
    pub password: StorePassword,
    /// `ssl.keyStore.type`, or what the suffix says. The kind of a store is found by its content; a kind that differs gives a warning.
    pub kind: Option<StoreKind>,
}

/// Where the password of a store comes from; `passwordPath` wins over `password`.
#[derive(Clone, Debug, PartialEq)]
pub enum StorePassword {
    None,
    Given(Arc<Secret>),
    /// A file, read again whenever the store is; one newline at its end is removed.
    File(PathBuf),
}

/// The kinds of stores that Java knows. BCFKS is known and refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StoreKind {
    Jks,
    Pem,
    Pkcs12,
    Bcfks,
}

/// TLS of the client ports (`ssl.*`), between servers (`ssl.quorum.*`), or of metrics (`metricsProvider.ssl.*`).
#[derive(Clone, Debug, PartialEq)]
pub struct TlsSettings {
    /// `ssl.`, `ssl.quorum.` or `metricsProvider.ssl.`: what keys begin with, for messages.
    pub prefix: &'static str,
    /// Never empty, in ascending order.
    pub versions: Vec<TlsVersion>,
    /// JSSE names, in the order in which the server prefers them; all of them are suites that this server has. Never empty.
    pub cipher_suites: Vec<String>,
    pub key_store: Option<StoreSettings>,
    pub trust_store: Option<StoreSettings>,
    pub client_auth: ClientAuth,
    /// `hostnameVerification`: the dialing end compares the host with the certificate.
    pub verifies_host: bool,
    /// `clientHostnameVerification`, already false where `hostnameVerification` is: the accepting side compares.
    pub verifies_client_host: bool,
    pub allows_reverse_dns: bool,
    /// `crl` and `ocsp`: revocation is checked.
    pub crl: bool,
    pub ocsp: bool,
    /// `handshakeDetectionTimeoutMillis`: how long an accepted connection between servers may take for its first bytes.
    pub detection_timeout_ms: u32,
}

/// Which of the client ports speak TLS.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientTls {
    pub settings: TlsSettings,
    /// `secureClientPort`, and `secureClientPortAddress` without brackets; `None` is every address.
    pub secure_port: Option<u16>,
    pub secure_host: Option<String>,
    /// `client.portUnification`: `clientPort` accepts TLS as well as plain connections.
    pub unified: bool,
    /// `netty.server.outstandingHandshake.limit`; `None`: no limit.
    pub handshakes_max: Option<u32>,
    /// `netty.server.earlyDropSecureConnectionHandshakes`.
    pub drops_early: bool,
    /// `X509AuthenticationProvider.superUser`.
    pub x509_super_user: Option<String>,
}

/// TLS between servers.
#[derive(Clone, Debug, PartialEq)]
pub struct QuorumTls {
    pub settings: TlsSettings,
    /// `sslQuorum`: this server dials with TLS, and accepts nothing else unless `unified`.
    pub dials: bool,
    /// `portUnification`: plain connections are accepted as well as TLS.
    pub unified: bool,
    /// `sslQuorumReloadCertFiles`.
    pub reloads: bool,
    /// `fips-mode`: host names are not compared between servers, and a learner may not use DIGEST-MD5.
    pub fips_mode: bool,
}

/// TLS of AdminServer.
#[derive(Clone, Debug, PartialEq)]
pub struct AdminTls {
    /// The settings, with the stores of `ssl.quorum.*`.
    pub settings: TlsSettings,
    /// `admin.forceHttps`: plain connections are refused; else they are served as well as TLS (`admin.portUnification`).
    pub is_forced: bool,
}
