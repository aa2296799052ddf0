//! A follower that serves observers (`observerMasterPort`): it forwards its leader's history, commits and epoch.
//!
//! It counts no acknowledgements and opens no epoch. The requests of the observers' clients are forwarded by `replica`.
//!
//! Source: `ObserverMaster`, ZooKeeper 3.9.5.

use super::learner_handler::Stage;
use super::learner_handlers::{Hello, LearnerHandlers};
use super::{Action, Core, Input, LearnerConnectionId, Packet};
use crate::model::{Epoch, Zxid};
use bytes::Bytes;

/// The observers of a follower, as long as it serves.
#[derive(Clone, Debug)]
pub(super) struct ObserverMaster {
    epoch: Epoch,
    pub handlers: LearnerHandlers,
    pub ticks: u64,
}

impl ObserverMaster {
    pub fn new(epoch: Epoch) -> Self {
        Self { epoch, handlers: LearnerHandlers::default(), ticks: 0 }
    }

    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether a packet of a connection to this server is for the observer master: other learners look for a leader.
    pub fn takes(&self, connection: LearnerConnectionId, packet: Option<&Packet>) -> bool {
        let is_hello = matches!(packet, Some(Packet::ObserverInfo { .. }));
        is_hello || self.handlers.get(connection).is_some()
    }

    /// Applies an input about an observer, or a tick.
    pub fn step(&mut self, core: &mut Core, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Tick => self.on_tick(core, out),
            Input::Learner { connection, packet } => self.on_packet(core, connection, packet, out),
            Input::LearnerGone { connection } => self.handlers.remove(connection),
            Input::Progress { connection: Some(connection) } => {
                self.handlers.heard(connection);
            }
            Input::SnapshotBegun { connection, zxid } => {
                let new_leader = self.new_leader(core);
                self.handlers.on_snapshot(core, connection, zxid, &new_leader, out);
            }
            Input::LogRead { connection, read } => {
                let new_leader = self.new_leader(core);
                self.handlers.on_log_read(core, connection, read, &new_leader, out);
            }
            // These concern this server as a learner.
            Input::Progress { connection: None }
            | Input::Notification { .. }
            | Input::ElectionConnected { .. }
            | Input::ElectionDisconnected { .. }
            | Input::ElectionUnreached { .. }
            | Input::StandDown { .. }
            | Input::Restore { .. }
            | Input::Oracle { .. }
            | Input::Propose { .. }
            | Input::Flushed { .. }
            | Input::Promised { .. }
            | Input::Truncated { .. }
            | Input::CannotTruncate { .. }
            | Input::Installed { .. }
            | Input::TreeViews { .. }
            | Input::Sync { .. }
            | Input::Leader { .. }
            | Input::LeaderGone => {}
        }
    }

    fn on_packet(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        packet: Packet,
        out: &mut Vec<Action>,
    ) {
        match (self.handlers.heard(id), packet) {
            (None, Packet::ObserverInfo { accepted, info }) => {
                let hello = Hello { accepted, info, is_observer: true };
                if self.handlers.greet(core, id, hello, out)
                    && !core.stands_down_for_promise(info.id, accepted, self.epoch)
                {
                    self.handlers.send_epoch(self.epoch, out);
                }
            }
            (Some(Stage::LeaderInfoSent), Packet::AckEpoch { last, .. }) => {
                self.on_ack_epoch(core, id, last, out);
            }
            (Some(Stage::Synchronising), Packet::Ack { zxid }) => {
                let acked = self.handlers.on_ack_new_leader(core, id, self.epoch, zxid, out);
                if acked.is_some() {
                    self.handlers.activate(core, id, out);
                }
            }
            // An observer's disk counts in no quorum.
            (Some(Stage::Synchronised | Stage::Active), Packet::Ack { .. }) => {}
            (
                Some(Stage::Synchronised | Stage::Active),
                packet @ (Packet::Ping { .. } | Packet::Revalidate { .. } | Packet::Request(_)),
            ) => {
                self.handlers.read_ping(core, id, &packet, out);
                out.push(Action::FromLearner { connection: id, packet });
            }
            (stage, packet) => self.handlers.close_unexpected(id, stage, &packet, out),
        }
    }

    fn on_ack_epoch(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        last: Option<Zxid>,
        out: &mut Vec<Action>,
    ) {
        self.handlers.on_promised(id, last);
        let committed = core.history.committed();
        if let Some(last) = last
            && last.epoch() == self.epoch
            && 0 < last.counter()
            && committed < last
        {
            // An observer's transactions of this epoch are committed: they must not be truncated because this follower has
            // not received their COMMITs yet.
            let why = format!("it has {last}, ahead of {committed}, the last commit known here");
            return self.handlers.close(id, why, out);
        }
        let new_leader = self.new_leader(core);
        self.handlers.synchronise(core, id, &new_leader, out);
    }

    fn new_leader(&self, core: &Core) -> Packet {
        Packet::NewLeader { epoch: self.epoch, view: Bytes::from(core.view.to_string()) }
    }

    fn on_tick(&mut self, core: &Core, out: &mut Vec<Action>) {
        self.ticks += 1;
        self.handlers.on_tick(core, out);
        self.handlers.look_after_lag(core, core.history.last());
        // Observers that were left behind lack commits before the next SYNC, which the leader sends.
        self.handlers.close_all_left_behind(out);
        if self.ticks.is_multiple_of(core.settings.ping_ticks()) {
            self.handlers.ping(core.history.last(), out);
        }
    }
}
