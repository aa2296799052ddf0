//! A server's store on a virtual disk: its folders, the worker of its log thread, and a snapshot piece by piece.

use oxkeeper::member::{Input, trailers};
use oxkeeper::model::{Zxid, chain};
use oxkeeper::server::{Restored, Restorer};
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::{
    Command, Draft, Event, FailStop, Folders, Log, LogOptions, Packing, RecoverOptions, Recovered,
    SnapshotWriter, Worker, log_read, purge, recover,
};
use oxkeeper::tree::freeze::Frozen;
use oxkeeper::tree::{Options, Tree};
use oxkeeper::zab::LogRead;
use std::path::Path;
use std::time::Duration;

type Disk = FailStop<SimDisk>;
type Clock = fn() -> Duration;

/// A disk and the folders on it.
#[derive(Clone)]
pub struct ServerDisk {
    pub sim: SimDisk,
    disk: Disk,
    folders: Folders,
    /// How snapshots are packed.
    packing: Packing,
}

impl ServerDisk {
    pub fn new(sim: SimDisk, packing: Packing) -> Self {
        let disk = FailStop::new(sim.clone());
        Self { sim, disk, packing, folders: Folders::new(Path::new("/data"), Path::new("/log")) }
    }

    /// A new disk with this tree in a snapshot.
    pub fn with_tree(tree: &mut Tree) -> Self {
        let place = Self::new(SimDisk::new(), Packing::Plain);
        recover::prepare_folders(&place.disk, &place.folders, true).expect("a new disk");
        let frozen = tree.freeze().expect("nothing else is frozen");
        place.snapshot(frozen).whole(tree).place(&place.disk).expect("the disk is sound");
        tree.thaw(frozen);
        place
    }

    /// The tree that a standalone server loads from the disk at its start.
    ///
    /// # Errors
    /// A refusal, or a state that does not fit its own digests and sessions.
    pub fn restore(&self, options: Options) -> Result<(Tree, Recovered), String> {
        recover::prepare_folders(&self.disk, &self.folders, true)
            .map_err(|error| error.to_string())?;
        let mut restorer = Restorer::new(options);
        let wanted = RecoverOptions::default();
        let found =
            recover::recover(&self.disk, &self.folders, wanted, &mut restorer, || Duration::ZERO)
                .map_err(|error| format!("recovery refused: {error}"))?;
        let Restored { tree, orphans, comparison } = restorer.finish();
        if comparison.mismatches > 0 {
            return Err(format!("{} digests differ in replay", comparison.mismatches));
        }
        match found.last {
            _ if orphans > 0 => Err(format!("ephemerals of {orphans} sessions that are no more")),
            last if last != Some(tree.last_zxid()) => {
                Err(format!("store says {last:?}, tree {}", tree.last_zxid()))
            }
            _ => Ok((tree, found)),
        }
    }

    /// Loads the tree again, and returns the report for a running member.
    pub fn load_again(&self, options: Options) -> Input {
        let wanted = RecoverOptions { running: true, ..RecoverOptions::default() };
        let mut restorer = Restorer::new(options).keep_orphans();
        let found =
            recover::recover(&self.disk, &self.folders, wanted, &mut restorer, || Duration::ZERO);
        let loaded = found.map(|_| {
            let Restored { tree, comparison, .. } = restorer.finish();
            (tree, comparison)
        });
        Input::tree_loaded(loaded.map_err(|error| format!("load the tree: {}", chain(&error))))
    }

    /// Reads the log after `from` for a learner, as the server does.
    pub fn read_log(&self, from: Zxid, through: Zxid, limit_bytes: u64) -> LogRead {
        let tail = log_read::read(&self.disk, &self.folders, from, through, limit_bytes);
        LogRead { before: tail.before, entries: tail.entries }
    }

    pub fn purge(&self) {
        purge::purge(&self.sim, &self.folders, 3, purge::read_whole(&self.sim)).unwrap();
    }

    /// Begins a snapshot of a frozen tree.
    pub fn snapshot(&self, frozen: Frozen) -> Snapshot<'_> {
        let dir = &self.folders.snapshots;
        let writer = SnapshotWriter::create(&self.disk, dir, frozen.zxid, self.packing).unwrap();
        Snapshot { writer, frozen }
    }

    pub fn discard(&self, draft: Draft) {
        draft.discard(&self.disk);
    }

    /// * `last`: the zxid at which the log ends.
    pub fn log_thread(&self, options: LogOptions, last: Option<Zxid>) -> LogThread {
        let log = Log::new(self.disk.clone(), &self.folders.logs, options, last);
        let (dir, slow_after) = (&self.folders.snapshots, Duration::from_secs(1));
        let clock: Clock = || Duration::ZERO;
        let worker = Worker::new(self.disk.clone(), log, dir, slow_after, clock);
        LogThread { sim: self.sim.clone(), worker }
    }
}

/// The log thread's worker, without the thread.
pub struct LogThread {
    sim: SimDisk,
    worker: Worker<Disk, Clock>,
}

impl LogThread {
    /// Does a batch; `done` gets each event, after the number of changes to the disk so far.
    pub fn run(&mut self, mut batch: Vec<Command>, mut done: impl FnMut(u64, Event)) {
        let sim = &self.sim;
        self.worker.run(&mut batch, &mut |event| match event {
            Event::Failed(error) => panic!("{error:?}"),
            event => done(sim.counts().changes, event),
        });
    }

    /// Does what the log thread does when no command waits.
    pub fn idle(&mut self) {
        if self.worker.wants_zeros_ahead() {
            self.worker.prepare_ahead(&mut |event| panic!("{event:?}"));
        }
    }
}

/// A snapshot under way.
pub struct Snapshot<'d> {
    writer: SnapshotWriter<'d, Disk>,
    pub frozen: Frozen,
}

impl Snapshot<'_> {
    /// Writes the next piece; `true`: there are none left.
    ///
    /// These are the calls that `server::snapshots` makes; a script may do other things between any two.
    pub fn piece(&mut self, tree: &Tree) -> bool {
        let mut piece = Vec::new();
        let ended = tree.freeze_piece(self.frozen, &mut piece);
        if !piece.is_empty() {
            self.writer.body(&piece).unwrap();
        }
        piece.is_empty() && ended
    }

    /// Ends the snapshot, which is then on disk and has no name yet.
    pub fn draft(self) -> Draft {
        self.writer.draft(trailers(self.frozen, true)).unwrap()
    }

    /// Writes all pieces and ends the snapshot.
    pub fn whole(mut self, tree: &Tree) -> Draft {
        while !self.piece(tree) {}
        self.draft()
    }
}
