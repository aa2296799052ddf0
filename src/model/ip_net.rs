//! Ids of the `ip` scheme: `address` or `address/bits` (U-07), read as Java reads them.

use core::net::IpAddr;

/// An address range: an address and how many of its first bits count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IpNet {
    address: IpAddr,
    bits: u8,
}

impl IpNet {
    /// `None`: the scheme does not accept such an id in a list.
    pub fn parse(id: &str) -> Option<Self> {
        let (text, bits) = match id.split_once('/') {
            Some((text, bits)) => (text, Some(bits)),
            None => (id, None),
        };
        let address = address(text)?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => u8::try_from(bits.parse::<i32>().ok()?).ok()?,
            None => bits_max,
        };
        (bits <= bits_max).then_some(Self { address, bits })
    }

    /// An address in it; bits after the first [`Self::bits`] do not count.
    pub const fn address(self) -> IpAddr {
        self.address
    }

    pub const fn bits(self) -> u8 {
        self.bits
    }

    pub fn contains(self, peer: IpAddr) -> bool {
        let bits = u32::from(self.bits);
        match (self.address, peer) {
            (IpAddr::V4(net), IpAddr::V4(peer)) => {
                (net.to_bits() ^ peer.to_bits()).checked_shr(32 - bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(net), IpAddr::V6(peer)) => {
                (net.to_bits() ^ peer.to_bits()).checked_shr(128 - bits).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// An address as an identity of scheme `ip` has it. Signs and leading zeros are accepted, an IPv4 address inside an IPv6 one is not.
///
/// Source: `IPAuthenticationProvider.addr2Bytes`.
pub fn address(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return v6(text).map(IpAddr::from);
    }
    let mut parts = text.split('.').map(|part| u8::try_from(part.parse::<i32>().ok()?).ok());
    let mut next = || parts.next().flatten();
    let bytes = [next()?, next()?, next()?, next()?];
    parts.next().is_none().then(|| IpAddr::from(bytes))
}

fn v6(text: &str) -> Option<[u8; 16]> {
    let (before, after) = match text.split_once("::") {
        None => (groups(text)?, Vec::new()),
        Some((_, after)) if after.contains("::") => return None,
        Some((before, after)) => (groups(before)?, groups(after)?),
    };
    let given = before.len() + after.len();
    if if text.contains("::") { given >= 16 } else { given != 16 } {
        return None;
    }
    [before, vec![0; 16 - given], after].concat().try_into().ok()
}

fn groups(text: &str) -> Option<Vec<u8>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let mut bytes = Vec::new();
    for group in text.split(':') {
        if group.len() > 4 {
            return None;
        }
        bytes.extend((i32::from_str_radix(group, 16).ok()? as u16).to_be_bytes());
    }
    Some(bytes)
}
