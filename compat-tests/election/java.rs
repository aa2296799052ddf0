//! The Java servers of one ensemble, each with its own folder.

use common::java;
use common::ports::free_ports;
use oxkeeper::client;
use oxkeeper::model::View;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A bound against hanging.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The learner, election and client ports of each server, and the `server.N` lines with them.
pub struct Ensemble {
    ports: BTreeMap<i64, [u16; 3]>,
    lines: String,
    folder: tempfile::TempDir,
}

impl Ensemble {
    pub fn new(voters: &[i64], observers: &[i64]) -> io::Result<Self> {
        let mut ports = BTreeMap::new();
        let mut lines = String::new();
        for id in voters.iter().chain(observers) {
            let [quorum, election, clients] = free_ports();
            ports.insert(*id, [quorum, election, clients]);
            let role = if voters.contains(id) { "participant" } else { "observer" };
            lines +=
                &format!("server.{id}=127.0.0.1:{quorum}:{election}:{role};127.0.0.1:{clients}\n");
        }
        Ok(Self { ports, lines, folder: tempfile::tempdir()? })
    }

    pub fn view(&self) -> View {
        View::parse(&format!("{}version=0", self.lines)).expect("the lines above")
    }

    pub fn election_port(&self, id: i64) -> u16 {
        self.ports[&id][1]
    }

    pub fn ids(&self) -> impl Iterator<Item = i64> {
        self.ports.keys().copied()
    }
}

/// One Java server; dropping this kills it.
pub struct Java {
    child: Child,
    clients: SocketAddr,
    log: std::path::PathBuf,
}

impl Java {
    /// Starts server `id`. A server that was killed restarts from its files, with a new log.
    pub fn start(ensemble: &Ensemble, id: i64) -> io::Result<Self> {
        let home = ensemble.folder.path().join(id.to_string());
        let data = home.join("data");
        fs::create_dir_all(&data)?;
        fs::write(data.join("myid"), id.to_string())?;
        let config = format!(
            "tickTime=500\ninitLimit=20\nsyncLimit=10\nadmin.enableServer=false\n4lw.commands.whitelist=*\n\
             dataDir={}\n{}",
            data.display(),
            ensemble.lines
        );
        fs::write(home.join("zoo.cfg"), config)?;
        let starts = fs::read_dir(&home)?.count();
        let log = home.join(format!("log-{starts}"));
        let child = command(&home.join("zoo.cfg"), &File::create(&log)?)?.spawn()?;
        let clients = SocketAddr::from((Ipv4Addr::LOCALHOST, ensemble.ports[&id][2]));
        Ok(Self { child, clients, log })
    }

    /// All that this process has printed.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The Mode line of `srvr`; empty while the server serves no clients.
    pub fn mode(&self) -> String {
        let answer = client::word(self.clients, "srvr", Duration::from_secs(1)).unwrap_or_default();
        answer.lines().find(|line| line.starts_with("Mode: ")).unwrap_or_default().to_owned()
    }

    pub fn wait_for(&self, mode: &str) -> io::Result<()> {
        let from = Instant::now();
        while self.mode() != mode {
            if PATIENCE < from.elapsed() {
                return Err(io::Error::other(format!("never {mode}\n{}", self.log())));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    pub fn kill(mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(|_| ())
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(config: &Path, log: &File) -> io::Result<Command> {
    let jars = java::jars()?;
    let has_setpriv = Path::new("/usr/bin/setpriv").exists();
    // If setpriv is installed, the server is killed when the runner ends for whatever reason.
    let mut command = if has_setpriv {
        let mut command = Command::new("/usr/bin/setpriv");
        command.args(["--pdeathsig", "KILL", "java"]);
        command
    } else {
        Command::new("java")
    };
    command
        .args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"])
        .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=info")
        .args(["-cp", &format!("{}/*", jars.display())])
        .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
        .arg(config)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log.try_clone()?);
    Ok(command)
}
