//! The log folder of the last start.

use oxkeeper::model::Epoch;
use oxkeeper::store::epoch::{self, EpochFile};
use oxkeeper::store::recover::prepare_folders;
use oxkeeper::store::{Folders, RealDisk, log_folder, record};

// rows: D-13
#[test]
fn missing_log_folder_of_a_member_is_an_error_and_not_created() {
    let dir = tempfile::tempdir().unwrap();
    let folders = Folders::new(&dir.path().join("data"), &dir.path().join("log"));
    prepare_folders(&RealDisk, &folders, true).unwrap();
    epoch::save(&RealDisk, &folders.snapshots, EpochFile::Current, Epoch(5)).unwrap();
    prepare_folders(&RealDisk, &folders, true).unwrap();
    std::fs::remove_dir(&folders.logs).unwrap();
    let error = prepare_folders(&RealDisk, &folders, true).unwrap_err();
    assert!(error.to_string().starts_with("there is no folder "), "{error}");
    assert!(!folders.logs.exists(), "no folder is made, so that the next start misses it too");
    epoch::save(&RealDisk, &folders.snapshots, EpochFile::Current, Epoch(0)).unwrap();
    prepare_folders(&RealDisk, &folders, true).unwrap();
}

// rows: D-13
#[test]
fn missing_log_folder_of_the_last_start_is_an_error_without_an_ensemble_too() {
    let dir = tempfile::tempdir().unwrap();
    let folders = Folders::new(&dir.path().join("data"), &dir.path().join("log"));
    prepare_folders(&RealDisk, &folders, true).unwrap();
    log_folder::note(&RealDisk, &folders, 7).unwrap();
    std::fs::remove_dir_all(&folders.logs).unwrap();
    let error = prepare_folders(&RealDisk, &folders, true).unwrap_err();
    assert!(error.to_string().starts_with("there is no folder "), "{error}");
    assert!(!folders.logs.exists());
    // As below a mount point: a start of Java's has made it.
    std::fs::create_dir(&folders.logs).unwrap();
    let error = prepare_folders(&RealDisk, &folders, true).unwrap_err();
    assert!(error.to_string().contains("is not the folder in which the last start had"), "{error}");
    assert_eq!(std::fs::read_dir(&folders.logs).unwrap().count(), 0);
    let other = Folders::new(&dir.path().join("data"), &dir.path().join("other"));
    // Now zoo.cfg names another disk, or none.
    for now in [&other, &Folders::new(&dir.path().join("data"), &dir.path().join("data"))] {
        let error = prepare_folders(&RealDisk, now, true).unwrap_err().to_string();
        assert!(error.starts_with("the last start had its logs in "), "{error}");
        assert!(error.contains("lastLogFolder"), "{error}");
    }
    std::fs::create_dir_all(&other.logs).unwrap();
    std::fs::write(other.logs.join("log.1"), record::header()).unwrap();
    prepare_folders(&RealDisk, &other, true).expect("the logs were moved");
}

// rows: D-13
#[test]
fn newest_log_of_the_last_start_in_another_folder_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let with_logs_in = |logs| Folders::new(&dir.path().join("data"), &dir.path().join(logs));
    let (before, unset) = (with_logs_in("log"), with_logs_in("data"));
    prepare_folders(&RealDisk, &before, true).unwrap();
    log_folder::note(&RealDisk, &before, 7).unwrap();
    prepare_folders(&RealDisk, &unset, true).expect("nothing was logged");
    let log = before.logs.join("log.300000001");
    std::fs::write(&log, record::header()).unwrap();
    for now in [&unset, &with_logs_in("new")] {
        let error = prepare_folders(&RealDisk, now, true).unwrap_err().to_string();
        assert!(
            error.contains("log.300000001, is not in ") && error.contains("dataLogDir"),
            "{error}"
        );
    }
    assert!(!dir.path().join("new").exists(), "no folder is made");
    std::fs::rename(&log, unset.logs.join("log.300000001")).unwrap();
    prepare_folders(&RealDisk, &unset, true).unwrap();
}
