//! Builds the tree from snapshot and log when the server starts, and when its log was truncated below the tree.
//!
//! A small tree is built on the thread that reads the files. From [`ALONE_MAX`] on a second thread builds the tree, while the
//! first one reads, checks, unpacks and splits the bytes: with a million znodes the first thread does a third of the work.

use crate::model::Zxid;
use crate::store::{Progress, Restore, Trailers};
use crate::tree::load::{Batch, LoadError, Parser};
use crate::tree::rebuild::{Comparison, Rebuild};
use crate::tree::txn::{Entry, TxnError};
use crate::tree::{Options, Tree};
use jute::txn::TxnDigest;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Progress of a long load is logged this often.
const LOG_EVERY: Duration = Duration::from_secs(1);
/// The clock is read once for this many transactions.
const LOG_EVERY_TXNS: u64 = 4096;
/// Znodes without their ACLs that are named in one log line.
const LOST_SHOWN: usize = 10;
/// Znodes above `jute.maxbuffer` that are named in one log line.
const LARGE_SHOWN: usize = 3;
/// Bytes of snapshot and log that one thread loads alone.
const ALONE_MAX: u64 = 4 << 20;
/// Pieces on their way to the building thread, of about 1 MiB each.
const QUEUE_MAX: usize = 4;
/// Bytes of log entries sent together.
const ENTRIES_MAX: usize = 256 << 10;

/// Why the files can't be loaded.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("replay transaction {zxid:#x}")]
    Txn { zxid: i64, source: TxnError },
}

/// The result of a load.
pub struct Restored {
    /// On a standalone server without the ephemerals of sessions that no longer exist (D-67).
    pub tree: Tree,
    /// Number of those sessions.
    pub orphans: usize,
    pub comparison: Comparison,
}

/// Warns of znodes that no client could write again: a larger `jute.maxbuffer` of an earlier server was lost, as when it stood in
/// a script's file.
pub fn warn_of_large_znodes(tree: &Tree, limit: usize) {
    let (paths, count) = tree.znodes_above(limit, LARGE_SHOWN);
    if 0 < count {
        tracing::warn!(
            count,
            limit,
            paths = %paths.join(" "),
            "znodes have more data than jute.maxbuffer, so no client could write them again: set -Djute.maxbuffer as before"
        );
    }
}

/// A tree being loaded.
pub struct Restorer {
    options: Options,
    alone_max: u64,
    parser: Parser,
    batch: Batch,
    /// Znodes of the snapshot so far.
    nodes: u64,
    /// Entries that are not sent yet, each after its length.
    entries: Vec<u8>,
    /// Bytes taken since the last reset.
    taken: u64,
    /// Keeps ephemerals of sessions that no longer exist: a standalone server removes them, an ensemble agrees on that.
    keeps_orphans: bool,
    /// Transactions of the log.
    replayed: u64,
    /// Bytes of the log that were read, and bytes of the whole log.
    log_bytes: (u64, u64),
    stage: Stage,
    /// When the last line was logged.
    logged: Instant,
}

/// Where the tree is built.
enum Stage {
    ThisThread(Box<Rebuild>),
    OtherThread(RestoreThread),
    /// While the tree moves from `ThisThread` to `OtherThread`.
    Moving,
}

impl Restorer {
    pub fn new(options: Options) -> Self {
        Self::with_alone_max(options, ALONE_MAX)
    }

    /// * `alone_max`: from this many bytes of snapshot and log on there is a second thread.
    pub fn with_alone_max(options: Options, alone_max: u64) -> Self {
        Self {
            options,
            alone_max,
            parser: Parser::new(options),
            batch: Batch::default(),
            nodes: 0,
            entries: Vec::new(),
            taken: 0,
            keeps_orphans: false,
            replayed: 0,
            log_bytes: (0, 0),
            stage: Stage::ThisThread(Box::new(Rebuild::new(options))),
            logged: Instant::now(),
        }
    }

    /// Leaves the ephemerals of sessions that no longer exist where they are.
    pub const fn keep_orphans(mut self) -> Self {
        self.keeps_orphans = true;
        self
    }

