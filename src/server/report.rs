//! Collects the server's state and answers four-letter words from it.

use super::clock::Clock;
use super::environment;
use super::inbox::{Event, Inbox};
use super::listing::{self, Date, Describe, Ephemerals, Listing, Part};
use crate::admin::http::Limiters;
use crate::admin::{
    self, ConnectionInfo, DumpCounts, Effect, EnvironmentInfo, Expiries, List, SessionInfo, Status,
    WatchTotals, Word,
};
use crate::config::Config;
use crate::metrics::Registry;
use crate::model::{SessionId, Zxid};
use crate::net::{WordAnswer, WordRequest};
use crate::request::{ClientHandle, Shared};
use crate::tree::QuotaTotals;
use crate::zab::PeerLag;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use std::fs;
use std::mem::take;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

/// Java's default trace mask: requests, server packets, sessions and warnings.
const TRACE_MASK: i64 = 306;
/// Answers with lists that are sent at the same time; other connections wait until one of them has ended.
const LISTINGS_MAX: usize = 8;
/// The same of AdminServer, which has one thread.
const HTTP_LISTINGS_MAX: usize = 2;

/// Answers four-letter words; shared by all connections.
pub struct FourLetterWords {
    pub(super) config: Config,
    pub(super) shared: Arc<Shared>,
    pub(super) metrics: Arc<Registry>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) clock: Clock,
    pub(super) client_port: Arc<AtomicU16>,
    pub(super) secure_client_port: Option<u16>,
    pub(super) environment: EnvironmentInfo,
    /// Kept for `gtmk` and `stmk`. What is logged is chosen by `--log-level` and `RUST_LOG` instead.
    pub(super) trace_mask: AtomicI64,
    /// Permits for answers with lists.
    pub(super) listings: Arc<Semaphore>,
    /// The same for HTTP.
    pub(super) http_listings: Arc<Semaphore>,
    /// How often `snapshot` and `restore` are carried out.
    pub(super) limiters: Mutex<Limiters>,
    /// One body is restored at a time.
    pub(super) restores: Arc<Semaphore>,
}

/// What `dump` lists.
#[derive(Default)]
pub(super) struct Dump {
    pub(super) sessions: Expiries<i64>,
    local_sessions: Option<Expiries<i64>>,
    ephemerals: Ephemerals,
    connections: Expiries<(SocketAddr, i64)>,
}

impl FourLetterWords {
    pub fn new(
        config: Config,
        shared: Arc<Shared>,
        metrics: Arc<Registry>,
        inbox: Arc<Inbox>,
        clock: Clock,
        client_port: Arc<AtomicU16>,
        secure_client_port: Option<u16>,
    ) -> Self {
        let (environment, trace_mask) = (environment::look(), AtomicI64::new(TRACE_MASK));
        let listings = Arc::new(Semaphore::new(LISTINGS_MAX));
        Self {
            config,
            shared,
            metrics,
            inbox,
            clock,
            client_port,
            secure_client_port,
            environment,
            trace_mask,
            listings,
            http_listings: Arc::new(Semaphore::new(HTTP_LISTINGS_MAX)),
            limiters: Mutex::default(),
            restores: Arc::new(Semaphore::new(1)),
        }
    }

    pub async fn answer(&self, asked: WordRequest) -> WordAnswer {
        let Some(word) = Word::from_bytes(asked.word) else { return Box::new(std::iter::empty()) };
        let is_refused = admin::refusal(word, &self.config.four_letter_words).is_some();
        // No connection stays open for longer without a session.
        let patience = Duration::from_millis(self.config.sessionless_cnxn_timeout_ms.into());
        let place = match word.lists() && !is_refused {
            true => match timeout(patience, self.listings.clone().acquire_owned()).await {
                Ok(place) => place.ok(),
                Err(_) => return Box::new(std::iter::empty()),
            },
            false => None,
        };
        let mut status = match word {
            Word::Ruok => Status::default(), // Answered however busy the driver is.
            _ if is_refused => Status::default(),
            _ => self.status(word).await,
        };
        let mut dump = Dump::default();
        if word == Word::Dump && !is_refused {
            dump = self.dump().await;
            status.dump = DumpCounts {
                sessions: dump.sessions.counts(),
                local_sessions: dump.local_sessions.as_ref().map(Expiries::counts),
                owners: dump.ephemerals.owners(),
                connections: dump.connections.counts(),
            };
        }
        let answer = admin::answer(word, &asked.rest, &self.config, &self.metrics, &status);
        self.perform(answer.effect, |conn| conn.at_secure_port == asked.at_secure_port);
        let mut parts = vec![Part::Text(answer.text)];
        for (list, after) in answer.lists {
            parts.push(self.part(list, &mut dump, asked.at_secure_port));
            parts.push(Part::Text(after));
        }
        let (clock, zone) = (self.clock, TimeZone::system());
        let date: Date = Box::new(move |wall_ms| java_date(wall_ms, &zone));
        let describe: Describe = Box::new(move |conn| describe(conn, clock));
        Box::new(Listing::new(self.shared.clone(), parts.into(), date, describe, place))
    }

