//! How far a learner is with its leader.

use crate::zab::Packet;

/// How far a learner is, by the packets on its connection alone.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Stage {
    /// FOLLOWERINFO or OBSERVERINFO was sent, or will be.
    #[default]
    Asking,
    /// LEADERINFO was received.
    EpochKnown,
    /// ACKEPOCH was sent.
    Promised,
    /// DIFF, TRUNC or SNAP was received.
    Synchronising,
    /// NEWLEADER was received.
    Named,
}

impl Stage {
    /// The stage after a packet of the leader; `None`: the packet belongs to another stage.
    pub const fn after(self, packet: &Packet) -> Option<Self> {
        Some(match (self, packet) {
            (Self::Asking, Packet::LeaderInfo { .. }) => Self::EpochKnown,
            (Self::Promised, Packet::Diff { .. } | Packet::Trunc { .. } | Packet::Snap { .. }) => {
                Self::Synchronising
            }
            (Self::Synchronising, Packet::NewLeader { .. }) => Self::Named,
            (Self::Named, Packet::UpToDate) => Self::Named,
            (
                Self::Synchronising | Self::Named,
                Packet::Proposal { .. }
                | Packet::Commit { .. }
                | Packet::Inform { .. }
                | Packet::CommitAndActivate { .. }
                | Packet::InformAndActivate { .. },
            ) => self,
            (_, Packet::Ping { .. }) | (Self::Named, Packet::Sync | Packet::Revalidate { .. }) => {
                self
            }
            _ => return None,
        })
    }
}
