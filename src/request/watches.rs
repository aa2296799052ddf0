//! Watches as requests of their own: brought back after a reconnect, added, asked for, removed (P-55..P-59, P-75).

use super::read::{Reading, decode};
use super::{Outgoing, reply};
use crate::model::{Code, EventKind, op};
use crate::tree::WatchKind;
use crate::tree::digest::StatPart;
use jute::proto::{AddWatchRequest, CheckWatchesRequest, ReplyHeader, SetWatches, SetWatches2};
use jute::{Ustring, Vector, put_i32};

/// Stands in the tables for a null path, which Java watches too. No znode can have it.
const NULL_PATH: &str = "\0";

impl Reading<'_> {
    /// Tells a client what it missed while it was away, and watches the rest again (P-58, P-59, P-75).
    ///
    /// Unlike in Java, nobody is told of a znode that it may not read, as with an event that fires (P-32). The watch is
    /// kept then: the client believes in it. Of one that is gone all may know; a read would tell them too.
    pub(super) fn set_watches(
        &self,
        kind: i32,
        header: ReplyHeader,
        body: &[u8],
        out: &mut Outgoing,
    ) -> Result<(), Code> {
        let request: SetWatches2<'_> = if kind == op::SET_WATCHES2 {
            decode(body)?
        } else {
            let old: SetWatches<'_> = decode(body)?;
            SetWatches2 {
                relative_zxid: old.relative_zxid,
                data_watches: old.data_watches,
                exist_watches: old.exist_watches,
                child_watches: old.child_watches,
                persistent_watches: Vector::Null,
                persistent_recursive_watches: Vector::Null,
            }
        };
        // What Java fails at it fails at after the events so far.
        let header = match self.bring_back(&request, kind == op::SET_WATCHES2, out) {
            Ok(()) => header,
            Err(code) => ReplyHeader { err: code.0, ..header },
        };
        reply::reply(out, header, |_| {});
        Ok(())
    }

    /// * `is_new`: the lists of persistent watches were sent.
    fn bring_back(
        &self,
        request: &SetWatches2<'_>,
        is_new: bool,
        out: &mut Outgoing,
    ) -> Result<(), Code> {
        let watches = &self.shared.state.watches;
        let since = request.relative_zxid;
        for path in paths(&request.data_watches) {
            let path = path?;
            let changed = |stat: StatPart| stat.mzxid > since;
            self.catch_up(&path, WatchKind::DATA, changed, EventKind::NodeDataChanged, out);
        }
        for path in paths(&request.exist_watches) {
            let path = path?;
            match self.tree.find(&path) {
                Some(id) if self.permitted(id).is_ok() => {
                    reply::missed(out, EventKind::NodeCreated, &path);
                }
                _ => watches.add(&path, self.conn.id, WatchKind::DATA),
            }
        }
        for path in paths(&request.child_watches) {
            let path = path?;
            let changed = |stat: StatPart| stat.pzxid > since;
            self.catch_up(&path, WatchKind::CHILD, changed, EventKind::NodeChildrenChanged, out);
        }
        if !is_new {
            return Ok(());
        }
        // Whoever hears of everything is not told what it missed.
        for path in paths(&request.persistent_watches) {
            watches.add(&path?, self.conn.id, WatchKind::PERSISTENT);
        }
        for path in paths(&request.persistent_recursive_watches) {
            watches.add(&path?, self.conn.id, WatchKind::RECURSIVE);
        }
        Ok(())
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

    /// Anything can be watched, whether it is there or not; what may be read shows when it fires (P-57).
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
/// -5 for a list or a path that is null.
fn paths<'a>(
    list: &Vector<'a, Ustring<'a>>,
) -> impl Iterator<Item = Result<std::borrow::Cow<'a, str>, Code>> {
    let none = matches!(list, Vector::Null).then_some(Err(Code::MARSHALLING_ERROR));
    none.into_iter().chain(list.iter().map(|path| path.ok_or(Code::MARSHALLING_ERROR)))
}
