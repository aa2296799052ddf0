//! Power cuts at every change to the disk of a whole server's run, with any subset of what was not synced lost.
//!
//! The code that ships runs on one thread over a disk in memory: connections, replica, tree, zab, log worker,
//! snapshots taken piece by piece while writes go on, rolls, purges, zero-filling, recovery. A script of requests that
//! a seed draws drives them (`client`, `whole`). Transactions that no request leads to go through tree and store alone (`raw`):
//! reconfig, new epochs, and others that only a log of Java's may hold.
//!
//! The disk keeps an image after every write, sync, create, rename and remove. From each image disks are made that a
//! power cut may leave, and each must recover to the exact state at some zxid from the last answered one on: every
//! znode, its data, stat, access list and children, every session, the digest, against a plain model (`model`).
//! Answered means: flushed and in a connection's outbox at the time of the image. The power fails during recovery too, and
//! the recovered server goes on, with its old sessions resumed, and is crashed again.
//!
//! How it samples: every image is crashed with nothing of the unsynced left, with all of it, and with one more subset
//! that differs from image to image; one crash in 25 goes on and is crashed again. `OXKEEPER_LONG=1` draws twelve
//! subsets per image, goes on after one crash in 5, and runs more seeds.

mod server_crash {
    pub mod client;
    pub mod history;
    pub mod model;
    pub mod raw;
    pub mod whole;
}

use std::collections::BTreeSet;

use oxkeeper::model::Rng;
use oxkeeper::model::op;
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::{LogOptions, Packing};
use oxkeeper::tree::Options;
use server_crash::history::History;
use server_crash::model::Model;
use server_crash::raw::Raw;
use server_crash::whole::Whole;
use support::store::ServerDisk;

const OPTIONS: Options =
    Options { seed: 3, digest: true, extended_types: true, emulate_353: false };

/// How a script runs.
#[derive(Clone, Copy)]
pub struct Script {
    /// Tree and store alone.
    raw: bool,
    steps: u64,
    batch_max: usize,
    snap_count: u64,
    log: LogOptions,
    packing: Packing,
    /// Znodes made before the first image.
    fill: usize,
    /// One image in this many is checked; one crash in this many is compared znode by znode.
    every: u64,
    full_every: u64,
}

const fn log(prealloc: u64, size_limit: u64) -> LogOptions {
    LogOptions { prealloc, size_limit, force_sync: true }
}

fn long() -> bool {
    std::env::var_os("OXKEEPER_LONG").is_some()
}

