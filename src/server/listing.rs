//! Answers of four-letter words that are lists (`cons`, `dump`, `stat`, `wchc`, `wchp`), made in pieces while they are sent: one
//! piece is in memory at a time, and each lock is held for a part of a list, about a millisecond at most.
//!
//! Connections, sessions and watches that come or go meanwhile may be listed or not. Java's lists are not of one moment either.

use crate::admin::http::JsonList;
use crate::admin::{self, Expiries, Line};
use crate::model::sync::Arc;
use crate::request::{ClientHandle, Shared};
use crate::tree::{NodeId, WatchedPlace, WatcherId};
use core::net::SocketAddr;
use std::collections::VecDeque;
use std::mem::take;
use tokio::sync::OwnedSemaphorePermit;

/// A piece is complete at this size; the last hold of a lock may add some more. It is made within a millisecond, because the
/// thread has other connections too.
const PIECE_BYTES: usize = 64 * 1024;
/// A piece is also complete after this many holds of locks, however little they have found: other connections get their turn on
/// this thread.
const PIECE_HOLDS: usize = 64;
/// Items that are examined under one hold of a lock...
const LOOKS_MAX: usize = 1024;
/// ...unless this many bytes of text were made before.
const LOOK_BYTES_MAX: usize = 32 * 1024;
/// A list of watches is sorted if it is not longer than this.
const SORTED_BYTES_MAX: usize = 64 * 1024;

/// Prints milliseconds of the wall clock as a date.
pub type Date = Box<dyn Fn(u64) -> String + Send>;
/// What `cons` and `stat` show of a connection.
pub type Describe = Box<dyn Fn(&ClientHandle) -> admin::ConnectionInfo + Send>;

/// An answer in pieces. A piece may be empty.
pub struct Listing {
    shared: Arc<Shared>,
    parts: VecDeque<Part>,
    date: Date,
    describe: Describe,
    sheet: Sheet,
    /// The lists are JSON...
    is_json: bool,
    /// ...and the first of them is begun.
    is_begun: bool,
    /// The answer's permit, one of a fixed number, released when the answer ends.
    _place: Option<OwnedSemaphorePermit>,
}

/// What is still to be sent of a text or a list.
pub enum Part {
    Text(String),
    /// The connections of one kind of client port.
    Connections {
        at: usize,
        brief: bool,
        at_secure_port: bool,
    },
    WatchesByPath(ByPath),
    WatchesBySession(BySession),
    Sessions(Expiries<i64>),
    /// The timeouts of the sessions after this one; `None`: of all sessions.
    SessionTimeouts(Option<i64>),
    Ephemerals(Ephemerals),
    ConnectionExpiries(Expiries<(SocketAddr, i64)>),
}

/// What the next piece is written on.
#[derive(Default)]
struct Sheet {
    text: String,
    /// The list under way, if it is written in JSON; `None`: in the form of four-letter words.
    list: Option<JsonList>,
}

impl Sheet {
    fn put(&mut self, line: Line<'_>) {
        match &mut self.list {
            Some(list) => list.put(line, &mut self.text),
            None => line.put(&mut self.text),
        }
    }
}

impl Part {
    fn json_list(&self) -> Option<JsonList> {
        match self {
            Self::Text(_) => None,
            Self::Connections { .. } => Some(JsonList::list()),
            _ => Some(JsonList::map()),
        }
    }
}

/// Sessions that own ephemeral znodes, and the znodes of one of them.
#[derive(Default)]
pub struct Ephemerals {
    owners: VecDeque<i64>,
    owner: i64,
    ids: VecDeque<NodeId>,
    has_head: bool,
}

/// Watched paths in the order of their places in the table.
#[derive(Default)]
pub struct ByPath {
    place: WatchedPlace,
    /// Found and not listed yet. If the path is empty its line was listed, and the watchers are those that are left.
    found: VecDeque<(String, Vec<WatcherId>)>,
    is_last: bool,
}

