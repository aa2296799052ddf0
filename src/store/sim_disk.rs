//! A disk in memory that remembers what a power cut would leave.
//!
//! Bytes are tracked in pages of 4 KiB and survive in sectors of 512 bytes. A crash keeps
//! all that was synced; of the rest, the seed decides for each sector, file length and folder entry separately. A store
//! that recovers from this also recovers from a crash of a real file system.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::disk::Disk;
use super::sim_inode::{Inode, PAGE, place};
use crate::model::Rng;

const SECTOR: usize = 512;

/// An error to inject.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The next sync fails and loses some unsynced pages: a later sync succeeds, and reads show them as long as they are cached.
    Sync,
    /// The next write fails for want of space, having written nothing.
    NoSpace,
    /// The next write fails after this many bytes.
    ShortWrite(usize),
}

/// The calls of the disk so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    pub syncs: u64,
    pub writes: u64,
    pub bytes_written: u64,
    /// Every call that changes something, syncs and writes included.
    pub changes: u64,
}

/// See the module. Clones are handles to one disk.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

/// The disk as it stood after one change; turn it into the disk found after a power cut with [`Image::crash`].
#[derive(Clone, Debug)]
pub struct Image {
    state: State,
    /// The calls up to this image.
    pub counts: Counts,
}

/// A file of a [`SimDisk`].
#[derive(Clone, Copy, Debug)]
pub struct SimFile(u64);

#[derive(Clone, Debug, Default)]
struct State {
    /// Copy on write: an image of a large disk is cheap.
    inodes: BTreeMap<u64, Arc<Inode>>,
    live: BTreeMap<PathBuf, u64>,
    durable: BTreeMap<PathBuf, u64>,
    inode_next: u64,
    counts: Counts,
    faults: Vec<Fault>,
    /// Power fails when `counts.changes` reaches this.
    cut_at: Option<u64>,
    /// The one change that fails.
    fail_at: Option<u64>,
    /// How long each sync takes.
    sync_takes: Duration,
    /// Files that can't be read.
    spoiled: BTreeMap<u64, Option<i32>>,
    /// This folder is missing, as if its disk were not mounted; creating it creates another folder.
    absent: Option<PathBuf>,
    /// No power cut came since any file was changed.
    has_kept_power: bool,
    keep_images: bool,
    images: Vec<Image>,
}

impl SimDisk {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn counts(&self) -> Counts {
        self.state().counts
    }

    /// Makes the next call of the kind in `fault` fail.
    pub fn fail_next(&self, fault: Fault) {
        self.state().faults.push(fault);
    }

    /// Makes every change from the `n`th on fail: the power is gone.
    pub fn cut_power_at(&self, n: u64) {
        self.state().cut_at = Some(n);
    }

    /// Lets changes work again, with nothing lost: as after the end of a process alone.
    pub fn restore_power(&self) {
        let mut state = self.state();
        (state.cut_at, state.fail_at) = (None, None);
    }

    /// Makes one change fail, the one after `n` others: nothing of it happens, and those after it work. A sync that fails loses some of
    /// what it should have made durable, although reads show it as long as it is cached.
    pub fn fail_change(&self, n: u64) {
        let mut state = self.state();
        state.fail_at = Some(state.counts.changes + n);
    }

    /// Whether the failure set by `fail_change` is still to come.
    pub fn is_to_fail(&self) -> bool {
        self.state().fail_at.is_some()
    }

    /// From now on, a file's sync takes this long; its data is durable after that and not before.
    pub fn slow_down(&self, sync_takes: Duration) {
        self.state().sync_takes = sync_takes;
    }

    /// Makes an empty folder disappear, as if its disk were not mounted.
    pub fn unmount(&self, dir: &Path) {
        self.state().absent = Some(dir.to_owned());
    }

    /// From now on, the disk says that no power cut came since its files were changed.
    pub fn keep_power(&self) {
        self.state().has_kept_power = true;
    }

    /// Makes a file unreadable, as a bad sector does.
    pub fn spoil(&self, path: &Path) {
        let mut state = self.state();
        let inode = state.live.get(path).copied();
        state.spoiled.extend(inode.map(|inode| (inode, None)));
    }

