//! One election connection (port 3888) as a machine: bytes in, the hello and messages out, and bytes to be written.
//!
//! The dialing server sends its hello. A SASL exchange may come after it ([`SaslExchange`]). Then both send messages with a length in
//! front. One write is under way at a time, so that the caller can keep the newest message instead of a queue.

use super::auth_packet;
use super::election_hello::{Hello, HelloError};
use super::sasl_exchange::{SASL_BYTES_MAX, SaslExchange, SaslProgress, Work};
use crate::request::foreign::Foreign;
use bytes::{Buf, Bytes, BytesMut};

/// Longest message.
const MESSAGE_BYTES_MAX: usize = 512 * 1024;

/// What the peer has sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Received {
    /// The first message on an accepted connection.
    Hello(Hello),
    Message(Bytes),
}

/// Why a connection must be closed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConnectionError {
    #[error("{0}")]
    Exchange(String),
    #[error("{}", .0.reason_between_servers())]
    Foreign(Foreign),
    #[error("{}", auth_packet::UNEXPECTED)]
    Sasl,
    #[error(transparent)]
    Hello(#[from] HelloError),
    #[error("a message of {0} bytes; 1 to {max} are allowed", max = MESSAGE_BYTES_MAX)]
    Length(i32),
    #[error("{0} bytes came before the hello and the SASL exchange were done")]
    TooEarly(usize),
}

enum Stage {
    /// This server dials, and is not connected yet.
    Connecting {
        exchange: Box<dyn SaslExchange>,
        hello: Vec<u8>,
    },
    /// Accepted: the peer's hello has not come completely.
    AwaitingHello {
        exchange: Box<dyn SaslExchange>,
    },
    /// The hello has come, or is in the output, and the SASL exchange is under way.
    Sasl {
        exchange: Box<dyn SaslExchange>,
    },
    /// The SASL exchange has failed, and the refusal is sent: the peer gets time to read it.
    Refused(ConnectionError),
    /// Bytes of the SASL exchange, or of this server's hello, are in the output and not written yet.
    WritingSasl,
    Messages,
}

/// One election connection.
pub struct ElectionConnection {
    stage: Stage,
    /// The peer's hello, until [`Self::next_received`] gives it: after the SASL exchange.
    hello: Option<Hello>,
    input: BytesMut,
    output: Vec<u8>,
    is_writing: bool,
    /// What the SASL exchange waits for.
    work: Option<Work>,
    /// When the connection is closed, unless hello and SASL exchange are done by then.
    deadline_ms: u64,
    /// Why the connection must be closed; nothing more is read.
    error: Option<ConnectionError>,
}

impl ElectionConnection {
    /// A connection that the peer made: its hello has to come, and the SASL exchange to be done, before `deadline_ms`.
    pub fn accepted(exchange: Box<dyn SaslExchange>, deadline_ms: u64) -> Self {
        Self::new(Stage::AwaitingHello { exchange }, deadline_ms)
    }

    /// A connection that this server makes: it has to be connected and its `hello` written before `deadline_ms`.
    ///
    /// * `hello`: as [`Hello::encode`] gives it.
    pub fn dialed(exchange: Box<dyn SaslExchange>, hello: Vec<u8>, deadline_ms: u64) -> Self {
        Self::new(Stage::Connecting { exchange, hello }, deadline_ms)
    }

    fn new(stage: Stage, deadline_ms: u64) -> Self {
        let (input, output) = (BytesMut::new(), Vec::new());
        let (hello, work, error) = (None, None, None);
        Self { stage, hello, input, output, is_writing: false, work, deadline_ms, error }
    }

    /// When the connection must be closed, unless hello and SASL exchange are done by then.
    pub const fn deadline_ms(&self) -> Option<u64> {
        if self.is_ready() { None } else { Some(self.deadline_ms) }
    }

