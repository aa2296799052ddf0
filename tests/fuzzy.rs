//! A tree that came with SNAP from a Java leader, which writes it while it changes it.

use bytes::Bytes;
use oxkeeper::model::{Epoch, ServerId, SessionId, Zxid, op};
use oxkeeper::replica::{Input, Mode, Settings};
use oxkeeper::request::Limits;
use oxkeeper::tree::txn::Entry;
use oxkeeper::tree::{Options, Tree};
use oxkeeper::zab::{self, Packet};
use std::sync::atomic::Ordering;
use support::bodies;
use support::builders::{THREE, learner_info, peer};
use support::disk::Write;
use support::election::votes_for;
use support::replica::ReplicaOnDisk;
use support::standalone::{SETTINGS, Standalone};
use support::trees::reloaded;

/// Numbers of transactions that the leader has written: before the tree is sent, after it, and at the end of the test.
const BEGUN: usize = 5;
const ENDED: usize = 9;
const ALL: usize = 12;
const OPTIONS: Options =
    Options { seed: 1, digest: true, extended_types: false, emulate_353: false };
const EPOCH: Epoch = Epoch(1);

/// What a leader writes: creates, which change their parent too, and fail when they are applied twice.
fn written() -> Vec<(Zxid, Bytes)> {
    let mut leader = Standalone::new(SETTINGS, false);
    let create = |path: &str| bodies::create(op::CREATE, path, Some(b"x"), 0).1;
    leader.ask(op::CREATE, create("/a"));
    for number in leader.server.disk.log.len()..ALL {
        leader.ask(op::CREATE, create(&format!("/a/{number}")));
    }
    assert_eq!(leader.server.disk.log.len(), ALL);
    std::mem::take(&mut leader.server.disk.log)
}

fn apply(tree: &mut Tree, entries: &[(Zxid, Bytes)]) {
    for (_, entry) in entries {
        let entry = Entry::decode(entry).unwrap();
        tree.apply(&entry.header, &entry.txn, &mut Vec::new());
    }
}

/// The same tree under another zxid.
fn renamed(mut tree: Tree, zxid: Zxid) -> Box<Tree> {
    Box::new(reloaded(&mut tree, zxid))
}

/// A follower on a disk that takes no time, unless it is held.
struct Follower {
    server: ReplicaOnDisk,
    disk_held: bool,
}

impl Follower {
    fn new() -> Self {
        let mut follower = Self::resting(SETTINGS, None);
        follower.elect(2);
        follower.hear(Packet::LeaderInfo { epoch: EPOCH });
        follower
    }

    /// The other voters vote for `leader`.
    fn elect(&mut self, leader: i64) {
        let votes = votes_for(self.server.replica.peer(), ServerId(leader));
        votes.into_iter().for_each(|vote| self.step(of_peers(vote)));
    }

    /// A member before its first election. `last`: the last zxid of its log.
    fn resting(replica_settings: Settings, last: Option<Zxid>) -> Self {
        Self::started(Tree::new(OPTIONS), replica_settings, last)
    }

    fn started(tree: Tree, replica_settings: Settings, last: Option<Zxid>) -> Self {
        let settings = zab::Settings { tick_time_ms: 1000, ..zab::Settings::DEFAULT };
        let peer = peer(1, THREE, settings, last);
        let server = ReplicaOnDisk::member(tree, Limits::default(), peer, replica_settings);
        let mut follower = Self { server, disk_held: false };
        let wall_ms = follower.server.wall_ms;
        follower.step(Input::Tick { wall_ms });
        follower
    }

    fn step(&mut self, input: Input) {
        self.server.step(input);
        if !self.disk_held {
            self.server.write_all();
        }
    }

    fn hear(&mut self, packet: Packet) {
        self.step(of_peers(zab::Input::Leader { packet }));
    }

    fn take(&mut self, entries: &[(Zxid, Bytes)]) {
        for (zxid, entry) in entries {
            self.hear(Packet::Proposal { zxid: *zxid, entry: entry.clone() });
            self.hear(Packet::Commit { zxid: *zxid });
        }
    }

    /// A follower that joins by SNAP as a Java leader sends it: transactions made meanwhile come before NEWLEADER.
    fn join(tree: Tree, entries: &[(Zxid, Bytes)]) -> Self {
        let mut follower = Self::new();
        let zxid = entries[BEGUN - 1].0;
        follower.step(Input::LeaderTree { zxid, tree: renamed(tree, zxid) });
        follower.take(&entries[BEGUN..ENDED]);
        follower.hear(Packet::NewLeader { epoch: EPOCH, view: Bytes::new() });
        follower.hear(Packet::UpToDate);
        assert_eq!(follower.server.replica.mode(), Mode::Following);
        follower
    }

