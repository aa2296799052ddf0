//! The audit log of a server: its file, what a slow disk delays, what SIGKILL loses.

use crate::{
    Bad, OXKEEPER, PATIENCE, Server, create_until_closed, exists, hello, put_create, refused, reply,
};
use common::ports::free_port;
use rustix::process::Signal;
use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const FILE: &str = "audit.log";

fn flags(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "-Dzookeeper.audit.enable=true -Dzookeeper.auditlog.file={FILE} -Dzookeeper.log.dir={dir}"
    )
}

/// A server whose audit log is a file beside its zoo.cfg.
///
/// * `before`: what is done in its folder before the start.
fn start(before: impl FnOnce(&Path)) -> Server {
    let dir = tempfile::tempdir().expect("a directory");
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let data = dir.path().join("data");
    let text = format!(
        "dataDir={}\nclientPortAddress=127.0.0.1\nclientPort={}\nadmin.enableServer=false\n",
        data.display(),
        addr.port()
    );
    fs::write(dir.path().join("zoo.cfg"), text).expect("a configuration");
    before(dir.path());
    let mut command = Command::new(OXKEEPER);
    command.arg(dir.path().join("zoo.cfg")).env("SERVER_JVMFLAGS", flags(dir.path()));
    let child = Server::launch(dir.path(), addr, &mut command);
    Server { dir, addr, child }
}

/// The text of a whole line after its time, which has the form of log4j.
fn after_time(line: &str) -> &str {
    let (time, rest) = line.split_at("2026-11-22 18:00:00,123".len());
    let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00 00:00:00,000", "{line}");
    rest
}

fn user() -> String {
    let output = Command::new("id").arg("-un").output().expect("id");
    String::from_utf8(output.stdout).expect("a name").trim().to_owned()
}

// rows: U-30 U-31
#[test]
fn lines_go_into_a_file_of_their_own_and_cannot_be_forged() {
    let mut server = start(|_| {});
    let (mut wire, response) = server.session(&hello());
    let mut bytes = Vec::new();
    put_create(&mut bytes, 1, "/a", 1);
    put_create(&mut bytes, 2, "/x\ny\tresult=success", 0);
    wire.send(&bytes).expect("sent");
    assert_eq!([reply(&mut wire), reply(&mut wire)], [Some((1, 0)), Some((2, -8))]);
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0));
    let log = server.said(FILE);
    let lines: Vec<&str> = log.lines().map(after_time).collect();
    let (user, session) = (user(), format!("{:#x}", response.session_id));
    let logger = "o.a.z.a.Slf4jAuditLogger:";
    let client =
        format!("{logger} session={session}\tuser=127.0.0.1\tip=127.0.0.1\toperation=create");
    assert_eq!(
        lines,
        [
            format!(" INFO {logger} user={user}\toperation=serverStart\tresult=success"),
            format!(" INFO {client}\tznode=/a\tznode_type=ephemeral\tresult=success"),
            format!(
                " ERROR {client}\tznode=/x\\u000ay\\u0009result=success\tznode_type=persistent\tresult=failure"
            ),
            format!(" INFO {logger} user={user}\toperation=serverStop\tresult=invoked"),
        ]
    );
    assert!(!server.said("err").contains(logger), "they are not in the server's log too");
}

// rows: U-30
#[test]
fn without_a_file_the_lines_are_in_the_servers_log() {
    let mut server = Server::start("audit.enable=true");
    server.signal(Signal::TERM);
    server.ended();
    let log = server.said("err");
    let line = |rest: &str| format!("INFO o.a.z.a.Slf4jAuditLogger: user={}\t{rest}", user());
    assert!(log.contains(&line("operation=serverStart\tresult=success")), "{log}");
    assert!(log.contains(&line("operation=serverStop\tresult=invoked")), "{log}");
}

