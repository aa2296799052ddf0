//! Guarantees to sessions: a client never sees an older zxid, whichever server it connects to; replies come in the order of the
//! requests; ephemerals live as long as their session; an expired session never comes back; and writes are linearizable.

use super::seen::{Answered, Check, Seen};
use crate::model::{Code, Zxid};
use crate::sim::history::History;
use crate::sim::workload::{Op, is_of_session};
use crate::tree::txn::{Entry, Txn};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Default)]
pub struct Sessions {
    /// Requests without an answer, by client.
    outstanding: BTreeMap<usize, VecDeque<i32>>,
    /// The newest zxid that each client has seen since it lost a session, and whether a read-only server showed it.
    newest: BTreeMap<usize, (i64, bool)>,
    expired: BTreeSet<i64>,
    opened: BTreeSet<i64>,
}

impl Check for Sessions {
    fn see(&mut self, seen: &Seen<'_>, history: &History) -> Result<(), String> {
        match *seen {
            Seen::SessionOpened { client, session, is_new } => {
                let span = history.model.sessions.get(&session);
                if span.is_none() && !history.local_sessions {
                    return Err(format!("session {session:#x} of {client} was never created"));
                }
                if is_new && !self.opened.insert(session) {
                    return Err(format!("session {session:#x} is given to client {client} again"));
                }
                if self.expired.contains(&session) {
                    let opened = span.map_or(0, |span| span.opened);
                    return Err(format!(
                        "session {session:#x} of {opened:#x} was over, and is back"
                    ));
                }
            }
            Seen::Expired { client, session } => {
                self.newest.remove(&client);
                self.expired.insert(session);
            }
            Seen::Asked { client, xid, request, .. } if request.op != Op::Ping => {
                self.outstanding.entry(client).or_default().push_back(xid);
            }
            Seen::Answered(answered) | Seen::AnsweredReadOnly(answered) => {
                let Answered { client, request, header, .. } = answered;
                let xid = header.xid;
                if request.op != Op::Ping {
                    let next = self.outstanding.get_mut(&client).and_then(VecDeque::pop_front);
                    if next != Some(xid) {
                        return Err(format!("client {client} is answered {xid}, awaits {next:?}"));
                    }
                }
                let is_read_only = matches!(seen, Seen::AnsweredReadOnly(_));
                let newest = self.newest.entry(client).or_default();
                let (before, by_read_only) = *newest;
                // The next epoch lacks transactions that a read-only server showed and that were never committed.
                let is_committed =
                    Zxid::from_wire(before).is_some_and(|zxid| history.is_committed(zxid));
                let may_go_back = by_read_only && !is_read_only && !is_committed;
                if header.zxid < before && !may_go_back {
                    let zxid = header.zxid;
                    return Err(format!("client {client} sees {zxid:#x} after {before:#x}"));
                }
                *newest = (header.zxid, is_read_only);
            }
            Seen::Disconnected { client } => drop(self.outstanding.remove(&client)),
            Seen::AllSettled => return self.at_the_end(history),
            _ => {}
        }
        Ok(())
    }
}

impl Sessions {
    fn at_the_end(&self, history: &History) -> Result<(), String> {
        let model = &history.model;
        if let Some(session) = self.expired.iter().find(|&&session| model.is_alive(session)) {
            return Err(format!("session {session:#x} was reported as over, and lives"));
        }
        let is_orphan = |owner| owner != 0 && !model.is_alive(owner);
        match model.paths().find(|(_, node)| is_orphan(node.stat.ephemeral_owner)) {
            Some((path, node)) => {
                Err(format!("{path} is of session {:#x}, which is over", node.stat.ephemeral_owner))
            }
            None => Ok(()),
        }
    }
}

/// A write that was answered before another write was sent comes before it in the history. A read or sync shows all that any reply
/// showed before it was sent, where servers guarantee that (`oxkeeper.linearizableReads`, `oxkeeper.quorumSync`).
#[derive(Default)]
pub struct RealTime {
    /// The newest zxid of an answered write.
    written: i64,
    /// The newest zxid of any answer.
    shown: i64,
    /// Both when each request under way was sent, by client and xid.
    floors: BTreeMap<(usize, i32), (i64, i64)>,
}

