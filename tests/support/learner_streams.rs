//! The learner connections of an [`EnsembleMember`], as streams of bytes: what a peer sends goes through the connection's machine to
//! the member.

use super::ensemble_member::EnsembleMember;
use super::exchanges::words_of;
use bytes::BytesMut;
use oxkeeper::member::quorum_connection::{QuorumConnection, QuorumError, QuorumEvent};
use oxkeeper::member::sasl_exchange::{ConnectionKind, SaslExchange, SaslExchanges};
use oxkeeper::member::{Input, QuorumPeer};
use oxkeeper::tree::Options;
use oxkeeper::zab::Packet;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a member's dials of its leader go.
const LEADER: (&str, u16) = ("leader", 2888);

struct Stream {
    connection: QuorumConnection,
    /// All bytes of the peer.
    received: Vec<u8>,
    /// The packets in them. A SNAP stands for itself and its tree.
    packets: Vec<Packet>,
}

/// A member and the streams of its learner connections.
pub struct LearnerStreams {
    pub member: EnsembleMember,
    streams: BTreeMap<QuorumPeer, Stream>,
    exchanges: Arc<dyn SaslExchanges>,
    /// `jute.maxbuffer` and its `extrasize` together.
    entry_max: usize,
}

impl LearnerStreams {
    pub fn new(
        member: EnsembleMember,
        exchanges: Arc<dyn SaslExchanges>,
        entry_max: usize,
    ) -> Self {
        Self { member, streams: BTreeMap::new(), exchanges, entry_max }
    }

    /// Open connections: the one to the leader first, then those of learners in the order in which they came.
    pub fn peers(&self) -> Vec<QuorumPeer> {
        let is_leader = |peer: &QuorumPeer| matches!(peer, QuorumPeer::Leader { .. });
        let (leader, learners): (Vec<_>, Vec<_>) =
            self.streams.keys().copied().partition(is_leader);
        leader.into_iter().chain(learners).collect()
    }

    /// A learner connects; returns its connection.
    pub fn connect(&mut self) -> QuorumPeer {
        let peer = QuorumPeer::Learner(self.member.connect());
        self.follow_member();
        peer
    }

    /// Connects the dials of the leader that the member has made, and forgets connections that it has closed.
    pub fn follow_member(&mut self) {
        let closed =
            self.peers().into_iter().filter(|&peer| !self.member.host.member.is_current(peer));
        closed.collect::<Vec<_>>().into_iter().for_each(|peer| self.forget(peer, true));
        let member = &self.member;
        let is_current = |peer: QuorumPeer| member.host.member.is_current(peer);
        let leader = QuorumPeer::Leader { dial: member.sockets.dial };
        let last = member.learners.checked_sub(1).map(oxkeeper::zab::LearnerConnectionId);
        let new = last.map(QuorumPeer::Learner).into_iter().chain([leader]);
        let new: Vec<QuorumPeer> = new.filter(|&peer| is_current(peer)).collect();
        for peer in new {
            if !self.streams.contains_key(&peer) {
                let connection = self.connection(peer);
                let stream = Stream { connection, received: Vec::new(), packets: Vec::new() };
                self.streams.insert(peer, stream);
                self.receive(peer, &[]);
            }
        }
    }

    fn connection(&self, peer: QuorumPeer) -> QuorumConnection {
        let exchange = self.exchange(peer);
        let connection = match peer {
            QuorumPeer::Learner(connection) => {
                QuorumConnection::accepted(connection, exchange, self.now_ms())
            }
            QuorumPeer::Leader { dial } => {
                QuorumConnection::dialed(dial, exchange, Options { seed: 1, ..Options::default() })
            }
        };
        connection.with_entries_of(self.entry_max)
    }

    /// The member's SASL exchange.
    fn exchange(&self, peer: QuorumPeer) -> Box<dyn SaslExchange> {
        let kind = ConnectionKind::Learner;
        match peer {
            QuorumPeer::Learner(_) => self.exchanges.accepted(kind, "here"),
            QuorumPeer::Leader { .. } => {
                self.exchanges.dialed(kind, &[(LEADER.0.into(), LEADER.1)])
            }
        }
    }

    fn now_ms(&self) -> u64 {
        self.member.host.now.us / 1000
    }

