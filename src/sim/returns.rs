//! All members but one lose their data, and form an ensemble anew. The one whose data stayed comes back after that: it must not replace
//! what was acknowledged meanwhile, nor end the epoch of the new leader (ZooKeeper's `QuorumZxidSyncTest#testBehindLeader`).
//!
//! Configuration files stay, or are written by the operator: all have the newest configuration. The server that comes back may be one
//! that observed, and that the operator has made a voter meanwhile, so that it asks to be an observer, and has sent no vote.

use super::check::{Durable, Seen};
use super::membership;
use super::network::ProcessId;
use super::plan::{Crash, CrashKind, MS, Micros, Return};
use super::world::World;
use crate::member::QuorumPeer;
use crate::model::{Epoch, Role, ServerId, View, Zxid};

/// For how long the server that has come back is watched.
const WATCHED_US: Micros = 700 * MS;

impl World {
    pub fn lose_all_but(&mut self, how: Return) {
        let Return { spared, observes, keeps, down_us } = how;
        let view = self.newest_view().cloned();
        let mut view = view.unwrap_or_else(|| membership::first_view(self.climate()));
        let all = || (0..self.servers.len()).map(|server| (server, ServerId(server as i64)));
        let observer = all().find(|(_, id)| view.is_observer(*id)).filter(|_| observes);
        let (spared, id) = observer.unwrap_or((spared, ServerId(spared as i64)));
        if let Some(member) = view.members.get_mut(&id).filter(|_| observer.is_some()) {
            member.role = Role::Participant;
            view.version += 1;
        }
        let found = &self.servers[spared];
        let is_current = self.newest_view().map(|view| view.version)
            == found.view.as_ref().map(|view| view.version);
        let is_whole = !found.is_unsure && Epoch(1) < found.durable.last.epoch() && is_current;
        let others = all().map(|(_, id)| id).filter(|other| *other != id).collect();
        if !is_whole || !view.is_voter(id) || !view.has_quorum(&others) {
            return self.trace.count("quorums that keep their data");
        }
        self.stop_all(keeps, down_us);
        self.trace.count("servers that come back with lost data");
        self.servers[spared].starts_us = Micros::MAX;
        for server in (0..self.servers.len()).filter(|server| *server != spared) {
            self.empty_new(server);
            self.servers[server].durable = Durable::default();
            if self.climate().changes {
                self.rewrite_configuration(server, &view);
            }
        }
        self.see(&Seen::Destroyed { left: Zxid::ZERO, promised: Epoch(0) });
        if self.climate().changes {
            self.checks.history.begin_with(view);
        }
        (0..self.clients.len()).for_each(|client| self.begin_anew(client));
        (self.is_recovering, self.outsider, self.reconfigures) = (true, Some(spared), false);
    }

    /// The others have established an epoch.
    pub fn bring_outsider(&mut self, leader: usize, epoch: Epoch) {
        let Some(outsider) = self.outsider else { return };
        let is_later = epoch < self.servers[outsider].durable.last.epoch();
        let is_again = self.servers[outsider].starts_us != Micros::MAX;
        if outsider == leader || is_again || !is_later {
            if is_again {
                let what = format!("{outsider} comes back, and epoch {} begins", epoch.0);
                self.fail("primary order", what);
            }
            return self.admit_outsider();
        }
        self.do_within(50 * MS, 300 * MS, move |world| {
            world.servers[outsider].starts_us = 0;
            world.start(outsider);
            let end_us = world.now_us + WATCHED_US;
            world.do_at(end_us, Self::admit_outsider);
        });
    }

    /// A leader sends LEADERINFO: not to the server that has come back, whose history is of a later epoch.
    pub fn look_for_outsider(&mut self, at: ProcessId, peer: QuorumPeer) {
        let Some(outsider) = self.outsider else { return };
        let end = self.learner_connection(at, peer).and_then(|connection| connection.end);
        if end.and_then(|end| self.net.peer(end)) == Some(outsider) {
            let what = format!("{} accepts {outsider}, whose history is of another", at.server);
            self.fail("primary order", what);
        }
    }

    /// The operator empties the server that has come back.
    fn admit_outsider(&mut self) {
        let Some(outsider) = self.outsider.take() else { return };
        if self.servers[outsider].process.as_ref().is_some_and(|process| process.is_serving()) {
            self.fail("primary order", format!("{outsider} serves with data of another history"));
        }
        self.crash(outsider, Crash { kind: CrashKind::Process, down_us: 20 * MS });
        self.empty_new(outsider);
        self.servers[outsider].durable = Durable::default();
        let view: Option<View> = self.newest_view().cloned();
        if let Some(view) = view.filter(|_| self.climate().changes) {
            self.rewrite_configuration(outsider, &view);
        }
        self.is_recovering = false;
    }
}
