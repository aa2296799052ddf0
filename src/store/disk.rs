//! The [`Disk`] trait: every access of this room to a file system, small enough to fake in tests.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{Access, Advice};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

/// The operations that this room needs from a file system.
///
/// # What is assumed of the medium
/// 1. `sync_data` that returned means: the file's bytes and its length survive a power cut.
/// 2. `sync_dir` that returned means: creations, renames and removals in that folder survive it.
/// 3. Any subset of the 512-byte sectors that were written and not synced may survive; a sector is never mixed.
/// 4. `rename` replaces its target at once: a reader sees the old file or the new one.
pub trait Disk: Send + Sync {
    type File: Send;

    /// Names in a folder, in no particular order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Creates a folder and its missing parents; a folder that exists is no error.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Fails if this process may not create files in the folder.
    fn may_write(&self, dir: &Path) -> io::Result<()>;
    /// Opens a file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Self::File>;
    /// Creates a file; fails if one of this name exists.
    fn create(&self, path: &Path) -> io::Result<Self::File>;
    /// Reads from offset `at`; returns the number of bytes, 0 only at the end of the file.
    fn read_at(&self, file: &Self::File, at: u64, into: &mut [u8]) -> io::Result<usize>;
    /// Writes all of `bytes` at offset `at`.
    fn write_at(&self, file: &Self::File, at: u64, bytes: &[u8]) -> io::Result<()>;
    /// Length in bytes.
    fn len(&self, file: &Self::File) -> io::Result<u64>;
    /// The first offset from `at` on that was ever written, where the file system knows; what lies before it reads as zeros.
    fn written_from(&self, _file: &Self::File, at: u64) -> io::Result<u64> {
        Ok(at)
    }
    /// Truncates a file, or extends it without writing: the extension reads as zeros.
    fn set_len(&self, file: &Self::File, len: u64) -> io::Result<()>;
    fn sync_data(&self, file: &Self::File) -> io::Result<()>;
    /// Has the operating system drop what it keeps in memory of a file without unsynced writes, where it can: reads then come from the medium.
    fn forget_cached(&self, file: &Self::File);
    /// Truncates a file whose last change failed to what is durable of it, where it can.
    fn give_up_after(&self, file: &Self::File, len: u64);
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes a file that recovery ignores, so that it does no harm if the removal fails.
    fn remove_leftover(&self, path: &Path) -> io::Result<()> {
        self.remove(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Whether two paths, such as one through a link, lead to one folder.
    fn is_same_folder(&self, one: &Path, other: &Path) -> bool {
        one == other
    }
    /// False if the machine runs since before the file was last changed: then no power cut can have kept changes from the disk.
    fn may_have_lost_writes(&self, path: &Path) -> io::Result<bool>;
}

/// The machine's own file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    type File = File;

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            // The store's file names are ASCII, so a name that is not UTF-8 is not one of them.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn may_write(&self, dir: &Path) -> io::Result<()> {
        Ok(rustix::fs::access(dir, Access::WRITE_OK | Access::EXEC_OK)?)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
        match OpenOptions::new().read(true).write(true).open(path) {
            // Tools read the files of a server without the permission to change them.
            Err(error) if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) => {
                File::open(path)
            }
            other => other,
        }
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(path)
    }

    fn read_at(&self, file: &File, at: u64, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match file.read_at(into, at) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn write_at(&self, file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
        file.write_all_at(bytes, at)
    }

    fn len(&self, file: &File) -> io::Result<u64> {
        Ok(file.metadata()?.len())
    }

    fn written_from(&self, file: &File, at: u64) -> io::Result<u64> {
        // Other calls name their offsets, so where this one leaves the file's own does not matter.
        match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(at)) {
            Err(rustix::io::Errno::NXIO) => self.len(file),
            // A file system that does not know.
            Err(rustix::io::Errno::INVAL) => Ok(at),
            found => Ok(found?),
        }
    }

    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        file.set_len(len)
    }

    fn sync_data(&self, file: &File) -> io::Result<()> {
        // fdatasync: also carries the length and the block map, without which the bytes could not be read back.
        Ok(rustix::fs::fdatasync(file)?)
    }

    fn forget_cached(&self, file: &File) {
        // Not all file systems can, and a start is right without it unless a flush failed before.
        let _refused = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
    }

    fn give_up_after(&self, file: &File, len: u64) {
        let _refused = file.set_len(len);
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        Ok(rustix::fs::fsync(File::open(dir)?)?)
    }

    fn is_same_folder(&self, one: &Path, other: &Path) -> bool {
        let place = |path| fs::metadata(path).map(|folder| (folder.dev(), folder.ino()));
        one == other || matches!((place(one), place(other)), (Ok(one), Ok(other)) if one == other)
    }

    fn may_have_lost_writes(&self, path: &Path) -> io::Result<bool> {
        let running = Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default();
        // A change in the future says that the clock has been set back, or not yet set.
        Ok(fs::metadata(path)?.modified()?.elapsed().map_or(true, |since| running < since))
    }
}

