//! One server among strangers that send anything at any time: it may close connections, give up its role and stay alone, but no
//! assertion fails. Its own disk and clients behave.

use bytes::Bytes;
use oxkeeper::model::Rng;
use oxkeeper::model::{Epoch, Epochs, Role as Kind, ServerId, Zxid};
use oxkeeper::zab::{Action, Core, Input, LearnerConnectionId, Packet, Peer, Role, Settings};
use support::builders::learner_info;
use support::peer::PeerOnDisk;
use support::stranger::{ME, Stranger, view};
use support::views::{VIEW, view_in};

pub struct Strangers {
    server: PeerOnDisk,
    stranger: Stranger,
    /// How often the server led with a quorum, and how often it served under a leader.
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
        let epochs = Epochs::both(Epoch(1));
        let mut peer = Peer::member(ME, settings, view(0, 4, role), epochs, Some(last));
        peer.core.finds_view = view_in;
        let stranger = Stranger { random: Rng::seeded(seed), entry };
        let mut strangers = Self { server: PeerOnDisk::new(peer), stranger, led: 0, followed: 0 };
        strangers.step(Input::Tick);
        strangers
    }

    fn below(&mut self, n: u64) -> u64 {
        self.stranger.below(n)
    }

    fn packet(&mut self) -> Packet {
        self.stranger.packet(&self.server.peer.core)
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
                    let notification = self.stranger.notification(&self.server.peer.core);
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
        let input = match self.below(9) {
            0 => Input::LearnerGone { connection: LearnerConnectionId(self.below(4)) },
            1 if is_learning && self.below(4) == 0 => Input::LeaderGone,
            2 => Input::ElectionConnected { to: ServerId(self.below(5) as i64) },
            3 => Input::ElectionDisconnected { to: ServerId(self.below(5) as i64) },
            4 => Input::ElectionUnreached { to: ServerId(self.below(5) as i64) },
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

    /// What members would send up to this point: followers to a leader, or a leader to this server.
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
                Action::Lead { .. } => self.led += 1,
                Action::Follow { .. } => self.followed += 1,
                action => {
                    if let Some(answer) = self.server.answer(&action) {
                        self.step(answer);
                    }
                }
            }
        }
    }
}

/// The payload of a proposal: sometimes a configuration.
fn entry(stranger: &mut Stranger, _core: &Core, at: Zxid) -> Bytes {
    if stranger.below(4) != 0 {
        return Bytes::new();
    }
    let view = stranger.view(at);
    format!("{VIEW}{view}").into()
}
