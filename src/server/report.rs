//! How things stand: what the four-letter words are answered from.

use super::clock::Clock;
use super::driver::Event;
use crate::admin::{
    self, ConnectionInfo, Effect, EnvironmentInfo, Mode, Status, WatchTotals, Word,
};
use crate::config::Config;
use crate::metrics::Registry;
use crate::model::sync::Ordering;
use crate::replica::Replica;
use crate::request::Shared;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// What only the driver knows.
pub struct Report {
    sessions: u64,
    outstanding: u64,
}

impl Report {
    pub fn of(replica: &Replica) -> Self {
        Self { sessions: replica.session_count() as u64, outstanding: replica.outstanding() as u64 }
    }
}

/// Answers words; shared by all connections.
pub struct Desk {
    pub config: Config,
    pub shared: Arc<Shared>,
    pub metrics: Arc<Registry>,
    pub events: UnboundedSender<Event>,
    pub clock: Clock,
    pub client_port: u16,
    pub environment: EnvironmentInfo,
}

impl Desk {
    pub async fn answer(&self, bytes: [u8; 4]) -> Vec<u8> {
        let Some(word) = Word::from_bytes(bytes) else { return Vec::new() };
        self.metrics.packets_received.increment();
        let status = match word {
            Word::Ruok => Status::default(), // Answered however busy the rest is.
            _ => self.status(word).await,
        };
        let answer = admin::answer(word, &self.config, &self.metrics, &status);
        match answer.effect {
            Effect::None => {}
            Effect::ResetServer => self.metrics.reset(),
            Effect::ResetConnections => {
                for conn in self.shared.conns.all() {
                    conn.stats.received.store(0, Ordering::Relaxed);
                    conn.stats.sent.store(0, Ordering::Relaxed);
                }
            }
        }
        answer.text.into_bytes()
    }

    async fn status(&self, word: Word) -> Status {
        let (to, from) = oneshot::channel();
        let _stopped = self.events.send(Event::Report(to));
        let Ok(report) = from.await else { return Status::default() };
        let watches = &self.shared.state.watches;
        let mut status = Status {
            serving: true,
            mode: Mode::Standalone,
            connection_count: self.shared.conns.count() as u64,
            outstanding_requests: report.outstanding,
            global_sessions: report.sessions,
            watch_count: watches.count() as u64,
            uptime_ms: self.clock.now_ms(),
            open_file_descriptors: open_files(),
            max_file_descriptors: rustix::process::getrlimit(rustix::process::Resource::Nofile)
                .current,
            client_port: self.client_port,
            environment: self.environment.clone(),
            ..Status::default()
        };
        if word.needs_connections() {
            status.connections = self.connections();
        }
        if word.needs_dir_sizes() {
            status.data_dir_bytes = bytes_in(&self.config.data_dir.join("version-2"));
            status.log_dir_bytes = bytes_in(&self.config.data_log_dir.join("version-2"));
        }
        if word == Word::Wchs {
            let (connections, paths, watches) = watches.data_totals();
            status.watches = WatchTotals { connections, paths, watches };
        }
        let tree = self.shared.state.tree.read();
        status.zxid = tree.last_zxid();
        status.node_count = tree.node_count() as u64;
        status.ephemerals_count = tree.ephemeral_count();
        status.approximate_data_size_bytes = tree.data_size();
        status
    }

    fn connections(&self) -> Vec<ConnectionInfo> {
        let of = |conn: Arc<crate::request::Conn>| ConnectionInfo {
            remote: conn.peer,
            reads: true,
            writes: false,
            outstanding: 0,
            received: conn.stats.received.load(Ordering::Relaxed),
            sent: conn.stats.sent.load(Ordering::Relaxed),
            session: None,
        };
        self.shared.conns.all().into_iter().map(of).collect()
    }
}

fn open_files() -> Option<u64> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}

fn bytes_in(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).sum()
}
