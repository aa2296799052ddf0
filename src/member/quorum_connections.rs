//! Connections between a leader and its learners: which of them count, and what comes over them.

use super::actions::Address;
use super::message_tracker::MessageTracker;
use super::{Action, Input, Member, Now, QuorumPeer};
use crate::model::{ServerId, Zxid};
use crate::replica;
use crate::tree::Tree;
use crate::tree::freeze::Frozen;
use crate::zab::{self, Core, LinkId, Packet, Role};
use std::collections::BTreeMap;

/// The connections that there are.
pub struct QuorumConnections {
    /// Learners' connections, each with the server id that the learner has given.
    learners: BTreeMap<LinkId, Option<ServerId>>,
    leader: Option<LeaderConnection>,
    /// Dials of a leader so far.
    dials: u64,
    /// `observerMasterPort`: an observer dials the voters in turn there, not its leader.
    observer_port: Option<u16>,
    tracker: MessageTracker,
}

/// The connection to the leader, or the attempt at one.
struct LeaderConnection {
    dial: u64,
    /// Where it goes, for log lines.
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
        }
    }

    /// Whether what came over this connection counts: a leader's connection that was given up, and a learner's connection
    /// that was closed here, are nothing to agreement any more.
    fn is_current(&self, from: QuorumPeer) -> bool {
        match from {
            QuorumPeer::Learner(link) => self.learners.contains_key(&link),
            QuorumPeer::Leader { dial } => {
                self.leader.as_ref().is_some_and(|leader| leader.dial == dial)
            }
        }
    }

    /// Notes what a connection brought before it is processed.
    fn note_packets(&mut self, from: QuorumPeer, packets: &[Packet], now: Now) {
        match from {
            QuorumPeer::Learner(link) => {
                self.tracker.received(Some(link), packets, now);
                if let Some(Packet::FollowerInfo { info, .. } | Packet::ObserverInfo { info, .. }) =
                    packets.first()
                {
                    self.learners.insert(link, Some(info.id));
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

    fn learner_id(&self, link: LinkId) -> Option<i64> {
        self.learners.get(&link).copied().flatten().map(|id| id.0)
    }

    /// Forgets the connection to the leader.
    fn forget_leader(&mut self, now: Now) -> Option<LeaderConnection> {
        let leader = self.leader.take()?;
        self.log_last_messages(None, now);
        Some(leader)
    }

    /// The last messages of a connection that has ended, if they are kept.
    fn log_last_messages(&mut self, link: Option<LinkId>, now: Now) {
        let Some((received, sent)) = self.tracker.end(link, now) else { return };
        match link {
            Some(link) => tracing::warn!(
                connection = link.0,
                learner = self.learner_id(link),
                received,
                sent,
                "last messages of a learner's connection"
            ),
            None => tracing::warn!(received, sent, "last messages of the connection to the leader"),
        }
    }

    /// Dials the leader; an observer dials the next voter in turn where followers take observers.
    fn dial(&mut self, leader: ServerId, core: &Core, now: Now, out: &mut Vec<Action>) {
        self.hang_up(now, out);
        self.dials += 1;
        let addresses = match self.observer_port.filter(|_| core.view.is_observer(core.me)) {
            Some(port) => self.observer_master(port, core),
            None => {
                let member = core.view.members.get(&leader);
                let all = member.into_iter().flat_map(|member| &member.addresses);
                all.map(|address| (address.host.clone(), address.quorum_port)).collect()
            }
        };
        let shown: Vec<String> =
            addresses.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        let (dial, shown) = (self.dials, shown.join(" or "));
        self.leader = Some(LeaderConnection { dial, addresses: shown, has_spoken: false });
        out.push(Action::DialLeader { dial, addresses });
    }

    /// The next voter in turn: each observer begins with another one, so that observers spread over the voters.
    fn observer_master(&self, port: u16, core: &Core) -> Vec<Address> {
        let voters: Vec<ServerId> = core.view.voters().collect();
        let at = (self.dials + core.me.0.unsigned_abs()) as usize % voters.len().max(1);
        let member = voters.get(at).and_then(|id| core.view.members.get(id));
        let hosts = member.into_iter().flat_map(|member| &member.addresses);
        hosts.map(|address| (address.host.clone(), port)).collect()
    }

    fn hang_up(&mut self, now: Now, out: &mut Vec<Action>) {
        if self.forget_leader(now).is_some() {
            out.push(Action::CloseLeader);
        }
    }

    /// * `is_leading`: otherwise this is the end of all learners' connections, and each alone is no news.
    fn close_learner(&mut self, link: LinkId, why: &str, is_leading: bool, out: &mut Vec<Action>) {
        let learner = self.learner_id(link);
        if self.learners.remove(&link).is_none() {
            return;
        }
        match learner {
            Some(learner) if is_leading => {
                tracing::warn!(learner, why, "connection to a learner closed");
            }
            _ => tracing::debug!(learner, why, "connection to a learner closed"),
        }
        out.push(Action::CloseLearner { link });
    }
}

impl Member {
    pub(super) fn on_learner_connected(&mut self, link: LinkId) {
        if let Some(ensemble) = &mut self.ensemble {
            ensemble.quorum.learners.insert(link, None);
        }
    }

    /// Whether what comes over this connection counts.
    pub fn is_current(&self, from: QuorumPeer) -> bool {
        self.ensemble.as_ref().is_some_and(|ensemble| ensemble.quorum.is_current(from))
    }

    /// Packets that were read together are processed one by one. One of them may end its connection, or begin another: the
    /// packets after it came from a leader that is none any more, and the next leader's connection must not get them.
    pub(super) fn on_packets(
        &mut self,
        now: Now,
        from: QuorumPeer,
        packets: Vec<Packet>,
        out: &mut Vec<Action>,
    ) {
        if !self.is_current(from) {
            return;
        }
        if let Some(ensemble) = &mut self.ensemble {
            ensemble.quorum.note_packets(from, &packets, now);
        }
        for packet in packets {
            if !self.is_current(from) {
                return;
            }
            let input = match from {
                QuorumPeer::Learner(link) => {
                    self.learner_requests += u64::from(matches!(packet, Packet::Request(_)));
                    zab::Input::Learner { link, packet }
                }
                QuorumPeer::Leader { .. } => zab::Input::Leader { packet },
            };
            self.step_zab(now, input, out);
        }
    }

    pub(super) fn on_leader_tree(
        &mut self,
        now: Now,
        dial: u64,
        zxid: Zxid,
        tree: Box<Tree>,
        out: &mut Vec<Action>,
    ) {
        let from = QuorumPeer::Leader { dial };
        if !self.is_current(from) {
            return;
        }
        if let Some(ensemble) = &mut self.ensemble {
            ensemble.quorum.note_packets(from, &[Packet::Snap { zxid }], now);
        }
        self.step_replica(now, replica::Input::LeaderTree { zxid, tree }, out);
    }

    pub(super) fn on_progress(&mut self, now: Now, from: QuorumPeer, out: &mut Vec<Action>) {
        if self.is_current(from) {
            let link = match from {
                QuorumPeer::Learner(link) => Some(link),
                QuorumPeer::Leader { .. } => None,
            };
            self.step_zab(now, zab::Input::Progress { link }, out);
        }
    }

    pub(super) fn on_disconnected(
        &mut self,
        now: Now,
        from: QuorumPeer,
        why: String,
        out: &mut Vec<Action>,
    ) {
        let Some(ensemble) = &mut self.ensemble else { return };
        let quorum = &mut ensemble.quorum;
        match from {
            QuorumPeer::Learner(link) => {
                quorum.log_last_messages(Some(link), now);
                let learner = quorum.learner_id(link);
                if quorum.learners.remove(&link).is_some() && learner.is_some() {
                    tracing::info!(learner, why, "connection to a learner has ended");
                }
                self.step_zab(now, zab::Input::LearnerGone { link }, out);
            }
            QuorumPeer::Leader { .. } if quorum.is_current(from) => {
                if let Some(leader) = quorum.forget_leader(now) {
                    let addresses = leader.addresses;
                    if leader.has_spoken {
                        tracing::info!(addresses, why, "the connection to the leader has ended");
                    } else {
                        tracing::warn!(
                            addresses,
                            why,
                            "the leader gave no answer at its quorum port"
                        );
                    }
                }
                self.step_zab(now, zab::Input::LeaderGone, out);
            }
            QuorumPeer::Leader { .. } => {} // Given up before.
        }
    }

    /// A tree for a learner that has gone is not sent: its freeze ends at once.
    pub(super) fn send_tree(
        &mut self,
        now: Now,
        link: LinkId,
        frozen: Frozen,
        out: &mut Vec<Action>,
    ) {
        let quorum = self.ensemble.as_mut().map(|ensemble| &mut ensemble.quorum);
        let Some(quorum) = quorum.filter(|quorum| quorum.learners.contains_key(&link)) else {
            return self.step(now, Input::TreeSent(frozen), out);
        };
        let learner = quorum.learner_id(link);
        quorum.tracker.sent(Some(link), &Packet::Snap { zxid: frozen.zxid }.to_bytes(), now);
        out.push(Action::SendTree { link, frozen, learner });
    }

    pub(super) fn on_connection_action(
        &mut self,
        now: Now,
        action: zab::Action,
        out: &mut Vec<Action>,
    ) {
        let Some(ensemble) = &mut self.ensemble else { return };
        let (quorum, peer) = (&mut ensemble.quorum, self.replica.peer());
        match action {
            zab::Action::ToLearner { link, bytes } if quorum.learners.contains_key(&link) => {
                quorum.tracker.sent(Some(link), &bytes, now);
                out.push(Action::SendToLearner { link, bytes });
            }
            zab::Action::ToLeader { bytes } if quorum.leader.is_some() => {
                quorum.tracker.sent(None, &bytes, now);
                out.push(Action::SendToLeader { bytes });
            }
            zab::Action::CloseLink { link, why } => {
                let is_leading = matches!(peer.role(), Role::Leading(_));
                quorum.close_learner(link, &why, is_leading, out);
            }
            zab::Action::Connect { leader } => quorum.dial(leader, &peer.core, now, out),
            zab::Action::HangUp => quorum.hang_up(now, out),
            // Packets for connections that have ended; and what `replica` or `super` has dealt with.
            _ => {}
        }
    }
}
