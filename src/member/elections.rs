//! The election connections as `zab` uses them.

use super::election_connections::{
    self, ConnectionId, ElectionConnections, Event, Input, ServerAddresses, Settings,
};
use super::unreachable::Reach;
use super::{Action, Now};
use crate::model::{ServerId, View};
use crate::zab::{self, Notification};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Election connections, and their reports that `zab` has not processed yet.
pub struct Elections {
    connections: ElectionConnections,
    reports: VecDeque<Event>,
    /// Connected servers whose last vote says that they have no data that counts.
    without_vote: BTreeSet<ServerId>,
    /// The configurations, as text, of connected servers, as their last notifications have them.
    configs: BTreeMap<ServerId, Bytes>,
}

impl Elections {
    pub fn new(settings: Settings, addresses: ServerAddresses) -> Self {
        let connections = ElectionConnections::new(settings, addresses);
        Self {
            connections,
            reports: VecDeque::new(),
            without_vote: BTreeSet::new(),
            configs: BTreeMap::new(),
        }
    }

    pub fn step(&mut self, now: Now, input: Input, out: &mut Vec<Action>) {
        let mut actions = Vec::new();
        self.connections.step(input, now.us / 1000, &mut actions);
        for action in actions {
            match action {
                election_connections::Action::Report(event) => self.reports.push_back(event),
                action => out.push(Action::Election(action)),
            }
        }
    }

    pub fn pass_time(&mut self, now: Now, out: &mut Vec<Action>) {
        if self.deadline_us().is_some_and(|deadline_us| deadline_us <= now.us) {
            self.step(now, Input::Tick, out);
        }
    }

    /// Monotonic microseconds at which [`Self::pass_time`] has something to do.
    pub fn deadline_us(&self) -> Option<u64> {
        self.connections.next_deadline_ms().map(|ms| ms * 1000)
    }

    pub fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    /// The oldest report that `zab` has not processed.
    pub fn next_report(&mut self) -> Option<zab::Input> {
        loop {
            return Some(match self.reports.pop_front()? {
                Event::ElectionConnected { to } => zab::Input::ElectionConnected { to },
                Event::ElectionDisconnected { to } => {
                    self.without_vote.remove(&to);
                    self.configs.remove(&to);
                    zab::Input::ElectionDisconnected { to }
                }
                Event::ElectionUnreached { to } => zab::Input::ElectionUnreached { to },
                Event::Heard { from, message } => match Notification::decode(&message) {
                    Ok(notification) => {
                        match notification.is_without_data() {
                            true => self.without_vote.insert(from),
                            false => self.without_vote.remove(&from),
                        };
                        if let Some(config) = &notification.config {
                            self.configs.insert(from, config.clone());
                        }
                        zab::Input::Notification { from, notification }
                    }
                    Err(error) => {
                        tracing::warn!(target: crate::model::STRANGERS, server_id = from.0, %error, "election notification discarded: check the version of that server");
                        continue;
                    }
                },
                Event::BindFailed { place, error } => {
                    tracing::error!(
                        target: crate::model::STRANGERS, address = %place, %error,
                        "no server can connect to the election port, listening is tried again: do what the error says, or correct dataDir/myid if it has another server's number"
                    );
                    continue;
                }
            });
        }
    }

    /// The other members, and why nothing is heard of some.
    ///
    /// * `view`: this server's configuration.
    pub fn reach(&self, view: &View) -> Reach {
        let mut reach = self.connections.reach();
        reach.without_vote =
            reach.heard.iter().filter(|id| self.without_vote.contains(id)).copied().collect();
        let other_lines = |id: &ServerId| {
            let theirs = View::from_bytes(self.configs.get(id)?).ok()?;
            let are_lines = view.version == 0 && theirs.version == 0;
            (are_lines && !theirs.has_quorums_of(view)).then(|| (*id, theirs.voters_text()))
        };
        reach.other_lines = reach.heard.iter().filter_map(other_lines).collect();
        reach
    }

    /// Messages that were sent again over a new connection.
    pub const fn resent(&self) -> u64 {
        self.connections.stats.resent
    }

    pub const fn next_connection(&mut self) -> ConnectionId {
        self.connections.next_connection()
    }
}
