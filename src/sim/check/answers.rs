//! Every reply fits the state at its zxid: a read shows that state, a write is the transaction with that zxid, and a request is refused
//! if that state requires it. A write is done at most once, and the writes of a session are done in their order.

use super::seen::{Answered, Check, Seen};
use crate::model::path::parent;
use crate::model::{Code, Zxid, op};
use crate::sim::history::History;
use crate::sim::model::{Model, Node};
use crate::sim::workload::{Body, Op, PAIR, Request, Required, is_of_session};
use crate::tree::txn::{Entry, Txn};
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Answers {
    /// How many committed transactions were checked.
    seen: usize,
    /// The xid of the last write of each session among these.
    written: BTreeMap<i64, i32>,
    /// The last xid each session has sent.
    sent: BTreeMap<i64, i32>,
}

impl Check for Answers {
    fn see(&mut self, seen: &Seen<'_>, history: &History) -> Result<(), String> {
        if let Seen::Destroyed { .. } = seen {
            // The remaining history is checked again: later writes of a session may be lost, and earlier ones be committed now.
            *self = Self { sent: std::mem::take(&mut self.sent), ..Self::default() };
        }
        self.read_history(history)?;
        match seen {
            Seen::Asked { session, xid, .. } if 0 < *xid => {
                self.sent.insert(*session, *xid);
                Ok(())
            }
            Seen::Answered(answered) => judge(answered, history).map_err(|why| {
                let Answered { client, request, header, .. } = answered;
                format!("client {client}, {request:?} answered at {:#x}: {why}", header.zxid)
            }),
            Seen::AnsweredReadOnly(answered) => judge_read_only(answered, history).map_err(|why| {
                let Answered { client, request, header, .. } = answered;
                format!("client {client}, read-only, {request:?} at {:#x}: {why}", header.zxid)
            }),
            _ => Ok(()),
        }
    }
}

impl Answers {
    /// Checks what was committed since the last call: the writes of each session are there once, in order, and the session is open.
    fn read_history(&mut self, history: &History) -> Result<(), String> {
        let transactions = history.committed()[self.seen..].iter();
        for committed in transactions.filter(|it| !history.restores.contains_key(&it.zxid)) {
            let entry = Entry::decode(&committed.entry).map_err(|error| error.to_string())?;
            let (session, xid) = (entry.header.client_id, entry.header.cxid);
            let zxid = committed.zxid;
            let is_refused = match &entry.txn {
                Txn::Error(_) => true,
                Txn::Multi(parts) => parts.iter().any(|part| part.kind == op::ERROR),
                _ => false,
            };
            let is_upgrade = history.local_sessions && entry.header.kind == op::CREATE_SESSION;
            // Not a client's request, or one that changes nothing.
            if xid == 0 || is_refused || is_upgrade {
                continue;
            }
            let span = history.model.sessions.get(&session);
            // A local session may have written before it became global.
            let is_open =
                history.local_sessions || span.is_some_and(|span| span.opened < zxid.to_wire());
            let closed = span.and_then(|span| span.closed);
            let was_closed = closed.is_some_and(|at| at < zxid.to_wire());
            // As in Java: closeSession is proposed without a check of the session, and changes nothing the second time.
            if was_closed && entry.header.kind == op::CLOSE_SESSION {
                continue;
            }
            if !is_open || was_closed {
                return Err(format!("{zxid} is by session {session:#x}, which is not open"));
            }
            if self.sent.get(&session).copied().unwrap_or(0) < xid {
                return Err(format!("{zxid} is request {xid} of {session:#x}, never sent"));
            }
            let before = self.written.insert(session, xid);
            if let Some(before) = before.filter(|&before| xid <= before) {
                return Err(format!(
                    "{zxid} is request {xid} of {session:#x}, committed after its request {before}"
                ));
            }
        }
        self.seen = history.committed().len();
        Ok(())
    }
}

/// Codes with which a reconfiguration may be refused; whether it had to be depends on the followers of that moment.
const MAY_REFUSE_CHANGE: [Code; 5] = [
    Code::RECONFIG_IN_PROGRESS,
    Code::NEW_CONFIG_NO_QUORUM,
    Code::BAD_VERSION,
    Code::BAD_ARGUMENTS,
    // A single voter with observers.
    Code::MARSHALLING_ERROR,
];

