//! Connections between a leader and its learners: which of them are current, and their packets.

use super::dial::HostPort;
use super::message_tracker::MessageTracker;
use super::{Action, Now, QuorumPeer};
use crate::model::{LogMinute, ServerId};
use crate::tree::freeze::Frozen;
use crate::zab::{Core, LearnerConnectionId, Packet, SAME_MYID};
use bytes::Bytes;
use std::collections::BTreeMap;

/// The open connections.
pub struct QuorumConnections {
    /// The learner connections, in the order in which they were accepted.
    learners: BTreeMap<LearnerConnectionId, LearnerConnection>,
    leader: Option<LeaderConnection>,
    /// Dials of a leader so far.
    dials: u64,
    /// `observerMasterPort`: an observer dials the voters in turn there, not its leader.
    observer_port: Option<u16>,
    tracker: MessageTracker,
    /// WARNs about a leader that does not answer, with the reason.
    unanswered: LogMinute<(ServerId, String)>,
    closed: ClosedLearners,
}

/// Connections to learners that were closed.
#[derive(Default)]
struct ClosedLearners {
    /// WARNs, with the reason.
    warned: LogMinute<(ServerId, String)>,
    /// The last one that was connected twice, and when.
    twice: Option<(ServerId, u64)>,
}

/// A server that is connected twice again within this time does not change its role.
const TWICE_WITHIN_MS: u64 = 10_000;

impl ClosedLearners {
    /// Whether a WARN is due. A server that a reconfiguration has made an observer, or a voter, may connect anew before the end of its
    /// connection is noticed. Another server with the same myid connects again and again.
    fn admit(&mut self, id: ServerId, why: &str, now_ms: u64) -> bool {
        let is_twice = why.ends_with(SAME_MYID);
        let repeats = |(before, at_ms)| before == id && now_ms < at_ms + TWICE_WITHIN_MS;
        let is_first = is_twice && !self.twice.is_some_and(repeats);
        if is_twice {
            self.twice = Some((id, now_ms));
        }
        !is_first && self.warned.admit((id, why.to_owned()), now_ms)
    }
}

/// The reason when a connection has ended in order.
pub const CLOSED_BY_PEER: &str = "closed by the peer";

/// Limit on connections without a hello: learners send theirs at once.
const AWAITING_HELLO_MAX: usize = 256;

/// A connection that a learner made.
struct LearnerConnection {
    /// The learner's address, for log lines.
    address: String,
    /// `None`: no hello has come.
    id: Option<ServerId>,
    /// The tree that is on its way to the learner.
    tree: Option<Frozen>,
}

/// The connection to the leader, or the attempt at one.
struct LeaderConnection {
    dial: u64,
    leader: ServerId,
    /// The leader's addresses, for log lines.
    addresses: String,
    has_spoken: bool,
}

impl QuorumConnections {
    pub fn new(observer_port: Option<u16>, tracked_messages: Option<u32>) -> Self {
        Self {
            learners: BTreeMap::new(),
            leader: None,
            dials: 0,
            observer_port,
            tracker: MessageTracker::new(tracked_messages),
            unanswered: LogMinute::default(),
            closed: ClosedLearners::default(),
        }
    }

    /// Whether packets of this connection are processed: those of a leader's connection that was given up, and of a
    /// learner's connection that was closed here, are discarded.
    pub fn is_current(&self, from: QuorumPeer) -> bool {
        match from {
            QuorumPeer::Learner(connection) => self.learners.contains_key(&connection),
            QuorumPeer::Leader { dial } => {
                self.leader.as_ref().is_some_and(|leader| leader.dial == dial)
            }
        }
    }

    pub const fn has_leader(&self) -> bool {
        self.leader.is_some()
    }

    /// Notes the packets of a connection before they are processed.
    pub fn note_packets(&mut self, from: QuorumPeer, packets: &[Packet], now: Now) {
        match from {
            QuorumPeer::Learner(connection) => {
                self.tracker.received(Some(connection), packets, now);
                if let Some(Packet::FollowerInfo { info, .. } | Packet::ObserverInfo { info, .. }) =
                    packets.first()
                    && let Some(learner) = self.learners.get_mut(&connection)
                {
                    learner.id = Some(info.id);
                }
            }
            QuorumPeer::Leader { .. } => {
                self.tracker.received(None, packets, now);
                if let Some(leader) = &mut self.leader {
                    leader.has_spoken = true;
                }
            }
        }
    }

