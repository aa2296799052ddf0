//! The learner connections of a leader or an observer master: the stage of each, the packets that are sent to all of them, and how long
//! each is silent.
//!
//! `bring_up.rs` brings one learner up to date. The leader or observer master that owns these connections keeps quorums, counted
//! ACKs and the epoch.
//!
//! Source: `LearnerHandler`, `LearnerMaster`, ZooKeeper 3.9.5.

use super::lag::{Lag, Sizes};
use super::learner_handler::{LearnerHandler, Stage};
use super::packet::{LearnerInfo, PROTOCOL_VERSION, Packet};
use super::{Action, Core, LearnerConnectionId, Note, Settings};
use crate::model::{Epoch, ServerId, Zxid};
use bytes::Bytes;
use std::collections::BTreeMap;

/// End of the reason for which a second connection with the same myid is closed.
pub const SAME_MYID: &str = "do two servers have the same myid?";

/// The content of FOLLOWERINFO or OBSERVERINFO, the first packet of a learner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hello {
    /// The epoch that the learner has promised to join.
    pub accepted: Epoch,
    pub info: LearnerInfo,
    pub is_observer: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct LearnerHandlers {
    pub(super) by_connection: BTreeMap<LearnerConnectionId, LearnerHandler>,
    pub(super) sizes: Sizes,
}

/// A reconfiguration that is committed, and the leader that it names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activation {
    pub zxid: Zxid,
    pub leader: ServerId,
}

impl LearnerHandlers {
    pub fn get(&self, id: LearnerConnectionId) -> Option<&LearnerHandler> {
        self.by_connection.get(&id)
    }

