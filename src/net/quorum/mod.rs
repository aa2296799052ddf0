//! The sockets of learner connections (port 2888): performs what `member::quorum_connection` and `member::quorum_outbox` decide.

mod connection;
mod handle;
mod learner_port;
mod listen;
mod receive;
mod send;

pub use super::dial::{Dialed, dial};
pub use crate::member::dial::DialTimeouts;
pub use crate::member::quorum_connection::QuorumPeer;
pub use connection::start;
pub use handle::{PeerEvent, PeerHandle};
pub use learner_port::LearnerPort;
pub use listen::listen;
