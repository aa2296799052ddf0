//! The sockets of one member whose peers are played by a test, and their reports.

use super::packets::packets;
use oxkeeper::member::election_connections::{self, ConnectionId, Input as Election};
use oxkeeper::member::{Action, Answer, Input, QuorumPeer};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Default)]
pub struct Sockets {
    /// Reports for the member, in order.
    pub reports: VecDeque<Input>,
    /// The current dial of a leader, or the last one.
    pub dial: u64,
    /// Learner connections that the member has closed, the one to its leader included, oldest first.
    pub closed: Vec<QuorumPeer>,
    /// Election connections that are open or dialed.
    pub election: BTreeSet<ConnectionId>,
    /// How many packets of each name were sent.
    pub packets_sent: BTreeMap<&'static str, usize>,
    /// What an operator was answered, with the number of the question.
    pub answers: Vec<(u64, Answer)>,
}

impl Sockets {
    /// Performs an action. All bytes that are sent must be packets.
    ///
    /// * `connects`: whether the dial of an election port succeeds.
    pub fn perform(&mut self, action: Action, connects: impl FnOnce() -> bool) {
        match action {
            Action::SendTree { frozen, .. } => self.reports.push_back(Input::TreeSent(frozen)),
            Action::SendToLearner { bytes, .. } | Action::SendToLeader { bytes } => {
                for packet in packets(&bytes) {
                    *self.packets_sent.entry(packet.name()).or_default() += 1;
                }
            }
            Action::CloseLearner { connection } => {
                let (from, why) = (QuorumPeer::Learner(connection), "closed here".to_owned());
                self.reports.push_back(Input::Disconnected { from, why });
                self.closed.push(from);
            }
            Action::CloseLeader => self.closed.push(QuorumPeer::Leader { dial: self.dial }),
            Action::DialLeader { dial, .. } => self.dial = dial,
            Action::Answer { ask, answer } => self.answers.push((ask, answer)),
            Action::Election(action) => self.perform_for_election(action, connects),
            _ => {}
        }
    }

    /// How many packets of this name the member sent.
    pub fn sent(&self, name: &str) -> usize {
        self.packets_sent.get(name).copied().unwrap_or_default()
    }

    fn perform_for_election(
        &mut self,
        action: election_connections::Action,
        connects: impl FnOnce() -> bool,
    ) {
        match action {
            election_connections::Action::Dial { connection, .. } => {
                self.election.insert(connection);
                let answer = if connects() {
                    Election::Connected { connection, peer: "there".to_owned() }
                } else {
                    Election::DialFailed { connection, error: "refused".to_owned() }
                };
                self.reports.push_back(Input::Election(answer));
            }
            election_connections::Action::Write { connection, .. } => {
                let written = Election::Written { connection };
                self.reports.push_back(Input::Election(written));
            }
            election_connections::Action::Work { connection, work } => {
                work.run();
                self.reports.push_back(Input::Election(Election::WorkDone { connection }));
            }
            election_connections::Action::Close { connection } => self.end_election(connection),
            _ => {}
        }
    }

    /// Ends an election connection, and drops its reports.
    pub fn end_election(&mut self, connection: ConnectionId) {
        self.election.remove(&connection);
        self.reports.retain(|report| {
            !matches!(
                report,
                Input::Election(
                    Election::Connected { connection: of, .. }
                    | Election::DialFailed { connection: of, .. }
                    | Election::Written { connection: of }
                ) if *of == connection
            )
        });
    }
}
