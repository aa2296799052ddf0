//! A leader: it opens an epoch, synchronises a quorum with its history, and serves until it loses the quorum.
//!
//! Its connections to learners are in `learner_handlers.rs`; proposing, counting ACKs and committing in `broadcast.rs`.
//!
//! Source: `Leader`, `LearnerHandler`, ZooKeeper 3.9.5.

use super::history::HistoryEnd;
use super::learner_handler::{LearnerHandler, Stage};
use super::learner_handlers::{Hello, LearnerHandlers};
use super::waiting_syncs::WaitingSyncs;
use super::{Action, Core, Input, LearnerConnectionId, Learners, Note, Packet, Promise};
use crate::model::{Epoch, ServerId, ServerList, Zxid};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The phase of a leader.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Phase {
    /// Waiting for a quorum's accepted epochs.
    Discovering,
    /// This server and a quorum are promising to join the new epoch.
    Promising,
    /// A quorum promised; this server's current epoch is being saved.
    Opening,
    /// Waiting for a quorum to have this server's history.
    Synchronising,
    Broadcasting,
    /// A reconfiguration named another leader: nothing is committed here any more, and the learners leave.
    Leaving {
        to: ServerId,
    },
}

/// What the leader does in a phase, to follow "while".
impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discovering => "waiting for accepted epochs",
            Self::Promising => "waiting for ACKEPOCH",
            Self::Opening => "saving currentEpoch",
            Self::Synchronising => "waiting for ACKs of NEWLEADER",
            Self::Broadcasting => "broadcasting",
            Self::Leaving { to } => return write!(f, "handing over to server {to}"),
        })
    }
}

/// A leader, from its election to its end.
#[derive(Clone, Debug)]
pub struct Leader {
    pub(super) phase: Phase,
    pub(super) epoch: Epoch,
    pub(super) handlers: LearnerHandlers,
    /// The highest epoch that this server, or a learner that is a member, accepted.
    accepted: Epoch,
    /// Servers that promised to join this epoch.
    promised: BTreeSet<ServerId>,
    /// Servers that promised, and whose log has the configuration that was proposed; those whose log has not.
    pub(super) aware: BTreeSet<ServerId>,
    pub(super) unaware: BTreeSet<ServerId>,
    /// Learners that have more than this server, and vote only if the proposed configuration was committed; with the reason.
    pub(super) ahead: Vec<(LearnerConnectionId, ServerId, String)>,
    /// Learners whose data is of a later epoch: an error was logged for each.
    foreign: BTreeSet<i64>,
    /// This server's own promise is on disk.
    pub(super) has_promised: bool,
    /// Learners' syncs.
    pub(super) syncs: WaitingSyncs,
    /// How far each voter's log is durable.
    pub(super) acked: BTreeMap<ServerId, Zxid>,
    pub(super) proposed: Zxid,
    /// The reconfiguration that is proposed and not committed.
    pub(super) reconfig: Option<Zxid>,
    /// Peer ticks in this phase.
    pub(super) ticks: u64,
    /// This server decides without the other of two voters.
    pub(super) is_alone: bool,
    /// Peer ticks for which this server's own disk has lacked too much of what was committed.
    pub(super) own_lag_ticks: u64,
}

impl Leader {
    /// A leader without learners.
    pub fn new(core: &mut Core, out: &mut Vec<Action>) -> Self {
        let mut leader = Self::fresh(core);
        leader.try_propose_epoch(core, out);
        leader
    }

    /// A standalone server: it opens no epoch, and its zxids go on from its last one.
    pub fn alone(core: &Core) -> Self {
        Self { phase: Phase::Broadcasting, ..Self::fresh(core) }
    }

    fn fresh(core: &Core) -> Self {
        Self {
            phase: Phase::Discovering,
            epoch: Epoch(0),
            handlers: LearnerHandlers::default(),
            // The voter for which this server gave up the lead may come too late again.
            accepted: core.accepted.max(core.later_promises.outbid),
            promised: BTreeSet::new(),
            aware: BTreeSet::from([core.me]),
            unaware: BTreeSet::new(),
            ahead: Vec::new(),
            foreign: BTreeSet::new(),
            has_promised: false,
            syncs: WaitingSyncs::default(),
            acked: BTreeMap::from([(core.me, core.history.last())]),
            proposed: core.history.last(),
            reconfig: None,
            ticks: 0,
            is_alone: false,
            own_lag_ticks: 0,
        }
    }