/// Watchers by session, and the watches of one of them in one shard of the tables.
#[derive(Default)]
pub struct BySession {
    watchers: VecDeque<(i64, WatcherId)>,
    shard: usize,
    /// Places of the watcher's watches in the shard before `shard`.
    places: Vec<u32>,
    has_head: bool,
}

impl Listing {
    pub fn new(
        shared: Arc<Shared>,
        parts: VecDeque<Part>,
        date: Date,
        describe: Describe,
        place: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let (sheet, is_json, is_begun) = (Sheet::default(), false, false);
        Self { shared, parts, date, describe, sheet, is_json, is_begun, _place: place }
    }

    /// The same with its lists in JSON.
    pub fn in_json(self) -> Self {
        Self { is_json: true, ..self }
    }

    /// Appends what one hold of a lock gives of the first part. `false`: the part has ended.
    fn put(&mut self) -> bool {
        let (shared, to) = (&self.shared, &mut self.sheet);
        match self.parts.front_mut() {
            None => false,
            Some(Part::Text(text)) => {
                to.text.push_str(&take(text));
                false
            }
            Some(Part::Connections { at, brief, at_secure_port }) => {
                let Some(conns) = shared.conns.next(at, LOOKS_MAX) else { return false };
                for conn in conns.iter().filter(|conn| conn.at_secure_port == *at_secure_port) {
                    to.put(Line::Connection { of: &(self.describe)(conn), brief: *brief });
                }
                true
            }
            Some(Part::WatchesByPath(list)) => list.put(shared, to),
            Some(Part::WatchesBySession(list)) => list.put(shared, to),
            Some(Part::Sessions(all)) => {
                all.put(&mut |line| to.put(line), LOOKS_MAX, &self.date, |&id| Line::Session(id))
            }
            Some(Part::SessionTimeouts(last)) => {
                let tree = shared.state.tree.read();
                let from = last.map_or(i64::MIN, |last| last.saturating_add(1));
                let mut left = tree.sessions().range(from..);
                for (&session, &timeout_ms) in left.by_ref().take(LOOKS_MAX) {
                    to.put(Line::SessionTimeout { session, timeout_ms });
                    *last = Some(session);
                }
                left.next().is_some()
            }
            Some(Part::Ephemerals(list)) => list.put(shared, to),
            Some(Part::ConnectionExpiries(all)) => {
                let line = |one: &(SocketAddr, i64)| Line::ConnectionExpiry {
                    peer: one.0,
                    session: one.1,
                };
                all.put(&mut |line| to.put(line), LOOKS_MAX, &self.date, line)
            }
        }
    }
}

impl Iterator for Listing {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        for _ in 0..PIECE_HOLDS {
            if self.parts.is_empty() || PIECE_BYTES <= self.sheet.text.len() {
                break;
            }
            if self.is_json && !std::mem::replace(&mut self.is_begun, true) {
                self.sheet.list = self.parts.front().and_then(Part::json_list);
            }
            if !self.put() {
                if let Some(list) = self.sheet.list.take() {
                    list.end(&mut self.sheet.text);
                }
                self.is_begun = false;
                self.parts.pop_front();
            }
        }
        let text = take(&mut self.sheet.text);
        (!text.is_empty() || !self.parts.is_empty()).then(|| text.into_bytes())
    }
}

/// `wchp`: sessions by path.
pub fn watches_by_path(shared: &Shared) -> Part {
    match few_watches(shared) {
        Some(all) => Part::Text(admin::watches_by_path(&all)),
        None => Part::WatchesByPath(ByPath::default()),
    }
}

/// `wchc`: paths by session.
pub fn watches_by_session(shared: &Shared) -> Part {
    match few_watches(shared) {
        Some(all) => Part::Text(admin::watches_by_session(&all)),
        None => all_watches_by_session(shared),
    }
}

/// The same without a look at how many they are.
pub fn all_watches_by_session(shared: &Shared) -> Part {
    let (mut watchers, mut at) = (Vec::new(), 0);
    while let Some(conns) = shared.conns.next(&mut at, LOOKS_MAX) {
        watchers.extend(conns.iter().filter_map(|conn| Some((conn.session()?.0, conn.id))));
    }
    watchers.sort_unstable();
    Part::WatchesBySession(BySession { watchers: watchers.into(), ..BySession::default() })
}

