//! Transactions by meaning: what a log entry or a proposal says (D-42, D-43).

use crate::model::{CONTAINER, Code, Owner, op};
use jute::txn as record;
use jute::{Buffer, Decode, DecodeError, Encode, Reader, Ustring, Vector};
use std::borrow::Cow;

/// A list of access entries as it stands in the entry.
pub type AclBytes<'a> = &'a [u8];

/// One transaction's effect, borrowed from the entry it came in.
#[derive(Clone, Debug, PartialEq)]
pub enum Txn<'a> {
    Create(Create<'a>),
    Delete {
        path: Cow<'a, str>,
    },
    SetData {
        path: Cow<'a, str>,
        data: Buffer<'a>,
        version: i32,
    },
    SetAcl {
        path: Cow<'a, str>,
        acl: AclBytes<'a>,
        version: i32,
    },
    CreateSession {
        timeout_ms: i32,
    },
    /// `None`: written by a server that does not list the paths (`closeSessionTxn.enabled=false`).
    CloseSession {
        paths: Option<Vector<'a, Ustring<'a>>>,
    },
    /// A write that was refused: it took a zxid and changes nothing.
    Error(Code),
    /// Only inside a multi; it was checked before it was proposed.
    Check {
        path: Cow<'a, str>,
    },
    Multi(Vector<'a, record::Txn<'a>>),
}

/// A new znode.
#[derive(Clone, Debug, PartialEq)]
pub struct Create<'a> {
    pub path: Cow<'a, str>,
    pub data: Buffer<'a>,
    /// The jute vector, count included.
    pub acl: AclBytes<'a>,
    pub kind: CreateKind,
    /// The parent's cversion afterwards; -1 in old logs: one more than it is.
    pub parent_cversion: i32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CreateKind {
    Persistent,
    Ephemeral,
    Container,
    /// Milliseconds.
    Ttl(i64),
}

impl CreateKind {
    /// The ephemeralOwner to store.
    pub const fn owner(self, session: i64) -> i64 {
        match self {
            Self::Persistent => 0,
            Self::Ephemeral => session,
            Self::Container => CONTAINER,
            Self::Ttl(ttl_ms) => Owner::encode_ttl(ttl_ms),
        }
    }
}

/// Why an entry is no transaction we know.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TxnError {
    #[error("decode transaction of type {kind}: {source}")]
    Decode { kind: i32, source: DecodeError },
    #[error("decode transaction header: {0}")]
    Header(DecodeError),
    #[error("transaction of unknown type {0}")]
    UnknownType(i32),
}

/// A log entry: header, transaction, and the tree digest it should lead to.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'a> {
    pub header: record::TxnHeader,
    pub txn: Txn<'a>,
    pub digest: Option<record::TxnDigest>,
}

impl<'a> Entry<'a> {
    /// Reads an entry as it stands in a log or a proposal.
    ///
    /// # Errors
    /// [`TxnError`]: the bytes are foreign, and nothing here panics on them.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, TxnError> {
        let mut from = Reader::new(bytes);
        let header: record::TxnHeader = from.read().map_err(TxnError::Header)?;
        let txn = Txn::decode(header.kind, &mut from)?;
        // Whatever follows is the digest or nothing (Java: EOF there means none).
        let digest = from.read().ok();
        Ok(Self { header, txn, digest })
    }
}

/// When the transaction of an entry was created, in wall-clock milliseconds of its leader; `None` without a header.
pub fn born_ms(entry: &[u8]) -> Option<i64> {
    Some(Reader::new(entry).read::<record::TxnHeader>().ok()?.time)
}

/// The text of the configuration that an entry proposes, if it does.
pub fn config_in(entry: &[u8]) -> Option<&[u8]> {
    const KIND_AT: usize = 28;
    // Nearly all other entries are ruled out by their type alone.
    if entry.get(KIND_AT..KIND_AT + 4)? != op::RECONFIG.to_be_bytes() {
        return None;
    }
    let mut from = Reader::new(entry);
    from.read::<record::TxnHeader>().ok()?;
    from.read::<record::SetDataTxn<'_>>().ok()?.data
}

