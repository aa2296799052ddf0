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
    /// How many times faster than the member's time that of its connections passes.
    pub haste: u64,
}

impl LearnerStreams {
    pub fn new(
        member: EnsembleMember,
        exchanges: Arc<dyn SaslExchanges>,
        entry_max: usize,
    ) -> Self {
        Self { member, streams: BTreeMap::new(), exchanges, entry_max, haste: 1 }
    }

    /// Open connections: the one to the leader first, then those of learners in the order in which they came.
    pub fn peers(&self) -> Vec<QuorumPeer> {
        let mut peers: Vec<_> = self.streams.keys().copied().collect();
        peers.rotate_right(self.leaders());
        peers
    }

    /// The connection at this place among the open ones; places begin anew after the last one.
    pub fn peer(&self, place: usize) -> Option<QuorumPeer> {
        let (leaders, place) = (self.leaders(), place % self.streams.len().max(1));
        let peer = match place.checked_sub(leaders) {
            Some(place) => self.streams.keys().nth(place),
            None => self.streams.keys().nth_back(leaders - 1 - place),
        };
        peer.copied()
    }

    /// Number of connections to a leader. They are sorted after those of learners.
    fn leaders(&self) -> usize {
        let is_leader = |peer: &&QuorumPeer| matches!(peer, QuorumPeer::Leader { .. });
        self.streams.keys().rev().take_while(is_leader).count()
    }

    /// A learner connects; returns its connection.
    pub fn connect(&mut self) -> QuorumPeer {
        let peer = QuorumPeer::Learner(self.member.connect());
        self.follow_member();
        peer
    }

    /// Connects the dials of the leader that the member has made, and forgets connections that it has closed.
    pub fn follow_member(&mut self) {
        for closed in std::mem::take(&mut self.member.sockets.closed) {
            self.forget(closed, true);
        }
        let leader = QuorumPeer::Leader { dial: self.member.sockets.dial };
        let last = self.member.learners.checked_sub(1).map(oxkeeper::zab::LearnerConnectionId);
        for peer in last.map(QuorumPeer::Learner).into_iter().chain([leader]) {
            if self.member.host.member.is_current(peer) && !self.streams.contains_key(&peer) {
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
        self.member.host.now.us / 1000 * self.haste
    }

    /// The peer sends the bytes of its SASL exchange.
    pub fn open(&mut self, peer: QuorumPeer) {
        let said = words_of(&self.exchanges, ConnectionKind::Learner);
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
        let late = self.streams.iter().filter_map(|(peer, stream)| {
            stream.connection.check_deadline(now_ms).err().map(|error| (*peer, error))
        });
        for (peer, error) in late.collect::<Vec<_>>() {
            self.disconnect(peer, &error);
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
