//! An access list prepared for checks: its entries are parsed once, when the list is made.

use super::ip_net::{IpNet, address};
use super::net_index::NetIndex;
use super::{Acl, Identity};
use core::ops::Deref;

/// Entries of a longer list are found by their identity or address, not one after the other.
const SORTED_FROM: usize = 16;

/// A list of access entries.
#[derive(Clone, Debug)]
pub struct AccessList {
    entries: Box<[Acl]>,
    /// What `world:anyone` may do.
    anyone: i32,
    /// Entries of scheme `ip`. An entry that is no address permits nothing: it can only come from a foreign log.
    nets: Nets,
    /// Places of the other entries in the order of their identities, each identity once with what all of its entries permit, if
    /// there are many entries.
    sorted: Box<[(u32, i32)]>,
}

#[derive(Clone, Debug)]
enum Nets {
    /// The networks, each with its permissions.
    Few(Box<[(i32, IpNet)]>),
    Many(Box<NetIndex>),
}

impl Nets {
    fn new(nets: Vec<(i32, IpNet)>) -> Self {
        match SORTED_FROM < nets.len() {
            true => Self::Many(Box::new(NetIndex::new(&nets))),
            false => Self::Few(nets.into()),
        }
    }
}

impl AccessList {
    pub fn new(entries: Vec<Acl>) -> Self {
        let is_ip = |entry: &&Acl| &*entry.who.scheme == "ip";
        let parsed = |entry: &Acl| Some((entry.perms, IpNet::parse(&entry.who.id)?));
        let nets = Nets::new(entries.iter().filter(is_ip).filter_map(parsed).collect());
        let anyone = entries.iter().filter(|entry| entry.who.is_anyone());
        let anyone = anyone.fold(0, |perms, entry| perms | entry.perms);
        let mut sorted = Vec::new();
        if SORTED_FROM < entries.len() {
            let others = entries.iter().enumerate().filter(|(_, entry)| !is_ip(entry));
            sorted.extend(others.map(|(at, entry)| (at as u32, entry.perms)));
            let who = |at: u32| &entries[at as usize].who;
            sorted.sort_by_key(|&(at, _)| who(at));
            sorted.dedup_by(|(later, more), (first, perms)| {
                let is_same = who(*later) == who(*first);
                *perms |= if is_same { *more } else { 0 };
                is_same
            });
        }
        Self { entries: entries.into(), anyone, nets, sorted: sorted.into() }
    }

    /// Whether every client has a permission of `wanted`.
    pub fn permits_anyone(&self, wanted: i32) -> bool {
        self.anyone & wanted != 0
    }

    /// Whether an entry names this address with a permission of `wanted`.
    ///
    /// * `peer`: the id of an identity of scheme `ip`.
    pub fn permits_address(&self, wanted: i32, peer: &str) -> bool {
        match &self.nets {
            Nets::Few(nets) if nets.is_empty() => false,
            Nets::Few(nets) => {
                let mut nets = nets.iter().filter(|(perms, _)| perms & wanted != 0);
                address(peer).is_some_and(|peer| nets.any(|(_, net)| net.contains(peer)))
            }
            Nets::Many(index) => address(peer).is_some_and(|peer| index.perms(peer) & wanted != 0),
        }
    }

    /// Whether an entry has exactly this identity, with a permission of `wanted`. Not for scheme `ip`.
    pub fn permits_identity(&self, wanted: i32, who: &Identity) -> bool {
        if self.entries.len() <= SORTED_FROM {
            return self.entries.iter().any(|entry| entry.perms & wanted != 0 && entry.who == *who);
        }
        let of = |&(at, _): &(u32, i32)| &self.entries[at as usize].who;
        let at = self.sorted.binary_search_by_key(&who, of);
        at.is_ok_and(|at| self.sorted[at].1 & wanted != 0)
    }
}

impl Deref for AccessList {
    type Target = [Acl];

    fn deref(&self) -> &[Acl] {
        &self.entries
    }
}

