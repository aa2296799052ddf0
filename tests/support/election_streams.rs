//! The election connections that other servers make to an [`EnsembleMember`], as streams of bytes.

use super::ensemble_member::EnsembleMember;
use super::exchanges::words_of;
use oxkeeper::member::Input;
use oxkeeper::member::election_connection::{ElectionConnection, Received};
use oxkeeper::member::election_connections::{ConnectionId, Input as Election};
use oxkeeper::member::election_hello::Hello;
use oxkeeper::member::sasl_exchange::{ConnectionKind, SaslExchanges};
use oxkeeper::zab::Notification;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Streams of a member's accepted election connections.
pub struct ElectionStreams {
    /// All bytes of the server at the other end.
    received: BTreeMap<ConnectionId, Vec<u8>>,
    exchanges: Arc<dyn SaslExchanges>,
}

impl ElectionStreams {
    pub const fn new(exchanges: Arc<dyn SaslExchanges>) -> Self {
        Self { received: BTreeMap::new(), exchanges }
    }

    /// Open connections, oldest first.
    pub fn open(&self, member: &EnsembleMember) -> Vec<ConnectionId> {
        let is_open = |connection: &&ConnectionId| member.sockets.election.contains(connection);
        self.received.keys().filter(is_open).copied().collect()
    }

    pub fn accept(&mut self, member: &mut EnsembleMember) {
        if let Some(connection) = member.accept() {
            self.received.insert(connection, Vec::new());
        }
    }

    pub fn receive(&mut self, member: &mut EnsembleMember, connection: ConnectionId, bytes: &[u8]) {
        self.received.entry(connection).or_default().extend_from_slice(bytes);
        let bytes = bytes.to_vec().into();
        member.step(Input::Election(Election::Received { connection, bytes }));
    }

    /// The server at the other end sends the bytes of its SASL exchange.
    pub fn say_exchange(&mut self, member: &mut EnsembleMember, connection: ConnectionId) {
        let said = words_of(&self.exchanges, ConnectionKind::Election);
        self.receive(member, connection, &said.dialer);
    }

    pub fn end(&self, member: &mut EnsembleMember, connection: ConnectionId) {
        member.sockets.end_election(connection);
        member.step(Input::Election(Election::Ended { connection, error: None }));
    }

    /// Checks that what is decoded from the bytes of each connection does not depend on how they were cut, that no more bytes are kept
    /// than came, and that hellos and notifications are unchanged after encoding and decoding.
    pub fn check(&self) {
        for bytes in self.received.values() {
            let whole = self.read(&[bytes]);
            let (front, back) = bytes.split_at(bytes.len() / 2);
            assert_eq!(
                whole,
                self.read(&[front, back]),
                "the result depends on where the bytes are cut"
            );
            whole.iter().for_each(check_again);
        }
    }

    fn read(&self, parts: &[&[u8]]) -> Vec<Received> {
        let exchange = self.exchanges.accepted(ConnectionKind::Election, "here");
        let mut connection = ElectionConnection::accepted(exchange, 1000);
        let (mut all, mut came) = (Vec::new(), 0);
        for part in parts {
            came += part.len();
            connection.receive(part);
            assert!(connection.unfinished_bytes() <= came, "more is kept than was received");
            while let Ok(Some(received)) = connection.next_received() {
                all.push(received);
            }
        }
        all
    }
}

fn check_again(received: &Received) {
    match received {
        Received::Hello(hello) => {
            let several = hello.addresses.len() > 1;
            if let Ok(Some((again, _))) = Hello::parse(&hello.encode(several)) {
                assert_eq!(&again, hello, "encoded and decoded");
            }
        }
        Received::Message(message) => {
            let Ok(read) = Notification::decode(message) else { return };
            let again =
                Notification::decode(&read.encode()).expect("what we encode can be decoded");
            // Notifications in older formats are written in the current one.
            assert_eq!((again.state, again.vote, again.round), (read.state, read.vote, read.round));
        }
    }
}
