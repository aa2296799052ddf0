//! The oracle that says whether one of two voters may go on without the other (`oraclePath`).
//!
//! An oracle must not say yes to both voters, nor to a voter that lacks what the other one has committed alone; no server can notice
//! that. The oracle of a world keeps to this. Where members change, it says yes only to one of the two voters of the newest
//! configuration that any server knows of: a server that does not know of a later configuration would go on at the same time as its voters.

use super::network::ProcessId;
use super::plan::{MS, Micros, PlantedFault};
use super::world::World;
use crate::member::Input;
use crate::model::ServerId;
use crate::store::Command;

/// A server reads the oracle's file again within this time.
const READ_US: Micros = 60 * MS;
/// Longest time between a no to both voters and the next yes.
const PAUSE_US: Micros = 150 * MS;

impl World {
    /// No voter may go on alone from now on, and soon after that `server` may, if one is given.
    pub fn turn_oracle(&mut self, server: Option<usize>) {
        if self.oracle == server {
            return;
        }
        if let Some(before) = self.oracle.take() {
            self.report_oracle(self.process_id(before));
        }
        if let Some(server) = server {
            self.do_within(0, PAUSE_US, move |world| world.agree_with(server));
        }
    }

    fn agree_with(&mut self, server: usize) {
        let is_right = self.is_of_newest_pair(server) && self.knows_all(server);
        if self.oracle.is_some()
            || !is_right && self.climate().plant != Some(PlantedFault::WrongOracle)
        {
            return self.trace.count("oracle could not say yes");
        }
        self.trace.count("oracle said yes");
        self.note_fault(|| format!("the oracle lets {server} go on alone"));
        self.oracle = Some(server);
        self.report_oracle(self.process_id(server));
    }

    /// Gives a process the oracle's answer when it reads the oracle's file next.
    pub fn report_oracle(&mut self, at: ProcessId) {
        self.do_within(0, READ_US, move |world| {
            let agrees = world.oracle == Some(at.server);
            world.report(at, Input::Oracle { agrees });
        });
    }

    /// Whether a server is one of two voters by the configuration that it has in force, and there is no newer one.
    fn is_of_newest_pair(&self, server: usize) -> bool {
        let Some(view) = &self.servers[server].view else { return false };
        let is_one = view.is_pair() && view.is_voter(ServerId(server as i64));
        is_one && self.believed_views().iter().all(|other| other.version <= view.version)
    }

    /// Whether no other voter goes on alone, and the server `server` has all that each of them has.
    fn knows_all(&self, server: usize) -> bool {
        let views = self.believed_views();
        let votes = |&other: &usize| views.iter().any(|view| view.is_voter(ServerId(other as i64)));
        let mut others = (0..self.servers.len()).filter(|&other| other != server).filter(votes);
        others.all(|other| !self.goes_alone(other) && self.knows_all_of(server, other))
    }

    /// Whether a server was told that it may go on alone, or is about to read the oracle's answer.
    fn goes_alone(&self, server: usize) -> bool {
        let Some(process) = &self.servers[server].process else { return false };
        let is_answer = |input: &Input| matches!(input, Input::Oracle { .. });
        process.may_go_alone || process.events.iter().any(is_answer)
    }

    /// Whether a server's disk has all that the other server may have committed, and the other server's epochs. An epoch on its way to
    /// the other server's disk is one that this server is about to promise or to open.
    fn knows_all_of(&self, server: usize, other: usize) -> bool {
        let durable = self.servers[server].durable;
        let other_process = self.servers[other].process.as_ref();
        let is_at_rest = other_process.is_none_or(|process| {
            let believed = process.standing();
            let is_epoch = |command: &Command| matches!(command, Command::SaveEpoch { .. });
            believed.accepted <= durable.accepted
                && believed.current <= durable.current
                && !process.log.iter().any(is_epoch)
        });
        is_at_rest && self.makes_up_for(server, other)
    }
}
