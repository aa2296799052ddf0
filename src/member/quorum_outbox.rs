//! The sending half of a learner connection, at either end: packets and trees, in the order in which they were put.

use super::quorum_connection::PROGRESS_EVERY_MS;
use crate::model::ServerId;
use crate::request::Shared;
use crate::tree::freeze::Frozen;
pub use crate::tree::freeze::PIECE_CAPACITY;
use crate::zab::{Packet, SIGNATURE};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;

/// Limit on the memory of one peer's unsent packets, see [`cost`]. A peer with more than that unsent is disconnected, so
/// that it costs the server about this.
///
/// Proposals alone do not reach the limit at a peer that acknowledges what it reads: `oxkeeper.lagBytes` stops writes earlier. So
/// the limit is reached only by a peer that acknowledges, or sends requests, and does not read what it is sent.
pub const QUEUED_BYTES_MAX: usize = 512 << 20;

/// While unsent answers to a learner take more than this, the learner is not read: it sends requests, and does not read the
/// answers. About 140,000 answers; a learner that reads has as many unsent as its clients have syncs and sessions under way,
/// at most.
///
/// Other packets do not count, so that a slow learner with much unsent is read: its ACKs let the leader go on.
///
/// A learner may stop reading because its own writes are blocked, as Java's may when it answers PING:
/// 1. Answers to it are unsent above this limit, so this server reads nothing from it.
/// 2. Its writes are blocked, as nothing reads them, and it waits for them before it reads.
/// 3. Both wait, until this server closes the connection, because it has heard nothing for syncLimit.
const ANSWERS_MAX: usize = 16 << 20;

/// What a piece takes in addition to its bytes: its [`Bytes`], what the allocator adds, and its places in the lists that it is in.
const PIECE_BYTES: usize = 96;

/// Memory that a piece takes until it is sent.
pub const fn cost(piece: &Bytes) -> usize {
    piece.len() + PIECE_BYTES
}

/// Places for items that an empty queue keeps.
const QUEUE_CAPACITY: usize = 256;

/// A frozen tree for a learner.
#[derive(Clone)]
pub struct TreeToSend {
    pub shared: Arc<Shared>,
    pub frozen: Frozen,
    /// For log lines, if the learner's hello has come.
    pub learner: Option<ServerId>,
}

