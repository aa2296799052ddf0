//! What a member does with the files of an earlier process.

use oxkeeper::config::{Config, Environment, Source, dynamic, parse};
use oxkeeper::member::config_files::ConfigFiles;
use oxkeeper::member::configured::PartSettings;
use oxkeeper::member::election_connections;
use oxkeeper::member::sasl_exchange::NoSasl;
use oxkeeper::member::start::{
    AssembleError, FirstSnapshot, RestoredHistory, Started, assemble, saved_view_counts,
    with_other_quorums,
};
use oxkeeper::member::{Action, ConfigChange, Input, Now};
use oxkeeper::model::{Epoch, View, Zxid, op};
use oxkeeper::request::Shared;
use oxkeeper::store::decide::Start;
use oxkeeper::store::disk::{remove_for_good, replace_file};
use oxkeeper::store::epoch::{self, EpochFile};
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::{Disk as _, Folders, Recovered, Trailers};
use oxkeeper::store::{differing, doubted};
use oxkeeper::tree::rebuild::Comparison;
use oxkeeper::tree::txn::Entry;
use oxkeeper::tree::{Options, Tree};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use support::trees::reloaded;
use support::txns::set_data;

// rows: D-09
#[test]
fn saved_configuration_counts_unless_the_log_proves_that_it_was_not_acknowledged() {
    let zxid = |(epoch, counter)| Zxid::new(Epoch(epoch), counter);
    let counts = |version, current, last: Option<(u32, u32)>| {
        let view = View::parse(&format!("server.1=a:1:2\nversion={:x}", zxid(version).to_wire()));
        saved_view_counts(&view.unwrap(), Epoch(current), last.map(zxid))
    };
    assert!(counts((5, 3), 5, Some((5, 3))), "the log has it");
    assert!(counts((5, 3), 5, Some((5, 9))));
    assert!(!counts((5, 3), 5, Some((5, 2))), "a crash between the file and the log");
    assert!(
        !counts((5, 3), 3, Some((5, 2))),
        "a synchronisation with a Java leader was interrupted"
    );
    assert!(counts((5, 3), 5, None), "all data is lost, and it may have been acknowledged");
    assert!(counts((5, 3), 2, Some((2, 7))), "an older directory was restored");
    assert!(counts((5, 3), 6, Some((5, 2))), "acknowledged with the next epoch's NEWLEADER");
    assert!(counts((5, 0), 5, Some((4, 7))), "the first configuration of an epoch is in no log");
}

const CONFIG: &str = "dataDir=/d\nclientPort=2181\ninitLimit=5\nsyncLimit=2\n";
const MEMBERS: &str = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n";
const START: Now = Now { us: 0, wall_ms: 0 };

fn config(text: &str) -> Config {
    let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: Some("1") };
    parse(source, &Environment::new(), &[]).unwrap()
}

/// Server 1 on an empty disk.
fn started(config: &Config, fits_digests: bool) -> Started<SimDisk> {
    started_with(config, Tree::new(Options::default()), fits_digests)
}

fn started_with(config: &Config, tree: Tree, fits_digests: bool) -> Started<SimDisk> {
    let disk = SimDisk::new();
    disk.create_dir(&folders().logs).unwrap();
    started_on(&disk, config, tree, fits_digests)
}

fn folders() -> Folders {
    Folders::new(Path::new("/d"), Path::new("/d"))
}

/// A disk with a zoo.cfg and the folder of the data.
fn configured_disk() -> SimDisk {
    let disk = SimDisk::new();
    disk.create_dir(Path::new("/c")).unwrap();
    disk.create_dir(&folders().logs).unwrap();
    replace_file(&disk, Path::new("/c/zoo.cfg"), CONFIG.as_bytes()).unwrap();
    disk
}

fn config_files(disk: &SimDisk) -> ConfigFiles<SimDisk> {
    let path = Path::new("/c/zoo.cfg");
    ConfigFiles::new(disk.clone(), path.into(), path.into(), folders().snapshots)
}

