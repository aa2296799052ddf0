//! Access lists in requests, and writes that an access list forbids before they are prepared (P-80, U-23).

use super::write_request::Write;
use crate::auth::{self, AclError, Schemes};
use crate::model::{Acl, Code, Identity, OPEN_ACL, op, path, perms};
use crate::tree::Tree;

/// The list to store; `None` for the open one, which is nearly always asked for and needs no work.
///
/// # Errors
/// -114 for an invalid list, -5 for one that schemes cannot check, where Java fails at a null, and for one that would be too
/// long.
pub(super) fn fix_acl<'a>(
    schemes: &Schemes,
    identities: &[Identity],
    asked: &jute::Vector<'a, jute::data::Acl<'a>>,
) -> Result<Option<Vec<Acl>>, Code> {
    if let jute::Vector::Raw { count: 1, bytes, .. } = asked
        && *bytes == &OPEN_ACL[4..]
    {
        return Ok(None);
    }
    for acl in asked.iter() {
        match acl.id.scheme.as_deref() {
            None => return Err(Code::INVALID_ACL),
            Some("world" | "digest" | "ip") if acl.id.id.is_none() => {
                return Err(Code::MARSHALLING_ERROR);
            }
            Some("sasl") if schemes.sasl && acl.id.id.is_none() => {
                return Err(Code::MARSHALLING_ERROR);
            }
            Some("x509") if schemes.x509 && acl.id.id.is_none() => {
                return Err(Code::MARSHALLING_ERROR);
            }
            Some(_) => {}
        }
    }
    let asked = crate::tree::own_acl(asked.iter());
    auth::fix(schemes, asked, identities).map(Some).map_err(|error| match error {
        AclError::Invalid => Code::INVALID_ACL,
        AclError::TooLong => Code::MARSHALLING_ERROR,
    })
}

/// Why the tree as it is forbids a write: -102 or -114. `None`: it does not, or only preparing the write shows it.
///
/// Only create, create2, delete, setData and setACL are checked; a znode that is not there forbids nothing.
///
/// Source: `ZooKeeperServer.authWriteRequest`, ZooKeeper 3.9.5.
pub fn refusal(
    tree: &Tree,
    schemes: &Schemes,
    identities: &[Identity],
    kind: i32,
    body: &[u8],
) -> Option<Code> {
    if !matches!(kind, op::CREATE | op::CREATE2 | op::DELETE | op::SET_DATA | op::SET_ACL) {
        return None;
    }
    let write = Write::decode(kind, body)?;
    let (guarded, wanted, list) = match &write {
        Write::Create(create) => {
            (parent(create.request.path.as_deref()?)?, perms::CREATE, Some(&create.request.acl))
        }
        Write::Delete(delete) => (parent(delete.path.as_deref()?)?, perms::DELETE, None),
        Write::SetData(set) => (set.path.as_deref()?, perms::WRITE, None),
        Write::SetAcl(set) => (set.path.as_deref()?, perms::ADMIN, Some(&set.acl)),
        _ => return None,
    };
    if let Some(list) = list
        && let Err(code) = fix_acl(schemes, identities, list)
    {
        return Some(code).filter(|code| *code == Code::INVALID_ACL);
    }
    let guarded = if guarded == "/" { "" } else { guarded };
    let acl = tree.acl(tree.znode(tree.find(guarded)?).acl());
    (!auth::permits(schemes, acl, wanted, identities)).then_some(Code::NO_AUTH)
}

/// The parent, whose access list guards its children; `None` if `path` is no path of a child.
fn parent(path: &str) -> Option<&str> {
    path::parent(path).filter(|_| !path.contains('\0') && !path::is_special(path))
}
