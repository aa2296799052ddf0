//! The commands of scripts for a whole ensemble; `script.rs` has their table.

use super::notation::{
    action_text, ids, number, payload_with, report_text, settings, state_text, views_text,
};
use super::script::Stage;
use oxkeeper::zab::{Action, Input, LearnerConnectionId, Peer, Role};
use std::collections::BTreeSet;
use std::fmt::Write;
use support::disk::last_of;
use support::ensemble::{Ensemble, Seen, Witness};
use support::server::Server;
use support::views::view_of;

/// An election of more ticks than this (of 5 ms) fails the script.
const ELECTION_TICKS_MAX: usize = 1000;

/// Records what the servers do.
#[derive(Default)]
struct Writer {
    said: String,
    is_quiet: bool,
    shows_votes: bool,
}

impl Witness for Writer {
    fn see(&mut self, servers: &[Server], at: usize, seen: Seen<'_>) {
        let text = match seen {
            _ if self.is_quiet => return,
            Seen::Action(Action::SendNotification { .. } | Action::DialAll)
                if !self.shows_votes =>
            {
                return;
            }
            Seen::Action(action) => action_text(action, |connection| {
                let learner = servers.iter().position(|it| it.connection == Some(connection));
                learner.map_or("that has left".to_owned(), |learner| learner.to_string())
            }),
            Seen::Input(
                report @ (Input::Flushed { .. }
                | Input::Promised { .. }
                | Input::Truncated { .. }
                | Input::Installed { .. }),
            ) => report_text(report),
            _ => return,
        };
        writeln!(self.said, "{at}: {text}").unwrap();
    }
}

pub struct EnsembleStage {
    ensemble: Ensemble<Writer>,
    /// Directions, from and to, in which packets are held back.
    held: BTreeSet<(usize, usize)>,
    disks_held: BTreeSet<usize>,
}

impl Stage for EnsembleStage {
    fn said(&mut self) -> &mut String {
        &mut self.ensemble.witness.said
    }

    fn command(&mut self, words: &[&str]) {
        match *words {
            ["quiet"] => self.ensemble.witness.is_quiet = true,
            ["loud"] => self.ensemble.witness.is_quiet = false,
            ["show", "votes"] => self.ensemble.witness.shows_votes = true,
            ["elect"] => self.elect(&self.running().collect::<Vec<_>>()),
            ["elect", ref at @ ..] => {
                self.elect(&at.iter().map(|at| server(at)).collect::<Vec<_>>());
            }
            ["wipe", at] => {
                assert!(
                    self.ensemble.servers[server(at)].peer.is_none(),
                    "server {at} is already running: {words:?}"
                );
                self.ensemble.servers[server(at)].disk.lose();
            }
            ["erase", at] => {
                let server = &mut self.ensemble.servers[server(at)];
                assert!(server.peer.is_none(), "the server is running: {words:?}");
                server.disk.keep_configurations_only();
            }
            ["elected", leader] => {
                let looking = self.running().filter(|at| self.ensemble.servers[*at].is_looking);
                let looking: Vec<usize> = looking.collect();
                looking.into_iter().for_each(|at| self.ensemble.is_elected(at, server(leader)));
            }
            ["elected", leader, "at", ref at @ ..] => {
                at.iter().for_each(|at| self.ensemble.is_elected(server(at), server(leader)));
            }
            ["settle"] => while self.deliver_held_aside() | self.write_held_aside() {},
            ["deliver"] => while self.deliver_held_aside() {},
            ["deliver", from, "to", to] => while self.deliver(server(from), server(to)) {},
            ["deliver", from, "to", to, count] => (0..number(count)).for_each(|_| {
                assert!(
                    self.deliver(server(from), server(to)),
                    "no packet is under way: {words:?}"
                );
            }),
            ["hold", from, "to", to] => {
                self.held.insert((server(from), server(to)));
            }
            ["partition", ref sides @ ..] => self.partition(sides),
            ["heal"] => self.held.clear(),
            ["release", from, "to", to] => {
                assert!(self.held.remove(&(server(from), server(to))), "not held: {words:?}");
            }
            ["hold", "disk", at] => {
                self.disks_held.insert(server(at));
            }
            ["release", "disk", at] => {
                assert!(self.disks_held.remove(&server(at)), "not held: {words:?}");
            }
            ["disk", at] => while self.write(server(at)) {},
            ["disk", at, count] => (0..number(count)).for_each(|_| {
                assert!(self.write(server(at)), "nothing was asked of the disk: {words:?}");
            }),
            ["disconnect", a, b] => self.disconnect(server(a), server(b)),
            ["propose", at, ref view @ ..] => {
                let at = server(at);
                assert!(self.ensemble.servers[at].leads.is_some(), "{at} does not lead");
                let zxid = self.ensemble.next_zxid(at);
                self.ensemble.step(at, Input::Propose { zxid, payload: payload_with(zxid, view) });
            }
            ["crash", at] => self.ensemble.crash(server(at), 0, 0),
            ["crash", at, "after", count] => {
                self.ensemble.crash(server(at), number(count) as usize, 0);
            }
            ["restart", at] => {
                assert!(
                    self.ensemble.servers[server(at)].peer.is_none(),
                    "server {at} is already running: {words:?}"
                );
                self.ensemble.restart(server(at));
            }
            ["tick", count] => self.tick(number(count), &self.running().collect::<Vec<_>>()),
            ["tick", count, "at", ref at @ ..] => {
                let at: Vec<usize> = at.iter().map(|at| server(at)).collect();
                self.tick(number(count), &at);
            }
            ["run", rounds] => (0..number(rounds)).for_each(|_| self.run_round()),
            ["configurations"] => {
                self.running().collect::<Vec<_>>().into_iter().for_each(|at| self.views(at));
            }
            ["configurations", at] => self.views(server(at)),
            ["state"] => (1..self.ensemble.servers.len()).for_each(|at| self.state(at)),
            ["state", at] => self.state(server(at)),
            _ => panic!("no such command: {words:?}"),
        }
    }
}

