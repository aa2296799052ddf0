//! What a peer's alerts say, in words for the log: the library's own texts are names of its types.

use super::verifier::refused;
use rustls::{AlertDescription, Error};
use std::io;

/// The text of the error of a client's connection: the verifier's reason if it has refused the server, and what the server's alert says.
pub fn text_of(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match inner {
        Some(Error::AlertReceived(alert)) => of_alert(*alert, "this client").0,
        inner => inner.and_then(refused).map_or_else(|| error.to_string(), ToString::to_string),
    }
}

/// The text of an error that comes after the handshake. With TLS 1.3 a server that dials another one hears only then that its certificate is
/// refused.
pub(super) fn after_handshake(error: &Error) -> String {
    match error {
        Error::AlertReceived(alert) => match of_alert(*alert, "this server") {
            (reason, Some("keyStore.location")) => format!(
                "{reason}; see why in the peer's log, and compare this server's key store with the peer's trust store"
            ),
            _ => format!("the peer ended the TLS connection (alert {})", alert_name(*alert)),
        },
        error => error.to_string(),
    }
}

/// What a peer's alert says, and the setting to look at.
///
/// * `own`: this end.
pub(super) fn of_alert(alert: AlertDescription, own: &str) -> (String, Option<&'static str>) {
    let name = alert_name(alert);
    match alert {
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateRevoked
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRequired => {
            let reason = format!("the peer refused {own}'s certificate (alert {name})");
            (reason, Some("keyStore.location"))
        }
        AlertDescription::ProtocolVersion => (
            format!("the peer refused the version of TLS (alert {name})"),
            Some("enabledProtocols"),
        ),
        AlertDescription::HandshakeFailure => {
            let reason = format!(
                "the peer refused the handshake (alert {name}), for what its own log says: a host that {own}'s certificate does not \
                 name, or no cipher suite in common"
            );
            (reason, None)
        }
        _ => (format!("the peer ended the handshake (alert {name})"), None),
    }
}

/// The name that the standard gives an alert; the number of an alert that the library does not know.
fn alert_name(alert: AlertDescription) -> String {
    let Some(name) = alert.as_str() else { return u8::from(alert).to_string() };
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let is_small = |at: usize| letters.get(at).is_some_and(char::is_ascii_lowercase);
        // Each word begins with a capital letter, and some words have no others: UnknownPSKIdentity.
        if at > 0 && !is_small(at) && (is_small(at - 1) || is_small(at + 1)) {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake.replace("unrecognised", "unrecognized")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_after_the_handshake_say_whose_certificate_is_refused() {
        let of = |alert| after_handshake(&Error::AlertReceived(alert));
        let text = of(AlertDescription::CertificateUnknown);
        let begin = "the peer refused this server's certificate (alert certificate_unknown); see why in the peer's log";
        assert!(text.starts_with(begin), "{text}");
        let text = of(AlertDescription::InternalError);
        assert_eq!(text, "the peer ended the TLS connection (alert internal_error)");
        let of_client = |error: Error| text_of(&io::Error::new(io::ErrorKind::InvalidData, error));
        let text = of_client(Error::AlertReceived(AlertDescription::UnknownCA));
        assert_eq!(text, "the peer refused this client's certificate (alert unknown_ca)");
    }
}
