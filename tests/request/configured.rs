//! Settings of zoo.cfg and flags: what a server does with each and without it.

use super::harness::{Client, World};
use oxkeeper::client::ConnectRequest;
use oxkeeper::model::{Owner, op};
use oxkeeper::request::Need;
use oxkeeper::tree::txn::{Entry, Txn};
use support::bodies::{self, create_ttl};
use support::requests::{close, create, create_ephemeral, get, hello, look, ping, raw, set};

fn default() -> World {
    World::configured("", "")
}

/// Whether each of the entries in the log has a digest, and the transaction of the last one.
fn logged(world: &World) -> (Vec<bool>, Txn<'_>) {
    let entries = world.server.disk.log.iter();
    let decoded: Vec<_> =
        entries.map(|(_, entry)| Entry::decode(entry).expect("our own entry")).collect();
    let digests = decoded.iter().map(|entry| entry.digest.is_some()).collect();
    (digests, decoded.into_iter().last().expect("an entry").txn)
}

// rows: C-260
#[test]
fn frames_above_jute_maxbuffer_close_the_connection() {
    let long = create(1, "/a", &"x".repeat(3000));
    for (flags, is_taken) in [("", true), ("-Djute.maxbuffer=3000", false)] {
        let mut world = World::configured("", flags);
        let client = world.client();
        world.say(client, [long.clone()]);
        let heard = world.heard(client);
        assert_eq!(heard == ["1 @2 ok /a"], is_taken, "{flags}: {heard:?}");
        assert_eq!(matches!(world[client].need, Need::Close(_)), !is_taken);
    }
}

// rows: C-20 C-22 C-23
#[test]
fn session_timeouts_are_clamped_to_the_configured_limits() {
    let agreed = |lines: &str| {
        let mut world = World::configured(lines, "");
        [1, 7000, i32::MAX].map(|timeout_ms| {
            let client = world.connect();
            world.greet(client, &ConnectRequest { timeout_ms, ..hello() });
            let heard = world.heard(client);
            heard[0]
                .split(' ')
                .nth(2)
                .expect("a connect response")
                .parse::<i32>()
                .expect("a timeout")
        })
    };
    assert_eq!(agreed(""), [4000, 7000, 40_000], "2 and 20 ticks");
    assert_eq!(agreed("minSessionTimeout=8000"), [8000, 8000, 40_000]);
    assert_eq!(agreed("maxSessionTimeout=5000"), [4000, 5000, 5000]);
    assert_eq!(agreed("tickTime=300"), [600, 6000, 6000]);
}

// rows: C-20
#[test]
fn sessions_expire_on_multiples_of_the_tick_time() {
    for (lines, expired) in [("", [false, false, true]), ("tickTime=500", [false, true, true])] {
        let mut world = World::configured(lines, "");
        let owner = world.connect();
        world.greet(owner, &ConnectRequest { timeout_ms: 4000, ..hello() });
        let _response = world.heard(owner);
        world.say(owner, [create_ephemeral(1, "/e")]);
        let seen = [3900, 1000, 1500].map(|ms| {
            world.pass(ms);
            world.server.shared.state.tree.read().find("/e").is_none()
        });
        assert_eq!(seen, expired, "{lines}");
    }
}

// rows: C-117
#[test]
fn connections_without_a_session_are_closed_after_sessionless_cnxn_timeout() {
    for (lines, is_closed) in [("", false), ("nio.sessionlessCnxnTimeout=700", true)] {
        let mut world = World::configured(lines, "");
        let (silent, other) = (world.connect(), world.client());
        world.pass(1500);
        assert_eq!(world.heard(silent) == ["closed"], is_closed, "{lines}");
        world.say(other, [ping()]);
        assert_eq!(world.heard(other).len(), 1, "one with a session stays");
    }
}

// rows: C-80
#[test]
fn entries_have_digests_unless_digest_enabled_is_false() {
    for (lines, has_digests) in [("", true), ("digest.enabled=false", false)] {
        let mut world = World::configured(lines, "");
        let client = world.client();
        world.say(client, [create(1, "/a", "")]);
        assert_eq!(logged(&world).0, [has_digests; 2], "{lines}");
    }
}

// rows: C-81
#[test]
fn close_session_txn_lists_ephemerals_unless_switched_off() {
    for (lines, is_listed) in [("", true), ("closeSessionTxn.enabled=false", false)] {
        let mut world = World::configured(lines, "");
        let client = world.client();
        world.say(client, [create_ephemeral(1, "/e"), close(2)]);
        let (_, Txn::CloseSession { paths }) = logged(&world) else { panic!("not a close") };
        assert_eq!(paths.is_some(), is_listed, "{lines}");
    }
}

