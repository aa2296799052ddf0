//! The server as a process: how it starts, what it prints and logs, how it stops, with which exit code.
#![allow(clippy::disallowed_methods, reason = "it starts processes and waits for them")]

mod process {
    mod audit;
    mod command_line;
    mod cut_log;
    mod duplicate_id;
    mod logs;
    mod members;
}

use common::ports::free_port;
use oxkeeper::client::{ConnectRequest, ConnectResponse, Incoming, Wire, put_request, word};
use oxkeeper::model::op;
use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

const OXKEEPER: &str = env!("CARGO_BIN_EXE_oxkeeper");
/// A bound against hanging, not an expectation.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory with a configuration, and the process that serves it; killed when dropped.
struct Server {
    dir: tempfile::TempDir,
    addr: SocketAddr,
    child: Child,
}

impl Server {
    fn start(settings: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let text = format!(
            "dataDir={}\nclientPortAddress=127.0.0.1\nclientPort={}\nadmin.enableServer=false\n{settings}\n",
            dir.path().join("data").display(),
            addr.port()
        );
        fs::write(dir.path().join("zoo.cfg"), text).expect("a configuration");
        Self { child: Self::spawn(dir.path(), addr, &[]), dir, addr }
    }

    fn spawn(dir: &Path, addr: SocketAddr, arguments: &[&str]) -> Child {
        Self::launch(dir, addr, Command::new(OXKEEPER).args(arguments).arg(dir.join("zoo.cfg")))
    }

    /// Starts the command, with its output in files of `dir`, and waits until it serves.
    fn launch(dir: &Path, addr: SocketAddr, command: &mut Command) -> Child {
        let output = |name: &str| Stdio::from(fs::File::create(dir.join(name)).expect("a file"));
        let child = command.stdout(output("out")).stderr(output("err")).spawn().expect("a server");
        wait_for(addr);
        child
    }

    fn serves(&self) {
        wait_for(self.addr);
    }

    fn again(&mut self, arguments: &[&str]) {
        self.child = Self::spawn(self.dir.path(), self.addr, arguments);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("the process runs");
    }

