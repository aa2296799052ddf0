//! What both kinds of server have: a disk that may crash, the log worker on it, and a snapshot under way.

use std::path::Path;
use std::time::Duration;

use oxkeeper::server::{Restored, Restorer};
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::{
    Command, DigestTrailer, Event, FailStop, Folders, Log, LogOptions, Packing, RecoverOptions,
    Recovered, SnapshotWriter, Trailers, Worker, purge, recover,
};
use oxkeeper::tree::digest::DIGEST_VERSION;
use oxkeeper::tree::freeze::Frozen;
use oxkeeper::tree::{Options, Tree};

type Disk = FailStop<SimDisk>;
type Clock = fn() -> Duration;

/// A disk and the folders on it.
pub struct ServerDisk {
    pub sim: SimDisk,
    disk: Disk,
    folders: Folders,
    /// Of the snapshots that are written.
    packing: Packing,
}

impl ServerDisk {
    pub fn new(sim: SimDisk, packing: Packing) -> Self {
        let disk = FailStop::new(sim.clone());
        Self { sim, disk, packing, folders: Folders::new(Path::new("/data"), Path::new("/log")) }
    }

    /// What a server makes of the disk at its start.
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
        let Restored { tree, orphans, digest_mismatches } = restorer.finish();
        if digest_mismatches > 0 {
            return Err(format!("{digest_mismatches} digests differ in replay"));
        }
        match found.last {
            _ if orphans > 0 => Err(format!("ephemerals of {orphans} sessions that are no more")),
            last if last != Some(tree.last_zxid()) => {
                Err(format!("store says {last:?}, tree {}", tree.last_zxid()))
            }
            _ => Ok((tree, found)),
        }
    }
}

/// The part of a server below its state.
pub struct Half<'d> {
    pub place: &'d ServerDisk,
    worker: Worker<Disk, Clock>,
    snapshot: Option<(SnapshotWriter<'d, Disk>, Frozen)>,
    /// Snapshots that are in place.
    pub snapshots: u32,
}

impl<'d> Half<'d> {
    pub fn new(place: &'d ServerDisk, options: LogOptions, recovered: &Recovered) -> Self {
        let log = Log::new(place.disk.clone(), &place.folders.logs, options, recovered.last);
        let (dir, slow_after) = (&place.folders.snapshots, Duration::from_secs(1));
        let worker =
            Worker::new(place.disk.clone(), log, dir, slow_after, (|| Duration::ZERO) as Clock);
        Self { place, worker, snapshot: None, snapshots: 0 }
    }

    /// Gives the log worker a batch; `flushed` hears of each flush: changes to the disk so far, zxid.
    pub fn run(&mut self, mut batch: Vec<Command>, mut flushed: impl FnMut(u64, i64)) {
        let sim = &self.place.sim;
        self.worker.run(&mut batch, &mut |event| match event {
            Event::Flushed(report) => flushed(sim.counts().changes, report.through.to_wire()),
            event => panic!("{event:?}"),
        });
    }

    /// What the log thread does when nothing waits.
    pub fn idle(&mut self) {
        if self.worker.wants_ahead() {
            self.worker.prepare_ahead(&mut |event| panic!("{event:?}"));
        }
    }

    pub fn purge(&self) {
        purge::purge(&self.place.sim, &self.place.folders, 3).unwrap();
    }

    pub fn begin_snapshot(&mut self, frozen: Frozen) {
        let (dir, packing) = (&self.place.folders.snapshots, self.place.packing);
        let writer = SnapshotWriter::create(&self.place.disk, dir, frozen.zxid, packing).unwrap();
        self.snapshot = Some((writer, frozen));
    }

    pub fn is_snapshotting(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Writes the next piece; `true` once the snapshot is in place.
    ///
    /// The same calls as `server::snapshots` makes, a turn of the script between any two.
    pub fn snapshot_piece(&mut self, tree: &Tree) -> bool {
        let Some((writer, frozen)) = &mut self.snapshot else { return false };
        let mut piece = Vec::new();
        let ended = tree.freeze_piece(&mut piece);
        if !piece.is_empty() {
            writer.body(&piece).unwrap();
        } else if ended {
            let zxid = frozen.zxid.to_wire();
            let digest = frozen.digest.map(|digest| digest as i64);
            let digest =
                digest.map(|digest| DigestTrailer { zxid, version: DIGEST_VERSION, digest });
            let (writer, _) = self.snapshot.take().expect("looked at above");
            writer.finish(Trailers { digest, zxid: Some(zxid) }).unwrap();
            self.snapshots += 1;
            return true;
        }
        false
    }
}
