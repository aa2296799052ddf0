//! Clients that do not read replies and events, and clients that together send too many requests.

use super::harness::World;
use oxkeeper::request::{Need, SNAPSHOT_SAVED_MAX};
use support::builders::FRAME_MAX;
use support::requests::{create, create_for, get, hello, set, watch_exists};

/// What a connection may hold unsent before it stops reading.
const UNSENT_MAX: usize = 1024 * 1024;

#[test]
fn client_that_does_not_read_replies_is_not_read_from() {
    let mut world = World::new();
    let a = world.client();
    let data = "x".repeat(60_000); // Large: shared with the tree instead of copied.
    world.say(a, [create(1, "/a", &data)]);
    world.heard(a);
    world.set_fetches(a, false);
    let many: Vec<u8> = (1..=100).flat_map(|xid| get(xid, "/a")).collect();
    world.say(a, [many]);
    assert_eq!(world[a].need, Need::Room);
    let unsent = world[a].unsent();
    assert!((UNSENT_MAX..UNSENT_MAX + 400_000).contains(&unsent), "{unsent} bytes");
    assert!(!world[a].input.is_empty());
    world.set_fetches(a, true);
    assert_eq!(world.heard(a).len(), 100, "all of it comes once there is room");
}

#[test]
fn client_that_does_not_read_its_events_is_closed() {
    let mut world = World::new();
    let (a, b) = (world.client(), world.client());
    // Names are long, so that a few thousand events pass the limit of four frames.
    let path = |at: usize| format!("/{at:04}{}", "x".repeat(500));
    let count = (4 * FRAME_MAX + UNSENT_MAX) / 500 + 100;
    for at in 0..count {
        world.say(a, [watch_exists(at as i32, &path(at))]);
    }
    world.heard(a);
    world.set_fetches(a, false);
    let mut most = 0;
    for at in 0..count {
        world.say(b, [create(at as i32, &path(at), "")]);
        most = most.max(world[a].unsent());
    }
    assert_eq!(world[a].need, Need::Close(String::new()));
    assert_eq!(world[a].unsent(), 0, "and what it did not read is dropped");
    assert!(most < UNSENT_MAX + 2000, "{most} bytes were unsent");
    // Other clients are served as before.
    world.say(b, [set(0, &path(0), "still here")]);
    assert!(world.heard(b).last().is_some_and(|line| line.contains("ok")));
}

#[test]
fn client_that_reads_may_have_any_number_of_events() {
    let mut world = World::new();
    let (a, b) = (world.client(), world.client());
    let name = "x".repeat(500);
    for at in 0..2000 {
        let path = format!("/{at:04}{name}");
        world.say(a, [watch_exists(at, &path)]);
        world.say(b, [create(at, &path, "")]);
    }
    assert_eq!(world.heard(a).iter().filter(|line| line.starts_with("event")).count(), 2000);
}

// rows: C-70
#[test]
fn above_the_global_limit_clients_with_outstanding_writes_are_not_read() {
    let mut world = World::configured("globalOutstandingLimit=2", "");
    let (a, b) = (world.client(), world.client());
    world.hold_log(true);
    world.say(a, [create(1, "/a", ""), create(2, "/b", ""), create(3, "/c", "")]);
    assert_eq!((world.server.replica.outstanding(), world[a].need.clone()), (2, Need::Answer));
    world.say(b, [create(1, "/d", ""), create(2, "/e", "")]);
    assert_eq!((world.server.replica.outstanding(), world[b].need.clone()), (3, Need::Answer));
    world.hold_log(false);
    assert_eq!((world.heard(a).len(), world.heard(b).len()), (3, 2));
    assert_eq!(world.server.shared.throttle.in_process(), 0);
}

