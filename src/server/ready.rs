//! What a server that begins to serve can tell about itself.

use super::clock::Clock;
use crate::config::Config;
use crate::store::Recovered;
use crate::store::decide::Start;
use crate::tree::Tree;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

/// How the start went.
#[derive(Clone, Debug)]
pub struct Ready {
    /// Where clients are served.
    pub address: SocketAddr,
    pub data_dir: PathBuf,
    pub data_log_dir: PathBuf,
    /// There was nothing on the disk.
    pub fresh: bool,
    pub znodes: u64,
    pub sessions: u64,
    pub zxid: String,
    /// Zxid and bytes of the snapshot that was loaded.
    pub snapshot: Option<(String, u64)>,
    /// Transactions replayed from the log.
    pub txns: u64,
    /// From the start of the process.
    pub took_ms: u64,
}

impl Ready {
    pub(super) fn new(
        address: SocketAddr,
        config: &Config,
        tree: &Tree,
        recovered: &Recovered,
        clock: Clock,
    ) -> Self {
        Self {
            address,
            data_dir: config.data_dir.clone(),
            data_log_dir: config.data_log_dir.clone(),
            fresh: recovered.start == Start::Empty,
            znodes: tree.node_count() as u64,
            sessions: tree.sessions().len() as u64,
            zxid: tree.last_zxid().to_string(),
            snapshot: recovered.snapshot.map(|(zxid, bytes)| (zxid.to_string(), bytes)),
            txns: recovered.txns,
            took_ms: clock.now_ms(),
        }
    }

    /// What recovery did, in words.
    pub fn restored(&self) -> String {
        if self.fresh {
            return "nothing yet: a new, empty tree".to_owned();
        }
        let snapshot = match &self.snapshot {
            Some((zxid, bytes)) => format!("snapshot {zxid} ({} MB) and ", megabytes(*bytes)),
            None => String::new(),
        };
        let seconds = self.took_ms as f64 / 1000.0;
        format!(
            "{} znodes, {} sessions at {} from {snapshot}{} logged transactions in {seconds:.2} s",
            self.znodes, self.sessions, self.zxid, self.txns
        )
    }

    /// The lines for whoever started it.
    ///
    /// * `settings`: where they came from.
    pub fn banner(&self, version: &str, settings: &str) -> String {
        let mut text = format!("oxkeeper {version} serves ZooKeeper clients on {}\n", self.address);
        let mut line = |what: &str, value: &str| _ = writeln!(text, "  {what:8}  {value}"); // A string never refuses.
        line("settings", settings);
        line("data", &self.data_dir.display().to_string());
        if self.data_log_dir != self.data_dir {
            line("log", &self.data_log_dir.display().to_string());
        }
        line("restored", &self.restored());
        line("try", &format!("echo srvr | nc 127.0.0.1 {}", self.address.port()));
        text
    }
}

/// With one digit, so that small files are not 0.
fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_tells_what_an_operator_looks_for() {
        let mut ready = Ready {
            address: SocketAddr::from(([127, 0, 0, 1], 2181)),
            data_dir: "/data".into(),
            data_log_dir: "/data".into(),
            fresh: true,
            znodes: 5,
            sessions: 0,
            zxid: "0x0".into(),
            snapshot: None,
            txns: 0,
            took_ms: 12,
        };
        let fresh = "oxkeeper 0.1.0 serves ZooKeeper clients on 127.0.0.1:2181\n  settings  zoo.cfg\n  \
            data      /data\n  restored  nothing yet: a new, empty tree\n  try       echo srvr | nc 127.0.0.1 2181\n";
        assert_eq!(ready.banner("0.1.0", "zoo.cfg"), fresh);
        ready =
            Ready { fresh: false, snapshot: Some(("0x2a".into(), 3_450_000)), txns: 7, ..ready };
        ready.data_log_dir = "/log".into();
        let restored = "5 znodes, 0 sessions at 0x0 from snapshot 0x2a (3.5 MB) and 7 logged transactions in 0.01 s";
        assert_eq!(ready.restored(), restored);
        assert!(ready.banner("0.1.0", "zoo.cfg").contains("\n  log       /log\n"));
    }
}