fn promise(disk: &SimDisk, epoch: u32) {
    epoch::save(disk, &folders().snapshots, EpochFile::Accepted, Epoch(epoch)).unwrap();
}

fn history(last: Zxid, fits_digests: bool) -> RestoredHistory {
    RestoredHistory { last: Some(last), fits_digests, differs_since: None }
}

fn started_on(disk: &SimDisk, config: &Config, tree: Tree, fits_digests: bool) -> Started<SimDisk> {
    started_at(disk, config, tree, history(Zxid::ZERO, fits_digests))
}

fn started_at(
    disk: &SimDisk,
    config: &Config,
    tree: Tree,
    history: RestoredHistory,
) -> Started<SimDisk> {
    let parts = PartSettings::of(config, Arc::new(NoSasl), 0, 0);
    assemble(disk, &folders(), config, parts, tree, history, START).unwrap()
}

// rows: D-69
#[test]
fn member_with_a_tree_that_does_not_fit_its_digests_is_unsure_of_its_history() {
    let config = config(&format!("{CONFIG}{MEMBERS}"));
    for fits_digests in [true, false] {
        let started = started(&config, fits_digests);
        assert_eq!(started.member.replica.peer().core.is_unsure, !fits_digests);
    }
}

// A snapshot was taken of it since, so its log has no digest any more that it does not fit.
// rows: D-69
#[test]
fn member_whose_tree_was_doubted_at_an_earlier_start_is_unsure_of_its_history() {
    let config = config(&format!("{CONFIG}{MEMBERS}"));
    let disk = SimDisk::new();
    disk.create_dir(&folders().logs).unwrap();
    for is_noted in [true, false] {
        if is_noted {
            doubted::note(&disk, &folders().snapshots).unwrap();
        } else {
            doubted::forget(&disk, &folders().snapshots).unwrap();
        }
        let started = started_on(&disk, &config, Tree::new(Options::default()), true);
        let replica = &started.member.replica;
        assert_eq!((replica.peer().core.is_unsure, replica.doubts_tree()), (is_noted, is_noted));
    }
}

// A Java leader's log may lack transactions: a follower with whole data differs from the leader's digests, which are in its log.
// rows: D-69
#[test]
fn tree_that_differed_from_its_leaders_before_the_start_is_not_doubted_for_that() {
    let zxid = |counter| Zxid::new(Epoch(2), counter);
    let config = config(&format!("{CONFIG}{MEMBERS}"));
    for (noted, differs_since, last, is_unsure) in [
        (None, None, 9, false),
        (None, Some(5), 9, true),
        (Some(5), None, 4, false), // No digest was compared after it.
        (Some(5), None, 9, false),
        (Some(5), Some(4), 9, true), // What differs before has another reason.
        (Some(5), Some(5), 9, false),
        (Some(5), Some(7), 9, false), // After a snapshot of zxid 6.
    ] {
        let disk = configured_disk();
        if let Some(noted) = noted {
            differing::note(&disk, &folders().snapshots, zxid(noted)).unwrap();
        }
        let differs_since = differs_since.map(zxid);
        let comparison = Comparison { mismatches: 1, differs_since, last: Some(zxid(last)) };
        let history = RestoredHistory::judge(&disk, &folders(), Some(zxid(9)), comparison);
        let stays = differs_since.is_some() || last < 5;
        let left = differing::since(&disk.image().crash(0), &folders().snapshots).unwrap();
        assert_eq!(left, noted.filter(|_| stays).map(zxid), "{noted:?} {differs_since:?}");
        let started = started_at(&disk, &config, Tree::new(Options::default()), history);
        let replica = &started.member.replica;
        let unsure = (replica.peer().core.is_unsure, replica.doubts_tree());
        assert_eq!(unsure, (is_unsure, is_unsure), "{noted:?} {differs_since:?}");
    }
}

