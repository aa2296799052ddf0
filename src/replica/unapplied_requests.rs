//! Requests of learners' clients between their arrival at the leader and their commit, in bytes.
//!
//! An oxkeeper server lets its clients have about 64 MiB outstanding, and a Java server 1000 requests. Nothing makes any other program
//! that speaks the protocol wait for answers, and what it sends would pile up here and in the connections to all learners. So the
//! connection of a learner that goes on above the limit is closed.

use crate::model::{ServerId, Zxid};
use std::collections::{BTreeMap, VecDeque};

/// What a request takes in memory in addition to its transaction, approximately.
pub(super) const OVERHEAD_BYTES: u64 = 256;
/// Limit on the requests of a member.
const OF_MEMBER_MAX: u64 = 192 << 20;
/// Limit on those of all servers in no configuration.
const OF_STRANGERS_MAX: u64 = 96 << 20;

/// Bytes of such requests by the member that forwarded them; `None`: servers in no configuration. They count after the end of the
/// connection, too, until they are committed.
#[derive(Default)]
pub struct UnappliedRequests {
    bytes: BTreeMap<Option<ServerId>, u64>,
    in_order: VecDeque<(Zxid, Option<ServerId>, u64)>,
}

impl UnappliedRequests {
    /// Whether one more request may be processed.
    ///
    /// * `committed`: everything through it is committed.
    ///
    /// # Errors
    /// Why the connection is closed instead.
    pub fn admit(&mut self, of: Option<ServerId>, committed: Zxid) -> Result<(), String> {
        while let Some((_, of, bytes)) = self.in_order.pop_front_if(|(at, ..)| *at <= committed) {
            let Some(all) = self.bytes.get_mut(&of) else { continue };
            *all -= bytes;
            if *all == 0 {
                self.bytes.remove(&of);
            }
        }
        let (max, whose) = match of {
            Some(_) => (OF_MEMBER_MAX, "its requests"),
            None => (OF_STRANGERS_MAX, "requests of servers in no configuration"),
        };
        let bytes = self.bytes.get(&of).copied().unwrap_or(0);
        if max <= bytes {
            return Err(format!("{bytes} bytes of {whose} are not committed, the limit is {max}"));
        }
        Ok(())
    }

    /// A request is proposed.
    ///
    /// * `len`: bytes of its transaction.
    pub fn note(&mut self, of: Option<ServerId>, zxid: Zxid, len: usize) {
        let bytes = len as u64 + OVERHEAD_BYTES;
        *self.bytes.entry(of).or_default() += bytes;
        self.in_order.push_back((zxid, of, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_above_the_limit_are_refused_until_earlier_ones_are_committed() {
        let mut requests = UnappliedRequests::default();
        let (one, two) = (Some(ServerId(1)), Some(ServerId(2)));
        let at = Zxid::from_wire;
        let (mut zxid, mib) = (0, 1 << 20);
        for (of, max) in [(one, 192), (two, 192), (None, 96)] {
            for _ in 0..max {
                requests.admit(of, Zxid::ZERO).unwrap();
                zxid += 1;
                requests.note(of, at(zxid).unwrap(), mib);
            }
            assert!(requests.admit(of, Zxid::ZERO).is_err());
        }
        // What small requests take in addition to their bytes counts, too; the first of a member's is committed.
        requests.admit(one, at(1).unwrap()).unwrap();
        assert!(requests.admit(two, at(1).unwrap()).is_err());
        requests.admit(two, at(zxid).unwrap()).unwrap();
        assert!(requests.bytes.is_empty() && requests.in_order.is_empty());
    }
}
