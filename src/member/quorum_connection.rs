//! The receiving half of a learner connection, at either end: bytes go in, packets and trees come out.
//!
//! The sending half is `quorum_outbox`. The two are apart because a server receives while it waits for its peer to take
//! what it sends.

use super::auth_packet;
use super::sasl_exchange::{SASL_BYTES_MAX, SaslExchange, SaslProgress, Work};
use crate::model::{ServerId, Zxid};
use crate::request::foreign::Foreign;
use crate::tree::load::{LoadError, Loader};
use crate::tree::{Options, Tree};
use crate::zab::{LearnerConnectionId, Packet, PacketError, PacketLimits, SIGNATURE};
use bytes::{Buf, BytesMut};

/// A learner sends FOLLOWERINFO or OBSERVERINFO as soon as it has connected. A connection on which it has not come as a whole
/// after this time, a SASL exchange included, is closed.
pub const HELLO_WITHIN_MS: u64 = 10_000;
/// Limit on the bytes of an unfinished hello; a hello has 40.
pub const HELLO_BYTES_MAX: usize = 64 * 1024;
/// Longest data of a packet by default: Java's defaults of `jute.maxbuffer` and its `extrasize` together.
const ENTRY_MAX_DEFAULT: usize = 2 * 0xf_ffff;
/// While a tree is under way, progress is reported this often.
pub(super) const PROGRESS_EVERY_MS: u64 = 1000;

/// The other end of a learner connection.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum QuorumPeer {
    /// A learner whose connection this server accepted.
    Learner(LearnerConnectionId),
    /// The leader. `dial`: number of this server's dial, by which packets of an earlier leader's connection are recognised.
    Leader { dial: u64 },
}

/// What a learner connection has received.
pub enum QuorumEvent {
    /// Packets in order, at least one, no SNAP.
    Packets(Vec<Packet>),
    /// SNAP, and the tree that followed it.
    Tree { zxid: Zxid, tree: Box<Tree> },
    /// More of a tree has come; it is not whole yet. At most one per second.
    Progress,
}

/// Why a learner connection is closed.
#[derive(Debug, thiserror::Error)]
pub enum QuorumError {
    #[error(transparent)]
    Packet(#[from] PacketError),
    #[error("{}", .0.reason_between_servers())]
    Foreign(Foreign),
    #[error("{}", auth_packet::UNEXPECTED)]
    Sasl,
    #[error(
        "{} dials this quorum port for an election: the two ports of this server's line server.N differ between zoo.cfg here and \
         there; compare both", dialing(*.0)
    )]
    ElectionHello(Option<ServerId>),
    #[error("no FOLLOWERINFO or OBSERVERINFO came")]
    NoHello,
    #[error("SNAP from a learner")]
    UnexpectedTree,
    #[error(transparent)]
    Tree(#[from] LoadError),
    #[error("no signature after the tree")]
    NoSignature,
    #[error("the connection ended within a tree")]
    EndedInTree,
    #[error("the connection ended before the signature of a tree")]
    EndedBeforeSignature,
    #[error("{0}")]
    Exchange(String),
}

/// What came with an event, for figures.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Received {
    pub packets: u64,
    /// REQUESTs among them.
    pub requests: u64,
    /// The zxid of the last ACK.
    pub acknowledged: Option<Zxid>,
}

impl QuorumEvent {
    pub fn received(&self) -> Received {
        let mut received = Received::default();
        let Self::Packets(packets) = self else { return received };
        for packet in packets {
            received.packets += 1;
            match packet {
                Packet::Request(_) => received.requests += 1,
                Packet::Ack { zxid } => received.acknowledged = Some(*zxid),
                _ => {}
            }
        }
        received
    }
}

/// A tree that is being received.
struct IncomingTree {
    zxid: Zxid,
    loader: Loader,
    /// All of it has come; the signature has not.
    is_whole: bool,
    bytes: u64,
    began_ms: u64,
    reported_ms: u64,
}

/// The receiving half of one learner connection.
pub struct QuorumConnection {
    peer: QuorumPeer,
    /// `None`: the SASL exchange is done.
    exchange: Option<Box<dyn SaslExchange>>,
    output: Vec<u8>,
    /// What the SASL exchange waits for.
    work: Option<Work>,
    /// Why the SASL exchange has failed, if a refusal was sent: the peer gets time to read it.
    refusal: Option<String>,
    /// Options of the trees that the leader sends; `None`: a learner sends none.
    options: Option<Options>,
    /// Bytes that are not processed yet. What is kept of a packet keeps the buffer that the packet was read into: so the
    /// buffer is never larger than what came.
    input: BytesMut,
    /// The tree that is being received; `None`: packets are.
    tree: Option<Box<IncomingTree>>,
    has_spoken: bool,
    /// The learner's id, as its hello names it.
    learner: Option<ServerId>,
    /// When the connection was made; `None`: it is not made yet.
    began_ms: Option<u64>,
    /// How long packets may be after the hello.
    limits: PacketLimits,
}

