//! Which hosts a certificate names, by the rules of ZooKeeper's `ZKHostnameVerifier`.
//!
//! If a certificate has a subjectAltName of type DNS or IP, only those names count; otherwise its common name does. One
//! asterisk stands for any characters but dots. There is no list of public suffixes.

use super::certificate::{Certificate, oid};
use super::der::{self, OBJECT_IDENTIFIER, SEQUENCE, SET};
use crate::model::read_utf8;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The names of hosts in a certificate.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostNames {
    pub dns: Vec<String>,
    pub addresses: Vec<IpAddr>,
    /// The common name in the last RDN of the subject that has one.
    pub common_name: Option<String>,
}

/// For log lines: every name that counts.
impl std::fmt::Display for HostNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let common_name = self.common_name.iter().filter(|_| !self.has_alternatives());
        let names: Vec<String> = (self.dns.iter().cloned())
            .chain(self.addresses.iter().map(IpAddr::to_string))
            .chain(common_name.cloned())
            .collect();
        f.write_str(if names.is_empty() { "no host" } else { "" })?;
        f.write_str(&names.join(", "))
    }
}

impl HostNames {
    /// The names of a certificate. Names after an encoding error in the extension are ignored.
    pub fn of(certificate: &Certificate<'_>) -> Self {
        let mut names = Self { common_name: common_name(certificate.subject), ..Self::default() };
        let list = certificate.extension(oid::ALTERNATIVE_NAMES);
        let mut list = list.and_then(|value| der::only(value, SEQUENCE)).unwrap_or_default();
        while let Some(name) = der::take(&mut list) {
            match (name.tag, name.content.len()) {
                (0x82, _) => names.dns.push(read_utf8(name.content).into_owned()),
                (0x87, 4) => {
                    let octets: Option<&[u8; 4]> = name.content.first_chunk();
                    names
                        .addresses
                        .extend(octets.map(|octets| IpAddr::V4(Ipv4Addr::from(*octets))));
                }
                (0x87, 16) => {
                    let octets: Option<&[u8; 16]> = name.content.first_chunk();
                    names
                        .addresses
                        .extend(octets.map(|octets| IpAddr::V6(Ipv6Addr::from(*octets))));
                }
                _ => {}
            }
        }
        names
    }

    fn has_alternatives(&self) -> bool {
        !self.dns.is_empty() || !self.addresses.is_empty()
    }

    /// Whether the certificate names this host: a name, or an address with or without brackets.
    ///
    /// Source: `ZKHostnameVerifier.verify`.
    pub fn fit(&self, host: &str) -> bool {
        let address = address(host);
        match (&self.common_name, address) {
            (_, Some(address)) if self.has_alternatives() => {
                self.addresses.iter().any(|ours| ours.to_canonical() == address)
            }
            _ if self.has_alternatives() => self.dns.iter().any(|name| name_fits(name, host)),
            (Some(name), address) => {
                let is_same = address.is_some() && name.parse().ok() == address;
                is_same || name_fits(name, host)
            }
            (None, _) => false,
        }
    }
}

/// An address as text, in its shortest form: an IPv4-mapped IPv6 address equals the IPv4 address.
fn address(host: &str) -> Option<IpAddr> {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match inner {
        Some(inner) => {
            inner.parse::<Ipv6Addr>().ok().map(|address| IpAddr::V6(address).to_canonical())
        }
        None => host.parse::<IpAddr>().ok().map(|address| address.to_canonical()),
    }
}

/// Compares without case; the first asterisk in `name` matches any characters of `host` but dots.
fn name_fits(name: &str, host: &str) -> bool {
    let (name, host) = (name.to_lowercase(), host.to_lowercase());
    match name.split_once('*') {
        None => name == host,
        Some((before, after)) => {
            let rest = host.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            rest.is_some_and(|rest| !rest.contains('.'))
        }
    }
}

