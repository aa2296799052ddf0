//! Preparing writes: a request becomes a transaction, or a refusal with a zxid of its own (P-36..P-46, P-69, G-01).
//!
//! A write is checked against the tree plus everything proposed before it. The tree digest that it leads to is predicted and
//! goes into its log entry, where apply finds it again (D-68).

use super::access;
use super::outstanding_changes::{AclOf, ChangeCounts, Pending, View};
use super::quota_log::QuotaLog;
pub use super::write_context::{Asker, Rules};
use super::write_request::{Write, data_len};
use crate::auth;
use crate::model::{Acl, Code, Epoch, OPEN_ACL, Owner, Zxid, op, path, perms};
use crate::tree::digest::{self, DIGEST_VERSION};
use crate::tree::txn::write;
use crate::tree::{AclId, Tree};
use jute::proto::{CheckVersionRequest, DeleteRequest, SetAclRequest, SetDataRequest};
use jute::txn::{TxnDigest, TxnHeader};
use jute::{Encode, put_i32};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bytes of a [`TxnDigest`] in an entry.
const DIGEST_LEN: usize = 12;

/// What became of a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Prepared {
    /// To be proposed; its entry was appended.
    Proposal(Zxid),
    /// Undecodable: answered with this code and never proposed, so no zxid is used twice (G-01).
    Refused(Code),
}

/// Prepares writes (ZooKeeper: `PrepRequestProcessor`). Owns the zxids: each one it gives out is proposed.
pub struct Prep {
    pub(super) pending: Pending,
    last: Zxid,
    /// The zxids of an epoch end with this counter; `None`: a standalone server has no epochs.
    counter_max: Option<u32>,
    /// Digest of the tree once everything proposed is applied.
    pub(super) digest: u64,
    wanted: bool,
    /// A reconfiguration that is proposed and not in the tree.
    pub(super) reconfiguring: Option<Zxid>,
    pub(super) rules: Rules,
    pub(super) quota_log: QuotaLog,
}

impl Prep {
    /// * `tree`: with nothing proposed beyond it.
    pub fn new(tree: &Tree, seed: u64, rules: Rules) -> Self {
        Self {
            pending: Pending::new(seed),
            last: tree.last_zxid(),
            counter_max: None,
            digest: tree.digest(),
            wanted: tree.options().digest,
            reconfiguring: None,
            rules,
            quota_log: QuotaLog::default(),
        }
    }

    /// The processor of a leader whose epoch begins.
    ///
    /// * `tree`: with all of the history this epoch goes on from. `counter_max`: of the last zxid of the epoch.
    pub fn leading(tree: &Tree, epoch: Epoch, counter_max: u32, seed: u64, rules: Rules) -> Self {
        let (last, counter_max) = (Zxid::new(epoch, 0), Some(counter_max));
        Self { last, counter_max, ..Self::new(tree, seed, rules) }
    }

    fn next_zxid(&mut self) -> Option<Zxid> {
        self.last = self.after_last()?;
        Some(self.last)
    }

    const fn after_last(&self) -> Option<Zxid> {
        match self.counter_max {
            Some(max) if max <= self.last.counter() => None,
            Some(_) => self.last.next(),
            None => self.last.plus_one(),
        }
    }

    /// Whether there are no zxids left.
    pub const fn is_used_up(&self) -> bool {
        self.after_last().is_none()
    }

    /// The last zxid given out.
    pub const fn last(&self) -> Zxid {
        self.last
    }

    /// Writes that exceeded a hard quota, by namespace.
    pub const fn quota_refusals(&mut self) -> &mut super::Namespaces {
        self.quota_log.refused()
    }

    pub const fn changes(&self) -> ChangeCounts {
        self.pending.counts()
    }

    /// An error transaction, for a client that waits for its answer on another server.
    ///
    /// `None` when there are no zxids left.
    pub fn refuse(&mut self, asker: &Asker<'_>, code: Code, to: &mut Vec<u8>) -> Option<Zxid> {
        let zxid = self.next_zxid()?;
        let header = TxnHeader {
            client_id: asker.session.0,
            cxid: asker.xid,
            zxid: zxid.to_wire(),
            time: asker.wall_ms,
            kind: op::ERROR,
        };
        write_refusal(to, header, code);
        Some(zxid)
    }

    /// A transaction that changes nothing and answers no client; `None` when there are no zxids left.
    pub fn nothing(&mut self, wall_ms: i64, to: &mut Vec<u8>) -> Option<Zxid> {
        let zxid = self.next_zxid()?;
        let zxid_raw = zxid.to_wire();
        let header =
            TxnHeader { client_id: 0, cxid: 0, zxid: zxid_raw, time: wall_ms, kind: op::ERROR };
        write_refusal(to, header, Code::OK);
        Some(zxid)
    }

    /// Everything through `through` is in the tree now.
    pub fn applied(&mut self, through: Zxid) {
        self.reconfiguring.take_if(|zxid| *zxid <= through);
        self.pending.applied(through);
    }

