//! What one server decides around its `replica`: connections to other servers, the order of disk work, configuration files.
//!
//! [`Member`] is a machine without IO: packets, reports of the log thread, clients' commands and the time go in as
//! [`Input`], what must happen comes out as [`Action`]. The server, the simulator and the tests perform the same actions,
//! so what is simulated is what ships. A standalone server is a `Member` that has no other servers.
//!
//! [`Member::step`] is the table of contents.
//!
//! # Invariants
//! 1. Log commands leave in the order in which `replica` asked for them; a truncation that an installed tree follows says so.
//! 2. A packet counts only while its connection is the current one: packets of a leader's connection that was given up,
//!    or of a learner's connection that was closed, are discarded, also those read together with the packet that ended it.
//! 3. A snapshot of this server's own that was begun before a truncation gets no name after it.
//! 4. Configuration files are written before anything that `replica` asked for later is sent.
//!
//! # Not here
//! Agreement (`zab`), requests (`request`) and the order between them (`replica`); sockets, files and threads (`net`,
//! `server`).

mod actions;
pub mod awaiting_hello;
pub mod config_files;
mod configuration;
pub mod dial;
mod disk_work;
pub mod election_connection;
pub mod election_connections;
#[cfg(test)]
mod election_connections_tests;
pub mod election_hello;
pub mod election_listeners;
mod inputs;
mod message_tracker;
pub mod opening;
pub mod quorum_connection;
mod quorum_connections;
pub mod quorum_outbox;
pub mod restorer;
mod settings;
pub mod start;
mod stop;

pub use actions::{Action, ConfigChange, Ended};
pub use configuration::{ListenAddress, election_address, election_addresses};
pub use disk_work::SnapshotJob;
pub use inputs::{Input, Now};
pub use quorum_connection::QuorumPeer;
pub use settings::{EnsembleSettings, LogReadLimit, Settings};

use crate::replica::{self, Replica, TICK_MS};
use crate::request::ClientCommand;
use crate::zab::{self, Notification};
use configuration::Configuration;
use disk_work::DiskWork;
use quorum_connections::QuorumConnections;
use stop::Stop;

/// The machine of one server.
pub struct Member {
    pub replica: Replica,
    /// `None`: standalone.
    ensemble: Option<Ensemble>,
    disk: DiskWork,
    stop: Stop,
    /// Ticks of [`TICK_MS`] that `replica` was told of.
    ticks: u64,
    /// Requests of learners' clients that came in so far.
    pub learner_requests: u64,
    /// What `replica` asked for and was not translated yet: empty between two steps.
    asked: Vec<replica::Action>,
}

/// What only a member of an ensemble has.
struct Ensemble {
    quorum: QuorumConnections,
    configuration: Configuration,
}

impl Member {
    /// * `now`: the time at which `replica` was made.
    pub fn new(replica: Replica, settings: Settings, now: Now) -> Self {
        let ensemble = settings.ensemble.map(|ensemble| Ensemble {
            quorum: QuorumConnections::new(
                ensemble.observer_master_port,
                ensemble.tracked_messages,
            ),
            configuration: Configuration::new(ensemble),
        });
        Self {
            replica,
            ensemble,
            disk: DiskWork::new(settings.log_read),
            stop: Stop::default(),
            ticks: now.us / 1000 / TICK_MS,
            learner_requests: 0,
            asked: Vec::new(),
        }
    }

    /// Asks for what comes before the first input: ports, and a copy of the static configuration file.
    pub fn start(&mut self, out: &mut Vec<Action>) {
        if let Some(ensemble) = &self.ensemble {
            ensemble.configuration.start(out);
        }
    }

    /// A standalone server takes a snapshot of what it has restored.
    pub fn snapshot(&mut self, now: Now, out: &mut Vec<Action>) {
        self.replica.snapshot(&mut self.asked);
        self.translate(now, out);
    }

