//! The log thread: commands in, events out.

use crate::{entry, zxid};
use oxkeeper::model::{Epoch, Zxid};
use oxkeeper::store::disk::replace_file;
use oxkeeper::store::epoch::{self, EpochFile};
use oxkeeper::store::log_thread::{LogQueue, LogThread, spawn};
use oxkeeper::store::quarantine::{is_marked, rename_as_damaged};
use oxkeeper::store::scan;
use oxkeeper::store::sim_disk::{Fault, SimDisk};
use oxkeeper::store::{
    Command, Disk as _, Draft, Event, FailStop, Folders, Log, LogOptions, Packing, RealDisk,
    SnapshotWriter, Trailers, Worker,
};
use oxkeeper::store::{differing, doubted};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc;
use std::thread::{self, ThreadId};
use std::time::Duration;

fn append(raw: i64, len: usize) -> Command {
    Command::Append { zxid: zxid(raw), entry: entry(raw, len).into() }
}

fn worker(disk: &SimDisk, force_sync: bool) -> Worker<FailStop<SimDisk>, impl FnMut() -> Duration> {
    slow_worker(disk, force_sync, 20)
}

/// Its clock advances by 15 ms whenever it is read.
fn slow_worker(
    disk: &SimDisk,
    force_sync: bool,
    slow_after_ms: u64,
) -> Worker<FailStop<SimDisk>, impl FnMut() -> Duration> {
    let disk = FailStop::new(disk.clone());
    let options = LogOptions { prealloc: 1 << 16, size_limit: 0, force_sync };
    let log = Log::new(disk.clone(), Path::new("/log"), options, None);
    let mut now = 0;
    Worker::new(disk, log, Path::new("/data"), Duration::from_millis(slow_after_ms), move || {
        now += 15;
        Duration::from_millis(now)
    })
}

fn run(
    worker: &mut Worker<FailStop<SimDisk>, impl FnMut() -> Duration>,
    mut batch: Vec<Command>,
) -> Vec<String> {
    let mut events = Vec::new();
    worker.run(&mut batch, &mut |event| {
        events.push(match event {
            Event::Flushed(report) => {
                format!("flushed {} of {}", report.through, report.records)
            }
            Event::Truncated { to } => format!("truncated to {to}"),
            Event::CannotTruncate { last } => format!("can't cut, ends at {last}"),
            Event::Placed { zxid, .. } => format!("placed {zxid}"),
            Event::Restored { zxid } => format!("restored {zxid}"),
            Event::EpochSaved { file, epoch } => format!("saved {} {}", file.name(), epoch.0),
            Event::Failed(error) => format!("failed: {error}"),
        });
    });
    events
}

#[test]
fn events_come_in_the_order_of_commands() {
    let disk = SimDisk::new();
    let mut worker = worker(&disk, true);
    assert_eq!(
        run(&mut worker, vec![append(1, 40), append(2, 40), append(3, 40)]),
        ["flushed 0x3 of 3"]
    );
    let epoch = Command::SaveEpoch { file: EpochFile::Current, epoch: Epoch(4) };
    let to = zxid(4);
    let batch = vec![
        append(4, 40),
        append(5, 40),
        Command::Truncate { to, replaced: false },
        epoch,
        append(5, 40),
        Command::Roll,
    ];
    assert_eq!(
        run(&mut worker, batch),
        ["flushed 0x5 of 2", "truncated to 0x4", "saved currentEpoch 4", "flushed 0x5 of 1"]
    );
    assert_eq!(disk.list(Path::new("/log")).unwrap(), ["log.1", "log.5"]);
    assert!(run(&mut worker, vec![Command::Roll]).is_empty());
}

// If the reported end were too early, this server could vote for a leader that lacks what it has acknowledged.
#[test]
fn refused_truncation_after_a_leaders_tree_reports_its_zxid_as_the_end() {
    let disk = SimDisk::new();
    let mut worker = worker(&disk, true);
    let draft = draft(&disk, zxid(7));
    let batch = vec![
        append(1, 40),
        Command::Truncate { to: zxid(1), replaced: true },
        Command::Place { draft, replaces: true },
        Command::Truncate { to: zxid(5), replaced: false },
        append(8, 40),
        Command::Truncate { to: zxid(5), replaced: false },
    ];
    let wanted = [
        "flushed 0x1 of 1",
        "truncated to 0x1",
        "placed 0x7",
        "can't cut, ends at 0x7",
        "flushed 0x8 of 1",
        "can't cut, ends at 0x8",
    ];
    assert_eq!(run(&mut worker, batch), wanted);
}

