//! What clients see of an ensemble's members, whichever server they are connected to.

mod members {
    pub mod ensemble;
}

use jute::Vector;
use jute::proto::{AuthPacket, CreateRequest, SetAclRequest};
use members::ensemble::{Client, Ensemble, FOLLOWER, LEADER, OBSERVER, OTHER};
use oxkeeper::model::{Acl, Identity, op, perms};
use oxkeeper::replica::Settings;
use oxkeeper::request::Limits;
use oxkeeper::zab::Request;
use support::requests::{
    close, create, create_ephemeral, create_for, delete, get, ping, request, set, set_acl_for, sync,
};

const SETTINGS: Settings = Settings { tick_time_ms: 2000, ..Settings::DEFAULT };

fn new_ensemble() -> Ensemble {
    Ensemble::new(&SETTINGS, &Limits::default())
}

/// Sets an access list that names an unknown scheme.
fn set_acl_nobody_can_mean(xid: i32, path: &str) -> Vec<u8> {
    let acl = Acl { perms: perms::ALL, who: Identity::new("none-such", "x") };
    let acl = Vector::Owned(vec![acl.to_record()]);
    request(xid, op::SET_ACL, &SetAclRequest { path: Some(path.into()), acl, version: -1 })
}

/// A client that may not write `/a`, on a server where another client has created it.
fn stranger(ensemble: &mut Ensemble, at: usize) -> Client {
    let owner = ensemble.client(at, "10.0.0.1");
    assert!(ensemble.say(owner, [create_for(1, "/a", "10.0.0.1")])[0].ends_with("ok /a"));
    let stranger = ensemble.client(at, "10.0.0.2");
    ensemble.asked(at);
    stranger
}

// rows: C-71 P-80 U-23
#[test]
fn eager_acl_check_refuses_forbidden_writes_without_the_leader() {
    let eager = Settings { eager_acl_check: true, ..SETTINGS };
    for at in [LEADER, FOLLOWER, OBSERVER] {
        let mut ensemble = Ensemble::new(&eager, &Limits::default());
        let stranger = stranger(&mut ensemble, at);
        let last = ensemble.last_zxid(LEADER);
        let forbidden = [
            set(1, "/a", "x"),
            create(2, "/a/b", ""),
            delete(3, "/a/b"),
            set_acl_for(4, "/a", "10.0.0.2"),
            set_acl_nobody_can_mean(5, "/none"),
        ];
        let heard = ensemble.say(stranger, forbidden);
        // No zxid in the answer, none taken, and nothing forwarded to the leader.
        let codes = [-102, -102, -102, -102, -114];
        let expected: Vec<String> =
            codes.iter().zip(1..).map(|(code, xid)| format!("{xid} @0 error {code}")).collect();
        assert_eq!((heard, ensemble.last_zxid(LEADER)), (expected, last), "server {at}");
        assert_eq!(ensemble.asked(at), [], "server {at}");
        assert_eq!(ensemble.shared(at).throttle.in_process(), 0);
        // A znode that is not there forbids nothing, and a multi is not checked early: the leader prepares both.
        let heard = ensemble.say(stranger, [set(6, "/none", "x")]);
        assert_eq!(heard, [format!("6 @{} error -101", last + 1)], "server {at}");
    }
}

// rows: P-80 P-83
#[test]
fn eager_acl_check_refuses_nothing_after_an_unanswered_request() {
    let eager = Settings { eager_acl_check: true, ..SETTINGS };
    for at in [LEADER, FOLLOWER] {
        let mut ensemble = Ensemble::new(&eager, &Limits::default());
        let stranger = stranger(&mut ensemble, at);
        let last = ensemble.last_zxid(LEADER);
        let heard = ensemble.say(stranger, [create(1, "/b", ""), set(2, "/a", "x")]);
        let expected = [format!("1 @{} ok /b", last + 1), format!("2 @{} error -102", last + 2)];
        assert_eq!(heard, expected, "server {at}");
        // An outstanding request may be what permits the next one.
        let owner = ensemble.client(at, "10.0.0.1");
        let heard = ensemble.say(
            owner,
            [create_for(1, "/c", "10.0.0.2"), set(2, "/a", "x"), set_acl_for(3, "/a", "10.0.0.2")],
        );
        assert!(heard.iter().all(|line| line.contains(" ok")), "{heard:?}");
        assert!(ensemble.say(owner, [set(4, "/a", "y")])[0].ends_with("@0 error -102"));
    }
}

