//! A server joins, and one that is down leaves, in worlds whose operators write zoo.cfg anew: by a reconfiguration, or by other lines. A member
//! stops that has acknowledged the new configuration, as a proposal or with NEWLEADER, and may not know that it was committed. The others go on
//! by it, until all get the lines of the first ensemble again: that member and the one that left are a majority of them, and lack what was
//! written since.

use super::plan::{ClientAction, Crash, CrashKind, MS};
use super::rescales::LOOK_US;
use super::workload::{self, Op, Request, Required};
use super::world::{Join, World};
use crate::model::{Rng, Zxid};
use std::collections::BTreeSet;

/// The stream that says in which of the worlds whose operators write lines a server joins by a reconfiguration.
const JOINS_STREAM: u64 = 6007;

impl World {
    /// Whether a server joins while another one leaves.
    pub fn has_join(&self) -> bool {
        Rng::new(self.climate().seed, JOINS_STREAM).one_in(3)
    }

    /// All members serve: the joiner starts.
    pub fn begin_join(&mut self, members: BTreeSet<usize>) {
        if self.rng.one_in(2) {
            return self.join_by_lines(members);
        }
        let joiner = self.climate().voters;
        self.servers[joiner].is_out = false;
        self.start_at(joiner, self.now_us);
        self.do_within(LOOK_US, 2 * LOOK_US, Self::ask_to_join);
    }

    /// All stop, and all but one start with lines that have the joiner in its place.
    fn join_by_lines(&mut self, mut members: BTreeSet<usize>) {
        let (joiner, lagging) = (self.climate().voters, self.rng.pick(members.len()));
        members.remove(&lagging);
        members.insert(joiner);
        let (keeps, down_us) = (self.rng.below(4000), self.rng.range(5, 50) * MS);
        self.stop_all(keeps, down_us);
        self.servers[lagging].is_out = true;
        self.write_anew(&members);
        self.servers[joiner].is_out = false;
        self.start_at(joiner, self.now_us + down_us);
        let epoch = self.servers.iter().map(|server| server.durable.current).max();
        let from = epoch.and_then(|epoch| epoch.next()).map(|epoch| Zxid::new(epoch, 0));
        self.join = Some(Join { lagging, from });
    }

    /// As soon as the joiner is synchronised, a member stops, and clients ask for the joiner in its place.
    fn ask_to_join(&mut self) {
        let joiner = self.climate().voters;
        if self.is_healing {
            return;
        }
        if !self.servers[joiner].process.as_ref().is_some_and(|process| process.is_serving()) {
            return self.do_within(LOOK_US, 2 * LOOK_US, Self::ask_to_join);
        }
        let lagging = self.rng.pick(self.climate().voters);
        let down_us = self.rng.range(300, 900) * MS;
        self.crash(lagging, Crash { kind: CrashKind::Process, down_us });
        self.join = Some(Join { lagging, from: None });
        let (joining, leaving) = (Some(workload::member(joiner, true)), Some(lagging.to_string()));
        let change = Op::Reconfig { required: Required::Any, joining, leaving, members: None };
        let action = ClientAction::Send(vec![Request::new(change, "")]);
        self.do_within(0, 200 * MS, move |world| {
            let clients = 0..world.clients.len();
            clients.for_each(|client| world.act_as_client(client, action.clone()));
        });
    }

    /// A leader has logged a configuration that it proposes.
    pub fn note_join(&mut self, zxid: Zxid) {
        if let Some(join) = &mut self.join {
            join.from.get_or_insert(zxid);
        }
    }

    /// A learner acknowledges a zxid. If that tells the leader that it has the configuration, it stops after a few messages, and then, when
    /// there was time to write, all servers do.
    pub fn stop_after_ack(&mut self, learner: usize, zxid: Zxid) {
        let voters = self.climate().voters;
        let is_informed = |join: &mut Join| {
            let is_of_both = learner < voters && learner != join.lagging;
            is_of_both && join.from.is_some_and(|from| from <= zxid)
        };
        let Some(Join { lagging, .. }) = self.join.take_if(is_informed) else { return };
        self.trace.count("members that stop after they have acknowledged a configuration");
        let latency_us = self.climate().latency_us;
        self.do_within(latency_us / 2, 3 * latency_us, move |world| {
            let down_us = world.rng.range(900, 1500) * MS;
            if !world.is_healing {
                world.crash(learner, Crash { kind: CrashKind::Process, down_us });
            }
        });
        self.do_within(20 * MS, 800 * MS, move |world| world.return_to_first(learner, lagging));
    }

    /// All stop, and get the lines of the first ensemble. The two start first.
    fn return_to_first(&mut self, informed: usize, lagging: usize) {
        if self.is_healing {
            return;
        }
        self.stop_all_to_start_first([informed, lagging]);
        self.servers[lagging].is_out = false;
        self.write_first_lines();
    }
}