    fn ended(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("its status") {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn said(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(name)).expect("what it wrote")
    }

    /// What it writes to standard output once it serves: its port is open before.
    fn banner(&self) -> String {
        let end = Instant::now() + PATIENCE;
        while self.said("out").is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.said("out")
    }

    fn session(&self, hello: &ConnectRequest) -> (Wire, ConnectResponse) {
        let mut wire = Wire::open(self.addr, PATIENCE).expect("the server is there");
        let response = wire.handshake(hello, PATIENCE).expect("a session");
        (wire, response)
    }
}

fn wait_for(addr: SocketAddr) {
    let began = Instant::now();
    while !word(addr, "srvr", PATIENCE).is_ok_and(|answer| answer.contains("Mode: ")) {
        assert!(began.elapsed() < PATIENCE, "the server does not serve");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Server {
    #[allow(clippy::print_stdout, reason = "only of a test that has failed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            for name in ["out", "err"] {
                println!("==== {name} of the server\n{}", self.said(name));
            }
        }
        // The server may have ended by itself.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

fn hello() -> ConnectRequest {
    ConnectRequest { timeout_ms: 30_000, password: vec![0; 16], ..ConnectRequest::default() }
}

/// Appends a create of an empty znode with the open ACL.
fn put_create(to: &mut Vec<u8>, xid: i32, path: &str, flags: i32) {
    put_create_with(to, xid, path, &[], flags);
}

fn put_create_with(to: &mut Vec<u8>, xid: i32, path: &str, data: &[u8], flags: i32) {
    put_request(to, xid, op::CREATE, |to| {
        jute::put_string(to, path);
        jute::put_buffer(to, data);
        to.extend(1_i32.to_be_bytes());
        to.extend(31_i32.to_be_bytes());
        jute::put_string(to, "world");
        jute::put_string(to, "anyone");
        to.extend(flags.to_be_bytes());
    });
}

/// The xid and the error code of the next reply.
fn reply(wire: &mut Wire) -> Option<(i32, i32)> {
    let frame = wire.receive(PATIENCE).ok()?;
    match Incoming::parse(&frame).expect("a reply") {
        Incoming::Reply { header, .. } => Some((header.xid, header.err)),
        other => panic!("{other:?}"),
    }
}

fn exists(wire: &mut Wire, path: &str) -> bool {
    let mut bytes = Vec::new();
    put_request(&mut bytes, 1, op::EXISTS, |to| {
        jute::put_string(to, path);
        to.push(0);
    });
    wire.send(&bytes).expect("sent");
    reply(wire).expect("an answer").1 == 0
}

/// Creates znodes, a few outstanding, until the server closes the connection; returns how many were acknowledged.
fn create_until_closed(wire: &mut Wire, name: &str) -> i32 {
    let (mut sent, mut acknowledged) = (0, 0);
    loop {
        let mut bytes = Vec::new();
        while sent < acknowledged + 8 {
            sent += 1;
            put_create(&mut bytes, sent, &format!("/{name}-{sent}"), 0);
        }
        if wire.send(&bytes).is_err() {
            return acknowledged;
        }
        match reply(wire) {
            Some((xid, error)) => {
                assert_eq!((xid, error), (acknowledged + 1, 0));
                acknowledged = xid;
            }
            None => return acknowledged,
        }
    }
}

// rows: P-87 C-12 C-14
#[test]
fn sigterm_under_load_flushes_acknowledged_writes_and_keeps_sessions() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let mut server = Server::start("");
        let (mut owner, owned) = server.session(&hello());
        let mut bytes = Vec::new();
        put_create(&mut bytes, 1, "/ephemeral", 1);
        owner.send(&bytes).unwrap();
        assert_eq!(reply(&mut owner), Some((1, 0)));
        let writers: Vec<_> = (0..4)
            .map(|number| {
                let (mut wire, _) = server.session(&hello());
                let name = format!("w{number}");
                std::thread::spawn(move || (create_until_closed(&mut wire, &name), name))
            })
            .collect();
        server.banner();
        std::thread::sleep(Duration::from_millis(300));
        server.signal(signal);
        assert_eq!(server.ended().code(), Some(0));
        let done: Vec<(i32, String)> = writers.into_iter().map(|w| w.join().unwrap()).collect();
        let log = server.said("err");
        assert!(log.contains("stopped: everything acknowledged is on disk"), "{log}");
        assert!(!log.contains("before shutdown"), "{log}");

        server.again(&[]);
        let password = owned.password.clone();
        let back = ConnectRequest { session_id: owned.session_id, password, ..hello() };
        let (mut wire, response) = server.session(&back);
        assert_eq!(response.session_id, owned.session_id, "the session is still there");
        assert!(exists(&mut wire, "/ephemeral"));
        for (acknowledged, name) in done {
            assert!(acknowledged > 0, "{name} did not get to write");
            assert!(exists(&mut wire, &format!("/{name}-{acknowledged}")), "{name}-{acknowledged}");
        }
    }
}

#[test]
fn banner_and_log_have_version_address_and_loaded_data() {
    let mut server = Server::start("initLimit=10\nsyncLimit=5");
    let banner = server.banner();
    let version = env!("CARGO_PKG_VERSION");
    let first = format!("oxkeeper {version} serves ZooKeeper clients on {}", server.addr);
    assert_eq!(banner.lines().next(), Some(first.as_str()));
    assert!(banner.contains("\n  loaded    no data found: a new, empty tree\n"), "{banner}");
    let log = server.said("err");
    assert!(log.contains(" INFO starting version=") && log.contains("zoo.cfg"), "{log}");
    assert!(log.contains(" WARN ") && log.contains("initLimit=10, syncLimit=5 (line 6)"), "{log}");

    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.ended().code(), Some(0));
    server.again(&["--log-format", "json", "--log-level", "info"]);
    server.signal(rustix::process::Signal::TERM);
    server.ended();
    assert_eq!(server.said("out"), "", "with JSON everything goes to stderr");
    let log = server.said("err");
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let serving = lines.iter().find(|line| line["message"] == "serving").expect("serving");
    assert_eq!(serving["address"], server.addr.to_string());
    let loaded = serving["loaded"].as_str().unwrap();
    assert!(loaded.contains("znodes, 0 sessions at 0x0 from snapshot 0x0"), "{loaded}");
}

/// A scratch directory for a server that must refuse to start.
struct Bad {
    dir: tempfile::TempDir,
}

