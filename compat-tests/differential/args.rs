//! The command line.

use crate::pair::Setup;
use crate::proxy::Fault;
use common::choices::Limits;
use common::generate::Mode;
use common::server::Kind;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

pub struct Args {
    pub ops: u64,
    pub seed: u64,
    pub limits: Limits,
    /// `None`: all in turn.
    pub mode: Option<Mode>,
    pub setup: Setup,
    pub replay: Option<PathBuf>,
    pub budget: Duration,
    pub self_test: bool,
    pub expiries: usize,
}

pub const USAGE: &str = "\
differential: the same operations on Java (A) and on another server (B), compared
  --ops N             operations, default 10000, or 1000000 with OXKEEPER_LONG in the environment
  --seed N            seed of the scripts, default 1; `random` takes one from the clock
  --expiries N        sessions that are left to expire, default 2
  --only VERB,VERB    only these requests, as scripts write them: multi,createTTL
  --set KEY=VALUE     a line for both servers' zoo.cfg; may be repeated
  --mode M            only lockstep, pipelined or racy scripts
  --against java      B is another Java server
  --ox PATH           B is this binary; default the one cargo has built
  --replay FILE       run a file that an earlier difference wrote
  --shrink SECONDS    time limit for shrinking a difference, default 120
  --delete-container  clients send deleteContainer too (Java lets any client)
  --fault NAME        a proxy corrupts B's answers; --self-test tries every fault";

/// `None` when there is nothing to run.
///
/// # Errors
/// What to print when the command line cannot be honoured.
pub fn parse(words: impl Iterator<Item = String>) -> Result<Option<Args>, String> {
    let mut words = words.peekable();
    let ox = Kind::Ox(PathBuf::from(env!("CARGO_BIN_EXE_oxkeeper")));
    let mut args = Args {
        ops: if std::env::var_os("OXKEEPER_LONG").is_some() { 1_000_000 } else { 10_000 },
        seed: 1,
        limits: Limits { stage: 2, sound_digests: false, delete_container: false, only: &[] },
        mode: None,
        setup: Setup { b: ox, fault: None, as_super: false, settings: String::new() },
        replay: None,
        budget: Duration::from_secs(120),
        self_test: false,
        expiries: 2,
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value\n{USAGE}"));
        match word.as_str() {
            "--ops" => args.ops = number(&value()?)?,
            "--seed" => args.seed = seed(&value()?)?,
            "--expiries" => args.expiries = number(&value()?)?,
            "--only" => {
                args.limits.only = value()?.split(',').map(String::from).collect::<Vec<_>>().leak()
            }
            "--set" => args.setup.settings += &format!("\n{}", value()?),
            "--mode" => args.mode = Some(mode(&value()?)?),
            "--against" => match value()?.as_str() {
                "java" => args.setup.b = Kind::Java,
                other => return Err(format!("--against {other}: only java is known")),
            },
            "--ox" => args.setup.b = Kind::Ox(value()?.into()),
            "--replay" => args.replay = Some(value()?.into()),
            "--shrink" => args.budget = Duration::from_secs(number(&value()?)?),
            "--delete-container" => args.limits.delete_container = true,
            "--fault" => args.setup.fault = Some(fault(&value()?)?),
            "--self-test" => args.self_test = true,
            "--help" => {
                println!("{USAGE}");
                return Ok(None);
            }
            // As libtest's harness answers --list; this target has no tests in that sense.
            "--list" => {
                println!("0 tests, 0 benchmarks");
                return Ok(None);
            }
            // Arguments that `cargo test` passes to every target.
            other => println!("(ignored: {other})"),
        }
    }
    // Without auth among the requests, B need not implement it.
    let only = args.limits.only;
    args.setup.as_super = only.is_empty() || only.iter().any(|verb| verb == "auth");
    Ok(Some(args))
}

fn number<T: FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word} is no number, or out of range"))
}

fn seed(word: &str) -> Result<u64, String> {
    if word != "random" {
        return number(word);
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Ok(now.map_or(1, |since| u64::from(since.subsec_nanos())))
}

fn mode(word: &str) -> Result<Mode, String> {
    Ok(match word {
        "lockstep" => Mode::Lockstep,
        "pipelined" => Mode::Pipelined,
        "racy" => Mode::Racy,
        _ => return Err(format!("--mode {word}: lockstep, pipelined or racy")),
    })
}

fn fault(word: &str) -> Result<Fault, String> {
    let named = |fault: &Fault| format!("{fault:?}").eq_ignore_ascii_case(word);
    Fault::ALL.into_iter().find(named).ok_or(format!("--fault {word}: one of {:?}", Fault::ALL))
}

impl Args {
    /// How to call this program again with the same servers.
    pub fn command(&self) -> String {
        let b = match &self.setup.b {
            Kind::Java => "--against java".into(),
            Kind::Ox(path) => format!("--ox {}", path.display()),
        };
        let fault = self.setup.fault.map_or(String::new(), |fault| format!(" --fault {fault:?}"));
        let settings = self.setup.settings.replace('\n', " --set ");
        format!("cargo test --test differential -- {b}{fault}{settings}")
    }
}
