//! Every answer says what is so at its zxid: a read shows that very state, a write is the transaction of that zxid, and a
//! refusal is what that state calls for. A write is done once at the most, and those of a session in their order.

use super::{Check, Seen};
use crate::model::{Code, Zxid, op};
use crate::sim::ask::{Body, PAIR, Request, is_of_session};
use crate::sim::model::{Model, Node};
use crate::sim::truth::Truth;
use crate::tree::txn::{Entry, Txn};
use jute::proto::ReplyHeader;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Answers {
    /// How much of the history was looked at.
    seen: usize,
    /// The last write of each session that stands in it.
    written: BTreeMap<i64, i32>,
    /// The last xid each session has sent.
    sent: BTreeMap<i64, i32>,
}

impl Check for Answers {
    fn name(&self) -> &'static str {
        "answers"
    }

    fn see(&mut self, seen: &Seen<'_>, truth: &Truth) -> Result<(), String> {
        self.read_history(truth)?;
        match seen {
            Seen::Asked { session, xid, .. } if 0 < *xid => {
                self.sent.insert(*session, *xid);
                Ok(())
            }
            Seen::Answered { client, session, request, header, body, .. } => {
                judge((*session, request, *header, body), truth).map_err(|why| {
                    let zxid = header.zxid;
                    format!("client {client}, {request:?} answered at {zxid:#x}: {why}")
                })
            }
            _ => Ok(()),
        }
    }
}

impl Answers {
    /// What was committed since: the writes of each session once, in order, by a session that lives.
    fn read_history(&mut self, truth: &Truth) -> Result<(), String> {
        for committed in &truth.committed()[self.seen..] {
            let entry = Entry::decode(&committed.entry).map_err(|error| error.to_string())?;
            let (session, xid) = (entry.header.client_id, entry.header.cxid);
            let zxid = committed.zxid;
            let is_refused = match &entry.txn {
                Txn::Error(_) => true,
                Txn::Multi(parts) => parts.iter().any(|part| part.kind == op::ERROR),
                _ => false,
            };
            // Nobody's request, or nothing is done.
            let is_upgrade = truth.local_sessions && entry.header.kind == op::CREATE_SESSION;
            if xid == 0 || is_refused || is_upgrade {
                continue;
            }
            let life = truth.model.sessions.get(&session);
            // One that its server kept to itself may have written before.
            let is_open = life.map_or(truth.local_sessions, |life| {
                truth.local_sessions || life.opened < zxid.to_wire()
            });
            let closed = life.and_then(|life| life.closed);
            let is_alive = is_open && closed.is_none_or(|at| zxid.to_wire() <= at);
            if !is_alive {
                return Err(format!("{zxid} is by session {session:#x}, which does not live"));
            }
            if self.sent.get(&session).copied().unwrap_or(0) < xid {
                return Err(format!("{zxid} is request {xid} of {session:#x}, which nobody sent"));
            }
            if let Some(before) = self.written.insert(session, xid).filter(|&before| xid <= before)
            {
                return Err(format!(
                    "{zxid} is request {xid} of {session:#x}, whose request {before} stands before it"
                ));
            }
        }
        self.seen = truth.committed().len();
        Ok(())
    }
}

/// Why a reconfiguration may be refused; whether it had to be depends on who followed then.
const MAY_REFUSE_CHANGE: [Code; 5] = [
    Code::RECONFIG_IN_PROGRESS,
    Code::NEW_CONFIG_NO_QUORUM,
    Code::BAD_VERSION,
    Code::BAD_ARGUMENTS,
    // One voter among observers.
    Code::MARSHALLING_ERROR,
];

type Answer<'a> = (i64, &'a Request, ReplyHeader, &'a Body);

