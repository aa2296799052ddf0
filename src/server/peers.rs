//! The other servers: connections to them, and what passes over these.

use super::driver::Event;
use super::membership::Membership;
use super::trace::Trace;
use crate::member::opening::NoOpening;
use crate::member::quorum_connection::{QuorumConnection, QuorumEvent};
use crate::member::quorum_outbox::{OutboxEvent, TreeToSend};
use crate::model::ServerId;
use crate::net::election::{self, ElectionNet, Inbox};
use crate::net::quorum::{self, Patience, PeerEvent, PeerHandle, QuorumPeer};
use crate::replica::Input;
use crate::request::Shared;
use crate::tree::Options;
use crate::tree::freeze::Frozen;
use crate::zab::{self, LinkId, Notification, Packet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// Inputs taken in one go.
const INPUTS_MAX: usize = 1024;

/// Connections to the other servers.
pub struct Peers {
    shared: Arc<Shared>,
    links: BTreeMap<LinkId, PeerHandle>,
    /// Those that something was put for.
    touched: BTreeSet<LinkId>,
    /// Which server it is, of those that said so.
    names: BTreeMap<LinkId, ServerId>,
    /// Its number, and the connection.
    leader: Option<(u64, PeerHandle)>,
    /// Where that goes, and whether anything has come from there.
    called: (String, bool),
    dials: u64,
    /// `observerMasterPort`: an observer calls voters in turn there, not its leader.
    observer_port: Option<u16>,
    /// How long a leader is waited for.
    patience: Patience,
    /// Of the tree that the leader may send.
    options: Options,
    events: UnboundedReceiver<PeerEvent>,
    sender: UnboundedSender<PeerEvent>,
    elections: ElectionNet,
    heard: Inbox,
    membership: Membership,
    driver: UnboundedSender<Event>,
    size_factor: Option<f64>,
    trace: Trace,
}

/// What comes in from other servers.
pub enum Incoming {
    Peer(PeerEvent),
    Election(election::Event),
}

impl Peers {
    /// * `patience`: with a leader that is dialed.
    pub fn new(
        (shared, options): (Arc<Shared>, Options),
        patience: Patience,
        size_factor: Option<f64>,
        (sender, events): (UnboundedSender<PeerEvent>, UnboundedReceiver<PeerEvent>),
        (elections, heard): (ElectionNet, Inbox),
        (membership, observer_port, trace): (Membership, Option<u16>, Trace),
        driver: UnboundedSender<Event>,
    ) -> Self {
        Self {
            shared,
            links: BTreeMap::new(),
            touched: BTreeSet::new(),
            names: BTreeMap::new(),
            leader: None,
            called: Default::default(),
            dials: 0,
            observer_port,
            patience,
            options,
            events,
            sender,
            elections,
            heard,
            membership,
            driver,
            size_factor,
            trace,
        }
    }

    /// `snapshotSizeFactor`: see [`super::log_read::limit_bytes`].
    pub const fn size_factor(&self) -> Option<f64> {
        self.size_factor
    }

    /// What happens next; never, where there are no other servers.
    pub async fn next(peers: &mut Option<Self>) -> Incoming {
        let Some(peers) = peers else { return std::future::pending().await };
        tokio::select! {
            biased;
            // The channel does not end: a sender of it is kept here.
            Some(event) = peers.events.recv() => Incoming::Peer(event),
            event = peers.heard.take() => Incoming::Election(event),
        }
    }

    /// What comes in means this to the replica. Takes what else has come in already, up to a limit.
    pub fn take(&mut self, incoming: Incoming, now_us: u64, inputs: &mut Vec<Input>) {
        match incoming {
            Incoming::Peer(event) => self.take_peer(event, now_us, inputs),
            Incoming::Election(event) => {
                let input = take_election(event);
                inputs.extend(input.map(|input| Input::Peer { input, now_us }));
            }
        }
        while inputs.len() < INPUTS_MAX
            && let Ok(event) = self.events.try_recv()
        {
            self.take_peer(event, now_us, inputs);
        }
    }

    fn take_peer(&mut self, event: PeerEvent, now_us: u64, inputs: &mut Vec<Input>) {
        let peer = |input| Input::Peer { input, now_us };
        match event {
            PeerEvent::Accepted { link, handle, peer } => {
                tracing::debug!(link = link.0, %peer, "a learner connects");
                self.links.insert(link, handle);
            }
            PeerEvent::Received { from, event } => {
                self.take_received((from, event), now_us, inputs);
            }
            PeerEvent::Sent { event: OutboxEvent::TreeEnded(frozen), .. } => {
                let _stopped = self.driver.send(Event::TreeSent(frozen));
            }
            PeerEvent::Sent { to, event: OutboxEvent::Progress } => {
                self.take_received((to, QuorumEvent::Progress), now_us, inputs);
            }
            PeerEvent::Gone { from: QuorumPeer::Learner(link), why } => {
                self.tell_last(Some(link));
                if let Some(learner) = self.forget(link) {
                    tracing::info!(learner, why, "a learner is gone");
                }
                inputs.push(peer(zab::Input::LearnerGone { link }));
            }
            PeerEvent::Gone { from: QuorumPeer::Leader { dial }, why } if self.is_on(dial) => {
                let (at, spoke) = std::mem::take(&mut self.called);
                if spoke {
                    tracing::info!(at, why, "the connection to the leader is gone");
                } else {
                    tracing::warn!(at, why, "the leader gave no answer at its quorum port");
                }
                self.hang_up();
                inputs.push(peer(zab::Input::LeaderGone));
            }
            // Of a connection to a leader that was given up.
            PeerEvent::Gone { .. } => {}
        }
    }

    fn take_received(
        &mut self,
        (from, event): (QuorumPeer, QuorumEvent),
        now_us: u64,
        inputs: &mut Vec<Input>,
    ) {
        let peer = |input| Input::Peer { input, now_us };
        match (from, event) {
            (QuorumPeer::Learner(link), QuorumEvent::Packets(packets)) => {
                if let Some(Packet::FollowerInfo { info, .. } | Packet::ObserverInfo { info, .. }) =
                    packets.first()
                {
                    self.names.insert(link, info.id);
                }
                self.trace.received(Some(link), &packets);
                let packets = packets.into_iter();
                inputs.extend(packets.map(|packet| peer(zab::Input::Learner { link, packet })));
            }
            (QuorumPeer::Learner(link), QuorumEvent::Progress) => {
                inputs.push(peer(zab::Input::Progress { link: Some(link) }));
            }
            (QuorumPeer::Leader { dial }, _) if !self.is_on(dial) => {} // It was given up.
            (QuorumPeer::Leader { .. }, QuorumEvent::Packets(packets)) => {
                self.called.1 = true;
                self.trace.received(None, &packets);
                let packets = packets.into_iter();
                inputs.extend(packets.map(|packet| peer(zab::Input::Leader { packet })));
            }
            (QuorumPeer::Leader { .. }, QuorumEvent::Tree { zxid, tree }) => {
                self.trace.received(None, &[Packet::Snap { zxid }]);
                inputs.push(Input::LeaderTree { zxid, tree });
            }
            (QuorumPeer::Leader { .. }, QuorumEvent::Progress) => {
                inputs.push(peer(zab::Input::Progress { link: None }));
            }
            (QuorumPeer::Learner(_), QuorumEvent::Tree { .. }) => {} // A learner sends none.
        }
    }

    fn hang_up(&mut self) {
        self.leader = None;
        self.tell_last(None);
    }

    /// What was last said over a connection that has ended.
    fn tell_last(&mut self, link: Option<LinkId>) {
        let Some((received, sent)) = self.trace.end(link) else { return };
        match link {
            Some(link) => {
                let learner = self.names.get(&link).map(|id| id.0);
                tracing::warn!(
                    link = link.0,
                    learner,
                    received,
                    sent,
                    "last messages of a learner's connection"
                );
            }
            None => tracing::warn!(received, sent, "last messages of the connection to the leader"),
        }
    }

    /// Closes the connection to a learner; who that was, if it was there and had said it.
    fn forget(&mut self, link: LinkId) -> Option<i64> {
        let name = self.names.remove(&link);
        self.links.remove(&link)?;
        name.map(|id| id.0)
    }

    /// * `leads`: this server still does; otherwise it is the end of them all.
    fn close(&mut self, link: LinkId, why: &str, leads: bool) {
        match self.forget(link) {
            Some(learner) if leads => {
                tracing::warn!(learner, why, "connection to a learner closed")
            }
            learner => tracing::debug!(learner, why, "connection to a learner closed"),
        }
    }

    fn is_on(&self, dial: u64) -> bool {
        self.leader.as_ref().is_some_and(|(number, _)| *number == dial)
    }

    /// Does what `zab` asked for.
    pub fn perform(&mut self, action: zab::Action, peer: &zab::Peer) {
        match action {
            zab::Action::ToLearner { link, bytes } => {
                if let Some(handle) = self.links.get_mut(&link) {
                    self.trace.sent(Some(link), &bytes);
                    handle.put(bytes);
                    self.touched.insert(link);
                }
            }
            zab::Action::CloseLink { link, why } => {
                self.close(link, &why, matches!(peer.role(), zab::Role::Leading(_)));
            }
            zab::Action::Connect { leader } => self.connect(leader, &peer.core),
            zab::Action::ToLeader { bytes } => {
                if let Some((_, handle)) = &mut self.leader {
                    self.trace.sent(None, &bytes);
                    handle.put(bytes);
                }
            }
            zab::Action::HangUp => self.hang_up(),
            zab::Action::Tell { to, notification } => {
                self.elections.send(to, notification.encode());
            }
            zab::Action::DialAll => self.elections.dial_all(),
            zab::Action::ViewProposed { view } => {
                self.membership.on_proposed(&view, &self.elections);
            }
            zab::Action::ViewDecided { view, is_last } => {
                self.membership.on_decided(view, is_last, &mut self.elections);
            }
            // The rest is the replica's and the driver's, or told by `roles`.
            _ => {}
        }
    }

    fn connect(&mut self, leader: ServerId, core: &zab::Core) {
        self.dials += 1;
        let addresses = match self.observer_port.filter(|_| core.view.is_observer(core.me)) {
            Some(port) => self.master(port, core),
            None => {
                let member = core.view.members.get(&leader);
                let all = member.into_iter().flat_map(|member| &member.addresses);
                all.map(|address| (address.host.clone(), address.quorum_port)).collect()
            }
        };
        let at: Vec<String> =
            addresses.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        self.called = (at.join(" or "), false);
        let connecting = quorum::dial(addresses, self.patience);
        let connection = QuorumConnection::dialed(self.dials, Box::new(NoOpening), self.options, 0);
        let handle = quorum::start(connecting, connection, self.sender.clone());
        self.leader = Some((self.dials, handle));
    }

    /// The next voter in turn: each observer begins with another one, so that they spread.
    fn master(&self, port: u16, core: &zab::Core) -> Vec<(String, u16)> {
        let voters: Vec<ServerId> = core.view.voters().collect();
        let at = (self.dials + core.me.0.unsigned_abs()) as usize % voters.len().max(1);
        let member = voters.get(at).and_then(|id| core.view.members.get(id));
        let hosts = member.into_iter().flat_map(|member| &member.addresses);
        hosts.map(|address| (address.host.clone(), port)).collect()
    }

    /// Sends what was put together since.
    pub fn flush(&mut self) {
        for link in std::mem::take(&mut self.touched) {
            if self.links.get_mut(&link).is_some_and(|handle| !handle.flush()) {
                let learner = self.names.get(&link).map(|id| id.0);
                tracing::warn!(learner, "a learner takes nothing: its connection is closed");
            }
        }
        if let Some((_, handle)) = &mut self.leader {
            handle.flush();
        }
    }

    /// Sends the frozen tree to a learner.
    pub fn send_tree(&mut self, link: LinkId, frozen: Frozen) {
        let learner = self.names.get(&link).copied();
        match self.links.get_mut(&link) {
            Some(handle) => {
                let snap = Packet::Snap { zxid: frozen.zxid }.to_bytes();
                self.trace.sent(Some(link), &snap);
                handle.send_tree(TreeToSend { shared: self.shared.clone(), frozen, learner });
            }
            None => {
                let _stopped = self.driver.send(Event::TreeSent(frozen));
            }
        }
    }
}

fn take_election(event: election::Event) -> Option<zab::Input> {
    match event {
        election::Event::LinkUp { to } => Some(zab::Input::LinkUp { to }),
        election::Event::LinkDown { to } => Some(zab::Input::LinkDown { to }),
        election::Event::Heard { from, message } => match Notification::decode(&message) {
            Ok(notification) => Some(zab::Input::Heard { from, notification }),
            Err(error) => {
                tracing::warn!(from = from.0, %error, "notification not understood");
                None
            }
        },
        election::Event::Deaf { place } => {
            tracing::error!(place, "nobody can call at the election port; trying on");
            None
        }
    }
}
