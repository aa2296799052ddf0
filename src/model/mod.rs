//! Words that every room shares: ids, zxids, paths, codes. No behaviour beyond their own rules.

mod acl;
mod algorithm;
mod code;
#[cfg(test)]
pub mod golden;
mod owner;
pub mod path;
pub mod properties;
pub mod sync;
mod view;
mod zxid;

pub use acl::{Acl, Identity, OPEN_ACL, perms};
pub use algorithm::DigestAlgorithm;
pub use code::{Code, EventKind, op, xid};
pub use owner::{CONTAINER, Owner, TTL_MAX_MS};
pub use view::{ChangeError, Member, PeerAddress, Role, Rule, View, ViewError, plain_host};
pub use zxid::{Epoch, Zxid};

/// A client session. Never 0 for a live one: 0 on the wire means "none yet".
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SessionId(pub i64);

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A server of an ensemble: its `myid`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ServerId(pub i64);

impl std::fmt::Display for ServerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
