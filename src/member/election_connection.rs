//! One election connection (port 3888) as a machine: bytes in, the hello and messages out, and bytes to be written.
//!
//! An opening may speak first ([`Opening`]). Then the dialing server says its hello, and both send messages with a length
//! in front. One write is under way at a time, so that the caller can keep the newest message instead of a queue.

use super::election_hello::{Hello, HelloError};
use super::opening::{Opened, Opening};
use crate::request::foreign::Foreign;
use bytes::{Buf, Bytes, BytesMut};

/// Longest message.
const MESSAGE_BYTES_MAX: usize = 512 * 1024;

/// What the peer said.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Received {
    /// The first thing on an accepted connection.
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

enum Stage {
    /// The opening speaks. `hello`: what a dialed connection says after it.
    Opening {
        opening: Box<dyn Opening>,
        hello: Option<Vec<u8>>,
    },
    /// Accepted: the peer's hello has not come as a whole.
    AwaitingHello,
    /// Dialed: the hello is not written yet.
    WritingHello,
    Messages,
}

/// The machine.
pub struct ElectionConnection {
    stage: Stage,
    input: BytesMut,
    output: Vec<u8>,
    is_writing: bool,
    /// For the opening and the hello.
    deadline_ms: u64,
    /// Why it must be closed; nothing more is read.
    error: Option<ConnectionError>,
}

impl ElectionConnection {
    /// A connection that the peer made: its hello is to come until `deadline_ms`.
    pub fn accepted(opening: Box<dyn Opening>, deadline_ms: u64) -> Self {
        Self::new(Stage::Opening { opening, hello: None }, deadline_ms)
    }

    /// A connection that this server makes: connected, opened and `hello` written until `deadline_ms`.
    ///
    /// * `hello`: as [`Hello::encode`] gives it.
    pub fn dialed(opening: Box<dyn Opening>, hello: Vec<u8>, deadline_ms: u64) -> Self {
        Self::new(Stage::Opening { opening, hello: Some(hello) }, deadline_ms)
    }

    fn new(stage: Stage, deadline_ms: u64) -> Self {
        let input = BytesMut::new();
        Self { stage, input, output: Vec::new(), is_writing: false, deadline_ms, error: None }
    }

    /// When it must be closed unless opening and hello are over by then.
    pub const fn deadline_ms(&self) -> Option<u64> {
        match self.stage {
            Stage::Messages => None,
            Stage::Opening { .. } | Stage::AwaitingHello | Stage::WritingHello => {
                Some(self.deadline_ms)
            }
        }
    }

