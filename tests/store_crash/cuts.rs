//! Power cuts while a learner truncates its history for a leader: by TRUNC, and by SNAP to a learner that has more.

use crate::*;

const OPTIONS: LogOptions = options(1 << 16, 2_000);
/// What the server has: a snapshot in the middle, and the log before and after it.
const SNAPSHOT: i64 = 50;
const LAST: usize = 100;

fn zxid(raw: i64) -> Zxid {
    Zxid::from_wire(raw).unwrap()
}

/// * `purged`: no files from before the snapshot are left.
fn server(purged: bool) -> Server {
    let mut rng = Rng::seeded(5);
    let mut server = Server::fresh(OPTIONS);
    (0..10).for_each(|_| server.append(5, 300, &mut rng));
    assert_eq!(server.sent.last(), SNAPSHOT);
    server.snapshot();
    server.run(vec![Command::Roll]);
    (0..10).for_each(|_| server.append(5, 300, &mut rng));
    if purged {
        let folders = folders();
        let old = |name: &String| name == "snapshot.0" || name.starts_with("log.");
        for (dir, before) in [(&folders.snapshots, 1), (&folders.logs, SNAPSHOT)] {
            for name in server.disk.list(dir).unwrap().into_iter().filter(old) {
                let at = i64::from_str_radix(name.split('.').next_back().unwrap(), 16).unwrap();
                if at < before {
                    server.disk.remove(&dir.join(name)).unwrap();
                }
            }
            server.disk.sync_dir(dir).unwrap();
        }
    }
    server.disk.keep_images();
    server
}

/// The state that a crash left.
fn found(image: &Image, seed: u64, what: &str) -> (Server, Model) {
    let (server, _) = Server::start(image.crash(seed), OPTIONS, what);
    let sent = server.sent.clone();
    (server, sent)
}

/// The snapshot holds truncated transactions: they must not come back, and nothing else may be lost.
// rows: D-52 Q-53 Q-66
#[test]
fn truncated_transactions_of_a_snapshot_never_come_back() {
    for to in [0, 1, 30, 49, 50, 51, 77, 100] {
        let mut server = server(false);
        server.run(vec![Command::Truncate { to: zxid(to), replaced: false }]);
        assert_eq!(server.cut, Some(Ok(zxid(to))));
        let images = server.disk.take_images();
        let done = server.disk.image();
        for (image, last) in images.iter().map(|image| (image, LAST as i64)).chain([(&done, to)]) {
            for seed in seeds() {
                let what = format!("cut to {to}, change {}, seed {seed}", image.counts.changes);
                let (_, state) = found(image, seed, &what);
                check(&state, &server.sent, to as usize, &what);
                assert!(state.last() <= last, "{what}: {} is left", state.last());
            }
        }
        // The leader's history goes on where this server's was truncated.
        server.sent.entries.truncate(to as usize);
        server.append(3, 500, &mut Rng::seeded(9));
        let (_, state) = found(&server.disk.image(), 0, "afterwards");
        assert!(state == server.sent, "{to}: {} entries", state.entries.len());
    }
}

// rows: Q-66 Q-70
#[test]
fn truncation_that_recovery_would_not_reach_changes_nothing() {
    for (purged, to) in [(true, 0), (true, 49), (false, 101), (true, 1 << 32)] {
        let mut server = server(purged);
        server.run(vec![Command::Truncate { to: zxid(to), replaced: false }]);
        assert_eq!(server.cut, Some(Err(zxid(LAST as i64))), "{to}");
        assert!(server.disk.take_images().is_empty(), "{to}: something was changed");
    }
    let mut server = server(true);
    server.run(vec![Command::Truncate { to: zxid(SNAPSHOT), replaced: false }]);
    assert_eq!(server.cut, Some(Ok(zxid(SNAPSHOT))));
}