fn judge((session, request, header, body): Answer<'_>, truth: &Truth) -> Result<(), String> {
    let zxid = Zxid::from_wire(header.zxid).ok_or("no zxid")?;
    if zxid != Zxid::ZERO && truth.find(zxid).is_none() {
        return Err("that is not committed".to_owned());
    }
    let code = Code(header.err);
    if is_of_session(code) {
        return Ok(());
    }
    let state = State { model: &truth.model, zxid: header.zxid };
    let is_refused = matches!(body, Body::Parts(codes) if codes.iter().any(|&code| code != 0));
    let is_own = truth.local_sessions && !truth.model.sessions.contains_key(&session);
    if *request == Request::Close && is_own {
        return Ok(()); // Nobody but its server has to hear of that.
    }
    if request.is_write() && code.is_ok() && !is_refused {
        let committed = truth.find(zxid).ok_or("no transaction")?;
        let entry = Entry::decode(&committed.entry).map_err(|error| error.to_string())?;
        if (entry.header.client_id, entry.header.cxid) != (session, header.xid) {
            let (by, xid) = (entry.header.client_id, entry.header.cxid);
            return Err(format!("that is request {xid} of {by:#x}"));
        }
        return is_done(request, body, &entry.txn, &state);
    }
    if matches!(request, Request::Change { .. }) {
        return if MAY_REFUSE_CHANGE.contains(&code) {
            Ok(())
        } else {
            Err(format!("code {code} for a reconfiguration"))
        };
    }
    let wanted = state.refusal(request);
    if wanted != code {
        return Err(format!("code {code}, and that state calls for {wanted}"));
    }
    if code.is_ok() { state.shows(request, body) } else { Ok(()) }
}

