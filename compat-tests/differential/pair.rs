//! Two servers, and one case run on both.

use crate::proxy::{Fault, Proxy};
use common::script::{SLOTS, Script};
use common::server::{Kind, Server};
use common::side::{Outcome, Side};
use common::tree::{self, View};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use tempfile::TempDir;

/// The servers to compare, and their settings.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The server that is compared with Java, which is server A.
    pub b: Kind,
    /// What a proxy in front of B corrupts, to check that the comparison detects it.
    pub fault: Option<Fault>,
    /// Dump trees as the superuser, after an auth packet.
    pub as_super: bool,
    /// Lines of zoo.cfg, each after a line break.
    pub settings: String,
}

/// Two running servers: A is Java, B is the one under test.
pub struct Pair {
    a: Server,
    b: Server,
    proxy: Option<Proxy>,
    as_super: bool,
    /// The roots of the scripts in which clients raced.
    racy_roots: Vec<String>,
    _home: TempDir,
}

/// Where two servers differed.
#[derive(Clone, Debug)]
pub struct Difference {
    pub script: usize,
    /// `None`: the replies were equal, but the state afterwards was not.
    pub step: Option<usize>,
    /// One line per finding, ready to print.
    pub text: String,
}

/// Counts of operations, errors and events, taken from A; B's are the same where nothing differs.
#[derive(Default)]
pub struct Tally {
    pub ops: u64,
    pub by_verb: BTreeMap<&'static str, u64>,
    pub errors: BTreeMap<i32, u64>,
    pub events: u64,
    pub scripts: u64,
}

impl Pair {
    /// Starts both servers on empty directories.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start(setup: &Setup) -> io::Result<Self> {
        let home = tempfile::tempdir()?;
        let start = |name: &str, kind: Kind| {
            let dir: PathBuf = home.path().join(name);
            std::fs::create_dir(&dir)?;
            // Nothing on disk is compared, and an fsync for each write would take most of the time.
            Server::start(kind, &dir, &format!("forceSync=no{}", setup.settings))
        };
        let (a, b) = (start("a", Kind::Java)?, start("b", setup.b.clone())?);
        let proxy = setup.fault.map(|fault| Proxy::start(b.addr, fault)).transpose()?;
        let as_super = setup.as_super;
        Ok(Self { a, b, proxy, as_super, racy_roots: Vec::new(), _home: home })
    }

    fn addresses(&self) -> [SocketAddr; 2] {
        [self.a.addr, self.proxy.as_ref().map_or(self.b.addr, |proxy| proxy.addr)]
    }

    /// Runs one script on both servers and stops at the first difference.
    ///
    /// `number`: the script's number, for the report. `root`: the znode below which it creates its znodes.
    pub fn run(
        &mut self,
        number: usize,
        root: &str,
        script: &Script,
        tally: &mut Tally,
    ) -> Result<(), Box<Difference>> {
        let racy = script.is_racy();
        if racy {
            self.racy_roots.push(root.into());
        }
        let [mut a, mut b] = self.addresses().map(|addr| Side::new(addr, racy));
        let mut difference = None;
        for (at, step) in script.steps.iter().enumerate() {
            for side in [&mut a, &mut b] {
                side.send(step);
            }
            let outcomes = [a.collect(), b.collect()];
            for line in step {
                *tally.by_verb.entry(line.op.verb()).or_default() += 1;
                tally.ops += 1;
            }
            if outcomes[0] != outcomes[1] {
                let logs = [&self.a, &self.b].map(end_of_log_if_dead);
                let text = beside(&outcomes) + &logs.concat();
                difference = Some(Difference { script: number, step: Some(at), text });
                break;
            }
        }
        tally.events += a.counts.events;
        tally.scripts += 1;
        for (code, times) in &a.counts.errors {
            *tally.errors.entry(*code).or_default() += times;
        }
        for side in [&mut a, &mut b] {
            side.close_all();
        }
        let left = difference.or_else(|| {
            let zxids = self.zxids();
            let logs = [&self.a, &self.b].map(end_of_log_if_dead).concat();
            let text = format!("srvr Zxid\n  A: {}\n  B: {}\n{logs}", zxids[0], zxids[1]);
            // Two servers that both died don't count as equal.
            (!even(&zxids)).then_some(Difference { script: number, step: None, text })
        });
        left.map_or(Ok(()), |difference| Err(Box::new(difference)))
    }

    fn zxids(&self) -> [String; 2] {
        [&self.a, &self.b].map(|server| server.figure("srvr", "Zxid"))
    }

    /// Whether another case can run on these two: both are alive and have the same zxid.
    pub fn is_even(&self) -> bool {
        even(&self.zxids())
    }

    /// Compares the trees, `/zookeeper` included.
    pub fn compare_trees(&self, number: usize) -> Result<usize, Box<Difference>> {
        let difference = |text| Box::new(Difference { script: number, step: None, text });
        let view = View::Run { racy: &self.racy_roots };
        let [a, b] = self.addresses().map(|addr| tree::dump(addr, self.as_super, view));
        let (a, b) = match (a, b) {
            (Ok(a), Ok(b)) => (a, b),
            (a, b) => {
                let text = format!("tree dump\n  A: {:?}\n  B: {:?}\n", a.err(), b.err());
                return Err(difference(text));
            }
        };
        let found = tree::differences(&a, &b);
        if found.is_empty() { Ok(a.len()) } else { Err(difference(found.join("\n"))) }
    }
}

fn even([a, b]: &[String; 2]) -> bool {
    a == b && a.starts_with("0x")
}

/// The end of the log of a server that no longer answers; empty while it answers.
fn end_of_log_if_dead(server: &Server) -> String {
    if server.word("srvr").is_ok() {
        return String::new();
    }
    let log = server.log();
    let tail = &log[log.floor_char_boundary(log.len().saturating_sub(2000))..];
    format!("\n{:?} no longer answers; its log ends:\n{tail}\n", server.kind)
}

/// The outcomes of one step, differing lines marked.
fn beside([a, b]: &[Outcome; 2]) -> String {
    let mut text = String::new();
    for slot in 0..SLOTS {
        for at in 0..a[slot].len().max(b[slot].len()) {
            let [left, right] =
                [a, b].map(|side| side[slot].get(at).map_or("(nothing)", String::as_str));
            if left == right {
                text.push_str(&format!("  c{slot}    both: {left}\n"));
            } else {
                text.push_str(&format!("  c{slot} ->    A: {left}\n  c{slot} ->    B: {right}\n"));
            }
        }
    }
    text
}
