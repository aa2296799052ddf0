//! Committed transactions: apply them, send their events, answer the requests that wait.

use super::core::Core;
use super::inflight::Inflight;
use super::interface::{Action, Mode};
use super::role::Role;
use super::session_log::{self, EndedSession};
use super::stats::{Samples, WriteSample};
use crate::model::sync::Arc;
use crate::model::{AuditEvent, Code, EventKind, Identity, SessionId, Zxid, op, path, perms};
use crate::request::{ClientHandle, Load, Outgoing, Shared, multi, reply};
use crate::tree::digest::DIGEST_VERSION;
use crate::tree::txn::Entry;
use crate::tree::{AHEAD_MAX, AclId, Applied, Change, Effects, Tree, Trigger};
use jute::put_buffer;
use jute::txn::TxnDigest;
use std::collections::VecDeque;
use std::task::Waker;

/// Transactions applied under one hold of the exclusive lock: well below a millisecond's worth.
const HOLD_MAX: usize = 256;
/// Bytes of a [`jute::txn::TxnHeader`].
const HEADER_LEN: usize = 32;

/// Applies everything through `through` and answers the requests after it that take no zxid. `None`: answers only.
pub fn commit(
    core: &mut Core,
    role: &mut Role,
    through: Option<Zxid>,
    now_us: u64,
    out: &mut Vec<Action>,
) {
    let is_due = |inflight: &Inflight| {
        inflight.zxid.is_none_or(|zxid| through.is_some_and(|end| zxid <= end))
    };
    let shared = core.shared.clone();
    let is_processed_here = role.processor().is_some();
    let mut done = Load::default();
    let mut applying = Applying {
        core,
        role,
        now_us,
        ended: Vec::new(),
        is_unreadable: false,
        ends_doubt: false,
        differs_since: None,
    };
    while applying.core.inflight.front().is_some_and(is_due) {
        let mut tree = shared.state.tree.write();
        for at in 0..HOLD_MAX {
            if at.is_multiple_of(AHEAD_MAX) && !is_processed_here {
                look_ahead(&applying.core.inflight, &tree);
            }
            let Some(inflight) = applying.core.inflight.pop_front_if(|inflight| is_due(inflight))
            else {
                break;
            };
            applying.settle(&shared, &mut tree, &inflight);
            done += inflight.load;
        }
        let saved_bytes = tree.snapshot_saved_bytes();
        shared.throttle.note_snapshot_saved(saved_bytes, &mut applying.core.wakers);
        drop(tree);
        applying.ended.drain(..).for_each(|ended| ended.log());
        // Between two holds the woken tasks can take the lock.
        out.extend(applying.core.wakers.drain(..).map(Action::Wake));
    }
    if applying.is_unreadable {
        out.push(Action::Stop("a committed transaction can't be read"));
    }
    if applying.ends_doubt {
        out.push(Action::ForgetDoubt);
    }
    if let Some(since) = applying.differs_since {
        out.push(Action::NoteDifference { since });
    }
    if done.requests > 0 {
        shared.throttle.end(done, &mut core.wakers);
    }
    if let Some(through) = through
        && let Some(processor) = role.processor_mut()
    {
        processor.prep.applied(through);
    }
    if std::mem::take(&mut core.snapshot_due) {
        core.snapshot(out);
    }
}

/// Prefetches the znodes that the next transactions change. A server that processed these requests did so then.
fn look_ahead(inflight: &VecDeque<Inflight>, tree: &Tree) {
    let mut paths: [&[u8]; AHEAD_MAX] = [&[]; AHEAD_MAX];
    for (path, inflight) in paths.iter_mut().zip(inflight) {
        // In most transactions the path comes first after the header; other paths are not found.
        *path = path_of(&inflight.entry).unwrap_or_default();
    }
    let count = inflight.len().min(AHEAD_MAX);
    if count > 1 {
        tree.look_ahead(&paths, count);
    }
}

