//! What a server's configuration says about its tree.

use crate::model::{CONTAINER, Owner, TTL_MAX_MS};

/// Settings of a tree, which stay the same from start to end.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seed of all hashes: random in a server, fixed in a simulation.
    pub seed: u64,
    /// `zookeeper.digest.enabled`.
    pub digest: bool,
    /// `zookeeper.extendedTypesEnabled`.
    pub extended_types: bool,
    /// `zookeeper.emulate353TTLNodes`: TTL znodes of release 3.5.3 are known too, if extended types are.
    pub emulate_353: bool,
}

impl Options {
    /// The owner of a znode, by its stored ephemeralOwner.
    pub const fn owner(&self, raw: i64) -> Owner {
        let is_353 = self.extended_types && self.emulate_353 && raw < 0 && raw != CONTAINER;
        if is_353 { Owner::Ttl(raw & TTL_MAX_MS) } else { Owner::decode(raw, self.extended_types) }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 0, digest: true, extended_types: false, emulate_353: false }
    }
}
