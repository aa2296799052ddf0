//! The sending half of a learner connection: packets and trees in their order, and the limit on unsent bytes.

use crate::member::quorum_connection::count;
use bytes::Bytes;
use oxkeeper::member::quorum_outbox::*;
use oxkeeper::model::{Epoch, Zxid};
use oxkeeper::request::{Limits, Shared};
use oxkeeper::tree::load::Loader;
use oxkeeper::tree::{Options, Tree};
use oxkeeper::zab::Packet;
use std::sync::Arc;
use support::builders;
use support::trees::tree_stream;

/// More znodes than one piece scans.
const ZNODES: usize = 10_000;

fn shared() -> Arc<Shared> {
    shared_with(ZNODES, 7)
}

fn shared_with(znodes: usize, counter: u32) -> Arc<Shared> {
    let mut loader = Loader::new(Options::default());
    assert!(loader.take(&tree_stream(znodes)).unwrap().ended);
    let tree = loader.finish(Zxid::new(Epoch(1), counter)).unwrap();
    builders::shared(tree, Limits::default())
}

fn frozen(shared: &Arc<Shared>) -> TreeToSend {
    let frozen = shared.state.tree.write().freeze().unwrap();
    TreeToSend { shared: shared.clone(), frozen, learner: None }
}

fn opened() -> QuorumOutbox {
    let mut outbox = QuorumOutbox::default();
    outbox.release();
    outbox
}

fn put(outbox: &mut QuorumOutbox, bytes: &'static [u8]) {
    assert!(outbox.put(vec![Bytes::from_static(bytes)]));
}

/// The next piece of a tree.
fn step_tree(
    outbox: &mut QuorumOutbox,
    sent: &mut Vec<u8>,
    now_ms: u64,
    events: &mut Vec<OutboxEvent>,
) -> Result<(), TreeReplaced> {
    let Next::Piece(tree) = outbox.next(now_ms) else { panic!("no piece is wanted") };
    let before = sent.len();
    let piece = tree.piece(sent);
    outbox.take_piece(piece, sent.len() - before, sent, now_ms, events)
}

/// All bytes that the outbox returns.
fn drain(outbox: &mut QuorumOutbox, events: &mut Vec<OutboxEvent>) -> Vec<u8> {
    let mut sent = Vec::new();
    loop {
        match outbox.next(0) {
            Next::Nothing => return sent,
            Next::Bytes(all) => all.iter().for_each(|bytes| sent.extend_from_slice(bytes)),
            Next::Piece(_) => step_tree(outbox, &mut sent, 0, events).unwrap(),
        }
    }
}

#[test]
fn bytes_wait_for_the_tree_that_was_put_before_them() {
    let (shared, mut outbox, mut events) = (shared(), opened(), Vec::new());
    let tree = frozen(&shared);
    let frozen = tree.frozen;
    put(&mut outbox, b"before ");
    outbox.put_tree(tree, 0, &mut events);
    put(&mut outbox, b" after");
    let Next::Bytes(first) = outbox.next(0) else { panic!("bytes were put first") };
    assert_eq!(first, [&b"before "[..]]);
    let Next::Bytes(snap) = outbox.next(0) else { panic!("a tree begins with SNAP") };
    let wanted_snap = Packet::Snap { zxid: frozen.zxid }.to_bytes();
    assert_eq!(snap, [wanted_snap]);
    assert!(outbox.is_in_tree());
    put(&mut outbox, b" and more");
    let mut sent = Vec::new();
    step_tree(&mut outbox, &mut sent, 0, &mut events).unwrap();
    assert!(outbox.is_in_tree() && events.is_empty(), "it has more pieces than one");
    sent.extend(drain(&mut outbox, &mut events));
    let stream = tree_stream(ZNODES);
    let rest = sent.split_off(stream.len());
    let mut loader = Loader::new(Options::default());
    assert!(loader.take(&sent).unwrap().ended);
    assert_eq!(loader.finish(frozen.zxid).unwrap().node_count(), count(ZNODES));
    assert_eq!(rest, b"\0\0\0\x0aBenWasHere after and more");
    assert_eq!(events, [OutboxEvent::TreeEnded(frozen)]);
    outbox.close(0, &mut events);
    assert_eq!(events.len(), 1, "a tree ends once");
}

#[test]
fn trees_end_once_when_the_connection_closes_before_they_are_sent() {
    let trees = [1, 2, 3].map(|counter| frozen(&shared_with(ZNODES, counter)));
    let [begun, waiting, late] = trees.clone().map(|tree| OutboxEvent::TreeEnded(tree.frozen));
    let [first, second, third] = trees;
    let (mut outbox, mut events) = (opened(), Vec::new());
    outbox.put_tree(first, 0, &mut events);
    outbox.put_tree(second, 0, &mut events);
    assert!(matches!(outbox.next(0), Next::Bytes(_)));
    step_tree(&mut outbox, &mut Vec::new(), 0, &mut events).unwrap();
    assert!(events.is_empty() && outbox.is_in_tree());
    // The performer holds a piece when the connection is closed.
    let Next::Piece(tree) = outbox.next(0) else { panic!("there are more pieces") };
    outbox.close(0, &mut events);
    assert_eq!(std::mem::take(&mut events), [begun, waiting]);
    let mut bytes = Vec::new();
    let piece = tree.piece(&mut bytes);
    outbox.take_piece(piece, 0, &mut bytes, 0, &mut events).unwrap();
    outbox.close(0, &mut events);
    assert!(events.is_empty());
    outbox.put_tree(third, 0, &mut events);
    assert_eq!(events, [late], "a tree that is put too late is never sent");
    put(&mut outbox, b"too late");
    assert!(matches!(outbox.next(0), Next::Nothing));
}

