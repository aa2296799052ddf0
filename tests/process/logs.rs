//! The log of a server: where `logback.xml` and flags send it, files that are renamed, disks that take nothing.

use crate::{Bad, OXKEEPER, PATIENCE, Server, hello, put_create, put_create_with, reply};
use common::ports::free_port;
use oxkeeper::client::{ConnectRequest, put_request};
use oxkeeper::model::op;
use regex::Regex;
use rustix::process::Signal;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// A server with these files beside its zoo.cfg; `DIR` in a text stands for their folder.
fn start(files: &[(&str, &str)], command: impl FnOnce(&Path) -> Command) -> Server {
    start_after(files, |_| {}, command)
}

/// * `before`: what is done in the folder before the start.
fn start_after(
    files: &[(&str, &str)],
    before: impl FnOnce(&Path),
    command: impl FnOnce(&Path) -> Command,
) -> Server {
    let dir = tempfile::tempdir().expect("a directory");
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let text = format!(
        "dataDir=DIR/data\nclientPortAddress=127.0.0.1\nclientPort={}\nadmin.enableServer=false\n",
        addr.port()
    );
    let here = dir.path().display().to_string();
    for (name, text) in files.iter().chain(&[("zoo.cfg", text.as_str())]) {
        fs::write(dir.path().join(name), text.replace("DIR", &here)).expect("a file");
    }
    before(dir.path());
    let child = Server::launch(dir.path(), addr, &mut command(dir.path()));
    Server { dir, addr, child }
}

fn plain(dir: &Path) -> Command {
    let mut command = Command::new(OXKEEPER);
    command.arg(dir.join("zoo.cfg"));
    command
}

/// A link by the name `java`, as scripts call it.
fn java(dir: &Path, flags: &[String]) -> Command {
    let link = dir.join("java");
    std::os::unix::fs::symlink(OXKEEPER, &link).expect("a link");
    let mut command = Command::new(link);
    command.args(flags).args(["-cp", "x", "org.apache.zookeeper.server.quorum.QuorumPeerMain"]);
    command.arg(dir.join("zoo.cfg"));
    command
}

const ROLLING: &str = "<configuration>
  <property name='zookeeper.log.dir' value='DIR/logs'/>
  <appender name='CONSOLE' class='ch.qos.logback.core.ConsoleAppender'><target>System.err</target>
    <filter class='ch.qos.logback.classic.filter.ThresholdFilter'><level>WARN</level></filter></appender>
  <appender name='ROLLINGFILE' class='ch.qos.logback.core.rolling.RollingFileAppender'>
    <File>${zookeeper.log.dir}/${file:-z.log}</File>
    <encoder><pattern>%d{ISO8601} [myid:%X{myid}] - %-5p [%t:%C{1}@%L] - %m%n</pattern></encoder>
    <rollingPolicy class='ch.qos.logback.core.rolling.FixedWindowRollingPolicy'><maxIndex>2</maxIndex>
      <FileNamePattern>${zookeeper.log.dir}/z.log.%i</FileNamePattern></rollingPolicy>
    <triggeringPolicy class='ch.qos.logback.core.rolling.SizeBasedTriggeringPolicy'><MaxFileSize>SIZE</MaxFileSize></triggeringPolicy>
  </appender>
  <root level='INFO'><appender-ref ref='CONSOLE'/><appender-ref ref='ROLLINGFILE'/></root>
</configuration>";

fn stop(server: &mut Server) {
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0));
}

/// The lines, each of which has to have Java's form.
fn java_lines(text: &str) -> Vec<String> {
    let form = r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2},\d{3} \[myid:(\d+)?\] - (ERROR|WARN |INFO |DEBUG|TRACE) \[[^:]+:[A-Za-z0-9]+@\d+\] - .";
    let form = Regex::new(&form.replace(r"\d", "[0-9]")).expect("an expression");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.iter().for_each(|line| assert!(form.is_match(line), "{line}"));
    lines
}

