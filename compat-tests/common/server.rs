//! A server under test: started in a directory, asked for four-letter words, stopped.

use super::java;
use super::ports::free_port;
use oxkeeper::client;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Which implementation a server is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Kind {
    Java,
    Ox(PathBuf),
}

/// How long a start or a stop may take before the run fails: a bound against hanging, not an expectation.
const PATIENCE: Duration = Duration::from_secs(60);

/// Session timeouts are long, so that no session expires because a machine is slow: every session is closed explicitly, except those
/// that a test lets expire, for which it sets other timeouts. Empty containers are never removed for the same reason.
const CONFIG: &str = "tickTime=2000\nadmin.enableServer=false\nmaxClientCnxns=0\n4lw.commands.whitelist=*\nenforceQuota=true\n\
    minSessionTimeout=300000\nmaxSessionTimeout=600000\n\
    DigestAuthenticationProvider.superDigest=super:xQJmxLMiHGwaqBvst5y6rkB6HQs=\n";
const NO_SWEEP: &str = "-Dznode.container.checkIntervalMs=86400000";

/// Authentication data for `superDigest` above: the superuser, who may read every node.
pub const SUPER: &[u8] = b"super:admin";

pub struct Server {
    pub kind: Kind,
    pub addr: SocketAddr,
    home: PathBuf,
    /// Length of the log file when this server started: an earlier server in the same folder wrote the text before that.
    log_start: usize,
    child: Option<Child>,
}

impl Server {
    /// Starts a server whose configuration, log and data live in `home`, and waits until it serves.
    ///
    /// `settings`: further lines of zoo.cfg.
    ///
    /// # Errors
    /// When the server cannot be started, exits, or does not serve within a minute. The error quotes its log.
    pub fn start(kind: Kind, home: &Path, settings: &str) -> io::Result<Self> {
        let port = free_port();
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let data = home.join("data");
        fs::create_dir_all(&data)?;
        let config = format!(
            "{CONFIG}{settings}\nclientPortAddress=127.0.0.1\nclientPort={port}\ndataDir={}\n",
            data.display()
        );
        let file = home.join("zoo.cfg");
        fs::write(&file, config)?;
        let log = File::options().create(true).append(true).open(home.join("log"))?;
        let log_start = usize::try_from(log.metadata()?.len()).expect("a log fits in memory");
        let mut command = command(&kind, &file)?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = Some(command.spawn()?);
        let mut server = Self { kind, addr, home: home.into(), log_start, child };
        server.wait_until_serving()?;
        Ok(server)
    }

    fn wait_until_serving(&mut self) -> io::Result<()> {
        let start = Instant::now();
        loop {
            // Java may accept a four-letter word too early, fail, and leave the socket open: ask again instead of waiting.
            let answer = client::word(self.addr, "srvr", Duration::from_secs(1));
            if answer.is_ok_and(|answer| answer.contains("Mode: ")) {
                return Ok(());
            }
            let ended =
                self.child.as_mut().and_then(|child| child.try_wait().transpose()).transpose()?;
            if ended.is_some() || start.elapsed() > PATIENCE {
                let how = ended.map_or("it does not serve".into(), |status| status.to_string());
                let log = self.log();
                let tail: Vec<_> = log.lines().rev().take(20).collect();
                let tail = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
                return Err(io::Error::other(format!("start {:?}: {how}\n{tail}", self.kind)));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn word(&self, word: &str) -> Result<String, client::ClientError> {
        client::word(self.addr, word, PATIENCE)
    }

    /// The value of `key` in the answer to a four-letter word, as `srvr` and `mntr` print it.
    pub fn figure(&self, word: &str, key: &str) -> String {
        let answer = self.word(word).unwrap_or_else(|error| format!("{key} unknown: {error}"));
        let value = answer.lines().find_map(|line| line.strip_prefix(key));
        value.map_or("missing".into(), |value| value.trim_start_matches([':', ' ', '\t']).into())
    }

    /// All that the server's process has printed.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.home.join("log")).unwrap_or_default();
        String::from_utf8_lossy(bytes.get(self.log_start..).unwrap_or_default()).into_owned()
    }

    /// Stops the process with SIGTERM (`gently`) or SIGKILL.
    ///
    /// # Errors
    /// When the process still runs a minute later.
    pub fn stop(mut self, gently: bool) -> io::Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let signal = if gently { Signal::TERM } else { Signal::KILL };
        kill_process(Pid::from_child(&child), signal)?;
        let start = Instant::now();
        while child.try_wait()?.is_none() {
            if start.elapsed() > PATIENCE {
                child.kill()?;
                return Err(io::Error::other("the server outlived the signal by a minute"));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn command(kind: &Kind, config: &Path) -> io::Result<Command> {
    let mut words: Vec<String> = Vec::new();
    match kind {
        Kind::Ox(binary) => words.push(binary.display().to_string()),
        Kind::Java => {
            let jars = java::jars()?;
            // A small heap with the serial collector: two of these may run while a compiler runs, on small machines.
            words.extend(["java", "-Xmx512m", "-XX:+UseSerialGC", NO_SWEEP].map(String::from));
            words.push("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn".into());
            words.extend(["-cp".into(), format!("{}/*", jars.display())]);
            words.push("org.apache.zookeeper.server.quorum.QuorumPeerMain".into());
        }
    }
    words.push(config.display().to_string());
    // If setpriv is installed, the server is killed when the runner ends for whatever reason.
    let has_setpriv = Path::new("/usr/bin/setpriv").exists();
    let prefix: &[&str] =
        if has_setpriv { &["/usr/bin/setpriv", "--pdeathsig", "KILL"] } else { &[] };
    let mut all = prefix.iter().map(|word| (*word).to_owned()).chain(words);
    let mut command = Command::new(all.next().expect("a command has a first word"));
    command.args(all).env("SERVER_JVMFLAGS", NO_SWEEP);
    Ok(command)
}