/// A whole snapshot that waits for its name.
fn draft(disk: &SimDisk, at: Zxid) -> Draft {
    let disk = FailStop::new(disk.clone());
    let mut writer = SnapshotWriter::create(&disk, Path::new("/data"), at, Packing::Plain).unwrap();
    writer.body(&[0; 4]).unwrap();
    writer.draft(Trailers { digest: None, zxid: Some(at.to_wire()) }).unwrap()
}

// The records before a command are durable before the command runs: otherwise a snapshot could take the place of lost
// records, and an epoch file could count them as history.
#[test]
fn records_are_flushed_before_the_next_command_of_their_batch() {
    type Make = fn(&SimDisk) -> Command;
    let commands: [(Make, &str, &str); 2] = [
        (
            |disk| Command::Place { draft: draft(disk, zxid(7)), replaces: false },
            "placed 0x7",
            "snapshot.7",
        ),
        (
            |_| Command::SaveEpoch { file: EpochFile::Current, epoch: Epoch(4) },
            "saved currentEpoch 4",
            "currentEpoch",
        ),
    ];
    for (make, done, name) in commands {
        let disk = SimDisk::new();
        let mut first = worker(&disk, true);
        let batch = vec![append(1, 40), make(&disk)];
        assert_eq!(run(&mut first, batch), ["flushed 0x1 of 1", done]);

        let disk = SimDisk::new();
        let mut second = worker(&disk, true);
        run(&mut second, vec![append(1, 40)]);
        let command = make(&disk);
        disk.fail_next(Fault::Sync);
        let events = run(&mut second, vec![append(2, 40), command]);
        assert_eq!(events, ["failed: flush log file /log/log.1 through 0x2"]);
        let there = disk.list(Path::new("/data")).unwrap_or_default();
        assert!(!there.iter().any(|file| file == name), "{there:?}");
    }
}

// rows: Q-07
#[test]
fn quarantined_data_counts_again_only_after_a_leaders_tree_is_durable() {
    let disk = SimDisk::new();
    let folders = Folders { snapshots: "/data".into(), logs: "/log".into() };
    ["/data", "/log"].into_iter().for_each(|dir| disk.create_dir(Path::new(dir)).unwrap());
    rename_as_damaged(&disk, &folders).unwrap();
    let mut worker = worker(&disk, true);
    let own = Command::Place { draft: draft(&disk, zxid(5)), replaces: false };
    assert_eq!(run(&mut worker, vec![own]), ["placed 0x5"]);
    assert!(is_marked(&disk, &folders).unwrap(), "its own snapshot proves nothing");
    let leaders = Command::Place { draft: draft(&disk, zxid(7)), replaces: true };
    assert_eq!(run(&mut worker, vec![leaders]), ["placed 0x7"]);
    assert!(!is_marked(&disk, &folders).unwrap());
    assert!(!is_marked(&disk.image().crash(0), &folders).unwrap());
}

// rows: D-05
#[test]
fn synchronisation_is_noted_before_transactions_of_a_later_epoch_are_logged() {
    let (disk, dir, later) = (SimDisk::new(), Path::new("/data"), Zxid::new(Epoch(1), 1).to_wire());
    disk.create_dir(dir).unwrap();
    epoch::save(&disk, dir, EpochFile::Current, Epoch(0)).unwrap();
    let mut worker = worker(&disk, true);
    disk.keep_images();
    let batch = vec![append(1, 40), Command::NoteJoining, append(later, 40)];
    assert_eq!(run(&mut worker, batch), ["flushed 0x100000001 of 2"]);
    let mut logged = 0;
    for image in disk.take_images() {
        for seed in 0..30 {
            let found = image.crash(seed);
            let mut newest = 0;
            let _torn = scan::scan(&found, Path::new("/log"), None, |zxid, _, _| {
                newest = zxid;
                Ok::<_, Infallible>(ControlFlow::Continue(()))
            });
            logged += usize::from(newest == later);
            assert!(newest < later || epoch::is_joining(&found, dir).unwrap());
        }
    }
    assert!(0 < logged, "no crash leaves it");
    run(&mut worker, vec![Command::SaveEpoch { file: EpochFile::Current, epoch: Epoch(1) }]);
    assert!(!epoch::is_joining(&disk.image().crash(0), dir).unwrap());
}