/// Applies under one hold of the exclusive lock of the tree. Events and answers are appended to outboxes under it.
struct Applying<'a> {
    core: &'a mut Core,
    role: &'a mut Role,
    now_us: u64,
    /// For the log, which is written after the hold.
    ended: Vec<EndedSession>,
    /// A committed transaction could not be read.
    is_unreadable: bool,
    /// The doubted tree has a digest of the leader's.
    ends_doubt: bool,
    /// From this transaction on the tree has another digest than the leader's, which is to be noted.
    differs_since: Option<Zxid>,
}

impl Applying<'_> {
    /// * `predicted`: by the leader. `found`: the tree's. `zxid`: of the transaction after which both are to be the same.
    fn compare_digests(&mut self, predicted: i64, found: u64, zxid: i64) {
        let (mode, mismatches) = (self.role.mode(), &mut self.core.mismatches);
        // Also before the role begins, as when the leader sends what this server missed. A leader predicts by its own tree.
        let is_of_leader = !matches!(mode, Mode::Leading | Mode::Standalone);
        if predicted != found as i64 {
            let counts = mismatches.note(zxid, predicted, found, self.core.now_ms);
            self.core.figures.stats.digest_mismatches += u64::from(counts);
            if counts && is_of_leader {
                self.differs_since = self.differs_since.or(mismatches.differ_from_leader(zxid));
            }
            return;
        }
        if is_of_leader {
            mismatches.match_leader();
        }
        if mismatches.tree_differs() && matches!(mode, Mode::Following | Mode::Observing) {
            self.ends_doubt |= mismatches.fit();
        }
    }

    fn settle(&mut self, shared: &Shared, tree: &mut Tree, inflight: &Inflight) {
        let mut born_ms = None;
        if inflight.zxid.is_none() {
            let op = if inflight.code.is_ok() { inflight.op } else { 0 };
            self.core.note(inflight, op, tree.last_zxid().to_wire(), self.now_us);
            self.core.answer_plain(tree.last_zxid(), inflight);
        } else {
            let entry = match Entry::decode(&inflight.entry) {
                Ok(entry) => entry,
                Err(error) => {
                    // The leader sends a transaction that this version does not know: going on without it would be another
                    // history.
                    tracing::error!(
                        zxid = %inflight.zxid.unwrap_or_default(), %error,
                        "committed transaction can't be read, the server stops: run the leader's version"
                    );
                    self.is_unreadable = true;
                    return;
                }
            };
            let mut effects = Effects::new();
            let applied = tree.apply(&entry.header, &entry.txn, &mut effects);
            // As in Java: closeSession has no age when it expires a session whose connection is still open.
            let is_measured = !self.expires_connected(shared, inflight);
            born_ms = Some(entry.header.time).filter(|_| is_measured);
            if !matches!(self.role.mode(), Mode::Standalone | Mode::Resting) {
                self.core.figures.samples.committed.push(entry.header.time);
            }
            let op = if applied.kind == op::ERROR { 0 } else { inflight.op };
            self.core.note(inflight, op, entry.header.zxid, self.now_us);
            let is_comparable =
                |digest: &TxnDigest| tree.options().digest && digest.version == DIGEST_VERSION;
            if let Some(digest) = entry.digest.filter(is_comparable) {
                self.compare_digests(digest.tree_digest, tree.digest(), entry.header.zxid);
            }
            if applied.kind == op::CLOSE_SESSION {
                self.note_end(SessionId(entry.header.client_id), inflight, &effects);
            }
            if self.core.settings.audits {
                let session = SessionId(entry.header.client_id);
                self.audit(session, inflight, &applied, &effects);
            }
            for effect in effects {
                self.send_events(shared, tree, entry.header.zxid, &effect);
            }
            self.answer(entry.header.zxid, inflight, &applied);
            if applied.kind == op::CLOSE_SESSION && inflight.op != op::CLOSE_SESSION {
                // The leader expired the session: a learner is notified by this transaction alone.
                self.end_session(SessionId(entry.header.client_id), None);
            }
        }
        let took_us =
            inflight.conn.as_ref().map(|_| self.now_us.saturating_sub(inflight.received_us));
        self.core.figures.samples.writes.push(WriteSample { took_us, born_ms });
    }

    /// Leaves a line for the log, before the session is forgotten.
    fn note_end(&mut self, session: SessionId, inflight: &Inflight, effects: &Effects<'_>) {
        if !session_log::is_on() {
            return;
        }
        let Some(sessions) = self.role.sessions() else { return };
        let is_deleted = |effect: &&Change<'_>| matches!(effect, Change::Deleted { .. });
        let ephemerals = effects.iter().filter(is_deleted).count();
        let is_asked = inflight.op == op::CLOSE_SESSION;
        self.ended.extend(EndedSession::of(sessions, session, is_asked, ephemerals));
    }

    /// Leaves events for the audit log: of this server's client, and of ephemeral znodes that the end of a session has deleted.
    ///
    /// * `session`: of the transaction.
    fn audit(
        &mut self,
        session: SessionId,
        inflight: &Inflight,
        applied: &Applied<'_>,
        effects: &Effects<'_>,
    ) {
        let events = &mut self.core.figures.audit;
        if let Some(audited) = &inflight.audited {
            audited.push_events(applied, events);
        }
        if applied.kind != op::CLOSE_SESSION {
            return;
        }
        for effect in effects {
            if let Change::Deleted { path, .. } = effect {
                events.push(AuditEvent::ephemeral_deleted(session, path));
            }
        }
    }

    /// Whether the request expires a session whose connection to this server is still open.
    fn expires_connected(&self, shared: &Shared, inflight: &Inflight) -> bool {
        let owner = || self.role.sessions()?.owner(inflight.session);
        let is_there = |owner: &Arc<ClientHandle>| {
            shared.conns.get(owner.id).is_some_and(|now| Arc::ptr_eq(&now, owner))
        };
        inflight.op == op::CLOSE_SESSION && inflight.conn.is_none() && owner().is_some_and(is_there)
    }

    /// Sends the events of one change.
    fn send_events(&mut self, shared: &Shared, tree: &Tree, zxid: i64, change: &Change<'_>) {
        let (samples, wakers) = (&mut self.core.figures.samples, &mut self.core.wakers);
        let mut notifier = WatchNotifier { shared, tree, zxid, samples, wakers };
        match change {
            Change::Created { path, acl, parent_acl, data_len } => {
                notifier.samples.spaces.note(path, *data_len);
                notifier.fire(path, Trigger::Data, EventKind::NodeCreated, *acl);
                notifier.fire_parent(path, *parent_acl);
            }
            Change::Deleted { path, acl, parent_acl } => {
                notifier.samples.spaces.note(path, 0);
                notifier.fire(path, Trigger::Deleted, EventKind::NodeDeleted, *acl);
                notifier.fire_parent(path, *parent_acl);
            }
            Change::DataChanged { path, acl, data_len } => {
                notifier.samples.spaces.note(path, *data_len);
                notifier.fire(path, Trigger::Data, EventKind::NodeDataChanged, *acl);
            }
        }
    }

    fn answer(&mut self, zxid: i64, inflight: &Inflight, applied: &Applied<'_>) {
        match inflight.op {
            op::CREATE_SESSION => {
                let (Some(conn), session) = (&inflight.conn, inflight.session) else { return };
                match self.role.sessions().and_then(|sessions| sessions.get(session)) {
                    Some(kept) => conn.push_welcome(session, &mut self.core.wakers, |out| {
                        let flag = conn.wants_read_only();
                        reply::welcome(out, session, kept.timeout_ms, flag, false);
                    }),
                    None => self.core.refuse_session(conn),
                }
            }
            op::CLOSE_SESSION => self.answer_close(zxid, inflight),
            op::MULTI if applied.kind == op::MULTI => self.answer_multi(zxid, inflight, applied),
            _ => {
                let Some(conn) = &inflight.conn else { return };
                if applied.code == Code::SESSION_MOVED {
                    return conn.close(&mut self.core.wakers); // Without a reply (P-22).
                }
                let header = reply::header(inflight.xid, zxid, applied.code);
                let view = &self.core.zab.core.view;
                conn.push_answer(&mut self.core.wakers, |out| {
                    reply::reply(out, header, |to| {
                        let path = applied.path.as_deref();
                        match inflight.op {
                            op::CREATE => reply::path_and_stat(to, path, None),
                            op::CREATE2 | op::CREATE_CONTAINER | op::CREATE_TTL => {
                                reply::path_and_stat(to, path, applied.stat.as_ref())
                            }
                            // The configuration in force: by now the proposed one.
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

    /// Answers a multi: each part has its own result, and the header's code is OK (P-63).
    fn answer_multi(&mut self, zxid: i64, inflight: &Inflight, applied: &Applied<'_>) {
        let Some(conn) = &inflight.conn else { return };
        if applied.parts.iter().any(|part| part.code == Code::SESSION_MOVED) {
            return conn.close(&mut self.core.wakers); // As with any other write (P-22).
        }
        let header = reply::header(inflight.xid, zxid, Code::OK);
        conn.push_answer(&mut self.core.wakers, |out| {
            reply::reply(out, header, |to| multi::respond(to, &applied.parts));
        });
    }

    fn answer_close(&mut self, zxid: i64, inflight: &Inflight) {
        if let Some(conn) = &inflight.conn {
            conn.push_farewell(&mut self.core.wakers, |out: &mut Outgoing| {
                reply::reply(out, reply::header(inflight.xid, zxid, Code::OK), |_| {});
            });
        }
        self.end_session(inflight.session, inflight.conn.as_ref());
    }

    /// A session has expired, or was closed by a connection that no longer owned it: the connection that owns it is closed.
    fn end_session(&mut self, session: SessionId, asker: Option<&Arc<ClientHandle>>) {
        let is_asker =
            |owner: &Arc<ClientHandle>| asker.is_some_and(|conn| Arc::ptr_eq(conn, owner));
        let owner = self.role.end_session(self.core, session).filter(|owner| !is_asker(owner));
        if let Some(owner) = owner {
            self.core.close_owner(&owner, session);
        }
    }
}

/// The first string after the header of a transaction.
fn path_of(entry: &[u8]) -> Option<&[u8]> {
    let (len, rest) = entry.get(HEADER_LEN..)?.split_first_chunk::<4>()?;
    rest.get(..usize::try_from(i32::from_be_bytes(*len)).ok()?)
}

struct WatchNotifier<'t> {
    shared: &'t Shared,
    tree: &'t Tree,
    zxid: i64,
    samples: &'t mut Samples,
    wakers: &'t mut Vec<Waker>,
}

impl WatchNotifier<'_> {
    fn fire_parent(&mut self, child: &str, acl: AclId) {
        // The root is watched as `/`.
        let parent = path::parent(child).filter(|parent| !parent.is_empty()).unwrap_or("/");
        self.fire(parent, Trigger::Children, EventKind::NodeChildrenChanged, acl);
    }

    fn fire(&mut self, path: &str, trigger: Trigger, kind: EventKind, acl: AclId) {
        let mut fired = Vec::new();
        let counts = self.shared.state.watches.fire(path, trigger, &mut fired);
        if fired.is_empty() {
            return;
        }
        let mut frame = Vec::with_capacity(36 + path.len());
        reply::event(&mut frame, self.zxid, kind, path);
        let counts = [counts.data, counts.child].into_iter().filter(|count| *count > 0);
        self.samples.fired.extend(counts.map(|count| (kind, count)));
        let acl = self.tree.acl(acl);
        let is_open = self.shared.permits(acl, perms::READ, &[]);
        let mut last: Option<(std::sync::Arc<[Identity]>, bool)> = None;
        for watcher in fired {
            let Some(conn) = self.shared.conns.get(watcher) else { continue };
            // A client gets no event of a znode that it may not read (P-32). Watchers with the same identities are checked
            // once.
            let mut may_read = || {
                let identities = conn.identities();
                let known = last.take().filter(|(other, _)| **other == *identities);
                let judge = || self.shared.permits(acl, perms::READ, &identities);
                let may = known.map_or_else(judge, |(_, may)| may);
                last = Some((identities, may));
                may
            };
            if !is_open && !may_read() {
                continue;
            }
            if !conn.push_event(&frame, self.shared.limits.frame_max, self.wakers) {
                tracing::warn!(
                    target: crate::model::STRANGERS, peer = %conn.peer,
                    "client connection closed: the client does not read its events; check its load, or let it set fewer watches"
                );
            }
        }
    }
}
