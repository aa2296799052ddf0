//! The replicated state: znodes, sessions, access lists, and what a transaction does to them.
//!
//! `Tree` knows nothing of who agreed on a transaction, who asked for it, or where it is stored. It is filled by
//! [`apply`](Tree::apply) and by [`load`], read under the shared lock of [`State`], and streamed out by [`freeze`].
//!
//! # Invariants
//! 1. `digest` is the wrapping sum of the digests of all znodes that count; every change goes through
//!    `Tree::change`, `Tree::place`, `Tree::set_data` or `Tree::remove`, which keep it so.
//! 2. Every znode but the root has a living parent whose path is its own without the last name.
//! 3. `apply` is total: a transaction is foreign bytes, and what cannot be done is a result, equal on every server.
//! 4. While a freeze is on, a znode is saved before it changes or is removed: the snapshot is of one zxid, not fuzzy.
//!
//! # Not here
//! Zxids are not chosen here (`request::prep`), and digests are not compared with the predicted ones here (`replica`).

mod acls;
mod ahead;
mod apply;
mod blob;
mod change;
mod child_changes;
mod config_node;
mod config_origin;
mod count;
mod data_tree;
pub mod digest;
mod digests;
pub mod freeze;
mod index;
mod key;
mod listing;
pub mod load;
mod node;
mod options;
mod owners;
mod peaks;
mod quota;
mod quota_paths;
mod read;
pub mod rebuild;
mod saved;
mod scan;
mod state;
pub mod txn;
mod watch;
mod watch_kind;
mod watch_shard;

pub use acls::{AclId, decode as decode_acl, encode as encode_acl, to_owned as own_acl};
pub use ahead::AHEAD_MAX;
pub use apply::{Applied, Change, Effects};
pub use count::Count;
pub use data_tree::Tree;
pub use listing::{ChildNames, Listing};
pub use node::{NO_NODE, NodeId, SHARED_DATA_MIN};
pub use options::Options;
pub use peaks::Peaks;
pub use quota::{Exceeded, QuotaTotals, Unreadable};
pub use read::{Data, Znode};
pub use state::State;
pub use watch::{WatchedPlace, Watches};
pub use watch_kind::{FiredCounts, Trigger, WatchKind, WatcherId};
