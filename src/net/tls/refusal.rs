//! Why a handshake was refused, and which setting to look at.

use super::alerts::of_alert;
use super::handshake::HandshakeError;
use super::verifier::{Refused, refused};
use rustls::{CertificateError, Error, InvalidMessage, PeerIncompatible};
use std::net::SocketAddr;

const NO_SUITE: &str = "no cipher suite in common";

/// A refused handshake, for the log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    pub reason: String,
    /// The setting to look at, without its prefix.
    pub setting: Option<&'static str>,
    /// Subject of the peer's certificate, if the certificate was refused.
    pub subject: Option<String>,
}

impl Refusal {
    pub fn of(error: &HandshakeError) -> Self {
        match error {
            HandshakeError::Tls(error) => Self::of_tls(error),
            HandshakeError::Closed | HandshakeError::TooLong | HandshakeError::GaveWay => {
                Self::new(error.to_string(), None)
            }
            // Errors that rustls' reader finds are IO errors, too.
            HandshakeError::Io(error) => {
                let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
                inner.map_or_else(|| Self::new(error.to_string(), None), Self::of_tls)
            }
        }
    }

    pub const fn new(reason: String, setting: Option<&'static str>) -> Self {
        Self { reason, setting, subject: None }
    }

    /// Names the kind of this server's key where that decides: each cipher suite of TLS 1.2 is for one kind.
    pub(super) fn with_key(mut self, kind: &str) -> Self {
        if self.reason == NO_SUITE {
            self.reason = format!("no cipher suite in common for this server's {kind} key");
        }
        self
    }

    /// The verifier's reason for refusing a peer's certificate.
    pub fn of_certificate(refused: &Refused) -> Self {
        let subject = Some(refused.subject.clone()).filter(|subject| !subject.is_empty());
        Self { subject, ..Self::new(refused.to_string(), refused.reason.setting()) }
    }

    fn of_tls(error: &Error) -> Self {
        if let Some(refused) = refused(error) {
            return Self::of_certificate(refused);
        }
        let (reason, setting) = match error {
            Error::PeerIncompatible(why) => incompatible(why),
            Error::NoCertificatesPresented => {
                // A peer may have a certificate that it does not send, because this server would not accept it.
                let reason = "the peer showed no certificate: it has none, or none that this server takes (with an RSA, ECDSA or Ed25519 key, \
                              and from a CA of the trust store)";
                (reason.to_owned(), Some("clientAuth"))
            }
            Error::InvalidCertificate(CertificateError::BadSignature) => {
                ("the peer's signature does not fit the key of its certificate".to_owned(), None)
            }
            // The peer's certificate alone is to blame.
            Error::InvalidCertificate(
                why @ (CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. }),
            ) => (format!("the peer's certificate is refused: {why}"), None),
            Error::InvalidCertificate(why) => {
                (format!("the peer's certificate is refused: {why}"), Some("trustStore.location"))
            }
            Error::AlertReceived(alert) => of_alert(*alert, "this server"),
            Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                ("the peer does not speak TLS".to_owned(), None)
            }
            // rustls has no kind of its own for this.
            Error::General(why) if why == "incompatible signing key" => {
                incompatible(&PeerIncompatible::NoSignatureSchemesInCommon)
            }
            error => (error.to_string(), None),
        };
        Self::new(reason, setting)
    }

    /// Logs a refused handshake, in one line.
    ///
    /// * `port`: of this server. `prefix`: what the keys of the settings begin with.
    pub fn log(&self, peer: SocketAddr, port: u16, prefix: &str) {
        let setting = self.setting.map(|name| format!("{prefix}{name}"));
        // A server without TLS closes the connection like this.
        let is_plain = prefix == "ssl.quorum." && self.reason == HandshakeError::Closed.to_string();
        let hint = if is_plain { ", as a server without sslQuorum=true does" } else { "" };
        tracing::warn!(
            target: crate::model::STRANGERS, %peer, port, subject = self.subject.as_ref().map(display), setting = setting.map(display),
            "TLS handshake refused: {}; if the peer is yours, compare its certificate and settings with this server's",
            format_args!("{}{hint}", self.reason)
        );
    }
}

