//! `conf`: the configuration this server runs with.

use std::fmt::Write;
use std::path::Path;

use super::{MemberInfo, Status};
use crate::config::{Config, Ensemble};
use crate::model::PeerAddress;

/// Lines `key=value`, in Java's order.
///
/// Source: `ZooKeeperServer.dumpConf` and `QuorumZooKeeperServer.dumpConf`, ZooKeeper 3.9.5. A standalone server's id is
/// always 0 there.
pub(super) fn render(config: &Config, status: &Status) -> String {
    let absolute = |dir: &Path| absolute(dir, status);
    let server_id = status.member.as_ref().map_or(0, |member| member.id.0);
    let plain_port = Some(status.client_port).filter(|&port| port > 0).map_or(-1, i32::from);
    let secure_port = status.secure_client_port.map_or(-1, i32::from);
    let lines: [(&str, &dyn std::fmt::Display); 12] = [
        ("clientPort", &plain_port),
        ("secureClientPort", &secure_port),
        ("dataDir", &absolute(&config.data_dir)),
        ("dataDirSize", &status.data_dir_bytes),
        ("dataLogDir", &absolute(&config.data_log_dir)),
        ("dataLogSize", &status.log_dir_bytes),
        ("tickTime", &config.tick_time_ms),
        ("maxClientCnxns", &config.max_client_cnxns),
        ("minSessionTimeout", &config.min_session_timeout_ms),
        ("maxSessionTimeout", &config.max_session_timeout_ms),
        ("clientPortListenBacklog", &config.client_port_listen_backlog),
        ("serverId", &server_id),
    ];
    let mut text = String::new();
    for (key, value) in lines {
        _ = writeln!(text, "{key}={value}"); // Writing to a string can't fail.
    }
    if let (Some(ensemble), Some(member)) = (&config.ensemble, &status.member) {
        text.push_str(&of_member(ensemble, member));
    }
    text
}

/// The folder of the files in `dataDir` or `dataLogDir`.
pub(super) fn absolute(dir: &Path, status: &Status) -> String {
    let dir = Path::new(&status.environment.user_dir).join(dir).join("version-2");
    // As `java.io.File` writes it: no slash twice in a row.
    let mut text = dir.display().to_string();
    while text.contains("//") {
        text = text.replace("//", "/");
    }
    text
}

/// The lines that only a member of an ensemble has. The membership, and with it the answer, ends without a line end.
fn of_member(ensemble: &Ensemble, member: &MemberInfo) -> String {
    let own = member.view.members.get(&member.id);
    let ports = |port: fn(&PeerAddress) -> u16| {
        let mut ports: Vec<String> = Vec::new();
        for address in own.into_iter().flat_map(|own| &own.addresses) {
            let port = port(address).to_string();
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
        ports.join("|")
    };
    format!(
        "initLimit={}\nsyncLimit={}\nelectionAlg=3\nelectionPort={}\nquorumPort={}\npeerType={}\nmembership: \n{}",
        ensemble.init_limit_ticks,
        ensemble.sync_limit_ticks,
        ports(|address| address.election_port),
        ports(|address| address.quorum_port),
        u8::from(!member.view.is_voter(member.id)),
        member.view,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, Source, parse};

    // rows: W-10
    #[test]
    fn conf_is_printed_as_java_prints_it() {
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
        let text = b"dataDir=/x//\ndataLogDir=//y/z/\nclientPort=1\n";
        let source = Source { name: "zoo.cfg", text, my_id: None };
        let shown = render(&parse(source, &Environment::new(), &[]).unwrap(), &status);
        assert!(shown.contains("\ndataDir=/x/version-2\n"), "{shown}");
        assert!(shown.contains("\ndataLogDir=/y/z/version-2\n"), "{shown}");
    }

    // rows: W-10
    #[test]
    fn conf_of_a_member_ends_with_its_ensemble() {
        let members = "server.1=127.0.0.1:34857:41683:participant\nserver.2=127.0.0.1:43183:60227:participant\n\
            server.3=127.0.0.1:40031:46165:participant\nserver.4=127.0.0.1:39307:60941:observer\n";
        let text = format!("dataDir=/d\nclientPort=0\ninitLimit=20\nsyncLimit=10\n{members}");
        let read = |id: &str| {
            let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: Some(id) };
            parse(source, &Environment::new(), &[]).unwrap()
        };
        for (id, ports, peer_type) in [
            ("1", "electionPort=41683\nquorumPort=34857", 0),
            ("4", "electionPort=60941\nquorumPort=39307", 1),
        ] {
            let config = read(id);
            let ensemble = config.ensemble.clone().unwrap();
            let member = MemberInfo { id: ensemble.my_id, view: ensemble.view, leader: None };
            let status = Status { member: Some(member), ..Status::default() };
            let answer = render(&config, &status);
            let (_, tail) = answer.split_once("\nserverId=").unwrap();
            // As a 3.9.5 server with this file ends its answer.
            let expected = format!(
                "{id}\ninitLimit=20\nsyncLimit=10\nelectionAlg=3\n{ports}\npeerType={peer_type}\nmembership: \n{members}version=0"
            );
            assert_eq!(tail, expected);
        }
    }

    // rows: W-10
    #[test]
    fn role_and_members_are_those_of_the_configuration_in_force() {
        let text = b"dataDir=/d\nclientPort=0\ninitLimit=20\nsyncLimit=10\nserver.1=a:1:2\nserver.2=b:1:2\n";
        let source = Source { name: "zoo.cfg", text, my_id: Some("1") };
        let config = parse(source, &Environment::new(), &[]).unwrap();
        let ensemble = config.ensemble.clone().unwrap();
        let view = crate::model::View::parse("server.1=a:1:2:observer\nserver.2=b:1:2").unwrap();
        let member = MemberInfo { id: ensemble.my_id, view, leader: None };
        let shown = render(&config, &Status { member: Some(member), ..Status::default() });
        assert!(shown.contains("\npeerType=1\n"), "{shown}");
        assert!(shown.contains("\nserver.1=a:1:2:observer\n"), "{shown}");
    }

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
