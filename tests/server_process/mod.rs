//! The server's binary in a folder of its own, and a client for it.
#![allow(dead_code, reason = "each test binary uses another part of it")]
#![allow(clippy::disallowed_methods, reason = "another process is waited for by the clock")]

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::ports::free_port;
use jute::data::Stat;
use jute::proto::{CreateRequest, ExistsRequest, GetChildrenRequest};
use jute::{Encode, Reader, Ustring, Vector};
use oxkeeper::client::{self, ClientError, ConnectRequest, Incoming, Wire, op, put_request};
use rustix::process::{Pid, Signal, kill_process};
use support::bodies::open_acl;

pub const OXKEEPER: &str = env!("CARGO_BIN_EXE_oxkeeper");
/// How long anything may take before the test fails: a bound against hanging, not an expectation.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a command with a limit on file sizes, and ignores the signal that would kill it: writes beyond the limit fail, as on a
/// full disk.
pub const FILE_LIMIT: &str = r#"trap '' XFSZ; exec prlimit --fsize="$LIMIT" "$@""#;

pub struct Process {
    pub home: PathBuf,
    pub addr: SocketAddr,
    log_start: u64,
    child: Child,
}

impl Process {
    /// Starts a server on `home/data` and returns at once.
    ///
    /// * `settings`: lines of zoo.cfg. The client port is added, and its address and dataDir unless `settings` has them.
    /// * `file_max`: largest file in bytes; 0: no limit.
    pub fn spawn(home: &Path, settings: &str, file_max: u64) -> Self {
        Self::spawn_as(&[], Path::new(OXKEEPER), home, settings, file_max)
    }

    fn spawn_as(
        before: &[&str],
        binary: &Path,
        home: &Path,
        settings: &str,
        file_max: u64,
    ) -> Self {
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let mut config =
            format!("{settings}\nclientPort={}\n4lw.commands.whitelist=*\n", addr.port());
        // One server of a machine has port 8080.
        if !settings.contains("admin.") {
            config.push_str("admin.enableServer=false\n");
        }
        if !settings.contains("clientPortAddress=") {
            config.push_str("clientPortAddress=127.0.0.1\n");
        }
        if !settings.contains("dataDir=") {
            config.push_str(&format!("dataDir={}\n", home.join("data").display()));
        }
        let file = home.join("zoo.cfg");
        fs::write(&file, config).unwrap();
        let log = File::options().create(true).append(true).open(home.join("log")).unwrap();
        let log_start = log.metadata().unwrap().len();
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(if file_max == 0 { r#"exec "$@""# } else { FILE_LIMIT });
        command.arg("sh").args(before).arg(binary).arg(&file);
        command.env("LIMIT", file_max.to_string()).stdin(Stdio::null());
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        Self { home: home.to_owned(), addr, log_start, child }
    }

    /// Starts a server, and waits until it serves.
    ///
    /// * `flags`: of Java, such as `-Dname=value`.
    pub fn start_with_flags(home: &Path, settings: &str, flags: &str) -> Self {
        let flags = format!("SERVER_JVMFLAGS={flags}");
        let mut process = Self::spawn_as(&["env", &flags], Path::new(OXKEEPER), home, settings, 0);
        process.wait_until_serving();
        process
    }

    /// Starts a server that may read its folder but not write to it, also when root runs the test.
    pub fn spawn_without_rights(home: &Path) -> Self {
        let data = home.join("data/version-2");
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap()
        };
        mode(home, 0o755);
        mode(&data, 0o555);
        if !rustix::process::geteuid().is_root() {
            return Self::spawn(home, "", 0);
        }
        // The user `nobody` may have no access to the binary's folder.
        let binary = home.join("oxkeeper");
        fs::copy(OXKEEPER, &binary).unwrap();
        let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        Self::spawn_as(&nobody, &binary, home, "", 0)
    }

    /// Starts a server and waits until it serves.
    #[track_caller]
    pub fn start(home: &Path, settings: &str) -> Self {
        let mut process = Self::spawn(home, settings, 0);
        process.wait_until_serving();
        process
    }

    #[track_caller]
    pub fn wait_until_serving(&mut self) {
        let begun = Instant::now();
        while self.word("ruok") != "imok" {
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() && begun.elapsed() < PATIENCE,
                "not serving: {ended:?}\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn word(&self, word: &str) -> String {
        client::word(self.addr, word, PATIENCE).unwrap_or_default()
    }

    /// What the process has printed since its start.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.home.join("log")).unwrap();
        String::from_utf8_lossy(&bytes[self.log_start as usize..]).into_owned()
    }

    /// Waits for the process to exit; returns the exit code and what it has printed.
    #[track_caller]
    pub fn end(mut self) -> (i32, String) {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "still running:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        };
        (status.code().expect("an exit code and no signal"), self.log())
    }

    /// SIGKILL and a restart, without waiting until the server serves.
    pub fn kill_and_restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut command = Command::new(OXKEEPER);
        self.child = command.arg(self.home.join("zoo.cfg")).stdout(Stdio::null()).spawn().unwrap();
    }

