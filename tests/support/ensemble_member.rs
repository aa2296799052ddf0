//! One member of an ensemble whose other members are played by a test. The member's log, snapshots and sockets perform its actions when
//! the test says so; the test also decides what the other members send.

use super::builders::{election_settings, shared};
use super::election::votes_for;
use super::exchanges::words_of;
use super::member::{MemberOnDisk, notification_bytes};
use super::sockets::Sockets;
use oxkeeper::member::election_connections::{ConnectionId, Input as Election};
use oxkeeper::member::sasl_exchange::ConnectionKind;
use oxkeeper::member::{Action, EnsembleSettings, Input};
use oxkeeper::model::{Epochs, ServerId, View};
use oxkeeper::replica::{self, Mode, Replica};
use oxkeeper::request::Limits;
use oxkeeper::store::Command;
use oxkeeper::store::worker::Event;
use oxkeeper::tree::{Options, Tree};
use oxkeeper::zab::{self, Core, LearnerConnectionId, Notification, Peer, Role};
use std::collections::BTreeMap;

pub struct EnsembleMember {
    pub host: MemberOnDisk,
    pub sockets: Sockets,
    /// Whether the member's dials of election ports succeed.
    pub is_reachable: bool,
    /// The last zxid in the log.
    logged: oxkeeper::model::Zxid,
    /// Number of learner connections so far.
    pub learners: u64,
    /// What other servers send in the SASL exchanges of their election connections.
    caller_exchange: Vec<u8>,
    /// Number of steps in each role.
    pub roles: BTreeMap<&'static str, usize>,
}

/// Settings of member `me`, without an `observerMasterPort`.
pub fn ensemble_settings(me: ServerId, view: View) -> EnsembleSettings {
    EnsembleSettings {
        my_id: me,
        own: view.members.get(&me).cloned(),
        decided: view.clone(),
        view,
        election: election_settings(me.0),
        listen_on_all_addresses: false,
        observer_master_port: None,
        backs_up_config: false,
        writes_config: false,
        tracked_messages: None,
    }
}

impl EnsembleMember {
    /// A member that starts with this tree and these epochs, before its first election.
    pub fn start(
        tree: Tree,
        zab: zab::Settings,
        replica: replica::Settings,
        epochs: Epochs,
        ensemble: EnsembleSettings,
    ) -> Self {
        let last = tree.last_zxid();
        let peer = Peer::member(ensemble.my_id, zab, ensemble.view.clone(), epochs, Some(last));
        let replica = Replica::member(shared(tree, Limits::default()), peer, replica, 0);
        Self::of(replica, Some(ensemble))
    }

    /// A standalone server that starts with this tree.
    pub fn start_standalone(tree: Tree) -> Self {
        let shared = shared(tree, Limits::default());
        Self::of(Replica::standalone(shared, replica::Settings::DEFAULT, 0), None)
    }

    fn of(replica: Replica, ensemble: Option<EnsembleSettings>) -> Self {
        let exchanges = ensemble.as_ref().map(|ensemble| ensemble.election.exchanges.clone());
        let words = exchanges.map(|exchanges| words_of(&exchanges, ConnectionKind::Election));
        let logged = replica.shared().state.tree.read().last_zxid();
        let mut member = Self {
            host: MemberOnDisk::new(replica, ensemble),
            sockets: Sockets::default(),
            is_reachable: true,
            logged,
            learners: 0,
            caller_exchange: words.map(|words| words.dialer.clone()).unwrap_or_default(),
            roles: BTreeMap::new(),
        };
        let out = member.host.start();
        member.perform(out);
        member
    }

    pub fn core(&self) -> &Core {
        &self.host.member.replica.peer().core
    }

    pub fn role(&self) -> &Role {
        self.host.member.replica.peer().role()
    }

    pub const fn has_ended(&self) -> bool {
        self.host.ended.is_some()
    }

    /// Gives an input, unless the member has ended.
    pub fn step(&mut self, input: Input) {
        if !self.has_ended() {
            let out = self.host.step(input);
            self.perform(out);
            self.note_role();
        }
    }

    /// Time passes.
    pub fn pass(&mut self, ms: u64) {
        // A driver asks for the deadline after each turn.
        let due_us = self.host.member.next_deadline_us();
        assert!(self.host.now.us < due_us + 1_000_000, "a deadline passed long ago");
        if !self.has_ended() {
            let out = self.host.pass(ms);
            self.perform(out);
            self.note_role();
        }
    }

