//! Where the log goes, and how much of it: consoles and files, as text for people, JSON for collectors, or lines as Java writes them.

use super::environment;
use super::java_line::JavaLine;
use super::log_file::{LogFileWriter, TROUBLE};
use super::log_pace::{Counted, LogPace};
use crate::config::{Appender, Environment, LogSettings, Stream, flag_value};
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::Metadata;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub use super::java_line::set_server_id;

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum Format {
    /// Time, level, message, `key=value`.
    #[default]
    Text,
    /// One object per line.
    Json,
    /// As ZooKeeper's own pattern has it: `2026-11-22 18:00:00,123 [myid:1] - INFO  [main:Class@1] - message key=value`.
    Java,
}

/// Logging options of the command line; the environment and flags give the defaults.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Log level: error, warn, info, debug or trace, or one per module as in RUST_LOG. Default: RUST_LOG, else
    /// -Doxkeeper.log.level, else that of logback.xml, else info.
    #[arg(long, global = true, value_name = "LEVEL", display_order = 900)]
    pub log_level: Option<String>,
    /// Log format. Default: -Doxkeeper.log.format, else java with a logback.xml or under ZooKeeper's scripts, else text.
    #[arg(long, global = true, value_name = "FORMAT", display_order = 901)]
    pub log_format: Option<Format>,
    /// Whether the program was called as `java` is called.
    #[arg(skip)]
    pub as_java: bool,
}

/// Where lines go, from the start on.
static OUTPUTS: OnceLock<Vec<Output>> = OnceLock::new();

/// A log that was started; the last lines are written when it is dropped.
pub struct Log {
    pub format: Format,
}

impl Drop for Log {
    fn drop(&mut self) {
        finish();
    }
}

/// Has the last lines of all files written, unless that takes long.
pub fn finish() {
    for output in OUTPUTS.get().into_iter().flatten() {
        if let Sink::File(file) = &output.sink {
            file.finish();
        }
    }
}

/// Starts the log, and warns of settings of the log that are not understood.
///
/// * `flags`: our own `-D` arguments; those of `SERVER_JVMFLAGS` and `JVMFLAGS` count as well.
///
/// # Errors
/// If the command line or a flag has a level that is none. `RUST_LOG` is for all programs of a machine, and a `logback.xml` for a Java
/// server, so their levels that are not understood are warnings.
pub fn start(
    options: &Options,
    env: &Environment,
    flags: &[String],
    settings: &LogSettings,
) -> Result<Log, String> {
    let (level, format, complaints) = choose(options, env, flags, settings);
    let parsed = known_levels(&level)
        .and_then(|level| EnvFilter::builder().parse(level).map_err(|error| error.to_string()));
    let (filter, complaint) = match parsed {
        Ok(filter) => (filter, None),
        Err(error) if is_own(&level, options, env, flags) => {
            return Err(format!("log level {level}: {error}"));
        }
        Err(error) => (
            EnvFilter::new("info"),
            Some(format!("log level {level}: {error}, so info is used; correct the level")),
        ),
    };
    if settings.appenders.iter().any(|appender| matches!(appender, Appender::File(_))) {
        super::limits::survive_file_limit_early();
    }
    let outputs =
        OUTPUTS.get_or_init(|| settings.appenders.iter().filter_map(Output::of).collect());
    let is_for_people = outputs.iter().all(|output| output.sink.is_terminal());
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(Outputs(outputs))
        .with_ansi(is_for_people && format == Format::Text);
    let counted = tracing_subscriber::fmt::format().with_target(false);
    match format {
        Format::Text => {
            let format = Counted { format: counted, is_json: false };
            log.event_format(format).finish().with(LogPace::default()).init();
        }
        Format::Json => {
            let format = Counted { format: counted.json().flatten_event(true), is_json: true };
            log.json().event_format(format).finish().with(LogPace::default()).init();
        }
        Format::Java => {
            // An operator who asks for this form by its name gets ZooKeeper's own pattern.
            let is_asked_for = options.log_format.is_some()
                || flag_value(env, flags, "oxkeeper.log.format").is_some();
            let pattern = settings.pattern.clone().filter(|_| !is_asked_for);
            let format = Counted { format: JavaLine::new(pattern), is_json: false };
            log.event_format(format).finish().with(LogPace::default()).init();
        }
    }
    let complaints = complaints.into_iter().chain(settings.warnings.iter().cloned());
    complaints.chain(complaint).for_each(|text| tracing::warn!("{text}"));
    Ok(Log { format })
}