// rows: U-32 C-225
#[test]
fn failed_start_is_logged_and_another_logger_is_refused() {
    let bad = Bad::new();
    let dir = bad.path("logs");
    fs::write(bad.path("zoo.cfg"), "dataDir=d\nclientPort=x\n").expect("a configuration");
    let flags = flags(&dir);
    refused(&bad.start(&["zoo.cfg"], &[("JVMFLAGS", &flags)]), 2, &["clientPort=x"]);
    let log = fs::read_to_string(dir.join(FILE)).expect("an audit log");
    assert!(log.ends_with("\toperation=serverStart\tresult=failure\n"), "{log}");
    assert!(after_time(&log).starts_with(" ERROR "), "{log}");
    fs::write(bad.path("zoo.cfg"), "dataDir=d\nclientPort=0\naudit.impl.class=x.Y\n").unwrap();
    refused(
        &bad.start(&["zoo.cfg"], &[("JVMFLAGS", &flags)]),
        2,
        &["zoo.cfg:3: audit.impl.class=x.Y"],
    );
    // A folder where its file should be.
    fs::write(bad.path("zoo.cfg"), "dataDir=d\nclientPort=0\n").unwrap();
    fs::create_dir_all(bad.path("other").join(FILE)).unwrap();
    let flags = super::audit::flags(&bad.path("other"));
    refused(
        &bad.start(&["zoo.cfg"], &[("JVMFLAGS", &flags)]),
        1,
        &["can't open the audit log", "Is a directory", "-Dzookeeper.log.dir"],
    );
}

#[test]
fn a_disk_that_takes_nothing_delays_writes_alone() {
    let mut pipe = None;
    let server = start(|dir| {
        let path = dir.join(FILE);
        assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
        // Open at both ends, so that opening it does not wait.
        let file = fs::OpenOptions::new().read(true).write(true).open(&path);
        pipe = Some(file.expect("a pipe"));
    });
    let (mut writer, _) = server.session(&hello());
    // Refused, so that only the audit log keeps these paths.
    let path = format!("/missing/{}", "x".repeat(500_000));
    let count = 100;
    let mut answered = 0;
    let mut sent = 0;
    // Until the queue is full: 16 MiB, and what was outstanding.
    while sent < count {
        sent += 1;
        let mut bytes = Vec::new();
        put_create(&mut bytes, sent, &path, 0);
        writer.send(&bytes).expect("sent");
        // On a busy machine an answer may take longer, which says nothing while there is room.
        let wait = if answered < 30 { PATIENCE } else { Duration::from_secs(1) };
        match writer.receive(wait) {
            Ok(_) => answered += 1,
            Err(_) => break,
        }
    }
    assert!((30..60).contains(&answered), "{answered} of {sent} were answered");
    let (mut other, _) = server.session(&hello());
    let began = Instant::now();
    for _ in 0..100 {
        assert!(!exists(&mut other, "/missing"), "reads are answered");
    }
    assert!(began.elapsed() < PATIENCE);
    // The disk takes bytes again.
    let mut pipe = pipe.expect("the pipe was made");
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 20];
        while pipe.read(&mut buffer).is_ok() {}
    });
    assert_eq!(reply(&mut writer), Some((sent, -101)));
}

#[test]
fn kill_loses_only_lines_at_the_end() {
    let mut server = start(|_| {});
    let (mut wire, _) = server.session(&hello());
    let writing = std::thread::spawn(move || create_until_closed(&mut wire, "k"));
    let began = Instant::now();
    while server.said(FILE).lines().count() < 100 {
        assert!(began.elapsed() < PATIENCE, "no lines");
        std::thread::sleep(Duration::from_millis(5));
    }
    server.signal(Signal::KILL);
    server.ended();
    let acknowledged = writing.join().expect("no panic");
    let log = server.said(FILE);
    let whole = log.lines().filter(|line| line.ends_with("\tresult=success"));
    let creates = whole.filter_map(|line| line.split("\tznode=/k-").nth(1));
    let numbers: Vec<i32> =
        creates.map(|rest| rest.split('\t').next().unwrap().parse().unwrap()).collect();
    let count = numbers.len() as i32;
    assert!(numbers.into_iter().eq(1..=count), "without a gap");
    assert!((99..=acknowledged + 8).contains(&count), "{count} of {acknowledged}");
}
