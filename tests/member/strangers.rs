//! One member among strangers who say anything at any time, in whatever role: it may refuse, close connections and give up its role;
//! it never panics, and it stops when it is told to. Its own disk and sockets behave.

use crate::member::quorum_connection::tree_stream;
use bytes::Bytes;
use oxkeeper::member::election_connections::{ConnectionId, Input as Election};
use oxkeeper::member::election_hello::Hello;
use oxkeeper::member::{Action, EnsembleSettings, Input, QuorumPeer};
use oxkeeper::model::Rng;
use oxkeeper::model::{Epoch, Epochs, Role as Kind, ServerId, Zxid, op};
use oxkeeper::replica::{self, Mode, Replica};
use oxkeeper::request::Limits;
use oxkeeper::store::Command;
use oxkeeper::store::worker::Event;
use oxkeeper::tree::load::Loader;
use oxkeeper::tree::{Options, Tree};
use oxkeeper::zab::{self, Core, LearnerConnectionId, Packet, Peer, Role};
use std::collections::BTreeMap;
use support::builders::{election_settings, learner_info, shared};
use support::election::votes_for;
use support::member::{MemberOnDisk, notification_bytes};
use support::sockets::Sockets;
use support::stranger::{ME, Stranger, view};
use support::txns::{reconfig, set_data};

/// The last zxid of the log when the member starts.
const LAST: Zxid = Zxid::new(Epoch(1), 3);

pub struct Strangers {
    host: MemberOnDisk,
    stranger: Stranger,
    /// What becomes of the member with their reports does not depend on the order.
    sockets: Sockets,
    /// The last zxid that the log has.
    logged: Zxid,
    /// Learners' connections so far.
    learners: u64,
    /// Steps in each role.
    pub roles: BTreeMap<&'static str, usize>,
}

impl Strangers {
    pub fn member(seed: u64) -> Self {
        let zab = zab::Settings {
            tick_time_ms: 100,
            sync_limit: 5,
            reconfigs: seed.is_multiple_of(2),
            relays: seed.is_multiple_of(3),
            ..zab::Settings::DEFAULT
        };
        let role = if seed.is_multiple_of(5) { Kind::Observer } else { Kind::Participant };
        let view = view(0, 4, role);
        let peer = Peer::member(ME, zab, view.clone(), Epochs::both(Epoch(1)), Some(LAST));
        let replica = replica::Settings {
            tick_time_ms: 100,
            snap_count: 10,
            local_sessions: seed.is_multiple_of(4),
            local_upgrades: seed.is_multiple_of(8),
            read_only: seed.is_multiple_of(7),
            seed,
            ..replica::Settings::DEFAULT
        };
        let shared = shared(*tree_at(LAST, 3), Limits::default());
        let replica = Replica::member(shared, peer, replica, 0);
        let ensemble = EnsembleSettings {
            my_id: ME,
            view,
            election: election_settings(ME.0),
            listen_on_all_addresses: false,
            observer_master_port: seed.is_multiple_of(3).then_some(2889),
            backs_up_config: false,
            writes_config: false,
            tracked_messages: seed.is_multiple_of(11).then_some(5),
        };
        Self::new(seed, replica, Some(ensemble))
    }

    pub fn standalone(seed: u64) -> Self {
        let shared = shared(*tree_at(LAST, 3), Limits::default());
        Self::new(seed, Replica::standalone(shared, replica::Settings::DEFAULT, 0), None)
    }

    fn new(seed: u64, replica: Replica, ensemble: Option<EnsembleSettings>) -> Self {
        let mut strangers = Self {
            host: MemberOnDisk::new(replica, ensemble),
            stranger: Stranger { random: Rng::seeded(seed), entry },
            sockets: Sockets::default(),
            logged: LAST,
            learners: 0,
            roles: BTreeMap::new(),
        };
        let out = strangers.host.start();
        strangers.perform(out);
        strangers
    }

    fn below(&mut self, n: u64) -> u64 {
        self.stranger.below(n)
    }

    fn core(&self) -> &Core {
        &self.host.member.replica.peer().core
    }

