//! What has to hold in every world, whatever fails: one file per property, each with the fault that it must find.
//!
//! Source: the properties of `zookeeper-specifications` in the ZooKeeper tree, and those of "Multi-Grained
//! Specifications for Distributed System Model Checking and Verification" (I-1 to I-14).

mod agreement;
mod configurations;
mod convergence;
mod durability;
mod epochs;
pub mod faults;
mod one_leader;
pub mod phases;
mod primary_order;
mod promises;
mod served_prefix;

use oxkeeper::model::{Epoch, View, Zxid};
use oxkeeper::zab::Packet;
use std::collections::BTreeSet;
use support::disk::{Disk, Entry};

/// What a world shows the checks.
pub enum Event<'a> {
    /// A leader proposed a transaction.
    Proposed { entry: &'a Entry },
    /// An epoch is established; `holders` of `quorum` voters have all of `tree` on disk.
    Leads { at: usize, epoch: Epoch, tree: &'a [Entry], holders: usize, quorum: usize },
    /// A server begins to serve what it has applied.
    Follows { at: usize, tree: &'a [Entry] },
    /// A server that serves has applied more; `leads`: of a leader, how many disks have it and how many are a quorum.
    Applied { at: usize, tree: &'a [Entry], leads: Option<(usize, usize)> },
    /// A leader has chosen an epoch; `answered`: how many voters have sent it their acceptedEpochs, itself among them.
    Chooses { at: usize, epoch: Epoch, answered: usize, quorum: usize },
    /// A packet to a leader from a learner that was sent epoch `epoch` and has logged `known`. `votes`: it votes in a configuration
    /// that counts.
    ToLeader {
        at: usize,
        packet: &'a Packet,
        disk: &'a Disk,
        epoch: Epoch,
        votes: bool,
        known: &'a mut dyn Iterator<Item = &'a Entry>,
    },
    /// A packet to a learner.
    ToLearner { at: usize, packet: &'a Packet, disk: &'a Disk },
    /// A server withholds its promise from a leader that it dialed `ticks` of 5 ms after its election began.
    Withholds { at: usize, ticks: u64 },
    /// A server whose history was lost counts again, with the tree of a leader of epoch `epoch`.
    Counts { at: usize, disk: &'a Disk, epoch: Epoch },
    /// A learner is given a packet of its leader.
    FromLeader { at: usize, packet: &'a Packet },
    /// A learner has no leader any more.
    Leaves { at: usize },
    /// A server acknowledges what it has logged: `logged` are the versions of configurations that its log has after the one in
    /// force and that are not committed as far as it knows, `views` those of all that count.
    Acknowledges { at: usize, logged: &'a BTreeSet<i64>, views: &'a BTreeSet<i64> },
    /// A server with a configuration in its history logs the next one.
    LogsView { at: usize, before: i64, in_force: i64 },
    /// A configuration is in force; `leads`: its server is the leader that commits it.
    InForce { at: usize, view: &'a View, leads: bool },
    /// A server has read its disk: `acknowledged` are the versions of configurations that counted at its last acknowledgement and
    /// may have been committed, `views` those that count now, the one in force first.
    Starts { at: usize, acknowledged: &'a BTreeSet<i64>, views: &'a [&'a View] },
    /// A server's disk, its configuration too, is as it was some time ago.
    OlderView { at: usize },
    /// All faults are over: what a server has applied, what is on its disk, and the version of its configuration in force.
    Calm { at: usize, tree: &'a [Entry], disk: &'a [Entry], view: i64 },
    /// A leader answers a voter whose data, as that voter's votes have said, is of a later epoch than its own.
    AnswersOutsider { at: usize },
}

pub trait Check {
    fn name(&self) -> &'static str;

    /// # Errors
    /// What does not hold.
    fn see(&mut self, event: &mut Event<'_>) -> Result<(), String>;
}

#[derive(Clone, Debug, Default)]
pub struct Checks {
    agreement: agreement::Agreement,
    one_leader: one_leader::OneLeader,
    served_prefix: served_prefix::ServedPrefix,
    primary_order: primary_order::PrimaryOrder,
    durability: durability::Durability,
    promises: promises::Promises,
    configurations: configurations::Configurations,
    convergence: convergence::Convergence,
    epochs: epochs::Epochs,
    phases: phases::Phases,
    /// A planted fault.
    pub fault: Option<faults::Fault>,
    /// The name of a check that finds nothing.
    pub left_out: Option<&'static str>,
}

impl Checks {
    /// The newest configuration before a transaction that a leader put in force.
    pub fn newest_view_before(&self, zxid: Zxid) -> Option<&View> {
        self.configurations.newest_before(zxid)
    }

    /// How far a learner is, by the packets on its connection; `None`: it has no leader.
    pub fn phase(&self, at: usize) -> Option<phases::Phase> {
        self.phases.phase(at)
    }

    /// These configurations were in force before the checks began.
    pub fn know_views(&mut self, views: impl IntoIterator<Item = View>) {
        views.into_iter().for_each(|view| self.configurations.know(view));
    }

    /// # Errors
    /// The name of the property that does not hold, and how.
    pub fn see(&mut self, event: Event<'_>) -> Result<(), String> {
        match self.fault {
            Some(fault) => fault.show(event, &mut |event| self.look(event)),
            None => self.look(event),
        }
    }

    fn look(&mut self, mut event: Event<'_>) -> Result<(), String> {
        let left_out = self.left_out;
        for check in self.all() {
            let seen = check.see(&mut event);
            if left_out != Some(check.name()) {
                seen.map_err(|error| format!("{}: {error}", check.name()))?;
            }
        }
        Ok(())
    }

    pub fn all(&mut self) -> [&mut dyn Check; 10] {
        [
            &mut self.agreement,
            &mut self.one_leader,
            &mut self.served_prefix,
            &mut self.primary_order,
            &mut self.durability,
            &mut self.promises,
            &mut self.configurations,
            &mut self.convergence,
            &mut self.epochs,
            &mut self.phases,
        ]
    }

    /// All transactions that any server ever applied as committed.
    pub fn committed(&self) -> &[Entry] {
        self.agreement.committed()
    }
}

#[cfg(test)]
pub mod planted {
    use super::*;
    use bytes::Bytes;
    use oxkeeper::model::Zxid;

    pub fn entry(epoch: u32, counter: u32) -> Entry {
        (Zxid::new(Epoch(epoch), counter), Bytes::from(format!("{epoch}:{counter}")))
    }

    pub fn entries(list: &[(u32, u32)]) -> Vec<Entry> {
        list.iter().map(|&(epoch, counter)| entry(epoch, counter)).collect()
    }

    pub fn leads<'a>(at: usize, epoch: u32, tree: &'a [Entry]) -> Event<'a> {
        Event::Leads { at, epoch: Epoch(epoch), tree, holders: 2, quorum: 2 }
    }

    pub fn fails(check: &mut dyn Check, mut event: Event<'_>, about: &str) {
        let error = check.see(&mut event).expect_err("the check finds the planted fault");
        assert!(error.contains(about), "{error}");
    }

    pub fn holds(check: &mut dyn Check, mut event: Event<'_>) {
        check.see(&mut event).expect("nothing is wrong with this");
    }
}