// rows: C-71
#[test]
fn forbidden_write_is_forwarded_without_eager_acl_check() {
    let mut ensemble = new_ensemble();
    let stranger = stranger(&mut ensemble, FOLLOWER);
    let last = ensemble.last_zxid(LEADER);
    let heard = ensemble.say(stranger, [set(1, "/a", "x")]);
    assert_eq!(heard, [format!("1 @{} error -102", last + 1)]);
    assert_eq!(ensemble.asked(FOLLOWER).len(), 1);
}

fn show(user: &str) -> Vec<u8> {
    let packet = AuthPacket { kind: 0, scheme: Some("digest".into()), auth: Some(user.as_bytes()) };
    request(-4, op::AUTH, &packet)
}

/// Creates a znode that is open to the identities of the client that sends this.
fn create_for_me(xid: i32, path: &str) -> Vec<u8> {
    let acl = Acl { perms: perms::ALL, who: Identity::new("auth", "") };
    let acl = Vector::Owned(vec![acl.to_record()]);
    let body = CreateRequest { path: Some(path.into()), data: Some(b""), acl, flags: 0 };
    request(xid, op::CREATE, &body)
}

// rows: U-24
#[test]
fn leader_checks_access_with_the_identities_that_learners_forward() {
    for at in [FOLLOWER, OBSERVER] {
        let mut ensemble = new_ensemble();
        let owner = ensemble.client(at, "10.0.0.1");
        let heard = ensemble.say(owner, [show("me:secret"), create_for_me(1, "/mine")]);
        assert!(heard[1].ends_with(" ok /mine"), "{heard:?}");
        let asked = ensemble.asked(at).pop().unwrap();
        let schemes: Vec<&str> = asked.identities.iter().map(|id| id.scheme.as_ref()).collect();
        assert_eq!(schemes, ["ip", "digest"]);
        let mine = asked.identities[1].clone();
        let tree = ensemble.shared(LEADER).state.tree.read();
        let acl = tree.acl(tree.znode(tree.find("/mine").unwrap()).acl()).clone();
        drop(tree);
        assert!(acl.iter().any(|acl| acl.who == mine), "{acl:?}");
        // Without the identity, and with it at another server.
        let other = ensemble.client(OTHER, "10.0.0.3");
        assert!(ensemble.say(other, [set(1, "/mine", "x")])[0].ends_with("error -102"));
        let heard = ensemble.say(other, [show("me:secret"), set(2, "/mine", "x")]);
        assert!(heard[1].contains(" ok"), "{heard:?}");
    }
}

// A local session writes nothing. A client that has seen the zxid of the epoch, 4294967296, would be refused by every other
// server. rows: Q-64
#[test]
fn replies_before_an_epochs_first_transaction_carry_the_zxid_of_the_history() {
    let local = Settings { local_sessions: true, ..SETTINGS };
    let mut ensemble = Ensemble::new(&local, &Limits::default());
    for at in [LEADER, FOLLOWER] {
        let client = ensemble.client(at, "10.0.0.1");
        assert_eq!(ensemble.say(client, [get(1, "/none")]), ["1 @0 error -101"]);
    }
}

// A read-only server shows what it had logged as a leader and what was never committed. Nothing has to be written in the
// next epoch before the client is accepted. rows: P-13
#[test]
fn client_that_has_seen_uncommitted_writes_is_accepted_in_the_next_epoch() {
    let mut ensemble = new_ensemble();
    for at in [LEADER, FOLLOWER] {
        for (last_zxid_seen, is_let_in) in [(9, true), (1 << 32, true), (0x1_0000_0009, false)] {
            let client = ensemble.client_that_has_seen(at, last_zxid_seen);
            assert_eq!(client.is_ok(), is_let_in, "{last_zxid_seen:#x} at {at}: {client:?}");
        }
    }
}