/// Whether this transaction is that request, and its answer tells of it.
fn is_done(request: &Request, body: &Body, txn: &Txn<'_>, state: &State<'_>) -> Result<(), String> {
    let differs = || Err(format!("which became {txn:?}, and was answered {body:?}"));
    match (request, txn) {
        (
            Request::Set { path, data, version },
            Txn::SetData { path: at, data: set, version: new },
        ) => {
            let is_next = *version == -1 || *new == *version + 1;
            if path != at || Some(&data[..]) != *set || !is_next {
                return differs();
            }
            state.has_stat(path, body)
        }
        (Request::Create { path, data, ephemeral, sequential, .. }, Txn::Create(create)) => {
            let Body::Path(told, stat) = body else { return differs() };
            let is_name = if *sequential { told.starts_with(path) } else { told == path };
            let owner = state.node(told).map(|node| node.owner != 0);
            if *told != create.path
                || !is_name
                || Some(&data[..]) != create.data
                || owner != Some(*ephemeral)
            {
                return differs();
            }
            match stat {
                Some(stat) => state.has_stat(told, &Body::Stat(*stat)),
                None => Ok(()),
            }
        }
        (Request::Delete { path, .. }, Txn::Delete { path: at }) if path == at => Ok(()),
        (Request::Close, Txn::CloseSession { .. }) => Ok(()),
        (Request::Pair { fails: false, .. } | Request::Trade { .. }, Txn::Multi(_)) => Ok(()),
        (Request::Change { .. }, Txn::SetData { path, .. }) if path == "/zookeeper/config" => {
            Ok(())
        }
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

    /// What a request comes to in this state.
    fn refusal(&self, request: &Request) -> Code {
        let exists = |path: &str| self.node(path).is_some();
        let there = |path: &str| if exists(path) { Code::OK } else { Code::NO_NODE };
        match request {
            Request::Get { path, .. }
            | Request::Exists { path, .. }
            | Request::Children { path, .. } => there(path),
            Request::Set { path, version, .. } => self.versioned(path, *version),
            Request::Delete { path, version } => match self.versioned(path, *version) {
                Code::OK if self.node(path).is_some_and(|node| 0 < node.children) => {
                    Code::NOT_EMPTY
                }
                code => code,
            },
            Request::Create { path, sequential, .. } => {
                match self.node(crate::model::path::parent(path).unwrap_or_default()) {
                    None => Code::NO_NODE,
                    Some(_) if !sequential && exists(path) => Code::NODE_EXISTS,
                    Some(parent) if parent.owner != 0 => Code::NO_CHILDREN_FOR_EPHEMERALS,
                    Some(_) => Code::OK,
                }
            }
            // What stands against them is not looked for.
            Request::Trade { .. } | Request::Change { .. } => Code::OK,
            Request::Pair { .. }
            | Request::ReadPair
            | Request::Follow { .. }
            | Request::Sync { .. }
            | Request::Close
            | Request::Ping
            | Request::Watches { .. } => Code::OK,
        }
    }

    fn versioned(&self, path: &str, version: i32) -> Code {
        match self.node(path) {
            None => Code::NO_NODE,
            Some(node) if version != -1 && node.version != version => Code::BAD_VERSION,
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

    /// Whether a read's answer is of this state.
    fn shows(&self, request: &Request, body: &Body) -> Result<(), String> {
        let data_of = |path: &str| self.node(path).and_then(|node| node.data.as_deref());
        match (request, body) {
            (Request::Get { path, .. }, Body::Data(data, _)) => {
                if data.as_deref() != data_of(path) {
                    return Err("other data".to_owned());
                }
                self.has_stat(path, body)
            }
            (Request::Exists { path, .. }, Body::Stat(_)) => self.has_stat(path, body),
            (Request::Children { path, .. }, Body::Children(names, _)) => {
                let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
                names.sort_unstable();
                let wanted = self.model.children(path, self.zxid);
                if names != wanted {
                    return Err(format!("children {names:?}, where there are {wanted:?}"));
                }
                self.has_stat(path, body)
            }
            (Request::ReadPair, Body::Pair(pair)) => {
                let wanted = PAIR.map(data_of);
                let differ = wanted[0] != wanted[1] && wanted.iter().all(Option::is_some);
                if pair.each_ref().map(Option::as_deref) != wanted || differ {
                    return Err(format!("{pair:?}, where there is {wanted:?}"));
                }
                Ok(())
            }
            (Request::Pair { fails: false, .. }, Body::Parts(codes))
                if PAIR.iter().all(|path| self.node(path).is_some()) =>
            {
                Err(format!("{codes:?}, and nothing speaks against it"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted::{fails, holds, truth, zxid};
    use super::*;
    use jute::data::Stat;

    fn stat(czxid: i64, mzxid: i64, version: i32, owner: i64) -> Stat {
        Stat {
            czxid,
            mzxid,
            ctime: 1,
            mtime: 1,
            version,
            cversion: 0,
            aversion: 0,
            ephemeral_owner: owner,
            data_length: 1,
            num_children: 0,
            pzxid: czxid,
        }
    }

    #[test]
    fn wrong_answers_are_found() {
        let (mut check, truth) = (Answers::default(), truth());
        for xid in 1..4 {
            let request = &Request::Ping;
            let asked = Seen::Asked { client: 0, session: 7, xid, request, at_us: 0 };
            holds(&mut check, &asked, &Truth::new(0));
        }
        let at = |counter| zxid(1, counter).to_wire();
        let mut told = |request: &Request, xid, zxid, err, body: &Body, wrong: Option<&str>| {
            let header = ReplyHeader { xid, zxid, err };
            let seen = Seen::Answered { client: 0, session: 7, request, header, body, at_us: 0 };
            match wrong {
                None => holds(&mut check, &seen, &truth),
                Some(about) => fails(&mut check, &seen, &truth, about),
            }
        };
        let get = Request::Get { path: "/a".into(), watch: false };
        let data = |data: &[u8], version| {
            Body::Data(
                Some(data.to_vec()),
                stat(at(2), at(2 + i64::from(version) as u32), version, 0),
            )
        };
        told(&get, 9, at(2), 0, &data(b"1", 0), None);
        told(&get, 9, at(3), 0, &data(b"2", 1), None);
        told(&get, 9, at(3), 0, &data(b"1", 1), Some("other data"));
        told(&get, 9, at(3), 0, &data(b"2", 0), Some("where there is"));
        told(&get, 9, at(9), 0, &data(b"2", 1), Some("not committed"));
        told(&get, 9, at(3), -101, &Body::Nothing, Some("calls for 0"));
        let set = Request::Set { path: "/a".into(), data: b"2".to_vec(), version: 0 };
        let done = Body::Stat(stat(at(2), at(3), 1, 0));
        told(&set, 2, at(3), 0, &done, None);
        told(&set, 4, at(3), 0, &done, Some("request 2 of 0x7"));
        told(&set, 2, at(2), 0, &done, Some("request 1 of"));
        told(&set, 2, at(3), -103, &Body::Nothing, None);
        told(&set, 2, at(2), -103, &Body::Nothing, Some("calls for 0"));
        let children = Request::Children { path: String::new(), watch: false };
        let root = Body::Children(vec!["a".into()], stat(0, 0, 0, 0));
        told(&children, 9, at(4), 0, &root, Some("where there are"));
    }

    #[test]
    fn what_nobody_sent_and_what_was_done_twice_is_found() {
        let mut check = Answers::default();
        fails(&mut check, &Seen::Parted { client: 0 }, &truth(), "which nobody sent");
        let mut truth = truth();
        let again = super::super::planted::entry(zxid(1, 5), (7, 2), op::DELETE, |to| {
            crate::tree::txn::write::delete(to, "/a");
        });
        truth.propose(zxid(1, 5), again.into());
        truth.commit(&[zxid(1, 5)]).unwrap();
        let mut check = Answers { sent: BTreeMap::from([(7, 9)]), ..Answers::default() };
        fails(&mut check, &Seen::Parted { client: 0 }, &truth, "stands before it");
    }
}
