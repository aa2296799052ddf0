//! Frames, four-letter words, and bytes that are neither.

use super::harness::{World, limits};
use oxkeeper::auth::Schemes;
use oxkeeper::model::op;
use oxkeeper::request::{Limits, Need};
use support::builders::FRAME_MAX;
use support::requests::{close, create, get, hello, hello_bytes, ping, raw, set};

// rows: P-01 P-25
#[test]
fn stream_is_answered_the_same_however_it_is_cut() {
    let stream = [
        hello_bytes(&hello()),
        create(1, "/a", "x"),
        get(2, "/a"),
        set(3, "/a", "yy"),
        ping(),
        get(4, "/a"),
        close(5),
    ]
    .concat();
    let expected = [
        "session 0x10 10000 ms flag",
        "1 @2 ok /a",
        "2 @2 ok \"x\" v0",
        "3 @3 ok v1",
        "-2 @3 ok",
        "4 @3 ok \"yy\" v1",
        "5 @4 ok",
        "closed",
    ];
    for piece in [1, 2, 3, 7, 50, stream.len()] {
        let mut world = World::new();
        let a = world.connect();
        // The requests are noted frame by frame, so that answers can be read however the bytes are cut.
        world[a].expect_answers_to(&stream[hello_bytes(&hello()).len()..]);
        for bytes in stream.chunks(piece) {
            world[a].input.extend_from_slice(bytes);
            world.run();
        }
        assert_eq!(world.heard(a), expected, "in pieces of {piece}");
    }
}

// rows: P-01
#[test]
fn a_frame_over_the_limit_closes_the_connection() {
    let mut world = World::new();
    let a = world.client();
    world.say(a, [raw(1, op::EXISTS, &vec![0; FRAME_MAX - 8])]);
    assert_eq!(world.heard(a), ["1 @1 ok v0"], "the largest frame there may be: the root");
    let too_long = FRAME_MAX as u32 + 1;
    let raise = format!(
        "; jute.maxbuffer is {FRAME_MAX}: if the client is right, set -Djute.maxbuffer=BYTES on all servers and clients"
    );
    let negative =
        ", a negative length: no client of ZooKeeper sends it; look at what dials this port";
    for (len, text, advice) in [
        (too_long, "65537", raise.as_str()),
        (u32::MAX, "-1", negative),
        (1 << 31, "-2147483648", negative),
    ] {
        for greeted in [false, true] {
            let mut world = World::new();
            let a = if greeted { world.client() } else { world.connect() };
            // The length alone is enough: no bytes are waited for, and no memory is taken for them.
            world.say(a, [len.to_be_bytes().to_vec()]);
            assert_eq!(world.heard(a), [format!("closed: frame of {text} bytes{advice}")]);
        }
    }
}

#[test]
fn a_long_frame_before_a_session_closes_the_connection_with_its_first_bytes() {
    let mut world = World::limited(Limits { frame_max: 1 << 20, ..limits() });
    let start = |len: u32| [len.to_be_bytes().to_vec(), vec![0; 100]].concat();
    let (fresh, brief, open) = (world.connect(), world.connect(), world.client());
    world.say(fresh, [start(66_561)]);
    let reason = "closed: frame of 66561 bytes before session; at most 66560: check that client";
    assert_eq!(world.heard(fresh), [reason]);
    for (client, len) in [(brief, 66_560), (open, 1 << 20)] {
        world.say(client, [start(len)]);
        assert!(matches!(world[client].need, Need::Bytes(_)), "{len}");
    }

    let schemes = Schemes { required: vec!["digest".to_owned()], ..Schemes::default() };
    let mut world = World::limited(Limits { frame_max: 1 << 20, schemes, ..limits() });
    let barred = world.client();
    world.say(barred, [start(66_561)]);
    let heard = world.heard(barred);
    assert_eq!(
        heard,
        ["closed: frame of 66561 bytes before authentication; at most 66560: check that client"]
    );
}

