//! What the replica leaves for the audit log: values, in addition to its answers.

use super::harness::World;
use oxkeeper::admin::put_audit_text;
use oxkeeper::model::{Acl, op};
use oxkeeper::request::AUDIT_WAITING_MAX;
use support::requests::{
    close, create, create_ephemeral, delete, get, raw, request, set, set_acl, sync,
};

/// The events since the last call, without the logger's name and the session, which are the same in all.
fn taken_events(world: &mut World) -> Vec<String> {
    let text = |event| {
        let mut text = String::new();
        put_audit_text(&mut text, &event, "zk");
        let text = text.strip_prefix("o.a.z.a.Slf4jAuditLogger: ").expect("the logger").to_owned();
        let (_session, rest) = text.split_once('\t').expect("a session");
        rest.replace("user=10.0.0.1\tip=10.0.0.1\t", "").replace('\t', " ")
    };
    std::mem::take(&mut world.server.replica.audit).into_iter().map(text).collect()
}

fn audited() -> World {
    World::configured("audit.enable=true", "")
}

// rows: U-30 U-32 U-33 C-224
#[test]
fn changes_and_refusals_are_logged_when_answered_and_reads_are_not() {
    let mut world = audited();
    let a = world.client();
    assert_eq!(taken_events(&mut world), [""; 0], "a new session");
    world.hold_log(true);
    world.say(a, [create(1, "/a", "x"), create(2, "/a", "x"), set(3, "/a", "y")]);
    assert_eq!(taken_events(&mut world), [""; 0], "nothing is answered yet");
    world.hold_log(false);
    world.say(a, [set_acl(4, "/a", &Acl::open()), set_acl(5, "/b", &Acl::open())]);
    world.say(a, [get(6, "/a"), sync(7, "/a"), delete(8, "/a"), delete(9, "/a")]);
    world.say(a, [raw(10, op::CREATE, b"\0\0\0\x7f/short"), raw(11, op::RECONFIG, &[0xff; 20])]);
    assert_eq!(
        taken_events(&mut world),
        [
            "operation=create znode=/a znode_type=persistent result=success",
            "operation=create znode=/a znode_type=persistent result=failure",
            "operation=setData znode=/a result=success",
            "operation=setAcl znode=/a acl=world:anyone:cdrwa result=success",
            "operation=setAcl znode=/b acl=world:anyone:cdrwa result=failure",
            "operation=delete znode=/a result=success",
            "operation=delete znode=/a result=failure",
            "operation=reconfig result=failure",
        ]
    );
    let mut off = World::configured("", "");
    let a = off.client();
    off.say(a, [create(1, "/a", "x"), create_ephemeral(2, "/e"), close(3)]);
    assert_eq!(taken_events(&mut off), [""; 0], "without audit.enable");
}

// rows: U-36
#[test]
fn type_of_a_created_znode_is_what_the_flags_ask_for() {
    let mut world = audited();
    let a = world.client();
    let with_flags = |xid, path: &str, flags| {
        let (path, data) = (Some(path.into()), Some(&[][..]));
        let open = Acl::open();
        let acl = jute::Vector::Owned(vec![open.to_record()]);
        request(xid, op::CREATE, &jute::proto::CreateRequest { path, data, acl, flags })
    };
    world.say(a, [with_flags(1, "/e", 1), with_flags(2, "/s-", 2), with_flags(3, "/t-", 3)]);
    world.say(a, [with_flags(4, "/c", 4), with_flags(5, "/x", 9)]);
    assert_eq!(
        taken_events(&mut world),
        [
            "operation=create znode=/e znode_type=ephemeral result=success",
            "operation=create znode=/s-0000000001 znode_type=persistent_sequential result=success",
            "operation=create znode=/t-0000000002 znode_type=ephemeral_sequential result=success",
            "operation=create znode=/c znode_type=container result=success",
            // Java fails to write this line.
            "operation=create znode=/x result=failure",
        ]
    );
}

// rows: U-35 U-37
#[test]
fn end_of_a_session_logs_the_ephemeral_znodes_that_it_deletes() {
    let mut world = audited();
    let (a, b) = (world.client(), world.client());
    world.say(a, [create_ephemeral(1, "/e1"), create_ephemeral(2, "/e2"), delete(3, "/e1")]);
    world.say(b, [create_ephemeral(1, "/f")]);
    taken_events(&mut world);
    world.say(a, [close(4)]);
    let deleted = "user=zk operation=ephemeralZNodeDeletionOnSessionCloseOrExpire";
    assert_eq!(taken_events(&mut world), [format!("{deleted} znode=/e2 result=success")]);
    world.leave(b);
    world.pass(60_000);
    assert_eq!(taken_events(&mut world), [format!("{deleted} znode=/f result=success")]);
}

#[test]
fn every_write_waits_while_much_is_not_in_the_audit_log() {
    let mut world = audited();
    let a = world.client();
    world.server.shared.throttle.audit_queued(AUDIT_WAITING_MAX + 2);
    world.say(a, [get(1, "/x"), create(2, "/a", ""), get(3, "/a")]);
    assert_eq!((world.server.replica.outstanding(), world.heard(a).len()), (0, 1));
    let written = |world: &World, bytes| {
        let mut wakers = Vec::new();
        world.server.shared.throttle.audit_written(bytes, &mut wakers);
        let count = wakers.len();
        wakers.into_iter().for_each(std::task::Waker::wake);
        count
    };
    assert_eq!(written(&world, 1), 0, "it is still full");
    written(&world, 1);
    world.hold_log(false);
    assert_eq!(world.heard(a).len(), 2);
}
