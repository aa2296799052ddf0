//! Several operations in one request: multi, all or nothing, and multiRead (P-52, P-53, P-61..P-68).

use super::Outgoing;
use super::frame_counts::FrameKind;
use super::prep::Preparation;
use super::read::{BYTES_PER_WORK, CHILD_WORK, PART_WORK, Reading, put_data, put_names};
use super::write_request::{Parts, Write};
use crate::model::{Code, op};
use crate::tree::{Applied, NodeId};
use jute::proto::{MultiHeader, ReplyHeader};
use jute::{Encode, patch_length, put_i32, put_string};

/// A multiRead whose answer would be longer is refused: a short request can name one large znode many thousand times.
const READ_REPLY_MAX: usize = 64 << 20;
/// A multiRead is also refused if its parts after the first would hold the lock for more than some 20 ms: all parts are of one
/// zxid, so they are read under one hold of it. A frame of the default size stays below that.
const READ_WORK_MAX: usize = 4_000_000;
/// Type of the header after the last part.
const END: i32 = -1;

impl Preparation<'_> {
    /// Prepares part after part, each on the changes of the parts before it. If one part is refused, nothing changes: the
    /// entry then holds transactions up to that part, its code, and -2 for the rest (P-64, P-66).
    ///
    /// # Errors
    /// -5 for the whole: it has grown too long, or a quota can't be read, which in Java is no refusal of one part.
    pub(super) fn multi(&mut self, parts: &[(i32, Write<'_>)]) -> Result<(), Code> {
        put_i32(self.to, i32::try_from(parts.len()).expect("a frame holds fewer parts than that"));
        let digest = self.prep.digest;
        self.prep.pending.mark();
        let mut failed = None;
        for (kind, part) in parts {
            let start = self.to.len();
            put_i32(self.to, *kind);
            let body = self.to.len();
            put_i32(self.to, 0); // Patched below.
            let result = if failed.is_some() {
                Err(Code::RUNTIME_INCONSISTENCY)
            } else {
                self.prepare(part)
            };
            if let Err(code) = result {
                self.to.truncate(start);
                put_i32(self.to, op::ERROR);
                put_i32(self.to, 4);
                put_i32(self.to, code.0);
                if failed.is_none() {
                    failed = Some(code);
                    self.prep.pending.take_back();
                    self.prep.digest = digest;
                }
            } else {
                patch_length(self.to, body);
            }
        }
        self.prep.pending.keep();
        failed.filter(|&code| code == Code::MARSHALLING_ERROR).map_or(Ok(()), Err)
    }
}

/// The body of the answer to a multi (P-62, P-63).
pub fn respond(to: &mut Vec<u8>, parts: &[Applied<'_>]) {
    for part in parts {
        let path = part.path.as_deref().unwrap_or_default();
        let stat = part.stat.unwrap_or_default();
        match part.kind {
            op::CREATE => {
                put_header(to, op::CREATE, Code::OK);
                put_string(to, path);
            }
            op::CREATE2 | op::CREATE_TTL | op::CREATE_CONTAINER => {
                put_header(to, op::CREATE2, Code::OK);
                put_string(to, path);
                stat.encode(to);
            }
            op::SET_DATA => {
                put_header(to, op::SET_DATA, Code::OK);
                stat.encode(to);
            }
            op::DELETE | op::CHECK => put_header(to, part.kind, Code::OK),
            _ => put_error(to, part.code),
        }
    }
    put_end(to);
}

fn put_header(to: &mut Vec<u8>, kind: i32, code: Code) {
    MultiHeader { kind, done: false, err: code.0 }.encode(to);
}

/// The code stands in the header and again in the body (G-03).
fn put_error(to: &mut Vec<u8>, code: Code) {
    put_header(to, op::ERROR, code);
    put_i32(to, code.0);
}

fn put_end(to: &mut Vec<u8>) {
    MultiHeader { kind: END, done: true, err: -1 }.encode(to);
}

impl Reading<'_> {
    /// Answers each part by itself. A part that is no read, or has no path, ends the answer there and makes it -5 (P-26).
    pub(super) fn multi_read(
        &self,
        header: ReplyHeader,
        body: &[u8],
        out: &mut Outgoing,
    ) -> Result<(), Code> {
        let (reads, mut code) = match Parts::decode(body) {
            Ok(Parts::Reads(reads)) => (reads, Code::OK),
            Ok(Parts::Writes(writes)) if writes.is_empty() => (Vec::new(), Code::OK),
            Ok(Parts::Writes(_)) => (Vec::new(), Code::MARSHALLING_ERROR),
            Err(_) => return Err(Code::MARSHALLING_ERROR),
        };
        let mut work_max = usize::MAX;
        let mut found = Vec::with_capacity(reads.len());
        let mut len = 0;
        for (kind, path) in &reads {
            let Some(path) = path else {
                code = Code::MARSHALLING_ERROR;
                break;
            };
            self.hold.spend(PART_WORK + path.len() / BYTES_PER_WORK);
            let id = self.tree.find(path).ok_or(Code::NO_NODE);
            let id = id.and_then(|id| self.permitted(id).map(|()| id));
            if let (op::GET_CHILDREN, Ok(id)) = (*kind, id) {
                self.hold.spend(self.tree.znode(id).children() as usize * CHILD_WORK);
            }
            if work_max < self.hold.work() {
                return Err(Code::MARSHALLING_ERROR);
            }
            len += id.map_or(0, |id| self.len_of(*kind, id));
            if len > READ_REPLY_MAX {
                return Err(Code::MARSHALLING_ERROR);
            }
            if found.is_empty() {
                work_max = self.hold.work().saturating_add(READ_WORK_MAX);
            }
            found.push((*kind, id));
        }
        out.frame(FrameKind::Answer, ReplyHeader { err: code.0, ..header }, |out| {
            for (kind, id) in found {
                match id {
                    Ok(id) => self.put_part(kind, id, out)?,
                    Err(code) => put_error(&mut out.bytes, code),
                }
            }
            put_end(&mut out.bytes);
            Ok(())
        })
    }

    fn put_part(&self, kind: i32, id: NodeId, out: &mut Outgoing) -> Result<(), Code> {
        let znode = self.tree.znode(id);
        put_header(&mut out.bytes, kind, Code::OK);
        let content = if kind == op::GET_DATA {
            let len = put_data(znode, out);
            znode.stat().encode(&mut out.bytes);
            len
        } else {
            put_names(znode, READ_REPLY_MAX, out)?
        };
        self.note_read(self.tree.path(id), content);
        Ok(())
    }

    /// About how long a part's answer is: what can be large in it.
    fn len_of(&self, kind: i32, id: NodeId) -> usize {
        let znode = self.tree.znode(id);
        if kind == op::GET_DATA {
            znode.data().bytes().map_or(0, <[u8]>::len)
        } else {
            znode.child_names().map(|name| 4 + name.len()).sum()
        }
    }
}
