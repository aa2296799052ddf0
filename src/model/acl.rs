//! Entries of access lists: identities and their permissions.

/// Permission bits of an ACL entry (U-13).
pub mod perms {
    pub const READ: i32 = 1;
    pub const WRITE: i32 = 2;
    pub const CREATE: i32 = 4;
    pub const DELETE: i32 = 8;
    pub const ADMIN: i32 = 16;
    pub const ALL: i32 = 31;
}

/// An identity under a scheme: `world:anyone`, `digest:user:hash`, `ip:10.0.0.0/8`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Identity {
    pub scheme: Box<str>,
    pub id: Box<str>,
}

impl Identity {
    pub fn new(scheme: &str, id: &str) -> Self {
        Self { scheme: scheme.into(), id: id.into() }
    }

    /// Bytes of its texts.
    pub fn text_len(&self) -> usize {
        self.scheme.len() + self.id.len()
    }

    pub fn is_anyone(&self) -> bool {
        &*self.scheme == "world" && &*self.id == "anyone"
    }
}

/// One entry of an access list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Acl {
    /// Bits of [`perms`]; others are kept as they came.
    pub perms: i32,
    pub who: Identity,
}

impl Acl {
    /// `world:anyone` with every permission: what nearly all znodes have.
    pub fn open() -> Self {
        Self { perms: perms::ALL, who: Identity::new("world", "anyone") }
    }

    /// The jute record of this entry.
    pub fn to_record(&self) -> jute::data::Acl<'_> {
        jute::data::Acl {
            perms: self.perms,
            id: jute::data::Id {
                scheme: Some((&*self.who.scheme).into()),
                id: Some((&*self.who.id).into()),
            },
        }
    }
}

/// The jute bytes of a list that holds [`Acl::open`] alone, count included.
pub const OPEN_ACL: &[u8] = b"\0\0\0\x01\0\0\0\x1f\0\0\0\x05world\0\0\0\x06anyone";

#[cfg(test)]
mod tests {
    use super::*;
    use jute::{Encode, Vector};

    #[test]
    fn open_acl_is_its_own_encoding() {
        let open = Acl::open();
        let mut bytes = Vec::new();
        Vector::Owned(vec![open.to_record()]).encode(&mut bytes);
        assert_eq!(bytes, OPEN_ACL);
    }
}