// No other server could lead, or send a tree; but this one may become a member, or get other voters.
// rows: D-69
#[test]
fn server_without_other_voters_votes_with_a_tree_that_does_not_fit_and_notes_it() {
    let single = format!("{CONFIG}standaloneEnabled=false\nserver.1=a:1:2\n");
    for text in [CONFIG, &single] {
        let Started { member, .. } = started(&config(text), false);
        assert!(!member.replica.peer().core.is_unsure);
        assert!(member.replica.doubts_tree());
    }
}

// It is on disk before the server looks for a leader, as that of any other new directory: a leader may serve at once.
// rows: D-69 D-60
#[test]
fn first_snapshot_of_a_doubted_tree_is_not_written_before_the_doubt_is_noted() {
    let recovered = Recovered {
        start: Start::ReplayOntoEmpty,
        snapshot: None,
        trailers: Trailers::default(),
        txns: 1,
        log_bytes: 0,
        last: Some(Zxid::ZERO),
        skipped: Vec::new(),
        snapshot_took: Duration::ZERO,
        replay_took: Duration::ZERO,
        initialize: false,
    };
    for fits_digests in [true, false] {
        let (disk, folders) = (SimDisk::new(), folders());
        disk.create_dir(&folders.logs).unwrap();
        let config = config(&format!("{CONFIG}{MEMBERS}"));
        let started = started_on(&disk, &config, Tree::new(Options::default()), fits_digests);
        let mut noted = Vec::new();
        let write = |_: &Shared, _| {
            noted.push(doubted::is_noted(&disk, &folders.snapshots).unwrap());
            Ok::<_, AssembleError>(())
        };
        let Started { actions, .. } =
            started.take_first_snapshot(&disk, &folders, &recovered, START, write).unwrap();
        assert_eq!(noted, [!fits_digests], "once, before the server serves");
        assert!(!actions.iter().any(|action| matches!(action, Action::WriteSnapshot(_))));
    }
}

// While a configuration in `.dynamic.next` counts, its members' votes are needed.
// rows: D-09
#[test]
fn members_of_a_saved_configuration_are_dialed_after_a_restart() {
    let mut config = config(&format!("{CONFIG}reconfigEnabled=true\n{MEMBERS}"));
    let proposed = "server.1=a:1:2\nserver.4=d:1:2\nserver.5=e:1:2\nversion=500000003";
    config.ensemble.as_mut().unwrap().last_seen = vec![View::parse(proposed).unwrap()];
    let Started { mut member, mut actions, .. } = started(&config, true);
    member.step(Now { us: 10_000, wall_ms: 10 }, Input::Timer, &mut actions);
    let hosts = actions.into_iter().filter_map(|action| match action {
        Action::Election(election_connections::Action::Dial { to, mut addresses, .. }) => {
            Some((to.0, addresses.remove(0).0))
        }
        _ => None,
    });
    let dialed: BTreeMap<i64, String> = hosts.collect();
    let shown: Vec<String> = dialed.iter().map(|(to, host)| format!("{to} {host}")).collect();
    assert_eq!(shown, ["2 b", "3 c", "4 d", "5 e"]);
}

