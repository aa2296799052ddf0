//! Learner connections: sockets for `member::quorum_connection` and `member::quorum_outbox`.

mod connection;
mod listen;
mod receive;
mod send;

pub use super::dial::dial;
pub use crate::member::dial::Patience;
pub use crate::member::quorum_connection::QuorumPeer;
pub use connection::{PeerHandle, start};
pub use listen::{Bind, listen};

use crate::member::quorum_connection::QuorumEvent;
use crate::member::quorum_outbox::OutboxEvent;
use crate::zab::LinkId;
use std::net::SocketAddr;

/// What happens on learner connections.
pub enum PeerEvent {
    Accepted { link: LinkId, handle: PeerHandle, peer: SocketAddr },
    Received { from: QuorumPeer, event: QuorumEvent },
    Sent { to: QuorumPeer, event: OutboxEvent },
    Gone { from: QuorumPeer, why: String },
}