    fn learner_id(&self, connection: LearnerConnectionId) -> Option<i64> {
        self.learners.get(&connection).and_then(|learner| learner.id).map(|id| id.0)
    }

    /// Forgets the connection to the leader.
    fn forget_leader(&mut self, now: Now) -> Option<LeaderConnection> {
        let leader = self.leader.take()?;
        self.log_last_messages(None, now);
        Some(leader)
    }

    /// Logs the last messages of a connection that has ended, if they are kept.
    fn log_last_messages(&mut self, connection: Option<LearnerConnectionId>, now: Now) {
        let Some((received, sent)) = self.tracker.end(connection, now) else { return };
        match connection {
            Some(connection) => tracing::warn!(
                target: crate::model::STRANGERS, connection = connection.0,
                server_id = self.learner_id(connection),
                %received,
                %sent,
                "last messages of a learner's connection, as messageTracker.Enabled asks; nothing to do"
            ),
            None => tracing::warn!(
                target: crate::model::STRANGERS, %received, %sent,
                "last messages of the connection to the leader, as messageTracker.Enabled asks; nothing to do"
            ),
        }
    }

    /// Dials the leader; an observer dials the next voter in turn where followers take observers.
    ///
    /// * `is_needed`: of [`crate::zab::Action::Connect`].
    pub fn dial(
        &mut self,
        leader: ServerId,
        is_needed: bool,
        core: &Core,
        now: Now,
        out: &mut Vec<Action>,
    ) {
        self.hang_up(now, out);
        self.dials += 1;
        // A leader that this server's configurations don't let vote counts its promise.
        let observes = core.view.is_observer(core.me) && core.leaders_view.is_none();
        let addresses = match self.observer_port.filter(|_| observes) {
            Some(port) => self.observer_master(port, core),
            None => {
                // A server that is in a proposed configuration alone leads if it is ahead.
                let mut views = core.all_views().chain(&core.leaders_view);
                let member = views.find_map(|view| view.members.get(&leader));
                let all = member.into_iter().flat_map(|member| &member.addresses);
                all.map(|address| (address.host.clone(), address.quorum_port)).collect()
            }
        };
        let shown: Vec<String> =
            addresses.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        let (dial, shown) = (self.dials, shown.join(" or "));
        self.leader = Some(LeaderConnection { dial, leader, addresses: shown, has_spoken: false });
        out.push(Action::DialLeader { dial, addresses, is_needed });
    }

    /// The next voter in turn: each observer begins with another one, so that observers spread over the voters.
    fn observer_master(&self, port: u16, core: &Core) -> Vec<HostPort> {
        let voters: Vec<ServerId> = core.view.voters().collect();
        let at = (self.dials + core.me.0.unsigned_abs()) as usize % voters.len().max(1);
        let member = voters.get(at).and_then(|id| core.view.members.get(id));
        let hosts = member.into_iter().flat_map(|member| &member.addresses);
        hosts.map(|address| (address.host.clone(), port)).collect()
    }

    pub fn hang_up(&mut self, now: Now, out: &mut Vec<Action>) {
        if self.forget_leader(now).is_some() {
            out.push(Action::CloseLeader);
        }
    }

    /// * `is_leading`: otherwise the connections of all learners end, and no single one is worth a warning.
    pub fn close_learner(
        &mut self,
        connection: LearnerConnectionId,
        why: &str,
        is_leading: bool,
        now: Now,
        out: &mut Vec<Action>,
    ) {
        let Some(LearnerConnection { address, id, .. }) = self.learners.remove(&connection) else {
            return;
        };
        match id.filter(|_| is_leading) {
            Some(id) if self.closed.admit(id, why, now.us / 1000) => {
                self.warn_of_closed(id, &address, why);
            }
            _ => {
                let server_id = id.map(|id| id.0);
                tracing::debug!(server_id, peer = %address, reason = %why, "connection to a learner closed");
            }
        }
        out.push(Action::CloseLearner { connection });
    }