// The configuration in force is version 0: its operator has written it after those of the history. What this server has acknowledged since is
// in `.dynamic.next`. If one of the history counted beside that, it would be put in force, as the one that the saved one followed, and the
// members in it might serve beside those in the operator's. rows: D-09
#[test]
fn configuration_of_the_tree_counts_beside_the_operators_only_if_it_is_saved() {
    let view = |version: i64| {
        View::parse(&format!("server.1=a:1:2\nserver.4=d:1:2\nversion={version:x}")).unwrap()
    };
    let (of_tree, kept) = (view(0x5_0000_0001), view(0x5_0000_0003));
    for (saved, expected) in [
        (vec![kept.clone()], vec![0, kept.version]),
        (vec![of_tree.clone(), kept.clone()], vec![0, of_tree.version, kept.version]),
        (vec![], vec![0]),
    ] {
        let mut config = config(&format!("{CONFIG}reconfigEnabled=true\n{MEMBERS}"));
        config.ensemble.as_mut().unwrap().last_seen = saved;
        let mut tree = Tree::new(Options::default());
        tree.set_config(of_tree.to_string().as_bytes(), of_tree.version, 0);
        let disk = configured_disk();
        promise(&disk, 5);
        let started = started_on(&disk, &config, tree, true);
        let core = &started.member.replica.peer().core;
        let versions: Vec<i64> = core.all_views().map(|view| view.version).collect();
        assert_eq!(core.has_outranked_views(), !versions.contains(&of_tree.version));
        assert_eq!(versions, expected);
    }
}

/// Server 1 on a disk that has `lastConfiguration` with version 0x200000000, and a zoo.cfg with version `version`.
///
/// * `accepted`: its promise. `older`: version of a configuration that came in force after that one. `proposed`: the same of one in
///   `.dynamic.next` from before the operator wrote.
fn started_after(
    accepted: u32,
    older: Option<i64>,
    version: i64,
    proposed: Option<i64>,
) -> Started<SimDisk> {
    let disk = configured_disk();
    let files = config_files(&disk);
    let view = |version: i64| {
        let text = format!("{MEMBERS}server.7=g:1:2\nserver.8=h:1:2\nversion={version:x}");
        View::parse(&text).unwrap()
    };
    files.commit(&view(0x2_0000_0000), false, true).unwrap();
    if let Some(older) = older {
        let lines = View::parse(&format!("{MEMBERS}version={older:x}")).unwrap();
        files.commit(&lines, false, false).unwrap();
    }
    promise(&disk, accepted);
    let mut config = config(&format!("{CONFIG}reconfigEnabled=true\n{MEMBERS}"));
    let ensemble = config.ensemble.as_mut().unwrap();
    ensemble.view.version = version;
    let proposed = proposed.map(view).into_iter().collect();
    if version == 0 {
        ensemble.seen_before_lines = proposed
    } else {
        ensemble.last_seen = proposed
    }
    started_on(&disk, &config, Tree::new(Options::default()), true)
}

// An operator writes `server.N` lines anew at each start, so that the version of zoo.cfg is 0. Then an older configuration may come in force,
// of a member that was gone.
// rows: D-09
#[test]
fn configuration_that_was_in_force_is_known_to_a_start_with_other_files() {
    let (older, last, newer) = (0x1_0000_0000, 0x2_0000_0000, 0x3_0000_0000);
    for (accepted, came, version, counting, is_outranked) in [
        (2, None, 0, vec![0, last], true),
        (1, None, 0, vec![0], false), // It has heard of that version, and never followed its leader.
        (2, None, last, vec![0, last], true), // The operator has changed the lines in the dynamic file.
        (2, Some(older), older, vec![older, last], false),
        (2, None, older, vec![older], false), // The operator's files of an earlier time.
        (3, None, newer, vec![newer], false),
    ] {
        let started = started_after(accepted, came, version, None);
        let core = &started.member.replica.peer().core;
        assert_eq!(core.has_outranked_views(), is_outranked, "{accepted} {version:x}");
        let counts: Vec<i64> = core.all_views().map(|view| view.version).collect();
        assert_eq!(counts, counting, "{accepted} {version:x}");
        let other = with_other_quorums(core).map(|view| view.version);
        assert_eq!(other, is_outranked.then_some(last), "{accepted} {version:x}");
    }
}

