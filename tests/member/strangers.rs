//! One member among strangers that send anything at any time, whatever its role is: it may refuse, close connections and
//! give up its role; it never panics, and it stops when it is asked to. Its own disk and sockets work.

use bytes::Bytes;
use oxkeeper::member::election_connections::{ConnectionId, Input as Election};
use oxkeeper::member::election_hello::Hello;
use oxkeeper::member::{EnsembleSettings, Input, QuorumPeer};
use oxkeeper::model::Rng;
use oxkeeper::model::{Epoch, Epochs, Role as Kind, ServerId, Zxid, op};
use oxkeeper::replica::{self, Mode};
use oxkeeper::zab::{self, Core, LearnerConnectionId, Packet, Role};
use support::builders::learner_info;
use support::ensemble_member::{EnsembleMember, ensemble_settings};
use support::stranger::{ME, Stranger, view};
use support::trees::tree_at;
use support::txns::{reconfig, set_data};

/// The last zxid of the log when the member starts.
const LAST: Zxid = Zxid::new(Epoch(1), 3);

pub struct Strangers {
    /// The outcome does not depend on the order in which its threads and sockets report.
    pub member: EnsembleMember,
    stranger: Stranger,
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
        let replica = replica::Settings {
            tick_time_ms: 100,
            snap_count: 10,
            local_sessions: seed.is_multiple_of(4),
            local_upgrades: seed.is_multiple_of(8),
            read_only: seed.is_multiple_of(7),
            seed,
            ..replica::Settings::DEFAULT
        };
        let ensemble = EnsembleSettings {
            observer_master_port: seed.is_multiple_of(3).then_some(2889),
            tracked_messages: seed.is_multiple_of(11).then_some(5),
            ..ensemble_settings(ME, view(0, 4, role))
        };
        let (tree, epochs) = (*tree_at(LAST, 3), Epochs::both(Epoch(1)));
        Self::new(seed, EnsembleMember::start(tree, zab, replica, epochs, ensemble))
    }

    pub fn standalone(seed: u64) -> Self {
        Self::new(seed, EnsembleMember::start_standalone(*tree_at(LAST, 3)))
    }

    fn new(seed: u64, member: EnsembleMember) -> Self {
        Self { member, stranger: Stranger { random: Rng::seeded(seed), entry } }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.stranger.below(n)
    }

    /// Takes `steps` steps. The member never ends by itself, whatever its leader makes it log and commit.
    pub fn live(&mut self, steps: usize) {
        for _ in 0..steps {
            self.one_step();
            if let Some(ended) = &self.member.host.ended {
                panic!("{ended:?}");
            }
        }
    }

    /// The member is asked to stop while the strangers go on.
    pub fn stop(&mut self) {
        self.step(Input::Stop);
        for _ in 0..2000 {
            if self.member.host.ended.is_some() {
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
                let declines = self.below(4) == 0;
                self.member.report(declines);
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
            22 => {
                self.member.connect();
            }
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
        self.member.is_reachable = self.below(2) != 0;
        self.member.step(input);
    }

    fn pass(&mut self, ms: u64) {
        self.member.is_reachable = self.below(2) != 0;
        self.member.pass(ms);
    }
}

/// Steps that members would take.
impl Strangers {
    fn elect(&mut self) {
        let leader = ServerId(1 + self.below(3) as i64);
        self.member.elect(leader);
    }

    /// A learner connects, and sends these packets.
    fn learn(&mut self, said: Vec<Packet>) {
        let from = QuorumPeer::Learner(self.member.connect());
        for packet in said {
            self.member.report_all();
            self.step(Input::Packets { from, packets: vec![packet] });
        }
    }

    /// The other servers send what they would in a regular start: a leader's followers, a leader, or a follower's observers.
    fn behave(&mut self) {
        let last = self.member.core().history.last();
        let next = Epoch(self.member.core().accepted.0.saturating_add(1).min(u32::MAX >> 1));
        let (is_serving, learns) = match self.member.role() {
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
            for back in 1..=3_u64.min(self.member.learners) {
                let from = QuorumPeer::Learner(LearnerConnectionId(self.member.learners - back));
                for packet in [ack.clone(), Packet::Ack { zxid: Zxid::new(next, 0) }] {
                    self.member.report_all();
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
                self.member.report_all();
                let from = QuorumPeer::Leader { dial: self.member.sockets.dial };
                self.step(Input::Packets { from, packets: vec![packet] });
            }
        }
        self.member.report_all();
    }

    /// A leader's learner forwards a write and acknowledges; a learner's leader proposes and commits.
    fn go_on(&mut self) {
        let last = self.member.core().history.last();
        let at = last.next().unwrap_or(last).max(Zxid::new(self.member.core().accepted, 1));
        if matches!(self.member.role(), Role::Learning(_)) {
            let from = QuorumPeer::Leader { dial: self.member.sockets.dial };
            let (kind, path) =
                if self.below(4) == 0 { (op::SYNC, "") } else { (op::SET_DATA, "/0") };
            let entry = set_data(at, kind, path, b"x");
            let entry = if kind == op::SYNC { config(self, at) } else { entry };
            let said = match self.member.host.member.replica.mode() {
                Mode::Observing => vec![Packet::Inform { zxid: at, entry }],
                _ => vec![Packet::Proposal { zxid: at, entry }, Packet::Commit { zxid: at }],
            };
            self.step(Input::Packets { from, packets: said });
        } else {
            for back in 1..=3_u64.min(self.member.learners) {
                let connection = LearnerConnectionId(self.member.learners - back);
                let sync = Packet::Request(zab::Request {
                    session: oxkeeper::model::SessionId(1),
                    xid: 1,
                    op: op::SET_DATA,
                    body: Bytes::from_static(b"\0\0\0\x02/0\0\0\0\x01y\xff\xff\xff\xff"),
                    identities: vec![],
                });
                let packets = vec![sync, Packet::Ack { zxid: self.member.core().history.last() }];
                self.step(Input::Packets { from: QuorumPeer::Learner(connection), packets });
            }
        }
    }
}

/// Steps that no member would take.
impl Strangers {
    /// Mostly one of the last learners; sometimes one that has not connected yet.
    fn some_learner(&mut self) -> QuorumPeer {
        let back = self.below(8);
        QuorumPeer::Learner(LearnerConnectionId((self.member.learners + 1).saturating_sub(back)))
    }

    /// Mostly the current dial.
    fn some_leader(&mut self) -> QuorumPeer {
        let dial = match self.below(6) {
            0 => self.member.sockets.dial.saturating_sub(1),
            1 => self.member.sockets.dial + 1,
            _ => self.member.sockets.dial,
        };
        QuorumPeer::Leader { dial }
    }

    fn say_anything(&mut self, from: QuorumPeer) {
        let count = 1 + self.below(4);
        let core = self.member.core();
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
        let zxid = self.stranger.zxid(self.member.core());
        let znodes = self.below(4) as usize;
        self.step(Input::LeaderTree { dial, zxid, tree: tree_at(zxid, znodes) });
    }

    fn say_anything_about_elections(&mut self) {
        let open: Vec<ConnectionId> = self.member.host.accepted.values().copied().collect();
        match self.below(6) {
            0..3 => {
                let from = ServerId(self.below(7) as i64 - 1);
                let notification = self.stranger.notification(self.member.core());
                self.member.notify(from, &notification);
            }
            3 if !open.is_empty() => {
                let connection = open[self.below(open.len() as u64) as usize];
                self.member.host.accepted.retain(|_, of| *of != connection);
                self.member.sockets.end_election(connection);
                let error = (self.below(2) == 0).then(|| "reset".to_owned());
                self.step(Input::Election(Election::Ended { connection, error }));
            }
            4 => {
                let Some(connection) = self.member.accept() else { return };
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
