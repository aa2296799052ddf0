//! A server's disk in memory: what survives a crash, and the writes that are requested and not done.

use super::epoch_files::{EpochFiles, StartEpochs};
use bytes::Bytes;
use oxkeeper::model::{Epoch, Epochs, View, Zxid};
use oxkeeper::zab::{Action, Input, Promise};
use std::collections::VecDeque;

pub type Entry = (Zxid, Bytes);

/// The log thread does one write after the other; trees are written at the same time.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    Append(Entry),
    /// The next entry starts a new log file.
    Roll,
    /// currentEpoch says from now on that a synchronisation is under way. It comes with the next write.
    Joining,
    Promise(Promise, Epoch),
    Truncate {
        to: Zxid,
        before_tree: bool,
    },
    /// A tree that came with SNAP, with its entries where a test looks at them.
    Install(Zxid, Vec<Entry>),
}

impl Write {
    /// The write that an action requests.
    pub fn of(action: &Action) -> Option<Self> {
        Some(match action {
            Action::Append { zxid, payload } => Self::Append((*zxid, payload.clone())),
            Action::Promise { promise, epoch } => Self::Promise(*promise, *epoch),
            Action::Truncate { to, before_tree } => {
                Self::Truncate { to: *to, before_tree: *before_tree }
            }
            Action::Install { zxid } => Self::Install(*zxid, Vec::new()),
            Action::NoteJoining => Self::Joining,
            _ => return None,
        })
    }

    /// The `zab` peer's input when the write is done.
    pub fn report(&self) -> Option<Input> {
        Some(match self {
            Self::Append((through, _)) => Input::Flushed { through: *through },
            Self::Roll | Self::Joining => return None,
            Self::Promise(promise, epoch) => Input::Promised { promise: *promise, epoch: *epoch },
            Self::Truncate { to, .. } => Input::Truncated { to: *to },
            Self::Install(zxid, _) => Input::Installed { zxid: *zxid },
        })
    }
}

#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// Records in the order in which they were appended, even if there are holes between them.
    pub log: Vec<Entry>,
    /// After how many records the log was told to roll.
    pub rolls: Vec<usize>,
    /// Whole trees that came from leaders, oldest first.
    trees: Vec<Vec<Entry>>,
    /// The history that a restart finds in both: the newest tree, then the log's records after it.
    whole: Vec<Entry>,
    pub accepted: Epoch,
    pub current: Epoch,
    /// The file acceptedEpoch is gone: the epoch counts as zero until the file is written again.
    pub lacks_accepted: bool,
    /// The file currentEpoch is gone: the epoch counts as zero until the file is written again.
    pub lacks_current: bool,
    /// currentEpoch says that a synchronisation has begun.
    pub joins: bool,
    /// The configuration of the next start, if it is not the first one.
    pub view: Option<View>,
    /// The configurations that were proposed last, committed or not, oldest first.
    pub next: Vec<View>,
    /// A planted fault: records are reported as written and are not.
    pub lies: bool,
    /// The history was lost, and no tree has come since.
    pub is_unsure: bool,
    /// Requested writes that are not done, in order. A crash loses them.
    pub asked: VecDeque<Write>,
}

/// The zxid of the last entry; zero if there is none.
pub fn last_of(entries: &[Entry]) -> Zxid {
    entries.last().map_or(Zxid::ZERO, |(zxid, _)| *zxid)
}

impl Disk {
    /// Requests the write of an action; `false`: the action has none.
    pub fn ask(&mut self, action: &Action) -> bool {
        let write = Write::of(action);
        self.asked.extend(write.clone());
        write.is_some()
    }

    /// Does the write that was requested first, and returns it.
    pub fn write(&mut self) -> Option<Write> {
        let mut write = self.asked.pop_front()?;
        while write == Write::Joining {
            self.perform(write);
            write = self.asked.pop_front()?;
        }
        self.perform(write.clone());
        Some(write)
    }

    /// Does the appends at the head of the queue together, as a log thread flushes them; returns the last of their zxids.
    pub fn flush(&mut self) -> Option<Zxid> {
        let mut through = None;
        while let Some(Write::Append(_) | Write::Roll) = self.asked.front() {
            if let Some(Write::Append((zxid, _))) = self.write() {
                through = Some(zxid);
            }
        }
        through
    }

    /// Takes the first write of the log thread, or the first tree, off the queue without doing it, and returns it.
    pub fn take(&mut self, is_tree: bool) -> Option<Write> {
        let is_next = |write: &Write| matches!(write, Write::Install(..)) == is_tree;
        let is_joining = |write: &Write| *write == Write::Joining;
        let mut next = self.asked.iter().position(is_next)?;
        while let Some(at) = self.asked.iter().take(next + 1).position(is_joining) {
            self.perform(Write::Joining);
            self.asked.remove(at);
            next = self.asked.iter().position(is_next)?;
        }
        self.asked.remove(next)
    }

