//! Peers that do what ours do not: a Java leader that repeats proposals after a tree, a stranger on a learner connection, and election
//! connections that are replaced. And what the checks see of learners and their leaders.
//!
//! Each situation has a chance and randomness of its own, so that worlds without it stay as they were before it was added.

use super::checks::Event;
use super::checks::phases::Phase;
use super::driver_turns::Happened;
use super::world::{Checker, World};
use bytes::Bytes;
use oxkeeper::model::{Epoch, ServerId, Zxid};
use oxkeeper::zab::{Action, Input, LearnerConnectionId, Packet, Promise, Role};
use std::collections::BTreeSet;
use support::ensemble::Seen;
use support::quorums::Count;
use support::server::Server;
use support::views::view_in;

/// An election connection that has ended comes back within this many rounds of 5 ms. A learner waits for it for 40.
const REPLACED_ROUNDS_MAX: usize = 30;

/// An election connection that two servers dialed at once, so that another one takes its place.
#[derive(Clone, Copy, Debug)]
pub struct Replaced {
    learner: usize,
    leader: usize,
    /// Rounds until the other one is there.
    rounds: usize,
}

/// A server's way from its election to its leader.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asking {
    /// Ticks since the election began, and how many there were when the leader was dialed.
    ticks: u64,
    looked_ticks: u64,
    /// The leader's epoch is later than the one that this server had promised.
    is_new: bool,
}

impl Checker {
    /// Shows the checks what a learner was sent and what follows from it, and which voters have sent a leader their acceptedEpochs.
    pub fn see_learners(&mut self, servers: &[Server], at: usize, seen: &Seen<'_>) {
        self.see_asking(&servers[at], at, seen);
        match seen {
            Seen::Starts => {
                self.hellos.remove(&at);
                self.check(Event::Leaves { at });
            }
            Seen::Input(Input::Leader { packet }) => self.check(Event::FromLeader { at, packet }),
            Seen::Input(Input::Learner {
                connection,
                packet: Packet::FollowerInfo { info, .. } | Packet::ObserverInfo { info, .. },
            }) => {
                self.hellos.entry(at).or_default().insert(*connection, info.id);
            }
            Seen::Input(Input::LearnerGone { connection })
            | Seen::Action(Action::CloseLearner { connection, .. }) => {
                self.hellos.entry(at).or_default().remove(connection);
            }
            Seen::Action(Action::ToLearner { connection, .. }) if self.outsider.is_some() => {
                let learner =
                    self.hellos.get(&at).and_then(|hellos| hellos.get(connection).copied());
                if learner == self.outsider {
                    self.check(Event::AnswersOutsider { at });
                }
            }
            Seen::Action(Action::Disconnect) => self.check(Event::Leaves { at }),
            Seen::Action(Action::Connect { leader, .. }) if self.conditions.replaces => {
                let rounds = 0;
                self.replaced.push(Replaced { learner: at, leader: leader.0 as usize, rounds });
            }
            Seen::Action(Action::SendSnapshot { .. })
                if !servers[at].proposed_again().is_empty() =>
            {
                self.count(Happened::Repeated);
            }
            Seen::Action(Action::Promise { promise: Promise::Accepted, epoch }) => {
                self.see_choice(&servers[at], at, *epoch);
            }
            Seen::Action(Action::Append { payload, .. }) if view_in(payload).is_some() => {
                self.see_logged_view(&servers[at], at);
            }
            Seen::ToLeader(Packet::Ack { .. }) => self.see_acknowledged_views(&servers[at], at),
            _ => {}
        }
    }

    /// A server that looks for a leader, or asks the one that it has found.
    fn see_asking(&mut self, server: &Server, at: usize, seen: &Seen<'_>) {
        let asking = self.asking.entry(at).or_default();
        match seen {
            Seen::Action(Action::Look { .. }) => *asking = Asking::default(),
            Seen::Input(Input::Tick) => asking.ticks += 1,
            Seen::Action(Action::Connect { .. }) => asking.looked_ticks = asking.ticks,
            Seen::Input(Input::Leader { packet: Packet::LeaderInfo { epoch } }) => {
                asking.is_new = server.disk.accepted < *epoch;
            }
            Seen::ToLeader(Packet::AckEpoch { current: None, .. }) if asking.is_new => {
                let ticks = asking.looked_ticks;
                if !server.peer.as_ref().expect("the server is up").core.is_unsure {
                    self.check(Event::Withholds { at, ticks });
                }
            }
            Seen::Action(Action::Install { .. }) if server.disk.is_unsure => {
                let (disk, epoch) = (&server.disk, server.leader_info_epoch);
                if !server.peer.as_ref().expect("the server is up").core.is_unsure {
                    self.check(Event::Counts { at, disk, epoch });
                }
            }
            _ => {}
        }
    }