/// All watches in order, unless they are many.
fn few_watches(shared: &Shared) -> Option<Vec<(String, i64)>> {
    let mut all: Vec<_> = shared
        .state
        .watches
        .data_watches(SORTED_BYTES_MAX)?
        .into_iter()
        // A watch whose connection has just ended is left out.
        .filter_map(|(path, watcher)| Some((path, session(shared, watcher)?)))
        .collect();
    all.sort_unstable();
    Some(all)
}

fn session(shared: &Shared, watcher: WatcherId) -> Option<i64> {
    Some(shared.conns.get(watcher)?.session()?.0)
}

impl Ephemerals {
    pub fn new(mut owners: Vec<i64>) -> Self {
        owners.sort_unstable();
        Self { owners: owners.into(), ..Self::default() }
    }

    pub fn owners(&self) -> usize {
        self.owners.len()
    }

    fn put(&mut self, shared: &Shared, to: &mut Sheet) -> bool {
        let tree = shared.state.tree.read();
        let start = to.text.len();
        for _ in 0..LOOKS_MAX {
            if LOOK_BYTES_MAX < to.text.len() - start {
                return true;
            }
            let Some(id) = self.ids.pop_front() else {
                let Some(owner) = self.owners.pop_front() else { return false };
                self.owner = owner;
                self.ids = tree.ephemeral_ids(owner).into();
                self.has_head = false;
                if LOOKS_MAX < self.ids.len() {
                    return true;
                }
                continue;
            };
            if let Some(path) = tree.ephemeral_path(id, self.owner) {
                if !std::mem::replace(&mut self.has_head, true) {
                    to.put(Line::Owner(self.owner));
                }
                to.put(Line::Path(path));
            }
        }
        true
    }
}

impl ByPath {
    fn put(&mut self, shared: &Shared, to: &mut Sheet) -> bool {
        if self.found.is_empty() {
            self.is_last =
                !shared.state.watches.next_data_watches(&mut self.place, &mut self.found);
        }
        let start = to.text.len();
        while to.text.len() - start < LOOK_BYTES_MAX
            && let Some((mut path, mut watchers)) = self.found.pop_front()
        {
            let rest = watchers.split_off(watchers.len().min(LOOKS_MAX));
            let mut sessions: Vec<i64> =
                watchers.into_iter().filter_map(|watcher| session(shared, watcher)).collect();
            sessions.sort_unstable();
            if !path.is_empty() && !sessions.is_empty() {
                to.put(Line::WatchedPath(&take(&mut path)));
            }
            sessions.into_iter().for_each(|session| to.put(Line::Session(session)));
            if !rest.is_empty() {
                self.found.push_front((path, rest));
            }
        }
        !self.is_last || !self.found.is_empty()
    }
}

