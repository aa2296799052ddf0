//! The connect request: what is checked, in which order, and the answer.

use super::harness::World;
use oxkeeper::client::ConnectRequest;
use oxkeeper::model::SessionId;
use oxkeeper::request::password;
use support::builders::FIRST_SESSION;
use support::requests::{create, hello, hello_again, hello_bytes, set, watch};

// rows: P-10 P-11 G-10
#[test]
fn connect_response_has_the_read_only_byte_if_the_request_had_it() {
    for (read_only, line) in [
        (Some(false), "session 0x10 10000 ms flag"),
        (Some(true), "session 0x10 10000 ms flag"),
        (None, "session 0x10 10000 ms"),
    ] {
        let mut world = World::new();
        let a = world.connect();
        world.greet(a, &ConnectRequest { read_only, ..hello() });
        assert_eq!(world.heard(a), [line]);
        // The frame after it is understood in either case.
        world.say(a, [create(1, "/a", "")]);
        assert_eq!(world.heard(a), ["1 @2 ok /a"]);
        let refused = world.connect();
        world.greet(
            refused,
            &ConnectRequest { read_only, password: vec![0; 16], ..hello_again(0x99) },
        );
        let flag = if read_only.is_some() { "refused flag" } else { "refused" };
        assert_eq!(world.heard(refused)[0], flag);
    }
}

// rows: P-14
#[test]
fn session_timeout_is_clamped_to_the_limits() {
    let mut world = World::new();
    for (asked, given) in
        [(0, 4000), (-1, 4000), (3999, 4000), (4001, 4001), (40_000, 40_000), (i32::MAX, 40_000)]
    {
        let a = world.connect();
        world.greet(a, &ConnectRequest { timeout_ms: asked, ..hello() });
        let heard = world.heard(a);
        assert!(heard[0].ends_with(&format!(" {given} ms flag")), "{asked}: {heard:?}");
    }
}

// rows: P-20
#[test]
fn connect_response_is_sent_once_the_session_is_durable() {
    let mut world = World::new();
    world.hold_log(true);
    let a = world.connect();
    // Requests after the connect request wait for the session.
    world.push(a, &[hello_bytes(&hello()), create(1, "/a", "")].concat());
    world.run();
    assert!(world.heard(a).is_empty());
    world.hold_log(false);
    assert_eq!(world.heard(a), ["session 0x10 10000 ms flag", "1 @2 ok /a"]);
}

// rows: P-13 G-10
#[test]
fn client_with_a_newer_zxid_is_closed_without_an_answer() {
    let mut world = World::new();
    let a = world.client();
    world.say(a, [create(1, "/a", "")]);
    let ahead = world.connect();
    world.greet(ahead, &ConnectRequest { last_zxid_seen: 3, ..hello() });
    assert_eq!(
        world.heard(ahead),
        [
            "closed: client has seen zxid 0x3, ours is 0x2; restart the client if this server was restored"
        ]
    );
    // The zxid is checked before the password: the session may well be valid on another server.
    let wrong = world.connect();
    let password = vec![9; 16];
    world.greet(
        wrong,
        &ConnectRequest { last_zxid_seen: 3, password, ..hello_again(FIRST_SESSION) },
    );
    assert_eq!(
        world.heard(wrong),
        [
            "closed: client has seen zxid 0x3, ours is 0x2; restart the client if this server was restored"
        ]
    );
    let level = world.connect();
    world.greet(level, &ConnectRequest { last_zxid_seen: 2, ..hello() });
    assert_eq!(world.heard(level), ["session 0x11 10000 ms flag"]);
}

// rows: P-17 P-18
#[test]
fn wrong_password_is_refused_and_the_session_keeps_its_connection() {
    let mut world = World::new();
    let (a, writer) = (world.client(), world.client());
    world.say(a, [create(1, "/a", ""), watch(2, "/a")]);
    assert_eq!(world.heard(a).len(), 2);
    let right = password(SessionId(FIRST_SESSION)).to_vec();
    let mut nearly = right.clone();
    nearly[15] ^= 1;
    for wrong in [vec![], right[..15].to_vec(), [&right[..], &[0]].concat(), nearly] {
        let thief = world.connect();
        world.greet(thief, &ConnectRequest { password: wrong, ..hello_again(FIRST_SESSION) });
        let reason = "closed: wrong password for session 0x10; restart that client";
        assert_eq!(world.heard(thief), ["refused flag", reason]);
    }
    world.say(writer, [set(1, "/a", "x")]);
    world.say(a, [set(3, "/a", "y")]);
    assert_eq!(world.heard(a), ["event @4 NodeDataChanged /a", "3 @5 ok v2"]);
}

// rows: P-17
#[test]
fn unknown_session_is_refused() {
    let mut world = World::new();
    let a = world.client_again(0x77);
    assert_eq!(world.heard(a), ["refused flag", "closed"]);
}