    /// Takes so many steps. The member never ends by itself, whatever its leader makes it log and commit.
    pub fn live(&mut self, steps: usize) {
        for _ in 0..steps {
            self.one_step();
            if let Some(ended) = &self.host.ended {
                panic!("{ended:?}");
            }
        }
    }

    /// The member is told to stop while the strangers go on.
    pub fn stop(&mut self) {
        self.step(Input::Stop);
        for _ in 0..2000 {
            if self.host.ended.is_some() {
                return;
            }
            self.one_step();
            self.pass(5);
        }
        panic!("it does not stop");
    }

    fn one_step(&mut self) {
        match self.below(26) {
            0..6 => {
                self.report();
            }
            6..9 => {
                let ms = [5, 5, 10, 60, 300, 1500][self.below(6) as usize];
                self.pass(ms);
            }
            9 | 10 => {
                self.elect();
                self.behave();
            }
            11 | 12 => self.go_on(),
            13..18 => {
                let from = self.some_learner();
                self.say_anything(from);
            }
            18..21 => {
                let from = self.some_leader();
                self.say_anything(from);
            }
            21 => self.send_tree(),
            22 => self.connect(),
            23 => {
                let from =
                    if self.below(2) == 0 { self.some_learner() } else { self.some_leader() };
                let has_ended = self.below(3) == 0;
                self.step(match has_ended {
                    true => Input::Disconnected { from, why: "reset".to_owned() },
                    false => Input::Progress { from },
                });
            }
            _ => self.say_anything_about_elections(),
        }
    }

    fn step(&mut self, input: Input) {
        if self.host.ended.is_some() {
            return;
        }
        let out = self.host.step(input);
        self.perform(out);
        self.note_role();
    }

    fn note_role(&mut self) {
        let role = match (self.host.member.replica.mode(), self.host.member.replica.peer().role()) {
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
        };
        *self.roles.entry(role).or_default() += 1;
    }

    fn perform(&mut self, actions: Vec<Action>) {
        let Self { sockets, stranger, .. } = self;
        actions.into_iter().for_each(|action| sockets.perform(action, || stranger.below(2) != 0));
    }

    /// Time passes.
    fn pass(&mut self, ms: u64) {
        // A driver asks after each turn.
        let due_us = self.host.member.next_deadline_us();
        assert!(self.host.now.us < due_us + 1_000_000, "a deadline long ago");
        if self.host.ended.is_none() {
            let out = self.host.pass(ms);
            self.perform(out);
            self.note_role();
        }
    }

