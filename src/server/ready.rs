//! What the server prints when it starts to serve.

use super::client_ports;
use super::clock::Clock;
use crate::config::{Config, Ensemble};
use crate::model::Role;
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
    /// The secure client port.
    pub secure_address: Option<SocketAddr>,
    pub data_dir: PathBuf,
    pub data_log_dir: PathBuf,
    /// The data directory was empty.
    pub fresh: bool,
    pub znodes: u64,
    pub sessions: u64,
    pub zxid: String,
    /// Zxid and bytes of the snapshot that was loaded.
    pub snapshot: Option<(String, u64)>,
    /// Transactions replayed from the log.
    pub txns: u64,
    /// Milliseconds from the start of the process until the server was ready.
    pub took_ms: u64,
    /// The ensemble; `None`: standalone.
    pub member: Option<Membership>,
}

/// This server's part in its ensemble.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Membership {
    pub id: i64,
    pub observes: bool,
    /// Server ids of the voters and of the observers, this server included.
    pub voters: Vec<i64>,
    pub observers: Vec<i64>,
    /// Addresses of the quorum port, and of the election port.
    pub quorum: String,
    pub election: String,
}

impl Membership {
    fn of(ensemble: &Ensemble) -> Self {
        let id = ensemble.my_id;
        let of_role = |role| {
            let members = ensemble.view.members.values();
            members.filter(|member| member.role == role).map(|member| member.id.0).collect()
        };
        let own = ensemble.own();
        let places = |port: fn(&crate::model::PeerAddress) -> u16| {
            let addresses = own.into_iter().flat_map(|own| &own.addresses);
            let places = addresses.map(|at| match ensemble.listen_on_all_addresses {
                true => format!("*:{}", port(at)),
                // An IPv6 address is kept without its brackets.
                false if at.host.contains(':') => format!("[{}]:{}", at.host, port(at)),
                false => format!("{}:{}", at.host, port(at)),
            });
            places.collect::<Vec<_>>().join(" and ")
        };
        Self {
            id: id.0,
            observes: !ensemble.view.is_voter(id),
            voters: of_role(Role::Participant),
            observers: of_role(Role::Observer),
            quorum: places(|at| at.quorum_port),
            election: places(|at| at.election_port),
        }
    }

    /// The ensemble in words.
    pub fn ensemble(&self) -> String {
        let list = |ids: &[i64]| ids.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        let own = if self.observes { "observer" } else { "voter" };
        let observers = match &self.observers[..] {
            [] => String::new(),
            ids => format!("; observers {}", list(ids)),
        };
        format!("server {}, {own}; voters {}{observers}", self.id, list(&self.voters))
    }

    /// The ports for other servers in words.
    pub fn ports(&self) -> String {
        format!("{} for learners, {} for elections", self.quorum, self.election)
    }
}

impl Ready {
    pub(super) fn new(
        ports: &client_ports::Ports,
        config: &Config,
        tree: &Tree,
        recovered: &Recovered,
        clock: Clock,
    ) -> Self {
        let (address, secure_address) = ports.addresses();
        Self {
            address,
            secure_address,
            data_dir: config.data_dir.clone(),
            data_log_dir: config.data_log_dir.clone(),
            fresh: recovered.start == Start::Empty,
            znodes: tree.node_count() as u64,
            sessions: tree.sessions().len() as u64,
            zxid: tree.last_zxid().to_string(),
            snapshot: recovered.snapshot.map(|(zxid, bytes)| (zxid.to_string(), bytes)),
            txns: recovered.txns,
            took_ms: clock.now_ms(),
            member: config.ensemble.as_ref().map(Membership::of),
        }
    }

