//! What a server knows of one other server's election connection.

use super::duplicate_id::Duplicate;
use super::election_actions::ConnectionId;
use super::election_log::Repeats;
use bytes::Bytes;

/// A connection that ends within this time was refused: in TLS 1.3 the peer verifies a certificate after this end's handshake.
pub const SHORT_LIVED_MS: u64 = 5000;

/// One other server.
#[derive(Debug, Default)]
pub struct Peer {
    /// The newest message wins.
    pub unsent: Option<Bytes>,
    pub last_sent: Option<Bytes>,
    pub connection: Option<ConnectionId>,
    pub dialing: Option<ConnectionId>,
    /// The newest connection that there was, whether it has ended or not.
    pub newest: Option<ConnectionId>,
    /// The last report about the server was that it is connected, at `up_ms`.
    pub is_up: bool,
    pub up_ms: u64,
    pub repeats: Repeats,
    /// Another server says that it is this one: each of them is given the other's address with its next message.
    pub duplicate: Option<Duplicate>,
    /// Dials in a row that failed.
    pub failures: u32,
    /// The connection over which the last message came. A server may accept a connection and end it before any, as one without SASL.
    pub heard: Option<ConnectionId>,
    /// Why the last connection or dial ended.
    pub error: Option<String>,
    /// When the connection was made.
    pub since_ms: u64,
    /// Connections in a row that ended within [`SHORT_LIVED_MS`].
    pub short_lived: u32,
    /// Dials in a row that the other server has ended. The first may only mean that it was just stopped.
    pub refusals: u32,
}