#[test]
fn connection_that_waits_is_not_read_while_more_bytes_are_outstanding_than_the_limit() {
    let mut world = World::configured("oxkeeper.outstandingBytes=1000", "");
    let (a, b, c) = (world.client(), world.client(), world.client());
    let data = "x".repeat(600);
    world.hold_log(true);
    world.say(a, [create(1, "/a", &data), create(2, "/b", &data), create(3, "/c", &data)]);
    assert_eq!((world.server.replica.outstanding(), world[a].need.clone()), (2, Need::Answer));
    let outstanding = world.server.shared.throttle.bytes();
    assert!((1200..1500).contains(&outstanding), "two writes and their clients' identities");
    world.say(b, [create(1, "/d", &data), create(2, "/e", "")]);
    assert_eq!((world.server.replica.outstanding(), world[b].need.clone()), (3, Need::Answer));
    // At twice the limit a client without outstanding writes has to wait too.
    world.say(c, [create(1, "/f", &data), create(2, "/g", "")]);
    assert_eq!((world.server.replica.outstanding(), world[c].need.clone()), (4, Need::Answer));
    world.say(c, [get(3, "/f")]);
    world.hold_log(false);
    assert_eq!((world.heard(a).len(), world.heard(b).len(), world.heard(c).len()), (3, 2, 3));
    assert_eq!(world.server.shared.throttle.bytes(), 0);
}

#[test]
fn every_write_waits_while_twice_the_limit_of_bytes_is_outstanding() {
    let mut world = World::configured("oxkeeper.outstandingBytes=300", "");
    let (a, b) = (world.client(), world.client());
    world.hold_log(true);
    world.say(a, [create(1, "/a", &"x".repeat(600))]);
    world.say(b, [get(1, "/x"), create(2, "/b", ""), get(3, "/b")]);
    assert_eq!(
        (world.server.replica.outstanding(), world[b].need.clone()),
        (1, Need::FewerOutstanding)
    );
    assert_eq!(world.heard(b).len(), 1, "reads are answered by the connection itself");
    world.hold_log(false);
    assert_eq!((world.heard(b).len(), world.heard(a).len()), (2, 1));
    assert_eq!(world.server.shared.throttle.bytes(), 0);
}

#[test]
fn every_write_waits_while_much_is_saved_for_a_snapshot() {
    let mut world = World::configured("", "");
    let a = world.client();
    let note = |world: &World, bytes| {
        let mut wakers = Vec::new();
        world.server.shared.throttle.note_snapshot_saved(bytes, &mut wakers);
        let woken = wakers.len();
        wakers.into_iter().for_each(std::task::Waker::wake);
        woken
    };
    assert_eq!(note(&world, SNAPSHOT_SAVED_MAX + 1), 0);
    world.say(a, [get(1, "/x"), create(2, "/a", ""), get(3, "/a")]);
    assert_eq!(
        (world.server.replica.outstanding(), world[a].need.clone()),
        (0, Need::FewerOutstanding)
    );
    assert_eq!(world.heard(a).len(), 1, "reads are answered");
    assert_eq!(note(&world, SNAPSHOT_SAVED_MAX), 1, "the writer is woken");
    world.hold_log(false);
    assert_eq!(world.heard(a).len(), 2);
}

// rows: C-92
#[test]
fn writes_above_request_throttle_max_requests_wait_and_none_is_lost() {
    let mut world = World::configured("request_throttle_max_requests=1", "");
    let (a, b) = (world.client(), world.client());
    world.hold_log(true);
    world.say(a, [create(1, "/a", ""), create(2, "/b", "")]);
    world.say(b, [get(1, "/x"), create(2, "/c", ""), get(3, "/c")]);
    assert_eq!(
        (world.server.replica.outstanding(), world[b].need.clone()),
        (1, Need::FewerOutstanding)
    );
    assert_eq!(world.heard(b).len(), 1, "reads are answered by the connection itself");
    world.hold_log(false);
    let replies: Vec<_> = world.heard(b).iter().map(|line| line[..2].to_owned()).collect();
    assert_eq!((replies, world.heard(a).len()), (vec!["2 ".to_owned(), "3 ".into()], 2));
    let (a, b) = (world[a].machine().counts, world[b].machine().counts);
    assert_eq!((a.stalls, b.stalls, a.throttled + b.throttled), (1, 1, 0));
}

// rows: C-91 C-92 P-79 M-14
#[test]
fn a_write_that_waited_for_too_long_is_refused_in_its_place() {
    let waits = "request_throttle_max_requests=1\nthrottled_op_wait_time=50";
    let mut world = World::configured(waits, "");
    let (a, b) = (world.client(), world.client());
    world.hold_log(true);
    world.say(a, [create(1, "/a", "")]);
    world.say(b, [create(1, "/b", ""), create(2, "/c", "")]);
    world.pass(100);
    world.hold_log(false);
    // The second had not waited yet.
    assert_eq!(world.heard(b), ["1 @3 error -127", "2 @4 ok /c"]);
    assert_eq!((world[b].machine().counts.stalls, world[b].machine().counts.throttled), (1, 1));
}

