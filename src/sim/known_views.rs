//! What the checks of configurations see: which of them count at a server when it acknowledges its history, when it looks for a leader, and
//! when it starts; and the zxids that a server logs.

use super::check::Seen;
use super::membership;
use super::network::ProcessId;
use super::plan::{Loss, MS, Micros};
use super::process::Process;
use super::world::World;
use crate::model::{ServerId, View, Zxid};
use crate::store;
use crate::store::disk::read_file;
use crate::zab::{Input, Note};

/// A server that looks for a leader has dialed the voters after this time.
const DIALED_US: Micros = 200 * MS;

impl Process {
    /// Keeps the votes in notifications.
    pub fn note_votes(&mut self, inputs: &[Input]) {
        for input in inputs {
            if let Input::Notification { from, notification } = input {
                self.watched.votes.entry(*from).or_default().push(notification.vote.leader);
            }
        }
    }

    /// Keeps which leader was elected.
    pub fn note_election(&mut self, now_us: Micros, notes: &[Note]) {
        let looks = notes.iter().any(|note| matches!(note, Note::Looking { .. }));
        if looks {
            (self.watched.elected, self.watched.looks_us) = (None, Some(now_us));
            self.watched.votes.values_mut().for_each(|votes| drop(votes.drain(..votes.len() - 1)));
        }
        for note in notes {
            if let Note::Elected { leader, .. } = note {
                (self.watched.elected, self.watched.looks_us) =
                    (Some(*leader).filter(|_| !looks), None);
            }
        }
    }

    /// Whether the elected leader has a quorum of each configuration that counts here, by the votes that came. `None`: no other
    /// configuration than the one in force counts, or the leader was not elected here.
    fn is_backed(&self) -> Option<bool> {
        let core = &self.member.replica.peer().core;
        let leader =
            self.watched.elected.filter(|_| core.next.is_some() && core.oracle.is_none())?;
        let backs = |(id, votes): (&ServerId, &Vec<_>)| votes.contains(&leader).then_some(*id);
        let ids = self.watched.votes.iter().filter_map(backs).chain([core.me]).collect();
        Some(core.all_views().all(|view| view.has_quorum(&ids)))
    }
}

impl World {
    /// A learner answers LEADERINFO. * `promises`: its promise counts.
    pub fn look_for_promise(&mut self, at: ProcessId, promises: bool) {
        let (server, accepted) = (at.server, self.servers[at.server].durable.accepted);
        let Some(process) = self.process(at) else { return };
        let core = &process.member.replica.peer().core;
        let votes = core.all_views().any(|view| view.is_voter(core.me));
        let epoch = process.watched.leader_epoch;
        let is_backed = process.is_backed().unwrap_or(true);
        if !is_backed {
            self.trace.count("leaders that lack votes of a proposed configuration");
        }
        self.see(&Seen::AnswersEpoch { server, epoch, accepted, votes, promises, is_backed });
    }

    /// A server acknowledges its history through `zxid`, or with NEWLEADER.
    pub fn look_for_views_at_ack(&mut self, at: ProcessId, zxid: Zxid) {
        let Some(process) = self.process(at) else { return };
        let named = process.watched.named_view.map_or(0, Zxid::to_wire);
        let counted = process.counted_views();
        // What NEWLEADER names is no proposal of its epoch. The first configuration gets the zxid of its first leader.
        let was_proposed =
            |version: i64| Zxid::from_wire(version).is_some_and(|it| it.counter() != 0);
        let acknowledged =
            counted.iter().skip(1).copied().filter(|it| *it <= zxid.to_wire() && was_proposed(*it));
        self.servers[at.server].acknowledged_views.extend(acknowledged);
        self.see_counted_views(at, named, &counted);
    }

