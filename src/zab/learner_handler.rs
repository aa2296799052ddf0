//! A learner as its leader sees it.

use super::history::Logged;
use super::packet::Packet;
use super::{Action, LearnerConnectionId, Sync};
use crate::model::{ServerId, Zxid};
use bytes::Bytes;

/// How far a learner has come.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Stage {
    /// It said who it is, and waits for the epoch.
    Known,
    /// It was told the epoch.
    Told,
    /// It promised itself, and waits for the history.
    Promised,
    /// Its place is being looked up in the log on disk; what is proposed meanwhile is held back.
    Reading,
    /// It waits for a snapshot to be begun.
    WantsSnapshot,
    /// History and NEWLEADER are on their way.
    Synchronising,
    /// It acknowledged NEWLEADER.
    Synchronised,
    /// It was told UPTODATE.
    Active,
}

#[derive(Debug)]
pub(super) struct LearnerHandler {
    pub id: ServerId,
    pub is_observer: bool,
    pub stage: Stage,
    /// The last of its log, as it says.
    pub last: Option<Zxid>,
    /// Commits at or before this one are not for it: it has them, or had them in what it was sent first.
    pub start: Zxid,
    /// Kept back until it is known what to send first.
    pub held: Vec<Bytes>,
    /// How it comes to the history, once that is decided.
    pub sync: Option<Sync>,
    /// Peer ticks since it was last heard of.
    pub silent_ticks: u64,
}

impl LearnerHandler {
    /// Whether it gets what is proposed and committed.
    pub fn is_forwarded(&self) -> bool {
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

/// A proposal and its commit, as every kind of learner gets them while it is brought up to date.
pub(super) fn put_committed((zxid, entry): &Logged, to: &mut Vec<u8>) {
    Packet::Proposal { zxid: *zxid, entry: entry.clone() }.encode(to);
    Packet::Commit { zxid: *zxid }.encode(to);
}
