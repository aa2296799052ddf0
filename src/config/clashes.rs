//! Addresses in `server.N` lines that can't all be bound or reached: Java starts with them, and fails later or without a word.

use super::SettingPlace;
use super::checker::{Checker, Setting};
use crate::model::Member;
use std::collections::BTreeMap;

/// Refuses lines without a host, and an address that two ports of servers share.
pub(super) fn check_lines(checker: &mut Checker, lines: &[(String, Setting)]) {
    let mut seen: BTreeMap<(String, u16), String> = BTreeMap::new();
    let servers = lines.iter().filter(|(key, _)| key.starts_with("server.")).count();
    for (key, Setting { raw, place, .. }) in lines {
        // Another check reports a line that can't be read.
        let Some(member) = Some(key)
            .filter(|key| key.starts_with("server."))
            .and_then(|k| Member::parse(k, raw).ok())
        else {
            continue;
        };
        // Java takes this for localhost, where no other machine finds the server.
        if 1 < servers && raw.split('|').any(|address| address.trim_start().starts_with(':')) {
            checker.problem(place, format!("{key}={raw} names no host; write one"));
            continue;
        }
        for address in &member.addresses {
            let ports =
                [("quorum port", address.quorum_port), ("election port", address.election_port)];
            for (what, port) in ports {
                let mine = format!("the {what} of {key}");
                let at = (address.host.to_lowercase(), port);
                if let Some(other) = seen.insert(at, mine.clone()) {
                    let host = &address.host;
                    let text = format!("{host}:{port} is {other} and {mine}; give each its own");
                    checker.problem(place, text);
                }
            }
        }
    }
}

/// Refuses a client port that is a port of this server for other servers.
///
/// * `client`: where clients are served.
pub(super) fn check_client_port(
    checker: &mut Checker,
    client: (Option<&str>, Option<u16>),
    place: Option<SettingPlace>,
    own: &Member,
) {
    let (client_host, Some(client_port)) = client else { return };
    let place = place.unwrap_or_else(|| checker.whole.clone());
    for address in &own.addresses {
        let is_shared = client_host.is_none_or(|host| host == address.host);
        let ports =
            [("quorum port", address.quorum_port), ("election port", address.election_port)];
        for (what, _) in ports.into_iter().filter(|&(_, port)| is_shared && port == client_port) {
            let text = format!(
                "clientPort={client_port} is the {what} of server.{} too; give clients another port",
                own.id
            );
            checker.problem(&place, text);
        }
    }
}
