//! An access list as it is asked: what is read of its entries once, when the list is made.

use super::ip_net::{IpNet, address};
use super::{Acl, Identity};
use core::ops::Deref;

/// Entries of a longer list are found by their identity, not one after the other.
const SORTED_FROM: usize = 16;

/// A list of access entries.
#[derive(Clone, Debug)]
pub struct AccessList {
    entries: Box<[Acl]>,
    /// What `world:anyone` may do.
    anyone: i32,
    /// Entries of scheme `ip` with their permissions. An entry that is no address permits nothing: it can only come from a
    /// foreign log.
    nets: Box<[(i32, IpNet)]>,
    /// Places of the other entries in the order of their identities, if there are many entries.
    sorted: Box<[u32]>,
}

impl AccessList {
    pub fn new(entries: Vec<Acl>) -> Self {
        let is_ip = |entry: &&Acl| &*entry.who.scheme == "ip";
        let parsed = |entry: &Acl| Some((entry.perms, IpNet::parse(&entry.who.id)?));
        let nets = entries.iter().filter(is_ip).filter_map(parsed).collect();
        let anyone = entries.iter().filter(|entry| entry.who.is_anyone());
        let anyone = anyone.fold(0, |perms, entry| perms | entry.perms);
        let mut sorted = Vec::new();
        if SORTED_FROM < entries.len() {
            let others = entries.iter().enumerate().filter(|(_, entry)| !is_ip(entry));
            sorted.extend(others.map(|(at, _)| at as u32));
            sorted.sort_by_key(|&at| &entries[at as usize].who);
        }
        Self { entries: entries.into(), anyone, nets, sorted: sorted.into() }
    }

    /// Whether everybody has a permission of `wanted`.
    pub fn permits_anyone(&self, wanted: i32) -> bool {
        self.anyone & wanted != 0
    }

    /// Whether an entry names this address with a permission of `wanted`.
    ///
    /// * `peer`: the id of an identity of scheme `ip`.
    pub fn permits_address(&self, wanted: i32, peer: &str) -> bool {
        let mut nets = self.nets.iter().filter(|(perms, _)| perms & wanted != 0);
        !self.nets.is_empty()
            && address(peer).is_some_and(|peer| nets.any(|(_, net)| net.contains(peer)))
    }

    /// Whether an entry has exactly this identity, with a permission of `wanted`. Not for scheme `ip`.
    pub fn permits_identity(&self, wanted: i32, who: &Identity) -> bool {
        if self.entries.len() <= SORTED_FROM {
            return self.entries.iter().any(|entry| entry.perms & wanted != 0 && entry.who == *who);
        }
        let entry = |&at: &u32| &self.entries[at as usize];
        let from = self.sorted.partition_point(|at| entry(at).who < *who);
        let same = self.sorted[from..].iter().map(entry).take_while(|entry| entry.who == *who);
        same.fold(0, |perms, entry| perms | entry.perms) & wanted != 0
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
}
