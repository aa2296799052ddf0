//! Problems and warnings of a configuration, each with its place.

use std::fmt;

/// Where a setting was made; in the order in which an operator would look.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum SettingPlace {
    /// A line of a file, counted from 1.
    Line { file: String, line: u32 },
    /// A file as a whole, for what it lacks.
    File(String),
    /// A `-D` flag, on the command line or in an environment variable.
    Flag(&'static str),
    /// A plain command-line argument.
    Argument,
    /// An environment variable.
    Variable,
}

impl fmt::Display for SettingPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{file}:{line}"),
            Self::File(file) => f.write_str(file),
            Self::Flag(source) => write!(f, "-D flag in {source}"),
            Self::Argument => f.write_str("command line"),
            Self::Variable => f.write_str("environment"),
        }
    }
}

/// Writes a text on one line: line ends and other control characters of a value are escaped.
pub(super) struct OneLine<'a>(pub &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c.is_control() {
            true => write!(f, "{}", c.escape_default()),
            false => fmt::Write::write_char(f, c),
        })
    }
}

/// One reason not to start.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{place}: {}", OneLine(text))]
pub struct Problem {
    pub place: SettingPlace,
    /// Names key and value, and says what to do, on one line.
    pub text: String,
}

/// One thing an operator should know although the server starts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    pub place: SettingPlace,
    /// Names key and value, and says what to do, on one line.
    pub text: String,
    /// The value that takes the place of the one that is written.
    pub used: Option<String>,
}

impl Warning {
    pub const fn new(place: SettingPlace, text: String) -> Self {
        Self { place, text, used: None }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, OneLine(&self.text))
    }
}

/// All problems of a configuration; never empty.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub struct ConfigError {
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            let newline = if at == 0 { "" } else { "\n" };
            write!(f, "{newline}{problem}")?;
        }
        Ok(())
    }
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}
