//! The command line and the exit code; everything else is in the library.
#![allow(clippy::disallowed_methods, reason = "the process's own environment and exit")]
#![allow(clippy::disallowed_types, reason = "the seed comes from here")]

use clap::{CommandFactory, Parser};
use oxkeeper::config::{self, Config, Environment, Launch, LogSettings, Settings};
use oxkeeper::net;
use oxkeeper::server::{self, Ready, ServerError, ServiceManager, logging};
use oxkeeper::tools::java_command::{self, Call};
use oxkeeper::tools::{
    bench, config_check, config_check_folders, four_letter_word, generate, status, toolkit_help,
    toolkits,
};
use rustix::fs::Access;
use std::ffi::OsString;
use std::io::{Read as _, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::process::ExitCode;

/// A ZooKeeper server for the same clients, configuration files and data files as ZooKeeper 3.9.
#[derive(Parser)]
#[command(
    version = oxkeeper::admin::long_version(),
    args_conflicts_with_subcommands = true,
    override_usage = "oxkeeper [start-foreground] [-Dkey=value...] [FILE | PORT DATADIR [TICKTIME [MAXCLIENTCNXNS]]]\n       \
                      oxkeeper config check [--json] [--all] [-Dkey=value...] FILE\n       \
                      oxkeeper status [--json] HOST[:PORT]...\n       \
                      oxkeeper bench [OPTIONS]"
)]
struct Arguments {
    /// A zoo.cfg, or a client port and a data directory. Default: conf/zoo.cfg if it exists, else port 2181 and ./data.
    #[arg(allow_hyphen_values = true, value_hint = clap::ValueHint::AnyPath)]
    arguments: Vec<String>,
    #[command(flatten)]
    logging: logging::Options,
    #[command(subcommand)]
    tool: Option<Tool>,
}

#[derive(clap::Subcommand)]
enum Tool {
    /// Put load on ZooKeeper servers, oxkeeper or any other, and measure throughput and latencies.
    Bench(Box<bench::Options>),
    /// Print, repair or chop a transaction log, as zkTxnLogToolkit.sh does.
    #[command(help_template = toolkit_help::TEMPLATE, override_usage = toolkit_help::TXN_LOG.usage, after_help = toolkit_help::TXN_LOG.arguments)]
    TxnLog(ToolkitArguments),
    /// Copy a transaction log up to a zxid.
    #[command(help_template = toolkit_help::TEMPLATE, override_usage = toolkit_help::LOG_CHOPPER.usage, after_help = toolkit_help::LOG_CHOPPER.arguments)]
    LogChopper(ToolkitArguments),
    /// Print a snapshot, as zkSnapShotToolkit.sh does.
    #[command(help_template = toolkit_help::TEMPLATE, override_usage = toolkit_help::SNAPSHOT_FORMAT.usage, after_help = toolkit_help::SNAPSHOT_FORMAT.arguments)]
    SnapshotFormat(ToolkitArguments),
    /// Compare two snapshots, as zkSnapshotComparer.sh does.
    #[command(help_template = toolkit_help::TEMPLATE, override_usage = toolkit_help::SNAPSHOT_COMPARE.usage, after_help = toolkit_help::SNAPSHOT_COMPARE.arguments)]
    SnapshotCompare(ToolkitArguments),
    /// Sum up a snapshot by subtree, as zkSnapshotRecursiveSummaryToolkit.sh does.
    #[command(help_template = toolkit_help::TEMPLATE, override_usage = toolkit_help::SNAPSHOT_SUMMARY.usage, after_help = toolkit_help::SNAPSHOT_SUMMARY.arguments)]
    SnapshotSummary(ToolkitArguments),
    /// Remove old snapshots and logs, as zkCleanup.sh does.
    #[command(help_template = toolkit_help::TEMPLATE, override_usage = toolkit_help::PURGE.usage, after_help = toolkit_help::PURGE.arguments)]
    Purge(ToolkitArguments),
    /// Ask a server a four-letter word, such as srvr; exit code 1 without an answer.
    #[command(name = "4lw", help_template = toolkit_help::TEMPLATE, override_usage = toolkit_help::FOUR_LETTER_WORD.usage, after_help = toolkit_help::FOUR_LETTER_WORD.arguments)]
    FourLetterWord(ToolkitArguments),
    /// Show the servers of an ensemble in a table; exit code 1 unless all answer, and one leads or is standalone.
    Status(status::Options),
    /// Make completions for a shell, or man pages.
    #[command(hide = true, subcommand)]
    Generate(generate::Generate),
    /// Check a configuration without starting a server.
    #[command(subcommand)]
    Config(ConfigTool),
    /// Print the version, and what it was built on.
    Version,
}