impl Bad {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a directory") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts a server with these lines of zoo.cfg, in which `@` is the directory.
    fn run(&self, lines: &[u8]) -> Output {
        let here = self.dir.path().display().to_string();
        let text: Vec<u8> = lines
            .iter()
            .flat_map(|&byte| if byte == b'@' { here.as_bytes().to_vec() } else { vec![byte] })
            .collect();
        // Another test's server may have that port.
        let text = [&text[..], b"\nadmin.enableServer=false\n"].concat();
        fs::write(self.path("zoo.cfg"), text).expect("a configuration");
        self.start(&["zoo.cfg"], &[])
    }

    fn start(&self, arguments: &[&str], env: &[(&str, &str)]) -> Output {
        let mut command = Command::new(OXKEEPER);
        command.args(arguments).current_dir(self.dir.path()).envs(env.iter().copied());
        command.output().expect("the program ends")
    }
}

#[track_caller]
fn refused(output: &Output, code: i32, parts: &[&str]) {
    ended(output, code, parts);
    assert!(output.stdout.is_empty(), "there must be no banner");
}

#[track_caller]
fn ended(output: &Output, code: i32, parts: &[&str]) {
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{log}");
    for part in parts {
        assert!(log.contains(part), "{part:?} is not in {log}");
    }
}

// rows: P-87
#[test]
fn refused_start_names_the_line_and_the_remedy() {
    let bad = Bad::new();
    refused(&bad.run(b"clientPort=2181"), 2, &["zoo.cfg: dataDir is not set; add dataDir=/"]);
    let many =
        b"dataDir=@/d\r\nclientPort=\\u0032x\r\n# \r\ntickTime=\\\r\n  0\r\nsyncEnabled=yes\r\n";
    refused(
        &bad.run(many),
        2,
        &[
            "zoo.cfg:2: clientPort=2x is not a number; write one",
            "zoo.cfg:4: tickTime=0 is not",
            "zoo.cfg:6: syncEnabled=yes",
        ],
    );
    refused(
        &bad.start(&["none.cfg"], &[]),
        2,
        &["none.cfg: can't read file: No such file", "name a file"],
    );
    refused(&bad.start(&["."], &[]), 2, &[".: can't read file: Is a directory"]);
    refused(&bad.start(&["1", "2", "3", "4", "5"], &[]), 2, &["command line: 5 arguments"]);
    refused(&bad.start(&["2x", "d"], &[]), 2, &["command line: clientPort=2x is not a number"]);
    let flags = [("SERVER_JVMFLAGS", "-Dzookeeper.sessionRequireClientSASLAuth=true")];
    let asks =
        "-D flag in SERVER_JVMFLAGS: sessionRequireClientSASLAuth=true needs scheme sasl; add";
    refused(&bad.start(&["0", "d"], &flags), 2, &[asks]);

    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = taken.local_addr().expect("its address").port();
    let lines = format!("dataDir=@/d\nclientPortAddress=127.0.0.1\nclientPort={port}\n");
    let where_ = format!("zoo.cfg:3: clientPort={port}: can't listen on 127.0.0.1:{port}");
    refused(&bad.run(lines.as_bytes()), 1, &[&where_, "stop what listens there"]);
    let nobody = "dataDir=@/d\nclientPort=0\nclientPortAddress=no.such.host.invalid\n";
    refused(&bad.run(nobody.as_bytes()), 2, &["zoo.cfg:3: clientPortAddress=no.such.host.invalid"]);

    fs::write(bad.path("file"), "").expect("a file");
    refused(
        &bad.run(b"clientPort=0\ndataDir=@/file"),
        3,
        &["zoo.cfg:2: dataDir=", "name a directory"],
    );
    // Java notices this later, and exits with another code.
    fs::create_dir(bad.path("odd")).expect("a folder");
    fs::write(bad.path("odd/version-2"), "").expect("a file");
    refused(
        &bad.run(b"clientPort=0\ndataDir=@/odd"),
        1,
        &["zoo.cfg:2: dataDir=", "odd/version-2 is a file and must be a folder: move it away"],
    );
    let member = b"clientPort=0\ndataDir=@\ninitLimit=5\nserver.1=a:1:2\nserver.2=b:1:2";
    refused(
        &bad.run(member),
        2,
        &["zoo.cfg:2: the file ", "/myid is missing; write this server's id"],
    );
    let missing = b"clientPort=0\ndataDir=@/none\ndatadir.autocreate=false";
    refused(&bad.run(missing), 3, &["zoo.cfg:2: dataDir=", "datadir.autocreate"]);
}