/// A Java leader answers its own clients' syncs like reads, and sends COMMIT before it has applied the transaction.
// rows: G-16
#[test]
fn a_sync_at_the_leader_waits_for_all_that_was_proposed() {
    let mut ensemble = new_ensemble();
    let writer = ensemble.client(FOLLOWER, "10.0.0.1");
    let reader = ensemble.client(LEADER, "10.0.0.2");
    ensemble.hold_logs([FOLLOWER, OTHER], true);
    assert_eq!(ensemble.say(writer, [create(1, "/a", "seen")]), [""; 0]);
    assert_eq!(ensemble.say(reader, [get(1, "/a")]), ["1 @4294967298 error -101"]);
    assert_eq!(ensemble.say(reader, [sync(2, "/"), get(3, "/a")]), [""; 0], "it is proposed");
    ensemble.hold_logs([FOLLOWER], false);
    assert_eq!(ensemble.heard(writer), ["1 @4294967299 ok /a"]);
    assert_eq!(ensemble.heard(reader), ["2 @4294967299 ok /", "3 @4294967299 ok \"seen\" v0"]);
}

// rows: G-23 P-22
#[test]
fn old_connection_of_a_moved_session_reads_until_it_writes() {
    for (from, to) in [(FOLLOWER, OTHER), (FOLLOWER, LEADER), (LEADER, FOLLOWER)] {
        let mut ensemble = new_ensemble();
        let old = ensemble.client(from, "10.0.0.1");
        assert!(ensemble.say(old, [create(1, "/a", "")])[0].ends_with("ok /a"));
        let session = ensemble.session(old);
        let new = ensemble.client_again(to, session);
        assert!(ensemble.say(new, [set(1, "/a", "x")])[0].contains(" ok"), "{from} to {to}");
        let heard = ensemble.say(old, [get(2, "/a")]);
        assert!(heard[0].ends_with("ok \"x\" v1"), "{from} to {to}: {heard:?}");
        assert_eq!(ensemble.say(old, [set(3, "/a", "y")]), ["closed"], "{from} to {to}");
        // Its client reconnects, and takes the session back.
        let again = ensemble.client_again(from, session);
        assert!(ensemble.say(again, [set(1, "/a", "z")])[0].contains(" ok"), "{from} to {to}");
        assert_eq!(ensemble.say(new, [set(2, "/a", "w")]), ["closed"], "{from} to {to}");
    }
}

/// The leader knows only which server a session is at. Both connections were read late: their client has moved to another
/// server since, and reconnects to the first server.
// rows: P-22 G-23
#[test]
fn requests_of_an_older_connection_are_dropped_when_its_session_reconnects() {
    for at in [LEADER, FOLLOWER, OBSERVER] {
        let mut ensemble = new_ensemble();
        let old = ensemble.client(at, "10.0.0.1");
        let session = ensemble.session(old);
        let elsewhere = ensemble.client_again(OTHER, session);
        assert!(ensemble.say(elsewhere, [create(7, "/a", "new")])[0].ends_with("ok /a"));
        ensemble.asked(at);
        let again = ensemble.greet_late(at, session, (old, set(1, "/a", "old")));
        assert_eq!(ensemble.heard(old), ["closed"], "server {at}");
        let heard = ensemble.say(again, [get(8, "/a")]);
        assert!(heard[0].ends_with("ok \"new\" v0"), "server {at}: {heard:?}");
        assert_eq!(ensemble.asked(at), [], "server {at}");
        assert_eq!(ensemble.shared(at).throttle.in_process(), 0);
    }
}

