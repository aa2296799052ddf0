//! A turn of a server's driver: inputs go into its [`crate::member::Member`], actions are performed in their order.

use super::check::Seen;
use super::learner_stage::Stage;
use super::membership;
use super::network::ProcessId;
use super::script::Tape;
use super::trace::{Tracing, short};
use super::world::World;
use crate::member::{Action, ConfigChange, Ended, Input, Now, QuorumPeer, turn};
use crate::model::{Rule, ServerId};
use crate::request::ClientCommand;
use crate::store;
use std::io;

/// Limit on the inputs before their actions are performed: lower than the server's, so that turns reach it.
const BATCH_MAX: u64 = 32;

/// A turn of one process.
struct Turn<'a> {
    world: &'a mut World,
    at: ProcessId,
}

impl turn::TurnDriver for Turn<'_> {
    type Event = Input;

    fn is_stop(event: &Input) -> bool {
        matches!(event, Input::Stop)
    }

    fn takes_commands(&self) -> bool {
        let process = self.world.servers[self.at.server].process.as_ref();
        process.is_some_and(|process| !process.member.is_stopping())
    }

    /// Nothing to do: each step reads the clock, and a simulated turn takes no time.
    fn read_clock(&mut self) {}

    fn on_event(&mut self, event: Input) {
        self.world.step(self.at, event);
    }

    fn on_commands(&mut self, commands: &mut dyn Iterator<Item = ClientCommand>) {
        commands.for_each(|command| self.world.step(self.at, Input::Client(command)));
    }

    fn on_time(&mut self) {
        self.world.step(self.at, Input::Timer);
    }

    fn perform(&mut self) {
        self.world.perform(self.at);
    }
}

impl World {
    /// Schedules a turn of the driver, unless one is scheduled.
    pub fn wake_driver(&mut self, at: ProcessId) {
        let Some(process) = self.process(at) else { return };
        if !std::mem::replace(&mut process.turn_is_due, true) {
            self.do_within(0, 150, move |world| world.turn(at));
        }
    }

    /// Wakes the driver when its `Member`'s next deadline comes, unless a turn before that gives another one.
    fn set_timer(&mut self, at: ProcessId) {
        let Some(process) = self.process(at) else { return };
        let due_us = process.began_us + process.member.next_deadline_us();
        if process.timer_us.replace(due_us) == Some(due_us) {
            return;
        }
        self.do_at(due_us, move |world| {
            if world.process(at).is_some_and(|process| process.timer_us == Some(due_us)) {
                world.wake_driver(at);
            }
        });
    }

    fn turn(&mut self, at: ProcessId) {
        if self.is_stalled(at.server) {
            return self.do_soon(move |world| world.turn(at));
        }
        let batch_max = self.rng.range(1, BATCH_MAX) as usize;
        let Some(process) = self.process(at) else { return };
        process.turn_is_due = false;
        let mut events = std::mem::take(&mut process.events);
        let mut commands = std::mem::take(&mut process.commands);
        turn::run(&mut Turn { world: self, at }, &mut events, &mut commands, batch_max);
        if let Some(view) = self.process(at).and_then(|process| process.found_view.take())
            && self.outsider != Some(at.server)
        {
            self.see(&Seen::InForce { server: at.server, view: &view });
        }
        self.set_timer(at);
        self.wake_client_connections(at);
        if self.process(at).is_some_and(|process| process.has_inputs()) {
            self.wake_driver(at);
        }
    }