/// Logs why the process ends, and prints it on standard error if it would not stand there. Where the system has denied permission,
/// the line names the user of this process: another user may own the files.
pub fn fatal(reason: &str) {
    let is_logged = tracing::enabled!(tracing::Level::ERROR);
    let is_denied = reason.contains("Permission denied");
    let user = is_denied.then(environment::user_with_id);
    if is_logged {
        tracing::error!(user = user.as_ref().map(display), "{reason}");
    }
    let user = user.map_or_else(String::new, |user| format!(" user={user}"));
    let is_seen = |output: &Output| {
        matches!(output.sink, Sink::Console { stream: Stream::Err, .. })
            && LevelFilter::ERROR <= output.threshold
    };
    if !is_logged || !OUTPUTS.get().into_iter().flatten().any(is_seen) {
        let _lost = writeln!(io::stderr(), "ERROR {reason}{user}");
    }
}

/// One place where lines go.
struct Output {
    threshold: LevelFilter,
    sink: Sink,
}

enum Sink {
    Console {
        stream: Stream,
        /// Lines that could not be written since the last one that could.
        lost: AtomicU64,
    },
    File(LogFileWriter),
}

impl Output {
    /// `None`: there is no thread for it; the server will not start without threads either.
    fn of(appender: &Appender) -> Option<Self> {
        Some(match appender {
            Appender::Console { stream, threshold } => {
                let sink = Sink::Console { stream: *stream, lost: AtomicU64::new(0) };
                Self { threshold: *threshold, sink }
            }
            Appender::File(file) => {
                let sink = Sink::File(LogFileWriter::start(file)?);
                Self { threshold: file.threshold, sink }
            }
        })
    }
}

impl Sink {
    fn is_terminal(&self) -> bool {
        match self {
            Self::Console { stream: Stream::Out, .. } => io::stdout().is_terminal(),
            Self::Console { stream: Stream::Err, .. } => io::stderr().is_terminal(),
            Self::File(_) => false,
        }
    }

    fn put(&self, line: &[u8]) {
        match self {
            Self::Console { stream: Stream::Out, lost } => {
                put(&mut io::stdout().lock(), line, lost)
            }
            Self::Console { stream: Stream::Err, lost } => {
                put(&mut io::stderr().lock(), line, lost)
            }
            Self::File(file) => file.put(&String::from_utf8_lossy(line)),
        }
    }
}

