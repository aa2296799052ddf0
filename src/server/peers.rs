//! Connections to the other servers: performs what the [`crate::member::Member`] asks for, and reports what comes in.

use super::inbox::{Event, Inbox};
use super::learner_figures::LearnerFigures;
use crate::admin::ObserverInfo;
use crate::member::config_files::ConfigFiles;
use crate::member::election_connections::ConnectionId;
use crate::member::quorum_connection::QuorumConnection;
use crate::member::quorum_outbox::TreeToSend;
use crate::member::sasl_exchange::{ConnectionKind, SaslExchanges};
use crate::member::{Action, ConfigChange, Ended, Input, ListenAddress, QuorumPeer};
use crate::model::ServerId;
use crate::net::election::{self, ElectionSockets};
use crate::net::quorum::{self, DialTimeouts, LearnerPort, PeerEvent, PeerHandle};
use crate::net::{PeerSecurity, Sink};
use crate::request::Shared;
use crate::store::RealDisk;
use crate::tree::Options;
use crate::tree::freeze::Frozen;
use crate::zab::LearnerConnectionId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::task::AbortOnDropHandle;

/// Settings of learner connections.
pub struct LearnerSettings {
    /// How long a leader is dialed.
    pub patience: DialTimeouts,
    /// Options of a tree that the leader sends.
    pub options: Options,
    /// `jute.maxbuffer` and its `extrasize` together: limit on the payload of a packet.
    pub entry_max: usize,
    pub observer_master_port: Option<u16>,
}

/// The sockets and configuration files of a member of an ensemble.
pub struct Peers {
    shared: Arc<Shared>,
    learners: BTreeMap<LearnerConnectionId, PeerHandle>,
    figures: BTreeMap<LearnerConnectionId, LearnerFigures>,
    /// Learner connections with packets that were put since the last flush.
    touched: BTreeSet<LearnerConnectionId>,
    leader: Option<PeerHandle>,
    settings: LearnerSettings,
    /// Gives each learner connection the exchange that it opens with.
    exchanges: Arc<dyn SaslExchanges>,
    security: PeerSecurity,
    events: Sink<PeerEvent>,
    elections: ElectionSockets,
    files: ConfigFiles<RealDisk>,
    /// Addresses where learner connections are accepted, each with its task, which ends when it is dropped.
    listening: BTreeMap<ListenAddress, AbortOnDropHandle<()>>,
    learner_port: Arc<LearnerPort>,
    inbox: Arc<Inbox>,
    /// How long a follower took to put packets for its observers, since this was last taken.
    relaying: Duration,
}

impl Peers {
    pub fn new(
        shared: Arc<Shared>,
        settings: LearnerSettings,
        exchanges: Arc<dyn SaslExchanges>,
        security: PeerSecurity,
        keep_alive: bool,
        files: ConfigFiles<RealDisk>,
        inbox: Arc<Inbox>,
    ) -> Self {
        let to = inbox.clone();
        let elections = Sink::new(move |report| to.put(Event::Election(report)));
        let elections = ElectionSockets::new(keep_alive, security.clone(), elections);
        let to = inbox.clone();
        let events = Sink::new(move |event| to.put(Event::Quorum(event)));
        Self {
            shared,
            learners: BTreeMap::new(),
            figures: BTreeMap::new(),
            touched: BTreeSet::new(),
            leader: None,
            exchanges,
            security,
            events,
            elections,
            files,
            listening: BTreeMap::new(),
            learner_port: Arc::new(LearnerPort::new(
                settings.entry_max,
                settings.observer_master_port,
            )),
            settings,
            inbox,
            relaying: Duration::ZERO,
        }
    }

    /// Turns an event of a learner connection into the `Member`'s input.
    pub fn take(&mut self, event: PeerEvent) -> Option<Input> {
        Some(match event {
            PeerEvent::Accepted { connection, handle, peer } => {
                self.learners.insert(connection, handle);
                self.figures.insert(connection, LearnerFigures::new(peer));
                Input::LearnerConnected { connection, address: peer.to_string() }
            }
            // The permit is released here: the driver steps the `Member` with the event next.
            PeerEvent::Received { from, event, permit: _ } => {
                if let QuorumPeer::Learner(connection) = from
                    && let Some(figures) = self.figures.get_mut(&connection)
                {
                    figures.received(&event);
                }
                return Input::received(from, event);
            }
            PeerEvent::Sent { to, event } => Input::sent(to, event),
            PeerEvent::Gone { from, why } => {
                if let QuorumPeer::Learner(connection) = from {
                    self.learners.remove(&connection);
                    self.figures.remove(&connection);
                }
                Input::Disconnected { from, why }
            }
        })
    }

    /// Turns a report of an election socket into the `Member`'s input.
    ///
    /// * `next_connection`: gives an id for an accepted connection.
    pub fn take_election(
        &mut self,
        report: election::Report,
        next_connection: impl FnOnce() -> ConnectionId,
    ) -> Option<Input> {
        self.elections.take(report, next_connection).map(Input::Election)
    }

