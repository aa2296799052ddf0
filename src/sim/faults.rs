//! What goes wrong, and how it ends.

use super::check::Durable;
use super::plan::{Fault, MS, Micros, Plant};
use super::server::{boot, folders};
use super::world::{Event, Of, World};
use crate::store::Disk as _;
use crate::store::{epoch::EpochFile, purge};

/// What ends a process at its next change to the disk, or a bit later.
#[derive(Clone, Copy, Debug)]
pub enum Armed {
    /// * `keeps`: picks what of the unsynced survives.
    Power {
        keeps: u64,
        down_us: Micros,
    },
    Process {
        down_us: Micros,
    },
    /// The disk refuses a change.
    Error {
        down_us: Micros,
    },
}

/// Who is struck at a change to its disk and makes none is struck after so long.
const STRIKE_US: Micros = 40 * MS;

/// Who ends because of what its disk gives back comes again after so long.
const DAMAGED_DOWN_US: Micros = 50 * MS;

impl World {
    pub fn strike(&mut self, fault: Fault) {
        let now_us = self.now_us;
        match fault {
            Fault::Kill { server, changes, down_us } => {
                self.arm(server, changes, Armed::Process { down_us });
            }
            Fault::PowerCut { server, changes, keeps, down_us } => {
                self.arm(server, changes, Armed::Power { keeps, down_us });
            }
            Fault::PowerCutAll { keeps, down_us } => {
                for server in 0..self.servers.len() {
                    let down_us = down_us + self.rng.below(50) * MS;
                    self.end(server, Armed::Power { keeps: keeps ^ server as u64, down_us });
                }
            }
            Fault::DiskError { server, changes, down_us } => {
                let armed = Armed::Error { down_us };
                if self.servers[server].armed.is_none() {
                    self.servers[server].disk.fail_change(changes);
                    self.servers[server].armed = Some(armed);
                    self.note(server, || format!("! {armed:?} after {changes} changes"));
                }
            }
            Fault::Stall { server, for_us } => {
                self.trace.count("stalls");
                self.note(server, || format!("! stands still for {for_us} us"));
                let stalled = &mut self.servers[server].stalled_us;
                *stalled = (*stalled).max(now_us + for_us);
            }
            fault @ (Fault::Cut { .. } | Fault::Break { .. } | Fault::Lossy { .. }) => {
                self.strike_links(fault);
            }
            Fault::SetClock { server, by_ms } => {
                self.trace.count("clocks set");
                self.note(server, || format!("! clock set by {by_ms} ms"));
                self.servers[server].wall_off_ms += by_ms;
            }
            Fault::SlowDisk { server, for_us } => {
                self.trace.count("slow disks");
                self.note(server, || format!("! slow disk for {for_us} us"));
                let until_us = &mut self.servers[server].slow_us;
                *until_us = (*until_us).max(now_us + for_us);
            }
            Fault::Damage { server, place, kills, down_us } => {
                self.damage(server, place, kills, down_us);
            }
            Fault::Purge { server } => {
                let Some(process) = &self.servers[server].process else { return };
                self.trace.count("purges");
                // As `autopurge`: beside the server's own disk, and its errors stop nobody.
                let _files = purge::purge(&process.disk, &folders(), purge::KEEP_MIN);
            }
        }
    }

    fn strike_links(&mut self, fault: Fault) {
        let now_us = self.now_us;
        match fault {
            Fault::Cut { from, to, both_ways, for_us } => {
                self.trace.count(if both_ways { "cuts" } else { "one-way cuts" });
                self.trace.note(now_us, "!", 0, || {
                    format!("cut {from:?} to {to:?}, both ways {both_ways}, {for_us} us")
                });
                let mut cuts = Vec::new();
                for &one in &from {
                    for &other in &to {
                        cuts.push((one, other));
                        cuts.extend(both_ways.then_some((other, one)));
                    }
                }
                cuts.iter().for_each(|&(from, to)| self.net.cut(from, to));
                self.ask(now_us + for_us, Event::Mend(cuts));
            }
            Fault::Break { one, other } if one != other => {
                self.trace.count("breaks");
                self.trace.note(now_us, "!", 0, || format!("break {one} {other}"));
                let due = self.net.break_between(now_us, one, other);
                self.ask_all(due);
            }
            Fault::Lossy { one, other, for_us } if one != other => {
                self.trace.count("lossy links");
                self.trace.note(now_us, "!", 0, || format!("lossy {one} {other} {for_us} us"));
                self.net.lose_much(one, other, now_us + for_us);
            }
            _ => {}
        }
    }

    pub fn mend(&mut self, cuts: &[(usize, usize)]) {
        for &(from, to) in cuts {
            let due = self.net.mend(self.now_us, from, to);
            self.ask_all(due);
        }
    }

