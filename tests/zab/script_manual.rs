//! The manual of scripts, the tables at the beginning of `script.rs`, has the commands and options that the code reads, and no other.

use std::collections::BTreeSet;

const SCRIPT: &str = include_str!("script.rs");
const ENSEMBLE: &str = include_str!("script_ensemble.rs");
const NOTATION: &str = include_str!("notation.rs");

/// The two tables: of scripts about one server, and of those about an ensemble.
fn tables() -> (&'static str, &'static str) {
    let manual = SCRIPT.split("\nuse ").next().expect("the manual");
    manual.split_once("A script that begins with `servers`").expect("two tables")
}

/// What is in backticks in a table's first column.
fn documented(table: &str) -> Vec<&str> {
    let columns = table.lines().filter_map(|line| line.strip_prefix("//! | `")?.split_once("` | "));
    columns.flat_map(|(column, _)| column.split("`, `")).collect()
}

/// The words of a documented command with its options, and without them.
fn variants(command: &str) -> [Vec<String>; 2] {
    let mut depth = 0;
    let without: String = command
        .chars()
        .filter(|c| {
            depth += i32::from(*c == '[');
            let is_outside = depth == 0;
            depth -= i32::from(*c == ']');
            is_outside
        })
        .collect();
    [command, &without].map(|text| {
        let words = text.split([' ', ',', '[', ']']).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    })
}

/// The patterns that a script's commands are matched with, in order.
fn patterns(source: &str) -> Vec<Vec<&str>> {
    let (_, rest) = source.split_once("fn command(&mut self, ").expect("the commands");
    let rest = rest.split("fn command(&mut self, ").last().expect("the last of them");
    let (arms, _) = rest.split_once("\"no such command").expect("their end");
    let arms = arms.lines().filter_map(|line| line.trim().strip_prefix('[')?.split_once("] =>"));
    arms.map(|(pattern, _)| pattern.split(", ").collect()).collect()
}

fn fits(pattern: &[&str], words: &[String]) -> bool {
    match (pattern, words) {
        ([], []) => true,
        ([rest], _) if rest.ends_with("..") => true,
        ([first, pattern @ ..], [word, words @ ..]) => {
            let literal = first.strip_prefix('"').and_then(|first| first.strip_suffix('"'));
            literal.is_none_or(|literal| literal == word) && fits(pattern, words)
        }
        _ => false,
    }
}

/// Commands in the table that no pattern fits, and patterns that no command of the table is the first to reach.
fn differences(commands: &[&str], patterns: &[Vec<&str>]) -> Vec<String> {
    let (mut differences, mut reached) = (Vec::new(), BTreeSet::new());
    for command in commands {
        for words in variants(command) {
            match patterns.iter().position(|pattern| fits(pattern, &words)) {
                Some(at) => _ = reached.insert(at),
                None => differences.push(format!("nothing reads `{}`", words.join(" "))),
            }
        }
    }
    let lacking = (0..patterns.len()).filter(|at| !reached.contains(at));
    differences.extend(lacking.map(|at| format!("the table lacks {:?}", patterns[at])));
    differences
}

/// The words in quotes in one function.
fn quoted<'a>(source: &'a str, function: &str) -> BTreeSet<&'a str> {
    let (_, rest) = source.split_once(&format!("fn {function}(")).expect("the function");
    let body = rest.split("\n\n").next().unwrap_or(rest);
    let quoted = body.split('"').skip(1).step_by(2);
    quoted.filter(|word| word.chars().all(|c| c.is_ascii_lowercase())).collect()
}

/// The words of a command that are no values.
fn fixed_words(command: &str) -> BTreeSet<&str> {
    let words = command.split([' ', '[', ']']).filter(|word| !word.is_empty());
    words.filter(|word| word.chars().all(|c| c.is_ascii_lowercase())).collect()
}

fn command_of<'a>(table: &'a str, name: &str) -> &'a str {
    documented(table).into_iter().find(|command| command.starts_with(name)).expect("the command")
}

#[test]
fn tables_have_each_command_of_scripts_and_no_other() {
    let (one, ensemble) = tables();
    assert_eq!(differences(&documented(one), &patterns(SCRIPT)), [""; 0]);
    let mut commands = documented(ensemble);
    // It is read before there is an ensemble.
    commands.retain(|command| !command.starts_with("servers "));
    assert_eq!(differences(&commands, &patterns(ENSEMBLE)), [""; 0]);
}

#[test]
fn tables_have_each_option_of_a_server_and_no_other() {
    let (one, ensemble) = tables();
    let settings = quoted(NOTATION, "settings");
    let members = ["knows", "after", "voters", "observers"];
    let mut options = quoted(SCRIPT, "start");
    options.extend(settings.iter().chain(&members).copied().chain(["server"]));
    assert_eq!(fixed_words(command_of(one, "server ")), options);
    let mut options = settings;
    options.extend(["servers", "observers"]);
    assert_eq!(fixed_words(command_of(ensemble, "servers ")), options);
}

#[test]
fn differences_between_table_and_commands_are_found() {
    let table = "//! | `a N`, `b [c D]` | what, as `x` says |";
    let patterns = |more: &'static str| {
        let first = [vec!["\"a\"", "n"], vec!["\"b\"", "ref rest @ .."]];
        let more = (!more.is_empty()).then(|| more.split(", ").collect());
        first.into_iter().chain(more).collect::<Vec<_>>()
    };
    assert_eq!(documented(table), ["a N", "b [c D]"]);
    assert_eq!(differences(&documented(table), &patterns("")), [""; 0]);
    assert_eq!(
        differences(&documented(table), &patterns("\"e\"")),
        ["the table lacks [\"\\\"e\\\"\"]"]
    );
    assert_eq!(differences(&["a N", "b", "f"], &patterns("")), ["nothing reads `f`"; 2]);
}