    /// The leader of `epoch` sends its tree, and nothing after it.
    fn take_tree(&mut self, tree: Tree, zxid: Zxid, epoch: Epoch) {
        self.step(Input::LeaderTree { zxid, tree: renamed(tree, zxid) });
        self.hear(Packet::NewLeader { epoch, view: Bytes::new() });
        self.hear(Packet::UpToDate);
        assert_eq!(self.server.replica.mode(), Mode::Following);
    }

    /// Begins a snapshot, after the earlier ones were written.
    fn snapshot(&mut self) {
        for frozen in self.server.frozen.drain(..) {
            drop(self.server.shared.state.tree.write().thaw(frozen));
        }
        let mut actions = Vec::new();
        self.server.replica.snapshot(&mut actions);
        self.server.perform(actions);
        assert_eq!(self.server.frozen.len(), 1);
    }

    fn digest(&self) -> u64 {
        self.server.shared.state.tree.read().digest()
    }

    fn last(&self) -> Zxid {
        self.server.shared.state.tree.read().last_zxid()
    }
}

// rows: Q-83 Q-122 G-21
#[test]
fn snap_tree_ahead_of_its_zxid_counts_no_digest_mismatch() {
    let entries = written();
    let mut tree = Tree::new(OPTIONS);
    apply(&mut tree, &entries[..ENDED]);
    let mut follower = Follower::join(tree, &entries);
    assert_eq!(follower.server.replica.stats.digest_mismatches, 0);
    let snapshots: Vec<Zxid> = follower.server.frozen.iter().map(|frozen| frozen.zxid).collect();
    assert_eq!(snapshots, [entries[ENDED - 1].0], "a snapshot that fits its zxid");
    follower.take(&entries[ENDED..]);
    assert_eq!(follower.server.replica.stats.digest_mismatches, 0);
    let mut whole = Tree::new(OPTIONS);
    apply(&mut whole, &entries);
    assert_eq!(follower.digest(), whole.digest());
}

#[test]
fn exact_snap_tree_needs_no_second_snapshot() {
    let entries = written();
    let mut tree = Tree::new(OPTIONS);
    apply(&mut tree, &entries[..BEGUN]);
    let follower = Follower::join(tree, &entries);
    assert_eq!(
        (follower.server.replica.stats.digest_mismatches, follower.server.frozen.len()),
        (0, 0)
    );
}

// rows: Q-83 Q-122 G-21
#[test]
fn wrong_snap_tree_counts_a_digest_mismatch_at_each_transaction() {
    let entries = written();
    let mut tree = Tree::new(OPTIONS);
    // The tree lacks one of the earlier transactions.
    apply(&mut tree, &entries[..BEGUN - 1]);
    apply(&mut tree, &entries[BEGUN..ENDED]);
    let mut follower = Follower::join(tree, &entries);
    follower.take(&entries[ENDED..]);
    assert_eq!(follower.server.replica.stats.digest_mismatches, (ALL - ENDED) as u64);
}

/// A start from the snapshot finds no difference, if the log ends there.
// rows: D-69
#[test]
fn snapshot_of_a_tree_that_does_not_fit_its_digests_is_noted_as_doubted() {
    let entries = written();
    for has_other_digests in [false, true] {
        let mut follower = Follower::join(tree_of(&entries, 1, ENDED), &entries);
        if has_other_digests {
            follower.server.replica.doubt_tree();
        }
        follower.take(&entries[ENDED..]);
        follower.snapshot();
        // What differs from a leader's predictions alone may be the leader's fault.
        let noted = if has_other_digests { vec![0] } else { vec![] };
        assert_eq!(follower.server.noted_doubts, noted);
        // The next leader's tree takes its place.
        follower.step(of_peers(zab::Input::LeaderGone));
        follower.elect(3);
        follower.hear(Packet::LeaderInfo { epoch: Epoch(2) });
        follower.take_tree(tree_of(&entries, 0, ALL), entries[ALL - 1].0, Epoch(2));
        follower.snapshot();
        assert_eq!(follower.server.noted_doubts, noted);
        assert_eq!(follower.server.forgotten_doubts, 0, "the disk forgets it with the tree");
    }
}

// rows: D-69
#[test]
fn doubt_ends_if_the_tree_has_a_digest_of_its_leader() {
    let entries = written();
    for lacks in [0, 1] {
        let mut follower = Follower::join(tree_of(&entries, lacks, ENDED), &entries);
        follower.server.replica.doubt_tree();
        follower.take(&entries[ENDED..]);
        assert_eq!(follower.server.forgotten_doubts, 1 - lacks as u64, "once");
        follower.snapshot();
        assert_eq!(follower.server.noted_doubts, vec![0; lacks]);
    }
}