    /// Connections of its learners.
    pub fn connections(&self) -> impl Iterator<Item = LearnerConnectionId> {
        self.handlers.connections()
    }

    /// The server at the other end of a connection, if it has said hello.
    pub fn learner_id(&self, connection: LearnerConnectionId) -> Option<ServerId> {
        self.handlers.get(connection).map(|handler| handler.id)
    }

    /// Whether a server is connected as a learner, and has said hello.
    pub fn has_learner(&self, id: ServerId) -> bool {
        self.handlers.iter().any(|handler| handler.id == id)
    }

    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether a quorum is connected, so that the epoch can be opened.
    pub fn has_followers(&self, core: &Core) -> bool {
        let known = self.servers_from(core, Stage::InfoReceived);
        self.is_broadcasting() || core.is_quorum(&known, self.without_other(core))
    }

    pub fn is_broadcasting(&self) -> bool {
        self.phase == Phase::Broadcasting
    }

    /// A quorum has acknowledged NEWLEADER of this leader's epoch.
    pub const fn has_established(&self) -> bool {
        matches!(self.phase, Phase::Broadcasting | Phase::Leaving { .. })
    }

    /// The observers that are sent what is committed.
    pub fn observers(&self) -> Vec<(LearnerConnectionId, ServerId)> {
        let all = self.handlers.by_connection.iter();
        let observers = all.filter(|(_, one)| one.is_observer && one.receives());
        observers.map(|(connection, one)| (*connection, one.id)).collect()
    }

    /// The numbers of its learners.
    pub fn learners(&self, core: &Core) -> Learners {
        let count = |fits: &dyn Fn(&LearnerHandler) -> bool| {
            self.handlers.iter().filter(|handler| handler.receives() && fits(handler)).count()
                as u64
        };
        Learners {
            connected: self.handlers.iter().count() as u64,
            followers: count(&|handler| !handler.is_observer),
            non_voting: count(&|handler| !handler.is_observer && !core.view.is_voter(handler.id)),
            observers: count(&|handler| handler.is_observer),
        }
    }

