//! Where election connections are accepted, and accepted learner connections that have sent no hello.

use oxkeeper::member::election_hello::Address;
use oxkeeper::member::election_listeners::{Change, ElectionAddress, ListenerId, Listeners};

fn at(host: &str, port: u16) -> Address {
    (host.to_owned(), port)
}

fn listen(id: u64, host: Option<&str>, port: u16) -> Change {
    let place = ElectionAddress { host: host.map(str::to_owned), port };
    Change::Listen { listener: ListenerId(id), place }
}

// rows: C-28 Q-30
#[test]
fn port_at_every_address_is_bound_once() {
    let (mut listeners, mut out) = (Listeners::new(3), Vec::new());
    listeners.set(&[at("b", 1), at("a", 1), at("a", 2)], false, &mut out);
    assert_eq!(out, [listen(1, Some("a"), 1), listen(2, Some("a"), 2), listen(3, Some("b"), 1)]);
    let (mut listeners, mut out) = (Listeners::new(3), Vec::new());
    listeners.set(&[at("b", 1), at("a", 1)], true, &mut out);
    assert_eq!(out, [listen(1, None, 1)]);
}

// rows: Q-29 C-163
#[test]
fn zk_3320_listening_is_tried_for_ever_and_reported_once() {
    let (mut listeners, mut out) = (Listeners::new(2), Vec::new());
    listeners.set(&[at("a", 1)], false, &mut out);
    let (mut now_ms, mut reported) = (0, Vec::new());
    for id in 1..100 {
        assert_eq!(out.pop(), Some(listen(id, Some("a"), 1)));
        reported.extend(listeners.on_failed(ListenerId(id), "in use", now_ms));
        listeners.on_time(now_ms + 999, &mut out);
        assert!(out.is_empty(), "it waits between two attempts");
        now_ms += 1000;
        assert_eq!(listeners.next_deadline_ms(), Some(now_ms));
        listeners.on_time(now_ms, &mut out);
    }
    assert_eq!(reported, [ElectionAddress { host: Some("a".to_owned()), port: 1 }]);
    listeners.on_listening(ListenerId(100));
    assert_eq!(listeners.next_deadline_ms(), None);
    // What accepts no more is tried again, and its failures are counted anew.
    assert_eq!(listeners.on_failed(ListenerId(100), "too many files", now_ms), None);
    listeners.on_time(now_ms + 1000, &mut out);
    assert_eq!(listeners.on_failed(ListenerId(101), "in use", now_ms), None);
    listeners.on_time(now_ms + 2000, &mut out);
    assert!(listeners.on_failed(ListenerId(102), "in use", now_ms).is_some());
}

#[test]
fn places_that_stay_are_left_alone_and_old_attempts_do_not_count() {
    let (mut listeners, mut out) = (Listeners::new(1), Vec::new());
    listeners.set(&[at("a", 1), at("a", 2)], false, &mut out);
    out.clear();
    listeners.set(&[at("a", 2), at("a", 3)], false, &mut out);
    assert_eq!(out, [Change::Stop { listener: ListenerId(1) }, listen(3, Some("a"), 3)]);
    assert_eq!(listeners.on_failed(ListenerId(1), "stopped", 0), None);
    assert_eq!(listeners.next_deadline_ms(), None);
}
