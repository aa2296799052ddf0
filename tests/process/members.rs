//! How a member of an ensemble starts from its files, or refuses to.

use crate::{Bad, OXKEEPER, PATIENCE, Server, ended, hello, put_create, reply};
use common::ports::free_port;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The files in `version-2` whose names begin with `prefix`.
fn files(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(dir.join("data/version-2")).expect("a folder");
    let paths = all.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
        })
        .collect()
}

/// Otherwise a member that was started with snapshot.trust.empty would need that setting at every later start.
// rows: D-61
#[test]
fn member_without_a_snapshot_takes_one_at_its_start() {
    let mut server = Server::start("");
    let mut wire = server.session(&hello()).0;
    let mut bytes = Vec::new();
    put_create(&mut bytes, 1, "/a", 0);
    wire.send(&bytes).expect("sent");
    assert_eq!(reply(&mut wire), Some((1, 0)));
    drop(wire);
    server.signal(rustix::process::Signal::TERM);
    server.ended();
    let dir = server.dir.path().to_owned();
    files(&dir, "snapshot.").into_iter().for_each(|path| fs::remove_file(path).expect("removed"));
    fs::write(dir.join("data/myid"), "1").expect("a file");
    let (one, two) = (free_port(), free_port());
    let mut text = server.said("zoo.cfg");
    text += &format!(
        "initLimit=5\nsyncLimit=5\nserver.1=127.0.0.1:{one}:{two}\nserver.2=127.0.0.1:1:2\n"
    );
    fs::write(dir.join("zoo.cfg"), text).expect("a configuration");
    // Without a quorum it serves no clients.
    let mut command = Command::new(OXKEEPER);
    command.arg("-Dzookeeper.snapshot.trust.empty=true").arg(dir.join("zoo.cfg"));
    server.child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a server");
    let began = Instant::now();
    while files(&dir, "snapshot.").is_empty() {
        assert!(began.elapsed() < PATIENCE, "no snapshot is taken");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Two members whose ensemble may change, as zoo.cfg has them.
const MEMBERS: &str = "server.1=127.0.0.1:1:2\nserver.2=127.0.0.1:3:4\n";
const HEAD: &str = "clientPort=0\ndataDir=@\ninitLimit=5\nsyncLimit=5\nreconfigEnabled=true\n";

/// It might lead by an older configuration, beside the members of that one.
// rows: D-09
#[test]
fn member_that_cannot_read_its_last_configuration_refuses_to_start() {
    let bad = Bad::new();
    fs::write(bad.path("myid"), "1").expect("a file");
    fs::create_dir(bad.path("version-2")).expect("a folder");
    fs::write(bad.path("version-2/lastConfiguration"), "server.1=").expect("a file");
    let output = bad.run(format!("{HEAD}{MEMBERS}").as_bytes());
    ended(&output, 1, &["can't use the last configuration", "empty this member's version-2"]);
}

/// Its zoo.cfg was written anew with its own line alone, and the others may go on.
// rows: D-09
#[test]
fn standalone_server_with_the_data_of_a_member_refuses_to_start() {
    let bad = Bad::new();
    fs::create_dir(bad.path("version-2")).expect("a folder");
    let copy = format!("{MEMBERS}version=100000000");
    fs::write(bad.path("version-2/lastConfiguration"), copy).expect("a file");
    let output = bad.run(HEAD.as_bytes());
    ended(&output, 1, &["standalone", "of a member of the ensemble of servers 1 2", "remove"]);
}

/// The start tries the writes that a reconfiguration would need.
// rows: D-09 D-10
#[test]
fn member_that_cannot_write_its_configuration_refuses_to_start() {
    let bad = Bad::new();
    fs::write(bad.path("myid"), "1").expect("a file");
    // A folder has the name of a file that the server has to write.
    fs::create_dir(bad.path("zoo.cfg.bak.tmp")).expect("a folder");
    let advice = "With reconfigEnabled=true the server needs to write there";
    let output = bad.run(format!("{HEAD}{MEMBERS}").as_bytes());
    ended(&output, 2, &["can't copy the static configuration file in", advice]);
    fs::write(bad.path("zoo.cfg.dynamic"), MEMBERS).expect("a file");
    fs::create_dir(bad.path("zoo.cfg.dynamic.try.tmp")).expect("a folder");
    let output = bad.run(format!("{HEAD}dynamicConfigFile=@/zoo.cfg.dynamic\n").as_bytes());
    ended(&output, 2, &["can't write beside the static configuration file in", advice]);
}
