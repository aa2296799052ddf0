//! Operators that write zoo.cfg anew at each start, with the `server.N` lines of their ensemble, as many orchestrators do, although
//! `reconfigEnabled=true`. They take a server out by other lines, and then add one; both while all servers are down. The server that was
//! taken out comes back with its old files, at a moment at which most of the others are down. In some worlds all get the first lines again then,
//! as from a template that was never changed.

use super::check::Seen;
use super::membership;
use super::plan::{Crash, CrashKind, MS, Micros};
use super::process::tried_twice;
use super::world::World;
use std::collections::BTreeSet;

/// How often the operators look whether all servers serve.
pub const LOOK_US: Micros = 100 * MS;

impl World {
    /// Begins what the operators do, in worlds that have them. The server that they add is not there yet.
    pub fn begin_rescales(&mut self) {
        let climate = self.climate();
        if !climate.rewrites {
            return;
        }
        let added = climate.voters;
        self.servers[added].is_out = true;
        self.checks.history.writes_lines = true;
        let at_us = self.rng.range(200, 800) * MS;
        let then = if self.has_join() { Self::begin_join } else { Self::take_out };
        self.do_at(at_us, move |world| world.once_all_serve(then));
    }

    /// Calls `then` with the servers that the operators' lines name, as soon as all of them serve.
    fn once_all_serve(&mut self, then: fn(&mut Self, BTreeSet<usize>)) {
        if self.is_healing {
            return;
        }
        let lines = membership::lines_of(&self.servers);
        let serves = |server: &usize| {
            self.servers[*server].process.as_ref().is_some_and(|process| process.is_serving())
        };
        if lines.iter().all(serves) {
            return then(self, lines);
        }
        self.do_within(LOOK_US, 2 * LOOK_US, move |world| world.once_all_serve(then));
    }

    fn take_out(&mut self, mut members: BTreeSet<usize>) {
        let out = self.rng.pick(self.climate().voters);
        members.remove(&out);
        self.rescale(&members);
        self.trace.count("servers that operators take out by lines");
        self.servers[out].is_out = true;
        self.do_within(LOOK_US, 2 * LOOK_US, |world| world.once_all_serve(Self::add));
    }

    fn add(&mut self, mut members: BTreeSet<usize>) {
        let added = self.climate().voters;
        members.insert(added);
        self.rescale(&members);
        self.trace.count("servers that operators add by lines");
        self.servers[added].is_out = false;
        self.start_at(added, self.now_us);
        self.do_within(LOOK_US, 2 * LOOK_US, |world| world.once_all_serve(Self::lag));
    }

    /// One of the first members stops. The others go on without it.
    fn lag(&mut self, members: BTreeSet<usize>) {
        let first = 0..self.climate().voters;
        let (kept, out): (Vec<_>, Vec<_>) = first.partition(|server| members.contains(server));
        let &[out] = out.as_slice() else { return };
        let lagging = kept[self.rng.pick(kept.len())];
        let down_us = self.rng.range(100, 900) * MS;
        self.crash(lagging, Crash { kind: CrashKind::Process, down_us });
        self.do_within(0, 900 * MS, move |world| world.return_retired(out, lagging));
    }

    /// All stop. The server that was taken out starts with its old files, and the one that lags; the others start later.
    fn return_retired(&mut self, out: usize, lagging: usize) {
        if self.is_healing {
            return;
        }
        self.trace.count("servers that come back after their lines are gone");
        let down_us = self.stop_all_to_start_first([out, lagging]);
        self.servers[out].is_out = false;
        if self.rng.one_in(3) {
            self.write_first_lines();
        }
        self.start_at(out, self.now_us + down_us);
    }

    /// All stop; these two start before the others. Gives how long the two are down.
    pub fn stop_all_to_start_first(&mut self, early: [usize; 2]) -> Micros {
        let (keeps, down_us) = (self.rng.below(4000), self.rng.range(5, 50) * MS);
        self.stop_all(keeps, down_us);
        for server in (0..self.servers.len()).filter(|server| !early.contains(server)) {
            let at_us = self.now_us + self.rng.range(1, 1500) * MS;
            self.start_at(server, at_us);
        }
        down_us
    }

    /// The servers are down. The first ones get the lines that they began with, and the added one is left out.
    pub fn write_first_lines(&mut self) {
        self.trace.count("lines of the first ensemble that are written again");
        let added = self.climate().voters;
        self.servers[added].is_out = true;
        self.write_anew(&(0..added).collect());
    }

    /// All servers stop, and start with these members in their files; another server keeps its own files.
    fn rescale(&mut self, members: &BTreeSet<usize>) {
        let (keeps, down_us) = (self.rng.below(4000), self.rng.range(5, 100) * MS);
        self.stop_all(keeps, down_us);
        self.write_anew(members);
    }

    pub fn write_anew(&mut self, members: &BTreeSet<usize>) {
        for server in 0..self.servers.len() {
            let lines = members.contains(&server).then_some(members);
            let disk = &self.servers[server].disk;
            if tried_twice(|| membership::write_lines(disk, lines)).is_err() {
                self.fail("panic", format!("the lines of {server} are not written"));
            }
            self.see(&Seen::ForgetsView { server });
        }
        self.checks.history.write_lines(membership::view_of(members));
    }
}
