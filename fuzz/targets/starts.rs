//! A simulated disk with files of any content, and starts on that disk.

use oxkeeper::model::Zxid;
use oxkeeper::server::Restorer;
use oxkeeper::store::disk::Disk;
use oxkeeper::store::recover::recover;
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::{Folders, RecoverOptions};
use oxkeeper::tree::{Options, Tree};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

static FOLDERS: LazyLock<Folders> =
    LazyLock::new(|| Folders::new(Path::new("/d"), Path::new("/d")));

/// The folder of snapshots and logs.
pub static DIR: LazyLock<PathBuf> = LazyLock::new(|| FOLDERS.logs.clone());

pub fn put(disk: &SimDisk, path: &Path, bytes: &[u8]) {
    disk.create_dir(&DIR).expect("a folder");
    let file = disk.create(path).expect("a new file");
    disk.write_at(&file, 0, bytes).expect("room");
    disk.sync_data(&file).expect("no fault was asked for");
    disk.sync_dir(&DIR).expect("no fault was asked for");
}

/// The tree that a start finds, or why there is none.
pub fn tree(disk: &SimDisk) -> Result<Tree, String> {
    let mut restorer =
        Restorer::new(Options { seed: 1, extended_types: true, ..Options::default() });
    let options = RecoverOptions { trust_empty: true, ..RecoverOptions::default() };
    let done = recover(disk, &FOLDERS, options, &mut restorer, || Duration::ZERO);
    let reason = done.map_err(|error| error.to_string());
    reason.map(|_| restorer.finish().tree)
}

/// Three numbers of the tree that a start finds: digest, zxid, znodes.
pub fn restore(disk: &SimDisk) -> Result<(u64, Zxid, usize), String> {
    tree(disk).map(|tree| (tree.digest(), tree.last_zxid(), tree.node_count()))
}
