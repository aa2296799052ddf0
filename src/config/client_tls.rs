//! TLS on client ports: which ports have it, and what else is set for them.

use super::checker::Checker;
use super::client_address::SecureAddress;
use super::property_reader::{INT, Reader};
use super::system_properties::{SystemProperties, as_written};
use super::tls::ClientTls;
use super::tls_settings::{self, SslPrefix};
use crate::auth::x509::is_printed_name;

const UNIFIED: &str = "zookeeper.client.portUnification";
const SUPER_USER: &str = "zookeeper.X509AuthenticationProvider.superUser";

/// Whether any port for clients accepts TLS.
pub(super) fn is_on(system: &SystemProperties, secure: Option<&SecureAddress>) -> bool {
    secure.is_some() || system.is_true(UNIFIED, false)
}

/// `None` without a port with TLS, and if a setting was wrong.
///
/// Source: `NettyServerCnxnFactory`, `X509AuthenticationProvider`, ZooKeeper 3.9.5.
pub(super) fn take(
    checker: &mut Checker,
    system: &mut SystemProperties,
    secure: Option<SecureAddress>,
) -> Option<ClientTls> {
    let unified_at = system.get(UNIFIED).map(|property| property.place.clone());
    let super_user_at = system.get(SUPER_USER).map(|property| property.place.clone());
    let mut from = Reader::new(system, &mut checker.warnings);
    let unified = from.flag(UNIFIED, false);
    let place = match (&secure, unified_at.filter(|_| unified)) {
        (Some(secure), _) => secure.place.clone(),
        (None, Some(place)) => place,
        (None, None) => return None,
    };
    let limit = from.number("zookeeper.netty.server.outstandingHandshake.limit", INT, -1);
    let drops_early =
        from.flag("zookeeper.netty.server.earlyDropSecureConnectionHandshakes", false);
    let x509_super_user = from.text(SUPER_USER);
    if let (Some(subject), Some(place)) = (&x509_super_user, super_user_at)
        && !is_printed_name(subject)
    {
        let key = as_written(SUPER_USER, &place);
        let text = format!(
            "{key}={subject} is the subject of no certificate, so no client is the superuser; write the subject as whoami of zkCli.sh \
             prints it, as in CN=name,O=firm"
        );
        checker.warn(&place, text);
    }
    let settings = tls_settings::take(checker, system, SslPrefix::Client, &place)?;
    let (secure_host, secure_port) =
        secure.map_or((None, None), |secure| (secure.host, Some(secure.port)));
    Some(ClientTls {
        settings,
        secure_port,
        secure_host,
        unified,
        handshakes_max: u32::try_from(limit).ok().filter(|&limit| limit > 0),
        drops_early,
        x509_super_user,
    })
}