/// Whether a failed write says that there is no room.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether a failed read says that the medium is damaged. Other errors of the operating system come of this process, its limits or the network:
/// the next start may read the file.
pub fn is_of_medium(error: &io::Error) -> bool {
    let Some(code) = error.raw_os_error() else {
        return error.kind() != io::ErrorKind::PermissionDenied;
    };
    // EUCLEAN and EBADMSG: ext4, xfs and btrfs found a wrong checksum. EREMOTEIO and ENODATA come from drives.
    [Errno::IO, Errno::UCLEAN, Errno::BADMSG, Errno::REMOTEIO, Errno::NODATA, Errno::ILSEQ]
        .iter()
        .any(|errno| errno.raw_os_error() == code)
}

/// A disk that refuses every change after its first failed one.
///
/// A failed fsync may drop the dirty pages and report success when tried again, so the only honest
/// answer to an error is to stop and replay the log from what is really there. Clones share the latch: an error of
/// the log stops snapshots too, and the reverse.
#[derive(Clone, Debug, Default)]
pub struct FailStop<D> {
    disk: D,
    stopped: Arc<AtomicBool>,
}

#[derive(Debug, thiserror::Error)]
#[error("disk stopped by an earlier error")]
struct StoppedEarlier;

/// True for an error that only says that [`FailStop`] had stopped earlier; the first error was reported where it occurred.
pub fn is_echo(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        error.is::<StoppedEarlier>() || inner.is_some_and(|inner| inner.is::<StoppedEarlier>())
    })
}

impl<D: Disk> FailStop<D> {
    pub fn new(disk: D) -> Self {
        Self { disk, stopped: Arc::new(AtomicBool::new(false)) }
    }

    /// True once a change has failed.
    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn change<T>(&self, call: impl FnOnce(&D) -> io::Result<T>) -> io::Result<T> {
        if self.stopped() {
            return Err(io::Error::other(StoppedEarlier));
        }
        call(&self.disk).inspect_err(|error| {
            // A missing or an existing name is no sign of a failing medium.
            if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists) {
                self.stopped.store(true, Ordering::Release);
            }
        })
    }
}

impl<D: Disk> Disk for FailStop<D> {
    type File = D::File;

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.disk.list(dir)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.change(|disk| disk.create_dir(dir))
    }

    fn may_write(&self, dir: &Path) -> io::Result<()> {
        self.disk.may_write(dir)
    }

    fn open(&self, path: &Path) -> io::Result<D::File> {
        self.disk.open(path)
    }

    fn create(&self, path: &Path) -> io::Result<D::File> {
        self.change(|disk| disk.create(path))
    }

    fn read_at(&self, file: &D::File, at: u64, into: &mut [u8]) -> io::Result<usize> {
        self.disk.read_at(file, at, into)
    }

    fn write_at(&self, file: &D::File, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.change(|disk| disk.write_at(file, at, bytes))
    }

    fn len(&self, file: &D::File) -> io::Result<u64> {
        self.disk.len(file)
    }

    fn written_from(&self, file: &D::File, at: u64) -> io::Result<u64> {
        self.disk.written_from(file, at)
    }

    fn set_len(&self, file: &D::File, len: u64) -> io::Result<()> {
        self.change(|disk| disk.set_len(file, len))
    }

    fn sync_data(&self, file: &D::File) -> io::Result<()> {
        self.change(|disk| disk.sync_data(file))
    }

    fn forget_cached(&self, file: &D::File) {
        self.disk.forget_cached(file);
    }

    /// The change that stopped the disk is the one that failed.
    fn give_up_after(&self, file: &D::File, len: u64) {
        self.disk.give_up_after(file, len);
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(|disk| disk.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.change(|disk| disk.remove(path))
    }

    /// An error here doesn't stop the disk: no thread would report it, and the server would wait for a disk that refuses every change.
    fn remove_leftover(&self, path: &Path) -> io::Result<()> {
        if self.stopped() {
            return Err(io::Error::other(StoppedEarlier));
        }
        self.disk.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.change(|disk| disk.sync_dir(dir))
    }

    fn is_same_folder(&self, one: &Path, other: &Path) -> bool {
        self.disk.is_same_folder(one, other)
    }

    fn may_have_lost_writes(&self, path: &Path) -> io::Result<bool> {
        self.disk.may_have_lost_writes(path)
    }
}

/// Reads a file from front to back; decompression wraps it.
pub struct Reading<'d, D: Disk> {
    disk: &'d D,
    file: D::File,
    at: u64,
}

impl<'d, D: Disk> Reading<'d, D> {
    pub fn open(disk: &'d D, path: &Path) -> io::Result<Self> {
        Ok(Self { disk, file: disk.open(path)?, at: 0 })
    }

    /// Length of the whole file in bytes.
    pub fn len(&self) -> io::Result<u64> {
        self.disk.len(&self.file)
    }

    /// [`Disk::written_from`].
    pub fn written_from(&self, at: u64) -> io::Result<u64> {
        self.disk.written_from(&self.file, at)
    }

