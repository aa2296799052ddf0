//! Data that is damaged, lost or old, and what a server's operator does about it.
//!
//! A server that notices its loss does not vote until a leader has sent its tree; so much may be lost by a minority at any time. A loss
//! that a server can't notice has to be avoided by its operator: a server may vote with less than it had only while a quorum of other
//! servers has all of it, in each configuration that any server counts.

use super::boot::{Booted, boot};
use super::check::{Durable, Seen};
use super::membership;
use super::plan::{Crash, CrashKind, Loss, Micros, PlantedFault};
use super::process::{Backup, LOG_DIR, folders, is_joining, tried_twice};
use super::workload;
use super::world::World;
use crate::member::config_files::LAST_IN_FORCE;
use crate::model::{ServerId, View, Zxid};
use crate::store::disk::{read_file, replace_file};
use crate::store::epoch::{self, EpochFile};
use crate::store::record::{HEADER_LEN, Records, Step};
use crate::store::scan::{self, FileSource};
use crate::store::sim_disk::SimDisk;
use crate::store::{Disk as _, names};
use crate::zab::Core;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

impl World {
    /// Damages a byte of a disk, which is read wrong from now on. * `place`: picks the byte.
    pub fn damage(&mut self, server: usize, place: u64) {
        let Some((path, at)) = some_byte(&self.servers[server].disk, place) else { return };
        if self.servers[server].disk.flip(&path, at) {
            self.note(server, || format!("! byte {at} of {} is wrong", path.display()));
            self.trace.count("sectors damaged");
            self.servers[server].is_damaged = true;
        }
    }

    /// Copies a disk as a power cut would leave it: an operator may restore the copy later.
    pub fn back_up(&mut self, server: usize) {
        let found = &mut self.servers[server];
        let disk = found.disk.image().crash(0);
        found.backup = Some(Backup { disk, tree: found.tree, view: found.view.clone() });
    }

    pub fn lock_configuration(&mut self, server: usize, for_us: Micros, restarts: Option<Micros>) {
        self.trace.count("configuration files locked");
        let (now_us, found) = (self.now_us, &mut self.servers[server]);
        if found.locked_us <= now_us {
            found.locked_from_us = now_us;
        }
        found.locked_us = now_us + for_us;
        if let Some(down_us) = restarts.filter(|_| found.process.is_some()) {
            self.crash(server, Crash { kind: CrashKind::Process, down_us });
        }
    }

    /// Whether a server that may be reconfigured serves although it has never been able to write its configuration files.
    pub fn serves_locked(&self, server: usize) -> bool {
        let found = &self.servers[server];
        let began_us = found.process.as_ref().map(|process| process.began_us);
        let is_locked = self.now_us < found.locked_us && self.climate().changes;
        is_locked && began_us.is_some_and(|began_us| found.locked_from_us < began_us)
    }

    /// A server's process ends, and files are lost before the next one starts.
    pub fn end_and_lose(&mut self, server: usize, loss: Loss, down_us: Micros) {
        // Without the servers that have data, a quorum of empty ones would elect one of themselves (world 1810000005298).
        if self.is_recovering {
            return self.trace.count("losses that did not come about");
        }
        // There is a file of proposed configurations for a few milliseconds at a time.
        if loss == Loss::ProposedFile
            && !self.can_lose(server, loss)
            && self.now_us < self.climate().lasts_us
        {
            let soon_us = self.now_us + 500;
            return self.do_at(soon_us, move |world| world.end_and_lose(server, loss, down_us));
        }
        self.servers[server].losing = Some(loss);
        if self.servers[server].process.is_some() {
            self.crash(server, Crash { kind: CrashKind::Process, down_us });
        }
    }