// rows: D-69
#[test]
fn doubt_is_noted_before_the_snapshot_and_lasts_until_a_leaders_tree_is_durable() {
    let disk = SimDisk::new();
    let dir = Path::new("/data");
    disk.create_dir(dir).unwrap();
    let mut worker = worker(&disk, true);
    let place = |number, replaces| Command::Place { draft: draft(&disk, zxid(number)), replaces };
    let batch = vec![Command::NoteDoubt, place(5, false), Command::NoteDoubt];
    assert_eq!(run(&mut worker, batch), ["placed 0x5"]);
    assert_eq!(run(&mut worker, vec![place(6, false)]), ["placed 0x6"]);
    assert!(doubted::is_noted(&disk.image().crash(0), dir).unwrap());
    assert_eq!(run(&mut worker, vec![place(7, true)]), ["placed 0x7"]);
    assert!(!doubted::is_noted(&disk, dir).unwrap());
    assert!(!doubted::is_noted(&disk.image().crash(0), dir).unwrap());
    // The tree has a digest of its leader's.
    assert!(run(&mut worker, vec![Command::NoteDoubt, Command::ForgetDoubt]).is_empty());
    assert!(!doubted::is_noted(&disk.image().crash(0), dir).unwrap());
}

// rows: D-69
#[test]
fn difference_from_the_leader_stays_noted_until_another_tree_is_durable() {
    let disk = SimDisk::new();
    let dir = Path::new("/data");
    disk.create_dir(dir).unwrap();
    let mut worker = worker(&disk, true);
    let note = |number| Command::NoteDifference { since: zxid(number) };
    let place = |number, replaces| Command::Place { draft: draft(&disk, zxid(number)), replaces };
    let noted = || differing::since(&disk.image().crash(0), dir).unwrap();
    assert!(run(&mut worker, vec![note(3), note(5)]).is_empty());
    assert_eq!(noted(), Some(zxid(3)), "the first");
    assert_eq!(run(&mut worker, vec![place(6, false)]), ["placed 0x6"]);
    assert_eq!(noted(), Some(zxid(3)));
    assert_eq!(run(&mut worker, vec![place(7, true)]), ["placed 0x7"]);
    assert_eq!(noted(), None);
    // The log is truncated after that transaction, then before it.
    let truncate = |to| Command::Truncate { to: zxid(to), replaced: false };
    run(&mut worker, vec![append(8, 40), append(9, 40), append(10, 40), note(9), truncate(9)]);
    assert_eq!(noted(), Some(zxid(9)));
    run(&mut worker, vec![truncate(8)]);
    assert_eq!(noted(), None);
    // One that can't be understood counts as none.
    replace_file(&disk, &differing::path(dir), b"x").unwrap();
    assert_eq!(differing::since(&disk, dir).unwrap(), None);
}

#[test]
fn large_batches_are_flushed_in_parts() {
    let disk = SimDisk::new();
    let mut worker = worker(&disk, true);
    let batch = vec![append(1, 3 << 20), append(2, 1 << 20), append(3, 9 << 20), append(4, 40)];
    assert_eq!(
        run(&mut worker, batch),
        ["flushed 0x1 of 1", "flushed 0x2 of 1", "flushed 0x3 of 1", "flushed 0x4 of 1"]
    );
}

#[test]
fn disk_error_is_reported_once_and_stops_the_worker() {
    let disk = SimDisk::new();
    let mut worker = worker(&disk, true);
    run(&mut worker, vec![append(1, 40)]);
    disk.fail_next(Fault::Sync);
    let events = run(&mut worker, vec![append(2, 40), Command::Roll, append(3, 40)]);
    assert_eq!(events, ["failed: flush log file /log/log.1 through 0x2"]);
    let changes = disk.counts().changes;
    assert!(run(&mut worker, vec![append(4, 40)]).is_empty());
    assert!(!worker.wants_zeros_ahead());
    assert_eq!(disk.counts().changes, changes);
}

// rows: D-49
#[test]
fn log_is_never_synced_with_force_sync_off() {
    let disk = SimDisk::new();
    let mut worker = worker(&disk, false);
    assert_eq!(run(&mut worker, vec![append(1, 40)]), ["flushed 0x1 of 1"]);
    assert_eq!(disk.counts().syncs, 0);
}

// rows: D-49
#[test]
fn slow_syncs_are_reported() {
    let mut slow = Vec::new();
    for slow_after_ms in [14, 15] {
        let disk = SimDisk::new();
        let mut worker = slow_worker(&disk, true, slow_after_ms);
        worker.run(&mut vec![append(1, 40)], &mut |event| {
            let Event::Flushed(report) = event else { panic!("{event:?}") };
            slow.push((report.slow, report.sync_took.map(|took| took.as_millis())));
        });
    }
    assert_eq!(slow, [(true, Some(15)), (false, Some(15))]);
}

