//! Data that a member quarantines.

use crate::{log_file, put as put_file};
use oxkeeper::model::{Epoch, Zxid};
use oxkeeper::store::epoch::{self, EpochFile, promised};
use oxkeeper::store::quarantine::{
    Remedy, StartFailure, is_marked, knows_promises, rename_as_damaged, rescue, trouble, unmark,
};
use oxkeeper::store::scan::ScanError;
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::start::restore;
use oxkeeper::store::{
    Disk as _, Folders, Packing, Progress, RecoverError, RecoverOptions, Restore, SnapshotWriter,
    Trailers,
};
use rustix::io::Errno;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A log without a record, there as long as the mark is.
const GUARD: &str = "log.0";

const TROUBLES: [StartFailure; 8] = [
    StartFailure::Log,
    StartFailure::Hole,
    StartFailure::Snapshots,
    StartFailure::NoSnapshot,
    StartFailure::CurrentEpoch,
    StartFailure::AcceptedEpoch,
    StartFailure::Meaning,
    StartFailure::Access,
];

#[test]
fn only_members_quarantine_data_and_only_if_their_promises_are_known() {
    for trouble in TROUBLES {
        assert_eq!(rescue(trouble, false), Remedy::Refuse, "{trouble:?}");
    }
    let kept = TROUBLES.map(|trouble| rescue(trouble, true) == Remedy::Refuse);
    assert_eq!(kept, [false, false, false, true, false, true, true, true]);
}

// Another process with too many open files, or a network that is down, would otherwise have all members set good data aside.
#[test]
fn log_that_can_not_be_read_for_another_reason_than_its_medium_is_no_damage() {
    let failure = |source| {
        trouble::<Infallible>(&RecoverError::Log(ScanError::Read { path: PathBuf::new(), source }))
    };
    for errno in [Errno::IO, Errno::UCLEAN, Errno::BADMSG] {
        assert_eq!(failure(errno.into()), StartFailure::Log, "{errno}");
    }
    for errno in
        [Errno::MFILE, Errno::NOMEM, Errno::STALE, Errno::TIMEDOUT, Errno::ISDIR, Errno::ACCESS]
    {
        assert_eq!(failure(errno.into()), StartFailure::Access, "{errno}");
    }
    assert_eq!(failure(io::ErrorKind::UnexpectedEof.into()), StartFailure::Log);
}

/// A state without content; its snapshot has one byte.
struct Nothing;

impl Restore for Nothing {
    type Error = Infallible;
    fn reset(&mut self) {}
    fn snapshot_bytes(&mut self, bytes: &[u8]) -> Result<Progress, Infallible> {
        Ok(Progress { consumed: bytes.len().min(1), finished: !bytes.is_empty() })
    }
    fn snapshot_done(&mut self, _: Zxid, _: Trailers) -> Result<(), Infallible> {
        Ok(())
    }
    fn replay(&mut self, _: i64, _: &[u8]) -> Result<(), Infallible> {
        Ok(())
    }
}

// All members may have the limit at once, or the same network file system.
#[test]
fn member_that_can_not_open_a_snapshot_or_an_epoch_file_refuses_and_renames_nothing() {
    for (name, errno) in [
        ("snapshot.5", Errno::MFILE),
        ("snapshot.5.gz", Errno::STALE),
        ("log.6", Errno::TIMEDOUT),
        ("currentEpoch", Errno::ACCESS),
        ("currentEpoch", Errno::IO),
        ("acceptedEpoch", Errno::MFILE),
    ] {
        let (disk, folders) = (SimDisk::new(), folders());
        let packing = if name.ends_with("gz") { Packing::Gzip } else { Packing::Plain };
        let at = Zxid::from_wire(5).unwrap();
        let writer = SnapshotWriter::create(&disk, &folders.snapshots, at, packing);
        let mut writer = writer.unwrap();
        writer.body(&[9]).unwrap();
        writer.finish(Trailers { digest: None, zxid: Some(5) }).unwrap();
        put_file(&disk, &folders.logs.join("log.6"), &log_file(&[6, 7], 40));
        for which in [EpochFile::Accepted, EpochFile::Current] {
            epoch::save(&disk, &folders.snapshots, which, Epoch(6)).unwrap();
        }
        let files = || [disk.list(&folders.snapshots).unwrap(), disk.list(&folders.logs).unwrap()];
        let before = files();
        let dir = if name.starts_with("log") { &folders.logs } else { &folders.snapshots };
        disk.refuse(&dir.join(name), Some(errno.raw_os_error()));
        let wanted = RecoverOptions { is_member: true, ..RecoverOptions::default() };
        let start = || restore(&disk, &folders, wanted, &mut Nothing, || Duration::ZERO);
        let started = start().map(|found| {
            // The epochs are read once more after the data.
            assert!(!found.was_quarantined, "{name}: {errno}");
            promised(&disk, &folders.snapshots, found.recovered.last)
        });
        assert!(!matches!(started, Ok(Ok(_))), "{name}: {errno}: it starts");
        assert_eq!(files(), before, "{name}: {errno}");
        disk.refuse(&dir.join(name), None);
        assert_eq!(start().unwrap().recovered.last, Zxid::from_wire(7), "{name}: {errno}");
    }
}