/// Errors are counted: a full disk or a closed pipe must not end the server.
fn put(stream: &mut impl Write, line: &[u8], lost: &AtomicU64) {
    if stream.write_all(line).and_then(|()| stream.flush()).is_err() {
        lost.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let missing = lost.swap(0, Ordering::Relaxed);
    if missing > 0 {
        let _lost =
            writeln!(stream, "oxkeeper: {missing} log lines before this one could not be written");
    }
}

/// Gives each line to the outputs that want its level.
struct Outputs(&'static [Output]);

impl<'w> MakeWriter<'w> for Outputs {
    type Writer = Wanted;

    fn make_writer(&'w self) -> Wanted {
        Wanted { outputs: self.0, level: LevelFilter::ERROR, is_trouble: false }
    }

    fn make_writer_for(&'w self, event: &Metadata<'_>) -> Wanted {
        let is_trouble = event.target() == TROUBLE;
        Wanted { outputs: self.0, level: (*event.level()).into(), is_trouble }
    }
}

/// Writes one line.
struct Wanted {
    outputs: &'static [Output],
    level: LevelFilter,
    /// It is about the files, so it does not go there.
    is_trouble: bool,
}

impl Write for Wanted {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.is_trouble {
            let _lost = io::stderr().write_all(line);
            return Ok(line.len());
        }
        for output in self.outputs.iter().filter(|output| self.level <= output.threshold) {
            output.sink.put(line);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The levels as `EnvFilter` reads them, which takes an unknown word for the name of a module and then logs nothing else.
fn known_levels(text: &str) -> Result<String, String> {
    let known = |part: &str| match part.trim() {
        "warning" => Ok("warn".to_owned()),
        part if part.contains('=') || part.starts_with("oxkeeper") => Ok(part.to_owned()),
        part if part.parse::<tracing::level_filters::LevelFilter>().is_ok() => Ok(part.to_owned()),
        part => Err(format!("{part} is not a level; use error, warn, info, debug or trace")),
    };
    let parts: Result<Vec<String>, String> = text.split(',').map(known).collect();
    Ok(parts?.join(","))
}

/// Whether the level that counts is that of the command line or of a flag.
fn is_own(level: &str, options: &Options, env: &Environment, flags: &[String]) -> bool {
    if options.log_level.is_some() || env.contains_key("RUST_LOG") {
        return options.log_level.as_deref() == Some(level);
    }
    flag_value(env, flags, "oxkeeper.log.level").as_deref() == Some(level)
}

/// Level, format, and warnings. The command line wins, then `RUST_LOG`, then flags, then a `logback.xml`.
fn choose(
    options: &Options,
    env: &Environment,
    flags: &[String],
    settings: &LogSettings,
) -> (String, Format, Vec<String>) {
    let flag = |name: &str| flag_value(env, flags, &format!("oxkeeper.log.{name}"));
    let level = options.log_level.clone().or_else(|| env.get("RUST_LOG").cloned());
    let level = level.or_else(|| flag("level")).filter(|level| !level.trim().is_empty());
    let level = level.or_else(|| settings.levels.clone());
    let mut complaints = Vec::new();
    let default = if options.as_java || settings.is_logback { Format::Java } else { Format::Text };
    let format = options.log_format.unwrap_or_else(|| match flag("format").as_deref() {
        None => default,
        Some("text") => Format::Text,
        Some("json") => Format::Json,
        Some("java") => Format::Java,
        Some(other) => {
            complaints.push(format!("-Doxkeeper.log.format={other}: use text, json or java"));
            default
        }
    });
    (level.unwrap_or_else(|| "info".to_owned()), format, complaints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_wins_then_rust_log_then_flags() {
        let env = |pairs: &[(&str, &str)]| -> Environment {
            pairs.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect()
        };
        let java = ("SERVER_JVMFLAGS", "-Doxkeeper.log.level=warn -Doxkeeper.log.format=json");
        let plain = Options::default();
        let choose = |options: &Options, env: &Environment, flags: &[String]| {
            super::choose(options, env, flags, &LogSettings::default())
        };
        assert_eq!(choose(&plain, &env(&[]), &[]), ("info".to_owned(), Format::Text, vec![]));
        assert_eq!(choose(&plain, &env(&[java]), &[]), ("warn".to_owned(), Format::Json, vec![]));
        let both = env(&[java, ("RUST_LOG", "debug")]);
        assert_eq!(choose(&plain, &both, &[]).0, "debug");
        let (log_level, log_format) = (Some("error".to_owned()), Some(Format::Text));
        let options = Options { log_level, log_format, as_java: true };
        assert_eq!(choose(&options, &both, &[]), ("error".to_owned(), Format::Text, vec![]));
        assert_eq!(known_levels("warning"), Ok("warn".to_owned()));
        assert_eq!(
            known_levels("INFO, oxkeeper::net=debug"),
            Ok("INFO,oxkeeper::net=debug".to_owned())
        );
        assert!(known_levels("foo").unwrap_err().starts_with("foo is not a level"));
        let wrong = choose(&plain, &env(&[]), &["-Doxkeeper.log.format=xml".to_owned()]);
        assert_eq!((wrong.1, wrong.2.len()), (Format::Text, 1));
    }

    #[test]
    fn scripts_and_a_logback_file_make_lines_of_javas_form() {
        let (env, none) = (Environment::new(), LogSettings::default());
        let as_java = Options { as_java: true, ..Options::default() };
        assert_eq!(choose(&as_java, &env, &[], &none).1, Format::Java);
        let levels = Some("warn,oxkeeper::store=debug".to_owned());
        let logback = LogSettings { is_logback: true, levels, ..none };
        let found = choose(&Options::default(), &env, &[], &logback);
        assert_eq!((found.0.as_str(), found.1), ("warn,oxkeeper::store=debug", Format::Java));
        let flags = ["-Doxkeeper.log.format=json", "-Doxkeeper.log.level=info"];
        let flags = flags.map(str::to_owned);
        let found = choose(&as_java, &env, &flags, &logback);
        assert_eq!((found.0.as_str(), found.1), ("info", Format::Json));
    }
}