    /// What recovery did, in words.
    pub fn restored(&self) -> String {
        if self.fresh {
            return "no data found: a new, empty tree".to_owned();
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

    /// The lines printed on standard output.
    ///
    /// * `settings`: where they came from.
    pub fn banner(&self, version: &str, settings: &str) -> String {
        // A member serves no client before there is a leader.
        let serves = if self.member.is_none() { "serves" } else { "will serve" };
        let mut text =
            format!("oxkeeper {version} {serves} ZooKeeper clients on {}\n", self.address);
        // Writing to a string can't fail.
        let mut line = |what: &str, value: &str| _ = writeln!(text, "  {what:8}  {value}");
        if let Some(address) = self.secure_address {
            line("TLS", &address.to_string());
        }
        line("settings", settings);
        if let Some(member) = &self.member {
            line("ensemble", &member.ensemble());
            line("ports", &member.ports());
        }
        line("data", &self.data_dir.display().to_string());
        if self.data_log_dir != self.data_dir {
            line("log", &self.data_log_dir.display().to_string());
        }
        line("loaded", &self.restored());
        let port = self.address.port();
        if self.secure_address == Some(self.address) {
            // `nc` speaks no TLS.
            line(
                "try",
                &format!(
                    "oxkeeper 4lw HOST {port} srvr --tls-ca FILE --tls-cert FILE --tls-key FILE"
                ),
            );
        } else {
            line("try", &format!("echo srvr | nc 127.0.0.1 {port}"));
        }
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
    use crate::config::{Environment, Source, parse};

    #[test]
    fn banner_shows_address_directories_restored_data_and_ensemble() {
        let mut ready = Ready {
            address: SocketAddr::from(([127, 0, 0, 1], 2181)),
            secure_address: None,
            data_dir: "/data".into(),
            data_log_dir: "/data".into(),
            fresh: true,
            znodes: 5,
            sessions: 0,
            zxid: "0x0".into(),
            snapshot: None,
            txns: 0,
            took_ms: 12,
            member: None,
        };
        let fresh = "oxkeeper 0.1.0 serves ZooKeeper clients on 127.0.0.1:2181\n  settings  zoo.cfg\n  \
            data      /data\n  loaded    no data found: a new, empty tree\n  try       echo srvr | nc 127.0.0.1 2181\n";
        assert_eq!(ready.banner("0.1.0", "zoo.cfg"), fresh);
        ready =
            Ready { fresh: false, snapshot: Some(("0x2a".into(), 3_450_000)), txns: 7, ..ready };
        ready.data_log_dir = "/log".into();
        let restored = "5 znodes, 0 sessions at 0x0 from snapshot 0x2a (3.5 MB) and 7 logged transactions in 0.01 s";
        assert_eq!(ready.restored(), restored);
        let banner = ready.banner("0.1.0", "zoo.cfg");
        assert!(banner.contains("\n  log       /log\n"));
        ready.secure_address = Some(SocketAddr::from(([127, 0, 0, 1], 2281)));
        assert!(ready.banner("0.1.0", "zoo.cfg").contains("nc 127.0.0.1 2181\n"));
        ready.address = SocketAddr::from(([127, 0, 0, 1], 2281));
        let banner = ready.banner("0.1.0", "zoo.cfg");
        assert!(
            !banner.contains("nc ") && banner.contains("  oxkeeper 4lw HOST 2281 srvr --tls-ca")
        );
        ready.address = SocketAddr::from(([127, 0, 0, 1], 2181));
        ready.secure_address = None;

        let text = b"dataDir=/d\nclientPort=0\ninitLimit=5\nsyncLimit=2\nserver.1=a:1:2\nserver.2=[::1]:3:4\n\
            server.3=c:5:6\nserver.4=d:7:8:observer\n";
        let member = |id| {
            let source = Source { name: "zoo.cfg", text, my_id: Some(id) };
            let config = parse(source, &Environment::new(), &[]).unwrap();
            Membership::of(&config.ensemble.unwrap())
        };
        ready.member = Some(member("2"));
        let banner = ready.banner("0.1.0", "zoo.cfg");
        assert!(
            banner.starts_with("oxkeeper 0.1.0 will serve ZooKeeper clients on 127.0.0.1:2181\n")
        );
        let lines = "\n  ensemble  server 2, voter; voters 1, 2, 3; observers 4\n  \
            ports     [0:0:0:0:0:0:0:1]:3 for learners, [0:0:0:0:0:0:0:1]:4 for elections\n";
        assert!(banner.contains(lines), "{banner}");
        let observer = member("4");
        assert_eq!(observer.ensemble(), "server 4, observer; voters 1, 2, 3; observers 4");
        assert_eq!(observer.ports(), "d:7 for learners, d:8 for elections");
    }
}