/// A server that is started with the environment of Java's scripts alone, no argument.
fn start_by_variables(
    dir: tempfile::TempDir,
    text: &str,
    env: &[(&str, &str)],
    port: u16,
) -> Server {
    fs::write(dir.path().join("other.cfg"), text).expect("a configuration");
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut command = Command::new(OXKEEPER);
    command.env("ZOOCFGDIR", dir.path()).env("ZOOCFG", "other.cfg").envs(env.iter().copied());
    let child = Server::launch(dir.path(), addr, &mut command);
    Server { dir, addr, child }
}

// rows: C-134 C-267 C-268
#[test]
fn variables_of_javas_scripts_name_the_file_and_its_flags() {
    let (dir, port) = (tempfile::tempdir().expect("a directory"), free_port());
    let data = dir.path().join("data").display().to_string();
    let text = format!(
        "dataDir={data}\nclientPortAddress=127.0.0.1\nclientPort={port}\nadmin.enableServer=false\n"
    );
    let flags = [
        (
            "SERVER_JVMFLAGS",
            "-Xmx1g -Dzookeeper.4lw.commands.whitelist=ruok -Dreadonlymode.enabled=true",
        ),
        ("JVMFLAGS", "-Dzookeeper.4lw.commands.whitelist=conf"),
    ];
    let server = start_by_variables(dir, &text, &flags, port);
    let ask = |name| word(server.addr, name, PATIENCE).expect("an answer");
    assert!(ask("conf").contains(&format!("dataDir={data}")), "{}", ask("conf"));
    assert_eq!(ask("ruok"), "ruok is not executed because it is not in the whitelist.\n");
    // Words that a server's own scripts and clients ask for need no list; the second one if there is a read-only mode.
    assert!(ask("srvr").contains("Mode: standalone"), "{}", ask("srvr"));
    assert_eq!(ask("isro"), "rw");
}

// rows: C-07
#[test]
fn port_and_folder_on_the_command_line_are_served() {
    let (dir, port) = (tempfile::tempdir().expect("a directory"), free_port());
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let data = dir.path().join("data");
    let mut command = Command::new(OXKEEPER);
    command.env(
        "JVMFLAGS",
        "-Dzookeeper.admin.enableServer=false -Dzookeeper.4lw.commands.whitelist=conf",
    );
    command.arg(port.to_string()).arg(&data).args(["1234", "7"]);
    let server = Server { child: Server::launch(dir.path(), addr, &mut command), dir, addr };
    let conf = word(server.addr, "conf", PATIENCE).expect("an answer");
    for line in ["tickTime=1234\n", "maxClientCnxns=7\n", "serverId=0\n"] {
        assert!(conf.contains(line), "{conf}");
    }
    assert!(data.join("version-2/snapshot.0").exists(), "{conf}");
}

// rows: C-31 C-06
#[test]
fn members_of_the_dynamic_file_are_served() {
    let (dir, port) = (tempfile::tempdir().expect("a directory"), free_port());
    let here = dir.path().display().to_string();
    fs::write(dir.path().join("myid"), "7").expect("a file");
    let (quorum, election) = (free_port(), free_port());
    let member = format!("server.7=127.0.0.1:{quorum}:{election}:participant;127.0.0.1:{port}");
    fs::write(dir.path().join("members"), &member).expect("a file");
    let text = format!(
        "dataDir={here}\ninitLimit=5\nsyncLimit=5\nstandaloneEnabled=false\nreconfigEnabled=true\n\
         4lw.commands.whitelist=*\nadmin.enableServer=false\ndynamicConfigFile={here}/members\n"
    );
    let server = start_by_variables(dir, &text, &[], port);
    let ask = |name| word(server.addr, name, PATIENCE).expect("an answer");
    assert!(ask("srvr").contains("Mode: leader"), "{}", ask("srvr"));
    assert!(ask("conf").contains(&format!("membership: \n{member}")), "{}", ask("conf"));
}