    /// Ends a process, and checks that the next one does not start while the disk of `dataLogDir` is not mounted, if the server has
    /// followed or led before. That start is on a copy of the disk; if it succeeds, the world fails.
    pub fn unmount(&mut self, server: usize, down_us: Micros) {
        if self.servers[server].process.is_none() {
            return;
        }
        self.crash(server, Crash { kind: CrashKind::Process, down_us });
        let (climate, now_us) = (self.climate().clone(), self.now_us);
        let found = &mut self.servers[server];
        let copy = found.disk.image().crash(0);
        let current = epoch::read(&copy, &folders().snapshots, EpochFile::Current);
        if !current.is_ok_and(|epoch| epoch.is_some_and(|epoch| 0 < epoch.0)) {
            return;
        }
        clear(&copy, &folders().logs, "");
        clear(&copy, Path::new(LOG_DIR), "");
        if climate.plant != Some(PlantedFault::MountPointMade) {
            copy.unmount(Path::new(LOG_DIR));
        }
        let mounted = std::mem::replace(&mut found.disk, copy);
        let booted = boot(found, server, &climate, now_us);
        found.disk = mounted;
        match booted {
            Err(_) => self.trace.count("starts without the disk of logs"),
            Ok(_) => self.fail("durability", format!("{server} starts without its logs")),
        }
    }

    /// A server that is down loses files, if the others can do without them.
    pub fn lose(&mut self, server: usize, loss: Loss) {
        if !self.can_lose(server, loss) || !self.may_lose(server, loss) {
            return self.trace.count("losses that did not come about");
        }
        self.trace.count(loss.name());
        self.note(server, || format!("! {}", loss.name()));
        if loss == Loss::Migration {
            return self.migrate(server);
        }
        let keeps_data = matches!(
            loss,
            Loss::DynamicFile
                | Loss::ProposedFile
                | Loss::MyId
                | Loss::Digests
                | Loss::Machine
                | Loss::OldCurrentEpoch
        );
        let (is_noticed, owes) = (self.is_noticed(server, loss), self.owes(server, loss));
        let found = &mut self.servers[server];
        found.owed = Some(found.durable).filter(|_| owes && !found.is_unsure);
        found.has_lost = true;
        if !Self::remembers_views(loss) {
            found.acknowledged_views.clear();
        }
        let knows_all = matches!(loss, Loss::DynamicFile | Loss::MyId | Loss::OldCurrentEpoch);
        found.is_unsure |= is_noticed && !knows_all;
        if is_noticed && !keeps_data {
            found.lost = found.acknowledged();
        }
        if !keeps_data {
            found.durable = Durable::default();
        }
        let disk = found.disk.clone();
        match loss {
            Loss::AcceptedEpoch => remove_epochs(&disk, &[EpochFile::Accepted]),
            Loss::CurrentEpoch => remove_epochs(&disk, &[EpochFile::Current]),
            Loss::BothEpochs => remove_epochs(&disk, &[EpochFile::Accepted, EpochFile::Current]),
            Loss::Logs => clear(&disk, &folders().logs, ""),
            Loss::NewestLog => newest_log(&disk).iter().for_each(|at| gone(&disk, at)),
            Loss::OlderLog => older_log(&disk).iter().for_each(|log| gone(&disk, &log.path)),
            Loss::OlderLogAndSnapshots => lose_older_log(&disk),
            Loss::Snapshots => clear(&disk, &folders().snapshots, "snapshot."),
            Loss::LogsAndSnapshots => {
                clear(&disk, &folders().logs, "");
                clear(&disk, &folders().snapshots, "snapshot.");
            }
            Loss::SnapshotFolder => clear(&disk, &folders().snapshots, ""),
            Loss::Data => empty(&disk),
            Loss::DynamicFile => {
                membership::dynamic_file(&disk).iter().for_each(|at| gone(&disk, at))
            }
            Loss::ProposedFile => gone(&disk, &membership::proposed_file()),
            Loss::MyId => gone(&disk, &membership::my_id()),
            Loss::Digests => found.has_other_digests = true,
            Loss::Machine => found.is_gone = true,
            Loss::OldEpochs => {
                self.restore_epochs(server, &[EpochFile::Accepted, EpochFile::Current]);
            }
            Loss::OldCurrentEpoch => self.restore_epochs(server, &[EpochFile::Current]),
            Loss::Migration => {}
            Loss::OldData | Loss::OldDisk => self.restore_copy(server, loss == Loss::OldDisk),
        }
    }