fn server(text: &str) -> usize {
    number(text) as usize
}

impl EnsembleStage {
    /// `servers 1 2 3 [observers 4] [SETTINGS]`
    pub fn new(words: &[&str]) -> Self {
        let view = view_of(0, ids(words, "servers"), ids(words, "observers"));
        let started: Vec<usize> = view.members.keys().map(|id| id.0 as usize).collect();
        let writer = Writer { is_quiet: true, ..Writer::default() };
        let mut ensemble = Ensemble::new(view, settings(words), writer);
        ensemble.has_elections = true;
        started.into_iter().for_each(|at| ensemble.restart(at));
        ensemble.witness.is_quiet = false;
        Self { ensemble, held: BTreeSet::new(), disks_held: BTreeSet::new() }
    }

    fn running(&self) -> impl Iterator<Item = usize> {
        let servers = self.ensemble.servers.iter().enumerate();
        servers.filter(|(_, server)| server.peer.is_some()).map(|(at, _)| at)
    }

    /// Notifications arrive and time passes until none of these servers looks for a leader. No packet arrives meanwhile.
    fn elect(&mut self, candidates: &[usize]) {
        let looks = |server: &Server| {
            matches!(server.peer.as_ref().map(Peer::role), Some(Role::Looking(_)))
        };
        for _ in 0..ELECTION_TICKS_MAX {
            self.hear_held_aside();
            if !candidates.iter().any(|at| looks(&self.ensemble.servers[*at])) {
                return;
            }
            self.tick(1, &self.running().collect::<Vec<_>>());
        }
        panic!("an election does not end");
    }

    /// Delivers all notifications that are not held, until no server has another to send.
    fn hear_held_aside(&mut self) {
        let next = |stage: &Self| {
            let busy = stage.ensemble.elections.busy();
            busy.into_iter().find(|direction| !stage.held.contains(direction))
        };
        while let Some((from, to)) = next(self) {
            self.ensemble.hear(from, to);
        }
    }

