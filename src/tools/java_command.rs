//! The command line of `java`, so that scripts which start ZooKeeper's classes start oxkeeper instead.
//!
//! Called by the name `java`, oxkeeper takes `[-Dkey=value | -X... | -cp PATH | ...]... CLASS arguments`. Options that only a
//! JVM needs are skipped; `-D` properties go to the server as they are. It is no JVM: other classes are not found.

use std::path::Path;

use super::four_letter_word;
use super::server_admin_client;
use super::toolkits::{self, Tool};

/// What a call asks for.
pub enum Call {
    /// The server, with the arguments of oxkeeper's own command line.
    Server(Vec<String>),
    Tool(Tool, Vec<String>),
    /// Texts for both streams, and the exit code.
    Said {
        out: String,
        err: String,
        code: u8,
    },
}

/// The versions that are printed.
pub struct Versions<'v> {
    /// The version as `srvr` shows it.
    pub full: &'v str,
    /// The version as `oxkeeper --version` prints it.
    pub long: &'v str,
}

/// Options of a JVM that take the next argument.
const WITH_VALUE: &[&str] = &[
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--add-opens",
    "--add-exports",
    "--add-reads",
    "--patch-module",
    "--limit-modules",
    "--enable-native-access",
];
/// Beginnings of options that stand alone.
const ALONE: &[&str] = &[
    "-X",
    "-ea",
    "-da",
    "-esa",
    "-dsa",
    "-enable",
    "-disable",
    "-verbose",
    "-agentlib:",
    "-agentpath:",
    "-javaagent:",
    "-server",
    "-client",
    "-zero",
    "--add-",
    "--enable-",
    "--illegal-",
    "--patch-",
    "--module-path=",
    "--class-path=",
    "--upgrade-module-path=",
    "--limit-modules=",
    "-showversion",
    "--show-version",
    "-splash:",
    "--sun-misc-",
];

/// True when a program is called by the name `java`.
pub fn is_called_so(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|name| name == "java")
}

/// Reads the arguments after the program's name.
pub fn parse(arguments: &[String], versions: &Versions<'_>) -> Call {
    let mut flags = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            flag if flag.starts_with("-D") => flags.push(flag.to_owned()),
            "-version" | "-fullversion" => return said("", &java_version(versions), 0),
            "--version" => return said(&java_version(versions), "", 0),
            "-jar" => {
                let jar = rest.next().map_or("", String::as_str);
                return said("", &format!("Error: Unable to access jarfile {jar}\n"), 1);
            }
            "-h" | "-?" | "-help" | "--help" => return said(USAGE, "", 0),
            option if WITH_VALUE.contains(&option) => {
                rest.next();
            }
            option if ALONE.iter().any(|begin| option.starts_with(begin)) => {}
            option if option.starts_with('-') => {
                let text = format!("Unrecognized option: {option}\n{NO_JVM}");
                return said("", &text, 1);
            }
            class => {
                return run(&class.replace('/', "."), rest.cloned().collect(), flags, versions);
            }
        }
    }
    said("", USAGE, 1)
}

const NO_JVM: &str = "\
Error: Could not create the Java Virtual Machine.
Error: A fatal exception has occurred. Program will exit.
";

const USAGE: &str = "\
Usage: java [options] <mainclass> [args...]
oxkeeper stands in for java here: it runs the server and the tools of org.apache.zookeeper, and no other class.
";

/// One line in the shape that scripts parse: the quoted version after the word `version`.
fn java_version(versions: &Versions<'_>) -> String {
    format!("java version \"17.0.0\"\noxkeeper {} in place of a JVM\n", versions.long)
}

fn said(out: &str, err: &str, code: u8) -> Call {
    Call::Said { out: out.to_owned(), err: err.to_owned(), code }
}

fn run(class: &str, arguments: Vec<String>, flags: Vec<String>, versions: &Versions<'_>) -> Call {
    let name = class.strip_prefix("org.apache.zookeeper.").unwrap_or_default();
    match name {
        "server.quorum.QuorumPeerMain" | "server.ZooKeeperServerMain" => server(arguments, flags),
        "server.persistence.TxnLogToolkit" | "server.LogFormatter" => {
            Call::Tool(toolkits::txn_log, arguments)
        }
        "server.util.LogChopper" => Call::Tool(toolkits::log_chopper, arguments),
        "server.SnapshotFormatter" => Call::Tool(toolkits::snapshot_format, arguments),
        "server.SnapshotComparer" => Call::Tool(toolkits::snapshot_compare, arguments),
        "server.SnapshotRecursiveSummary" => Call::Tool(toolkits::snapshot_summary, arguments),
        "server.PurgeTxnLog" => Call::Tool(toolkits::purge, arguments),
        // It gets its stores of TLS by flags `-D`.
        "client.FourLetterWordMain" => {
            Call::Tool(four_letter_word::run, flags.into_iter().chain(arguments).collect())
        }
        "ServerAdminClient" => Call::Tool(server_admin_client::run, arguments),
        "server.TraceFormatter" => Call::Tool(toolkits::trace, arguments),
        "version.VersionInfoMain" => said(&version_info(versions), "", 0),
        "Version" => version(&arguments, versions),
        "server.auth.DigestAuthenticationProvider" => digests(&arguments),
        _ => {
            let text = format!(
                "Error: Could not find or load main class {class}\nCaused by: java.lang.ClassNotFoundException: {class}\n"
            );
            said("", &text, 1)
        }
    }
}

