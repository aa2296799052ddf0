//! An operator destroys the data of a quorum; what is lost by that is computed, and the checks go on without it.
//!
//! All servers stop, the directories of a quorum are emptied or become older copies, and all servers start again. Everything that remains
//! is on disks then, and a start on a copy of each disk says what its server will find. The voter with the highest vote is to lead.
//! Committed transactions that are not in its history are lost. They are computed before any server starts, and left out of the checks.
//!
//! 1. Epochs after the leader's acceptedEpoch may come again, with other transactions. So the operator empties every other server with a
//!    higher acceptedEpoch, and all servers that do not vote.
//! 2. Where members change, the operator writes one configuration for all servers: the newest in the leader's history, whether it was
//!    committed or not. What other servers know of later configurations is lost with their data.
//! 3. Clients begin with new sessions: a server would refuse clients that have seen lost zxids.
//! 4. There are no faults until a leader is established: without the servers that have data, a quorum of empty servers would elect one
//!    of themselves.

use super::boot::{Booted, boot};
use super::check::{Durable, Seen};
use super::lost_data::{copy, empty};
use super::membership;
use super::plan::{Crash, CrashKind, Micros, PlantedFault};
use super::process::{Backup, folders, tried_twice};
use super::world::World;
use crate::model::{Epoch, ServerId, View, Zxid};
use std::collections::BTreeSet;

