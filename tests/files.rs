//! What a running server does with its folder, seen from outside: the shipped binary, real files, a client.

mod server_process;

use jute::Encode;
use jute::proto::CreateTtlRequest;
use oxkeeper::client::op;
use oxkeeper::model::OPEN_ACL;
use oxkeeper::replica::{Input, Settings};
use oxkeeper::store::record;
use oxkeeper::tree::txn::{CreateKind, write};
use server_process::{Client, Process, eventually, names, zxid_of, zxids};
use support::bodies::open_acl;
use support::standalone::{SETTINGS, Standalone};

/// Creates znodes until something has happened. A snapshot that is due while another one is written waits for that one to end,
/// so on a slow machine no fixed number of writes is enough.
#[track_caller]
fn write_until(what: &str, client: &mut Client, mut done: impl FnMut() -> bool) {
    let mut count = 0;
    eventually(what, || {
        count += 1;
        assert_eq!(client.create(&format!("/until {what} {count}"), b"").unwrap(), 0);
        done()
    });
}

// rows: D-33 D-51
#[test]
fn the_log_rolls_and_a_snapshot_is_taken_within_snap_count() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data/version-2");
    let server = Process::start(home.path(), "snapCount=20");
    assert_eq!(zxids(&dir, "snapshot"), [0]);
    let mut client = server.client();
    assert_eq!(client.create_many("/a", b"x", 200), 200);
    let logs = zxids(&dir, "log");
    let gaps: Vec<i64> = logs.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() >= 10 && gaps.iter().all(|gap| (11..=20).contains(gap)), "{gaps:?}");
    let snapshots = || zxids(&dir, "snapshot").len();
    write_until("two snapshots beside the first", &mut client, || 3 <= snapshots());
    assert!(snapshots() <= zxids(&dir, "log").len() + 1, "one at each roll, or none");
    assert_eq!(client.create("/last", b"").unwrap(), 0);
    let last = client.stat("/last").unwrap().czxid;
    drop(client);
    server.stop();

    // A start takes one too, of all that the log holds.
    let server = Process::start(home.path(), "snapCount=20");
    eventually("a snapshot at start", || zxids(&dir, "snapshot").last() == Some(&last));
    assert!(server.client().exists("/a199"));
}

// rows: D-53 C-32 C-33
#[test]
fn old_files_are_purged_at_the_start_and_as_many_kept_as_set() {
    let retain = |count: &str| format!("autopurge.purgeInterval=1\n{count}");
    let never = "autopurge.purgeInterval=0\nautopurge.snapRetainCount=3".to_owned();
    for (settings, kept) in
        [(never, usize::MAX), (retain("autopurge.snapRetainCount=5"), 5), (retain(""), 3)]
    {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("data/version-2");
        let count = || zxids(&dir, "snapshot").len();
        for at in 0..8 {
            let server = Process::start(home.path(), "");
            assert_eq!(server.client().create_many(&format!("/{at}-"), b"", 1), 1);
            eventually("the snapshot of this start", || at < count());
            server.stop();
        }
        let before = count();
        let server = Process::start(home.path(), &settings);
        if kept == usize::MAX {
            server.client().create("/another", b"").unwrap();
            assert!(before <= count() && !server.log().contains("old files purged"));
            continue;
        }
        eventually("a purge", || server.log().contains("old files purged"));
        // The snapshot of this start may have been written after the purge.
        assert!((kept..=kept + 1).contains(&count()), "{} of {before}, not {kept}", count());
    }
}

// rows: D-49 C-145
#[test]
#[allow(clippy::disallowed_methods, reason = "lines come once a second at most")]
fn a_flush_that_takes_longer_than_the_threshold_is_warned_of() {
    for (threshold, is_warned) in [(0, true), (60_000, false)] {
        let home = tempfile::tempdir().unwrap();
        let settings = format!("fsync.warningthresholdms={threshold}");
        let server = Process::start(home.path(), &settings);
        let begun = std::time::Instant::now();
        assert_eq!(server.client().create_many("/a", b"", 50), 50);
        let log = server.log();
        let lines = log.lines().filter(|line| line.contains("fsync of the log is slow"));
        let names_file = |line: &str| line.contains("path=") && line.contains("version-2/log.");
        let lines: Vec<bool> = lines.map(names_file).collect();
        assert_eq!(!lines.is_empty(), is_warned);
        // One a second at most: from the first flush, which comes after the start of the process, on.
        assert!(lines.len() as u64 <= 2 + begun.elapsed().as_secs(), "{log}");
        assert!(lines.iter().all(|names_file| *names_file), "{log}");
    }
}