    /// * `all`: every file is as it was when the disk was copied, and not only those of version-2.
    fn restore_copy(&mut self, server: usize, all: bool) {
        let found = &mut self.servers[server];
        let Some(Backup { disk: old, tree, view }) = &found.backup else { return };
        found.tree = *tree;
        if all {
            found.view = view.clone();
            found.disk = old.image().crash(1);
            self.see(&Seen::ForgetsView { server });
        } else {
            empty(&found.disk);
            [folders().logs, folders().snapshots].iter().for_each(|at| copy(old, &found.disk, at));
        }
    }

    /// Whether there is anything to lose.
    fn can_lose(&mut self, server: usize, loss: Loss) -> bool {
        let found = &self.servers[server];
        match loss {
            Loss::OldData | Loss::OldDisk => found.backup.is_some(),
            Loss::OldEpochs => {
                found.backup.as_ref().is_some_and(|it| it.newest(EpochFile::Accepted).is_some())
            }
            Loss::OldCurrentEpoch => {
                let copied = found.backup.as_ref().and_then(|it| it.newest(EpochFile::Current));
                let is_last = found.durable.current == found.durable.last.epoch();
                // A copy that was made in a synchronisation looks like the file of one that was interrupted.
                let is_plain = found.backup.as_ref().is_some_and(|it| !is_joining(&it.disk));
                // The end of a damaged log does not show it (world 1850000011086).
                copied.is_some() && is_last && is_plain && !found.is_damaged
            }
            Loss::DynamicFile => membership::dynamic_file(&found.disk).is_some(),
            Loss::NewestLog => newest_log(&found.disk).is_some(),
            // A loss that may not show: see `shows_lost_log`.
            Loss::OlderLog => older_log(&found.disk).is_some_and(|log| log.next.counter() != 1),
            Loss::OlderLogAndSnapshots => self.shows_lost_log(server),
            Loss::Migration => self.may_migrate(server),
            Loss::ProposedFile => found.disk.open(&membership::proposed_file()).is_ok(),
            // Where clients may reconfigure the ensemble without this machine, two machines have to be left to vote.
            Loss::Machine => {
                let left = self.servers.iter().filter(|other| !other.is_gone).count();
                if self.climate().changes { 3 <= left } else { self.climate().loses_machine }
            }
            _ => true,
        }
    }

    /// Whether the server has an older log, and notices the loss of it together with the snapshots that make up for it. It shows as a gap
    /// if the newest log begins with a later transaction of its epoch than the first. Otherwise no zxid shows it, and digests do not if
    /// none follows (world 750000006202); and a tree that does not fit its digests counts nevertheless when no server leads for initLimit.
    /// So then the loss comes about only if there is no snapshot left to go on from: a start on a copy of the disk says so. A server that
    /// does not start without the loss either, because its `myid` is missing for example, says nothing.
    fn shows_lost_log(&mut self, server: usize) -> bool {
        let disk = &self.servers[server].disk;
        let Some(log) = older_log(disk) else { return false };
        if self.climate().trusts_empty || self.servers[server].trusts_empty {
            // Without a snapshot to go on from, the server would start with what is left, as its operator asks.
            let older = names::snapshots(disk, &folders().snapshots).unwrap_or_default();
            return log.next.counter() != 1 && older.iter().any(|file| file.zxid < log.begin);
        }
        if log.next.counter() != 1 {
            return true;
        }
        let started = self.start_on_copy(server, true, lose_older_log);
        let is_noticed = started.is_none_or(|booted| booted.was_quarantined);
        is_noticed && self.start_on_copy(server, true, |_| {}).is_some()
    }