    /// * `is_meant`: the connections that are reset, if any.
    pub(super) fn perform(&self, effect: Effect, is_meant: impl Fn(&ClientHandle) -> bool) {
        match effect {
            Effect::None => {}
            // Prometheus needs counters that only grow.
            Effect::ResetServer if self.config.metrics.prometheus.is_some() => {
                self.metrics.reset_stats()
            }
            Effect::ResetServer => self.metrics.reset(),
            Effect::ResetConnections => {
                let mut conns = self.shared.conns.all();
                conns.retain(|conn| is_meant(conn));
                conns.iter().for_each(|conn| conn.stats.reset());
            }
            Effect::ResetObservers => self.inbox.put(Event::ResetLearners),
            Effect::SetTraceMask(mask) => self.trace_mask.store(mask, Ordering::Relaxed),
        }
    }

    pub(super) fn part(&self, list: List, dump: &mut Dump, at_secure_port: bool) -> Part {
        match list {
            List::Connections { brief } => Part::Connections { at: 0, brief, at_secure_port },
            List::SecureConnections { brief } => {
                Part::Connections { at: 0, brief, at_secure_port: true }
            }
            List::WatchesByPath => listing::watches_by_path(&self.shared),
            List::WatchesBySession => listing::watches_by_session(&self.shared),
            List::Sessions => Part::Sessions(take(&mut dump.sessions)),
            List::LocalSessions => Part::Sessions(dump.local_sessions.take().unwrap_or_default()),
            List::SessionTimeouts => Part::SessionTimeouts(None),
            List::Ephemerals => Part::Ephemerals(take(&mut dump.ephemerals)),
            List::ConnectionExpiries => Part::ConnectionExpiries(take(&mut dump.connections)),
        }
    }

    pub(super) async fn status(&self, word: Word) -> Status {
        let (to, from) = oneshot::channel();
        self.inbox.put(Event::Report(to));
        let Ok(report) = from.await else { return Status::default() };
        let watches = &self.shared.state.watches;
        let mut status = Status {
            serving: report.mode.is_some(),
            mode: report.mode.unwrap_or_default(),
            member: report.member,
            leader: report.leader,
            observers: report.observers,
            connection_count: self.shared.conns.count() as u64,
            connection_drop_chance: self.shared.throttle.connects(&self.shared.limits).1,
            outstanding_requests: report.outstanding,
            local_sessions: report.local_sessions,
            watch_count: watches.count() as u64,
            uptime_ms: self.clock.now_ms().saturating_sub(report.since_ms),
            open_file_descriptors: open_files(),
            max_file_descriptors: rustix::process::getrlimit(rustix::process::Resource::Nofile)
                .current,
            client_port: self.client_port.load(Ordering::Relaxed),
            secure_client_port: self.secure_client_port,
            environment: self.environment.clone(),
            trace_mask: self.trace_mask.load(Ordering::Relaxed),
            ..Status::default()
        };
        if word.needs_dir_sizes() {
            status.data_dir_bytes = bytes_in(&self.config.data_dir.join("version-2"));
            status.log_dir_bytes = bytes_in(&self.config.data_log_dir.join("version-2"));
        }
        match word {
            Word::Wchs => {
                let (connections, paths, watches) = watches.data_totals();
                status.watches = WatchTotals { connections, paths, watches };
            }
            Word::Envi => status.environment = environment::look(),
            Word::Mntr => self.look_for_metrics(&report.peers, &mut status),
            _ => {}
        }
        self.look_at_tree(word, &mut status);
        status.zxid = status.zxid.max(report.begin);
        status
    }

    /// What only the provider of Prometheus shows.
    fn look_for_metrics(&self, peers: &[PeerLag], status: &mut Status) {
        let Some(prometheus) = &self.config.metrics.prometheus else { return };
        status.own = Some(self.own_figures(peers));
        if prometheus.exports_process {
            let (open, max) = (status.open_file_descriptors, status.max_file_descriptors);
            let mut process = environment::process(open, max);
            if self.config.metrics.jvm_stand_ins {
                process.heap_max_bytes = Some(environment::memory_max());
            }
            status.process = Some(process);
        }
    }

    fn look_at_tree(&self, word: Word, status: &mut Status) {
        let tree = self.shared.state.tree.read();
        status.zxid = tree.last_zxid();
        status.node_count = tree.node_count() as u64;
        status.global_sessions = tree.sessions().len() as u64;
        status.ephemerals_count = tree.ephemeral_count();
        status.approximate_data_size_bytes = tree.approximate_data_size();
        match word {
            Word::Mntr => status.quotas = quotas(&tree.quota_totals()),
            Word::Hash => status.digests = tree.digests().collect(),
            _ => {}
        }
    }

