//! Whether a peer is at a host that its certificate names.
//!
//! Pure: the check says which lookup it needs, and is given what the lookup has found.

use super::certificate::Certificate;
use super::host_names::HostNames;
use super::refusal::Refusal;
use core::net::IpAddr;
use std::collections::VecDeque;

/// The kind of a peer, and its address.
#[derive(Clone, Copy, Debug)]
pub enum Peer<'a> {
    /// This server dialed it; `host` is what its `server.N` line says.
    Dialed { address: IpAddr, host: &'a str },
    /// A member of the ensemble dialed; `hosts` are those of all `server.N` lines.
    Member { address: IpAddr, hosts: &'a [String] },
    /// A client dialed.
    Client { address: IpAddr },
}

/// What has to be looked up.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Lookup {
    /// Whether this host has this address now.
    Resolves { host: String, address: IpAddr },
    /// The names of this address.
    Names(IpAddr),
}

/// What a lookup has found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Found {
    Resolves(bool),
    Names(Vec<String>),
}

/// A host that the peer may be at.
enum Host {
    /// The host that was dialed, or the name of this machine: nothing is looked up.
    Known(String),
    /// A `server.N` line names it.
    OfMember(String),
    /// A reverse lookup has found it.
    Reversed(String),
}

/// The check of one peer.
///
/// Source: `ZKTrustManager.performHostVerification`; the comparison of a member that dialed with the `server.N` lines is our own.
pub struct HostCheck {
    names: HostNames,
    subject: String,
    address: IpAddr,
    /// The setting that asks for this check.
    setting: &'static str,
    /// The hosts that are still to be looked at.
    hosts: VecDeque<Host>,
    /// The one that a lookup is about.
    looked_up: Option<Host>,
    /// The names of the address are still to be asked for.
    may_reverse: bool,
    /// What the certificate does not name, for the refusal.
    tried: Vec<String>,
}

impl HostCheck {
    /// * `allows_reverse_dns`: names of the peer's address count too, if the peer has dialed.
    pub fn new(leaf: &Certificate<'_>, peer: Peer<'_>, allows_reverse_dns: bool) -> Self {
        let (address, setting) = match peer {
            Peer::Dialed { address, .. } => (address, "hostnameVerification"),
            Peer::Member { address, .. } | Peer::Client { address } => {
                (address, "clientHostnameVerification")
            }
        };
        let address = address.to_canonical();
        let mut hosts = VecDeque::from([Host::Known(address.to_string())]);
        match peer {
            Peer::Dialed { host, .. } => hosts.push_back(Host::Known(host.to_owned())),
            Peer::Member { hosts: of_members, .. } => {
                hosts.extend(of_members.iter().cloned().map(Host::OfMember));
            }
            Peer::Client { .. } if address.is_loopback() => {
                hosts.push_back(Host::Known("localhost".to_owned()));
            }
            Peer::Client { .. } => {}
        }
        Self {
            names: HostNames::of(leaf),
            subject: leaf.subject_text(),
            address,
            setting,
            hosts,
            looked_up: None,
            may_reverse: allows_reverse_dns && !matches!(peer, Peer::Dialed { .. }),
            tried: Vec::new(),
        }
    }