/// The common name in the last RDN of `name` that has one; `None` if it is not text.
fn common_name(name: &[u8]) -> Option<String> {
    const COMMON_NAME: &[u8] = &[0x55, 4, 3];
    let mut found = None;
    let mut parts = der::only(name, SEQUENCE)?;
    while !parts.is_empty() {
        let mut pairs = der::take_tagged(&mut parts, SET)?;
        let mut first: Option<Option<String>> = None;
        while !pairs.is_empty() {
            let mut pair = der::take_tagged(&mut pairs, SEQUENCE)?;
            if der::take_tagged(&mut pair, OBJECT_IDENTIFIER)? == COMMON_NAME {
                let text = der::take(&mut pair).filter(|value| der::is_text(value.tag));
                let text = text.map(|value| read_utf8(value.content).into_owned());
                first = Some(first.map_or(text.clone(), |other| other.min(text)));
            }
        }
        found = first.or(found);
    }
    found.flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::x509::test_certificates::{Draft, alternative_names};

    fn fit(common_name: &str, names: &[(u8, &[u8])], host: &str) -> bool {
        let draft = Draft::new(common_name, "root");
        let draft = match names {
            [] => draft,
            names => draft.with(oid::ALTERNATIVE_NAMES, false, &alternative_names(names)),
        };
        let der = draft.der();
        HostNames::of(&Certificate::parse(&der).unwrap()).fit(host)
    }

    #[test]
    fn hosts_fit_as_in_zookeeper() {
        const DNS: u8 = 0x82;
        const ADDRESS: u8 = 0x87;
        const MAIL: u8 = 0x81;
        let loopback = &Ipv6Addr::LOCALHOST.octets()[..];
        let mapped = &Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped().octets()[..];
        /// Kind and bytes of a subject alternative name.
        type Name<'n> = (u8, &'n [u8]);
        let table: &[(&str, &[Name<'_>], &str, bool)] = &[
            ("zk1", &[], "zk1", true),
            ("zk1", &[], "ZK1", true),
            ("zk1", &[], "zk2", false),
            ("zk1", &[], "zk1.", false),
            ("10.0.0.1", &[], "10.0.0.1", true),
            ("10.0.0.1", &[], "10.0.0.2", false),
            ("::1", &[], "0:0:0:0:0:0:0:1", true),
            ("zk1", &[(DNS, b"zk2")], "zk1", false),
            ("zk1", &[(DNS, b"zk2")], "zk2", true),
            ("zk1", &[(MAIL, b"a@b")], "zk1", true),
            ("10.0.0.1", &[(DNS, b"zk2")], "10.0.0.1", false),
            ("zk1", &[(DNS, b"10.0.0.1")], "10.0.0.1", false),
            ("zk1", &[(ADDRESS, &[10, 0, 0, 1])], "10.0.0.1", true),
            ("zk1", &[(ADDRESS, &[10, 0, 0, 1])], "10.0.0.2", false),
            ("zk1", &[(ADDRESS, &[10, 0, 0, 1])], "zk1", false),
            ("zk1", &[(ADDRESS, mapped)], "10.0.0.1", true),
            ("zk1", &[(ADDRESS, loopback)], "::1", true),
            ("zk1", &[(ADDRESS, loopback)], "[0:0:0:0:0:0:0:1]", true),
            ("zk1", &[(ADDRESS, loopback)], "[::1", false),
            ("zk1", &[(DNS, b"a"), (DNS, b"ZK*.example.com")], "zk1.Example.com", true),
            ("zk1", &[(DNS, b"*.example.com")], "zk1.example.com", true),
            ("zk1", &[(DNS, b"*.example.com")], "a.b.example.com", false),
            ("zk1", &[(DNS, b"*.example.com")], "example.com", false),
            ("zk1", &[(DNS, b"*.*.com")], "a.b.com", false),
            ("zk1", &[(DNS, b"a*a")], "a", false),
            ("zk1", &[(DNS, b"*")], "zk1", true),
            ("*.com", &[], "example.com", true),
            ("", &[], "zk1", false),
        ];
        for (common_name, names, host, fits) in table {
            assert_eq!(fit(common_name, names, host), *fits, "{common_name} {names:?} {host}");
        }
    }
}
