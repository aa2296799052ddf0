//! Captures of election connections.

use super::tape::{self, Piece};
use bytes::BytesMut;
use oxkeeper::member::election_connection::next_message;
use oxkeeper::member::election_hello::Hello;
use oxkeeper::zab::Notification;

/// The bytes from one end of a connection that don't form a whole message yet.
#[derive(Default)]
struct MessageReader {
    unread: BytesMut,
    is_greeted: bool,
}

/// Decodes a capture to lines of text. Messages in formats that are still sent are encoded again to the same bytes.
fn decoded(name: &str) -> Vec<String> {
    let mut readers = [MessageReader::default(), MessageReader::default()];
    readers[0].is_greeted = true; // Only the dialer sends a hello.
    let mut lines = Vec::new();
    for Piece { is_dialer, bytes } in tape::read("election", name) {
        let reader = &mut readers[usize::from(is_dialer)];
        reader.unread.extend_from_slice(&bytes);
        if !reader.is_greeted
            && let Some((hello, taken)) = Hello::parse(&reader.unread).unwrap()
        {
            reader.is_greeted = true;
            let bytes = reader.unread.split_to(taken);
            lines.push(format!("> {}", greeting(&hello, &bytes)));
        }
        while let Some(message) = next_message(&mut reader.unread).unwrap() {
            let arrow = if is_dialer { ">" } else { "<" };
            lines.push(format!("{arrow} {}", notification(&message)));
        }
    }
    assert!(
        readers.iter().all(|reader| reader.unread.is_empty()),
        "a capture ends between messages"
    );
    tape::expect("election", name, &(lines.join("\n") + "\n"));
    lines
}

fn greeting(hello: &Hello, bytes: &[u8]) -> String {
    let places: Vec<String> =
        hello.addresses.iter().map(|(host, port)| format!("{host}:{port}")).collect();
    if bytes.len() == 8 {
        // The hello of releases before 3.5. Current servers don't send it, and neither do we.
        assert_eq!(hello.id.0.to_be_bytes(), bytes);
        return format!("HELLO server {} alone", hello.id);
    }
    assert_eq!(hello.encode(places.len() > 1), bytes);
    format!("HELLO server {} at {}", hello.id, places.join(" "))
}

fn notification(bytes: &[u8]) -> String {
    let read = Notification::decode(bytes).unwrap();
    let again = read.encode();
    match bytes.len() {
        // Formats of old releases, which are decoded and never sent. Fields that all formats have are at the same offsets.
        28 => assert_eq!(again[..28], *bytes),
        40 => {
            assert_eq!(again[..36], bytes[..36]);
            assert_eq!(bytes[36..], 1_i32.to_be_bytes(), "the format's version, which 3.9 ignores");
        }
        _ => assert_eq!(again, bytes),
    }
    let Notification { state, vote, round, version, config, is_ours, candidates_view } = read;
    assert!(!is_ours && candidates_view.is_none());
    let config = config.map_or("none".to_owned(), |text| super::packets::view(&text));
    let len = bytes.len();
    format!(
        "{state:?} round {round} for {vote} form {version} of {len} bytes, configuration {config}"
    )
}

#[track_caller]
fn has(lines: &[String], what: &str) {
    assert!(lines.iter().any(|line| line.contains(what)), "no {what:?} in the capture: {lines:#?}");
}

// rows: Q-01 Q-20 Q-24
#[test]
fn first_election_has_hello_and_notifications_of_both_servers() {
    for name in ["first-start", "first-start-3.8"] {
        let lines = decoded(name);
        has(&lines, "> HELLO server 2 at 127.0.7.2:3888");
        has(&lines, "> Looking round 1 for server 2 ");
        has(&lines, "< Looking round 1 for server 1 ");
        has(&lines, "< Looking round 1 for server 2 ");
        has(&lines, "form 2");
    }
}

// rows: Q-01 Q-10
#[test]
fn observer_without_a_vote_is_answered_by_the_leader() {
    let lines = decoded("observer");
    has(&lines, "> HELLO server 3 ");
    has(&lines, "round 1 for server -9223372036854775808 at");
    has(&lines, "< Leading round 1 for server 2 ");
}

// rows: Q-01 Q-99
#[test]
fn notification_after_a_reconfiguration_has_the_configurations_version() {
    has(&decoded("reconfig"), " version=1");
}

// rows: Q-20
#[test]
fn hello_has_all_addresses_of_a_server_with_several() {
    has(&decoded("several-addresses"), "HELLO server 2 at 127.0.7.2:3888 127.0.8.2:3888");
}

// rows: Q-02 Q-20
#[test]
fn notifications_of_old_releases_have_no_configuration() {
    let lines = decoded("first-start-3.4.14");
    has(&lines, "> HELLO server 2 alone");
    has(&lines, "form 0 of 40 bytes, configuration none");
    let lines = decoded("first-start-3.3.6");
    has(&lines, "> HELLO server 2 alone");
    has(&lines, "form 0 of 28 bytes, configuration none");
}
