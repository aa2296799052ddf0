//! `oxkeeper generate`: completions for shells and man pages, made from the command line's own description.

use super::toolkit_help;
use clap::builder::ValueParser;
use clap::{Arg, ArgAction, Command, ValueHint};
use clap_complete::Shell;
use clap_mangen::Man;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The options of the log, as clap names them.
const OF_LOG: [&str; 2] = ["log_level", "log_format"];
/// The commands whose log has lines.
const WITH_LOG: [&str; 2] = ["bench", "check"];

/// What is made.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Generate {
    /// Print completions for a shell.
    Completions {
        /// bash, zsh or fish.
        shell: Shell,
    },
    /// Write a man page for each command; the program's own page is conf/man/oxkeeper.8.
    Man {
        /// The folder, which is made if need be.
        folder: PathBuf,
    },
}

/// * `command`: the whole command line.
///
/// # Errors
/// Those of the output or of the folder.
pub fn run(what: &Generate, command: &Command, out: &mut dyn Write) -> io::Result<()> {
    match what {
        Generate::Completions { shell } => {
            let mut text = Vec::new();
            let mut command = for_shells(command);
            clap_complete::generate(*shell, &mut command, "oxkeeper", &mut text);
            out.write_all(&text)
        }
        Generate::Man { folder } => {
            std::fs::create_dir_all(folder)?;
            let source = format!("oxkeeper {}", env!("CARGO_PKG_VERSION"));
            let mut command = honest(command).disable_help_subcommand(true);
            command.build();
            let commands = command.get_subcommands().filter(|inner| !inner.is_hide_set());
            commands.into_iter().try_for_each(|command| pages(command, folder, &source))
        }
    }
}

/// Writes the page of a command and those of the commands in it.
fn pages(command: &Command, folder: &Path, source: &str) -> io::Result<()> {
    command.get_subcommands().try_for_each(|inner| pages(inner, folder, source))?;
    let page =
        Man::new(command.clone()).section("8").source(source).manual("System administration");
    let mut text = Vec::new();
    page.render(&mut text)?;
    // What follows the help of a toolkit are its arguments and options.
    let text = String::from_utf8_lossy(&text).replace(".SH EXTRA\n", ".SH ARGUMENTS\n.nf\n");
    std::fs::write(folder.join(page.get_filename()), text)
}

/// The command line with the options of the log only where they have an effect.
fn honest(whole: &Command) -> Command {
    let of_log = || whole.get_arguments().filter(|arg| OF_LOG.contains(&arg.get_id().as_str()));
    let local = |arg: &Arg| arg.clone().global(false);
    let logs = |inner: Command| {
        let has_lines = WITH_LOG.contains(&inner.get_name());
        if has_lines { inner.args(of_log().map(local)) } else { inner }
    };
    let command = of_log()
        .map(Arg::get_id)
        .fold(whole.clone(), |command, id| command.mut_arg(id, |arg| arg.global(false)));
    command.mut_subcommands(|inner| logs(inner.mut_subcommands(logs)))
}

/// The same without hidden commands, and with the options that the toolkits parse themselves.
fn for_shells(whole: &Command) -> Command {
    let whole = honest(whole);
    let inner = whole.get_subcommands().filter(|inner| !inner.is_hide_set());
    let inner = inner.map(|inner| {
        let toolkit = toolkit_help::ALL.iter().find(|(name, _)| *name == inner.get_name());
        toolkit.map_or_else(|| inner.clone(), |(name, text)| toolkit_command(name, text, inner))
    });
    let command = Command::new("oxkeeper").version(env!("CARGO_PKG_VERSION"));
    let command = whole.get_about().cloned().into_iter().fold(command, Command::about);
    command.args(whole.get_arguments().cloned()).subcommands(inner)
}

fn toolkit_command(name: &'static str, text: &toolkit_help::Text, inner: &Command) -> Command {
    let about = inner.get_about().cloned().unwrap_or_default();
    let files = Arg::new("FILE").num_args(0..).value_hint(ValueHint::AnyPath);
    let command = Command::new(name).about(about).disable_help_flag(true);
    command.args(text.arguments.lines().filter_map(option)).arg(files)
}

/// The option of a line such as `  -z, --zxid ZXID  With --chop: the last transaction`; `None`: the line has none that shells know.
fn option(line: &'static str) -> Option<Arg> {
    let line = line.trim_start().strip_prefix('-').map(|_| line.trim_start())?;
    let (spec, help) = line.split_once("  ")?;
    let mut arg: Option<Arg> = None;
    let mut action = ArgAction::SetTrue;
    for word in spec.split([' ', ',']).filter(|word| !word.is_empty()) {
        let named = |name: &'static str| arg.clone().unwrap_or_else(|| Arg::new(name));
        if let Some(long) = word.strip_prefix("--") {
            arg = Some(named(long).long(long));
        } else if let Some(short) = word.strip_prefix('-') {
            let mut letters = short.chars();
            let (Some(letter), None) = (letters.next(), letters.next()) else { return None };
            arg = Some(named(short).short(letter));
        } else {
            let hint = if word == "FILE" { ValueHint::AnyPath } else { ValueHint::Other };
            arg = Some(named(word).value_name(word).value_hint(hint));
            action = ArgAction::Set;
        }
    }
    Some(arg?.action(action.clone()).help(help.trim()).value_parser(parser(&action)))
}

fn parser(action: &ArgAction) -> ValueParser {
    if matches!(action, ArgAction::Set) { ValueParser::string() } else { ValueParser::bool() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        let of_log = |id: &'static str, long: &'static str| Arg::new(id).long(long).global(true);
        Command::new("oxkeeper")
            .about("A server.")
            .args([of_log("log_level", "log-level"), of_log("log_format", "log-format")])
            .subcommand(Command::new("bench").about("Put load."))
            .subcommand(Command::new("txn-log").about("Print."))
            .subcommand(Command::new("generate").about("Make.").hide(true))
            .subcommand(Command::new("config").subcommand(Command::new("check").about("Check.")))
    }

    fn completions(shell: Shell) -> String {
        let mut out = Vec::new();
        run(&Generate::Completions { shell }, &command(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn completions_have_the_commands_that_are_shown_and_the_options_of_toolkits() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let text = completions(shell);
            assert!(text.contains("bench") && text.contains("check"), "{shell}");
            assert!(!text.contains("generate"), "{shell}: a hidden command");
            for option in ["recover", "zxid", "chop"] {
                assert!(text.contains(option), "{shell}: {option}");
            }
        }
        let fish = completions(Shell::Fish);
        let lines_of = |command: &str| fish.lines().filter(|line| line.contains(command)).count();
        let of_log = |command: &str| {
            let mut lines = fish.lines().filter(|line| line.contains(command));
            lines.any(|line| line.contains("log-level"))
        };
        assert!(lines_of("using_subcommand txn-log") > 5, "{fish}");
        assert!(of_log("using_subcommand bench") && !of_log("using_subcommand txn-log"), "{fish}");
    }

    #[test]
    fn each_command_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("man8");
        run(&Generate::Man { folder: made.clone() }, &command(), &mut io::sink()).unwrap();
        let files = std::fs::read_dir(&made).unwrap().map(|file| file.unwrap().file_name());
        let mut names: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        let wanted = ["bench", "config-check", "config", "txn-log"];
        assert_eq!(names, wanted.map(|command| format!("oxkeeper-{command}.8")));
        let page = |name: &str| std::fs::read_to_string(made.join(name)).unwrap();
        assert!(page("oxkeeper-bench.8").contains("log"));
        assert!(!page("oxkeeper-txn-log.8").contains("log\\-level"));
    }
}