impl BySession {
    fn put(&mut self, shared: &Shared, to: &mut Sheet) -> bool {
        let watches = &shared.state.watches;
        let Some(&(session, watcher)) = self.watchers.front() else { return false };
        if self.places.is_empty() {
            let Some(places) = watches.places_of(self.shard, watcher) else {
                self.watchers.pop_front();
                (self.shard, self.has_head) = (0, false);
                return true;
            };
            self.places = places;
            self.shard += 1;
        }
        if self.places.is_empty() {
            return true;
        }
        let mut paths = watches.data_paths_at(self.shard - 1, watcher, &mut self.places);
        paths.sort_unstable();
        for path in paths {
            if !std::mem::replace(&mut self.has_head, true) {
                to.put(Line::Watcher(session));
            }
            to.put(Line::Path(&path));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SessionId;
    use crate::request::Limits;
    use crate::tree::{Options, State, Tree, WatchKind};

    /// A server with connections whose sessions are their numbers, from 1 on.
    fn server(connections: i64) -> Arc<Shared> {
        let state = State::new(Tree::new(Options::default()), 1);
        let shared = Shared::new(state, Limits::default());
        for number in 1..=connections {
            let peer = "127.0.0.1:1".parse().unwrap();
            let conn = shared.conns.add(|id| ClientHandle::new(id, peer, 0));
            conn.push_welcome(SessionId(number), &mut Vec::new(), |_| {});
        }
        Arc::new(shared)
    }

    fn listed(shared: &Arc<Shared>, part: Part) -> String {
        let parts = [part, Part::Text("end\n".to_owned())].into();
        let nothing: Describe = Box::new(|_| unreachable!("no connection is listed"));
        let pieces =
            Listing::new(shared.clone(), parts, Box::new(|_| String::new()), nothing, None);
        let mut text = String::new();
        for piece in pieces {
            assert!(piece.len() < PIECE_BYTES + 4 * LOOK_BYTES_MAX, "a piece of {}", piece.len());
            text.push_str(std::str::from_utf8(&piece).unwrap());
        }
        text.strip_suffix("end\n").unwrap().to_owned()
    }

    /// Each head with the lines below it, in order.
    fn groups(text: &str) -> Vec<Vec<&str>> {
        let mut groups: Vec<Vec<&str>> = Vec::new();
        for line in text.lines() {
            if !line.starts_with('\t') {
                groups.push(Vec::new());
            }
            groups.last_mut().unwrap().push(line);
        }
        groups.iter_mut().for_each(|group| group[1..].sort_unstable());
        groups.sort_unstable();
        groups
    }

    fn watch(shared: &Shared, paths: impl Iterator<Item = (u32, String)>) -> Vec<(String, i64)> {
        let mut all: Vec<_> = paths
            .map(|(watcher, path)| {
                shared.state.watches.add(&path, WatcherId(watcher), WatchKind::DATA);
                (path, i64::from(watcher) + 1)
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    // rows: W-23 W-24
    #[test]
    fn many_watches_are_listed_in_pieces_and_none_is_missing() {
        let shared = server(5);
        // The fifth connection has child watches alone, and the fourth is closed.
        shared.state.watches.add("/child", WatcherId(4), WatchKind::CHILD);
        shared.state.watches.add("/left", WatcherId(3), WatchKind::DATA);
        shared.conns.remove(WatcherId(3));
        let paths = (0..60_000).map(|n| (u32::from(n % 10 == 0), format!("/some/path/{}", n / 2)));
        let all = watch(&shared, paths);
        let by_path = listed(&shared, watches_by_path(&shared));
        assert!(by_path.len() > 2 * PIECE_BYTES);
        assert!(groups(&by_path) == groups(&admin::watches_by_path(&all)), "wchp is not whole");
        let by_session = listed(&shared, watches_by_session(&shared));
        let expected = admin::watches_by_session(&all);
        assert!(groups(&by_session) == groups(&expected), "wchc is not whole");
    }

    // rows: W-23 W-24
    #[test]
    fn few_watches_are_listed_in_order() {
        let shared = server(3);
        let all = watch(&shared, (0..900).map(|n| (n * 7 % 3, format!("/{}", n * 31 % 300))));
        assert!(listed(&shared, watches_by_path(&shared)) == admin::watches_by_path(&all));
        assert!(listed(&shared, watches_by_session(&shared)) == admin::watches_by_session(&all));
    }

    #[test]
    fn many_watchers_of_one_path_stand_below_one_head() {
        let shared = server(9000);
        let all = watch(&shared, (0..9000).map(|watcher| (watcher, "/watched".to_owned())));
        let text = listed(&shared, watches_by_path(&shared));
        assert!(groups(&text) == groups(&admin::watches_by_path(&all)));
    }

    #[test]
    fn sessions_of_a_learner_are_listed_in_order_and_whole() {
        let shared = server(0);
        assert_eq!(listed(&shared, Part::SessionTimeouts(None)), "");
        let expiries = Expiries::new((0..5000).map(|n| (n, n as i64)).collect());
        let text = listed(&shared, Part::Sessions(expiries));
        assert_eq!(text.lines().filter(|line| line.starts_with('\t')).count(), 5000);
        assert_eq!(text.lines().count(), 5005, "a head for each second");
    }
}
