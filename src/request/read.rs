//! Requests that are answered under the shared lock: reads and pings; those about watches are in `watches`.

use super::frame_counts::FrameKind;
use super::sliced_request::{EphemeralList, SlicedRequest};
use super::{ClientHandle, Namespaces, Outgoing, Shared, reply};
use crate::auth;
use crate::model::path::utf16_len;
use crate::model::{Acl, Code, Identity, op, perms};
use crate::tree::{AclId, Data, Listing, NodeId, Tree, WatchKind, Znode};
use core::cell::{Cell, RefCell};
use jute::proto::{GetDataRequest, ReplyHeader, RequestHeader};
use jute::{Decode, Encode, Reader, Ustring, put_i32, put_string};
use std::collections::BTreeMap;

/// What Java adds for the stat: six longs and five ints.
const STAT_BYTES: usize = 6 * 8 + 5 * 4;

/// Access lists up to this length are checked at each read, which costs very little...
const LONG_LIST: usize = 16;
/// ...unless they are compared with this many identities.
const MANY_IDENTITIES: usize = 8;
/// One hold of the lock does about a millisecond's work, in comparisons of an entry of an access list. Replies are bounded
/// apart from that, in number and bytes.
const HOLD_WORK_MAX: usize = 200_000;
/// Work of a part of a multiRead, in such comparisons.
pub(super) const PART_WORK: usize = 50;
/// Work of a path of a setWatches, which is looked up and entered among the watches.
pub(super) const WATCH_WORK: usize = 100;
/// Work of an ephemeral znode in a list of them.
const EPHEMERAL_WORK: usize = 25;
/// A list of more children may take several holds.
const WIDE: u32 = 1000;
/// Work of the name of a child in a multiRead.
pub(super) const CHILD_WORK: usize = 5;
/// Bytes that are hashed or copied as one comparison's work.
pub(super) const BYTES_PER_WORK: usize = 64;

/// What the reads of one hold of the lock share.
#[derive(Default)]
pub(super) struct Hold {
    work: Cell<usize>,
    /// Whether long access lists permit the client to read.
    long_lists: RefCell<BTreeMap<AclId, bool>>,
    /// A long list of children that is complete. It is the last answer of the hold.
    listed: RefCell<Option<Listed>>,
}

/// A long list of children, to be answered.
struct Listed {
    list: Box<Listing>,
    header: ReplyHeader,
    /// Encoded; empty for getChildren.
    stat: Vec<u8>,
}

impl Hold {
    pub fn spend(&self, work: usize) {
        self.work.set(self.work.get().saturating_add(work));
    }

    pub const fn work(&self) -> usize {
        self.work.get()
    }

    /// Ends the hold. Then it makes the answer with a long list of children, if there is one: that takes long.
    ///
    /// * `tree`: the guard of the lock.
    pub fn end<G>(&self, tree: G, out: &mut Outgoing) {
        drop(tree);
        let Some(Listed { list, header, stat }) = self.listed.take() else { return };
        let (start, names) = (out.mark(), list.finish());
        let answered = out.frame(FrameKind::Answer, header, |out| {
            put_i32(&mut out.bytes, names.count as i32);
            names.pieces.into_iter().for_each(|piece| out.share(piece));
            out.bytes.extend_from_slice(&stat);
            Ok(())
        });
        if let Err(Code(err)) = answered {
            out.truncate(start);
            reply::reply(out, ReplyHeader { err, ..header }, |_| {});
        }
    }

    /// Whether this hold's work is used up: other connections have their turn before the next read.
    pub const fn is_spent(&self) -> bool {
        HOLD_WORK_MAX <= self.work.get()
    }
}

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
            | op::ADD_WATCH
            | op::CHECK_WATCHES
            | op::REMOVE_WATCHES
            | op::GET_EPHEMERALS
            | op::GET_ALL_CHILDREN_NUMBER
            | op::WHO_AM_I
    )
}

/// One hold of the shared lock.
pub(super) struct Reading<'h> {
    pub shared: &'h Shared,
    pub tree: &'h Tree,
    pub conn: &'h ClientHandle,
    pub identities: &'h [Identity],
    /// What was read, for the metrics.
    pub spaces: &'h RefCell<Namespaces>,
    pub hold: &'h Hold,
    /// The znode that this request is likely to ask for.
    pub likely: NodeId,
}

