//! Epochs and zxids.

use std::fmt;

/// The number of a leader's epoch: the high half of every zxid that the leader assigns.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Epoch(pub u32);

/// The two epochs of a member.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Epochs {
    /// The epoch that the member promised: it joins no leader of an earlier one (`acceptedEpoch`).
    pub accepted: Epoch,
    /// The epoch whose leader the member last synchronised with (`currentEpoch`).
    pub current: Epoch,
}

impl Epochs {
    /// Both are `epoch`.
    pub const fn both(epoch: Epoch) -> Self {
        Self { accepted: epoch, current: epoch }
    }
}

impl Epoch {
    /// The last epoch that may begin: a zxid is a signed number on the wire, and one more epoch must be representable.
    pub const LAST: Self = Self(i32::MAX as u32 - 1);

    /// The epoch that the next leader opens; `None`: this is the last.
    pub const fn next(self) -> Option<Self> {
        if self.0 < Self::LAST.0 { Some(Self(self.0 + 1)) } else { None }
    }

    /// Whether a server at this epoch believes another server that claims to have promised `other`. The last epoch is believed
    /// only by a server that is there itself: after it no epoch can be opened.
    ///
    /// * `leap_max`: `other` may be greater by so much.
    pub const fn may_reach(self, other: Self, leap_max: u32) -> bool {
        let is_before_last = other.0 < Self::LAST.0 || other.0 == self.0;
        is_before_last && other.0.saturating_sub(self.0) <= leap_max
    }
}

/// Place of one transaction in the agreed history: leader epoch (high 32 bits), counter (low 32).
///
/// Order is numeric, so anything from a newer epoch sorts after everything from an older one.
/// Never negative: the wire's sentinels (-1, `Long.MIN`) become `None` where they are parsed, and
/// `Option<Zxid>` sorts `None` before any zxid, as Java's signed compare does.
#[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Zxid(u64);

impl Zxid {
    pub const ZERO: Self = Self(0);
    /// Counter of an epoch's last transaction: all ones are never proposed (Leader.propose, ZOOKEEPER-1277).
    pub const COUNTER_MAX: u32 = u32::MAX - 1;

    pub const fn new(epoch: Epoch, counter: u32) -> Self {
        Self((epoch.0 as u64) << 32 | counter as u64)
    }

    /// Reads a zxid from the wire or a file; `None` for a negative one.
    pub const fn from_wire(raw: i64) -> Option<Self> {
        if raw < 0 { None } else { Some(Self(raw as u64)) }
    }

    /// The zxid as on the wire and in files.
    pub const fn to_wire(self) -> i64 {
        self.0 as i64
    }

    pub const fn epoch(self) -> Epoch {
        Epoch((self.0 >> 32) as u32)
    }

    pub const fn counter(self) -> u32 {
        self.0 as u32
    }

    /// The next zxid on a standalone server, which has no epochs and counts on into the upper half.
    ///
    /// `None` at the end of the wire's range.
    pub const fn plus_one(self) -> Option<Self> {
        if self.0 < i64::MAX as u64 { Some(Self(self.0 + 1)) } else { None }
    }

    /// The next zxid of a leader. `None` when the epoch is used up: its leader must step down so that an election opens the next.
    pub const fn next(self) -> Option<Self> {
        if self.0 as u32 >= Self::COUNTER_MAX { None } else { Some(Self(self.0 + 1)) }
    }
}

impl fmt::Display for Zxid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for Zxid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:{:x}", self.0 >> 32, self.0 as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epoch_sorts_before_counter() {
        assert!(Zxid::new(Epoch(1), u32::MAX) < Zxid::new(Epoch(2), 0));
        assert!(None < Some(Zxid::ZERO));
    }

    #[test]
    fn last_epoch_has_no_next_and_is_believed_only_by_a_server_in_it() {
        let before = Epoch(Epoch::LAST.0 - 1);
        assert_eq!((before.next(), Epoch::LAST.next()), (Some(Epoch::LAST), None));
        assert_eq!(Epoch(u32::MAX).next(), None);
        assert!(Epoch::LAST.may_reach(Epoch::LAST, 0) && Epoch::LAST.may_reach(Epoch(0), 0));
        assert!(!before.may_reach(Epoch::LAST, u32::MAX));
        assert!(Epoch(1).may_reach(Epoch(8), 7) && !Epoch(1).may_reach(Epoch(9), 7));
        assert!(!Epoch(0).may_reach(Epoch(u32::MAX), u32::MAX));
    }

    #[test]
    fn all_ones_counter_is_never_assigned() {
        assert_eq!(Zxid::new(Epoch(3), 7).next(), Some(Zxid::new(Epoch(3), 8)));
        assert_eq!(Zxid::new(Epoch(3), u32::MAX - 1).next(), None);
        assert_eq!(Zxid::from_wire(-1), None);
        // A standalone server must not stop after 2^32 transactions.
        assert_eq!(Zxid::new(Epoch(3), u32::MAX).plus_one(), Some(Zxid::new(Epoch(4), 0)));
    }
}