/// Arguments as those of ZooKeeper's tool of this purpose; `--json` prints one object a line.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
struct ToolkitArguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<String>,
}

impl Tool {
    /// The toolkit that was asked for: its command, how it runs, and its arguments.
    fn toolkit(&self) -> Option<(&'static str, toolkits::Tool, &[String])> {
        Some(match self {
            Self::TxnLog(given) => ("txn-log", toolkits::txn_log, &given.arguments),
            Self::LogChopper(given) => ("log-chopper", toolkits::log_chopper, &given.arguments),
            Self::SnapshotFormat(given) => {
                ("snapshot-format", toolkits::snapshot_format, &given.arguments)
            }
            Self::SnapshotCompare(given) => {
                ("snapshot-compare", toolkits::snapshot_compare, &given.arguments)
            }
            Self::SnapshotSummary(given) => {
                ("snapshot-summary", toolkits::snapshot_summary, &given.arguments)
            }
            Self::FourLetterWord(given) => {
                ("4lw", four_letter_word::run_strictly, &given.arguments)
            }
            Self::Purge(given) => ("purge", toolkits::purge, &given.arguments),
            Self::Bench(_)
            | Self::Config(_)
            | Self::Generate(_)
            | Self::Status(_)
            | Self::Version => return None,
        })
    }
}

#[derive(clap::Subcommand)]
enum ConfigTool {
    /// Show the effective value of each setting, and every problem; exit code 2 if there is a problem.
    Check(config_check::Options),
}

/// Limit on the bytes that are read of a key store or trust store.
const STORE_MAX: u64 = 16 << 20;
/// Exit code for invalid arguments or an invalid configuration (P-87).
const BAD_INVOCATION: u8 = 2;

fn main() -> ExitCode {
    let called = called_as_java();
    let as_java = called.is_some();
    let given = match called {
        None => without_help_of_help(command_first(std::env::args_os().collect())),
        Some(Call::Server(all)) => {
            std::iter::once("oxkeeper".to_owned()).chain(all).map(OsString::from).collect()
        }
        Some(Call::Tool(run, arguments)) => return ran(run, &arguments),
        Some(Call::Said { out, err, code }) => {
            // Both streams may be closed.
            let _unread = std::io::stdout().write_all(out.as_bytes());
            let _unread = std::io::stderr().write_all(err.as_bytes());
            return ExitCode::from(code);
        }
    };
    let Arguments { arguments, mut logging, tool } = Arguments::parse_from(given);
    logging.as_java = as_java;
    if let Some((name, run, arguments)) = tool.as_ref().and_then(Tool::toolkit) {
        let arguments = if name == "purge" { count_last(arguments) } else { arguments.to_vec() };
        return if asks_for_help(name, &arguments) { helped(name) } else { ran(run, &arguments) };
    }
    if let Some(code) = tool.as_ref().and_then(quick) {
        return code;
    }
    let env: Environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let arguments = match &tool {
        Some(Tool::Config(ConfigTool::Check(options))) => options.arguments.clone(),
        _ => arguments,
    };
    let launch = launch(&arguments, &env);
    let flags = launch.as_ref().map_or(&[][..], |launch| &launch.flags);
    let settings = match (&launch, &tool) {
        (Ok(launch), None) => LogSettings::of_server(launch, &env, as_java),
        _ => LogSettings::of_tool(),
    };
    let log = match logging::start(&logging, &env, flags, &settings) {
        Ok(log) => log,
        Err(error) => {
            logging::fatal(&error);
            return ExitCode::from(BAD_INVOCATION);
        }
    };
    let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), "oxkeeper");
    if let Some(Tool::Bench(options)) = tool {
        return benched(bench::run(&options, seed));
    }
    let launch = match launch {
        Ok(launch) => launch,
        Err(error) => return refused(&error),
    };
    if let Some(Tool::Config(ConfigTool::Check(options))) = tool {
        return check(&launch, &options, &env);
    }
    match config::load(&launch, &env) {
        Ok(mut config) => {
            config.audit_file = config.audit_file.or(settings.audit);
            serve(config, &launch, &env, log.format, seed)
        }
        Err(error) => {
            if let Some(audit) = config::Audit::of_flags(&env, &launch.flags, settings.audit) {
                server::AuditLog::log_refused_start(&audit);
            }
            refused(&error)
        }
    }
}

