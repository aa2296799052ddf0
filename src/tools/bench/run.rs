//! Runs a benchmark, from its options to its report.

use super::connection_load::Plan;
use super::drive::{Share, ThreadMessage, work};
use super::mix::Mix;
use super::picture;
use super::prepare::{PrepareError, ZnodeSetup};
use super::progress::Progress;
use super::record::Totals;
use super::report::{Report, Setting};
use super::security::{Security, SecurityError, SecurityOptions, Server};
use super::znodes::Znodes;
use crate::client::ClientError;
use crate::model::Code;
use crate::tools::tls_options::explained;
use std::io::{self, IsTerminal, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How long a server may take to answer at the beginning.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time from the end of a second to its report: the second's last slices come late.
const TELL_AFTER_US: u64 = 150_000;
/// Values above this may be larger than a server's jute.maxbuffer.
const LARGE_VALUE: u32 = 10_000;

/// Options of `oxkeeper bench`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Servers as host:port, separated by commas; connections are spread over them.
    #[arg(long, short, value_delimiter = ',', default_value = "127.0.0.1:2181")]
    pub server: Vec<String>,
    /// Operations and their shares: get, exists, list, set, create, delete (of created znodes).
    #[arg(long, short, default_value = "get=80,set=20")]
    pub mix: Mix,
    /// Connections, spread over the servers.
    #[arg(long, short, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub connections: u32,
    /// Requests that each connection has in flight.
    #[arg(long, short = 'f', default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub in_flight: u16,
    /// Bytes of data in each znode.
    #[arg(long, default_value_t = 100)]
    pub value_size: u32,
    /// Znodes that are read and written, created before the run.
    #[arg(long, short, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub keys: u64,
    /// Length of the measured time: 10s, 500ms, 2m.
    #[arg(long, short, default_value = "10s", value_parser = parse_duration)]
    pub duration: Duration,
    /// Length of the warm-up before the measured time.
    #[arg(long, short, default_value = "2s", value_parser = parse_duration)]
    pub warm_up: Duration,
    /// Operations per second, of all connections together; latency counts from the time when an operation was due. Default: as fast as answers come.
    #[arg(long, short, value_parser = parse_rate)]
    pub rate: Option<f64>,
    /// Threads that make the load. Default: half of the cores.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Session timeout to request.
    #[arg(long, default_value = "30s", value_parser = parse_duration)]
    pub session_timeout: Duration,
    #[command(flatten)]
    pub security: SecurityOptions,
    /// Znode below which the run creates its own.
    #[arg(long, default_value = "/")]
    pub under: String,
    /// Keep the znodes after the run.
    #[arg(long)]
    pub keep: bool,
    /// Print JSON instead of the table.
    #[arg(long)]
    pub json: bool,
    /// Draw throughput and latencies over time into this file.
    #[arg(long, value_name = "FILE.svg")]
    pub picture: Option<PathBuf>,
}

/// Why a run has no result, or leaves znodes.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error("server {0} has no port; write it as host:port, such as {0}:2181")]
    NoPort(String),
    #[error("server {0}: what follows its last colon is not a port from 1 to 65535")]
    Port(String),
    #[error("server {0}: no such host is known")]
    Host(String, #[source] io::Error),
    #[error(transparent)]
    Security(#[from] SecurityError),
    #[error("can't connect to {server}")]
    Connect { server: SocketAddr, source: ClientError },
    #[error(
        "{server} closed connection {number} of {of} at once: raise its maxClientCnxns or maxCnxns, or take fewer by --connections"
    )]
    Limit { server: SocketAddr, number: u32, of: u32 },
    #[error(
        "{server} closed the connection when znodes of {value_size} B were created: raise its jute.maxbuffer (1048575 unless it is set), or \
         lower --value-size"
    )]
    TooLarge { server: SocketAddr, value_size: u32 },
    #[error("{0} does not exist: create it, or name another znode by --under")]
    NoParent(String),
    #[error("can't prepare znodes on {server}")]
    Prepare { server: SocketAddr, source: PrepareError },
    #[error("can't remove all znodes below {root}: delete the rest")]
    Remove { root: String, source: PrepareError },
    #[error("stopped while removing znodes below {0}: delete the rest")]
    CleanupStopped(String),
    #[error("stopped before anything was measured")]
    Stopped,
    #[error("can't {what}")]
    System { what: &'static str, source: io::Error },
    #[error("can't write picture {}", path.display())]
    Picture { path: PathBuf, source: io::Error },
}

