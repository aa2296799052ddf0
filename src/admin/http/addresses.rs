//! Addresses of members, as `voting_view` and `zabstate` show them.

use super::json::Json;
use crate::model::{Member, PeerAddress, Role};

/// An entry of `voting_view`.
///
/// Source: `Commands.VotingViewCommand.QuorumServerView`, ZooKeeper 3.9.5.
pub(super) fn voter(member: &Member, own_client: Option<String>) -> Json {
    let all = |port: fn(&PeerAddress) -> u16| {
        Json::List(
            member.addresses.iter().map(|at| Json::Text(shown(&at.host, port(at)))).collect(),
        )
    };
    let client = member.client.as_ref().map(|(host, port)| client(host.as_deref(), *port));
    let kind = match member.role {
        Role::Participant => "participant",
        Role::Observer => "observer",
    };
    Json::map([
        ("server_addresses", all(|at| at.quorum_port)),
        ("election_addresses", all(|at| at.election_port)),
        ("client_address", Json::Text(client.or(own_client).unwrap_or_default())),
        ("learner_type", Json::text(kind)),
    ])
}

/// An address object of `zabstate`: Jackson's print of a Java class. The addresses of this server itself are all reachable.
///
/// Source: `MultipleAddresses`, ZooKeeper 3.9.5.
pub(super) fn own(member: &Member, port: fn(&PeerAddress) -> u16) -> Json {
    let addresses = &member.addresses;
    let all =
        || Json::List(addresses.iter().map(|at| Json::Text(shown(&at.host, port(at)))).collect());
    let mut ports: Vec<u16> = addresses.iter().map(port).collect();
    ports.sort_unstable();
    ports.dedup();
    let list = |of: &dyn Fn(u16) -> Json| Json::List(ports.iter().map(|&port| of(port)).collect());
    let first = || match addresses.first() {
        Some(at) => Json::Text(shown(&at.host, port(at))),
        None => Json::Null,
    };
    let hosts = addresses.iter().map(|at| Json::Text(at.host.clone())).collect();
    Json::map([
        ("empty", Json::Bool(addresses.is_empty())),
        ("all_addresses", all()),
        ("wildcard_addresses", list(&|port| Json::Text(format!("0.0.0.0:{port}")))),
        ("all_ports", list(&|port| Json::Integer(port.into()))),
        ("all_host_strings", Json::List(hosts)),
        ("reachable_address", first()),
        ("all_reachable_addresses", all()),
        ("all_reachable_addresses_or_all", all()),
        ("reachable_or_one", first()),
        ("one", first()),
    ])
}

/// Where clients connect.
pub(super) fn client(host: Option<&str>, port: u16) -> String {
    shown(host.unwrap_or("0.0.0.0"), port)
}

fn shown(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
