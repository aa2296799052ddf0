//! Types that every room shares: ids, zxids, paths, codes. No behaviour beyond their own rules.

mod access_list;
mod acl;
mod algorithm;
mod audit;
mod code;
mod error_chain;
#[cfg(any(test, feature = "sim"))]
pub mod golden;
mod ip_net;
mod log_minute;
mod net_index;
mod one_line;
mod owner;
pub mod path;
pub mod properties;
mod rng;
mod secret;
pub mod sync;
mod view;
mod zxid;

pub use access_list::AccessList;
pub use acl::{Acl, Identity, OPEN_ACL, perms};
pub use algorithm::DigestAlgorithm;
pub use audit::{AuditEvent, AuditResult, AuditUser, AuditedOperation};
pub use code::{Code, EventKind, op, xid};
pub use error_chain::chain;
pub use ip_net::{IpNet, address as ip_address};
pub use log_minute::LogMinute;
pub use one_line::put_in_one_line;
pub use owner::{CONTAINER, Owner, TTL_MAX_MS};
pub use rng::Rng;
pub use secret::Secret;
pub use view::{
    ChangeError, Member, PeerAddress, Role, Rule, View, ViewError, plain_host, without_brackets,
};
pub use zxid::{Epoch, Epochs, Zxid};
// Text as Java decodes it, for rooms without a record to decode.
pub use jute::read_utf8;

use std::collections::BTreeSet;

/// Target of log lines that strangers, single clients, looping peers or a slow disk can cause: at most one a second of each kind is
/// written (`server/log_pace.rs`).
pub const STRANGERS: &str = "oxkeeper::strangers";

/// A client session. Never 0 for a live one: 0 on the wire means "none yet".
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SessionId(pub i64);

impl SessionId {
    /// The first session id of a server that starts now.
    ///
    /// * `wall_ms`: milliseconds since 1970. Java takes the milliseconds since its machine started, which repeat with every
    ///   start of the machine, and with them the ids of sessions that clients may still use.
    ///
    /// Source: `SessionTrackerImpl.initializeNextSessionId`; a standalone server counts as server 1 (P-15).
    pub const fn first(server: ServerId, wall_ms: i64) -> Self {
        Self((((wall_ms << 24) as u64 >> 8) as i64) | server.0 << 56)
    }
}

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A server of an ensemble: its `myid`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ServerId(pub i64);

impl std::fmt::Display for ServerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Servers as part of a sentence: `server 1`, or `servers 1, 2`.
pub struct ServerList<'a>(pub &'a BTreeSet<ServerId>);

impl std::fmt::Display for ServerList<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<String> = self.0.iter().map(ServerId::to_string).collect();
        let noun = if ids.len() == 1 { "server" } else { "servers" };
        write!(f, "{noun} {}", ids.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_begin_with_server_id_and_start_time() {
        let first = |server, wall_ms| SessionId::first(ServerId(server), wall_ms).0;
        assert_eq!(first(3, 0x18b_cfe5_6800), 0x038b_cfe5_6800_0000);
        assert_eq!(first(3, 1) - first(3, 0), 0x1_0000, "ids for each millisecond");
        assert!(first(200, 0) < 0, "Java's byte has a sign");
    }
}
