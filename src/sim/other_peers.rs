//! Peers that do what members of an ensemble do not: a stranger on a learner connection sends packets of another phase. And the first
//! connections of servers that start together end: the connection of a learner that was just accepted, so that its leader has chosen an
//! epoch and has no learner; or the election connection to a leader that is being dialed, which is replaced as if both servers had dialed.

use super::check::Seen;
use super::learner_stage::Stage;
use super::network::{Holder, ProcessId};
use super::plan::{MS, Micros};
use super::world::World;
use crate::member::{Input, QuorumPeer};
use crate::model::{Epoch, ServerId, Zxid};
use crate::zab::{Packet, Role};
use bytes::Bytes;

/// What a learner has heard of a leader's last election is no older than this.
const LOOKED_US: Micros = 100 * MS;
/// A learner waits for so long, and a little longer, until an election connection that has ended is replaced.
const REPLACED_US: Micros = 190 * MS;

impl World {
    /// A learner connection was made.
    pub fn disturb(&mut self, at: ProcessId, leader: usize, peer: QuorumPeer) {
        // A connection that ends because of a stray packet takes time, which servers that start together do not have. And a server that
        // alone has its data is followed by emptied servers if they find it at once.
        let loses_most = self.climate().destroys || self.climate().returns;
        let is_busy = self.is_healing || self.is_starting() || loses_most;
        if self.climate().strays && !is_busy && self.rng.one_in(2) {
            let longest_us = [2, 10, 100][self.rng.pick(3)] * MS;
            self.do_within(0, longest_us, move |world| world.stray(at, peer));
        }
        // One alone: if the connections of a quorum end after its promises, its leader waits for initLimit, as Java's does.
        if self.climate().breaks_early && self.broken_us == 0 && self.rng.one_in(2) {
            self.broken_us = self.now_us;
            self.do_within(0, 12 * MS, move |world| {
                let is_learners = |holder| matches!(holder, Holder::LearnerConnection(..));
                world.trace.count("first learner connections broken");
                world.broken_us = world.now_us;
                let (now_us, server) = (world.now_us, at.server);
                let due = world.net.break_some_between(now_us, server, leader, is_learners);
                world.expect_arrivals(due);
            });
        }
    }

    /// A stranger sends a learner a packet of another phase, as if its leader had sent it.
    fn stray(&mut self, at: ProcessId, peer: QuorumPeer) {
        let QuorumPeer::Leader { dial } = peer else { return };
        let zxid = Zxid::new(Epoch(self.rng.below(4) as u32), self.rng.below(8) as u32);
        let packets = [
            Packet::LeaderInfo { epoch: zxid.epoch() },
            Packet::Diff { zxid },
            Packet::Trunc { zxid },
            Packet::NewLeader { epoch: zxid.epoch(), view: Bytes::new() },
            Packet::UpToDate,
            Packet::Commit { zxid },
        ];
        let packet = packets[self.rng.pick(packets.len())].clone();
        let connection = self.learner_connection(at, peer);
        let is_there = connection.is_some_and(|connection| !connection.is_closed);
        let is_stalled = self.is_stalled(at.server) || !is_there;
        let Some(process) = self.process(at) else { return };
        let is_followed = |leader| leader == Some(dial);
        let is_stray = process.watched.stage.after(&packet).is_none();
        if is_stalled || !is_stray || !is_followed(process.learner_connections.leader_dial) {
            return;
        }
        self.trace.count("packets of another phase");
        self.step(at, Input::Packets { from: peer, packets: vec![packet.clone()] });
        self.perform(at);
        self.wake_driver(at);
        let Some(process) = self.process(at) else { return };
        let goes_on = is_followed(process.learner_connections.leader_dial);
        self.see(&Seen::Strayed { server: at.server, packet: &packet, goes_on });
    }

    /// The election connection to a leader that is being dialed ends, and one of the two servers dials again.
    pub fn replace_election_connection(&mut self, at: ProcessId, leader: usize, dial: u64) {
        if !self.climate().breaks_early || self.broken_us != 0 || self.rng.one_in(3) {
            return;
        }
        self.do_within(0, 10 * MS, move |world| {
            let now_us = world.now_us;
            let Some(process) = world.process(at) else { return };
            if process.watched.stage != Stage::Asking
                || process.learner_connections.leader_dial != Some(dial)
            {
                return;
            }
            let is_for_elections = |holder| matches!(holder, Holder::ElectionConnection(..));
            let due = world.net.break_some_between(now_us, at.server, leader, is_for_elections);
            if due.is_empty() {
                return; // There was none, and so none that one of the two dials again (world 3031000010284).
            }
            let Some(process) = world.process(at) else { return };
            process.watched.replaced = Some((leader, dial, now_us));
            world.trace.count("election connections replaced");
            world.expect_arrivals(due);
        });
    }

    /// A learner leaves its leader: not because the election connection to it has just ended, and will be replaced.
    pub fn look_for_kept_leader(&mut self, at: ProcessId) {
        let now_us = self.now_us;
        let Some(process) = self.process(at) else { return };
        let Some((leader, dial, ended_us)) = process.watched.replaced.take() else { return };
        // It stays with its leader, but dials anew, if others suffice to elect another one by now.
        let dials_anew = matches!(
            process.member.replica.peer().role(),
            Role::Learning(learner) if learner.leader() == ServerId(leader as i64)
        );
        let is_it = !dials_anew && process.learner_connections.leader_dial == Some(dial);
        let is_early = process.watched.stage == Stage::Asking && now_us < ended_us + REPLACED_US;
        // It may have heard that the leader looks for a leader again, or still does in a later round, or has restarted.
        let leads_on = self.servers[leader].process.as_ref().is_some_and(|process| {
            let has_looked = |looked_us| now_us <= looked_us + LOOKED_US;
            process.began_us < ended_us
                && matches!(process.member.replica.peer().role(), Role::Leading(_))
                && !process.watched.looked_again_us.is_some_and(has_looked)
        });
        if is_it && is_early && leads_on {
            let why = "only the election connection to it had ended";
            self.fail("convergence", format!("{} leaves its leader, and {why}", at.server));
        }
    }
}
