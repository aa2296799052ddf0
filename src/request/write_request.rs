//! Write requests, decoded from their bodies.

use crate::model::op;
use jute::proto::{
    CheckVersionRequest, CreateRequest, CreateTtlRequest, DeleteRequest, GetDataRequest,
    MultiHeader, ReconfigRequest, SetAclRequest, SetDataRequest,
};
use jute::{DecodeError, Reader, Ustring};

/// Operations that `replica` answers: they take the write path. Not deleteContainer, which no client may send: it checks no
/// access list (P-41).
pub(super) const fn is_write(kind: i32) -> bool {
    matches!(
        kind,
        op::CREATE
            | op::CREATE2
            | op::CREATE_CONTAINER
            | op::CREATE_TTL
            | op::DELETE
            | op::MULTI
            | op::RECONFIG
            | op::SET_DATA
            | op::SET_ACL
            | op::SYNC
            | op::CLOSE_SESSION
    )
}

pub(super) enum Write<'a> {
    Create(Creation<'a>),
    Delete(DeleteRequest<'a>),
    /// From the server itself: deletes an empty container or a TTL znode past its time.
    DeleteContainer(Ustring<'a>),
    SetData(SetDataRequest<'a>),
    SetAcl(SetAclRequest<'a>),
    /// A check of a version, which is only allowed inside a multi.
    Check(CheckVersionRequest<'a>),
    /// Each part with the operation it counts as.
    Multi(Vec<(i32, Self)>),
    /// A multi that can't be carried out as it stands. It takes a zxid nevertheless, as in Java.
    BadMulti,
    CreateSession {
        timeout_ms: i32,
    },
    CloseSession,
    Reconfig(ReconfigRequest<'a>),
}

impl<'a> Write<'a> {
    /// `None`: undecodable, and no zxid is spent on it (G-01).
    pub fn decode(kind: i32, body: &'a [u8]) -> Option<Self> {
        let mut from = Reader::new(body);
        Some(match kind {
            op::CREATE | op::CREATE2 | op::CREATE_CONTAINER => {
                Self::Create(Creation { request: from.read().ok()?, kind, ttl_ms: NO_TTL })
            }
            op::CREATE_TTL => Self::Create(Creation::with_ttl(from.read().ok()?)),
            op::DELETE => Self::Delete(from.read().ok()?),
            op::DELETE_CONTAINER => Self::DeleteContainer(from.read().ok()?),
            op::SET_DATA => Self::SetData(from.read().ok()?),
            op::SET_ACL => Self::SetAcl(from.read().ok()?),
            op::MULTI => match Parts::decode(body) {
                Ok(Parts::Writes(parts)) if parts.iter().all(|(_, part)| part.has_path()) => {
                    Self::Multi(parts)
                }
                Ok(_) | Err(Fault::Malformed) => Self::BadMulti,
                Err(Fault::NullAcl) => return None,
            },
            op::CREATE_SESSION => Self::CreateSession { timeout_ms: from.read().ok()? },
            op::CLOSE_SESSION => Self::CloseSession,
            op::RECONFIG => Self::Reconfig(from.read().ok()?),
            _ => return None,
        })
    }

    const fn has_path(&self) -> bool {
        match self {
            Self::Create(create) => create.request.path.is_some(),
            Self::Delete(delete) => delete.path.is_some(),
            Self::SetData(set) => set.path.is_some(),
            Self::Check(check) => check.path.is_some(),
            _ => true,
        }
    }
}

/// `ttl_ms` of an operation that has none.
pub(super) const NO_TTL: i64 = -1;

/// A create of any kind.
pub(super) struct Creation<'a> {
    pub request: CreateRequest<'a>,
    /// The operation: it and not the flags says what kind of transaction this becomes (P-36).
    pub kind: i32,
    pub ttl_ms: i64,
}

impl<'a> Creation<'a> {
    /// Whether the flags ask for an ephemeral znode: this is what a learner that forwards the request checks, whether the
    /// flags are valid or not.
    pub fn is_ephemeral(&self) -> bool {
        matches!(self.kind, op::CREATE | op::CREATE2) && matches!(self.request.flags, 1 | 3)
    }

    pub fn with_ttl(request: CreateTtlRequest<'a>) -> Self {
        let CreateTtlRequest { path, data, acl, flags, ttl } = request;
        let request = CreateRequest { path, data, acl, flags };
        Self { request, kind: op::CREATE_TTL, ttl_ms: ttl }
    }
}

/// The parts of a multi: only writes or only reads.
pub(super) enum Parts<'a> {
    /// Each with the operation it counts as.
    Writes(Vec<(i32, Write<'a>)>),
    /// getData and getChildren. Their watch flags are ignored.
    Reads(Vec<(i32, Ustring<'a>)>),
}

/// Why a body is no multi. In Java a malformed body costs a zxid and a null access list does not (P-65, G-01).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    Malformed,
    /// A create whose access list is null.
    NullAcl,
}

impl From<DecodeError> for Fault {
    fn from(_: DecodeError) -> Self {
        Self::Malformed
    }
}

impl<'a> Parts<'a> {
    /// Reads part after part; the first faulty one counts.
    ///
    /// Source: `MultiOperationRecord.deserialize`.
    pub fn decode(body: &'a [u8]) -> Result<Self, Fault> {
        let mut from = Reader::new(body);
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        loop {
            let header: MultiHeader = from.read()?;
            if header.done {
                break;
            }
            match header.kind {
                op::CREATE | op::CREATE2 | op::CREATE_CONTAINER => {
                    writes.push(create(header.kind, from.read()?)?);
                }
                op::CREATE_TTL => writes.push(create_ttl(from.read()?)),
                op::DELETE => writes.push((op::DELETE, Write::Delete(from.read()?))),
                op::SET_DATA => writes.push((op::SET_DATA, Write::SetData(from.read()?))),
                op::CHECK => writes.push((op::CHECK, Write::Check(from.read()?))),
                op::GET_DATA | op::GET_CHILDREN => {
                    let request: GetDataRequest<'_> = from.read()?;
                    reads.push((header.kind, request.path));
                }
                _ => return Err(Fault::Malformed),
            }
            if !writes.is_empty() && !reads.is_empty() {
                return Err(Fault::Malformed);
            }
        }
        Ok(if reads.is_empty() { Self::Writes(writes) } else { Self::Reads(reads) })
    }
}

fn create<'a>(kind: i32, request: CreateRequest<'a>) -> Result<(i32, Write<'a>), Fault> {
    let kind = match request.flags {
        0..=6 if request.acl.is_null() => return Err(Fault::NullAcl),
        0..=3 => kind,
        // Inside a multi the flag decides, unlike in a create of its own.
        4 => op::CREATE_CONTAINER,
        // TTLs have a part of their own.
        _ => return Err(Fault::Malformed),
    };
    Ok((kind, Write::Create(Creation { request, kind, ttl_ms: NO_TTL })))
}

fn create_ttl(request: CreateTtlRequest<'_>) -> (i32, Write<'_>) {
    let mut creation = Creation::with_ttl(request);
    // With another flag the flag decides the kind of znode, and the TTL is ignored.
    match creation.request.flags {
        5 | 6 => {}
        4 => (creation.kind, creation.ttl_ms) = (op::CREATE_CONTAINER, NO_TTL),
        _ => (creation.kind, creation.ttl_ms) = (op::CREATE, NO_TTL),
    }
    (creation.kind, Write::Create(creation))
}

/// Bytes of data in a request; null has none.
pub(super) fn data_len(data: jute::Buffer<'_>) -> usize {
    data.map_or(0, <[u8]>::len)
}