    /// A server that leads promises to join the epoch that it has chosen. An oracle may let it choose without the other voter.
    fn see_choice(&mut self, server: &Server, at: usize, epoch: Epoch) {
        let peer = server.peer.as_ref().expect("the server is up");
        if !matches!(peer.role(), Role::Leading(_)) || peer.core.oracle.is_some() {
            return;
        }
        let hellos = self.hellos.entry(at).or_default();
        let has_answered =
            |id: ServerId| id.0 as usize == at || hellos.values().any(|learner| *learner == id);
        let counts = peer.core.all_views().map(|view| Count::of(view, has_answered));
        let fewest = counts.min_by_key(|count| count.there as isize - count.needed as isize);
        let Count { there: answered, needed: quorum } = fewest.expect("one is in force");
        self.check(Event::Chooses { at, epoch, answered, quorum });
    }

    /// A server logs a configuration, after others in the history that it knows.
    fn see_logged_view(&mut self, server: &Server, at: usize) {
        let known = server.tree.iter().chain(&server.tail).rev();
        let before = known.filter_map(|(_, entry)| view_in(entry)).next();
        let in_force = server.peer.as_ref().expect("the server is up").core.view.version;
        if let Some(before) = before.map(|view| view.version) {
            self.check(Event::LogsView { at, before, in_force });
        }
    }

    fn see_acknowledged_views(&mut self, server: &Server, at: usize) {
        let core = &server.peer.as_ref().expect("the server is up").core;
        let logged: BTreeSet<i64> = server
            .tail
            .iter()
            .filter_map(|(_, entry)| view_in(entry))
            .map(|view| view.version)
            .filter(|version| core.view.version < *version)
            .collect();
        if !logged.is_empty() {
            let views = core.all_views().map(|view| view.version).collect();
            self.check(Event::Acknowledges { at, logged: &logged, views: &views });
        }
    }
}

impl World {
    /// A leader reconfigures, and may be cut off at that moment with some of the others; or all are connected again.
    pub fn hurry(&mut self) {
        let leader = self.servers.iter().position(|server| server.leads.is_some());
        match (self.witness.peers.below(60), leader) {
            (0..3, Some(leader)) => {
                self.change(leader);
                let core = &self.servers[leader].peer.as_ref().expect("the server leads").core;
                if core.next.is_some() && self.witness.peers.one_in(2) {
                    let servers = self.servers.len();
                    let side = self.witness.peers.pick(1 << servers);
                    self.witness.count(Happened::CutOff);
                    self.witness.conditions.silent.clear();
                    self.part_from(side | 1 << leader);
                }
            }
            (3, _) => self.witness.conditions.silent.clear(),
            _ => {}
        }
    }

    /// A stranger sends a learner a packet of another phase, as if its leader had sent it.
    pub fn stray(&mut self) {
        let ids: Vec<LearnerConnectionId> = self.connections.keys().copied().collect();
        let peers = &mut self.witness.peers;
        if ids.is_empty() || !peers.one_in(20) {
            return;
        }
        let id = ids[peers.pick(ids.len())];
        let zxid = Zxid::new(Epoch(peers.below(4) as u32), peers.below(8) as u32);
        let packets = [
            Packet::LeaderInfo { epoch: zxid.epoch() },
            Packet::Diff { zxid },
            Packet::Trunc { zxid },
            Packet::NewLeader { epoch: zxid.epoch(), view: Bytes::new() },
            Packet::UpToDate,
            Packet::Proposal { zxid, entry: Bytes::from_static(b"stray") },
            Packet::Commit { zxid },
        ];
        let packet = packets[peers.pick(packets.len())].clone();
        let learner = self.connections[&id].learner;
        let phase = self.witness.checks.phase(learner);
        let is_stray = |phase: Phase| phase.after(&packet).is_none();
        if self.servers[learner].connection == Some(id) && phase.is_some_and(is_stray) {
            self.witness.note(|| format!("a stranger sends {learner} {}", packet.name()));
            self.witness.count(Happened::Strayed);
            self.step(learner, Input::Leader { packet });
        }
    }

    /// Election connections to leaders that learners have just dialed end, and others take their place.
    pub fn replace_connections(&mut self) {
        for mut replaced in std::mem::take(&mut self.witness.replaced) {
            let Replaced { learner, leader, rounds } = replaced;
            if rounds == 0 {
                replaced.rounds = 1 + self.witness.peers.pick(REPLACED_ROUNDS_MAX);
                self.witness.count(Happened::Replaced);
                self.end_election_connection(learner, leader);
                self.witness.replaced.push(replaced);
            } else if rounds == 1 {
                self.dial(learner, leader);
                self.settle();
            } else {
                replaced.rounds -= 1;
                self.witness.replaced.push(replaced);
            }
        }
    }
}
