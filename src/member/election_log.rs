//! The WARNs about election connections: one a minute for each thing, as the other end can cause them again and again.

use super::dial::HostPort;
use super::duplicate_id::host;
use super::election_actions::REFUSED_BY_TLS;
use super::election_settings::Settings;
use crate::model::{LogMinute, STRANGERS, ServerId};
use core::net::{IpAddr, SocketAddr};
use std::fmt::Display;

/// A server that was connected for this long, and whose connection stays, dials again only if its network has failed.
const SETTLED_MS: u64 = 2000;
/// After this many hellos in a minute from a connected server, another server must have the same id.
const REPEATS_MAX: u32 = 3;
const REPEATS_WITHIN_MS: u64 = 60_000;

/// The WARNs that were written lately.
#[derive(Debug, Default)]
pub struct ElectionLog {
    /// About a server that refuses this one.
    refusals: LogMinute<ServerId>,
    /// About a host whose connections are closed, with the reason.
    closed: LogMinute<(String, String)>,
    /// About two servers with one id.
    doubles: LogMinute<ServerId>,
    /// About another server with this server's id.
    own_doubles: LogMinute<IpAddr>,
}

impl ElectionLog {
    /// A server was reached and ends the connections that this server makes. Only that server's log has the reason. Returns
    /// whether the line is written.
    pub fn refusal(&mut self, to: ServerId, at: &str, error: &dyn Display, now_ms: u64) -> bool {
        let is_due = self.refusals.admit(to, now_ms);
        if is_due {
            tracing::warn!(
                target: STRANGERS, server_id = to.0, peer = %at, %error,
                "a server ends the election connections that this server makes: look into that server's log"
            );
        }
        is_due
    }

    /// A connection is closed before its hello has come, or for what the other end has sent.
    pub fn closed(&mut self, at: &str, error: &dyn Display, now_ms: u64) {
        let error = error.to_string();
        // TLS has written a line of its own.
        let is_due = !error.starts_with(REFUSED_BY_TLS)
            && self.closed.admit((host(at).to_owned(), error.clone()), now_ms);
        if is_due {
            tracing::warn!(target: STRANGERS, peer = %at, %error, "election connection closed; if the peer is a member, compare its server.N lines, TLS and SASL settings with this server's");
        } else {
            tracing::debug!(peer = %at, %error, "election connection closed");
        }
    }

    /// Two servers say that they are `server`: one at `connected`, another one at `dials`.
    pub fn double(&mut self, server: ServerId, connected: &str, dials: &str, now_ms: u64) {
        if self.doubles.admit(server, now_ms) {
            tracing::warn!(
                target: STRANGERS, server_id = server.0, peer = %dials, connected_peer = %connected,
                "two servers seem to have the same myid: server_id is connected already, and dials again; correct the file myid of one of them"
            );
        }
    }

    /// The server `from` has seen another server, at `other`, that says that it is this one.
    pub fn own_double(
        &mut self,
        settings: &Settings,
        from: ServerId,
        other: SocketAddr,
        now_ms: u64,
    ) {
        if self.own_doubles.admit(other.ip(), now_ms) {
            tracing::warn!(
                target: STRANGERS, server_id = settings.me.0, peer = %other, own_addresses = %places(&settings.addresses),
                reported_by = from.0,
                "another server seems to have this server's myid: correct the file myid of one of them"
            );
        }
    }
}

/// Hellos of a server that has a connection already.
#[derive(Debug, Default)]
pub struct Repeats {
    first_ms: u64,
    count: u32,
}

impl Repeats {
    /// Notes a hello of a server that was connected since `up_ms`. Returns whether it is another server's with the same id:
    /// it comes from another host, or again and again.
    ///
    /// * `is_dialed`: this server makes the connection to that server. The other server, if it dials, also dials again when
    ///   a third server with this server's id has dialed it.
    pub fn note(
        &mut self,
        connected: &str,
        dials: &str,
        is_dialed: bool,
        up_ms: u64,
        now_ms: u64,
    ) -> bool {
        if now_ms < up_ms + SETTLED_MS {
            return false;
        }
        if self.first_ms + REPEATS_WITHIN_MS <= now_ms {
            *self = Self { first_ms: now_ms, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        host(connected) != host(dials) || is_dialed && REPEATS_MAX <= self.count
    }
}

/// Addresses for the log.
pub fn places(addresses: &[HostPort]) -> String {
    let mut shown: Vec<String> = Vec::new();
    for (host, port) in addresses {
        let address = format!("{host}:{port}");
        // Two configurations may give a member the same address.
        if !shown.contains(&address) {
            shown.push(address);
        }
    }
    shown.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_of_two_configurations_is_shown_once() {
        let at = |port| ("zk1".to_owned(), port);
        assert_eq!(places(&[at(3888), at(3889), at(3888)]), "zk1:3888 or zk1:3889");
    }

    #[test]
    fn two_servers_with_one_id_are_recognised_by_host_or_by_repeated_hellos() {
        let (there, same, other) = ("10.0.0.1:3888", "10.0.0.1:45000", "10.0.0.9:45000");
        let mut repeats = Repeats::default();
        assert!(!repeats.note(there, other, false, 100_000, 101_999), "both dial at the same time");
        assert!(repeats.note(there, other, false, 100_000, 102_000));
        for is_dialed in [true, false] {
            let mut repeats = Repeats::default();
            let mut note = |now_ms| repeats.note(there, same, is_dialed, 0, now_ms);
            assert!(!note(100_000), "its network may have failed");
            assert!(!note(130_000));
            assert_eq!(note(159_999), is_dialed);
            assert!(!note(160_000), "once a minute is no repetition");
        }
    }
}