// rows: D-33
#[test]
fn the_log_rolls_within_the_limit_on_its_size() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data/version-2");
    let server = Process::start(home.path(), "snapSizeLimitInKb=20");
    assert_eq!(server.client().create_many("/a", &[7; 1000], 100), 100);
    let logs = zxids(&dir, "log");
    let gaps: Vec<i64> = logs.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // 1,105 bytes each: ten to nineteen of them, and the small one that opens the session.
    assert!(gaps.len() >= 5 && gaps.iter().all(|gap| (10..=20).contains(gap)), "{gaps:?}");
    drop(server);
}

// rows: C-142
#[test]
fn log_files_are_closed_at_the_size_that_is_set_and_no_snapshot_is_taken() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data/version-2");
    let server = Process::start(home.path(), "txnLogSizeLimitInKb=20");
    assert_eq!(server.client().create_many("/a", &[7; 1000], 100), 100);
    let logs = zxids(&dir, "log");
    let gaps: Vec<i64> = logs.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // 1,105 bytes each: the nineteenth is the first above 20 KB.
    assert!(gaps.len() >= 4 && gaps.iter().all(|gap| (18..=20).contains(gap)), "{gaps:?}");
    assert_eq!(zxids(&dir, "snapshot"), [0]);
}

fn set_root(world: &mut Standalone) {
    let request = jute::proto::SetDataRequest { path: Some("/".into()), data: None, version: -1 };
    let mut body = Vec::new();
    jute::Encode::encode(&request, &mut body);
    assert_eq!(world.ask(op::SET_DATA, body).0.err, 0);
}

// rows: D-33
#[test]
fn the_log_rolls_even_while_a_snapshot_is_written() {
    let mut world = Standalone::new(Settings { snap_count: 4, ..SETTINGS }, false);
    while world.server.disk.rolls.len() < 3 {
        set_root(&mut world);
    }
    assert_eq!((world.server.frozen.len(), world.server.replica.stats.snapshots_skipped), (1, 2));
    assert_eq!(world.server.frozen[0].zxid.to_wire() as usize, world.server.disk.rolls[0]);
    world.end_snapshot();
    assert_eq!(world.server.frozen.len(), 1, "a skipped snapshot is not taken later");
    while world.server.disk.rolls.len() < 4 {
        set_root(&mut world);
    }
    assert_eq!(world.server.frozen.len(), 2);
    assert_eq!(world.server.frozen[1].zxid.to_wire() as usize, world.server.disk.rolls[3]);
}

// rows: D-33
#[test]
fn snapshot_is_taken_while_a_learner_takes_a_tree() {
    let mut world = Standalone::new(Settings { snap_count: 4, ..SETTINGS }, false);
    let freeze = |world: &Standalone| {
        let mut tree = world.server.shared.state.tree.write();
        tree.freeze_for_learner(false).expect("a place for a learner's tree")
    };
    let learners = [freeze(&world), freeze(&world)];
    while world.server.disk.rolls.len() < 3 {
        set_root(&mut world);
    }
    assert_eq!((world.server.frozen.len(), world.server.replica.stats.snapshots_skipped), (1, 2));
    for frozen in learners {
        world.server.step(Input::SnapshotEnded(frozen));
    }
    assert_eq!(world.server.frozen.len(), 1, "a learner's tree is no snapshot");
    let frozen = world.server.frozen[0];
    assert!(world.server.shared.state.tree.read().holds(frozen));
}

/// The folder of the snapshots is missing, so that none can be written.
// rows: D-34 P-87
#[test]
fn a_snapshot_that_fails_ends_the_server_with_10_and_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (data, logs) = (home.path().join("data"), home.path().join("logs"));
    let settings =
        format!("snapCount=40\ndataDir={}\ndataLogDir={}", data.display(), logs.display());
    let server = Process::start(home.path(), &settings);
    let away = home.path().join("away");
    std::fs::rename(&data, &away).unwrap();
    let answered = server.client().create_many("/a", b"x", 100_000);
    let (code, log) = server.end();
    assert_eq!(code, 10, "{log}");
    assert!(log.contains("write snapshot: make snapshot "), "{log}");
    assert!((19..100_000).contains(&answered), "{answered}");

    std::fs::rename(&away, &data).unwrap();
    let server = Process::start(home.path(), &settings);
    let mut client = server.client();
    assert!((0..answered).all(|at| client.exists(&format!("/a{at}"))));
}

