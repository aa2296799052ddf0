//! Applies the faults of a plan, and ends them.

use super::boot::{Booted, boot};
use super::check::{Durable, Seen};
use super::network::ProcessId;
use super::plan::{Crash, CrashKind, Fault, MS, Micros, PlantedFault};
use super::process::folders;
use super::world::World;
use crate::member::Input;
use crate::member::config_files::LAST_IN_FORCE;
use crate::model::{ServerId, Zxid};
use crate::store::{Disk as _, epoch::EpochFile, purge};

/// A process that is to crash at a change to its disk, and makes none, crashes after this time.
const CRASH_US: Micros = 40 * MS;
/// A server whose process ended because of damage, a loss or locked files starts again after this time.
const DAMAGED_DOWN_US: Micros = 50 * MS;

impl World {
    pub fn strike(&mut self, fault: Fault) {
        let now_us = self.now_us;
        self.note_fault(|| format!("{fault:?}"));
        match fault {
            Fault::Crash { server, changes, crash } => self.arm(server, changes, crash),
            Fault::Stop { server, down_us } => {
                if self.servers[server].process.is_some() {
                    self.servers[server].stop_us = Some(down_us);
                    self.report(self.process_id(server), Input::Stop);
                }
            }
            Fault::PowerCutAll { keeps, down_us } => self.cut_all_power(keeps, down_us),
            Fault::Stall { server, for_us } => {
                self.trace.count("stalls");
                let stalled_us = &mut self.servers[server].stalled_us;
                *stalled_us = (*stalled_us).max(now_us + for_us);
            }
            Fault::Cut { from, to, both_ways, for_us } => {
                self.trace.count(if both_ways { "cuts" } else { "one-way cuts" });
                self.cut(&from, &to, both_ways, for_us);
            }
            Fault::IsolateLeader { spared, for_us, crash } => {
                self.isolate_leader(spared, for_us, crash);
            }
            Fault::StarveTasks { server, for_us } => self.starve_tasks(server, for_us),
            Fault::Break { one, other } if one != other => {
                self.trace.count("breaks");
                let due = self.net.break_between(now_us, one, other);
                self.expect_arrivals(due);
            }
            Fault::Lossy { one, other, for_us } if one != other => {
                self.trace.count("lossy connections");
                self.net.lose_much(one, other, now_us + for_us);
            }
            Fault::Break { .. } | Fault::Lossy { .. } => {}
            Fault::SetClock { server, by_ms } => {
                self.trace.count("clocks set");
                self.servers[server].wall_off_ms += by_ms;
            }
            Fault::SlowDisk { server, for_us } => {
                self.trace.count("slow disks");
                let until_us = &mut self.servers[server].slow_us;
                *until_us = (*until_us).max(now_us + for_us);
            }
            Fault::Damage { server, place, kills, down_us } => {
                self.damage(server, place);
                if kills && self.servers[server].process.is_some() {
                    self.crash(server, Crash { kind: CrashKind::Process, down_us });
                }
            }
            Fault::LockConfiguration { server, for_us, restarts } => {
                self.lock_configuration(server, for_us, restarts);
            }
            Fault::TakePort { server, port, for_us } => self.take_port(server, port, for_us),
            Fault::CopyDisk { server } => self.back_up(server),
            Fault::Oracle { server } => self.turn_oracle(server),
            Fault::CopyTree { server } => self.copy_tree(server),
            Fault::Restore { server, source, crash } => {
                self.ask_to_restore(server, source, crash);
            }
            Fault::Unmount { server, down_us } => self.unmount(server, down_us),
            Fault::Destroy { spared, restores, keeps, down_us } => {
                self.destroy(&spared, restores, keeps, down_us);
            }
            Fault::Return(how) => self.lose_all_but(how),
            Fault::Lose { server, loss, down_us } => self.end_and_lose(server, loss, down_us),
            Fault::Purge { server } => self.purge(server),
        }
    }

    fn purge(&mut self, server: usize) {
        let found = &self.servers[server];
        let Some(process) = &found.process else { return };
        self.trace.count("purges");
        // As `autopurge` does: not through the server's fail-stop disk, so that errors stop nothing.
        let _files = purge::purge(
            &found.disk,
            &process.folders,
            purge::KEEP_MIN,
            purge::read_whole(&found.disk),
        );
    }

    pub fn cut_all_power(&mut self, keeps: u64, down_us: Micros) {
        for server in 0..self.servers.len() {
            let down_us = down_us + self.rng.below(50) * MS;
            let kind = CrashKind::Power { keeps: keeps ^ server as u64 };
            self.crash(server, Crash { kind, down_us });
        }
    }

