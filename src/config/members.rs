//! `server.N` lines, as far as a standalone server must understand them.
//!
//! One voter and nobody else is standalone while `standaloneEnabled` is true: the official
//! container image writes just such a file, with the client port in that line and nowhere else.

use super::check::{Checker, Setting};
use super::system::trim;

/// Where clients connect: host (`None` is every address) and port.
type ClientAddress = (Option<String>, u16);

/// The part of `server.N=host:quorum:election[:role][|...][;[host:]port]` that is used here.
#[derive(Debug, Eq, PartialEq)]
struct Member {
    id: i64,
    observer: bool,
    client: Option<ClientAddress>,
}

/// Whether a key belongs into the dynamic file once there is one.
pub(super) fn is_dynamic(key: &str) -> bool {
    ["server.", "group", "weight"].iter().any(|start| key.starts_with(start))
}

/// Takes `server.*`, `group*`, `weight*` and `standaloneEnabled`.
///
/// Returns the client address that this server's own line gives, if `my_id` names it. Whatever
/// would make an ensemble is reported as one problem, by the first of its keys.
///
/// * `my_id`: first line of the file `myid`, if there is one.
///
/// Source: `QuorumPeerConfig.parseDynamicConfig` and `setupClientPort`, ZooKeeper 3.9.5.
pub(super) fn take(checker: &mut Checker, my_id: Option<&str>) -> Option<ClientAddress> {
    let my_id = my_id.and_then(|text| {
        let id = text.parse::<i64>().ok();
        if id.is_none() {
            let whole = checker.whole.clone();
            checker.problem(&whole, format!("myid {text:?} is not a number"));
        }
        id
    });
    let standalone = checker.boolean("standaloneEnabled");
    let many_addresses = checker.boolean("multiAddress.enabled").is_some_and(|(on, _)| on);
    let hierarchy = checker.take_all(|key| {
        key.starts_with("group") || key.starts_with("weight") || key == "oraclePath"
    });
    let lines = checker.take_all(|key| key.starts_with("server."));

    let mut members = Vec::new();
    for (key, Setting { value, place }) in &lines {
        match parse_member(key, value) {
            Ok(_) if value.contains('|') && !many_addresses => {
                let text = format!(
                    "{key}={value} has more addresses than one; multiAddress.enabled is not true"
                );
                checker.problem(place, text);
            }
            Ok(member) => members.push(member),
            Err(why) => checker.problem(place, format!("{key}={value} {why}")),
        }
    }
    let voters = members.iter().filter(|member| !member.observer).count();
    let observers = members.len() - voters;

    let mut ensemble: Vec<&str> = hierarchy.iter().map(|(key, _)| key.as_str()).collect();
    let mut place = hierarchy.first().map(|(_, setting)| &setting.place);
    if voters > 1 {
        ensemble.extend(lines.iter().map(|(key, _)| key.as_str()));
        place = lines.first().map(|(_, setting)| &setting.place);
    }
    if let Some((false, at)) = &standalone {
        ensemble.push("standaloneEnabled=false");
        place = place.or(Some(at));
    }
    if let Some(place) = place {
        let text = format!(
            "{} make this server part of an ensemble, which it cannot join yet; run it alone or \
             leave this one to ZooKeeper",
            ensemble.join(", ")
        );
        checker.problem(place, text);
    } else if observers > 0 {
        let place = &lines[0].1.place;
        checker
            .problem(place, "observers without at least two voters are no ensemble; remove them");
    } else if voters == 1 {
        checker.warn(&lines[0].1.place, "one server is listed: running standalone");
    }
    members.into_iter().find(|member| Some(member.id) == my_id).and_then(|member| member.client)
}

fn parse_member(key: &str, value: &str) -> Result<Member, &'static str> {
    let id = key["server.".len()..].parse().map_err(|_| "is not named by a number")?;
    let (peers, client) = match value.split_once(';') {
        // Java's split drops what is empty at the end.
        Some((peers, client)) if !trim(client).is_empty() => {
            (peers, Some(parse_client(trim(client))?))
        }
        Some((peers, _)) => (peers, None),
        None => (value, None),
    };
    let mut observer = false;
    for address in peers.split('|') {
        let parts = split_address(trim(address)).ok_or("has an unclosed bracket")?;
        match parts[..] {
            [_, quorum, election] | [_, quorum, election, _] => {
                for port in [quorum, election] {
                    port.parse::<u16>().map_err(|_| "has a port that is not one")?;
                }
            }
            _ => return Err("is not host:port:port"),
        }
        if let Some(role) = parts.get(3) {
            match role.to_lowercase().as_str() {
                "observer" => observer = true,
                "participant" => {}
                _ => return Err("is neither participant nor observer"),
            }
        }
    }
    Ok(Member { id, observer, client })
}

fn parse_client(text: &str) -> Result<ClientAddress, &'static str> {
    const WRONG: &str = "has a client address that is not [host:]port";
    let parts = split_address(text).ok_or(WRONG)?;
    let (host, port) = match parts[..] {
        [port] => (None, port),
        [host, port] if !host.is_empty() => (Some(host.to_owned()), port),
        _ => return Err(WRONG),
    };
    Ok((host, port.parse().map_err(|_| WRONG)?))
}

/// Splits at colons, those inside `[ ]` of an IPv6 address excepted; `None` if it never closes.
fn split_address(text: &str) -> Option<Vec<&str>> {
    let Some(inner) = text.strip_prefix('[') else { return Some(text.split(':').collect()) };
    let (host, tail) = inner.split_once(']')?;
    let tail = tail.strip_prefix(':');
    Some(std::iter::once(host).chain(tail.into_iter().flat_map(|tail| tail.split(':'))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_java_reads() {
        let member = |value| parse_member("server.7", value);
        let plain = Member { id: 7, observer: false, client: None };
        assert_eq!(member("h:2888:3888").unwrap(), plain);
        assert_eq!(member("h:2888:3888:participant|g:1:2").unwrap(), plain);
        assert!(member("h:2888:3888:OBSERVER").unwrap().observer);
        let client = |value| member(value).unwrap().client;
        assert_eq!(client("h:2888:3888;2181"), Some((None, 2181)));
        assert_eq!(client("[::1]:2888:3888;[::2]:2181"), Some((Some("::2".into()), 2181)));
        assert_eq!(client("h:2888:3888 ; 10.0.0.1:2181"), Some((Some("10.0.0.1".into()), 2181)));
        for wrong in ["h", "h:2888", "h:x:3888", "h:1:2:leader", "h:1:2;x", "[::1:1:2", "h:1:70000"]
        {
            assert!(member(wrong).is_err(), "{wrong}");
        }
        assert!(parse_member("server.x", "h:1:2").is_err());
    }
}