    /// Prepares one write and appends its log entry to `to`.
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
        let Some(write) = Write::decode(kind, body) else {
            return Some(Prepared::Refused(Code::MARSHALLING_ERROR));
        };
        if self.pending.is_empty() {
            self.digest = tree.digest();
        }
        let zxid = self.next_zxid()?;
        let start = to.len();
        let header = TxnHeader {
            client_id: asker.session.0,
            cxid: asker.xid,
            zxid: zxid.to_wire(),
            time: asker.wall_ms,
            kind,
        };
        header.encode(to);
        let mut preparation =
            Preparation { prep: self, tree, asker, header, zxid, to, start, bare: false };
        let prepared = preparation.prepare(&write);
        let bare = preparation.bare;
        match prepared {
            Ok(()) if self.wanted && !bare => {
                TxnDigest { version: DIGEST_VERSION, tree_digest: self.digest as i64 }.encode(to);
            }
            Ok(()) => {}
            Err(code) => {
                // A refused write has a place in the history too: an error transaction, without a digest.
                to.truncate(start);
                write_refusal(to, TxnHeader { kind: op::ERROR, ..header }, code);
            }
        }
        Some(Prepared::Proposal(zxid))
    }
}

/// Whether a write makes an ephemeral znode, so that its session has to be global.
///
/// Source: `QuorumZooKeeperServer.checkUpgradeSession`.
pub fn creates_ephemeral(kind: i32, body: &[u8]) -> bool {
    let is_one =
        |write: &Write<'_>| matches!(write, Write::Create(create) if create.is_ephemeral());
    match Write::decode(kind, body) {
        Some(Write::Multi(parts)) => parts.iter().any(|(_, part)| is_one(part)),
        Some(write) => is_one(&write),
        None => false,
    }
}

/// Whether the body of a write can be read, so that a leader can prepare it.
pub fn is_readable(kind: i32, body: &[u8]) -> bool {
    Write::decode(kind, body).is_some()
}

/// Writes an error transaction.
///
/// * `header`: of kind [`op::ERROR`].
fn write_refusal(to: &mut Vec<u8>, header: TxnHeader, code: Code) {
    header.encode(to);
    put_i32(to, code.0);
}

/// One write that becomes a transaction.
pub(super) struct Preparation<'j> {
    pub prep: &'j mut Prep,
    pub tree: &'j Tree,
    pub asker: &'j Asker<'j>,
    pub header: TxnHeader,
    pub(super) zxid: Zxid,
    /// Where its log entry is written.
    pub to: &'j mut Vec<u8>,
    /// Where the entry begins in `to`.
    start: usize,
    /// The entry gets no digest.
    bare: bool,
}

