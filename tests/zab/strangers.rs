//! One server among strangers who say anything at any time: it may close connections, give up its role and stay alone, and never
//! asserts. Its own disk and clients behave.

use crate::support::builders::learner_info;
use crate::support::peer::PeerOnDisk;
use crate::support::views::{VIEW, member, view_in, view_of};
use bytes::Bytes;
use oxkeeper::model::Rng;
use oxkeeper::model::{Epoch, Role as Kind, ServerId, SessionId, View, Zxid};
use oxkeeper::zab::{
    Action, Input, LearnerConnectionId, LearnerInfo, LogRead, Notification, Packet, Peer,
    PeerState, Request, Role, Settings, Vote,
};

const ME: ServerId = ServerId(1);

pub struct Strangers {
    server: PeerOnDisk,
    random: Rng,
    /// Times it led with a quorum, and served under a leader.
    pub led: usize,
    pub followed: usize,
}

impl Strangers {
    pub fn new(seed: u64) -> Self {
        let settings = Settings {
            tick_time_ms: 100,
            sync_limit: 5,
            reconfigs: seed.is_multiple_of(2),
            relays: seed.is_multiple_of(3),
            ..Settings::DEFAULT
        };
        let last = Zxid::new(Epoch(1), 3);
        let role = if seed.is_multiple_of(7) { Kind::Observer } else { Kind::Participant };
        let epochs = (Epoch(1), Epoch(1));
        let mut peer = Peer::member(ME, settings, view(0, 4, role), epochs, Some(last));
        peer.core.finds_view = view_in;
        let (server, random) = (PeerOnDisk::new(peer), Rng::seeded(seed));
        let mut strangers = Self { server, random, led: 0, followed: 0 };
        strangers.step(Input::Tick);
        strangers
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }

    pub fn live(&mut self, steps: usize) {
        for _ in 0..steps {
            match self.below(20) {
                0..5 => {
                    if let Some(done) = self.server.written() {
                        self.step(done);
                    }
                }
                5..8 => self.step(Input::Tick),
                8 => {
                    self.elect();
                    self.behave();
                }
                9 => self.propose(),
                10 => {
                    let from = ServerId(self.below(5) as i64);
                    let notification = self.notification();
                    self.step(Input::Notification { from, notification });
                }
                11..16 => {
                    let (connection, packet) = (LearnerConnectionId(self.below(4)), self.packet());
                    self.step(Input::Learner { connection, packet });
                }
                _ => self.odd_one(),
            }
        }
    }

    fn odd_one(&mut self) {
        let is_learning = matches!(self.server.peer.role(), Role::Learning(_));
        let input = match self.below(8) {
            0 => Input::LearnerGone { connection: LearnerConnectionId(self.below(4)) },
            1 if is_learning && self.below(4) == 0 => Input::LeaderGone,
            2 => Input::ElectionConnected { to: ServerId(self.below(5) as i64) },
            3 => Input::ElectionDisconnected { to: ServerId(self.below(5) as i64) },
            _ if is_learning => Input::Leader { packet: self.packet() },
            _ => Input::Learner {
                connection: LearnerConnectionId(self.below(4)),
                packet: self.packet(),
            },
        };
        self.step(input);
    }

    fn elect(&mut self) {
        let leader = 1 + self.below(3) as i64;
        for vote in self.server.votes_for(leader) {
            self.step(vote);
        }
    }

    /// What members would say up to here: a leader's followers, or a leader.
    fn behave(&mut self) {
        let last = self.server.peer.core.history.last();
        let next = Epoch(self.server.peer.core.accepted.0.saturating_add(1).min(u32::MAX >> 1));
        let from = |id: i64, packet| Input::Learner {
            connection: LearnerConnectionId(id as u64 + 4),
            packet,
        };
        let said = match self.server.peer.role() {
            Role::Looking(_) => return,
            Role::Leading(_) => (2..5)
                .flat_map(|id| {
                    let (accepted, current) = (Epoch(1), Some(Epoch(0)));
                    let info = learner_info(id);
                    let zxid = Zxid::new(next, 0);
                    [
                        from(id, Packet::FollowerInfo { accepted, info }),
                        Input::Tick,
                        from(id, Packet::AckEpoch { current, last: Some(last) }),
                        Input::Tick,
                        from(id, Packet::Ack { zxid }),
                    ]
                })
                .collect(),
            Role::Learning(_) => [
                Packet::LeaderInfo { epoch: next },
                Packet::Diff { zxid: last },
                Packet::NewLeader { epoch: next, view: Bytes::new() },
                Packet::UpToDate,
            ]
            .map(|packet| Input::Leader { packet })
            .to_vec(),
        };
        for input in said {
            while let Some(done) = self.server.written() {
                self.step(done);
            }
            self.step(input);
        }
    }