/// Runs a command that needs neither configuration nor log; `None`: it does.
fn quick(tool: &Tool) -> Option<ExitCode> {
    let mut out = std::io::stdout();
    // The reader of standard output may have closed the pipe.
    match tool {
        Tool::Version => {
            let _unread = writeln!(out, "oxkeeper {}", oxkeeper::admin::long_version());
            Some(ExitCode::SUCCESS)
        }
        Tool::Status(options) => {
            let (text, is_whole) = match status::run(options) {
                Ok(text) => text,
                Err(error) => {
                    logging::fatal(&error);
                    return Some(ExitCode::from(BAD_INVOCATION));
                }
            };
            let _unread = out.write_all(text.as_bytes());
            Some(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Tool::Generate(what) => match generate::run(what, &Arguments::command(), &mut out) {
            Ok(()) => Some(ExitCode::SUCCESS),
            Err(error) => {
                logging::fatal(&format!("can't write what was asked for: {error}"));
                Some(ExitCode::FAILURE)
            }
        },
        _ => None,
    }
}

/// Moves options of the log that stand before a command after it, where clap takes them: any other argument ends its search for commands.
/// Flags `-D` follow both, because clap takes all that follows the first of them for arguments.
fn command_first(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let (mut options, mut flags, mut at) = (Vec::new(), Vec::new(), 1);
    while let Some(argument) = arguments.get(at) {
        let text = argument.to_string_lossy();
        if text.starts_with("-D") {
            flags.push(at);
            at += 1;
        } else if text.starts_with("--log-") {
            let end = at + if text.contains('=') { 1 } else { 2 };
            options.extend(at..end.min(arguments.len()));
            at = end;
        } else {
            break;
        }
    }
    let rest = at.min(arguments.len())..arguments.len();
    let options_end = 1 + options.len();
    let order = std::iter::once(0).filter(|_| !arguments.is_empty()).chain(options).chain(rest);
    let (order, flags): (Vec<usize>, Vec<OsString>) =
        (order.collect(), flags.into_iter().map(|at| arguments[at].clone()).collect());
    arguments = order.into_iter().map(|at| std::mem::take(&mut arguments[at])).collect();
    let text = |at: usize| arguments.get(at).map(|argument| argument.to_string_lossy());
    let all = Arguments::command();
    let (mut command, mut end) = (&all, options_end);
    while let Some(inner) = text(end).and_then(|name| command.find_subcommand(name.as_ref())) {
        (command, end) = (inner, end + 1);
    }
    if end > options_end {
        arguments[1..end].rotate_left(options_end - 1);
    }
    let place = end.max(options_end).min(arguments.len());
    arguments.splice(place..place, flags);
    arguments
}

/// What is asked for if this program was called by the name `java`.
fn called_as_java() -> Option<Call> {
    let mut all = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    all.next().filter(|name| java_command::is_called_so(name))?;
    let versions = java_command::Versions {
        full: &oxkeeper::admin::version(),
        long: oxkeeper::admin::long_version(),
    };
    Some(java_command::parse(&all.collect::<Vec<_>>(), &versions))
}

/// True if an argument of a toolkit asks for help. ZooKeeper's `TxnLogToolkit` has the option -h itself.
fn asks_for_help(name: &str, arguments: &[String]) -> bool {
    let asks = |argument: &String| argument == "--help" || argument == "-h" && name != "txn-log";
    arguments.iter().any(asks)
}

/// ZooKeeper's `PurgeTxnLog` takes `-n COUNT` after the folders only.
fn count_last(arguments: &[String]) -> Vec<String> {
    let at = arguments.iter().position(|argument| argument == "-n");
    let Some(at) = at.filter(|at| at + 2 <= arguments.len()) else { return arguments.to_vec() };
    let (before, rest) = arguments.split_at(at);
    let (count, after) = rest.split_at(2);
    [before, after, count].concat()
}

/// `help --help` is `help`.
fn without_help_of_help(mut given: Vec<OsString>) -> Vec<OsString> {
    let asks = |given: &[OsString]| given.get(1).is_some_and(|word| word == "help");
    while asks(&given) && given.get(2).is_some_and(|word| word == "-h" || word == "--help") {
        given.remove(2);
    }
    given
}

/// Prints the help of a toolkit.
fn helped(name: &str) -> ExitCode {
    let mut all = Arguments::command();
    all.build();
    if let Some(tool) = all.find_subcommand_mut(name) {
        // The reader of standard output may have closed the pipe.
        let _unread = write!(std::io::stdout(), "{}", tool.render_help());
    }
    ExitCode::SUCCESS
}

/// Runs a toolkit with the process's own streams. A reader that closes the pipe, as `head` does, ends it quietly.
fn ran(run: toolkits::Tool, arguments: &[String]) -> ExitCode {
    let (mut input, mut err) = (std::io::stdin().lock(), std::io::stderr().lock());
    // Not through std's own buffer, which looks for the last end of a line in each piece and writes what comes after it by itself.
    let mut out = match std::io::stdout().as_fd().try_clone_to_owned() {
        Ok(out) => std::io::BufWriter::with_capacity(1 << 17, std::fs::File::from(out)),
        Err(error) => {
            let _unread = writeln!(err, "oxkeeper: open standard output: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut streams = toolkits::Streams { input: &mut input, out: &mut out, err: &mut err };
    let ended = run(arguments, &mut streams);
    let ended = ended.and_then(|code| Ok(out.flush().map(|()| code)?));
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(toolkits::Failed::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _unread = out.flush().and_then(|()| writeln!(err, "oxkeeper: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Parses the arguments; without a file or a port, `conf/zoo.cfg` is used if it exists.
fn launch(arguments: &[String], env: &Environment) -> Result<Launch, config::ConfigError> {
    let mut launch = config::parse_args(arguments, env)?;
    if launch.settings == Settings::Defaults && std::path::Path::new("conf/zoo.cfg").exists() {
        launch.settings = Settings::File("conf/zoo.cfg".into());
    }
    Ok(launch)
}

fn refused(error: &config::ConfigError) -> ExitCode {
    for line in error.to_string().lines() {
        logging::fatal(line);
    }
    ExitCode::from(BAD_INVOCATION)
}

fn serve(
    config: Config,
    launch: &Launch,
    env: &Environment,
    format: logging::Format,
    seed: u64,
) -> ExitCode {
    abort_on_panic();
    if let Some(ensemble) = &config.ensemble {
        logging::set_server_id(ensemble.my_id);
    }
    let settings = launch.settings.to_string();
    tracing::info!(version = %oxkeeper::admin::long_version(), %settings, "starting");
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let exposed = config::secret_files(&config)
        .into_iter()
        .filter_map(|(setting, path)| config::exposed(&setting, &path, rights_of(&path)?));
    for risk in config::risks(&config).into_iter().chain(exposed) {
        tracing::warn!("{risk}");
    }
    if let Some(file) = &config.krb5_conf {
        net::gss::set_configuration(file);
    }
    // One core is left to the log and snapshot threads: with a worker on every core, each flush woke two workers, and a
    // single durable write took a third longer.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let workers = cores.saturating_sub(1).max(1);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            logging::fatal(&format!("can't start worker threads: {error}; raise ulimit -u"));
            return ExitCode::FAILURE;
        }
    };
    let manager = ServiceManager::of(env);
    let served = runtime
        .block_on(server::run(config, seed, manager, |ready| announce(ready, &settings, format)));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            logging::fatal(&last_line(&error, launch, env));
            ExitCode::from(error.exit_code())
        }
    }
}

/// A broken invariant ends the process in every profile: a half-applied transaction must not be served.
fn abort_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        logging::finish();
        std::process::abort();
    }));
}

fn state_of_folder(path: &std::path::Path) -> config_check_folders::FolderState {
    use config_check_folders::FolderState::{Closed, File, Missing, Writable};
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Missing,
        Ok(found) if !found.is_dir() => File,
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Missing,
        _ => match rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => Writable,
            Err(_) => Closed,
        },
    }
}

