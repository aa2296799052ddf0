//! TLS of a tool's connections, from its options.

use crate::net::tls::{ToolClientError, text_of, tool_client};
use rustls::{AlertDescription, ClientConfig, Error};
use std::io;
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

/// The text of a connection's error, and the options that it may lack.
///
/// * `has_tls`: the connection speaks TLS.
pub fn explained(error: &io::Error, has_tls: bool) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let act = match (inner, error.kind()) {
        (Some(Error::AlertReceived(AlertDescription::CertificateRequired)), _) => {
            "; give --tls-cert and --tls-key"
        }
        (Some(Error::AlertReceived(AlertDescription::HandshakeFailure)), _) => {
            "; is it a port without TLS? leave out --tls-ca"
        }
        (None, io::ErrorKind::ConnectionReset) if !has_tls => "; is it a TLS port? give --tls-ca",
        _ => "",
    };
    format!("{}{act}", text_of(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_connections_name_the_options_that_are_missing() {
        let alert = Error::AlertReceived(AlertDescription::CertificateRequired);
        let text = explained(&io::Error::new(io::ErrorKind::InvalidData, alert), true);
        assert!(text.ends_with("; give --tls-cert and --tls-key"), "{text}");
        let alert = Error::AlertReceived(AlertDescription::HandshakeFailure);
        let text = explained(&io::Error::new(io::ErrorKind::InvalidData, alert), true);
        assert!(text.ends_with("; is it a port without TLS? leave out --tls-ca"), "{text}");
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert_eq!(explained(&reset, true), "connection reset");
        assert_eq!(explained(&reset, false), "connection reset; is it a TLS port? give --tls-ca");
    }
}
