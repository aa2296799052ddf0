//! Packets of a learner to the server it learns from, a leader or an observer master, and that server's packets that concern
//! the learner's clients.
//!
//! Leader and observer master read the same packets and send the same kinds of answers; they differ in what they do between
//! (`learner_requests`, `observer_master`).

use super::interface::Action;
use crate::model::{SessionId, op};
use crate::zab::{self, LearnerConnectionId, Packet, Request};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// A decoded packet of a learner.
pub enum LearnerPacket {
    /// The answer to a ping: sessions that were touched since the last one.
    Touched(Bytes),
    /// A client has reconnected to the learner with its session.
    Revalidate { session: SessionId, timeout_ms: i32 },
    /// A write or sync of the learner's client, or a new session.
    Request(Request),
}

impl LearnerPacket {
    /// `None`: any other packet, or a REVALIDATE that is too short.
    pub fn read(packet: Packet) -> Option<Self> {
        match packet {
            Packet::Ping { touched, .. } => Some(Self::Touched(touched.unwrap_or_default())),
            Packet::Revalidate { mut data } => (12 <= data.len()).then(|| Self::Revalidate {
                session: SessionId(data.get_i64()),
                timeout_ms: data.get_i32(),
            }),
            Packet::Request(request) => Some(Self::Request(request)),
            // `zab` handles these itself.
            Packet::FollowerInfo { .. }
            | Packet::ObserverInfo { .. }
            | Packet::LeaderInfo { .. }
            | Packet::AckEpoch { .. }
            | Packet::Diff { .. }
            | Packet::Trunc { .. }
            | Packet::Snap { .. }
            | Packet::NewLeader { .. }
            | Packet::UpToDate
            | Packet::Proposal { .. }
            | Packet::Ack { .. }
            | Packet::Commit { .. }
            | Packet::Inform { .. }
            | Packet::CommitAndActivate { .. }
            | Packet::InformAndActivate { .. }
            | Packet::Sync
            | Packet::SessionMoved { .. } => None,
        }
    }
}

/// One packet of a leader or observer master that concerns a learner's clients.
pub enum LeaderPacket {
    Ping {
        zxid: i64,
    },
    /// Whether a session is valid: {long session, boolean valid}.
    Revalidate {
        data: Bytes,
    },
    /// The answer to the next sync.
    Sync,
    /// A session of this observer has moved to another server.
    SessionMoved {
        session: SessionId,
    },
}

impl LeaderPacket {
    /// `None`: any other packet.
    pub fn read(packet: Packet) -> Option<Self> {
        match packet {
            Packet::Ping { zxid, .. } => Some(Self::Ping { zxid }),
            Packet::Revalidate { data } => Some(Self::Revalidate { data }),
            Packet::Sync => Some(Self::Sync),
            Packet::SessionMoved { session } => Some(Self::SessionMoved { session }),
            // `zab` handles these itself.
            Packet::FollowerInfo { .. }
            | Packet::ObserverInfo { .. }
            | Packet::LeaderInfo { .. }
            | Packet::AckEpoch { .. }
            | Packet::Diff { .. }
            | Packet::Trunc { .. }
            | Packet::Snap { .. }
            | Packet::NewLeader { .. }
            | Packet::UpToDate
            | Packet::Proposal { .. }
            | Packet::Ack { .. }
            | Packet::Commit { .. }
            | Packet::Inform { .. }
            | Packet::CommitAndActivate { .. }
            | Packet::InformAndActivate { .. }
            | Packet::Request(_) => None,
        }
    }
}

/// A learner's question whether a reconnecting client's session is valid: {long session, int timeout}.
pub fn revalidate(session: SessionId, timeout_ms: i32) -> Packet {
    let mut data = BytesMut::with_capacity(12);
    data.put_i64(session.0);
    data.put_i32(timeout_ms);
    Packet::Revalidate { data: data.freeze() }
}

/// The answer to [`revalidate`]: {long session, boolean valid}.
pub fn revalidated(session: SessionId, is_valid: bool) -> Packet {
    let mut data = BytesMut::with_capacity(9);
    data.put_i64(session.0);
    data.put_u8(u8::from(is_valid));
    Packet::Revalidate { data: data.freeze() }
}

/// The request for a global session.
pub fn create_session(session: SessionId, timeout_ms: i32) -> Packet {
    let body = Bytes::copy_from_slice(&timeout_ms.to_be_bytes());
    let (op, identities) = (op::CREATE_SESSION, Vec::new());
    Packet::Request(Request { session, xid: 0, op, body, identities })
}

/// Limit on the sessions of one packet: a leader, ours or Java's, takes no packet above its `jute.maxbuffer`.
const PONG_SESSIONS_MAX: usize = 4096;

/// The answer to a ping: sessions that were touched, each {long session, int timeout}; at least one packet.
pub fn pongs(zxid: i64, touched: impl Iterator<Item = (SessionId, i32)>) -> Vec<Packet> {
    let (mut packets, mut data) = (Vec::new(), BytesMut::new());
    let packet = |data: &mut BytesMut| Packet::Ping { zxid, touched: Some(data.split().freeze()) };
    for (session, timeout_ms) in touched {
        if data.len() == 12 * PONG_SESSIONS_MAX {
            packets.push(packet(&mut data));
        }
        data.put_i64(session.0);
        data.put_i32(timeout_ms);
    }
    packets.push(packet(&mut data));
    packets
}

/// The sessions in [`LearnerPacket::Touched`], with their timeouts in milliseconds.
pub fn sessions_in(mut touched: Bytes) -> impl Iterator<Item = (SessionId, i32)> {
    std::iter::from_fn(move || {
        (12 <= touched.remaining()).then(|| (SessionId(touched.get_i64()), touched.get_i32()))
    })
}

/// Sends a packet to a learner.
pub fn to_learner(connection: LearnerConnectionId, packet: &Packet) -> Action {
    Action::Peer(zab::Action::ToLearner { connection, bytes: packet.to_bytes() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pongs_name_every_session_and_none_is_longer_than_a_leader_takes() {
        for (count, packets) in [(0, 1), (1, 1), (4096, 1), (4097, 2), (200_000, 49)] {
            let all = pongs(7, (0..count).map(|id| (SessionId(id), 30)));
            assert_eq!(all.len(), packets, "of {count} sessions");
            let touched = all.into_iter().map(|packet| match packet {
                Packet::Ping { zxid: 7, touched: Some(touched) } => touched,
                other => panic!("{other:?}"),
            });
            let named: Vec<_> = touched
                .inspect(|touched| assert!(touched.len() <= 12 * PONG_SESSIONS_MAX))
                .flat_map(sessions_in)
                .collect();
            assert!(named.into_iter().eq((0..count).map(|id| (SessionId(id), 30))));
        }
    }
}
