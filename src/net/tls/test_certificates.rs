//! Certificates and stores for tests.

use crate::config::tls::{ClientAuth, StorePassword, StoreSettings, TlsSettings, TlsVersion};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use std::path::{Path, PathBuf};

/// The suites that rustls shares with ZooKeeper's defaults.
pub const SUITES: [&str; 7] = [
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
];

/// A certificate authority whose certificates are in a folder.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: PathBuf,
    /// The trust store with its certificate.
    pub trust: PathBuf,
}

impl Authority {
    pub fn new(folder: &Path, name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let trust = folder.join(format!("{name}.pem"));
        std::fs::write(&trust, certificate.pem()).unwrap();
        Self { issuer: Issuer::new(params, key), folder: folder.to_owned(), trust }
    }

    /// Writes a key store with a key and a certificate for `localhost`, and returns its path.
    pub fn issue(&self, name: &str) -> PathBuf {
        self.issue_for(name, &["localhost", "127.0.0.1"])
    }

    /// The same for other hosts.
    pub fn issue_for(&self, name: &str, hosts: &[&str]) -> PathBuf {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let path = self.folder.join(format!("{name}.pem"));
        std::fs::write(&path, certificate.pem() + &key.serialize_pem()).unwrap();
        path
    }
}

/// Settings as ZooKeeper has them by default, with both versions of TLS.
pub fn settings(key_store: &Path, trust_store: &Path) -> TlsSettings {
    let store = |path: &Path| StoreSettings {
        path: path.to_owned(),
        password: StorePassword::None,
        kind: None,
    };
    TlsSettings {
        prefix: "ssl.",
        versions: vec![TlsVersion::V12, TlsVersion::V13],
        cipher_suites: SUITES.map(str::to_owned).to_vec(),
        key_store: Some(store(key_store)),
        trust_store: Some(store(trust_store)),
        client_auth: ClientAuth::Need,
        verifies_host: false,
        verifies_client_host: false,
        allows_reverse_dns: false,
        crl: false,
        ocsp: false,
        detection_timeout_ms: 5000,
    }
}