    /// Makes reads of a file fail with an error number of the operating system, until `None` is given.
    pub fn refuse(&self, path: &Path, errno: Option<i32>) {
        let mut state = self.state();
        let Some(inode) = state.live.get(path).copied() else { return };
        match errno {
            Some(errno) => state.spoiled.insert(inode, Some(errno)),
            None => state.spoiled.remove(&inode),
        };
    }

    /// Flips a bit of one byte, as bit rot does; true if the file has such a byte.
    pub fn flip(&self, path: &Path, at: u64) -> bool {
        let mut state = self.state();
        let Some(inode) = state.live.get(path).copied() else { return false };
        let inode = state.inode(SimFile(inode));
        let (page, from) = place(at);
        let mut is_there = false;
        for pages in [&mut inode.live, &mut inode.durable] {
            if let Some(bytes) = pages.get_mut(&page) {
                Arc::make_mut(bytes)[from] ^= 0x10;
                is_there = true;
            }
        }
        is_there
    }

    /// Pages, lengths of files and names that a power cut may take back now.
    pub fn unsynced(&self) -> usize {
        let state = self.state();
        let of = |inode: &Arc<Inode>| {
            inode.dirty.len() + usize::from(inode.live_len != inode.durable_len)
        };
        let names =
            state.live.iter().filter(|&(name, inode)| state.durable.get(name) != Some(inode));
        state.inodes.values().map(of).sum::<usize>() + names.count()
    }

    /// From now on, remembers an image after every change.
    pub fn keep_images(&self) {
        self.state().keep_images = true;
    }

    /// Takes the images remembered since the last call.
    pub fn take_images(&self) -> Vec<Image> {
        std::mem::take(&mut self.state().images)
    }

    /// The disk as it stands.
    pub fn image(&self) -> Image {
        self.state().image()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the disk was held")
    }

    /// Runs one change, counted, and remembers the image after it.
    fn change<T>(&self, call: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        self.change_or(call, |_| ())
    }

    /// * `fail`: what happens in place of a change that is to fail.
    fn change_or<T>(
        &self,
        call: impl FnOnce(&mut State) -> io::Result<T>,
        fail: impl FnOnce(&mut State),
    ) -> io::Result<T> {
        let mut state = self.state();
        if state.cut_at.is_some_and(|at| at <= state.counts.changes) {
            return Err(io::Error::other("power is gone"));
        }
        state.counts.changes += 1;
        let result = if state.fail_at.is_some_and(|at| at < state.counts.changes) {
            state.fail_at = None;
            fail(&mut state);
            Err(io::ErrorKind::StorageFull.into())
        } else {
            call(&mut state)
        };
        if state.keep_images {
            let image = state.image();
            state.images.push(image);
        }
        result
    }
}

impl Image {
    /// The disk that is found after the power came back.
    ///
    /// * `seed`: picks which unsynced changes survive. 0: none; 1: all.
    pub fn crash(&self, seed: u64) -> SimDisk {
        let mut rng = Rng::seeded(seed);
        // Real disks lose by page more often than by sector; both are tried.
        let unit = if rng.one_in(2) { SECTOR } else { PAGE };
        let mut keep = move || match seed {
            0 => false,
            1 => true,
            _ => rng.one_in(2),
        };
        let mut state = State { inode_next: self.state.inode_next, ..State::default() };
        let names: BTreeSet<_> = self.state.live.keys().chain(self.state.durable.keys()).collect();
        for name in names {
            let (live, durable) = (self.state.live.get(name), self.state.durable.get(name));
            let inode = if live == durable || keep() { live } else { durable };
            if let Some(&inode) = inode {
                state.live.insert(name.clone(), inode);
                let found = self.state.inodes[&inode].crash(unit, &mut keep);
                state.inodes.entry(inode).or_insert_with(|| Arc::new(found));
            }
        }
        state.durable = state.live.clone();
        SimDisk { state: Arc::new(Mutex::new(state)) }
    }
}

impl State {
    fn image(&self) -> Image {
        let state = State {
            images: Vec::new(),
            faults: Vec::new(),
            fail_at: None,
            keep_images: false,
            ..self.clone()
        };
        Image { counts: self.counts, state }
    }

    fn inode(&mut self, file: SimFile) -> &mut Inode {
        let inode = self.inodes.get_mut(&file.0).expect("an open file has an inode");
        Arc::make_mut(inode)
    }

