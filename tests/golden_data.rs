//! What Java computed and stored, under `compat-tests/golden`: a data directory of a real server with the text dump
//! that server made of it, znode digests, and session passwords. `make-golden` there has Java write them again.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use oxkeeper::model::{Acl, SessionId, Zxid};
use oxkeeper::request::password;
use oxkeeper::server::Restorer;
use oxkeeper::store::recover::recover;
use oxkeeper::store::scan::scan;
use oxkeeper::store::{
    DigestTrailer, Folders, Packing, RealDisk, RecoverOptions, Recovered, Restore, SnapshotWriter,
    Trailers,
};
use oxkeeper::tree::digest::{self, DIGEST_VERSION, StatPart};
use oxkeeper::tree::txn::Entry;
use oxkeeper::tree::{Options, Tree};

/// The golden server had `extendedTypesEnabled` on.
const OPTIONS: Options =
    Options { seed: 0, digest: true, extended_types: true, emulate_353: false };

/// Asked for at run time: worktrees that share a target folder may share the built test as well.
fn golden() -> PathBuf {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(root).join("compat-tests/golden")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(golden().join(name)).expect("a golden file")
}

/// A copy, because recovery may repair what it finds.
fn copy_of_java_data(with: impl Fn(&str) -> bool) -> tempfile::TempDir {
    copy_of("java-data", with)
}

