//! TLS of a tool's connections, from its options.

use crate::net::tls::{ToolClientError, tool_client};
use rustls::ClientConfig;
use std::path::PathBuf;
use std::sync::Arc;

/// Options of TLS.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TlsOptions {
    /// Connect with TLS; servers' certificates have to lead to one in this PEM file, and name the host that is given.
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Certificates of this client, its own first (PEM).
    #[arg(long, value_name = "FILE", requires_all = ["tls_ca", "tls_key"])]
    pub tls_cert: Option<PathBuf>,
    /// Private key of this client (PEM, not encrypted).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
}

impl TlsOptions {
    /// `None`: the connections are plain.
    ///
    /// # Errors
    /// If a file can't be read or used.
    pub fn client(&self) -> Result<Option<Arc<ClientConfig>>, ToolClientError> {
        let Some(trusted) = &self.tls_ca else { return Ok(None) };
        let own = self.tls_cert.as_deref().zip(self.tls_key.as_deref());
        tool_client(trusted, own).map(Some)
    }
}
