//! Dials of leaders, and the beginning of learner connections.

use super::learner_stage::Stage;
use super::network::{Attached, EndId, Holder, ProcessId};
use super::plan::{MS, Micros};
use super::process::{Process, SimLearnerConnection, server_at};
use super::world::World;
use crate::member::dial::{AttemptError, Dial, DialStep};
use crate::member::quorum_connection::QuorumConnection;
use crate::member::quorum_outbox::QuorumOutbox;
use crate::member::sasl_exchange::ConnectionKind;
use crate::member::{Input, QuorumPeer};
use crate::model::Rng;
use crate::zab::LearnerConnectionId;

/// An attempt that does not reach the other machine is repeated within this time.
const SILENT_RETRY_US: Micros = 20 * MS;

/// Chooses the worlds in which servers take learners late.
const LISTENS_STREAM: u64 = 83;
/// When they take learners, after their start: some time after their first election.
const LISTENS_AFTER_US: Micros = 900 * MS;

/// * `limit`: on unsent bytes, if it is not the default one. `dialing`: the server that is dialed.
fn new_connection(
    limit: Option<usize>,
    end: Option<EndId>,
    dialing: Option<(usize, Dial)>,
    receiving: QuorumConnection,
) -> SimLearnerConnection {
    SimLearnerConnection {
        end,
        dialing,
        receiving,
        outbox: limit.map_or_else(QuorumOutbox::default, QuorumOutbox::with_limit),
        unsent: Vec::new(),
        is_blocked: false,
        sleeps_until_us: 0,
        is_closed: false,
    }
}

impl World {
    pub fn dial_leader(
        &mut self,
        at: ProcessId,
        dial: u64,
        addresses: &[(String, u16)],
        is_needed: bool,
    ) {
        self.close_leader(at);
        let now_ms = self.now_us / MS;
        let peer = QuorumPeer::Leader { dial };
        if let Some(process) = self.process(at) {
            process.learner_connections.leader_dial = Some(dial);
            (process.watched.stage, process.watched.replaced) = (Stage::Asking, None);
            process.watched.java_tree = None;
        }
        let Some(to) = server_at(addresses) else {
            let why = "no address".to_owned();
            return self.report(at, Input::Disconnected { from: peer, why });
        };
        let exchange = self.climate().exchanges().dialed(ConnectionKind::Learner, addresses);
        let small_buffers = self.climate().small_buffers;
        let Some(process) = self.process(at) else { return };
        let Some(patience) = process.patience.map(|of| of.of_leader(is_needed)) else { return };
        let dialing = Some((to, Dial::new(vec![format!("server {to}")], patience, now_ms)));
        let receiving = QuorumConnection::dialed(dial, exchange, process.tree_options)
            .with_entries_of(process.entry_max);
        let connection = new_connection(small_buffers, None, dialing, receiving);
        process.learner_connections.all.insert(peer, connection);
        self.replace_election_connection(at, to, dial);
        self.do_within(50, 1000, move |world| world.go_on_dialing(at, peer));
    }

    /// Performs the next steps of a dial of the leader.
    fn go_on_dialing(&mut self, at: ProcessId, peer: QuorumPeer) {
        let now_ms = self.now_us / MS;
        loop {
            let Some(connection) = self.learner_connection(at, peer) else { return };
            let Some((_, dialing)) = &mut connection.dialing else { return };
            match dialing.next(now_ms) {
                DialStep::Attempt { address, until_ms } => {
                    let one_in = if self.climate().breaks_early { 2 } else { 30 };
                    let longest_us = if self.rng.one_in(one_in) { 200 * MS } else { 2 * MS };
                    self.do_within(50, longest_us, move |world| {
                        world.attempt(at, peer, address, until_ms);
                    });
                }
                DialStep::Wait { until_ms: Some(until_ms) } => {
                    return self.do_at(until_ms * MS, move |world| world.go_on_dialing(at, peer));
                }
                DialStep::Wait { until_ms: None } => return,
                DialStep::GiveUp(error) => {
                    self.note(at.server, || format!("* leader: {error}"));
                    return self.give_up(at, peer);
                }
            }
        }
    }

    /// An attempt to reach the leader succeeds, fails, or is repeated later.
    fn attempt(&mut self, at: ProcessId, peer: QuorumPeer, address: usize, until_ms: u64) {
        let now_ms = self.now_us / MS;
        let dialing = self.learner_connection(at, peer).and_then(|found| found.dialing.as_ref());
        let Some(&(to, _)) = dialing else { return };
        let is_there = self.net.reaches(at.server, to);
        let error = match &self.servers[to].process {
            _ if until_ms <= now_ms => AttemptError::Silent,
            Some(process) if is_there && self.is_port_open(process) => {
                return self.connect_to_leader(at, to, peer);
            }
            _ if is_there => {
                self.trace.count("dials refused");
                AttemptError::Refused("refused".to_owned())
            }
            _ => {
                let at_us = (self.now_us + self.rng.below(SILENT_RETRY_US)).min(until_ms * MS);
                return self.do_at(at_us, move |world| world.attempt(at, peer, address, until_ms));
            }
        };
        if let Some(connection) = self.learner_connection(at, peer)
            && let Some((_, dialing)) = &mut connection.dialing
        {
            dialing.attempt_failed(address, error, now_ms);
            self.go_on_dialing(at, peer);
        }
    }

    /// Whether a server takes learners: in some worlds only some time after its start, as Java's does on a busy machine.
    fn is_port_open(&self, process: &Process) -> bool {
        let climate = self.climate();
        let is_late = !climate.starts_together && Rng::new(climate.seed, LISTENS_STREAM).one_in(20);
        // Faults end while an ensemble begins anew: the only server that has the data might not be reached (world 3040000014433).
        !is_late || self.is_recovering || LISTENS_AFTER_US < process.own_us(self.now_us)
    }

    fn connect_to_leader(&mut self, at: ProcessId, to: usize, peer: QuorumPeer) {
        let now_ms = self.now_us / MS;
        let there = self.process_id(to);
        let small_buffers = self.climate().small_buffers;
        let Some(process) = self.process(there) else { return };
        process.learner_connections.accepted += 1;
        let connection = LearnerConnectionId(process.learner_connections.accepted);
        let entry_max = process.entry_max;
        let learner = QuorumPeer::Learner(connection);
        let end = self.net.connect(
            Attached { node: at.server, holder: Holder::LearnerConnection(at, peer) },
            Attached { node: to, holder: Holder::LearnerConnection(there, learner) },
        );
        let exchanges = self.climate().exchanges();
        let exchange = exchanges.accepted(ConnectionKind::Learner, &at.server.to_string());
        let receiving =
            QuorumConnection::accepted(connection, exchange, now_ms).with_entries_of(entry_max);
        let accepted = new_connection(small_buffers, Some(end.other()), None, receiving);
        let Some(process) = self.process(there) else { return };
        process.learner_connections.all.insert(learner, accepted);
        let address = format!("server {}", at.server);
        self.report(there, Input::LearnerConnected { connection, address });
        self.receive(there, learner, &[]);
        self.check_hello(there, learner);
        if let Some(connection) = self.learner_connection(at, peer) {
            (connection.end, connection.dialing) = (Some(end), None);
            self.receive(at, peer, &[]);
            self.check_hello(at, peer);
        }
        self.disturb(at, to, peer);
        self.meet_rival(at, to, peer);
    }
}