// rows: C-269
#[test]
fn files_of_logback_xml_are_renamed_by_size_and_keep_levels() {
    let xml = ROLLING.replace("SIZE", "400");
    let mut server = start(&[("logback.xml", &xml)], plain);
    for _ in 0..3 {
        stop(&mut server);
        server.child =
            Server::launch(server.dir.path(), server.addr, &mut plain(server.dir.path()));
    }
    stop(&mut server);
    let logs = server.dir.path().join("logs");
    let mut names: Vec<_> = fs::read_dir(&logs)
        .expect("a folder")
        .map(|file| file.expect("a file").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    assert_eq!(names, ["z.log", "z.log.1", "z.log.2"]);
    let text = |name: &str| fs::read_to_string(logs.join(name)).expect("a log");
    let older = text("z.log.2") + &text("z.log.1");
    assert!(text("z.log.1").len() >= 400 && older.len() < 2000);
    java_lines(&older);
    let lines = java_lines(&text("z.log"));
    assert!(lines.last().is_some_and(|line| line.contains(" [myid:] - INFO  [")), "{lines:?}");
    assert_eq!((server.said("out"), server.said("err")), (String::new(), String::new()));
}

// rows: C-269
#[test]
fn lines_have_the_pattern_of_logback_xml_unless_a_form_is_asked_for() {
    let pattern = "%d{HH:mm:ss.SSS, UTC} %-5level [%.3thread] %logger{0}|%X{myid}| %msg%n";
    let more = "<included><property name='zookeeper.log.dir' value='DIR/logs'/></included>";
    let xml = ROLLING
        .replace("%d{ISO8601} [myid:%X{myid}] - %-5p [%t:%C{1}@%L] - %m%n", pattern)
        .replace(
            "<property name='zookeeper.log.dir' value='DIR/logs'/>",
            "<include file='DIR/more.xml'/>",
        )
        .replace("SIZE", "1MB");
    let files = [("logback.xml", xml.as_str()), ("more.xml", more)];
    let asked = |dir: &Path| {
        let mut command = Command::new(OXKEEPER);
        command.arg("--log-format=java").arg(dir.join("zoo.cfg"));
        command
    };
    let form = "^[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3} (WARN |INFO ) \\[[a-z0-9-]{1,3}\\] [A-Za-z0-9]+\\|\\| .";
    let form = Regex::new(form).expect("an expression");
    let mut server = start(&files, plain);
    stop(&mut server);
    let log = |server: &Server| {
        let path = server.dir.path().join("logs/z.log");
        fs::read_to_string(path).expect("a log")
    };
    assert!(log(&server).lines().count() > 3);
    log(&server).lines().for_each(|line| assert!(form.is_match(line), "{line}"));
    assert_eq!(server.said("err"), "", "no part of the file is without effect");
    let mut server = start(&files, asked);
    stop(&mut server);
    java_lines(&log(&server));
}

// rows: C-269
#[test]
fn full_disk_for_log_lines_stops_nothing_and_is_reported_once() {
    let xml = ROLLING.replace("SIZE", "1MB");
    let full = |dir: &Path| {
        fs::create_dir(dir.join("logs")).expect("a folder");
        std::os::unix::fs::symlink("/dev/full", dir.join("logs/z.log")).expect("a link");
    };
    let mut server = start_after(&[("logback.xml", &xml)], full, plain);
    let said = server.said("err");
    let lines = java_lines(&said);
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines[0].contains("log file: lines are lost: make room on its disk"), "{said}");
    fs::remove_file(server.dir.path().join("logs/z.log")).expect("the file is there");
    stop(&mut server);
    let said = server.said("err");
    let again = java_lines(&said)[1].clone();
    let missing = Regex::new("it is written again, [1-9][0-9]* lines are missing").expect("one");
    assert!(missing.is_match(&again) && said.lines().count() == 2, "{said}");
    assert!(
        !java_lines(&fs::read_to_string(server.dir.path().join("logs/z.log")).expect("a log"))
            .is_empty()
    );

    // A file that has reached the limit on the size of files.
    let xml = xml.replace("1MB", "1GB");
    let large = |dir: &Path| {
        fs::create_dir(dir.join("logs")).expect("a folder");
        let file = fs::File::create(dir.join("logs/z.log")).expect("a file");
        file.set_len(200 << 20).expect("a hole");
    };
    let limited = |dir: &Path| {
        let mut command = Command::new("bash");
        command.args(["-c", "ulimit -f 204800; exec \"$0\" \"$1\"", OXKEEPER]);
        command.arg(dir.join("zoo.cfg"));
        command
    };
    let mut server = start_after(&[("logback.xml", &xml)], large, limited);
    stop(&mut server);
    let said = server.said("err");
    assert!(said.lines().count() == 1 && said.contains("log file: lines are lost"), "{said}");

    // A file where the folder should be.
    let blocked = |dir: &Path| fs::write(dir.join("logs"), "").expect("a file");
    let mut server = start_after(&[("logback.xml", &xml)], blocked, plain);
    stop(&mut server);
    let said = server.said("err");
    assert!(said.lines().count() == 1 && said.contains("log file: lines are lost"), "{said}");
}