    pub fn step(&mut self, at: ProcessId, input: Input) {
        if self.failure.is_some() {
            return;
        }
        self.note_input(at, &input);
        let (now_us, wall_ms) = (self.now_us, self.servers[at.server].wall_ms(self.now_us));
        let Some(process) = self.process(at) else { return };
        let now = Now { us: process.own_us(now_us), wall_ms };
        let resent = process.member.election_messages_resent();
        let (is_stale, before) = (process.is_stale(&input), process.actions.len());
        if let Input::Oracle { agrees } = input {
            process.may_go_alone = agrees;
        }
        if let (Input::Restore { .. }, Some(restoring)) = (&input, &mut process.restoring) {
            restoring.tree.before = process.member.replica.peer().core.history.last();
        }
        process.member.step(now, input, &mut process.actions);
        let actions = process.actions.len() - before;
        let alone = process.may_go_alone.then_some(ServerId(at.server as i64));
        if resent < process.member.election_messages_resent() {
            self.trace.count("notifications sent again");
        }
        self.checks.history.alone = alone;
        if is_stale {
            self.trace.count("inputs from closed connections");
            self.see(&Seen::FromClosed { server: at.server, actions });
        }
        self.keep_tape(at);
        self.observe(at);
    }

    /// Begins the tape with the inputs of a new process's `zab` peer, if tapes are wanted.
    pub fn begin_tape(&mut self, at: ProcessId) {
        let (changes, is_alone) = (self.climate().changes, self.climate().alone);
        let Some(process) = &mut self.servers[at.server].process else { return };
        let has_outranked = process.member.replica.peer().core.has_outranked_views();
        if has_outranked {
            // Scripts know no configurations that do not count yet, so no tape is kept. The inputs must not go to an earlier process's tape.
            self.tapes.retain(|tape| tape.server() != at.server);
            process.member.replica.tape();
        } else if matches!(self.trace.tracing, Tracing::Inputs) && !is_alone {
            self.tapes.push(Tape::begin(&mut process.member.replica));
        } else if changes {
            process.member.replica.tape();
        }
    }

    fn keep_tape(&mut self, at: ProcessId) {
        let changes = self.climate().changes;
        let tape = self.tapes.iter_mut().rev().find(|tape| tape.server() == at.server);
        let Some(process) = &mut self.servers[at.server].process else { return };
        if !changes && tape.is_none() {
            return;
        }
        let inputs = process.member.replica.tape();
        process.note_votes(&inputs);
        if let Some(tape) = tape {
            tape.keep(self.now_us, inputs);
        }
    }

    /// Traces what comes from other servers, and keeps what a leader says about its epoch.
    fn note_input(&mut self, at: ProcessId, input: &Input) {
        let Some(process) = self.process(at) else { return };
        match input {
            Input::Packets { from: from @ QuorumPeer::Leader { .. }, packets }
                if process.member.is_current(*from) =>
            {
                process.note_leaders_packets(packets);
            }
            Input::Disconnected { from, .. } if process.member.is_current(*from) => {
                process.watched.replaced = None;
            }
            Input::LeaderTree { zxid, dial, .. } => {
                if process.learner_connections.leader_dial == Some(*dial) {
                    process.watched.stage = Stage::Synchronising;
                    self.note_leaders_tree(at, *zxid);
                }
                self.do_at(self.now_us, move |world| world.hurry_after_tree(at));
            }
            _ => {}
        }
        // The text is made for a traced world only: it takes longer than what the server does with some inputs.
        let line = |text: &str| format!("< {}", short(text));
        match input {
            Input::Packets { from, packets } => {
                self.note(at.server, || line(&format!("{from:?} {packets:x?}")));
            }
            Input::Disconnected { from, why } => {
                self.note(at.server, || line(&format!("{from:?} disconnected: {why}")));
            }
            Input::LeaderTree { zxid, .. } => {
                self.note(at.server, || line(&format!("leader's tree {zxid}")));
            }
            Input::Election(input) => {
                self.note(at.server, || line(&format!("election connections: {input:?}")));
            }
            _ => {}
        }
    }