// A crash came before zoo.cfg named the file of the newest configuration, or an operator has brought back an older `lastConfiguration`.
// rows: D-09
#[test]
fn lines_changed_in_a_dynamic_file_are_found_by_what_the_data_has() {
    let (first, second, third) = (0x1_0000_0000, 0x2_0000_0000, 0x3_0000_0000);
    let view = |version: i64| {
        let text = format!("{MEMBERS}server.7=g:1:2\nserver.8=h:1:2\nversion={version:x}");
        View::parse(&text).unwrap()
    };
    for (committed, logged, promised, edited, counting) in [
        (vec![second, third], None, [3, 3], second, vec![0, third]),
        // It has only heard of the third one, or has promised the epoch of the second one only after that.
        (vec![second, third], None, [2, 2], second, vec![0, second]),
        (vec![first, second, third], None, [1, 2], second, vec![0, second]),
        (vec![first, second, third], None, [1, 2], 0, vec![0, second]), // The lines are in zoo.cfg.
        // The second one has come in force after the third one, and zoo.cfg still names that.
        (vec![third, second], None, [3, 3], third, vec![0, second]),
        (vec![first], Some(second), [2, 2], second, vec![0, second]), // The copy is of an earlier time.
        (vec![first], None, [2, 2], second, vec![second]),
        (vec![], Some(second), [2, 2], second, vec![second]), // The operator has removed the copy.
    ] {
        let disk = configured_disk();
        let files = config_files(&disk);
        let [before, since] = promised;
        promise(&disk, before);
        committed.iter().for_each(|&version| files.commit(&view(version), false, true).unwrap());
        promise(&disk, since);
        let mut config = config(&format!("{CONFIG}reconfigEnabled=true\n{MEMBERS}"));
        config.ensemble.as_mut().unwrap().view.version = edited;
        // The second start comes before any other configuration is in force.
        for _ in 0..2 {
            let tree = Tree::new(Options::default());
            let tree = logged.into_iter().fold(tree, |mut tree, logged| {
                tree.set_config(view(logged).to_string().as_bytes(), logged, 0);
                tree
            });
            let started = started_on(&disk, &config, tree, true);
            let core = &started.member.replica.peer().core;
            let counts: Vec<i64> = core.all_views().map(|view| view.version).collect();
            assert_eq!(counts, counting, "{committed:x?} {logged:x?} {promised:?} {edited:x}");
            for action in started.actions {
                if let Action::ChangeConfigFiles(change) = action {
                    files.change(&change).unwrap();
                }
            }
        }
    }
}

// Java has reconfigured the ensemble since the copy was made. Beside lines of zoo.cfg the copy would need servers that have retired.
// rows: D-09
#[test]
fn copy_is_of_an_earlier_time_if_the_history_shows_that_a_newer_configuration_was_committed() {
    let (first, second) = (0x1_0000_0000, 0x2_0000_0000);
    let view = |version: i64| View::parse(&format!("{MEMBERS}server.7=g:1:2\nversion={version:x}"));
    // With nothing of a later epoch in the history, the second one may have come to nothing.
    for (last, counting) in [(2, vec![0, first, second]), (3, vec![0, second])] {
        let disk = configured_disk();
        promise(&disk, 3);
        let files = config_files(&disk);
        files.commit(&view(first).unwrap(), false, true).unwrap();
        let config = config(&format!("{CONFIG}reconfigEnabled=true\n{MEMBERS}"));
        let mut tree = Tree::new(Options::default());
        tree.set_config(view(second).unwrap().to_string().as_bytes(), second, 0);
        let history = history(Zxid::new(Epoch(last), 1), true);
        let started = started_at(&disk, &config, tree, history);
        let core = &started.member.replica.peer().core;
        let counts: Vec<i64> = core.all_views().map(|view| view.version).collect();
        assert_eq!(counts, counting, "{last:?}");
    }
}