// rows: C-94 C-97
#[test]
fn a_write_that_outlived_its_session_is_dropped_with_its_connection() {
    const LATE: &str = "request_stale_latency_check=true";
    let kept = format!("{LATE}\nrequest_throttle_drop_stale=false");
    for (lines, is_dropped) in [(LATE, true), ("", false), (kept.as_str(), false)] {
        let mut world = World::configured(&format!("request_throttle_max_requests=1\n{lines}"), "");
        let (a, b) = (world.client(), world.client());
        world.hold_log(true);
        world.say(a, [create(1, "/a", "")]);
        world.say(b, [create(1, "/b", "")]);
        world.pass(11_000); // After the session's 10 s, but it is checked in steps of 2 s.
        world.hold_log(false);
        let heard = world.heard(b);
        assert_eq!(
            heard
                == [
                    "closed: a request outlived its session; if it repeats, raise the client's session timeout"
                ],
            is_dropped,
            "{lines}"
        );
        let is_there = world.server.shared.state.tree.read().find("/b").is_some();
        assert_eq!((is_there, heard.len()), (!is_dropped, 1), "{heard:?}");
        assert_eq!(world[b].machine().counts.outlived, u64::from(is_dropped));
    }
}

// rows: C-83 C-84
#[test]
fn large_writes_above_their_limit_together_close_the_connection() {
    let mut world = World::configured("largeRequestThreshold=1000\nlargeRequestMaxBytes=2000", "");
    let (a, b, c) = (world.client(), world.client(), world.client());
    let large = "x".repeat(1100);
    world.hold_log(true);
    world.say(a, [create(1, "/a", &large), create(2, "/b", "small")]);
    world.say(b, [create(1, "/c", &large)]);
    assert!(matches!(world[b].need, Need::Close(_)));
    assert_eq!(world[b].machine().take_large_refused(), 1);
    assert_eq!(world[b].machine().take_large_refused(), 0, "it was reported before");
    world.say(c, [create(1, "/d", &"x".repeat(900))]);
    world.hold_log(false);
    assert_eq!((world.heard(a).len(), world.heard(c).len()), (2, 1));
    world.say(c, [create(2, "/e", &large)]);
    assert_eq!(world.heard(c).len(), 1, "there is room again");
}

// rows: C-123 P-13
#[test]
fn clients_that_connect_too_fast_are_refused() {
    let tokens = "connection_throttle_tokens=2\nconnection_throttle_fill_time=1000";
    let mut world = World::configured(tokens, "");
    world.client();
    world.client();
    let third = world.connect();
    world.greet(third, &hello());
    assert_eq!(
        world.heard(third),
        [
            "closed: clients connect too fast; find one in a loop, or raise connection_throttle_tokens"
        ]
    );
    let counts = world[third].machine().counts;
    assert_eq!((counts.connects, counts.refused), (0, 1));
    assert_eq!(
        world.server.shared.throttle.connects(&world.server.shared.limits).0,
        2,
        "both tokens are taken"
    );
    world.pass(2000);
    world.client();
}

/// How many new sessions there are before one is refused.
fn sessions_let_in(world: &mut World) -> usize {
    let mut count = 0;
    loop {
        let client = world.connect();
        world.greet(client, &hello());
        if world.heard(client)
            == [
                "closed: clients connect too fast; find one in a loop, or raise connection_throttle_tokens",
            ]
        {
            return count;
        }
        count += 1;
        assert!(count < 1000, "nothing limits them");
    }
}

