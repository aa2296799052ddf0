//! Election connections: performs what `member::election_connections` decides, as `net::election` does.

use super::network::{Attached, Chunk, Holder, ProcessId};
use super::plan::{MS, Micros};
use super::process::server_at;
use super::world::World;
use crate::member;
use crate::member::election_connections::{Action, ConnectionId, Input};

/// A dial that does not reach the other server is tried again within this time.
const RETRY_US: Micros = 50 * MS;

impl World {
    fn report_election(&mut self, at: ProcessId, input: Input) {
        self.report(at, member::Input::Election(input));
    }

    pub fn perform_for_election(&mut self, at: ProcessId, action: Action) {
        let Some(process) = self.process(at) else { return };
        let connections = &mut process.election_connections;
        match action {
            Action::Dial { connection, addresses, .. } => {
                connections.dialing.insert(connection);
                if let Some(to) = server_at(&addresses) {
                    connections.met.insert(to);
                    self.do_within(100, 3000, move |world| world.dial_election(at, connection, to));
                }
            }
            Action::Write { connection, bytes } => {
                if let Some(&end) = connections.ends.get(&connection) {
                    self.send(end, bytes);
                }
                let written = Input::Written { connection };
                self.do_within(10, 300, move |world| world.report_election(at, written));
            }
            Action::Work { connection, work } => {
                work.run();
                self.report_election(at, Input::WorkDone { connection });
            }
            Action::Close { connection } => {
                connections.dialing.remove(&connection);
                if let Some(end) = connections.ends.remove(&connection) {
                    self.close(end);
                }
            }
            // Every server always listens, and has one address; `member` takes reports itself.
            Action::Listen { .. }
            | Action::StopListening { .. }
            | Action::LimitSilence { .. }
            | Action::Report(_) => {}
        }
    }

    /// A dial connects, is refused, or waits as long as one of the two servers does not reach the other.
    fn dial_election(&mut self, at: ProcessId, connection: ConnectionId, to: usize) {
        let is_reached = self.net.reaches(at.server, to);
        let Some(process) = self.process(at) else { return };
        if !process.election_connections.dialing.contains(&connection) {
            return;
        }
        if !is_reached {
            let retry = move |world: &mut Self| world.dial_election(at, connection, to);
            return self.do_within(RETRY_US / 2, RETRY_US, retry);
        }
        process.election_connections.dialing.remove(&connection);
        let there = self.process_id(to);
        let acceptor = self.process(there);
        let accepted = acceptor.and_then(|process| process.member.next_election_connection());
        let Some(accepted) = accepted else {
            let error = "refused".to_owned();
            return self.report_election(at, Input::DialFailed { connection, error });
        };
        let end = self.net.connect(
            Attached { node: at.server, holder: Holder::ElectionConnection(at, connection) },
            Attached { node: to, holder: Holder::ElectionConnection(there, accepted) },
        );
        for (at, connection, end) in [(at, connection, end), (there, accepted, end.other())] {
            if let Some(process) = self.process(at) {
                process.election_connections.ends.insert(connection, end);
            }
        }
        if let Some(process) = self.process(there) {
            process.election_connections.met.insert(at.server);
        }
        let peer = at.server.to_string();
        self.report_election(there, Input::Accepted { connection: accepted, peer });
        self.report_election(at, Input::Connected { connection, peer: to.to_string() });
    }

    pub fn election_connection_receives(
        &mut self,
        at: ProcessId,
        connection: ConnectionId,
        chunk: Chunk,
    ) {
        let Some(process) = self.process(at) else { return };
        let input = match chunk {
            Chunk::Bytes(bytes) => Input::Received { connection, bytes },
            Chunk::End => {
                process.election_connections.ends.remove(&connection);
                Input::Ended { connection, error: None }
            }
        };
        self.report_election(at, input);
    }
}
