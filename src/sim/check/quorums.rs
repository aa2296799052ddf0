//! Any two quorums that decided under one configuration have a voter in common.

use super::seen::{Check, Seen};
use crate::model::{Epoch, ServerId, View, Zxid};
use crate::sim::history::History;
use crate::sim::membership::short;
use crate::zab::Packet;
use std::collections::{BTreeMap, BTreeSet};

type Servers = BTreeSet<ServerId>;

/// Any two sets of voters that decided under one configuration have a voter in common that has a weight; voters with weight 0 are not in
/// the sets. A set decides an epoch, with the ACKs of NEWLEADER, or a commit, with the ACKs of the transaction.
///
/// A reconfiguration is decided by a set of each of the two configurations. So it has a voter in common with all that was decided
/// before it and with all that is decided after it. Sets of two different configurations need not have one.
///
/// The sets are taken from packets and disks, and the servers' rule for quorums is not used, so that a rule that takes too few servers
/// for a quorum is found as well. What one of two voters decides alone because an oracle lets it is not counted.
#[derive(Default)]
pub struct Quorums {
    /// By epoch: the servers that acknowledged its NEWLEADER, and the one that sent it.
    joined: BTreeMap<Epoch, Servers>,
    /// By epoch: how much of the history each server acknowledged.
    acknowledged: BTreeMap<Epoch, BTreeMap<ServerId, Zxid>>,
    /// By how often operators had written other lines, and the version of a configuration: the sets that decided under it.
    decided: BTreeMap<(usize, i64), BTreeSet<Servers>>,
    /// The last committed zxid when this was checked last.
    committed: Zxid,
    /// The newest leader, its epoch, and the servers that had acknowledged its NEWLEADER when the epoch was established.
    newest: Option<(usize, Epoch, Servers)>,
}

impl Check for Quorums {
    fn see(&mut self, seen: &Seen<'_>, history: &History) -> Result<(), String> {
        match *seen {
            Seen::ToLearner { server, packet: Packet::NewLeader { epoch, .. }, .. } => {
                self.joined.entry(*epoch).or_default().insert(id(server));
            }
            Seen::ToLeader { server, packet: Packet::Ack { zxid }, durable, .. } => {
                let (epoch, server) = (zxid.epoch(), id(server));
                let is_of_sync = zxid.counter() == 0;
                if is_of_sync {
                    self.joined.entry(epoch).or_default().insert(server);
                }
                // With NEWLEADER a learner acknowledges the history that the leader has sent before it.
                let through = if is_of_sync { durable.last } else { *zxid };
                let of_epoch = self.acknowledged.entry(epoch).or_default();
                let acknowledged = of_epoch.entry(server).or_default();
                *acknowledged = through.max(*acknowledged);
            }
            Seen::Leads { server, epoch, last, .. } => {
                let mut voters = self.joined.get(&epoch).cloned().unwrap_or_default();
                voters.insert(id(server));
                let what = format!("epoch {}", epoch.0);
                // NEWLEADER of an earlier epoch may have put lines in force that no transaction names.
                let at = Zxid::new(epoch, 0);
                self.newest = Some((server, epoch, voters.clone()));
                return self.record(&what, last, at, &|_| voters.clone(), history);
            }
            // A leader's files may name an older configuration when it starts again.
            Seen::Started { server, .. } => {
                self.newest.take_if(|(leader, ..)| *leader == server);
            }
            // What its own NEWLEADER names is in force just after the epoch is established.
            Seen::InForce { server, view } => {
                let Some((leader, epoch, voters)) = self.newest.clone() else { return Ok(()) };
                if server == leader && view.version <= Zxid::new(epoch, 0).to_wire() {
                    return self.record_under(
                        view,
                        &format!("epoch {}", epoch.0),
                        &voters,
                        history,
                    );
                }
            }
            Seen::Applied { server, last, commits: Some(disks), .. } if self.committed < last => {
                let of_epoch = self.acknowledged.get(&last.epoch()).cloned().unwrap_or_default();
                // If a reconfiguration is committed together with what follows it, more servers may have the reconfiguration.
                let have = |zxid: Zxid| {
                    let has = |(&id, &through): (&ServerId, &Zxid)| (zxid <= through).then_some(id);
                    let mut voters: Servers = of_epoch.iter().filter_map(has).collect();
                    if history.holds(disks[server], zxid) {
                        voters.insert(id(server));
                    }
                    voters
                };
                return self.record(&format!("commit {last}"), last, last, &have, history);
            }
            Seen::Destroyed { .. } => {
                *self = Self { committed: history.last(), ..Self::default() };
            }
            _ => {}
        }
        Ok(())
    }
}

impl Quorums {
    /// Records what was decided through `last`: by the configuration in force at `at`, and by both configurations of each
    /// reconfiguration that is committed with it.
    ///
    /// * `deciders`: the servers that have decided what has this zxid.
    fn record(
        &mut self,
        what: &str,
        last: Zxid,
        at: Zxid,
        deciders: &dyn Fn(Zxid) -> Servers,
        history: &History,
    ) -> Result<(), String> {
        let before = self.committed;
        self.committed = before.max(last);
        let changes = history.reconfigurations(before, last);
        let views = changes.flat_map(|zxid| history.deciders(zxid).map(move |view| (zxid, view)));
        // The first of these is the configuration that `at` itself proposed, or that was in force there.
        let mut views = views.chain(history.deciders(at).take(1).map(|view| (last, view)));
        views.try_for_each(|(zxid, view)| self.record_under(view, what, &deciders(zxid), history))
    }

    fn record_under(
        &mut self,
        view: &View,
        what: &str,
        servers: &Servers,
        history: &History,
    ) -> Result<(), String> {
        let weighs = |id: &ServerId| view.is_voter(*id) && 0 < view.weight(*id);
        let set: Servers = servers.iter().copied().filter(weighs).collect();
        let is_alone = history.alone.is_some_and(|alone| set.iter().eq([&alone]));
        if is_alone && view.voters().count() == 2 {
            return Ok(());
        }
        let decided = self.decided.entry((history.rewritings(), view.version)).or_default();
        decided.insert(set.clone());
        match decided.iter().find(|other| other.is_disjoint(&set)) {
            None => Ok(()),
            Some(other) => {
                let ids = |set: &Servers| set.iter().map(|id| id.0).collect::<Vec<_>>();
                let (view, set, other) = (short(view), ids(&set), ids(other));
                Err(format!("{set:?} decide {what}, and {other:?} decided before, of {view}"))
            }
        }
    }
}

const fn id(server: usize) -> ServerId {
    ServerId(server as i64)
}
