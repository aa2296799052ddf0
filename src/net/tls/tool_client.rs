//! TLS of this program's own client, which tools use: certificates are judged as between servers, and the server's host is compared.

use super::engine::OwnKey;
use super::stores::{self, Keys, StoreError};
use super::verifier::Verifier;
use crate::config::tls::{StorePassword, StoreSettings};
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, Error};
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
    client_of(&store, keys.as_ref(), true)
}

/// The same with stores as Java's clients have them.
///
/// * `compares_host`: the server's certificate has to name the host that is dialed.
///
/// # Errors
/// If a store can't be used.
pub fn tool_client_of_stores(
    trusted: &StoreSettings,
    own: Option<&StoreSettings>,
    compares_host: bool,
) -> Result<Arc<ClientConfig>, ToolClientError> {
    let keys = own.map(stores::load_keys).transpose()?;
    client_of(trusted, keys.as_ref(), compares_host)
}

fn client_of(
    trusted: &StoreSettings,
    keys: Option<&Keys>,
    compares_host: bool,
) -> Result<Arc<ClientConfig>, ToolClientError> {
    let anchors = stores::load_trust(trusted)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Verifier::new(&provider, &anchors, true)
        .map(|verifier| if compares_host { verifier.comparing_hosts() } else { verifier });
    let verifier = verifier.map_err(|reason| {
        let file = trusted.path.display().to_string();
        ToolClientError::Trust { file, reason }
    })?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    Ok(Arc::new(match keys {
        None => config.with_no_client_auth(),
        Some(keys) => config.with_client_cert_resolver(OwnKey::of(keys)),
    }))
}