    /// Performs actions in order; log commands reach the log thread together.
    pub fn perform(&mut self, at: ProcessId) {
        let Some(process) = self.process(at) else { return };
        let (mut commands, mut ended) = (Vec::new(), None);
        let actions = std::mem::take(&mut process.actions);
        turn::perform_in_order(actions, &mut ended, |action| {
            match action {
                _ if self.failure.is_some() => {}
                Action::Log(command) => {
                    self.look_for_logged_twice(at, &command);
                    if let store::Command::Append { zxid, entry } = &command {
                        self.see(&Seen::Logs { server: at.server, zxid: *zxid, entry });
                        self.watch_sessions(at, entry);
                        self.hurry_if_leading(at, *zxid, entry);
                    }
                    if let store::Command::Truncate { replaced: true, .. } = &command {
                        self.trace.count("trees after truncations");
                    }
                    if let store::Command::PlaceRestored { .. } = &command {
                        self.begin_restored(at);
                    }
                    self.note(at.server, || format!("> {}", short(&format!("{command:?}"))));
                    commands.push(command);
                }
                Action::Wake(waker) => waker.wake(),
                Action::WriteSnapshot(job) => self.begin_snapshot(at, job),
                Action::DiscardSnapshot(draft) => {
                    self.trace.count("snapshots discarded");
                    if let Some(process) = self.process(at) {
                        draft.discard(&process.disk);
                    }
                }
                Action::Answer { answer, .. } => self.on_answer(at, answer),
                Action::LoadTree => self.do_within(500, 8000, move |world| world.load_tree(at)),
                Action::ReadLog { connection, from, through, limit_bytes } => {
                    self.do_within(200, 5000, move |world| {
                        world.read_log(at, connection, from, through, limit_bytes);
                    });
                }
                Action::ChangeConfigFiles(change) => return self.change_config_files(at, &change),
                Action::Election(action) => self.perform_for_election(at, action),
                action => self.perform_for_learners(at, action),
            }
            None
        });
        match ended {
            Some(Ended::Stopped) => return self.stopped(at),
            Some(Ended::Failed { reason, .. }) => return self.cannot(at, &reason),
            None => {}
        }
        if let Some(process) = self.process(at)
            && !commands.is_empty()
        {
            process.log.append(&mut commands);
            self.wake_log(at);
        }
        self.flush_learner_connections(at);
    }

    /// Changes the configuration files; gives why the server has to end, if it has to.
    fn change_config_files(&mut self, at: ProcessId, change: &ConfigChange) -> Option<Ended> {
        match change {
            ConfigChange::Committed { view, removes_proposed, .. } => {
                self.trace.count("configurations adopted");
                if view.rule != Rule::Majority {
                    self.trace.count("configurations with groups adopted");
                }
                let text = membership::short(view);
                let is_kept = |version: &i64| view.version < *version;
                self.servers[at.server].acknowledged_views.retain(is_kept);
                self.note(at.server, || format!("> in force {text}, last {removes_proposed}"));
            }
            ConfigChange::Proposed { views, .. } => {
                self.look_for_logged_view(at, views);
                let is_kept = |version: &i64| views.iter().any(|view| view.version == *version);
                self.servers[at.server].acknowledged_views.retain(is_kept);
                if 1 < views.len() {
                    self.trace.count("several proposed configurations kept");
                }
                self.note(at.server, || {
                    let all: Vec<_> = views.iter().map(membership::short).collect();
                    format!("> proposed {}", all.join(", "))
                });
            }
            ConfigChange::Forgotten => {
                self.servers[at.server].acknowledged_views.clear();
                self.trace.count("configurations forgotten");
            }
            ConfigChange::CopyStaticFile
            | ConfigChange::TestFolder
            | ConfigChange::InForce { .. } => {}
        }
        let found = &self.servers[at.server];
        let files = membership::files(&found.disk);
        let is_in_folder = !matches!(change, ConfigChange::InForce { .. });
        let changed = match is_in_folder && self.now_us < found.locked_us {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => files.change(change),
        };
        if let Err(error) = changed {
            return Some(change.failed(files.folder(), &error));
        }
        if let ConfigChange::Committed { view, .. } = change {
            if let Some(process) = self.process(at) {
                process.found_view = None;
            }
            self.see(&Seen::InForce { server: at.server, view });
            self.servers[at.server].view = Some(view.clone());
        }
        None
    }
}
