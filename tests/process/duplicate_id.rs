//! Two servers with the same `myid`, as a third server and each of the two see it.

use super::logs::line_with;
use crate::{OXKEEPER, PATIENCE, Server};
use common::ports::free_port;
use oxkeeper::member::duplicate_id::other_address;
use oxkeeper::member::election_hello::Hello;
use oxkeeper::model::ServerId;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Member 1 of two, which no other member has joined.
fn lone_member(election: SocketAddr) -> Server {
    let dir = tempfile::tempdir().expect("a directory");
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let (quorum, here) = (free_port(), dir.path().join("data"));
    let text = format!(
        "dataDir={}\nclientPortAddress=127.0.0.1\nclientPort={}\nadmin.enableServer=false\ninitLimit=5\nsyncLimit=5\n\
         server.1=127.0.0.1:{quorum}:{}\nserver.2=127.0.0.1:1:2\n",
        here.display(),
        addr.port(),
        election.port()
    );
    fs::create_dir(&here).expect("a folder");
    fs::write(here.join("myid"), "1").expect("a file");
    fs::write(dir.path().join("zoo.cfg"), text).expect("a configuration");
    let output = |name: &str| Stdio::from(fs::File::create(dir.path().join(name)).expect("a file"));
    let mut command = Command::new(OXKEEPER);
    let command = command.arg(dir.path().join("zoo.cfg"));
    let child = command.stdout(output("out")).stderr(output("err")).spawn().expect("a server");
    Server { dir, addr, child }
}

/// Dials from this address as server 2, and returns the connection with its first message.
fn server_two(from: Ipv4Addr, to: SocketAddr) -> (TcpStream, Vec<u8>) {
    let began = Instant::now();
    let mut stream = loop {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&socket, &SocketAddr::from((from, 0))).expect("an address of this machine");
        match connect(&socket, &to) {
            Ok(()) => break TcpStream::from(socket),
            Err(error) => assert!(began.elapsed() < PATIENCE, "no election port: {error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let hello = Hello { id: ServerId(2), addresses: vec![("127.0.0.1".to_owned(), 2)] };
    stream.write_all(&hello.encode(false)).expect("sent");
    let mut len = [0; 4];
    stream.read_exact(&mut len).expect("a message");
    let mut message = vec![0; u32::from_be_bytes(len) as usize];
    stream.read_exact(&mut message).expect("a whole message");
    (stream, message)
}

#[test]
fn second_server_with_one_myid_is_reported_to_both_with_both_addresses() {
    let election = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let member = lone_member(election);
    let (right, message) = server_two(Ipv4Addr::LOCALHOST, election);
    let right = right.local_addr().expect("its address");
    assert_eq!(other_address(&message), None, "it is the only server 2");
    // A server that was connected for a shorter time may have lost that connection.
    std::thread::sleep(Duration::from_millis(2100));
    let (mut wrong, message) = server_two(Ipv4Addr::new(127, 0, 0, 2), election);
    assert_eq!(other_address(&message), Some(right));
    let line = line_with(&member, "two servers seem to have the same myid");
    for part in [&format!("connected_peer={right}"), "peer=127.0.0.2:", "server_id=2", "WARN"] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    // The same message tells the member that a server of its own id is there.
    let frame = [&(message.len() as u32).to_be_bytes()[..], &message].concat();
    wrong.write_all(&[frame.clone(), frame].concat()).expect("sent");
    let line = line_with(&member, "another server seems to have this server's myid");
    for part in [
        &format!("peer={right}"),
        &format!("own_addresses={election}"),
        "reported_by=2",
        "server_id=1",
        "WARN",
    ] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
}