#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
enum Server<'d> {
    Whole(Box<Whole<'d>>),
    Raw(Box<Raw<'d>>),
}

impl<'d> Server<'d> {
    /// Recovers from a disk and serves.
    fn start(
        place: &'d ServerDisk,
        script: &Script,
        history: &mut History,
    ) -> Result<Self, String> {
        let (tree, recovered) = place.restore(OPTIONS)?;
        Ok(if script.raw {
            Self::Raw(Box::new(Raw::start(place, tree, &recovered, script)))
        } else {
            Self::Whole(Box::new(Whole::start(place, tree, &recovered, script, history)))
        })
    }

    fn step(&mut self, rng: &mut Rng, history: &mut History) {
        match self {
            Self::Whole(whole) => whole.step(rng, history),
            Self::Raw(raw) => raw.step(rng, history),
        }
    }

    fn snapshots(&self) -> u32 {
        match self {
            Self::Whole(whole) => whole.snapshots,
            Self::Raw(raw) => raw.snapshots,
        }
    }
}

/// The outcome of a script.
#[derive(Debug, Default)]
struct Tally {
    images: u64,
    crashes: u64,
    /// Crashes that lost something that was sent and not answered.
    lost: u64,
    /// Files that had to be repaired or skipped.
    mended: u64,
    snapshots: u32,
    /// Snapshots that a recovery began with.
    begun_with: BTreeSet<i64>,
    kinds: BTreeSet<i32>,
    part_kinds: BTreeSet<i32>,
    failed_multis: u32,
    txns: u32,
}

/// Runs a script and crashes it everywhere.
///
/// # Errors
/// What is wrong with the state that a crash left.
fn crash_everywhere(script: &Script, seed: u64) -> Result<Tally, String> {
    let place = ServerDisk::new(SimDisk::new(), script.packing);
    let mut rng = Rng::seeded(seed);
    let mut history = History::new(Model::fresh());
    history.keeps = script.fill == 0;
    let mut server = Server::start(&place, script, &mut history)?;
    if let (Server::Whole(whole), 1..) = (&mut server, script.fill) {
        whole.fill(script.fill, &mut history);
        history.keep();
    }
    place.sim.keep_images();
    let mut tally = Tally::default();
    for step in 0..script.steps {
        server.step(&mut rng, &mut history);
        for image in place.sim.take_images() {
            tally.images += 1;
            if tally.images % script.every != 0 {
                continue;
            }
            let acked = history.acked_at(image.counts.changes);
            for drawn in 0..if long() { 14 } else { 3 } {
                // 0 and 1 are none and all; the others differ from image to image.
                let subset = if drawn < 2 { drawn } else { rng.next() };
                let at = format!("step {step}, change {}, subset {subset}", image.counts.changes);
                let disk = image.crash(subset);
                tally.crashes += 1;
                let full = tally.crashes % script.full_every == 0;
                let recovered = judge(&disk, &history, acked, full, &mut tally)
                    .map_err(|wrong| format!("{at}: {wrong}"))?;
                if tally.crashes % if long() { 5 } else { 25 } == 0 {
                    // From the image again: the recovery above has repaired that disk.
                    let model = history.model(recovered).expect("judged").clone();
                    crash_again(image.crash(subset), script, model, &mut rng)
                        .map_err(|wrong| format!("{at}, then {wrong}"))?;
                }
            }
        }
        history.forget();
    }
    tally.snapshots = server.snapshots();
    tally.txns = history.kinds.values().sum();
    tally.kinds.extend(history.kinds.keys());
    tally.part_kinds.extend(history.part_kinds.keys());
    tally.failed_multis = history.failed_multis;
    Ok(tally)
}

/// Recovers from a disk and looks at what is there; returns its zxid.
fn judge(
    disk: &SimDisk,
    history: &History,
    acked: i64,
    full: bool,
    tally: &mut Tally,
) -> Result<i64, String> {
    let (tree, recovered) = ServerDisk::new(disk.clone(), Packing::Plain).restore(OPTIONS)?;
    if let Some(wrong) = history.judge(&tree, acked, full) {
        return Err(wrong);
    }
    tally.lost += u64::from(tree.last_zxid().to_wire() < history.now.zxid);
    tally.mended += recovered.skipped.len() as u64;
    tally.begun_with.extend(recovered.snapshot.map(|snapshot| snapshot.0.to_wire()));
    Ok(tree.last_zxid().to_wire())
}

/// Goes on after a crash; crashes at each change of that run, recovery included, and recovers again.
fn crash_again(disk: SimDisk, script: &Script, model: Model, rng: &mut Rng) -> Result<(), String> {
    let place = ServerDisk::new(disk, script.packing);
    place.sim.keep_images();
    let mut history = History::new(model);
    let mut server = Server::start(&place, script, &mut history)?;
    for step in 0..3 {
        if step > 0 {
            server.step(rng, &mut history);
        }
        for image in place.sim.take_images() {
            let acked = history.acked_at(image.counts.changes);
            let subset = [0, 1, rng.next()][rng.pick(3)];
            let mut none = Tally::default();
            judge(&image.crash(subset), &history, acked, true, &mut none).map_err(|wrong| {
                format!("change {}, subset {subset}: {wrong}", image.counts.changes)
            })?;
        }
    }
    Ok(())
}

#[track_caller]
fn run(script: &Script, seed: u64) -> Tally {
    crash_everywhere(script, seed).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"))
}

const WHOLE: Script = Script {
    raw: false,
    steps: 220,
    batch_max: 16,
    snap_count: 400,
    log: log(1 << 16, 0),
    packing: Packing::Plain,
    fill: 0,
    every: 1,
    full_every: 1,
};

// rows: D-26 D-32 D-42 D-49 D-68
#[test]
fn no_answered_write_is_lost() {
    for seed in 0..if long() { 4 } else { 1 } {
        let tally = run(&WHOLE, 100 + seed);
        assert!(2 < tally.snapshots && 1 < tally.begun_with.len(), "{tally:?}");
        assert!(tally.lost > 0 && tally.mended > 0 && tally.txns > 1200, "{tally:?}");
        let kinds = [
            op::CREATE,
            op::CREATE2,
            op::CREATE_CONTAINER,
            op::CREATE_TTL,
            op::DELETE_CONTAINER,
            op::MULTI,
            op::DELETE,
            op::SET_DATA,
            op::SET_ACL,
            op::CREATE_SESSION,
            op::CLOSE_SESSION,
            op::ERROR,
        ];
        assert_eq!(tally.kinds, kinds.into(), "{tally:?}");
        assert!(3 < tally.failed_multis && tally.part_kinds.contains(&op::CHECK), "{tally:?}");
    }
}

// rows: D-21 D-22 D-23 D-43 D-62 D-63 D-64 D-65
#[test]
fn every_type_of_transaction_survives_a_power_cut() {
    let script = Script { raw: true, batch_max: 12, packing: Packing::Gzip, ..WHOLE };
    for seed in 0..if long() { 4 } else { 1 } {
        let tally = run(&script, 200 + seed);
        assert!(2 < tally.snapshots && 1 < tally.begun_with.len(), "{tally:?}");
        // All fifteen: thirteen stand alone, check only in a multi, and there are multis that were refused.
        assert_eq!(tally.kinds.len(), 13, "{tally:?}");
        let parts = [
            op::CREATE,
            op::CREATE2,
            op::CREATE_CONTAINER,
            op::CREATE_TTL,
            op::DELETE,
            op::DELETE_CONTAINER,
            op::SET_DATA,
            op::SET_ACL,
            op::CHECK,
            op::ERROR,
        ];
        assert_eq!(tally.part_kinds, parts.into(), "{tally:?}");
        assert!(3 < tally.failed_multis, "{tally:?}");
    }
}

/// Snapshots of several pieces and several writes each, the log flushed in between.
// rows: D-32
#[test]
fn snapshots_of_a_large_tree_are_of_one_zxid() {
    let script = Script {
        steps: 90,
        batch_max: 10,
        snap_count: 200,
        log: log(1 << 16, 100_000),
        packing: Packing::Snappy,
        fill: 9000,
        every: if long() { 1 } else { 8 },
        full_every: 3,
        ..WHOLE
    };
    let tally = run(&script, 300);
    assert!(1 < tally.snapshots && 1 < tally.begun_with.len(), "{tally:?}");
}

/// Without fsync answered writes are lost: the check must notice it.
#[test]
fn lost_answered_writes_are_noticed_without_fsync() {
    let log = LogOptions { force_sync: false, ..WHOLE.log };
    for raw in [false, true] {
        let wrong = crash_everywhere(&Script { log, raw, ..WHOLE }, 1).unwrap_err();
        assert!(wrong.contains(" was answered"), "{wrong}");
    }
}
