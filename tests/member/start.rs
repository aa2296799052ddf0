//! What a member makes of the files of an earlier process.

use oxkeeper::config::{Environment, Source, parse};
use oxkeeper::member::Now;
use oxkeeper::member::configured::PartSettings;
use oxkeeper::member::opening::NoOpening;
use oxkeeper::member::start::{FirstSnapshot, RestoredHistory, assemble, saved_view_counts};
use oxkeeper::model::{Epoch, View, Zxid};
use oxkeeper::store::decide::Start;
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::{Disk as _, Folders};
use oxkeeper::tree::{Options, Tree};
use std::path::Path;
use std::sync::Arc;

// rows: D-09
#[test]
fn a_kept_configuration_counts_unless_the_log_proves_otherwise() {
    let zxid = |(epoch, counter)| Zxid::new(Epoch(epoch), counter);
    let counts = |version, current, last: Option<(u32, u32)>| {
        let view = View::parse(&format!("server.1=a:1:2\nversion={:x}", zxid(version).to_wire()));
        saved_view_counts(&view.unwrap(), Epoch(current), last.map(zxid))
    };
    assert!(counts((5, 3), 5, Some((5, 3))), "the log has it");
    assert!(counts((5, 3), 5, Some((5, 9))));
    assert!(!counts((5, 3), 5, Some((5, 2))), "a crash between the file and the log");
    assert!(counts((5, 3), 5, None), "all data is lost, and it may have been acknowledged");
    assert!(counts((5, 3), 2, Some((2, 7))), "an older directory was restored");
    assert!(counts((5, 3), 6, Some((5, 2))), "acknowledged with NEWLEADER of the next epoch");
    assert!(counts((5, 0), 5, Some((4, 7))), "the first configuration of an epoch is in no log");
}

// rows: D-69
#[test]
fn a_tree_that_does_not_fit_its_digests_counts_for_nothing() {
    let text = b"dataDir=/d\nclientPort=2181\ninitLimit=5\nsyncLimit=2\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n";
    let source = Source { name: "zoo.cfg", text, my_id: Some("1") };
    let config = parse(source, &Environment::new(), &[]).unwrap();
    let (disk, folders) = (SimDisk::new(), Folders::new(Path::new("/d"), Path::new("/d")));
    disk.create_dir(&folders.logs).unwrap();
    let now = Now { us: 0, wall_ms: 0 };
    for fits_digests in [true, false] {
        let parts = PartSettings::of(&config, Arc::new(NoOpening), 0, 0);
        let history = RestoredHistory { last: Some(Zxid::ZERO), fits_digests };
        let tree = Tree::new(Options::default());
        let started = assemble(&disk, &folders, &config, parts, tree, history, now).unwrap();
        assert_eq!(started.member.replica.peer().core.is_unsure, !fits_digests);
    }
}

// rows: D-33 D-60
#[test]
fn first_snapshot_is_taken_where_there_is_something_new_that_stays() {
    use FirstSnapshot::{BeforeServing, BesideServing, None as Nothing};
    let (zero, one, two) = (Zxid::ZERO, Zxid::from_wire(1).unwrap(), Zxid::from_wire(2).unwrap());
    for (start, snapshot, last, standalone, member) in [
        (Start::Empty, None, zero, BeforeServing, BeforeServing),
        (Start::Unsure, None, zero, Nothing, Nothing),
        (Start::ReplayOntoEmpty, None, two, BeforeServing, BeforeServing),
        (Start::Replay, Some(one), two, BesideServing, Nothing),
        (Start::Replay, Some(two), two, Nothing, Nothing),
    ] {
        let of = |is_member| FirstSnapshot::of(start, snapshot, last, is_member);
        assert_eq!((of(false), of(true)), (standalone, member), "{start:?} {snapshot:?} {last}");
    }
}
