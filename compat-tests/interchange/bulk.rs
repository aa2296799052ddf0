//! Many mixed transactions, SIGKILL, and a start of the other server on the files.

use super::Args;
use super::alternation::{compare, compare_twins, judge_digests, name, state};
use super::files::{self, Restored};
use super::load::{Load, Mix};
use common::server::{Kind, Server};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

const SETTINGS: &str = "forceSync=yes\nextendedTypesEnabled=true\n";
/// How long a server may take to write the snapshot of its start.
const PATIENCE: Duration = Duration::from_secs(120);
/// Outstanding writes when the server is killed.
const STORM: usize = 1500;

/// Which server writes first, and its settings.
pub struct Plan {
    what: &'static str,
    java_first: bool,
    /// `snapshot.compression.method` of the first server, and of the second.
    packing: [&'static str; 2],
    /// Snapshots are taken while writes are applied.
    snapshots: bool,
}

pub const PLANS: &[Plan] = &[
    Plan {
        what: "one log without snapshots",
        java_first: true,
        packing: ["", "snappy"],
        snapshots: false,
    },
    Plan {
        what: "snapshots that Java takes during the writes",
        java_first: true,
        packing: ["gz", "gz"],
        snapshots: true,
    },
    Plan {
        what: "snapshots that oxkeeper takes during the writes",
        java_first: false,
        packing: ["snappy", ""],
        snapshots: true,
    },
];

/// Runs a plan; returns what differs.
///
/// # Errors
/// When a server can't be started or closes a connection.
// rows: D-03 D-29 D-62 D-63 D-64 D-68 C-149
pub fn run(args: &Args, plan: &Plan) -> io::Result<Vec<String>> {
    let kinds = match plan.java_first {
        true => [Kind::Java, args.other.clone()],
        false => [args.other.clone(), Kind::Java],
    };
    let [first, second] = kinds;
    let (home, copy) = (tempfile::tempdir()?, tempfile::tempdir()?);
    println!("{}: {} -> {}, {} txns", plan.what, name(&first), name(&second), args.bulk);
    let mut found = Vec::new();

    // Killed when all writes are answered: the other server must have the state that the first one served.
    let server = Server::start(first.clone(), home.path(), &settings(args, plan, 0))?;
    let mut load = Load::open(server.addr, args.seed, mix(&first, plan))?;
    let begun = Instant::now();
    load.run(args.bulk)?;
    let (answered, refused, took) = (load.answered, load.refused, begun.elapsed());
    println!("  {answered} writes in {took:.1?}, {refused} refused");
    let live = state(&server)?;
    judge_digests(&server, None, &mut found);
    server.stop(false)?;
    let expected = files::restore(home.path())?;
    note_mismatches(&expected, &mut found);
    let server = Server::start(second.clone(), home.path(), &settings(args, plan, 1))?;
    compare(&server, &live, &mut found)?;
    judge_digests(&server, None, &mut found);
    compare_start(&second, home.path(), &expected, &mut found)?;

    // Killed with writes outstanding: both must restore the same state from the files, with every answered write.
    let mut load = Load::open(server.addr, args.seed + 1, mix(&second, plan))?;
    load.run(args.bulk / 5)?;
    load.storm(STORM);
    server.stop(false)?;
    let expected = files::restore(home.path())?;
    note_mismatches(&expected, &mut found);
    if expected.zxid < load.last_zxid {
        found.push(format!("{:#x} was answered, {:#x} is last", load.last_zxid, expected.zxid));
    }
    files::copy(home.path(), copy.path())?;
    let server = Server::start(first.clone(), home.path(), &settings(args, plan, 0))?;
    let twin = Server::start(second.clone(), copy.path(), &settings(args, plan, 1))?;
    compare_start(&first, home.path(), &expected, &mut found)?;
    compare_start(&second, copy.path(), &expected, &mut found)?;
    compare_twins(&server, &twin, &mut found)?;
    judge_digests(&server, expected.sealed_zxid, &mut found);
    judge_digests(&twin, expected.sealed_zxid, &mut found);
    println!("  {expected:?}");
    Ok(found)
}

fn settings(args: &Args, plan: &Plan, turn: usize) -> String {
    let count = if plan.snapshots { args.bulk / 12 } else { 10_000_000 };
    format!("{SETTINGS}snapCount={count}\nsnapshot.compression.method={}\n", plan.packing[turn])
}

fn mix(server: &Kind, plan: &Plan) -> Mix {
    let is_java = *server == Kind::Java;
    Mix { creates_in_multi: !(is_java && plan.snapshots), delete_container: is_java }
}

fn note_mismatches(restored: &Restored, found: &mut Vec<String>) {
    if restored.mismatches > 0 {
        found.push(format!("restored here, {} digests differ", restored.mismatches));
    }
}

/// Checks that the snapshot which a server takes at its start has the expected state and digest.
fn compare_start(
    server: &Kind,
    home: &Path,
    expected: &Restored,
    found: &mut Vec<String>,
) -> io::Result<()> {
    let begun = Instant::now();
    let snapshot = loop {
        if let Some(snapshot) = files::restore_snapshot(home, expected.zxid)? {
            break snapshot;
        }
        if PATIENCE < begun.elapsed() {
            found.push(format!(
                "{}: no snapshot of {:#x} at its start",
                name(server),
                expected.zxid
            ));
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let of = |state: &Restored| (state.zxid, state.digest, state.nodes, state.sessions);
    if of(&snapshot) != of(expected) || snapshot.sealed_digest != Some(expected.digest) {
        found
            .push(format!("{}: its snapshot is {snapshot:?}, expected {expected:?}", name(server)));
    }
    Ok(())
}
