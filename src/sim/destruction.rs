//! An operator's act that destroys the data of a quorum, and what is lost by it.
//!
//! All servers stop, the directories of a quorum are emptied or become older copies, and all start again. Everything that is left is on
//! disks then, and a start on a copy of each says what its server will find. The voter with the latest vote is to lead: what was
//! committed and is not in its history is lost, computed before any server starts, and the checks go on without just that.
//!
//! 1. Epochs after the leader's promise may come again, with other transactions. So the operator empties every other server that has
//!    promised more, and all observers.
//! 2. Clients begin anew: a server would turn away those that have seen what is lost.
//! 3. Nothing fails until a leader is established: without the servers that are left a quorum of empty ones would elect one of theirs.

use super::boot::boot;
use super::check::{Durable, Seen};
use super::lost_data::{copy, empty};
use super::membership;
use super::plan::{Crash, CrashKind, Micros, Plant};
use super::process::{Backup, folders};
use super::world::World;
use crate::model::{ServerId, Zxid};
use std::collections::BTreeSet;

impl World {
    /// * `spared`: voters whose data stays, as far as the others are a quorum. `restores`: those that have one get an older copy.
    pub fn destroy(&mut self, spared: &[usize], restores: bool, keeps: u64, down_us: Micros) {
        let voters = self.climate().voters;
        let destroyed = self.quorum_without(spared);
        self.stop_all(keeps, down_us);
        self.trace.count("quorums that lose their data");
        for &server in &destroyed {
            if !(restores && self.restore(server)) {
                self.empty_new(server);
            }
        }
        (voters..self.servers.len()).for_each(|observer| self.empty_new(observer));
        let mut found: Vec<Durable> = (0..voters).map(|server| self.found_by(server)).collect();
        let view = membership::first_view(self.climate());
        // A voter that weighs nothing is never elected.
        let may_lead = |&server: &usize| 0 < view.weight(ServerId(server as i64));
        let by_vote = |&server: &usize| (found[server].current, found[server].last, server);
        let Some(leader) = (0..voters).filter(may_lead).max_by_key(by_vote) else { return };
        let Durable { accepted: promised, last: left, .. } = found[leader];
        for (server, found) in found.iter_mut().enumerate() {
            if promised < found.accepted.max(found.last.epoch()) {
                self.empty_new(server);
                *found = Durable::default();
            }
        }
        if self.climate().plant == Some(Plant::MoreIsLost) {
            self.empty_new(leader);
            found[leader] = Durable::default();
        }
        found.into_iter().enumerate().for_each(|(at, found)| self.servers[at].durable = found);
        // Older copies have what is lost.
        self.servers.iter_mut().for_each(|server| server.backup = None);
        let before = self.checks.history.committed().len();
        self.see(&Seen::Destroyed { left, promised });
        let after = self.checks.history.committed().len();
        self.note_fault(|| format!("{} transactions are lost, {after} left", before - after));
        *self.trace.counts.entry("transactions lost with a quorum").or_default() +=
            (before - after) as u64;
        (0..self.clients.len()).for_each(|client| self.begin_anew(client));
        self.is_recovering = true;
    }

    /// The voters that are not spared, and so many of the spared ones that they are a quorum.
    fn quorum_without(&self, spared: &[usize]) -> BTreeSet<usize> {
        let view = membership::first_view(self.climate());
        let voters = 0..self.climate().voters;
        let mut all: BTreeSet<usize> = voters.filter(|voter| !spared.contains(voter)).collect();
        for &voter in spared {
            let ids = all.iter().map(|&server| ServerId(server as i64)).collect();
            if !view.has_quorum(&ids) {
                all.insert(voter);
            }
        }
        all
    }

    /// All servers end, and with them what goes wrong.
    fn stop_all(&mut self, keeps: u64, down_us: Micros) {
        for server in 0..self.servers.len() {
            let kind = CrashKind::Power { keeps: keeps ^ server as u64 };
            self.crash(server, Crash { kind, down_us });
            let found = &mut self.servers[server];
            found.stalled_us = found.stalled_us.min(self.now_us);
            (found.locked_us, found.losing, found.lost) = (0, None, Zxid::ZERO);
            (found.is_unsure, found.has_lost, found.has_other_digests) = (false, false, false);
            // Its operator gives it back what it may lack to start. A disk that refuses the change refuses it once.
            let named = membership::write_my_id(&found.disk, server);
            let _tried = named.or_else(|_| membership::write_my_id(&found.disk, server));
        }
        let due = self.net.mend_all(self.now_us);
        self.expect_arrivals(due);
    }

    /// A server's data becomes an older copy, if there is one.
    fn restore(&mut self, server: usize) -> bool {
        let found = &mut self.servers[server];
        let Some(Backup { disk: old, tree, .. }) = &found.backup else { return false };
        found.tree = *tree;
        empty(&found.disk);
        [folders().logs, folders().snapshots].iter().for_each(|at| copy(old, &found.disk, at));
        self.trace.count("older copies after the loss of a quorum");
        true
    }

    /// A server's data is gone, and its operator says that its directory is new.
    fn empty_new(&mut self, server: usize) {
        let climate = self.climate().clone();
        let found = &mut self.servers[server];
        (found.durable, found.tree) = (Durable::default(), Zxid::ZERO);
        empty(&found.disk);
        // A disk that refuses the change refuses it once.
        let marked = membership::mark_new(&found.disk, &climate);
        let _tried = marked.or_else(|_| membership::mark_new(&found.disk, &climate));
    }

    /// What a server will find at its start. Its operator empties one that will not start, or will not vote.
    fn found_by(&mut self, server: usize) -> Durable {
        let (climate, now_us) = (self.climate().clone(), self.now_us);
        let found = &mut self.servers[server];
        let copy = found.disk.image().crash(0);
        let disk = std::mem::replace(&mut found.disk, copy);
        let booted = boot(found, server, &climate, now_us);
        found.disk = disk;
        match booted {
            Ok(booted) if !booted.process.member.replica.peer().core.is_unsure => booted.durable,
            Ok(_) | Err(_) => {
                self.empty_new(server);
                Durable::default()
            }
        }
    }
}