/// A Java leader's log may lack transactions that this server has: the leader's digests are then in the log of this server, which has lost nothing.
// rows: D-69
#[test]
fn difference_from_the_leader_is_noted_once_unless_the_tree_is_in_doubt() {
    let entries = written();
    let (before, since) = (entries[BEGUN - 1].0, entries[BEGUN].0);
    for is_doubted in [false, true] {
        // What this server missed comes before NEWLEADER, or the same after UPTODATE.
        for missed in [BEGUN, ENDED] {
            let tree = tree_of(&entries, 1, BEGUN);
            let mut follower = Follower::started(tree, SETTINGS, Some(before));
            if is_doubted {
                follower.server.replica.doubt_tree();
            }
            follower.elect(2);
            follower.hear(Packet::LeaderInfo { epoch: EPOCH });
            follower.hear(Packet::Diff { zxid: entries[missed - 1].0 });
            follower.take(&entries[BEGUN..missed]);
            follower.hear(Packet::NewLeader { epoch: EPOCH, view: Bytes::new() });
            follower.hear(Packet::UpToDate);
            follower.take(&entries[missed..]);
            let noted = if is_doubted { vec![] } else { vec![since] };
            assert_eq!(follower.server.differences, noted, "{missed}");
        }
    }
}

/// It came from a leader, so the loss may have been on the way. Once a digest has matched, it is this server's own.
// rows: D-69
#[test]
fn difference_of_a_tree_that_came_is_noted_only_after_a_digest_that_matched() {
    let entries = written();
    for matches in [0, 1] {
        let mut follower = Follower::join(tree_of(&entries, 1 - matches, ENDED), &entries);
        follower.take(&entries[ENDED..=ENDED]);
        *follower.server.shared.state.tree.write() = tree_of(&entries, 1, ENDED + 1);
        follower.take(&entries[ENDED + 1..]);
        let noted = if matches == 0 { vec![] } else { vec![entries[ENDED + 1].0] };
        assert_eq!(follower.server.differences, noted);
    }
}

/// It differed from its leader, and does so when it is loaded again.
// rows: D-69
#[test]
fn truncated_history_is_not_replaced_if_it_differs_as_it_did_from_its_leader() {
    let entries = written();
    let known = entries[BEGUN].0;
    for (is_doubted, differs_since, is_unsure) in
        [(false, known, false), (false, entries[0].0, true), (true, known, true)]
    {
        let mut follower = Follower::join(tree_of(&entries, 0, ENDED), &entries);
        follower.take(&entries[ENDED..]);
        follower.server.replica.know_difference(known);
        if is_doubted {
            follower.server.replica.doubt_tree();
        }
        follower.step(of_peers(zab::Input::LeaderGone));
        follower.elect(3);
        follower.hear(Packet::LeaderInfo { epoch: Epoch(2) });
        follower.hear(Packet::Trunc { zxid: entries[ENDED].0 });
        let tree = Box::new(tree_of(&entries, 0, ENDED + 1));
        follower.step(Input::Rebuilt { tree, differs_since: Some(differs_since) });
        follower.hear(Packet::LeaderInfo { epoch: Epoch(2) });
        assert_eq!(follower.server.replica.peer().core.is_unsure, is_unsure);
    }
}

/// The tree after `end` transactions, without the last `lacks` of the first ones.
fn tree_of(entries: &[(Zxid, Bytes)], lacks: usize, end: usize) -> Tree {
    let mut tree = Tree::new(OPTIONS);
    apply(&mut tree, &entries[..BEGUN - lacks]);
    apply(&mut tree, &entries[BEGUN..end]);
    tree
}

