//! Loads on one thread and on two.

use super::load_tree::{RestoreError, Restorer};
use crate::model::Zxid;
use crate::store::{Restore as _, Trailers};
use crate::tree::Options;

const OPTIONS: Options =
    Options { seed: 1, digest: true, extended_types: false, emulate_353: false };

/// A snapshot without sessions and ACLs, and with znodes at these paths.
fn stream(paths: &[&str]) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    for path in paths {
        jute::put_buffer(&mut bytes, path.as_bytes());
        bytes.extend([0; 4]); // Empty data.
        bytes.extend((-1i64).to_be_bytes());
        bytes.extend([0; 60]); // Stat.
    }
    jute::put_buffer(&mut bytes, b"/");
    bytes
}

/// Gives `bytes` in pieces, as they come from a file; returns the outcome of the whole snapshot.
fn give(restorer: &mut Restorer, bytes: &[u8]) -> Result<(), RestoreError> {
    let (mut at, mut have) = (0, 0);
    loop {
        have = (have + 40).min(bytes.len());
        let progress = restorer.snapshot_bytes(&bytes[at..have])?;
        at += progress.consumed;
        if progress.finished {
            return restorer.snapshot_done(Zxid::ZERO, Trailers::default());
        }
    }
}

#[test]
fn restore_on_two_threads_gives_the_tree_and_the_errors_of_one() {
    for alone_max in [0, u64::MAX] {
        let mut restorer = Restorer::with_alone_max(OPTIONS, alone_max);
        for (paths, wrong) in [
            (&["", "/a/b", "/a"][..], "znode \"/a/b\" comes before its parent"),
            (&["", "/a", "/b", "/a"], "znode \"/a\" comes twice"),
            (&["", "a"], "znode \"a\" comes before its parent"),
            (&["", "", "/a"], "znode \"\" comes twice"),
            (&[], "the snapshot holds no root"),
        ] {
            let error = give(&mut restorer, &stream(paths)).unwrap_err();
            assert_eq!(error.to_string(), wrong);
            restorer.reset();
        }
        let paths = ["", "/a", "/zookeeper", "/a/b", "/a/c", "/zookeeper/d", "/e", "/a/b/c"];
        give(&mut restorer, &stream(&paths)).unwrap();
        let error = restorer.replay(7, b"short").unwrap_err();
        assert_eq!(error.to_string(), "replay transaction 0x7");
        let restored = restorer.finish();
        let found = paths.iter().filter(|path| restored.tree.find(path).is_some()).count();
        assert_eq!((found, restored.tree.node_count()), (paths.len(), paths.len() + 1));
    }
}

/// One znode, /e, whose owner has no session.
fn with_orphan() -> Vec<u8> {
    let mut bytes = stream(&["", "/e"]);
    // The owner stands before the zxid of the last change of children, which ends the stat before the end mark.
    let owner_end = bytes.len() - 5 - 8;
    bytes[owner_end - 1] = 9;
    bytes
}

#[test]
fn ephemerals_without_a_session_go_at_the_start_of_a_standalone_server_only() {
    let is_kept = |mut restorer: Restorer| {
        // `reset` forgets what was read of a damaged snapshot, and nothing else.
        give(&mut restorer, &stream(&["", "/a", "/a"])).unwrap_err();
        restorer.reset();
        give(&mut restorer, &with_orphan()).unwrap();
        let restored = restorer.finish();
        let is_kept = restored.tree.find("/e").is_some();
        assert_eq!(restored.orphans, usize::from(!is_kept));
        is_kept
    };
    assert!(!is_kept(Restorer::new(OPTIONS)));
    assert!(is_kept(Restorer::new(OPTIONS).keep_orphans()));
}
