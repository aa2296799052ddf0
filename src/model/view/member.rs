//! One member as a text: its addresses, its role, and where its clients connect.

use super::fields::{ViewError, number_in, split};
use super::{Member, PeerAddress, Role};
use crate::model::ServerId;
use core::net::{Ipv4Addr, Ipv6Addr};
use std::fmt;

impl Member {
    /// Reads `server.N` and `host:quorum:election[:role][|...][;[host:]port]`; blanks are not trimmed.
    ///
    /// # Errors
    /// [`ViewError::Name`] and [`ViewError::Value`].
    ///
    /// Source: `QuorumPeer.QuorumServer.initializeWithAddressString`, ZooKeeper 3.9.5.
    pub fn parse(key: &str, value: &str) -> Result<Self, ViewError> {
        let id = ServerId(number_in(key)?);
        let wrong = |why| ViewError::value(key, value, why);
        let (peers, client) = match split(value, ';')[..] {
            [peers] => (peers, None),
            [peers, client] => (peers, Some(parse_client(client).map_err(wrong)?)),
            _ => return Err(wrong("is not host:port:port[:role][;[host:]port]")),
        };
        let mut addresses: Vec<PeerAddress> = Vec::new();
        let mut role = None;
        for text in split(peers, '|') {
            let (address, its_role) = parse_address(text).map_err(wrong)?;
            if its_role.is_some() && role.is_some() && its_role != role {
                return Err(wrong("has addresses with different roles"));
            }
            role = role.or(its_role);
            if !addresses.iter().any(|other| is_same(other, &address)) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            return Err(wrong("is not host:port:port"));
        }
        addresses.sort_by(|a, b| a.host.cmp(&b.host));
        Ok(Self { id, addresses, role: role.unwrap_or(Role::Participant), client })
    }
}

/// Whether two addresses are the same; host names are compared without regard to case.
fn is_same(one: &PeerAddress, other: &PeerAddress) -> bool {
    let ports = |address: &PeerAddress| (address.quorum_port, address.election_port);
    ports(one) == ports(other) && one.host.eq_ignore_ascii_case(&other.host)
}

/// `host:quorum:election[:role]`
fn parse_address(text: &str) -> Result<(PeerAddress, Option<Role>), &'static str> {
    let parts = split_address(text)?;
    let (host, quorum, election, role) = match parts[..] {
        [host, quorum, election] => (host, quorum, election, None),
        [host, quorum, election, role] => (host, quorum, election, Some(role)),
        _ => return Err("is not host:port:port"),
    };
    let port = |text: &str| text.parse::<u16>().map_err(|_| "has an invalid port");
    let address = PeerAddress {
        host: plain_host(host),
        quorum_port: port(quorum)?,
        election_port: port(election)?,
    };
    if address.quorum_port == address.election_port {
        return Err("has one port twice; quorum and election need one each");
    }
    let role = match role.map(|role| role.trim().to_lowercase()).as_deref() {
        None => None,
        Some("participant") => Some(Role::Participant),
        Some("observer") => Some(Role::Observer),
        Some(_) => return Err("is neither participant nor observer"),
    };
    Ok((address, role))
}

/// `[host:]port`
fn parse_client(text: &str) -> Result<(Option<String>, u16), &'static str> {
    const WRONG: &str = "has a client address that is not [host:]port";
    let parts = split_address(text)?;
    let (host, port) = match parts[..] {
        [port] => (None, port),
        [host, port] => (Some(plain_host(host)), port),
        _ => return Err(WRONG),
    };
    let host = host.filter(|host| host != EVERY_ADDRESS);
    Ok((host, port.parse().map_err(|_| WRONG)?))
}

/// How the host is printed when a client address has none.
const EVERY_ADDRESS: &str = "0.0.0.0";

/// Splits at colons, those inside `[ ]` of an IPv6 address excepted.
///
/// Source: `ConfigUtils.getHostAndPort`, ZooKeeper 3.9.5.
fn split_address(text: &str) -> Result<Vec<&str>, &'static str> {
    let Some(inner) = text.strip_prefix('[') else { return Ok(split(text, ':')) };
    let (host, tail) = inner.split_once(']').ok_or("has an unclosed bracket")?;
    let mut tail = tail.chars();
    // Java skips one character, whichever it is.
    match (tail.next(), tail.as_str()) {
        (None, _) => Ok(vec![host]),
        (Some(_), "") => Err("has no port after the bracket"),
        (Some(_), ports) => Ok([host].into_iter().chain(split(ports, ':')).collect()),
    }
}

/// The host without the brackets that an IPv6 address has before a port.
pub fn without_brackets(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// A host as Java prints it: an address in full, a name as it was written.
pub fn plain_host(host: &str) -> String {
    if host.is_empty() {
        return "localhost".to_owned();
    }
    // Whether a zone name exists depends on the machine: Java leaves those that it does not find, this server leaves all.
    let (address, zone) = match host.split_once('%') {
        Some((address, zone)) if zone.parse::<u32>().is_ok() => (address, &host[address.len()..]),
        _ => (host, ""),
    };
    match address.parse::<Ipv6Addr>() {
        Ok(address) => match address.to_ipv4_mapped() {
            Some(address) => address.to_string(),
            None => {
                let groups = address.segments().map(|group| format!("{group:x}"));
                format!("{}{zone}", groups.join(":"))
            }
        },
        Err(_) => plain_ipv4(host).unwrap_or_else(|| host.to_owned()),
    }
}

/// Whether an address is one that every machine has: `localhost`, a loopback address, or every address.
pub(super) fn is_local(host: &str) -> bool {
    let is_special = |address: core::net::IpAddr| address.is_loopback() || address.is_unspecified();
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_special)
}

/// Fewer than four parts are an IPv4 address too: the last fills what is left. Decimal only.
fn plain_ipv4(host: &str) -> Option<String> {
    let parts: Vec<&str> = host.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if 4 < parts.len() || !parts.iter().all(is_number) {
        return None;
    }
    let (last, first) = parts.split_last()?;
    let mut address = last.parse::<u32>().ok()?;
    if u64::from(address) >> (8 * (4 - first.len())) != 0 {
        return None;
    }
    for (at, part) in first.iter().enumerate() {
        address |= u32::from(part.parse::<u8>().ok()?) << (24 - 8 * at);
    }
    Some(Ipv4Addr::from(address).to_string())
}

impl fmt::Display for Member {
    /// What comes after `server.N=`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, address) in self.addresses.iter().enumerate() {
            let PeerAddress { host, quorum_port, election_port } = address;
            f.write_str(if at == 0 { "" } else { "|" })?;
            write!(f, "{}:{quorum_port}:{election_port}", Bracketed(host))?;
        }
        f.write_str(match self.role {
            Role::Participant => ":participant",
            Role::Observer => ":observer",
        })?;
        match &self.client {
            None => Ok(()),
            Some((host, port)) => {
                let host = host.as_deref().unwrap_or(EVERY_ADDRESS);
                write!(f, ";{}:{port}", Bracketed(host))
            }
        }
    }
}

/// A host, in brackets if it has colons.
struct Bracketed<'a>(&'a str);

impl fmt::Display for Bracketed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.contains(':') {
            true => write!(f, "[{}]", self.0),
            false => f.write_str(self.0),
        }
    }
}
