//! Data that a member quarantines.

use crate::put as put_file;
use oxkeeper::model::Epoch;
use oxkeeper::store::epoch::{self, EpochFile};
use oxkeeper::store::quarantine::{
    Remedy, StartFailure, is_marked, knows_promises, rename_as_damaged, rescue, unmark,
};
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::{Disk as _, Folders};
use std::path::Path;

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
    for (text, current) in [(Some("4"), 4), (Some("\0\0"), 6), (Some(""), 6)] {
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
                assert_eq!(epoch(EpochFile::Current), Some(Epoch(current)));
            }
        }
        let found = disk.image().crash(0);
        assert!(is_marked(&found, &folders).unwrap());
        unmark(&found, &folders.snapshots, &folders.logs).unwrap();
        assert!(left(&found, &folders.logs).is_empty());
        assert!(!is_marked(&found.image().crash(0), &folders).unwrap());
    }
}

// rows: D-05 D-07
#[test]
fn promises_are_known_by_accepted_epoch_or_were_never_made() {
    let knows = |files: &[(&str, &str)]| {
        let disk = SimDisk::new();
        for (name, text) in files {
            put_file(&disk, &Path::new("/data").join(name), text.as_bytes());
        }
        knows_promises(&disk, Path::new("/data"))
    };
    assert!(knows(&[]) && knows(&[("acceptedEpoch", "3")]));
    assert!(knows(&[("acceptedEpoch", "3"), ("currentEpoch", "?")]));
    assert!(!knows(&[("acceptedEpoch", "?"), ("currentEpoch", "3")]));
    assert!(!knows(&[("currentEpoch", "3")]) && !knows(&[("currentEpoch", "?")]));
}

#[test]
fn second_quarantine_keeps_the_files_of_the_first() {
    let (disk, folders) = (directory(Some("4")), folders());
    rename_as_damaged(&disk, &folders).unwrap();
    disk.create(&folders.logs.join("log.1")).unwrap();
    assert_eq!(rename_as_damaged(&disk, &folders).unwrap(), [folders.logs.join("damaged-1.log.1")]);
    assert!(disk.list(&folders.logs).unwrap().contains(&"damaged.log.1".to_owned()));
}