    /// Applies one input and pushes what must happen next.
    pub fn step(&mut self, now: Now, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Timer => self.pass_time(now, out),
            Input::Client(command) => self.on_command(now, command, out),
            Input::Log(event) => self.on_log(now, event, out),
            Input::SnapshotWritten { job, draft } => self.on_snapshot(now, job, draft, out),
            Input::TreeSent(frozen) => {
                self.step_replica(now, replica::Input::SnapshotEnded(frozen), out);
            }
            Input::TreeLoaded(tree) => {
                self.step_replica(now, replica::Input::Rebuilt { tree }, out);
            }
            Input::LogRead { link, read } => {
                self.step_zab(now, zab::Input::LogRead { link, read }, out);
            }
            Input::Oracle { agrees } => self.step_zab(now, zab::Input::Oracle { agrees }, out),
            Input::LearnerConnected { link } => self.on_learner_connected(link),
            Input::Packets { from, packets } => self.on_packets(now, from, packets, out),
            Input::LeaderTree { dial, zxid, tree } => {
                self.on_leader_tree(now, dial, zxid, tree, out);
            }
            Input::Progress { from } => self.on_progress(now, from, out),
            Input::Disconnected { from, why } => self.on_disconnected(now, from, why, out),
            Input::ElectionConnected { to } => self.step_zab(now, zab::Input::LinkUp { to }, out),
            Input::ElectionDisconnected { to } => {
                self.step_zab(now, zab::Input::LinkDown { to }, out);
            }
            Input::Notification { from, message } => match Notification::decode(&message) {
                Ok(notification) => {
                    self.step_zab(now, zab::Input::Heard { from, notification }, out);
                }
                Err(error) => {
                    tracing::warn!(peer = from.0, %error, "election notification is discarded");
                }
            },
            Input::Stop => self.stop.begin(now),
            Input::Failed { reason, exit } => {
                out.push(Action::End(Ended::Failed { reason, exit }));
            }
        }
        self.end_if_stopped(now, out);
    }

    /// Tells `replica` of the ticks that have passed. Once the server stops, time stands still for it: sessions that expire
    /// meanwhile would each be a write to wait for, and with a slow disk there might always be another one.
    fn pass_time(&mut self, now: Now, out: &mut Vec<Action>) {
        let due = now.us / 1000 / TICK_MS;
        while self.ticks < due && !self.stop.is_begun() {
            self.ticks += 1;
            self.step_replica(now, replica::Input::Tick { wall_ms: now.wall_ms }, out);
        }
    }

    fn on_command(&mut self, now: Now, command: ClientCommand, out: &mut Vec<Action>) {
        self.step_replica(now, replica::Input::Command { command, wall_ms: now.wall_ms }, out);
    }

    fn step_zab(&mut self, now: Now, input: zab::Input, out: &mut Vec<Action>) {
        self.step_replica(now, replica::Input::Peer { input, now_us: now.us }, out);
    }

    fn step_replica(&mut self, now: Now, input: replica::Input, out: &mut Vec<Action>) {
        self.replica.step(input, &mut self.asked);
        self.translate(now, out);
    }

    /// Turns what `replica` asked for into actions, in its order, and keeps this machine's own state in step with it.
    fn translate(&mut self, now: Now, out: &mut Vec<Action>) {
        let mut asked = std::mem::take(&mut self.asked);
        for action in asked.drain(..) {
            match action {
                replica::Action::Wake(waker) => out.push(Action::Wake(waker)),
                replica::Action::Stop(reason) => {
                    out.push(Action::End(Ended::Failed { reason: reason.to_owned(), exit: 1 }));
                }
                replica::Action::SendTree { link, frozen } => {
                    self.send_tree(now, link, frozen, out)
                }
                replica::Action::Peer(action) => self.on_zab_action(now, action, out),
                action => self.disk.ask(action, out),
            }
        }
        self.asked = asked; // Its memory.
    }

    fn on_zab_action(&mut self, now: Now, action: zab::Action, out: &mut Vec<Action>) {
        match action {
            zab::Action::Promise { promise, epoch } => self.disk.save_epoch(promise, epoch, out),
            zab::Action::Truncate { to } => self.disk.truncate(to, out),
            zab::Action::ReadLog { link, from, through } => {
                let limit_bytes = self.log_read_limit();
                out.push(Action::ReadLog { link, from, through, limit_bytes });
            }
            zab::Action::Tell { to, notification } => {
                out.push(Action::SendNotification { to, message: notification.encode() });
            }
            zab::Action::DialAll => out.push(Action::DialElectionPorts),
            zab::Action::ViewProposed { view } => {
                if let Some(ensemble) = &self.ensemble {
                    ensemble.configuration.on_proposed(view, out);
                }
            }
            zab::Action::ViewDecided { view, is_last } => {
                if let Some(ensemble) = &mut self.ensemble {
                    ensemble.configuration.on_committed(view, is_last, out);
                }
            }
            action => self.on_connection_action(now, action, out),
        }
    }

    fn log_read_limit(&self) -> u64 {
        let tree = self.replica.shared().state.tree.read();
        self.disk.log_read_limit(tree.approximate_data_size(), tree.node_count() as u64)
    }

    fn end_if_stopped(&self, now: Now, out: &mut Vec<Action>) {
        if self.stop.is_begun() {
            let is_member = self.ensemble.is_some();
            self.stop.end_if_done(now, self.replica.outstanding(), is_member, out);
        }
    }
}
