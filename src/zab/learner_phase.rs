//! The phases of a learner.

use crate::model::Epoch;
use std::fmt;

/// The phase of a learner.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Phase {
    /// The leader is asked for the epoch.
    Asking,
    /// This server is promising to join the new epoch.
    Promising {
        epoch: Epoch,
    },
    /// The leader knows where this server's log ends; DIFF, TRUNC or SNAP comes next.
    Waiting {
        epoch: Epoch,
    },
    Synchronising {
        epoch: Epoch,
    },
    /// NEWLEADER was received; the history is on its way to the disk.
    Flushing {
        epoch: Epoch,
    },
    /// The history is on disk; the epoch that stands for it is on its way there.
    SavingEpoch {
        epoch: Epoch,
    },
    /// NEWLEADER is acknowledged.
    AckedNewLeader {
        epoch: Epoch,
    },
    /// UPTODATE was received.
    Serving {
        epoch: Epoch,
    },
}

/// What the learner does in a phase, to follow "while".
impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, epoch) = match self {
            Self::Asking => return f.write_str("waiting for LEADERINFO"),
            Self::Promising { epoch } => ("saving acceptedEpoch", epoch),
            Self::Waiting { epoch } => ("waiting for DIFF, TRUNC or SNAP", epoch),
            Self::Synchronising { epoch } => ("waiting for NEWLEADER", epoch),
            Self::Flushing { epoch } => ("flushing the history", epoch),
            Self::SavingEpoch { epoch } => ("saving currentEpoch", epoch),
            Self::AckedNewLeader { epoch } => ("waiting for UPTODATE", epoch),
            Self::Serving { epoch } => ("serving", epoch),
        };
        write!(f, "{what} in epoch {}", epoch.0)
    }
}

impl Phase {
    /// The epoch of the leader, once this server promised to join it.
    pub const fn epoch(self) -> Option<Epoch> {
        match self {
            Self::Asking | Self::Promising { .. } => None,
            Self::Waiting { epoch }
            | Self::Synchronising { epoch }
            | Self::Flushing { epoch }
            | Self::SavingEpoch { epoch }
            | Self::AckedNewLeader { epoch }
            | Self::Serving { epoch } => Some(epoch),
        }
    }

    /// Whether NEWLEADER is acknowledged.
    pub const fn has_adopted(self) -> bool {
        matches!(self, Self::AckedNewLeader { .. } | Self::Serving { .. })
    }
}
