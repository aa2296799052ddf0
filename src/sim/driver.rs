//! A turn of a server's driver: inputs go into its [`crate::member::Member`], actions are performed in their order.

use super::check::Seen;
use super::membership;
use super::plan::MS;
use super::server::Process;
use super::world::{Event, Of, World};
use crate::member::{Action, ConfigChange, Input, QuorumPeer};
use crate::model::Zxid;
use crate::replica::{Mode, TICK_MS};
use crate::store;
use crate::zab::{LearnerConnectionId, Note, Notification, Packet};

/// Inputs of one kind taken in one turn.
const TAKEN_MAX: u64 = 32;

impl World {
    /// There is something for the driver.
    pub fn wake_driver(&mut self, of: Of) {
        let Some(process) = self.process(of) else { return };
        if !std::mem::replace(&mut process.turn_is_due, true) {
            self.ask_within(0, 150, Event::Turn(of));
        }
    }

    pub fn on_timer(&mut self, of: Of) {
        if self.process(of).is_some() {
            self.wake_driver(of);
            self.ask(self.now_us + TICK_MS * MS, Event::Timer(of));
        }
    }

    pub fn turn(&mut self, of: Of) {
        if self.now_us < self.servers[of.server].stalled_us {
            return self.ask_later(Event::Turn(of));
        }
        let taken = self.rng.range(1, TAKEN_MAX) as usize;
        let Some(process) = self.process(of) else { return };
        process.turn_is_due = false;
        for input in process.take_inputs(taken) {
            self.step(of, input);
        }
        self.step(of, Input::Timer);
        self.perform(of);
        self.look_at_sides(of);
        if let Some(process) = self.process(of)
            && process.has_inputs()
        {
            self.wake_driver(of);
        }
    }

    fn step(&mut self, of: Of, input: Input) {
        if self.failure.is_some() {
            return;
        }
        self.note_input(of, &input);
        let (now_us, wall_ms) = (self.now_us, self.servers[of.server].wall_ms(self.now_us));
        let Some(process) = self.process(of) else { return };
        let now = process.now(now_us, wall_ms);
        let mut actions = std::mem::take(&mut process.actions);
        process.member.step(now, input, &mut actions);
        process.actions = actions;
        self.keep_tape(of);
        self.observe(of);
    }

    /// Notes what comes from other servers, and the epoch that the leader tells of.
    fn note_input(&mut self, of: Of, input: &Input) {
        let Some(process) = self.process(of) else { return };
        let text = match input {
            Input::Packets { from, packets } => {
                if let QuorumPeer::Leader { .. } = from
                    && process.member.is_current(*from)
                    && let Some(Packet::LeaderInfo { epoch }) = packets.first()
                {
                    process.told = *epoch;
                }
                format!("{from:?} {packets:x?}")
            }
            Input::Disconnected { from, why } => format!("{from:?} disconnected: {why}"),
            Input::LeaderTree { zxid, .. } => format!("leader's tree {zxid}"),
            Input::ElectionConnected { to } => format!("election connection to {}", to.0),
            Input::ElectionDisconnected { to } => format!("no election connection to {}", to.0),
            Input::Notification { from, message } => match Notification::decode(message) {
                Ok(notification) => format!("{} {notification:x?}", from.0),
                Err(error) => format!("{} {error}", from.0),
            },
            _ => return,
        };
        self.trace.note(self.now_us, "s", of.server, || format!("< {}", short(&text)));
    }

    /// What the step has made of the server.
    fn observe(&mut self, of: Of) {
        let server = of.server;
        let Some(process) = self.process(of) else { return };
        let notes = process.member.replica.notes();
        let (last, is_serving, mode) =
            (process.last(), process.is_serving(), process.member.replica.mode());
        for note in notes {
            self.note(server, || format!("* {note:?}"));
            match &note {
                Note::SyncBegun { sync, .. } => self.trace.count(sync.how.name()),
                Note::Looking { .. } => self.trace.count("elections"),
                Note::Leads { .. } => self.trace.count("leaders"),
                _ => {}
            }
            if let Note::Leads { epoch, .. } = note {
                let (holders, quorum) = self.backing(server, last);
                self.see(&Seen::Leads { server, epoch, last, holders, quorum });
            }
        }
        let Some(process) = self.process(of) else { return };
        let was_leading = std::mem::replace(&mut process.is_leading, mode == Mode::Leading);
        // With its last decision a leader may have given its place to another.
        let has_decided = was_leading && !is_serving && process.served.is_some_and(|at| at < last);
        if !is_serving && !has_decided {
            process.served = None;
            return;
        }
        let standing = process.standing();
        if is_serving && process.standing != Some(standing) {
            process.standing = Some(standing);
            let durable = self.servers[server].durable;
            self.see(&Seen::Stands { server, standing, durable });
        }
        let Some(process) = self.process(of) else { return };
        if process.served == Some(last) {
            return;
        }
        process.served = is_serving.then_some(last);
        let digest = process.shared.state.tree.read().digest();
        // Its data is whole again.
        self.servers[server].lost = crate::model::Zxid::ZERO;
        let decides = has_decided || mode == Mode::Leading;
        let leads = decides.then(|| self.backing(server, last));
        self.note(server, || format!("* applied {last}, {mode:?}"));
        self.see(&Seen::Applied { server, last, digest, leads });
    }

