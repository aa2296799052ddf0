//! Assembles the [`Config`] of a standalone server.

use std::collections::BTreeMap;

use super::check::Checker;
use super::system::SystemProperties;
use super::{
    Config, ConfigError, Environment, Place, Problem, PropertiesError, explicit, keys, properties,
    tuning,
};

/// What is served when no file is named: one server on the usual port, data in `./data`.
pub const DEFAULT_CONFIG: &str = "tickTime=2000\nclientPort=2181\ndataDir=./data\n4lw.commands.whitelist=ruok, srvr, stat, mntr, conf, isro\n";

/// A configuration file, already read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name, for messages.
    pub name: &'a str,
    /// Its bytes.
    pub text: &'a [u8],
    /// First line of the file `myid` in its `dataDir`, if that exists.
    pub my_id: Option<&'a str>,
}

/// Reads a configuration file's text.
///
/// * `env`: environment variables; `SERVER_JVMFLAGS` and `JVMFLAGS` may hold `-D` flags.
/// * `flags`: further `-D` flags, which win over those.
///
/// # Errors
/// Every [`Problem`] there is, not only the first.
///
/// Source: `QuorumPeerConfig.parseProperties` and the classes that read each system property,
/// ZooKeeper 3.9.5.
pub fn parse(
    source: Source<'_>,
    env: &Environment,
    flags: &[String],
) -> Result<Config, ConfigError> {
    let entries = properties::parse(source.text).map_err(|error| {
        let PropertiesError::Unicode { line } = error;
        let place = Place::Line { file: source.name.to_owned(), line };
        Problem { place, text: error.to_string() }
    })?;
    let checker = Checker::of_file(source.name, entries);
    assemble(checker, SystemProperties::from_flags(env, flags), source.my_id)
}

/// Reads the command-line form `port dataDir [tickTime] [maxClientCnxns]`.
///
/// * `arguments`: two to four of them; others are not looked at.
///
/// # Errors
/// Every [`Problem`] there is.
///
/// Source: `ServerConfig.parse(String[])`, ZooKeeper 3.9.5: no limit on connections unless given.
pub fn parse_positional(
    arguments: &[String],
    env: &Environment,
    flags: &[String],
) -> Result<Config, ConfigError> {
    let names = ["clientPort", "dataDir", "tickTime", "maxClientCnxns"];
    let mut settings: BTreeMap<_, _> = names.into_iter().zip(arguments.iter().cloned()).collect();
    settings.entry("maxClientCnxns").or_insert_with(|| "0".to_owned());
    let checker = Checker::of_arguments(settings.into_iter());
    assemble(checker, SystemProperties::from_flags(env, flags), None)
}

fn assemble(
    mut checker: Checker,
    mut system: SystemProperties,
    my_id: Option<&str>,
) -> Result<Config, ConfigError> {
    let explicit = explicit::take(&mut checker, my_id);
    keys::take_unused(&mut checker);
    keys::pass_through(&mut checker, &mut system);
    tuning::refuse_unknown_names(&mut checker, &mut system);
    // Without an explicit part nothing will run; what is left untaken only misses its warning.
    let config = explicit.map(|explicit| tuning::take(&mut checker, &mut system, explicit));
    keys::judge_leftovers(&mut checker, &mut system);
    checker.problems.sort_by(|a, b| a.place.cmp(&b.place));
    checker.warnings.sort_by(|a, b| a.place.cmp(&b.place));
    match config {
        Some(config) if checker.problems.is_empty() => {
            Ok(Config { warnings: checker.warnings, ..config })
        }
        _ => {
            assert!(!checker.problems.is_empty(), "no config and no problem");
            Err(ConfigError { problems: checker.problems })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "dataDir=/d\nclientPort=2181\n";

    fn with(lines: &str, flags: &str) -> Result<Config, ConfigError> {
        let text = format!("{BASE}{lines}\n");
        let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: None };
        let env = Environment::from([("JVMFLAGS".to_owned(), flags.to_owned())]);
        parse(source, &env, &[])
    }

    fn of(lines: &str) -> Config {
        with(lines, "").unwrap()
    }

    // rows: C-02 C-05
    #[test]
    fn the_file_wins_over_flags_with_its_prefix_only() {
        let config = with("snapCount=10", "-Dzookeeper.snapCount=20 -DsnapCount=30").unwrap();
        assert_eq!(config.snap_count, 10);
        assert_eq!(with("", "-Dzookeeper.snapCount=20").unwrap().snap_count, 20);
        let doubled = of("zookeeper.snapCount=20");
        assert_eq!((doubled.snap_count, doubled.warnings.len()), (100_000, 1));
        // Explicit keys never read a flag.
        let config = with("tickTime=2000", "-Dzookeeper.tickTime=5").unwrap();
        assert_eq!((config.tick_time_ms, config.warnings.len()), (2000, 1));
    }

    #[test]
    fn every_problem_is_reported_with_its_line() {
        let error = with(
            "tickTime=0\nmaxClientCnxns=x\n\nreconfigEnabled=yes\nssl.keyStore.password=s3\n\
            secureClientPort=2281\nserverCnxnFactory=Mine",
            "-Dzookeeper.authProvider.1=A",
        )
        .unwrap_err()
        .to_string();
        let lines: Vec<&str> = error.lines().collect();
        let starts = [
            "zoo.cfg:3: tickTime=0 is not within 1 and",
            "zoo.cfg:4: maxClientCnxns=x is not a number",
            "zoo.cfg:6: reconfigEnabled=yes is neither true nor false",
            "zoo.cfg:7: ssl.keyStore.password guards",
            "zoo.cfg:8: secureClientPort=2281 guards",
            "zoo.cfg:9: serverCnxnFactory=Mine is not known",
            "-D flag in JVMFLAGS: zookeeper.authProvider.1=A guards",
        ];
        assert_eq!(lines.len(), starts.len(), "{error}");
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{line}");
        }
        let source = Source { name: "z", text: b"a=1\nb=\\u", my_id: None };
        let error = parse(source, &Environment::new(), &[]).unwrap_err();
        assert_eq!(error.to_string(), "z:2: malformed \\uxxxx encoding");
    }

    #[test]
    fn the_command_line_form_has_no_limit_on_connections() {
        let arguments = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let parse = |words| parse_positional(&arguments(words), &Environment::new(), &[]);
        let config = parse("2181 /d").unwrap();
        assert_eq!((config.client_port, config.tick_time_ms), (2181, 3000));
        assert_eq!((config.max_client_cnxns, config.max_session_timeout_ms), (0, 60_000));
        let config = parse("2181 /d 500 9").unwrap();
        assert_eq!((config.min_session_timeout_ms, config.max_client_cnxns), (1000, 9));
        let error = parse("x /d").unwrap_err().to_string();
        assert_eq!(error, "command line: clientPort=x is not a number");
    }

    #[test]
    fn the_defaults_are_a_valid_file() {
        let source = Source { name: "d", text: DEFAULT_CONFIG.as_bytes(), my_id: None };
        let config = parse(source, &Environment::new(), &[]).unwrap();
        assert_eq!((config.client_port, config.warnings), (2181, vec![]));
    }
}
