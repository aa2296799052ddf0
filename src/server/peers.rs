//! Connections to the other servers: performs what the [`crate::member::Member`] asks for, and reports what comes in.

use super::driver::{Event, tell};
use crate::member::config_files::ConfigFiles;
use crate::member::{Action, Input, ListenAddress, QuorumPeer};
use crate::net::election::{self, ElectionNet, Inbox};
use crate::net::quorum::{
    self, Bind, Patience, PeerEvent, PeerHandle, Source, TreeSink, TreeSinks,
};
use crate::request::Shared;
use crate::store::RealDisk;
use crate::tree::freeze::Frozen;
use crate::tree::load::Loader;
use crate::tree::{Options, Tree};
use crate::zab::{LinkId, Packet};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

/// Inputs taken in one go.
const INPUTS_MAX: usize = 1024;

/// The sockets and configuration files of a member of an ensemble.
pub struct Peers {
    shared: Arc<Shared>,
    learners: BTreeMap<LinkId, PeerHandle>,
    /// Learners' connections that something was put for.
    touched: BTreeSet<LinkId>,
    leader: Option<PeerHandle>,
    /// How long a leader is dialed.
    patience: Patience,
    trees: Arc<TreeSinks>,
    events: UnboundedReceiver<PeerEvent>,
    sender: UnboundedSender<PeerEvent>,
    elections: ElectionNet,
    heard: Inbox,
    files: ConfigFiles<RealDisk>,
    /// Ends the listening for learners at the present addresses.
    listening: CancellationToken,
    accepted: Arc<AtomicU64>,
    driver: UnboundedSender<Event>,
}

impl Peers {
    /// * `patience`: with a leader that is dialed. `options`: of a tree that a leader sends.
    pub fn new(
        shared: Arc<Shared>,
        options: Options,
        patience: Patience,
        (elections, heard): (ElectionNet, Inbox),
        files: ConfigFiles<RealDisk>,
        driver: UnboundedSender<Event>,
    ) -> Self {
        let trees: Arc<TreeSinks> =
            Arc::new(move || -> Box<dyn TreeSink> { Box::new(Sink::new(options)) });
        let (sender, events) = unbounded_channel();
        Self {
            shared,
            learners: BTreeMap::new(),
            touched: BTreeSet::new(),
            leader: None,
            patience,
            trees,
            events,
            sender,
            elections,
            heard,
            files,
            listening: CancellationToken::new(),
            accepted: Arc::default(),
            driver,
        }
    }

    /// Takes what comes in next, and what else has come in already, up to a limit; never returns where there are no other
    /// servers.
    pub async fn next(peers: &mut Option<Self>, inputs: &mut Vec<Input>) {
        let Some(peers) = peers else { return std::future::pending().await };
        tokio::select! {
            biased;
            // The channel does not end: a sender of it is kept here.
            Some(event) = peers.events.recv() => inputs.extend(peers.take(event)),
            event = peers.heard.take() => inputs.extend(election_input(event)),
        }
        while inputs.len() < INPUTS_MAX
            && let Ok(event) = peers.events.try_recv()
        {
            inputs.extend(peers.take(event));
        }
    }

    fn take(&mut self, event: PeerEvent) -> Option<Input> {
        Some(match event {
            PeerEvent::Accepted { link, handle, peer } => {
                tracing::debug!(connection = link.0, %peer, "a learner connects");
                self.learners.insert(link, handle);
                Input::LearnerConnected { link }
            }
            PeerEvent::Packets { source, packets } => {
                Input::Packets { from: from(source), packets }
            }
            PeerEvent::Tree { source, packet, tree } => {
                let (Source::Leader(dial), Packet::Snap { zxid }) = (source, packet) else {
                    return None;
                };
                Input::LeaderTree { dial, zxid, tree: tree.downcast::<Tree>().ok()? }
            }
            PeerEvent::Progress { source } => Input::Progress { from: from(source) },
            PeerEvent::Gone { source, why } => {
                if let Source::Learner(link) = source {
                    self.learners.remove(&link);
                }
                Input::Disconnected { from: from(source), why }
            }
        })
    }

    /// Performs an action that concerns other servers.
    pub fn perform(&mut self, action: Action) {
        match action {
            Action::SendToLearner { link, bytes } => {
                if let Some(handle) = self.learners.get_mut(&link) {
                    handle.put(bytes);
                    self.touched.insert(link);
                }
            }
            Action::SendTree { link, frozen, learner } => self.send_tree(link, frozen, learner),
            Action::CloseLearner { link } => drop(self.learners.remove(&link)),
            Action::DialLeader { dial, addresses } => {
                let connecting = quorum::dial(addresses, self.patience);
                let (source, trees) = (Source::Leader(dial), Some(self.trees.clone()));
                self.leader = Some(quorum::start(connecting, source, self.sender.clone(), trees));
            }
            Action::SendToLeader { bytes } => {
                if let Some(handle) = &mut self.leader {
                    handle.put(bytes);
                }
            }
            Action::CloseLeader => self.leader = None,
            Action::SendNotification { to, message } => self.elections.send(to, message),
            Action::DialElectionPorts => self.elections.dial_all(),
            Action::DialElectionPort { to } => self.elections.dial(to),
            Action::SetElectionAddresses(addresses) => self.elections.set_peers(addresses),
            Action::MoveElectionPort(addresses) => self.elections.move_to(addresses),
            Action::ListenForLearners(addresses) => self.listen(addresses),
            Action::ChangeConfigFiles(change) => {
                // A folder of settings that can't be written to is no reason to stop a server whose data is safe.
                if let (what, Err(error)) = self.files.change(&change) {
                    tracing::error!(
                        %error,
                        "cannot {what}: after a restart this server may know an older configuration"
                    );
                }
            }
            // The driver's own.
            Action::Log(_)
            | Action::WriteSnapshot(_)
            | Action::DiscardSnapshot(_)
            | Action::LoadTree
            | Action::ReadLog { .. }
            | Action::MoveClientPort(_)
            | Action::Wake(_)
            | Action::End(_) => {}
        }
    }