    /// A server begins to look for a leader, and its disk has all that it was given. A server with a configuration that its operator wrote
    /// has yet to learn which of those in its history were replaced.
    pub fn look_for_views_at_election(&mut self, at: ProcessId) {
        let Some(process) = self.process(at) else { return };
        let counted = process.counted_views();
        if !self.servers[at.server].was_rewritten && counted[0] != 0 {
            self.see_counted_views(at, 0, &counted);
        }
        let began_us = self.now_us;
        self.do_at(began_us + DIALED_US, move |world| world.look_for_dials(at, began_us));
    }

    /// A server has begun to look for a leader: it has dialed all voters of the configuration in force and of those that it has saved, or
    /// they have dialed it. A configuration that NEWLEADER has named counts earlier, and its voters are dialed once it is saved.
    fn look_for_dials(&mut self, at: ProcessId, began_us: Micros) {
        let is_stalled = self.is_stalled(at.server);
        let saved = read_file(&self.servers[at.server].disk, &membership::proposed_file());
        let saved = String::from_utf8(saved.unwrap_or_default()).unwrap_or_default();
        let Some(process) = self.process(at) else { return };
        if is_stalled || process.watched.looks_us != Some(began_us) || process.turn_is_due {
            return;
        }
        let core = &process.member.replica.peer().core;
        let is_saved = |view: &&View| {
            view.version == core.view.version
                || saved.contains(&format!("version={:x}", view.version))
        };
        let views = core.all_views().filter(is_saved);
        let voters = views.flat_map(View::voters).filter(|id| *id != core.me);
        let met = &process.election_connections.met;
        let unmet = voters.map(|id| id.0 as usize).find(|voter| !met.contains(voter));
        self.see(&Seen::Looks { server: at.server, unmet });
    }

    fn see_counted_views(&mut self, at: ProcessId, named: i64, counted: &[i64]) {
        let found = &self.servers[at.server];
        // A tree has only the last configuration of the history before it.
        let in_tree = self.checks.history.views_in(found.tree).map(|view| view.version).max();
        let (server, last) = (at.server, found.durable.last);
        let after = counted[0].max(named).max(in_tree.map_or(0, |version| version - 1));
        let is_unsure = self.process(at).is_none_or(|it| it.member.replica.peer().core.is_unsure);
        if !is_unsure {
            self.see(&Seen::Counts { server, last, after, counted });
        }
    }

    /// A server has started: what it had acknowledged has to count, whatever data it has lost.
    pub fn look_for_views_at_start(&mut self, at: ProcessId) {
        let Some(process) = self.process(at) else { return };
        let counted = process.counted_views();
        let acknowledged = self.servers[at.server].acknowledged_views.clone();
        self.see(&Seen::Remembers {
            server: at.server,
            acknowledged: &acknowledged,
            counted: &counted,
        });
    }

    /// Whether a server that has lost this still knows the configurations that it had acknowledged: from `.dynamic.next`, unless its log
    /// and currentEpoch say that the file is newer than what was acknowledged.
    pub const fn remembers_views(loss: Loss) -> bool {
        matches!(
            loss,
            Loss::AcceptedEpoch
                | Loss::OldCurrentEpoch
                | Loss::BothEpochs
                | Loss::SnapshotFolder
                | Loss::Data
                | Loss::MyId
                | Loss::Digests
        )
    }

    /// A command for a server's log thread: no transaction is logged twice.
    pub fn look_for_logged_twice(&mut self, at: ProcessId, command: &store::Command) {
        let Some(process) = self.process(at) else { return };
        match command {
            store::Command::Append { zxid, .. } => {
                let (server, zxid, before) = (at.server, *zxid, process.watched.logged);
                process.watched.logged = zxid;
                if zxid <= before {
                    self.fail("agreement", format!("{server} logs {zxid} after {before}"));
                }
            }
            store::Command::Truncate { to, .. } => {
                process.watched.logged = process.watched.logged.min(*to);
                let cut = to.to_wire();
                self.servers[at.server].acknowledged_views.retain(|version| *version <= cut);
            }
            _ => {}
        }
    }
}
