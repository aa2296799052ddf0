//! The one that opens an epoch, brings its learners up to date, proposes, counts acknowledgements and commits.
//!
//! Source: `Leader`, `LearnerHandler`, ZooKeeper 3.9.5.

use super::learner_handler::{LearnerHandler, Stage};
use super::packet::{LearnerInfo, PROTOCOL_VERSION, Packet};
use super::{Action, Core, Input, LearnerConnectionId, Learners, Note, Promise};
use crate::model::{Epoch, ServerId, Zxid};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How far the leader itself has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Phase {
    /// Waiting for a quorum's accepted epochs.
    Discovering,
    /// The new epoch is being promised to, here and by a quorum.
    Promising,
    /// A quorum promised; our own current epoch is being saved.
    Opening,
    /// Waiting for a quorum to have our history.
    Synchronising,
    Broadcasting,
    /// Not a leader at all: a follower passes on to observers what its leader says.
    Relaying,
    /// A reconfiguration named another leader: nothing is decided here any more, and the learners leave.
    Leaving {
        to: ServerId,
    },
}

/// A leader, from its election to its end.
#[derive(Debug)]
pub struct Leader {
    pub(super) phase: Phase,
    pub(super) epoch: Epoch,
    pub(super) handlers: BTreeMap<LearnerConnectionId, LearnerHandler>,
    /// Highest epoch anybody of them accepted.
    pub(super) accepted: Epoch,
    /// Who said which epoch it accepted, who promised itself to ours, who has our history.
    pub(super) known: BTreeSet<ServerId>,
    pub(super) promised: BTreeSet<ServerId>,
    /// Whose log has the configuration that was proposed; who promised, and has not.
    pub(super) aware: BTreeSet<ServerId>,
    pub(super) unaware: BTreeSet<ServerId>,
    /// Who has more than this server, and votes only if the proposed configuration was decided; and that said in words.
    pub(super) ahead: Vec<(LearnerConnectionId, ServerId, String)>,
    pub(super) synchronised: BTreeSet<ServerId>,
    /// Our own promise is on disk.
    pub(super) has_promised: bool,
    /// Learners' syncs, each with the last proposal before it.
    pub(super) syncs: VecDeque<(Zxid, LearnerConnectionId)>,
    /// How far each voter's log is durable.
    pub(super) acked: BTreeMap<ServerId, Zxid>,
    pub(super) proposed: Zxid,
    /// The reconfiguration that is proposed and not committed.
    pub(super) reconfig: Option<Zxid>,
    /// The one that is being committed, and who leads by it.
    pub(super) decided: Option<(Zxid, ServerId)>,
    /// Peer ticks in this phase.
    pub(super) ticks: u64,
    /// It goes on without the other of two voters.
    pub(super) is_alone: bool,
}

impl Leader {
    /// A leader that knows of nobody yet.
    pub fn new(core: &mut Core, out: &mut Vec<Action>) -> Self {
        let mut leader = Self::fresh(core);
        leader.try_propose_epoch(core, out);
        leader
    }

    /// A server that is alone: it opens no epoch, and its zxids go on from its last one.
    pub fn alone(core: &Core) -> Self {
        Self { phase: Phase::Broadcasting, ..Self::fresh(core) }
    }

    fn fresh(core: &Core) -> Self {
        Self {
            phase: Phase::Discovering,
            epoch: Epoch(0),
            handlers: BTreeMap::new(),
            accepted: core.accepted,
            known: BTreeSet::from([core.me]),
            promised: BTreeSet::new(),
            aware: BTreeSet::from([core.me]),
            unaware: BTreeSet::new(),
            ahead: Vec::new(),
            synchronised: BTreeSet::new(),
            has_promised: false,
            syncs: VecDeque::new(),
            acked: BTreeMap::from([(core.me, core.history.last())]),
            proposed: core.history.last(),
            reconfig: None,
            decided: None,
            ticks: 0,
            is_alone: false,
        }
    }

    /// What a follower is to the observers that come to it (`observerMasterPort`): they have the history from it, and its
    /// leader's commits through it.
    ///
    /// Source: `ObserverMaster`, ZooKeeper 3.9.5.
    pub(super) fn relaying(core: &Core) -> Self {
        Self {
            phase: Phase::Relaying,
            epoch: core.current,
            has_promised: true,
            ..Self::fresh(core)
        }
    }

