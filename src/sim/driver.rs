//! A turn of a server's driver: inputs go into its [`crate::member::Member`], actions are performed in their order.

use super::check::Seen;
use super::membership;
use super::network::ProcessId;
use super::plan::MS;
use super::process::Server;
use super::script::Tape;
use super::trace::{Tracing, short};
use super::world::World;
use crate::member::{Action, ConfigChange, Ended, Input, Now, QuorumPeer, turn};
use crate::model::{Rule, ServerId, Zxid};
use crate::replica::Mode;
use crate::request::ClientCommand;
use crate::store;
use crate::tree::txn::{Entry, Txn};
use crate::zab::Note;
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
        if let Some(view) = self.process(at).and_then(|process| process.found_view.take()) {
            self.see(&Seen::InForce { server: at.server, view: &view });
        }
        self.set_timer(at);
        self.wake_client_connections(at);
        if self.process(at).is_some_and(|process| process.has_inputs()) {
            self.wake_driver(at);
        }
    }

    fn step(&mut self, at: ProcessId, input: Input) {
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
        if matches!(self.trace.tracing, Tracing::Inputs)
            && !self.climate().alone
            && let Some(process) = &mut self.servers[at.server].process
        {
            self.tapes.push(Tape::begin(&mut process.member.replica));
        }
    }

    fn keep_tape(&mut self, at: ProcessId) {
        let tape = self.tapes.iter_mut().rev().find(|tape| tape.server() == at.server);
        if let Some(process) = &mut self.servers[at.server].process
            && let Some(tape) = tape
        {
            tape.keep(self.now_us, process.member.replica.tape());
        }
    }

    /// Traces what comes from other servers, and keeps what a leader says about its epoch.
    fn note_input(&mut self, at: ProcessId, input: &Input) {
        let Some(process) = self.process(at) else { return };
        let text = match input {
            Input::Packets { from, packets } => {
                if let QuorumPeer::Leader { .. } = from
                    && process.member.is_current(*from)
                {
                    process.note_leaders_packets(packets);
                }
                format!("{from:?} {packets:x?}")
            }
            Input::Disconnected { from, why } => format!("{from:?} disconnected: {why}"),
            Input::LeaderTree { zxid, .. } => format!("leader's tree {zxid}"),
            Input::Election(input) => format!("election connections: {input:?}"),
            _ => return,
        };
        self.note(at.server, || format!("< {}", short(&text)));
    }

    /// Tells the checks what has changed in the server with the step.
    fn observe(&mut self, at: ProcessId) {
        let server = at.server;
        let Some(process) = self.process(at) else { return };
        let notes = process.member.replica.notes();
        let (last, is_serving, mode) =
            (process.last(), process.is_serving(), process.member.replica.mode());
        for note in notes {
            self.note(server, || format!("* {note:?}"));
            match note {
                Note::SyncBegun { sync, .. } => {
                    self.trace.count(sync.sync_type.name());
                    if !is_serving {
                        self.cut_off_synchronising_leader(server, last);
                    }
                }
                Note::Looking { .. } => {
                    self.trace.count("elections");
                    if let Some(process) = self.process(at) {
                        process.leads_us = None;
                    }
                }
                Note::Leads { epoch, .. } => {
                    self.trace.count("leaders");
                    let now_us = self.now_us;
                    if let Some(process) = self.process(at) {
                        process.leads_us = Some(now_us);
                    }
                    self.is_recovering = false;
                    let disks = &self.acknowledged()[..];
                    self.see(&Seen::Leads { server, epoch, last, disks });
                }
                Note::Alone { is_alone: true } => self.count_alone(),
                _ => {}
            }
        }
        let now_us = self.now_us;
        let Some(process) = self.process(at) else { return };
        let was_leading = process.note_mode(mode, now_us);
        let has_committed = was_leading && !is_serving && process.has_handed_over();
        if !is_serving && !has_committed {
            process.served = None;
            return;
        }
        let (standing, mismatches) =
            (process.standing(), process.member.replica.stats.digest_mismatches);
        if 0 < mismatches {
            self.see(&Seen::Mismatch { server });
        }
        let Some(process) = self.process(at) else { return };
        if is_serving && process.standing.replace(standing) != Some(standing) {
            let durable = self.servers[server].durable;
            self.see(&Seen::Stands { server, standing, durable });
        }
        let Some(process) = self.process(at) else { return };
        if process.served == Some(last) {
            return;
        }
        let begins = process.served.is_none();
        process.served = is_serving.then_some(last);
        let digest = process.shared.state.tree.read().digest();
        self.become_whole(server);
        let commits = has_committed || matches!(mode, Mode::Leading | Mode::Standalone);
        let disks = self.acknowledged();
        let commits = commits.then_some(&disks[..]);
        self.note(server, || format!("* applied {last}, {mode:?}"));
        let may_go_back = begins && mode == Mode::Observing && self.climate().relays;
        self.see(&Seen::Applied { server, last, may_go_back, digest, commits });
    }

    fn count_alone(&mut self) {
        self.trace.count("voters that go on alone");
        if self.checks.history.newest_views().any(|view| view.version != 0) {
            self.trace.count("voters that go on alone after a change");
        }
    }

    /// A server serves: its data is whole again, and it could start again with what it logs next.
    fn become_whole(&mut self, server: usize) {
        if !self.servers[server].becomes_whole() {
            self.fail("snapshots", format!("{server} serves and has no snapshot"));
        }
        if self.serves_locked(server) {
            let what = "serves and can't write its configuration files";
            self.fail("configurations", format!("{server} {what}"));
        }
    }

    /// The end of the history that each server's disk has, or had when it acknowledged it.
    fn acknowledged(&self) -> Vec<Zxid> {
        self.servers.iter().map(Server::acknowledged).collect()
    }

    /// Tells the checks of a leader that expires a session, and keeps when it heard of a session that it creates.
    fn watch_sessions(&mut self, at: ProcessId, entry: &[u8]) {
        let (now_us, sessions) = (self.now_us, &self.checks.history.model.timeouts);
        let Some(process) = self.servers[at.server].process.as_mut() else { return };
        let (Some(leads_us), Ok(entry)) = (process.leads_us, Entry::decode(entry)) else { return };
        let session = entry.header.client_id;
        match entry.txn {
            Txn::CreateSession { .. } => drop(process.heard.insert(session, now_us)),
            Txn::CloseSession { .. } if entry.header.cxid == 0 => {
                let heard_us = process.heard.get(&session).map_or(leads_us, |&at| at.max(leads_us));
                let silent_ms = (now_us - heard_us).div_ceil(MS);
                let Some(&timeout_ms) = sessions.get(&session) else { return };
                self.trace.count("sessions expired");
                self.see(&Seen::Expires { session, silent_ms, timeout_ms });
            }
            _ => {}
        }
    }

    /// Performs actions in order; log commands reach the log thread together.
    fn perform(&mut self, at: ProcessId) {
        let Some(process) = self.process(at) else { return };
        let (mut commands, mut ended) = (Vec::new(), None);
        let actions = std::mem::take(&mut process.actions);
        turn::perform_in_order(actions, &mut ended, |action| {
            match action {
                _ if self.failure.is_some() => {}
                Action::Log(command) => {
                    if let store::Command::Append { zxid, entry } = &command {
                        self.see(&Seen::Logs { server: at.server, zxid: *zxid, entry });
                        self.watch_sessions(at, entry);
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
                self.note(at.server, || format!("> in force {text}, last {removes_proposed}"));
            }
            ConfigChange::Proposed(views) => {
                self.look_for_logged_view(at, views);
                if 1 < views.len() {
                    self.trace.count("several proposed configurations kept");
                }
                self.note(at.server, || {
                    let all: Vec<_> = views.iter().map(membership::short).collect();
                    format!("> proposed {}", all.join(", "))
                });
            }
            ConfigChange::Forgotten => self.trace.count("configurations forgotten"),
            ConfigChange::CopyStaticFile | ConfigChange::TestFolder => {}
        }
        let found = &self.servers[at.server];
        let files = membership::files(&found.disk);
        let changed = match self.now_us < found.locked_us {
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
