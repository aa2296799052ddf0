//! Settings of the process itself, each tested by its effect on a running server. Settings of the pure machines are tested in
//! `tests/request/configured.rs` and `tests/member/configured.rs`, those of its files in `tests/files.rs`.

mod server_process;

use common::ports::free_ports;
use server_process::{Process, eventually, names, zxids};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

/// Data of a standalone server whose first log file is missing, as after a purge, and whose snapshots are missing too.
fn log_without_snapshots(home: &Path) {
    let dir = home.join("data/version-2");
    for path in ["/first", "/second"] {
        let server = Process::start(home, "");
        assert_eq!(server.client().create(path, b"").unwrap(), 0);
        server.stop();
    }
    assert_eq!(zxids(&dir, "log"), [1, 3]);
    std::fs::remove_file(dir.join("log.1")).unwrap();
    for name in names(&dir, "snapshot") {
        std::fs::remove_file(dir.join(name)).unwrap();
    }
}

// rows: C-148 D-61
#[test]
fn log_without_snapshots_is_accepted_with_snapshot_trust_empty() {
    let home = tempfile::tempdir().unwrap();
    log_without_snapshots(home.path());
    for settings in ["", "snapshot.trust.empty=false"] {
        let (code, log) = Process::spawn(home.path(), settings, 0).end();
        assert_eq!(code, 1, "{log}");
        assert!(log.contains("no snapshot found in "), "{log}");
    }
    let server = Process::start(home.path(), "snapshot.trust.empty=true");
    let mut client = server.client();
    assert_eq!((client.exists("/first"), client.exists("/second")), (false, true));
    drop(client);
    drop(server);
    // The server has taken a snapshot before it served.
    assert!(Process::start(home.path(), "").client().exists("/second"));
}

// rows: C-15 P-23a
#[test]
fn client_port_listens_at_client_port_address_or_at_all_addresses() {
    let home = tempfile::tempdir().unwrap();
    let at = |ip, server: &Process| SocketAddr::new(ip, server.addr.port());
    let other = Ipv4Addr::new(127, 0, 0, 2).into();
    let server = Process::start(home.path(), "clientPortAddress=127.0.0.1");
    assert!(server.try_client(at(other, &server)).is_err(), "another address");
    // A session shows that the server serves: before that SIGTERM kills the process instead of stopping the server.
    drop(server.client());
    server.stop();

    let server = Process::start(home.path(), "clientPortAddress=0.0.0.0");
    let mut four = server.try_client(at(other, &server)).unwrap();
    // On a host without IPv6 only IPv4 is tested.
    let has_six = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    let six = has_six.then(|| server.try_client(at(Ipv6Addr::LOCALHOST.into(), &server)).unwrap());
    let shown = server.word("cons");
    assert!(shown.contains(" /127.0.0.1:") || shown.contains(" /127.0.0.2:"), "{shown}");
    assert!(!shown.contains("ffff:"), "an IPv4 client is shown as one: {shown}");
    assert_eq!(shown.contains("/[0:0:0:0:0:0:0:1]:"), six.is_some(), "{shown}");
    assert_eq!(four.create("/four", b"").unwrap(), 0);
}

// rows: C-21
#[test]
fn max_client_cnxns_limits_the_connections_of_one_address() {
    let home = tempfile::tempdir().unwrap();
    let server = Process::start(home.path(), "maxClientCnxns=2");
    let (first, _second) = (server.client(), server.client());
    assert!(server.try_client(server.addr).is_err(), "two are there");
    assert!(server.log().contains("limit reached, maxClientCnxns=2 from 127.0.0.1"));
    drop(first);
    server_process::eventually("room for a third connection", || {
        server.try_client(server.addr).is_ok()
    });
}

// rows: C-02 C-05
#[test]
fn key_in_the_file_wins_over_the_flag_and_has_no_prefix() {
    let cases = [
        ("", "-Dzookeeper.maxCnxns=1", true),
        ("maxCnxns=2", "-Dzookeeper.maxCnxns=1", false),
        ("maxCnxns=1", "-Dzookeeper.maxCnxns=2", true),
        // It sets the property `zookeeper.zookeeper.maxCnxns`, which does nothing.
        ("zookeeper.maxCnxns=1", "-Dzookeeper.unknown=1", false),
    ];
    for (settings, flags, is_limited_to_one) in cases {
        let home = tempfile::tempdir().unwrap();
        let server = Process::start_with_flags(home.path(), settings, flags);
        // The connection that showed that the server serves may not have ended yet, and counts until then.
        let mut first = None;
        eventually("a first connection", || {
            first = server.try_client(server.addr).ok();
            first.is_some()
        });
        if is_limited_to_one {
            assert!(server.try_client(server.addr).is_err(), "{settings} {flags}");
        } else {
            eventually("a second connection", || server.try_client(server.addr).is_ok());
        }
    }
}

// rows: C-09
#[test]
fn relative_path_with_blanks_after_it_is_that_folder() {
    let home = tempfile::tempdir().unwrap();
    let up = "../".repeat(std::env::current_dir().unwrap().components().count() - 1);
    let data = home.path().join("elsewhere");
    let relative = format!("{up}{}", data.strip_prefix("/").unwrap().display());
    let server = Process::start(home.path(), &format!("dataDir={relative}  "));
    assert_eq!(server.client().create("/here", b"").unwrap(), 0);
    assert_eq!(zxids(&data.join("version-2"), "log"), [1]);
}

