//! The configuration files that a reconfiguration changes, on disks that lose power.

use oxkeeper::config::{dynamic, parse_properties};
use oxkeeper::member::config_files::{ConfigFiles, LastInForce};
use oxkeeper::member::{Action, ConfigChange, Ended, turn};
use oxkeeper::model::{Epoch, View, Zxid};
use oxkeeper::store::disk::{read_file, replace_file};
use oxkeeper::store::epoch::{self, EpochFile};
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::{Disk as _, RealDisk};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

const STATIC: &str = "# ours\ndataDir=/d\nclientPort=2181\nserver.1=a:1:2;2181\n";

fn view(version: i64) -> View {
    let text = "server.1=a:1:2;2181\nserver.2=b:1:2";
    View::parse(&format!("{text}\nversion={version:x}")).unwrap()
}

/// The files `/c/zoo.cfg...`, of which there is the static one, and `/d/lastConfiguration`.
fn files_on(disk: &SimDisk) -> ConfigFiles<SimDisk> {
    let (config_file, data) = (Path::new("/c/zoo.cfg"), Path::new("/d"));
    disk.create_dir(Path::new("/c")).unwrap();
    disk.create_dir(data).unwrap();
    replace_file(disk, config_file, STATIC.as_bytes()).unwrap();
    ConfigFiles::new(disk.clone(), config_file.into(), config_file.into(), data.into())
}

// rows: D-08 D-09 D-10 D-11
#[test]
fn a_reconfiguration_leaves_the_files_of_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let text = |name: &str| fs::read_to_string(path(name)).unwrap();
    fs::write(path("zoo.cfg"), STATIC).unwrap();
    let files = ConfigFiles::new(RealDisk, path("zoo.cfg"), path("zoo.cfg"), path("data"));
    fs::create_dir(path("data")).unwrap();
    files.back_up().unwrap();
    assert_eq!(text("zoo.cfg.bak"), STATIC);
    files.propose(&[view(0x1f)], None).unwrap();
    let members = "server.1=a:1:2:participant;0.0.0.0:2181\nserver.2=b:1:2:participant";
    assert_eq!(text("zoo.cfg.dynamic.next"), format!("{members}\nversion=1f"));
    files.commit(&view(0x1f), true, true).unwrap();
    assert_eq!(text("zoo.cfg.dynamic.1f"), members);
    let here = dir.path().display();
    let head = "# ours\ndataDir=/d\n";
    let expected = format!("{head}dynamicConfigFile={here}/zoo.cfg.dynamic.1f\n");
    assert_eq!(text("zoo.cfg"), expected);
    assert!(!path("zoo.cfg.dynamic.next").exists());
    files.propose(&[view(0x21)], None).unwrap();
    files.commit(&view(0x20), true, false).unwrap();
    let expected = format!("{head}dynamicConfigFile={here}/zoo.cfg.dynamic.20\n");
    assert_eq!(text("zoo.cfg"), expected);
    assert!(path("zoo.cfg.dynamic.next").exists() && path("zoo.cfg.dynamic.1f").exists());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 6, "nothing temporary stays");
}

/// The dynamic file that `/c/zoo.cfg` names, which is whole.
fn dynamic_file(disk: &SimDisk) -> String {
    let text = read_file(disk, Path::new("/c/zoo.cfg")).unwrap();
    let entries = parse_properties(&text).unwrap();
    assert_eq!(entries["dataDir"].value, "/d");
    entries["dynamicConfigFile"].value.clone()
}

/// The copy in `/d`.
fn last_in_force(disk: &SimDisk) -> Option<LastInForce> {
    LastInForce::read(disk, Path::new("/d")).unwrap()
}

// A server that lags hears of a later configuration before it has promised the epoch of that. At a start with the operator's lines that one does not
// count, and the one before it does.
// rows: D-09
#[test]
fn copy_of_a_configuration_that_was_only_heard_of_has_the_last_one_of_a_promised_epoch() {
    let disk = SimDisk::new();
    let files = files_on(&disk);
    let version = |epoch: u32| Zxid::new(Epoch(epoch), 1).to_wire();
    let mut named = None;
    // The promise, the epoch of what comes in force, and those of the copy and of the last one of a promised epoch.
    for (accepted, epoch, promised) in [
        (1, 1, None),
        (1, 3, Some(1)),
        (1, 4, Some(1)),
        (4, 6, Some(4)),
        (6, 7, Some(6)),
        (7, 8, Some(7)),
        (9, 9, None),
    ] {
        epoch::save(&disk, Path::new("/d"), EpochFile::Accepted, Epoch(accepted)).unwrap();
        files.commit(&view(version(epoch)), true, true).unwrap();
        let promised = promised.map(|epoch| view(version(epoch)));
        let named = named.replace(view(version(epoch))).into_iter().collect();
        let expected =
            LastInForce { view: view(version(epoch)), promised, beside: BTreeSet::new(), named };
        assert_eq!(last_in_force(&disk), Some(expected));
    }
}

