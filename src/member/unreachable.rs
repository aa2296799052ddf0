//! Which other members a server has election connections with, for the log of a server without a leader.

use crate::model::ServerId;
use std::fmt;

/// The other members of the configurations, and whether they can reach this server.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reach {
    /// Members from which a message has come over the election connection that exists.
    pub heard: Vec<ServerId>,
    pub missing: Vec<Unreachable>,
    /// Members that say that they have no data that counts, and so don't vote.
    pub without_vote: Vec<ServerId>,
    /// Members whose operator has written other `server.N` lines than this server's, each with the voters there.
    pub other_lines: Vec<(ServerId, String)>,
    /// Why this server can't listen at its election port; `None`: it does.
    pub deaf: Option<String>,
}

/// A member from which no message has come over an election connection that exists.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unreachable {
    pub id: ServerId,
    /// Host and port of its election port.
    pub address: String,
    /// Why the last attempt failed; `None`: none has ended yet.
    pub error: Option<String>,
}

impl Reach {
    /// The members that are heard of; none: `no other server`.
    pub fn heard(&self) -> String {
        if self.heard.is_empty() { "no other server".to_owned() } else { ids(&self.heard) }
    }

    /// The members that don't vote; `None`: each one that is heard of votes.
    pub fn without_vote(&self) -> Option<String> {
        (!self.without_vote.is_empty()).then(|| ids(&self.without_vote))
    }

    /// The members with other `server.N` lines, each with the voters there; `None`: no member that is heard of has such lines.
    pub fn other_lines(&self) -> Option<String> {
        let lines = self.other_lines.iter().map(|(id, voters)| format!("{id} has voters {voters}"));
        let lines: Vec<String> = lines.collect();
        (!lines.is_empty()).then(|| lines.join(", "))
    }

    /// The members without a connection, each with the reason.
    pub fn missing(&self) -> String {
        if self.missing.is_empty() {
            return "none".to_owned();
        }
        let missing: Vec<String> = self.missing.iter().map(ToString::to_string).collect();
        missing.join("; ")
    }
}

fn ids(servers: &[ServerId]) -> String {
    let ids: Vec<String> = servers.iter().map(ServerId::to_string).collect();
    ids.join(" ")
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.error.as_deref().unwrap_or("no answer yet");
        // Most errors begin with the address.
        let error = error.strip_prefix(&format!("{}: ", self.address)).unwrap_or(error);
        write!(f, "{} at {}: {error}", self.id, self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_without_a_connection_are_shown_with_address_and_reason() {
        let missing = |id, error: Option<&str>| Unreachable {
            id: ServerId(id),
            address: format!("zk{id}:3888"),
            error: error.map(str::to_owned),
        };
        let mut reach = Reach { heard: vec![ServerId(3)], ..Reach::default() };
        assert_eq!((reach.heard(), reach.missing()), ("3".to_owned(), "none".to_owned()));
        reach = Reach {
            heard: Vec::new(),
            missing: vec![missing(1, Some("zk1:3888: Connection refused")), missing(2, None)],
            ..Reach::default()
        };
        assert_eq!((reach.heard(), reach.without_vote()), ("no other server".to_owned(), None));
        assert_eq!(
            reach.missing(),
            "1 at zk1:3888: Connection refused; 2 at zk2:3888: no answer yet"
        );
    }
}