impl QuorumConnection {
    /// A connection that a learner made.
    pub fn accepted(
        connection: LearnerConnectionId,
        exchange: Box<dyn SaslExchange>,
        now_ms: u64,
    ) -> Self {
        let connection = Self::new(QuorumPeer::Learner(connection), exchange, None);
        Self { began_ms: Some(now_ms), ..connection }
    }

    /// A connection that this server made to its leader.
    ///
    /// * `options`: of the tree that the leader may send.
    pub fn dialed(dial: u64, exchange: Box<dyn SaslExchange>, options: Options) -> Self {
        Self::new(QuorumPeer::Leader { dial }, exchange, Some(options))
    }

    fn new(peer: QuorumPeer, exchange: Box<dyn SaslExchange>, options: Option<Options>) -> Self {
        Self {
            peer,
            exchange: Some(exchange),
            output: Vec::new(),
            work: None,
            refusal: None,
            options,
            input: BytesMut::new(),
            tree: None,
            has_spoken: false,
            learner: None,
            began_ms: None,
            limits: PacketLimits::of(ENTRY_MAX_DEFAULT),
        }
    }

    /// The same with another limit on packets after the hello.
    ///
    /// * `entry_max`: `jute.maxbuffer` and its `extrasize` together.
    pub fn with_entries_of(self, entry_max: usize) -> Self {
        Self { limits: PacketLimits::of(entry_max), ..self }
    }

    pub const fn peer(&self) -> QuorumPeer {
        self.peer
    }

    /// The SASL exchange is done: the outbox may send.
    pub const fn is_ready(&self) -> bool {
        self.exchange.is_none()
    }

    /// What the SASL exchange has to send, before anything from the outbox.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// What the SASL exchange waits for: [`Self::receive`] is called without bytes after it.
    pub const fn take_work(&mut self) -> Option<Work> {
        self.work.take()
    }

    /// Whether a packet has come.
    pub const fn has_spoken(&self) -> bool {
        self.has_spoken
    }

    /// The learner's id, once its hello has come.
    pub const fn learner(&self) -> Option<ServerId> {
        self.learner
    }

    /// Whether a tree is being received: [`Self::receive`] may take long, as it may have gigabytes.
    pub const fn is_in_tree(&self) -> bool {
        self.tree.is_some()
    }

    /// Bytes of a packet that is not whole yet.
    pub fn unfinished_bytes(&self) -> usize {
        self.input.len()
    }

    fn awaits_hello(&self) -> bool {
        !self.has_spoken && matches!(self.peer, QuorumPeer::Learner(_))
    }

    /// When [`Self::check_deadline`] is to be called: what comes before the hello does not move it.
    pub fn deadline_ms(&self) -> Option<u64> {
        let waits = self.exchange.is_some() || self.awaits_hello();
        self.began_ms.filter(|_| waits).map(|began_ms| began_ms + HELLO_WITHIN_MS)
    }

    /// # Errors
    /// When the SASL exchange was not over in time, or no hello has come.
    pub fn check_deadline(&self, now_ms: u64) -> Result<(), QuorumError> {
        match self.deadline_ms() {
            Some(deadline_ms) if deadline_ms <= now_ms && self.exchange.is_some() => {
                self.refused()?;
                Err(QuorumError::Exchange("the SASL exchange takes too long".to_owned()))
            }
            Some(deadline_ms) if deadline_ms <= now_ms => {
                Err(foreign(&self.input).unwrap_or(QuorumError::NoHello))
            }
            _ => Ok(()),
        }
    }