#[test]
fn nothing_is_renamed_while_an_epoch_file_can_not_be_read() {
    for which in [EpochFile::Accepted, EpochFile::Current] {
        let disk = directory(Some("6"));
        let path = folders().snapshots.join(which.name());
        disk.refuse(&path, Some(Errno::ACCESS.raw_os_error()));
        rename_as_damaged(&disk, &folders()).unwrap_err();
        assert!(disk.open(&folders().logs.join("log.1")).is_ok(), "{}", which.name());
        disk.refuse(&path, None);
        rename_as_damaged(&disk, &folders()).unwrap();
        assert!(disk.open(&folders().logs.join("log.1")).is_err(), "{}", which.name());
    }
}

#[test]
fn quarantine_takes_copies_of_logs_along() {
    let disk = directory(Some("6"));
    put_file(&disk, &folders().logs.join("log.1.bak"), b"log.1.bak");
    rename_as_damaged(&disk, &folders()).unwrap();
    let left = disk.list(&folders().logs).unwrap();
    assert!(left.contains(&"damaged.log.1.bak".to_owned()), "{left:?}");
}

fn folders() -> Folders {
    Folders::new(Path::new("/data"), Path::new("/log"))
}

const SNAPSHOTS: [&str; 2] = ["snapshot.0", "snapshot.7.gz"];
const LOGS: [&str; 2] = ["log.1", "log.8"];

/// * `current`: the text of currentEpoch; `None`: there is no such file.
fn directory(current: Option<&str>) -> SimDisk {
    let disk = SimDisk::new();
    let folders = folders();
    let put = |dir: &Path, name: &str, text: &str| {
        let file = disk.create(&dir.join(name)).unwrap();
        disk.write_at(&file, 0, text.as_bytes()).unwrap();
        disk.sync_data(&file).unwrap();
    };
    SNAPSHOTS.iter().for_each(|name| put(&folders.snapshots, name, name));
    LOGS.iter().for_each(|name| put(&folders.logs, name, name));
    put(&folders.snapshots, "acceptedEpoch", "6");
    current.into_iter().for_each(|text| put(&folders.snapshots, "currentEpoch", text));
    disk.sync_dir(&folders.snapshots).unwrap();
    disk.sync_dir(&folders.logs).unwrap();
    disk
}

/// Names of the files that are neither quarantined nor epoch files.
fn left(disk: &SimDisk, dir: &Path) -> Vec<String> {
    let mut names = disk.list(dir).unwrap();
    names.retain(|name| !name.starts_with("damaged") && !name.contains("Epoch"));
    names.sort();
    names
}

fn count(disk: &SimDisk) -> usize {
    let all = |dir| disk.list(dir).unwrap().into_iter();
    let all = all(&folders().snapshots).chain(all(&folders().logs));
    all.filter(|name| SNAPSHOTS.iter().chain(&LOGS).any(|old| name.ends_with(old))).count()
}