impl<'a> Txn<'a> {
    /// Reads the record that belongs to type `kind`.
    ///
    /// # Errors
    /// [`TxnError`] for an unknown type or bytes that are not its record.
    pub fn decode(kind: i32, from: &mut Reader<'a>) -> Result<Self, TxnError> {
        let fail = |source| TxnError::Decode { kind, source };
        Ok(match kind {
            op::CREATE | op::CREATE2 | op::CREATE_CONTAINER | op::CREATE_TTL => {
                Self::Create(Create::decode(kind, from).map_err(fail)?)
            }
            op::DELETE | op::DELETE_CONTAINER => Self::Delete { path: path(from).map_err(fail)? },
            op::SET_DATA | op::RECONFIG => {
                let read: record::SetDataTxn<'_> = from.read().map_err(fail)?;
                Self::SetData {
                    path: read.path.unwrap_or_default(),
                    data: read.data,
                    version: read.version,
                }
            }
            op::SET_ACL => {
                let path = path(from).map_err(fail)?;
                let acl = acl_bytes(from).map_err(fail)?;
                Self::SetAcl { path, acl, version: from.read().map_err(fail)? }
            }
            op::CREATE_SESSION => Self::CreateSession { timeout_ms: from.read().map_err(fail)? },
            op::CLOSE_SESSION => Self::CloseSession { paths: close_paths(from) },
            op::ERROR => Self::Error(Code(from.read().map_err(fail)?)),
            op::CHECK => {
                let read: record::CheckVersionTxn<'_> = from.read().map_err(fail)?;
                Self::Check { path: read.path.unwrap_or_default() }
            }
            op::MULTI => Self::Multi(from.read().map_err(fail)?),
            kind => return Err(TxnError::UnknownType(kind)),
        })
    }
}

impl<'a> Create<'a> {
    fn decode(kind: i32, from: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let path = path(from)?;
        let data = from.read()?;
        let acl = acl_bytes(from)?;
        let (kind, parent_cversion) = match kind {
            op::CREATE_CONTAINER => (CreateKind::Container, from.read()?),
            op::CREATE_TTL => {
                let parent_cversion = from.read()?;
                (CreateKind::Ttl(from.read()?), parent_cversion)
            }
            _ => {
                let kind =
                    if from.read()? { CreateKind::Ephemeral } else { CreateKind::Persistent };
                // CreateTxnV0, of servers before 3.3, ends here (D-43).
                (kind, from.read().unwrap_or(-1))
            }
        };
        Ok(Self { path, data, acl, kind, parent_cversion })
    }
}

fn path<'a>(from: &mut Reader<'a>) -> Result<Cow<'a, str>, DecodeError> {
    Ok(from.read::<Ustring<'a>>()?.unwrap_or_default())
}

fn acl_bytes<'a>(from: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let start = from.at();
    Vector::<jute::data::Acl<'a>>::decode(from)?;
    Ok(from.since(start))
}

fn close_paths<'a>(from: &mut Reader<'a>) -> Option<Vector<'a, Ustring<'a>>> {
    // A body that is no list is the digest of a server that writes no list; it is left for the caller.
    let mut ahead = from.clone();
    let paths = ahead.read().ok()?;
    *from = ahead;
    Some(paths)
}

/// Writes the records of transactions; the counterpart of [`Txn::decode`].
pub mod write {
    use super::{AclBytes, Buffer, CreateKind, Encode, Ustring, Vector};
    use jute::{put_i32, put_i64, put_string};

    pub fn create(
        to: &mut Vec<u8>,
        path: &str,
        data: Buffer<'_>,
        acl: AclBytes<'_>,
        kind: CreateKind,
        cversion: i32,
    ) {
        put_string(to, path);
        data.encode(to);
        to.extend_from_slice(acl);
        match kind {
            CreateKind::Persistent => to.push(0),
            CreateKind::Ephemeral => to.push(1),
            CreateKind::Container | CreateKind::Ttl(_) => {}
        }
        put_i32(to, cversion);
        if let CreateKind::Ttl(ttl_ms) = kind {
            put_i64(to, ttl_ms);
        }
    }

    pub fn delete(to: &mut Vec<u8>, path: &str) {
        put_string(to, path);
    }

    pub fn set_data(to: &mut Vec<u8>, path: &str, data: Buffer<'_>, version: i32) {
        put_string(to, path);
        data.encode(to);
        put_i32(to, version);
    }

    pub fn check(to: &mut Vec<u8>, path: &str, version: i32) {
        put_string(to, path);
        put_i32(to, version);
    }

    pub fn set_acl(to: &mut Vec<u8>, path: &str, acl: AclBytes<'_>, version: i32) {
        put_string(to, path);
        to.extend_from_slice(acl);
        put_i32(to, version);
    }

    pub fn close_session(to: &mut Vec<u8>, paths: &[String]) {
        let paths: Vec<Ustring<'_>> = paths.iter().map(|path| Some(path.into())).collect();
        Vector::Owned(paths).encode(to);
    }
}