/// Whether a port of that host can be bound on this machine; true for a host that is unknown.
fn is_address_here(host: &str) -> bool {
    let Ok(address) = net::resolve(host.trim_matches(['[', ']']), 0) else { return true };
    let bound = std::net::TcpListener::bind(address);
    bound.err().is_none_or(|error| error.kind() != std::io::ErrorKind::AddrNotAvailable)
}

/// The rights on a file with secrets; `None`: there is no such file, or it has certificates alone.
fn rights_of(path: &std::path::Path) -> Option<config::FileRights> {
    let file = std::fs::metadata(path).ok()?;
    let holds_certificates_alone =
        || read_store(path).is_ok_and(|store| net::tls::stores::holds_certificates_alone(&store));
    if file.is_file() && holds_certificates_alone() {
        return None;
    }
    let user = rustix::process::geteuid().as_raw();
    Some(config::FileRights { mode: file.mode(), owner: file.uid(), user })
}

fn read_store(path: &std::path::Path) -> std::io::Result<Vec<u8>> {
    let (mut store, file) = (Vec::new(), std::fs::File::open(path)?);
    file.take(STORE_MAX).read_to_end(&mut store)?;
    Ok(store)
}

/// Why the server ended, on one line: the setting and its place, what happened, what to do.
fn last_line(error: &ServerError, launch: &Launch, env: &Environment) -> String {
    let line = error.line();
    let blamed = error.key().and_then(|key| {
        let settings = config::check(launch, env).settings;
        let set = |key: &str| {
            let named = |written: &str| written.trim_start_matches("-Dzookeeper.") == key;
            settings.iter().find(|s| named(&s.key) && s.place.is_some())
        };
        // `dataLogDir` instead of `dataDir` if the error names its path.
        let log_dir = set("dataLogDir").filter(|s| key == "dataDir" && line.contains(&s.value));
        // The store, if its password is not set.
        let of_store = || set(&format!("{}.location", key.rsplit_once('.')?.0));
        let setting = log_dir.or_else(|| set(key)).or_else(of_store)?;
        Some(format!("{}: {}={}: ", setting.place.as_ref()?, setting.key, setting.value))
    });
    let advice = error.advice().map_or(String::new(), |advice| format!("; {advice}"));
    format!("{}{line}{advice}", blamed.unwrap_or_default())
}