impl Check for RealTime {
    fn see(&mut self, seen: &Seen<'_>, history: &History) -> Result<(), String> {
        match *seen {
            Seen::Asked { client, xid, .. } => {
                self.floors.insert((client, xid), (self.written, self.shown));
            }
            Seen::Answered(Answered { client, request, header, .. }) => {
                let (zxid, is_write) = (header.zxid, request.is_write());
                let floors = self.floors.remove(&(client, header.xid)).unwrap_or_default();
                // The end of a local session is no transaction.
                let is_local = history.local_sessions && request.op == Op::Close;
                // A write that was refused may take no place in the history.
                if is_local || is_of_session(Code(header.err)) || is_write && header.err != 0 {
                    return Ok(());
                }
                if is_write && zxid <= floors.0 {
                    let floor = floors.0;
                    return Err(format!(
                        "a write of client {client} is {zxid:#x}, {floor:#x} was answered before"
                    ));
                }
                let is_confirmed = match request.op {
                    Op::Sync => history.confirms_syncs,
                    _ => request.is_read() && history.confirms_reads,
                };
                if is_confirmed && zxid < floors.1 {
                    let floor = floors.1;
                    return Err(format!(
                        "client {client} is shown {zxid:#x}, {floor:#x} was shown before it asked"
                    ));
                }
                self.shown = self.shown.max(zxid);
                self.written = self.written.max(if is_write { zxid } else { 0 });
            }
            Seen::Destroyed { .. } => *self = Self::default(),
            Seen::Disconnected { client } => self.floors.retain(|(of, _), _| *of != client),
            _ => {}
        }
        Ok(())
    }
}

/// No client is told that its session is over while the session lives and no leader has proposed its end. There are three exceptions.
///
/// 1. A client that has had no reply yet in the session: a leader that does not know yet of the session, which another leader created,
///    may tell the client so, as Java's does (world 140000006541). A client that has had a reply is refused by such a leader, whose
///    history is too old for it.
/// 2. A session that was local to another server when the client asked, and became global after that (world 340000022401): Java tells
///    the client so too.
/// 3. A session that one restored tree ended and the next one brought back before the client read the answer (world 700000028490).
#[derive(Default)]
pub struct LivingSessions {
    /// Sessions whose end a server has logged.
    closing: BTreeSet<i64>,
    /// Clients that have had a reply in their current session.
    answered: BTreeSet<usize>,
    /// Clients whose session was global and open when they asked for it last, and no tree was restored since.
    asked_alive: BTreeSet<usize>,
}

impl Check for LivingSessions {
    fn see(&mut self, seen: &Seen<'_>, history: &History) -> Result<(), String> {
        match *seen {
            Seen::Logs { entry, .. } => {
                if let Ok(Entry { header, txn: Txn::CloseSession { .. }, .. }) =
                    Entry::decode(entry)
                {
                    self.closing.insert(header.client_id);
                }
            }
            Seen::ExpiryReported { client, session }
                if self.answered.contains(&client)
                    && self.asked_alive.contains(&client)
                    && history.model.is_alive(session)
                    && !self.closing.contains(&session) =>
            {
                return Err(format!(
                    "client {client} is told that session {session:#x} is over, and it lives"
                ));
            }
            Seen::Connects { client, session } => {
                self.asked_alive.remove(&client);
                if history.model.is_alive(session) {
                    self.asked_alive.insert(client);
                }
            }
            Seen::Restores { .. } => self.asked_alive.clear(),
            Seen::Answered(Answered { client, .. }) => drop(self.answered.insert(client)),
            Seen::Expired { client, .. } | Seen::SessionOpened { client, is_new: true, .. } => {
                self.answered.remove(&client);
            }
            _ => {}
        }
        Ok(())
    }
}

/// The clocks of sessions advance by this.
const TICK_MS: u64 = 5;

/// A leader expires no session before its whole timeout has passed since the leader last heard of it.
///
/// # Errors
/// What does not hold.
pub fn early_expiry(seen: &Seen<'_>, _: &History) -> Result<(), String> {
    match *seen {
        Seen::Expires { session, silent_ms, timeout_ms } if silent_ms + TICK_MS < timeout_ms => {
            Err(format!("session {session:#x} of {timeout_ms} ms ends after {silent_ms} ms"))
        }
        _ => Ok(()),
    }
}