/// Before the leader's tree counts, the old history is there, or a beginning of it with all that the leader has; after that
/// only the tree. A mixture of both would be the history of no server.
// rows: Q-54 Q-69 D-32 D-52
#[test]
fn power_cut_leaves_the_old_history_or_a_leaders_tree_and_no_mixture() {
    for (purged, to) in [(false, 30), (true, 30), (true, 50), (false, 77), (true, 77), (true, 100)]
    {
        let mut server = server(purged);
        // Another history than ours: its entries are longer.
        let entries = (1..=to).map(|raw| (raw, entry(raw, 400)));
        let tree = Model { entries: entries.collect() };
        let draft = tree.draft(&server.stop).unwrap();
        server.run(vec![
            Command::Truncate { to: zxid(to), replaced: true },
            Command::Roll,
            Command::Place { draft, replaces: true },
        ]);
        assert!(!server.failed && server.cut == Some(Ok(zxid(to))));
        let images = server.disk.take_images();
        let done = server.disk.image();
        let mut counts = [0; 2];
        for (image, is_done) in images.iter().map(|image| (image, false)).chain([(&done, true)]) {
            for seed in seeds() {
                let what = format!("tree at {to}, change {}, seed {seed}", image.counts.changes);
                let (mut after, state) = found(image, seed, &what);
                let is_new = state == tree;
                counts[usize::from(is_new)] += 1;
                assert!(is_new || !is_done, "{what}: the old history is back");
                if !is_new {
                    check(&state, &server.sent, to as usize, &what);
                    continue;
                }
                after.append(3, 500, &mut Rng::seeded(9));
                let (_, later) = found(&after.disk.image(), 0, &what);
                assert!(later == after.sent, "{what}: what came after the tree");
            }
        }
        assert!(counts.iter().all(|&count| 3 < count), "{to}: {counts:?}");
    }
}

/// Before the restored snapshot counts, all that was acknowledged is there; after that, only the snapshot, also if other files are not
/// renamed yet.
// rows: D-70
#[test]
fn power_cut_leaves_the_old_history_or_a_restored_snapshot_and_no_mixture() {
    for purged in [false, true] {
        let mut server = server(purged);
        let tree = Model { entries: vec![(7, entry(7, 400)), (5000, entry(5000, 90))] };
        let draft = tree.draft(&server.stop).unwrap();
        server.append(5, 300, &mut Rng::seeded(3));
        server.run(vec![Command::PlaceRestored { draft }]);
        assert!(!server.failed);
        let images = server.disk.take_images();
        let done = server.disk.image();
        let mut counts = [0; 2];
        for (image, is_done) in images.iter().map(|image| (image, false)).chain([(&done, true)]) {
            for seed in seeds() {
                let what = format!("change {}, seed {seed}", image.counts.changes);
                let (mut after, state) = found(image, seed, &what);
                let is_new = state == tree;
                counts[usize::from(is_new)] += 1;
                assert!(is_new || !is_done, "{what}: the old history is back");
                if !is_new {
                    check(&state, &server.sent, LAST, &what);
                    continue;
                }
                after.append(3, 500, &mut Rng::seeded(9));
                let (_, later) = found(&after.disk.image(), 0, &what);
                assert!(later == after.sent, "{what}: what came after the snapshot");
            }
        }
        assert!(counts.iter().all(|&count| 3 < count), "{counts:?}");
        let left = server.disk.list(&folders().logs).unwrap();
        assert!(left.iter().all(|name| !name.starts_with("log.")), "{left:?}");
    }
}

/// The end of the log can't be read; the tree has all that it held, so nothing is lost and the server starts.
// rows: D-46
#[test]
fn server_starts_after_a_leaders_tree_replaced_a_damaged_log() {
    let mut server = server(true);
    server.run(vec![Command::Roll]);
    let newest = names::logs(&server.disk, &folders().logs).unwrap().pop().unwrap();
    let file = server.disk.open(&folders().logs.join(newest.name)).unwrap();
    server.disk.write_at(&file, record::HEADER_LEN + 30, b"\x55\xaa\x55").unwrap();
    server.disk.sync_data(&file).unwrap();
    let tree = Model { entries: (1..=120).map(|raw| (raw, entry(raw, 400))).collect() };
    let draft = tree.draft(&server.stop).unwrap();
    server.run(vec![Command::Place { draft, replaces: true }]);
    let (_, state) = found(&server.disk.image(), 0, "the tree");
    assert!(state == tree);
}

/// A snapshot of the server's own was begun before the leader's tree came: each has a temporary name of its own, and discarding
/// one leaves the other.
#[test]
fn discarding_one_of_two_snapshots_of_one_zxid_leaves_the_other() {
    let server = server(false);
    let (ours, theirs) = (server.sent.clone(), Model { entries: vec![(100, entry(100, 7))] });
    let first = ours.draft(&server.stop).unwrap();
    let second = theirs.draft(&server.stop).unwrap();
    first.discard(&server.stop);
    second.place(&server.stop).unwrap();
    let (_, state) = found(&server.disk.image(), 0, "the second");
    assert!(state == theirs);
}
