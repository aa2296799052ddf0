//! What a fuzzer sends to a member in any phase of any role (fuzz target `peers`).
//!
//! The input: a phase, a byte of settings, a byte of limits, and then either one stream of bytes or a list of moves.

use super::builders::learner_info;
use super::learner_streams::LearnerStreams;
use super::moves::{Allowance, Moves};
use super::phases::{NoSasl, Phase, write};
use super::txns::{reconfig, set_data};
use super::views::view_of;
use bytes::Bytes;
use jute::{put_buffer, put_i32, put_i64};
use oxkeeper::model::{Epoch, ServerId, Zxid, op};
use oxkeeper::zab::Packet;
use std::sync::Arc;

/// A bit of the settings: the rest of the input is one stream of bytes.
const IS_STREAM: u8 = 0x80;
/// The limit on entries with Java's defaults, and a limit that short inputs reach.
const ENTRIES_MAX: [usize; 4] = [2 * 0xf_ffff, 2 * 0xf_ffff, 2 * 0xf_ffff, 512];
/// The last one is longer than initLimit and syncLimit.
const PAUSES_MS: [u64; 5] = [5, 10, 60, 300, 1500];
const TIME_MS: u64 = 2500;
const KINDS: [i32; 20] =
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 0x6f78];

/// Plays an input from its phase on, and returns the streams, with the member as the input has left it.
///
/// # Panics
/// When the member ends, fails an assertion, or keeps more bytes than it received.
pub fn play(input: &[u8]) -> LearnerStreams {
    let mut moves = Moves(input);
    let phase = moves.choose(&Phase::ALL).unwrap_or(Phase::Looking);
    let (settings, limits) = (moves.byte(), moves.byte());
    let entry_max = ENTRIES_MAX[usize::from(limits) % 4];
    let mut streams = phase.enter(settings, Arc::new(NoSasl), entry_max);
    streams.member.roles.clear();
    if settings & IS_STREAM == 0 {
        let mut allowance = Allowance::new(TIME_MS);
        while !moves.is_empty() {
            one_move(&mut streams, &mut moves, &mut allowance);
            check(&streams);
        }
    } else {
        stream(&mut streams, usize::from(limits / 4), moves.0);
    }
    streams.report_all();
    streams.pass(5);
    check(&streams);
    streams.end_all();
    streams
}

/// The phase that an input begins with.
pub fn phase_of(input: &[u8]) -> Phase {
    Moves(input).choose(&Phase::ALL).unwrap_or(Phase::Looking)
}

fn check(streams: &LearnerStreams) {
    assert!(!streams.member.has_ended(), "{:?}", streams.member.host.ended);
}

/// One connection brings all of these bytes, in reads of 64 bytes; the member's threads keep up.
fn stream(streams: &mut LearnerStreams, choice: usize, bytes: &[u8]) {
    let Some(peer) = streams.peer(choice) else { return };
    for read in bytes.chunks(64) {
        streams.receive(peer, read);
        streams.report_all();
        streams.pass(5);
        check(streams);
    }
}

fn one_move(streams: &mut LearnerStreams, moves: &mut Moves<'_>, allowance: &mut Allowance) {
    let choice = moves.byte();
    let peer = streams.peer(usize::from(choice / 16));
    match (choice % 16, peer) {
        (0..4, Some(peer)) => {
            let packet = packet(streams, moves);
            streams.receive(peer, &packet);
        }
        (4, Some(peer)) => streams.receive(peer, moves.bytes()),
        (5..8, Some(peer)) => {
            let packets = peers_packets(streams, moves);
            for packet in packets {
                streams.receive(peer, &packet.to_bytes());
            }
        }
        (0..8, None) => {}
        (8 | 9, _) => {
            streams.member.report(choice / 16 % 4 == 3);
            streams.follow_member();
        }
        (10, _) => streams.report_all(),
        (11, _) => streams.pass(allowance.pause(PAUSES_MS[usize::from(choice / 16) % 5])),
        (12, _) => {
            streams.connect();
        }
        (13, Some(peer)) => streams.end(peer),
        (14, _) => {
            streams.member.elect(ServerId(i64::from(choice / 16) % 5));
            streams.follow_member();
        }
        (15, _) if choice / 16 == 0 && allowance.snapshot() => {
            streams.report_all();
            streams.member.snapshot();
            streams.follow_member();
        }
        _ => streams.pass(5),
    }
}