    pub fn cut(&mut self, from: &[usize], to: &[usize], both_ways: bool, for_us: Micros) {
        let mut cuts = Vec::new();
        for &one in from {
            cuts.extend(to.iter().map(|&other| (one, other)));
            cuts.extend(to.iter().filter(|_| both_ways).map(|&other| (other, one)));
        }
        cuts.iter().for_each(|&(from, to)| self.net.cut(from, to));
        self.do_at(self.now_us + for_us, move |world| world.mend(&cuts));
    }

    fn mend(&mut self, cuts: &[(usize, usize)]) {
        for &(from, to) in cuts {
            let due = self.net.mend(self.now_us, from, to);
            self.expect_arrivals(due);
        }
    }

    /// The process will crash after `changes` more changes to its disk.
    pub fn arm(&mut self, server: usize, changes: u64, crash: Crash) {
        let found = &mut self.servers[server];
        let is_disk_error = matches!(crash.kind, CrashKind::DiskError);
        if found.crash.is_some() || found.process.is_none() && !is_disk_error {
            return;
        }
        found.crash = Some(crash);
        if is_disk_error {
            return found.disk.fail_change(changes);
        }
        found.disk.cut_power_at(found.disk.counts().changes + changes);
        let at = self.process_id(server);
        self.do_at(self.now_us + CRASH_US, move |world| world.crash_if_due(at));
    }

    /// Ends a process that is to crash: a change to its disk has failed, or it made none for long. A process whose disk refuses one
    /// change gets an error instead, and goes on until its `Member` says how it ends.
    pub fn crash_if_due(&mut self, at: ProcessId) {
        if self.process(at).is_some()
            && let Some(crash) = self.servers[at.server].crash
            && !matches!(crash.kind, CrashKind::DiskError)
        {
            self.crash(at.server, crash);
        }
    }

    /// A server can't go on: because of a fault, or, which is a failure of the world, for another reason.
    pub fn cannot(&mut self, at: ProcessId, why: &str) {
        let found = &self.servers[at.server];
        let (crash, is_damaged, has_lost) = (found.crash, found.is_damaged, found.has_lost);
        // Without reconfigurations a server writes no configuration files.
        let is_locked = self.now_us < found.locked_us && self.climate().changes;
        self.note(at.server, || format!("! ends: {why}"));
        if let Some(crash) = crash {
            self.crash(at.server, crash);
        } else if is_damaged || has_lost || is_locked {
            self.trace.count(match (is_damaged, is_locked) {
                (true, _) => "stopped by damage",
                (_, true) => "stopped by locked configuration files",
                _ => "stopped by a loss",
            });
            if has_lost && !is_locked {
                self.bring_back(at.server);
            }
            let crash = Crash { kind: CrashKind::Process, down_us: DAMAGED_DOWN_US };
            self.crash(at.server, crash);
        } else {
            self.fail("panic", format!("server {} can't go on: {why}", at.server));
        }
    }

    /// A server that was asked to stop has finished what its clients had asked.
    pub fn stopped(&mut self, at: ProcessId) {
        // A stopped member reports that after each input.
        if self.process(at).is_none() {
            return;
        }
        let down_us = self.servers[at.server].stop_us.expect("the server was asked to stop");
        self.trace.count("stops");
        self.crash(at.server, Crash { kind: CrashKind::Process, down_us });
    }

    /// A process ends, and with it all its connections; the server's next process starts later.
    pub fn crash(&mut self, server: usize, crash: Crash) {
        self.note(server, || format!("! {crash:?}"));
        self.trace.count(match crash.kind {
            CrashKind::Power { .. } => "power cuts",
            CrashKind::Process => "kills",
            CrashKind::DiskError => "disk errors",
        });
        let due = self.net.die(self.now_us, server);
        self.expect_arrivals(due);
        let found = &mut self.servers[server];
        let restoring = found.process.take().and_then(|process| process.restoring);
        if restoring.is_some_and(|restoring| restoring.has_begun) {
            self.trace.count("restores cut short");
        }
        found.number += 1;
        (found.crash, found.stop_us) = (None, None);
        found.disk.restore_power();
        if let CrashKind::Power { keeps } = crash.kind {
            if found.disk.unsynced() > 0 {
                self.trace.count("unsynced writes cut");
            }
            let image = found.lied.take().unwrap_or_else(|| found.disk.image());
            found.disk = image.crash(keeps);
        }
        match self.plan.climate.plant {
            Some(PlantedFault::ForgottenEpochs) => self.forget_epochs(server),
            Some(PlantedFault::LyingDisk) => {
                // From here on the disk only reports that it has what is written.
                self.servers[server].lied = Some(self.servers[server].disk.image());
            }
            _ => {}
        }
        self.start_at(server, self.now_us + crash.down_us);
    }

