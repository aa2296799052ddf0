//! Settings that decide how a start reads the files.

use super::boot::{loader, restore};
use crate::config::{Config, Environment, Source, parse};
use crate::member::configured::PartSettings;
use crate::member::sasl_exchange::NoSasl;
use crate::metrics::Registry;
use crate::model::{Epoch, OPEN_ACL, Zxid, op};
use crate::store::decide::Start;
use crate::store::{FailStop, Folders, RealDisk, record};
use crate::tree::Options;
use crate::tree::txn::{CreateKind, write};
use jute::Encode as _;
use std::path::Path;
use std::sync::Arc;

fn config(dir: &Path, settings: &str) -> Config {
    let dir = dir.display();
    let text = format!("clientPort=0\ndataDir={dir}\ninitLimit=5\nsyncLimit=5\n{settings}\n");
    let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: Some("1") };
    parse(source, &Environment::new(), &[]).unwrap()
}

fn parts(config: &Config) -> PartSettings {
    PartSettings::of(config, Arc::new(NoSasl), 0, 0)
}

/// A log whose first record is that of an epoch's first transaction, and no snapshot.
fn log_without_snapshots(folders: &Folders) -> Zxid {
    let zxid = Zxid::new(Epoch(3), 1);
    let mut entry = Vec::new();
    let (kind, raw) = (op::CREATE, zxid.to_wire());
    jute::txn::TxnHeader { client_id: 7, cxid: 1, zxid: raw, time: 0, kind }.encode(&mut entry);
    write::create(&mut entry, "/a", Some(b"x"), OPEN_ACL, CreateKind::Persistent, 1);
    let mut log = record::header().to_vec();
    record::put_record(&entry, &mut log);
    std::fs::create_dir_all(&folders.logs).unwrap();
    std::fs::write(folders.logs.join(format!("log.{raw:x}")), log).unwrap();
    zxid
}

// rows: C-148 D-61
#[test]
fn a_tree_is_loaded_again_from_a_log_without_snapshots_if_that_is_trusted() {
    for trusts in [true, false] {
        let home = tempfile::tempdir().unwrap();
        let config = config(home.path(), &format!("snapshot.trust.empty={trusts}"));
        let folders = Folders::new(&config.data_dir, &config.data_log_dir);
        let zxid = log_without_snapshots(&folders);
        let disk = FailStop::new(RealDisk);
        match loader(&disk, &folders, parts(&config).recovery, Options::default())() {
            Ok((tree, comparison)) => {
                assert!(trusts && tree.last_zxid() == zxid && comparison.mismatches == 0);
            }
            Err(why) => assert!(!trusts && why.contains("no snapshot found"), "{why}"),
        }
    }
}

// rows: C-151 D-60
#[test]
fn member_with_an_empty_directory_has_no_history_unless_autocreate_is_set() {
    let members = "server.1=127.0.0.1:1:2\nserver.2=127.0.0.1:3:4";
    for (begins, wanted) in [(true, Start::Empty), (false, Start::Unsure)] {
        let home = tempfile::tempdir().unwrap();
        let config = config(home.path(), &format!("db.autocreate={begins}\n{members}"));
        let folders = Folders::new(&config.data_dir, &config.data_log_dir);
        let (disk, metrics) = (FailStop::new(RealDisk), Registry::default());
        let found = restore(&disk, &folders, &config, &metrics, &parts(&config)).unwrap();
        assert_eq!(found.recovered.start, wanted);
        assert_eq!(found.history.last, begins.then_some(Zxid::ZERO));
    }
}