fn server(arguments: Vec<String>, flags: Vec<String>) -> Call {
    if arguments.is_empty() {
        let usage = "Usage: ZooKeeperServerMain configfile | port datadir [ticktime] [maxcnxns]\n";
        return said("", usage, 2);
    }
    // With this word first, a file that is named like a subcommand is taken for a file.
    let mut all = vec!["start-foreground".to_owned()];
    all.extend(flags);
    all.extend(arguments);
    Call::Server(all)
}

/// The number of the ZooKeeper release and the date, as `VersionInfoMain` prints them.
fn version_info(versions: &Versions<'_>) -> String {
    let (number, rest) = versions.full.split_once('-').unwrap_or((versions.full, ""));
    let date = rest.split_once("built on ").map_or("", |(_, date)| date);
    format!("Apache ZooKeeper, version {number} {date}\n")
}

/// Source: `Version.main`, ZooKeeper 3.9.5.
fn version(arguments: &[String], versions: &Versions<'_>) -> Call {
    let revision = versions.full.split(',').next().unwrap_or_default();
    let number = revision.split('-').next().unwrap_or_default();
    let text = match arguments {
        [] => versions.full,
        [only] if only == "--full" => versions.full,
        [only] if only == "--short" => number,
        [only] if only == "--revision" => revision,
        _ => {
            let usage = "Usage:\tjava -cp ... org.apache.zookeeper.Version [--full | --short | --revision],\n\t\
                         Prints --full version info if no arg specified.";
            return said(usage, "", 1);
        }
    };
    said(&format!("{text}\n"), "", 0)
}

/// What each `user:password` is in an access list of scheme digest.
fn digests(arguments: &[String]) -> Call {
    let digest = |shown: &String| {
        let who = crate::auth::digest_identity(
            crate::model::DigestAlgorithm::default(),
            shown.as_bytes(),
        );
        format!("{shown}->{}\n", who.id)
    };
    said(&arguments.iter().map(digest).collect::<String>(), "", 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSIONS: Versions<'static> = Versions {
        full: "3.9.5-oxkeeper.0.1.0, built on 2026-11-01 00:00 UTC",
        long: "0.1.0 (as ZooKeeper 3.9.5)",
    };

    fn call(line: &str) -> Call {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(&arguments, &VERSIONS)
    }

    fn outcome(line: &str) -> (String, String, u8) {
        match call(line) {
            Call::Said { out, err, code } => (out, err, code),
            Call::Server(all) => (format!("server {}", all.join(" ")), String::new(), 0),
            Call::Tool(_, all) => (format!("tool {}", all.join(" ")), String::new(), 0),
        }
    }

    // rows: T-10
    #[test]
    fn lines_of_scripts_start_the_server_with_its_properties() {
        let line = "-Dzookeeper.log.dir=/x -XX:+HeapDumpOnOutOfMemoryError -cp /a:/b -Xmx1000m -javaagent:/j.jar=8080 \
                    --add-opens java.base/java.lang=ALL-UNNAMED org.apache.zookeeper.server.quorum.QuorumPeerMain zoo.cfg";
        assert_eq!(outcome(line).0, "server start-foreground -Dzookeeper.log.dir=/x zoo.cfg");
        let (_, err, code) = outcome("-cp x org.apache.zookeeper.server.quorum.QuorumPeerMain");
        assert!(code == 2 && err.starts_with("Usage: "), "{err}");
    }

    // rows: T-10
    #[test]
    fn classes_of_tools_are_tools_and_others_are_not_found() {
        assert_eq!(
            outcome("-cp x org.apache.zookeeper.server.PurgeTxnLog d -n 3").0,
            "tool d -n 3"
        );
        assert_eq!(
            outcome("org/apache/zookeeper/version/VersionInfoMain").0,
            "Apache ZooKeeper, version 3.9.5 2026-11-01 00:00 UTC\n"
        );
        assert_eq!(outcome("org.apache.zookeeper.Version --short").0, "3.9.5\n");
        let digest = outcome("org.apache.zookeeper.server.auth.DigestAuthenticationProvider a:b");
        assert_eq!(digest.0, "a:b->a:3OptnM09ILoVSfbZtd3mB0IViII=\n");
        let (_, err, code) = outcome("-cp x no.Such");
        assert!(code == 1 && err.starts_with("Error: Could not find or load main class no.Such\n"));
        for class in ["ServerAdminClient", "server.TraceFormatter"] {
            let line = format!("org.apache.zookeeper.{class} x");
            assert_eq!(outcome(&line).0, "tool x", "{class}");
        }
        assert!(outcome("-foo").1.starts_with("Unrecognized option: -foo\n"));
        assert_eq!(outcome("-jar x.jar").1, "Error: Unable to access jarfile x.jar\n");
    }

    // rows: T-10
    #[test]
    fn version_has_the_shape_that_scripts_parse() {
        let (_, err, code) = outcome("-version");
        let quoted = err.lines().next().and_then(|line| line.split('"').nth(1));
        assert!(code == 0 && quoted == Some("17.0.0") && err.contains(" version \""), "{err}");
        assert!(is_called_so("/opt/libexec/bin/java") && !is_called_so("/java/oxkeeper"));
    }

    proptest::proptest! {
        // rows: T-10
        #[test]
        fn no_argument_line_causes_a_panic(words in proptest::collection::vec("[-a-zA-Z:./=]{0,40}", 0..8)) {
            parse(&words, &VERSIONS);
        }
    }
}