// All members had lost their data and kept the files of a configuration of epoch 7, which leaders then wrote into their trees. Now zoo.cfg names a
// configuration of the ensemble's own epochs, or has lines of the operator.
// rows: D-09
#[test]
fn configuration_of_the_tree_of_an_epoch_that_was_not_promised_does_not_count() {
    for (accepted, version, counting) in [
        (3, 0x3_0000_0000, vec![0x3_0000_0000]),
        (3, 0, vec![0]),
        (7, 0x3_0000_0000, vec![0x3_0000_0000, 0x7_0000_0002]),
    ] {
        let disk = configured_disk();
        promise(&disk, accepted);
        let mut config = config(&format!("{CONFIG}reconfigEnabled=true\n{MEMBERS}"));
        config.ensemble.as_mut().unwrap().view.version = version;
        let mut tree = Tree::new(Options::default());
        let text = format!("{MEMBERS}server.7=g:1:2\nversion=700000002");
        tree.set_config(text.as_bytes(), 0x7_0000_0002, 0);
        let history = history(Zxid::new(Epoch(3), 1), true);
        let started = started_at(&disk, &config, tree, history);
        let core = &started.member.replica.peer().core;
        let counts: Vec<i64> = core.all_views().map(|view| view.version).collect();
        assert_eq!(counts, counting, "{accepted} {version:x}");
        assert!(!core.has_outranked_views(), "{accepted} {version:x}");
    }
}

// All data was lost, the configuration files were not, and another configuration has replaced that one since. Then the epochs reach that of the
// lost configuration, which an old snapshot still has.
// rows: D-09
#[test]
fn configuration_of_a_snapshot_of_an_earlier_epoch_does_not_count_if_the_log_goes_on_without_it() {
    let (own, lost) = (0x3_0000_0000, Zxid::new(Epoch(7), 2));
    let text = format!("{MEMBERS}server.7=g:1:2\nversion={:x}", lost.to_wire());
    for (snapshot, log, counting) in [
        ((1, 5), vec![(1, 6), (8, 1)], vec![own]),
        ((1, 5), vec![(3, 1)], vec![own]),
        ((1, 5), vec![(8, 1)], vec![own, lost.to_wire()]), // A leader may have named it.
        ((1, 5), vec![], vec![own, lost.to_wire()]),
        ((7, 2), vec![(7, 3)], vec![own, lost.to_wire()]),
    ] {
        let disk = configured_disk();
        promise(&disk, 9);
        let mut config = config(&format!("{CONFIG}reconfigEnabled=true\n{MEMBERS}"));
        config.ensemble.as_mut().unwrap().view.version = own;
        let mut tree = snapshot_with_config(snapshot, &text, lost);
        for (epoch, counter) in log {
            let entry = set_data(Zxid::new(Epoch(epoch), counter), op::SET_DATA, "/", b"");
            let entry = Entry::decode(&entry).unwrap();
            tree.apply(&entry.header, &entry.txn, &mut Vec::new());
        }
        let history = history(tree.last_zxid(), true);
        let started = started_at(&disk, &config, tree, history);
        let core = &started.member.replica.peer().core;
        let counts: Vec<i64> = core.all_views().map(|view| view.version).collect();
        assert_eq!(counts, counting, "{snapshot:?} {:?}", history.last);
    }
}

/// The tree of a snapshot that a server with this configuration has written.
fn snapshot_with_config((epoch, counter): (u32, u32), text: &str, version: Zxid) -> Tree {
    let mut tree = Tree::new(Options::default());
    tree.set_config(text.as_bytes(), version.to_wire(), 0);
    reloaded(&mut tree, Zxid::new(Epoch(epoch), counter))
}