#[test]
fn writing_is_timed_apart_from_syncing() {
    for force_sync in [true, false] {
        let disk = SimDisk::new();
        let mut worker = worker(&disk, force_sync);
        let mut costs = Vec::new();
        let large = vec![append(1, 3 << 20), append(2, 3 << 20), append(3, 40)];
        for mut batch in [large, vec![append(4, 40), append(5, 40)]] {
            worker.run(&mut batch, &mut |event| {
                let Event::Flushed(report) = event else { panic!("{event:?}") };
                assert_eq!(report.sync_took.is_some(), force_sync);
                costs.push((report.records, report.write_took.as_millis(), report.full));
            });
        }
        // The clock advances by 15 ms whenever it is read: at the first record, after the write, after the sync.
        assert_eq!(costs, [(1, 15, true), (2, 15, false), (2, 15, false)]);
    }
}

/// A log thread with a real disk, its queue, and the reports with the thread that made them.
struct Running {
    thread: LogThread,
    queue: LogQueue,
    events: mpsc::Receiver<(ThreadId, Event)>,
    _dir: tempfile::TempDir,
}

fn running() -> Running {
    let dir = tempfile::tempdir().unwrap();
    let disk = FailStop::new(RealDisk);
    let log = Log::new(disk.clone(), dir.path(), LogOptions::default(), None);
    let (sender, events) = mpsc::channel();
    let queue = LogQueue::default();
    let slow_after = Duration::from_secs(1);
    let report = move |event| sender.send((thread::current().id(), event)).unwrap();
    let thread = spawn(queue.clone(), disk, log, dir.path(), slow_after, report).unwrap();
    Running { thread, queue, events, _dir: dir }
}

/// The last zxid that these reports say is flushed, and the number of records; each report must continue the one before.
fn flushed(events: impl IntoIterator<Item = Event>) -> (Zxid, u32) {
    let (mut through, mut records) = (Zxid::ZERO, 0);
    for event in events {
        let Event::Flushed(report) = event else { panic!("{event:?}") };
        assert!(through < report.through);
        (through, records) = (report.through, records + report.records);
    }
    (through, records)
}

#[test]
fn dropped_log_thread_finishes_the_commands_sent() {
    let Running { thread, queue, events, _dir } = running();
    for raw in 1..=100 {
        queue.send(append(raw, 100));
    }
    queue.send_all(&mut vec![append(101, 100), Command::Roll]);
    drop(thread);
    assert_eq!(flushed(events.into_iter().map(|(_, event)| event)), (zxid(101), 101));
}

/// Another thread runs commands while the log thread sleeps, and sends them while the log thread works.
#[test]
fn commands_keep_their_order_whichever_thread_runs_them() {
    let Running { thread, queue, events, _dir } = running();
    let mut all = Vec::new();
    let (mut here, mut last) = (0, 0);
    for raw in 1..=12_000 {
        if 2000 < raw && here > 0 {
            break;
        }
        last = raw;
        if raw % 20 == 0 {
            // The log thread finds the queue empty, and falls asleep: late on a loaded machine, so that the pauses grow.
            let pause = Duration::from_millis(1 << (raw / 1000).min(8));
            while let Ok((_, event)) = events.recv_timeout(pause) {
                all.push(event);
            }
        }
        let mut command = vec![append(raw, 100)];
        if raw % 7 == 0 {
            queue.send_all(&mut command);
        } else {
            let mut reports = Vec::new();
            queue.run_or_send(&mut command, &mut |event| reports.push(event));
            here += reports.len();
            // What the log thread did before it fell asleep was reported before.
            all.extend(events.try_iter().map(|(by, event)| {
                assert_ne!(by, thread::current().id());
                event
            }));
            all.append(&mut reports);
        }
        assert!(command.is_empty());
    }
    drop(thread);
    all.extend(events.into_iter().map(|(_, event)| event));
    assert_eq!(flushed(all), (zxid(last), last as u32));
    assert!(here > 0, "this thread never found the log thread asleep");
}

// rows: D-70
#[test]
fn restored_snapshot_replaces_all_older_files_and_the_log_goes_on_after_it() {
    let disk = SimDisk::new();
    let mut worker = worker(&disk, true);
    let older = draft(&disk, zxid(2));
    let place = Command::Place { draft: older, replaces: false };
    run(&mut worker, vec![append(1, 40), append(2, 40), place, append(3, 40)]);
    let restored = Command::PlaceRestored { draft: draft(&disk, zxid(9)) };
    let batch = vec![append(4, 40), restored, append(10, 40)];
    assert_eq!(run(&mut worker, batch), ["flushed 0x4 of 1", "restored 0x9", "flushed 0xa of 1"]);
    let left = |dir: &str| {
        let mut names = disk.list(Path::new(dir)).unwrap();
        names.retain(|name| !name.starts_with("restored-over."));
        names
    };
    assert_eq!((left("/data"), left("/log")), (vec!["snapshot.9".into()], vec!["log.a".into()]));
}