    /// Goes on until something has to be looked up; `None`: the peer is at a host that its certificate names.
    ///
    /// * `found`: by the lookup that was asked for last. `None` at the beginning.
    ///
    /// # Errors
    /// [`Refusal::OtherHost`].
    pub fn next(&mut self, found: Option<Found>) -> Result<Option<Lookup>, Refusal> {
        match (found, self.looked_up.take()) {
            (Some(Found::Resolves(true)), Some(_)) => return Ok(None),
            (Some(Found::Names(names)), None) => {
                self.hosts.extend(names.into_iter().map(Host::Reversed));
            }
            (_, Some(Host::OfMember(host))) => {
                let why = "in the certificate, but resolves to another address";
                self.tried.push(format!("{host} ({why})"));
            }
            (_, Some(Host::Known(host) | Host::Reversed(host))) => self.tried.push(host),
            (Some(Found::Resolves(_)) | None, None) => {}
        }
        while let Some(host) = self.hosts.pop_front() {
            let (Host::Known(name) | Host::OfMember(name) | Host::Reversed(name)) = &host;
            let (name, is_named) = (name.clone(), self.names.fit(name));
            match host {
                Host::Known(_) if is_named => return Ok(None),
                Host::OfMember(_) | Host::Reversed(_) if is_named => {
                    self.looked_up = Some(host);
                    return Ok(Some(Lookup::Resolves { host: name, address: self.address }));
                }
                Host::OfMember(_) => {} // Most members are not at this address.
                Host::Known(_) | Host::Reversed(_) => self.tried.push(name),
            }
        }
        if std::mem::take(&mut self.may_reverse) {
            return Ok(Some(Lookup::Names(self.address)));
        }
        Err(Refusal::OtherHost {
            subject: self.subject.clone(),
            names: self.names.to_string(),
            hosts: self.tried.join(", "),
            setting: self.setting,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::x509::test_certificates::{Draft, alternative_names};

    const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 17];

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// What a check asks, and how it ends: `Ok`, or the hosts that it tried. `found`: what the lookups find, in their order.
    fn checked(
        named: &str,
        peer: Peer<'_>,
        allows_reverse_dns: bool,
        found: &[Found],
    ) -> (Vec<Lookup>, Result<(), String>) {
        let draft = Draft::new("leaf", "root");
        let names = alternative_names(&[(0x82, named.as_bytes())]);
        let der = draft.with(ALTERNATIVE_NAMES, false, &names).der();
        let leaf = Certificate::parse(&der).unwrap();
        let mut check = HostCheck::new(&leaf, peer, allows_reverse_dns);
        let (mut asked, mut found) = (Vec::new(), found.iter().cloned());
        let mut last = None;
        let ended = loop {
            match check.next(last) {
                Ok(Some(lookup)) => asked.push(lookup),
                Ok(None) => break Ok(()),
                Err(Refusal::OtherHost { hosts, .. }) => break Err(hosts),
                Err(refusal) => panic!("{refusal}"),
            }
            last = Some(found.next().expect("an answer for each lookup"));
        };
        assert_eq!(found.next(), None, "an answer that nobody asked for");
        (asked, ended)
    }

    fn resolves(host: &str) -> Lookup {
        Lookup::Resolves { host: host.to_owned(), address: address("10.0.0.1") }
    }

    #[test]
    fn dialed_peer_is_compared_without_any_lookup() {
        let peer = Peer::Dialed { address: address("::ffff:10.0.0.1"), host: "zk1" };
        assert_eq!(checked("zk1", peer, true, &[]), (vec![], Ok(())));
        assert_eq!(checked("zk2", peer, true, &[]), (vec![], Err("10.0.0.1, zk1".to_owned())));
    }

    #[test]
    fn named_member_passes_if_its_host_resolves_to_the_caller() {
        let hosts = ["zk2".to_owned(), "zk1".to_owned()];
        let peer = Peer::Member { address: address("10.0.0.1"), hosts: &hosts };
        let yes = [Found::Resolves(true)];
        assert_eq!(checked("zk1", peer, false, &yes), (vec![resolves("zk1")], Ok(())));
        let other = "10.0.0.1, zk1 (in the certificate, but resolves to another address)";
        let no = [Found::Resolves(false)];
        let refused = Err(other.to_owned());
        assert_eq!(checked("zk1", peer, false, &no), (vec![resolves("zk1")], refused));
        assert_eq!(checked("zk3", peer, false, &[]), (vec![], Err("10.0.0.1".to_owned())));
    }

    #[test]
    fn name_of_an_address_counts_only_if_it_resolves_to_it_again() {
        let peer = Peer::Client { address: address("10.0.0.1") };
        let names = Found::Names(vec!["other".to_owned(), "client".to_owned()]);
        let asked = vec![Lookup::Names(address("10.0.0.1")), resolves("client")];
        let found = [names.clone(), Found::Resolves(true)];
        assert_eq!(checked("client", peer, true, &found), (asked.clone(), Ok(())));
        let found = [names, Found::Resolves(false)];
        let refused = Err("10.0.0.1, other, client".to_owned());
        assert_eq!(checked("client", peer, true, &found), (asked, refused));
        assert_eq!(checked("client", peer, false, &[]), (vec![], Err("10.0.0.1".to_owned())));
        let none = [Found::Names(Vec::new())];
        let asked = vec![Lookup::Names(address("10.0.0.1"))];
        assert_eq!(checked("client", peer, true, &none), (asked, Err("10.0.0.1".to_owned())));
    }

    #[test]
    fn client_of_this_machine_may_be_named_localhost() {
        let near = Peer::Client { address: address("127.0.0.1") };
        assert_eq!(checked("localhost", near, false, &[]), (vec![], Ok(())));
        let far = Peer::Client { address: address("10.0.0.1") };
        assert_eq!(checked("localhost", far, false, &[]), (vec![], Err("10.0.0.1".to_owned())));
    }
}