// It was stopped after it had acknowledged the configuration that NEWLEADER had named, and before UPTODATE. No history has that.
// rows: D-09
#[test]
fn proposed_configuration_counts_beside_lines_that_were_written_later() {
    let (last, newer, unpromised) = (0x2_0000_0000, 0x3_0000_0000, 0x4_0000_0000);
    let older = 0x1_0000_0000;
    for (accepted, version, proposed, counting) in [
        (3, 0, newer, vec![0, last, newer]),
        (3, 0, older, vec![0, last]),
        (3, 0, unpromised, vec![0, last]),
        (3, last, newer, vec![0, last, newer]),
        (1, last, older, vec![0, older]), // It has only heard of the configuration in its dynamic file.
    ] {
        let started = started_after(accepted, None, version, Some(proposed));
        let core = &started.member.replica.peer().core;
        let counts: Vec<i64> = core.all_views().map(|view| view.version).collect();
        assert_eq!(counts, counting);
        // Beside lines that replace nothing that was in force it is a proposed configuration like others.
        let other = with_other_quorums(core).map(|view| view.version);
        assert_eq!(other, counting.last().copied().filter(|_| 2 <= accepted));
    }
}

// rows: D-05
#[test]
fn member_that_has_lost_both_epoch_files_does_not_start_if_it_had_a_configuration_in_force() {
    let disk = configured_disk();
    let files = config_files(&disk);
    files.keep_in_force(&View::parse(&format!("{MEMBERS}version=200000000")).unwrap()).unwrap();
    let config = config(&format!("{CONFIG}reconfigEnabled=true\n{MEMBERS}"));
    let start = |disk: &SimDisk| {
        let parts = PartSettings::of(&config, Arc::new(NoSasl), 0, 0);
        let history = history(Zxid::new(Epoch(3), 7), true);
        let tree = Tree::new(Options::default());
        assemble(disk, &folders(), &config, parts, tree, history, START).map(drop)
    };
    let error = start(&disk).unwrap_err().to_string();
    assert!(
        error.starts_with("acceptedEpoch and currentEpoch are missing in /d/version-2"),
        "{error}"
    );
    // A crash left the one file that a first start had begun to write.
    let temporary = folders().snapshots.join("acceptedEpoch.tmp");
    replace_file(&disk, &temporary, b"3").unwrap();
    assert!(start(&disk).is_ok());
    remove_for_good(&disk, &folders().snapshots.join("acceptedEpoch")).unwrap();
    remove_for_good(&disk, &folders().snapshots.join("currentEpoch")).unwrap();
    let last = folders().snapshots.join("lastConfiguration");
    assert!(start(&disk).is_err());
    remove_for_good(&disk, &last).unwrap();
    assert!(start(&disk).is_ok(), "an operator goes back to a backup with all members");
}

// rows: D-09 D-10
#[test]
fn member_that_may_be_reconfigured_tries_its_configuration_folder() {
    let changes = |text: &str, dynamic_file: Option<&str>| -> Vec<ConfigChange> {
        let mut config = config(&format!("{CONFIG}{text}{MEMBERS}"));
        let ensemble = config.ensemble.as_mut().unwrap();
        ensemble.dynamic_file = dynamic_file.map(Into::into);
        ensemble.view.version = dynamic_file.and_then(dynamic::version_in).unwrap_or(0);
        let actions = started(&config, true).actions.into_iter();
        actions
            .filter_map(|action| match action {
                Action::ChangeConfigFiles(change) => Some(change),
                _ => None,
            })
            .collect()
    };
    let dynamic = Some("/d/zoo.cfg.dynamic");
    assert!(matches!(
        changes("reconfigEnabled=true\n", None)[..],
        [ConfigChange::TestFolder, ConfigChange::CopyStaticFile]
    ));
    assert!(matches!(changes("reconfigEnabled=true\n", dynamic)[..], [ConfigChange::TestFolder]));
    assert!(changes("", dynamic).is_empty());
    // Such a start copies the configuration that a reconfiguration has put in force.
    let [ConfigChange::TestFolder, ConfigChange::InForce { view }] =
        &changes("reconfigEnabled=true\n", Some("/d/zoo.cfg.dynamic.5"))[..]
    else {
        panic!("no copy");
    };
    assert_eq!(view.version, 5);
}

// rows: D-33 D-60
#[test]
fn first_snapshot_is_taken_of_new_data_that_will_not_be_truncated() {
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
