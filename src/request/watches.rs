//! Requests about watches: set again after a reconnect, added, checked, removed (P-55..P-59, P-75).

use super::read::{BYTES_PER_WORK, Reading, WATCH_WORK, decode};
use super::sliced_request::{SlicedRequest, WatchCursor};
use super::{Outgoing, reply};
use crate::model::{Code, EventKind, op};
use crate::tree::WatchKind;
use crate::tree::digest::StatPart;
use jute::proto::{AddWatchRequest, CheckWatchesRequest, ReplyHeader, SetWatches, SetWatches2};
use jute::{Reader, Ustring, put_i32};

/// In the watch tables the path for a null path, which Java watches too. No znode can have it.
const NULL_PATH: &str = "\0";
/// The zxid before the lists of a setWatches.
const SINCE_BYTES: usize = 8;

impl Reading<'_> {
    /// Notifies a client of what it missed while it was away, and sets the other watches again (P-58, P-59, P-75). `false`:
    /// `begun` holds how far it came; the rest is for another hold.
    ///
    /// Unlike in Java, a client is not notified of a znode that it may not read, as with a watch that fires (P-32). The
    /// watch is kept then, since the client counts on it. Every client is notified of a deletion; a read would show that
    /// too.
    pub(super) fn set_watches(
        &self,
        kind: i32,
        header: ReplyHeader,
        body: &[u8],
        begun: &mut Option<SlicedRequest>,
        out: &mut Outgoing,
    ) -> Result<bool, Code> {
        let mut cursor = match begun {
            Some(SlicedRequest::Watches(cursor)) => *cursor,
            _ => {
                check_form(kind, body)?;
                WatchCursor { at: SINCE_BYTES, ..WatchCursor::default() }
            }
        };
        // Where Java fails, it has sent the events so far.
        let header = match self.bring_back(kind, body, &mut cursor, out) {
            Ok(true) => header,
            Ok(false) => {
                *begun = Some(SlicedRequest::Watches(cursor));
                return Ok(false);
            }
            Err(code) => ReplyHeader { err: code.0, ..header },
        };
        reply::reply(out, header, |_| {});
        Ok(true)
    }

    /// Goes on from `cursor` to the end of the lists. `false`: to the end of this hold's work.
    ///
    /// # Errors
    /// -5 for a list or a path that is null.
    fn bring_back(
        &self,
        kind: i32,
        body: &[u8],
        cursor: &mut WatchCursor,
        out: &mut Outgoing,
    ) -> Result<bool, Code> {
        let since: i64 = decode(body)?;
        // setWatches2 has added the lists of persistent watches.
        let lists = if kind == op::SET_WATCHES2 { 5 } else { 3 };
        let mut from = Reader::new(&body[cursor.at..]);
        let start = cursor.at;
        loop {
            if cursor.left == 0 {
                if cursor.lists == lists {
                    return Ok(true);
                }
                let count: i32 = from.read().map_err(|_| Code::MARSHALLING_ERROR)?;
                if count == -1 {
                    return Err(Code::MARSHALLING_ERROR);
                }
                cursor.left = usize::try_from(count).unwrap_or(0);
                cursor.lists += 1;
            } else if self.hold.is_spent() {
                cursor.at = start + from.at();
                return Ok(false);
            } else {
                let path: Ustring<'_> = from.read().map_err(|_| Code::MARSHALLING_ERROR)?;
                let path = path.ok_or(Code::MARSHALLING_ERROR)?;
                self.hold.spend(WATCH_WORK + path.len() / BYTES_PER_WORK);
                self.bring_one_back(cursor.lists, &path, since, out);
                cursor.left -= 1;
            }
        }
    }

    /// * `list`: the number of the list that names the path, from 1 on.
    fn bring_one_back(&self, list: usize, path: &str, since: i64, out: &mut Outgoing) {
        let watches = &self.shared.state.watches;
        match list {
            1 => {
                let changed = |stat: StatPart| stat.mzxid > since;
                self.catch_up(path, WatchKind::DATA, changed, EventKind::NodeDataChanged, out);
            }
            2 => match self.tree.find(path) {
                Some(id) if self.permitted(id).is_ok() => {
                    reply::missed(out, EventKind::NodeCreated, path);
                }
                _ => watches.add(path, self.conn.id, WatchKind::DATA),
            },
            3 => {
                let changed = |stat: StatPart| stat.pzxid > since;
                self.catch_up(path, WatchKind::CHILD, changed, EventKind::NodeChildrenChanged, out);
            }
            // A client with a persistent watch is not notified of what it missed.
            4 => watches.add(path, self.conn.id, WatchKind::PERSISTENT),
            _ => watches.add(path, self.conn.id, WatchKind::RECURSIVE),
        }
    }

    /// One watch on a znode that was there: it fires now if it would have fired meanwhile, or is kept.
    fn catch_up(
        &self,
        path: &str,
        kind: WatchKind,
        changed: impl Fn(StatPart) -> bool,
        event: EventKind,
        out: &mut Outgoing,
    ) {
        match self.tree.find(path) {
            None => reply::missed(out, EventKind::NodeDeleted, path),
            Some(id) if changed(self.tree.znode(id).stat_part()) && self.permitted(id).is_ok() => {
                reply::missed(out, event, path);
            }
            Some(_) => self.shared.state.watches.add(path, self.conn.id, kind),
        }
    }

    /// Any path can be watched, whether there is a znode or not; permission to read is checked when the watch fires (P-57).
    pub(super) fn add_watch(
        &self,
        header: ReplyHeader,
        body: &[u8],
        out: &mut Outgoing,
    ) -> Result<(), Code> {
        let request: AddWatchRequest<'_> = decode(body)?;
        let kind = match request.mode {
            0 => WatchKind::PERSISTENT,
            1 => WatchKind::RECURSIVE,
            _ => return Err(Code::MARSHALLING_ERROR),
        };
        let path = request.path.as_deref().unwrap_or(NULL_PATH);
        self.shared.state.watches.add(path, self.conn.id, kind);
        reply::reply(out, header, |to| put_i32(to, 0));
        Ok(())
    }

    /// checkWatches and removeWatches: -121 when this connection has none of that type (P-55, P-56).
    pub(super) fn find_watches(
        &self,
        kind: i32,
        header: ReplyHeader,
        body: &[u8],
        out: &mut Outgoing,
    ) -> Result<(), Code> {
        // Both are a path and a type.
        let request: CheckWatchesRequest<'_> = decode(body)?;
        let kinds = match request.kind {
            1 => WatchKind::CHILD,
            2 => WatchKind::DATA,
            3 => WatchKind::ANY,
            4 => WatchKind::PERSISTENT,
            5 => WatchKind::RECURSIVE,
            _ => return Err(Code::MARSHALLING_ERROR),
        };
        let watches = &self.shared.state.watches;
        let path = request.path.as_deref().unwrap_or(NULL_PATH);
        let found = if kind == op::REMOVE_WATCHES {
            watches.remove(path, self.conn.id, kinds)
        } else {
            watches.contains(path, self.conn.id, kinds)
        };
        if !found {
            return Err(Code::NO_WATCHER);
        }
        reply::reply(out, header, |_| {});
        Ok(())
    }
}

/// # Errors
/// -5 for a body that is no setWatches: nothing of it is done then.
fn check_form(kind: i32, body: &[u8]) -> Result<(), Code> {
    if kind == op::SET_WATCHES2 {
        decode::<SetWatches2<'_>>(body)?;
    } else {
        decode::<SetWatches<'_>>(body)?;
    }
    Ok(())
}
