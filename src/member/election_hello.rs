//! The hello of an election connection (ZooKeeper: `QuorumCnxManager.InitialMessage`), and which of two connections stays.

use super::dial::HostPort;
use crate::model::ServerId;
use core::net::IpAddr;

/// One address; since 3.5.
const VERSION_1: i64 = -65536;
/// Any number of addresses; since 3.6, and sent only with `multiAddress.enabled`.
const VERSION_2: i64 = -65535;
const TEXT_BYTES_MAX: usize = 2048;
/// The id that every observer before 3.5 sends.
const OLD_OBSERVER: ServerId = ServerId(i64::MAX);
/// The types of the packets FOLLOWERINFO and OBSERVERINFO.
const LEARNER_TYPES: [i64; 2] = [11, 16];

/// What the dialing server sends first: its id and its election addresses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hello {
    pub id: ServerId,
    /// The election addresses that the server names; may be none. Wildcards are left out.
    pub addresses: Vec<HostPort>,
}

/// Why bytes are not a hello.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HelloError {
    #[error("hello of unknown version {0}")]
    Version(i64),
    #[error("hello of server {id} claims an address of {len} bytes")]
    Length { id: i64, len: i32 },
    #[error("hello of server {id} with the invalid address \"{}\"", address.escape_debug())]
    Address { id: i64, address: String },
}

impl Hello {
    /// Reads a hello, and returns how many bytes it took; `None` if it has not come completely.
    ///
    /// # Errors
    /// On an unknown version, a length outside of 1 to 2048, or an address without host and port.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, HelloError> {
        let Some(first) = long(bytes, 0) else { return Ok(None) };
        if 0 <= first {
            // Servers before 3.5 send the id alone.
            return Ok(Some((Self { id: ServerId(first), addresses: Vec::new() }, 8)));
        }
        if ![VERSION_1, VERSION_2].contains(&first) {
            return Err(HelloError::Version(first));
        }
        let (Some(id), Some(raw_len)) = (long(bytes, 8), bytes.get(16..20)) else {
            return Ok(None);
        };
        let len = i32::from_be_bytes(raw_len.try_into().expect("four were taken"));
        let text_len = usize::try_from(len).ok().filter(|len| (1..=TEXT_BYTES_MAX).contains(len));
        let text_len = text_len.ok_or(HelloError::Length { id, len })?;
        let Some(text) = bytes.get(20..20 + text_len) else { return Ok(None) };
        let text = String::from_utf8_lossy(text);
        let wrong = |address: &str| HelloError::Address { id, address: address.into() };
        let mut addresses = Vec::new();
        for part in text.split('|') {
            let (host, port) = address(part).ok_or_else(|| wrong(part))?;
            let is_wildcard = host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified());
            if !is_wildcard {
                addresses.push((host, port));
            }
        }
        Ok(Some((Self { id: ServerId(id), addresses }, 20 + text_len)))
    }

    /// Whether this is FOLLOWERINFO or OBSERVERINFO, which a learner sends at a quorum port: their type and the first half of
    /// a zxid are read as the id of a server before 3.5.
    pub const fn is_of_learner(&self) -> bool {
        let first = self.id.0 >> 32;
        self.addresses.is_empty() && (first == LEARNER_TYPES[0] || first == LEARNER_TYPES[1])
    }

    /// * `multi_address`: whether all addresses are sent, or the first alone.
    pub fn encode(&self, multi_address: bool) -> Vec<u8> {
        let count = if multi_address { self.addresses.len() } else { 1 };
        let one = |(host, port): &HostPort| match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        let text = self.addresses.iter().take(count).map(one).collect::<Vec<_>>().join("|");
        let mut out = Vec::with_capacity(20 + text.len());
        out.extend(if multi_address { VERSION_2 } else { VERSION_1 }.to_be_bytes());
        out.extend(self.id.0.to_be_bytes());
        out.extend((text.len() as u32).to_be_bytes());
        out.extend(text.as_bytes());
        out
    }
}

fn long(bytes: &[u8], at: usize) -> Option<i64> {
    let eight = bytes.get(at..at + 8)?;
    Some(i64::from_be_bytes(eight.try_into().expect("eight were taken")))
}

/// `host:port`, or `[host]:port` for an IPv6 address.
fn address(text: &str) -> Option<HostPort> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once("]:")?,
        None => text.split_once(':')?,
    };
    let port = port.parse().ok()?;
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// What to do with a connection once the id of the server at its other end is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ConnectionChoice {
    /// The connection is the one to that server from now on; an earlier one is closed.
    Keep,
    /// The connection is closed, and this server dials. An earlier connection stays until there is the new connection.
    DialBack,
    /// The connection is closed.
    Close,
}

/// For a connection from `peer` to `me`: of two servers the one with the larger id makes the connection.
pub fn choice_for_accepted(me: ServerId, peer: ServerId) -> ConnectionChoice {
    match peer.cmp(&me) {
        std::cmp::Ordering::Greater => ConnectionChoice::Keep,
        std::cmp::Ordering::Less => ConnectionChoice::DialBack,
        std::cmp::Ordering::Equal => ConnectionChoice::Close,
    }
}

/// For a connection from `me` to `peer`, after the hello was sent: a server with a larger id dials back when it has read it.
pub fn choice_for_dialed(me: ServerId, peer: ServerId) -> ConnectionChoice {
    if peer < me { ConnectionChoice::Keep } else { ConnectionChoice::Close }
}

/// Gives observers before 3.5 ids of their own, from -1 downwards.
#[derive(Debug, Default)]
pub struct OldObservers(i64);

impl OldObservers {
    pub fn id_of(&mut self, said: ServerId) -> ServerId {
        if said != OLD_OBSERVER {
            return said;
        }
        self.0 -= 1;
        ServerId(self.0)
    }
}
