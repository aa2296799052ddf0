//! The window of committed transactions that a server keeps in memory.

use bytes::Bytes;
use oxkeeper::model::{Epoch, Zxid};
use oxkeeper::zab::History;

fn zxid(n: u32) -> Zxid {
    Zxid::new(Epoch(1), n)
}

#[test]
fn window_keeps_the_newest_committed_transactions() {
    let mut history = History::new(zxid(10));
    let entry = Bytes::from(vec![0; (1 << 20) - 8192]); // Room for eight, and all the rest.
    for n in 11..=611 {
        history.append(zxid(n), if n <= 20 { entry.clone() } else { Bytes::new() });
    }
    let mut seen = 0;
    history.commit(zxid(600), |_| seen += 1);
    assert_eq!((seen, history.tail().len(), history.committed()), (590, 11, zxid(600)));
    assert_eq!((history.floor(), history.window()[0].0), (zxid(12), zxid(13)));
    history.truncate(zxid(605));
    assert_eq!((history.last(), history.tail().len()), (zxid(605), 5));
    history.truncate(zxid(15));
    assert_eq!(
        (history.last(), history.committed(), history.window().len()),
        (zxid(15), zxid(15), 3)
    );
    history.append(zxid(16), Bytes::new());
    history.restart(zxid(15));
    assert_eq!(
        (history.last(), history.floor(), history.committed()),
        (zxid(16), zxid(15), zxid(15))
    );
}

#[test]
fn truncated_transactions_leave_room_in_the_window() {
    let mut history = History::with_window(zxid(0), 4);
    for _ in 0..20 {
        for n in 1..=7 {
            history.append(zxid(n), Bytes::from(vec![0; 1 << 20]));
            history.commit(zxid(n), |_| {});
        }
        assert_eq!(history.window().len(), 7, "there is room for eight MiB");
        history.truncate(zxid(0));
    }
}

// rows: C-146
#[test]
fn window_is_as_long_as_commit_log_count_says() {
    let kept = |txns| {
        let mut history = History::with_window(zxid(0), txns);
        history.restart(zxid(0));
        for n in 1..=2000 {
            history.append(zxid(n), Bytes::from(vec![0; 32 << 10]));
            history.commit(zxid(n), |_| {});
        }
        history.window().len()
    };
    assert_eq!((kept(500), kept(1500)), (500, 1500));
}

#[test]
fn window_holds_fewer_transactions_if_they_are_large() {
    let mut history = History::with_window(zxid(0), 500);
    for n in 1..=200 {
        history.append(zxid(n), Bytes::from(vec![0; 1 << 20]));
        history.commit(zxid(n), |_| {});
    }
    assert_eq!((history.window().len(), history.floor()), (63, zxid(137)));
}
