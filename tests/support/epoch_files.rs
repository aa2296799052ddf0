//! The two epoch files of a disk in memory, either of which may be gone, and the epochs that the store finds in them at a start.

use oxkeeper::model::{Epoch, Epochs, Zxid};
use oxkeeper::store::epoch::{self, EpochFile};
use oxkeeper::store::sim_disk::SimDisk;
use std::path::Path;

/// `None`: the file is not there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EpochFiles {
    pub accepted: Option<Epoch>,
    pub current: Option<Epoch>,
    /// currentEpoch says that a synchronisation has begun.
    pub joins: bool,
}

/// What a server starts with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StartEpochs {
    pub epochs: Epochs,
    /// The epoch files after the start.
    pub files: EpochFiles,
    /// The history is quarantined, because its epoch is not known.
    pub quarantines: bool,
}

impl EpochFiles {
    /// The epochs that the store finds at a start.
    ///
    /// * `last`: of the history; `None`: the history does not count.
    pub fn start(self, last: Option<Zxid>) -> StartEpochs {
        if let Self { accepted: Some(accepted), current: Some(current), .. } = self
            && last.is_none_or(|last| last.epoch() <= current)
        {
            let epochs = Epochs { accepted, current };
            return StartEpochs { epochs, files: self, quarantines: false };
        }
        let (disk, dir) = (SimDisk::new(), Path::new("/data/version-2"));
        let save = |which, epoch| {
            epoch::save(&disk, dir, which, epoch).expect("a disk in memory refuses nothing");
        };
        self.accepted.into_iter().for_each(|epoch| save(EpochFile::Accepted, epoch));
        self.current.into_iter().for_each(|epoch| save(EpochFile::Current, epoch));
        if self.joins {
            epoch::note_joining(&disk, dir).expect("a disk in memory refuses nothing");
        }
        let quarantines = last.is_some_and(|last| epoch::check_history(&disk, dir, last).is_err());
        let last = last.filter(|_| !quarantines);
        let epochs = epoch::promised(&disk, dir, last).expect("an operator has seen to it");
        let read = |which| epoch::read(&disk, dir, which).expect("the file was just written");
        let joins = epoch::is_joining(&disk, dir).expect("the file was just written");
        let (accepted, current) = (read(EpochFile::Accepted), read(EpochFile::Current));
        let files = Self { accepted, current, joins };
        StartEpochs { epochs, files, quarantines }
    }
}