// rows: D-02 D-05 Q-07
#[test]
fn crash_during_quarantine_leaves_all_data_or_the_mark() {
    for (text, current) in [(Some("4"), Some(4)), (Some("\0\0"), None), (Some(""), None)] {
        let (disk, folders) = (directory(text), folders());
        disk.keep_images();
        rename_as_damaged(&disk, &folders).unwrap();
        for image in disk.take_images() {
            for seed in 0..30 {
                let found = image.crash(seed);
                if !is_marked(&found, &folders).unwrap() {
                    assert_eq!(left(&found, &folders.snapshots), SNAPSHOTS);
                    assert_eq!(left(&found, &folders.logs), LOGS);
                    continue;
                }
                rename_as_damaged(&found, &folders).unwrap();
                assert_eq!(left(&found, &folders.snapshots), ["unsure"]);
                assert_eq!(left(&found, &folders.logs), [GUARD]);
                // Other crashes of this disk may lose both names of a renamed file, as no file system does.
                assert!(1 < seed || count(&found) == 4, "no file is lost");
                let epoch = |which| epoch::read(&found, &folders.snapshots, which).unwrap();
                assert_eq!(epoch(EpochFile::Accepted), Some(Epoch(6)));
                assert_eq!(epoch(EpochFile::Current), current.map(Epoch));
            }
        }
        let found = disk.image().crash(0);
        assert!(is_marked(&found, &folders).unwrap());
        unmark(&found, &folders.snapshots, &folders.logs).unwrap();
        assert!(left(&found, &folders.logs).is_empty());
        assert!(!is_marked(&found.image().crash(0), &folders).unwrap());
    }
}

/// Data of a standalone server that was moved into an ensemble is damaged at one server.
// rows: D-05
#[test]
fn server_that_never_was_a_member_starts_after_its_data_was_quarantined() {
    let (disk, folders) = (SimDisk::new(), folders());
    put_file(&disk, &folders.logs.join("log.1"), b"damaged");
    for _ in 0..2 {
        assert!(knows_promises(&disk, &folders).unwrap());
        rename_as_damaged(&disk, &folders).unwrap();
        let epochs = promised(&disk, &folders.snapshots, None).expect("nothing was promised");
        assert_eq!(epochs.accepted, Epoch(0));
    }
}

// rows: D-05 D-07
#[test]
fn promises_are_known_by_accepted_epoch_or_were_never_made() {
    let knows = |files: &[(&str, &str)]| {
        let (disk, folders) =
            (SimDisk::new(), Folders::new(Path::new("/data"), Path::new("/data")));
        for (name, text) in files {
            put_file(&disk, &folders.snapshots.join(name), text.as_bytes());
        }
        knows_promises(&disk, &folders).unwrap()
    };
    let knows_with_log = |zxids: &[i64]| {
        let (disk, folders) = (SimDisk::new(), folders());
        put_file(&disk, &folders.snapshots.join("acceptedEpoch"), b"3");
        put_file(&disk, &folders.logs.join("log.300000001"), &log_file(zxids, 36));
        knows_promises(&disk, &folders).unwrap()
    };
    assert!(knows(&[]) && knows(&[("acceptedEpoch", "3")]));
    assert!(knows(&[("acceptedEpoch", "3"), ("currentEpoch", "?")]));
    assert!(!knows(&[("acceptedEpoch", "?"), ("currentEpoch", "3")]));
    assert!(!knows(&[("currentEpoch", "3")]) && !knows(&[("currentEpoch", "?")]));
    let accepted = ("acceptedEpoch", "3");
    assert!(knows(&[accepted, ("log.300000001", ""), ("snapshot.200000005", "")]));
    assert!(!knows(&[accepted, ("log.400000001", "")]), "an older copy of acceptedEpoch");
    assert!(!knows(&[accepted, ("snapshot.400000000.gz", "")]));
    assert!(knows_with_log(&[0x3_0000_0001, 0x3_0000_0002]));
    assert!(
        !knows_with_log(&[0x3_0000_0001, 0x4_0000_0001]),
        "a log that goes on in a later epoch"
    );
    assert!(knows(&[accepted, ("acceptedEpoch.tmp", "4"), ("log.400000001", "")]));
}

#[test]
fn second_quarantine_keeps_the_files_of_the_first() {
    let (disk, folders) = (directory(Some("4")), folders());
    rename_as_damaged(&disk, &folders).unwrap();
    disk.create(&folders.logs.join("log.1")).unwrap();
    assert_eq!(rename_as_damaged(&disk, &folders).unwrap(), [folders.logs.join("damaged-1.log.1")]);
    assert!(disk.list(&folders.logs).unwrap().contains(&"damaged.log.1".to_owned()));
}