impl From<Vec<Acl>> for AccessList {
    fn from(entries: Vec<Acl>) -> Self {
        Self::new(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn entry(perms: i32, scheme: &str, id: &str) -> Acl {
        Acl { perms, who: Identity::new(scheme, id) }
    }

    #[test]
    fn long_list_permits_what_its_entries_permit_one_by_one() {
        let mut entries: Vec<Acl> = (0..40)
            .map(|n| match n % 4 {
                0 => entry(1 << (n % 5), "digest", &format!("u{}:h", n / 8)),
                1 => entry(2, "ip", &format!("10.0.{n}.0/24")),
                2 => entry(4, "key", ""),
                _ => entry(8, "ip", "not an address"),
            })
            .collect();
        entries.push(entry(16, "world", "anyone"));
        let long = AccessList::new(entries.clone());
        assert!(long.permits_anyone(16) && !long.permits_anyone(15));
        assert!(long.permits_address(2, "10.0.5.77") && !long.permits_address(2, "10.0.6.77"));
        assert!(!long.permits_address(8, "not an address"));
        for wanted in [1, 2, 4, 8, 16, 31] {
            for n in 0..8 {
                let who = Identity::new("digest", &format!("u{n}:h"));
                let has = |entry: &Acl| entry.perms & wanted != 0 && entry.who == who;
                assert_eq!(long.permits_identity(wanted, &who), entries.iter().any(has), "{n}");
            }
        }
    }

    /// Entries of scheme `ip`: of few different addresses, so that ranges contain and equal each other, and some of no address.
    fn nets() -> impl Strategy<Value = Vec<Acl>> {
        let v4 = (0u8..3, 0u8..3, 0u8..=33).prop_map(|(a, b, bits)| format!("{a}.0.{b}.1/{bits}"));
        let v6 = (0u8..3, 0u8..3, 0u8..=129).prop_map(|(a, b, bits)| format!("{a}::{b}:1/{bits}"));
        let whole = (0u8..3, 0u8..3).prop_map(|(a, b)| format!("{a}.0.{b}.1"));
        let id = prop_oneof![v4, v6, whole, Just("no address".to_owned())];
        vec((0i32..32, id).prop_map(|(perms, id)| entry(perms, "ip", &id)), 0..120)
    }

    proptest! {
        #[test]
        fn list_of_any_length_permits_addresses_that_its_entries_permit_one_by_one(entries in nets()) {
            let nets: Vec<(i32, IpNet)> = entries
                .iter()
                .filter_map(|entry| Some((entry.perms, IpNet::parse(&entry.who.id)?)))
                .collect();
            let list = AccessList::new(entries);
            for peer in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))).flat_map(|(a, b)| {
                [format!("{a}.0.{b}.1"), format!("{a}:0:0:0:0:0:{b}:1"), format!("{a}.{b}")]
            }) {
                for wanted in [1, 2, 4, 8, 16, 31] {
                    let contains = |peer| {
                        nets.iter().any(|(perms, net)| perms & wanted != 0 && net.contains(peer))
                    };
                    let permits = address(&peer).is_some_and(contains);
                    prop_assert_eq!(list.permits_address(wanted, &peer), permits, "{}", &peer);
                }
            }
        }

        #[test]
        fn list_of_any_length_permits_identities_that_its_entries_permit_one_by_one(
            entries in vec((0i32..32, 0u8..9), 0..60),
        ) {
            let id = |n: u8| format!("u{n}:h");
            let entries: Vec<Acl> =
                entries.into_iter().map(|(perms, n)| entry(perms, "digest", &id(n))).collect();
            let list = AccessList::new(entries.clone());
            for (n, wanted) in (0..10).flat_map(|n| [(n, 1), (n, 8), (n, 31)]) {
                let who = Identity::new("digest", &id(n));
                let has = |entry: &Acl| entry.perms & wanted != 0 && entry.who == who;
                prop_assert_eq!(list.permits_identity(wanted, &who), entries.iter().any(has));
            }
        }
    }
}
