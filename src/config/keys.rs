//! Every setting of ZooKeeper 3.9.5, and how this server treats it: the table `keys.txt`.
//!
//! Refusals, warnings, `oxkeeper config check` and `docs/configuration.md` are all made from this table. Values are read by
//! `file_settings` and `property_settings`; `tests/config/keys.rs` checks that they agree with the table.

use std::sync::LazyLock;

/// Where a setting may be made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scope {
    /// The setting is read in zoo.cfg only.
    File,
    /// In zoo.cfg, or by the flag `-Dzookeeper.<key>`.
    Both,
    /// In zoo.cfg, or by the flag `-D<key>`: a setting that ZooKeeper does not have.
    Own,
    /// Only by the flag `-D<key>`: from a file Java puts it into a property that it never reads.
    Flag,
    /// An environment variable.
    Variable,
}

/// The form that Java requires of a value in order to start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    Int,
    Long,
    Bool,
    Text,
    /// `electionAlg`: nothing but 3.
    Three,
    /// `peerType`: participant or observer.
    Role,
    /// The name of a class.
    Provider,
}

impl Form {
    /// The value that an odd one counts as, where Java accepts it in silence.
    pub fn counts_as(self, value: &str, default: &'static str) -> Option<&'static str> {
        let is_flag = ["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word));
        match self {
            Self::Bool if !is_flag => Some("false"),
            Self::Int | Self::Long if super::system_properties::decode(value).is_none() => {
                Some(default)
            }
            _ => None,
        }
    }
}

/// How a setting is treated; every setting is in exactly one class.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Class {
    /// It has its effect.
    Works,
    /// It only tunes a feature that this server does not have, or has in another form: accepted, with a warning.
    Tunes,
    /// It asks for a protection that this server does not have: refused.
    Guards,
    /// It can make this server a member of an ensemble.
    Ensemble,
    /// It has an effect only in a member of an ensemble; a standalone server accepts it with a warning.
    Member,
}

impl Class {
    /// One word for tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Works => "works",
            // On a standalone server.
            Self::Tunes | Self::Member => "no effect",
            Self::Guards => "refused",
            Self::Ensemble => "ensemble",
        }
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Id of its row in `docs/parity.md`.
    pub row: &'static str,
    pub scope: Scope,
    /// A family ends with `*`.
    pub name: &'static str,
    pub form: Form,
    /// As text: a value, or words where it depends on others.
    pub default: &'static str,
    pub class: Class,
    /// The value that stands for what this server does anyway.
    pub harmless: Option<&'static str>,
    /// Works, Member: what it does. Tunes: why it has no effect. Guards: what it asks for.
    pub text: &'static str,
}

impl Key {
    fn is_for(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(family) => name.starts_with(family),
            None => self.name == name,
        }
    }

    /// Whether `value` stands for what this server does anyway.
    pub fn asks_nothing(&self, value: &str) -> bool {
        self.harmless.is_some_and(|harmless| harmless.eq_ignore_ascii_case(value))
    }
}

/// Why a setting of members has no effect on a standalone server.
pub const MEMBERS_ONLY: &str = "only an ensemble uses this";

/// The whole table, in its order.
pub static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let lines = include_str!("keys.txt").lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(parse_line).collect()
});

/// The table is part of the program: a wrong line is a bug, and a test reads them all.
fn parse_line(line: &'static str) -> Key {
    let fields: Vec<&'static str> = line.splitn(7, " | ").collect();
    let [row, scope, name, form, default, class, text] = fields[..] else {
        panic!("keys.txt: {line:?} has not seven fields")
    };
    let scope = match scope {
        "file" => Scope::File,
        "both" => Scope::Both,
        "flag" => Scope::Flag,
        "own" => Scope::Own,
        "env" => Scope::Variable,
        _ => panic!("keys.txt: {name}: where is {scope}?"),
    };
    let form = match form {
        "int" => Form::Int,
        "long" => Form::Long,
        "bool" => Form::Bool,
        "text" => Form::Text,
        "three" => Form::Three,
        "role" => Form::Role,
        "provider" => Form::Provider,
        _ => panic!("keys.txt: {name}: what form is {form}?"),
    };
    let (class, harmless) = match class.split_once('=') {
        Some((class, harmless)) => (class, Some(harmless)),
        None => (class, None),
    };
    let class = match class {
        "works" => Class::Works,
        "tunes" => Class::Tunes,
        "guards" => Class::Guards,
        "ensemble" => Class::Ensemble,
        "member" => Class::Member,
        _ => panic!("keys.txt: {name}: what class is {class}?"),
    };
    Key { row, scope, name, form, default, class, harmless, text }
}

