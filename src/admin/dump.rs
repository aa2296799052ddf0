//! `dump`, `wchc`, `wchp` and `hash`: lists of sessions, connections, watches and digests.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::list::{Line, List};
use super::status::{Mode, SetCounts, Status};

/// `dump`: sessions by expiry, or on a learner by id with timeouts; ephemeral znodes by session; connections by expiry.
/// Returns the text up to the first list, and each list with the text after it.
///
/// Source: `DumpCommand`, ZooKeeper 3.9.5.
pub(super) fn render(status: &Status) -> (String, Vec<(List, String)>) {
    let counts = &status.dump;
    let sets = |of: SetCounts| format!("Sets ({})/({}):\n", of.sets, of.all);
    let mut first = "SessionTracker dump:\n".to_owned();
    let mut lists = Vec::new();
    let mut text = &mut first;
    if let Some(locals) = counts.local_sessions {
        text.push_str("Local Session ");
        text.push_str(&sets(locals));
        text = then(&mut lists, List::LocalSessions);
        if status.mode == Mode::Leader {
            text.push_str("Global ");
        }
    }
    // Writing to a string can't fail, here and below.
    if matches!(status.mode, Mode::Follower | Mode::Observer | Mode::ReadOnly) {
        _ = writeln!(text, "Global Sessions({}):", status.global_sessions);
        text = then(&mut lists, List::SessionTimeouts);
    } else {
        text.push_str("Session ");
        text.push_str(&sets(counts.sessions));
        text = then(&mut lists, List::Sessions);
    }
    let owners = counts.owners;
    _ = writeln!(text, "ephemeral nodes dump:\nSessions with Ephemerals ({owners}):");
    text = then(&mut lists, List::Ephemerals);
    text.push_str("Connections dump:\nConnections ");
    text.push_str(&sets(counts.connections));
    _ = then(&mut lists, List::ConnectionExpiries);
    (first, lists)
}

/// Puts a list, and returns the string for the text after it.
fn then(lists: &mut Vec<(List, String)>, list: List) -> &mut String {
    lists.push((list, String::new()));
    let at = lists.len() - 1;
    &mut lists[at].1
}

/// `wchc` of few watches, in order: paths by session.
///
/// Source: `WatchManager.dumpWatches`, ZooKeeper 3.9.5.
pub fn watches_by_session(watches: &[(String, i64)]) -> String {
    listed(watches.iter().map(|(path, session)| (*session, &**path)), Line::Watcher, Line::Path)
}

/// `wchp` of few watches, in order: sessions by path.
pub fn watches_by_path(watches: &[(String, i64)]) -> String {
    let pairs = watches.iter().map(|(path, session)| (&**path, *session));
    listed(pairs, Line::WatchedPath, Line::Session)
}

