//! Observers that have promised more than their leader: before they reach it, each may find a rival of it, a server that has chosen a
//! later epoch and never established it. No voter has heard of that epoch, so no leader outbids it.
//!
//! An observer may follow such a leader, because its promise counts in no quorum, until a configuration that makes it a voter counts
//! there. Reconfigurations are in a hurry in these worlds (`super::hurry`), and observers connect several times during each.

use super::learner_stage::Stage;
use super::network::{Holder, ProcessId};
use super::plan::MS;
use super::world::World;
use crate::member::{Input, QuorumPeer};
use crate::model::Epoch;
use crate::zab::Packet;

impl World {
    /// A learner connection was made.
    pub fn meet_rival(&mut self, at: ProcessId, leader: usize, peer: QuorumPeer) {
        if self.climate().rivals && !self.is_healing && self.rng.one_in(3) {
            self.do_at(self.now_us, move |world| world.promise_to_rival(at, leader, peer));
        }
    }

    /// An observer asks a rival of its leader, and hears of a later epoch; then the connection is gone.
    fn promise_to_rival(&mut self, at: ProcessId, leader: usize, peer: QuorumPeer) {
        let QuorumPeer::Leader { dial } = peer else { return };
        let newest = self.checks.history.leaders.keys().next_back().copied().unwrap_or_default();
        let is_stalled = self.is_stalled(at.server);
        let Some(process) = self.process(at) else { return };
        let core = &process.member.replica.peer().core;
        // The promise of a voter would count.
        let observes = core.view.is_observer(core.me);
        let votes = core.all_views().any(|view| view.is_voter(core.me));
        let (accepted, connections) = (core.accepted, &process.learner_connections);
        let is_asking =
            process.watched.stage == Stage::Asking && connections.leader_dial == Some(dial);
        if is_stalled || !is_asking || !observes || votes || newest < accepted {
            return;
        }
        self.trace.count("promises to rivals");
        let epoch = Epoch(newest.0 + self.rng.range(1, 3) as u32);
        let now_us = self.now_us;
        let is_learners = |holder| matches!(holder, Holder::LearnerConnection(..));
        let due = self.net.break_some_between(now_us, at.server, leader, is_learners);
        self.expect_arrivals(due);
        let packets = vec![Packet::LeaderInfo { epoch }];
        self.step(at, Input::Packets { from: peer, packets });
        self.perform(at);
        self.wake_driver(at);
    }

    /// A leader has proposed a configuration: the connections of observers break, again and again.
    pub fn break_observers(&mut self) {
        if !self.climate().rivals || self.is_healing {
            return;
        }
        for _ in 0..self.rng.range(1, 6) {
            self.do_within(0, 400 * MS, Self::break_observers_once);
        }
    }

    fn break_observers_once(&mut self) {
        let observes = |at: &usize| {
            let process = self.servers[*at].process.as_ref();
            process.is_some_and(|process| {
                let core = &process.member.replica.peer().core;
                core.view.is_observer(core.me)
            })
        };
        let all = 0..self.servers.len();
        let observers: Vec<usize> = all.clone().filter(observes).collect();
        for observer in observers {
            if self.is_healing || self.rng.one_in(3) {
                continue;
            }
            for other in all.clone().filter(|other| *other != observer) {
                let is_learners = |holder| matches!(holder, Holder::LearnerConnection(..));
                let due = self.net.break_some_between(self.now_us, observer, other, is_learners);
                self.expect_arrivals(due);
            }
        }
    }
}
