//! Random packets and notifications, many of which are meaningful to the server that gets them.

use super::builders::learner_info;
use super::views::{member, view_of};
use bytes::Bytes;
use oxkeeper::model::Rng;
use oxkeeper::model::{Epoch, Role as Kind, ServerId, SessionId, View, Zxid};
use oxkeeper::zab::{Core, LearnerInfo, Notification, Packet, PeerState, Request, Vote};

/// The server that gets them.
pub const ME: ServerId = ServerId(1);

/// A configuration of servers 1 to `count`, [`ME`] with `role`.
pub fn view(version: i64, count: i64, role: Kind) -> View {
    let mut view = view_of(version, 1..=count, []);
    view.members.insert(ME, member(ME, role));
    view
}

pub struct Stranger {
    pub random: Rng,
    /// Makes the transaction of a proposal with this zxid.
    pub entry: fn(&mut Self, &Core, Zxid) -> Bytes,
}

impl Stranger {
    pub fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }

    fn epoch(&mut self, core: &Core) -> Epoch {
        match self.below(40) {
            0 => Epoch(u32::MAX >> 1),
            1 => Epoch(0),
            _ => {
                let near = core.accepted.0.saturating_sub(1);
                Epoch((near + self.below(4) as u32).min(u32::MAX >> 1))
            }
        }
    }

    /// A random zxid, often one that is meaningful to the server.
    pub fn zxid(&mut self, core: &Core) -> Zxid {
        let (last, committed, epoch) =
            (core.history.last(), core.history.committed(), core.accepted);
        match self.below(8) {
            0 => committed,
            1 => last,
            2 => Zxid::new(epoch, 0),
            3 | 4 => last.next().unwrap_or(last),
            5 => Zxid::new(self.epoch(core), u32::MAX),
            _ => Zxid::new(self.epoch(core), self.below(6) as u32),
        }
    }

    pub fn view(&mut self, at: Zxid) -> View {
        let role = if self.below(4) == 0 { Kind::Observer } else { Kind::Participant };
        view(at.to_wire(), 2 + self.below(4) as i64, role)
    }

    pub fn notification(&mut self, core: &Core) -> Notification {
        let states =
            [PeerState::Looking, PeerState::Following, PeerState::Leading, PeerState::Observing];
        let state = states[self.below(4) as usize];
        let vote = Vote {
            epoch: i64::from(self.epoch(core).0),
            zxid: self.zxid(core).to_wire() - i64::from(self.below(9) == 0),
            leader: ServerId(self.below(5) as i64),
        };
        let round = if self.below(30) == 0 { i64::MAX } else { self.below(6) as i64 };
        let at = self.zxid(core);
        let config = (self.below(6) == 0).then(|| self.view(at).to_string().into());
        let candidates_view = (self.below(3) == 0).then(|| self.view(at).to_string().into());
        let is_ours = candidates_view.is_some();
        Notification { state, vote, round, version: 2, config, is_ours, candidates_view }
    }

    pub fn packet(&mut self, core: &Core) -> Packet {
        let (zxid, epoch) = (self.zxid(core), self.epoch(core));
        let id = self.below(5) as i64;
        let view_version = if self.below(6) == 0 { zxid.to_wire() } else { 0 };
        let info = LearnerInfo { view_version, ..learner_info(id) };
        let id = ServerId(id);
        match self.below(24) {
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
                Packet::NewLeader { epoch: core.accepted, view: view.unwrap_or_default() }
            }
            13 => Packet::UpToDate,
            14 => Packet::Proposal { zxid, entry: self.entry_at(core, zxid) },
            15 => Packet::Commit { zxid },
            16 => Packet::Inform { zxid, entry: self.entry_at(core, zxid) },
            17 => match self.below(2) {
                0 => Packet::CommitAndActivate { zxid, leader: id },
                _ => {
                    let entry = self.entry_at(core, zxid);
                    Packet::InformAndActivate { zxid, leader: id, entry }
                }
            },
            18 => Packet::Request(self.request()),
            19 => {
                let touched = (self.below(2) == 0).then(|| self.sessions());
                Packet::Ping { zxid: zxid.to_wire(), touched }
            }
            20 => Packet::Revalidate { data: self.sessions() },
            21 => Packet::Sync,
            22 => Packet::SessionMoved { session: SessionId(self.below(4) as i64) },
            _ => Packet::Ack { zxid },
        }
    }

    fn entry_at(&mut self, core: &Core, zxid: Zxid) -> Bytes {
        (self.entry)(self, core, zxid)
    }

    /// A random request, often a sync.
    fn request(&mut self) -> Request {
        const OPS: [i32; 16] = [-11, -10, 0, 1, 2, 5, 7, 9, 13, 14, 15, 16, 19, 20, 100, i32::MAX];
        let op = if self.below(2) == 0 { 9 } else { OPS[self.below(16) as usize] };
        let session = SessionId(self.below(4) as i64);
        let xid = self.below(3) as i32 - 1;
        let path =
            b"\0\0\0\x02/a\0\0\0\x01x\0\0\0\x01\0\0\0\x1f\0\0\0\x05world\0\0\0\x06anyone\0\0\0\0";
        let len = if self.below(2) == 0 { path.len() } else { self.below(40) as usize };
        let body = Bytes::from_static(&path[..len]);
        Request { session, xid, op, body, identities: vec![] }
    }

    /// Sessions and their timeouts, sometimes cut off.
    fn sessions(&mut self) -> Bytes {
        let (count, cut) = (self.below(3), if self.below(4) == 0 { self.below(12) } else { 0 });
        let mut data = Vec::new();
        for _ in 0..count {
            data.extend_from_slice(&self.below(4).to_be_bytes());
            data.extend_from_slice(&[0, 0, 0x0f, 0xa0]);
        }
        data.truncate(data.len().saturating_sub(cut as usize));
        data.into()
    }
}
