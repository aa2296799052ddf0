//! The epoch files: after a crash, as Java writes them, and damaged.

use crate::put as put_file;
use oxkeeper::model::{Epoch, Epochs, Zxid};
use oxkeeper::store::Disk as _;
use oxkeeper::store::disk::replace_file;
use oxkeeper::store::epoch::{
    EpochError, EpochFile, check_current, check_history, is_joining, note_joining, promised, read,
    read_left_over, save,
};
use oxkeeper::store::sim_disk::SimDisk;
use std::path::Path;

const DIR: &str = "/data/version-2";

// rows: D-05
#[test]
fn a_crash_leaves_the_old_epoch_or_the_new() {
    let (disk, dir, which) = (SimDisk::new(), Path::new(DIR), EpochFile::Accepted);
    assert_eq!(read(&disk, dir, which).unwrap(), None);
    save(&disk, dir, which, Epoch(7)).unwrap();
    disk.keep_images();
    save(&disk, dir, which, Epoch(12)).unwrap();
    for image in disk.take_images() {
        for seed in 0..20 {
            let found = read(&image.crash(seed), dir, which).unwrap();
            assert!([Some(Epoch(7)), Some(Epoch(12))].contains(&found), "{found:?}");
        }
    }
    assert_eq!(read(&disk.image().crash(0), dir, which).unwrap(), Some(Epoch(12)));
}

// rows: D-05 D-06
#[test]
fn epoch_files_are_read_as_java_writes_them() {
    let (disk, dir) = (SimDisk::new(), Path::new(DIR));
    let put = |name: &str, text: &str| put_file(&disk, &dir.join(name), text.as_bytes());
    put("currentEpoch", "3\n");
    put("currentEpoch.tmp", "4");
    put("acceptedEpoch", "");
    put("acceptedEpoch.tmp", "99999999999");
    assert_eq!(read(&disk, dir, EpochFile::Current).unwrap(), Some(Epoch(3)));
    assert_eq!(read_left_over(&disk, dir, EpochFile::Current).unwrap(), Some(Epoch(4)));
    assert!(matches!(read(&disk, dir, EpochFile::Accepted), Err(EpochError::Malformed { .. })));
    assert_eq!(read_left_over(&disk, dir, EpochFile::Accepted).unwrap(), None);
}

// rows: D-05 D-06 D-07
#[test]
fn missing_epoch_files_take_the_logs_epoch_unless_a_promise_is_lost() {
    let dir = Path::new(DIR);
    let last = Zxid::new(Epoch(5), 7);
    let found = |files: &[(&str, &str)]| {
        let disk = SimDisk::new();
        for (name, text) in files {
            let path = dir.join(name);
            put_file(&disk, &path, text.as_bytes());
            if !name.ends_with(".tmp") {
                disk.sync_data(&disk.open(&path).unwrap()).unwrap();
                disk.sync_dir(dir).unwrap();
            }
        }
        let epochs = promised(&disk, dir, Some(last)).ok();
        // The start may have used the epoch of a left-over file that was not durable: after the start it has to be.
        if files.iter().any(|(name, _)| name.ends_with(".tmp")) {
            assert_eq!(promised(&disk.image().crash(0), dir, Some(last)).ok(), epochs);
        }
        epochs.map(|epochs| (epochs.accepted.0, epochs.current.0))
    };
    assert_eq!(found(&[]), Some((5, 5)), "a standalone server's directory");
    assert_eq!(found(&[("acceptedEpoch", "8"), ("currentEpoch", "6")]), Some((8, 6)));
    let half = [("acceptedEpoch", "5"), ("currentEpoch", "4"), ("currentEpoch.tmp", "5")];
    assert_eq!(found(&half), Some((5, 5)));
    assert_eq!(found(&half[1..]), None, "a promise is saved first, so one was lost");
    assert_eq!(found(&[("currentEpoch", "0")]), None, "no start leaves that beside such a log");
    assert_eq!(found(&[("currentEpoch", "\nsynchronising\n")]), None, "it was a member");
    assert_eq!(found(&[("currentEpoch", "six")]), None);
    assert_eq!(found(&[("acceptedEpoch", "2147483646")]), Some((i32::MAX as u32 - 1, 5)));
    assert_eq!(found(&[("acceptedEpoch", "2147483647")]), None, "no other epoch could follow");
}