    /// Starts a server on a copy of its disk that has been changed. * `may_lack`: data may be missing.
    pub fn start_on_copy(
        &mut self,
        server: usize,
        may_lack: bool,
        change: impl FnOnce(&SimDisk),
    ) -> Option<Booted> {
        let (climate, now_us) = (self.climate().clone(), self.now_us);
        let found = &mut self.servers[server];
        let copy = found.disk.image().crash(0);
        change(&copy);
        let (disk, has_lost) = (std::mem::replace(&mut found.disk, copy), found.has_lost);
        found.has_lost |= may_lack;
        let booted = boot(found, server, &climate, now_us);
        (found.disk, found.has_lost) = (disk, has_lost);
        booted.ok()
    }

    /// Whether a server's log has all of its history, from the first transaction on, so that its operator may remove its snapshots.
    fn may_migrate(&self, server: usize) -> bool {
        let found = &self.servers[server];
        let is_whole =
            !(found.is_damaged || found.has_lost || found.is_unsure || found.trusts_empty);
        let (last, mut zxids) = (found.durable.last, BTreeSet::new());
        let scanned = scan::scan(&found.disk, &folders().logs, None, |zxid, _, _| {
            zxids.insert(zxid);
            Ok::<_, Infallible>(ControlFlow::Continue(()))
        });
        let has_end = scanned.is_ok_and(|it| it.gap.is_none() && it.highest == Some(last));
        let committed = self.checks.history.committed().iter();
        let mut committed = committed.take_while(|it| it.zxid <= last);
        let has_all = committed.all(|it| zxids.contains(&it.zxid.to_wire()));
        is_whole && found.tree == Zxid::ZERO && has_end && has_all
    }

    /// An operator removes a server's snapshots, as those do who come from ZooKeeper 3.4, and the server's next process has to start with
    /// `snapshot.trust.empty`. Without that setting it must not start, and later processes must start without it.
    fn migrate(&mut self, server: usize) {
        let remove = |disk: &SimDisk| clear(disk, &folders().snapshots, "snapshot.");
        if self.start_on_copy(server, false, remove).is_some() {
            self.fail("durability", format!("{server} starts without its snapshots"));
        }
        remove(&self.servers[server].disk);
        self.servers[server].trusts_empty = true;
    }

    /// Whether the server notices that its data is incomplete, so that it does not vote with it.
    fn is_noticed(&self, server: usize, loss: Loss) -> bool {
        let durable = self.servers[server].durable;
        match loss {
            // The server does not start, and its operator empties it.
            Loss::AcceptedEpoch => self.owes(server, loss) && self.climate().marks_new,
            Loss::BothEpochs => self.was_in_force(server) && self.climate().marks_new,
            Loss::OldEpochs => self.has_older_promise(server) && self.climate().marks_new,
            // Its first start has used `initialize` up, although no server has led it yet (world 1120000024090).
            Loss::Snapshots | Loss::LogsAndSnapshots => {
                let is_new = membership::is_marked_new(&self.servers[server].disk);
                self.climate().marks_new && (self.was_led(server) || !is_new)
            }
            Loss::SnapshotFolder | Loss::Data => self.climate().marks_new,
            // The epoch at the end of the log, which is taken otherwise, is lower than acceptedEpoch.
            Loss::CurrentEpoch => durable.last.epoch() < durable.accepted,
            Loss::Digests
            | Loss::DynamicFile
            | Loss::MyId
            | Loss::Machine
            | Loss::Migration
            | Loss::OldCurrentEpoch => true,
            Loss::Logs
            | Loss::NewestLog
            | Loss::OlderLog
            | Loss::OlderLogAndSnapshots
            | Loss::ProposedFile
            | Loss::OldData
            | Loss::OldDisk => false,
        }
    }

    /// Whether the server has to be able to tell from the files that are left that it may vote with less than it had.
    fn owes(&self, server: usize, loss: Loss) -> bool {
        match loss {
            Loss::AcceptedEpoch => self.was_led(server) || is_joining(&self.servers[server].disk),
            Loss::LogsAndSnapshots => self.was_led(server),
            Loss::CurrentEpoch | Loss::OldCurrentEpoch => true,
            Loss::BothEpochs => self.was_in_force(server),
            Loss::OldEpochs => self.has_older_promise(server),
            _ => false,
        }
    }