    /// This server and its learners that have reached `stage`.
    pub(super) fn servers_from(&self, core: &Core, stage: Stage) -> BTreeSet<ServerId> {
        self.handlers.servers_from(stage).chain([core.me]).collect()
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
                self.handlers.remove(connection);
                if let Phase::Leaving { to } = self.phase {
                    self.try_leave(core, to);
                }
            }
            Input::Progress { connection: Some(connection) } => {
                self.handlers.heard(connection);
            }
            Input::SnapshotBegun { connection, zxid } => {
                let new_leader = self.new_leader(core);
                self.handlers.on_snapshot(core, connection, zxid, &new_leader, out);
            }
            Input::Sync { connection } => self.on_sync(core, connection, out),
            Input::LogRead { connection, read } => {
                let new_leader = self.new_leader(core);
                self.handlers.on_log_read(core, connection, read, &new_leader, out);
            }
            // `Core` and `Peer` deal with these, or an earlier role asked for them.
            Input::Notification { .. }
            | Input::ElectionConnected { .. }
            | Input::ElectionDisconnected { .. }
            | Input::ElectionUnreached { .. }
            | Input::StandDown { .. }
            | Input::Restore { .. }
            | Input::Oracle { .. }
            | Input::Truncated { .. }
            | Input::TreeViews { .. }
            | Input::CannotTruncate { .. }
            | Input::Installed { .. }
            | Input::Progress { connection: None }
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
        match (self.handlers.heard(id), packet) {
            (None, Packet::FollowerInfo { accepted, info }) => {
                self.on_hello(core, id, Hello { accepted, info, is_observer: false }, out);
            }
            (None, Packet::ObserverInfo { accepted, info }) => {
                self.on_hello(core, id, Hello { accepted, info, is_observer: true }, out);
            }
            (Some(Stage::LeaderInfoSent), Packet::AckEpoch { current, last }) => {
                self.on_ack_epoch(core, id, current, last, out);
            }
            (Some(Stage::Synchronising), Packet::Ack { zxid }) => {
                self.on_ack_new_leader(core, id, zxid, out);
            }
            (Some(Stage::Synchronised | Stage::Active), Packet::Ack { zxid }) => {
                let voting = self.handlers.get(id).filter(|handler| !handler.is_observer);
                // A counter of 0 acknowledges UPTODATE.
                let Some(server) = voting.map(|handler| handler.id).filter(|_| zxid.counter() != 0)
                else {
                    return;
                };
                let last = core.history.last();
                if last < zxid {
                    let why = format!("it acknowledges {zxid}, and {last} is the last proposal");
                    return self.handlers.close(id, why, out);
                }
                self.handlers.acknowledge(id, zxid, out);
                self.on_ack(core, server, zxid, out);
            }
            (
                Some(Stage::Synchronised | Stage::Active),
                packet @ (Packet::Ping { .. } | Packet::Revalidate { .. } | Packet::Request(_)),
            ) => {
                self.handlers.read_ping(core, id, &packet, out);
                if self.is_broadcasting() {
                    out.push(Action::FromLearner { connection: id, packet });
                }
            }
            (stage, packet) => self.handlers.close_unexpected(id, stage, &packet, out),
        }
    }

    fn on_hello(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        hello: Hello,
        out: &mut Vec<Action>,
    ) {
        let Hello { accepted, info, is_observer } = hello;
        // Before the promise is checked, which may be as far ahead as the history: the operator has to hear of the history.
        if self.phase != Phase::Discovering
            && let Some(theirs) = core.foreign_epoch(info.id, self.epoch)
        {
            return self.refuse_foreign(id, info.id, theirs, out);
        }
        if !self.handlers.greet(core, id, hello, out) {
            return;
        }
        if self.phase == Phase::Discovering {
            // The promise of a server in no configuration counts nowhere, and any stranger could use up the epochs with one.
            if core.is_member(info.id) {
                self.accepted = self.accepted.max(accepted);
            }
            self.try_propose_epoch(core, out);
        } else if !core.stands_down_for_promise(info.id, accepted, self.epoch) {
            let (theirs, ours) = (accepted.0, self.epoch.0);
            let cannot_come = ours < theirs && core.is_voter(info.id);
            if cannot_come && !core.has_voted_for_itself(info.id) {
                let why = format!(
                    "its acceptedEpoch {theirs} is later than our epoch {ours}, and it has not voted for itself, so the epoch \
                     of its history is unknown; it tries again by itself"
                );
                return self.handlers.close(id, why, out);
            }
            if cannot_come && is_observer {
                // Its promise counts in the quorum of the proposed configuration, and would be given twice.
                let why = format!(
                    "it is to vote by the proposed configuration, and its acceptedEpoch {theirs} is later than our epoch {ours}"
                );
                return self.handlers.close(id, why, out);
            }
            self.send_epoch(out);
        }
    }

    /// Closes the connection of a voter that would replace what this ensemble has acknowledged, were it to lead.
    fn refuse_foreign(
        &mut self,
        connection: LearnerConnectionId,
        server: ServerId,
        theirs: i64,
        out: &mut Vec<Action>,
    ) {
        let (server, ours) = (server.0, self.epoch.0);
        if self.foreign.insert(server) {
            tracing::error!(
                server_id = server,
                "server {server} is refused: its history is of epoch {theirs}, and this ensemble's is of epoch {ours}. Data of \
                 the other members was lost, or that server is of another ensemble. Stop it until you have decided: it might be elected \
                 if this leader ended. First copy every version-2 away. To keep that server's history: stop all others, empty their \
                 version-2 directories, start it and then just as many of them as make a majority with it; once it leads, start the \
                 rest. To discard it: empty its version-2 directories"
            );
        }
        let why = format!(
            "its history is of epoch {theirs}, later than ours, {ours}: see the ERROR that names it, before you delete anything"
        );
        self.handlers.close(connection, why, out);
    }

    /// Chooses the epoch when a quorum has sent its accepted epochs: no other leader can have a higher one.
    pub(super) fn try_propose_epoch(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        let known = self.servers_from(core, Stage::InfoReceived);
        let is_quorum = core.is_quorum(&known, self.without_other(core));
        if self.phase == Phase::Discovering && is_quorum {
            let Some(next) = self.accepted.next() else {
                return self.log_last_epoch(core);
            };
            self.phase = Phase::Promising;
            self.ticks = 0;
            self.epoch = next;
            core.promise(Promise::Accepted, self.epoch, out);
        }
    }

    /// No epoch can be opened. This server waits for initLimit before it gives up, so that elections do not follow one another.
    fn log_last_epoch(&self, core: &mut Core) {
        if !std::mem::replace(&mut core.has_logged_last_epoch, true) {
            let epoch = self.accepted.0;
            tracing::error!(
                epoch,
                "no epoch can follow the one that was accepted: this ensemble elects no leader that can serve. Stop all its servers, \
                 and give it new epochs as docs/operations.md says, \"The last epoch\""
            );
        }
    }

    fn on_own_promise(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        if self.phase != Phase::Promising {
            return;
        }
        self.has_promised = true;
        self.promised.insert(core.me);
        self.send_epoch(out);
        self.try_open(core, out);
    }

    fn send_epoch(&mut self, out: &mut Vec<Action>) {
        if self.has_promised {
            self.handlers.send_epoch(self.epoch, out);
        }
    }

    fn on_ack_epoch(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        current: Option<Epoch>,
        last: Option<Zxid>,
        out: &mut Vec<Action>,
    ) {
        let Some(server) = self.handlers.on_promised(id, last) else { return };
        if self.phase == Phase::Promising {
            let ours = HistoryEnd { epoch: core.current, last: Some(core.history.last()) };
            if let Some(theirs) = current.map(|epoch| HistoryEnd { epoch, last })
                && ours < theirs
            {
                let why = format!("it is ahead of us: {theirs}; we are at {ours}");
                if !core.view.is_voter(server) && core.without_other().is_none() {
                    last.into_iter().for_each(|last| self.note_end(core, server, last));
                    self.ahead.push((id, server, why));
                    return self.disconnect_learners_ahead(core, out);
                }
                if core.without_other().is_some() {
                    // Without the other voter this server would go on alone, and what only the other voter has would be lost.
                    core.end_role(format!("server {}: {why}", server.0));
                }
                return self.handlers.close(id, why, out);
            }
            if let (Some(_), Some(last)) = (current, last) {
                self.promised.insert(server);
                self.note_end(core, server, last);
            }
            return self.try_open(core, out);
        }
        if matches!(self.phase, Phase::Synchronising | Phase::Broadcasting) {
            self.synchronise(core, id, out);
        }
    }

    /// Begins to send a learner the history.
    fn synchronise(&mut self, core: &mut Core, id: LearnerConnectionId, out: &mut Vec<Action>) {
        if let Some(handler) = self.handlers.get(id) {
            // The learner may have to truncate transactions that it had acknowledged.
            self.acked.remove(&handler.id);
        }
        let new_leader = self.new_leader(core);
        self.handlers.synchronise(core, id, &new_leader, out);
    }

    fn new_leader(&self, core: &Core) -> Packet {
        // A reconfiguration that is proposed and not committed follows as a proposal; Java's leaders send its configuration
        // as if it were committed.
        let view = if self.is_broadcasting() {
            core.view.to_string()
        } else {
            core.next_view(self.epoch).to_string()
        };
        Packet::NewLeader { epoch: self.epoch, view: Bytes::from(view) }
    }

    pub(super) fn try_open(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        self.disconnect_learners_ahead(core, out);
        let is_enough = core.is_quorum(&self.promised, self.without_other(core))
            || self.next_is_undecided(core) && core.view.has_quorum(&self.promised);
        if self.phase == Phase::Promising && is_enough {
            self.phase = Phase::Opening;
            self.ticks = 0;
            core.promise(Promise::Current, self.epoch, out);
        }
    }

    /// Opens the epoch with this server's history: no server of the quorum had a newer one.
    fn open(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        if self.phase != Phase::Opening {
            return;
        }
        self.phase = Phase::Synchronising;
        core.settled_on = Some(self.epoch);
        // This server's own ACK of NEWLEADER counts, so its next start has to know what NEWLEADER names, as that of each learner does.
        core.see_view(core.next_view(self.epoch));
        core.save_next(out);
        self.proposed = Zxid::new(self.epoch, 0);
        let last = core.history.last();
        core.history.commit(last, |_| {});
        // Applied, so that a tree can be sent; no client reads it before a quorum has the history too.
        out.push(Action::Commit { through: last });
        for id in self.handlers.connections_at(Stage::Promised) {
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
        let acked = self.handlers.on_ack_new_leader(core, id, self.epoch, zxid, out);
        let Some((server, start)) = acked else {
            return;
        };
        // Also of an observer: it may vote by the proposed configuration, and has the history and has saved the epoch.
        self.acked.insert(server, start);
        if self.is_broadcasting() {
            return self.handlers.activate(core, id, out);
        }
        self.try_establish(core, out);
    }

    pub(super) fn try_establish(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        let synchronised = self.servers_from(core, Stage::Synchronised);
        let has_quorum = core.is_quorum(&synchronised, self.without_other(core));
        if self.phase != Phase::Synchronising || !has_quorum {
            return;
        }
        self.phase = Phase::Broadcasting;
        core.later_promises.note_quorum();
        self.ticks = 0;
        core.activate(core.next_view(self.epoch), out);
        let voters = synchronised.into_iter().filter(|id| core.view.is_voter(*id)).collect();
        core.notes.push(Note::Leads { epoch: self.epoch, voters });
        out.push(Action::Lead { epoch: self.epoch });
        for id in self.handlers.connections_at(Stage::Synchronised) {
            self.handlers.activate(core, id, out);
        }
        if !core.view.is_voter(core.me) {
            // The reconfiguration of an earlier leader is committed now, and another server has to lead.
            core.end_role("this server does not vote by the configuration now in force".to_owned());
        }
    }

    fn on_tick(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        self.ticks += 1;
        let settings = core.settings;
        self.handlers.on_tick(core, out);
        self.go_on_alone(core, out);
        if self.is_broadcasting() {
            core.later_promises.note_quorum();
            self.look_after_lag(core, out);
            if self.ticks.is_multiple_of(settings.ping_ticks()) {
                self.handlers.ping(self.proposed, out);
            }
            if self.ticks.is_multiple_of(2 * settings.ping_ticks()) {
                self.look_after_quorum(core);
            }
        } else if let Phase::Leaving { to } = self.phase {
            self.try_leave(core, to);
        } else if settings.init_ticks() < self.ticks {
            let why = match (self.phase, self.accepted.next()) {
                (Phase::Discovering, None) => "no epoch is left".to_owned(),
                (Phase::Synchronising, _) => format!(
                    "no quorum within initLimit while {}; if learners get whole trees, raise initLimit",
                    self.phase
                ),
                (phase, _) => format!("no quorum within initLimit while {phase}"),
            };
            core.end_role(why);
        }
    }

    /// Ends the role once all followers have disconnected, as they do when they have read the name of the next leader: closing their
    /// connections here could lose that packet.
    fn try_leave(&self, core: &mut Core, to: ServerId) {
        let is_over = core.settings.ping_ticks() * 2 < self.ticks;
        if is_over || self.handlers.iter().all(|handler| handler.is_observer) {
            let why = format!("by the configuration now in force server {to} is to lead");
            core.go_on_under(Some(to), why);
        }
    }

    fn look_after_quorum(&self, core: &mut Core) {
        let mut there = self.servers_from(core, Stage::Synchronised);
        if core.is_joint() {
            // Observers that are to vote acknowledge no proposal. After an election they count, by their promises.
            let followers = self.handlers.iter().filter(|handler| !handler.is_observer);
            let followers: BTreeSet<ServerId> = followers.map(|handler| handler.id).collect();
            there.retain(|id| *id == core.me || followers.contains(id));
        }
        if !core.is_quorum(&there, self.without_other(core)) {
            core.end_role(format!("no quorum is synchronised, only {}", ServerList(&there)));
        }
    }
}
