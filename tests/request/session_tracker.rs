//! The session tracker: which connection owns a session, and when it expires.

use oxkeeper::model::sync::Arc;
use oxkeeper::model::{Code, SessionId};
use oxkeeper::request::{ClientHandle, Owner, Sessions};
use oxkeeper::tree::WatcherId;

fn conn(now_ms: u64) -> Arc<ClientHandle> {
    Arc::new(ClientHandle::new(WatcherId(0), "127.0.0.1:1".parse().unwrap(), now_ms))
}

// rows: P-21 P-22
#[test]
fn silent_sessions_expire_in_buckets() {
    let mut sessions = Sessions::new(2000);
    let (a, b) = (conn(100), conn(100));
    sessions.track(SessionId(1), 4000, Owner::Client(a.clone()), 100);
    sessions.track(SessionId(2), 4000, Owner::Client(b.clone()), 100);
    assert_eq!(sessions.expired(5999), []);
    assert!(b.heard(5000));
    assert_eq!(sessions.dues(), [(6000, SessionId(1)), (10_000, SessionId(2))]);
    assert_eq!(sessions.expired(6000), [SessionId(1)]);
    assert_eq!(
        sessions.check(SessionId(1), &Owner::Client(a.clone())),
        Err(Code::SESSION_EXPIRED),
        "it is closing"
    );
    assert_eq!(sessions.expired(9999), []);
    assert_eq!(sessions.expired(10_000), [SessionId(2)]);
    // A session that is heard in time stays valid; after the decision to close it nothing is answered.
    assert!(!b.heard(10_000));
    assert!(!a.heard(7000));
}

#[test]
fn a_session_belongs_to_its_last_connection() {
    let mut sessions = Sessions::new(2000);
    let (a, b) = (conn(0), conn(0));
    sessions.track(SessionId(1), 4000, Owner::Nobody, 0);
    assert_eq!(sessions.check(SessionId(1), &Owner::Client(a.clone())), Ok(()));
    let old = sessions.take_over(SessionId(1), 10_000, Owner::Client(b.clone()), 1000).unwrap();
    assert!(Arc::ptr_eq(&old.unwrap(), &a));
    assert_eq!(sessions.check(SessionId(1), &Owner::Client(a.clone())), Err(Code::SESSION_MOVED));
    assert_eq!(sessions.expired(11_999), []);
    assert_eq!(sessions.expired(12_000), [SessionId(1)]);
    assert!(sessions.take_over(SessionId(9), 1, Owner::Client(b.clone()), 0).is_err());
}

#[test]
fn old_connection_of_a_moved_session_keeps_it_alive_and_closes_with_it() {
    let mut sessions = Sessions::new(2000);
    let (a, b) = (conn(0), conn(0));
    sessions.track(SessionId(1), 4000, Owner::Client(a.clone()), 0);
    for link in [1, 2] {
        let old = sessions.take_over(SessionId(1), 4000, Owner::AtLearner(link), 1000).unwrap();
        assert!(old.is_none(), "it stays");
    }
    assert_eq!(sessions.check(SessionId(1), &Owner::Client(a.clone())), Err(Code::SESSION_MOVED));
    assert!(sessions.owner(SessionId(1)).is_none());
    assert!(a.heard(5000));
    assert_eq!(sessions.expired(9999), []);
    assert_eq!(sessions.expired(10_000), [SessionId(1)]);
    assert!(!a.heard(10_000));
    assert!(Arc::ptr_eq(&sessions.remove(SessionId(1)).unwrap(), &a));
    // A reconnect to this server ends that connection's role.
    sessions.track(SessionId(2), 4000, Owner::Client(a.clone()), 0);
    sessions.take_over(SessionId(2), 4000, Owner::AtLearner(1), 0).unwrap();
    let old = sessions.take_over(SessionId(2), 4000, Owner::Client(b.clone()), 0).unwrap();
    assert!(Arc::ptr_eq(&old.unwrap(), &a));
    assert!(Arc::ptr_eq(&sessions.remove(SessionId(2)).unwrap(), &b));
}

#[test]
fn session_that_is_being_closed_does_not_expire_too() {
    let mut sessions = Sessions::new(2000);
    sessions.track(SessionId(1), 4000, Owner::Client(conn(0)), 0);
    sessions.set_closing(SessionId(1));
    assert_eq!(sessions.expired(100_000), []);
}

#[test]
fn end_of_an_older_connection_leaves_the_session_to_the_newer_one() {
    let mut sessions = Sessions::new(2000);
    let (older, newer) = (conn(0), conn(0));
    sessions.track(SessionId(1), 4000, Owner::Client(older.clone()), 0);
    sessions.take_over(SessionId(1), 4000, Owner::Client(newer.clone()), 0).unwrap();
    sessions.leave(SessionId(1), &older);
    assert_eq!(sessions.check(SessionId(1), &Owner::Client(newer.clone())), Ok(()));
    sessions.leave(SessionId(1), &newer);
    assert!(sessions.check(SessionId(1), &Owner::Client(newer)).is_err());
}
