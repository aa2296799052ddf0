//! Gives a server of an [`Ensemble`] one input, or all inputs of a turn, and performs the actions that follow.

use super::connections::{Item, LearnerConnection};
use super::disk::{Entry, Write, last_of};
use super::ensemble::{Ensemble, Seen, Witness};
use super::packets::packets;
use bytes::Bytes;
use oxkeeper::model::{ServerId, Zxid};
use oxkeeper::zab::{Action, Input, LearnerConnectionId as Id, LogRead, Packet};
use std::collections::{BTreeSet, VecDeque};

/// An action outside of a server's memory.
#[derive(Clone)]
enum Effect {
    Write(Write),
    ToLearner(Id, Vec<Item>),
    ToLeader(Id, Vec<Packet>),
    ReadLog {
        connection: Id,
        from: Zxid,
        through: Zxid,
    },
    CloseLearner(Id),
    Connect {
        leader: usize,
        id: Id,
    },
    Disconnect(Id),
    /// A notification, configuration files, dials.
    Other(Action),
}

/// A turn in which a server takes several inputs before the actions after them are performed.
#[derive(Clone, Default)]
pub struct Turn {
    effects: VecDeque<Effect>,
    /// Learner connections that the server closed in this turn: later packets from them are discarded.
    closed: BTreeSet<Id>,
}

impl<W: Witness> Ensemble<W> {
    /// Gives one input, and performs at once all that follows from it.
    pub fn step(&mut self, at: usize, input: Input) {
        self.pending.push_back((at, input));
        self.settle();
    }

    /// Gives several inputs in one turn, as a driver does (`src/member/turn.rs`): the server's memory changes with each at once, and their
    /// actions on its disk, files and connections are performed after all of them, in order.
    ///
    /// * `events`: gives inputs to this server only.
    pub fn turn(&mut self, at: usize, events: impl FnOnce(&mut Self)) {
        self.witness.see(&self.servers, at, Seen::Turn);
        self.turn = Some(Turn::default());
        events(self);
        let turn = self.turn.take().expect("no turn begins within another");
        for effect in turn.effects {
            if self.servers[at].peer.is_none() {
                break; // It has failed.
            }
            let answer = self.perform(at, effect);
            self.pending.extend(answer.map(|input| (at, input)));
        }
        self.settle();
    }

    /// Gives the servers the inputs that wait for them.
    pub fn settle(&mut self) {
        while let Some((at, input)) = self.pending.pop_front() {
            if self.servers[at].peer.is_none() {
                continue;
            }
            self.witness.see(&self.servers, at, Seen::Input(&input));
            let mut actions = VecDeque::from(self.servers[at].answer(input));
            while let Some(action) = actions.pop_front() {
                self.witness.see(&self.servers, at, Seen::Action(&action));
                let Some(effect) = self.take_in(at, action, &mut actions) else { continue };
                if let Some(turn) = &mut self.turn {
                    turn.effects.push_back(effect);
                    continue;
                }
                let answer = self.perform(at, effect);
                if self.servers[at].peer.is_none() {
                    break; // It has failed.
                }
                actions.extend(answer.into_iter().flat_map(|input| self.servers[at].answer(input)));
            }
        }
    }

