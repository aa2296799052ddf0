//! What can happen to election connections, and what is to be done about it: the inputs and actions of
//! [`super::election_connections::ElectionConnections`].

use super::dial::HostPort;
use super::election_listeners::{self, ListenerId};
use super::listening::ListenAddress;
use super::sasl_exchange::Work;
use crate::model::ServerId;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Begins the errors of connections that TLS has refused: a line of their own was written.
pub const REFUSED_BY_TLS: &str = "TLS: ";

/// The addresses of each server's election port, at least one each.
pub type ServerAddresses = BTreeMap<ServerId, Vec<HostPort>>;

/// Names a connection from the time it is dialed or accepted. Never used twice.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ConnectionId(pub u64);

/// All that can happen to the connections.
#[derive(Clone, Debug)]
pub enum Input {
    /// The process begins: listen.
    Start,
    /// Replaces an unsent message to `to`; dials if there is no connection.
    Send {
        to: ServerId,
        message: Bytes,
    },
    /// Dials `to` unless there is a connection or an attempt at one.
    Dial {
        to: ServerId,
    },
    /// Dials every known server without a connection.
    DialAll,
    /// The servers of the configurations. Connections to servers that are left out stay until they break.
    SetPeers(ServerAddresses),
    /// Listens at other addresses, and names those in hellos. Connections stay.
    MoveTo(Vec<HostPort>),
    /// * `connection`: a new id. `peer`: the address it comes from, for the log.
    Accepted {
        connection: ConnectionId,
        peer: String,
    },
    /// A dialed connection is made.
    Connected {
        connection: ConnectionId,
        peer: String,
    },
    DialFailed {
        connection: ConnectionId,
        error: String,
    },
    Received {
        connection: ConnectionId,
        bytes: Bytes,
    },
    /// The bytes of [`Action::Write`] are written.
    Written {
        connection: ConnectionId,
    },
    /// [`Action::Work`] is done.
    WorkDone {
        connection: ConnectionId,
    },
    /// * `error`: `None` when the peer closed it.
    Ended {
        connection: ConnectionId,
        error: Option<String>,
    },
    Listening {
        listener: ListenerId,
    },
    /// Cannot listen, or cannot accept any more.
    ListenFailed {
        listener: ListenerId,
        error: String,
    },
    /// Time has passed: due at [`super::election_connections::ElectionConnections::next_deadline_ms`].
    Tick,
}

/// What is to be done, in this order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Action {
    /// Connect to whichever of the addresses answers first.
    ///
    /// * `grace_ms`: how long the other addresses are tried once one has refused; `None`: until each attempt has ended.
    Dial {
        connection: ConnectionId,
        to: ServerId,
        addresses: Vec<HostPort>,
        grace_ms: Option<u64>,
    },
    /// Answered by [`Input::Written`]; at most one at a time for each connection.
    Write {
        connection: ConnectionId,
        bytes: Bytes,
    },
    /// Do this on a thread that may wait; answered by [`Input::WorkDone`].
    Work {
        connection: ConnectionId,
        work: Work,
    },
    /// Close the connection, or give up dialing. No further input about it is expected.
    Close {
        connection: ConnectionId,
    },
    /// The connection is to break when the peer acknowledges nothing for this long.
    LimitSilence {
        connection: ConnectionId,
        to: ServerId,
        timeout_ms: u64,
    },
    Listen {
        listener: ListenerId,
        place: ListenAddress,
    },
    StopListening {
        listener: ListenerId,
    },
    Report(Event),
}

/// What is reported to the election.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// There is a connection to `to`, new or in place of another.
    ElectionConnected {
        to: ServerId,
    },
    Heard {
        from: ServerId,
        message: Bytes,
    },
    /// The connection to `to` has ended, and no other has replaced it.
    ElectionDisconnected {
        to: ServerId,
    },
    /// A dial has not reached `to`, and there is no connection to it.
    ElectionUnreached {
        to: ServerId,
    },
    /// No server can connect at `place`; listening there is tried again.
    BindFailed {
        place: String,
        error: String,
    },
}

impl From<election_listeners::Change> for Action {
    fn from(change: election_listeners::Change) -> Self {
        match change {
            election_listeners::Change::Listen { listener, place } => {
                Self::Listen { listener, place }
            }
            election_listeners::Change::Stop { listener } => Self::StopListening { listener },
        }
    }
}
