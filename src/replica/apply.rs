//! What was committed: apply it, tell the watchers, answer the one who asked.

use super::{Action, Inflight, Mode, Replica, Samples, WriteSample, refuse_session};
use crate::model::sync::Arc;
use crate::model::{Code, EventKind, SessionId, Zxid, op, path, perms};
use crate::request::{Answered, Conn, Done, Outgoing, Shared, multi, reply};
use crate::tree::txn::Entry;
use crate::tree::{AHEAD_MAX, AclId, Applied, Change, Effects, Tree, Trigger};
use jute::proto::SyncRequest;
use jute::{Encode, Reader, put_buffer};
use std::task::Waker;

/// Transactions applied under one hold of the exclusive lock: well below a millisecond's worth.
const HOLD_MAX: usize = 256;
/// Digests that differ are told of at most this often.
const MISMATCHES_TOLD_MS: u64 = 10_000;
/// Of a [`jute::txn::TxnHeader`].
const HEADER_LEN: usize = 32;

impl Replica {
    /// Applies everything through `through` and answers what waits behind it. `None`: answers only.
    pub(super) fn commit(&mut self, through: Option<Zxid>, now_us: u64, out: &mut Vec<Action>) {
        let is_due = |inflight: &Inflight| {
            inflight.zxid.is_none_or(|zxid| through.is_some_and(|end| zxid <= end))
        };
        let shared = self.shared.clone();
        let mut done = Done::default();
        while self.inflight.front().is_some_and(is_due) {
            let mut tree = shared.state.tree.write();
            for at in 0..HOLD_MAX {
                if at.is_multiple_of(AHEAD_MAX) && !self.judges() {
                    self.look_ahead(&tree);
                }
                let Some(inflight) = self.inflight.pop_front_if(|inflight| is_due(inflight)) else {
                    break;
                };
                self.settle(&shared, &mut tree, &inflight, now_us);
                done.requests += inflight.weight.requests;
                done.large_bytes += inflight.weight.large_bytes;
            }
            drop(tree);
            // The tasks have the lock to themselves between two holds.
            out.extend(self.wakers.drain(..).map(Action::Wake));
        }
        if self.unreadable {
            out.push(Action::Stop("a committed transaction can't be read"));
        }
        if done.requests > 0 {
            shared.throttle.end(done, &mut self.wakers);
        }
        if let Some(through) = through {
            self.prep.applied(through);
        }
        if std::mem::take(&mut self.snapshot_due) {
            self.snapshot(out);
        }
    }

    /// Brings closer what the next transactions change; where they were judged, judging has done so.
    fn look_ahead(&self, tree: &Tree) {
        let mut paths: [&[u8]; AHEAD_MAX] = [&[]; AHEAD_MAX];
        for (path, inflight) in paths.iter_mut().zip(&self.inflight) {
            // Of most transactions the path stands first behind the header; what stands first in others is not found.
            *path = path_of(&inflight.entry).unwrap_or_default();
        }
        let count = self.inflight.len().min(AHEAD_MAX);
        if count > 1 {
            tree.look_ahead(&paths, count);
        }
    }

    fn settle(&mut self, shared: &Shared, tree: &mut Tree, inflight: &Inflight, now_us: u64) {
        let mut born_ms = None;
        if inflight.zxid.is_none() {
            let op = if inflight.code.is_ok() { inflight.op } else { 0 };
            self.note(inflight, op, tree.last_zxid().to_wire(), now_us);
            self.answer_plain(tree.last_zxid(), inflight);
        } else {
            let entry = match Entry::decode(&inflight.entry) {
                Ok(entry) => entry,
                Err(error) => {
                    // Of a leader that speaks of what we do not know: going on without it would be another history.
                    tracing::error!(zxid = ?inflight.zxid, %error, "committed transaction can't be read");
                    self.unreadable = true;
                    return;
                }
            };
            let mut effects = Effects::new();
            let applied = tree.apply(&entry.header, &entry.txn, &mut effects);
            // As Java, which tells no age of an end that nobody asked for and that ends a connection too.
            let is_told = !self.expires_connected(shared, inflight);
            born_ms = Some(entry.header.time).filter(|_| is_told);
            if !matches!(self.mode, Mode::Standalone | Mode::Resting) {
                self.samples.committed.push(entry.header.time);
            }
            let op = if applied.kind == op::ERROR { 0 } else { inflight.op };
            self.note(inflight, op, entry.header.zxid, now_us);
            if let Some(digest) = entry.digest
                && tree.options().digest
                && digest.tree_digest != tree.digest() as i64
            {
                self.on_mismatch(entry.header.zxid, digest.tree_digest, tree.digest());
            }
            for effect in effects {
                self.tell(shared, tree, entry.header.zxid, &effect);
            }
            self.answer(entry.header.zxid, inflight, &applied);
            if applied.kind == op::CLOSE_SESSION && inflight.op != op::CLOSE_SESSION {
                // A learner hears of it by its transaction alone: its leader found the client silent.
                self.end_session(SessionId(entry.header.client_id), None);
            }
        }
        let took_us = inflight.conn.as_ref().map(|_| now_us.saturating_sub(inflight.received_us));
        self.samples.writes.push(WriteSample { took_us, born_ms });
    }