/// A crash left what was to replace currentEpoch, and then both epoch files were lost (world 3041000015892).
// rows: D-05 D-06
#[test]
fn left_over_note_of_a_synchronisation_shows_that_a_promise_is_lost() {
    for (text, is_known) in [("0", true), ("0\nsynchronising\n", false)] {
        let (disk, dir) = (SimDisk::new(), Path::new(DIR));
        put_file(&disk, &dir.join("currentEpoch.tmp"), text.as_bytes());
        let found = promised(&disk, dir, Some(Zxid::ZERO));
        assert_eq!(found.is_ok(), is_known, "{text:?} {found:?}");
    }
}

// rows: D-06
#[test]
fn log_ahead_of_current_epoch_counts_with_its_own_epoch() {
    let (disk, dir, last) = (SimDisk::new(), Path::new(DIR), Zxid::new(Epoch(5), 7));
    let first = promised(&disk, dir, Some(Zxid::ZERO)).unwrap();
    assert_eq!(first, Epochs::default());
    save(&disk, dir, EpochFile::Accepted, Epoch(6)).unwrap();
    let ahead = Epochs { accepted: Epoch(6), current: Epoch(5) };
    assert_eq!(promised(&disk, dir, Some(last)).unwrap(), ahead);
    // A later synchronisation may truncate the log.
    let disk = disk.image().crash(0);
    assert_eq!(promised(&disk, dir, Some(Zxid::new(Epoch(4), 9))).unwrap(), ahead);
    assert_eq!(promised(&disk, dir, None).unwrap(), ahead);
}

/// It has not acknowledged the NEWLEADER of the log's epoch, and may not know which configuration that named.
// rows: D-05 D-06 D-09
#[test]
fn server_stands_for_current_epoch_after_a_synchronisation_that_was_interrupted() {
    let (disk, dir, last) = (SimDisk::new(), Path::new(DIR), Some(Zxid::new(Epoch(5), 7)));
    save(&disk, dir, EpochFile::Accepted, Epoch(6)).unwrap();
    save(&disk, dir, EpochFile::Current, Epoch(3)).unwrap();
    note_joining(&disk, dir).unwrap();
    let behind = Epochs { accepted: Epoch(6), current: Epoch(3) };
    let disk = disk.image().crash(0);
    for last in [last, Some(Zxid::new(Epoch(3), 9)), None] {
        assert_eq!(promised(&disk, dir, last).unwrap(), behind);
    }
    // The next process ended while the epoch was saved, after all of the synchronisation was on disk.
    put_file(&disk, &dir.join("currentEpoch.tmp"), b"5");
    let joined = Epochs { current: Epoch(5), ..behind };
    assert_eq!(promised(&disk, dir, last).unwrap(), joined);
    // An operator brings the file of an earlier time back, or writes it.
    assert!(!is_joining(&disk, dir).unwrap());
    for text in ["3", "3\n"] {
        replace_file(&disk, &dir.join("currentEpoch"), text.as_bytes()).unwrap();
        assert_eq!(promised(&disk, dir, last).unwrap(), joined);
    }
}

// rows: D-05 D-06
#[test]
fn accepted_epoch_before_the_epoch_of_the_log_is_refused() {
    let dir = Path::new(DIR);
    let start = |files: &[(&str, &str)], last| {
        let disk = SimDisk::new();
        files.iter().for_each(|(name, text)| put_file(&disk, &dir.join(name), text.as_bytes()));
        promised(&disk, dir, last).map_err(|error| error.to_string())
    };
    let last = Zxid::new(Epoch(5), 7);
    let copied = [("acceptedEpoch", "4"), ("currentEpoch", "4"), ("acceptedEpoch.tmp", "5")];
    let error = start(&copied[..2], Some(last)).unwrap_err();
    assert!(
        error.contains("acceptedEpoch is 4, and the last transaction is 0x500000007"),
        "{error}"
    );
    assert!(start(&copied[..1], Some(last)).is_err());
    assert!(start(&copied[..2], Some(Zxid::new(Epoch(4), 9))).is_ok());
    assert!(start(&copied[..2], None).is_ok(), "quarantined data proves nothing");
    assert!(start(&copied, Some(last)).is_ok(), "the promise is in the temporary file");
}