    /// Whether a server had promised less, when its disk was copied, than the epoch in which its log ends.
    fn has_older_promise(&self, server: usize) -> bool {
        let found = &self.servers[server];
        let copied = found.backup.as_ref().and_then(|it| it.newest(EpochFile::Accepted));
        copied.is_some_and(|promised| promised < found.durable.last.epoch())
    }

    /// Puts epoch files of a copy in place of newer ones.
    fn restore_epochs(&self, server: usize, which: &[EpochFile]) {
        let found = &self.servers[server];
        let Some(Backup { disk: old, .. }) = &found.backup else { return };
        remove_epochs(&found.disk, which);
        for file in which {
            let path = folders().snapshots.join(file.name());
            if let Ok(bytes) = read_file(old, &path) {
                let _tried = tried_twice(|| replace_file(&found.disk, &path, &bytes));
            }
        }
    }

    /// Whether the server's disk says that it has followed or led.
    fn was_led(&self, server: usize) -> bool {
        let disk = &self.servers[server].disk;
        let current = epoch::read(disk, &folders().snapshots, EpochFile::Current);
        current.is_ok_and(|epoch| epoch.is_some_and(|epoch| 0 < epoch.0))
    }

    /// Whether a file of the server says that it has been a member.
    fn was_in_force(&self, server: usize) -> bool {
        let disk = &self.servers[server].disk;
        disk.open(&folders().snapshots.join(LAST_IN_FORCE)).is_ok()
    }

    /// Whether nothing that was committed is lost with these files.
    fn may_lose(&self, server: usize, loss: Loss) -> bool {
        if let Loss::DynamicFile | Loss::MyId | Loss::Migration | Loss::OldCurrentEpoch = loss {
            return true;
        }
        let mut views = self.believed_views();
        if loss == Loss::OldDisk {
            views.extend(self.servers[server].backup.iter().filter_map(|old| old.view.clone()));
        }
        let is_noticed = self.is_noticed(server, loss);
        let votes_again = matches!(
            loss,
            Loss::SnapshotFolder | Loss::Data | Loss::OldData | Loss::OldDisk | Loss::OldEpochs
        );
        if self.servers[server].is_unsure && votes_again && !is_noticed {
            // What the server had and had promised before it lost its vote is not known any more, so no other server makes up for it.
            return false;
        }
        let all = 0..self.servers.len();
        let newest = self.newest_view();
        let counts = |&other: &usize| {
            let found = &self.servers[other];
            // Its next start is yet to see what it lost (world 1850000012236).
            let is_to_see = found.has_lost && found.process.is_none();
            let is_whole = other != server && !found.is_damaged && !found.is_unsure && !is_to_see;
            // An observer does not acknowledge the reconfiguration that makes it a voter, so it does not help to remove the machine.
            let observes = newest.is_some_and(|view| view.is_observer(ServerId(other as i64)));
            let acknowledges = loss != Loss::Machine || !observes;
            is_whole && acknowledges && (is_noticed || self.makes_up_for(other, server))
        };
        let others: Vec<usize> = all.filter(counts).collect();
        // Only a voter by what is in force leads, and none of an earlier epoch than theirs (world 1850000011692).
        let current = |other: &usize| self.servers[*other].durable.current;
        let may_lead = |other: &&usize| {
            let view = self.servers[**other].view.as_ref();
            view.is_none_or(|view| view.is_voter(ServerId(**other as i64)))
        };
        let newest_leader = others.iter().filter(may_lead).map(current).max();
        let others = others.iter().filter(|other| Some(current(other)) <= newest_leader);
        let others: BTreeSet<ServerId> = others.map(|other| ServerId(*other as i64)).collect();
        views.iter().all(|view| view.has_quorum(&others))
    }