/// The folder of the logs is missing when the next file is to be created.
// rows: P-87
#[test]
fn a_roll_that_fails_ends_the_server_and_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (data, logs) = (home.path().join("data"), home.path().join("logs"));
    let settings =
        format!("snapCount=40\ndataDir={}\ndataLogDir={}", data.display(), logs.display());
    let server = Process::start(home.path(), &settings);
    let mut client = server.client();
    assert_eq!(client.create_many("/first", b"x", 1), 1);
    let away = home.path().join("away");
    std::fs::rename(&logs, &away).unwrap();
    let answered = client.create_many("/a", b"x", 1000);
    let (code, log) = server.end();
    assert_eq!(code, 1, "{log}");
    assert!(log.contains("the log's disk failed: make log file "), "{log}");
    assert!((18..40).contains(&answered), "{answered}");

    std::fs::rename(&away, &logs).unwrap();
    let server = Process::start(home.path(), &settings);
    let mut client = server.client();
    assert!((0..answered).all(|at| client.exists(&format!("/a{at}"))));
}

/// The disk is full in the middle of a snapshot that is larger than any log file.
// rows: D-34
#[test]
fn a_full_disk_in_a_snapshot_leaves_none_and_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data/version-2");
    let settings = "snapCount=60\npreAllocSize=16";
    let mut server = Process::spawn(home.path(), settings, 200_000);
    server.wait_until_serving();
    let answered = server.client().create_many("/a", &[7; 1000], 100_000);
    let (code, log) = server.end();
    assert_eq!(code, 10, "{log}");
    assert!(log.contains(" of snapshot ") && log.contains("File too large"), "{log}");
    assert!((150..100_000).contains(&answered), "{answered}");
    let newest = *zxids(&dir, "snapshot").last().unwrap();
    assert!(newest < answered as i64 - 20, "{newest} of {answered}");

    let server = Process::start(home.path(), settings);
    let mut client = server.client();
    assert!((0..answered).all(|at| client.exists(&format!("/a{at}"))));
}

/// The disk is full in the middle of a flush.
// rows: P-87
#[test]
fn a_full_disk_under_the_log_ends_the_server_and_loses_nothing_answered() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Process::spawn(home.path(), "preAllocSize=16", 200_000);
    server.wait_until_serving();
    let answered = server.client().create_many("/a", &[7; 1000], 1000);
    let (code, log) = server.end();
    assert_eq!(code, 1, "{log}");
    assert!(
        log.contains("the log's disk failed: write ") && log.contains("File too large"),
        "{log}"
    );
    assert!((100..200).contains(&answered), "{answered}");

    let server = Process::start(home.path(), "preAllocSize=16");
    let mut client = server.client();
    assert!((0..answered).all(|at| client.exists(&format!("/a{at}"))));
    assert!(!client.exists(&format!("/a{}", answered + 1)));
}

// rows: C-149 D-03 D-29
#[test]
fn snapshots_are_compressed_as_set_and_read_in_any_compression() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data/version-2");
    for (turn, method) in ["gz", "snappy", "none"].into_iter().enumerate() {
        let settings = format!("snapCount=40\nsnapshot.compression.method={method}");
        let server = Process::start(home.path(), &settings);
        let mut client = server.client();
        assert!((0..turn).all(|before| client.exists(&format!("/turn{before}-99"))));
        assert_eq!(client.create_many(&format!("/turn{turn}-"), b"x", 100), 100);
        let last = client.stat(&format!("/turn{turn}-99")).unwrap().czxid;
        // Nothing but the newest snapshot may be left for the next turn to start from.
        let newest = |dir: &std::path::Path| {
            let name = names(dir, "snapshot").into_iter().max_by_key(|name| zxid_of(name)).unwrap();
            (zxid_of(&name), name)
        };
        write_until(&format!("snapshot {turn}"), &mut client, || Some(last) <= newest(&dir).0);
        server.stop();
        let (_, kept) = newest(&dir);
        let ending = if method == "none" { "" } else { method };
        assert_eq!(kept.split('.').nth(2).unwrap_or(""), ending, "{kept}");
        for name in names(&dir, "snapshot").iter().filter(|name| **name != kept) {
            std::fs::remove_file(dir.join(name)).unwrap();
        }
    }
    assert!(Process::start(home.path(), "").client().exists("/turn2-99"));
}

// rows: C-80 C-82 D-26 D-27
#[test]
fn snapshots_end_with_the_trailers_that_are_enabled() {
    let len = |settings: &str| {
        let home = tempfile::tempdir().unwrap();
        let server = Process::start(home.path(), settings);
        let snapshot = home.path().join("data/version-2/snapshot.0");
        // Only a server that serves stops at a signal; an earlier one ends the process.
        drop(server.client());
        server.stop();
        std::fs::metadata(snapshot).unwrap().len()
    };
    let whole = len("");
    let [no_digest, no_zxid] = ["digest.enabled", "serializeLastProcessedZxid.enabled"]
        .map(|key| len(&format!("{key}=false")));
    // Each part with its checksum and end mark: {long zxid, int version, long digest} and {long zxid}.
    const SEAL_LEN: u64 = 8 + 4 + 1;
    assert_eq!((whole - no_digest, whole - no_zxid), (20 + SEAL_LEN, 8 + SEAL_LEN));
}

