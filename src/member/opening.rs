//! The stage of a connection between servers in which another protocol may speak first: TLS detection, a SASL exchange.

use bytes::BytesMut;

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

/// Whether the opening is over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Opened {
    /// It needs more bytes.
    NotYet,
    /// What is left of the input, and all that follows, belongs to the connection's own protocol.
    Done,
}

/// No opening: the connection's own protocol begins at the first byte.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOpening;

impl Opening for NoOpening {
    fn step(&mut self, _input: &mut BytesMut, _output: &mut Vec<u8>) -> Result<Opened, String> {
        Ok(Opened::Done)
    }
}
