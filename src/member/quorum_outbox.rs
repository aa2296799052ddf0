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

/// The server's limit on unsent bytes. A peer with more than that unsent is disconnected: it costs the server this, and no more.
pub const QUEUED_BYTES_MAX: usize = 256 << 20;

/// A frozen tree for a learner.
#[derive(Clone)]
pub struct TreeToSend {
    pub shared: Arc<Shared>,
    pub frozen: Frozen,
    /// For the log, if the learner has said who it is.
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
    /// There is another tree now, or so much was saved for the frozen one that it was given up.
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
    /// The peer takes a tree; it is not whole yet. At most one per second.
    Progress,
    /// A tree that was put has been sent, or will not be. Once for each tree, however the connection ends.
    TreeEnded(Frozen),
}

enum Item {
    Bytes(Vec<Bytes>, usize),
    Tree { tree: TreeToSend, put_ms: u64 },
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
    queued_bytes: usize,
    tree: Option<OutgoingTree>,
    opening: Vec<u8>,
    is_opened: bool,
    is_given_up: bool,
    is_closed: bool,
}

impl Default for QuorumOutbox {
    /// With the server's limit on unsent bytes.
    fn default() -> Self {
        Self::with_limit(QUEUED_BYTES_MAX)
    }
}

impl QuorumOutbox {
    /// * `unsent_max`: a peer with more than this unsent is disconnected.
    pub const fn with_limit(unsent_max: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            unsent_max,
            queued_bytes: 0,
            tree: None,
            opening: Vec::new(),
            is_opened: false,
            is_given_up: false,
            is_closed: false,
        }
    }

    /// Bytes that were put and not given to the caller, trees left out.
    pub const fn unsent(&self) -> usize {
        self.queued_bytes
    }

    /// Puts what the connection's opening has to say: it is sent before all else.
    pub fn put_opening(&mut self, bytes: &[u8]) {
        self.opening.extend_from_slice(bytes);
    }

    /// The connection's opening is done: what was put is sent from now on.
    pub const fn open(&mut self) {
        self.is_opened = true;
    }

    /// Puts bytes after all that was put before. `false`, once: so much is unsent that the connection is to be closed.
    #[must_use]
    pub fn put(&mut self, bytes: Vec<Bytes>) -> bool {
        if self.is_closed {
            return true;
        }
        let unsent = self.queued_bytes;
        let len = bytes.iter().map(Bytes::len).sum();
        self.queued_bytes += len;
        self.queue.push_back(Item::Bytes(bytes, len));
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

    /// A tree is under way: [`Self::next`] asks for pieces of it.
    pub const fn is_in_tree(&self) -> bool {
        self.tree.is_some()
    }

    /// What is sent next, once what was given before has been sent or is kept by the caller.
    pub fn next(&mut self, now_ms: u64) -> Next {
        if !self.opening.is_empty() {
            return Next::Bytes(vec![std::mem::take(&mut self.opening).into()]);
        }
        if !self.is_opened {
            return Next::Nothing;
        }
        if let Some(sending) = &self.tree {
            return Next::Piece(sending.tree.clone());
        }
        match self.queue.pop_front() {
            None => Next::Nothing,
            Some(Item::Bytes(bytes, len)) => {
                self.queued_bytes -= len;
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
                    let ms = now_ms.saturating_sub(put_ms);
                    tracing::info!(target: crate::model::STRANGERS, learner, %zxid, bytes, ms, "the tree was sent to a learner");
                    events.push(OutboxEvent::TreeEnded(tree.frozen));
                }
            }
            // Pieces before this one have been sent, for the caller has come for another.
            Piece::More if sending.reported_ms + PROGRESS_EVERY_MS < now_ms => {
                sending.reported_ms = now_ms;
                events.push(OutboxEvent::Progress);
            }
            Piece::More => {}
        }
        Ok(())
    }

    /// The connection is no more: what is unsent never will be sent, nor what is put from now on.
    pub fn close(&mut self, now_ms: u64, events: &mut Vec<OutboxEvent>) {
        self.is_closed = true;
        self.queued_bytes = 0;
        self.opening.clear();
        let begun = self.tree.take().map(|sending| (sending.tree, sending.bytes, sending.put_ms));
        let waiting = self.queue.drain(..).filter_map(|item| match item {
            Item::Tree { tree, put_ms } => Some((tree, 0, put_ms)),
            Item::Bytes(..) => None,
        });
        for (tree, bytes, put_ms) in begun.into_iter().chain(waiting) {
            let (learner, zxid) = (tree.learner.map(|id| id.0), tree.frozen.zxid);
            let ms = now_ms.saturating_sub(put_ms);
            tracing::info!(target: crate::model::STRANGERS, learner, %zxid, bytes, ms, "the tree was not sent to its end");
            events.push(OutboxEvent::TreeEnded(tree.frozen));
        }
    }
}
