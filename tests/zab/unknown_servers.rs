//! What a server keeps in memory of servers in no configuration.

use bytes::Bytes;
use oxkeeper::model::{Epoch, ServerId, SessionId, Zxid, op};
use oxkeeper::zab::{
    Action, Input, LearnerConnectionId, Packet, PeerState, Request, Role, Settings, Vote,
};
use support::builders::{self, learner_info, peer};
use support::peer::PeerOnDisk;

const VIEW: &str = "server.1=h1:1:2\nserver.2=h2:1:2\nserver.3=h3:1:2";

/// A voter that looks for a leader.
fn looking() -> PeerOnDisk {
    let settings = Settings { tick_time_ms: 100, ..Settings::DEFAULT };
    let mut server = PeerOnDisk::new(peer(1, VIEW, settings, Some(Zxid::new(Epoch(1), 3))));
    server.settle(Input::Tick);
    server
}

fn hello(connection: u64, id: i64) -> Input {
    let packet = Packet::FollowerInfo { accepted: Epoch(1), info: learner_info(id) };
    Input::Learner { connection: LearnerConnectionId(connection), packet }
}

fn request(connection: u64) -> Input {
    let (session, body) = (SessionId(7), Bytes::from(vec![0; 100_000]));
    let asked = Request { session, xid: 1, op: op::SET_DATA, body, identities: Vec::new() };
    let packet = Packet::Request(asked);
    Input::Learner { connection: LearnerConnectionId(connection), packet }
}

fn closed(actions: &[Action]) -> Vec<u64> {
    let closed = |action: &Action| match action {
        Action::CloseLearner { connection, .. } => Some(connection.0),
        _ => None,
    };
    actions.iter().filter_map(closed).collect()
}

#[test]
fn learner_without_a_hello_is_closed_at_once_by_a_server_that_looks() {
    let mut server = looking();
    assert_eq!(closed(&server.settle(request(4))), [4]);
}

#[test]
fn packets_after_a_hello_do_not_extend_the_wait_for_a_leader() {
    let mut server = looking();
    assert!(closed(&server.settle(hello(4, 2))).is_empty());
    let mut ticks = 0;
    while closed(&server.settle(Input::Tick)).is_empty() {
        ticks += 1;
        assert!(ticks <= 100, "still there after {ticks} ticks");
        if ticks % 10 == 0 {
            server.settle(request(4));
            server.settle(hello(4, 2));
        }
    }
    assert_eq!(ticks, 100);
}

#[test]
fn hellos_of_unknown_servers_make_room_for_those_of_members() {
    let mut server = looking();
    let mut refused = 0;
    for id in 0..1000 {
        refused += closed(&server.settle(hello(id, 100 + id as i64))).len();
    }
    assert!((700..1000).contains(&refused), "{refused} of 1000 were refused");
    let made_room = closed(&server.settle(hello(2000, 2)));
    assert!(made_room.len() == 1 && made_room != [2000], "{made_room:?}");
}

#[test]
fn votes_of_64_unknown_servers_at_most_wait_for_the_next_election() {
    let mut server =
        PeerOnDisk::new(peer(1, "server.1=h1:1:2", Settings::DEFAULT, Some(Zxid::ZERO)));
    server.settle(Input::Tick);
    for _ in 0..10_000 {
        server.settle(Input::Tick);
    }
    let Role::Leading(leader) = server.peer.role() else { panic!("a server alone leads") };
    let zxid = server.peer.core.history.last().max(Zxid::new(leader.epoch(), 0)).next().unwrap();
    server.step(Input::Propose { zxid, payload: Bytes::from_static(b"x") });
    server.step(Input::StandDown { why: "a test".to_owned() });
    for id in 100..1000 {
        let vote = Vote { epoch: 0, zxid: 0, leader: ServerId(id) };
        let (state, config) = (PeerState::Looking, Some(Bytes::from(vec![b'x'; 1000])));
        let notification = builders::notification(state, vote, 1, config);
        server.step(Input::Notification { from: ServerId(id), notification });
    }
    let mut actions = Vec::new();
    while let Some(done) = server.written() {
        actions.extend(server.step(done));
    }
    let answered =
        |action: &&Action| matches!(action, Action::SendNotification { to, .. } if 100 <= to.0);
    assert_eq!(actions.iter().filter(answered).count(), 64);
}

#[test]
fn election_connections_of_unknown_servers_that_break_leave_nothing() {
    let mut server = looking();
    let size = |server: &PeerOnDisk| format!("{:?}", server.peer).len();
    let before = size(&server);
    for id in 100..1000 {
        server.settle(Input::ElectionDisconnected { to: ServerId(id) });
    }
    assert_eq!(size(&server), before);
}