    fn on_mismatch(&mut self, zxid: i64, predicted: i64, found: u64) {
        let text =
            format!("digest mismatch at {zxid:#x}: predicted {predicted}, the tree has {found}");
        if let Some(fuzzy) = &mut self.fuzzy {
            fuzzy.mismatches += 1;
            return tracing::debug!("{text}, as it came with SNAP");
        }
        self.stats.digest_mismatches += 1;
        // Once the trees differ all that follows does: the first is what matters, and that it goes on.
        self.mismatches.0 += 1;
        if self.mismatches.1.is_none_or(|told_ms| told_ms + MISMATCHES_TOLD_MS <= self.now_ms) {
            let more = self.mismatches.0 - 1;
            tracing::error!(more_since_last_told = more, "{text}");
            self.mismatches = (0, Some(self.now_ms));
        }
    }

    /// Whether it ends a session that fell silent although its client is there.
    fn expires_connected(&self, shared: &Shared, inflight: &Inflight) -> bool {
        let owner = || self.sessions.owner(inflight.session);
        let is_there = |owner: &Arc<Conn>| {
            shared.conns.get(owner.id).is_some_and(|now| Arc::ptr_eq(&now, owner))
        };
        inflight.op == op::CLOSE_SESSION && inflight.conn.is_none() && owner().is_some_and(is_there)
    }

    /// What `cons` shows of the answer, noted before the client can have it. A refused write has no name there.
    pub(super) fn note(&mut self, inflight: &Inflight, op: i32, zxid: i64, now_us: u64) {
        let Some(conn) = inflight.conn.as_ref().filter(|_| !inflight.is_silent) else { return };
        // Source: `Request.isStale`, and who asks it.
        if conn.stats.is_gone() && !matches!(op, 0 | op::CLOSE_SESSION) {
            self.stats.stale_replies += 1;
        }
        conn.stats.note(Answered {
            op,
            xid: inflight.xid,
            zxid,
            count: 1,
            began_us: inflight.received_us,
            ended_us: now_us,
        });
    }

    /// Sends the events of one change.
    fn tell(&mut self, shared: &Shared, tree: &Tree, zxid: i64, change: &Change<'_>) {
        let (samples, wakers) = (&mut self.samples, &mut self.wakers);
        let mut teller = Teller { shared, tree, zxid, samples, wakers };
        match change {
            Change::Created { path, acl, parent_acl, data_len } => {
                teller.samples.spaces.note(path, *data_len);
                teller.fire(path, Trigger::Data, EventKind::NodeCreated, *acl);
                teller.fire_parent(path, *parent_acl);
            }
            Change::Deleted { path, acl, parent_acl } => {
                teller.samples.spaces.note(path, 0);
                teller.fire(path, Trigger::Deleted, EventKind::NodeDeleted, *acl);
                teller.fire_parent(path, *parent_acl);
            }
            Change::DataChanged { path, acl, data_len } => {
                teller.samples.spaces.note(path, *data_len);
                teller.fire(path, Trigger::Data, EventKind::NodeDataChanged, *acl);
            }
        }
    }

    fn answer(&mut self, zxid: i64, inflight: &Inflight, applied: &Applied<'_>) {
        match inflight.op {
            op::CREATE_SESSION => {
                let (Some(conn), session) = (&inflight.conn, inflight.session) else { return };
                match self.sessions.get(session) {
                    Some(kept) => conn.push_welcome(session, &mut self.wakers, |out| {
                        let flag = conn.wants_read_only();
                        reply::welcome(out, session, kept.timeout_ms, flag, false);
                    }),
                    None => refuse_session(conn, &mut self.wakers),
                }
            }
            op::CLOSE_SESSION => self.answer_close(zxid, inflight),
            op::MULTI if applied.kind == op::MULTI => self.answer_multi(zxid, inflight, applied),
            _ => {
                let Some(conn) = &inflight.conn else { return };
                if applied.code == Code::SESSION_MOVED {
                    return conn.close(&mut self.wakers); // Without a reply (P-22).
                }
                let header = reply::header(inflight.xid, zxid, applied.code);
                let view = &self.zab.core.view;
                conn.push_answer(&mut self.wakers, |out| {
                    reply::reply(out, header, |to| {
                        let path = applied.path.as_deref();
                        match inflight.op {
                            op::CREATE => reply::path_and_stat(to, path, None),
                            op::CREATE2 | op::CREATE_CONTAINER | op::CREATE_TTL => {
                                reply::path_and_stat(to, path, applied.stat.as_ref())
                            }
                            // The one in force, which by now it is.
                            op::RECONFIG => {
                                put_buffer(to, view.to_string().as_bytes());
                                reply::path_and_stat(to, None, applied.stat.as_ref());
                            }
                            op::SET_DATA | op::SET_ACL => {
                                reply::path_and_stat(to, None, applied.stat.as_ref())
                            }
                            _ => {}
                        }
                    });
                });
            }
        }
    }