fn copy_of(folder: &str, with: impl Fn(&str) -> bool) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let to = copy.path().join("version-2");
    std::fs::create_dir(&to).unwrap();
    for entry in std::fs::read_dir(golden().join(folder).join("version-2")).unwrap() {
        let entry = entry.unwrap();
        if with(entry.file_name().to_str().unwrap()) {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
    copy
}

#[track_caller]
fn restore(dir: &Path, trust_empty: bool) -> (Tree, Recovered) {
    let options = RecoverOptions { trust_empty, ..RecoverOptions::default() };
    let folders = Folders::new(dir, dir);
    // One thread, then two.
    let mut found = [u64::MAX, 0].map(|alone_max| {
        let mut restorer = Restorer::with_alone_max(OPTIONS, alone_max);
        let recovered =
            recover(&RealDisk, &folders, options, &mut restorer, || Duration::ZERO).unwrap();
        let restored = restorer.finish();
        assert_eq!((restored.comparison.mismatches, restored.orphans), (0, 0));
        Some((restored.tree, recovered))
    });
    let (twin, _) = found[1].take().unwrap();
    let (tree, recovered) = found[0].take().unwrap();
    assert_eq!(dump(&tree), dump(&twin));
    (tree, recovered)
}

/// The text that `ServerGolden.dump` makes of a tree.
fn dump(tree: &Tree) -> String {
    let mut out = String::new();
    writeln!(out, "zxid {}", tree.last_zxid()).unwrap();
    writeln!(out, "digest {}", tree.digest()).unwrap();
    for (id, timeout_ms) in tree.sessions() {
        writeln!(out, "session {id:#x} {timeout_ms}").unwrap();
    }
    let mut nodes = BTreeMap::new();
    let mut open = vec![tree.find("").unwrap()];
    while let Some(id) = open.pop() {
        let (path, znode) = (tree.path(id), tree.znode(id));
        let children = znode.child_names().map(|name| tree.find(&format!("{path}/{name}")));
        open.extend(children.map(|child| child.expect("a child is a znode")));
        let data =
            znode.data().bytes().map_or("null".to_owned(), |data| format!("x:{}", hex(data)));
        let acls: Vec<String> = tree.acl(znode.acl()).iter().map(acl_text).collect();
        let counts = digest::counts(path.as_bytes());
        let digest = if counts { znode.fresh_digest(path) } else { 0 };
        let stat = stat_text(&znode.stat_part());
        nodes.insert(path, format!("{data} {stat} {} {digest}", acls.join(" ")));
    }
    for (path, rest) in nodes {
        writeln!(out, "node \"{path}\" {rest}").unwrap();
    }
    out
}

fn acl_text(acl: &Acl) -> String {
    format!("{}:{}:{}", acl.perms, acl.who.scheme, acl.who.id)
}

fn stat_text(s: &StatPart) -> String {
    format!(
        "{} {} {} {} {} {} {} {} {}",
        s.czxid,
        s.mzxid,
        s.ctime,
        s.mtime,
        s.version,
        s.cversion,
        s.aversion,
        s.ephemeral_owner,
        s.pzxid
    )
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn unhex(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

// rows: D-20 D-21 D-22 D-23 D-25 D-26 D-43
#[test]
fn a_java_data_directory_restores_to_what_java_served() {
    let copy = copy_of_java_data(|_| true);
    let (tree, recovered) = restore(copy.path(), false);
    assert_eq!(recovered.snapshot.map(|snapshot| snapshot.0), Zxid::from_wire(0xc));
    assert_eq!(recovered.txns, 0x23 - 0xc);
    assert!(recovered.trailers.digest.is_some() && recovered.skipped.is_empty());
    assert_eq!(dump(&tree), text("java-data.txt"));
}

/// The same state in the snapshots that Java compresses.
// rows: D-03 D-29
#[test]
fn compressed_java_snapshots_restore_to_the_same_state() {
    for packing in ["gz", "snappy"] {
        let copy = copy_of(&format!("java-packed/{packing}"), |_| true);
        let (tree, recovered) = restore(copy.path(), false);
        assert_eq!(recovered.snapshot.map(|snapshot| snapshot.0), Zxid::from_wire(0x23));
        assert!(recovered.trailers.digest.is_some() && recovered.trailers.zxid == Some(0x23));
        assert_eq!(dump(&tree), text("java-data.txt"));
    }
}

/// A snapshot whose table of access lists is older than its znodes: Java writes such while it applies transactions.
// rows: D-22 D-62 D-66
#[test]
fn access_lists_that_a_fuzzy_snapshot_lacks_come_from_the_log() {
    let (tree, recovered) = restore(copy_of("java-fuzzy", |_| true).path(), false);
    assert_eq!(recovered.txns, 0x23 - 0xc);
    assert_eq!(tree.znodes_without_acl(9), (vec![], 0));
    assert_eq!(dump(&tree), text("java-data.txt"));

    // Without the log the lists are not known, so no client is permitted anything.
    let dir = copy_of("java-fuzzy", |name| name.starts_with("snapshot"));
    let (mut restorer, folders) = (Restorer::new(OPTIONS), Folders::new(dir.path(), dir.path()));
    recover(&RealDisk, &folders, RecoverOptions::default(), &mut restorer, || Duration::ZERO)
        .unwrap();
    let tree = restorer.finish().tree;
    let (mut paths, count) = tree.znodes_without_acl(9);
    paths.sort();
    assert_eq!((paths, count), (vec!["/two".to_owned()], 1));
    let acl = tree.acl(tree.znode(tree.find("/two").unwrap()).acl());
    assert_eq!(acl_text(&acl[0]), "0:lost:access list 4 of a snapshot");
}

/// Every txn that Java logged, from an empty tree on, with the digest Java had after each of them.
// rows: D-42 D-43 D-68
#[test]
fn a_java_log_alone_restores_to_the_same_state() {
    let copy = copy_of_java_data(|name| name.starts_with("log."));
    let (tree, recovered) = restore(copy.path(), true);
    assert_eq!((recovered.snapshot, recovered.txns), (None, 0x23));
    assert_eq!(dump(&tree), text("java-data.txt"));
    let (mut digests, mut kinds) = (0, BTreeSet::new());
    for (_, entry) in java_entries() {
        let entry = Entry::decode(&entry).unwrap();
        digests += u32::from(entry.digest.is_some());
        kinds.insert(entry.header.kind);
    }
    assert!(30 <= digests, "{digests} txns with a digest were compared");
    // error, closeSession, createSession, create, delete, setData, setACL, multi, create2, createContainer,
    // deleteContainer, createTTL
    assert!(kinds.is_superset(&[-11, -10, -1, 1, 2, 5, 7, 14, 15, 19, 20, 21].into()), "{kinds:?}");
}

/// Writes a snapshot of `tree` under the name of another zxid.
fn put_snapshot(dir: &Path, tree: &mut Tree, name: i64) {
    let frozen = tree.freeze().unwrap();
    let mut body = Vec::new();
    while !tree.freeze_piece(frozen, &mut body) {}
    tree.thaw(frozen);
    let folder = dir.join("version-2");
    let name = Zxid::from_wire(name).unwrap();
    let mut writer = SnapshotWriter::create(&RealDisk, &folder, name, Packing::Plain).unwrap();
    writer.body(&body).unwrap();
    let zxid = frozen.zxid.to_wire();
    let digest = frozen.digest.map(|digest| digest as i64);
    let digest = digest.map(|digest| DigestTrailer { zxid, version: DIGEST_VERSION, digest });
    writer.finish(Trailers { digest, zxid: Some(zxid) }).unwrap();
}

fn java_entries() -> Vec<(i64, Vec<u8>)> {
    let mut entries = Vec::new();
    scan(&RealDisk, &golden().join("java-data/version-2"), None, |zxid, entry, _| {
        entries.push((zxid, entry.to_vec()));
        Ok::<_, Infallible>(ControlFlow::Continue(()))
    })
    .unwrap();
    entries
}

/// Java's state, loaded, written as a snapshot of our own and loaded again, is the same state.
// rows: D-20 D-21 D-22 D-23
#[test]
fn our_snapshot_of_javas_state_restores_to_that_state() {
    let (mut tree, _) = restore(copy_of_java_data(|_| true).path(), false);
    let dir = copy_of_java_data(|_| false);
    put_snapshot(dir.path(), &mut tree, 0x23);
    let (again, recovered) = restore(dir.path(), false);
    assert_eq!(recovered.txns, 0);
    assert_eq!(dump(&again), text("java-data.txt"));
}

/// A snapshot that holds more than its name says, as Java's fuzzy snapshots do: replay meets znodes that already exist,
/// are already deleted or are newer, ends where Java ended, and compares no digest before the state is exact again.
// rows: D-62 D-63 D-64 D-69
#[test]
fn replay_over_a_fuzzy_snapshot_ends_in_the_same_state() {
    let entries = java_entries();
    for name in (1..=0x23).step_by(6) {
        for ahead in name..=0x23 {
            let mut restorer = Restorer::new(OPTIONS);
            restorer.reset();
            for (zxid, entry) in &entries[..ahead as usize] {
                restorer.replay(*zxid, entry).unwrap();
            }
            let mut tree = restorer.finish().tree;
            let dir = copy_of_java_data(|name| name.starts_with("log."));
            put_snapshot(dir.path(), &mut tree, name);
            let (tree, recovered) = restore(dir.path(), false);
            assert_eq!(recovered.txns as i64, 0x23 - name);
            assert_eq!(dump(&tree), text("java-data.txt"), "snapshot.{name:x} of {ahead:#x}");
        }
    }
}

// rows: D-69
#[test]
fn digest_mismatch_is_counted_and_changes_nothing() {
    let mut restorer = Restorer::new(OPTIONS);
    restorer.reset();
    for (zxid, mut entry) in java_entries() {
        if zxid == 5 {
            *entry.last_mut().unwrap() ^= 1; // The digest is the entry's end.
        }
        restorer.replay(zxid, &entry).unwrap();
    }
    let restored = restorer.finish();
    assert_eq!(restored.comparison.mismatches, 1);
    assert_eq!(dump(&restored.tree), text("java-data.txt"));
}

// rows: D-68
#[test]
fn znode_digests_equal_javas() {
    let (text, mut rows) = (text("digests.txt"), 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<i64>().unwrap();
        let path = words[0].trim_matches('"');
        let path = if path == "/" { "" } else { path };
        let data = words[1].strip_prefix("x:").map(unhex);
        let stat = StatPart {
            czxid: number(2),
            mzxid: number(3),
            ctime: number(4),
            mtime: number(5),
            version: number(6) as i32,
            cversion: number(7) as i32,
            aversion: number(8) as i32,
            ephemeral_owner: number(9),
            pzxid: number(10),
        };
        let counts = digest::counts(path.as_bytes());
        let start = digest::start(path.as_bytes(), data.as_deref());
        let ours = if counts { digest::node(start, &stat) } else { 0 };
        assert_eq!(ours as i64, number(11), "{line}");
        rows += 1;
    }
    assert_eq!(rows, 64);
}

// rows: P-16 G-09
#[test]
fn session_passwords_equal_javas() {
    let (text, mut rows) = (text("passwords.txt"), 0);
    for line in text.lines() {
        let (id, expected) = line.split_once(' ').unwrap();
        let id = u64::from_str_radix(id.trim_start_matches("0x"), 16).unwrap() as i64;
        assert_eq!(hex(&password(SessionId(id))), expected, "{line}");
        rows += 1;
    }
    assert_eq!(rows, 40);
}