/// Transactions that were proposed and not committed are in the log, and no longer wait for a commit that another leader may
/// never send: the tree has to have them, or it ends before the log does.
// rows: Q-66
#[test]
fn failed_truncation_leaves_the_tree_as_long_as_the_log() {
    let entries = written();
    let mut tree = Tree::new(OPTIONS);
    apply(&mut tree, &entries[..BEGUN]);
    let mut follower = Follower::join(tree, &entries);
    for (zxid, entry) in &entries[ENDED..] {
        follower.hear(Packet::Proposal { zxid: *zxid, entry: entry.clone() });
    }
    follower.step(of_peers(zab::Input::LeaderGone));
    follower.elect(3);
    follower.hear(Packet::LeaderInfo { epoch: Epoch(2) });
    let last = entries[ALL - 1].0;
    follower.disk_held = true;
    follower.hear(Packet::Trunc { zxid: entries[ENDED].0 });
    let asked = follower.server.disk.asked.pop_front();
    assert_eq!(asked, Some(Write::Truncate { to: entries[ENDED].0, before_tree: false }));
    follower.disk_held = false;
    follower.step(of_peers(zab::Input::CannotTruncate { last }));
    assert_eq!((follower.server.rebuilds, follower.last()), (1, entries[ENDED - 1].0));
    let mut whole = Tree::new(OPTIONS);
    apply(&mut whole, &entries);
    let digest = whole.digest();
    follower.step(Input::Rebuilt { tree: Box::new(whole), differs_since: None });
    assert_eq!((follower.digest(), follower.last()), (digest, last));
    // The same leader sends its tree, and goes on after it.
    follower.hear(Packet::LeaderInfo { epoch: Epoch(2) });
    let mut tree = Tree::new(OPTIONS);
    apply(&mut tree, &entries[..=ENDED]);
    let digest = tree.digest();
    let zxid = entries[ENDED].0;
    follower.take_tree(tree, zxid, Epoch(2));
    assert_eq!((follower.digest(), follower.last(), follower.server.rebuilds), (digest, zxid, 1));
}

/// The log after a truncation lacks a transaction, or the snapshot before it came from a Java server that was applying what is cut off.
// rows: D-69 Q-66
#[test]
fn truncated_history_that_does_not_fit_its_digests_is_replaced_by_the_leaders_tree() {
    let entries = written();
    let mut tree = Tree::new(OPTIONS);
    apply(&mut tree, &entries[..BEGUN]);
    let mut follower = Follower::join(tree, &entries);
    follower.take(&entries[ENDED..]);
    follower.step(of_peers(zab::Input::LeaderGone));
    follower.elect(3);
    follower.hear(Packet::LeaderInfo { epoch: Epoch(2) });
    let to = entries[ENDED].0;
    follower.hear(Packet::Trunc { zxid: to });
    assert_eq!(follower.server.rebuilds, 1);
    let mut wrong = Tree::new(OPTIONS);
    apply(&mut wrong, &entries[..BEGUN - 1]);
    apply(&mut wrong, &entries[BEGUN..=ENDED]);
    follower.step(Input::Rebuilt { tree: Box::new(wrong), differs_since: Some(to) });
    // It promises, and says that nothing it has counts.
    follower.hear(Packet::LeaderInfo { epoch: Epoch(2) });
    assert!(follower.server.replica.peer().core.is_unsure);
    let mut tree = Tree::new(OPTIONS);
    apply(&mut tree, &entries[..=ENDED]);
    let digest = tree.digest();
    follower.take_tree(tree, to, Epoch(2));
    assert_eq!((follower.digest(), follower.last()), (digest, to));
    assert!(!follower.server.replica.peer().core.is_unsure);
}

// rows: C-160 Q-90
#[test]
fn leader_without_leader_serves_has_no_clients_of_its_own() {
    for serves in [true, false] {
        let settings = Settings { leader_serves: serves, ..SETTINGS };
        let mut leader = Follower::resting(settings, Some(Zxid::ZERO));
        assert!(leader.server.shared.at_rest.load(Ordering::Relaxed));
        leader.elect(1);
        let connection = zab::LearnerConnectionId(7);
        let info = learner_info(2);
        for packet in [
            Packet::FollowerInfo { accepted: Epoch(0), info },
            Packet::AckEpoch { current: Some(Epoch(0)), last: Some(Zxid::ZERO) },
            Packet::Ack { zxid: Zxid::new(EPOCH, 0) },
        ] {
            leader.step(of_peers(zab::Input::Learner { connection, packet }));
        }
        assert_eq!(leader.server.replica.mode(), Mode::Leading);
        assert_eq!(leader.server.shared.at_rest.load(Ordering::Relaxed), !serves);
        // Learners' clients are served nevertheless.
        let body = Bytes::copy_from_slice(&4000_i32.to_be_bytes());
        let (session, op, identities) = (SessionId(99), op::CREATE_SESSION, Vec::new());
        let request = zab::Request { session, xid: 0, op, body, identities };
        for packet in [Packet::Request(request), Packet::Ack { zxid: Zxid::new(EPOCH, 1) }] {
            leader.step(of_peers(zab::Input::Learner { connection, packet }));
        }
        assert!(leader.server.shared.state.tree.read().sessions().contains_key(&99));
    }
}

fn of_peers(input: zab::Input) -> Input {
    Input::Peer(input)
}