// rows: C-98 C-111
#[test]
fn ttl_znodes_that_are_off_and_connections_above_the_limit_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let server = Process::start(home.path(), "maxCnxns=2");
    let mut client = server.client();
    let ttl = CreateTtlRequest {
        path: Some("/ttl".into()),
        data: Some(b""),
        acl: open_acl(),
        flags: 5,
        ttl: 5000,
    };
    assert_eq!(client.ask(op::CREATE_TTL, &ttl).unwrap().0, -6, "extendedTypesEnabled is not set");
    let _other = server.client();
    assert!(std::panic::catch_unwind(|| server.client()).is_err(), "two are there");
    assert!(server.log().contains("limit reached, maxCnxns=2"));
}

// rows: C-150 P-87
#[test]
fn missing_folder_without_autocreate_ends_the_server() {
    let home = tempfile::tempdir().unwrap();
    let (code, log) = Process::spawn(home.path(), "datadir.autocreate=false", 0).end();
    assert_eq!(code, 3, "{log}");
    assert!(log.contains("data/version-2: No such file or directory"), "{log}");
    assert!(!home.path().join("data").exists());
    std::fs::create_dir_all(home.path().join("data/version-2")).unwrap();
    let server = Process::start(home.path(), "datadir.autocreate=false");
    assert_eq!(server.client().create_many("/a", b"", 1), 1);
}

/// Java refuses as well, before it serves.
// rows: P-87
#[test]
fn folder_without_write_permission_ends_the_server() {
    let home = tempfile::tempdir().unwrap();
    let server = Process::start(home.path(), "");
    assert_eq!(server.client().create_many("/a", b"", 1), 1);
    server.stop();
    let (code, log) = Process::spawn_without_rights(home.path()).end();
    assert_eq!(code, 3, "{log}");
    assert!(log.contains("write to folder ") && log.contains("Permission denied"), "{log}");
    let number = rustix::process::geteuid();
    let id = if number.is_root() { 65534 } else { number.as_raw() }; // Root starts it as another user.
    let line = log.lines().find(|line| line.contains("Permission denied")).unwrap_or_default();
    let user = line.rsplit_once(" user=").map(|(_, user)| user).unwrap_or_default();
    assert!(user == id.to_string() || user.ends_with(&format!(" ({id})")), "{log}");
}

/// Java then serves at zxid -1, writes a snapshot with a name that it can't read, and never starts again.
// rows: C-151 D-60
#[test]
fn empty_folder_is_served_standalone_though_autocreate_is_off() {
    let home = tempfile::tempdir().unwrap();
    for turn in 0..2 {
        let server = Process::start(home.path(), "db.autocreate=false");
        assert_eq!(server.client().create(&format!("/turn{turn}"), b"").unwrap(), 0);
        server.stop();
    }
    assert_eq!(zxids(&home.path().join("data/version-2"), "log"), [1, 3]);
}

/// TTLs of -1, of 0 and above the maximum: Java exits on the first one when a client asks for it, and at every later start.
// rows: P-39 G-01
#[test]
fn log_with_invalid_ttls_is_replayed_where_java_exits() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data/version-2");
    std::fs::create_dir_all(&dir).unwrap();
    let mut log = record::header().to_vec();
    for (zxid, ttl_ms) in [(1, -1), (2, -1), (3, 0), (4, 5000), (5, 1 << 40)] {
        let (kind, client_id, time) = (op::CREATE_TTL, 7, 1_700_000_000_000);
        let mut entry = Vec::new();
        jute::txn::TxnHeader { client_id, cxid: zxid, zxid: zxid.into(), time, kind }
            .encode(&mut entry);
        let path = format!("/ttl{zxid}");
        write::create(&mut entry, &path, Some(b"x"), OPEN_ACL, CreateKind::Ttl(ttl_ms), zxid);
        record::put_record(&entry, &mut log);
    }
    std::fs::write(dir.join("log.1"), log).unwrap();

    // From the log, then from the snapshot that was made of it.
    for children in [2, 3] {
        let server = Process::start(home.path(), "extendedTypesEnabled=true");
        let mut client = server.client();
        let there = (1..6).filter(|zxid| client.exists(&format!("/ttl{zxid}")));
        assert_eq!(there.collect::<Vec<_>>(), [4]);
        let root = client.stat("/").unwrap();
        assert_eq!(root.num_children, children);
        if children == 2 {
            // Twice the cversion that the valid create brought, less the children.
            assert_eq!((root.cversion, root.pzxid), (2 * 4 - 2, 4));
        }
        assert_eq!(client.create("/after", b"").unwrap(), if children == 2 { 0 } else { -110 });
        server.stop();
    }
}
