//! Packets of learner connections as bytes.

use bytes::{Bytes, BytesMut};
use jute::{put_buffer, put_i32, put_i64};
use oxkeeper::model::{Epoch, Identity, ServerId, SessionId, Zxid};
use oxkeeper::zab::{LearnerInfo, Packet, PacketError, PacketLimits, Request};

/// Types of packets by their numbers on a learner connection.
mod kind {
    pub const REQUEST: i32 = 1;
    pub const PROPOSAL: i32 = 2;
    pub const COMMIT: i32 = 4;
    pub const REVALIDATE: i32 = 6;
    pub const SYNC: i32 = 7;
    pub const FOLLOWER_INFO: i32 = 11;
    pub const ACK_EPOCH: i32 = 18;
}

/// A packet without identities, field by field.
fn put(to: &mut Vec<u8>, kind: i32, zxid: i64, data: Option<&[u8]>) {
    put_i32(to, kind);
    put_i64(to, zxid);
    match data {
        Some(data) => put_buffer(to, data),
        None => put_i32(to, -1),
    }
    put_i32(to, -1);
}

fn all() -> Vec<Packet> {
    let zxid = Zxid::new(Epoch(7), 9);
    let info = LearnerInfo { id: ServerId(3), protocol_version: 0x10000, view_version: 5 };
    let (entry, leader) = (Bytes::from_static(b"entry"), ServerId(2));
    let identities = vec![Identity::new("ip", "::1"), Identity::new("digest", "u:h")];
    let request = Request { session: SessionId(1), xid: 2, op: 3, body: entry.clone(), identities };
    vec![
        Packet::FollowerInfo { accepted: Epoch(4), info },
        Packet::ObserverInfo { accepted: Epoch(4), info },
        Packet::LeaderInfo { epoch: Epoch(5) },
        Packet::AckEpoch { current: None, last: None },
        Packet::AckEpoch { current: Some(Epoch(4)), last: Some(zxid) },
        Packet::Diff { zxid },
        Packet::Trunc { zxid },
        Packet::Snap { zxid },
        Packet::NewLeader { epoch: Epoch(5), view: Bytes::from_static(b"version=0") },
        Packet::UpToDate,
        Packet::Proposal { zxid, entry: entry.clone() },
        Packet::Ack { zxid },
        Packet::Commit { zxid },
        Packet::Inform { zxid, entry: entry.clone() },
        Packet::CommitAndActivate { zxid, leader },
        Packet::InformAndActivate { zxid, leader, entry },
        Packet::Ping { zxid: -1, touched: Some(Bytes::from_static(b"abcdefghijkl")) },
        Packet::Ping { zxid: 0x7_0000_0009, touched: None },
        Packet::Revalidate { data: Bytes::from_static(b"123456789") },
        Packet::Request(request),
        Packet::Sync,
        Packet::SessionMoved { session: SessionId(7) },
    ]
}

#[test]
fn every_packet_survives_the_wire_in_any_pieces() {
    let mut wire = Vec::new();
    all().iter().for_each(|packet| packet.encode(&mut wire));
    for piece in [1, 3, 7, wire.len()] {
        let (mut buffer, mut found) = (BytesMut::new(), Vec::new());
        for bytes in wire.chunks(piece) {
            buffer.extend_from_slice(bytes);
            while let Some(packet) = Packet::decode(&mut buffer).unwrap() {
                found.push(packet);
            }
        }
        assert_eq!(found, all());
        assert!(buffer.is_empty());
    }
}

#[test]
fn bytes_that_begin_no_packet_are_refused_at_once() {
    let limits = PacketLimits::of(2 * 0xf_ffff);
    let decode = |bytes: &[u8]| Packet::decode_within(&mut BytesMut::from(bytes), limits);
    assert_eq!(decode(b"GET / HTTP"), Err(PacketError::Kind(0x4745_5420)));
    assert_eq!(decode(&[0; 4]), Err(PacketError::Kind(0)));
    let mut long = Vec::new();
    put_i32(&mut long, kind::PROPOSAL);
    put_i64(&mut long, 1);
    put_i32(&mut long, i32::MAX);
    assert!(matches!(decode(&long), Err(PacketError::Data { .. })));
    for short in [kind::FOLLOWER_INFO, kind::REQUEST, kind::REVALIDATE, kind::ACK_EPOCH] {
        let mut bytes = Vec::new();
        put(&mut bytes, short, 1, Some(b"abc"));
        assert_eq!(decode(&bytes), Err(PacketError::Data { kind: short, len: 3 }));
    }
    let mut negative = Vec::new();
    put(&mut negative, kind::COMMIT, -2, None);
    assert_eq!(decode(&negative), Err(PacketError::Zxid { kind: kind::COMMIT, zxid: -2 }));
    let mut crowd = Vec::new();
    put(&mut crowd, kind::SYNC, 0, None);
    crowd.truncate(crowd.len() - 4);
    put_i32(&mut crowd, i32::MAX);
    assert!(matches!(decode(&crowd), Err(PacketError::Auth { .. })));
}

/// Before 3.5 no configuration version follows the protocol version, and before 3.4 there is neither.
// rows: Q-61
#[test]
fn hello_of_an_older_learner_is_read_without_a_configuration_version() {
    let decode = |data: &[u8]| {
        let mut bytes = Vec::new();
        put(&mut bytes, kind::FOLLOWER_INFO, 1 << 32, Some(data));
        Packet::decode(&mut BytesMut::from(&bytes[..]))
    };
    let info = LearnerInfo { id: ServerId(3), protocol_version: 0x10000, view_version: 7 };
    let whole =
        [&3_i64.to_be_bytes()[..], &0x10000_i32.to_be_bytes(), &7_i64.to_be_bytes()].concat();
    let packet = |info| Ok(Some(Packet::FollowerInfo { accepted: Epoch(1), info }));
    assert_eq!(decode(&whole), packet(info));
    assert_eq!(decode(&whole[..12]), packet(LearnerInfo { view_version: 0, ..info }));
    for len in [0, 8, 11] {
        let short = PacketError::Data { kind: kind::FOLLOWER_INFO, len: len as i64 };
        assert_eq!(decode(&whole[..len]), Err(short));
    }
}

// rows: Q-42
#[test]
fn ack_of_uptodate_is_not_merged_with_other_acks() {
    let ack = |counter| Packet::Ack { zxid: Zxid::new(Epoch(2), counter) };
    let mut packets = Vec::new();
    // A learner of ours sends 0 a second time at UPTODATE, after the ACKs of what was proposed before.
    for counter in [0, 1, 2, 3, 0, 4, 5] {
        ack(counter).push_to(&mut packets);
    }
    assert_eq!(packets, [ack(0), ack(3), ack(0), ack(5)]);
}