fn judge(answered: &Answered<'_>, history: &History) -> Result<(), String> {
    let &Answered { session, request, header, body, .. } = answered;
    let zxid = Zxid::from_wire(header.zxid).ok_or("no zxid")?;
    let committed = history.find(zxid);
    if zxid != Zxid::ZERO && committed.is_none() {
        return Err("that is not committed".to_owned());
    }
    let code = Code(header.err);
    // Only the server of a local session has to know that the session has ended.
    let is_local = history.local_sessions && !history.model.sessions.contains_key(&session);
    if is_of_session(code) || request.op == Op::Close && is_local {
        return Ok(());
    }
    if let Op::Reconfig { required, .. } = &request.op {
        requires(*required, code, zxid, history)?;
    }
    let state = State { model: &history.model, zxid: header.zxid };
    let is_refused = matches!(body, Body::Parts(codes) if codes.iter().any(|&code| code != 0));
    if request.is_write() && code.is_ok() && !is_refused {
        let entry = &committed.ok_or("no transaction")?.entry;
        let entry = Entry::decode(entry).map_err(|error| error.to_string())?;
        let (by, xid) = (entry.header.client_id, entry.header.cxid);
        if (by, xid) != (session, header.xid) {
            return Err(format!("that is request {xid} of {by:#x}"));
        }
        return is_done(request, body, &entry.txn, &state);
    }
    if let Op::Reconfig { .. } = request.op {
        let is_possible = MAY_REFUSE_CHANGE.contains(&code);
        return is_possible.then_some(()).ok_or(format!("code {code} for a reconfiguration"));
    }
    let wanted = state.refusal(request);
    if wanted != code {
        return Err(format!("code {code}, and that state calls for {wanted}"));
    }
    if code.is_ok() { state.shows(request, body) } else { Ok(()) }
}

/// Checks that a reconfiguration was refused for the version that it names if and only if another version was in force. While another
/// reconfiguration is under way, a leader does not look at the version.
fn requires(required: Required, code: Code, zxid: Zxid, history: &History) -> Result<(), String> {
    let is_met = match required {
        Required::Any | Required::Of(_) => true,
        Required::Version(version) => history.was_in_force(version, zxid),
    };
    if code == Code::RECONFIG_IN_PROGRESS || is_met != (code == Code::BAD_VERSION) {
        return Ok(());
    }
    Err(format!("code {code}, and {required:?} is {}in force", if is_met { "" } else { "not " }))
}

/// Checks a reply of a server without a leader (read-only). Its tree may end with transactions that were never committed: of those
/// only that they were proposed is checked.
fn judge_read_only(answered: &Answered<'_>, history: &History) -> Result<(), String> {
    let &Answered { request, header, body, .. } = answered;
    let (zxid, code) = (Zxid::from_wire(header.zxid).ok_or("no zxid")?, Code(header.err));
    if zxid != Zxid::ZERO && history.proposal(zxid).is_none() {
        return Err("that was never proposed".to_owned());
    }
    if !request.is_read() {
        let is_refused =
            code == Code::NOT_READ_ONLY || matches!(request.op, Op::Ping | Op::SetWatches(_));
        return is_refused.then_some(()).ok_or_else(|| format!("code {code}, and it is no read"));
    }
    let state = State { model: &history.model, zxid: header.zxid };
    let wanted = state.refusal(request);
    match history.is_committed(zxid) {
        true if wanted != code => Err(format!("code {code}, and that state calls for {wanted}")),
        true if code.is_ok() => state.shows(request, body),
        true | false => Ok(()),
    }
}

