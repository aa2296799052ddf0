//! One election connection (port 3888) as a machine: bytes in, the hello and messages out, and bytes to be written.
//!
//! An opening may come first ([`Opening`]). Then the dialing server sends its hello, and both send messages with a length
//! in front. One write is under way at a time, so that the caller can keep the newest message instead of a queue.

use super::election_hello::{Hello, HelloError};
use super::opening::{OPENING_BYTES_MAX, Opened, Opening};
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
    Opening(String),
    #[error("{}", .0.reason())]
    Foreign(Foreign),
    #[error(transparent)]
    Hello(#[from] HelloError),
    #[error("a message of {0} bytes")]
    Length(i32),
    #[error("{0} bytes came before the hello was written")]
    TooEarly(usize),
}

enum HelloStage {
    /// The opening is under way. `hello`: what a dialed connection sends after it.
    Opening {
        opening: Box<dyn Opening>,
        hello: Option<Vec<u8>>,
    },
    /// Accepted: the peer's hello has not come completely.
    AwaitingHello,
    /// Dialed: the hello is not written yet.
    WritingHello,
    Messages,
}

/// One election connection.
pub struct ElectionConnection {
    stage: HelloStage,
    input: BytesMut,
    output: Vec<u8>,
    is_writing: bool,
    /// For the opening and the hello.
    deadline_ms: u64,
    /// Why the connection must be closed; nothing more is read.
    error: Option<ConnectionError>,
}

impl ElectionConnection {
    /// A connection that the peer made: its hello has to come before `deadline_ms`.
    pub fn accepted(opening: Box<dyn Opening>, deadline_ms: u64) -> Self {
        Self::new(HelloStage::Opening { opening, hello: None }, deadline_ms)
    }

    /// A connection that this server makes: it has to be connected, opened and its `hello` written before `deadline_ms`.
    ///
    /// * `hello`: as [`Hello::encode`] gives it.
    pub fn dialed(opening: Box<dyn Opening>, hello: Vec<u8>, deadline_ms: u64) -> Self {
        Self::new(HelloStage::Opening { opening, hello: Some(hello) }, deadline_ms)
    }

    fn new(stage: HelloStage, deadline_ms: u64) -> Self {
        let input = BytesMut::new();
        Self { stage, input, output: Vec::new(), is_writing: false, deadline_ms, error: None }
    }

    /// When the connection must be closed, unless opening and hello are done by then.
    pub const fn deadline_ms(&self) -> Option<u64> {
        match self.stage {
            HelloStage::Messages => None,
            HelloStage::Opening { .. } | HelloStage::AwaitingHello | HelloStage::WritingHello => {
                Some(self.deadline_ms)
            }
        }
    }

    /// Whether the hello was read or written, so that messages may be sent.
    pub const fn is_open(&self) -> bool {
        matches!(self.stage, HelloStage::Messages)
    }

    /// Bytes that came and are not processed: of the opening, of a hello or of messages.
    pub fn unfinished_bytes(&self) -> usize {
        self.input.len()
    }

    /// The connection is made: the opening may send first.
    pub fn connected(&mut self) {
        self.open();
    }

    /// Bytes of the peer. Call [`Self::next_received`] after that until it returns nothing.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.open();
    }

    /// The next hello or message that has come completely.
    ///
    /// # Errors
    /// When the connection must be closed; every later call returns the same error.
    pub fn next_received(&mut self) -> Result<Option<Received>, ConnectionError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let next = match self.stage {
            // Before the hello is written, input is bounded by the longest message; after that messages are processed as
            // they come.
            HelloStage::WritingHello if 4 + MESSAGE_BYTES_MAX < self.input.len() => {
                Err(ConnectionError::TooEarly(self.input.len()))
            }
            HelloStage::Opening { .. } if OPENING_BYTES_MAX < self.input.len() => {
                let text = format!("{} bytes came in the opening", self.input.len());
                Err(ConnectionError::Opening(text))
            }
            HelloStage::Opening { .. } | HelloStage::WritingHello => Ok(None),
            HelloStage::AwaitingHello => self.next_hello(),
            HelloStage::Messages => next_message(&mut self.input)
                .map(|message| message.map(Received::Message))
                .map_err(|LengthError(len)| ConnectionError::Length(len)),
        };
        self.error = next.as_ref().err().cloned();
        next
    }

    fn open(&mut self) {
        let HelloStage::Opening { opening, hello } = &mut self.stage else { return };
        match opening.step(&mut self.input, &mut self.output) {
            Ok(Opened::NotYet) => {}
            Ok(Opened::Done) => {
                self.stage = match hello.take() {
                    Some(hello) => {
                        self.output.extend(hello);
                        HelloStage::WritingHello
                    }
                    None => HelloStage::AwaitingHello,
                };
            }
            Err(why) => self.error = Some(ConnectionError::Opening(why)),
        }
    }

    fn next_hello(&mut self) -> Result<Option<Received>, ConnectionError> {
        let head = self.input.first_chunk();
        if let Some(foreign) = head.and_then(|head| Foreign::recognise(*head)) {
            return Err(ConnectionError::Foreign(foreign));
        }
        let Some((hello, taken)) = Hello::parse(&self.input)? else { return Ok(None) };
        self.input.advance(taken);
        self.stage = HelloStage::Messages;
        Ok(Some(Received::Hello(hello)))
    }

    /// Whether a message may be given to [`Self::send`]: everything before it was written.
    pub const fn has_room(&self) -> bool {
        self.is_open() && !self.is_writing && self.output.is_empty()
    }

    /// Frames a message.
    pub fn send(&mut self, message: &[u8]) {
        assert!(self.has_room(), "a message is sent before the one before it was written");
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
        if matches!(self.stage, HelloStage::WritingHello) && self.output.is_empty() {
            self.stage = HelloStage::Messages;
        }
    }
}

/// A length that no message may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a message of {0} bytes")]
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
