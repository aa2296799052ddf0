//! Preparing creates: which kind of znode is asked for, and whether it may be made (P-36..P-39, P-69).

use super::outstanding_changes::{AclOf, View};
use super::prep::Preparation;
use super::write_request::{Creation, data_len};
use crate::model::{Code, OPEN_ACL, Owner, TTL_MAX_MS, op, path};
use crate::tree::AclId;
use crate::tree::digest::StatPart;
use crate::tree::txn::{CreateKind, write};
use std::sync::Arc;

/// What kind of znode a create makes.
#[derive(Debug, Eq, PartialEq)]
struct Mode {
    kind: CreateKind,
    sequential: bool,
}

impl Mode {
    /// * `extended`: `extendedTypesEnabled`.
    fn of(asked: &Creation<'_>, extended: bool) -> Result<Self, Code> {
        let flags = asked.request.flags;
        let has_ttl = match flags {
            0..=4 => false,
            5 | 6 => true,
            _ => return Err(Code::BAD_ARGUMENTS),
        };
        if has_ttl && !extended {
            return Err(Code::UNIMPLEMENTED);
        }
        let sound = if has_ttl {
            (1..=TTL_MAX_MS).contains(&asked.ttl_ms)
        } else {
            // createTTL with an ordinary flag and -1 passes these checks in Java, cannot be applied, and is in the log
            // by then: that server never starts again (P-39).
            asked.ttl_ms < 0 && asked.kind != op::CREATE_TTL
        };
        if !sound {
            return Err(Code::BAD_ARGUMENTS);
        }
        let kind = match asked.kind {
            op::CREATE_CONTAINER => CreateKind::Container,
            op::CREATE_TTL => CreateKind::Ttl(asked.ttl_ms),
            _ if matches!(flags, 1 | 3) => CreateKind::Ephemeral,
            _ => CreateKind::Persistent,
        };
        Ok(Self { kind, sequential: matches!(flags, 2 | 3 | 6) })
    }
}

impl Preparation<'_> {
    /// The order of the checks is part of the protocol (P-69).
    pub(super) fn create(&mut self, asked: &Creation<'_>) -> Result<(), Code> {
        let extended = self.tree.options().extended_types;
        let mode = Mode::of(asked, extended)?;
        let request = &asked.request;
        self.asker.standing?;
        if mode.kind == CreateKind::Ephemeral {
            self.asker.may_own?;
        }
        let asked = request.path.as_deref().ok_or(Code::MARSHALLING_ERROR)?;
        let parent_path =
            path::parent(asked).filter(|_| !asked.contains('\0')).ok_or(Code::BAD_ARGUMENTS)?;
        let acl = self.fix_acl(&request.acl)?;
        let mut parent = self.view(parent_path).ok_or(Code::NO_NODE)?;
        self.permit(&parent, crate::model::perms::CREATE)?;
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
        if matches!(self.tree.options().owner(parent.stat.ephemeral_owner), Owner::Session(_)) {
            return Err(Code::NO_CHILDREN_FOR_EPHEMERALS);
        }
        self.check_quota(path, 1, data_len(request.data) as i64)?;
        let cversion = parent.stat.cversion.wrapping_add(1);
        let acl_bytes = acl.as_ref().map(|acl| crate::tree::encode_acl(acl));
        let acl_bytes = acl_bytes.as_deref().unwrap_or(OPEN_ACL);
        write::create(self.to, path, request.data, acl_bytes, mode.kind, cversion);
        self.fits()?;
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
            ephemeral_owner: mode.kind.owner(self.asker.session.0),
            ..StatPart::default()
        };
        let acl = acl.map_or(AclOf::Table(AclId::OPEN), |acl| AclOf::Own(Arc::new(acl.into())));
        let (crc, data_len) = (self.crc(path, request.data), data_len(request.data));
        let child = View { stat, acl, children: 0, crc, data_len };
        self.put(parent_path, parent_before, Some(parent));
        self.put(path, 0, Some(child));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::write_request::NO_TTL;
    use jute::Vector;
    use jute::proto::CreateRequest;

    fn mode(kind: i32, flags: i32, ttl_ms: i64, extended: bool) -> Result<Mode, Code> {
        let request = CreateRequest { path: None, data: None, acl: Vector::Null, flags };
        Mode::of(&Creation { request, kind, ttl_ms }, extended)
    }

    // rows: P-38
    #[test]
    fn znode_kind_follows_the_operation_and_sequence_number_the_flags() {
        let made = |kind, sequential| Ok(Mode { kind, sequential });
        assert_eq!(mode(op::CREATE, 4, NO_TTL, false), made(CreateKind::Persistent, false));
        for (flags, sequential) in [(4, false), (0, false), (1, false), (2, true), (3, true)] {
            let container = made(CreateKind::Container, sequential);
            assert_eq!(mode(op::CREATE_CONTAINER, flags, NO_TTL, false), container);
        }
        assert_eq!(mode(op::CREATE2, 3, NO_TTL, false), made(CreateKind::Ephemeral, true));
        for flags in [5, 6] {
            assert_eq!(mode(op::CREATE, flags, NO_TTL, false), Err(Code::UNIMPLEMENTED));
            assert_eq!(mode(op::CREATE, flags, NO_TTL, true), Err(Code::BAD_ARGUMENTS));
        }
        assert_eq!(mode(op::CREATE, 7, NO_TTL, true), Err(Code::BAD_ARGUMENTS));
    }

    // rows: P-39
    #[test]
    fn create_ttl_is_refused_when_the_ttl_is_outside_of_forty_bits() {
        let made = |ttl, sequential| Ok(Mode { kind: CreateKind::Ttl(ttl), sequential });
        assert_eq!(mode(op::CREATE_TTL, 5, 1, true), made(1, false));
        assert_eq!(mode(op::CREATE_TTL, 6, TTL_MAX_MS, true), made(TTL_MAX_MS, true));
        assert_eq!(mode(op::CREATE_TTL, 5, 1, false), Err(Code::UNIMPLEMENTED));
        for ttl_ms in [i64::MIN, NO_TTL, 0, TTL_MAX_MS + 1, i64::MAX] {
            assert_eq!(mode(op::CREATE_TTL, 5, ttl_ms, true), Err(Code::BAD_ARGUMENTS));
        }
    }

    #[test]
    fn create_ttl_without_a_ttl_is_refused() {
        for flags in 0..=4 {
            for ttl_ms in [i64::MIN, NO_TTL, 0, 1] {
                for extended in [false, true] {
                    let refused = mode(op::CREATE_TTL, flags, ttl_ms, extended);
                    assert_eq!(refused, Err(Code::BAD_ARGUMENTS), "{flags} {ttl_ms}");
                }
            }
        }
    }
}