/// The line for a key as it stands in zoo.cfg; `None` for one that ZooKeeper does not know.
pub fn in_file(key: &str) -> Option<&'static Key> {
    let own = find(key, &[Scope::File, Scope::Both, Scope::Own]);
    // The quorum form of a TLS setting is the same setting for other sockets.
    let quorum = key.strip_prefix("ssl.quorum.").map(|name| format!("ssl.{name}"));
    own.or_else(|| find(&quorum?, &[Scope::Both])).or_else(|| find(key, &[Scope::Flag]))
}

/// The line for the name after `-D`; `None` for one that ZooKeeper does not know.
pub fn in_flag(name: &str) -> Option<&'static Key> {
    find(name, &[Scope::Flag, Scope::Own]).or_else(|| {
        let key = name.strip_prefix("zookeeper.")?;
        in_file(key).filter(|key| !matches!(key.scope, Scope::Flag | Scope::Own))
    })
}

/// Exact names before families.
fn find(name: &str, scopes: &[Scope]) -> Option<&'static Key> {
    let mut matching = KEYS.iter().filter(|key| scopes.contains(&key.scope) && key.is_for(name));
    let first = matching.next()?;
    if !first.name.ends_with('*') {
        return Some(first);
    }
    matching.find(|key| !key.name.ends_with('*')).or(Some(first))
}

/// The key that `name` may be a misspelling of.
pub fn nearest(name: &str) -> Option<String> {
    if let Some(quorum) = name.strip_prefix("ssl.quorum.") {
        let found = nearest_of(&format!("ssl.{quorum}"))?;
        return found.strip_prefix("ssl.").map(|found| format!("ssl.quorum.{found}"));
    }
    nearest_of(name).map(str::to_owned)
}

/// The `server.N` that `name` may be a misspelling of, such as `server1` or `Server.1`.
pub fn nearest_server_line(name: &str) -> Option<String> {
    let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = &name[word.len()..];
    let word = word.trim_end_matches(['.', '-', '_', ':', '[']).to_ascii_lowercase();
    let is_near = strsim::damerau_levenshtein(&word, "server") <= 1;
    (is_near && !number.is_empty()).then(|| format!("server.{number}"))
}

/// The flag outside of `zookeeper.` that `name` may be a misspelling of.
pub fn nearest_flag(name: &str) -> Option<&'static str> {
    let flags = KEYS.iter().filter(|key| key.scope == Scope::Flag && !key.name.ends_with('*'));
    let near = flags.map(|key| (strsim::damerau_levenshtein(name, key.name), key.name));
    // Other software has flags of its own.
    near.min().filter(|(distance, _)| *distance <= 2 && 8 <= name.len()).map(|(_, name)| name)
}

fn nearest_of(name: &str) -> Option<&'static str> {
    let plain = |text: &str| text.to_ascii_lowercase();
    let allowed = 1 + name.len() / 8; // Short keys are near to each other by nature.
    let distances = KEYS
        .iter()
        .filter(|key| {
            !matches!(key.scope, Scope::Flag | Scope::Variable) && !key.name.ends_with('*')
        })
        .map(|key| (strsim::damerau_levenshtein(&plain(name), &plain(key.name)), key.name));
    distances.min().filter(|(distance, _)| *distance <= allowed).map(|(_, name)| name)
}