    fn take_fault(&mut self, wanted: impl Fn(Fault) -> bool) -> Option<Fault> {
        let at = self.faults.iter().position(|&fault| wanted(fault))?;
        Some(self.faults.remove(at))
    }
}

fn not_found(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no file {}", path.display()))
}

impl Disk for SimDisk {
    type File = SimFile;

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        if state.absent.as_ref().is_some_and(|absent| dir.starts_with(absent)) {
            return Err(not_found(dir));
        }
        let inside = state.live.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        // Other folders exist as soon as they are named.
        self.state().absent.take_if(|absent| dir.starts_with(absent));
        Ok(())
    }

    fn may_write(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn open(&self, path: &Path) -> io::Result<SimFile> {
        self.state().live.get(path).map(|&inode| SimFile(inode)).ok_or_else(|| not_found(path))
    }

    fn create(&self, path: &Path) -> io::Result<SimFile> {
        self.change(|state| {
            if state.live.contains_key(path) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            state.inode_next += 1;
            let inode = state.inode_next;
            state.inodes.insert(inode, Arc::default());
            state.live.insert(path.to_owned(), inode);
            Ok(SimFile(inode))
        })
    }

    fn read_at(&self, file: &SimFile, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let state = self.state();
        if let Some(errno) = state.spoiled.get(&file.0) {
            let on_medium = || io::Error::other("input/output error");
            return Err(errno.map_or_else(on_medium, io::Error::from_raw_os_error));
        }
        let inode = &state.inodes[&file.0];
        let len = inode.live_len.saturating_sub(at).min(into.len() as u64) as usize;
        let mut done = 0;
        while done < len {
            let (page, from) = place(at + done as u64);
            let part = (PAGE - from).min(len - done);
            match inode.live.get(&page) {
                Some(bytes) => into[done..done + part].copy_from_slice(&bytes[from..from + part]),
                None => into[done..done + part].fill(0),
            }
            done += part;
        }
        Ok(len)
    }

    fn write_at(&self, file: &SimFile, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.change(|state| {
            state.counts.writes += 1;
            state.counts.bytes_written += bytes.len() as u64;
            match state.take_fault(|fault| fault != Fault::Sync) {
                Some(Fault::ShortWrite(len)) => {
                    state.inode(*file).write(at, &bytes[..len.min(bytes.len())]);
                    Err(io::ErrorKind::WriteZero.into())
                }
                Some(_) => Err(io::ErrorKind::StorageFull.into()),
                None => {
                    state.inode(*file).write(at, bytes);
                    Ok(())
                }
            }
        })
    }

    fn len(&self, file: &SimFile) -> io::Result<u64> {
        Ok(self.state().inodes[&file.0].live_len)
    }

    fn set_len(&self, file: &SimFile, len: u64) -> io::Result<()> {
        self.change(|state| {
            state.inode(*file).set_len(len);
            Ok(())
        })
    }

    fn sync_data(&self, file: &SimFile) -> io::Result<()> {
        let takes = self.state().sync_takes;
        if !takes.is_zero() {
            std::thread::sleep(takes);
        }
        let lose = |state: &mut State| state.inode(*file).sync_in_part();
        let sync = |state: &mut State| {
            state.counts.syncs += 1;
            if state.take_fault(|fault| fault == Fault::Sync).is_some() {
                lose(state);
                return Err(io::Error::other("input/output error"));
            }
            state.inode(*file).sync();
            Ok(())
        };
        self.change_or(sync, lose)
    }

    fn forget_cached(&self, file: &SimFile) {
        self.state().inode(*file).forget_clean();
    }

    fn give_up_after(&self, file: &SimFile, len: u64) {
        let _refused = self.set_len(file, len);
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(|state| {
            let inode = state.live.remove(from).ok_or_else(|| not_found(from))?;
            state.live.insert(to.to_owned(), inode);
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.change(|state| state.live.remove(path).map(drop).ok_or_else(|| not_found(path)))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.change(|state| {
            state.counts.syncs += 1;
            let here = |path: &Path| path.parent() == Some(dir);
            state.durable.retain(|path, _| !here(path));
            let entries = state.live.iter().filter(|(path, _)| here(path));
            let entries: Vec<_> = entries.map(|(path, &inode)| (path.clone(), inode)).collect();
            state.durable.extend(entries);
            Ok(())
        })
    }

    fn may_have_lost_writes(&self, _path: &Path) -> io::Result<bool> {
        Ok(!self.state().has_kept_power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(disk: &SimDisk, path: &str) -> Option<Vec<u8>> {
        let file = disk.open(Path::new(path)).ok()?;
        let mut bytes = vec![0; disk.len(&file).unwrap() as usize];
        disk.read_at(&file, 0, &mut bytes).unwrap();
        Some(bytes)
    }

    #[test]
    fn crash_keeps_synced_bytes_and_a_seeded_part_of_the_rest() {
        let disk = SimDisk::new();
        let file = disk.create(Path::new("/d/a")).unwrap();
        disk.write_at(&file, 0, &[1; 6000]).unwrap();
        disk.sync_data(&file).unwrap();
        assert_eq!(content(&disk.image().crash(0), "/d/a"), None); // Its folder was not synced.
        disk.sync_dir(Path::new("/d")).unwrap();
        disk.write_at(&file, 5000, &[2; 9000]).unwrap();
        assert_eq!(content(&disk.image().crash(0), "/d/a"), Some(vec![1; 6000]));
        let all = content(&disk.image().crash(1), "/d/a").unwrap();
        assert_eq!((all.len(), all[4999], all[5000], all[13_999]), (14_000, 1, 2, 2));
        let mut seen = BTreeSet::new();
        for seed in 2..40 {
            let found = content(&disk.image().crash(seed), "/d/a").unwrap();
            assert_eq!(&found[..4608], &[1; 4608][..]); // The sector before the first one rewritten.
            seen.insert(found);
        }
        assert!(20 < seen.len());
    }

    #[test]
    fn failed_sync_loses_pages_for_good() {
        let disk = SimDisk::new();
        let file = disk.create(Path::new("/d/a")).unwrap();
        disk.sync_dir(Path::new("/d")).unwrap();
        disk.write_at(&file, 0, b"lost").unwrap();
        disk.fail_next(Fault::Sync);
        assert!(disk.sync_data(&file).is_err());
        assert!(disk.sync_data(&file).is_ok());
        assert_eq!(content(&disk, "/d/a").as_deref(), Some(&b"lost"[..]));
        assert_eq!(content(&disk.image().crash(1), "/d/a"), Some(vec![0; 4]));
        disk.forget_cached(&file);
        assert_eq!(content(&disk, "/d/a"), Some(vec![0; 4]));
    }

    #[test]
    fn cut_file_grows_back_as_zeros() {
        let disk = SimDisk::new();
        let file = disk.create(Path::new("/a")).unwrap();
        disk.write_at(&file, 0, &[7; 9000]).unwrap();
        disk.set_len(&file, 10).unwrap();
        disk.set_len(&file, 9000).unwrap();
        let now = content(&disk, "/a").unwrap();
        assert_eq!((&now[..10], now[10..].iter().max()), (&[7; 10][..], Some(&0)));
        assert_eq!(disk.create(Path::new("/a")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn injected_faults_and_power_cuts_fail_the_next_change() {
        let disk = SimDisk::new();
        let file = disk.create(Path::new("/a")).unwrap();
        disk.fail_next(Fault::ShortWrite(2));
        assert!(disk.write_at(&file, 0, b"abcd").is_err());
        assert_eq!(content(&disk, "/a").unwrap(), b"ab");
        disk.fail_next(Fault::NoSpace);
        assert_eq!(disk.write_at(&file, 0, b"z").unwrap_err().kind(), io::ErrorKind::StorageFull);
        disk.fail_change(1);
        disk.set_len(&file, 4).unwrap();
        assert!(disk.set_len(&file, 9).is_err() && !disk.is_to_fail());
        assert_eq!(disk.len(&file).unwrap(), 4);
        disk.set_len(&file, 2).unwrap();
        disk.cut_power_at(disk.counts().changes);
        assert!(disk.rename(Path::new("/a"), Path::new("/b")).is_err());
        assert_eq!(disk.counts().writes, 2);
        assert!(disk.flip(Path::new("/a"), 1) && !disk.flip(Path::new("/b"), 1));
        assert_eq!(content(&disk, "/a").unwrap(), [b'a', b'b' ^ 0x10]);
        assert!(disk.unsynced() > 0 && disk.image().crash(1).unsynced() == 0);
        disk.spoil(Path::new("/a"));
        assert!(disk.read_at(&file, 0, &mut [0; 2]).is_err());
    }
}