    pub fn get_mut(&mut self, id: LearnerConnectionId) -> Option<&mut LearnerHandler> {
        self.by_connection.get_mut(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &LearnerHandler> {
        self.by_connection.values()
    }

    /// All learners except that of connection `id`.
    pub fn others(&self, id: LearnerConnectionId) -> impl Iterator<Item = &LearnerHandler> {
        self.by_connection.iter().filter(move |(other, _)| **other != id).map(|(_, other)| other)
    }

    pub fn connections(&self) -> impl Iterator<Item = LearnerConnectionId> {
        self.by_connection.keys().copied()
    }

    pub fn connections_at(&self, stage: Stage) -> Vec<LearnerConnectionId> {
        let at = self.by_connection.iter().filter(|(_, handler)| handler.stage == stage);
        at.map(|(&id, _)| id).collect()
    }

    /// Learners that have reached `stage`.
    pub fn servers_from(&self, stage: Stage) -> impl Iterator<Item = ServerId> {
        self.iter().filter(move |handler| stage <= handler.stage).map(|handler| handler.id)
    }

    /// The learners that are sent proposals and commits.
    fn receiving(&mut self) -> impl Iterator<Item = (LearnerConnectionId, &mut LearnerHandler)> {
        let handlers = self.by_connection.iter_mut().map(|(&id, handler)| (id, handler));
        handlers.filter(|(_, handler)| handler.receives() && handler.lag.left_at.is_none())
    }

    /// Forgets a connection that has ended.
    pub fn remove(&mut self, id: LearnerConnectionId) {
        self.by_connection.remove(&id);
    }

    pub fn close(&mut self, id: LearnerConnectionId, why: String, out: &mut Vec<Action>) {
        self.remove(id);
        out.push(Action::CloseLearner { connection: id, why });
    }

    /// Closes a connection whose learner has sent a packet that no learner sends in that stage.
    pub fn close_unexpected(
        &mut self,
        id: LearnerConnectionId,
        stage: Option<Stage>,
        packet: &Packet,
        out: &mut Vec<Action>,
    ) {
        let name = packet.name();
        let why = match stage {
            Some(stage) => format!("unexpected {name} from a learner that {stage}"),
            None => format!("unexpected {name} before FOLLOWERINFO or OBSERVERINFO"),
        };
        self.close(id, why, out);
    }

    /// Notes that something was received from a learner. Returns its stage; `None`: its first packet has not come.
    pub fn heard(&mut self, id: LearnerConnectionId) -> Option<Stage> {
        let handler = self.get_mut(id)?;
        handler.silent_ticks = 0;
        Some(handler.stage)
    }

    /// Accepts a learner, in place of an older connection of the same server, or closes the connection. Returns whether it did accept.
    pub fn greet(
        &mut self,
        core: &Core,
        id: LearnerConnectionId,
        hello: Hello,
        out: &mut Vec<Action>,
    ) -> bool {
        if let Some(why) = self.refusal(core, hello) {
            self.close(id, why, out);
            return false;
        }
        let Hello { info, is_observer, .. } = hello;
        let same = self.by_connection.iter().filter(|(_, handler)| handler.id == info.id);
        for older in same.map(|(&id, _)| id).collect::<Vec<_>>() {
            self.close(older, format!("server {} has connected again", info.id.0), out);
        }
        let handler = LearnerHandler {
            id: info.id,
            is_observer,
            stage: Stage::InfoReceived,
            last: None,
            was_read_for: false,
            start: Zxid::ZERO,
            held: Vec::new(),
            sync: None,
            silent_ticks: 0,
            lag: Lag::default(),
        };
        self.by_connection.insert(id, handler);
        true
    }

    /// Why a learner is refused; `None`: it is accepted.
    fn refusal(&self, core: &Core, Hello { accepted, info, .. }: Hello) -> Option<String> {
        let id = info.id.0;
        if info.id == core.me {
            // Its acknowledgements would count as those of this server's own disk.
            return Some(format!("it says that it is server {id}, which is this server"));
        }
        let theirs = info.protocol_version;
        if theirs < PROTOCOL_VERSION {
            let oldest = PROTOCOL_VERSION;
            return Some(format!(
                "it speaks protocol {theirs:#x}, and {oldest:#x} is the oldest here"
            ));
        }
        let (theirs, ours) = (info.view_version, core.view.version);
        if ours < theirs {
            return Some(format!("its configuration {theirs:#x} is newer than ours, {ours:#x}"));
        }
        if !core.later_promises.believes(accepted, core.accepted, core.settings.init_ticks()) {
            let (theirs, ours) = (accepted.0, core.accepted.0);
            return Some(format!(
                "server {id} has acceptedEpoch {theirs}, ours is {ours}: too far ahead to come from elections; is its file acceptedEpoch damaged?"
            ));
        }
        let is_twice = self.is_elsewhere(&core.settings, info.id);
        is_twice.then(|| {
            format!("a server {id} is connected and was heard from a moment ago: {SAME_MYID}")
        })
    }

    /// Whether a learner with this id is connected and can't have died unnoticed: the end of its process would have ended the
    /// connection, and the learner's machine and the network worked a moment ago.
    fn is_elsewhere(&self, settings: &Settings, id: ServerId) -> bool {
        let tick_time = 2 * settings.ping_ticks();
        let is_heard = |handler: &LearnerHandler| {
            Stage::Synchronised <= handler.stage
                && handler.silent_ticks <= tick_time
                && handler.id == id
        };
        self.iter().any(is_heard)
    }

    /// Sends LEADERINFO to all learners that wait for it.
    pub fn send_epoch(&mut self, epoch: Epoch, out: &mut Vec<Action>) {
        for (&id, handler) in &mut self.by_connection {
            if handler.stage == Stage::InfoReceived {
                handler.stage = Stage::LeaderInfoSent;
                handler.say(id, &Packet::LeaderInfo { epoch }, out);
            }
        }
    }

    /// ACKEPOCH: a learner has promised to join the epoch, and its log ends at `last`.
    pub fn on_promised(&mut self, id: LearnerConnectionId, last: Option<Zxid>) -> Option<ServerId> {
        let handler = self.get_mut(id)?;
        (handler.stage, handler.last) = (Stage::Promised, last);
        Some(handler.id)
    }

    /// A learner acknowledges NEWLEADER of `epoch` with `zxid`. Returns the learner, and the last zxid of its log that this acknowledges.
    /// Returns `None` where it closes the connection: if the zxid is not that of NEWLEADER, or if the learner lacks too much to keep up.
    pub fn on_ack_new_leader(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        epoch: Epoch,
        zxid: Zxid,
        out: &mut Vec<Action>,
    ) -> Option<(ServerId, Zxid)> {
        if zxid != Zxid::new(epoch, 0) {
            self.close(id, format!("NEWLEADER acknowledged with {zxid}"), out);
            return None;
        }
        if self.is_behind(id) {
            self.close_left_behind(id, out);
            return None;
        }
        let handler = self.get_mut(id)?;
        handler.stage = Stage::Synchronised;
        let (server, start, sync) = (handler.id, handler.start, handler.sync);
        if let Some(sync) = sync {
            let under_way = self.syncs_under_way(sync.sync_type);
            core.notes.push(Note::SyncEnded { sync, under_way });
        }
        self.join(core, id);
        Some((server, start))
    }

    /// Sends UPTODATE.
    pub fn activate(&mut self, core: &Core, id: LearnerConnectionId, out: &mut Vec<Action>) {
        if let Some(handler) = self.get_mut(id) {
            handler.stage = Stage::Active;
            handler.say(id, &Packet::UpToDate, out);
        }
        self.ask_if_lagging(core, id, out);
    }

    /// Sends the trees that wait, counts the ticks for which each learner is silent, and closes the connections of learners that were
    /// silent for too long.
    pub fn on_tick(&mut self, core: &Core, out: &mut Vec<Action>) {
        let settings = &core.settings;
        self.send_waiting_trees(core, out);
        self.by_connection.values_mut().for_each(|handler| handler.silent_ticks += 1);
        let is_silent = |handler: &LearnerHandler| {
            let limit = if handler.stage < Stage::Synchronised {
                settings.init_ticks()
            } else {
                settings.sync_ticks()
            };
            limit < handler.silent_ticks
        };
        let silent = self.by_connection.iter().filter(|(_, handler)| is_silent(handler));
        for id in silent.map(|(&id, _)| id).collect::<Vec<_>>() {
            self.close(id, "it was silent for too long".to_owned(), out);
        }
    }

    /// Sends PING to all learners that have been sent NEWLEADER.
    pub fn ping(&mut self, last: Zxid, out: &mut Vec<Action>) {
        let bytes = Packet::Ping { zxid: last.to_wire(), touched: None }.to_bytes();
        for (&id, handler) in &mut self.by_connection {
            if Stage::Synchronising <= handler.stage {
                handler.send(id, bytes.clone(), out);
            }
        }
    }

    /// Sends PROPOSAL to followers: observers get a transaction when it is committed.
    pub fn propose(&mut self, zxid: Zxid, payload: &Bytes, out: &mut Vec<Action>) {
        self.sizes.note(zxid, payload.len());
        let mut followers = self.receiving().filter(|(_, handler)| !handler.is_observer);
        if let Some((first, handler)) = followers.next() {
            let bytes = Packet::Proposal { zxid, entry: payload.clone() }.to_bytes();
            handler.send(first, bytes.clone(), out);
            for (id, handler) in followers {
                handler.send(id, bytes.clone(), out);
            }
        }
    }

    /// Commits here, and sends COMMIT to followers and INFORM to observers. Returns the number of transactions.
    ///
    /// * `activation`: a reconfiguration among them, for COMMITANDACTIVATE and INFORMANDACTIVATE.
    pub fn commit(
        &mut self,
        core: &mut Core,
        through: Zxid,
        activation: Option<Activation>,
        out: &mut Vec<Action>,
    ) -> u64 {
        let has_followers = self.receiving().any(|(_, handler)| !handler.is_observer);
        let has_observers = self.receiving().any(|(_, handler)| handler.is_observer);
        let (mut commits, mut informs) = (Vec::new(), Vec::new());
        let (sizes, mut count) = (&mut self.sizes, 0);
        core.history.commit(through, |(zxid, entry)| {
            count += 1;
            sizes.note(*zxid, entry.len());
            if let Some(Activation { leader, .. }) = activation.filter(|it| it.zxid == *zxid) {
                Packet::CommitAndActivate { zxid: *zxid, leader }.encode(&mut commits);
                Packet::InformAndActivate { zxid: *zxid, leader, entry: entry.clone() }
                    .encode(&mut informs);
                return;
            }
            if has_followers {
                Packet::Commit { zxid: *zxid }.encode(&mut commits);
            }
            if has_observers {
                Packet::Inform { zxid: *zxid, entry: entry.clone() }.encode(&mut informs);
            }
        });
        sizes.commit(through);
        let (commits, informs) = (Bytes::from(commits), Bytes::from(informs));
        for (id, handler) in self.receiving() {
            let bytes = if handler.is_observer { &informs } else { &commits };
            handler.send(id, bytes.clone(), out);
        }
        out.push(Action::Commit { through });
        count
    }
}