    /// Whether hello and SASL exchange are done, so that messages may be sent.
    pub const fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Messages) && self.hello.is_none()
    }

    /// Bytes that came and are not processed: of a hello, of the SASL exchange or of messages.
    pub fn unfinished_bytes(&self) -> usize {
        self.input.len()
    }

    /// This server's dial has succeeded: its hello is put into the output.
    ///
    /// * `exchange_until_ms`: when the SASL exchange has to be done, if there is one.
    pub fn connected(&mut self, exchange_until_ms: u64) {
        let stage = std::mem::replace(&mut self.stage, Stage::Messages);
        let Stage::Connecting { exchange, hello } = stage else {
            self.stage = stage;
            return;
        };
        self.output.extend(hello);
        self.stage = Stage::Sasl { exchange };
        self.step_exchange();
        if matches!(self.stage, Stage::Sasl { .. }) {
            self.deadline_ms = self.deadline_ms.max(exchange_until_ms);
        }
    }

    /// Bytes of the peer. Call [`Self::next_received`] after that until it returns nothing.
    pub fn receive(&mut self, bytes: &[u8]) {
        if !matches!(self.stage, Stage::Refused(_)) {
            self.input.extend_from_slice(bytes);
        }
        self.step_exchange();
    }

    /// What the SASL exchange waits for: [`Self::work_done`] is called after it.
    pub const fn take_work(&mut self) -> Option<Work> {
        self.work.take()
    }

    /// The SASL exchange's [`Work`] is done.
    pub fn work_done(&mut self) {
        self.step_exchange();
    }

    /// The dialing server has ended the connection, or the deadline has come. Returns whether its hello counts nevertheless: if SASL is not
    /// required, a dialing server without SASL sends its hello, and ends the connection if this server is the one that has to dial.
    pub fn accept_hello_without_sasl(&mut self) -> bool {
        if let Stage::Sasl { exchange } = &self.stage
            && exchange.accepts_silent_peer()
        {
            self.end_exchange();
            return true;
        }
        false
    }

    /// Why the SASL exchange has failed, if a refusal was sent to the peer.
    pub const fn refusal(&self) -> Option<&ConnectionError> {
        if let Stage::Refused(why) = &self.stage { Some(why) } else { None }
    }

    /// The next hello or message that has come completely.
    ///
    /// # Errors
    /// When the connection must be closed; every later call returns the same error.
    pub fn next_received(&mut self) -> Result<Option<Received>, ConnectionError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let next = self.next();
        self.error = self.error.take().or_else(|| next.as_ref().err().cloned());
        next
    }

    fn next(&mut self) -> Result<Option<Received>, ConnectionError> {
        if matches!(self.stage, Stage::AwaitingHello { .. }) {
            self.read_hello()?;
        }
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        match self.stage {
            // Before the last byte of the SASL exchange is written, input is bounded by the longest message; after that messages are
            // processed as they come.
            Stage::WritingSasl if 4 + MESSAGE_BYTES_MAX < self.input.len() => {
                Err(ConnectionError::TooEarly(self.input.len()))
            }
            Stage::Sasl { .. } if SASL_BYTES_MAX < self.input.len() => {
                let text = format!("{} bytes came in the SASL exchange", self.input.len());
                Err(ConnectionError::Exchange(text))
            }
            Stage::Connecting { .. }
            | Stage::AwaitingHello { .. }
            | Stage::Sasl { .. }
            | Stage::Refused(_)
            | Stage::WritingSasl => Ok(None),
            Stage::Messages if self.hello.is_some() => Ok(self.hello.take().map(Received::Hello)),
            Stage::Messages => next_message(&mut self.input)
                .map(|message| message.map(Received::Message))
                .map_err(|LengthError(len)| match len.to_be_bytes() {
                    auth_packet::FIRST_BYTES => ConnectionError::Sasl,
                    _ => ConnectionError::Length(len),
                }),
        }
    }

    fn step_exchange(&mut self) {
        let Stage::Sasl { exchange } = &mut self.stage else { return };
        match exchange.step(&mut self.input, &mut self.output) {
            Ok(SaslProgress::NotYet) => {}
            Ok(SaslProgress::Working(work)) => self.work = Some(work),
            Ok(SaslProgress::Done) => self.end_exchange(),
            Err(why) if self.output.is_empty() => self.error = Some(ConnectionError::Exchange(why)),
            Err(why) => {
                self.stage = Stage::Refused(ConnectionError::Exchange(why));
                self.input.clear();
            }
        }
    }

    fn end_exchange(&mut self) {
        let is_written = !self.is_writing && self.output.is_empty();
        self.stage = if is_written { Stage::Messages } else { Stage::WritingSasl };
    }

    /// Reads the hello; the SASL exchange begins after it.
    fn read_hello(&mut self) -> Result<(), ConnectionError> {
        let head = self.input.first_chunk();
        if let Some(foreign) = head.and_then(|head| Foreign::recognise(*head)) {
            return Err(ConnectionError::Foreign(foreign));
        }
        let Some((hello, taken)) = Hello::parse(&self.input)? else { return Ok(()) };
        self.input.advance(taken);
        if let Stage::AwaitingHello { exchange } =
            std::mem::replace(&mut self.stage, Stage::Messages)
        {
            self.hello = Some(hello);
            self.stage = Stage::Sasl { exchange };
            self.step_exchange();
        }
        Ok(())
    }

    /// Whether a message may be given to [`Self::send`]: everything before it was written.
    pub const fn has_room(&self) -> bool {
        self.is_ready() && !self.is_writing && self.output.is_empty()
    }

    /// Frames a message.
    pub fn send(&mut self, message: &[u8]) {
        assert!(self.has_room(), "send called while the previous message is unwritten");
        let len = u32::try_from(message.len()).expect("the sender keeps to the limit");
        self.output.extend(len.to_be_bytes());
        self.output.extend(message);
    }

    /// What is to be written next; nothing while a write is under way.
    pub fn take_output(&mut self) -> Option<Bytes> {
        if self.is_writing || self.output.is_empty() {
            return None;
        }
        self.is_writing = true;
        Some(std::mem::take(&mut self.output).into())
    }

    /// The bytes of [`Self::take_output`] have been written.
    pub fn written(&mut self) {
        self.is_writing = false;
        if matches!(self.stage, Stage::WritingSasl) && self.output.is_empty() {
            self.stage = Stage::Messages;
        }
    }
}

/// A length that no message may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a message of {0} bytes; 1 to {max} are allowed", max = MESSAGE_BYTES_MAX)]
pub struct LengthError(pub i32);

/// Takes one message off the front; `None` while it has not come completely.
///
/// # Errors
/// On a length outside of 1 to 524,288.
pub fn next_message(read: &mut BytesMut) -> Result<Option<Bytes>, LengthError> {
    let Some(raw_len) = read.first_chunk::<4>() else { return Ok(None) };
    let len = i32::from_be_bytes(*raw_len);
    let valid = usize::try_from(len).ok().filter(|len| (1..=MESSAGE_BYTES_MAX).contains(len));
    let valid = valid.ok_or(LengthError(len))?;
    if read.len() < 4 + valid {
        return Ok(None);
    }
    read.advance(4);
    Ok(Some(read.split_to(valid).freeze()))
}