    /// Whether `other` has promised all that `server` has, and has all that `server` may have helped to commit.
    pub fn makes_up_for(&self, other: usize, server: usize) -> bool {
        let (has, lost) = (self.servers[other].durable, self.servers[server].durable);
        let history = &self.checks.history;
        // What is not in the history of a later epoch was never committed.
        let is_over = lost.last.epoch() < has.current;
        lost.accepted <= has.accepted
            && lost.current <= has.current
            && history.holds(has.last, history.last())
            && (is_over || history.holds(has.last, lost.last))
    }

    /// The newest configuration, those that servers have or had in force last, and those that are proposed.
    pub fn believed_views(&self) -> Vec<View> {
        let mut views: Vec<View> = self.checks.history.newest_views().cloned().collect();
        for server in &self.servers {
            views.extend(server.view.clone());
            let core = server.process.as_ref().map(|process| &process.member.replica.peer().core);
            views.extend(core.into_iter().flat_map(Core::all_views).cloned());
        }
        views
    }

    /// The newest configuration that any server has or had in force.
    pub fn newest_view(&self) -> Option<&View> {
        let views = self.servers.iter().filter_map(|server| server.view.as_ref());
        views.max_by_key(|view| view.version)
    }

    /// Whether a running server knows a configuration with a server that is lost for good, in force or proposed.
    pub fn counts_lost(&self) -> bool {
        let running = self.servers.iter().filter_map(|server| server.process.as_ref());
        let mut views = running.flat_map(|process| process.member.replica.peer().core.all_views());
        views.any(|view| self.is_to_be_changed(view))
    }

    /// Whether the ensemble has a member that is lost for good and that a reconfiguration is to remove.
    pub fn has_lost(&self) -> bool {
        self.newest_view().is_some_and(|view| self.is_to_be_changed(view))
    }

    fn is_to_be_changed(&self, view: &View) -> bool {
        let is_gone = |id: &ServerId| self.servers[id.0 as usize].is_gone;
        self.climate().changes && view.members.keys().any(is_gone)
    }

    /// The members without the lost ones, if a member is lost for good and the ensemble can do without it.
    pub fn members_without_lost(&self) -> Option<String> {
        let newest = self.newest_view()?;
        let is_left = |id: &ServerId| !self.servers[id.0 as usize].is_gone;
        // A reconfiguration needs a quorum of its voters that are followers before it, and not observers.
        let follows = |id: &ServerId| is_left(id) && !newest.is_observer(*id);
        let all = || (0..self.servers.len()).map(|server| ServerId(server as i64));
        if !self.has_lost() || all().filter(follows).count() < 2 {
            return None;
        }
        // No reconfiguration leaves a single voter, so followers that are no members become voters then.
        let are_few = newest.voters().filter(is_left).count() < 2;
        let line = |server: usize| {
            let id = ServerId(server as i64);
            let is_wanted = are_few || newest.members.contains_key(&id);
            let votes = newest.is_voter(id) || are_few && follows(&id);
            (is_wanted && is_left(&id)).then(|| workload::member(server, votes))
        };
        Some((0..self.servers.len()).filter_map(line).collect::<Vec<_>>().join(","))
    }

    /// The operator of a server that does not start gives it back what it needs, or empties it.
    pub fn bring_back(&mut self, server: usize) {
        let (climate, newest) = (self.climate().clone(), self.newest_view().cloned());
        let found = &mut self.servers[server];
        let disk = &found.disk;
        let is_gone = |path: &Path| disk.open(path).is_err();
        // A disk that refuses the change refuses it once.
        let _tried = if is_gone(&membership::my_id()) {
            membership::write_my_id(disk, server)
        } else if let Some(view) = newest
            && membership::dynamic_file(disk).is_some_and(|path| is_gone(&path))
        {
            // The operator copies another member's file, with its version.
            membership::files(disk).commit(&view, true, false)
        } else {
            if climate.marks_new {
                found.lost = found.acknowledged();
            }
            empty(disk);
            (found.durable, found.tree) = (Durable::default(), Zxid::ZERO);
            found.owed = None;
            self.trace.count("emptied by the operator");
            Ok(())
        };
    }
}

