//! Any bytes as a file that ZooKeeper's toolkits print, repair, chop, compare or sum up: each ends with an exit code or a reason, in
//! the memory of a few records, and another run prints the same.
//!
//! The first byte chooses the tool, and whether the other bytes are the file, or what is in it, so that the fuzzer reaches the
//! code after the checksums. The second byte chooses among the tool's options.

use crate::log::sealed;
use crate::memory::within_memory_of;
use oxkeeper::model::Zxid;
use oxkeeper::store::names::{Packing, snapshot_name};
use oxkeeper::store::{RealDisk, SnapshotWriter, Trailers};
use oxkeeper::tools::toolkits::{self, Streams, Tool};
use std::fs;
use std::path::{Path, PathBuf};

/// Buffers of files, and what an input can account for.
const MEMORY_MAX: usize = 12 << 20;
/// Where files live in memory.
const FAST: &str = "/dev/shm";

const PACKINGS: [Packing; 3] = [Packing::Plain, Packing::Gzip, Packing::Snappy];

/// A folder of this input alone.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let within = if Path::new(FAST).is_dir() { FAST.into() } else { std::env::temp_dir() };
        let folder = within.join(format!("oxkeeper-fuzz-{}", std::process::id()));
        // An input that ended this process's predecessor may have left one.
        _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder");
        Self(folder)
    }

    /// A log file.
    fn log(&self, bytes: &[u8], is_sealed: bool) -> String {
        let path = self.0.join("log.1");
        let sealed = if is_sealed { sealed(bytes) } else { bytes.to_vec() };
        fs::write(&path, sealed).expect("room");
        path.display().to_string()
    }

    /// A snapshot.
    fn snapshot(&self, bytes: &[u8], is_sealed: bool, packing: Packing) -> String {
        let zxid = Zxid::from_wire(0x1f).expect("a zxid");
        let path = self.0.join(snapshot_name(zxid, packing));
        if is_sealed {
            let writer = SnapshotWriter::create(&RealDisk, &self.0, zxid, packing);
            let mut writer = writer.expect("a file");
            writer.body(bytes).expect("room");
            writer.finish(Trailers::default()).expect("room");
        } else {
            fs::write(&path, bytes).expect("room");
        }
        path.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// What a tool printed and how it ended, without the lines that say how long it took, or when ncdu's JSON was made.
fn run(tool: Tool, arguments: &[String]) -> (String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut answers = &b"No\nmaybe Yes\n\n1\n/a\nAbort\n"[..];
    let mut streams = Streams { input: &mut answers, out: &mut out, err: &mut err };
    let ended = match tool(arguments, &mut streams) {
        Ok(code) => {
            assert!(code <= 2, "exit code {code}");
            code.to_string()
        }
        Err(failed) => failed.to_string(),
    };
    assert!(!ended.trim().is_empty(), "a tool that gives up says why");
    let text = String::from_utf8_lossy(&out);
    let is_lasting = |line: &&str| !line.ends_with(" seconds") && !line.contains("timestamp");
    let lasting = text.lines().filter(is_lasting).collect::<Vec<_>>();
    (lasting.join("\n"), ended)
}

pub fn target(input: &[u8]) {
    let [choice, options, bytes @ ..] = input else { return };
    let is_sealed = choice % 2 == 1;
    let has = |bit: u8| options & 1 << bit != 0;
    let packing = PACKINGS[usize::from(options >> 6) % PACKINGS.len()];
    let scratch = Scratch::new();
    let snapshot = || scratch.snapshot(bytes, is_sealed, packing);
    let log = || scratch.log(bytes, is_sealed);
    let numbers = ["0", "1", "0x1f", "-1", "9223372036854775807"];
    let number = numbers[usize::from(options >> 3) % numbers.len()].to_owned();
    let (tool, mut arguments): (Tool, Vec<String>) = match choice / 2 % 6 {
        0 => (toolkits::txn_log, vec![log()]),
        1 => {
            // With answers of an operator, or with all checksums repaired.
            let how = if has(1) { "-y" } else { "-v" }.to_owned();
            (toolkits::txn_log, vec!["-r".to_owned(), how, log()])
        }
        2 => {
            let to = scratch.0.join("log.to").display().to_string();
            (toolkits::log_chopper, vec![number, log(), to])
        }
        3 => {
            let data = if has(1) { "-d" } else { "-json" }.to_owned();
            (
                toolkits::snapshot_format,
                [data, snapshot()].into_iter().skip(usize::from(has(2))).collect(),
            )
        }
        4 => {
            let (left, small) = (snapshot(), "0".to_owned());
            let how = if has(1) { "-d" } else { "-i" };
            let flags = ["-l", &left, "-r", &left, "-b", &small, "-n", &small, how];
            (toolkits::snapshot_compare, flags.map(str::to_owned).to_vec())
        }
        _ => {
            let znode = if has(1) { "/" } else { "/a" }.to_owned();
            (toolkits::snapshot_summary, vec![snapshot(), znode, number])
        }
    };
    if has(0) {
        arguments.push("--json".to_owned());
    }
    let first = within_memory_of(MEMORY_MAX, || run(tool, &arguments));
    let fixed = scratch.0.join("log.1.fixed");
    if fixed.exists() {
        let (printed, _) = run(toolkits::txn_log, &[fixed.display().to_string()]);
        let repairs_all = arguments.iter().any(|argument| argument == "-y");
        assert!(!repairs_all || !printed.contains("CRC ERROR"), "a repaired file is damaged");
        // A recovery that finds one does not begin.
        fs::remove_file(&fixed).expect("it is there");
    }
    assert_eq!(first, run(tool, &arguments), "another run of {arguments:?}");
}