/// The timers of established sockets with this local port, from column `tr` of `/proc/net/tcp`: 00 none, 01 retransmission, 02
/// keep-alive probes.
fn timers(port: u16) -> Vec<String> {
    let port = format!(":{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    // Columns: local address, state (01 is established), timer and its remaining time.
    let own = rows.filter(|row| row[1].ends_with(&port) && row[3] == "01");
    own.map(|row| row[5][..2].to_owned()).collect()
}

// rows: C-112
#[test]
fn client_tcp_keep_alive_probes_client_sockets() {
    for (settings, timer) in [("", "00"), ("clientTcpKeepAlive=true", "02")] {
        let home = tempfile::tempdir().unwrap();
        let server = Process::start(home.path(), settings);
        let mut client = server.client();
        assert!(client.exists("/"));
        // Until the client's TCP has acknowledged the answer, the socket has the retransmission timer.
        server_process::eventually("the timer that is set", || {
            timers(server.addr.port()) == [timer]
        });
    }
}

// rows: C-52
#[test]
fn mntr_has_only_version_and_state_with_the_null_metrics_provider() {
    for (provider, is_short) in [("DefaultMetricsProvider", false), ("NullMetricsProvider", true)] {
        let home = tempfile::tempdir().unwrap();
        let class = format!("org.apache.zookeeper.metrics.impl.{provider}");
        let server = Process::start(home.path(), &format!("metricsProvider.className={class}"));
        let answer = server.word("mntr");
        assert_eq!(answer.lines().count() == 2, is_short, "{answer}");
        assert!(answer.starts_with("zk_version\t"), "{answer}");
    }
}

/// Starts server 1 of two voters, without the other one; returns it and its election port.
fn one_of_two(home: &Path, settings: &str) -> (Process, u16) {
    let [quorum, election, other] = free_ports();
    std::fs::create_dir_all(home.join("data")).unwrap();
    std::fs::write(home.join("data/myid"), "1").unwrap();
    let members = format!("server.1=127.0.0.1:{quorum}:{election}\nserver.2=127.0.0.1:{other}:1\n");
    let settings = format!("initLimit=10\nsyncLimit=10\n{members}{settings}");
    (Process::start(home, &settings), election)
}

// rows: C-62
#[test]
fn one_of_two_voters_leads_alone_if_its_oracle_says_yes() {
    let home = tempfile::tempdir().unwrap();
    let oracle = home.path().join("oracle");
    std::fs::write(&oracle, "1").unwrap();
    let (server, _) = one_of_two(home.path(), &format!("oraclePath={}", oracle.display()));
    server_process::eventually("a leader", || server.word("srvr").contains("Mode: leader"));
}

// rows: C-164
#[test]
fn tcp_keep_alive_probes_election_sockets() {
    for (settings, timer) in [("", "00"), ("tcpKeepAlive=true", "02")] {
        let home = tempfile::tempdir().unwrap();
        let (_server, election) = one_of_two(home.path(), settings);
        let mut connected = None;
        server_process::eventually("the election port", || {
            connected = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, election)).ok();
            connected.is_some()
        });
        server_process::eventually("the timer that is set", || timers(election) == [timer]);
    }
}

/// The line of `mntr` with this name.
fn figure(server: &Process, name: &str) -> f64 {
    let text = server.word("mntr");
    let mut lines = text.lines().filter_map(|line| line.split_once('\t'));
    let (_, figure) =
        lines.find(|(key, _)| *key == name).unwrap_or_else(|| panic!("{name}: {text}"));
    figure.parse().unwrap()
}

// rows: C-48 C-49 C-50 C-51
#[test]
fn pause_of_the_server_is_logged_and_measured_by_the_monitor() {
    const LINE: &str = "this server has paused";
    let home = tempfile::tempdir().unwrap();
    let on = "jvm.pause.monitor=true\njvm.pause.sleep.time.ms=5\n";
    for (thresholds, level) in [
        ("jvm.pause.info-threshold.ms=200", "INFO"),
        ("jvm.pause.info-threshold.ms=1\njvm.pause.warn-threshold.ms=200", "WARN"),
    ] {
        let server = Process::start(home.path(), &format!("{on}{thresholds}"));
        server.pause(Duration::from_millis(600));
        eventually("the line", || {
            server.log().lines().any(|line| line.contains(LINE) && line.contains(level))
        });
        assert!(200.0 < figure(&server, "zk_max_jvm_pause_time_ms"));
        // A check each half second would not have come to that so soon.
        eventually("checks", || 20.0 < figure(&server, "zk_cnt_jvm_pause_time_ms"));
    }
    let server =
        Process::start(home.path(), "jvm.pause.sleep.time.ms=5\njvm.pause.info-threshold.ms=1");
    server.pause(Duration::from_millis(200));
    assert_eq!(figure(&server, "zk_cnt_jvm_pause_time_ms"), 0.0);
    assert!(!server.log().contains(LINE), "the monitor is off");
}