    /// Whether the hello was read or written, so that messages may be sent.
    pub const fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Messages)
    }

    /// The connection is made: the opening may have the first word.
    pub fn connected(&mut self) {
        self.open();
    }

    /// Bytes of the peer. Ask [`Self::next_received`] after that until it gives nothing.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.open();
    }

    /// The next whole thing that the peer said.
    ///
    /// # Errors
    /// When the connection must be closed; the same again if it is asked again.
    pub fn next_received(&mut self) -> Result<Option<Received>, ConnectionError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let next = match self.stage {
            // Input is bounded by what a message may have; after that it is taken as it comes.
            Stage::WritingHello if 4 + MESSAGE_BYTES_MAX < self.input.len() => {
                Err(ConnectionError::TooEarly(self.input.len()))
            }
            Stage::Opening { .. } | Stage::WritingHello => Ok(None),
            Stage::AwaitingHello => self.next_hello(),
            Stage::Messages => next_message(&mut self.input)
                .map(|message| message.map(Received::Message))
                .map_err(|LengthError(len)| ConnectionError::Length(len)),
        };
        self.error = next.as_ref().err().cloned();
        next
    }

    fn open(&mut self) {
        let Stage::Opening { opening, hello } = &mut self.stage else { return };
        match opening.step(&mut self.input, &mut self.output) {
            Ok(Opened::NotYet) => {}
            Ok(Opened::Done) => {
                self.stage = match hello.take() {
                    Some(hello) => {
                        self.output.extend(hello);
                        Stage::WritingHello
                    }
                    None => Stage::AwaitingHello,
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
        self.stage = Stage::Messages;
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

    /// What was taken has been written.
    pub fn written(&mut self) {
        self.is_writing = false;
        if matches!(self.stage, Stage::WritingHello) && self.output.is_empty() {
            self.stage = Stage::Messages;
        }
    }
}

/// A length that no message has.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a message of {0} bytes")]
pub struct LengthError(pub i32);

/// Takes one message off the front; `None` while it is not all there.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::opening::NoOpening;
    use crate::model::ServerId;

    /// Both ends say a word, the dialing one first; the accepting one answers once it has heard it.
    struct Words {
        says: &'static [u8],
        expects: &'static [u8],
        is_first: bool,
        has_said: bool,
    }

    impl Words {
        fn boxed(says: &'static str, expects: &'static str, is_first: bool) -> Box<Self> {
            let (says, expects) = (says.as_bytes(), expects.as_bytes());
            Box::new(Self { says, expects, is_first, has_said: false })
        }
    }

    impl Opening for Words {
        fn step(&mut self, input: &mut BytesMut, output: &mut Vec<u8>) -> Result<Opened, String> {
            if self.is_first && !std::mem::replace(&mut self.has_said, true) {
                output.extend(self.says);
            }
            let common = input.len().min(self.expects.len());
            if input[..common] != self.expects[..common] {
                return Err("another word".to_owned());
            }
            if input.len() < self.expects.len() {
                return Ok(Opened::NotYet);
            }
            input.advance(self.expects.len());
            if !self.is_first {
                output.extend(self.says);
            }
            Ok(Opened::Done)
        }
    }

    fn hello() -> Hello {
        Hello { id: ServerId(3), addresses: vec![("zoo3".to_owned(), 3888)] }
    }

    /// All output of one end goes to the other, at most `step` bytes at a time.
    fn carry(from: &mut ElectionConnection, to: &mut ElectionConnection, step: usize) -> bool {
        let Some(bytes) = from.take_output() else { return false };
        bytes.chunks(step).for_each(|piece| to.receive(piece));
        from.written();
        true
    }

    fn message(text: &'static str) -> Result<Option<Received>, ConnectionError> {
        Ok(Some(Received::Message(Bytes::from_static(text.as_bytes()))))
    }

    #[test]
    fn opening_then_hello_then_messages_are_read_however_the_bytes_are_split() {
        for step in 1..40 {
            let opening = Words::boxed("please", "welcome", true);
            let mut dialed = ElectionConnection::dialed(opening, hello().encode(false), 70);
            let opening = Words::boxed("welcome", "please", false);
            let mut accepted = ElectionConnection::accepted(opening, 50);
            accepted.connected();
            dialed.connected();
            assert!(!carry(&mut accepted, &mut dialed, step), "the dialing end speaks first");
            assert!(carry(&mut dialed, &mut accepted, step));
            assert_eq!((accepted.next_received(), accepted.is_open()), (Ok(None), false));
            assert_eq!((dialed.deadline_ms(), accepted.deadline_ms()), (Some(70), Some(50)));
            assert!(carry(&mut accepted, &mut dialed, step));
            assert!(!dialed.is_open(), "its hello is not written");
            assert!(carry(&mut dialed, &mut accepted, step));
            assert_eq!(accepted.next_received(), Ok(Some(Received::Hello(hello()))));
            assert!(dialed.is_open() && accepted.is_open());
            assert_eq!((dialed.deadline_ms(), accepted.deadline_ms()), (None, None));
            dialed.send(b"a vote");
            accepted.send(b"another vote");
            assert!(carry(&mut dialed, &mut accepted, step));
            assert!(carry(&mut accepted, &mut dialed, step));
            assert_eq!(accepted.next_received(), message("a vote"));
            assert_eq!(dialed.next_received(), message("another vote"));
            assert_eq!((dialed.next_received(), accepted.next_received()), (Ok(None), Ok(None)));
        }
    }

    #[test]
    fn opening_that_fails_ends_the_connection_with_its_reason() {
        let opening = Words::boxed("welcome", "please", false);
        let mut accepted = ElectionConnection::accepted(opening, 50);
        accepted.connected();
        accepted.receive(b"pl");
        assert_eq!(accepted.next_received(), Ok(None));
        accepted.receive(b"ow");
        let error = accepted.next_received().unwrap_err();
        assert_eq!(error, ConnectionError::Opening("another word".to_owned()));
        accepted.receive(b"please");
        assert_eq!(accepted.next_received(), Err(error), "nothing is read after that");
        assert_eq!(accepted.take_output(), None);
    }

    #[test]
    fn messages_that_come_with_the_hello_are_read_after_it() {
        let mut accepted = ElectionConnection::accepted(Box::new(NoOpening), 50);
        accepted.connected();
        accepted.receive(&[&hello().encode(false)[..], b"\0\0\0\x02ab\0\0\0\x01c\0\0"].concat());
        assert_eq!(accepted.next_received(), Ok(Some(Received::Hello(hello()))));
        assert_eq!(accepted.next_received(), message("ab"));
        assert_eq!(accepted.next_received(), message("c"));
        assert_eq!(accepted.next_received(), Ok(None));
    }

    #[test]
    fn another_protocol_is_named_and_a_bad_hello_is_refused() {
        let error = |bytes: &[u8]| {
            let mut accepted = ElectionConnection::accepted(Box::new(NoOpening), 50);
            accepted.receive(bytes);
            accepted.next_received().unwrap_err()
        };
        assert_eq!(error(b"GET / HT"), ConnectionError::Foreign(Foreign::Http));
        assert_eq!(error(&[22, 3, 1, 0, 200]), ConnectionError::Foreign(Foreign::Tls));
        let unknown = HelloError::Version(-7);
        assert_eq!(error(&(-7_i64).to_be_bytes()), ConnectionError::Hello(unknown));
        let bad_length = [&3_i64.to_be_bytes()[..], &0_i32.to_be_bytes()].concat();
        let mut accepted = ElectionConnection::accepted(Box::new(NoOpening), 50);
        accepted.receive(&bad_length);
        assert!(matches!(accepted.next_received(), Ok(Some(Received::Hello(_)))));
        assert_eq!(accepted.next_received(), Err(ConnectionError::Length(0)));
    }

    #[test]
    fn one_write_is_under_way_at_a_time() {
        let mut dialed = ElectionConnection::dialed(Box::new(NoOpening), hello().encode(false), 70);
        assert_eq!(dialed.take_output(), None, "there is no connection yet");
        dialed.connected();
        assert_eq!(dialed.take_output().unwrap(), hello().encode(false));
        assert!(!dialed.has_room() && dialed.take_output().is_none());
        dialed.written();
        assert!(dialed.has_room());
        dialed.send(b"ab");
        assert_eq!(dialed.take_output().unwrap(), b"\0\0\0\x02ab"[..]);
        assert!(!dialed.has_room());
    }

    // rows: Q-24
    #[test]
    fn messages_have_a_length() {
        let mut read = BytesMut::from(&b"\0\0\0\x02ab\0\0\0\x01c\0\0\0\x05de"[..]);
        let mut next = || next_message(&mut read).unwrap().map(|message| message.to_vec());
        assert_eq!([next(), next(), next()], [Some(b"ab".to_vec()), Some(b"c".to_vec()), None]);
        for len in [0, -1, 512 * 1024 + 1, i32::MAX] {
            let error = next_message(&mut BytesMut::from(&len.to_be_bytes()[..])).unwrap_err();
            assert!(matches!(error, LengthError(claimed) if claimed == len));
        }
        let longest = 512 * 1024_i32;
        assert!(next_message(&mut BytesMut::from(&longest.to_be_bytes()[..])).unwrap().is_none());
    }
}