impl TreeToSend {
    /// Appends the next piece of the tree. Holds the shared lock meanwhile: not for the thread that drives the replica.
    pub fn piece(&self, to: &mut Vec<u8>) -> Piece {
        let tree = self.shared.state.tree.read();
        match tree.holds(self.frozen).then(|| tree.freeze_piece(self.frozen, to)) {
            Some(true) => Piece::Last,
            Some(false) => Piece::More,
            None => Piece::Replaced,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Piece {
    More,
    Last,
    /// A restore or the leader's tree has replaced the tree, or so much was saved for the frozen one that it was given up.
    Replaced,
}

/// The tree cannot be sent to its end, so the connection is closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the tree was replaced, or changed by too much, while it was sent")]
pub struct TreeReplaced;

/// What is sent next.
pub enum Next {
    /// Nothing is queued.
    Nothing,
    Bytes(Vec<Bytes>),
    /// A piece of this tree: [`TreeToSend::piece`], then [`QuorumOutbox::take_piece`].
    Piece(TreeToSend),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OutboxEvent {
    /// The peer has read more of a tree, and not all of it yet. At most one per second.
    Progress,
    /// A tree that was put has been sent, or will not be. Once for each tree, however the connection ends.
    TreeEnded(Frozen),
}

enum Item {
    /// `cost`: memory of all pieces, `answers`: memory of the answers among them; see [`cost`].
    Bytes {
        bytes: Vec<Bytes>,
        cost: usize,
        answers: usize,
    },
    Tree {
        tree: TreeToSend,
        put_ms: u64,
    },
}

/// A tree that is being sent.
struct OutgoingTree {
    tree: TreeToSend,
    bytes: u64,
    put_ms: u64,
    reported_ms: u64,
}

/// The sending half of one learner connection.
pub struct QuorumOutbox {
    queue: VecDeque<Item>,
    unsent_max: usize,
    /// Memory of unsent packets, and of the answers among them; see [`cost`].
    unsent: usize,
    unsent_answers: usize,
    tree: Option<OutgoingTree>,
    sasl: Vec<u8>,
    is_ready: bool,
    is_given_up: bool,
    is_closed: bool,
}

impl Default for QuorumOutbox {
    /// An empty outbox with the server's limit on unsent bytes.
    fn default() -> Self {
        Self::with_limit(QUEUED_BYTES_MAX)
    }
}

impl QuorumOutbox {
    /// * `unsent_max`: a peer whose unsent packets take more than this is disconnected.
    pub const fn with_limit(unsent_max: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            unsent_max,
            unsent: 0,
            unsent_answers: 0,
            tree: None,
            sasl: Vec::new(),
            is_ready: false,
            is_given_up: false,
            is_closed: false,
        }
    }

    /// Memory of the packets that were put and not given to the caller, trees left out; see [`cost`].
    pub const fn unsent(&self) -> usize {
        self.unsent
    }

    /// Whether so many answers are unsent that the learner is not to be read.
    pub const fn has_many_answers(&self) -> bool {
        ANSWERS_MAX < self.unsent_answers
    }

    /// Puts what the connection's SASL exchange has to send: it is sent before all else.
    pub fn put_sasl(&mut self, bytes: &[u8]) {
        self.sasl.extend_from_slice(bytes);
    }

    /// The connection's SASL exchange is done: what was put is sent from now on.
    pub const fn release(&mut self) {
        self.is_ready = true;
    }

    /// Packets that are not sent yet, and their memory.
    pub fn waiting(&self) -> (u64, u64) {
        let packets = self.queue.iter().map(|item| match item {
            Item::Bytes { bytes, .. } => bytes.len() as u64,
            _ => 1,
        });
        (packets.sum(), self.unsent as u64)
    }

    /// Puts bytes after all that was put before. Returns `false` once, when so much is unsent that the caller has to close the
    /// connection.
    #[must_use]
    pub fn put(&mut self, bytes: Vec<Bytes>) -> bool {
        if self.is_closed {
            return true;
        }
        let bytes = join_answers(bytes);
        let unsent = self.unsent;
        let is_answer = |piece: &&Bytes| Packet::is_answer(piece);
        let (cost, answers) =
            (bytes.iter().map(cost).sum(), bytes.iter().filter(is_answer).map(cost).sum());
        self.unsent += cost;
        self.unsent_answers += answers;
        self.queue.push_back(Item::Bytes { bytes, cost, answers });
        unsent <= self.unsent_max || std::mem::replace(&mut self.is_given_up, true)
    }

    /// Puts a tree after all that was put before.
    pub fn put_tree(&mut self, tree: TreeToSend, now_ms: u64, events: &mut Vec<OutboxEvent>) {
        if self.is_closed {
            events.push(OutboxEvent::TreeEnded(tree.frozen));
        } else {
            self.queue.push_back(Item::Tree { tree, put_ms: now_ms });
        }
    }

    /// Whether a tree is under way: [`Self::next`] asks for pieces of it.
    pub const fn is_in_tree(&self) -> bool {
        self.tree.is_some()
    }

    /// What is sent next. The caller asks when it has sent or kept all bytes that this gave before.
    pub fn next(&mut self, now_ms: u64) -> Next {
        if !self.sasl.is_empty() {
            return Next::Bytes(vec![std::mem::take(&mut self.sasl).into()]);
        }
        if !self.is_ready {
            return Next::Nothing;
        }
        if let Some(sending) = &self.tree {
            return Next::Piece(sending.tree.clone());
        }
        match self.queue.pop_front() {
            None => {
                self.queue.shrink_to(QUEUE_CAPACITY);
                Next::Nothing
            }
            Some(Item::Bytes { bytes, cost, answers }) => {
                self.unsent -= cost;
                self.unsent_answers -= answers;
                Next::Bytes(bytes)
            }
            Some(Item::Tree { tree, put_ms }) => {
                let snap = Packet::Snap { zxid: tree.frozen.zxid }.to_bytes();
                self.tree = Some(OutgoingTree { tree, bytes: 0, put_ms, reported_ms: now_ms });
                Next::Bytes(vec![snap])
            }
        }
    }

    /// A piece of the tree was appended to `bytes`; what follows the last one is appended here.
    ///
    /// * `len`: how many bytes it has.
    ///
    /// # Errors
    /// When there is no such tree any more.
    pub fn take_piece(
        &mut self,
        piece: Piece,
        len: usize,
        bytes: &mut Vec<u8>,
        now_ms: u64,
        events: &mut Vec<OutboxEvent>,
    ) -> Result<(), TreeReplaced> {
        let Some(sending) = &mut self.tree else { return Ok(()) }; // Closed meanwhile.
        sending.bytes += len as u64;
        match piece {
            Piece::Replaced => return Err(TreeReplaced),
            Piece::Last => {
                bytes.extend_from_slice(&(SIGNATURE.len() as u32).to_be_bytes());
                bytes.extend_from_slice(SIGNATURE);
                if let Some(OutgoingTree { tree, bytes, put_ms, .. }) = self.tree.take() {
                    let (learner, zxid) = (tree.learner.map(|id| id.0), tree.frozen.zxid);
                    let took_ms = now_ms.saturating_sub(put_ms);
                    tracing::info!(target: crate::model::STRANGERS, server_id = learner, %zxid, bytes, took_ms, "the tree was sent to a learner");
                    events.push(OutboxEvent::TreeEnded(tree.frozen));
                }
            }
            // Pieces before this one have been sent, since the caller asks for another.
            Piece::More if sending.reported_ms + PROGRESS_EVERY_MS < now_ms => {
                sending.reported_ms = now_ms;
                events.push(OutboxEvent::Progress);
            }
            Piece::More => {}
        }
        Ok(())
    }

    /// The connection has ended: what is unsent is never sent, nor what is put from now on.
    pub fn close(&mut self, now_ms: u64, events: &mut Vec<OutboxEvent>) {
        self.is_closed = true;
        (self.unsent, self.unsent_answers) = (0, 0);
        self.sasl.clear();
        let begun = self.tree.take().map(|sending| (sending.tree, sending.bytes, sending.put_ms));
        let waiting = self.queue.drain(..).filter_map(|item| match item {
            Item::Tree { tree, put_ms } => Some((tree, 0, put_ms)),
            Item::Bytes { .. } => None,
        });
        for (tree, bytes, put_ms) in begun.into_iter().chain(waiting) {
            let (learner, zxid) = (tree.learner.map(|id| id.0), tree.frozen.zxid);
            let took_ms = now_ms.saturating_sub(put_ms);
            tracing::info!(target: crate::model::STRANGERS, server_id = learner, %zxid, bytes, took_ms, "the tree was not sent completely");
            events.push(OutboxEvent::TreeEnded(tree.frozen));
        }
    }
}

/// The same bytes, with answers that follow one another in one piece: a learner may have asked for thousands in one read.
fn join_answers(bytes: Vec<Bytes>) -> Vec<Bytes> {
    let is_answer = |piece: &Bytes| Packet::is_answer(piece);
    if !bytes.windows(2).any(|two| two.iter().all(is_answer)) {
        return bytes;
    }
    let runs = bytes.chunk_by(|one, next| is_answer(one) && is_answer(next));
    runs.map(|run| if let [piece] = run { piece.clone() } else { run.concat().into() }).collect()
}