    pub fn start_at(&mut self, server: usize, at_us: Micros) {
        self.servers[server].starts_us = at_us;
        self.do_at(at_us, move |world| world.start(server));
    }

    /// A planted fault: the epoch files are lost, and what shows that the server has been a member.
    fn forget_epochs(&mut self, server: usize) {
        let disk = &self.servers[server].disk;
        for name in [EpochFile::Accepted.name(), EpochFile::Current.name(), LAST_IN_FORCE] {
            // A file that is not there can't be removed.
            let _gone = disk.remove(&folders().snapshots.join(name));
        }
        let found = &mut self.servers[server].durable;
        *found = Durable { last: found.last, ..Durable::default() };
    }

    pub fn start(&mut self, server: usize) {
        let found = &mut self.servers[server];
        if found.process.is_some() || found.is_out || self.now_us < found.starts_us {
            return;
        }
        if !found.is_gone && self.finds_its_port_taken(server) {
            return self.start_at(server, self.now_us + DAMAGED_DOWN_US);
        }
        if let Some(loss) = self.servers[server].losing.take() {
            self.lose(server, loss);
        }
        if self.servers[server].is_gone {
            return;
        }
        let (at, found) = (self.process_id(server), &self.servers[server]);
        match boot(found, server, self.climate(), self.now_us) {
            Ok(Booted { process, durable, was_quarantined, forgets_view, has_other_tree }) => {
                let view = process.view().clone();
                if !self.climate().alone && !view.members.contains_key(&ServerId(server as i64)) {
                    self.trace.count("starts by a proposed configuration alone");
                }
                let is_unsure = process.member.replica.peer().core.is_unsure;
                let digest = process.shared.state.tree.read().digest();
                self.note(server, || format!("* starts with {durable:?}, {was_quarantined}"));
                let found = &mut self.servers[server];
                let is_whole = !found.has_lost && !found.is_damaged;
                if was_quarantined {
                    found.lost = found.acknowledged();
                    found.is_damaged = false;
                    found.durable.last = Zxid::ZERO;
                    self.trace.count("data quarantined");
                }
                found.is_unsure |= is_unsure;
                found.process = Some(process);
                let before = std::mem::replace(&mut found.durable, durable);
                let before = found.owed.take().filter(|_| !is_unsure).unwrap_or(before);
                let is_credulous = found.has_other_digests && !is_unsure;
                let has_trusted = std::mem::take(&mut found.trusts_empty);
                let forgets_migration = has_trusted && is_whole && is_unsure;
                self.begin_tape(at);
                self.see(&Seen::Started { server, found: durable, before, digest });
                if is_credulous {
                    self.fail("digests", format!("{server} votes with a tree of other digests"));
                }
                if has_other_tree {
                    self.fail("digests", format!("{server} has replayed a log with a hole"));
                }
                if forgets_migration {
                    self.fail("durability", format!("{server} has all of its log, and doubts it"));
                }
                if forgets_view {
                    self.servers[server].acknowledged_views.clear();
                    self.servers[server].was_rewritten = true;
                }
                self.look_for_views_at_start(at);
                if forgets_view {
                    self.see(&Seen::ForgetsView { server });
                }
                self.servers[server].view = Some(view).filter(|_| !self.climate().alone);
                if self.oracle == Some(server) {
                    self.report_oracle(at);
                }
                self.wake_driver(at);
            }
            Err(why) => self.cannot(at, &format!("start: {why}")),
        }
    }

    /// Ends all faults: every cut is mended, every server that is down starts.
    pub fn heal(&mut self) {
        self.is_healing = true;
        self.note_fault(|| "faults are over".to_owned());
        let due = self.net.mend_all(self.now_us);
        self.expect_arrivals(due);
        if self.climate().plant == Some(PlantedFault::StuckServer) {
            (1..self.servers.len()).for_each(|other| self.net.cut(other, 0));
        }
        for server in 0..self.servers.len() {
            let found = &mut self.servers[server];
            found.stalled_us = found.stalled_us.min(self.now_us);
            (found.locked_us, found.losing) = (0, None);
            found.taken_ports.clear();
            if let Some(crash) = found.crash {
                self.crash(server, crash);
            }
            self.start_at(server, self.now_us);
        }
    }
}
