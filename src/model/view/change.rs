//! Incremental reconfiguration: the configuration that results when members leave and join.

use super::member::is_local;
use super::{Member, Rule, View, ViewError};
use crate::model::ServerId;

/// Why an incremental reconfiguration is refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ChangeError {
    /// Members with weights and groups can't be changed incrementally: the whole configuration must be given.
    #[error("an ensemble with groups can only be changed as a whole")]
    Grouped,
    #[error("{0} is not a server id")]
    Number(String),
    #[error("{0} is not server.N=address")]
    Form(String),
    #[error("server.{0} needs a quorum port, an election port and a client port")]
    Ports(ServerId),
    #[error("server.{id} has an address of server.{other}")]
    Shared { id: ServerId, other: ServerId },
    #[error("{0}")]
    Text(#[from] ViewError),
}

impl View {
    /// Removes the members `leaving` (`2,3`), then adds those of `joining` (`server.4=host:port:port;port,...`); blanks
    /// around a comma are ignored.
    ///
    /// Host names are compared as they are written, where Java compares what they resolve to.
    ///
    /// # Errors
    /// [`ChangeError`], the first one there is.
    ///
    /// Source: `PrepRequestProcessor.pRequest2Txn`, `QuorumServer.checkAddressDuplicate`, ZooKeeper 3.9.5.
    pub fn changed(&self, leaving: &str, joining: &str) -> Result<Self, ChangeError> {
        if self.rule != Rule::Majority {
            return Err(ChangeError::Grouped);
        }
        let mut view = self.clone();
        for id in parts(leaving, ',') {
            let number = id.parse().map_err(|_| ChangeError::Number(id.to_owned()))?;
            view.members.remove(&ServerId(number));
        }
        for line in parts(joining, ',') {
            let member = parse_line(line)?;
            let id = member.id;
            let others = view.members.values().filter(|other| other.id != id);
            if let Some(other) = others.into_iter().find(|other| shares_address(&member, other)) {
                return Err(ChangeError::Shared { id, other: other.id });
            }
            view.members.insert(id, member);
        }
        Ok(view)
    }
}

fn parts(text: &str, separator: char) -> impl Iterator<Item = &str> {
    text.split(separator).map(str::trim).filter(|part| !part.is_empty())
}

fn parse_line(line: &str) -> Result<Member, ChangeError> {
    let mut sides = parts(line, '=');
    let (Some(key), Some(value), None) = (sides.next(), sides.next(), sides.next()) else {
        return Err(ChangeError::Form(line.to_owned()));
    };
    let number = key.rsplit_once('.').map_or(key, |(_, number)| number);
    let id: i64 = number.parse().map_err(|_| ChangeError::Number(number.to_owned()))?;
    let member = Member::parse(&format!("server.{id}"), value)?;
    if member.client.is_none() {
        return Err(ChangeError::Ports(member.id));
    }
    Ok(member)
}

/// Whether two members have an address in common. Local addresses, which every machine has, do not count.
fn shares_address(member: &Member, other: &Member) -> bool {
    fn all(member: &Member) -> Vec<(String, u16)> {
        let peers = member.addresses.iter().flat_map(|at| {
            let host = at.host.to_lowercase();
            [(host.clone(), at.quorum_port), (host, at.election_port)]
        });
        let client = member
            .client
            .as_ref()
            .and_then(|(host, port)| Some((host.as_deref()?.to_lowercase(), *port)));
        peers.chain(client).collect()
    }
    let mine = all(member);
    all(other).iter().any(|address| !is_local(&address.0) && mine.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> View {
        View::parse("server.1=a:1:2;2181\nserver.2=b:1:2;2181\nserver.3=c:1:2:observer;c:2181")
            .unwrap()
    }

    fn ids(view: &View) -> Vec<i64> {
        view.members.keys().map(|id| id.0).collect()
    }

    // rows: Q-98
    #[test]
    fn leaving_members_are_removed_before_joining_ones_are_added() {
        let changed = view()
            .changed(" 2, 9 ,", "server.4=d:1:2;2181, server.1 = a:7:8:observer;2182")
            .unwrap();
        assert_eq!(ids(&changed), [1, 3, 4]);
        assert_eq!(changed.members[&ServerId(1)].to_string(), "a:7:8:observer;0.0.0.0:2182");
        // The address of a member that leaves is free for one that joins.
        assert!(view().changed("2", "server.5=b:1:2;2181").is_ok());
        assert_eq!(view().changed("", "7=e:1:2;2181").map(|view| ids(&view)), Ok(vec![1, 2, 3, 7]));
        assert_eq!(view().changed("", ""), Ok(view()));
    }

    #[test]
    fn impossible_reconfigurations_are_refused() {
        let error = |leaving, joining| view().changed(leaving, joining).unwrap_err().to_string();
        assert_eq!(error("x", ""), "x is not a server id");
        assert_eq!(error("", "server.x=d:1:2;3"), "x is not a server id");
        assert_eq!(error("", "server.4"), "server.4 is not server.N=address");
        assert_eq!(
            error("", "server.4=d:1:2"),
            "server.4 needs a quorum port, an election port and a client port"
        );
        assert_eq!(error("", "server.4=d:1;3"), "server.4=d:1;3 is not host:port:port");
        assert_eq!(error("", "server.4=B:1:5;3"), "server.4 has an address of server.2");
        for client in ["c", "C"] {
            let line = format!("server.4=d:4:5;{client}:2181");
            assert_eq!(
                view().changed("", &line).unwrap_err().to_string(),
                "server.4 has an address of server.3"
            );
        }
        let local = View::parse("server.1=127.0.0.1:1:2;2181").unwrap();
        assert!(local.changed("", "server.2=127.0.0.1:1:3;2182").is_ok(), "as in Java");
        let grouped = View::parse("server.1=a:1:2\ngroup.1=1").unwrap();
        assert_eq!(grouped.changed("", ""), Err(ChangeError::Grouped));
    }
}
