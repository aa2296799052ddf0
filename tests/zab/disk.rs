//! A server's disk, and what is on its way there.

use bytes::Bytes;
use oxkeeper::model::{Epoch, View, Zxid};
use oxkeeper::zab::Promise;
use std::collections::VecDeque;

pub type Entry = (Zxid, Bytes);

/// What survives a crash.
#[derive(Clone, Default)]
pub struct Disk {
    /// Records in the order they were appended, with holes if there are any.
    log: Vec<Entry>,
    /// Whole trees that came from leaders, oldest first.
    trees: Vec<Vec<Entry>>,
    /// What a restart makes of both: the newest tree, then what the log has behind it.
    whole: Vec<Entry>,
    pub accepted: Epoch,
    pub current: Epoch,
    /// The configuration of the next start, if it is not the first one.
    pub view: Option<View>,
    /// What was proposed, decided or not.
    pub next: Option<View>,
    /// A planted fault: records are reported as written and are not.
    pub lies: bool,
    /// The history was lost, and no tree has come since.
    pub is_unsure: bool,
}

#[derive(Clone)]
pub enum Write {
    Append(Entry),
    Promise(Promise, Epoch),
    Truncate(Zxid),
    Install(Vec<Entry>),
}

/// On its way to the disk: the log thread does one after the other, trees are written beside it.
#[derive(Default)]
pub struct Queues {
    pub log: VecDeque<Write>,
    pub trees: VecDeque<Write>,
}

impl Queues {
    pub fn push(&mut self, write: Write) {
        match write {
            Write::Install(_) => self.trees.push_back(write),
            _ => self.log.push_back(write),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.log.is_empty() && self.trees.is_empty()
    }
}

pub fn last_of(entries: &[Entry]) -> Zxid {
    entries.last().map_or(Zxid::ZERO, |(zxid, _)| *zxid)
}

impl Disk {
    pub fn whole(&self) -> &[Entry] {
        &self.whole
    }

    /// Whether what is left after a cut is all that was there before it: not if the cut goes through a tree that came whole.
    pub fn can_cut(&self, to: Zxid) -> bool {
        let mut cut = self.clone();
        cut.perform(Write::Truncate(to));
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
            Write::Promise(Promise::Accepted, epoch) => self.accepted = epoch,
            Write::Promise(Promise::Current, epoch) => self.current = epoch,
            Write::Truncate(to) => {
                self.log.retain(|(zxid, _)| *zxid <= to);
                self.trees.retain(|tree| last_of(tree) <= to);
                self.restore();
            }
            Write::Install(tree) => {
                self.trees.retain(|older| last_of(older) <= last_of(&tree));
                self.trees.push(tree);
                self.is_unsure = false;
                self.restore();
            }
        }
    }

    /// All is lost but what was promised and who was followed last.
    pub fn lose(&mut self) {
        (self.log, self.trees, self.is_unsure) = (Vec::new(), Vec::new(), true);
        self.restore();
    }

    fn restore(&mut self) {
        self.whole = self.trees.last().cloned().unwrap_or_default();
        let last = last_of(&self.whole);
        self.whole.extend(self.log.iter().filter(|(zxid, _)| last < *zxid).cloned());
    }
}
