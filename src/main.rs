//! Arguments, logging, exit code; all else is the library.
#![allow(clippy::disallowed_methods, reason = "the process's own environment and exit")]
#![allow(clippy::disallowed_types, reason = "the seed comes from here")]

use clap::Parser;
use oxkeeper::config::{self, Config, Environment, Settings};
use oxkeeper::server;
use oxkeeper::tools::bench;
use std::io::Write;
use std::process::ExitCode;

/// A ZooKeeper server: same clients, same configuration, same files.
#[derive(Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    override_usage = "oxkeeper [start-foreground] [-Dkey=value...] [FILE | PORT DATADIR [TICKTIME [MAXCLIENTCNXNS]]]\n       \
                      oxkeeper bench [OPTIONS]"
)]
struct Arguments {
    /// A zoo.cfg, or a port and a data directory. Without any: conf/zoo.cfg if it is there, else port 2181 and ./data.
    #[arg(allow_hyphen_values = true)]
    arguments: Vec<String>,
    #[command(subcommand)]
    tool: Option<Tool>,
}

#[derive(clap::Subcommand)]
enum Tool {
    /// Put load on ZooKeeper servers, ours or any other, and measure throughput and latencies.
    Bench(bench::Options),
}

/// Exit code for arguments or a configuration that can't be used (P-87).
const BAD_INVOCATION: u8 = 2;

fn main() -> ExitCode {
    let Arguments { arguments, tool } = Arguments::parse();
    start_logging();
    let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), "oxkeeper");
    if let Some(Tool::Bench(options)) = tool {
        return benched(bench::run(&options, seed));
    }
    let env: Environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let (config, source) = match configure(&arguments, &env) {
        Ok(configured) => configured,
        Err(error) => {
            for line in error.to_string().lines() {
                tracing::error!("{line}");
            }
            return ExitCode::from(BAD_INVOCATION);
        }
    };
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let data_dir = config.data_dir.display().to_string();
    // One core is left to the log and snapshot threads: with a worker on every core, each flush woke two of them, and a
    // single durable write took a third longer.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let workers = cores.saturating_sub(1).max(1);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "start the runtime");
            return ExitCode::FAILURE;
        }
    };
    let served =
        runtime.block_on(server::run(config, seed, |address| banner(address, &data_dir, &source)));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", error.line());
            ExitCode::from(error.exit_code())
        }
    }
}

fn benched(ended: Result<bench::Ended, bench::BenchError>) -> ExitCode {
    match ended {
        Ok(bench::Ended::Well) => ExitCode::SUCCESS,
        Ok(bench::Ended::WithFailures) => ExitCode::FAILURE,
        Err(error) => {
            tracing::error!("{}", server::chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// Reads the configuration; names where it came from.
fn configure(
    arguments: &[String],
    env: &Environment,
) -> Result<(Config, String), config::ConfigError> {
    let mut launch = config::parse_args(arguments, env)?;
    if launch.settings == Settings::Defaults && std::path::Path::new("conf/zoo.cfg").exists() {
        launch.settings = Settings::File("conf/zoo.cfg".into());
    }
    let source = match &launch.settings {
        Settings::File(path) => path.display().to_string(),
        Settings::Positional(_) => "the arguments".to_owned(),
        Settings::Defaults => "built-in defaults".to_owned(),
    };
    Ok((config::load(&launch, env)?, source))
}

fn start_logging() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("OXKEEPER_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .init();
}

fn banner(address: std::net::SocketAddr, data_dir: &str, source: &str) {
    let (version, port) = (env!("CARGO_PKG_VERSION"), address.port());
    let text = format!(
        "oxkeeper {version} serves ZooKeeper clients on {address}\n  settings  {source}\n  data      {data_dir}\n  \
         try       echo srvr | nc 127.0.0.1 {port}\n"
    );
    // Nobody may be reading.
    let _unread = std::io::stdout().write_all(text.as_bytes());
}