impl Preparation<'_> {
    pub(super) fn prepare(&mut self, write: &Write<'_>) -> Result<(), Code> {
        match write {
            Write::Create(create) => self.create(create),
            Write::Delete(delete) => self.delete(delete),
            Write::DeleteContainer(path) => self.delete_container(path.as_deref()),
            Write::SetData(set) => self.set_data(set),
            Write::SetAcl(set) => self.set_acl(set),
            Write::Check(check) => self.check(check),
            Write::Multi(parts) => self.multi(parts),
            Write::BadMulti => Err(Code::MARSHALLING_ERROR),
            Write::CreateSession { timeout_ms } => {
                put_i32(self.to, *timeout_ms);
                Ok(())
            }
            Write::Reconfig(request) => self.reconfig(request),
            Write::CloseSession => {
                self.close_session();
                Ok(())
            }
        }
    }

    fn delete(&mut self, request: &DeleteRequest<'_>) -> Result<(), Code> {
        self.asker.standing?;
        let path = request.path.as_deref().ok_or(Code::MARSHALLING_ERROR)?;
        let parent_path = path::parent(path)
            .filter(|_| !path.contains('\0') && !path::is_special(path))
            .ok_or(Code::BAD_ARGUMENTS)?;
        let parent = self.view(parent_path).ok_or(Code::NO_NODE)?;
        self.permit(&parent, perms::DELETE)?;
        let child = self.view(path).ok_or(Code::NO_NODE)?;
        check_version(child.stat.version, request.version)?;
        if child.children > 0 {
            return Err(Code::NOT_EMPTY);
        }
        self.remove(path, &child, parent_path, parent);
        Ok(())
    }

    /// Checked again: pending changes may have used the znode since it was found empty and old enough.
    fn delete_container(&mut self, path: Option<&str>) -> Result<(), Code> {
        let path = path.ok_or(Code::MARSHALLING_ERROR)?;
        let parent_path =
            path::parent(path).filter(|_| !path::is_special(path)).ok_or(Code::BAD_ARGUMENTS)?;
        let node = self.view(path).ok_or(Code::NO_NODE)?;
        if node.children > 0 {
            return Err(Code::NOT_EMPTY);
        }
        let known = self.tree.find(path).map(|id| self.tree.znode(id).stat_part().czxid);
        let has_ended = match self.tree.options().owner(node.stat.ephemeral_owner) {
            Owner::Container => true,
            Owner::Ttl(ttl_ms) => self.header.time.saturating_sub(node.stat.mtime) > ttl_ms,
            Owner::Nobody | Owner::Session(_) => false,
        };
        if !has_ended || known != Some(node.stat.czxid) {
            return Err(Code::BAD_VERSION);
        }
        let parent = self.view(parent_path).ok_or(Code::NO_NODE)?;
        self.remove(path, &node, parent_path, parent);
        Ok(())
    }

    fn remove(&mut self, path: &str, node: &View, parent_path: &str, mut parent: View) {
        write::delete(self.to, path);
        let parent_before = self.digest_of(&parent, parent_path);
        parent.stat.pzxid = self.header.zxid;
        parent.children = parent.children.saturating_sub(1);
        self.put(parent_path, parent_before, Some(parent));
        let before = self.digest_of(node, path);
        self.put(path, before, None);
    }

    /// Changes nothing: it only lets the multi go on (P-51).
    fn check(&mut self, request: &CheckVersionRequest<'_>) -> Result<(), Code> {
        self.asker.standing?;
        let path = request.path.as_deref().ok_or(Code::BAD_ARGUMENTS)?;
        path::validate(path).map_err(|_| Code::BAD_ARGUMENTS)?;
        let node = self.view(path).ok_or(Code::NO_NODE)?;
        self.permit(&node, perms::READ)?;
        check_version(node.stat.version, request.version)?;
        write::check(self.to, path, node.stat.version.wrapping_add(1));
        Ok(())
    }

    fn set_data(&mut self, request: &SetDataRequest<'_>) -> Result<(), Code> {
        self.asker.standing?;
        let path = request.path.as_deref().ok_or(Code::BAD_ARGUMENTS)?;
        path::validate(path).map_err(|_| Code::BAD_ARGUMENTS)?;
        let mut node = self.view(path).ok_or(Code::NO_NODE)?;
        self.permit(&node, perms::WRITE)?;
        let len = data_len(request.data);
        self.check_quota(path, 0, len as i64 - node.data_len as i64)?;
        check_version(node.stat.version, request.version)?;
        let version = node.stat.version.wrapping_add(1);
        write::set_data(self.to, path, request.data, version);
        self.fits()?;
        let before = self.digest_of(&node, path);
        node.stat.version = version;
        node.stat.mtime = self.header.time;
        node.stat.mzxid = self.header.zxid;
        (node.crc, node.data_len) = (self.crc(path, request.data), len);
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
        self.fits()?;
        let before = self.digest_of(&node, path);
        node.stat.aversion = aversion;
        // Writes after this one are checked with the new list; in Java only once it is applied (G-17).
        node.acl = acl.map_or(AclOf::Table(AclId::OPEN), |acl| AclOf::Own(Arc::new(acl.into())));
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
        if self.prep.rules.lists_closed {
            let list = self.to.len();
            write::close_session(self.to, &paths);
            if self.fits().is_err() {
                // Java could not read so long an entry again, nor one without a list but with a digest. Without both it is
                // what old servers wrote, and apply finds the znodes by their owner.
                self.to.truncate(list);
                self.bare = true;
            }
        }
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

    /// Refuses an entry that would be too long to be read again. Called before anything is noted as changed.
    pub(super) fn fits(&self) -> Result<(), Code> {
        let len = self.to.len() - self.start + DIGEST_LEN;
        if len > self.prep.rules.entry_max { Err(Code::MARSHALLING_ERROR) } else { Ok(()) }
    }

    pub(super) fn view(&self, path: &str) -> Option<View> {
        self.prep.pending.view(self.tree, path)
    }

    pub(super) fn permit(&self, node: &View, wanted: i32) -> Result<(), Code> {
        let Asker { schemes, identities, .. } = self.asker;
        if self.asker.skip_acl || auth::permits(schemes, node.acl(self.tree), wanted, identities) {
            Ok(())
        } else {
            Err(Code::NO_AUTH)
        }
    }

    /// The list to store; `None` for the open one.
    pub(super) fn fix_acl<'a>(
        &self,
        asked: &jute::Vector<'a, jute::data::Acl<'a>>,
    ) -> Result<Option<Vec<Acl>>, Code> {
        access::fix_acl(self.asker.schemes, self.asker.identities, asked)
    }

    pub(super) fn crc(&self, path: &str, data: Option<&[u8]>) -> u32 {
        let path = if path == "/" { "" } else { path };
        if self.prep.wanted { digest::start(path.as_bytes(), data) } else { 0 }
    }

    pub(super) fn digest_of(&self, view: &View, path: &str) -> u64 {
        if self.prep.wanted { view.digest(path) } else { 0 }
    }

    /// Notes the new state of a path and moves the predicted digest on. `before`: what the path added to it so far.
    pub(super) fn put(&mut self, path: &str, before: u64, view: Option<View>) {
        let after = view.as_ref().map_or(0, |view| self.digest_of(view, path));
        self.prep.digest = self.prep.digest.wrapping_sub(before).wrapping_add(after);
        self.prep.pending.put(path, self.zxid, view);
    }
}

fn check_version(current: i32, expected: i32) -> Result<(), Code> {
    if expected == -1 || expected == current { Ok(()) } else { Err(Code::BAD_VERSION) }
}
