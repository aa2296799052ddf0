//! A learner connection, as its leader or observer master sees it.

use super::history::Logged;
use super::lag::Lag;
use super::packet::Packet;
use super::{Action, LearnerConnectionId, Sync};
use crate::model::{ServerId, Zxid};
use bytes::Bytes;
use std::fmt;

/// The stage of a learner.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Stage {
    /// FOLLOWERINFO or OBSERVERINFO was received; the learner waits for the epoch.
    InfoReceived,
    /// LEADERINFO was sent.
    LeaderInfoSent,
    /// The learner acknowledged the epoch, and waits for the history.
    Promised,
    /// The end of its log is being looked up in the log on disk; proposals are held back meanwhile.
    Reading,
    /// The learner waits for a snapshot to be begun.
    WantsSnapshot,
    /// History and NEWLEADER are on their way.
    Synchronising,
    /// The learner acknowledged NEWLEADER.
    Synchronised,
    /// UPTODATE was sent.
    Active,
}

/// The stage as text, to follow "a learner that".
impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InfoReceived => "waits for LEADERINFO",
            Self::LeaderInfoSent => "was sent LEADERINFO",
            Self::Promised => "has sent ACKEPOCH",
            Self::Reading => "waits for the log to be read",
            Self::WantsSnapshot => "waits for a snapshot",
            Self::Synchronising => "was sent NEWLEADER",
            Self::Synchronised => "has acknowledged NEWLEADER",
            Self::Active => "was sent UPTODATE",
        })
    }
}

#[derive(Clone, Debug)]
pub(super) struct LearnerHandler {
    pub id: ServerId,
    pub is_observer: bool,
    pub stage: Stage,
    /// The last zxid of its log, from ACKEPOCH.
    pub last: Option<Zxid>,
    /// The log was read for the learner, because the learner's own log ends before the window.
    pub was_read_for: bool,
    /// The last zxid sent before NEWLEADER, or that the learner had: later transactions are committed one by one.
    pub start: Zxid,
    /// Packets held back until the log is read and what comes before them is sent.
    pub held: Vec<Bytes>,
    /// How the learner gets the history, once that is known.
    pub sync: Option<Sync>,
    /// Peer ticks since its last packet.
    pub silent_ticks: u64,
    pub lag: Lag,
}

impl LearnerHandler {
    /// Whether the learner is sent proposals and commits.
    pub fn receives(&self) -> bool {
        Stage::Reading <= self.stage && self.stage != Stage::WantsSnapshot
    }

    /// Sends a packet, or holds it back.
    pub fn send(&mut self, connection: LearnerConnectionId, bytes: Bytes, out: &mut Vec<Action>) {
        if self.stage == Stage::Reading {
            self.held.push(bytes);
        } else {
            out.push(Action::ToLearner { connection, bytes });
        }
    }

    pub fn say(&mut self, connection: LearnerConnectionId, packet: &Packet, out: &mut Vec<Action>) {
        self.send(connection, packet.to_bytes(), out);
    }
}

/// A PROPOSAL and its COMMIT, as learners of both kinds get them while they are synchronised.
pub(super) fn put_committed((zxid, entry): &Logged, to: &mut Vec<u8>) {
    Packet::Proposal { zxid: *zxid, entry: entry.clone() }.encode(to);
    Packet::Commit { zxid: *zxid }.encode(to);
}
