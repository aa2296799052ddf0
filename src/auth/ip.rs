//! The `ip` scheme: `address` or `address/bits` (U-07).

use core::net::IpAddr;

/// Whether `id` is something the scheme accepts in a list.
pub fn is_valid(id: &str) -> bool {
    parse(id).is_some()
}

/// Whether a peer's address lies in the net that a list names.
pub fn matches(peer: &str, net: &str) -> bool {
    let (Ok(peer), Some((net, bits))) = (peer.parse::<IpAddr>(), parse(net)) else { return false };
    match (peer, net) {
        (IpAddr::V4(peer), IpAddr::V4(net)) => same_start(&peer.octets(), &net.octets(), bits),
        (IpAddr::V6(peer), IpAddr::V6(net)) => same_start(&peer.octets(), &net.octets(), bits),
        _ => false,
    }
}

fn parse(id: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = match id.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (id, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(bits_max), |bits| bits.parse().ok())?;
    (bits <= bits_max).then_some((address, bits))
}

fn same_start(a: &[u8], b: &[u8], bits: u32) -> bool {
    let (whole, rest) = (bits as usize / 8, bits % 8);
    a[..whole] == b[..whole] && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nets() {
        assert!(matches("10.1.2.3", "10.1.0.0/16"));
        assert!(!matches("10.2.2.3", "10.1.0.0/16"));
        assert!(matches("10.1.2.3", "0.0.0.0/0"));
        assert!(matches("10.1.2.3", "10.1.2.3"));
        assert!(matches("2001:db8::1", "2001:db8::/33"));
        assert!(!matches("2001:db8:8000::1", "2001:db8::/33"));
        assert!(!is_valid("10.0.0.0/33") && !is_valid("10.0.0") && is_valid("::1/128"));
    }
}