// rows: D-05 D-07
#[test]
fn a_current_epoch_that_was_never_promised_is_damage() {
    let (disk, dir) = (SimDisk::new(), Path::new(DIR));
    let check = |accepted: Option<u32>, current| {
        for (which, epoch) in [(EpochFile::Accepted, accepted), (EpochFile::Current, Some(current))]
        {
            if let Some(epoch) = epoch {
                save(&disk, dir, which, Epoch(epoch)).unwrap();
            }
        }
        check_current(&disk, dir).map_err(|error| error.to_string())
    };
    assert_eq!(check(None, 900), Ok(()), "nothing says that it is wrong");
    assert_eq!((check(Some(7), 7), check(Some(7), 6)), (Ok(()), Ok(())));
    let error = check(Some(7), 8).unwrap_err();
    assert!(error.contains("currentEpoch: currentEpoch 8 is later than acceptedEpoch"), "{error}");
}

// rows: D-05
#[test]
fn missing_current_epoch_is_damage_unless_the_log_shows_it() {
    let dir = Path::new(DIR);
    let check = |files: &[(&str, &str)]| {
        let disk = SimDisk::new();
        files.iter().for_each(|(name, text)| put_file(&disk, &dir.join(name), text.as_bytes()));
        check_history(&disk, dir, Zxid::new(Epoch(5), 7)).map_err(|error| error.to_string())
    };
    assert_eq!(check(&[]), Ok(()), "a standalone server's directory");
    assert_eq!(check(&[("acceptedEpoch", "5")]), Ok(()), "a first start was interrupted");
    assert_eq!(check(&[("acceptedEpoch", "6"), ("currentEpoch", "5")]), Ok(()));
    assert_eq!(check(&[("acceptedEpoch", "6"), ("currentEpoch.tmp", "5")]), Ok(()));
    for accepted in ["acceptedEpoch", "acceptedEpoch.tmp"] {
        let error = check(&[(accepted, "6")]).unwrap_err();
        let text = "currentEpoch is missing, acceptedEpoch is 6, and the log ends with 0x500000007";
        assert!(error.contains(text), "{error}");
    }
}

// rows: D-05 Q-07
#[test]
fn missing_current_epoch_is_not_written_without_data_that_counts() {
    let (disk, dir) = (SimDisk::new(), Path::new(DIR));
    assert_eq!(promised(&disk, dir, None).unwrap(), Epochs::default());
    assert_eq!(read(&disk, dir, EpochFile::Current).unwrap(), None);
    // A leader's tree is on disk, but the power failed before currentEpoch was saved.
    save(&disk, dir, EpochFile::Accepted, Epoch(7)).unwrap();
    assert_eq!(promised(&disk, dir, None).unwrap().current, Epoch(0));
    assert!(check_history(&disk, dir, Zxid::new(Epoch(5), 3)).is_err());
    // A history that ends in the promised epoch contains the history with which that epoch began.
    let in_accepted = Zxid::new(Epoch(7), 1);
    assert!(check_history(&disk, dir, in_accepted).is_ok());
    // But not the configuration that NEWLEADER names, if configurations may change.
    note_joining(&disk, dir).unwrap();
    let disk = disk.image().crash(0);
    assert_eq!(read(&disk, dir, EpochFile::Current).unwrap(), None, "it was not made up");
    assert!(check_history(&disk, dir, in_accepted).is_err());
    assert_eq!(promised(&disk, dir, None).unwrap().current, Epoch(0));
    save(&disk, dir, EpochFile::Current, Epoch(7)).unwrap();
    assert!(check_history(&disk, dir, in_accepted).is_ok());
}
