//! The properties that must hold in every schedule, each with a planted fault that breaks it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use jute::data::Stat;
use jute::txn::TxnHeader;
use jute::{Encode, Reader};
use oxkeeper::model::{OPEN_ACL, Zxid, op};
use oxkeeper::request::{ClientCommand, ReopenSession, Shared, reply};
use oxkeeper::tree::load::Loader;
use oxkeeper::tree::txn::{CreateKind, Entry, write};
use oxkeeper::tree::{Effects, Options, Tree, WatchKind};
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread::spawn;

use super::world::{Event, FaultPlanter, TestClient, World, explore, finds};
use support::requests::{Said, create, delete, get, hello, hello_again, set, watch};

/// Data and stat of a getData reply.
fn value(said: &Said) -> Option<(String, Stat)> {
    let Said::Reply { err: 0, body, .. } = said else { return None };
    let mut from = Reader::new(body);
    let data = from.read::<Option<&[u8]>>().ok()??;
    Some((String::from_utf8_lossy(data).into_owned(), from.read().ok()?))
}

fn xid(said: &Said) -> Option<i32> {
    if let Said::Reply { xid, .. } = said { Some(*xid) } else { None }
}

/// A tree with `/a`, which holds "0".
fn small_tree() -> Tree {
    let mut tree = Tree::new(Options::default());
    apply_create(&mut tree, 1, "/a", b"0", 1);
    tree
}

fn apply_create(tree: &mut Tree, zxid: i64, path: &str, data: &[u8], cversion: i32) {
    let mut entry = Vec::new();
    TxnHeader { zxid, time: 1, kind: op::CREATE, ..TxnHeader::default() }.encode(&mut entry);
    write::create(&mut entry, path, Some(data), OPEN_ACL, CreateKind::Persistent, cversion);
    apply(tree, &entry);
}

fn apply(tree: &mut Tree, entry: &[u8]) {
    let entry = Entry::decode(entry).expect("a well-formed entry");
    tree.apply(&entry.header, &entry.txn, &mut Effects::new());
}

