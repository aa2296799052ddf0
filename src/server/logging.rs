//! Where the log goes, and how much of it: standard error, as text for people or JSON for collectors.

use super::log_pace::{Counted, LogPace};
use crate::config::{Environment, flag_value};
use std::io::{self, IsTerminal, Write};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum Format {
    /// Time, level, message, `key=value`.
    #[default]
    Text,
    /// One object per line.
    Json,
}

/// Logging options of the command line; the environment and flags give the defaults.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Log level: error, warn, info, debug or trace, or one per module as in RUST_LOG. Default: RUST_LOG, else
    /// -Doxkeeper.log.level, else info.
    #[arg(long, global = true, value_name = "LEVEL", display_order = 900)]
    pub log_level: Option<String>,
    /// Log format. Default: -Doxkeeper.log.format, else text.
    #[arg(long, global = true, value_name = "FORMAT", display_order = 901)]
    pub log_format: Option<Format>,
}

/// Starts the log, and warns of options that are not understood. Returns the format chosen.
///
/// * `flags`: our own `-D` arguments; those of `SERVER_JVMFLAGS` and `JVMFLAGS` count as well.
pub fn start(options: &Options, env: &Environment, flags: &[String]) -> Format {
    let (level, format, complaints) = choose(options, env, flags);
    let parsed = known_levels(&level)
        .and_then(|level| EnvFilter::builder().parse(level).map_err(|error| error.to_string()));
    let (filter, complaint) = match parsed {
        Ok(filter) => (filter, None),
        Err(error) => {
            (EnvFilter::new("info"), Some(format!("log level {level}: {error}; info is used")))
        }
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Unfailing(std::io::stderr()))
        .with_ansi(std::io::stderr().is_terminal());
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
    }
    complaints.into_iter().chain(complaint).for_each(|text| tracing::warn!("{text}"));
    format
}

/// Logs why the process ends, or prints it on standard error if the levels that were asked for hide errors.
pub fn fatal(reason: &str) {
    if tracing::enabled!(tracing::Level::ERROR) {
        tracing::error!("{reason}");
    } else {
        let _lost = writeln!(io::stderr(), "ERROR {reason}");
    }
}

/// Standard error, errors ignored: a full disk or a closed pipe must not end the server.
struct Unfailing(std::io::Stderr);

impl Write for Unfailing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(self.0.write(bytes).unwrap_or(bytes.len()))
    }

    fn flush(&mut self) -> io::Result<()> {
        let _lost = self.0.flush();
        Ok(())
    }
}

/// The levels as `EnvFilter` reads them, which takes an unknown word for the name of a module and then logs nothing else.
fn known_levels(text: &str) -> Result<String, String> {
    let known = |part: &str| match part.trim() {
        "warning" => Ok("warn".to_owned()),
        part if part.contains('=') || part.starts_with("oxkeeper") => Ok(part.to_owned()),
        part if part.parse::<tracing::level_filters::LevelFilter>().is_ok() => Ok(part.to_owned()),
        part => Err(format!("{part} is no level; use error, warn, info, debug or trace")),
    };
    let parts: Result<Vec<String>, String> = text.split(',').map(known).collect();
    Ok(parts?.join(","))
}

/// Level, format, and warnings. The command line wins, then `RUST_LOG`, then flags.
fn choose(options: &Options, env: &Environment, flags: &[String]) -> (String, Format, Vec<String>) {
    let flag = |name: &str| flag_value(env, flags, &format!("oxkeeper.log.{name}"));
    let level = options.log_level.clone().or_else(|| env.get("RUST_LOG").cloned());
    let level = level.or_else(|| flag("level")).filter(|level| !level.trim().is_empty());
    let mut complaints = Vec::new();
    let format = options.log_format.unwrap_or_else(|| match flag("format").as_deref() {
        None | Some("text") => Format::Text,
        Some("json") => Format::Json,
        Some(other) => {
            complaints.push(format!("-Doxkeeper.log.format={other}: use text or json"));
            Format::Text
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
        assert_eq!(choose(&plain, &env(&[]), &[]), ("info".to_owned(), Format::Text, vec![]));
        assert_eq!(choose(&plain, &env(&[java]), &[]), ("warn".to_owned(), Format::Json, vec![]));
        let both = env(&[java, ("RUST_LOG", "debug")]);
        assert_eq!(choose(&plain, &both, &[]).0, "debug");
        let told = Options { log_level: Some("error".to_owned()), log_format: Some(Format::Text) };
        assert_eq!(choose(&told, &both, &[]), ("error".to_owned(), Format::Text, vec![]));
        assert_eq!(known_levels("warning"), Ok("warn".to_owned()));
        assert_eq!(
            known_levels("INFO, oxkeeper::net=debug"),
            Ok("INFO,oxkeeper::net=debug".to_owned())
        );
        assert!(known_levels("foo").unwrap_err().starts_with("foo is no level"));
        let wrong = choose(&plain, &env(&[]), &["-Doxkeeper.log.format=xml".to_owned()]);
        assert_eq!((wrong.1, wrong.2.len()), (Format::Text, 1));
    }
}