    /// Performs actions in order; log commands reach the log thread together.
    fn perform(&mut self, of: Of) {
        let Some(process) = self.process(of) else { return };
        let mut commands = Vec::new();
        for action in std::mem::take(&mut process.actions) {
            if self.failure.is_some() {
                return;
            }
            match action {
                Action::Log(command) => {
                    if let store::Command::Append { zxid, entry } = &command {
                        self.see(&Seen::Logs { server: of.server, zxid: *zxid, entry });
                    }
                    self.note(of.server, || format!("> {}", short(&format!("{command:?}"))));
                    commands.push(command);
                }
                Action::Wake(waker) => waker.wake(),
                Action::WriteSnapshot(job) => self.begin_snapshot(of, job),
                Action::DiscardSnapshot(draft) => {
                    if let Some(process) = self.process(of) {
                        draft.discard(&process.disk);
                    }
                }
                Action::LoadTree => self.ask_within(500, 8000, Event::Rebuild(of)),
                Action::ReadLog { connection, from, through, limit_bytes } => {
                    let asked = LogRequest { connection, from, through, limit_bytes };
                    self.ask_within(200, 5000, Event::ReadLog(of, asked));
                }
                Action::ChangeConfigFiles(change) => self.change_config_files(of, &change),
                Action::End(ended) => self.fail("panic", format!("a server ends: {ended:?}")),
                action => self.perform_for_connections(of, action),
            }
        }
        if let Some(process) = self.process(of)
            && !commands.is_empty()
        {
            process.log.append(&mut commands);
            self.wake_log(of);
        }
    }

    /// A server goes on without its files; one that is struck while it writes them does not.
    fn change_config_files(&mut self, of: Of, change: &ConfigChange) {
        match change {
            ConfigChange::Committed { view, removes_proposed, .. } => {
                self.trace.count("configurations adopted");
                let text = membership::short(view);
                self.note(of.server, || format!("> in force {text}, last {removes_proposed}"));
            }
            ConfigChange::Proposed(view) => {
                let text = membership::short(view);
                self.note(of.server, || format!("> proposed {text}"));
            }
            ConfigChange::BackUp => {}
        }
        let files = membership::files(&self.servers[of.server].disk);
        if self.process(of).is_some()
            && let (_, Err(error)) = files.change(change)
        {
            self.cannot(of, &error.to_string());
        }
    }
}

/// What of the log is to be read for a learner.
pub struct LogRequest {
    pub connection: LearnerConnectionId,
    pub from: Zxid,
    pub through: Zxid,
    pub limit_bytes: u64,
}

/// The beginning of what may be long.
pub fn short(text: &str) -> String {
    let end = text.char_indices().nth(160).map_or(text.len(), |(at, _)| at);
    text[..end].to_owned()
}

impl Process {
    /// Reports first, then what other servers sent, then clients' commands, as the driver of the server takes them.
    fn take_inputs(&mut self, taken: usize) -> Vec<Input> {
        if !self.reports.is_empty() {
            return self.reports.drain(..).collect();
        }
        if !self.incoming.is_empty() {
            return self.incoming.drain(..taken.min(self.incoming.len())).collect();
        }
        let taken = taken.min(self.commands.len());
        self.commands.drain(..taken).map(Input::Client).collect()
    }

    fn has_inputs(&self) -> bool {
        !self.reports.is_empty() || !self.incoming.is_empty() || !self.commands.is_empty()
    }

    /// Whether anything is on its way through it.
    pub fn is_quiet(&self) -> bool {
        self.reports.is_empty()
            && self.commands.is_empty()
            && self.log.is_empty()
            && !self.log_is_due
            && self.jobs.is_empty()
            && self.member.replica.outstanding() == 0
    }
}
