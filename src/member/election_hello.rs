//! The hello of an election connection (ZooKeeper: `QuorumCnxManager.InitialMessage`), and which of two connections stays.

use crate::model::ServerId;
use core::net::IpAddr;

/// A name or address, without brackets, and a port.
pub type Address = (String, u16);

/// One address; since 3.5.
const VERSION_1: i64 = -65536;
/// Any number of addresses; since 3.6, and sent only with `multiAddress.enabled`.
const VERSION_2: i64 = -65535;
const TEXT_BYTES_MAX: usize = 2048;
/// The id that every observer before 3.5 sends.
const OLD_OBSERVER: ServerId = ServerId(i64::MAX);

/// What the dialing server says first: its id and its election addresses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hello {
    pub id: ServerId,
    /// Where the server says that it listens for elections; may be none. Wildcards are left out.
    pub addresses: Vec<Address>,
}

/// Why bytes are not a hello.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HelloError {
    #[error("hello of unknown version {0}")]
    Version(i64),
    #[error("hello of server {id} claims an address of {len} bytes")]
    Length { id: i64, len: i32 },
    #[error("hello of server {id} with address {address:?}")]
    Address { id: i64, address: String },
}

impl Hello {
    /// Reads what has arrived so far, and tells how many bytes the hello took; `None` if there must be more.
    ///
    /// # Errors
    /// On an unknown version, a length outside of 1 to 2048, or an address without host and port.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, HelloError> {
        let Some(first) = long(bytes, 0) else { return Ok(None) };
        if 0 <= first {
            // Before 3.5 the id came alone.
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

    /// * `multi_address`: whether all addresses may be told, or the first alone.
    pub fn encode(&self, multi_address: bool) -> Vec<u8> {
        let told = if multi_address { self.addresses.len() } else { 1 };
        let one = |(host, port): &Address| match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        let text = self.addresses.iter().take(told).map(one).collect::<Vec<_>>().join("|");
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
fn address(text: &str) -> Option<Address> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once("]:")?,
        None => text.split_once(':')?,
    };
    let port = port.parse().ok()?;
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// What to do with a connection once the id of the server at its other end is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    /// The connection is the one to that server from now on; an earlier one is closed.
    Keep,
    /// The connection is closed, and this server dials. An earlier connection stays until there is the new one.
    DialBack,
    /// The connection is closed.
    Close,
}

/// For a connection from `peer` to `me`: of two servers the larger id makes the connection.
pub fn fate_of_accepted(me: ServerId, peer: ServerId) -> Fate {
    match peer.cmp(&me) {
        std::cmp::Ordering::Greater => Fate::Keep,
        std::cmp::Ordering::Less => Fate::DialBack,
        std::cmp::Ordering::Equal => Fate::Close,
    }
}

/// For a connection from `me` to `peer`, after the hello was sent: a server with a larger id dials back when it has read it.
pub fn fate_of_dialed(me: ServerId, peer: ServerId) -> Fate {
    if peer < me { Fate::Keep } else { Fate::Close }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hello(id: i64, addresses: &[(&str, u16)]) -> Hello {
        let addresses = addresses.iter().map(|(host, port)| (host.to_string(), *port)).collect();
        Hello { id: ServerId(id), addresses }
    }

    fn bytes(version: i64, id: i64, text: &str) -> Vec<u8> {
        let len = (text.len() as i32).to_be_bytes();
        [&version.to_be_bytes()[..], &id.to_be_bytes(), &len, text.as_bytes()].concat()
    }

    // rows: Q-20 Q-21
    #[test]
    fn every_form_is_read() {
        let read = |bytes: &[u8]| Hello::parse(bytes).unwrap().unwrap();
        let one = bytes(-65536, 3, "zoo3:3888");
        assert_eq!(read(&one), (hello(3, &[("zoo3", 3888)]), one.len()));
        let followed = [&one[..], b"what comes next"].concat();
        assert_eq!(read(&followed).1, one.len());
        let many = bytes(-65535, 3, "10.0.0.3:3888|[2001:db8::3]:3889|0.0.0.0:1|[::]:2");
        let both = hello(3, &[("10.0.0.3", 3888), ("2001:db8::3", 3889)]);
        assert_eq!(read(&many), (both, many.len()));
        assert_eq!(read(&7_i64.to_be_bytes()), (hello(7, &[]), 8));
        for cut in 8..one.len() {
            assert_eq!(Hello::parse(&one[..cut]), Ok(None));
        }
    }

    // rows: Q-20
    #[test]
    fn what_java_said_is_read_and_written_alike() {
        let golden = include_str!("../../compat-tests/golden/election/messages.txt");
        let hex = golden.lines().find_map(|line| line.strip_prefix("hello ")).unwrap();
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        let (hello, taken) = Hello::parse(&bytes).unwrap().unwrap();
        assert_eq!((hello.id, hello.addresses.len(), taken), (ServerId(2), 1, bytes.len()));
        assert_eq!(hello.encode(false), bytes);
    }

    #[test]
    fn what_is_no_hello_is_refused() {
        let error = |bytes: &[u8]| Hello::parse(bytes).unwrap_err();
        assert_eq!(error(&bytes(-1, 3, "a:1")), HelloError::Version(-1));
        for len in [0, -1, 2049, i32::MAX] {
            let mut wrong = bytes(-65536, 3, "a:1");
            wrong[16..20].copy_from_slice(&len.to_be_bytes());
            assert_eq!(error(&wrong), HelloError::Length { id: 3, len });
        }
        for text in ["a", "a:", ":1", "a:x", "a:65536", "a:1|", "[::1:1", "[::1]", "a:1:2"] {
            let wrong = error(&bytes(-65535, 3, text));
            assert!(matches!(wrong, HelloError::Address { id: 3, .. }), "{text}: {wrong}");
        }
        assert_eq!(Hello::parse(&bytes(-65535, 3, &"x".repeat(2048))[..2067]), Ok(None));
    }

    #[test]
    fn only_the_first_address_is_told_unless_peers_know_of_several() {
        let two = hello(-5, &[("::1", 1), ("zoo", 2)]);
        assert_eq!(two.encode(false), bytes(-65536, -5, "[::1]:1"));
        assert_eq!(two.encode(true), bytes(-65535, -5, "[::1]:1|zoo:2"));
    }

    // rows: Q-22 Q-23
    #[test]
    fn the_larger_id_dials() {
        let id = ServerId;
        assert_eq!(fate_of_accepted(id(2), id(3)), Fate::Keep);
        assert_eq!(fate_of_accepted(id(2), id(1)), Fate::DialBack);
        assert_eq!(fate_of_accepted(id(2), id(2)), Fate::Close, "a second server with our id");
        assert_eq!(fate_of_dialed(id(2), id(1)), Fate::Keep);
        assert_eq!(fate_of_dialed(id(2), id(3)), Fate::Close);
        let mut old = OldObservers::default();
        assert_eq!([7, i64::MAX, i64::MAX].map(|said| old.id_of(id(said)).0), [7, -1, -2]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60), known: bool) {
            let mut bytes = bytes;
            if known && 8 <= bytes.len() {
                bytes[..8].copy_from_slice(&VERSION_2.to_be_bytes());
            }
            if let Ok(Some((_, taken))) = Hello::parse(&bytes) {
                prop_assert!(taken <= bytes.len());
            }
        }
    }
}