    /// Disks write and all packets and notifications arrive, except for what is held; then 5 ms pass.
    fn run_round(&mut self) {
        while self.deliver_held_aside() | self.write_held_aside() {}
        self.hear_held_aside();
        self.tick(1, &self.running().collect::<Vec<_>>());
    }

    /// Holds back what each server of one of two sides sends to the other side.
    fn partition(&mut self, sides: &[&str]) {
        let mut sides = sides.split(|word| *word == "from");
        let mut side = || -> Vec<usize> {
            sides.next().expect("two sides").iter().map(|at| server(at)).collect()
        };
        let (one, other) = (side(), side());
        for (a, b) in one.iter().flat_map(|a| other.iter().map(move |b| (*a, *b))) {
            self.held.extend([(a, b), (b, a)]);
        }
    }

    fn tick(&mut self, count: u32, at: &[usize]) {
        for _ in 0..count {
            at.iter().for_each(|at| self.ensemble.step(*at, Input::Tick));
        }
    }

    /// Delivers one packet on each connection in each direction that is not held; `false`: there was none.
    fn deliver_held_aside(&mut self) -> bool {
        let directions = self.ensemble.connections.values();
        let directions =
            directions.flat_map(|it| [(it.learner, it.leader), (it.leader, it.learner)]);
        let directions: Vec<_> =
            directions.filter(|direction| !self.held.contains(direction)).collect();
        directions.into_iter().fold(false, |moved, (from, to)| moved | self.deliver(from, to))
    }

    fn deliver(&mut self, from: usize, to: usize) -> bool {
        let mut connections = self.ensemble.connections.iter();
        let found = connections.rfind(|(_, it)| it.is_of(from) && it.is_of(to));
        let Some((&id, connection)) = found else { return false };
        let goes_to_leader = connection.leader == to;
        self.ensemble.deliver(id, goes_to_leader)
    }

    /// Each disk that is not held does one thing; `false`: there was none.
    fn write_held_aside(&mut self) -> bool {
        let disks: Vec<_> = self.running().filter(|at| !self.disks_held.contains(at)).collect();
        disks.into_iter().fold(false, |moved, at| moved | self.write(at))
    }

    /// The disk of a server does what it was asked to do first.
    fn write(&mut self, at: usize) -> bool {
        let asked = |ensemble: &Ensemble<Writer>| ensemble.servers[at].disk.asked.len();
        match asked(&self.ensemble) - self.ensemble.servers[at].disk.trees_asked() {
            0 if asked(&self.ensemble) == 0 => return false,
            0 => self.ensemble.write_tree(at),
            _ => self.ensemble.write_log(at),
        }
        true
    }

    /// The learner connection between two servers ends, and what was under way on it is lost.
    fn disconnect(&mut self, a: usize, b: usize) {
        let connections = self.ensemble.connections.iter();
        let ended = connections.filter(|(_, it)| it.is_of(a) && it.is_of(b)).map(|(&id, _)| id);
        let ended: Vec<LearnerConnectionId> = ended.collect();
        assert!(!ended.is_empty(), "{a} and {b} are not connected");
        ended.into_iter().for_each(|id| self.ensemble.end_connection(id));
    }

    /// Prints a server's role, what its disk has, and what it has applied.
    fn state(&mut self, at: usize) {
        let Ensemble { servers, witness, .. } = &mut self.ensemble;
        let server = &servers[at];
        let logged = last_of(server.disk.whole());
        let text = match &server.peer {
            None => format!("is down, on disk {logged:?}"),
            Some(peer) => {
                let (state, applied) = (state_text(peer), last_of(&server.tree));
                format!("{state}, on disk {logged:?}, applied {applied:?}")
            }
        };
        writeln!(witness.said, "= {at} {text}").unwrap();
    }

    /// Prints the configurations that count at a server.
    fn views(&mut self, at: usize) {
        let Ensemble { servers, witness, .. } = &mut self.ensemble;
        let peer = servers[at].peer.as_ref().expect("the server is up");
        writeln!(witness.said, "= {at} has {}", views_text(peer)).unwrap();
    }
}
