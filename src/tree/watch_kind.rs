//! Watchers, the kinds of watches they set, and what makes a watch fire.

/// A connection that watches; chosen by `request`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct WatcherId(pub u32);

/// Kinds of watches, as bits: one watcher may have several on a path (P-76).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WatchKind(pub(super) u8);

impl WatchKind {
    /// Set by getData and exists; fires once on creation, change and deletion.
    pub const DATA: Self = Self(1);
    /// Set by getChildren; fires once on a change of children and on deletion.
    pub const CHILD: Self = Self(2);
    /// Set by addWatch; fires on all of these, as often as they happen.
    pub const PERSISTENT: Self = Self(4);
    /// Set by addWatch; fires on creation, change and deletion of the path and of all below it.
    pub const RECURSIVE: Self = Self(8);
    /// All kinds: for queries and removals.
    pub const ANY: Self = Self(15);

    pub(super) const ONE_SHOT: u8 = Self::DATA.0 | Self::CHILD.0;
    /// What Java's data table holds.
    pub(super) const DATA_TABLE: u8 = Self::DATA.0 | Self::PERSISTENT.0 | Self::RECURSIVE.0;
    /// What Java's child table holds.
    pub(super) const CHILD_TABLE: u8 = Self::CHILD.0 | Self::PERSISTENT.0;
}

/// What happens to a path, as the tables see it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Trigger {
    /// Created or changed.
    Data,
    Children,
    /// Concerns watchers of either table, once each (P-34).
    Deleted,
}

impl Trigger {
    pub(super) const fn fires(self) -> u8 {
        match self {
            Self::Data => WatchKind::DATA_TABLE,
            Self::Children => WatchKind::CHILD_TABLE,
            Self::Deleted => WatchKind::DATA_TABLE | WatchKind::CHILD_TABLE,
        }
    }
}

/// How many watchers an event concerned, by table: Java counts them there.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FiredCounts {
    pub data: u64,
    pub child: u64,
}