// rows: C-269
#[test]
fn malformed_logback_xml_is_one_warning() {
    let mut server = start(&[("logback.xml", "<configuration>\n<root></configuration>")], plain);
    stop(&mut server);
    let said = server.said("err");
    let warned: Vec<&str> = said.lines().filter(|line| line.contains(" WARN ")).collect();
    assert!(warned.len() == 1 && warned[0].contains("logback.xml: line 2: "), "{said}");
    assert!(server.banner().starts_with("oxkeeper "), "all else is as without that file");
}

// rows: C-267
#[test]
fn scripts_get_javas_lines_on_standard_output_and_in_the_file_of_their_flags() {
    let flags = |dir: &Path| {
        let dir = dir.display();
        [
            format!("-Dzookeeper.log.dir={dir}/logs"),
            "-Dzookeeper.log.file=zookeeper-zk-server-a.log".to_owned(),
            "-Dzookeeper.root.logger=INFO,CONSOLE,ROLLINGFILE".to_owned(),
            "-Dzookeeper.log.threshold=WARN".to_owned(),
        ]
    };
    let mut server = start(&[], |dir| java(dir, &flags(dir)));
    stop(&mut server);
    let lines = java_lines(&server.said("out"));
    assert!(lines[0].contains(" [myid:] - INFO  [main:Oxkeeper@"), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("] - serving address=")), "{lines:?}");
    assert_eq!(server.said("err"), "");
    let file = server.dir.path().join("logs/zookeeper-zk-server-a.log");
    let levels = fs::read_to_string(file).expect("a log");
    assert!(java_lines(&levels).iter().all(|line| !line.contains("INFO")), "{levels}");
}