    fn arm(&mut self, server: usize, changes: u64, armed: Armed) {
        if self.servers[server].process.is_none() || self.servers[server].armed.is_some() {
            return;
        }
        self.note(server, || format!("! {armed:?} after {changes} changes"));
        let disk = &self.servers[server].disk;
        disk.cut_power_at(disk.counts().changes + changes);
        self.servers[server].armed = Some(armed);
        let of = self.of(server);
        self.ask(self.now_us + STRIKE_US, Event::Strike(of));
    }

    pub fn strike_now(&mut self, of: Of) {
        if self.process(of).is_some()
            && let Some(armed) = self.servers[of.server].armed
        {
            self.end(of.server, armed);
        }
    }

    /// A server can't go on: because it was struck, or that should not be.
    pub fn cannot(&mut self, of: Of, why: &str) {
        match self.servers[of.server].armed {
            Some(armed) => {
                self.note(of.server, || format!("! ends: {why}"));
                self.end(of.server, armed);
            }
            None if self.servers[of.server].is_damaged => {
                self.note(of.server, || format!("! finds its disk damaged: {why}"));
                self.trace.count("stopped by damage");
                self.end(of.server, Armed::Process { down_us: DAMAGED_DOWN_US });
            }
            None => self.fail("panic", format!("server {} can't go on: {why}", of.server)),
        }
    }

    /// A process ends, and with it all its connections; it comes again later.
    pub fn end(&mut self, server: usize, how: Armed) {
        self.note(server, || format!("! ends: {how:?}"));
        self.trace.count(match how {
            Armed::Power { .. } => "power cuts",
            Armed::Process { .. } => "kills",
            Armed::Error { .. } => "disk errors",
        });
        let due = self.net.die(self.now_us, server);
        self.ask_all(due);
        let found = &mut self.servers[server];
        found.process = None;
        found.life += 1;
        found.armed = None;
        found.disk.restore_power();
        let (Armed::Power { down_us, .. } | Armed::Process { down_us } | Armed::Error { down_us }) =
            how;
        if let Armed::Power { keeps, .. } = how {
            if found.disk.unsynced() > 0 {
                self.trace.count("unsynced writes cut");
            }
            let image = found.lied.take().unwrap_or_else(|| found.disk.image());
            found.disk = image.crash(keeps);
        }
        match self.plan.climate.plant {
            Some(Plant::ForgottenEpochs) => self.forget_epochs(server),
            Some(Plant::LyingDisk) => {
                // From here on it only says that it has what it is given.
                self.servers[server].lied = Some(self.servers[server].disk.image());
            }
            _ => {}
        }
        let starts_us = self.now_us + down_us;
        self.servers[server].starts_us = starts_us;
        self.ask(starts_us, Event::Start(server));
    }

    /// A planted fault.
    fn forget_epochs(&mut self, server: usize) {
        let disk = &self.servers[server].disk;
        for name in [EpochFile::Accepted, EpochFile::Current].map(EpochFile::name) {
            // One that is not there can't be removed.
            let _gone = disk.remove(&folders().snapshots.join(name));
        }
        let found = &mut self.servers[server].durable;
        *found = Durable { last: found.last, ..Durable::default() };
    }

    pub fn start(&mut self, server: usize) {
        let found = &self.servers[server];
        if found.process.is_some() || self.now_us < found.starts_us {
            return;
        }
        match boot(found, server, self.climate(), self.now_us) {
            Ok((process, durable, was_put_aside)) => {
                let digest = process.shared.state.tree.read().digest();
                self.note(server, || format!("* starts with {durable:?}, {was_put_aside}"));
                if was_put_aside {
                    self.trace.count("put aside");
                    let found = &mut self.servers[server];
                    found.lost = found.vouched();
                    found.is_damaged = false;
                    found.durable.last = crate::model::Zxid::ZERO;
                }
                self.servers[server].process = Some(process);
                let of = self.of(server);
                self.begin_tape(of);
                self.see_started(server, durable, digest);
                self.on_timer(of);
            }
            Err(why) => {
                let of = self.of(server);
                self.cannot(of, &format!("start: {why}"));
            }
        }
    }

    /// Faults end: whatever is cut is mended, whoever is down comes again.
    pub fn heal(&mut self) {
        self.is_healing = true;
        self.trace.note(self.now_us, "!", 0, || "faults are over".to_owned());
        let due = self.net.mend_all(self.now_us);
        self.ask_all(due);
        if self.climate().plant == Some(Plant::StuckServer) {
            (1..self.servers.len()).for_each(|other| self.net.cut(other, 0));
        }
        for server in 0..self.servers.len() {
            let found = &mut self.servers[server];
            found.stalled_us = found.stalled_us.min(self.now_us);
            if let Some(armed) = found.armed {
                self.end(server, armed);
            }
            self.servers[server].starts_us = self.now_us;
            self.ask(self.now_us, Event::Start(server));
        }
    }
}
