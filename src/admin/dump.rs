//! `dump`, `wchc`, `wchp` and `hash`: lists of what there is.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use super::connections::java_address;
use super::{Mode, Status};

/// Sessions by the time they expire, or of a learner in their order with their timeouts; their ephemerals; connections
/// by the time they expire.
///
/// Source: `DumpCommand`, `ExpiryQueue.dump`, `LearnerSessionTracker.dumpSessions` and `DataTree.dumpEphemerals`,
/// ZooKeeper 3.9.5.
pub(super) fn render(status: &Status) -> String {
    let mut text = "SessionTracker dump:\n".to_owned();
    // A string never refuses, here and below.
    if let Some(sessions) = &status.local_session_expiries {
        text.push_str("Local Session ");
        let sessions = sessions.iter();
        sets(&mut text, sessions.map(|(at, session)| (&**at, format!("0x{session:x}"))));
        if status.mode == Mode::Leader {
            text.push_str("Global ");
        }
    }
    if matches!(status.mode, Mode::Follower | Mode::Observer | Mode::ReadOnly) {
        let sessions = &status.session_timeouts;
        _ = writeln!(text, "Global Sessions({}):", sessions.len());
        for (session, timeout_ms) in sessions {
            _ = writeln!(text, "0x{session:x}\t{timeout_ms}ms");
        }
    } else {
        text.push_str("Session ");
        let sessions = status.session_expiries.iter();
        sets(&mut text, sessions.map(|(at, session)| (&**at, format!("0x{session:x}"))));
    }
    let owners = &status.ephemerals;
    _ = writeln!(text, "ephemeral nodes dump:\nSessions with Ephemerals ({}):", owners.len());
    for (session, paths) in owners {
        _ = writeln!(text, "0x{session:x}:");
        for path in paths {
            _ = writeln!(text, "\t{path}");
        }
    }
    text.push_str("Connections dump:\nConnections ");
    let connections = status.connection_expiries.iter();
    sets(
        &mut text,
        connections.map(|(at, peer, session)| {
            (&**at, format!("ip: {} sessionId: 0x{session:x}", java_address(*peer)))
        }),
    );
    text
}

/// What expires together stands together; comes in order of time.
fn sets<'t>(text: &mut String, all: impl Iterator<Item = (&'t str, String)>) {
    let mut sets: Vec<(&str, Vec<String>)> = Vec::new();
    let mut count = 0;
    for (at, name) in all {
        count += 1;
        match sets.last_mut().filter(|(last, _)| *last == at) {
            Some((_, names)) => names.push(name),
            None => sets.push((at, vec![name])),
        }
    }
    _ = writeln!(text, "Sets ({})/({count}):", sets.len());
    for (at, names) in sets {
        _ = writeln!(text, "{} expire at {at}:", names.len());
        for name in names {
            _ = writeln!(text, "\t{name}");
        }
    }
}

/// `wchc`: paths by session.
///
/// Source: `WatchManager.dumpWatches`, ZooKeeper 3.9.5.
pub(super) fn watches_by_session(watches: &[(String, i64)]) -> String {
    listed(watches.iter().map(|(path, session)| (*session, path)), |session| {
        format!("0x{session:x}")
    })
}

/// `wchp`: sessions by path.
pub(super) fn watches_by_path(watches: &[(String, i64)]) -> String {
    let pairs = watches.iter().map(|(path, session)| (path, format!("0x{session:x}")));
    listed(pairs, |path| (*path).clone())
}

/// What belongs together below its head, in the order of the heads.
fn listed<K: Ord, V: Display>(
    pairs: impl Iterator<Item = (K, V)>,
    head: impl Fn(&K) -> String,
) -> String {
    let mut lists: BTreeMap<K, Vec<V>> = BTreeMap::new();
    pairs.for_each(|(key, value)| lists.entry(key).or_default().push(value));
    let mut text = String::new();
    for (key, values) in lists {
        _ = writeln!(text, "{}", head(&key));
        for value in values {
            _ = writeln!(text, "\t{value}");
        }
    }
    text.push('\n');
    text
}

/// `hash`: the tree's digest at some zxids.
///
/// Source: `DigestCommand`, ZooKeeper 3.9.5.
pub(super) fn digests(status: &Status) -> String {
    let line = |(zxid, digest): &(crate::model::Zxid, u64)| {
        format!("{:x}: {}\n", zxid.to_wire(), *digest as i64)
    };
    status.digests.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Zxid;

    // rows: W-14
    #[test]
    fn dump_groups_by_time() {
        let at = |second| format!("Sat Nov 21 14:40:{second} UTC 2026");
        let status = Status {
            session_expiries: vec![(at(40), 0x10), (at(40), -1), (at(42), 0x12)],
            ephemerals: vec![(0x10, vec!["/a".to_owned(), "/b".to_owned()])],
            connection_expiries: vec![(at(50), "127.0.0.1:49700".parse().unwrap(), 0)],
            ..Status::default()
        };
        let expected = "\
SessionTracker dump:
Session Sets (2)/(3):
2 expire at Sat Nov 21 14:40:40 UTC 2026:
\t0x10
\t0xffffffffffffffff
1 expire at Sat Nov 21 14:40:42 UTC 2026:
\t0x12
ephemeral nodes dump:
Sessions with Ephemerals (1):
0x10:
\t/a
\t/b
Connections dump:
Connections Sets (1)/(1):
1 expire at Sat Nov 21 14:40:50 UTC 2026:
\tip: /127.0.0.1:49700 sessionId: 0x0
";
        assert_eq!(render(&status), expected);
    }

    // rows: W-14
    #[test]
    fn a_learner_lists_sessions_with_their_timeouts() {
        let mut status = Status {
            mode: Mode::Follower,
            session_timeouts: vec![(-1, 4000), (0x1000_1a1f_1cd0_0000, 12_000)],
            ..Status::default()
        };
        let expected = "\
SessionTracker dump:
Global Sessions(2):
0xffffffffffffffff\t4000ms
0x10001a1f1cd00000\t12000ms
ephemeral nodes dump:
";
        assert!(render(&status).starts_with(expected), "{}", render(&status));
        status.mode = Mode::ReadOnly;
        assert!(render(&status).starts_with(expected), "{}", render(&status));
        status.mode = Mode::Leader;
        assert!(render(&status).starts_with("SessionTracker dump:\nSession Sets (0)/(0):\n"));
    }

    // rows: W-23 W-24 W-27
    #[test]
    fn lists_are_javas() {
        let watches = [("/b".to_owned(), 7), ("/a".to_owned(), 7), ("/a".to_owned(), 0x1f)];
        assert_eq!(watches_by_session(&watches), "0x7\n\t/b\n\t/a\n0x1f\n\t/a\n\n");
        assert_eq!(watches_by_path(&watches), "/a\n\t0x7\n\t0x1f\n/b\n\t0x7\n\n");
        assert_eq!(watches_by_path(&[]), "\n");
        let zxid = Zxid::from_wire(0x180).unwrap();
        let status = Status { digests: vec![(zxid, u64::MAX - 1)], ..Status::default() };
        assert_eq!(digests(&status), "180: -2\n");
    }
}