// rows: P-02 W-06 G-15
#[test]
fn four_letter_word_counts_only_before_the_connect_request() {
    let mut world = World::new();
    let a = world.connect();
    for byte in b"ruo" {
        world.say(a, [vec![*byte]]);
        assert!(matches!(world[a].need, Need::Bytes(_)));
    }
    world.say(a, [b"k\r\n".to_vec()]);
    assert_eq!(world.heard(a), ["word ruok"]);

    let unknown = world.connect();
    world.say(unknown, [b"what".to_vec()]);
    assert_eq!(
        world.heard(unknown),
        [
            "closed: text \"what\" where the length of a frame is expected; is it a misspelt four-letter word?"
        ]
    );

    let late = world.client();
    world.say(late, [b"ruok".to_vec()]);
    assert!(world.heard(late)[0].starts_with("closed: text \"ruok\" "));
}

// rows: P-09 P-12
#[test]
fn bytes_after_a_record_are_ignored() {
    let mut world = World::new();
    let a = world.client();
    let mut long = set(2, "/a", "y");
    long.extend_from_slice(b"more");
    let len = long.len() as u32 - 4;
    long[..4].copy_from_slice(&len.to_be_bytes());
    world.say(a, [create(1, "/a", "x"), long, raw(3, op::PING, b"tail")]);
    assert_eq!(world.heard(a), ["1 @2 ok /a", "2 @3 ok v1", "-2 @3 ok"]);

    let b = world.connect();
    let mut request = hello_bytes(&hello());
    request[4..8].copy_from_slice(&77_i32.to_be_bytes()); // An unknown protocol version.
    world.say(b, [request]);
    assert_eq!(world.heard(b), ["session 0x11 10000 ms flag"]);
}

// rows: P-09a G-01
#[test]
fn an_undecodable_body_is_refused_and_takes_no_zxid() {
    let mut world = World::new();
    let a = world.client();
    world.say(a, [create(1, "/a", "x")]);
    assert_eq!(world.heard(a), ["1 @2 ok /a"]);
    let writes = [op::CREATE, op::CREATE2, op::DELETE, op::SET_DATA, op::SET_ACL, op::SYNC];
    let reads = [
        op::EXISTS,
        op::GET_DATA,
        op::GET_ACL,
        op::GET_CHILDREN,
        op::GET_CHILDREN2,
        op::SET_WATCHES,
        op::SET_WATCHES2,
    ];
    for kind in writes.into_iter().chain(reads) {
        // A path whose length field is larger than the number of bytes.
        world.say(a, [raw(2, kind, &[0, 0, 0, 9, b'/'])]);
        assert_eq!(world.heard(a), ["2 @2 error -5"], "operation {kind}");
    }
    // Among others it keeps its place, and the next write has the next zxid.
    world.say(a, [set(3, "/a", "y"), raw(4, op::DELETE, &[]), set(5, "/a", "z"), get(6, "/a")]);
    assert_eq!(world.heard(a), ["3 @3 ok v1", "4 @3 error -5", "5 @4 ok v2", "6 @4 ok \"z\" v2"]);
}

// rows: P-09a
#[test]
fn undecodable_header_or_connect_request_closes_the_connection() {
    let mut world = World::new();
    let a = world.client();
    world.say(a, [vec![0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0], create(2, "/a", "")]);
    assert_eq!(world.heard(a), ["closed: undecodable request header; check that client"]);
    let b = world.connect();
    world.say(b, [vec![0, 0, 0, 5, 1, 2, 3, 4, 5]]);
    let heard = world.heard(b);
    assert!(heard.len() == 1 && heard[0].starts_with("closed: undecodable connect request"));
}

// rows: P-60e P-60g P-60h
#[test]
fn unknown_operation_is_refused_and_closes_the_connection() {
    for kind in [0, op::CHECK, 23, 99, 108, 1000, -1, op::CREATE_SESSION, i32::MIN] {
        let mut world = World::new();
        let a = world.client();
        world.say(a, [raw(1, kind, &[0; 16]), create(2, "/behind", "")]);
        let reason = format!("closed: operation {kind} is not served; check that client's version");
        assert_eq!(world.heard(a), ["1 @-1 error -6", &reason]);
        let b = world.client();
        world.say(b, [get(1, "/behind")]);
        assert_eq!(world.heard(b), ["1 @2 error -101"], "the request after it is not executed");
    }
}