    /// Performs an action that concerns other servers.
    pub fn perform(&mut self, action: Action) {
        match action {
            Action::SendToLearner { connection, bytes } => {
                let began = self.leader.is_some().then(Instant::now);
                if let Some(handle) = self.learners.get_mut(&connection) {
                    handle.put(bytes);
                    self.touched.insert(connection);
                    self.figures.get_mut(&connection).into_iter().for_each(LearnerFigures::sent);
                }
                self.relaying += began.map(|began| began.elapsed()).unwrap_or_default();
            }
            Action::SendTree { connection, frozen, learner } => {
                self.send_tree(connection, frozen, learner)
            }
            // A handle that is dropped sends the packets that were put before.
            Action::CloseLearner { connection } => {
                self.figures.remove(&connection);
                drop(self.learners.remove(&connection));
            }
            Action::DialLeader { dial, addresses, is_needed } => {
                let exchange = self.exchanges.dialed(ConnectionKind::Learner, &addresses);
                let patience = self.settings.patience.of_leader(is_needed);
                let (dialing, security) =
                    (quorum::dial(addresses, patience), self.security.clone());
                let connecting = async move {
                    let dialed = dialing.await?;
                    security.dialed(dialed.socket, &dialed.host).await
                };
                let connection = QuorumConnection::dialed(dial, exchange, self.settings.options)
                    .with_entries_of(self.settings.entry_max);
                self.leader = Some(quorum::start(connecting, connection, self.events.clone()));
            }
            Action::SendToLeader { bytes } => {
                if let Some(handle) = &mut self.leader {
                    handle.put(bytes);
                }
            }
            Action::CloseLeader => self.leader = None,
            Action::Election(action) => self.elections.perform(action),
            Action::ListenForLearners(addresses) => self.listen(addresses),
            Action::SetMembers(members) => {
                let hosts: BTreeSet<String> = members.values().flatten().cloned().collect();
                self.security.set_hosts(hosts.iter().cloned().collect());
                self.exchanges.set_hosts(hosts);
                self.learner_port.set_members(members.into_keys().collect());
            }
            // The driver performs these itself.
            Action::Log(_)
            | Action::ChangeConfigFiles(_)
            | Action::WriteSnapshot(_)
            | Action::DiscardSnapshot(_)
            | Action::Answer { .. }
            | Action::LoadTree
            | Action::ReadLog { .. }
            | Action::MoveClientPort(_)
            | Action::Wake(_)
            | Action::End(_) => {}
        }
    }

    /// How long a follower took to put packets for its observers, since the last call.
    pub fn take_relaying(&mut self) -> Duration {
        std::mem::take(&mut self.relaying)
    }

    /// What AdminServer shows of these observers.
    pub fn observers(&self, observers: Vec<(LearnerConnectionId, ServerId)>) -> Vec<ObserverInfo> {
        let shown = observers.into_iter().filter_map(|(connection, id)| {
            let unsent = self.learners.get(&connection)?.unsent();
            Some(self.figures.get(&connection)?.observer(id, unsent))
        });
        shown.collect()
    }

    /// Begins the figures of all learners anew.
    pub fn reset_figures(&mut self) {
        self.figures.values_mut().for_each(LearnerFigures::reset);
    }

    /// Changes the configuration files; if that fails, returns how the server has to end.
    pub fn change_config_files(&self, change: &ConfigChange) -> Option<Ended> {
        let error = self.files.change(change).err()?;
        Some(change.failed(self.files.folder(), &error))
    }

    fn listen(&mut self, addresses: BTreeSet<ListenAddress>) {
        self.listening.retain(|address, _| addresses.contains(address));
        for address in addresses {
            self.listening.entry(address.clone()).or_insert_with(|| {
                let (port, exchanges) = (self.learner_port.clone(), self.exchanges.clone());
                let (security, events) = (self.security.clone(), self.events.clone());
                let listening = quorum::listen(address, port, exchanges, security, events);
                AbortOnDropHandle::new(tokio::spawn(listening))
            });
        }
    }

    /// Why no learner can connect to this server; `None`: each address is bound.
    pub fn port_error(&self) -> Option<String> {
        self.learner_port.error(self.listening.keys().cloned())
    }

    /// Sends the packets that were put since the last flush.
    pub fn flush(&mut self) {
        for connection in std::mem::take(&mut self.touched) {
            if self.learners.get_mut(&connection).is_some_and(|handle| !handle.flush()) {
                tracing::warn!(
                    target: crate::model::STRANGERS,
                    peer = self.figures.get(&connection).map(|figures| display(figures.peer())),
                    connection = connection.0,
                    "connection to a learner closed: too much is unsent; check the learner's load \
                     and its network"
                );
            }
        }
        if let Some(handle) = &mut self.leader {
            handle.flush();
        }
    }

    fn send_tree(&mut self, connection: LearnerConnectionId, frozen: Frozen, learner: Option<i64>) {
        let (shared, learner) = (self.shared.clone(), learner.map(ServerId));
        match self.learners.get_mut(&connection) {
            Some(handle) => handle.send_tree(TreeToSend { shared, frozen, learner }),
            None => self.inbox.put_input(Input::TreeSent(frozen)),
        }
    }
}