fn remove_epochs(disk: &SimDisk, which: &[EpochFile]) {
    which.iter().for_each(|file| gone(disk, &folders().snapshots.join(file.name())));
}

pub fn empty(disk: &SimDisk) {
    [folders().logs, folders().snapshots].iter().for_each(|folder| clear(disk, folder, ""));
}

/// Removes the files of a folder whose names begin with `begin`.
fn clear(disk: &SimDisk, folder: &Path, begin: &str) {
    let names = disk.list(folder).unwrap_or_default();
    let names = names.iter().filter(|name| name.starts_with(begin));
    names.for_each(|name| gone(disk, &folder.join(name)));
}

fn newest_log(disk: &SimDisk) -> Option<PathBuf> {
    let files = names::logs(disk, &folders().logs).ok()?;
    Some(folders().logs.join(&files.last()?.name))
}

/// The log before the newest one.
struct OlderLog {
    path: PathBuf,
    /// The zxids with which it and the newest log begin.
    begin: Zxid,
    next: Zxid,
}

fn older_log(disk: &SimDisk) -> Option<OlderLog> {
    let files = names::logs(disk, &folders().logs).ok()?;
    let [.., older, newest] = &files[..] else { return None };
    let path = folders().logs.join(&older.name);
    Some(OlderLog { path, begin: older.zxid, next: newest.zxid })
}

/// Removes the log before the newest one, and the snapshots that have transactions of it or later ones.
fn lose_older_log(disk: &SimDisk) {
    let Some(log) = older_log(disk) else { return };
    gone(disk, &log.path);
    let snapshots = names::snapshots(disk, &folders().snapshots).unwrap_or_default();
    let snapshots = snapshots.iter().filter(|file| log.begin <= file.zxid);
    snapshots.for_each(|file| gone(disk, &folders().snapshots.join(&file.name)));
}

/// Removes a file durably.
fn gone(disk: &SimDisk, path: &Path) {
    let _refused = tried_twice(|| disk.remove(path));
    let sync = || path.parent().map_or(Ok(()), |folder| disk.sync_dir(folder));
    let _refused = tried_twice(sync);
}

pub fn copy(from: &SimDisk, to: &SimDisk, folder: &Path) {
    for name in from.list(folder).unwrap_or_default() {
        let path = folder.join(name);
        let copied = || read_file(from, &path).and_then(|bytes| replace_file(to, &path, &bytes));
        // An unfinished copy of a log would be taken for a whole one (D-14).
        let _tried = tried_twice(copied);
    }
}

/// A byte of a snapshot, or of a log record that is not the last one of its file: damage to the last one looks like a torn flush.
fn some_byte(disk: &SimDisk, place: u64) -> Option<(PathBuf, u64)> {
    let folders = folders();
    let logs = names::logs(disk, &folders.logs).ok()?;
    let snapshots = names::snapshots(disk, &folders.snapshots).ok()?;
    let mut places = Vec::new();
    for file in logs {
        let path = folders.logs.join(file.name);
        let end = last_record(disk, &path).unwrap_or(0);
        places.push((path, HEADER_LEN, end));
    }
    for file in snapshots {
        let path = folders.snapshots.join(file.name);
        let len = disk.len(&disk.open(&path).ok()?).ok()?;
        places.push((path, 0, len));
    }
    places.retain(|(_, from, end)| from < end);
    let (path, from, end) = places.get(place as usize % places.len().max(1))?;
    Some((path.clone(), from + (place >> 16) % (end - from)))
}

/// Where the last record of a file begins.
fn last_record(disk: &SimDisk, path: &Path) -> Option<u64> {
    let mut records = Records::new(FileSource::open(disk, path).ok()?);
    let mut last = None;
    while let Step::Record { at, .. } = records.step().ok()? {
        last = Some(at);
    }
    last
}