    /// The loaded tree.
    ///
    /// # Panics
    /// When the building thread did: a bug.
    pub fn finish(mut self) -> Restored {
        self.send_entries();
        let mut building = match self.stage {
            Stage::ThisThread(building) => *building,
            Stage::OtherThread(thread) => thread.end(),
            Stage::Moving => unreachable!("moving ends before anything else is asked"),
        };
        let comparison = building.replay_done();
        let orphans = if self.keeps_orphans { 0 } else { building.remove_orphans() };
        let (paths, count) = building.tree.znodes_without_acl(LOST_SHOWN);
        if 0 < count {
            tracing::error!(
                count,
                paths = %paths.join(" "),
                "the snapshot holds znodes without their ACLs, which the log lacks too; only a superuser can access these znodes: set new ACLs on them"
            );
        }
        Restored { tree: building.tree, orphans, comparison }
    }

    /// Counts bytes, and starts the second thread when they are many.
    fn count(&mut self, bytes: usize) {
        self.taken += bytes as u64;
        if self.taken < self.alone_max || !matches!(self.stage, Stage::ThisThread(_)) {
            return;
        }
        if let Stage::ThisThread(building) = std::mem::replace(&mut self.stage, Stage::Moving) {
            self.stage = RestoreThread::start(building);
        }
    }

    fn send_entries(&mut self) {
        if let (Stage::OtherThread(thread), false) = (&self.stage, self.entries.is_empty()) {
            let next = Vec::with_capacity(ENTRIES_MAX + ENTRIES_MAX / 4);
            thread.send(Work::Entries(std::mem::replace(&mut self.entries, next)));
        }
    }

    /// Whether a progress line is due: a big tree takes a while, and the operator sees how long.
    fn is_time_to_log(&mut self) -> bool {
        let due = self.logged.elapsed() >= LOG_EVERY;
        if due {
            self.logged = Instant::now();
        }
        due
    }
}

impl Restore for Restorer {
    type Error = RestoreError;

    fn reset(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Moving);
        if let Stage::OtherThread(thread) = stage {
            thread.end();
        }
        let keeps_orphans = self.keeps_orphans;
        *self = Self { keeps_orphans, ..Self::with_alone_max(self.options, self.alone_max) };
    }

    fn snapshot_read(&mut self, done_bytes: u64, all_bytes: u64) {
        if self.is_time_to_log() {
            let percent = percent(done_bytes, all_bytes);
            tracing::info!(
                znodes = self.nodes,
                bytes = done_bytes,
                total_bytes = all_bytes,
                percent,
                "loading: snapshot"
            );
        }
    }

    fn log_read(&mut self, done_bytes: u64, all_bytes: u64) {
        self.log_bytes = (done_bytes, all_bytes);
    }

    fn snapshot_bytes(&mut self, bytes: &[u8]) -> Result<Progress, RestoreError> {
        self.batch.clear();
        let taken = self.parser.take(bytes, &mut self.batch)?;
        self.nodes += self.batch.len() as u64;
        self.count(taken.bytes);
        match &mut self.stage {
            Stage::ThisThread(building) => building.add(&self.batch)?,
            Stage::OtherThread(thread) => {
                thread.check()?;
                let spare = thread.spare.try_recv().unwrap_or_default();
                thread.send(Work::Batch(std::mem::replace(&mut self.batch, spare)));
            }
            Stage::Moving => {}
        }
        Ok(Progress { consumed: taken.bytes, finished: taken.ended })
    }

    fn snapshot_done(&mut self, zxid: Zxid, trailers: Trailers) -> Result<(), RestoreError> {
        match &mut self.stage {
            Stage::ThisThread(building) => building.snapshot_done(zxid, digest_of(trailers))?,
            Stage::OtherThread(thread) => {
                thread.send(Work::SnapshotDone(zxid, trailers));
                thread.settle();
                thread.check()?;
            }
            Stage::Moving => {}
        }
        Ok(())
    }

    fn replay(&mut self, zxid: i64, entry: &[u8]) -> Result<(), RestoreError> {
        // Applying can't fail, so an entry that can't be decoded is refused here, with its place in the log.
        let decoded = Entry::decode(entry).map_err(|source| RestoreError::Txn { zxid, source })?;
        match &mut self.stage {
            Stage::ThisThread(building) => building.replay(&decoded),
            Stage::OtherThread(_) => {
                self.entries.extend_from_slice(&(entry.len() as u32).to_ne_bytes());
                self.entries.extend_from_slice(entry);
                if ENTRIES_MAX <= self.entries.len() {
                    self.send_entries();
                }
            }
            Stage::Moving => {}
        }
        self.count(entry.len());
        self.replayed += 1;
        if self.replayed.is_multiple_of(LOG_EVERY_TXNS) && self.is_time_to_log() {
            let (zxid, (bytes, total_bytes)) = (format!("{zxid:#x}"), self.log_bytes);
            let percent = percent(bytes, total_bytes);
            tracing::info!(
                txns = self.replayed,
                %zxid,
                bytes,
                total_bytes,
                percent,
                "loading: log"
            );
        }
        Ok(())
    }
}