    /// A thread or a socket is done with something; `false`: nothing was asked.
    fn report(&mut self) -> bool {
        if let Some(command) = self.host.asked.log.front() {
            // A log that does not begin where it is to be cut stays as it is.
            let may_stay = matches!(command, Command::Truncate { replaced: false, .. });
            if may_stay && self.below(4) == 0 {
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
            let is_whole = job.is_leaders || self.below(4) != 0;
            let written = match is_whole {
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

    fn report_all(&mut self) {
        while self.host.ended.is_none() && self.report() {}
    }
}

/// What members would do.
impl Strangers {
    /// Another server's election connection brings a notification; it is made if there is none.
    fn notify(&mut self, from: ServerId, notification: &zab::Notification) {
        let known = self.host.accepted.get(&from).copied();
        let Some(connection) = known.or_else(|| self.accept()) else { return };
        self.host.accepted.insert(from, connection);
        let bytes = notification_bytes(from, notification, known.is_none());
        self.step(Input::Election(Election::Received { connection, bytes }));
    }

    fn accept(&mut self) -> Option<ConnectionId> {
        if self.host.ended.is_some() {
            return None;
        }
        let (connection, actions) = self.host.accept()?;
        self.sockets.election.insert(connection);
        self.perform(actions);
        self.note_role();
        self.sockets.election.contains(&connection).then_some(connection)
    }

    fn elect(&mut self) {
        let leader = ServerId(1 + self.below(3) as i64);
        for vote in votes_for(self.host.member.replica.peer(), leader) {
            if let zab::Input::Notification { from, notification } = vote {
                self.notify(from, &notification);
            }
        }
    }

    /// A learner connects, and says this.
    fn learn(&mut self, said: Vec<Packet>) {
        let connection = LearnerConnectionId(self.learners);
        self.connect();
        let from = QuorumPeer::Learner(connection);
        for packet in said {
            self.report_all();
            self.step(Input::Packets { from, packets: vec![packet] });
        }
    }

    fn connect(&mut self) {
        let connection = LearnerConnectionId(self.learners);
        self.learners += 1;
        self.step(Input::LearnerConnected { connection, address: "there".to_owned() });
    }

    /// What the others say up to here: a leader's followers, a leader, or a follower's observers.
    fn behave(&mut self) {
        let last = self.core().history.last();
        let next = Epoch(self.core().accepted.0.saturating_add(1).min(u32::MAX >> 1));
        let (is_serving, learns) = match self.host.member.replica.peer().role() {
            Role::Looking(_) => return,
            Role::Leading(_) => (false, false),
            Role::Learning(learner) => (learner.is_serving(), true),
        };
        let ack = Packet::AckEpoch { current: Some(Epoch(0)), last: Some(last) };
        if !learns {
            for id in 2..5 {
                let info = Packet::FollowerInfo { accepted: Epoch(1), info: learner_info(id) };
                self.learn(vec![info, ack.clone(), Packet::Ack { zxid: Zxid::new(next, 0) }]);
            }
            // All of them have connected: the epoch is open.
            for back in 1..=3_u64.min(self.learners) {
                let from = QuorumPeer::Learner(LearnerConnectionId(self.learners - back));
                for packet in [ack.clone(), Packet::Ack { zxid: Zxid::new(next, 0) }] {
                    self.report_all();
                    self.step(Input::Packets { from, packets: vec![packet] });
                }
            }
        } else if is_serving {
            let info = Packet::ObserverInfo { accepted: Epoch(1), info: learner_info(4) };
            self.learn(vec![info, ack, Packet::Ack { zxid: last }]);
        } else {
            for packet in [
                Packet::LeaderInfo { epoch: next },
                Packet::Diff { zxid: last },
                Packet::NewLeader { epoch: next, view: Bytes::new() },
                Packet::UpToDate,
            ] {
                self.report_all();
                let from = QuorumPeer::Leader { dial: self.sockets.dial };
                self.step(Input::Packets { from, packets: vec![packet] });
            }
        }
        self.report_all();
    }

    /// A leader's learner asks for a write and acknowledges; a learner's leader proposes and commits.
    fn go_on(&mut self) {
        let last = self.core().history.last();
        let at = last.next().unwrap_or(last).max(Zxid::new(self.core().accepted, 1));
        if matches!(self.host.member.replica.peer().role(), Role::Learning(_)) {
            let from = QuorumPeer::Leader { dial: self.sockets.dial };
            let (kind, path) =
                if self.below(4) == 0 { (op::SYNC, "") } else { (op::SET_DATA, "/0") };
            let entry = set_data(at, kind, path, b"x");
            let entry = if kind == op::SYNC { config(self, at) } else { entry };
            let said = match self.host.member.replica.mode() {
                Mode::Observing => vec![Packet::Inform { zxid: at, entry }],
                _ => vec![Packet::Proposal { zxid: at, entry }, Packet::Commit { zxid: at }],
            };
            self.step(Input::Packets { from, packets: said });
        } else {
            for back in 1..=3_u64.min(self.learners) {
                let connection = LearnerConnectionId(self.learners - back);
                let sync = Packet::Request(zab::Request {
                    session: oxkeeper::model::SessionId(1),
                    xid: 1,
                    op: op::SET_DATA,
                    body: Bytes::from_static(b"\0\0\0\x02/0\0\0\0\x01y\xff\xff\xff\xff"),
                    who: vec![],
                });
                let packets = vec![sync, Packet::Ack { zxid: self.core().history.last() }];
                self.step(Input::Packets { from: QuorumPeer::Learner(connection), packets });
            }
        }
    }
}

/// What nobody would do.
impl Strangers {
    /// Mostly one of the last learners; sometimes one that is still to come.
    fn some_learner(&mut self) -> QuorumPeer {
        let back = self.below(8);
        QuorumPeer::Learner(LearnerConnectionId((self.learners + 1).saturating_sub(back)))
    }

    /// Mostly the current dial.
    fn some_leader(&mut self) -> QuorumPeer {
        let dial = match self.below(6) {
            0 => self.sockets.dial.saturating_sub(1),
            1 => self.sockets.dial + 1,
            _ => self.sockets.dial,
        };
        QuorumPeer::Leader { dial }
    }

    fn say_anything(&mut self, from: QuorumPeer) {
        let count = 1 + self.below(4);
        let core = &self.host.member.replica.peer().core;
        // SNAP comes as a tree.
        let said = (0..count).map(|_| self.stranger.packet(core));
        let packets: Vec<Packet> =
            said.filter(|said| !matches!(said, Packet::Snap { .. })).collect();
        if !packets.is_empty() {
            self.step(Input::Packets { from, packets });
        }
    }

    fn send_tree(&mut self) {
        let QuorumPeer::Leader { dial } = self.some_leader() else { return };
        let zxid = self.stranger.zxid(&self.host.member.replica.peer().core);
        let znodes = self.below(4) as usize;
        self.step(Input::LeaderTree { dial, zxid, tree: tree_at(zxid, znodes) });
    }

    fn say_anything_about_elections(&mut self) {
        let open: Vec<ConnectionId> = self.host.accepted.values().copied().collect();
        match self.below(6) {
            0..3 => {
                let from = ServerId(self.below(7) as i64 - 1);
                let notification =
                    self.stranger.notification(&self.host.member.replica.peer().core);
                self.notify(from, &notification);
            }
            3 if !open.is_empty() => {
                let connection = open[self.below(open.len() as u64) as usize];
                self.host.accepted.retain(|_, of| *of != connection);
                self.sockets.end_election(connection);
                let error = (self.below(2) == 0).then(|| "reset".to_owned());
                self.step(Input::Election(Election::Ended { connection, error }));
            }
            4 => {
                let Some(connection) = self.accept() else { return };
                let id = [i64::MIN, -1, 0, 1, 2, 9, i64::MAX][self.below(7) as usize];
                let mut bytes = Hello { id: ServerId(id), addresses: vec![] }.encode(true);
                let at = self.below(bytes.len() as u64) as usize;
                bytes[at] ^= [0, 0, 1, 0x80][self.below(4) as usize];
                self.step(Input::Election(Election::Received { connection, bytes: bytes.into() }));
            }
            _ if !open.is_empty() => {
                let connection = open[self.below(open.len() as u64) as usize];
                let len = self.below(60) as i32;
                let mut bytes = (len - 2).to_be_bytes().to_vec();
                bytes.extend((0..len).map(|_| self.stranger.below(256) as u8));
                self.step(Input::Election(Election::Received { connection, bytes: bytes.into() }));
            }
            _ => {}
        }
    }
}

fn tree_at(zxid: Zxid, znodes: usize) -> Box<Tree> {
    let mut loader = Loader::new(Options::default());
    assert!(loader.take(&tree_stream(znodes)).unwrap().ended);
    Box::new(loader.finish(zxid).unwrap())
}

fn config(strangers: &mut Strangers, zxid: Zxid) -> Bytes {
    let view = strangers.stranger.view(zxid).to_string();
    reconfig(zxid, &view)
}

/// A transaction, sometimes an entry that can't be read, is empty, or ends within its header or record.
fn entry(stranger: &mut Stranger, core: &Core, zxid: Zxid) -> Bytes {
    const KINDS: [i32; 10] =
        [-11, -10, -1, op::CREATE, op::DELETE, op::SET_DATA, 7, 14, op::RECONFIG, 21];
    let said = if stranger.below(20) == 0 { stranger.zxid(core) } else { zxid };
    match stranger.below(40) {
        0 => {
            let whole = set_data(said, op::SET_DATA, "/0", b"x");
            whole.slice(..stranger.below(whole.len() as u64) as usize)
        }
        10 => Bytes::new(),
        1..9 => {
            let view = stranger.view(zxid).to_string();
            reconfig(said, &view)
        }
        9 => {
            let kind = KINDS[stranger.below(10) as usize];
            set_data(said, kind, "/1", b"x")
        }
        at => set_data(said, op::SET_DATA, ["/0", "/1", "/none"][at as usize % 3], b"x"),
    }
}