    /// Stops the process, as a suspended machine does, and lets it go on after `length`.
    pub fn pause(&self, length: Duration) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).unwrap();
        std::thread::sleep(length);
        kill_process(Pid::from_child(&self.child), Signal::CONT).unwrap();
    }

    /// SIGTERM, then waits for exit status 0.
    #[track_caller]
    pub fn stop(self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let (code, log) = self.end();
        assert_eq!(code, 0, "{log}");
    }

    pub fn client(&self) -> Client {
        self.try_client(self.addr).unwrap()
    }

    /// * `at`: the address and port to connect to.
    pub fn try_client(&self, at: SocketAddr) -> Result<Client, ClientError> {
        let mut wire = Wire::open(at, PATIENCE)?;
        let hello = ConnectRequest {
            timeout_ms: 30_000,
            password: vec![0; 16],
            ..ConnectRequest::default()
        };
        wire.handshake(&hello, PATIENCE)?;
        Ok(Client { wire, xid: 0 })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One session with one request at a time.
pub struct Client {
    wire: Wire,
    xid: i32,
}

impl Client {
    /// Sends a request; returns code and body of the reply.
    pub fn ask(&mut self, kind: i32, body: &impl Encode) -> Result<(i32, Vec<u8>), ClientError> {
        self.xid += 1;
        let mut bytes = Vec::new();
        put_request(&mut bytes, self.xid, kind, |to| body.encode(to));
        self.wire.send(&bytes)?;
        let frame = self.wire.receive(PATIENCE)?;
        match Incoming::parse(&frame).unwrap() {
            Incoming::Reply { header, body } => {
                assert_eq!(header.xid, self.xid);
                Ok((header.err, body.to_vec()))
            }
            Incoming::Event { event, .. } => panic!("{event:?}"),
        }
    }

    pub fn create(&mut self, path: &str, data: &[u8]) -> Result<i32, ClientError> {
        let path = Some(path.into());
        let request = CreateRequest { path, data: Some(data), acl: open_acl(), flags: 0 };
        Ok(self.ask(op::CREATE, &request)?.0)
    }

    /// Creates `prefix0`, `prefix1` and so on until the server is gone or there are `max`; returns how many creates were
    /// answered.
    pub fn create_many(&mut self, prefix: &str, data: &[u8], max: usize) -> usize {
        for at in 0..max {
            match self.create(&format!("{prefix}{at}"), data) {
                Ok(code) => assert_eq!(code, 0),
                Err(_gone) => return at,
            }
        }
        max
    }

    /// Names of the children of a znode.
    pub fn children(&mut self, path: &str) -> Vec<String> {
        let request = GetChildrenRequest { path: Some(path.into()), watch: false };
        let (code, body) = self.ask(op::GET_CHILDREN, &request).unwrap();
        assert_eq!(code, 0, "{path}");
        let names: Vector<'_, Ustring<'_>> = Reader::new(&body).read().unwrap();
        names.iter().flatten().map(std::borrow::Cow::into_owned).collect()
    }

    pub fn exists(&mut self, path: &str) -> bool {
        self.stat(path).is_some()
    }

    pub fn stat(&mut self, path: &str) -> Option<Stat> {
        let request = ExistsRequest { path: Some(path.into()), watch: false };
        let (code, body) = self.ask(op::EXISTS, &request).unwrap();
        (code == 0).then(|| Reader::new(&body).read().unwrap())
    }
}

/// A folder's files whose names begin with `prefix` and a dot.
pub fn names(dir: &Path, prefix: &str) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name.split_once('.').is_some_and(|name| name.0 == prefix)).collect()
}

pub fn zxid_of(name: &str) -> Option<i64> {
    i64::from_str_radix(name.split('.').nth(1)?, 16).ok()
}

/// Zxids in the names of a folder's files that begin with `prefix` and a dot, sorted.
pub fn zxids(dir: &Path, prefix: &str) -> Vec<i64> {
    let mut found: Vec<i64> = names(dir, prefix).iter().filter_map(|name| zxid_of(name)).collect();
    found.sort_unstable();
    found
}

/// Waits until `done` returns true, as another process has done something.
#[track_caller]
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