#[test]
fn replaced_tree_ends_the_connection() {
    let (shared, mut outbox, mut events) = (shared(), opened(), Vec::new());
    let tree = frozen(&shared);
    let ended = OutboxEvent::TreeEnded(tree.frozen);
    outbox.put_tree(tree, 0, &mut events);
    assert!(matches!(outbox.next(0), Next::Bytes(_)));
    step_tree(&mut outbox, &mut Vec::new(), 0, &mut events).unwrap();
    *shared.state.tree.write() = Tree::new(Options::default());
    let replaced = step_tree(&mut outbox, &mut Vec::new(), 0, &mut events);
    assert_eq!(replaced, Err(TreeReplaced));
    outbox.close(0, &mut events);
    assert_eq!(events, [ended]);
}

#[test]
fn progress_of_a_tree_is_reported_once_a_second_as_it_is_sent() {
    let (shared, mut outbox, mut events) = (shared_with(60_000, 7), opened(), Vec::new());
    outbox.put_tree(frozen(&shared), 0, &mut events);
    assert!(matches!(outbox.next(500), Next::Bytes(_)));
    let mut times = Vec::new();
    for now_ms in (500..).step_by(300) {
        step_tree(&mut outbox, &mut Vec::new(), now_ms, &mut events).unwrap();
        match events.pop() {
            Some(OutboxEvent::Progress) => times.push(now_ms),
            Some(OutboxEvent::TreeEnded(_)) => break,
            None => {}
        }
    }
    assert!(times.starts_with(&[1700, 2900]), "{times:?}");
}

#[test]
fn peer_above_the_limit_of_unsent_bytes_is_disconnected_once() {
    let mut outbox = opened();
    let megabyte = Bytes::from(vec![0; 1 << 20]);
    let pieces = QUEUED_BYTES_MAX / cost(&megabyte);
    for _ in 0..=pieces {
        assert!(outbox.put(vec![megabyte.clone()]), "bytes that were unsent before are limited");
    }
    assert!(!outbox.put(vec![megabyte.clone()]));
    assert!(outbox.put(vec![megabyte.clone()]), "it is reported once");
    // Sent bytes make room.
    let mut outbox = opened();
    for _ in 0..1000 {
        assert!(outbox.put(vec![megabyte.clone(), megabyte.clone()]));
        assert!(matches!(outbox.next(0), Next::Bytes(all) if all.len() == 2));
    }
}

#[test]
fn smaller_limit_of_unsent_bytes_disconnects_a_peer_earlier() {
    let mut outbox = QuorumOutbox::with_limit(8);
    assert!(outbox.put(vec![Bytes::from_static(b"nine byte")]), "nothing was unsent before");
    assert!(!outbox.put(vec![Bytes::from_static(b"more")]));
    assert_eq!(outbox.unsent(), 13 + 2 * cost(&Bytes::new()));
    outbox.close(0, &mut Vec::new());
    assert_eq!(outbox.unsent(), 0);
}

#[test]
fn only_the_exchange_is_sent_until_it_is_done() {
    let (mut outbox, mut events) = (QuorumOutbox::default(), Vec::new());
    put(&mut outbox, b"packet");
    assert!(matches!(outbox.next(0), Next::Nothing));
    outbox.put_sasl(b"hello");
    assert_eq!(drain(&mut outbox, &mut events), b"hello");
    outbox.put_sasl(b", ");
    outbox.release();
    assert_eq!(drain(&mut outbox, &mut events), b", packet");
}

#[test]
fn small_packets_count_with_the_memory_that_they_take() {
    let commit = Packet::Commit { zxid: Zxid::new(Epoch(1), 1) }.to_bytes();
    let mut outbox = QuorumOutbox::with_limit(100_000);
    let kept = (0..).take_while(|_| outbox.put(vec![commit.clone(); 10])).count();
    assert!((70..100).contains(&kept), "{kept} times ten commits of {} bytes", commit.len());
}

#[test]
fn answers_of_one_turn_are_one_piece_between_other_packets() {
    let [sync, commit] = [Packet::Sync, Packet::Commit { zxid: Zxid::new(Epoch(1), 1) }];
    let [sync, commit] = [sync, commit].map(|packet| packet.to_bytes());
    let mut outbox = opened();
    let all =
        [&sync, &sync, &commit, &sync, &commit, &commit, &sync, &sync, &sync].map(Bytes::clone);
    assert!(outbox.put(all.to_vec()));
    let Next::Bytes(pieces) = outbox.next(0) else { panic!("bytes were put") };
    assert_eq!(pieces.concat(), all.concat());
    let counts: Vec<usize> = pieces.iter().map(|piece| piece.len() / sync.len()).collect();
    assert_eq!((counts, sync.len()), (vec![2, 1, 1, 1, 1, 3], commit.len()));
}

#[test]
fn only_unsent_answers_stop_reading_from_a_learner() {
    let [sync, commit] = [Packet::Sync, Packet::Commit { zxid: Zxid::new(Epoch(1), 1) }];
    let [sync, commit] = [sync, commit].map(|packet| packet.to_bytes());
    let mut outbox = opened();
    for _ in 0..1000 {
        assert!(outbox.put(vec![commit.clone(); 1000]));
    }
    assert!(!outbox.has_many_answers(), "ACKs of a slow learner are read");
    let mut turns = 0;
    while !outbox.has_many_answers() {
        assert!(outbox.put(vec![sync.clone()]));
        turns += 1;
    }
    assert!((100_000..200_000).contains(&turns), "{turns} answers");
    while outbox.has_many_answers() {
        assert!(matches!(outbox.next(0), Next::Bytes(_)));
    }
    outbox.close(0, &mut Vec::new());
    assert!(!outbox.has_many_answers() && outbox.unsent() == 0);
}
