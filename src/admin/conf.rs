//! `conf`: what this server runs with.

use std::fmt::Write;
use std::path::Path;

use super::Status;
use crate::config::Config;

/// Lines `key=value`, in Java's order.
///
/// Source: `ZooKeeperServer.dumpConf`, ZooKeeper 3.9.5. A standalone server's id is always 0 there.
pub(super) fn render(config: &Config, status: &Status) -> String {
    let absolute = |dir: &Path| {
        let dir = Path::new(&status.environment.user_dir).join(dir).join("version-2");
        dir.display().to_string()
    };
    let lines: [(&str, &dyn std::fmt::Display); 12] = [
        ("clientPort", &status.client_port),
        ("secureClientPort", &-1),
        ("dataDir", &absolute(&config.data_dir)),
        ("dataDirSize", &status.data_dir_bytes),
        ("dataLogDir", &absolute(&config.data_log_dir)),
        ("dataLogSize", &status.log_dir_bytes),
        ("tickTime", &config.tick_time_ms),
        ("maxClientCnxns", &config.max_client_cnxns),
        ("minSessionTimeout", &config.min_session_timeout_ms),
        ("maxSessionTimeout", &config.max_session_timeout_ms),
        ("clientPortListenBacklog", &config.client_port_listen_backlog),
        ("serverId", &0),
    ];
    lines.iter().fold(String::new(), |mut text, (key, value)| {
        _ = writeln!(text, "{key}={value}"); // A string never refuses.
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, Source, parse};

    // rows: W-10
    #[test]
    fn looks_as_java_prints_it() {
        let text = b"dataDir=./zk/data\ndataLogDir=/log\nclientPort=0\ntickTime=2000\n";
        let source = Source { name: "zoo.cfg", text, my_id: None };
        let config = parse(source, &Environment::new(), &[]).unwrap();
        let mut status = Status { client_port: 21810, data_dir_bytes: 5, ..Status::default() };
        status.log_dir_bytes = 67_109_358;
        status.environment.user_dir = "/srv".to_owned();
        // A 3.9.5 server with this file answers just so, but for the sizes.
        let expected = "\
clientPort=21810
secureClientPort=-1
dataDir=/srv/./zk/data/version-2
dataDirSize=5
dataLogDir=/log/version-2
dataLogSize=67109358
tickTime=2000
maxClientCnxns=60
minSessionTimeout=4000
maxSessionTimeout=40000
clientPortListenBacklog=-1
serverId=0
";
        assert_eq!(render(&config, &status), expected);
    }

    // rows: W-10
    #[test]
    fn numbers_are_printed_as_they_were_written() {
        let text = b"dataDir=/d\nclientPort=1\ntickTime=500\nmaxClientCnxns=-1\nclientPortListenBacklog=0\n\
            minSessionTimeout=-5\n";
        let source = Source { name: "zoo.cfg", text, my_id: None };
        let config = parse(source, &Environment::new(), &[]).unwrap();
        let shown = render(&config, &Status::default());
        for line in [
            "maxClientCnxns=-1",
            "minSessionTimeout=-5",
            "maxSessionTimeout=10000",
            "clientPortListenBacklog=0",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
        }
    }
}