fn ask_for_ttl(world: &mut World, client: Client) -> Vec<String> {
    let (kind, body) = create_ttl("/ttl", 5, 5000);
    world.say(client, [raw(7, kind, &body)]);
    world.heard(client)
}

// rows: C-98 C-99
#[test]
fn ttl_znodes_need_extended_types_enabled() {
    let owner_of_353 = i64::MIN | 5000;
    for (lines, is_made, owner) in [
        ("", false, Owner::Session(owner_of_353)),
        ("emulate353TTLNodes=true", false, Owner::Session(owner_of_353)),
        ("extendedTypesEnabled=true", true, Owner::Session(owner_of_353)),
        ("extendedTypesEnabled=true\nemulate353TTLNodes=true", true, Owner::Ttl(5000)),
    ] {
        let mut world = World::configured(lines, "");
        let client = world.client();
        let heard = ask_for_ttl(&mut world, client);
        assert_eq!(heard[0].contains(" ok"), is_made, "{lines}: {heard:?}");
        assert!(is_made || heard == ["7 @2 error -6"], "{heard:?}");
        let options = world.server.shared.state.tree.read().options();
        assert_eq!(options.owner(owner_of_353), owner, "{lines}");
    }
}

// rows: C-73
#[test]
fn quotas_refuse_writes_if_enforce_quota_is_set() {
    for (lines, answer) in [("", "5 @6 ok v1"), ("enforceQuota=true", "5 @6 error -125")] {
        let mut world = World::configured(lines, "");
        let client = world.client();
        let quota = "/zookeeper/quota/a";
        let limits = create(3, &format!("{quota}/zookeeper_limits"), "byteHardLimit=2");
        let stats = create(4, &format!("{quota}/zookeeper_stats"), "count=1,bytes=0");
        world.say(client, [create(1, "/a", ""), create(2, quota, ""), limits, stats]);
        world.say(client, [set(5, "/a", "long")]);
        assert_eq!(world.heard(client).last().map(String::as_str), Some(answer), "{lines}");
    }
}

// rows: C-154
#[test]
fn entries_may_be_longer_than_frames_by_extrasize() {
    // A close lists ephemerals: its entry grows with their names.
    let name = format!("/{}", "x".repeat(500));
    for (flags, is_listed) in [
        ("-Djute.maxbuffer=2000", true),
        ("-Djute.maxbuffer=2000 -Dzookeeper.jute.maxbuffer.extrasize=1024", false),
    ] {
        let mut world = World::configured("", flags);
        let client = world.client();
        for at in 0..7 {
            world.say(client, [create_ephemeral(at, &format!("{name}{at}"))]);
        }
        world.say(client, [close(8)]);
        let (_, Txn::CloseSession { paths }) = logged(&world) else { panic!("not a close") };
        assert_eq!(paths.is_some(), is_listed, "3,500 bytes, with {flags}");
    }
}

// rows: C-140 C-141
#[test]
fn snapshots_are_taken_after_snap_count_or_the_size_limit() {
    let snapshots = |lines: &str| {
        let mut world = World::configured(lines, "");
        let client = world.client();
        for xid in 1..40 {
            world.say(client, [create(xid, &format!("/{xid}"), &"x".repeat(100))]);
        }
        world.server.frozen.len()
    };
    assert_eq!(snapshots(""), 0);
    assert_eq!(snapshots("snapCount=20"), 1);
    assert_eq!(snapshots("snapSizeLimitInKb=4"), 1);
}

// rows: C-263 C-263b
#[test]
fn containers_are_checked_at_the_configured_interval() {
    for (flag, is_gone) in [("", false), ("-Dznode.container.checkIntervalMs=500", true)] {
        let mut world = World::configured("", flag);
        let client = world.client();
        let (kind, container) = bodies::create(op::CREATE_CONTAINER, "/c", None, 4);
        world.say(client, [raw(1, kind, &container), create(2, "/c/d", "")]);
        let (kind, delete) = bodies::delete("/c/d");
        world.say(client, [raw(3, kind, &delete)]);
        let _answers = world.heard(client);
        world.pass(1000);
        world.say(client, [look(4, op::EXISTS, "/c", false)]);
        let heard = world.heard(client);
        assert_eq!(heard[0].ends_with("error -101"), is_gone, "{flag}: {heard:?}");
    }
}

#[test]
fn standalone_server_ignores_linearizable_reads() {
    let mut world = World::configured("oxkeeper.linearizableReads=true", "");
    let client = world.client();
    world.hold_commands(true);
    world.say(client, [get(1, "/zookeeper")]);
    assert_eq!(world.heard(client), ["1 @1 ok \"\" v0"]);
    assert_eq!(default().server.shared.limits.frame_max, 0xf_ffff);
}