    fn warn_of_closed(&self, id: ServerId, peer: &str, why: &str) {
        let server_id = id.0;
        let other = self.learners.values().find(|learner| learner.id == Some(id));
        if let Some(LearnerConnection { address: connected, .. }) = other
            && why.ends_with(SAME_MYID)
        {
            tracing::warn!(
                target: crate::model::STRANGERS, server_id, %peer, connected_peer = %connected,
                "two servers use myid {id}: one is connected, and another one dials as a learner; correct the file myid of one of them"
            );
        } else {
            tracing::warn!(
                target: crate::model::STRANGERS, server_id, %peer, reason = %why,
                "connection to a learner closed; check that server's log, load and network"
            );
        }
    }

    /// A learner has connected. The oldest connection without a hello is closed if there are too many.
    pub fn accept(
        &mut self,
        connection: LearnerConnectionId,
        address: String,
        out: &mut Vec<Action>,
    ) {
        let mut silent = self.learners.iter().filter(|(_, learner)| learner.id.is_none());
        if let Some((&oldest, LearnerConnection { address, .. })) = silent.next()
            && AWAITING_HELLO_MAX <= 1 + silent.count()
        {
            tracing::warn!(
                target: crate::model::STRANGERS, peer = %address,
                "learner connection closed: {AWAITING_HELLO_MAX} later ones have sent no hello either; allow only members to connect to the quorum port"
            );
            self.learners.remove(&oldest);
            out.push(Action::CloseLearner { connection: oldest });
        }
        self.learners.insert(connection, LearnerConnection { address, id: None, tree: None });
    }

    pub fn send_to_learner(
        &mut self,
        connection: LearnerConnectionId,
        bytes: Bytes,
        now: Now,
        out: &mut Vec<Action>,
    ) {
        if self.learners.contains_key(&connection) {
            self.tracker.sent(Some(connection), &bytes, now);
            out.push(Action::SendToLearner { connection, bytes });
        }
    }

    pub fn send_to_leader(&mut self, bytes: Bytes, now: Now, out: &mut Vec<Action>) {
        if self.leader.is_some() {
            self.tracker.sent(None, &bytes, now);
            out.push(Action::SendToLeader { bytes });
        }
    }

    pub fn send_tree(
        &mut self,
        connection: LearnerConnectionId,
        frozen: Frozen,
        now: Now,
        out: &mut Vec<Action>,
    ) {
        let learner = self.learner_id(connection);
        if let Some(learner) = self.learners.get_mut(&connection) {
            learner.tree = Some(frozen);
        }
        self.tracker.sent(Some(connection), &Packet::Snap { zxid: frozen.zxid }.to_bytes(), now);
        out.push(Action::SendTree { connection, frozen, learner });
    }

    /// A tree was sent to a learner, or will not be.
    pub fn end_tree(&mut self, frozen: Frozen) {
        for learner in self.learners.values_mut() {
            learner.tree = learner.tree.filter(|tree| *tree != frozen);
        }
    }

    /// Closes the connection of a learner that sends packets although its tree was not sent yet; `true`: this one does. A
    /// learner sends nothing until it has read the whole tree; a learner that did could acknowledge a tree that it does not
    /// read, and keep its freeze.
    pub fn close_if_early(
        &mut self,
        connection: LearnerConnectionId,
        now: Now,
        out: &mut Vec<Action>,
    ) -> bool {
        let learner = self.learners.get(&connection);
        let is_early = learner.is_some_and(|learner| learner.tree.is_some());
        if is_early {
            self.close_learner(
                connection,
                "it sends packets before it has its tree",
                true,
                now,
                out,
            );
        }
        is_early
    }

    /// A connection has ended. `false`: it was given up or closed here before.
    pub fn end(&mut self, from: QuorumPeer, why: &str, now: Now) -> bool {
        match from {
            QuorumPeer::Learner(connection) => {
                self.log_last_messages(Some(connection), now);
                let learner = self.learner_id(connection);
                let is_news = self.learners.remove(&connection).is_some();
                if is_news && learner.is_some() {
                    tracing::info!(target: crate::model::STRANGERS, server_id = learner, reason = %why, "connection to a learner has ended");
                }
                is_news
            }
            QuorumPeer::Leader { .. } if self.is_current(from) => {
                if let Some(ended) = self.forget_leader(now) {
                    self.log_end_of_leader(&ended, why, now);
                }
                true
            }
            QuorumPeer::Leader { .. } => false,
        }
    }

