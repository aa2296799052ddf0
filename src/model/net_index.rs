//! Many address ranges with their permissions, found without comparing an address with each of them.

use super::ip_net::IpNet;
use core::net::IpAddr;
use std::collections::BTreeMap;

/// Ranges by family and length of their prefix: an address is looked up once for each length, 33 times at most for IPv4 and 129 times
/// for IPv6.
#[derive(Clone, Debug)]
pub struct NetIndex {
    v4: Box<[Prefixes]>,
    v6: Box<[Prefixes]>,
}

/// All ranges of one length.
#[derive(Clone, Debug)]
struct Prefixes {
    bits: u8,
    /// In rising order, each once. The bits that do not count are 0.
    addresses: Box<[u128]>,
    /// The permissions of each range, by all of its entries together.
    perms: Box<[i32]>,
}

impl NetIndex {
    pub fn new(nets: &[(i32, IpNet)]) -> Self {
        let of_family = |is_v4: bool| {
            let mut all: BTreeMap<u8, BTreeMap<u128, i32>> = BTreeMap::new();
            for (perms, net) in nets.iter().filter(|(_, net)| net.address().is_ipv4() == is_v4) {
                let address = prefix(number(net.address()), net.bits());
                *all.entry(net.bits()).or_default().entry(address).or_default() |= perms;
            }
            all.into_iter().map(|(bits, nets)| Prefixes::new(bits, &nets)).collect()
        };
        Self { v4: of_family(true), v6: of_family(false) }
    }

    /// The permissions that all ranges with this address give together.
    pub fn perms(&self, peer: IpAddr) -> i32 {
        let family = if peer.is_ipv4() { &self.v4 } else { &self.v6 };
        family.iter().fold(0, |perms, prefixes| perms | prefixes.perms(number(peer)))
    }
}

impl Prefixes {
    fn new(bits: u8, nets: &BTreeMap<u128, i32>) -> Self {
        let (addresses, perms) = (nets.keys().copied().collect(), nets.values().copied().collect());
        Self { bits, addresses, perms }
    }

    fn perms(&self, address: u128) -> i32 {
        let at = self.addresses.binary_search(&prefix(address, self.bits));
        at.map_or(0, |at| self.perms[at])
    }
}

/// The bits of an address, from the highest bit of the number on.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The first bits of an address, followed by zeros.
fn prefix(address: u128, bits: u8) -> u128 {
    address & u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)
}
