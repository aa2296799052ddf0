//! What a write asks for, read from its body.

use super::create::{Creation, NO_TTL};
use super::multi::{Fault, Parts};
use crate::model::op;
use jute::proto::{
    CheckVersionRequest, DeleteRequest, ReconfigRequest, SetAclRequest, SetDataRequest,
};
use jute::{Reader, Ustring};

pub(super) enum Write<'a> {
    Create(Creation<'a>),
    Delete(DeleteRequest<'a>),
    /// Asked by the server itself: an empty container or a TTL znode past its time.
    DeleteContainer(Ustring<'a>),
    SetData(SetDataRequest<'a>),
    SetAcl(SetAclRequest<'a>),
    /// Only inside a multi.
    Check(CheckVersionRequest<'a>),
    /// Each part with the operation it counts as.
    Multi(Vec<(i32, Self)>),
    /// A multi that can't be carried out as it stands. It takes a zxid all the same, as in Java.
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