    fn log_end_of_leader(&mut self, ended: &LeaderConnection, why: &str, now: Now) {
        let LeaderConnection { leader, addresses, has_spoken, .. } = ended;
        if *has_spoken {
            tracing::info!(
                target: crate::model::STRANGERS, server_id = leader.0, %addresses, reason = %why,
                "the connection to the leader has ended"
            );
        } else if !self.unanswered.admit((*leader, why.to_owned()), now.us / 1000) {
            tracing::debug!(
                server_id = leader.0,
                %addresses,
                reason = %why,
                "the leader has not answered"
            );
        } else if why == CLOSED_BY_PEER {
            tracing::warn!(
                target: crate::model::STRANGERS, server_id = leader.0, %addresses, reason = %why,
                "the leader closed the connection before it answered: look into that server's log"
            );
        } else {
            tracing::warn!(
                target: crate::model::STRANGERS, server_id = leader.0, %addresses, reason = %why,
                "the leader gave no answer at its quorum port: check that the network lets connections through"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Epochs, View, Zxid};
    use crate::zab::{Peer, Settings};

    #[test]
    fn learner_that_sends_packets_before_it_has_its_tree_is_disconnected() {
        let mut connections = QuorumConnections::new(None, None);
        let now = Now { us: 0, wall_ms: 0 };
        let frozen = |number| Frozen { zxid: Zxid::ZERO, digest: None, number };
        let (early, patient) = (LearnerConnectionId(1), LearnerConnectionId(2));
        let mut out = Vec::new();
        for (connection, number) in [(early, 1), (patient, 2)] {
            connections.accept(connection, "there".to_owned(), &mut out);
            assert!(!connections.close_if_early(connection, now, &mut out));
            connections.send_tree(connection, frozen(number), now, &mut out);
        }
        connections.end_tree(frozen(2));
        assert!(connections.close_if_early(early, now, &mut out));
        assert!(!connections.close_if_early(patient, now, &mut out));
        assert!(!connections.is_current(QuorumPeer::Learner(early)));
        assert!(connections.is_current(QuorumPeer::Learner(patient)));
        assert!(
            matches!(out[..], [.., Action::CloseLearner { connection }] if connection == early)
        );
    }

    #[test]
    fn observer_dials_the_voters_in_turn_as_its_master() {
        let text = "server.1=a:1:2:observer\nserver.2=b:1:2\nserver.3=c:1:2\nserver.4=d:1:2";
        let (view, last) = (View::parse(text).unwrap(), Some(Zxid::ZERO));
        let me = ServerId(1);
        let core = Peer::member(me, Settings::DEFAULT, view, Epochs::default(), last).core;
        let mut connections = QuorumConnections::new(Some(9), None);
        let mut asked: Vec<HostPort> = Vec::new();
        for _ in 0..3 {
            let mut out = Vec::new();
            connections.dial(ServerId(2), false, &core, Now { us: 0, wall_ms: 0 }, &mut out);
            let Some(Action::DialLeader { addresses, .. }) = out.pop() else { panic!("no dial") };
            asked.extend(addresses);
        }
        asked.sort();
        assert_eq!(asked, ["b", "c", "d"].map(|host| (host.to_owned(), 9)));
    }

    #[test]
    fn learner_that_is_connected_twice_is_worth_a_warning_once_that_is_repeated() {
        let (mut closed, twice) = (ClosedLearners::default(), format!("connected: {SAME_MYID}"));
        let mut warns = |id, why: &str, now_ms| closed.admit(ServerId(id), why, now_ms);
        assert!(!warns(1, &twice, 0), "its role may have changed");
        assert!(warns(1, &twice, 9999));
        assert!(!warns(1, &twice, 11_000), "it was written");
        assert!(!warns(2, &twice, 12_000));
        assert!(warns(2, "silent for too long", 13_000));
        assert!(!warns(2, &twice, 22_000), "its role may have changed again");
    }
}