impl Reading<'_> {
    /// Answers one request. An undecodable body is answered -5 and has no other effect (P-09a).
    ///
    /// `false`: not answered yet, `begun` holds how far it came; the same request is to be served in another hold.
    pub fn serve(
        &self,
        request: RequestHeader,
        body: &[u8],
        begun: &mut Option<SlicedRequest>,
        out: &mut Outgoing,
    ) -> bool {
        let start = out.mark();
        let header = reply::header(request.xid, self.tree.last_zxid().to_wire(), Code::OK);
        let done = match request.kind {
            op::PING => {
                let header = ReplyHeader { xid: crate::model::xid::PING, ..header };
                reply::put_uncounted(out, header, |_| {});
                Ok(())
            }
            op::SET_WATCHES
            | op::SET_WATCHES2
            | op::GET_EPHEMERALS
            | op::GET_ALL_CHILDREN_NUMBER => {
                match self.slice(request.kind, header, body, begun, out) {
                    Ok(false) => return false,
                    Ok(true) => Ok(()),
                    Err(code) => Err(code),
                }
            }
            op::ADD_WATCH => self.add_watch(header, body, out),
            op::CHECK_WATCHES | op::REMOVE_WATCHES => {
                self.find_watches(request.kind, header, body, out)
            }
            op::GET_ACL => self.get_acl(header, body, out),
            op::MULTI_READ => self.multi_read(header, body, out),
            op::WHO_AM_I => {
                reply::reply(out, header, |to| self.who_am_i(to));
                Ok(())
            }
            kind => match self.lookup(kind, header, body, begun, out) {
                Ok(false) => return false,
                Ok(true) => Ok(()),
                Err(code) => Err(code),
            },
        };
        if begun.is_some() {
            *begun = None;
        }
        if let Err(code) = done {
            out.truncate(start);
            reply::reply(out, ReplyHeader { err: code.0, ..header }, |_| {});
        }
        true
    }

    /// Serves a request that may take several holds. `false`: it goes on in another one.
    fn slice(
        &self,
        kind: i32,
        header: ReplyHeader,
        body: &[u8],
        begun: &mut Option<SlicedRequest>,
        out: &mut Outgoing,
    ) -> Result<bool, Code> {
        match kind {
            op::GET_EPHEMERALS => self.get_ephemerals(header, body, begun, out),
            op::GET_ALL_CHILDREN_NUMBER => self.count(header, body, begun, out),
            _ => self.set_watches(kind, header, body, begun, out),
        }
    }

    /// `false`: a list of children goes on in another hold.
    fn lookup(
        &self,
        kind: i32,
        header: ReplyHeader,
        body: &[u8],
        begun: &mut Option<SlicedRequest>,
        out: &mut Outgoing,
    ) -> Result<bool, Code> {
        // All four requests are a path and a watch flag.
        let request: GetDataRequest<'_> = decode(body)?;
        let path = request.path.as_deref().ok_or(Code::MARSHALLING_ERROR)?;
        if kind == op::EXISTS && path.contains('\0') {
            return Err(Code::BAD_ARGUMENTS);
        }
        let found = self.tree.find_likely(path, self.likely);
        if let Some(id) = found {
            self.permitted(id)?;
        }
        let lists = matches!(kind, op::GET_CHILDREN | op::GET_CHILDREN2);
        let answer = match found {
            Some(id) if lists && WIDE < self.tree.znode(id).children() => {
                match self.list_children(kind, header, (path, id), begun) {
                    Ok(false) => return Ok(false),
                    Ok(true) => Ok(()),
                    Err(code) => Err(code),
                }
            }
            Some(id) => self.put_znode(kind, header, path, self.tree.znode(id), out),
            None => Err(Code::NO_NODE),
        };
        // exists watches what is not there yet; the others only what they found and could send (P-42, P-43).
        if request.watch && (answer.is_ok() || found.is_none() && kind == op::EXISTS) {
            let watch = if matches!(kind, op::EXISTS | op::GET_DATA) {
                WatchKind::DATA
            } else {
                WatchKind::CHILD
            };
            self.shared.state.watches.add(path, self.conn.id, watch);
        }
        answer.map(|()| true)
    }

    /// Lists the children of a znode that has very many. `false`: the list goes on in another hold. `true`: the answer is made
    /// after this hold, by [`Hold::end`].
    ///
    /// * `of`: path and id of that znode.
    fn list_children(
        &self,
        kind: i32,
        header: ReplyHeader,
        of: (&str, NodeId),
        begun: &mut Option<SlicedRequest>,
    ) -> Result<bool, Code> {
        let (path, id) = of;
        let mut list = match begun.take() {
            Some(SlicedRequest::Children(list)) if self.tree.continues(&list, id) => list,
            _ => Box::new(self.tree.begin_list(id)),
        };
        let is_all = self.tree.list_more(&mut list, |work| {
            self.hold.spend(work);
            !self.hold.is_spent()
        });
        if self.shared.limits.reply_max < list.len_so_far() {
            return Err(Code::MARSHALLING_ERROR);
        }
        if !is_all {
            *begun = Some(SlicedRequest::Children(list));
            return Ok(false);
        }
        self.note_read(path, list.chars_so_far());
        let mut stat = Vec::new();
        if kind != op::GET_CHILDREN {
            self.tree.znode(id).stat().encode(&mut stat);
        }
        self.hold.listed.replace(Some(Listed { list, header, stat }));
        self.hold.spend(HOLD_WORK_MAX); // No other answer may come before it.
        Ok(true)
    }

    /// Appends the reply to exists, getData, getChildren or getChildren2.
    fn put_znode(
        &self,
        kind: i32,
        header: ReplyHeader,
        path: &str,
        znode: Znode<'_>,
        out: &mut Outgoing,
    ) -> Result<(), Code> {
        out.frame(FrameKind::Answer, header, |out| {
            let content = match kind {
                op::GET_DATA => put_data(znode, out),
                op::GET_CHILDREN | op::GET_CHILDREN2 => {
                    put_names(znode, self.shared.limits.reply_max, out)?
                }
                _ => 0,
            };
            self.note_read(path, content);
            if kind != op::GET_CHILDREN {
                znode.stat().encode(&mut out.bytes);
            }
            Ok(())
        })
    }

    /// A client without ADMIN sees whose entries there are, but no password hashes (P-45).
    fn get_acl(&self, header: ReplyHeader, body: &[u8], out: &mut Outgoing) -> Result<(), Code> {
        let path: Ustring<'_> = decode(body)?;
        let id =
            self.tree.find(path.as_deref().ok_or(Code::MARSHALLING_ERROR)?).ok_or(Code::NO_NODE)?;
        let znode = self.tree.znode(id);
        let acl = self.tree.acl(znode.acl());
        self.hold.spend(2 * acl.len());
        if !self.shared.permits(acl, perms::READ | perms::ADMIN, self.identities) {
            return Err(Code::NO_AUTH);
        }
        if self.shared.limits.reply_max < self.tree.acl_bytes(znode.acl()).len() {
            return Err(Code::MARSHALLING_ERROR);
        }
        let masked = !self.shared.permits(acl, perms::ADMIN, self.identities);
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

    /// Lists ephemeral znodes of this session only. The prefix is a plain one, not a path; none or `/` asks for all (P-60b).
    fn get_ephemerals(
        &self,
        header: ReplyHeader,
        body: &[u8],
        begun: &mut Option<SlicedRequest>,
        out: &mut Outgoing,
    ) -> Result<bool, Code> {
        let prefix: Ustring<'_> = decode(body)?;
        let prefix = prefix.as_deref().unwrap_or_default();
        // Java trims all characters up to the space.
        let wants_all = matches!(prefix.trim_matches(|c| c <= ' '), "" | "/");
        let session = self.conn.session().map_or(0, |session| session.0);
        let mut list = match begun.take() {
            Some(SlicedRequest::Ephemerals(list)) => list,
            _ => EphemeralList::new(self.tree.ephemeral_ids(session)),
        };
        let mut piece = Vec::new();
        while let Some(&id) = list.ids.get(list.next) {
            if self.hold.is_spent() {
                break;
            }
            list.next += 1;
            // None: it was deleted meanwhile.
            let path = self.tree.ephemeral_path(id, session).unwrap_or_default();
            self.hold.spend(EPHEMERAL_WORK + path.len() / BYTES_PER_WORK);
            if path.is_empty() || !wants_all && !path.starts_with(prefix) {
                continue;
            }
            list.len += 4 + path.len();
            if self.shared.limits.reply_max < list.len {
                return Err(Code::MARSHALLING_ERROR);
            }
            put_string(&mut piece, path);
            list.found += 1;
        }
        list.pieces.push(piece.into());
        if list.next < list.ids.len() {
            *begun = Some(SlicedRequest::Ephemerals(list));
            return Ok(false);
        }
        out.frame(FrameKind::Answer, header, |out| {
            put_i32(&mut out.bytes, list.found as i32);
            match &*list.pieces {
                [whole] => out.bytes.extend_from_slice(whole),
                pieces => pieces.iter().for_each(|piece| out.share(piece.clone())),
            }
            Ok(())
        })?;
        Ok(true)
    }

    fn count(
        &self,
        header: ReplyHeader,
        body: &[u8],
        begun: &mut Option<SlicedRequest>,
        out: &mut Outgoing,
    ) -> Result<bool, Code> {
        let path: Ustring<'_> = decode(body)?;
        let path = path.as_deref().ok_or(Code::MARSHALLING_ERROR)?;
        let id = self.tree.find(path).ok_or(Code::NO_NODE)?;
        self.permitted(id)?;
        let mut counting = match begun {
            Some(SlicedRequest::Count(count)) => Some(*count),
            _ => None,
        };
        let Some(count) = self.tree.count_below(id, path, &mut counting) else {
            *begun = counting.map(SlicedRequest::Count);
            return Ok(false);
        };
        reply::reply(out, header, |to| put_i32(to, count as i32));
        Ok(true)
    }

    fn who_am_i(&self, to: &mut Vec<u8>) {
        put_i32(to, self.identities.len() as i32);
        for id in self.identities {
            put_string(to, &id.scheme);
            let is_known = self.shared.limits.schemes.knows(&id.scheme);
            put_string(to, if is_known { auth::user(id) } else { "" });
        }
    }

    /// Source: `DataTree.updateReadStat`; `content` is that of `getData`, `statNode` and `getChildren`.
    pub(super) fn note_read(&self, path: &str, content: usize) {
        self.spaces.borrow_mut().note(path, content + STAT_BYTES);
    }

    pub(super) fn permitted(&self, id: NodeId) -> Result<(), Code> {
        let acl = self.tree.znode(id).acl();
        let list = self.tree.acl(acl);
        let permits = || self.shared.permits(list, perms::READ, self.identities);
        let is_long =
            LONG_LIST < list.len() || MANY_IDENTITIES < self.identities.len() && 1 < list.len();
        let may = if is_long { self.long_list(acl, permits) } else { permits() };
        if may { Ok(()) } else { Err(Code::NO_AUTH) }
    }

    /// A long list is checked once in a hold of the lock, whatever the number of reads.
    fn long_list(&self, acl: AclId, permits: impl FnOnce() -> bool) -> bool {
        *self.hold.long_lists.borrow_mut().entry(acl).or_insert_with(|| {
            let len = self.tree.acl(acl).len();
            // A short list is compared with each identity, a longer one is searched.
            self.hold.spend(if len <= LONG_LIST { len * self.identities.len() } else { len });
            permits()
        })
    }
}

