//! The `ip` scheme: `address` or `address/bits` (U-07), read as Java reads it.

use core::net::IpAddr;
use std::fmt::Write;

/// The address of a peer as Java writes it, which clients see in whoAmI: IPv6 with all of its eight groups.
pub fn text(peer: IpAddr) -> String {
    match peer.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let mut text = String::new();
            for (at, group) in address.segments().into_iter().enumerate() {
                let colon = if at == 0 { "" } else { ":" };
                write!(text, "{colon}{group:x}").expect("a string takes all that is written");
            }
            text
        }
    }
}

/// Whether `id` is something the scheme accepts in a list.
pub fn is_valid(id: &str) -> bool {
    parse(id).is_some()
}

/// Whether a peer's address lies in the net that a list names.
pub fn matches(peer: &str, net: &str) -> bool {
    let (Some(peer), Some((net, bits))) = (address(peer), parse(net)) else { return false };
    peer.len() == net.len() && same_start(&peer, &net, bits)
}

fn parse(id: &str) -> Option<(Vec<u8>, usize)> {
    let (text, bits) = match id.split_once('/') {
        Some((text, bits)) => (text, Some(bits)),
        None => (id, None),
    };
    let address = address(text)?;
    let bits_max = address.len() * 8;
    let bits = match bits {
        Some(bits) => usize::try_from(bits.parse::<i32>().ok()?).ok()?,
        None => bits_max,
    };
    (bits <= bits_max).then_some((address, bits))
}

/// Four bytes or sixteen. Signs and leading zeros are no fault, an IPv4 address inside an IPv6 one is.
///
/// Source: `IPAuthenticationProvider.addr2Bytes`.
fn address(text: &str) -> Option<Vec<u8>> {
    if text.contains(':') {
        return v6(text);
    }
    let bytes: Option<Vec<u8>> = text
        .split('.')
        .map(|part| part.parse::<i32>().ok().and_then(|value| u8::try_from(value).ok()))
        .collect();
    bytes.filter(|bytes| bytes.len() == 4)
}

fn v6(text: &str) -> Option<Vec<u8>> {
    let (before, after) = match text.split_once("::") {
        None => (groups(text)?, Vec::new()),
        Some((_, after)) if after.contains("::") => return None,
        Some((before, after)) => (groups(before)?, groups(after)?),
    };
    let given = before.len() + after.len();
    if if text.contains("::") { given >= 16 } else { given != 16 } {
        return None;
    }
    Some([before, vec![0; 16 - given], after].concat())
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

fn same_start(a: &[u8], b: &[u8], bits: usize) -> bool {
    let (whole, rest) = (bits / 8, bits % 8);
    a[..whole] == b[..whole] && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: U-07
    #[test]
    fn nets() {
        assert!(matches("10.1.2.3", "10.1.0.0/16"));
        assert!(!matches("10.2.2.3", "10.1.0.0/16"));
        assert!(matches("10.1.2.3", "0.0.0.0/0"));
        assert!(matches("10.1.2.3", "10.1.2.3"));
        assert!(matches("2001:db8:0:0:0:0:0:1", "2001:db8::/33"));
        assert!(!matches("2001:db8:8000:0:0:0:0:1", "2001:db8::/33"));
        // The last byte that counts does so in part.
        assert!(matches("10.1.2.3", "10.1.2.0/22") && matches("10.1.3.3", "10.1.0.0/22"));
        assert!(!matches("10.1.4.3", "10.1.0.0/22") && matches("10.1.4.3", "10.1.0.0/21"));
        assert!(matches("10.1.2.127", "10.1.2.0/25") && !matches("10.1.2.128", "10.1.2.0/25"));
        assert!(!matches("10.1.2.3", "::/0") && !matches("0:0:0:0:0:0:0:1", "0.0.0.0/0"));
    }

    // rows: U-07
    #[test]
    fn lists_take_what_java_takes() {
        for id in [
            "10.0.0.0/+8",
            "010.0.0.1",
            "+1.2.3.4",
            "1.2.3.4/0",
            "::",
            "::1/128",
            "1::",
            "a:b::c",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6::8",
            "::-1",
            "::1:2:3:4:5:6:7",
        ] {
            assert!(is_valid(id), "{id}");
        }
        for id in [
            "",
            "10.0.0",
            "10.0.0.0.1",
            "10.0.0.256",
            "10.0.0.-1",
            "10.0.0.0/33",
            "10.0.0.0/-1",
            "10.0.0.0/",
            "10.0.0.0/8/8",
            "host",
            ":",
            "1:2:3",
            "::1::",
            ":::",
            "12345::",
            "::ffff:1.2.3.4",
            "::1/129",
            "fe80::1%eth0",
            "1:2:3:4:5:6:7:8:9",
            "1:2:3:4:5:6:7::8",
        ] {
            assert!(!is_valid(id), "{id}");
        }
        assert!(matches("10.0.0.1", "010.0.0.01") && matches("0:0:0:0:0:0:0:ffff", "::-1"));
    }

    // rows: P-23a
    #[test]
    fn peers_are_written_as_java_does() {
        let text = |address: &str| text(address.parse().unwrap());
        assert_eq!(text("::ffff:127.0.0.1"), "127.0.0.1");
        assert_eq!(text("::1"), "0:0:0:0:0:0:0:1");
        assert_eq!(text("2001:db8::ff"), "2001:db8:0:0:0:0:0:ff");
    }
}
