//! What a transaction does to the tree.
//!
//! Replaying over a snapshot that Java took while writes went on meets znodes that are newer than the transaction;
//! the rules for that (D-62..D-64, G-05) are the same code as for live transactions, as in Java.

use super::digest::StatPart;
use super::node::{NO_NODE, NewName};
use super::txn::{Create, CreateKind, Txn};
use super::{AclId, NodeId, Tree};
use crate::model::{Code, TTL_MAX_MS, Zxid, op, path};
use jute::Reader;
use jute::data::Stat;
use jute::txn::TxnHeader;
use std::borrow::Cow;

/// One change that may fire watches. Access lists are as they were at that moment.
#[derive(Clone, Debug, PartialEq)]
pub enum Change<'a> {
    Created { path: Cow<'a, str>, acl: AclId, parent_acl: AclId, data_len: usize },
    Deleted { path: Cow<'a, str>, acl: AclId, parent_acl: AclId },
    DataChanged { path: Cow<'a, str>, acl: AclId, data_len: usize },
}

/// What one transaction changed, in order. Its access lists can be read until the next transaction.
pub type Effects<'a> = Vec<Change<'a>>;

/// The result of a transaction, for the client whose request it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied<'a> {
    /// Type of the (sub-)transaction; `op::ERROR` for a refusal.
    pub kind: i32,
    pub code: Code,
    pub path: Option<Cow<'a, str>>,
    pub stat: Option<Stat>,
    /// The results of the parts of a multi.
    pub parts: Vec<Applied<'a>>,
}

impl<'a> Applied<'a> {
    fn new(kind: i32, result: Result<Option<Stat>, Code>, path: Option<Cow<'a, str>>) -> Self {
        let (code, stat) = match result {
            Ok(stat) => (Code::OK, stat),
            Err(code) => (code, None),
        };
        Self { kind, code, path, stat, parts: Vec::new() }
    }
}

impl Tree {
    /// Applies one transaction and advances [`Tree::last_zxid`]. Total: whatever cannot be done is a code.
    ///
    /// Source: `DataTree.processTxn`, ZooKeeper 3.9.5.
    pub fn apply<'a>(
        &mut self,
        header: &TxnHeader,
        txn: &Txn<'a>,
        effects: &mut Effects<'a>,
    ) -> Applied<'a> {
        self.acls.sweep();
        let applied = self.apply_part(header, txn, effects);
        // After the whole, so that no snapshot claims a half-applied multi (ZOOKEEPER-3127).
        if let Some(zxid) = Zxid::from_wire(header.zxid) {
            if self.last_zxid < zxid {
                self.config_origin.judge(zxid.epoch());
            }
            self.last_zxid = self.last_zxid.max(zxid);
            self.digests.note(zxid, self.digest);
        }
        applied
    }

    fn apply_part<'a>(
        &mut self,
        header: &TxnHeader,
        txn: &Txn<'a>,
        effects: &mut Effects<'a>,
    ) -> Applied<'a> {
        let kind = header.kind;
        match txn {
            Txn::Create(create) => {
                let result = self.apply_create(header, create, effects);
                if result == Err(Code::NODE_EXISTS) && kind == op::CREATE {
                    self.raise_parent(&create.path, create.parent_cversion, header.zxid);
                }
                Applied::new(kind, result.map(Some), Some(create.path.clone()))
            }
            Txn::Delete { path } => Applied::new(
                kind,
                self.apply_delete(header.zxid, path.clone(), effects).map(|()| None),
                Some(path.clone()),
            ),
            Txn::SetData { path, data, version } => {
                if kind == op::RECONFIG {
                    self.replace_config();
                }
                let result = self.find(path).ok_or(Code::NO_NODE).map(|id| {
                    let bytes_before = self.nodes.get(id).data_bytes() as i64;
                    self.set_data(id, *data, |node| {
                        node.mtime = header.time;
                        node.mzxid = header.zxid;
                        node.version = *version;
                    });
                    effects.push(Change::DataChanged {
                        path: path.clone(),
                        acl: self.znode(id).acl(),
                        data_len: data.map_or(0, <[u8]>::len),
                    });
                    let stat = self.znode(id).stat();
                    self.count_in_quota(path, i64::from(stat.data_length) - bytes_before, 0);
                    Some(stat)
                });
                Applied::new(kind, result, Some(path.clone()))
            }
            Txn::SetAcl { path, acl, version } => {
                let result = self.find(path).ok_or(Code::NO_NODE).and_then(|id| {
                    self.replace_acl(id, acl)?;
                    self.change(id, |node| node.aversion = *version);
                    Ok(Some(self.znode(id).stat()))
                });
                Applied::new(kind, result, Some(path.clone()))
            }
            Txn::CreateSession { timeout_ms } => {
                self.sessions.insert(header.client_id, *timeout_ms);
                Applied::new(kind, Ok(None), None)
            }
            Txn::CloseSession { paths } => {
                for path in paths.iter().flat_map(jute::Vector::iter).flatten() {
                    self.delete_ephemeral(header.zxid, path, effects);
                }
                // Ephemerals that the list lacks: its server lists none, or they were created after the list was made.
                for path in self.ephemerals_of(header.client_id) {
                    self.delete_ephemeral(header.zxid, Cow::Owned(path), effects);
                }
                self.sessions.remove(&header.client_id);
                Applied::new(kind, Ok(None), None)
            }
            Txn::Error(code) => Applied::new(kind, Err(*code), None),
            Txn::Check { path } => Applied::new(kind, Ok(None), Some(path.clone())),
            Txn::Multi(parts) => self.apply_multi(header, parts, effects),
        }
    }

    fn apply_multi<'a>(
        &mut self,
        header: &TxnHeader,
        parts: &jute::Vector<'a, jute::txn::Txn<'a>>,
        effects: &mut Effects<'a>,
    ) -> Applied<'a> {
        // If one part was refused none is applied; those before it are answered as done, those after as skipped (P-64).
        let failed = parts.iter().any(|part| part.kind == op::ERROR);
        let mut whole = Applied::new(header.kind, Ok(None), None);
        let mut past_failure = false;
        for part in parts.iter() {
            past_failure |= part.kind == op::ERROR;
            let txn = match Txn::decode(part.kind, &mut Reader::new(part.data.unwrap_or_default()))
            {
                Ok(txn)
                    if !matches!(
                        txn,
                        Txn::Multi(_) | Txn::CreateSession { .. } | Txn::CloseSession { .. }
                    ) =>
                {
                    txn
                }
                // Java stops here and leaves the rest undone, without an error of its own.
                _ => break,
            };
            let (kind, txn) = match txn {
                Txn::Error(_) => (op::ERROR, txn),
                _ if failed && past_failure => (op::ERROR, Txn::Error(Code::RUNTIME_INCONSISTENCY)),
                _ if failed => (op::ERROR, Txn::Error(Code::OK)),
                _ => (part.kind, txn),
            };
            let applied = self.apply_part(&TxnHeader { kind, ..*header }, &txn, effects);
            if whole.code.is_ok() {
                whole.code = applied.code;
            }
            whole.parts.push(applied);
        }
        whole
    }

    fn apply_create<'a>(
        &mut self,
        header: &TxnHeader,
        create: &Create<'a>,
        effects: &mut Effects<'a>,
    ) -> Result<Stat, Code> {
        // Java logs such a create and exits on it, then and at every later start; here such a log loads (P-39).
        if matches!(create.kind, CreateKind::Ttl(ttl_ms) if !(1..=TTL_MAX_MS).contains(&ttl_ms)) {
            return Err(Code::BAD_ARGUMENTS);
        }
        let parent =
            path::parent(&create.path).and_then(|path| self.find(path)).ok_or(Code::NO_NODE)?;
        let hash = self.hash_path(&create.path);
        if let Some(existing) = self.find_hashed(&create.path, hash) {
            self.replace_acl(existing, create.acl)?;
            return Err(Code::NODE_EXISTS);
        }
        let acl = self.acls.acquire(create.acl).map_err(|_| Code::MARSHALLING_ERROR)?;
        let parent_acl = self.znode(parent).acl();
        self.raise_cversion(parent, create.parent_cversion, header.zxid);
        let stat = StatPart {
            czxid: header.zxid,
            mzxid: header.zxid,
            pzxid: header.zxid,
            ctime: header.time,
            mtime: header.time,
            ephemeral_owner: create.kind.owner(header.client_id),
            ..StatPart::default()
        };
        let crc = self.start_crc(&create.path, create.data);
        let name = NewName { path: create.path.as_bytes(), hash, crc };
        let id = self.place(parent, name, create.data, acl, &stat);
        let (path, data_len) = (create.path.clone(), create.data.map_or(0, <[u8]>::len));
        let stat = self.znode(id).stat();
        self.quota_of_created(&path, data_len);
        effects.push(Change::Created { path, acl, parent_acl, data_len });
        Ok(stat)
    }

    fn apply_delete<'a>(
        &mut self,
        zxid: i64,
        path: Cow<'a, str>,
        effects: &mut Effects<'a>,
    ) -> Result<(), Code> {
        let parent = path::parent(&path).and_then(|path| self.find(path)).ok_or(Code::NO_NODE)?;
        // Raised even when the child does not exist any more: the parent must show the deletion (D-63).
        self.change(parent, |node| node.pzxid = node.pzxid.max(zxid));
        let id = self.find(&path).filter(|&id| id != parent).ok_or(Code::NO_NODE)?;
        let (acl, parent_acl) = (self.znode(id).acl(), self.znode(parent).acl());
        let bytes = self.nodes.get(id).data_bytes();
        self.remove_subtree(id);
        self.quota_of_deleted(&path, bytes);
        effects.push(Change::Deleted { path, acl, parent_acl });
        Ok(())
    }

    /// Removes a znode with all below it. Live transactions only ever delete leaves; replay over a fuzzy snapshot may
    /// meet children that a later transaction creates again (ZOOKEEPER-1573), which Java would leave orphaned.
    fn remove_subtree(&mut self, id: NodeId) {
        let mut at = id;
        loop {
            let node = self.nodes.get(at);
            if node.first_child != NO_NODE {
                at = node.first_child;
                continue;
            }
            let parent = node.parent;
            self.remove(at);
            if at == id {
                return;
            }
            at = parent;
        }
    }

    fn delete_ephemeral<'a>(&mut self, zxid: i64, path: Cow<'a, str>, effects: &mut Effects<'a>) {
        // A znode that does not exist any more was deleted by a transaction before this one.
        let _gone = self.apply_delete(zxid, path, effects);
    }

    fn replace_acl(&mut self, id: NodeId, acl: &[u8]) -> Result<(), Code> {
        let acl = self.acls.acquire(acl).map_err(|_| Code::MARSHALLING_ERROR)?;
        self.save_for_freeze(id);
        let node = self.nodes.get_mut(id);
        let old = AclId(std::mem::replace(&mut node.acl, acl.0));
        self.acls.release(old);
        Ok(())
    }

    fn raise_parent(&mut self, path: &str, cversion: i32, zxid: i64) {
        if let Some(parent) = path::parent(path).and_then(|path| self.find(path)) {
            self.raise_cversion(parent, cversion, zxid);
        }
    }

    /// Raises cversion and pzxid together, and only upwards (ZOOKEEPER-3125).
    fn raise_cversion(&mut self, parent: NodeId, cversion: i32, zxid: i64) {
        let now = self.nodes.get(parent).cversion;
        let cversion = if cversion == -1 { now.wrapping_add(1) } else { cversion };
        if now < cversion {
            self.peaks.note_sequence(cversion);
            self.change(parent, |node| {
                node.cversion = cversion;
                node.pzxid = zxid;
            });
        }
    }
}