fn announce(ready: &Ready, settings: &str, format: logging::Format) {
    match format {
        logging::Format::Text => {
            let text = ready.banner(env!("CARGO_PKG_VERSION"), settings);
            // Standard output may be closed.
            let _unread = std::io::stdout().write_all(text.as_bytes());
        }
        logging::Format::Json | logging::Format::Java => tracing::info!(
            address = %ready.address,
            %settings,
            data_dir = %ready.data_dir.display(),
            data_log_dir = %ready.data_log_dir.display(),
            loaded = %ready.restored(),
            ensemble = ready.member.as_ref().map(|member| display(member.ensemble())),
            own_addresses = ready.member.as_ref().map(|member| display(member.ports())),
            took_ms = ready.took_ms,
            "serving"
        ),
    }
}

fn benched(ended: Result<bench::Ended, bench::BenchError>) -> ExitCode {
    match ended {
        Ok(bench::Ended::Well) => ExitCode::SUCCESS,
        Ok(bench::Ended::WithFailures) => ExitCode::FAILURE,
        Err(error) => {
            logging::fatal(&oxkeeper::model::chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// Runs `config check`, and prints the result on standard output.
fn check(launch: &Launch, options: &config_check::Options, env: &Environment) -> ExitCode {
    if launch.settings == Settings::Defaults {
        logging::fatal(
            "config check needs a file, such as /etc/oxkeeper/zoo.cfg; oxkeeper config check --help",
        );
        return ExitCode::from(BAD_INVOCATION);
    }
    let mut check = config::check(launch, env);
    config_check::look_up(&mut check, |host| net::resolve(host, 0));
    config_check::look_at_files(&mut check, rights_of);
    config_check_folders::look_at_folders(&mut check, state_of_folder);
    config_check_folders::look_at_data(&mut check, state_of_folder, |path| {
        std::fs::File::open(path).map(drop)
    });
    config_check_folders::look_at_addresses(&mut check, is_address_here);
    if let Ok(config) = config::load(launch, env) {
        if let Some(file) = &config.krb5_conf {
            net::gss::set_configuration(file);
        }
        let fault = server::check_logins(&config).err();
        config_check::look_at_logins(&mut check, fault.map(|error| error.line()));
    }
    let text = config_check::render(&mut check, options);
    // The reader may have closed the pipe, as `head` does.
    let _unread = std::io::stdout().write_all(text.as_bytes());
    if check.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(BAD_INVOCATION) }
}
