//! Random scripts in turns: one server runs them, stops or is killed, and the other server starts from its files.

use super::Args;
use common::choices::Limits;
use common::generate::{Generator, Mode};
use common::script::Script;
use common::server::{Kind, Server};
use common::side::{Outcome, Side};
use common::tree::{self, Dump, View};
use std::fs;
use std::io;
use std::path::Path;

const DURABLE: &str = "forceSync=yes\n";
/// Frequent snapshots, so that a start reads one that was taken while writes were applied, and the log after it.
const SNAPSHOTS: &str = "snapCount=400\n";
const SCRIPT_OPS: usize = 150;

/// A server's last zxid, node count and tree.
pub struct State {
    zxid: String,
    nodes: String,
    dump: Dump,
}

/// Clients whose sessions outlive the server that created them.
struct Survivors {
    side: Side,
    sessions: Vec<(usize, &'static str)>,
}

// rows: D-48 D-67 D-68 P-16
pub fn take_turns(args: &Args, turns: &[Kind], gently: bool) -> io::Result<Vec<String>> {
    let home = tempfile::tempdir()?;
    // Requests for which Java itself predicts a wrong digest would hide the mismatches that this test looks for.
    let limits =
        Limits { stage: args.stage, sound_digests: true, delete_container: false, only: &[] };
    // When Java replays a multi over a fuzzy snapshot, cversions stay too low (G-05), and so it sometimes reports digest
    // mismatches of its own (G-21). With multi there are only the snapshots of each start.
    let settings = [DURABLE, if args.stage == 1 { SNAPSHOTS } else { "" }].concat();
    let mut generator = Generator::new(args.seed, limits);
    let (mut findings, mut number) = (Vec::new(), 0);
    let mut left: Option<(State, Survivors)> = None;
    let names: Vec<_> = turns.iter().map(name).collect();
    println!("{} with {}", names.join(" -> "), if gently { "SIGTERM" } else { "SIGKILL" });
    for (turn, kind) in turns.iter().enumerate() {
        let server = Server::start(kind.clone(), home.path(), &settings)?;
        let mut found = Vec::new();
        if let Some((state, survivors)) = left.take() {
            compare(&server, &state, &mut found)?;
            resume(&server, survivors, &mut found);
        }
        let mut done = 0;
        while done < args.ops {
            let mode = [Mode::Lockstep, Mode::Pipelined, Mode::Racy][number % 3];
            let script = generator.script(number, mode, SCRIPT_OPS);
            let mut side = Side::new(server.addr, script.is_racy());
            run(&mut side, &script);
            side.close_all();
            number += 1;
            done += script.lines();
        }
        let survivors = survivors(&server, turn);
        let state = state(&server)?;
        println!("  {}: zxid {}, {} nodes", names[turn], state.zxid, state.nodes);
        judge_digests(&server, None, &mut found);
        findings.extend(
            found.into_iter().map(|finding| format!("turn {turn}, {}: {finding}", names[turn])),
        );
        left = Some((state, survivors));
        server.stop(gently)?;
        if args.tear {
            tear_newest_log(&home.path().join("data/version-2"))?;
        }
    }
    // No server has read yet what the last one wrote, so the other one starts once more.
    let server = Server::start(turns[1].clone(), home.path(), &settings)?;
    if let Some((state, survivors)) = left {
        let mut found = Vec::new();
        compare(&server, &state, &mut found)?;
        resume(&server, survivors, &mut found);
        judge_digests(&server, None, &mut found);
        findings.extend(
            found.into_iter().map(|finding| format!("at the end, {}: {finding}", names[1])),
        );
    }
    Ok(findings)
}

pub fn name(kind: &Kind) -> &'static str {
    if *kind == Kind::Java { "java" } else { "oxkeeper" }
}

fn run(side: &mut Side, script: &Script) -> Vec<Outcome> {
    let step = |step| {
        side.send(step);
        side.collect()
    };
    script.steps.iter().map(step).collect()
}

/// Overwrites the end of the last record with zeros.
fn tear_newest_log(dir: &Path) -> io::Result<()> {
    let entries = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    let logs = entries.iter().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let zxid = u64::from_str_radix(name.strip_prefix("log.")?, 16).ok()?;
        Some((zxid, entry.path()))
    });
    let (_, newest) = logs.max().ok_or_else(|| io::Error::other("no log to tear"))?;
    let mut bytes = fs::read(&newest)?;
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes[end.saturating_sub(4)..end].fill(0);
    fs::write(newest, bytes)
}

