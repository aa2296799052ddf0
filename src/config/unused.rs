//! Settings of TLS that are known and sound, and have no effect because TLS is off.

use super::keys::{self, Class};
use super::quorum_tls::Switches;
use super::secrets::shown;
use super::system_properties::SystemProperties;
use super::unsupported::Idle;

/// Why settings of client ports have no effect.
pub(super) const NO_CLIENT_TLS: &str =
    "no port for clients has TLS: set secureClientPort, or client.portUnification=true";

/// Why settings of connections between servers have no effect.
pub(super) const NO_QUORUM_TLS: &str =
    "connections between servers are plain: set sslQuorum=true, or portUnification=true";

/// The form for client ports of a setting that only the other form has.
const QUORUM_FORM_ALONE: &str =
    "only ssl.quorum.handshakeDetectionTimeoutMillis has one: remove it";

/// Settings of client ports whose names do not begin with `ssl.`.
const OF_CLIENT_PORTS: [&str; 3] = [
    "netty.server.outstandingHandshake.limit",
    "netty.server.earlyDropSecureConnectionHandshakes",
    "X509AuthenticationProvider.superUser",
];

/// Connections between servers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ServerConnections {
    /// There are no other servers.
    Alone,
    Plain,
    Tls,
}

impl ServerConnections {
    /// * `switches`: those of a member.
    pub fn of(switches: Option<&Switches>) -> Self {
        match switches {
            None => Self::Alone,
            Some(switches) if switches.is_on() => Self::Tls,
            Some(_) => Self::Plain,
        }
    }
}

/// Where there is TLS.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tls {
    pub clients: bool,
    pub servers: ServerConnections,
    /// AdminServer uses the stores of connections between servers.
    pub admin: bool,
}

/// Why a setting of TLS has no effect, by its name in zoo.cfg; `None` if it has one.
pub(super) fn reason(name: &str, tls: Tls) -> Option<&'static str> {
    if let Some(quorum) = name.strip_prefix("ssl.quorum.") {
        if tls.admin && (quorum.starts_with("keyStore.") || quorum.starts_with("trustStore.")) {
            return None;
        }
        return match tls.servers {
            ServerConnections::Alone => Some(keys::MEMBERS_ONLY),
            ServerConnections::Plain => Some(NO_QUORUM_TLS),
            ServerConnections::Tls => None,
        };
    }
    if !name.starts_with("ssl.") && !OF_CLIENT_PORTS.contains(&name) {
        return None;
    }
    match name {
        _ if !tls.clients => Some(NO_CLIENT_TLS),
        "ssl.handshakeDetectionTimeoutMillis" => Some(QUORUM_FORM_ALONE),
        _ => None,
    }
}

/// Reports the settings that were not taken.
pub(super) fn report(system: &SystemProperties, idle: &mut Idle, tls: Tls) {
    for (name, property) in system.all() {
        let Some(key) = keys::in_flag(&name).filter(|key| key.class == Class::Works) else {
            continue;
        };
        let bare = name.strip_prefix("zookeeper.").unwrap_or(&name);
        let Some(why) = reason(bare, tls) else { continue };
        if !key.default.eq_ignore_ascii_case(&property.value) {
            let is_line = matches!(property.place, super::SettingPlace::Line { .. });
            let name = if is_line { bare.to_owned() } else { format!("-D{name}") };
            idle.add(why, property.place, shown(&name, &property.value));
        }
    }
}
