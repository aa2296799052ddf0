//! Two servers with one id (`myid`): what a third server tells each of them about the other.
//!
//! A server with the right `myid` hears nothing of the other one: the other one does not dial it, and its connections to third servers
//! only end again and again. So a third server that sees both appends the address of the other one to the next message that it
//! sends to that id. Java's servers, and earlier ones of ours, do not look at bytes there.

use bytes::{BufMut, Bytes, BytesMut};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

const MARK: &[u8] = b"oxkeeper: other server with your myid";
/// An IPv6 address, or an IPv4 address mapped to one, and a port.
const ADDRESS_LEN: usize = 18;

/// The addresses of both servers, as the third one has seen them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Duplicate {
    pub connected: String,
    pub dials: String,
}

impl Duplicate {
    /// The message for the server at `peer`, with the address of the other one. Unchanged if that is none.
    pub fn append(&self, message: &Bytes, peer: &str) -> Bytes {
        let is_dialing =
            peer == self.dials || peer != self.connected && host(peer) == host(&self.dials);
        let other = if is_dialing { &self.connected } else { &self.dials };
        let Ok(other) = other.parse::<SocketAddr>() else { return message.clone() };
        let ip = match other.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut bytes = BytesMut::with_capacity(message.len() + MARK.len() + ADDRESS_LEN);
        bytes.extend_from_slice(message);
        bytes.extend_from_slice(MARK);
        bytes.put_u128(ip.to_bits());
        bytes.put_u16(other.port());
        bytes.freeze()
    }
}

/// The address in a message of [`Duplicate::append`].
pub fn other_address(message: &[u8]) -> Option<SocketAddr> {
    let (message, address) = message.split_last_chunk::<ADDRESS_LEN>()?;
    let (ip, port) = address.split_first_chunk::<16>()?;
    let port = u16::from_be_bytes(port.try_into().ok()?);
    let ip = Ipv6Addr::from(*ip).to_canonical();
    message.ends_with(MARK).then(|| SocketAddr::new(ip, port))
}

/// The address without its port.
pub fn host(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _port)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_is_given_the_address_of_the_other_one() {
        let (connected, dials) = ("10.0.0.2:3888", "[fd00::9]:41000");
        let duplicate = Duplicate { connected: connected.to_owned(), dials: dials.to_owned() };
        let given = |peer: &str| {
            let message = duplicate.append(&Bytes::from_static(b"vote"), peer);
            assert!(message.starts_with(b"vote"));
            other_address(&message).map(|address| address.to_string())
        };
        for (peer, other) in [
            (connected, dials),
            (dials, connected),
            ("10.0.0.2:40000", dials),
            ("[fd00::9]:3888", connected),
            ("10.0.0.5:3888", dials),
        ] {
            assert_eq!(given(peer).as_deref(), Some(other), "{peer}");
        }
        assert_eq!(other_address(b"vote"), None);
        assert_eq!(other_address(&[&MARK[1..], &[0; ADDRESS_LEN]].concat()), None);
        let nameless = Duplicate { connected: String::new(), dials: String::new() };
        assert_eq!(nameless.append(&Bytes::from_static(b"vote"), connected), "vote");
    }
}
