//! The stage of a connection between servers in which another protocol may speak first, as a SASL exchange. TLS is none: it goes
//! on to the connection's end, and wraps the socket (`net`).

use bytes::BytesMut;
use std::fmt;

/// What speaks on a connection before its own protocol does.
///
/// The connection asks once when it is made, with no input, since either end may be the first to speak; and then whenever
/// bytes have arrived, until the answer is [`Opened::Done`] or an error.
pub trait Opening: Send {
    /// Takes from the front of `input` what belongs to the opening, and appends to `output` what is to be sent.
    ///
    /// # Errors
    /// In words, why the connection must be closed.
    fn step(&mut self, input: &mut BytesMut, output: &mut Vec<u8>) -> Result<Opened, String>;
}

/// An opening that has left so many bytes where they are is over: the connection is closed.
pub const OPENING_BYTES_MAX: usize = 64 * 1024;

/// Whether the opening is over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Opened {
    /// It needs more bytes.
    NotYet,
    /// What is left of the input, and all that follows, belongs to the connection's own protocol.
    Done,
}

/// What is spoken on a connection between servers once it is opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ConnectionKind {
    /// Between a leader, or an observer master, and its learner (port 2888).
    Learner,
    /// Port 3888.
    Election,
}

/// Makes the opening of each connection between servers. A server has one, which it is given where it is put together.
pub trait Openings: fmt::Debug + Send + Sync {
    /// For a connection that another server made: this end is the server of SASL.
    fn accepted(&self, kind: ConnectionKind) -> Box<dyn Opening>;

    /// For a connection that this server makes: this end is the client of SASL.
    ///
    /// * `to`: hosts and ports of the server that is dialed, as the configuration names them; the connection is to one of them.
    fn dialed(&self, kind: ConnectionKind, to: &[(String, u16)]) -> Box<dyn Opening>;
}

/// No opening: the connection's own protocol begins at the first byte.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOpening;

impl Openings for NoOpening {
    fn accepted(&self, _kind: ConnectionKind) -> Box<dyn Opening> {
        Box::new(Self)
    }

    fn dialed(&self, _kind: ConnectionKind, _to: &[(String, u16)]) -> Box<dyn Opening> {
        Box::new(Self)
    }
}

impl Opening for NoOpening {
    fn step(&mut self, _input: &mut BytesMut, _output: &mut Vec<u8>) -> Result<Opened, String> {
        Ok(Opened::Done)
    }
}