// An operator may write zoo.cfg anew, and then a member that was gone may come with an older configuration.
#[test]
fn data_directory_knows_the_last_configuration_that_was_in_force() {
    let disk = SimDisk::new();
    let files = files_on(&disk);
    assert_eq!(last_in_force(&disk), None);
    // What comes in force, whether it is the last one that is known here, what the data directory then has, what that counts beside, and the
    // others that zoo.cfg may name.
    for (version, is_last, known, beside, named) in [
        (0x11, true, 0x11, vec![], vec![]),
        (0x14, true, 0x14, vec![], vec![0x11]),
        (0x12, false, 0x14, vec![0x12], vec![0x12]),
        (0x13, false, 0x14, vec![0x12, 0x13], vec![0x12, 0x13]),
        (0x13, true, 0x13, vec![], vec![]),
        (0x15, false, 0x15, vec![], vec![0x13]),
    ] {
        files.commit(&view(version), true, is_last).unwrap();
        for seed in 0..8 {
            let beside = beside.iter().copied().collect();
            let named = named.iter().map(|&version| view(version)).collect();
            let expected = Some(LastInForce { view: view(known), promised: None, beside, named });
            assert_eq!(last_in_force(&disk.image().crash(seed)), expected, "{version:x}");
        }
    }
}

// The second one was only heard of when it came in force.
#[test]
fn copy_keeps_the_newest_configuration_of_a_promised_epoch_beside_one_that_was_only_heard_of() {
    let [first, second, third, fourth] = [1, 2, 3, 4].map(|epoch: i64| view(epoch << 32));
    let copy = LastInForce::after(None, &first, Epoch(1));
    let copy = LastInForce::after(Some(copy), &second, Epoch(1));
    assert_eq!(copy.promised.as_ref(), Some(&first));
    let copy = LastInForce {
        named: vec![second.clone()],
        ..LastInForce::after(Some(copy), &third, Epoch(1))
    };
    assert_eq!(copy.promised.as_ref(), Some(&first));
    for (accepted, promised) in
        [(1, Some(&first)), (2, Some(&second)), (3, Some(&third)), (4, None)]
    {
        let copy = LastInForce::after(Some(copy.clone()), &fourth, Epoch(accepted));
        assert_eq!(copy.promised.as_ref(), promised, "{accepted}");
    }
}

// Java and earlier versions leave no copy.
#[test]
fn start_copies_the_configuration_in_force_unless_it_has_been_copied() {
    let disk = SimDisk::new();
    let files = files_on(&disk);
    for (version, known, named) in [
        (0x13, 0x13, vec![]),
        (0x13, 0x13, vec![]),
        (0x12, 0x13, vec![view(0x12)]), // zoo.cfg names this one.
        (0x12, 0x13, vec![view(0x12)]),
        (0x14, 0x14, vec![]),
    ] {
        files.change(&ConfigChange::InForce { view: view(version) }).unwrap();
        let expected = LastInForce { named, ..LastInForce::after(None, &view(known), Epoch(0)) };
        assert_eq!(last_in_force(&disk), Some(expected), "{version:x}");
    }
}

// A member without this copy might lead by an older configuration beside the members of that one.
#[test]
fn damaged_copy_of_the_last_configuration_is_an_error() {
    let disk = SimDisk::new();
    let files = files_on(&disk);
    let copy = Path::new("/d/lastConfiguration");
    for text in ["server.1=", "", "#beside 1g\nserver.1=a:1:2\nversion=14"] {
        replace_file(&disk, copy, text.as_bytes()).unwrap();
        let (path, _) = LastInForce::read(&disk, Path::new("/d")).unwrap_err();
        assert_eq!(path, copy, "{text}");
        files.commit(&view(0x12), true, true).unwrap_err();
    }
}

// The copy is written first, so that there is no moment at which the older configuration alone counts.
#[test]
fn last_configuration_counts_beside_what_each_power_cut_leaves() {
    let disk = SimDisk::new();
    let files = files_on(&disk);
    files.commit(&view(0x14), true, true).unwrap();
    files.commit(&view(0x12), true, false).unwrap();
    disk.keep_images();
    files.commit(&view(0x13), true, false).unwrap();
    let mut versions = BTreeSet::new();
    for (image, seed) in disk.take_images().iter().flat_map(|image| (0..8).map(move |n| (image, n)))
    {
        let disk = image.crash(seed);
        let version = dynamic::version_in(&dynamic_file(&disk)).unwrap();
        let last = last_in_force(&disk).unwrap();
        assert!(last.view == view(0x14) && last.beside.contains(&version), "{version:x} {last:?}");
        versions.insert(version);
    }
    assert_eq!(versions, [0x12, 0x13].into());
}

