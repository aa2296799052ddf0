//! Any bytes as what another member says: they are refused with a reason or understood, what was understood survives being
//! written and read again, and neither a learner nor a leader comes to harm by it.
//!
//! The first byte chooses who says it: a leader, a learner, or one who calls on the election port.

#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use oxkeeper::member::opening::NoOpening;
use oxkeeper::member::quorum_connection::{QuorumConnection, QuorumEvent};
use oxkeeper::model::{Epoch, Epochs, ServerId, View, Zxid};
use oxkeeper::member::election_connection::next_message;
use oxkeeper::member::election_hello::Hello;
use oxkeeper::tree::Options;
use oxkeeper::tree::txn::config_in;
use oxkeeper::zab::{Action, Input, LearnerConnectionId, Notification, Packet, Peer, Role, Settings};
use support::peer::PeerOnDisk;

const SETTINGS: Settings = Settings { sync_limit: 5, reconfigs: true, ..Settings::DEFAULT };
const CONNECTION: LearnerConnectionId = LearnerConnectionId(1);
const ME: ServerId = ServerId(2);
const LEADER: ServerId = ServerId(3);
/// Where the captures of Java's members begin.
const LAST: Zxid = Zxid::new(Epoch(1), 0xf);

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    match choice % 3 {
        0 => member(LEADER, bytes),
        1 => member(ME, bytes),
        _ => election(bytes),
    }
});

/// A member under `leader`, which may be itself, hears all packets.
fn member(leader: ServerId, bytes: &[u8]) {
    let text = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nserver.4=d:1:2:observer";
    let view = View::parse(text).expect("a view");
    let mut peer = Peer::member(ME, SETTINGS, view, Epochs::both(Epoch(1)), Some(LAST));
    peer.core.finds_view = |entry| View::from_bytes(config_in(entry)?).ok();
    let mut server = PeerOnDisk::new(peer);
    step(&mut server, Input::Tick);
    server.votes_for(leader.0).into_iter().for_each(|vote| step(&mut server, vote));
    let (heard, is_whole) = hear(leader, &[bytes]);
    let (front, back) = bytes.split_at(bytes.len() / 2);
    assert!((heard.clone(), is_whole) == hear(leader, &[front, back]), "cut or not");
    for packet in heard {
        let again = Packet::decode(&mut BytesMut::from(&packet.to_bytes()[..]));
        assert_eq!(again.as_ref(), Ok(&Some(packet.clone())), "written and read again");
        match leader == ME {
            true => step(&mut server, Input::Learner { connection: CONNECTION, packet }),
            false => step(&mut server, Input::Leader { packet }),
        }
    }
}

/// The packets in these parts of a stream, SNAP once its tree has come; and whether there was nothing wrong with them.
fn hear(leader: ServerId, parts: &[&[u8]]) -> (Vec<Packet>, bool) {
    let options = Options { seed: 1, ..Options::default() };
    let mut connection = match leader == ME {
        true => QuorumConnection::accepted(CONNECTION, Box::new(NoOpening), 0),
        false => QuorumConnection::dialed(1, Box::new(NoOpening), options),
    };
    let mut events = Vec::new();
    let is_whole = parts.iter().all(|part| connection.receive(part, 0, &mut events).is_ok());
    let mut packets = Vec::new();
    for event in events {
        match event {
            QuorumEvent::Packets(all) => {
                all.into_iter().for_each(|packet| packet.push_to(&mut packets));
            }
            QuorumEvent::Tree { zxid, .. } => packets.push(Packet::Snap { zxid }),
            QuorumEvent::Progress => {}
        }
    }
    (packets, is_whole)
}

/// Performs what follows from an input, on a disk that takes no time.
fn step(server: &mut PeerOnDisk, input: Input) {
    for action in server.settle(input) {
        if let Some(answer) = server.answer(&action) {
            step(server, answer);
        }
        match action {
            Action::FromLearner { packet: Packet::Request(asked), .. } => propose(server, asked.body),
            Action::CloseLearner { connection, .. } => step(server, Input::LearnerGone { connection }),
            _ => {}
        }
    }
}

fn propose(server: &mut PeerOnDisk, payload: Bytes) {
    let peer = &server.peer;
    let Role::Leading(leader) = peer.role() else { return };
    if !leader.is_broadcasting() {
        return;
    }
    let last = peer.core.history.last().max(Zxid::new(leader.epoch(), 0));
    let Some(zxid) = last.next() else { return };
    step(server, Input::Propose { zxid, payload });
}

fn election(bytes: &[u8]) {
    let Ok(Some((hello, taken))) = Hello::parse(bytes) else { return };
    let several = hello.addresses.len() > 1;
    if let Ok(Some((again, _))) = Hello::parse(&hello.encode(several)) {
        assert_eq!(again, hello, "written and read again");
    }
    let mut unread = BytesMut::from(&bytes[taken..]);
    while let Ok(Some(message)) = next_message(&mut unread) {
        let Ok(read) = Notification::decode(&message) else { continue };
        let again = Notification::decode(&read.encode()).expect("what we write can be read");
        // Older forms are written as the one of today.
        assert_eq!((again.state, again.vote, again.round), (read.state, read.vote, read.round));
    }
}
