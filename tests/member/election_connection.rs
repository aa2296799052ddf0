//! Bytes of one election connection, in and out of its machine.

use bytes::{Bytes, BytesMut};
use oxkeeper::member::election_connection::{
    ConnectionError, ElectionConnection, LengthError, Received, next_message,
};
use oxkeeper::member::election_hello::{Hello, HelloError};
use oxkeeper::member::sasl_exchange::{
    ConnectionKind, NoSasl, SASL_BYTES_MAX, SaslExchange, SaslExchanges, SaslProgress,
};
use oxkeeper::member::sim_exchange::SimExchanges;
use oxkeeper::model::ServerId;
use oxkeeper::request::foreign::Foreign;

fn dialed(hello: Vec<u8>, deadline_ms: u64) -> ElectionConnection {
    let exchange = SimExchanges.dialed(ConnectionKind::Election, &[("zoo1".to_owned(), 3888)]);
    ElectionConnection::dialed(exchange, hello, deadline_ms)
}

fn accepted(deadline_ms: u64) -> ElectionConnection {
    ElectionConnection::accepted(
        SimExchanges.accepted(ConnectionKind::Election, "here"),
        deadline_ms,
    )
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
fn hello_then_exchange_then_messages_are_read_however_the_bytes_are_split() {
    for step in 1..40 {
        let (mut dialed, mut accepted) = (dialed(hello().encode(false), 70), accepted(50));
        dialed.connected(90);
        assert!(!carry(&mut accepted, &mut dialed, step), "the dialing end sends first");
        for _ in 0..2 {
            assert!(carry(&mut dialed, &mut accepted, step));
            assert_eq!((accepted.next_received(), accepted.is_ready()), (Ok(None), false));
            assert_eq!((dialed.deadline_ms(), accepted.deadline_ms()), (Some(90), Some(50)));
            assert!(!dialed.is_ready() || dialed.has_room());
            if !carry(&mut accepted, &mut dialed, step) {
                break;
            }
        }
        assert_eq!(accepted.next_received(), Ok(Some(Received::Hello(hello()))));
        assert!(dialed.is_ready() && accepted.is_ready());
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
fn exchange_that_fails_ends_the_connection_with_its_reason() {
    let mut accepted = accepted(50);
    accepted.receive(&hello().encode(false));
    accepted.receive(b"he");
    assert_eq!(accepted.next_received(), Ok(None));
    accepted.receive(b"ow");
    let error = accepted.next_received().unwrap_err();
    let why = "the SASL exchange expects the word \"hello?\"".to_owned();
    assert_eq!(error, ConnectionError::Exchange(why));
    accepted.receive(b"hello?");
    assert_eq!(accepted.next_received(), Err(error), "nothing is read after that");
    assert_eq!(accepted.take_output(), None);
}

#[test]
fn messages_that_come_with_the_hello_are_read_after_it() {
    let mut accepted = ElectionConnection::accepted(Box::new(NoSasl), 50);
    accepted.receive(&[&hello().encode(false)[..], b"\0\0\0\x02ab\0\0\0\x01c\0\0"].concat());
    assert_eq!(accepted.next_received(), Ok(Some(Received::Hello(hello()))));
    assert_eq!(accepted.next_received(), message("ab"));
    assert_eq!(accepted.next_received(), message("c"));
    assert_eq!(accepted.next_received(), Ok(None));
}

#[test]
fn another_protocol_is_named_and_a_bad_hello_is_refused() {
    let error = |bytes: &[u8]| {
        let mut accepted = ElectionConnection::accepted(Box::new(NoSasl), 50);
        accepted.receive(bytes);
        accepted.next_received().unwrap_err()
    };
    assert_eq!(error(b"GET / HT"), ConnectionError::Foreign(Foreign::Http));
    assert_eq!(error(&[22, 3, 1, 0, 200]), ConnectionError::Foreign(Foreign::Tls));
    let unknown = HelloError::Version(-7);
    assert_eq!(error(&(-7_i64).to_be_bytes()), ConnectionError::Hello(unknown));
    let bad_length = [&3_i64.to_be_bytes()[..], &0_i32.to_be_bytes()].concat();
    let mut accepted = ElectionConnection::accepted(Box::new(NoSasl), 50);
    accepted.receive(&bad_length);
    assert!(matches!(accepted.next_received(), Ok(Some(Received::Hello(_)))));
    assert_eq!(accepted.next_received(), Err(ConnectionError::Length(0)));
}

#[test]
fn one_write_is_under_way_at_a_time() {
    let mut dialed = ElectionConnection::dialed(Box::new(NoSasl), hello().encode(false), 70);
    assert_eq!(dialed.take_output(), None, "there is no connection yet");
    dialed.connected(90);
    assert_eq!(dialed.deadline_ms(), Some(70), "the hello is not written");
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
fn election_message_of_an_invalid_length_is_refused() {
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

/// A SASL exchange that never has enough.
struct Endless;

impl SaslExchange for Endless {
    fn step(
        &mut self,
        _input: &mut BytesMut,
        _output: &mut Vec<u8>,
    ) -> Result<SaslProgress, String> {
        Ok(SaslProgress::NotYet)
    }
}

#[test]
fn exchange_that_takes_too_many_bytes_ends_the_connection() {
    let mut accepted = ElectionConnection::accepted(Box::new(Endless), 50);
    accepted.receive(&hello().encode(false));
    assert_eq!(accepted.next_received(), Ok(None));
    accepted.receive(&[0; SASL_BYTES_MAX]);
    assert_eq!(accepted.next_received(), Ok(None));
    accepted.receive(&[0]);
    let why = "65537 bytes came in the SASL exchange".to_owned();
    assert_eq!(accepted.next_received(), Err(ConnectionError::Exchange(why)));
}

#[test]
fn no_exchange_takes_and_sends_nothing() {
    let (mut input, mut output) = (BytesMut::from(&b"hello"[..]), Vec::new());
    assert_eq!(NoSasl.step(&mut input, &mut output), Ok(SaslProgress::Done));
    assert_eq!((&input[..], output.len()), (&b"hello"[..], 0));
}

#[test]
fn server_that_begins_with_sasl_is_distinguished_from_a_bad_length() {
    let mut accepted = ElectionConnection::accepted(Box::new(NoSasl), 50);
    accepted
        .receive(&[&3_i64.to_be_bytes()[..], &0x5f24_3501_3501_edcc_u64.to_be_bytes()].concat());
    assert!(matches!(accepted.next_received(), Ok(Some(Received::Hello(_)))));
    let error = accepted.next_received().unwrap_err();
    assert_eq!(error, ConnectionError::Sasl);
    assert!(error.to_string().contains("set quorum.auth.enableSasl=true here"), "{error}");
}