#[test]
fn power_cut_leaves_the_files_of_one_configuration_or_the_other() {
    let disk = SimDisk::new();
    let files = files_on(&disk);
    files.commit(&view(1), true, true).unwrap();
    disk.keep_images();
    files.propose(&[view(2)], None).unwrap();
    files.commit(&view(2), true, true).unwrap();
    let images = disk.take_images();
    assert!(images.len() > 6);
    let mut versions = Vec::new();
    for (image, seed) in images.iter().flat_map(|image| (0..8).map(move |seed| (image, seed))) {
        let disk = image.crash(seed);
        let name = dynamic_file(&disk);
        let members = read_file(&disk, Path::new(&name)).unwrap();
        let version = dynamic::version_in(&name).unwrap();
        assert_eq!(String::from_utf8(members).unwrap(), dynamic::decided(&view(version)));
        versions.push(version);
    }
    assert!(versions.contains(&1) && versions.contains(&2));
}

// A configuration of `.dynamic.next` counts at the next start.
#[test]
fn discarded_configuration_does_not_come_back_after_a_power_cut() {
    let disk = SimDisk::new();
    let next = Path::new("/c/zoo.cfg.dynamic.next");
    let files = files_on(&disk);
    let removals: [fn(&ConfigFiles<SimDisk>); 2] = [
        |files| files.forget_proposed().unwrap(),
        |files| files.commit(&view(2), true, true).unwrap(),
    ];
    for remove in removals {
        files.propose(&[view(2)], None).unwrap();
        for seed in 0..8 {
            assert!(read_file(&disk.image().crash(seed), next).is_ok(), "the proposal is durable");
        }
        remove(&files);
        for seed in 0..8 {
            assert!(read_file(&disk.image().crash(seed), next).is_err(), "it is back");
        }
    }
}

// Packets that follow a change tell other servers that it is done, and the next start reads the files: so no change may fail and be
// passed over, the removal of `.dynamic.next` included.
#[test]
fn server_whose_configuration_files_cannot_be_changed_ends() {
    let committed =
        ConfigChange::Committed { view: view(2), has_client: true, removes_proposed: true };
    let changes = [
        (ConfigChange::CopyStaticFile, 2),
        (ConfigChange::TestFolder, 2),
        (ConfigChange::InForce { view: view(2) }, 1),
        (ConfigChange::Proposed { views: vec![view(2)], beside: None }, 1),
        (ConfigChange::Forgotten, 1),
        (committed, 1),
    ];
    for (change, code) in changes {
        let disk = SimDisk::new();
        let files = files_on(&disk);
        files.propose(&[view(1)], None).unwrap();
        disk.fail_change(0);
        let ended = change.failed(files.folder(), &files.change(&change).unwrap_err());
        assert!(matches!(&ended, Ended::Failed { exit, .. } if *exit == code), "{ended:?}");
    }
}

// A full disk takes an empty file. The server would be elected and then end, at each start again.
#[test]
fn bytes_are_written_at_a_start_to_find_a_full_disk() {
    let disk = SimDisk::new();
    let files = files_on(&disk);
    let before = disk.counts().bytes_written;
    files.try_out().unwrap();
    assert_eq!(disk.counts().bytes_written - before, 16 << 10);
    // What a crash has left takes no room, nor does the file that can't be written.
    let folder = Path::new("/c");
    let left = || disk.list(folder).unwrap().len();
    let of_others = left();
    replace_file(&disk, Path::new("/c/zoo.cfg.dynamic.try"), b"left").unwrap();
    disk.fail_change(3);
    assert!(files.try_out().is_err());
    assert_eq!(left(), of_others);
}

/// Which of `actions` are performed, if changes of the configuration files fail.
fn performed(actions: Vec<Action>, ended: &mut Option<Ended>) -> Vec<String> {
    let mut performed = Vec::new();
    turn::perform_in_order(actions, ended, |action| match action {
        Action::ChangeConfigFiles(change) => {
            Some(change.failed(Path::new("/c"), &io::Error::other("read-only")))
        }
        action => {
            performed.push(format!("{action:?}"));
            None
        }
    });
    performed
}

#[test]
fn nothing_is_performed_after_an_action_that_has_failed() {
    let send = || Action::SendToLeader { bytes: "ACK".into() };
    let (dial, forget) = (
        Action::DialLeader { dial: 1, addresses: Vec::new(), is_needed: false },
        Action::ChangeConfigFiles(ConfigChange::Forgotten),
    );
    let mut ended = Some(Ended::Stopped);
    let actions = vec![dial, forget, send(), Action::End(Ended::Stopped)];
    assert_eq!(
        performed(actions, &mut ended),
        [r#"DialLeader { dial: 1, addresses: [], is_needed: false }"#]
    );
    assert!(matches!(ended, Some(Ended::Failed { exit: 1, .. })), "{ended:?}");
    assert!(performed(vec![send()], &mut ended).is_empty(), "nor in a later turn");
    // A server that was asked to stop performs its other actions.
    let actions = vec![Action::End(Ended::Stopped), send()];
    assert_eq!(performed(actions, &mut None).len(), 1);
}
