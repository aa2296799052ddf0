//! Where clients connect: `clientPort`, `clientPortAddress`, the client address in a `server.N` line, and `secureClientPort`.

use std::net::{IpAddr, Ipv6Addr};

use super::SettingPlace;
use super::checker::{Checker, Setting};
use super::members::{ClientAddress, OwnLine};
use crate::model::plain_host;

/// The address that an empty name means in Java: this machine, without asking a name server.
const EMPTY: &str = "127.0.0.1";

/// The host as it is listened on: `None` is every address of the machine, an IPv6 address has no brackets.
///
/// # Errors
/// The reason why it is no valid host. Whether a name or the zone of an address exists is not checked here.
///
/// Source: `InetAddress.getByName`, JDK 17, which listens at `::` for `0.0.0.0`.
pub(super) fn host_of(value: &str) -> Result<Option<String>, &'static str> {
    let host = match value.strip_prefix('[') {
        None if value.is_empty() => EMPTY,
        None => value,
        Some(bracketed) => {
            let inner = bracketed.strip_suffix(']').ok_or("has an unclosed bracket")?;
            let address = inner.split_once('%').map_or(inner, |(address, _)| address);
            if address.parse::<Ipv6Addr>().is_err() {
                return Err("has brackets, but no IPv6 address between them");
            }
            inner
        }
    };
    let host = plain_host(host);
    let is_any = host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
    Ok(Some(host).filter(|_| !is_any))
}

/// `secureClientPort`, and the host of `secureClientPortAddress`.
pub(super) struct SecureAddress {
    pub host: Option<String>,
    pub port: u16,
    pub place: SettingPlace,
}

/// The port where clients connect with TLS; `None` if there is none, and if it was wrong.
pub(super) fn take_secure(checker: &mut Checker) -> Option<SecureAddress> {
    let problems = checker.problems.len();
    let port = checker.number("secureClientPort", 0..=i32::from(u16::MAX));
    let host = checker.take("secureClientPortAddress");
    let Some((port, place)) = port else {
        if let Some(host) = host.filter(|_| checker.problems.len() == problems) {
            let text = format!(
                "secureClientPortAddress={} is set but secureClientPort is not; add secureClientPort=2281",
                host.value
            );
            checker.problem(&host.place, text);
        }
        return None;
    };
    let host = take_host(checker, "secureClientPortAddress", host)?;
    Some(SecureAddress { host, port: port as u16, place })
}

/// Host and port for clients without TLS; the port is `None` if all clients use `secureClientPort`.
pub(super) fn take(
    checker: &mut Checker,
    own: OwnLine,
    secure: Option<&SecureAddress>,
    secure_is_wrong: bool,
) -> Option<(Option<String>, Option<u16>)> {
    let problems = checker.problems.len();
    // A wrong secureClientPort has a problem of its own: do not add that clientPort is missing.
    let plain = take_plain(checker, own, secure.is_some() || secure_is_wrong);
    let Some((host, port)) = plain else {
        return Some((None, None))
            .filter(|_| secure.is_some() && problems == checker.problems.len());
    };
    if let Some(secure) = secure.filter(|secure| secure.port == port && port != 0)
        && (secure.host == host || secure.host.is_none() || host.is_none())
    {
        let text = format!("secureClientPort={port} is the clientPort too; choose another one");
        checker.problem(&secure.place, text);
    }
    Some((host, Some(port)))
}

/// Host and port for clients, from `clientPort` or from this server's own `server.N` line.
fn take_plain(checker: &mut Checker, own: OwnLine, has_secure: bool) -> Option<ClientAddress> {
    let problems = checker.problems.len();
    let port = checker.number("clientPort", 0..=i32::from(u16::MAX));
    let port_was_wrong = checker.problems.len() > problems;
    let host = checker.take("clientPortAddress");
    let whole = checker.whole.clone();
    match (port, host, own.client) {
        (None, Some(host), _) if !port_was_wrong => {
            let text = format!(
                "clientPortAddress={} is set but clientPort is not; add clientPort=2181",
                host.value
            );
            checker.problem(&host.place, text);
            None
        }
        (None, None, None) if !port_was_wrong && !own.is_lost && !has_secure => {
            // Java stays up and serves no client, which looks like a running server.
            checker.problem(&whole, "clientPort is not set; add clientPort=2181");
            None
        }
        (None, None, Some(own)) if !port_was_wrong => Some(own),
        (None, ..) => None,
        (Some((port, place)), host, own) => {
            let fixed = (take_host(checker, "clientPortAddress", host)?, port as u16);
            let Some(own) = own else { return Some(fixed) };
            let shown =
                |(host, port): &ClientAddress| format!("{}:{port}", host.as_deref().unwrap_or("*"));
            let (keys, line) = (shown(&fixed), shown(&own));
            match differs(&fixed, &own) {
                Some(true) => {
                    let text = format!(
                        "clientPort={port} gives clients {keys}, and this server's own server.N line gives {line}; remove one of them"
                    );
                    checker.problem(&place, text);
                }
                Some(false) => {}
                // Java refuses if the names turn out to be two addresses.
                None => {
                    let text = format!(
                        "clientPort={port} gives clients {keys}, and this server's own server.N line gives {line}, which counts: names are not \
                         compared here; remove one of them"
                    );
                    checker.warn(&place, text);
                }
            }
            Some(own)
        }
    }
}

/// Whether the keys give another address than the line; `None` if names would have to be resolved.
fn differs(fixed: &ClientAddress, own: &ClientAddress) -> Option<bool> {
    let host = |address: &ClientAddress| address.0.as_deref().map(plain_host);
    let (one, other) = (host(fixed), host(own));
    let is_any = |host: &str| ["0.0.0.0", "0:0:0:0:0:0:0:0"].contains(&host);
    if fixed.1 != own.1 || one.as_deref().is_none_or(is_any) {
        return Some(fixed.1 != own.1);
    }
    let is_name =
        |host: &Option<String>| host.as_ref().is_some_and(|h| h.parse::<IpAddr>().is_err());
    if one != other && (is_name(&one) || is_name(&other)) { None } else { Some(one != other) }
}

/// The host of a setting; `None` if the value is no valid host, as a problem says.
fn take_host(checker: &mut Checker, key: &str, setting: Option<Setting>) -> Option<Option<String>> {
    let Some(Setting { value, place, .. }) = setting else { return Some(None) };
    let wrong = |why| checker.problem(&place, format!("{key}={value} {why}; correct it"));
    host_of(&value).map_err(wrong).ok()
}
