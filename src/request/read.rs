//! What is answered under the shared lock: reads, pings, and the watches that clients bring back after a reconnect.

use super::{Conn, Outgoing, Shared, reply};
use crate::model::{Acl, Code, EventKind, Identity, op, perms};
use crate::tree::{Data, NodeId, Tree, WatchKind, Znode};
use jute::proto::{GetDataRequest, ReplyHeader, RequestHeader, SetWatches, SetWatches2};
use jute::{Decode, Encode, Reader, Ustring, Vector, put_i32, put_string};

/// Operations answered here.
pub(super) const fn is_read(kind: i32) -> bool {
    matches!(
        kind,
        op::EXISTS
            | op::GET_DATA
            | op::GET_ACL
            | op::GET_CHILDREN
            | op::GET_CHILDREN2
            | op::MULTI_READ
            | op::PING
            | op::SET_WATCHES
            | op::SET_WATCHES2
    )
}

/// One hold of the shared lock.
pub(super) struct Reading<'h> {
    pub shared: &'h Shared,
    pub tree: &'h Tree,
    pub conn: &'h Conn,
}

impl Reading<'_> {
    /// Answers one request. An undecodable body is -5 and costs the client nothing else (P-09a).
    pub fn serve(&self, request: RequestHeader, body: &[u8], out: &mut Outgoing) {
        let start = out.bytes.len();
        let header = reply::header(request.xid, self.tree.last_zxid().to_wire(), Code::OK);
        let done = match request.kind {
            op::PING => {
                reply::reply(out, ReplyHeader { xid: crate::model::xid::PING, ..header }, |_| {});
                Ok(())
            }
            op::SET_WATCHES | op::SET_WATCHES2 => self.set_watches(request.kind, header, body, out),
            op::GET_ACL => self.get_acl(header, body, out),
            op::MULTI_READ => self.multi_read(header, body, out),
            kind => self.lookup(kind, header, body, out),
        };
        if let Err(code) = done {
            out.truncate(start);
            reply::reply(out, ReplyHeader { err: code.0, ..header }, |_| {});
        }
    }

    fn lookup(
        &self,
        kind: i32,
        header: ReplyHeader,
        body: &[u8],
        out: &mut Outgoing,
    ) -> Result<(), Code> {
        // All four requests are a path and a watch flag.
        let request: GetDataRequest<'_> = decode(body)?;
        let path = request.path.as_deref().ok_or(Code::MARSHALLING_ERROR)?;
        if kind == op::EXISTS && path.contains('\0') {
            return Err(Code::BAD_ARGUMENTS);
        }
        let found = self.tree.find(path);
        if let Some(id) = found {
            self.permitted(id)?;
        }
        // exists watches what is not there yet; the others only what they found (P-42, P-43).
        if request.watch && (found.is_some() || kind == op::EXISTS) {
            let watch = if matches!(kind, op::EXISTS | op::GET_DATA) {
                WatchKind::DATA
            } else {
                WatchKind::CHILD
            };
            self.shared.state.watches.add(path, self.conn.id, watch);
        }
        let znode = self.tree.znode(found.ok_or(Code::NO_NODE)?);
        out.frame(|out| {
            header.encode(&mut out.bytes);
            match kind {
                op::GET_DATA => put_data(znode, out),
                op::GET_CHILDREN | op::GET_CHILDREN2 => {
                    put_i32(&mut out.bytes, znode.children() as i32);
                    znode.child_names().for_each(|name| put_string(&mut out.bytes, name));
                }
                _ => {}
            }
            if kind != op::GET_CHILDREN {
                znode.stat().encode(&mut out.bytes);
            }
        });
        Ok(())
    }

    /// Who may not administer the znode sees whose entries there are, but no password hashes (P-45).
    fn get_acl(&self, header: ReplyHeader, body: &[u8], out: &mut Outgoing) -> Result<(), Code> {
        let path: Ustring<'_> = decode(body)?;
        let id =
            self.tree.find(path.as_deref().ok_or(Code::MARSHALLING_ERROR)?).ok_or(Code::NO_NODE)?;
        let znode = self.tree.znode(id);
        let acl: &[Acl] = self.tree.acl(znode.acl());
        let who = self.conn.who();
        if !self.shared.permits(acl, perms::READ | perms::ADMIN, who) {
            return Err(Code::NO_AUTH);
        }
        let masked = !self.shared.permits(acl, perms::ADMIN, who);
        reply::reply(out, header, |to| {
            if masked {
                let mask = |entry: &Acl| match entry.who.id.split_once(':') {
                    Some((user, _)) if &*entry.who.scheme == "digest" => Acl {
                        perms: entry.perms,
                        who: Identity::new("digest", &format!("{user}:x")),
                    },
                    _ => entry.clone(),
                };
                let masked: Vec<Acl> = acl.iter().map(mask).collect();
                to.extend_from_slice(&crate::tree::encode_acl(&masked));
            } else {
                to.extend_from_slice(self.tree.acl_bytes(znode.acl()));
            }
            znode.stat().encode(to);
        });
        Ok(())
    }

    pub(super) fn permitted(&self, id: NodeId) -> Result<(), Code> {
        let acl: &[Acl] = self.tree.acl(self.tree.znode(id).acl());
        if self.shared.permits(acl, perms::READ, self.conn.who()) {
            Ok(())
        } else {
            Err(Code::NO_AUTH)
        }
    }

    /// Tells a client what it missed while it was away, and watches the rest again (P-58, P-59, P-75).
    ///
    /// Unlike Java's, an event about a znode the client may not read is kept from it, as one that fires would be (P-32).
    fn set_watches(
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
        if !request.persistent_watches.is_empty()
            || !request.persistent_recursive_watches.is_empty()
        {
            return Err(Code::UNIMPLEMENTED); // As addWatch itself, so far.
        }
        let since = request.relative_zxid;
        for path in paths(&request.data_watches) {
            match self.tree.find(&path) {
                None => self.missed(EventKind::NodeDeleted, None, &path, out),
                Some(id) if self.tree.znode(id).stat().mzxid > since => {
                    self.missed(EventKind::NodeDataChanged, Some(id), &path, out);
                }
                Some(_) => self.shared.state.watches.add(&path, self.conn.id, WatchKind::DATA),
            }
        }
        for path in paths(&request.exist_watches) {
            match self.tree.find(&path) {
                Some(id) => self.missed(EventKind::NodeCreated, Some(id), &path, out),
                None => self.shared.state.watches.add(&path, self.conn.id, WatchKind::DATA),
            }
        }
        for path in paths(&request.child_watches) {
            match self.tree.find(&path) {
                None => self.missed(EventKind::NodeDeleted, None, &path, out),
                Some(id) if self.tree.znode(id).stat().pzxid > since => {
                    self.missed(EventKind::NodeChildrenChanged, Some(id), &path, out);
                }
                Some(_) => self.shared.state.watches.add(&path, self.conn.id, WatchKind::CHILD),
            }
        }
        reply::reply(out, header, |_| {});
        Ok(())
    }

    fn missed(&self, kind: EventKind, id: Option<NodeId>, path: &str, out: &mut Outgoing) {
        if id.is_none_or(|id| self.permitted(id).is_ok()) {
            reply::event(&mut out.bytes, -1, kind, path);
        }
    }
}

/// Appends a znode's data: copied if small, shared if large.
pub(super) fn put_data(znode: Znode<'_>, out: &mut Outgoing) {
    match znode.data() {
        Data::Null => put_i32(&mut out.bytes, -1),
        Data::Small(data) => jute::put_buffer(&mut out.bytes, data),
        Data::Large(data) => {
            put_i32(&mut out.bytes, data.len() as i32);
            out.share(data.clone());
        }
    }
}

fn decode<'b, T: Decode<'b>>(body: &'b [u8]) -> Result<T, Code> {
    Reader::new(body).read().map_err(|_| Code::MARSHALLING_ERROR)
}

fn paths<'a>(list: &Vector<'a, Ustring<'a>>) -> impl Iterator<Item = std::borrow::Cow<'a, str>> {
    // A null path would have thrown in Java; here it names no znode.
    list.iter().flatten()
}