    /// The peer sends the bytes of its SASL exchange.
    pub fn open(&mut self, peer: QuorumPeer) {
        let said = words_of(&*self.exchanges, ConnectionKind::Learner);
        match peer {
            QuorumPeer::Learner(_) => self.receive(peer, &said.dialer),
            QuorumPeer::Leader { .. } => self.receive(peer, &said.acceptor),
        }
    }

    /// The peer sends these packets, and after each the member's threads do all their work.
    pub fn send(&mut self, peer: QuorumPeer, packets: &[Packet]) {
        for packet in packets {
            self.receive(peer, &packet.to_bytes());
            self.report_all();
        }
    }

    /// The peer sends bytes. A connection that refuses them is closed.
    pub fn receive(&mut self, peer: QuorumPeer, bytes: &[u8]) {
        let now_ms = self.now_ms();
        let Some(stream) = self.streams.get_mut(&peer) else { return };
        stream.received.extend_from_slice(bytes);
        let mut events = Vec::new();
        let received = stream.connection.receive(bytes, now_ms, &mut events);
        let unfinished = stream.connection.unfinished_bytes();
        assert!(unfinished <= stream.received.len(), "more is kept than was received");
        note(&events, &mut stream.packets);
        for event in events {
            if let Some(input) = Input::received(peer, event) {
                self.member.step(input);
            }
        }
        if let Err(error) = received {
            self.disconnect(peer, &error);
        }
        self.follow_member();
    }

    fn disconnect(&mut self, peer: QuorumPeer, error: &QuorumError) {
        self.forget(peer, false);
        self.member.step(Input::Disconnected { from: peer, why: error.to_string() });
    }

    /// The peer closes the connection.
    pub fn end(&mut self, peer: QuorumPeer) {
        let Some(stream) = self.streams.get(&peer) else { return };
        let why = stream.connection.end().err().map_or_else(String::new, |error| error.to_string());
        self.forget(peer, true);
        self.member.step(Input::Disconnected { from: peer, why });
        self.follow_member();
    }

    /// Time passes, for the member, then for the deadlines of connections.
    pub fn pass(&mut self, ms: u64) {
        self.member.pass(ms);
        let now_ms = self.now_ms();
        for peer in self.peers() {
            let late = self.streams[&peer].connection.check_deadline(now_ms);
            if let Err(error) = late {
                self.disconnect(peer, &error);
            }
        }
        self.follow_member();
    }

    /// The member's threads and sockets do all their pending work.
    pub fn report_all(&mut self) {
        self.member.report_all();
        self.follow_member();
    }

    /// Forgets a connection, and checks that the packets decoded from its bytes do not depend on how these were cut, and are the same
    /// written and read again.
    fn forget(&mut self, peer: QuorumPeer, is_whole: bool) {
        let Some(Stream { received, packets, .. }) = self.streams.remove(&peer) else { return };
        let mut again = Vec::new();
        let mut connection = self.connection(peer);
        let (front, back) = received.split_at(received.len() / 2);
        let was_whole = [front, back].into_iter().all(|part| {
            let mut events = Vec::new();
            let taken = connection.receive(part, 0, &mut events);
            note(&events, &mut again);
            taken.is_ok()
        });
        assert_eq!(again, packets, "cut otherwise, {peer:?} said something else");
        // A connection without a hello may be closed for its silence alone.
        assert!(was_whole || !is_whole, "cut otherwise, {peer:?} was refused");
        for packet in packets {
            let read = Packet::decode(&mut BytesMut::from(&packet.to_bytes()[..]));
            assert_eq!(read, Ok(Some(packet)), "written and read again");
        }
    }

    /// All peers close their connections.
    pub fn end_all(&mut self) {
        self.peers().into_iter().for_each(|peer| self.forget(peer, true));
    }
}

fn note(events: &[QuorumEvent], packets: &mut Vec<Packet>) {
    for event in events {
        match event {
            QuorumEvent::Packets(all) => {
                all.iter().for_each(|packet| packet.clone().push_to(packets));
            }
            QuorumEvent::Tree { zxid, .. } => packets.push(Packet::Snap { zxid: *zxid }),
            QuorumEvent::Progress => {}
        }
    }
}