/// Appends a znode's data: copied if small, shared if large. Returns its length.
pub(super) fn put_data(znode: Znode<'_>, out: &mut Outgoing) -> usize {
    match znode.data() {
        Data::Null => {
            put_i32(&mut out.bytes, -1);
            0
        }
        Data::Small(data) => {
            jute::put_buffer(&mut out.bytes, data);
            data.len()
        }
        Data::Large(data) => {
            put_i32(&mut out.bytes, data.len() as i32);
            out.share(data.clone());
            data.len()
        }
    }
}

/// Appends the names of a znode's children. Returns their length as Java counts it.
///
/// # Errors
/// -5 above `max` bytes: no more names are appended.
pub(super) fn put_names(znode: Znode<'_>, max: usize, out: &mut Outgoing) -> Result<usize, Code> {
    put_i32(&mut out.bytes, znode.children() as i32);
    let (start, mut len) = (out.bytes.len(), 0);
    for name in znode.child_names() {
        if max < out.bytes.len() - start + 4 + name.len() {
            return Err(Code::MARSHALLING_ERROR);
        }
        put_string(&mut out.bytes, name);
        len += utf16_len(name);
    }
    Ok(len)
}

pub(super) fn decode<'b, T: Decode<'b>>(body: &'b [u8]) -> Result<T, Code> {
    Reader::new(body).read().map_err(|_| Code::MARSHALLING_ERROR)
}