    /// Takes received bytes; the first call, when the connection is made, has no bytes. Events do not depend on how the
    /// bytes are cut, but for the batches of packets.
    ///
    /// # Errors
    /// When the connection is to be closed; events that came before that still count.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        now_ms: u64,
        events: &mut Vec<QuorumEvent>,
    ) -> Result<(), QuorumError> {
        self.began_ms.get_or_insert(now_ms);
        if self.refusal.is_some() {
            return Ok(());
        }
        self.input.extend_from_slice(bytes);
        if !self.open()? {
            return Ok(());
        }
        while self.take_packets(now_ms, events)? && self.take_tree(now_ms, events)? {}
        Ok(())
    }

    /// Steps the SASL exchange. Returns whether it is done.
    fn open(&mut self) -> Result<bool, QuorumError> {
        let Some(exchange) = &mut self.exchange else { return Ok(true) };
        match exchange.step(&mut self.input, &mut self.output) {
            Ok(SaslProgress::NotYet) if SASL_BYTES_MAX < self.input.len() => {
                let text = format!("{} bytes came in the SASL exchange", self.input.len());
                return Err(QuorumError::Exchange(text));
            }
            Ok(SaslProgress::NotYet) => {}
            Ok(SaslProgress::Working(work)) => self.work = Some(work),
            Ok(SaslProgress::Done) => self.exchange = None,
            Err(why) if self.output.is_empty() => return Err(QuorumError::Exchange(why)),
            Err(why) => {
                self.refusal = Some(why);
                self.input = BytesMut::new();
            }
        }
        Ok(self.exchange.is_none())
    }

    fn refused(&self) -> Result<(), QuorumError> {
        self.refusal.clone().map_or(Ok(()), |why| Err(QuorumError::Exchange(why)))
    }

    /// The peer has closed the connection.
    ///
    /// # Errors
    /// When it closed within a tree, or after its SASL exchange had failed.
    pub fn end(&self) -> Result<(), QuorumError> {
        self.refused()?;
        match &self.tree {
            None => Ok(()),
            Some(tree) if tree.is_whole => Err(QuorumError::EndedBeforeSignature),
            Some(_) => Err(QuorumError::EndedInTree),
        }
    }

    /// Takes packets off the input. Returns whether a tree follows.
    fn take_packets(
        &mut self,
        now_ms: u64,
        events: &mut Vec<QuorumEvent>,
    ) -> Result<bool, QuorumError> {
        if self.tree.is_some() {
            return Ok(true);
        }
        let mut packets = Vec::new();
        let ended = loop {
            let limits = match self.awaits_hello() {
                true => PacketLimits::whole(HELLO_BYTES_MAX),
                false => self.limits,
            };
            match Packet::decode_within(&mut self.input, limits) {
                Ok(None) => break Ok(false),
                Ok(Some(packet)) => {
                    self.has_spoken = true;
                    if let Packet::FollowerInfo { info, .. } | Packet::ObserverInfo { info, .. } =
                        &packet
                    {
                        self.learner.get_or_insert(info.id);
                    }
                    if let Packet::Snap { zxid } = packet {
                        break self.begin_tree(zxid, now_ms);
                    }
                    packet.push_to(&mut packets);
                }
                Err(error) => break Err(foreign(&self.input).unwrap_or(error.into())),
            }
        };
        if !packets.is_empty() {
            events.push(QuorumEvent::Packets(packets));
        }
        ended
    }

    fn begin_tree(&mut self, zxid: Zxid, now_ms: u64) -> Result<bool, QuorumError> {
        let options = self.options.ok_or(QuorumError::UnexpectedTree)?;
        self.tree = Some(Box::new(IncomingTree {
            zxid,
            loader: Loader::new(options),
            is_whole: false,
            bytes: 0,
            began_ms: now_ms,
            reported_ms: now_ms,
        }));
        Ok(true)
    }

    /// Takes the tree off the input. Returns whether packets follow.
    fn take_tree(
        &mut self,
        now_ms: u64,
        events: &mut Vec<QuorumEvent>,
    ) -> Result<bool, QuorumError> {
        let Some(tree) = &mut self.tree else { return Ok(true) };
        while !tree.is_whole {
            let taken = tree.loader.take(&self.input)?;
            self.input.advance(taken.bytes);
            tree.bytes += taken.bytes as u64;
            tree.is_whole = taken.ended;
            if taken.bytes == 0 && !taken.ended {
                if tree.reported_ms + PROGRESS_EVERY_MS < now_ms {
                    tree.reported_ms = now_ms;
                    events.push(QuorumEvent::Progress);
                }
                return Ok(false);
            }
        }
        let sealed = 4 + SIGNATURE.len();
        if self.input.len() < sealed {
            return Ok(false);
        }
        if &self.input[4..sealed] != SIGNATURE {
            return Err(QuorumError::NoSignature);
        }
        // Packets after the tree must not keep the tree's buffer.
        self.input = BytesMut::from(&self.input[sealed..]);
        let Some(tree) = self.tree.take() else { return Ok(true) };
        let IncomingTree { zxid, loader, bytes, began_ms, .. } = *tree;
        let tree = Box::new(loader.finish(zxid)?);
        let (znodes, took_ms) = (tree.node_count(), now_ms.saturating_sub(began_ms));
        tracing::info!(%zxid, bytes, znodes, took_ms, "the leader's tree was read");
        events.push(QuorumEvent::Tree { zxid, tree });
        Ok(true)
    }
}

/// The protocol of a peer that dialed the wrong port, or does not fit this server's settings.
fn foreign(bytes: &[u8]) -> Option<QuorumError> {
    match *bytes.first_chunk()? {
        auth_packet::FIRST_BYTES => Some(QuorumError::Sasl),
        // A hello of the election begins with a version below 0; the id comes after it.
        [0xff, 0xff, 0xff, 0xff] => {
            let id = bytes.get(8..16).and_then(|id| id.try_into().ok());
            Some(QuorumError::ElectionHello(id.map(|id| ServerId(i64::from_be_bytes(id)))))
        }
        head => Foreign::recognise(head).map(QuorumError::Foreign),
    }
}

fn dialing(id: Option<ServerId>) -> String {
    id.map_or_else(|| "a server".to_owned(), |id| format!("server {id}"))
}