fn incompatible(why: &PeerIncompatible) -> (String, Option<&'static str>) {
    match why {
        PeerIncompatible::NoCipherSuitesInCommon => (NO_SUITE.to_owned(), Some("ciphersuites")),
        PeerIncompatible::NoKxGroupsInCommon | PeerIncompatible::NamedGroupsExtensionRequired => {
            let reason = "no key exchange in common: the peer must offer x25519, secp256r1 or secp384r1 (jdk.tls.namedGroups)";
            (reason.to_owned(), None)
        }
        PeerIncompatible::NoSignatureSchemesInCommon
        | PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon => {
            let reason = "the peer can't check a signature of this server's key, or this server one of the peer's";
            (reason.to_owned(), Some("keyStore.location"))
        }
        PeerIncompatible::Tls12NotOffered
        | PeerIncompatible::Tls12NotOfferedOrEnabled
        | PeerIncompatible::SupportedVersionsExtensionRequired
        | PeerIncompatible::ServerDoesNotSupportTls12Or13
        | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig => (
            "no version of TLS in common: add TLSv1.2 on the side that lacks it".to_owned(),
            Some("enabledProtocols"),
        ),
        PeerIncompatible::SignatureAlgorithmsExtensionRequired => {
            let reason = "no version of TLS in common: the peer speaks TLS 1.1 or older, or names no signature algorithms";
            (reason.to_owned(), Some("enabledProtocols"))
        }
        why => (format!("the peer's TLS is not compatible: {}", mismatch(why)), None),
    }
}

/// What is not compatible, in cases that a peer that follows the standard never causes.
const fn mismatch(why: &PeerIncompatible) -> &'static str {
    match why {
        PeerIncompatible::EcPointsExtensionRequired => "it lacks the extension ec_point_formats",
        PeerIncompatible::ExtendedMasterSecretExtensionRequired => {
            "it lacks the extension extended_master_secret"
        }
        PeerIncompatible::KeyShareExtensionRequired => "it lacks the extension key_share",
        PeerIncompatible::NoEcPointFormatsInCommon
        | PeerIncompatible::UncompressedEcPointsRequired => {
            "it takes no uncompressed points of elliptic curves"
        }
        PeerIncompatible::NullCompressionRequired => "it asks for compression",
        PeerIncompatible::ServerSentHelloRetryRequestWithUnknownExtension => {
            "its HelloRetryRequest has an unknown extension"
        }
        PeerIncompatible::IncorrectCertificateTypeExtension
        | PeerIncompatible::UnsolicitedCertificateTypeExtension => {
            "it asks for certificates of another kind than X.509"
        }
        _ => "it asks for a feature that this server lacks, or lacks one that this server asks for",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::AlertDescription;

    #[test]
    fn alerts_have_the_names_of_the_standard() {
        let reason = |alert| Refusal::of(&HandshakeError::Tls(Error::AlertReceived(alert))).reason;
        let text = "the peer refused this server's certificate (alert certificate_unknown)";
        assert_eq!(reason(AlertDescription::CertificateUnknown), text);
        for (alert, name) in [
            (AlertDescription::UnknownCA, "unknown_ca"),
            (AlertDescription::UnknownPSKIdentity, "unknown_psk_identity"),
            (AlertDescription::UnrecognisedName, "unrecognized_name"),
            (AlertDescription::NoApplicationProtocol, "no_application_protocol"),
            (AlertDescription::Unknown(99), "99"),
        ] {
            assert!(reason(alert).ends_with(&format!("(alert {name})")), "{}", reason(alert));
        }
    }

    #[test]
    fn reason_without_a_common_suite_names_the_kind_of_the_key() {
        let of = |error: Error| Refusal::of(&HandshakeError::Tls(error)).with_key("EC").reason;
        let suites = of(PeerIncompatible::NoCipherSuitesInCommon.into());
        assert_eq!(suites, "no cipher suite in common for this server's EC key");
        assert!(!of(PeerIncompatible::NoKxGroupsInCommon.into()).contains("EC key"));
    }

    #[test]
    fn reasons_name_what_is_not_in_common_and_the_setting() {
        let refusal_of = |error: Error| {
            let refusal = Refusal::of(&HandshakeError::Tls(error));
            (refusal.reason, refusal.setting)
        };
        for (error, reason, setting) in [
            (
                PeerIncompatible::SignatureAlgorithmsExtensionRequired.into(),
                "no version of TLS in common: the peer speaks TLS 1.1 or older",
                Some("enabledProtocols"),
            ),
            (PeerIncompatible::NoKxGroupsInCommon.into(), "no key exchange in common", None),
            (
                PeerIncompatible::NoCipherSuitesInCommon.into(),
                "no cipher suite in common",
                Some("ciphersuites"),
            ),
            (
                Error::General("incompatible signing key".to_owned()),
                "the peer can't check a signature of this server's key",
                Some("keyStore.location"),
            ),
            (
                CertificateError::BadSignature.into(),
                "the peer's signature does not fit the key of its certificate",
                None,
            ),
            (
                Error::NoCertificatesPresented,
                "the peer showed no certificate: it has none, or none that this server takes",
                Some("clientAuth"),
            ),
        ] {
            let (text, its) = refusal_of(error);
            assert!(text.starts_with(reason), "{text}");
            assert_eq!(its, setting, "{text}");
        }
    }
}