    /// Whether a learner that comes is brought up to date at once.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Broadcasting | Phase::Relaying)
    }

    pub(super) fn connection_ids(&self) -> impl Iterator<Item = LearnerConnectionId> {
        self.handlers.keys().copied()
    }

    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether enough have come to open the epoch.
    pub fn has_followers(&self) -> bool {
        self.phase != Phase::Discovering
    }

    pub fn is_broadcasting(&self) -> bool {
        self.phase == Phase::Broadcasting
    }

    /// Its learners, in numbers.
    pub fn learners(&self, core: &Core) -> Learners {
        let count = |fits: &dyn Fn(&LearnerHandler) -> bool| {
            self.handlers
                .values()
                .filter(|connection| connection.is_forwarded() && fits(connection))
                .count() as u64
        };
        Learners {
            connected: self.handlers.len() as u64,
            followers: count(&|connection| !connection.is_observer),
            non_voting: count(&|connection| {
                !connection.is_observer && !core.view.is_voter(connection.id)
            }),
            observers: count(&|connection| connection.is_observer),
        }
    }

    /// Applies one input and pushes what must happen next.
    pub fn step(&mut self, core: &mut Core, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Tick => self.on_tick(core, out),
            Input::Propose { zxid, payload } => self.propose(core, zxid, payload, out),
            Input::Flushed { through } => self.on_ack(core, core.me, through, out),
            Input::Promised { promise: Promise::Accepted, .. } => self.on_own_promise(core, out),
            Input::Promised { promise: Promise::Current, .. } => self.open(core, out),
            Input::Learner { connection, packet } => self.on_packet(core, connection, packet, out),
            Input::LearnerGone { connection } => {
                self.on_gone(connection);
                if let Phase::Leaving { to } = self.phase {
                    self.try_leave(core, to);
                }
            }
            Input::Progress { connection } => self.heard(connection),
            Input::SnapshotBegun { connection, zxid } => {
                self.on_snapshot(core, connection, zxid, out)
            }
            Input::Sync { connection } => self.on_sync(core, connection, out),
            Input::LogRead { connection, read } => self.on_log_read(core, connection, read, out),
            // A truncation or installation of an earlier role; an own election is the peer's.
            Input::Heard { .. }
            | Input::ElectionConnected { .. }
            | Input::ElectionDisconnected { .. }
            | Input::StandDown { .. }
            | Input::Oracle { .. }
            | Input::Truncated { .. }
            | Input::Uncuttable { .. }
            | Input::Installed { .. }
            | Input::Leader { .. }
            | Input::LeaderGone => {}
        }
        self.assert_invariants(core);
    }

    fn on_packet(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        packet: Packet,
        out: &mut Vec<Action>,
    ) {
        self.heard(Some(id));
        let stage = self.handlers.get(&id).map(|connection| connection.stage);
        match (stage, packet) {
            (None, Packet::FollowerInfo { accepted, info }) => {
                self.on_info(core, id, (accepted, info, false), out);
            }
            (None, Packet::ObserverInfo { accepted, info }) => {
                self.on_info(core, id, (accepted, info, true), out);
            }
            (Some(Stage::Told), Packet::AckEpoch { current, last }) => {
                self.on_ack_epoch(core, id, (current, last), out);
            }
            (Some(Stage::Synchronising), Packet::Ack { zxid }) => {
                self.on_ack_new_leader(core, id, zxid, out);
            }
            (Some(Stage::Synchronised | Stage::Active), Packet::Ack { zxid }) => {
                // A counter of 0 acknowledges UPTODATE.
                let (server, is_observer) = (self.handlers[&id].id, self.handlers[&id].is_observer);
                if zxid.counter() == 0 || is_observer {
                    return;
                }
                let last = core.history.last();
                if last < zxid {
                    let why = format!("it acknowledges {zxid}, and {last} is the last proposal");
                    return self.close(id, why, out);
                }
                self.on_ack(core, server, zxid, out);
            }
            (
                Some(Stage::Synchronised | Stage::Active),
                packet @ (Packet::Ping { .. } | Packet::Revalidate { .. } | Packet::Request(_)),
            ) => {
                if self.is_open() {
                    out.push(Action::FromLearner { connection: id, packet });
                }
            }
            (stage, packet) => {
                let why = format!("unexpected {} in stage {stage:?}", packet.name());
                self.close(id, why, out);
            }
        }
    }

    fn on_info(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        (accepted, info, is_observer): (Epoch, LearnerInfo, bool),
        out: &mut Vec<Action>,
    ) {
        if let Some(why) = self.refusal(core, (accepted, info, is_observer)) {
            return out.push(Action::CloseLearner { connection: id, why });
        }
        let older: Vec<LearnerConnectionId> = self
            .handlers
            .iter()
            .filter(|(_, connection)| connection.id == info.id)
            .map(|(&id, _)| id)
            .collect();
        for older in older {
            self.close(older, format!("server {} has connected again", info.id.0), out);
        }
        let connection = LearnerHandler {
            id: info.id,
            is_observer,
            stage: Stage::Known,
            last: None,
            start: Zxid::ZERO,
            held: Vec::new(),
            sync: None,
            silent_ticks: 0,
        };
        self.handlers.insert(id, connection);
        if self.phase != Phase::Discovering {
            let can_come = core.gave_way_ticks == 0;
            if self.epoch < accepted && core.is_voter(info.id) && can_come {
                core.gave_way_ticks = core.settings.init_ticks();
                // A rival that came to nothing had its promise: it can follow nobody before a later epoch is opened.
                let (who, theirs, ours) = (info.id.0, accepted.0, self.epoch.0);
                return core
                    .look(format!("server {who} is promised to epoch {theirs}, ours is {ours}"));
            }
            return self.tell_epochs(out);
        }
        self.accepted = self.accepted.max(accepted);
        self.known.insert(info.id);
        self.try_propose_epoch(core, out);
    }

    /// Why a learner that says who it is stays outside; `None`: it is let in.
    fn refusal(
        &self,
        core: &Core,
        (accepted, info, is_observer): (Epoch, LearnerInfo, bool),
    ) -> Option<String> {
        let id = info.id.0;
        if self.phase == Phase::Relaying && !is_observer {
            return Some("we do not lead, and take observers only".to_owned());
        }
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
        if !core.accepted.may_reach(accepted) {
            let (theirs, ours) = (accepted.0, core.accepted.0);
            return Some(format!(
                "server {id} says it is promised to epoch {theirs}, ours is {ours}: no elections lead there; is its acceptedEpoch damaged?"
            ));
        }
        let is_twice = self.is_elsewhere(core, info.id);
        is_twice.then(|| {
            format!(
                "a server {id} is connected and was heard of a moment ago: do two have one myid?"
            )
        })
    }

    /// Whether there is a learner of that number that cannot have gone away unnoticed: its process would have ended the
    /// connection, and its machine or the network are not gone for long enough.
    fn is_elsewhere(&self, core: &Core, id: ServerId) -> bool {
        let tick_time = 2 * core.settings.ping_ticks();
        let lives = |connection: &LearnerHandler| {
            Stage::Synchronised <= connection.stage
                && connection.silent_ticks <= tick_time
                && connection.id == id
        };
        self.handlers.values().any(lives)
    }

    /// With a quorum's word for it, no other leader can have a higher epoch than the next.
    pub(super) fn try_propose_epoch(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        let knows = core.is_quorum(&self.known, self.without_other(core));
        if self.phase == Phase::Discovering && knows {
            self.phase = Phase::Promising;
            self.ticks = 0;
            self.epoch = Epoch(self.accepted.0 + 1);
            core.promise(Promise::Accepted, self.epoch, out);
        }
    }

    fn on_own_promise(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        if self.phase != Phase::Promising {
            return;
        }
        self.has_promised = true;
        self.promised.insert(core.me);
        self.tell_epochs(out);
        self.try_open(core, out);
    }

    fn tell_epochs(&mut self, out: &mut Vec<Action>) {
        if !self.has_promised {
            return;
        }
        let epoch = self.epoch;
        for (&id, connection) in
            self.handlers.iter_mut().filter(|(_, connection)| connection.stage == Stage::Known)
        {
            connection.stage = Stage::Told;
            connection.say(id, &Packet::LeaderInfo { epoch }, out);
        }
    }

    fn on_ack_epoch(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        (current, last): (Option<Epoch>, Option<Zxid>),
        out: &mut Vec<Action>,
    ) {
        let Some(connection) = self.handlers.get_mut(&id) else { return };
        connection.stage = Stage::Promised;
        connection.last = last;
        let server = connection.id;
        if self.phase == Phase::Promising {
            let ours = (core.current, Some(core.history.last()));
            if let Some(theirs) = current.map(|current| (current, last))
                && ours < theirs
            {
                let why = format!("it is ahead of us: {theirs:?}, ours is {ours:?}");
                if !core.view.is_voter(server) && core.without_other().is_none() {
                    last.into_iter().for_each(|last| self.note_end(core, server, last));
                    self.ahead.push((id, server, why));
                    return self.turn_away(core, out);
                }
                if core.without_other().is_some() {
                    // Without it this server would go on alone, and what only the other one has would be lost.
                    core.look(format!("server {}: {why}", server.0));
                }
                return self.close(id, why, out);
            }
            if let (Some(_), Some(last)) = (current, last) {
                self.promised.insert(server);
                self.note_end(core, server, last);
            }
            return self.try_open(core, out);
        }
        let committed = core.history.committed();
        if let Some(last) = last.filter(|_| self.phase == Phase::Relaying)
            && last.epoch() == self.epoch
            && 0 < last.counter()
            && committed < last
        {
            // Of this epoch it has what was committed and nothing else: not to be cut off for what we have not heard of.
            let why = format!("it has {last}, and of that epoch we have heard of {committed} only");
            return self.close(id, why, out);
        }
        if self.phase == Phase::Synchronising || self.is_open() {
            self.synchronise(core, id, out);
        }
    }

    pub(super) fn try_open(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        self.turn_away(core, out);
        let is_enough = core.is_quorum(&self.promised, self.without_other(core))
            || self.next_is_undecided(core) && core.view.has_quorum(&self.promised);
        if self.phase == Phase::Promising && is_enough {
            self.phase = Phase::Opening;
            self.ticks = 0;
            core.promise(Promise::Current, self.epoch, out);
        }
    }

    /// Our own history is the epoch's now: nobody with a newer one was among the quorum.
    fn open(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        if self.phase != Phase::Opening {
            return;
        }
        self.phase = Phase::Synchronising;
        core.settled_on = Some(self.epoch);
        self.proposed = Zxid::new(self.epoch, 0);
        let last = core.history.last();
        core.history.commit(last, |_| {});
        // Applied, so that a tree can be sent; nobody reads it before a quorum has it too.
        out.push(Action::Commit { through: last });
        self.synchronised.insert(core.me);
        let waiting =
            self.handlers.iter().filter(|(_, connection)| connection.stage == Stage::Promised);
        for id in waiting.map(|(&id, _)| id).collect::<Vec<_>>() {
            self.synchronise(core, id, out);
        }
        self.try_establish(core, out);
    }

    fn on_ack_new_leader(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        zxid: Zxid,
        out: &mut Vec<Action>,
    ) {
        if zxid != Zxid::new(self.epoch, 0) {
            return self.close(id, format!("NEWLEADER acknowledged with {zxid}"), out);
        }
        let Some(connection) = self.handlers.get_mut(&id) else { return };
        connection.stage = Stage::Synchronised;
        let (server, start, sync) = (connection.id, connection.start, connection.sync);
        if let Some(sync) = sync {
            let under_way = self.syncs_under_way(sync.how);
            core.notes.push(Note::SyncEnded { sync, under_way });
        }
        // By the configuration that is to come an observer may vote: it has the history, and saved the epoch.
        self.synchronised.insert(server);
        self.acked.insert(server, start);
        if self.is_open() {
            return self.activate(id, out);
        }
        self.try_establish(core, out);
    }

    pub(super) fn try_establish(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        let has_quorum = core.is_quorum(&self.synchronised, self.without_other(core));
        if self.phase != Phase::Synchronising || !has_quorum {
            return;
        }
        self.phase = Phase::Broadcasting;
        self.ticks = 0;
        core.activate(core.next_view(self.epoch), out);
        let with = self.synchronised.iter().copied().filter(|id| core.view.is_voter(*id)).collect();
        core.notes.push(Note::Leads { epoch: self.epoch, with });
        out.push(Action::Lead { epoch: self.epoch });
        let ready =
            self.handlers.iter().filter(|(_, connection)| connection.stage == Stage::Synchronised);
        for id in ready.map(|(&id, _)| id).collect::<Vec<_>>() {
            self.activate(id, out);
        }
        if !core.view.is_voter(core.me) {
            // What an earlier leader left undecided is decided, and with it that another one leads.
            core.look("this server does not vote by the configuration now in force".to_owned());
        }
    }

    fn activate(&mut self, id: LearnerConnectionId, out: &mut Vec<Action>) {
        if let Some(connection) = self.handlers.get_mut(&id) {
            connection.stage = Stage::Active;
            connection.say(id, &Packet::UpToDate, out);
        }
    }

    fn heard(&mut self, id: Option<LearnerConnectionId>) {
        if let Some(connection) = id.and_then(|id| self.handlers.get_mut(&id)) {
            connection.silent_ticks = 0;
        }
    }

    fn on_gone(&mut self, id: LearnerConnectionId) {
        let Some(connection) = self.handlers.remove(&id) else { return };
        // What it acknowledged is on its disk; what it promised before the epoch was open is not yet a quorum's.
        if self.phase == Phase::Discovering {
            self.known.remove(&connection.id);
        }
        if self.phase == Phase::Synchronising {
            self.synchronised.remove(&connection.id);
        }
    }

    pub(super) fn close(&mut self, id: LearnerConnectionId, why: String, out: &mut Vec<Action>) {
        self.on_gone(id);
        out.push(Action::CloseLearner { connection: id, why });
    }

    fn on_tick(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        self.ticks += 1;
        let waiting =
            self.handlers.iter().filter(|(_, connection)| connection.stage == Stage::WantsSnapshot);
        // Asked again, for another snapshot may have been under way.
        out.extend(waiting.map(|(&connection, _)| Action::SendSnapshot { connection }));
        self.handlers.values_mut().for_each(|connection| connection.silent_ticks += 1);
        let settings = core.settings;
        let is_silent = |connection: &LearnerHandler| {
            let limit = if connection.stage < Stage::Synchronised {
                settings.init_ticks()
            } else {
                settings.sync_ticks()
            };
            limit < connection.silent_ticks
        };
        let silent = self.handlers.iter().filter(|(_, connection)| is_silent(connection));
        for id in silent.map(|(&id, _)| id).collect::<Vec<_>>() {
            self.close(id, "nothing was heard of it for too long".to_owned(), out);
        }
        self.go_on_alone(core, out);
        if self.is_open() {
            if self.ticks.is_multiple_of(settings.ping_ticks()) {
                self.proposed = self.proposed.max(core.history.last());
                self.ping(out);
            }
            if self.is_broadcasting() && self.ticks.is_multiple_of(2 * settings.ping_ticks()) {
                self.look_after_quorum(core);
            }
        } else if let Phase::Leaving { to } = self.phase {
            self.try_leave(core, to);
        } else if settings.init_ticks() < self.ticks {
            let why = format!("no quorum within initLimit, while {:?}", self.phase);
            core.look(why);
        }
    }

    /// Learners end the connection once they have heard who leads next: closing it could take that from them.
    fn try_leave(&self, core: &mut Core, to: ServerId) {
        let is_over = core.settings.ping_ticks() * 2 < self.ticks;
        if is_over || self.handlers.values().all(|connection| connection.is_observer) {
            let why = format!("by the configuration now in force server {to} is to lead");
            core.go_on_under(Some(to), why);
        }
    }

    fn ping(&mut self, out: &mut Vec<Action>) {
        let bytes = Packet::Ping { zxid: self.proposed.to_wire(), touched: None }.to_bytes();
        let greeted = |connection: &LearnerHandler| Stage::Synchronising <= connection.stage;
        for (&id, connection) in
            self.handlers.iter_mut().filter(|(_, connection)| greeted(connection))
        {
            connection.send(id, bytes.clone(), out);
        }
    }

    fn look_after_quorum(&self, core: &mut Core) {
        let mut there: BTreeSet<ServerId> = self
            .handlers
            .values()
            .filter(|connection| Stage::Synchronised <= connection.stage)
            .map(|connection| connection.id)
            .collect();
        there.insert(core.me);
        if !core.is_quorum(&there, self.without_other(core)) {
            core.look(format!("only {there:?} follow, which is no quorum"));
        }
    }
}
