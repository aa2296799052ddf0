//! How many connections a client port has, in all and from each address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

/// Connections per address (P-23).
#[derive(Default)]
pub(super) struct Counts {
    by_address: Mutex<(usize, HashMap<IpAddr, usize>)>,
}

/// One connection's place in the count.
pub(super) struct CountedConnection {
    counts: Arc<Counts>,
    address: IpAddr,
}

impl Counts {
    /// Takes a place in the count, or returns which limit is reached; 0 is no limit.
    pub fn enter(
        self: &Arc<Self>,
        address: IpAddr,
        per_address_max: usize,
        conns_max: usize,
    ) -> Result<CountedConnection, String> {
        let mut counts = self.by_address.lock().expect("a panic aborts");
        let (all, by_address) = &mut *counts;
        let own = by_address.get(&address).copied().unwrap_or(0);
        if per_address_max > 0 && own >= per_address_max {
            return Err(format!("maxClientCnxns={own} from {address}"));
        }
        if conns_max > 0 && *all >= conns_max {
            return Err(format!("maxCnxns={all}"));
        }
        by_address.insert(address, own + 1);
        *all += 1;
        Ok(CountedConnection { counts: self.clone(), address })
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut counts = self.counts.by_address.lock().expect("a panic aborts");
        let (all, by_address) = &mut *counts;
        *all -= 1;
        if let Some(own) = by_address.get_mut(&self.address) {
            *own -= 1;
            if *own == 0 {
                by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: P-23 C-111
    #[test]
    fn connections_are_limited_per_address_and_in_all() {
        let counts = Arc::new(Counts::default());
        let (a, b) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let first = counts.enter(a, 1, 0).unwrap();
        let refused =
            |address, per_address_max, max| counts.enter(address, per_address_max, max).err();
        assert_eq!(refused(a, 1, 0).unwrap(), "maxClientCnxns=1 from 10.0.0.1");
        let _other = counts.enter(b, 1, 2).unwrap();
        assert_eq!(refused(IpAddr::from([10, 0, 0, 3]), 1, 2).unwrap(), "maxCnxns=2");
        drop(first);
        assert!(counts.enter(a, 1, 2).is_ok());
        let kept = counts.by_address.lock().unwrap();
        assert_eq!((kept.0, kept.1.len()), (1, 1), "a refused place is not kept");
    }
}
