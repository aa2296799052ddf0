//! Judging writes: a request becomes a transaction, or a refusal with a zxid of its own (P-36..P-46, P-69, G-01).
//!
//! A write is judged by the tree plus everything proposed before it. The tree digest that it leads to is predicted and
//! goes into its log entry, where apply finds it again (D-68).

use super::pending::{AclOf, PARENT_OF_CREATED, PARENT_OF_DELETED, Pending, View};
use crate::auth;
use crate::model::{Acl, Code, Identity, OPEN_ACL, Owner, SessionId, Zxid, op, path, perms};
use crate::tree::digest::{self, DIGEST_VERSION, StatPart};
use crate::tree::txn::{CreateKind, write};
use crate::tree::{AclId, Tree};
use jute::proto::{CreateRequest, DeleteRequest, SetAclRequest, SetDataRequest};
use jute::txn::{TxnDigest, TxnHeader};
use jute::{Encode, Reader, put_i32};
use std::collections::BTreeSet;

/// Who asks, when, and under which request.
pub struct Asker<'a> {
    pub session: SessionId,
    pub xid: i32,
    pub who: &'a [Identity],
    /// Whether the session lives and belongs to the one who asks.
    pub standing: Result<(), Code>,
    /// Milliseconds since 1970: the transaction's time.
    pub wall_ms: i64,
    /// `skipACL`.
    pub skip_acl: bool,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Prepared {
    /// To be proposed; its entry was appended.
    Proposal(Zxid),
    /// Undecodable: answered with this code and never proposed, so no zxid is used twice (G-01).
    Refused(Code),
}

/// The judge. Owns the zxids: each one it gives out is proposed.
pub struct Prep {
    pending: Pending,
    last: Zxid,
    /// Of the tree once everything proposed is applied.
    digest: u64,
    wanted: bool,
}

impl Prep {
    /// * `tree`: with nothing proposed beyond it.
    pub fn new(tree: &Tree, seed: u64) -> Self {
        Self {
            pending: Pending::new(seed),
            last: tree.last_zxid(),
            digest: tree.digest(),
            wanted: tree.options().digest,
        }
    }

    /// The last zxid given out.
    pub const fn last(&self) -> Zxid {
        self.last
    }

    /// Everything through `through` is in the tree now.
    pub fn applied(&mut self, through: Zxid) {
        self.pending.applied(through);
    }

    /// Judges one write and appends its log entry to `to`.
    ///
    /// `None` when there are no zxids left.
    pub fn prepare(
        &mut self,
        tree: &Tree,
        asker: &Asker<'_>,
        kind: i32,
        body: &[u8],
        to: &mut Vec<u8>,
    ) -> Option<Prepared> {
        let Some(request) = Request::decode(kind, body) else {
            return Some(Prepared::Refused(Code::MARSHALLING_ERROR));
        };
        if self.pending.is_empty() {
            self.digest = tree.digest();
        }
        let zxid = self.last.plus_one()?;
        self.last = zxid;
        let start = to.len();
        let header = TxnHeader {
            client_id: asker.session.0,
            cxid: asker.xid,
            zxid: zxid.to_wire(),
            time: asker.wall_ms,
            kind,
        };
        header.encode(to);
        let mut judging = Judging { prep: self, tree, asker, header, zxid, to };
        let judged = match request {
            Request::Create(create) => judging.create(&create),
            Request::Delete(delete) => judging.delete(&delete),
            Request::SetData(set) => judging.set_data(&set),
            Request::SetAcl(set) => judging.set_acl(&set),
            Request::CreateSession { timeout_ms } => {
                put_i32(judging.to, timeout_ms);
                Ok(())
            }
            Request::CloseSession => {
                judging.close_session();
                Ok(())
            }
        };
        match judged {
            Ok(()) if self.wanted => {
                TxnDigest { version: DIGEST_VERSION, tree_digest: self.digest as i64 }.encode(to);
            }
            Ok(()) => {}
            Err(code) => {
                // Refused, but it happened: it has its place in history, and no digest.
                to.truncate(start);
                TxnHeader { kind: op::ERROR, ..header }.encode(to);
                put_i32(to, code.0);
            }
        }
        Some(Prepared::Proposal(zxid))
    }
}