// rows: C-124 C-125 C-126 C-127 C-128 C-129 C-130 C-133
#[test]
fn connection_throttle_gives_out_tokens_and_drops_connects_as_configured() {
    let key = |lines: &str| {
        let lines = lines.split(' ').map(|line| format!("connection_throttle_{line}\n"));
        World::configured(&lines.collect::<String>(), "")
    };
    // As many connects as there are tokens, then `fill_count` after each pause.
    let mut world = key("tokens=6 fill_time=1000 fill_count=2");
    assert_eq!(sessions_let_in(&mut world), 6);
    world.pass(1500);
    assert_eq!(sessions_let_in(&mut world), 3, "two tokens a second");
    // The bucket is sized for new sessions; a reconnecting session takes fewer tokens.
    let mut world = key(
        "tokens=4 fill_time=100000 weight_enabled=true global_session_weight=5 renew_session_weight=2",
    );
    for _ in 0..5 {
        let again = world.client_again(0x999);
        assert_ne!(
            world.heard(again),
            [
                "closed: clients connect too fast; find one in a loop, or raise connection_throttle_tokens"
            ]
        );
    }
    assert_eq!(sessions_let_in(&mut world), 2, "of 20 tokens five reconnects took ten");
    // Drop probability: an empty bucket makes it 1, so that the next client is refused, and only then it begins to decrease.
    let chance =
        |world: &World| world.server.shared.throttle.connects(&world.server.shared.limits).1;
    let lines =
        "tokens=4 fill_time=1000 fill_count=2 freeze_time=10 drop_increase=1 drop_decrease=0.25";
    for (ratio, sunk) in [("", 1.0), (" decrease_ratio=0.5", 0.75)] {
        let mut world = key(&format!("{lines}{ratio}"));
        assert_eq!((sessions_let_in(&mut world), chance(&world)), (4, 0.0));
        world.pass(20);
        assert_eq!((sessions_let_in(&mut world), chance(&world)), (0, 1.0));
        world.pass(1000);
        let is_certain = sunk == 1.0;
        assert!(!is_certain || sessions_let_in(&mut world) == 0);
        let _by_chance = sessions_let_in(&mut world);
        assert!(chance(&world) == sunk, "{ratio}: two of four tokens are taken");
    }
}

// rows: C-72 U-16
#[test]
fn skip_acl_permits_everything() {
    for (skip_acl, codes) in [(false, ["error -102", "error -102"]), (true, ["ok", "ok"])] {
        let mut world = World::configured(if skip_acl { "skipACL=yes" } else { "" }, "");
        let (a, b) = (world.client_from("10.0.0.1"), world.client_from("10.0.0.2"));
        world.say(a, [create_for(1, "/a", "10.0.0.1")]);
        world.say(b, [get(1, "/a"), set(2, "/a", "x")]);
        let heard = world.heard(b);
        for (line, code) in heard.iter().zip(codes) {
            assert!(line.contains(code), "{heard:?}");
        }
        assert_eq!(heard.len(), 2);
    }
}

#[test]
fn session_does_not_expire_while_this_server_keeps_its_write_waiting() {
    let mut world = World::configured("", "");
    let writing = world.client();
    let note = |world: &World, bytes| {
        let mut wakers = Vec::new();
        world.server.shared.throttle.note_snapshot_saved(bytes, &mut wakers);
        wakers.into_iter().for_each(std::task::Waker::wake);
    };
    note(&world, SNAPSHOT_SAVED_MAX + 1);
    world.say(writing, [create(1, "/a", "")]);
    world.pass(60_000); // Sessions have 10 s. Nothing is applied: the saved bytes stay as they are.
    assert_eq!(world[writing].need, Need::FewerOutstanding);
    note(&world, 0);
    world.run();
    let heard = world.heard(writing);
    assert!(matches!(&heard[..], [one] if one.ends_with("ok /a")), "{heard:?}");
    world.pass(60_000);
    assert!(matches!(world[writing].need, Need::Close(_)), "it is silent now");
}

#[test]
fn session_does_not_expire_while_its_read_waits_for_a_write() {
    let mut world = World::configured("", "");
    let a = world.client();
    world.hold_log(true);
    world.say(a, [create(1, "/a", ""), get(2, "/a")]);
    world.pass(60_000);
    world.hold_log(false);
    assert_eq!((world.heard(a).len(), world[a].need.clone()), (2, Need::Bytes(4)));
}

#[test]
fn session_expires_when_its_client_disconnects_while_a_write_waits() {
    let mut world = World::configured("", "");
    let a = world.client();
    let mut wakers = Vec::new();
    world.server.shared.throttle.note_snapshot_saved(SNAPSHOT_SAVED_MAX + 1, &mut wakers);
    world.say(a, [create(1, "/a", "")]);
    let sessions = |world: &World| world.server.shared.state.tree.read().sessions().len();
    assert_eq!(sessions(&world), 1);
    world.leave(a);
    world.pass(60_000);
    assert_eq!(sessions(&world), 0);
}
