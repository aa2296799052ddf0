//! A connection from its handshake on: the client's identities, and when they count.

use jute::proto::{AuthPacket, ReplyHeader, RequestHeader};
use jute::{Encode, Reader, put_frame};
use oxkeeper::auth::Schemes;
use oxkeeper::model::{Code, Identity, SessionId, op};
use oxkeeper::request::{Batch, ClientCommand, ClientHandle, Connection, Limits, Need};
use oxkeeper::tree::{Options, Tree};
use support::builders;
use support::requests::{hello, hello_bytes, set};

const BOB: &str = "bob:WGAwC+XYxdw8bJ5K6KcPh8oL58U=";

/// A machine whose session is open.
fn open() -> Connection {
    open_under(Schemes::default())
}

fn open_under(schemes: Schemes) -> Connection {
    open_within(Limits { schemes, ..Limits::default() })
}

pub fn open_within(limits: Limits) -> Connection {
    let limits = Limits {
        frame_max: 1 << 20,
        min_session_timeout_ms: 1,
        max_session_timeout_ms: 10_000,
        outstanding_max: 10,
        outstanding_bytes_max: 100_000,
        ..limits
    };
    let shared = builders::shared(Tree::new(Options::default()), limits);
    let conn = shared.conns.add(|id| ClientHandle::new(id, "127.0.0.1:1".parse().unwrap(), 0));
    let mut machine = Connection::new(conn.clone(), shared);
    let hello = hello_bytes(&hello());
    assert_eq!(machine.advance(&hello, 0), (hello.len(), Need::Answer));
    assert!(matches!(machine.commands.pop(), Some(ClientCommand::Open { .. })));
    conn.push_welcome(SessionId(7), &mut Vec::new(), |_| {});
    machine
}

pub fn frame(to: &mut Vec<u8>, kind: i32, body: impl FnOnce(&mut Vec<u8>)) {
    put_frame(to, |to| {
        RequestHeader { xid: kind, kind }.encode(to);
        body(to);
    });
}

pub fn auth(to: &mut Vec<u8>, scheme: &str, auth: &[u8]) {
    let packet = AuthPacket { kind: 0, scheme: Some(scheme.into()), auth: Some(auth) };
    frame(to, op::AUTH, |to| packet.encode(to));
}

/// Takes the replies so far: xid, zxid, code and length of the body.
fn replies(machine: &mut Connection) -> Vec<(i32, i64, i32, usize)> {
    let mut from = Reader::new(&machine.unsent.bytes);
    let mut seen = Vec::new();
    while let Ok(Some(frame)) = from.read::<Option<&[u8]>>() {
        let mut inside = Reader::new(frame);
        let header: ReplyHeader = inside.read().unwrap();
        seen.push((header.xid, header.zxid, header.err, inside.rest().len()));
    }
    machine.unsent.clear();
    seen
}

// rows: P-24 P-28 P-60 U-01 U-17
#[test]
fn auth_is_answered_at_once_and_applies_to_requests_after_it() {
    let mut machine = open();
    let mut input = Vec::new();
    frame(&mut input, op::SYNC, |to| jute::put_string(to, "/"));
    auth(&mut input, "digest", b"bob:bobsecret");
    auth(&mut input, "digest", b"bob:bobsecret");
    auth(&mut input, "ip", b"");
    frame(&mut input, op::SYNC, |to| jute::put_string(to, "/"));
    let (taken, need) = machine.advance(&input, 0);
    assert_eq!((taken, need), (input.len(), Need::Bytes(4)));
    assert_eq!(replies(&mut machine), [(op::AUTH, 0, 0, 0); 3]);
    let before = [Identity::new("ip", "127.0.0.1")];
    let after = [before[0].clone(), Identity::new("digest", BOB)];
    let identities: Vec<_> = machine
        .commands
        .iter()
        .map(|command| match command {
            ClientCommand::Writes(batch) => (batch.requests.len(), batch.identities.to_vec()),
            _ => panic!("writes only"),
        })
        .collect();
    assert_eq!(identities, [(1, before.to_vec()), (1, after.to_vec())]);
    assert_eq!(*machine.conn().identities(), after);
}

// rows: P-60 U-18 G-15
#[test]
fn failed_authentication_is_answered_and_closes_the_connection() {
    for (scheme, code) in [("world", -115), ("nonsense", -115)] {
        let (mut machine, mut input) = (open(), Vec::new());
        auth(&mut input, scheme, b"x");
        frame(&mut input, op::PING, |_| {});
        assert!(matches!(machine.advance(&input, 0), (0, Need::Close(_))), "{scheme}");
        assert_eq!(replies(&mut machine), [(op::AUTH, 0, code, 0)], "{scheme}");
    }
    let (mut machine, mut input) = (open(), Vec::new());
    frame(&mut input, op::AUTH, |to| to.push(0));
    assert!(matches!(machine.advance(&input, 0).1, Need::Close(_)));
    assert_eq!(replies(&mut machine), []);
}

/// A Java server without SASL answers OK without a token, and the connection stays open.
// rows: P-60a
#[test]
fn sasl_request_is_answered_without_a_token_as_no_mechanism_is_offered() {
    for token in [&b""[..], b"a token"] {
        let (mut machine, mut input) = (open(), Vec::new());
        frame(&mut input, op::SASL, |to| jute::put_buffer(to, token));
        assert_eq!(machine.advance(&input, 0), (input.len(), Need::Bytes(4)));
        assert_eq!(replies(&mut machine), [(op::SASL, 0, 0, 4)]);
        assert!(machine.commands.is_empty());
    }
}