    fn listen(&mut self, addresses: BTreeSet<ListenAddress>) {
        self.listening.cancel();
        self.listening = CancellationToken::new();
        for (host, port) in addresses {
            let bind = Bind { host, port };
            let listening = quorum::listen(bind, self.accepted.clone(), self.sender.clone());
            let token = self.listening.clone();
            tokio::spawn(async move { token.run_until_cancelled(listening).await });
        }
    }

    /// Sends what was put together since.
    pub fn flush(&mut self) {
        for link in std::mem::take(&mut self.touched) {
            if self.learners.get_mut(&link).is_some_and(|handle| !handle.flush()) {
                tracing::warn!(
                    connection = link.0,
                    "a learner takes nothing: its connection is closed"
                );
            }
        }
        if let Some(handle) = &mut self.leader {
            handle.flush();
        }
    }

    fn send_tree(&mut self, link: LinkId, frozen: Frozen, learner: Option<i64>) {
        let mut sending = Sending {
            shared: self.shared.clone(),
            frozen,
            driver: self.driver.clone(),
            learner,
            sent_bytes: 0,
            ended: false,
            began: Instant::now(),
        };
        if let Some(handle) = self.learners.get_mut(&link) {
            let snap = Packet::Snap { zxid: frozen.zxid }.to_bytes();
            handle.send_tree(snap, Box::new(move |to| sending.piece(to)));
        }
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.listening.cancel();
    }
}

const fn from(source: Source) -> QuorumPeer {
    match source {
        Source::Learner(link) => QuorumPeer::Learner(link),
        Source::Leader(dial) => QuorumPeer::Leader { dial },
    }
}

fn election_input(event: election::Event) -> Option<Input> {
    Some(match event {
        election::Event::LinkUp { to } => Input::ElectionConnected { to },
        election::Event::LinkDown { to } => Input::ElectionDisconnected { to },
        election::Event::Heard { from, message } => Input::Notification { from, message },
        election::Event::Deaf { place } => {
            tracing::error!(place, "nobody can call at the election port; trying on");
            return None;
        }
    })
}

/// A frozen tree on its way; says when it is over, however it ends.
struct Sending {
    shared: Arc<Shared>,
    frozen: Frozen,
    driver: UnboundedSender<Event>,
    learner: Option<i64>,
    sent_bytes: u64,
    ended: bool,
    began: Instant,
}

impl Sending {
    fn piece(&mut self, to: &mut Vec<u8>) -> Option<bool> {
        let before = to.len();
        let tree = self.shared.state.tree.read();
        let piece = tree.holds(self.frozen).then(|| tree.freeze_piece(to));
        self.sent_bytes += (to.len() - before) as u64;
        self.ended = piece == Some(true);
        piece
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let (learner, bytes) = (self.learner, self.sent_bytes);
        let (zxid, ms) = (self.frozen.zxid, self.began.elapsed().as_millis() as u64);
        if self.ended {
            tracing::info!(learner, %zxid, bytes, ms, "the tree was sent to a learner");
        } else {
            tracing::info!(learner, %zxid, bytes, ms, "the tree was not sent to its end");
        }
        tell(&self.driver, Input::TreeSent(self.frozen));
    }
}

/// Builds the leader's tree.
struct Sink {
    loader: Loader,
    bytes: u64,
    began: Instant,
}

impl Sink {
    fn new(options: Options) -> Self {
        Self { loader: Loader::new(options), bytes: 0, began: Instant::now() }
    }
}

impl TreeSink for Sink {
    fn take(&mut self, bytes: &[u8]) -> Result<(usize, bool), String> {
        let taken = self.loader.take(bytes).map_err(|error| error.to_string())?;
        self.bytes += taken.bytes as u64;
        Ok((taken.bytes, taken.ended))
    }

    fn finish(self: Box<Self>, packet: &Packet) -> Result<Box<dyn Any + Send>, String> {
        let Packet::Snap { zxid } = packet else { return Err("no SNAP".to_owned()) };
        let tree = self.loader.finish(*zxid).map_err(|error| error.to_string())?;
        let (bytes, znodes) = (self.bytes, tree.node_count());
        let ms = self.began.elapsed().as_millis() as u64;
        tracing::info!(%zxid, bytes, znodes, ms, "the leader's tree was read");
        Ok(Box::new(tree))
    }
}