/// How a run has ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    Well,
    /// No operation was answered, or some failed.
    WithFailures,
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("`{unit}` is not a unit: use ms, s, m or h")),
    };
    let number: f64 = digits.parse().map_err(|_| format!("`{digits}` is not a number"))?;
    Duration::try_from_secs_f64(number * unit).map_err(|error| error.to_string())
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "a number of operations a second".to_owned())?;
    if (0.001..=1e9).contains(&rate) { Ok(rate) } else { Err("between 0.001 and 1e9".to_owned()) }
}

/// Runs, prints, draws and cleans up. Ctrl-C ends the measured time early; a second Ctrl-C ends the cleaning up.
///
/// * `seed`: of the choice of operations and znodes, and of the root's name.
///
/// # Errors
/// [`BenchError`] when nothing could be measured, or znodes of the run are left behind.
pub fn run(options: &Options, seed: u64) -> Result<Ended, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|source| BenchError::System { what: "start a runtime", source })?;
    let ended = runtime.block_on(bench(options, seed));
    // Without waiting for requests of a clean-up that was stopped.
    runtime.shutdown_background();
    ended
}

async fn bench(options: &Options, seed: u64) -> Result<Ended, BenchError> {
    if let Some(path) = &options.picture {
        may_write(path).map_err(|source| BenchError::Picture { path: path.clone(), source })?;
    }
    let servers = resolve(&options.server)?;
    let timeout_ms = timeout_ms(options);
    let security = Arc::new(Security::of(&options.security)?);
    let first = &servers[0];
    let opened = ZnodeSetup::open(&security, first, timeout_ms, PATIENCE);
    let mut maker = opened.map_err(|source| match source {
        PrepareError::Client(source) => {
            let source = not_connected(source, options.security.tls.tls_ca.is_some());
            BenchError::Connect { server: first.addr, source }
        }
        source => BenchError::Prepare { server: first.addr, source },
    })?;
    let root = format!("{}/oxkeeper-bench-{seed:016x}", options.under.trim_end_matches('/'));
    let znodes = Znodes { root: root.clone(), keys: options.keys };
    // The bytes differ, so that they can't be compressed on the way.
    let value: Vec<u8> =
        (0..options.value_size).map(|at| (seed >> (at % 57)) as u8 ^ at as u8).collect();
    let setting = setting(options, &security, first);
    say(&format!("{}: {}", setting.servers, setting.line()));
    let made = maker.make(&znodes, options.connections, &value);
    maker.close();
    let measured = match made {
        Ok(()) => measure(options, &security, &servers, znodes, value, seed).await,
        Err(error) => Err(not_prepared(first.addr, options, error)),
    };
    let cleaned = if options.keep {
        say(&format!("znodes are kept below {root}"));
        Ok(())
    } else {
        clean(security, first.clone(), timeout_ms, root).await
    };
    let (totals, measured_us) = measured?;
    let report = Report {
        setting,
        measured_s: measured_us as f64 / 1e6,
        operations: totals.operations(measured_us),
        overall: totals.overall(measured_us),
        points: totals.points(measured_us),
        troubles: totals.troubles,
    };
    let text = if options.json { report.json() } else { format!("\n{}", report.table()) };
    io::stdout()
        .write_all(text.as_bytes())
        .map_err(|source| BenchError::System { what: "print the result", source })?;
    if let Some(path) = &options.picture {
        std::fs::write(path, picture::draw(&report))
            .map_err(|source| BenchError::Picture { path: path.clone(), source })?;
    }
    cleaned?;
    let well = report.overall.count > 0 && report.troubles.count() == 0;
    Ok(if well { Ended::Well } else { Ended::WithFailures })
}

/// Why there are no znodes for the run. A server closes the connection of a request that is larger than it allows, without an answer.
fn not_prepared(server: SocketAddr, options: &Options, source: PrepareError) -> BenchError {
    let value_size = options.value_size;
    match source {
        // The znode of the run is the first one.
        PrepareError::Code { what: "create", code: Code::NO_NODE, .. } => {
            BenchError::NoParent(options.under.clone())
        }
        PrepareError::Client(ClientError::Closed) if LARGE_VALUE < value_size => {
            BenchError::TooLarge { server, value_size }
        }
        source => BenchError::Prepare { server, source },
    }
}

/// An error of the first connection, with the options that it may lack.
fn not_connected(source: ClientError, has_tls: bool) -> ClientError {
    match source {
        ClientError::Closed if !has_tls => {
            ClientError::Security(format!("{source}; is it a TLS port? give --tls-ca"))
        }
        ClientError::Io(error) => ClientError::Security(explained(&error, has_tls)),
        source => source,
    }
}

fn timeout_ms(options: &Options) -> i32 {
    i32::try_from(options.session_timeout.as_millis()).unwrap_or(i32::MAX)
}