enum Request<'a> {
    Create(CreateRequest<'a>),
    Delete(DeleteRequest<'a>),
    SetData(SetDataRequest<'a>),
    SetAcl(SetAclRequest<'a>),
    CreateSession { timeout_ms: i32 },
    CloseSession,
}

impl<'a> Request<'a> {
    fn decode(kind: i32, body: &'a [u8]) -> Option<Self> {
        let mut from = Reader::new(body);
        Some(match kind {
            op::CREATE | op::CREATE2 => Self::Create(from.read().ok()?),
            op::DELETE => Self::Delete(from.read().ok()?),
            op::SET_DATA => Self::SetData(from.read().ok()?),
            op::SET_ACL => Self::SetAcl(from.read().ok()?),
            op::CREATE_SESSION => Self::CreateSession { timeout_ms: from.read().ok()? },
            op::CLOSE_SESSION => Self::CloseSession,
            _ => return None,
        })
    }
}

/// One write being judged.
struct Judging<'j> {
    prep: &'j mut Prep,
    tree: &'j Tree,
    asker: &'j Asker<'j>,
    header: TxnHeader,
    zxid: Zxid,
    to: &'j mut Vec<u8>,
}

impl Judging<'_> {
    /// The order of the checks is part of the protocol (P-69).
    fn create(&mut self, request: &CreateRequest<'_>) -> Result<(), Code> {
        let mode = Mode::decode(request.flags)?;
        self.asker.standing?;
        let asked = request.path.as_deref().ok_or(Code::MARSHALLING_ERROR)?;
        let parent_path =
            path::parent(asked).filter(|_| !asked.contains('\0')).ok_or(Code::BAD_ARGUMENTS)?;
        let acl = self.fix_acl(&request.acl)?;
        let mut parent = self.view(parent_path).ok_or(Code::NO_NODE)?;
        self.permit(&parent, PARENT_OF_CREATED)?;
        let numbered;
        let path = if mode.sequential {
            numbered = format!("{asked}{:010}", parent.stat.cversion);
            &*numbered
        } else {
            asked
        };
        path::validate(path).map_err(|_| Code::BAD_ARGUMENTS)?;
        if self.view(path).is_some() {
            return Err(Code::NODE_EXISTS);
        }
        let extended = self.tree.options().extended_types;
        if matches!(Owner::decode(parent.stat.ephemeral_owner, extended), Owner::Session(_)) {
            return Err(Code::NO_CHILDREN_FOR_EPHEMERALS);
        }
        let kind = if mode.ephemeral { CreateKind::Ephemeral } else { CreateKind::Persistent };
        let cversion = parent.stat.cversion.wrapping_add(1);
        let acl_bytes = acl.as_ref().map(|acl| crate::tree::encode_acl(acl));
        write::create(
            self.to,
            path,
            request.data,
            acl_bytes.as_deref().unwrap_or(OPEN_ACL),
            kind,
            cversion,
        );
        let parent_before = self.digest_of(&parent, parent_path);
        parent.stat.cversion = cversion;
        parent.stat.pzxid = self.header.zxid;
        parent.children += 1;
        let stat = StatPart {
            czxid: self.header.zxid,
            mzxid: self.header.zxid,
            pzxid: self.header.zxid,
            ctime: self.header.time,
            mtime: self.header.time,
            ephemeral_owner: kind.owner(self.asker.session.0),
            ..StatPart::default()
        };
        let acl = acl.map_or(AclOf::Table(AclId::OPEN), |acl| AclOf::Own(acl.into()));
        let child = View { stat, acl, children: 0, crc: self.crc(path, request.data) };
        self.put(parent_path, parent_before, Some(parent));
        self.put(path, 0, Some(child));
        Ok(())
    }

    fn delete(&mut self, request: &DeleteRequest<'_>) -> Result<(), Code> {
        self.asker.standing?;
        let path = request.path.as_deref().ok_or(Code::MARSHALLING_ERROR)?;
        let parent_path = path::parent(path)
            .filter(|_| !path.contains('\0') && !path::is_special(path))
            .ok_or(Code::BAD_ARGUMENTS)?;
        let mut parent = self.view(parent_path).ok_or(Code::NO_NODE)?;
        self.permit(&parent, PARENT_OF_DELETED)?;
        let child = self.view(path).ok_or(Code::NO_NODE)?;
        check_version(child.stat.version, request.version)?;
        if child.children > 0 {
            return Err(Code::NOT_EMPTY);
        }
        write::delete(self.to, path);
        let parent_before = self.digest_of(&parent, parent_path);
        parent.stat.pzxid = self.header.zxid;
        parent.children = parent.children.saturating_sub(1);
        self.put(parent_path, parent_before, Some(parent));
        let child_before = self.digest_of(&child, path);
        self.put(path, child_before, None);
        Ok(())
    }

    fn set_data(&mut self, request: &SetDataRequest<'_>) -> Result<(), Code> {
        self.asker.standing?;
        let path = request.path.as_deref().ok_or(Code::BAD_ARGUMENTS)?;
        path::validate(path).map_err(|_| Code::BAD_ARGUMENTS)?;
        let mut node = self.view(path).ok_or(Code::NO_NODE)?;
        self.permit(&node, perms::WRITE)?;
        check_version(node.stat.version, request.version)?;
        let version = node.stat.version.wrapping_add(1);
        write::set_data(self.to, path, request.data, version);
        let before = self.digest_of(&node, path);
        node.stat.version = version;
        node.stat.mtime = self.header.time;
        node.stat.mzxid = self.header.zxid;
        node.crc = self.crc(path, request.data);
        self.put(path, before, Some(node));
        Ok(())
    }

    fn set_acl(&mut self, request: &SetAclRequest<'_>) -> Result<(), Code> {
        self.asker.standing?;
        let path = request.path.as_deref().ok_or(Code::BAD_ARGUMENTS)?;
        path::validate(path).map_err(|_| Code::BAD_ARGUMENTS)?;
        let acl = self.fix_acl(&request.acl)?;
        let mut node = self.view(path).ok_or(Code::NO_NODE)?;
        self.permit(&node, perms::ADMIN)?;
        check_version(node.stat.aversion, request.version)?;
        let aversion = node.stat.aversion.wrapping_add(1);
        let acl_bytes = acl.as_ref().map(|acl| crate::tree::encode_acl(acl));
        write::set_acl(self.to, path, acl_bytes.as_deref().unwrap_or(OPEN_ACL), aversion);
        let before = self.digest_of(&node, path);
        node.stat.aversion = aversion;
        // Writes behind this one are judged by the new list, where Java waits until it is applied (G-17).
        node.acl = acl.map_or(AclOf::Table(AclId::OPEN), |acl| AclOf::Own(acl.into()));
        self.put(path, before, Some(node));
        Ok(())
    }

    /// Lists the session's ephemerals, so that every server deletes the same ones (G-06).
    fn close_session(&mut self) {
        let session = self.asker.session.0;
        let mut paths: BTreeSet<String> = self.tree.ephemerals_of(session).into_iter().collect();
        for (path, created) in self.prep.pending.owned_by(session) {
            if created {
                paths.insert(path.to_owned());
            } else {
                paths.remove(path);
            }
        }
        let paths: Vec<String> = paths.into_iter().collect();
        write::close_session(self.to, &paths);
        for path in &paths {
            if let Some(parent_path) = path::parent(path)
                && let Some(mut parent) = self.view(parent_path)
            {
                let before = self.digest_of(&parent, parent_path);
                parent.stat.pzxid = self.header.zxid;
                parent.children = parent.children.saturating_sub(1);
                self.put(parent_path, before, Some(parent));
            }
            if let Some(node) = self.view(path) {
                let before = self.digest_of(&node, path);
                self.put(path, before, None);
            }
        }
    }

    fn view(&self, path: &str) -> Option<View> {
        self.prep.pending.view(self.tree, path)
    }

    fn permit(&self, node: &View, wanted: i32) -> Result<(), Code> {
        if self.asker.skip_acl || auth::permits(node.acl(self.tree), wanted, self.asker.who) {
            Ok(())
        } else {
            Err(Code::NO_AUTH)
        }
    }

    /// The list to store; `None` for the open one, which is nearly always asked for and needs no work.
    fn fix_acl<'a>(
        &self,
        asked: &jute::Vector<'a, jute::data::Acl<'a>>,
    ) -> Result<Option<Vec<Acl>>, Code> {
        if let jute::Vector::Raw { count: 1, bytes, .. } = asked
            && *bytes == &OPEN_ACL[4..]
        {
            return Ok(None);
        }
        if asked.iter().any(|acl| acl.id.scheme.is_none()) {
            return Err(Code::INVALID_ACL);
        }
        let fixed = auth::fix(crate::tree::own_acl(asked.iter()), self.asker.who)
            .map_err(|_| Code::INVALID_ACL)?;
        Ok(Some(fixed))
    }

    fn crc(&self, path: &str, data: Option<&[u8]>) -> u32 {
        let path = if path == "/" { "" } else { path };
        if self.prep.wanted { digest::start(path.as_bytes(), data) } else { 0 }
    }

    fn digest_of(&self, view: &View, path: &str) -> u64 {
        if self.prep.wanted { view.digest(path) } else { 0 }
    }

    /// Notes the new state of a path and moves the predicted digest on. `before`: what the path added to it so far.
    fn put(&mut self, path: &str, before: u64, view: Option<View>) {
        let after = view.as_ref().map_or(0, |view| self.digest_of(view, path));
        self.prep.digest = self.prep.digest.wrapping_sub(before).wrapping_add(after);
        self.prep.pending.put(path, self.zxid, view);
    }
}

fn check_version(current: i32, expected: i32) -> Result<(), Code> {
    if expected == -1 || expected == current { Ok(()) } else { Err(Code::BAD_VERSION) }
}

/// What the flags of a create ask for.
struct Mode {
    ephemeral: bool,
    sequential: bool,
}

impl Mode {
    /// Flags 4 to 6 belong to operations of their own: under create, 4 makes an ordinary znode and TTLs are refused, as
    /// they are in Java when extended types are off (P-36).
    fn decode(flags: i32) -> Result<Self, Code> {
        match flags {
            0..=3 => Ok(Self { ephemeral: flags & 1 != 0, sequential: flags & 2 != 0 }),
            4 => Ok(Self { ephemeral: false, sequential: false }),
            5 | 6 => Err(Code::UNIMPLEMENTED),
            _ => Err(Code::BAD_ARGUMENTS),
        }
    }
}