/// Each of two clients sends writes, a read, a write and a read, pipelined: replies come in order, and a read shows the writes before it
/// and not the write after it.
fn pipelines(gated: bool) {
    let world = World::new(Tree::new(Options::default()));
    let clients: Vec<_> = ["/x", "/y"]
        .into_iter()
        .map(|path| {
            let mut client = world.client();
            spawn(move || {
                client.greet(&hello());
                let (first, read) = ([create(1, path, "0"), set(2, path, "1")], get(3, path));
                client.send(&first);
                if gated {
                    client.send(&[read]);
                } else {
                    client.turn(); // The fault: the read does not wait for the writes before it.
                    read_past_the_gate(&mut client, 3, path);
                }
                client.ask(&[set(4, path, "2"), get(5, path)], 5);
                let order: Vec<i32> = client.said.iter().filter_map(xid).collect();
                assert_eq!(order, [1, 2, 3, 4, 5]);
                let seen: Vec<String> =
                    client.said.iter().filter_map(value).map(|(data, _)| data).collect();
                assert_eq!(seen, ["1", "2"]);
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().expect("the property holds"));
    world.stop();
}

/// A read that does not wait for the writes before it.
fn read_past_the_gate(client: &mut TestClient, xid: i32, path: &str) {
    let said = look(client, xid, path);
    client.said.push(said);
}

/// A getData reply from the tree as it is now.
fn look(client: &TestClient, xid: i32, path: &str) -> Said {
    let tree = client.shared.state.tree.read();
    let zxid = tree.last_zxid().to_wire();
    let Some(id) = tree.find(path) else {
        return Said::Reply { xid, zxid, err: -101, body: Vec::new() };
    };
    let znode = tree.znode(id);
    let mut body = Vec::new();
    jute::put_buffer(&mut body, znode.data().bytes().unwrap_or_default());
    znode.stat().encode(&mut body);
    Said::Reply { xid, zxid, err: 0, body }
}

// rows: P-83
#[test]
fn pipelined_reads_and_writes_are_answered_in_order() {
    explore(2000, || pipelines(true));
}

#[test]
fn read_that_does_not_wait_for_earlier_writes_is_found() {
    finds(200, || pipelines(false));
}

/// One client reads and watches `/a` again and again while another client changes it.
fn watching(one_section: bool) {
    let world = World::new(small_tree());
    let mut watcher = world.client();
    let mut writer = world.client();
    let writing = spawn(move || {
        writer.greet(&hello());
        for (xid, data) in [(1, "1"), (2, "2"), (3, "3")] {
            writer.ask(&[set(xid, "/a", data)], xid as usize);
        }
    });
    let watching = spawn(move || {
        watcher.greet(&hello());
        for xid in (1..12).step_by(3) {
            if one_section {
                let looks = [watch(xid, "/a"), get(xid + 1, "/a"), get(xid + 2, "/a")];
                watcher.ask(&looks, xid as usize + 2);
            } else {
                watch_in_three_sections(&mut watcher, xid);
                watcher.ask(&[get(xid + 1, "/a"), get(xid + 2, "/a")], xid as usize + 2);
            }
        }
        watcher
    });
    writing.join().expect("the writer is served");
    let mut watcher = watching.join().expect("the watcher is served");
    // Sessions are logged too, so the last entry need not be a setData.
    let is_write = |entry: &[u8]| Entry::decode(entry).is_ok_and(|e| e.header.kind == op::SET_DATA);
    let logged = world.stop();
    let last = logged.iter().rfind(|(_, entry)| is_write(entry)).expect("there were writes").0;
    watcher.turn();
    check_watching(&watcher.said, last);
}

/// The fault: the value, the watch and the reply's place in the outbox each have a critical section of their own.
fn watch_in_three_sections(client: &mut TestClient, xid: i32) {
    let said = look(client, xid, "/a");
    {
        let _tree = client.shared.state.tree.read();
        client.shared.state.watches.add("/a", client.machine.conn().id, WatchKind::DATA);
    }
    client.turn();
    client.said.push(said);
}

/// Checks that an event comes after the reply that set its watch and before any reply that shows the change, and that none is lost.
fn check_watching(said: &[Said], last: Zxid) {
    let mut watched_since = None;
    for said in said {
        if let Some((_, stat)) = value(said) {
            let asked_to_watch = xid(said).is_some_and(|xid| xid % 3 == 1);
            if let Some(since) = watched_since {
                assert_eq!(
                    stat.mzxid, since,
                    "a reply shows a change whose event is still to come"
                );
            } else if asked_to_watch {
                watched_since = Some(stat.mzxid);
            }
        } else if let Said::Event { zxid, .. } = said {
            let since = watched_since.take().expect("an event before the reply that set its watch");
            assert!(since < *zxid, "an event of {zxid} after a reply that shows {since}");
        }
    }
    if let Some(since) = watched_since {
        assert_eq!(since, last.to_wire(), "no event for a change after the watch was set");
    }
}

// rows: P-33
#[test]
fn watch_event_comes_before_any_reply_that_shows_its_change() {
    explore(2000, || watching(true));
}

#[test]
fn watch_set_in_a_critical_section_of_its_own_is_found() {
    finds(1000, || watching(false));
}

/// A client reconnects to its session while its old connection reads, watches and writes.
fn takeover(meddler: FaultPlanter) {
    let world = World::meddled(small_tree(), meddler);
    let (mut old, mut writer) = (world.client(), world.client());
    let session = old.greet(&hello());
    writer.greet(&hello());
    let taken = Arc::new(AtomicBool::new(false));
    let serving_old = {
        let taken = taken.clone();
        spawn(move || {
            for xid in 1.. {
                let was_taken = taken.load(Ordering::SeqCst);
                let before = old.said.len();
                old.turn();
                assert!(
                    !was_taken || old.said.len() == before,
                    "the old connection is sent something after the new one has the session"
                );
                if old.is_closed() {
                    return;
                }
                match xid {
                    1..6 => old.send(&[watch(xid, "/a"), get(100 + xid, "/a")]),
                    6 => old.send(&[set(xid, "/a", "old")]),
                    _ => old.rest(),
                }
            }
        })
    };
    let writing = spawn(move || writer.ask(&[set(1, "/a", "1"), set(2, "/a", "2")], 2));
    let mut new = world.client();
    new.greet(&hello_again(session));
    taken.store(true, Ordering::SeqCst);
    let watches = |client: &TestClient| client.shared.state.watches.count();
    assert_eq!(watches(&new), 0, "the old connection's watches outlive the takeover");
    new.ask(&[get(1, "/a")], 1);
    serving_old.join().expect("the property holds");
    writing.join().expect("the writer is served");
    assert_eq!(watches(&new), 0, "a watch of the old connection was left after the takeover");
    world.stop();
    new.turn();
    let events = new.said.iter().filter(|said| matches!(said, Said::Event { .. })).count();
    assert_eq!(events, 0, "an event of the old connection reached the new one");
}

/// The fault: the new connection gets the session first, and then the old connection is closed.
fn welcome_first(shared: &Shared, command: ClientCommand) -> Option<ClientCommand> {
    let ClientCommand::Reopen(ReopenSession { conn, session, timeout_ms }) = &command else {
        return Some(command);
    };
    let old = shared.conns.all().into_iter().find(|old| old.session() == Some(*session));
    let mut wakers = Vec::new();
    conn.push_welcome(*session, &mut wakers, |out| {
        reply::welcome(out, *session, *timeout_ms, true, false);
    });
    wakers.drain(..).for_each(std::task::Waker::wake);
    if let Some(old) = old {
        old.close(&mut wakers);
        shared.state.watches.remove_watcher(old.id);
    }
    wakers.into_iter().for_each(std::task::Waker::wake);
    None
}

// rows: P-18
#[test]
fn reconnect_closes_the_old_connection_before_the_new_one_has_the_session() {
    explore(2000, || takeover(|_, command| Some(command)));
}

#[test]
fn reconnect_that_closes_the_old_connection_too_late_is_found() {
    finds(1000, || takeover(welcome_first));
}

/// A connection ends while its watch fires; another connection is made and may get its id.
fn reuse(watches_first: bool) {
    let world = World::new(small_tree());
    let (mut ending, mut writer) = (world.client(), world.client());
    ending.greet(&hello());
    ending.ask(&[watch(1, "/a")], 1);
    writer.greet(&hello());
    let gone = spawn(move || {
        if watches_first {
            ending.machine.end();
        } else {
            // The fault: the id is free before its watches are removed.
            let id = ending.machine.conn().id;
            ending.shared.conns.remove(id);
            let _tree = ending.shared.state.tree.read();
            ending.shared.state.watches.remove_watcher(id);
        }
    });
    let coming = {
        let (shared, events) = (world.shared.clone(), world.events.clone());
        spawn(move || {
            let mut next = TestClient::new(&shared, &events);
            next.greet(&hello());
            next.ask(&[get(1, "/a")], 1);
            next
        })
    };
    let writing = spawn(move || writer.ask(&[set(1, "/a", "1")], 1));
    gone.join().expect("the thread does not panic");
    let mut next = coming.join().expect("the next one is served");
    writing.join().expect("the writer is served");
    world.stop();
    next.turn();
    let stale = next.said.iter().find(|said| matches!(said, Said::Event { .. }));
    assert_eq!(stale, None, "an event for the connection that had the id before");
}

// rows: P-77
#[test]
fn connection_id_is_free_only_after_its_watches_are_removed() {
    explore(2000, || reuse(true));
}

#[test]
fn connection_id_that_is_free_too_early_is_found() {
    finds(40_000, || reuse(false));
}

/// Znodes below the root: enough that the scan holds the tree's lock more than once.
const MANY: i64 = 4300;

fn name(at: i64) -> String {
    format!("/n{at:04}")
}

/// The stream of a tree with [`MANY`] znodes; made once.
fn base() -> &'static [u8] {
    static STREAM: OnceLock<Vec<u8>> = OnceLock::new();
    STREAM.get_or_init(|| {
        let mut tree = Tree::new(Options::default());
        for at in 0..MANY {
            apply_create(&mut tree, at + 1, &name(at), b"0", at as i32 + 1);
        }
        let mut stream = Vec::new();
        let frozen = tree.freeze().expect("no other snapshot");
        while !tree.freeze_piece(frozen, &mut stream) {}
        stream
    })
}

fn load(stream: &[u8], zxid: Zxid) -> Tree {
    let mut loader = Loader::new(Options::default());
    let taken = loader.take(stream).expect("a snapshot's stream");
    assert_eq!((taken.bytes, taken.ended), (stream.len(), true), "the stream is whole");
    loader.finish(zxid).expect("a tree")
}

type Dump = BTreeMap<String, (Option<Vec<u8>>, Stat)>;

/// Every znode below the root whose path is in the range.
fn dump(tree: &Tree, range: std::ops::Range<&str>) -> Dump {
    let mut found = Dump::new();
    let mut left = vec![String::new()];
    while let Some(path) = left.pop() {
        let Some(id) = tree.find(&path) else { continue };
        let znode = tree.znode(id);
        let children = znode.child_names().map(|name| format!("{path}/{name}"));
        left.extend(children.filter(|path| range.contains(&path.as_str())));
        if !path.is_empty() {
            found.insert(path, (znode.data().bytes().map(<[u8]>::to_vec), znode.stat()));
        }
    }
    found
}

/// A snapshot is taken piece by piece while a client creates, changes and deletes znodes that are scanned already and others that are not.
fn snapshot(frozen_pieces: bool) {
    let start = Zxid::from_wire(MANY).expect("a zxid");
    let world = World::new(load(base(), start));
    let mut writer = world.client();
    let writing = spawn(move || {
        writer.greet(&hello());
        writer.ask(&[set(1, &name(1), "early"), set(2, &name(MANY - 1), "late")], 2);
        writer.ask(&[delete(3, &name(MANY - 2)), create(4, "/n9999", "new")], 4);
        writer.ask(&[delete(5, &name(2)), create(6, &name(2), "again")], 6);
        writer.ask(&[create(7, &format!("{}/x", name(MANY - 3)), ""), set(8, &name(3), "")], 8);
    });
    world.events.send(Event::Snapshot).expect("the driver runs");
    let frozen = world.frozen.recv().expect("the snapshot begins");
    let mut stream = Vec::new();
    let mut walked = Dump::new();
    if frozen_pieces {
        while !world.shared.state.tree.read().freeze_piece(frozen, &mut stream) {}
    } else {
        // The fault: the tree's lock is held twice, and nothing keeps what changes in between.
        for range in ["/".."/n2000", "/n2000".."0"] {
            walked.append(&mut dump(&world.shared.state.tree.read(), range));
        }
    }
    world.events.send(Event::SnapshotEnded(frozen)).expect("the driver runs");
    writing.join().expect("the writer is served");
    let mut expected = load(base(), start);
    for (_, entry) in world.stop().iter().filter(|(zxid, _)| *zxid <= frozen.zxid) {
        apply(&mut expected, entry);
    }
    if frozen_pieces {
        let loaded = load(&stream, frozen.zxid);
        assert_eq!(Some(loaded.digest()), frozen.digest);
        assert_eq!(loaded.sessions(), expected.sessions());
        walked = dump(&loaded, "/".."0");
    }
    assert!(walked == dump(&expected, "/".."0"), "the snapshot is of no single zxid");
}

#[test]
fn snapshot_has_the_tree_of_one_zxid() {
    explore(200, || snapshot(true));
}

#[test]
fn snapshot_of_an_unfrozen_tree_is_found() {
    finds(2000, || snapshot(false));
}
