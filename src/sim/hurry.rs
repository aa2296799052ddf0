//! Faults that reconfigurations time: while one is under way, its leader does not reach all servers, or does not hear them; connections
//! break, so that learners come again before it is committed; a connection ends between a leader's tree and NEWLEADER; the leader or all
//! machines lose their power.

use super::network::{Holder, ProcessId};
use super::plan::{Crash, CrashKind, Loss, MS};
use super::world::World;
use crate::model::Zxid;
use crate::tree::txn::config_in;

impl World {
    /// A leader logs its proposal of a configuration.
    pub fn hurry_if_leading(&mut self, at: ProcessId, zxid: Zxid, entry: &bytes::Bytes) {
        let is_leading = self.process(at).is_some_and(|process| process.is_leading);
        if !is_leading || config_in(entry).is_none() {
            return;
        }
        if self.climate().hurries {
            self.do_at(self.now_us, move |world| world.hurry(at));
            self.break_observers();
        }
        self.note_join(zxid);
    }

    /// A server has proposed a configuration.
    fn hurry(&mut self, at: ProcessId) {
        if !self.climate().hurries || self.is_healing || self.rng.one_in(3) {
            return;
        }
        let (leader, all) = (at.server, self.servers.len());
        let others: Vec<usize> = (0..all).filter(|&other| other != leader).collect();
        let for_us = self.rng.range(30, 500) * MS;
        let is_parted = self.rng.one_in(3);
        self.trace.count("reconfigurations cut off");
        if is_parted {
            let mut sides: Vec<Vec<usize>> = vec![vec![leader], Vec::new()];
            others.iter().for_each(|&other| sides[self.rng.pick(2)].push(other));
            self.cut(&sides[0], &sides[1], true, 2 * for_us);
        }
        for other in others {
            let (is_unreached, is_unheard) = (self.rng.one_in(3), self.rng.one_in(2));
            if is_unreached {
                self.cut(&[leader], &[other], false, for_us);
            }
            if is_unheard && !is_unreached {
                self.cut(&[other], &[leader], false, for_us);
            }
            if self.rng.one_in(2) {
                self.do_within(0, 40 * MS, move |world| world.break_if_faulty(leader, other));
            }
        }
        let (keeps, down_us) = (self.rng.below(4000), self.rng.range(5, 600) * MS);
        let loser = self.rng.pick(all);
        match self.rng.below(12) {
            0 | 1 => self.do_within(0, 30 * MS, move |world| {
                if world.process(at).is_some() && !world.is_healing {
                    world.crash(leader, Crash { kind: CrashKind::Power { keeps }, down_us });
                }
            }),
            2 => self.do_within(0, 30 * MS, move |world| {
                if !world.is_healing {
                    world.cut_all_power(keeps, down_us.min(100 * MS));
                }
            }),
            3 | 4 if self.climate().loses_files => self.do_within(2 * MS, 60 * MS, move |world| {
                if !world.is_healing {
                    world.end_and_lose(loser, Loss::Data, down_us.min(50 * MS));
                }
            }),
            _ => {}
        }
    }

    /// A learner has read its leader's tree: the connection may end before NEWLEADER.
    pub fn hurry_after_tree(&mut self, at: ProcessId) {
        if !self.climate().hurries || self.is_healing || !self.rng.one_in(4) {
            return;
        }
        let is_leading = |other: &usize| {
            let process = self.servers[*other].process.as_ref();
            process.is_some_and(|process| process.is_leading)
        };
        let leaders: Vec<usize> = (0..self.servers.len()).filter(is_leading).collect();
        for leader in leaders {
            self.do_within(0, 2 * MS, move |world| world.break_if_faulty(leader, at.server));
        }
    }

    fn break_if_faulty(&mut self, one: usize, other: usize) {
        if self.is_healing || one == other {
            return;
        }
        // The learner finds its leader sooner if it keeps its election connection.
        let breaks_all = self.rng.one_in(3);
        let breaks = |holder| breaks_all || matches!(holder, Holder::LearnerConnection(..));
        let due = self.net.break_some_between(self.now_us, one, other, breaks);
        self.expect_arrivals(due);
    }
}