    /// Performs an action in the server's memory; gives what is to be performed outside of it.
    fn take_in(
        &mut self,
        at: usize,
        action: Action,
        more: &mut VecDeque<Action>,
    ) -> Option<Effect> {
        let server = &mut self.servers[at];
        match action {
            Action::Append { .. }
            | Action::Promise { .. }
            | Action::NoteJoining
            | Action::Truncate { .. }
            | Action::Install { .. } => {
                let (write, answers) = server.take_in(&action);
                more.extend(answers);
                return Some(Effect::Write(write));
            }
            Action::Commit { through } => self.apply(at, through),
            Action::ToLearner { connection, bytes } => {
                return self.say_to_learner(at, connection, &bytes);
            }
            Action::ToLeader { bytes } => return self.say_to_leader(at, &bytes),
            Action::SendSnapshot { connection, .. } => {
                if self.is_open(connection) {
                    let server = &mut self.servers[at];
                    let zxid = last_of(&server.tree);
                    let tree = Item::Tree(server.tree.clone());
                    let again = server.proposed_again().into_iter().map(Item::Packet);
                    let items = std::iter::once(tree).chain(again).collect();
                    more.extend(server.answer(Input::SnapshotBegun { connection, zxid }));
                    return Some(Effect::ToLearner(connection, items));
                }
            }
            Action::ReadLog { connection, from, through } => {
                return Some(Effect::ReadLog { connection, from, through });
            }
            Action::CloseLearner { connection, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.closed.insert(connection);
                }
                return Some(Effect::CloseLearner(connection));
            }
            Action::Connect { leader, .. } => {
                let next = if self.numbers_by_learner { at as u64 } else { self.next_connection };
                self.next_connection = next + 1;
                let id = Id(self.next_connection);
                server.connection = Some(id);
                server.unsaid.clear();
                return Some(Effect::Connect { leader: leader.0 as usize, id });
            }
            Action::Disconnect => return server.connection.take().map(Effect::Disconnect),
            Action::Lead { epoch } => {
                (server.serves, server.leads) = (true, Some(epoch));
                server.proposed = Zxid::new(epoch, 0);
                self.witness.see(&self.servers, at, Seen::Leads(epoch));
            }
            Action::Follow { .. } => {
                server.serves = true;
                let unsaid = std::mem::take(&mut server.unsaid);
                let connection = server.connection;
                self.witness.see(&self.servers, at, Seen::Follows);
                return connection.map(|id| Effect::ToLeader(id, unsaid));
            }
            Action::StopServing => (server.serves, server.leads) = (false, None),
            Action::Look { .. } => server.is_looking = true,
            // `replica` answers a PING; there is none here, and a server without clients has no sessions to report.
            Action::FromLeader { packet: packet @ Packet::Ping { .. } } => {
                return self.say_to_leader(at, &packet.to_bytes());
            }
            Action::FromLearner { .. } | Action::FromLeader { .. } => {}
            Action::SendNotification { .. }
            | Action::ViewCommitted { .. }
            | Action::ViewsProposed { .. }
            | Action::ViewForgotten
            | Action::DialAll
            | Action::Dial { .. } => return Some(Effect::Other(action)),
        }
        None
    }

    /// Performs an action outside of a server's memory; gives the input that the server gets at once from that.
    fn perform(&mut self, at: usize, effect: Effect) -> Option<Input> {
        let server = &mut self.servers[at];
        match effect {
            Effect::Write(write) => server.disk.asked.push_back(write),
            Effect::ToLearner(id, items) => {
                if let Some(to) = self.connections.get_mut(&id) {
                    to.to_learner.extend(items);
                }
            }
            Effect::ToLeader(id, packets) => {
                if let Some(to) = self.connections.get_mut(&id) {
                    to.to_leader.extend(packets);
                }
            }
            Effect::ReadLog { connection, from, through } => {
                let all = server.disk.whole();
                let before = all.iter().map(|(zxid, _)| *zxid).take_while(|zxid| *zxid <= from);
                let before = before.last();
                let wanted = |entry: &&Entry| from < entry.0 && entry.0 <= through;
                let entries = all.iter().filter(wanted).cloned().collect();
                let read = LogRead { before, entries };
                return Some(Input::LogRead { connection, read });
            }
            Effect::CloseLearner(id) => {
                if let Some(ended) = self.connections.remove(&id)
                    && self.servers[ended.learner].connection.take_if(|at| *at == id).is_some()
                {
                    self.pending.push_back((ended.learner, Input::LeaderGone));
                }
            }
            Effect::Connect { leader, id } => {
                let old = self.connections.insert(id, LearnerConnection::new(leader, at));
                assert!(old.is_none(), "server {at} connects twice");
            }
            Effect::Disconnect(id) => {
                if let Some(connection) = self.connections.remove(&id) {
                    self.pending
                        .push_back((connection.leader, Input::LearnerGone { connection: id }));
                }
            }
            Effect::Other(action) => self.perform_other(at, action),
        }
        None
    }

    fn perform_other(&mut self, at: usize, action: Action) {
        let server = &mut self.servers[at];
        match action {
            Action::SendNotification { to, notification } => {
                if self.has_elections {
                    self.elections.put(at, to.0 as usize, notification);
                    self.dial(at, to.0 as usize);
                }
            }
            Action::DialAll => (0..self.servers.len()).for_each(|to| self.dial(at, to)),
            Action::Dial { to } => match self.servers[to.0 as usize].peer {
                Some(_) => self.dial(at, to.0 as usize),
                None => self.pending.push_back((at, Input::ElectionUnreached { to })),
            },
            _ if server.refuses_config.is_some() => {
                let logged = server.refuses_config.unwrap_or(0);
                self.witness.see(&self.servers, at, Seen::Fails);
                self.crash(at, logged, 0);
            }
            Action::ViewCommitted { view, is_last } => {
                server.disk.view = Some(view);
                if is_last {
                    server.disk.next.clear();
                }
            }
            Action::ViewsProposed { views } => server.disk.next = views,
            Action::ViewForgotten => server.disk.next.clear(),
            action => unreachable!("{action:?} is for memory or for a connection"),
        }
    }

    /// Whether a leader takes packets of this learner connection.
    pub(super) fn is_open(&self, id: Id) -> bool {
        let is_closed = self.turn.as_ref().is_some_and(|turn| turn.closed.contains(&id));
        self.connections.contains_key(&id) && !is_closed
    }

    /// Dials another server's election port; the servers are notified when the ensemble settles.
    pub fn dial(&mut self, from: usize, to: usize) {
        if from == to || self.servers[to].peer.is_none() || !self.has_elections {
            return;
        }
        if self.elections.connect(from, to) {
            self.pending.push_back((from, Input::ElectionConnected { to: ServerId(to as i64) }));
            self.pending.push_back((to, Input::ElectionConnected { to: ServerId(from as i64) }));
        }
    }

    fn apply(&mut self, at: usize, through: Zxid) {
        let server = &mut self.servers[at];
        while let Some(entry) = server.tail.pop_front_if(|(zxid, _)| *zxid <= through) {
            server.tree.push(entry);
        }
        self.witness.see(&self.servers, at, Seen::Applied(through));
    }

    fn say_to_learner(&mut self, at: usize, connection: Id, bytes: &Bytes) -> Option<Effect> {
        if !self.is_open(connection) {
            return None;
        }
        let mut packets = packets(bytes);
        self.servers[at].say_as_java(&mut packets);
        for packet in &packets {
            self.witness.see(&self.servers, at, Seen::ToLearner(packet));
        }
        let items = packets.into_iter().map(Item::Packet).collect();
        Some(Effect::ToLearner(connection, items))
    }

    fn say_to_leader(&mut self, at: usize, bytes: &Bytes) -> Option<Effect> {
        let connection = self.servers[at].connection?;
        let packets = packets(bytes);
        for packet in &packets {
            self.witness.see(&self.servers, at, Seen::ToLeader(packet));
        }
        Some(Effect::ToLeader(connection, self.servers[at].say_later_as_java(packets)))
    }
}
