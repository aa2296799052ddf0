//! Configurations in tests of agreement: their members, and how a payload proposes one.

use oxkeeper::model::{Member, PeerAddress, Role, Rule, ServerId, View};

/// The prefix of a payload that proposes a configuration.
pub const VIEW: &str = "view ";

/// The configuration that a payload proposes.
pub fn view_in(payload: &[u8]) -> Option<View> {
    View::parse(std::str::from_utf8(payload).ok()?.strip_prefix(VIEW)?).ok()
}

pub fn member(id: ServerId, role: Role) -> Member {
    let host = format!("host{}", id.0);
    let addresses = vec![PeerAddress { host, quorum_port: 2888, election_port: 3888 }];
    Member { id, addresses, role, client: None }
}

/// A configuration whose quorums are majorities.
pub fn view_of(
    version: i64,
    voters: impl IntoIterator<Item = i64>,
    observers: impl IntoIterator<Item = i64>,
) -> View {
    let member = |id: i64, role: Role| (ServerId(id), member(ServerId(id), role));
    let voters = voters.into_iter().map(|id| member(id, Role::Participant));
    let observers = observers.into_iter().map(|id| member(id, Role::Observer));
    View { version, members: voters.chain(observers).collect(), rule: Rule::Majority }
}