/// To the leader follower and observer are one learner: only the follower knows where the session is.
// rows: Q-92 G-23
#[test]
fn observer_master_refuses_requests_from_the_server_that_a_session_has_left() {
    for (from, to) in [(OBSERVER, FOLLOWER), (FOLLOWER, OBSERVER)] {
        let mut ensemble = Ensemble::behind(FOLLOWER, &SETTINGS, &Limits::default());
        let old = ensemble.client(from, "10.0.0.1");
        assert!(ensemble.say(old, [create(1, "/a", "")])[0].ends_with("ok /a"));
        let session = ensemble.session(old);
        let new = ensemble.client_again(to, session);
        assert!(ensemble.say(new, [set(3, "/a", "new")])[0].contains(" ok"), "{from} to {to}");
        let heard = ensemble.say(old, [set(2, "/a", "old")]);
        assert!(heard[0].starts_with("closed"), "{from} to {to}: {heard:?}");
        let heard = ensemble.say(new, [get(4, "/a")]);
        assert!(heard[0].ends_with("ok \"new\" v1"), "{from} to {to}: {heard:?}");
        // Back again, the session may write as before.
        let again = ensemble.client_again(from, session);
        assert!(ensemble.say(again, [set(5, "/a", "again")])[0].contains(" ok"), "{from} to {to}");
        assert!(ensemble.say(new, [set(5, "/a", "old")])[0].starts_with("closed"));
        assert!(ensemble.say(again, [get(6, "/a")])[0].ends_with("ok \"again\" v2"));
    }
}

/// The leader does not know an observer's local session. Before it has said so, the client goes back to the observer.
// rows: Q-94 G-23
#[test]
fn a_client_that_returns_to_its_observer_with_a_local_session_may_write() {
    let settings = Settings { local_sessions: true, ..SETTINGS };
    let mut ensemble = Ensemble::behind(FOLLOWER, &settings, &Limits::default());
    let client = ensemble.client(OBSERVER, "10.0.0.1");
    let session = ensemble.session(client);
    ensemble.stalled = Some(LEADER);
    ensemble.ask_for_session(FOLLOWER, session);
    let back = ensemble.client_again(OBSERVER, session);
    assert!(ensemble.say(back, [create(1, "/a", "")]).is_empty());
    ensemble.stalled = None;
    ensemble.pass(5);
    assert!(ensemble.heard(back)[0].ends_with("ok /a"));
}

/// The transaction that it made without a zxid is not answered either.
// rows: Q-80
#[test]
fn write_that_finds_no_zxid_left_in_the_epoch_is_not_answered() {
    for left in 8..12 {
        let settings = Settings { counter_max: left - 1, ..SETTINGS };
        let mut ensemble = Ensemble::new(&settings, &Limits::default());
        let clients = [LEADER, FOLLOWER].map(|at| ensemble.client(at, "10.0.0.1"));
        for (xid, client) in (1..).zip(clients.into_iter().cycle()) {
            let heard = ensemble.say(client, [create(xid, &format!("/{xid}"), "")]);
            if heard.is_empty() || heard == ["closed"] {
                assert!(3 < xid, "{left}");
                break;
            }
            assert!(heard.len() == 1 && heard[0].contains(" ok /"), "{left}: {heard:?}");
        }
    }
}

// Also at members that go on under the next leader, and of clients that wait for no answer.
#[test]
fn election_closes_the_connections_of_all_clients() {
    let settings = Settings { counter_max: 12, ..SETTINGS };
    let mut ensemble = Ensemble::new(&settings, &Limits::default());
    let clients = [LEADER, FOLLOWER, OBSERVER].map(|at| ensemble.client(at, "10.0.0.1"));
    let writer = ensemble.client(OTHER, "10.0.0.1");
    let is_open = |ensemble: &mut Ensemble, xid: i32| {
        let heard = ensemble.say(writer, [create(xid, &format!("/{xid}"), "")]);
        heard.first().is_some_and(|heard| heard.contains(" ok /"))
    };
    let last = (1..).find(|xid| !is_open(&mut ensemble, *xid)).expect("the epoch ends");
    assert!(3 < last, "{last}");
    for client in clients {
        assert_eq!(ensemble.heard(client), ["closed"], "server {}", client.at);
    }
}

/// The leader's answer for the first connection must not accept the second one: until the leader has given the session to
/// this server for the second one too, the client may have moved to another server (world 116000001130).
// rows: P-22 G-23
#[test]
fn client_that_reconnects_twice_is_accepted_by_its_second_revalidation() {
    for at in [FOLLOWER, OBSERVER] {
        let mut ensemble = new_ensemble();
        let client = ensemble.client(OTHER, "10.0.0.1");
        let session = ensemble.session(client);
        ensemble.stalled = Some(LEADER);
        let first = ensemble.ask_for_session(at, session);
        let second = ensemble.ask_for_session(at, session);
        assert_eq!(ensemble.heard(first), ["closed"], "server {at}");
        ensemble.deliver_first(LEADER);
        assert_eq!(ensemble.heard(second), [""; 0], "server {at}");
        ensemble.deliver_first(LEADER);
        let heard = ensemble.heard(second);
        assert!(heard.len() == 1 && heard[0].starts_with("session"), "server {at}: {heard:?}");
    }
}

