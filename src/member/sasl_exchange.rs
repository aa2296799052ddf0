//! The SASL exchange of a connection between servers, which comes before the connection's own protocol: on a learner connection
//! first, on an election connection after the hello. TLS lasts until the connection's end, and wraps the socket (`net`).

use bytes::BytesMut;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// One end of the exchange, or what stands in for it in tests.
///
/// The connection calls [`SaslExchange::step`] once when the stage begins, since either end may be the first to send; and then
/// whenever bytes have arrived or work is done, until the answer is [`SaslProgress::Done`] or an error.
pub trait SaslExchange: Send {
    /// Takes the bytes of the SASL exchange from the front of `input`, and appends to `output` what is to be sent.
    ///
    /// # Errors
    /// Why the connection must be closed. What is in `output` is sent before that.
    fn step(&mut self, input: &mut BytesMut, output: &mut Vec<u8>) -> Result<SaslProgress, String>;

    /// Whether the connection goes on if the peer has sent no byte of the SASL exchange until it ended the connection or the
    /// deadline came.
    fn accepts_silent_peer(&self) -> bool {
        false
    }
}

/// Limit on the bytes that a SASL exchange leaves in its input: above it the connection is closed.
pub const SASL_BYTES_MAX: usize = 64 * 1024;

/// Whether the SASL exchange is over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SaslProgress {
    /// It needs more bytes.
    NotYet,
    /// It needs this done, and then another step.
    Working(Work),
    /// What is left of the input, and all that follows, belongs to the connection's own protocol.
    Done,
}

/// A part of a SASL exchange that may take seconds, such as a question to a KDC. The exchange finds the result itself when it is
/// stepped again.
#[derive(Clone)]
pub struct Work(Arc<dyn Fn() + Send + Sync>);

impl Work {
    pub fn new(work: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(work))
    }

    /// Performs it on this thread. The connection is notified after that.
    pub fn run(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}

impl Eq for Work {}

impl PartialEq for Work {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The protocol of a connection between servers, after the SASL exchange.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ConnectionKind {
    /// Between a leader, or an observer master, and its learner (port 2888).
    Learner,
    /// Port 3888.
    Election,
}

/// Makes the SASL exchange of each connection between servers. A server has one of these, given where the server is put together.
pub trait SaslExchanges: fmt::Debug + Send + Sync {
    /// For a connection that another server made: this end is the server of SASL.
    ///
    /// * `from`: the other end's address, for the log.
    fn accepted(&self, kind: ConnectionKind, from: &str) -> Box<dyn SaslExchange>;

    /// The hosts of the members of all configurations that count, from now on.
    fn set_hosts(&self, _hosts: BTreeSet<String>) {}

    /// For a connection that this server makes: this end is the client of SASL.
    ///
    /// * `to`: hosts and ports of the server that is dialed, as the configuration names them; the connection is to one of them.
    fn dialed(&self, kind: ConnectionKind, to: &[(String, u16)]) -> Box<dyn SaslExchange>;
}

/// No SASL: nothing comes before the connection's own protocol.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSasl;

impl SaslExchanges for NoSasl {
    fn accepted(&self, _kind: ConnectionKind, _from: &str) -> Box<dyn SaslExchange> {
        Box::new(Self)
    }

    fn dialed(&self, _kind: ConnectionKind, _to: &[(String, u16)]) -> Box<dyn SaslExchange> {
        Box::new(Self)
    }
}

impl SaslExchange for NoSasl {
    fn step(
        &mut self,
        _input: &mut BytesMut,
        _output: &mut Vec<u8>,
    ) -> Result<SaslProgress, String> {
        Ok(SaslProgress::Done)
    }
}
