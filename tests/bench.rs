//! `oxkeeper bench` against a server of ours, both as they ship: what it prints, draws and leaves behind.
#![allow(clippy::disallowed_methods, reason = "it starts processes and waits for them")]

use oxkeeper::client::{Hello, Incoming, Wire, put_request, word};
use oxkeeper::model::op;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const OXKEEPER: &str = env!("CARGO_BIN_EXE_oxkeeper");
/// Not a measure of anything: when to give up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server of its own; killed when dropped.
struct Server {
    child: Child,
    addr: SocketAddr,
}

impl Server {
    fn start(dir: &Path) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let addr = listener.local_addr().expect("its address");
        drop(listener);
        let config = dir.join("zoo.cfg");
        let text = format!(
            "dataDir={}\nclientPortAddress=127.0.0.1\nclientPort={}\nmaxClientCnxns=0\n",
            dir.join("data").display(),
            addr.port()
        );
        std::fs::write(&config, text).expect("a configuration");
        let mut child = Command::new(OXKEEPER);
        child.arg(config).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Self { child: child.spawn().expect("a server"), addr };
        let began = Instant::now();
        while !word(addr, "srvr", PATIENCE).is_ok_and(|answer| answer.contains("Mode: ")) {
            assert!(began.elapsed() < PATIENCE, "the server does not serve");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    fn bench(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(OXKEEPER);
        command.args(["bench", "--server", &self.addr.to_string()]).args(arguments);
        command.output().expect("the bench runs")
    }

    /// Names below the root.
    fn names(&self) -> Vec<String> {
        let mut wire = Wire::open(self.addr, PATIENCE).expect("the server is there");
        let hello = Hello { timeout_ms: 10_000, password: vec![0; 16], ..Hello::default() };
        wire.handshake(&hello, PATIENCE).expect("a session");
        let mut bytes = Vec::new();
        put_request(&mut bytes, 1, op::GET_CHILDREN, |to| {
            jute::put_string(to, "/");
            to.push(0);
        });
        wire.send(&bytes).expect("sent");
        let frame = wire.receive(PATIENCE).expect("an answer");
        let Ok(Incoming::Reply { body, .. }) = Incoming::parse(&frame) else { panic!("an event") };
        let names: jute::Vector<'_, jute::Ustring<'_>> =
            jute::Reader::new(body).read().expect("names");
        names.iter().flatten().map(std::borrow::Cow::into_owned).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn measures_prints_draws_and_cleans_up() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path());
    let picture = dir.path().join("picture.svg");
    let mut arguments =
        vec!["--mix", "get=4,exists=1,list=1,set=1,create=2,delete=1", "--keys", "250"];
    arguments.extend(["--duration", "1s", "--warm-up", "200ms", "-c", "5", "-f", "4", "--picture"]);
    arguments.push(picture.to_str().expect("a plain path"));
    let output = server.bench(&arguments);
    assert!(output.status.success(), "{output:?}");
    let table = text(&output.stdout);
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    for name in ["get", "exists", "list", "set", "create", "delete", "all"] {
        let row = rows.iter().find(|row| row.first() == Some(&name)).expect("a row for each");
        assert!(row[2] != "0" && row[3] == "0", "{table}");
    }
    let progress = text(&output.stderr);
    assert!(progress.contains("warm-up  ") && progress.contains("    1 s  "), "{progress}");
    let svg = std::fs::read_to_string(picture).expect("a picture");
    assert!(svg.starts_with("<svg ") && svg.contains("Throughput"), "{svg}");
    assert_eq!(server.names(), ["zookeeper"], "nothing is left");
}

#[test]
fn keeps_a_rate_and_tells_it_as_json() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path());
    let mut arguments = vec!["--mix", "get", "--keys", "10", "--rate", "200", "--duration", "1s"];
    arguments.extend(["--warm-up", "0s", "--connections", "4", "--json", "--keep"]);
    let output = server.bench(&arguments);
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // 4 connections, a request each 20 ms. Fewer when this machine stands still at the end, but never more.
    let count = json["all"]["count"].as_u64().expect("a count");
    assert!((1..=200).contains(&count), "{json}");
    assert_eq!((&json["mix"], &json["connections_lost"]), (&"get".into(), &0.into()));
    assert!(json["all"]["p50_us"].as_u64() <= json["all"]["p999_us"].as_u64());
    let names = server.names();
    assert!(names.iter().any(|name| name.starts_with("oxkeeper-bench-")), "{names:?}");
}

#[test]
fn says_what_is_wrong() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let addr = listener.local_addr().expect("its address");
    let of = |server: &str, mix: &str| {
        let mut command = Command::new(OXKEEPER);
        command.args(["bench", "--server", server, "--mix", mix]).output().expect("it runs")
    };
    let wrong = of("nowhere", "get");
    assert!(
        !wrong.status.success() && text(&wrong.stderr).contains("server nowhere: not host:port")
    );
    let wrong = of("127.0.0.1:1", "fetch");
    assert!(text(&wrong.stderr).contains("`fetch` is not an operation"), "{wrong:?}");
    // Somebody who speaks another protocol.
    let other = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("the bench comes");
        peer.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("it listens");
        let _until_it_goes = std::io::Read::read_to_end(&mut peer, &mut Vec::new());
    });
    let wrong = of(&addr.to_string(), "get");
    let said = text(&wrong.stderr);
    assert!(
        !wrong.status.success() && said.contains(&format!("connect to {addr}: frame length")),
        "{said}"
    );
    other.join().expect("it heard the end");
    // Known before a server is asked for anything.
    let mut command = Command::new(OXKEEPER);
    command.args(["bench", "--server", "127.0.0.1:1", "--picture", "/no/such/folder/p.svg"]);
    let wrong = command.output().expect("it runs");
    let said = text(&wrong.stderr);
    assert!(!wrong.status.success() && !said.contains("127.0.0.1:1"), "{said}");
    assert!(said.contains("write picture /no/such/folder/p.svg: No such file"), "{said}");
    let wrong = of(&addr.to_string(), "get");
    let said = text(&wrong.stderr);
    assert!(said.contains(&format!("connect to {addr}: Connection refused")), "{said}");
}

/// A server that is killed under load and comes back: what that cost is told, and the run goes on.
#[test]
fn survives_a_server_that_is_killed() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut server = Server::start(dir.path());
    let mut command = Command::new(OXKEEPER);
    command.args(["bench", "--server", &server.addr.to_string(), "--mix", "set", "--keys", "10"]);
    command.args(["--duration", "4s", "--warm-up", "0s", "-c", "3", "-f", "2", "--json"]);
    let mut bench = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut progress = BufReader::new(bench.stderr.take().expect("a pipe")).lines();
    assert!(
        progress.any(|line| line.expect("UTF-8").starts_with("    1 s")),
        "a second has passed"
    );
    server.child.kill().expect("it runs");
    server.child.wait().expect("it ends");
    let again =
        Command::new(OXKEEPER).arg(dir.path().join("zoo.cfg")).stdout(Stdio::null()).spawn();
    server.child = again.expect("a server again");
    progress.for_each(drop); // Read, so that it does not wait for us.
    let output = bench.wait_with_output().expect("it ends");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["connections_lost"], 3, "{json}");
    assert_eq!((&json["sessions_expired"], output.status.success()), (&0.into(), false), "{json}");
    assert!(json["all"]["count"].as_u64() > Some(0), "{json}");
}