/// Checks that the picture can be written, before anything is measured; an existing file is kept until there is a new one.
fn may_write(path: &std::path::Path) -> io::Result<()> {
    std::fs::OpenOptions::new().create(true).append(true).open(path).map(drop)
}

fn resolve(names: &[String]) -> Result<Arc<[Server]>, BenchError> {
    let mut servers = Vec::with_capacity(names.len());
    for name in names {
        // An IPv6 address without brackets has several colons and no port.
        let parts = name.rsplit_once(':');
        let parts = parts.filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
        let (host, port) = parts.ok_or_else(|| BenchError::NoPort(name.clone()))?;
        let port = port.parse().ok().filter(|port| *port != 0);
        let port: u16 = port.ok_or_else(|| BenchError::Port(name.clone()))?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let fail = |source| BenchError::Host(name.clone(), source);
        let found = (host.as_str(), port).to_socket_addrs().map_err(fail)?.next();
        let addr = found.ok_or_else(|| fail(io::ErrorKind::NotFound.into()))?;
        servers.push(Server { addr, host });
    }
    Ok(servers.into())
}

fn setting(options: &Options, security: &Security, server: &Server) -> Setting {
    let srvr = security.word(server, "srvr", Duration::from_secs(2));
    Setting {
        servers: options.server.join(","),
        version: srvr.ok().as_deref().and_then(version_of),
        mix: options.mix.to_string(),
        connections: options.connections,
        in_flight: usize::from(options.in_flight),
        value_bytes: options.value_size as usize,
        keys: options.keys,
        rate: options.rate,
        warm_up_s: options.warm_up.as_secs_f64(),
    }
}

/// `3.9.5` from an answer to `srvr`; `None` if that four-letter word is not enabled.
fn version_of(srvr: &str) -> Option<String> {
    let line = srvr.lines().find_map(|line| line.strip_prefix("Zookeeper version: "))?;
    Some(line.split(['-', ',']).next().unwrap_or(line).trim().to_owned())
}

/// The run itself; returns what was counted, and the microseconds measured.
async fn measure(
    options: &Options,
    security: &Arc<Security>,
    servers: &Arc<[Server]>,
    znodes: Znodes,
    value: Vec<u8>,
    seed: u64,
) -> Result<(Totals, u64), BenchError> {
    let warm_up_us = options.warm_up.as_micros() as u64;
    let planned_us = (options.duration.as_micros() as u64).max(1);
    let connections = options.connections;
    let plan = Arc::new(Plan {
        mix: options.mix.clone(),
        znodes,
        value,
        in_flight: usize::from(options.in_flight),
        warm_up_us,
        interval_us: options.rate.map(|rate| f64::from(connections) * 1e6 / rate),
        ping_us: (options.session_timeout.as_micros() as u64 / 3).max(1000),
    });
    let end_us = Arc::new(AtomicU64::new(warm_up_us + planned_us));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u32;
    let threads = options.threads.unwrap_or((cores / 2).max(1)).min(connections);
    let (news_sender, mut news) = unbounded_channel();
    let mut starts = Vec::new();
    for thread in 0..threads {
        let share = Share {
            plan: plan.clone(),
            numbers: (thread..connections).step_by(threads as usize).collect(),
            connections,
            security: security.clone(),
            servers: servers.clone(),
            session_timeout_ms: timeout_ms(options),
            seed,
            end_us: end_us.clone(),
        };
        starts.push(start_thread(share, news_sender.clone())?);
    }
    drop(news_sender);
    all_connected(connections, &mut news).await?;
    let began = Instant::now();
    for start in starts {
        // A thread that has ended is noticed by the end of its messages.
        let _ended = start.send(began);
    }
    let totals = collect(began, warm_up_us, planned_us, &end_us, news).await;
    let measured_us = end_us.load(Ordering::Relaxed).saturating_sub(warm_up_us);
    if measured_us == 0 { Err(BenchError::Stopped) } else { Ok((totals, measured_us)) }
}

fn start_thread(
    share: Share,
    news: UnboundedSender<ThreadMessage>,
) -> Result<mpsc::Sender<Instant>, BenchError> {
    let (start, started) = mpsc::channel();
    std::thread::Builder::new()
        .name("load".to_owned())
        .spawn(move || work(share, news, &started))
        .map_err(|source| BenchError::System { what: "start a thread", source })?;
    Ok(start)
}

