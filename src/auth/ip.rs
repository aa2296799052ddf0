//! The `ip` scheme: how the address of a peer is written. How lists name addresses is `model::IpNet`.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{IpNet, ip_address};

    fn matches(peer: &str, net: &str) -> bool {
        IpNet::parse(net).unwrap().contains(ip_address(peer).unwrap())
    }

    fn is_valid(id: &str) -> bool {
        IpNet::parse(id).is_some()
    }

    // rows: U-07
    #[test]
    fn address_ranges_match_by_their_first_bits() {
        assert!(matches("10.1.2.3", "10.1.0.0/16"));
        assert!(!matches("10.2.2.3", "10.1.0.0/16"));
        assert!(matches("10.1.2.3", "0.0.0.0/0"));
        assert!(matches("10.1.2.3", "10.1.2.3"));
        assert!(matches("2001:db8:0:0:0:0:0:1", "2001:db8::/33"));
        assert!(!matches("2001:db8:8000:0:0:0:0:1", "2001:db8::/33"));
        // Prefixes that end inside a byte.
        assert!(matches("10.1.2.3", "10.1.2.0/22") && matches("10.1.3.3", "10.1.0.0/22"));
        assert!(!matches("10.1.4.3", "10.1.0.0/22") && matches("10.1.4.3", "10.1.0.0/21"));
        assert!(matches("10.1.2.127", "10.1.2.0/25") && !matches("10.1.2.128", "10.1.2.0/25"));
        assert!(!matches("10.1.2.3", "::/0") && !matches("0:0:0:0:0:0:0:1", "0.0.0.0/0"));
    }

    // rows: U-07
    #[test]
    fn lists_accept_the_addresses_that_java_accepts() {
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
