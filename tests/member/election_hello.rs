//! The hello of an election connection as bytes, and which of two connections stays.

use oxkeeper::member::election_hello::{
    ConnectionChoice, Hello, HelloError, OldObservers, choice_for_accepted, choice_for_dialed,
};
use oxkeeper::model::ServerId;
use proptest::prelude::*;

fn hello(id: i64, addresses: &[(&str, u16)]) -> Hello {
    let addresses = addresses.iter().map(|(host, port)| (host.to_string(), *port)).collect();
    Hello { id: ServerId(id), addresses }
}

fn bytes(version: i64, id: i64, text: &str) -> Vec<u8> {
    let len = (text.len() as i32).to_be_bytes();
    [&version.to_be_bytes()[..], &id.to_be_bytes(), &len, text.as_bytes()].concat()
}

// rows: Q-20 Q-21
#[test]
fn hello_of_every_version_is_read() {
    let read = |bytes: &[u8]| Hello::parse(bytes).unwrap().unwrap();
    let one = bytes(-65536, 3, "zoo3:3888");
    assert_eq!(read(&one), (hello(3, &[("zoo3", 3888)]), one.len()));
    let followed = [&one[..], b"what comes next"].concat();
    assert_eq!(read(&followed).1, one.len());
    let many = bytes(-65535, 3, "10.0.0.3:3888|[2001:db8::3]:3889|0.0.0.0:1|[::]:2");
    let both = hello(3, &[("10.0.0.3", 3888), ("2001:db8::3", 3889)]);
    assert_eq!(read(&many), (both, many.len()));
    assert_eq!(read(&7_i64.to_be_bytes()), (hello(7, &[]), 8));
    for cut in 8..one.len() {
        assert_eq!(Hello::parse(&one[..cut]), Ok(None));
    }
}

// rows: Q-20
#[test]
fn hello_of_java_is_read_and_written_alike() {
    let golden = include_str!("../../compat-tests/golden/election/messages.txt");
    let hex = golden.lines().find_map(|line| line.strip_prefix("hello ")).unwrap();
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
    let (hello, taken) = Hello::parse(&bytes).unwrap().unwrap();
    assert_eq!((hello.id, hello.addresses.len(), taken), (ServerId(2), 1, bytes.len()));
    assert_eq!(hello.encode(false), bytes);
}

#[test]
fn bytes_that_are_no_hello_are_refused() {
    let error = |bytes: &[u8]| Hello::parse(bytes).unwrap_err();
    assert_eq!(error(&bytes(-1, 3, "a:1")), HelloError::Version(-1));
    for len in [0, -1, 2049, i32::MAX] {
        let mut wrong = bytes(-65536, 3, "a:1");
        wrong[16..20].copy_from_slice(&len.to_be_bytes());
        assert_eq!(error(&wrong), HelloError::Length { id: 3, len });
    }
    for text in ["a", "a:", ":1", "a:x", "a:65536", "a:1|", "[::1:1", "[::1]", "a:1:2"] {
        let wrong = error(&bytes(-65535, 3, text));
        assert!(matches!(wrong, HelloError::Address { id: 3, .. }), "{text}: {wrong}");
    }
    assert_eq!(Hello::parse(&bytes(-65535, 3, &"x".repeat(2048))[..2067]), Ok(None));
}

#[test]
fn hello_names_only_the_first_address_without_multi_address() {
    let two = hello(-5, &[("::1", 1), ("zoo", 2)]);
    assert_eq!(two.encode(false), bytes(-65536, -5, "[::1]:1"));
    assert_eq!(two.encode(true), bytes(-65535, -5, "[::1]:1|zoo:2"));
}

// rows: Q-22 Q-23
#[test]
fn server_with_the_larger_id_dials() {
    let id = ServerId;
    assert_eq!(choice_for_accepted(id(2), id(3)), ConnectionChoice::Keep);
    assert_eq!(choice_for_accepted(id(2), id(1)), ConnectionChoice::DialBack);
    assert_eq!(
        choice_for_accepted(id(2), id(2)),
        ConnectionChoice::Close,
        "two servers with one id"
    );
    assert_eq!(choice_for_dialed(id(2), id(1)), ConnectionChoice::Keep);
    assert_eq!(choice_for_dialed(id(2), id(3)), ConnectionChoice::Close);
    let mut old = OldObservers::default();
    assert_eq!([7, i64::MAX, i64::MAX].map(|said| old.id_of(id(said)).0), [7, -1, -2]);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60), known: bool) {
        let mut bytes = bytes;
        if known && 8 <= bytes.len() {
            bytes[..8].copy_from_slice(&(-65535_i64).to_be_bytes());
        }
        if let Ok(Some((_, taken))) = Hello::parse(&bytes) {
            prop_assert!(taken <= bytes.len());
        }
    }
}