    /// The member begins a snapshot.
    pub fn snapshot(&mut self) {
        let out = self.host.snapshot();
        self.perform(out);
    }

    fn perform(&mut self, actions: Vec<Action>) {
        let Self { sockets, is_reachable, .. } = self;
        actions.into_iter().for_each(|action| sockets.perform(action, || *is_reachable));
    }

    /// The member's current role, as tests count roles.
    pub fn role_name(&self) -> &'static str {
        match (self.host.member.replica.mode(), self.role()) {
            (Mode::Resting | Mode::ReadOnly, _) => "not serving",
            (Mode::Standalone, _) => "standalone",
            (Mode::Leading, Role::Leading(leader)) if leader.connections().count() > 0 => {
                "leading learners"
            }
            (Mode::Leading, _) => "leading",
            (Mode::Following, Role::Learning(by)) if by.connections().count() > 0 => {
                "following with observers"
            }
            (Mode::Following, _) => "following",
            (Mode::Observing, _) => "observing",
        }
    }

    fn note_role(&mut self) {
        *self.roles.entry(self.role_name()).or_default() += 1;
    }

    /// A thread or a socket does its first pending action and reports that to the member; `false`: nothing was pending.
    ///
    /// * `declines`: a snapshot of the member's own is not written, and a log that can't be truncated there stays as it is.
    pub fn report(&mut self, declines: bool) -> bool {
        if let Some(command) = self.host.asked.log.front() {
            let may_stay = matches!(command, Command::Truncate { replaced: false, .. });
            if may_stay && declines {
                self.host.asked.log.pop_front();
                self.step(Input::Log(Event::CannotTruncate { last: self.logged }));
                return true;
            }
            for (_, event) in self.host.run_log(1) {
                match &event {
                    Event::Flushed(report) => self.logged = report.through,
                    Event::Truncated { to } => self.logged = *to,
                    Event::Placed { zxid, replaces: true, .. } => self.logged = *zxid,
                    _ => {}
                }
                self.step(Input::Log(event));
            }
        } else if let Some(job) = self.host.asked.snapshots.pop_front() {
            let written = match job.is_leaders || !declines {
                true => self.host.write_snapshot(job),
                false => Input::SnapshotWritten { job, draft: None },
            };
            self.step(written);
        } else if let Some(loaded) = self.host.load_tree(Options::default()) {
            self.step(loaded);
        } else if let Some(read) = self.host.read_log() {
            self.step(read);
        } else if let Some(report) = self.sockets.reports.pop_front() {
            self.step(report);
        } else {
            return false;
        }
        true
    }

    pub fn report_all(&mut self) {
        while !self.has_ended() && self.report(false) {}
    }

    /// Another server dials the election port; returns the connection, unless the member has ended or refuses it.
    pub fn accept(&mut self) -> Option<ConnectionId> {
        if self.has_ended() {
            return None;
        }
        let (connection, actions) = self.host.accept()?;
        self.sockets.election.insert(connection);
        self.perform(actions);
        self.note_role();
        self.sockets.election.contains(&connection).then_some(connection)
    }

    /// A notification comes over another server's election connection; the server connects before that if it has no connection.
    pub fn notify(&mut self, from: ServerId, notification: &Notification) {
        let known = self.host.accepted.get(&from).copied();
        let Some(connection) = known.or_else(|| self.accept()) else { return };
        self.host.accepted.insert(from, connection);
        let exchange = known.is_none().then_some(&self.caller_exchange[..]);
        let bytes = notification_bytes(from, notification, exchange);
        self.step(Input::Election(Election::Received { connection, bytes }));
    }

    /// The other voters elect `leader`.
    pub fn elect(&mut self, leader: ServerId) {
        for vote in votes_for(self.host.member.replica.peer(), leader) {
            if let zab::Input::Notification { from, notification } = vote {
                self.notify(from, &notification);
            }
        }
    }

    /// A learner connects; returns its connection.
    pub fn connect(&mut self) -> LearnerConnectionId {
        let connection = LearnerConnectionId(self.learners);
        self.learners += 1;
        self.step(Input::LearnerConnected { connection, address: "there".to_owned() });
        connection
    }
}