    /// True when the file is empty.
    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads from offset `at`, without moving the position of sequential reads.
    pub fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        self.disk.read_at(&self.file, at, into)
    }
}

impl<D: Disk> Read for Reading<'_, D> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.disk.read_at(&self.file, self.at, into)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Reads a small file.
///
/// # Errors
/// If the file is missing or can't be read.
pub fn read_file<D: Disk>(disk: &D, path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Reading::open(disk, path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The name under which [`replace_file`] writes first.
pub fn temporary(path: &Path) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(".tmp");
    name.into()
}

/// Replaces a small file atomically: a crash leaves the old content or the new, never a part. A temporary file that an earlier
/// crash left is replaced too.
///
/// Source: `AtomicFileWritingIdiom`, ZooKeeper 3.9, plus the folder's own sync, which Java leaves out.
pub fn replace_file<D: Disk>(disk: &D, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary(path);
    remove_if_there(disk, &temporary)?;
    let file = disk.create(&temporary)?;
    disk.write_at(&file, 0, bytes)?;
    disk.sync_data(&file)?;
    disk.rename(&temporary, path)?;
    disk.sync_dir(folder(path))
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    }
}

/// Removes a file durably; true when it existed.
pub fn remove_for_good<D: Disk>(disk: &D, path: &Path) -> io::Result<bool> {
    let was_there = remove_if_there(disk, path)?;
    if was_there {
        disk.sync_dir(folder(path))?;
    }
    Ok(was_there)
}

/// Removes a file, though not durably: a crash may bring it back. True when it existed.
pub fn remove_if_there<D: Disk>(disk: &D, path: &Path) -> io::Result<bool> {
    match disk.remove(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sim_disk::{Fault, SimDisk};

    #[test]
    fn errors_after_a_disk_stopped_are_echoes() {
        #[derive(Debug, thiserror::Error)]
        #[error("write")]
        struct Write(#[source] io::Error);
        let stopped = FailStop { disk: SimDisk::new(), stopped: Arc::new(true.into()) };
        let echo = stopped.create_dir(Path::new("/d")).unwrap_err();
        assert!(is_echo(&Write(echo)));
        assert!(!is_echo(&Write(io::Error::other("disk full"))));
    }

    #[test]
    fn failed_sync_refuses_every_later_change() {
        let sim = SimDisk::new();
        let disk = FailStop::new(sim.clone());
        let file = disk.create(Path::new("/a")).unwrap();
        sim.fail_next(Fault::Sync);
        disk.write_at(&file, 0, b"x").unwrap();
        assert!(disk.sync_data(&file).is_err());
        assert!(disk.stopped());
        // The disk itself would report success now, with the page lost.
        assert!(sim.sync_data(&file).is_ok());
        let twin = disk.clone();
        assert!(twin.write_at(&file, 0, b"y").is_err());
    }

    #[test]
    fn a_leftover_that_cannot_be_removed_does_not_stop_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let disk = FailStop::new(RealDisk);
        // A folder cannot be removed as a file.
        assert!(disk.remove_leftover(folder.path()).is_err());
        assert!(!disk.stopped());
        assert!(disk.remove(folder.path()).is_err());
        assert!(disk.stopped() && is_echo(&disk.remove_leftover(folder.path()).unwrap_err()));
    }

    #[test]
    fn a_missing_name_does_not_stop_the_disk() {
        let disk = FailStop::new(SimDisk::new());
        assert!(!remove_if_there(&disk, Path::new("/none")).unwrap());
        assert!(!disk.stopped());
    }

    #[test]
    fn real_disk_does_what_the_trait_says() {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk;
        let path = dir.path().join("a");
        replace_file(&disk, &path, b"one").unwrap();
        replace_file(&disk, &path, b"second").unwrap();
        assert_eq!(disk.list(dir.path()).unwrap(), ["a"]);
        assert_eq!(read_file(&disk, &path).unwrap(), b"second");
        assert_eq!(disk.create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let file = disk.open(&path).unwrap();
        disk.set_len(&file, 100).unwrap();
        assert_eq!(disk.len(&file).unwrap(), 100);
        let mut bytes = [1; 8];
        assert_eq!(disk.read_at(&file, 0, &mut bytes).unwrap(), 8);
        assert_eq!(&bytes, b"second\0\0");
        assert_eq!(disk.read_at(&file, 100, &mut bytes).unwrap(), 0);
        // Where nothing was written there may be zeros that are stored; what was written is never passed over.
        disk.set_len(&file, 1 << 21).unwrap();
        disk.write_at(&file, 1 << 20, b"x").unwrap();
        assert_eq!(disk.written_from(&file, 3).unwrap(), 3);
        assert!((1 << 19..=1 << 20).contains(&disk.written_from(&file, 1 << 19).unwrap()));
        assert!(disk.written_from(&file, (1 << 21) - 1).unwrap() <= 1 << 21);
        assert!(!disk.may_have_lost_writes(&path).unwrap(), "the machine was not restarted since");
    }
}