    /// Its parts say what became of them; the header says that it was read (P-63).
    fn answer_multi(&mut self, zxid: i64, inflight: &Inflight, applied: &Applied<'_>) {
        let Some(conn) = &inflight.conn else { return };
        if applied.parts.iter().any(|part| part.code == Code::SESSION_MOVED) {
            return conn.close(&mut self.wakers); // As with any other write (P-22).
        }
        let header = reply::header(inflight.xid, zxid, Code::OK);
        conn.push_answer(&mut self.wakers, |out| {
            reply::reply(out, header, |to| multi::respond(to, &applied.parts));
        });
    }

    fn answer_close(&mut self, zxid: i64, inflight: &Inflight) {
        if let Some(conn) = &inflight.conn {
            conn.push_farewell(&mut self.wakers, |out: &mut Outgoing| {
                reply::reply(out, reply::header(inflight.xid, zxid, Code::OK), |_| {});
            });
        }
        self.end_session(inflight.session, inflight.conn.as_ref());
    }

    /// Expired, or closed by a connection that it had been taken from: whoever still speaks for it is cut off.
    fn end_session(&mut self, session: SessionId, asker: Option<&Arc<Conn>>) {
        let is_asker = |owner: &Arc<Conn>| asker.is_some_and(|conn| Arc::ptr_eq(conn, owner));
        self.learning.relayed.remove(&session);
        self.note_end_of(session);
        let owner = self.sessions.remove(session).filter(|owner| !is_asker(owner));
        if let Some(owner) = owner {
            close_owner(&owner, session, &mut self.wakers);
        }
    }

    /// What takes no zxid: a sync, or a body that could not be read.
    pub(super) fn answer_plain(&mut self, last: Zxid, inflight: &Inflight) {
        let Some(conn) = &inflight.conn else { return };
        if inflight.op == op::CLOSE_SESSION && inflight.code.is_ok() {
            // Only this server knew the session.
            self.locals.remove(inflight.session);
            return conn.push_farewell(&mut self.wakers, |out: &mut Outgoing| {
                reply::reply(out, reply::header(inflight.xid, last.to_wire(), Code::OK), |_| {});
            });
        }
        if inflight.is_silent {
            // What waits behind it may not be answered when the session has gone elsewhere.
            return match inflight.code {
                Code::OK => conn.push_answer(&mut self.wakers, |_| {}),
                _ => conn.close(&mut self.wakers),
            };
        }
        let decoded = Reader::new(&inflight.entry).read::<SyncRequest<'_>>();
        let code = match (inflight.code, &decoded) {
            (Code::SESSION_MOVED, _) => return conn.close(&mut self.wakers),
            (Code::OK, Err(_)) => Code::MARSHALLING_ERROR,
            (code, _) => code,
        };
        self.stats.syncs += u64::from(code.is_ok());
        let header = reply::header(inflight.xid, last.to_wire(), code);
        conn.push_answer(&mut self.wakers, |out| {
            reply::reply(out, header, |to| {
                if let Ok(sync) = &decoded {
                    sync.encode(to);
                }
            });
        });
    }
}

/// What stands behind its length behind the header of a transaction.
fn path_of(entry: &[u8]) -> Option<&[u8]> {
    let (len, rest) = entry.get(HEADER_LEN..)?.split_first_chunk::<4>()?;
    rest.get(..usize::try_from(i32::from_be_bytes(*len)).ok()?)
}

pub(super) fn close_owner(owner: &Conn, session: SessionId, wakers: &mut Vec<Waker>) {
    if owner.session() == Some(session) {
        owner.close(wakers);
    }
}

struct Teller<'t> {
    shared: &'t Shared,
    tree: &'t Tree,
    zxid: i64,
    samples: &'t mut Samples,
    wakers: &'t mut Vec<Waker>,
}

impl Teller<'_> {
    fn fire_parent(&mut self, child: &str, acl: AclId) {
        // The root's children change under the name its watchers know it by.
        let parent = path::parent(child).filter(|parent| !parent.is_empty()).unwrap_or("/");
        self.fire(parent, Trigger::Children, EventKind::NodeChildrenChanged, acl);
    }

    fn fire(&mut self, path: &str, trigger: Trigger, kind: EventKind, acl: AclId) {
        let mut fired = Vec::new();
        let told = self.shared.state.watches.fire(path, trigger, &mut fired);
        if fired.is_empty() {
            return;
        }
        let mut frame = Vec::with_capacity(36 + path.len());
        reply::event(&mut frame, self.zxid, kind, path);
        let counts = [told.data, told.child].into_iter().filter(|count| *count > 0);
        self.samples.told.extend(counts.map(|count| (kind, count)));
        let acl = self.tree.acl(acl);
        let is_open = self.shared.permits(acl, perms::READ, &[]);
        for watcher in fired {
            let Some(conn) = self.shared.conns.get(watcher) else { continue };
            // A watch does not tell what its owner may not read (P-32).
            if !is_open && !self.shared.permits(acl, perms::READ, &conn.who()) {
                continue;
            }
            if !conn.push_event(&frame, self.shared.limits.frame_max, self.wakers) {
                tracing::warn!(peer = %conn.peer, "connection closed: it does not fetch its events");
            }
        }
    }
}