// rows: C-77 C-78
#[test]
fn requests_without_a_required_scheme_are_refused_and_close_the_connection() {
    let under = |schemes: &[&str]| {
        let required = schemes.iter().map(|scheme| (*scheme).to_owned()).collect();
        open_under(Schemes { required, ..Schemes::default() })
    };
    for kind in [op::PING, op::EXISTS, op::CREATE, op::SYNC, op::CLOSE_SESSION, 4242] {
        let (mut machine, mut input) = (under(&["digest", "key"]), Vec::new());
        auth(&mut input, "ip", b"");
        frame(&mut input, op::SASL, |to| jute::put_buffer(to, b""));
        let shown = input.len();
        frame(&mut input, kind, |to| jute::put_string(to, "/"));
        auth(&mut input, "digest", b"too:late");
        let (taken, need) = machine.advance(&input, 0);
        assert_eq!(taken, shown);
        let why = "the client has not authenticated by a required scheme (digest, key); let it authenticate by one of these before \
                   its first request, or change enforce.auth.schemes or sessionRequireClientSASLAuth".to_owned();
        assert_eq!(need, Need::Close(why));
        assert_eq!(replies(&mut machine).last(), Some(&(kind, 0, -124, 0)));
        assert!(machine.commands.is_empty());
    }
    let (mut machine, mut input) = (under(&["digest"]), Vec::new());
    auth(&mut input, "digest", b"in:time");
    frame(&mut input, op::PING, |_| {});
    assert_eq!(machine.advance(&input, 0), (input.len(), Need::Bytes(4)));
    // Every client has an address.
    let (mut machine, mut input) = (under(&["digest", "ip"]), Vec::new());
    frame(&mut input, op::PING, |_| {});
    assert_eq!(machine.advance(&input, 0), (input.len(), Need::Bytes(4)));
}

#[test]
fn authentication_fails_above_the_limit_of_identities() {
    let mut machine = open();
    for n in 0..255 {
        let mut input = Vec::new();
        auth(&mut input, "digest", format!("user{n}").as_bytes());
        assert_eq!(machine.advance(&input, 0).1, Need::Bytes(4));
    }
    let mut input = Vec::new();
    auth(&mut input, "digest", b"one too many");
    assert!(matches!(machine.advance(&input, 0).1, Need::Close(_)));
    assert_eq!(replies(&mut machine).last().map(|reply| reply.2), Some(Code::AUTH_FAILED.0));
}

#[test]
fn authentication_fails_above_the_limit_of_identity_bytes() {
    let shows = |sizes: &[usize]| {
        let mut machine = open();
        let taken = sizes.iter().enumerate().take_while(|&(n, size)| {
            let (mut input, user) = (Vec::new(), format!("{n}{}", "x".repeat(*size)));
            auth(&mut input, "digest", user.as_bytes());
            machine.advance(&input, 0).1 == Need::Bytes(4)
        });
        taken.count()
    };
    assert_eq!(shows(&[65_000]), 1);
    assert_eq!(shows(&[65_536]), 0);
    assert_eq!(shows(&[30_000, 30_000, 30_000]), 2, "all of a connection count together");
}

// rows: P-55 P-56 P-57 P-60d
#[test]
fn watches_are_added_found_and_removed() {
    let (mut machine, mut input) = (open(), Vec::new());
    let mut ask = |kind, path: &str, what: i32| {
        frame(&mut input, kind, |to| {
            jute::put_string(to, path);
            jute::put_i32(to, what);
        });
    };
    ask(op::ADD_WATCH, "/not/there", 0);
    ask(op::ADD_WATCH, "/not/there", 1);
    ask(op::ADD_WATCH, "/not/there", 2);
    for kind in [1, 2, 3, 4, 5, 6] {
        ask(op::CHECK_WATCHES, "/not/there", kind);
    }
    ask(op::REMOVE_WATCHES, "/not/there", 4);
    ask(op::REMOVE_WATCHES, "/not/there", 4);
    ask(op::REMOVE_WATCHES, "/not/there", 3);
    ask(op::CHECK_WATCHES, "/not/there", 3);
    frame(&mut input, op::WHO_AM_I, |_| {});
    assert_eq!(machine.advance(&input, 0), (input.len(), Need::Bytes(4)));
    let codes: Vec<i32> = replies(&mut machine).iter().map(|reply| reply.2).collect();
    assert_eq!(codes, [0, 0, -5, -121, -121, 0, 0, 0, -5, 0, -121, 0, -121, 0]);
}

fn writes_of(machine: &mut Connection) -> Batch {
    match machine.commands.pop() {
        Some(ClientCommand::Writes(batch)) => batch,
        _ => panic!("no batch of writes"),
    }
}

#[test]
fn identity_bytes_count_in_the_load_of_the_next_writes() {
    let mut machine = open();
    let mut asked = Vec::new();
    let user = "u".repeat(40_000);
    auth(&mut asked, "digest", format!("{user}:password").as_bytes());
    assert_eq!(machine.advance(&asked, 0), (asked.len(), Need::Bytes(4)));
    // The limit is 100,000 bytes: the third write is above it.
    let writes: Vec<u8> = (0..8).flat_map(|xid| set(xid, "/a", "")).collect();
    let (taken, need) = machine.advance(&writes, 0);
    assert_eq!((taken, need), (3 * writes.len() / 8, Need::Answer));
    assert_eq!(writes_of(&mut machine).requests.len(), 3);
}

#[test]
fn batch_reserves_no_more_than_64_kib_beyond_its_first_write() {
    let mut machine = open();
    for (data_len, bytes_max) in [(10, 65_536), (10_000, 65_536), (900_000, 901_000)] {
        let write = set(1, "/a", &"x".repeat(data_len));
        machine.advance(&write, 0);
        let reserved = writes_of(&mut machine).bytes.capacity();
        assert!(reserved <= bytes_max, "{reserved} bytes for {data_len}");
    }
}