/// Groups the values below their keys, in the order of the keys.
fn listed<'a, K: Ord + Copy, V>(
    pairs: impl Iterator<Item = (K, V)>,
    head: fn(K) -> Line<'a>,
    line: fn(V) -> Line<'a>,
) -> String {
    let mut lists: BTreeMap<K, Vec<V>> = BTreeMap::new();
    pairs.for_each(|(key, value)| lists.entry(key).or_default().push(value));
    let mut text = String::new();
    for (key, values) in lists {
        head(key).put(&mut text);
        values.into_iter().for_each(|value| line(value).put(&mut text));
    }
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
    use super::super::list::Expiries;
    use super::super::status::DumpCounts;
    use super::*;
    use crate::model::Zxid;

    /// A whole answer, its lists filled in.
    fn filled(status: &Status, put: impl Fn(List, &mut String)) -> String {
        let (mut text, lists) = render(status);
        for (list, after) in lists {
            put(list, &mut text);
            text.push_str(&after);
        }
        text
    }

    // rows: W-14
    #[test]
    fn dump_groups_sessions_and_connections_by_expiry() {
        let date = |at_ms: u64| format!("Sat Nov 21 14:40:{:02} UTC 2026", at_ms / 1000);
        let sessions = Expiries::new(vec![(42_001, 0x12), (40_999, -1), (40_000, 0x10)]);
        let peer = "127.0.0.1:49700".parse().unwrap();
        let connections = Expiries::new(vec![(50_000, (peer, 0))]);
        let dump = DumpCounts {
            sessions: sessions.counts(),
            owners: 1,
            connections: connections.counts(),
            ..DumpCounts::default()
        };
        let status = Status { dump, ..Status::default() };
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
        // The text is the same however few lines are made at a time.
        for max in 1..5 {
            let text = filled(&status, |list, to| match list {
                List::Sessions => {
                    let mut all = sessions.clone();
                    while all
                        .put(&mut |line| line.put(to), max, date, |&session| Line::Session(session))
                    {
                    }
                }
                List::Ephemerals => {
                    for line in [Line::Owner(0x10), Line::Path("/a"), Line::Path("/b")] {
                        line.put(to);
                    }
                }
                List::ConnectionExpiries => {
                    let line = |&(peer, session): &_| Line::ConnectionExpiry { peer, session };
                    let mut all = connections.clone();
                    while all.put(&mut |line| line.put(to), max, date, line) {}
                }
                other => panic!("{other:?} in a dump of a standalone server"),
            });
            assert_eq!(text, expected, "{max} lines at a time");
        }
    }

    // rows: W-14
    #[test]
    fn dump_of_a_learner_lists_sessions_with_their_timeouts() {
        let mut status = Status { mode: Mode::Follower, global_sessions: 2, ..Status::default() };
        let timeouts = |list: List, to: &mut String| {
            if list == List::SessionTimeouts {
                for (session, timeout_ms) in [(-1, 4000), (0x1000_1a1f_1cd0_0000, 12_000)] {
                    Line::SessionTimeout { session, timeout_ms }.put(to);
                }
            }
        };
        let expected = "\
SessionTracker dump:
Global Sessions(2):
0xffffffffffffffff\t4000ms
0x10001a1f1cd00000\t12000ms
ephemeral nodes dump:
";
        assert!(filled(&status, timeouts).starts_with(expected), "{}", filled(&status, timeouts));
        status.mode = Mode::ReadOnly;
        assert!(filled(&status, timeouts).starts_with(expected), "{}", filled(&status, timeouts));
        status.mode = Mode::Leader;
        let text = filled(&status, timeouts);
        assert!(text.starts_with("SessionTracker dump:\nSession Sets (0)/(0):\n"), "{text}");
    }

    #[test]
    fn dump_of_a_leader_lists_local_sessions_first() {
        let dump = DumpCounts {
            local_sessions: Some(SetCounts { sets: 1, all: 2 }),
            ..DumpCounts::default()
        };
        let status = Status { mode: Mode::Leader, dump, ..Status::default() };
        let text = filled(&status, |list, to| to.push_str(&format!("{list:?}\n")));
        let expected = "\
SessionTracker dump:
Local Session Sets (1)/(2):
LocalSessions
Global Session Sets (0)/(0):
Sessions
ephemeral nodes dump:
";
        assert!(text.starts_with(expected), "{text}");
    }

    // rows: W-23 W-24 W-27
    #[test]
    fn watches_and_digests_are_listed_as_in_java() {
        let watches = [("/b".to_owned(), 7), ("/a".to_owned(), 7), ("/a".to_owned(), 0x1f)];
        assert_eq!(watches_by_session(&watches), "0x7\n\t/b\n\t/a\n0x1f\n\t/a\n");
        assert_eq!(watches_by_path(&watches), "/a\n\t0x7\n\t0x1f\n/b\n\t0x7\n");
        assert_eq!(watches_by_path(&[]), "");
        let zxid = Zxid::from_wire(0x180).unwrap();
        let status = Status { digests: vec![(zxid, u64::MAX - 1)], ..Status::default() };
        assert_eq!(digests(&status), "180: -2\n");
    }
}