/// It is handled as a disk error: the process is not killed by SIGXFSZ.
// rows: P-87
#[test]
fn file_size_limit_exits_with_an_error_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let text = format!(
        "dataDir={}\nclientPortAddress=127.0.0.1\nclientPort={}\npreAllocSize=64\nadmin.enableServer=false\n",
        dir.path().join("data").display(),
        addr.port()
    );
    fs::write(dir.path().join("zoo.cfg"), text).expect("a configuration");
    let output = |name: &str| Stdio::from(fs::File::create(dir.path().join(name)).expect("a file"));
    let mut command = Command::new("sh");
    // The shell's unit is 512 bytes or 1 KiB.
    command
        .args(["-c", "ulimit -f 400 && exec \"$0\" \"$1\"", OXKEEPER])
        .arg(dir.path().join("zoo.cfg"));
    let child = command.stdout(output("out")).stderr(output("err")).spawn().expect("a server");
    wait_for(addr);
    let mut server = Server { dir, addr, child };
    let (mut wire, _) = server.session(&hello());
    let acknowledged = create_until_closed(&mut wire, "x");
    assert!(acknowledged > 100, "{acknowledged}");
    let (status, log) = (server.ended(), server.said("err"));
    assert!(status.code().is_some_and(|code| code != 0), "{status}: {log}");
    assert!(log.contains(" ERROR ") && log.contains("File too large"), "{log}");
}

/// A full disk under the text log, or a closed pipe to a collector, loses log lines only.
// rows: P-87
#[test]
fn unwritable_log_output_does_not_stop_the_server() {
    let mut server = Server::start("");
    server.signal(rustix::process::Signal::TERM);
    assert!(server.ended().success());
    let mut command = Command::new(OXKEEPER);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("every Linux has it");
    command.arg(server.dir.path().join("zoo.cfg")).stdout(Stdio::null()).stderr(full);
    server.child = command.spawn().expect("a server");
    server.serves();
    for _ in 0..50 {
        let mut client = std::net::TcpStream::connect(server.addr).expect("the server listens");
        client.write_all(&[0xff; 8]).expect("an invalid frame, which causes a log line");
    }
    server.serves();
}

/// There are more answers than one system call writes, and than the connection may hold unsent.
#[test]
fn client_that_reads_late_gets_every_answer() {
    const COUNT: i32 = 4000;
    let server = Server::start("");
    let (mut wire, _) = server.session(&hello());
    let mut bytes = Vec::new();
    put_create(&mut bytes, 1, "/a", 0);
    put_request(&mut bytes, 2, op::SET_DATA, |to| {
        jute::put_string(to, "/a");
        jute::put_buffer(to, &[7; 5000]);
        to.extend((-1_i32).to_be_bytes());
    });
    for xid in 3..COUNT {
        put_request(&mut bytes, xid, op::GET_DATA, |to| {
            jute::put_string(to, "/a");
            to.push(0);
        });
    }
    wire.send(&bytes).expect("sent");
    for xid in 1..COUNT {
        let frame = wire.receive(PATIENCE).expect("an answer");
        let Incoming::Reply { header, body } = Incoming::parse(&frame).expect("a reply") else {
            panic!("no reply")
        };
        let is_whole = xid < 3 || body.len() == 4 + 5000 + 68 && body[4..5004] == [7; 5000];
        assert_eq!((header.xid, header.err, is_whole), (xid, 0, true));
    }
}

/// The number after the first `name` in a text.
fn figure(text: &str, name: &str) -> u64 {
    let (_, rest) = text.split_once(name).expect(name);
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().expect("a number")
}

// rows: W-08
#[test]
fn four_letter_words_are_counted_and_crst_resets_connections() {
    let server = Server::start("4lw.commands.whitelist=*");
    let ask = |name| word(server.addr, name, PATIENCE).expect("an answer");
    let (mut wire, _) = server.session(&hello());
    let sent = || figure(&ask("srvr"), "Sent: ");
    let before = sent();
    ask("ruok");
    let began = Instant::now();
    // An answer is counted after it is sent: here those to the first srvr and to ruok.
    while sent() < before + 2 {
        assert!(began.elapsed() < PATIENCE, "answers to words are not counted");
    }
    assert!((0..5).all(|_| exists(&mut wire, "/")));
    let received = || {
        let all = ask("cons");
        let own = all.lines().find(|line| line.contains(",sid=")).expect("a session").to_owned();
        figure(&own, "recved=")
    };
    assert!(5 <= received());
    assert_eq!(ask("crst"), "Connection stats reset.\n");
    assert_eq!(received(), 0);
}

/// A JVM prints its threads on SIGQUIT and goes on.
#[test]
fn sigquit_is_logged_and_does_not_stop_the_server() {
    let server = Server::start("");
    server.signal(rustix::process::Signal::QUIT);
    let began = Instant::now();
    while !server.said("err").contains("QUIT: ") {
        assert!(began.elapsed() < PATIENCE, "no log line about QUIT");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.serves();
}