fn zxid(streams: &LearnerStreams, moves: &mut Moves<'_>) -> i64 {
    let core = streams.member.core();
    let (last, choice) = (core.history.last(), moves.byte());
    let counter = u32::from(choice / 8);
    match choice % 8 {
        0 => core.history.committed().to_wire(),
        1 => last.to_wire(),
        2 => Zxid::new(core.accepted, 0).to_wire(),
        3 => last.next().unwrap_or(last).to_wire(),
        4 => Zxid::new(core.accepted, counter).to_wire(),
        5 => Zxid::new(Epoch(core.accepted.0.saturating_add(1)), counter).to_wire(),
        6 => Zxid::new(Epoch(1), counter).to_wire(),
        _ => {
            let raw = moves.take(8);
            raw.iter().fold(0, |value, &byte| value << 8 | i64::from(byte))
        }
    }
}

/// A packet with valid lengths and any content.
fn packet(streams: &LearnerStreams, moves: &mut Moves<'_>) -> Vec<u8> {
    let choice = moves.byte();
    let mut packet = Vec::new();
    put_i32(&mut packet, KINDS[usize::from(choice) % KINDS.len()]);
    put_i64(&mut packet, zxid(streams, moves));
    match moves.byte() {
        0xff => put_i32(&mut packet, -1),
        len => put_buffer(&mut packet, moves.take(usize::from(len))),
    }
    // One packet in six has auth data.
    if usize::from(choice) < 240 - 2 * KINDS.len() {
        put_i32(&mut packet, -1);
    } else {
        put_i32(&mut packet, 1);
        put_buffer(&mut packet, moves.bytes());
        put_buffer(&mut packet, moves.bytes());
    }
    packet
}

/// Valid packets: what a leader proposes and commits, or what a learner acknowledges.
fn peers_packets(streams: &LearnerStreams, moves: &mut Moves<'_>) -> Vec<Packet> {
    let choice = moves.byte();
    let core = streams.member.core();
    let last = core.history.last();
    let Some(zxid) = Zxid::from_wire(zxid(streams, moves)) else { return Vec::new() };
    let epoch = core.accepted;
    let entry = entry(zxid, choice / 16, moves);
    match choice % 16 {
        0 => vec![Packet::Proposal { zxid, entry }],
        1 => vec![Packet::Proposal { zxid, entry }, Packet::Commit { zxid }],
        2 => vec![Packet::Commit { zxid }],
        3 => vec![Packet::Inform { zxid, entry }],
        4 => vec![Packet::InformAndActivate { zxid, leader: ServerId(2), entry }],
        5 => vec![Packet::CommitAndActivate { zxid, leader: ServerId(2) }],
        6 => vec![Packet::NewLeader { epoch, view: Bytes::new() }, Packet::UpToDate],
        7 => vec![Packet::LeaderInfo { epoch: zxid.epoch() }],
        8 => vec![Packet::Diff { zxid }],
        9 => vec![Packet::Trunc { zxid }],
        10 | 11 => vec![Packet::Ack { zxid }],
        12 => {
            let info = learner_info(i64::from(choice / 16) % 6);
            vec![Packet::FollowerInfo { accepted: zxid.epoch(), info }]
        }
        13 => {
            let info = learner_info(i64::from(choice / 16) % 6);
            vec![Packet::ObserverInfo { accepted: zxid.epoch(), info }]
        }
        14 => vec![Packet::AckEpoch { current: Some(zxid.epoch()), last: Some(last) }],
        _ => vec![Packet::AckEpoch { current: Some(Epoch(1)), last: Some(zxid) }],
    }
}

/// A transaction: a write, a configuration, a record of another kind, or any bytes.
fn entry(zxid: Zxid, choice: u8, moves: &mut Moves<'_>) -> Bytes {
    match choice {
        0..8 => write(zxid),
        8 => set_data(zxid, i32::from(moves.byte()) - 11, "/1", moves.bytes()),
        9 => set_data(zxid, op::SET_DATA, "/none", b"x"),
        10 => reconfig(zxid, &view_of(zxid.to_wire(), 1..=4, []).to_string()),
        11 => reconfig(zxid, &view_of(zxid.to_wire(), 2..=4, [1]).to_string()),
        12 => reconfig(zxid, &view_of(zxid.to_wire(), 1..=2, []).to_string()),
        13 => reconfig(zxid, &view_of(zxid.to_wire(), 2..=4, []).to_string()),
        14 => Bytes::new(),
        _ => Bytes::copy_from_slice(moves.bytes()),
    }
}