impl World {
    /// * `spared`: voters whose data stays, as long as the others are a quorum. `restores`: servers with an older copy get it.
    pub fn destroy(&mut self, spared: &[usize], restores: bool, keeps: u64, down_us: Micros) {
        // An older configuration may need a machine that is lost for good.
        if self.servers.iter().any(|server| server.is_gone) {
            return self.trace.count("quorums that keep their data");
        }
        let view = self.newest_view().cloned();
        let view = view.unwrap_or_else(|| membership::first_view(self.climate()));
        let destroyed = quorum_without(&view, spared);
        self.stop_all(keeps, down_us);
        self.trace.count("quorums that lose their data");
        for &server in &destroyed {
            if !(restores && self.restore(server)) {
                self.empty_new(server);
            }
        }
        for server in 0..self.servers.len() {
            // A damaged sector may show only later, when no other server has the data.
            if !view.is_voter(id(server)) || self.servers[server].is_damaged {
                self.empty_new(server);
            }
        }
        let mut found: Vec<Durable> =
            (0..self.servers.len()).map(|server| self.found_by(server)).collect();
        let Some(leader) = self.leader_of(&found) else { return };
        let Durable { accepted: promised, last: left, .. } = found[leader];
        let view = self.checks.history.newest_in(left).clone();
        for server in 0..found.len() {
            if !self.may_follow(&view, leader, server, &found) {
                self.empty_new(server);
                found[server] = Durable::default();
            }
        }
        if self.climate().plant == Some(PlantedFault::MoreIsLost) {
            self.empty_new(leader);
            found[leader] = Durable::default();
        }
        found.into_iter().enumerate().for_each(|(at, found)| self.servers[at].durable = found);
        if self.climate().changes {
            self.trace.count(match view.version {
                0 => "first configurations written again",
                _ => "later configurations written again",
            });
            (0..self.servers.len()).for_each(|server| self.rewrite_configuration(server, &view));
        }
        // Older copies have lost transactions.
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

    /// The server with the highest vote of those that may lead by the newest configuration in their own history.
    fn leader_of(&self, found: &[Durable]) -> Option<usize> {
        let may_lead = |&server: &usize| {
            let view = self.checks.history.newest_in(found[server].last);
            // A voter with weight 0 is never elected.
            view.is_voter(id(server)) && 0 < view.weight(id(server))
        };
        (0..found.len()).filter(may_lead).max_by_key(|&server| vote(found, server))
    }

    /// Whether `server` may keep its data, and `leader` can still be elected.
    fn may_follow(&self, view: &View, leader: usize, server: usize, found: &[Durable]) -> bool {
        let has = found[server];
        let newest = self.checks.history.newest_in(has.last);
        let knows_later = view.version < newest.version;
        let is_rival = newest != view && vote(found, leader) < vote(found, server);
        let has_promised_more = found[leader].accepted < has.accepted.max(has.last.epoch());
        view.is_voter(id(server)) && !knows_later && !is_rival && !has_promised_more
    }

    /// The operator's configuration replaces all configurations that a server has.
    pub fn rewrite_configuration(&mut self, server: usize, view: &View) {
        let climate = self.climate().clone();
        let rewrite = |disk| membership::rewrite_files(disk, &climate, server, view);
        let found = &mut self.servers[server];
        found.view = Some(view.clone());
        found.acknowledged_views.clear();
        if tried_twice(|| rewrite(&found.disk)).is_err() {
            self.fail("panic", format!("the configuration files of {server} are not written"));
        }
        self.see(&Seen::ForgetsView { server });
    }

    /// All servers lose their power, and all faults end.
    pub fn stop_all(&mut self, keeps: u64, down_us: Micros) {
        for server in 0..self.servers.len() {
            let kind = CrashKind::Power { keeps: keeps ^ server as u64 };
            self.crash(server, Crash { kind, down_us });
            let found = &mut self.servers[server];
            found.stalled_us = found.stalled_us.min(self.now_us);
            (found.locked_us, found.losing, found.lost) = (0, None, Zxid::ZERO);
            found.taken_ports.clear();
            // What the disks hold is looked at below; what a server had before counts no more.
            found.owed = None;
            (found.is_unsure, found.has_lost, found.has_other_digests) = (false, false, false);
            // The operator restores a `myid` that was lost, without which the server does not start.
            let _tried = tried_twice(|| membership::write_my_id(&found.disk, server));
        }
        let due = self.net.mend_all(self.now_us);
        self.expect_arrivals(due);
    }

    /// Replaces a server's data by an older copy, if there is one.
    fn restore(&mut self, server: usize) -> bool {
        let found = &mut self.servers[server];
        let Some(Backup { disk: old, tree, .. }) = &found.backup else { return false };
        found.tree = *tree;
        empty(&found.disk);
        [folders().logs, folders().snapshots].iter().for_each(|at| copy(old, &found.disk, at));
        self.trace.count("older copies after the loss of a quorum");
        true
    }

    /// Empties a server's directories, which its operator marks as new.
    pub fn empty_new(&mut self, server: usize) {
        let climate = self.climate().clone();
        let found = &mut self.servers[server];
        (found.durable, found.tree, found.is_damaged) = (Durable::default(), Zxid::ZERO, false);
        empty(&found.disk);
        let _tried = tried_twice(|| membership::mark_new(&found.disk, &climate));
    }

    /// What a server will find at its start. A server that will not start, or will not vote, is emptied by its operator; so is one that was
    /// emptied before and has no transactions since: a configuration that it knows is in no history that is left (world 2962000003352).
    fn found_by(&mut self, server: usize) -> Durable {
        let (climate, now_us) = (self.climate().clone(), self.now_us);
        let found = &mut self.servers[server];
        let copy = found.disk.image().crash(0);
        let disk = std::mem::replace(&mut found.disk, copy);
        let booted = boot(found, server, &climate, now_us);
        found.disk = disk;
        let votes = |booted: &Booted| !booted.process.member.replica.peer().core.is_unsure;
        match booted {
            Ok(booted) if votes(&booted) && booted.durable.last != Zxid::ZERO => booted.durable,
            Ok(_) | Err(_) => {
                self.empty_new(server);
                Durable::default()
            }
        }
    }
}

/// The voters of a configuration that are not spared, and as many of the spared ones as make them a quorum.
fn quorum_without(view: &View, spared: &[usize]) -> BTreeSet<usize> {
    let voters = || view.voters().map(|id| id.0 as usize);
    let mut all: BTreeSet<usize> = voters().filter(|voter| !spared.contains(voter)).collect();
    for voter in voters().filter(|voter| spared.contains(voter)) {
        let ids = all.iter().map(|&server| id(server)).collect();
        if !view.has_quorum(&ids) {
            all.insert(voter);
        }
    }
    all
}

fn vote(found: &[Durable], server: usize) -> (Epoch, Zxid, usize) {
    (found[server].current, found[server].last, server)
}

const fn id(server: usize) -> ServerId {
    ServerId(server as i64)
}