    fn propose(&mut self) {
        let Role::Leading(leader) = self.server.peer.role() else { return };
        if !leader.is_broadcasting() {
            return;
        }
        let last = self.server.peer.core.history.last().max(Zxid::new(leader.epoch(), 0));
        if let Some(zxid) = last.next() {
            self.step(Input::Propose { zxid, payload: Bytes::new() });
        }
    }

    fn step(&mut self, input: Input) {
        for action in self.server.step(input) {
            match action {
                Action::ReadLog { connection, .. } => {
                    self.step(Input::LogRead { connection, read: LogRead::default() });
                }
                Action::SendSnapshot { connection } => {
                    let zxid = self.server.peer.core.history.committed();
                    self.step(Input::SnapshotBegun { connection, zxid });
                }
                Action::FromLearner { connection, packet: Packet::Request(_) } => {
                    self.step(Input::Sync { connection });
                }
                Action::Lead { .. } => self.led += 1,
                Action::Follow { .. } => self.followed += 1,
                _ => {}
            }
        }
    }

    fn epoch(&mut self) -> Epoch {
        match self.below(40) {
            0 => Epoch(u32::MAX >> 1),
            1 => Epoch(0),
            _ => {
                let near = self.server.peer.core.accepted.0.saturating_sub(1);
                Epoch((near + self.below(4) as u32).min(u32::MAX >> 1))
            }
        }
    }

    /// Often one that means something here.
    fn zxid(&mut self) -> Zxid {
        let core = &self.server.peer.core;
        let (last, committed, epoch) =
            (core.history.last(), core.history.committed(), core.accepted);
        match self.below(8) {
            0 => committed,
            1 => last,
            2 => Zxid::new(epoch, 0),
            3 | 4 => last.next().unwrap_or(last),
            5 => Zxid::new(self.epoch(), u32::MAX),
            _ => Zxid::new(self.epoch(), self.below(6) as u32),
        }
    }

    fn entry(&mut self, at: Zxid) -> Bytes {
        if self.below(4) != 0 {
            return Bytes::new();
        }
        let view = self.view(at);
        format!("{VIEW}{view}").into()
    }

    fn view(&mut self, at: Zxid) -> View {
        let role = if self.below(4) == 0 { Kind::Observer } else { Kind::Participant };
        view(at.to_wire(), 2 + self.below(4) as i64, role)
    }

    fn notification(&mut self) -> Notification {
        let states =
            [PeerState::Looking, PeerState::Following, PeerState::Leading, PeerState::Observing];
        let state = states[self.below(4) as usize];
        let vote = Vote {
            epoch: i64::from(self.epoch().0),
            zxid: self.zxid().to_wire() - i64::from(self.below(9) == 0),
            leader: ServerId(self.below(5) as i64),
        };
        let round = if self.below(30) == 0 { i64::MAX } else { self.below(6) as i64 };
        let at = self.zxid();
        let config = (self.below(6) == 0).then(|| self.view(at).to_string().into());
        Notification { state, vote, round, version: 2, config, is_ours: false }
    }

    fn packet(&mut self) -> Packet {
        let (zxid, epoch) = (self.zxid(), self.epoch());
        let id = self.below(5) as i64;
        let view_version = if self.below(6) == 0 { zxid.to_wire() } else { 0 };
        let info = LearnerInfo { view_version, ..learner_info(id) };
        let id = ServerId(id);
        match self.below(22) {
            0..3 => Packet::FollowerInfo { accepted: epoch, info },
            3 => Packet::ObserverInfo { accepted: epoch, info },
            4 | 5 => Packet::LeaderInfo { epoch },
            6..8 => {
                let current = (self.below(4) != 0).then_some(Epoch(epoch.0.saturating_sub(1)));
                Packet::AckEpoch { current, last: (self.below(8) != 0).then_some(zxid) }
            }
            8 => Packet::Diff { zxid },
            9 => Packet::Trunc { zxid },
            10 => Packet::Snap { zxid },
            11 | 12 => {
                let view = (self.below(3) == 0).then(|| self.view(zxid).to_string().into());
                Packet::NewLeader {
                    epoch: self.server.peer.core.accepted,
                    view: view.unwrap_or_default(),
                }
            }
            13 => Packet::UpToDate,
            14 => Packet::Proposal { zxid, entry: self.entry(zxid) },
            15 => Packet::Commit { zxid },
            16 => Packet::Inform { zxid, entry: self.entry(zxid) },
            17 => match self.below(2) {
                0 => Packet::CommitAndActivate { zxid, leader: id },
                _ => Packet::InformAndActivate { zxid, leader: id, entry: self.entry(zxid) },
            },
            18 => {
                let body = Bytes::new();
                Packet::Request(Request { session: SessionId(1), xid: 1, op: 5, body, who: vec![] })
            }
            19 => Packet::Ping { zxid: 0, touched: None },
            _ => Packet::Ack { zxid },
        }
    }
}

/// Servers 1 to `count`, this one with `role`.
fn view(version: i64, count: i64, role: Kind) -> View {
    let mut view = view_of(version, 1..=count, []);
    view.members.insert(ME, member(ME, role));
    view
}
