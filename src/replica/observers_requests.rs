//! Requests of a follower's observers between their way to the leader and their commit, in bytes.
//!
//! The leader counts them as the follower's, with those of its own clients, and closes the follower's connection above
//! [its limit](super::unapplied_requests): 192 MiB. The follower's clients have about 64 MiB of it. So the connection of an
//! observer that goes on above these limits is closed.
//!
//! The leader's SYNC shows which requests are committed: it is sent when all requests before the sync are. So the follower
//! sends a sync of its own after some bytes of requests. Answers by transaction would not do: a leader need not answer each
//! request by one, and a stranger can send the same session and xid by other ways.

use super::unapplied_requests::OVERHEAD_BYTES;
use std::collections::VecDeque;

/// Limit on the requests of all observers in the configuration: one oxkeeper server lets its clients have about 64 MiB.
const OF_MEMBERS_MAX: u64 = 80 << 20;
/// Limit on those of all servers in no configuration.
const OF_STRANGERS_MAX: u64 = 32 << 20;
/// After this many bytes the leader is sent a sync.
const FENCE_BYTES: u64 = 4 << 20;

/// Bytes of requests.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Bytes {
    members: u64,
    strangers: u64,
}

impl Bytes {
    const fn of(&mut self, is_member: bool) -> &mut u64 {
        if is_member { &mut self.members } else { &mut self.strangers }
    }
}

/// Bytes of such requests and syncs. They count after the end of the observer's connection, too, until they are committed.
#[derive(Default)]
pub struct ObserversRequests {
    all: Bytes,
    /// Bytes after the last sync.
    unfenced: Bytes,
    /// Bytes before each sync that the leader has not answered, and after the sync before it.
    fenced: VecDeque<Bytes>,
}

impl ObserversRequests {
    /// Counts a request. Returns whether the leader has to be sent a sync after it.
    ///
    /// * `is_member`: the observer is in a configuration. * `len`: bytes of the request and its identities.
    ///
    /// # Errors
    /// Why the connection is closed instead.
    pub fn admit(&mut self, is_member: bool, len: usize) -> Result<bool, String> {
        let (max, whose) = match is_member {
            true => (OF_MEMBERS_MAX, "this server's observers"),
            false => (OF_STRANGERS_MAX, "observers in no configuration"),
        };
        let (bytes, all) = (len as u64 + OVERHEAD_BYTES, self.all.of(is_member));
        if max < *all + bytes {
            return Err(format!(
                "{all} bytes of requests of {whose} are not committed, the limit is {max}"
            ));
        }
        *all += bytes;
        *self.unfenced.of(is_member) += bytes;
        if self.unfenced.members + self.unfenced.strangers < FENCE_BYTES {
            return Ok(false);
        }
        self.fenced.push_back(std::mem::take(&mut self.unfenced));
        Ok(true)
    }

    /// The leader has answered the next sync.
    pub fn committed(&mut self) {
        let Some(done) = self.fenced.pop_front() else { return };
        self.all.members -= done.members;
        self.all.strangers -= done.strangers;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = (1 << 20) - OVERHEAD_BYTES as usize;

    #[test]
    fn requests_of_observers_above_the_limit_are_refused_until_earlier_ones_are_committed() {
        let mut requests = ObserversRequests::default();
        let mut syncs = 0;
        for (is_member, max) in [(false, 32), (true, 80)] {
            for _ in 0..max {
                syncs += usize::from(requests.admit(is_member, LEN).unwrap());
            }
            assert!(requests.admit(is_member, 0).is_err(), "its overhead counts, too");
        }
        assert_eq!(syncs, 28, "one for each 4 MiB");
        requests.committed();
        for _ in 0..4 {
            requests.admit(false, LEN).unwrap();
        }
        assert!(requests.admit(false, LEN).is_err());
        assert!(requests.admit(true, LEN).is_err(), "no room was made for members");
        (0..28).for_each(|_| requests.committed());
        assert_eq!((requests.all, requests.fenced.len()), (Bytes::default(), 0));
        assert!(!requests.admit(true, LEN).unwrap());
    }
}