    /// The writes of the log thread that are not done.
    pub fn asked_of_log(&self) -> impl Iterator<Item = &Write> {
        self.asked.iter().filter(|write| !matches!(write, Write::Install(..)))
    }

    /// Whether the log is to be truncated. Until that is done no tree is written.
    pub fn is_to_be_cut(&self) -> bool {
        self.asked.iter().any(|write| matches!(write, Write::Truncate { .. }))
    }

    /// Number of trees that are to be written.
    pub fn trees_asked(&self) -> usize {
        self.asked.len() - self.asked_of_log().count()
    }

    /// Number of transactions in the newest tree on the disk.
    pub fn newest_tree_len(&self) -> usize {
        self.trees.last().map_or(0, Vec::len)
    }

    /// The whole history on the disk: the newest tree, and the log after it.
    pub fn whole(&self) -> &[Entry] {
        &self.whole
    }

    /// Whether a truncation leaves the whole history through `to`: not if it would cut through a tree that came from a leader.
    pub fn can_cut(&self, to: Zxid) -> bool {
        let mut cut = self.clone();
        cut.perform(Write::Truncate { to, before_tree: false });
        let wanted = self.whole.iter().filter(|(zxid, _)| *zxid <= to);
        cut.whole.iter().eq(wanted)
    }

    pub fn perform(&mut self, write: Write) {
        match write {
            Write::Append(_) if self.lies => {}
            Write::Append(entry) => {
                if last_of(&self.whole) < entry.0 {
                    self.whole.push(entry.clone());
                }
                self.log.push(entry);
            }
            Write::Roll => self.rolls.push(self.log.len()),
            Write::Joining => self.joins = true,
            Write::Promise(Promise::Accepted, epoch) => {
                (self.accepted, self.lacks_accepted) = (epoch, false);
            }
            Write::Promise(Promise::Current, epoch) => {
                (self.current, self.lacks_current, self.joins) = (epoch, false, false);
            }
            Write::Truncate { to, .. } => {
                self.log.retain(|(zxid, _)| *zxid <= to);
                self.trees.retain(|tree| last_of(tree) <= to);
                self.restore();
            }
            Write::Install(_, tree) => {
                self.trees.retain(|older| last_of(older) <= last_of(&tree));
                self.trees.push(tree);
                self.is_unsure = false;
                self.restore();
            }
        }
    }

    /// Loses the log and all trees; the epochs and the configuration remain.
    pub fn lose(&mut self) {
        (self.log, self.trees, self.is_unsure) = (Vec::new(), Vec::new(), true);
        self.restore();
    }

    /// Loses the whole data directory; the configuration files remain.
    pub fn keep_configurations_only(&mut self) {
        let Self { view, next, .. } = std::mem::take(self);
        *self = Self { view, next, ..Self::default() };
    }

    /// Loses the records of the log.
    pub fn lose_log(&mut self) {
        self.log.clear();
        self.restore();
    }

    /// Loses one of the epoch files, or both.
    pub fn lose_epochs(&mut self, accepted: bool, current: bool) {
        if accepted {
            (self.accepted, self.lacks_accepted) = (Epoch(0), true);
        }
        if current {
            (self.current, self.lacks_current, self.joins) = (Epoch(0), true, false);
        }
    }

    /// What the next process starts with: its epochs, and the end of its history; `None`: its history does not count.
    pub fn start(&mut self) -> (Epochs, Option<Zxid>) {
        let files = EpochFiles {
            accepted: (!self.lacks_accepted).then_some(self.accepted),
            current: (!self.lacks_current).then_some(self.current),
            joins: self.joins,
        };
        let last = |disk: &Self| (!disk.is_unsure).then(|| last_of(&disk.whole));
        let StartEpochs { epochs, files, quarantines } = files.start(last(self));
        if quarantines {
            self.lose();
        }
        (self.accepted, self.lacks_accepted) = (epochs.accepted, files.accepted.is_none());
        (self.current, self.lacks_current) = (epochs.current, files.current.is_none());
        self.joins = files.joins;
        (epochs, last(self))
    }

    fn restore(&mut self) {
        self.whole = self.trees.last().cloned().unwrap_or_default();
        let last = last_of(&self.whole);
        self.whole.extend(self.log.iter().filter(|(zxid, _)| last < *zxid).cloned());
    }
}
