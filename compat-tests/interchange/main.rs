//! One data directory under two servers in turn: what one wrote, the other must find.
//!
//!     cargo test --release --test interchange -- --ops 3000 --seed 7
//!
//! Java writes, stops, and the other server starts on its files, is compared, writes more, stops; then Java again. The
//! same with the other server first, and all of it once with SIGTERM and once with SIGKILL.

#![allow(clippy::print_stdout, reason = "the report of this program is its output")]

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "shared with the differential test, which uses other parts")]
mod common;

use common::choices::Limits;
use common::generate::{Generator, Mode};
use common::script::Script;
use common::server::{Kind, Server};
use common::side::{Outcome, Side};
use common::tree::{self, Dump, View};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const DURABLE: &str = "forceSync=yes\n";
/// Snapshots come often, so that a start reads one that was taken while writes went on, and the log behind it.
const SNAPSHOTS: &str = "snapCount=400\n";
const SCRIPT_OPS: usize = 150;

struct Args {
    ops: usize,
    seed: u64,
    stage: u8,
    other: Kind,
    /// Tear the end off the log between turns: every turn must notice.
    tear: bool,
}

const USAGE: &str = "\
interchange: two servers take turns on one data directory
  --ops N         operations per turn, default 3000
  --seed N        of the scripts, default 1
  --stage 1|2     2: everything a client can send; default 1
  --against java  both are Java
  --ox PATH       the other server's binary; default the one cargo has built
  --tear          lose the last txn between turns, which must be noticed (the run then fails)";

fn main() -> ExitCode {
    let args = match parse(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => return ExitCode::SUCCESS,
        Err(message) => {
            println!("{message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut sound = true;
    for gently in [true, false] {
        let mut directions = vec![[Kind::Java, args.other.clone(), Kind::Java]];
        // Between two of a kind there is only one direction.
        if args.other != Kind::Java {
            directions.push([args.other.clone(), Kind::Java, args.other.clone()]);
        }
        for turns in directions {
            match take_turns(&args, &turns, gently) {
                Ok(findings) if findings.is_empty() => println!("  all equal"),
                Ok(findings) => {
                    sound = false;
                    findings.iter().for_each(|finding| println!("  DIFFERS {finding}"));
                }
                Err(error) => {
                    sound = false;
                    println!("  FAILED {error}");
                }
            }
        }
    }
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Args>, String> {
    let other = Kind::Ox(PathBuf::from(env!("CARGO_BIN_EXE_oxkeeper")));
    let mut args = Args { ops: 3000, seed: 1, stage: 1, other, tear: false };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("{text} is no number"));
        match word.as_str() {
            "--ops" => args.ops = number(value()?)? as usize,
            "--seed" => args.seed = number(value()?)?,
            "--stage" => args.stage = if number(value()?)? > 1 { 2 } else { 1 },
            "--against" => match value()?.as_str() {
                "java" => args.other = Kind::Java,
                other => return Err(format!("--against {other}: only java is known")),
            },
            "--ox" => args.other = Kind::Ox(value()?.into()),
            "--tear" => args.tear = true,
            "--help" => {
                println!("{USAGE}");
                return Ok(None);
            }
            "--list" => {
                println!("0 tests, 0 benchmarks");
                return Ok(None);
            }
            other => println!("(ignored: {other})"),
        }
    }
    Ok(Some(args))
}

/// What a server holds.
struct State {
    zxid: String,
    nodes: String,
    dump: Dump,
}

/// Clients whose sessions outlive the server they began on.
struct Survivors {
    side: Side,
    sessions: Vec<(usize, &'static str)>,
}

// rows: D-48 D-67 D-68 P-16
fn take_turns(args: &Args, turns: &[Kind], gently: bool) -> io::Result<Vec<String>> {
    let home = tempfile::tempdir()?;
    // What makes Java itself predict a wrong digest would hide what this looks for.
    let limits =
        Limits { stage: args.stage, sound_digests: true, delete_container: false, only: &[] };
    // Java's replay of multi over a snapshot taken amid writes leaves cversions behind (G-05), and so alarms about
    // itself now and then (G-21). With multi there are only the snapshots of each start.
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
        if *kind == Kind::Java {
            judge_digests(&server, &mut found);
        }
        findings.extend(
            found.into_iter().map(|finding| format!("turn {turn}, {}: {finding}", names[turn])),
        );
        left = Some((state, survivors));
        server.stop(gently)?;
        if args.tear {
            tear_newest_log(&home.path().join("data/version-2"))?;
        }
    }
    // What the last one wrote is read by nobody else, so the first looks once more.
    let server = Server::start(turns[1].clone(), home.path(), &settings)?;
    if let Some((state, survivors)) = left {
        let mut found = Vec::new();
        compare(&server, &state, &mut found)?;
        resume(&server, survivors, &mut found);
        if turns[1] == Kind::Java {
            judge_digests(&server, &mut found);
        }
        findings.extend(
            found.into_iter().map(|finding| format!("at the end, {}: {finding}", names[1])),
        );
    }
    Ok(findings)
}

fn name(kind: &Kind) -> &'static str {
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

/// Opens sessions with ephemerals and leaves them without closing.
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

/// Takes the sessions up again on the next server: they and their ephemerals must be there.
fn resume(server: &Server, mut survivors: Survivors, found: &mut Vec<String>) {
    survivors.side.move_to(server.addr);
    for (slot, session) in survivors.sessions {
        let script = format!(
            "c{slot} reconnect timeout=300000 zxid=last flag=false password=true takeover=false\nc{slot} close\n"
        );
        let outcomes = run(&mut survivors.side, &script.parse().expect("a script written here"));
        let (back, closed) = (&outcomes[0][slot], &outcomes[1][slot]);
        if !back.iter().any(|line| line.contains(&format!("session={session} "))) {
            found.push(format!("session {session} was not taken up: {back:?}"));
        }
        if !closed.iter().any(|line| line.starts_with("close ") && line.contains("err=0")) {
            found.push(format!("session {session} was not closed: {closed:?}"));
        }
    }
}

fn state(server: &Server) -> io::Result<State> {
    // The dump's own session takes two zxids, so they are read behind it.
    let dump = dump(server)?;
    let (zxid, nodes) = (server.figure("srvr", "Zxid"), server.figure("srvr", "Node count"));
    Ok(State { zxid, nodes, dump })
}

fn dump(server: &Server) -> io::Result<Dump> {
    tree::dump(server.addr, true, View::Files).map_err(io::Error::other)
}

fn compare(server: &Server, before: &State, found: &mut Vec<String>) -> io::Result<()> {
    let (zxid, nodes) = (server.figure("srvr", "Zxid"), server.figure("srvr", "Node count"));
    for (what, was, is) in [("zxid", &before.zxid, &zxid), ("node count", &before.nodes, &nodes)] {
        if was != is {
            found.push(format!("{what} was {was} and is {is}"));
        }
    }
    found.extend(tree::differences(&before.dump, &dump(server)?));
    Ok(())
}

/// Java recomputes the digest of every txn it reads and compares it with the one in the file.
fn judge_digests(server: &Server, found: &mut Vec<String>) {
    let count = server.figure("mntr", "zk_digest_mismatches_count");
    if count != "0" {
        found.push(format!("zk_digest_mismatches_count is {count}"));
    }
    let log = server.log();
    if let Some(line) = log.lines().find(|line| line.contains("Digests are not matching")) {
        found.push(format!("its log says: {line}"));
    }
}