/// Opens sessions with ephemerals and doesn't close them.
fn survivors(server: &Server, turn: usize) -> Survivors {
    let acl = "acl=[31 \"world\" \"anyone\"]";
    let script = format!(
        "c0 connect timeout=300000 zxid=0 flag=false\n\
         c1 connect timeout=500000 zxid=0 flag=false\n\
         c0 create \"/kept{turn}\" data=null {acl} flags=0\n\
         c0 create \"/kept{turn}/e\" data=\"\" {acl} flags=1\n\
         c1 create \"/kept{turn}/s\" data=\"x\" {acl} flags=3\n"
    );
    let mut side = Side::new(server.addr, false);
    run(&mut side, &script.parse().expect("a script written here"));
    Survivors { side, sessions: vec![(0, "c0#1"), (1, "c1#1")] }
}

/// Resumes the sessions on the next server: they and their ephemerals must exist.
fn resume(server: &Server, mut survivors: Survivors, found: &mut Vec<String>) {
    survivors.side.move_to(server.addr);
    for (slot, session) in survivors.sessions {
        let script = format!(
            "c{slot} reconnect timeout=300000 zxid=last flag=false password=true takeover=false\nc{slot} close\n"
        );
        let outcomes = run(&mut survivors.side, &script.parse().expect("a script written here"));
        let (back, closed) = (&outcomes[0][slot], &outcomes[1][slot]);
        if !back.iter().any(|line| line.contains(&format!("session={session} "))) {
            found.push(format!("session {session} was not resumed: {back:?}"));
        }
        if !closed.iter().any(|line| line.starts_with("close ") && line.contains("err=0")) {
            found.push(format!("session {session} was not closed: {closed:?}"));
        }
    }
}

pub fn state(server: &Server) -> io::Result<State> {
    // The dump's own session takes two zxids, so the zxid is read after it.
    let dump = dump(server)?;
    let (zxid, nodes) = (server.figure("srvr", "Zxid"), server.figure("srvr", "Node count"));
    Ok(State { zxid, nodes, dump })
}

fn dump(server: &Server) -> io::Result<Dump> {
    tree::dump(server.addr, true, View::Files).map_err(io::Error::other)
}

pub fn compare(server: &Server, before: &State, found: &mut Vec<String>) -> io::Result<()> {
    let (zxid, nodes) = (server.figure("srvr", "Zxid"), server.figure("srvr", "Node count"));
    for (what, was, is) in [("zxid", &before.zxid, &zxid), ("node count", &before.nodes, &nodes)] {
        if was != is {
            found.push(format!("{what} was {was} and is {is}"));
        }
    }
    found.extend(tree::differences(&before.dump, &dump(server)?));
    Ok(())
}

/// Reports differences between two servers that started from copies of the same files.
pub fn compare_twins(a: &Server, b: &Server, found: &mut Vec<String>) -> io::Result<()> {
    let (a, b) = (state(a)?, state(b)?);
    if (&a.zxid, &a.nodes) != (&b.zxid, &b.nodes) {
        found.push(format!(
            "zxid {} on one, {} on the other; nodes {} and {}",
            a.zxid, b.zxid, a.nodes, b.nodes
        ));
    }
    found.extend(tree::differences(&a.dump, &b.dump));
    Ok(())
}

/// Reports digest mismatches: every server recomputes the digest of each transaction it reads and compares it with the log's.
///
/// * `sealed_zxid`: zxid of the digest in the snapshot that the server has loaded. Java writes it while the next transaction may be
///   half applied, and counts a mismatch at this zxid twice at its next start, although its tree is right at the next one (G-21).
pub fn judge_digests(server: &Server, sealed_zxid: Option<i64>, found: &mut Vec<String>) {
    let log = server.log();
    let alarms: Vec<&str> = log
        .lines()
        .filter(|line| {
            line.contains("Digests are not matching") || line.contains("digest mismatch")
        })
        .collect();
    let count = server.figure("mntr", "zk_digest_mismatches_count");
    let is_fuzzy = |line: &&str| {
        sealed_zxid.is_some_and(|zxid| line.ends_with(&format!("Value is Zxid. Value:{zxid}")))
    };
    if server.kind == Kind::Java && count == "2" && alarms.iter().all(is_fuzzy) {
        println!("  Java finds the digest of its own snapshot early by a transaction");
        return;
    }
    if count != "0" {
        found.push(format!("zk_digest_mismatches_count is {count}"));
    }
    if let Some(line) = alarms.first() {
        found.push(format!("its log says: {line}"));
    }
}