/// Checks that this transaction is that request, and that the reply fits it.
fn is_done(request: &Request, body: &Body, txn: &Txn<'_>, state: &State<'_>) -> Result<(), String> {
    let Request { op, path, data, version } = request;
    let differs = || Err(format!("which became {txn:?}, and was answered {body:?}"));
    match (op, txn) {
        (Op::Set { .. }, Txn::SetData { path: at, data: set, version: new }) => {
            let is_next = *version == -1 || *new == *version + 1;
            if path != at || Some(&data[..]) != *set || !is_next {
                return differs();
            }
            state.has_stat(path, body)
        }
        (Op::Create { ephemeral, sequential, .. }, Txn::Create(create)) => {
            let Body::Path(created, stat) = body else { return differs() };
            let is_name = if *sequential { created.starts_with(path) } else { created == path };
            let owner = state.node(created).map(|node| node.stat.ephemeral_owner != 0);
            let is_data = *created == create.path && Some(&data[..]) == create.data;
            if !is_data || !is_name || owner != Some(*ephemeral) {
                return differs();
            }
            stat.map_or(Ok(()), |stat| state.has_stat(created, &Body::Stat(stat)))
        }
        (Op::Delete, Txn::Delete { path: at }) if path == at => Ok(()),
        (Op::Close, Txn::CloseSession { .. }) => Ok(()),
        (Op::SetPair { fails: false } | Op::CreateAndSet { .. }, Txn::Multi(_)) => Ok(()),
        (Op::Reconfig { .. }, Txn::SetData { path, .. }) if path == "/zookeeper/config" => Ok(()),
        _ => differs(),
    }
}

struct State<'a> {
    model: &'a Model,
    zxid: i64,
}

impl State<'_> {
    fn node(&self, path: &str) -> Option<&Node> {
        self.model.at(path, self.zxid)
    }

    /// The code with which this state refuses a request; OK if it does not.
    fn refusal(&self, request: &Request) -> Code {
        let Request { op, path, version, .. } = request;
        let exists = self.node(path).is_some();
        match op {
            Op::Get { .. } | Op::Exists { .. } | Op::Children { .. } if !exists => Code::NO_NODE,
            Op::Set { .. } => self.versioned(path, *version),
            Op::Delete => match self.versioned(path, *version) {
                Code::OK if self.node(path).is_some_and(|node| 0 < node.stat.num_children) => {
                    Code::NOT_EMPTY
                }
                code => code,
            },
            Op::Create { sequential, .. } => match self.node(parent(path).unwrap_or_default()) {
                None => Code::NO_NODE,
                Some(_) if !sequential && exists => Code::NODE_EXISTS,
                Some(parent) if parent.stat.ephemeral_owner != 0 => {
                    Code::NO_CHILDREN_FOR_EPHEMERALS
                }
                Some(_) => Code::OK,
            },
            // Reasons to refuse a multi are in its parts.
            _ => Code::OK,
        }
    }

    fn versioned(&self, path: &str, version: i32) -> Code {
        match self.node(path) {
            None => Code::NO_NODE,
            Some(node) if version != -1 && node.stat.version != version => Code::BAD_VERSION,
            Some(_) => Code::OK,
        }
    }

    fn has_stat(&self, path: &str, body: &Body) -> Result<(), String> {
        let (Body::Stat(stat) | Body::Data(_, stat) | Body::Children(_, stat)) = body else {
            return Err("no stat".to_owned());
        };
        match self.node(path) {
            Some(node) if node.is(stat) => Ok(()),
            node => Err(format!("{stat:?}, where there is {node:?}")),
        }
    }

    /// Checks that a read's reply shows this state.
    fn shows(&self, request: &Request, body: &Body) -> Result<(), String> {
        let data_of = |path: &str| self.node(path).and_then(|node| node.data.as_deref());
        let path = &request.path;
        match (&request.op, body) {
            (Op::Get { .. }, Body::Data(data, _)) if data.as_deref() != data_of(path) => {
                Err("other data".to_owned())
            }
            (Op::Children { .. }, Body::Children(names, _)) => {
                let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
                names.sort_unstable();
                let wanted = self.model.children(path, self.zxid);
                if names != wanted {
                    return Err(format!("children {names:?}, where there are {wanted:?}"));
                }
                self.has_stat(path, body)
            }
            (Op::Get { .. } | Op::Exists { .. }, Body::Data(..) | Body::Stat(_)) => {
                self.has_stat(path, body)
            }
            (Op::GetPair, Body::Pair(pair)) => {
                let wanted = PAIR.map(data_of);
                let differ = wanted[0] != wanted[1] && wanted.iter().all(Option::is_some);
                if pair.each_ref().map(Option::as_deref) != wanted || differ {
                    return Err(format!("{pair:?}, where there is {wanted:?}"));
                }
                Ok(())
            }
            (Op::SetPair { fails: false }, Body::Parts(codes))
                if PAIR.iter().all(|path| self.node(path).is_some()) =>
            {
                Err(format!("{codes:?}, although both znodes exist"))
            }
            _ => Ok(()),
        }
    }
}