/// Bytes that a server reads on waking are processed before the ticks that it missed, and count as new (world 114000003337).
// rows: P-21
#[test]
fn session_heard_after_its_server_paused_has_its_whole_timeout() {
    let mut ensemble = new_ensemble();
    let old = ensemble.client(FOLLOWER, "10.0.0.1");
    let old = ensemble.session(old);
    ensemble.uncounted_ms = 60_000;
    let new = ensemble.client(FOLLOWER, "10.0.0.2");
    let new = ensemble.session(new);
    let back = ensemble.client_again(FOLLOWER, old);
    ensemble.count_missed_ticks(FOLLOWER);
    assert_eq!(ensemble.heard(back), [""; 0]);
    for session in [old, new] {
        ensemble.client_again(OTHER, session);
    }
}

/// A server that slept has read late that the client had connected; the client had gone back by then.
// rows: P-21 P-22
#[test]
fn session_stays_valid_where_it_pings_and_closes_there() {
    for (at, slept) in [(LEADER, FOLLOWER), (FOLLOWER, OTHER)] {
        let mut ensemble = new_ensemble();
        let client = ensemble.client(at, "10.0.0.1");
        let session = ensemble.session(client);
        ensemble.client_again(slept, session);
        for _ in 0..10 {
            ensemble.pass(2000);
            assert_eq!(ensemble.say(client, [ping()]).len(), 1, "{at}");
        }
        let again = ensemble.client_again(at, session);
        assert!(ensemble.say(again, [create(1, "/a", "")])[0].ends_with("ok /a"), "{at}");
        let other = ensemble.client_again(slept, session);
        assert_eq!(ensemble.say(other, [close(2)]).len(), 2, "{at}");
        assert_eq!(ensemble.heard(again), ["closed"], "{at}");
    }
}

/// A leader that does not know a session takes it for a local session of its learner.
// rows: Q-94 P-22
#[test]
fn late_request_of_a_session_that_has_ended_is_refused() {
    let local = Settings { local_sessions: true, local_upgrades: true, ..SETTINGS };
    let mut ensemble = Ensemble::new(&local, &Limits::default());
    let client = ensemble.client(FOLLOWER, "10.0.0.1");
    ensemble.asked(FOLLOWER);
    assert!(ensemble.say(client, [create(1, "/a", "")])[0].ends_with("ok /a"));
    let late = ensemble.asked(FOLLOWER).remove(0);
    let late =
        |xid, body: Vec<u8>| Request { xid, op: op::CREATE, body: body.into(), ..late.clone() };
    let body = |path: &str| create(0, path, "")[12..].to_vec();
    ensemble.pass_on(FOLLOWER, late(2, body("/b")));
    let session = ensemble.session(client);
    assert!(ensemble.say(client, [create_ephemeral(3, "/e")])[0].ends_with("ok /e"));
    let moved = ensemble.client_again(LEADER, session);
    assert!(ensemble.say(moved, [close(4)])[0].contains(" ok"));
    ensemble.pass_on(FOLLOWER, late(5, body("/c")));
    let reader = ensemble.client(LEADER, "10.0.0.2");
    assert!(ensemble.say(reader, [get(1, "/b")])[0].contains(" ok"), "a local session");
    assert!(ensemble.say(reader, [get(2, "/c")])[0].contains("error -101"));
}

