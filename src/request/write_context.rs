//! What decides about a write besides its body and the tree: the client, the settings, the ensemble.

use crate::auth;
use crate::model::{Code, Identity, ServerId, SessionId, View};
use std::collections::BTreeSet;

/// The client of a write, with the request's xid and time.
pub struct Asker<'a> {
    pub session: SessionId,
    pub xid: i32,
    pub identities: &'a [Identity],
    /// Whether the session is valid and belongs to the client's connection.
    pub standing: Result<(), Code>,
    /// Whether the session may own ephemeral znodes: a local session may not.
    pub may_own: Result<(), Code>,
    /// Milliseconds since 1970: the transaction's time.
    pub wall_ms: i64,
    /// `skipACL`.
    pub skip_acl: bool,
    pub schemes: &'a auth::Schemes,
    /// The members by which a reconfiguration is checked; `None`: this server is standalone, or the request is another one.
    pub ensemble: Option<Ensemble>,
}

impl<'a> Asker<'a> {
    /// The server itself, for a session or in its name: nothing is forbidden to it.
    pub const fn of_server(session: SessionId, wall_ms: i64, schemes: &'a auth::Schemes) -> Self {
        Self {
            session,
            xid: 0,
            identities: &[],
            standing: Ok(()),
            may_own: Ok(()),
            wall_ms,
            skip_acl: true,
            schemes,
            ensemble: None,
        }
    }
}

/// The ensemble as a reconfiguration sees it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ensemble {
    /// The configuration in force.
    pub view: View,
    /// Another configuration was proposed and is not committed yet.
    pub is_changing: bool,
    /// The servers that have synchronised with the leader and acknowledge its proposals, the leader included.
    pub synced: BTreeSet<ServerId>,
}

/// The settings that decide about writes.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// `enforceQuota`: hard limits refuse writes.
    pub enforces_quota: bool,
    /// `reconfigEnabled`
    pub reconfigs: bool,
    /// `standaloneEnabled`: one voter is no ensemble.
    pub needs_two_voters: bool,
    /// `multiAddress.enabled`
    pub many_addresses: bool,
    /// `closeSessionTxn.enabled`: a closeSession transaction lists the session's ephemeral znodes.
    pub lists_closed: bool,
    /// Bytes of the longest entry: a Java server can't read a longer one from its log, and does not start then.
    pub entry_max: usize,
}

impl Rules {
    /// Java's defaults.
    pub const DEFAULT: Self = Self {
        enforces_quota: false,
        reconfigs: false,
        needs_two_voters: true,
        many_addresses: false,
        lists_closed: true,
        entry_max: 2 * 0xf_ffff,
    };
}
