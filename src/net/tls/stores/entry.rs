//! What a store holds.

use super::error::Fault;
use rustls::sign::SigningKey;
use rustls_pki_types::CertificateDer;
use std::sync::Arc;
use x509_parser::prelude::{FromDer as _, X509Certificate};
use zeroize::Zeroizing;

/// The key that a server shows, and its certificates.
pub struct Keys {
    pub alias: String,
    /// The certificate of the key, then those of its issuers, as the store has them. Never empty.
    pub chain: Vec<CertificateDer<'static>>,
    /// Signs with the key. It fits the first certificate.
    pub signer: Arc<dyn SigningKey>,
    /// Further keys of the store, which are not used.
    pub others: Vec<String>,
}

/// An entry of a store.
pub(super) enum Entry {
    Key(KeyEntry),
    Trusted(TrustedEntry),
}

pub(super) struct KeyEntry {
    pub alias: String,
    pub chain: Vec<CertificateDer<'static>>,
    /// A fault counts only if this key is chosen: a store may hold keys that this server can't use.
    pub key: Result<KeyBytes, Fault>,
}

pub(super) struct TrustedEntry {
    pub alias: String,
    pub certificate: CertificateDer<'static>,
}

/// A private key in one of its forms.
pub(super) enum KeyBytes {
    Pkcs8(Zeroizing<Vec<u8>>),
    Pkcs1(Zeroizing<Vec<u8>>),
    Sec1(Zeroizing<Vec<u8>>),
}

impl Entry {
    pub fn alias(&self) -> &str {
        match self {
            Entry::Key(key) => &key.alias,
            Entry::Trusted(trusted) => &trusted.alias,
        }
    }
}

/// A certificate as the bytes that it has, without what may follow.
pub(super) fn certificate(der: &[u8]) -> Result<CertificateDer<'static>, Fault> {
    let (rest, _) = X509Certificate::from_der(der)
        .map_err(|_| Fault::Damaged("a certificate that is none of X.509"))?;
    Ok(CertificateDer::from(der[..der.len() - rest.len()].to_vec()))
}
