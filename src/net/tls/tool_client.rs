//! TLS of this program's own client, which tools use: certificates are judged as between servers, and the server's host is compared.

use super::engine::OwnKey;
use super::stores::{self, StoreError};
use super::verifier::Verifier;
use crate::auth::x509::{Certificate, HostNames};
use crate::config::tls::{StorePassword, StoreSettings};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::path::Path;
use std::sync::Arc;

/// Why there is no TLS for a tool.
#[derive(Debug, thiserror::Error)]
pub enum ToolClientError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{file}: {reason}")]
    Trust { file: String, reason: String },
    #[error("TLS of the client")]
    Rustls(#[from] Error),
}

/// Reads certificates and the key of a client.
///
/// * `trusted`: certificates that servers' certificates have to lead to.
/// * `own`: files with the client's certificates and its key, if it has any.
///
/// # Errors
/// If a file can't be used.
pub fn tool_client(
    trusted: &Path,
    own: Option<(&Path, &Path)>,
) -> Result<Arc<ClientConfig>, ToolClientError> {
    let keys =
        own.map(|(certificates, key)| stores::load_pem_keys(certificates, key)).transpose()?;
    let store =
        StoreSettings { path: trusted.to_owned(), password: StorePassword::None, kind: None };
    let anchors = stores::load_trust(&store)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Verifier::new(&provider, &anchors, true)
        .map_err(|reason| ToolClientError::Trust { file: trusted.display().to_string(), reason })?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(OfNamedHost(verifier)));
    Ok(Arc::new(match keys {
        None => config.with_no_client_auth(),
        Some(keys) => config.with_client_cert_resolver(OwnKey::of(&keys)),
    }))
}

/// Judges a server's certificate, and compares the host that was dialed with it.
#[derive(Debug)]
struct OfNamedHost(Verifier);

impl ServerCertVerifier for OfNamedHost {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        above: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.0.verify_server_cert(leaf, above, name, ocsp, now)?;
        let host = name.to_str();
        let names = Certificate::parse(leaf).map(|leaf| HostNames::of(&leaf)).unwrap_or_default();
        if names.fit(&host) {
            return Ok(verified);
        }
        Err(Error::General(format!("the server's certificate is for {names}, not for {host}")))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        ServerCertVerifier::verify_tls12_signature(&self.0, message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        ServerCertVerifier::verify_tls13_signature(&self.0, message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ServerCertVerifier::supported_verify_schemes(&self.0)
    }
}