    pub(super) async fn dump(&self) -> Dump {
        let (to, from) = oneshot::channel();
        self.inbox.put(Event::Sessions(to));
        let (sessions, locals) = from.await.unwrap_or_default();
        let dated = |all: Vec<(u64, SessionId)>| {
            let at = |(at_ms, id): (u64, SessionId)| (self.clock.wall_ms_at(at_ms), id.0);
            Expiries::new(all.into_iter().map(at).collect())
        };
        let owners = self.shared.state.tree.read().ephemeral_owners();
        let sessionless_ms = u64::from(self.config.sessionless_cnxn_timeout_ms.max(1));
        let (mut connections, mut at) = (Vec::new(), 0);
        while let Some(conns) = self.shared.conns.next(&mut at, 1024) {
            connections.extend(conns.iter().map(|conn| {
                let session = conn.session();
                let timeout_ms = match session {
                    Some(_) => conn.stats.figures().timeout_ms.max(0) as u64,
                    None => sessionless_ms,
                };
                // Java checks its connections at this interval; a connection expires at the check after its timeout.
                let looks = (conn.heard_ms() + timeout_ms) / sessionless_ms + 1;
                let at_ms = self.clock.wall_ms_at(looks * sessionless_ms);
                (at_ms, (conn.peer, session.map_or(0, |session| session.0)))
            }));
        }
        Dump {
            sessions: dated(sessions),
            local_sessions: locals.map(dated),
            ephemerals: Ephemerals::new(owners),
            connections: Expiries::new(connections),
        }
    }
}

/// What `cons` and `stat` show of a connection.
pub(super) fn describe(conn: &ClientHandle, clock: Clock) -> ConnectionInfo {
    let figures = conn.stats.figures();
    let session = conn.session().map(|session| SessionInfo {
        id: session.0,
        last_operation: admin::operation_name(figures.last_op),
        established_ms: clock.wall_ms_at(conn.opened_ms),
        timeout_ms: figures.timeout_ms as u32,
        last_cxid: figures.last_xid,
        last_zxid: Zxid::from_wire(figures.last_zxid),
        last_response_ms: figures.last_answer_ms,
        last_latency_ms: figures.last_latency_ms,
        min_latency_ms: figures.min_latency_ms,
        avg_latency_ms: figures.avg_latency_ms,
        max_latency_ms: figures.max_latency_ms,
    });
    ConnectionInfo {
        remote: conn.peer,
        reads: figures.reads,
        writes: figures.writes,
        outstanding: conn.outstanding(),
        received: figures.received,
        sent: figures.sent,
        session,
    }
}

/// The four gauges of quotas. A namespace without the znode for a gauge has no value in it.
fn quotas(totals: &BTreeMap<String, QuotaTotals>) -> Vec<(&'static str, Vec<(String, i64)>)> {
    let gauge = |name, value: fn(&QuotaTotals) -> Option<i64>| {
        let values = totals.iter().filter_map(|(space, all)| Some((space.clone(), value(all)?)));
        (name, values.collect())
    };
    vec![
        gauge("quota_bytes_limit_per_namespace", |all| all.bytes_limit),
        gauge("quota_count_usage_per_namespace", |all| all.count_usage),
        gauge("quota_count_limit_per_namespace", |all| all.count_limit),
        gauge("quota_bytes_usage_per_namespace", |all| all.bytes_usage),
    ]
}

/// As Java's `Date.toString` prints it.
fn java_date(wall_ms: u64, zone: &TimeZone) -> String {
    let at = i64::try_from(wall_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let zoned = at.unwrap_or_default().to_zoned(zone.clone());
    zoned.strftime("%a %b %d %H:%M:%S %Z %Y").to_string()
}

fn open_files() -> Option<u64> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}

/// Bytes of the files below a folder. Files that cannot be read count as 0.
fn bytes_in(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => bytes_in(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_as_large_as_the_files_below_them() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("sub")).unwrap();
        fs::write(home.path().join("a"), [0; 7]).unwrap();
        fs::write(home.path().join("sub/b"), [0; 1000]).unwrap();
        assert_eq!(bytes_in(home.path()), 1007);
    }

    #[test]
    fn dates_are_printed_as_java_does() {
        let date = java_date(1_795_272_042_000, &TimeZone::UTC);
        assert_eq!(date, "Sat Nov 21 14:40:42 UTC 2026");
        let east = TimeZone::posix("EET-2").unwrap();
        assert_eq!(java_date(0, &east), "Thu Jan 01 02:00:00 EET 1970");
    }
}
