//! Properties of agreement, of disks and of trees, one function each.

use super::seen::{Check, Durable, Seen, Standing};
use crate::model::{Epoch, ServerId, View, Zxid};
use crate::sim::history::History;
use crate::sim::membership::short;
use crate::tree::Tree;
use crate::zab::Packet;
use std::collections::{BTreeMap, BTreeSet};

/// An epoch has one leader (I-1).
///
/// # Errors
/// What does not hold, here and below.
pub fn one_leader(seen: &Seen<'_>, history: &History) -> Result<(), String> {
    let &Seen::Leads { server, epoch, .. } = seen else { return Ok(()) };
    match history.leaders.get(&epoch) {
        None => Ok(()),
        Some((other, _)) => Err(format!("{server} leads epoch {}, which {other} led", epoch.0)),
    }
}

/// Only the leader of an epoch proposes in it, without a gap, and begins with all that was committed before (I-5, I-6, I-7,
/// I-13).
pub fn primary_order(seen: &Seen<'_>, history: &History) -> Result<(), String> {
    match *seen {
        Seen::Leads { server, epoch, last, .. } => {
            if epoch <= last.epoch() {
                return Err(format!("{server} leads epoch {} and has {last}", epoch.0));
            }
            // A leader whose epoch is over may learn only now that a quorum had its history: it commits nothing more.
            let is_over =
                history.leaders.last_key_value().is_some_and(|(newest, _)| epoch < *newest);
            let lost = history.last();
            if is_over || history.holds(last, lost) {
                return Ok(());
            }
            Err(format!("leader {server} begins with {last} and lacks {lost}, committed before"))
        }
        Seen::Logs { server, zxid, .. } if history.proposal(zxid).is_none() => {
            let epoch = zxid.epoch();
            let Some((leader, _)) = history.leaders.get(&epoch) else {
                return Err(format!("{server} logs {zxid}, whose epoch has no leader"));
            };
            if *leader != server {
                return Err(format!("{server} logs {zxid}, which {leader} never proposed"));
            }
            let before = history.last_proposal(epoch).unwrap_or(Zxid::new(epoch, 0));
            if zxid.counter() != before.counter() + 1 {
                return Err(format!("{server} proposes {zxid} after {before}"));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// All servers serve one history; each transaction in it was proposed, once; and no server ever goes back in it, except an observer
/// that changes its master (I-2, I-3, I-4, I-10, I-14): its clients reconnect only to a server that has what they have seen.
#[derive(Default)]
pub struct Agreement {
    /// How far each server has served.
    served: BTreeMap<usize, Zxid>,
}

impl Check for Agreement {
    fn see(&mut self, seen: &Seen<'_>, history: &History) -> Result<(), String> {
        match *seen {
            Seen::Logs { server, zxid, entry } => match history.proposal(zxid) {
                Some(proposed) if proposed[..] != *entry => {
                    Err(format!("{server} logs another transaction as {zxid} than was proposed"))
                }
                _ => Ok(()),
            },
            Seen::Leads { server, last, .. } | Seen::Applied { server, last, .. } => {
                if !history.is_committed(last) {
                    let end = history.last();
                    return Err(format!(
                        "{server} serves {last}, not committed: {end} is the last"
                    ));
                }
                let may_go_back = matches!(seen, Seen::Applied { may_go_back: true, .. });
                match self.served.insert(server, last) {
                    Some(before) if last < before && !may_go_back => {
                        Err(format!("{server} serves {last}, and had served {before}"))
                    }
                    _ => Ok(()),
                }
            }
            Seen::Destroyed { .. } => {
                self.served.clear();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Servers with the same last zxid have the same tree: its digest is the one that the leader computed (I-10).
pub fn digests(seen: &Seen<'_>, history: &History) -> Result<(), String> {
    // What a server finds at its start may end with transactions that were never committed.
    let (server, last, digest) = match *seen {
        Seen::Applied { server, last, digest, .. } => (server, last, digest),
        Seen::Started { server, found, digest, .. } => (server, found.last, digest),
        Seen::Frozen { server, zxid, digest } => (server, zxid, digest),
        Seen::Mismatch { server } => {
            return Err(format!(
                "{server} has applied a transaction to another tree than its leader"
            ));
        }
        _ => return Ok(()),
    };
    match history.digest_at(last) {
        Some(wanted) if wanted != digest => {
            Err(format!("the tree of {server} at {last} is {digest:#x}, its leader's {wanted:#x}"))
        }
        _ => Ok(()),
    }
}

/// A transaction is on the disks of a quorum at the moment it is committed, a reconfiguration on those of a quorum of both
/// configurations, whatever the leader has counted; and no disk loses what it durably had (I-9, I-14).
#[derive(Default)]
pub struct Durability {
    /// The last committed zxid when this was checked last.
    committed: Zxid,
}

impl Check for Durability {
    fn see(&mut self, seen: &Seen<'_>, history: &History) -> Result<(), String> {
        match *seen {
            Seen::Leads { server, last, disks, .. }
            | Seen::Applied { server, last, commits: Some(disks), .. }
                if self.committed < last =>
            {
                let before = std::mem::replace(&mut self.committed, last);
                let mut zxids = history.reconfigurations(before, last).chain([last]);
                zxids.try_for_each(|zxid| on_quorums(server, zxid, disks, history))
            }
            Seen::Destroyed { .. } => {
                self.committed = history.last();
                Ok(())
            }
            _ => stays_on_disk(seen, history),
        }
    }
}

/// * `disks`: see [`Seen`].
fn on_quorums(leader: usize, zxid: Zxid, disks: &[Zxid], history: &History) -> Result<(), String> {
    let has = |(server, &last): (usize, &Zxid)| {
        history.holds(last, zxid).then_some(ServerId(server as i64))
    };
    let holders: BTreeSet<ServerId> = disks.iter().enumerate().filter_map(has).collect();
    match history.deciders(zxid).find(|view| !view.has_quorum_or(&holders, history.alone)) {
        None => Ok(()),
        Some(view) => {
            let (voters, holders) = (short(view), holders.iter().map(|id| id.0));
            let holders: Vec<_> = holders.collect();
            Err(format!("leader {leader} commits {zxid}, which {holders:?} have, of {voters}"))
        }
    }
}

fn stays_on_disk(seen: &Seen<'_>, history: &History) -> Result<(), String> {
    match *seen {
        Seen::Started { server, found, before, .. } => {
            let keeps_epochs = before.accepted <= found.accepted && before.current <= found.current;
            // A server with currentEpoch 0 has acknowledged nothing of what its first synchronisation brought. Damage may make that
            // look like a snapshot that was never finished (world 122000003067).
            let owes_nothing = before.current == Epoch(0) && found.last == Zxid::ZERO;
            let (found_last, had) = (found.last, before.last);
            // A write that failed may have reached the disk, and all servers but this one may have lost their data since (world 1700000048709).
            let keeps_history = history.holds(found_last, had) || history.held(found_last, had);
            if keeps_epochs && (owes_nothing || keeps_history) {
                return Ok(());
            }
            Err(format!("{server} starts with {found:?}, and had {before:?}"))
        }
        _ => Ok(()),
    }
}

/// A configuration in force was committed, and no server goes back to an older one. All configurations in a server's history that may
/// have been committed count at that server, and so do those that it had acknowledged before it started. It dials the voters of each
/// configuration that counts.
#[derive(Default)]
pub struct Configurations {
    /// Version of the newest configuration that each server had in force.
    in_force: BTreeMap<usize, i64>,
}

impl Check for Configurations {
    fn see(&mut self, seen: &Seen<'_>, history: &History) -> Result<(), String> {
        match *seen {
            Seen::InForce { server, view } => {
                let (version, text) = (view.version, short(view));
                if let Some(before) = self.in_force.insert(server, version)
                    && version < before
                {
                    return Err(format!("{server} goes back to {text} from {before:#x}"));
                }
                // A server that is to join starts with a configuration that its operator wrote.
                if version != 0 && !history.has_view(view) {
                    return Err(format!("{server} has {text} in force, which was not committed"));
                }
                Ok(())
            }
            Seen::ForgetsView { server } => {
                self.in_force.remove(&server);
                Ok(())
            }
            Seen::Counts { server, last, after, counted } => {
                let is_missing = |view: &&View| !counted.contains(&view.version);
                match history.views_in(last).find(|view| after < view.version && is_missing(view)) {
                    None => Ok(()),
                    Some(view) => Err(format!(
                        "{} is in the history of {server} through {last}, and does not count there: {counted:x?} do",
                        short(view)
                    )),
                }
            }
            Seen::Looks { server, unmet: Some(voter) } => {
                Err(format!("{server} looks for a leader, and does not dial {voter}, which votes"))
            }
            Seen::Remembers { server, acknowledged, counted } => {
                let newest_counted = counted.first().copied().unwrap_or_default();
                let is_missing =
                    |version: &&i64| newest_counted < **version && !counted.contains(version);
                match acknowledged.iter().find(is_missing) {
                    None => Ok(()),
                    Some(version) => Err(format!(
                        "{server} has acknowledged {version:#x}, and starts without it: {counted:x?} count"
                    )),
                }
            }
            _ => Ok(()),
        }
    }
}

/// No packet with an epoch, a history or an ACK is sent before the sender's disk has it (I-8, I-12). A server that votes by any
/// configuration that counts there follows no leader of an epoch before the one that it has promised, and its promise does not open the
/// epoch of a leader that lacks votes of a quorum of such a configuration. `.dynamic.next` has a proposed configuration after the log has
/// the proposal, and before the proposal is acknowledged.
pub fn promises(seen: &Seen<'_>, history: &History) -> Result<(), String> {
    match *seen {
        Seen::ToLearner { server, packet: Packet::LeaderInfo { epoch }, durable }
            if durable.accepted < *epoch =>
        {
            let (epoch, saved) = (epoch.0, durable.accepted.0);
            Err(format!("{server} sends LEADERINFO of epoch {epoch}, and its disk has {saved}"))
        }
        Seen::ToLearner { server, packet: Packet::NewLeader { epoch, .. }, durable }
            if durable.current < *epoch =>
        {
            Err(format!("{server} sends NEWLEADER before epoch {} is saved", epoch.0))
        }
        Seen::ToLeader { server, packet: Packet::AckEpoch { .. }, durable, epoch }
            if durable.accepted < epoch =>
        {
            Err(format!("{server} promises epoch {} before it is saved", epoch.0))
        }
        Seen::AcknowledgesView { server, zxid, is_saved: false } => {
            Err(format!("{server} acknowledges {zxid}, and has not saved its members"))
        }
        Seen::SavesView { server, zxid, is_proposed: true, durable } if durable < zxid => {
            Err(format!("{server} saves the members of {zxid}, and its log has {durable}"))
        }
        Seen::AnswersEpoch { server, epoch, accepted, votes: true, .. } if epoch < accepted => {
            let (epoch, accepted) = (epoch.0, accepted.0);
            Err(format!("{server} votes, has promised epoch {accepted}, and follows in {epoch}"))
        }
        Seen::AnswersEpoch { server, epoch, promises: true, is_backed: false, .. } => {
            let epoch = epoch.0;
            Err(format!("{server} promises epoch {epoch}, and its leader lacks votes of a quorum"))
        }
        Seen::ToLeader { server, packet: Packet::Ack { zxid }, durable, .. } => {
            if zxid.counter() == 0 && durable.current < zxid.epoch() {
                return Err(format!("{server} acknowledges {zxid} before its epoch is saved"));
            }
            if zxid.counter() != 0 && !history.holds(durable.last, *zxid) {
                let last = durable.last;
                return Err(format!("{server} acknowledges {zxid}, and its disk has {last}"));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The first ACK of a learner on a connection is that of NEWLEADER (I-12): Java's leader takes no other (`LearnerHandler.run`). And a
/// learner leaves a leader that sends a packet of another phase.
#[derive(Default)]
pub struct Acknowledgements {
    /// Learners that have acknowledged NEWLEADER on their connection.
    acknowledged: BTreeSet<usize>,
}

impl Check for Acknowledgements {
    fn see(&mut self, seen: &Seen<'_>, _: &History) -> Result<(), String> {
        match *seen {
            Seen::ToLeader {
                server,
                packet: Packet::FollowerInfo { .. } | Packet::ObserverInfo { .. },
                ..
            } => {
                self.acknowledged.remove(&server);
            }
            Seen::ToLeader { server, packet: Packet::Ack { zxid }, .. } => {
                if zxid.counter() == 0 {
                    self.acknowledged.insert(server);
                } else if !self.acknowledged.contains(&server) {
                    return Err(format!("{server} acknowledges {zxid} before NEWLEADER"));
                }
            }
            Seen::Strayed { server, packet, goes_on: true } => {
                return Err(format!("{server} goes on under its leader after {}", packet.name()));
            }
            _ => {}
        }
        Ok(())
    }
}

/// A learner that acknowledges NEWLEADER has all of the history that the epoch begins with on its disk (I-8).
#[derive(Default)]
pub struct InitialHistories {
    /// By epoch, until it is established: the servers that acknowledged its NEWLEADER, and the end of the history on their disks then.
    acknowledged: BTreeMap<Epoch, Vec<(usize, Zxid)>>,
}

impl Check for InitialHistories {
    fn see(&mut self, seen: &Seen<'_>, history: &History) -> Result<(), String> {
        let lacks = |(server, has): (usize, Zxid), epoch: Epoch, first: Zxid| {
            let epoch = epoch.0;
            let why =
                format!("{server} acknowledges NEWLEADER of epoch {epoch} and {first} with {has}");
            if history.holds(has, first) { Ok(()) } else { Err(why) }
        };
        match *seen {
            Seen::ToLeader { server, packet: Packet::Ack { zxid }, durable, .. }
                if zxid.counter() == 0 =>
            {
                let (epoch, it) = (zxid.epoch(), (server, durable.last));
                match history.leaders.get(&epoch) {
                    Some(&(_, first)) => return lacks(it, epoch, first),
                    None => self.acknowledged.entry(epoch).or_default().push(it),
                }
            }
            Seen::Leads { epoch, last, .. } => {
                let all = self.acknowledged.remove(&epoch).unwrap_or_default();
                return all.into_iter().try_for_each(|it| lacks(it, epoch, last));
            }
            Seen::Destroyed { .. } => self.acknowledged.clear(),
            _ => {}
        }
        Ok(())
    }
}

/// No server that serves is in an impossible state: its memory counts nothing as on disk that its disk lacks, and its epochs, its last
/// zxid and its committed zxid are in order (I-11).
pub fn states(seen: &Seen<'_>, history: &History) -> Result<(), String> {
    let &Seen::Stands { server, standing, durable } = seen else { return Ok(()) };
    match complaint(standing, durable, history.is_alone) {
        None => Ok(()),
        Some(why) => {
            Err(format!("{server} serves with {standing:?}, and its disk has {durable:?}: {why}"))
        }
    }
}

/// * `is_alone`: a standalone server has no epochs.
fn complaint(believed: Standing, durable: Durable, is_alone: bool) -> Option<&'static str> {
    let Standing { accepted, current, committed, last, flushed } = believed;
    if durable.accepted < accepted || durable.current < current {
        Some("it is in an epoch that is not saved")
    } else if durable.last < flushed {
        Some("it counts a history that is not flushed")
    } else if accepted < current {
        Some("it is in an epoch that it never promised")
    } else if current < last.epoch() && !is_alone {
        Some("its history goes on after its epoch")
    } else if last < committed {
        Some("it has committed what it does not have")
    } else {
        None
    }
}

/// The unsent bytes for a server that reads nothing are bounded: by the limit and the batch that went beyond it.
pub fn memory(seen: &Seen<'_>, _: &History) -> Result<(), String> {
    match *seen {
        Seen::Queued { server, unsent, limit, batch } if limit + batch < unsent => {
            Err(format!("{server} keeps a connection with {unsent} bytes unsent, of {limit}"))
        }
        _ => Ok(()),
    }
}

/// Packets of a leader whose connection was closed are discarded: they would otherwise be taken for packets of the next leader.
pub fn closed_connections(seen: &Seen<'_>, _: &History) -> Result<(), String> {
    match *seen {
        Seen::FromClosed { server, actions: count @ 1.. } => {
            Err(format!("{server} acts {count} times because of a connection that it had closed"))
        }
        _ => Ok(()),
    }
}

/// A snapshot that a start may load has nothing that was truncated from its server's log before the snapshot got its name (I-10). A
/// start prefers a leader's tree to all snapshots that are older than the tree.
pub fn snapshots(seen: &Seen<'_>, history: &History) -> Result<(), String> {
    match *seen {
        Seen::Named { server, zxid, tree, durable }
            if tree < zxid && !history.holds(durable.last, zxid) =>
        {
            let last = durable.last;
            Err(format!("{server} names a snapshot of {zxid}, and its history ends with {last}"))
        }
        _ => Ok(()),
    }
}

/// After the last fault every member serves, and all have the same tree, which is the one that the committed history makes.
pub fn convergence(seen: &Seen<'_>, history: &History) -> Result<(), String> {
    match *seen {
        Seen::Unsettled { why } => Err(why.to_owned()),
        Seen::Settled { server, mismatches: count @ 1.., .. } => {
            Err(format!("server {server}: {count} digests were not its leader's"))
        }
        Seen::Settled { server, tree, .. } => {
            compare(tree, history).map_err(|why| format!("server {server}: {why}"))
        }
        _ => Ok(()),
    }
}

fn compare(tree: &Tree, history: &History) -> Result<(), String> {
    if tree.last_zxid() != history.last() {
        return Err(format!("ends with {}, not {}", tree.last_zxid(), history.last()));
    }
    let open = history.model.sessions.iter().filter(|(_, span)| span.closed.is_none());
    let wanted: BTreeSet<i64> = open.map(|(&id, _)| id).collect();
    let found: BTreeSet<i64> = tree.sessions().keys().copied().collect();
    if wanted != found {
        return Err(format!("has sessions {found:x?}, the open ones are {wanted:x?}"));
    }
    let mut count = 0;
    for (path, node) in history.model.paths() {
        count += 1;
        let Some(id) = tree.find(path) else { return Err(format!("lacks {path:?}")) };
        let znode = tree.znode(id);
        if !node.is(&znode.stat()) || node.data.as_deref() != znode.data().bytes() {
            return Err(format!("has {path:?} with {:?}, and not {node:?}", znode.stat()));
        }
    }
    // Java counts the root twice; /zookeeper and the two znodes below it are made by no transaction.
    let own = tree.node_count() - 1 - 3;
    if own == count { Ok(()) } else { Err(format!("has {own} znodes, and not {count}")) }
}