// rows: C-267
#[test]
fn lines_of_a_member_name_it_and_a_refused_start_is_on_standard_error_too() {
    let bad = Bad::new();
    let (a, b, c) = (free_port(), free_port(), free_port());
    let text = format!(
        "dataDir={}\nclientPort={}\nadmin.enableServer=false\ninitLimit=5\nsyncLimit=2\n\
         server.7=127.0.0.1:{a}:{b}\nserver.8=127.0.0.1:{c}:{}\nserver.9=127.0.0.1:{}:{}\n",
        bad.path("data").display(),
        free_port(),
        free_port(),
        free_port(),
        free_port()
    );
    fs::write(bad.path("zoo.cfg"), text).expect("a configuration");
    fs::create_dir(bad.path("data")).expect("a folder");
    fs::write(bad.path("data/myid"), "7\n").expect("an id");
    let out = bad.path("out");
    let file = fs::File::create(&out).expect("a file");
    let dir = bad.path(".");
    let mut child = java(&dir, &[]).stdout(file).stderr(Stdio::null()).spawn().expect("a server");
    let began = Instant::now();
    while !fs::read_to_string(&out).expect("what it wrote").contains(" [myid:7] - INFO  [") {
        assert!(began.elapsed() < PATIENCE, "no line names the server");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().expect("the process runs");
    child.wait().expect("its end");
    java_lines(&fs::read_to_string(&out).expect("what it wrote"));

    fs::write(bad.path("zoo.cfg"), "dataDir=d\nclientPort=x\n").expect("a configuration");
    fs::remove_file(dir.join("java")).expect("the link");
    let ended = java(&dir, &[]).output().expect("its end");
    assert_eq!(ended.status.code(), Some(2));
    let (out, err) =
        (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(java_lines(&out).iter().any(|line| line.contains("clientPort=x")), "{out}");
    assert!(err.starts_with("ERROR ") && err.contains("clientPort=x"), "{err}");
}

// rows: C-269 U-30
#[test]
fn audit_log_goes_into_the_file_of_its_logger() {
    let xml = "<configuration><appender name='C' class='ch.qos.logback.core.ConsoleAppender'/>
      <appender name='RFAAUDIT' class='ch.qos.logback.core.rolling.RollingFileAppender'><File>DIR/zookeeper_audit.log</File>
      <encoder><pattern>%d{ISO8601} %p %c{2}: %m%n</pattern></encoder>
      <rollingPolicy class='ch.qos.logback.core.rolling.FixedWindowRollingPolicy'><maxIndex>10</maxIndex>
        <FileNamePattern>DIR/zookeeper_audit.log.%i</FileNamePattern></rollingPolicy>
      <triggeringPolicy class='ch.qos.logback.core.rolling.SizeBasedTriggeringPolicy'><MaxFileSize>10MB</MaxFileSize></triggeringPolicy></appender>
      <logger name='org.apache.zookeeper.audit.Slf4jAuditLogger' additivity='false' level='INFO'><appender-ref ref='RFAAUDIT'/></logger>
      <root level='WARN'><appender-ref ref='C'/></root></configuration>";
    let mut server = start(&[("logback.xml", xml)], |dir| {
        let mut command = plain(dir);
        command.arg("-Dzookeeper.audit.enable=true");
        command
    });
    stop(&mut server);
    let audit = server.said("zookeeper_audit.log");
    assert!(audit.ends_with("operation=serverStop\tresult=invoked\n"), "{audit}");
    assert_eq!(server.said("out"), "", "the root logger writes warnings alone");
}

/// Its zoo.cfg was written anew without members, and those of its last configuration may go on.
// rows: D-09
#[test]
fn standalone_server_with_the_data_of_a_member_warns_of_its_ensemble() {
    let members =
        |last: u32| (1..=last).map(|id| format!("server.{id}=a:1:2\n")).collect::<String>();
    let mut server = Server::start("");
    let copy = server.dir.path().join("data/version-2/lastConfiguration");
    for (last, is_reported) in [(0, false), (1, false), (3, true)] {
        stop(&mut server);
        if 0 < last {
            fs::write(&copy, format!("{}version=100000000", members(last))).expect("a file");
        }
        server.again(&[]);
        let log = server.said("err");
        let line = log.lines().find(|line| line.contains("with the data of a member"));
        assert_eq!(line.is_some(), is_reported, "{log}");
        assert!(line.is_none_or(|line| line.contains("WARN") && line.contains("1 2 3")), "{log}");
    }
    stop(&mut server);
}

/// An earlier server had a larger limit, set in a `java.env` that is no longer read.
#[test]
fn znodes_above_jute_maxbuffer_are_reported_at_the_start() {
    const TOLD: &str = "znodes have more data than jute.maxbuffer";
    let mut server = Server::start("");
    let (mut wire, _) = server.session(&hello());
    let mut bytes = Vec::new();
    for (xid, path, len) in [(1, "/large", 4097), (2, "/fits", 4096)] {
        put_create_with(&mut bytes, xid, path, &vec![b'x'; len], 0);
    }
    wire.send(&bytes).unwrap();
    assert_eq!([reply(&mut wire), reply(&mut wire)], [Some((1, 0)), Some((2, 0))]);
    stop(&mut server);
    for (flags, is_reported) in [(&["-Djute.maxbuffer=4096"][..], true), (&[], false)] {
        server.again(flags);
        stop(&mut server);
        let log = server.said("err");
        let line = log.lines().find(|line| line.contains(TOLD));
        assert_eq!(line.is_some(), is_reported, "{log}");
        for part in ["WARN", "count=1", "limit=4096", "/large"] {
            assert!(line.is_none_or(|line| line.contains(part)), "{log}");
        }
        assert!(!log.contains("/fits"), "{log}");
    }
}

/// The first line of the log with this text, once it is there.
pub(super) fn line_with(server: &Server, text: &str) -> String {
    let began = Instant::now();
    loop {
        let log = server.said("err");
        if let Some(line) = log.lines().find(|line| line.contains(text)) {
            return line.to_owned();
        }
        assert!(began.elapsed() < PATIENCE, "{text} is not in {log}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn ends_of_sessions_are_lines_with_cause_address_timeout_and_ephemerals() {
    let mut server = Server::start("tickTime=200\nmaxSessionTimeout=60000");
    stop(&mut server);
    server.again(&["--log-level=debug"]);
    let (mut closes, closed) = server.session(&hello());
    let (mut expires, expired) = server.session(&ConnectRequest { timeout_ms: 600, ..hello() });
    let (drops, dropped) = server.session(&hello());
    let mut bytes = Vec::new();
    put_create(&mut bytes, 1, "/a", 1);
    put_create(&mut bytes, 2, "/b", 1);
    put_create(&mut bytes, 3, "/stays", 0);
    put_request(&mut bytes, 4, op::CLOSE_SESSION, |_| {});
    closes.send(&bytes).expect("sent");
    assert_eq!([1, 2, 3, 4].map(|_| reply(&mut closes)), [1, 2, 3, 4].map(|xid| Some((xid, 0))));
    let mut bytes = Vec::new();
    put_create(&mut bytes, 1, "/c", 1);
    expires.send(&bytes).expect("sent");
    assert_eq!(reply(&mut expires), Some((1, 0)));
    drop(drops);
    for (id, text, timeout_ms, rest) in [
        (closed.session_id, "session closed by its client", 30_000, "ephemerals=2"),
        (expired.session_id, " session expired ", 600, "INFO"),
        (expired.session_id, "expired session closed", 600, "ephemerals=1"),
    ] {
        let line = line_with(&server, text);
        let (session, timeout) = (format!("session={id:#x}"), format!("timeout_ms={timeout_ms}"));
        for part in [session.as_str(), "peer=127.0.0.1:", &timeout, rest] {
            assert!(line.contains(part), "{part} is not in {line}");
        }
    }
    let named = format!("session={:#x}", dropped.session_id);
    assert!(line_with(&server, "client disconnected").contains("session="));
    stop(&mut server);
    let log = server.said("err");
    let mut lines = log.lines().filter(|line| line.contains(&named));
    assert!(lines.clone().any(|line| line.contains("client disconnected")), "{log}");
    assert!(lines.all(|line| !line.contains("closed by")), "{log}");
}

#[test]
fn opened_and_resumed_sessions_are_different_lines() {
    let mut server = Server::start("");
    stop(&mut server);
    server.again(&["--log-level=debug"]);
    let (wire, opened) = server.session(&hello());
    drop(wire);
    line_with(&server, "client disconnected");
    let (session_id, password) = (opened.session_id, opened.password);
    let (wire, resumed) = server.session(&ConnectRequest { session_id, password, ..hello() });
    assert_eq!(resumed.session_id, session_id);
    drop(wire);
    stop(&mut server);
    let log = server.said("err");
    let session = format!("session={session_id:#x} ");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(&session)).collect();
    for text in ["session opened", "session resumed"] {
        let count = lines.iter().filter(|line| line.contains(text)).count();
        assert_eq!(count, 1, "{text}: {log}");
    }
    for part in ["DEBUG", "peer=127.0.0.1:", "timeout_ms=30000"] {
        let begins = lines.iter().filter(|line| line.contains("session "));
        assert!(begins.clone().all(|line| line.contains(part)), "{part}: {log}");
    }
}