const fn percent(done: u64, of: u64) -> u64 {
    done.saturating_mul(100) / if of == 0 { 1 } else { of }
}

enum Work {
    Batch(Batch),
    SnapshotDone(Zxid, Trailers),
    /// Log entries, each after its length.
    Entries(Vec<u8>),
    /// Answered when all work before it is done.
    Settle(SyncSender<()>),
}

/// A tree that another thread builds.
struct RestoreThread {
    work: SyncSender<Work>,
    /// Batches to be used again.
    spare: Receiver<Batch>,
    /// The first error. What is sent after it is dropped.
    failed: Arc<Mutex<Option<LoadError>>>,
    thread: JoinHandle<Rebuild>,
}

impl RestoreThread {
    /// Moves the tree to a second thread. If none can be started, the tree stays here.
    fn start(building: Box<Rebuild>) -> Stage {
        let (work, works) = mpsc::sync_channel(QUEUE_MAX);
        let (done, spare) = mpsc::channel();
        let failed = Arc::new(Mutex::new(None));
        let errors = failed.clone();
        // The thread gets the tree by a channel, so that the tree is still here if no thread can be started.
        let (hand, handed) = mpsc::sync_channel::<Box<Rebuild>>(1);
        let spawned = thread::Builder::new().name("restore".to_owned()).spawn(move || {
            let mut building = *handed.recv().expect("the tree comes before the thread's end");
            for work in works {
                if errors.lock().expect("no panic while it was held").is_some() {
                    if let Work::Settle(settled) = work {
                        let _gone = settled.send(());
                    }
                    continue;
                }
                if let Err(error) = perform(&mut building, work, &done) {
                    *errors.lock().expect("no panic while it was held") = Some(error);
                }
            }
            building
        });
        match spawned {
            Ok(thread) => {
                hand.send(building).expect("the thread waits for it");
                Stage::OtherThread(Self { work, spare, failed, thread })
            }
            Err(error) => {
                tracing::warn!(%error, "can't start a second thread to load the data: raise ulimit -u");
                Stage::ThisThread(building)
            }
        }
    }

    fn send(&self, work: Work) {
        self.work.send(work).expect("the building thread takes all there is");
    }

    /// Waits until all that was sent is done.
    fn settle(&self) {
        let (settled, done) = mpsc::sync_channel(1);
        self.send(Work::Settle(settled));
        done.recv().expect("the building thread answers");
    }

    fn check(&self) -> Result<(), LoadError> {
        match &*self.failed.lock().expect("no panic while it was held") {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Ends the thread once all work that was sent is done; returns the tree.
    fn end(self) -> Rebuild {
        drop(self.work);
        self.thread.join().expect("the building thread does not panic")
    }
}

/// The digest of a snapshot, and the zxid it belongs to.
fn digest_of(trailers: Trailers) -> Option<(i64, TxnDigest)> {
    let digest = trailers.digest?;
    Some((digest.zxid, TxnDigest { version: digest.version, tree_digest: digest.digest }))
}

fn perform(
    building: &mut Rebuild,
    work: Work,
    done: &mpsc::Sender<Batch>,
) -> Result<(), LoadError> {
    match work {
        Work::Batch(mut batch) => {
            building.add(&batch)?;
            batch.clear();
            let _gone = done.send(batch);
        }
        Work::SnapshotDone(zxid, trailers) => building.snapshot_done(zxid, digest_of(trailers))?,
        Work::Entries(bytes) => {
            let mut rest = &bytes[..];
            while let Some((len, after)) = rest.split_first_chunk::<4>() {
                let (entry, after) = after.split_at(u32::from_ne_bytes(*len) as usize);
                building.replay(&Entry::decode(entry).expect("decoded once before"));
                rest = after;
            }
        }
        Work::Settle(settled) => {
            let _gone = settled.send(());
        }
    }
    Ok(())
}