async fn all_connected(
    connections: u32,
    news: &mut UnboundedReceiver<ThreadMessage>,
) -> Result<(), BenchError> {
    let mut connected = 0;
    while connected < connections {
        let got = tokio::select! {
            got = news.recv() => got,
            _ = tokio::signal::ctrl_c() => return Err(BenchError::Stopped),
        };
        match got {
            Some(ThreadMessage::Connected) => connected += 1,
            // Others are open, so the server takes clients.
            Some(ThreadMessage::Failed { server, error: ClientError::Closed }) if 0 < connected => {
                return Err(BenchError::Limit { server, number: connected + 1, of: connections });
            }
            Some(ThreadMessage::Failed { server, error }) => {
                return Err(BenchError::Connect { server, source: error });
            }
            Some(ThreadMessage::Slice(_)) => {}
            None => return Err(BenchError::Stopped),
        }
    }
    Ok(())
}

/// Adds up the threads' slices until the last thread has ended, and prints the progress once a second.
async fn collect(
    began: Instant,
    warm_up_us: u64,
    planned_us: u64,
    end_us: &AtomicU64,
    mut news: UnboundedReceiver<ThreadMessage>,
) -> Totals {
    let mut totals = Totals::new(planned_us);
    let mut progress = Progress::new(io::stderr().is_terminal());
    // Seconds are counted from the beginning of the measured time, so the first line of the warm-up may be of less than a second.
    let mut second = -(warm_up_us.div_ceil(1_000_000) as i64);
    let mut is_stopping = false;
    loop {
        let due_us = (second + 1) * 1_000_000 + (warm_up_us + TELL_AFTER_US) as i64;
        let due = began + Duration::from_micros(due_us.max(0) as u64);
        tokio::select! {
            got = news.recv() => match got {
                Some(ThreadMessage::Slice(slice)) => totals.add(*slice),
                Some(ThreadMessage::Connected | ThreadMessage::Failed { .. }) => {}
                None => break,
            },
            () = tokio::time::sleep_until(due.into()) => {
                let (figures, troubles) = totals.second(second);
                say(&progress.line(second, &figures, troubles));
                second += 1;
            }
            _ = tokio::signal::ctrl_c(), if !is_stopping => {
                is_stopping = true;
                end_us.fetch_min((began.elapsed().as_micros() as u64).max(warm_up_us), Ordering::Relaxed);
                say("stopping: waiting for the operations under way");
            }
        }
    }
    // Seconds that ended less than TELL_AFTER_US ago. What remains after the last whole second is in the result alone.
    let ended_us = end_us.load(Ordering::Relaxed) as i64 - warm_up_us as i64;
    while (second + 1) * 1_000_000 <= ended_us {
        let (figures, troubles) = totals.second(second);
        say(&progress.line(second, &figures, troubles));
        second += 1;
    }
    totals
}

/// Removes the run's znodes; another Ctrl-C stops that.
async fn clean(
    security: Arc<Security>,
    server: Server,
    timeout_ms: i32,
    root: String,
) -> Result<(), BenchError> {
    let gone = root.clone();
    let removal = tokio::task::spawn_blocking(move || {
        let mut maker = ZnodeSetup::open(&security, &server, timeout_ms, PATIENCE)?;
        let removed = maker.remove(&gone)?;
        maker.close();
        Ok(removed)
    });
    tokio::select! {
        removed = removal => match removed.expect("removing does not panic") {
            Ok(_) => Ok(()),
            Err(source) => Err(BenchError::Remove { root, source }),
        },
        _ = tokio::signal::ctrl_c() => Err(BenchError::CleanupStopped(root)),
    }
}

/// Prints a line for people on standard error: standard output has the result.
fn say(line: &str) {
    // Standard error may be closed.
    let _unread = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_rates_are_read_with_their_units() {
        let of = |text: &str| parse_duration(text).map(|duration| duration.as_millis());
        assert_eq!(
            [of("1500ms"), of("2"), of("0.5s"), of("2m"), of("1h")],
            [Ok(1500), Ok(2000), Ok(500), Ok(120_000), Ok(3_600_000)]
        );
        assert!(of("2d").unwrap_err().contains("`d` is not a unit"));
        assert!(of("-2s").is_err() && of("s").is_err() && of("1e300h").is_err());
        assert!(
            parse_rate("0").is_err() && parse_rate("x").is_err() && parse_rate("1e3") == Ok(1000.0)
        );
    }

    #[test]
    fn version_is_the_number_alone() {
        let java =
            "Zookeeper version: 3.9.5-abc, built on 2025-01-01\nLatency min/avg/max: 0/0/0\n";
        assert_eq!(version_of(java).as_deref(), Some("3.9.5"));
        assert_eq!(version_of("srvr is not executed because it is not in the whitelist.\n"), None);
    }
}