/// The leader takes a session as closing as soon as it proposes closeSession, and not only when that is committed.
// rows: P-21
#[test]
fn requests_after_a_forwarded_close_are_refused() {
    for at in [FOLLOWER, OBSERVER] {
        let mut ensemble = new_ensemble();
        let client = ensemble.client(at, "10.0.0.1");
        ensemble.asked(at);
        assert!(ensemble.say(client, [create(1, "/a", "")])[0].ends_with("ok /a"));
        let asked = ensemble.asked(at).remove(0);
        ensemble.hold_logs([FOLLOWER, OTHER], true);
        assert_eq!(ensemble.say(client, [close(2)]), [""; 0], "no quorum has it yet");
        let body = create(0, "/b", "")[12..].to_vec();
        ensemble.pass_on(at, Request { xid: 3, body: body.into(), ..asked });
        ensemble.hold_logs([FOLLOWER, OTHER], false);
        assert!(ensemble.heard(client)[0].contains(" ok"), "server {at}");
        let tree = ensemble.shared(LEADER).state.tree.read();
        assert!(tree.find("/a").is_some() && tree.find("/b").is_none(), "server {at}");
    }
}

/// Its socket may never end, as the client's machine may be gone.
// rows: P-21
#[test]
fn silent_connection_of_a_session_that_moved_away_is_closed() {
    for (from, to) in [(FOLLOWER, OTHER), (LEADER, FOLLOWER)] {
        let mut ensemble = new_ensemble();
        let (silent, speaks) =
            (ensemble.client(from, "10.0.0.1"), ensemble.client(from, "10.0.0.2"));
        let [moved, other] = [silent, speaks].map(|old| ensemble.session(old));
        let (new, second) = (ensemble.client_again(to, moved), ensemble.client_again(to, other));
        for _ in 0..7 {
            ensemble.pass(2000);
            for client in [speaks, new, second] {
                assert_eq!(ensemble.say(client, [ping()]).len(), 1, "{from} to {to}");
            }
        }
        assert_eq!(ensemble.heard(silent), ["closed"], "{from} to {to}");
    }
}

/// A Java leader ends when a throttled request reaches it.
// rows: Q-120 P-79
#[test]
fn throttled_write_is_neither_proposed_nor_forwarded() {
    let limits =
        Limits { requests_max: Some(1), op_wait_max_us: Some(50_000), ..Limits::default() };
    for at in [FOLLOWER, LEADER] {
        let mut ensemble = Ensemble::new(&SETTINGS, &limits);
        let (a, b) = (ensemble.client(at, "10.0.0.1"), ensemble.client(at, "10.0.0.1"));
        ensemble.hold_logs([FOLLOWER, OTHER], true);
        ensemble.asked(at);
        assert_eq!(ensemble.say(a, [create(1, "/a", "")]), [""; 0]);
        assert_eq!(ensemble.say(b, [create(1, "/b", "")]), [""; 0]);
        ensemble.pass(100);
        ensemble.hold_logs([FOLLOWER, OTHER], false);
        let last = ensemble.last_zxid(LEADER);
        assert_eq!(ensemble.heard(b), [format!("1 @{last} error -127")], "server {at}");
        assert_eq!(ensemble.heard(a), [format!("1 @{last} ok /a")], "the last one there is");
        assert_eq!(ensemble.asked(at).len(), usize::from(at != LEADER), "server {at}");
    }
}

// rows: Q-121 C-94
#[test]
fn write_that_outlives_its_session_is_dropped_by_the_server_of_its_client() {
    let limits = Limits { requests_max: Some(1), drops_late: true, ..Limits::default() };
    for at in [FOLLOWER, LEADER] {
        let mut ensemble = Ensemble::new(&SETTINGS, &limits);
        let (a, b) = (ensemble.client(at, "10.0.0.1"), ensemble.client(at, "10.0.0.1"));
        ensemble.asked(at);
        ensemble.hold_logs([FOLLOWER, OTHER], true);
        ensemble.say(a, [create(1, "/a", "")]);
        assert_eq!(ensemble.say(b, [create(1, "/b", "")]), [""; 0]);
        ensemble.pass(11_000); // After its session's 10 s, but it is checked in steps of 2 s.
        ensemble.hold_logs([FOLLOWER, OTHER], false);
        assert_eq!(
            ensemble.heard(b),
            [
                "closed: a request outlived its session; if it repeats, raise the client's session timeout"
            ],
            "server {at}"
        );
        assert!(
            ensemble.asked(at).iter().all(|asked| !asked.body.windows(2).any(|two| two == b"/b"))
        );
        assert!(ensemble.shared(LEADER).state.tree.read().find("/b").is_none());
    }
}
