//! A turn of a server's driver, as `server::driver` takes it: inputs in, actions done in their order.

use super::check::Seen;
use super::plan::MS;
use super::server::{Happened, Incoming, Process};
use super::world::{Event, Of, World};
use crate::replica::{Action, Input, Mode, TICK_MS};
use crate::store::{self, epoch::EpochFile};
use crate::zab::{self, Note, Promise};

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
        if !process.happened.is_empty() {
            for happened in std::mem::take(&mut process.happened) {
                self.on_happened(of, happened);
            }
        } else if !process.incoming.is_empty() {
            let taken = taken.min(process.incoming.len());
            let incoming: Vec<_> = process.incoming.drain(..taken).collect();
            incoming.into_iter().for_each(|incoming| self.on_incoming(of, incoming));
        } else {
            let taken = taken.min(process.commands.len());
            let commands: Vec<_> = process.commands.drain(..taken).collect();
            let wall_ms = self.servers[of.server].wall_ms(self.now_us);
            for command in commands {
                self.step(of, Input::Command { command, wall_ms });
            }
        }
        self.tick(of);
        self.perform(of);
        self.look_at_sides(of);
        if let Some(process) = self.process(of)
            && (!process.happened.is_empty()
                || !process.incoming.is_empty()
                || !process.commands.is_empty())
        {
            self.wake_driver(of);
        }
    }

    fn tick(&mut self, of: Of) {
        let (now_us, wall_ms) = (self.now_us, self.servers[of.server].wall_ms(self.now_us));
        while let Some(process) = self.process(of)
            && process.ticks < process.ticks_due(now_us)
        {
            process.ticks += 1;
            self.step(of, Input::Tick { wall_ms });
        }
    }

    fn tell(&mut self, of: Of, input: zab::Input) {
        let now_us = self.now_us;
        let Some(process) = self.process(of) else { return };
        let now_us = process.own_us(now_us);
        self.step(of, Input::Peer { input, now_us });
    }

    fn on_happened(&mut self, of: Of, happened: Happened) {
        match happened {
            Happened::Flushed { through } => {
                let now_us = self.now_us;
                let Some(process) = self.process(of) else { return };
                let now_us = process.own_us(now_us);
                self.step(of, Input::Flushed { through, now_us });
            }
            Happened::Drafted { frozen, draft, installed, cuts } => {
                self.step(of, Input::SnapshotEnded(frozen));
                draft.into_iter().for_each(|draft| self.place(of, draft, installed, cuts));
            }
            Happened::TreeSent(frozen) => self.step(of, Input::SnapshotEnded(frozen)),
            Happened::Rebuilt(tree) => self.step(of, Input::Rebuilt { tree }),
            Happened::Peer(input) => self.tell(of, input),
        }
    }

    fn on_incoming(&mut self, of: Of, incoming: Incoming) {
        let Some(process) = self.process(of) else { return };
        match incoming {
            Incoming::Peer(input) => self.tell(of, input),
            Incoming::Leader { dial, input } if process.links.is_on(dial) => {
                match &input {
                    zab::Input::LeaderGone => process.links.leader = None,
                    zab::Input::Leader { packet: zab::Packet::LeaderInfo { epoch } } => {
                        process.told = *epoch;
                    }
                    _ => {}
                }
                self.tell(of, input);
            }
            Incoming::Tree { dial, zxid, tree } if process.links.is_on(dial) => {
                self.step(of, Input::LeaderTree { zxid, tree });
            }
            // Of a connection to a leader that was given up.
            Incoming::Leader { .. } | Incoming::Tree { .. } => {}
        }
    }

    fn step(&mut self, of: Of, input: Input) {
        if self.failure.is_some() {
            return;
        }
        if let Input::Peer { input, .. } = &input {
            let text = |input: &zab::Input| format!("< {}", short(&format!("{input:x?}")));
            self.trace.note(self.now_us, "s", of.server, || text(input));
        }
        let Some(process) = self.process(of) else { return };
        let mut actions = std::mem::take(&mut process.actions);
        process.replica.step(input, &mut actions);
        process.actions = actions;
        self.keep_tape(of);
        self.observe(of);
    }

    /// What the step has made of the server.
    fn observe(&mut self, of: Of) {
        let server = of.server;
        let Some(process) = self.process(of) else { return };
        let notes = process.replica.notes();
        let (last, is_serving, mode) =
            (process.last(), process.is_serving(), process.replica.mode());
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

    /// Does what was asked, in order; commands reach the log thread together.
    fn perform(&mut self, of: Of) {
        let Some(process) = self.process(of) else { return };
        let mut commands = Vec::new();
        for action in std::mem::take(&mut process.actions) {
            if self.failure.is_some() {
                return;
            }
            match action {
                Action::Append { zxid, entry } => {
                    self.note(of.server, || format!("> append {zxid}"));
                    self.see(&Seen::Logs { server: of.server, zxid, entry: &entry });
                    commands.push(store::Command::Append { zxid, entry });
                }
                Action::Roll => commands.push(store::Command::Roll),
                Action::Wake(waker) => waker.wake(),
                Action::Snapshot(frozen) => self.begin_snapshot(of, frozen, false),
                Action::Install(frozen) => {
                    if let Some(store::Command::Truncate { replaced, .. }) = commands.last_mut() {
                        *replaced = true;
                    }
                    commands.push(store::Command::Roll);
                    self.begin_snapshot(of, frozen, true);
                }
                Action::SendTree { link, frozen } => self.send_tree(of, link, frozen),
                Action::Rebuild => self.ask_within(500, 8000, Event::Rebuild(of)),
                Action::Peer(action) => self.perform_for_peers(of, action, &mut commands),
                Action::Stop(reason) => self.fail("panic", format!("a server stops: {reason}")),
            }
        }
        if let Some(process) = self.process(of)
            && !commands.is_empty()
        {
            process.log.append(&mut commands);
            self.wake_log(of);
        }
    }

    fn perform_for_peers(
        &mut self,
        of: Of,
        action: zab::Action,
        commands: &mut Vec<store::Command>,
    ) {
        match action {
            zab::Action::Promise { promise, epoch } => {
                let file = match promise {
                    Promise::Accepted => EpochFile::Accepted,
                    Promise::Current => EpochFile::Current,
                };
                commands.push(store::Command::SaveEpoch { file, epoch });
            }
            zab::Action::Truncate { to } => {
                self.note(of.server, || format!("> truncate to {to}"));
                if let Some(process) = self.process(of) {
                    process.cuts += 1;
                }
                commands.push(store::Command::Truncate { to, replaced: false });
            }
            zab::Action::ReadLog { link, from, through } => {
                self.ask_within(200, 5000, Event::ReadLog { of, link, from, through });
            }
            zab::Action::ViewProposed { view } => self.keep_proposed(of, &view),
            zab::Action::ViewDecided { view, is_last } => self.keep_decided(of, &view, is_last),
            action => self.perform_for_links(of, action),
        }
    }
}

/// The beginning of what may be long.
pub fn short(text: &str) -> String {
    let end = text.char_indices().nth(160).map_or(text.len(), |(at, _)| at);
    text[..end].to_owned()
}

impl Process {
    /// Whether anything is on its way through it.
    pub fn is_quiet(&self) -> bool {
        self.happened.is_empty()
            && self.commands.is_empty()
            && self.log.is_empty()
            && !self.log_is_due
            && self.jobs.is_empty()
            && self.replica.outstanding() == 0
    }
}
