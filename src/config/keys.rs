//! Every setting of ZooKeeper 3.9.5, and what becomes of it here: the table `keys.txt`.
//!
//! All that says something about a setting reads this table: what is refused, what is warned of, what
//! `oxkeeper config check` prints, `docs/configuration.md`. Reading a value is the business of
//! `file_settings` and `property_settings`; the tests below hold the two together.

use std::sync::LazyLock;

/// Where a setting may be made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scope {
    /// Only in zoo.cfg.
    File,
    /// In zoo.cfg, or by the flag `-Dzookeeper.<key>`.
    Both,
    /// In zoo.cfg, or by the flag `-D<key>`: what ZooKeeper does not have.
    Own,
    /// Only by the flag `-D<key>`: in a file Java reads it into a property nobody asks for.
    Flag,
    /// An environment variable.
    Variable,
}

/// What Java wants to see as the value, where that decides whether it starts.
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
    /// What an odd value is taken for, where Java goes on with it in silence.
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

/// What becomes of a setting; every one is in exactly one class.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Class {
    /// It has its effect.
    Works,
    /// It only tunes what is not here, or is here in another way: accepted, with a warning.
    Tunes,
    /// It guards something that is not here: refused.
    Guards,
    /// It makes this server a member of an ensemble, where it does.
    Ensemble,
    /// It has its effect in a member of an ensemble only: accepted elsewhere, with a warning.
    Member,
}

impl Class {
    /// One word for tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Works => "works",
            // Of a server that is alone.
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
    /// As text: a value, or in words where it depends.
    pub default: &'static str,
    pub class: Class,
    /// The value that asks for just what this server does anyway.
    pub harmless: Option<&'static str>,
    /// Works, Member: what it does. Tunes: why nothing comes of it. Guards: what it asks for.
    pub text: &'static str,
}

impl Key {
    fn is_for(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(family) => name.starts_with(family),
            None => self.name == name,
        }
    }

    /// Whether `value` asks for nothing that is not here anyway.
    pub fn asks_nothing(&self, value: &str) -> bool {
        self.harmless.is_some_and(|harmless| harmless.eq_ignore_ascii_case(value))
    }

    /// Whether `value` takes away a guard that is there by default, beside the rest of what is not here.
    pub fn disarms(&self, value: &str) -> bool {
        self.class == Class::Guards
            && self.asks_nothing(value)
            && self.harmless != Some(self.default)
    }
}

/// The reason of a setting of which nothing comes without TLS.
pub const NO_TLS: &str = "this belongs to TLS, which is not there yet";

/// The reason of a setting that only counts for members of ensembles.
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
    own.filter(|key| !key.name.ends_with('*'))
        .or_else(|| find(&quorum?, &[Scope::Both]))
        .or(own)
        .or_else(|| find(key, &[Scope::Flag]))
}

/// The line for what follows `-D`; `None` for what is no setting of ZooKeeper's.
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

/// The key that somebody who wrote `name` may have meant.
pub fn nearest(name: &str) -> Option<&'static str> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, ConfigError, Environment, Source, parse};
    use std::collections::BTreeSet;

    /// Rows about the file as a whole, and about setters of the JVM.
    const RULES: [&str; 11] =
        ["C-01", "C-02", "C-03", "C-05", "C-06", "C-07", "C-08", "C-09", "C-10", "C-11", "C-270"];
    /// Rows whose first word is no key.
    const LISTS: [&str; 3] = ["C-267", "C-268", "C-269"];
    /// Settings that work without a trace in [`Config`]: they decide whether there is one, or about the log, or need
    /// another beside them.
    const CHECKS: [&str; 8] = [
        "enforce.auth.enabled",
        "enforce.auth.schemes",
        "oxkeeper.log.level",
        "oxkeeper.log.format",
        "dynamicConfigFile",
        "multiAddress.enabled",
        "serverCnxnFactory",
        "DigestAuthenticationProvider.digestAlg",
    ];

    #[test]
    fn every_row_is_in_the_table_under_its_name() {
        let mut rows = BTreeSet::new();
        for line in include_str!("../../docs/parity-rows.tsv").lines() {
            let mut fields = line.split('\t');
            let (Some(row), Some(what)) = (fields.next(), fields.next()) else { continue };
            if !row.starts_with("C-") || RULES.contains(&row) {
                continue;
            }
            rows.insert(row);
            let mut keys = KEYS.iter().filter(|key| key.row == row).peekable();
            assert!(keys.peek().is_some(), "{row} {what} is not in keys.txt");
            // Java's own row names leave the prefix out, or not.
            let what = what.trim_start_matches("zookeeper.");
            let bare = |key: &Key| key.name.trim_start_matches("zookeeper.").trim_end_matches('*');
            let named = |key: &Key| what.starts_with(bare(key));
            assert!(LISTS.contains(&row) || keys.any(named), "{row} is {what}, not so in keys.txt");
        }
        for key in KEYS.iter() {
            let is_ours = key.row == "own";
            assert!(is_ours || rows.contains(key.row), "{} {} has no row", key.row, key.name);
        }
        let names: BTreeSet<_> = KEYS.iter().map(|key| key.name).collect();
        assert_eq!(names.len(), KEYS.len(), "a key stands there twice");
    }

    #[test]
    fn keys_are_found_where_they_may_be_made() {
        let name = |key: Option<&'static Key>| key.map(|key| key.name);
        assert_eq!(name(in_file("tickTime")), Some("tickTime"));
        assert_eq!(name(in_file("ssl.quorum.crl")), Some("ssl.crl"));
        assert_eq!(name(in_file("ssl.quorum.new")), Some("ssl.*"));
        assert_eq!(name(in_file("server.12")), Some("server.*"));
        // In a file Java takes it for a server's line.
        assert_eq!(name(in_file("server.realm")), Some("server.*"));
        assert_eq!(name(in_flag("zookeeper.server.realm")), Some("zookeeper.server.realm"));
        assert_eq!(name(in_flag("zookeeper.snapCount")), Some("snapCount"));
        assert_eq!(name(in_flag("snapCount")), None);
        assert_eq!(name(in_flag("jute.maxbuffer")), Some("jute.maxbuffer"));
        assert_eq!(name(in_flag("zookeeper.jute.maxbuffer")), None);
        for own in [in_file, in_flag] {
            assert_eq!(name(own("oxkeeper.quorumSync")), Some("oxkeeper.quorumSync"));
        }
        assert_eq!(name(in_flag("zookeeper.oxkeeper.quorumSync")), None);
        assert_eq!(nearest("oxkeeper.quorumsync"), Some("oxkeeper.quorumSync"));
        assert_eq!(nearest("ticktime"), Some("tickTime"));
        assert_eq!((nearest("x"), nearest("frobnicate")), (None, None));
    }

    fn with(key: &Key, value: &str) -> Result<Config, ConfigError> {
        let name = key.name.replace('*', "1");
        let (line, flag) = match key.scope {
            Scope::Flag => (String::new(), format!("-D{name}={value}")),
            _ => (format!("{name}={value}"), String::new()),
        };
        let text = format!("dataDir=/d\nclientPort=2181\n{line}\n");
        let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: None };
        parse(source, &Environment::new(), &[flag])
    }

    /// The configuration without any key but the two it needs.
    fn plain() -> Config {
        let source = Source { name: "z", text: b"dataDir=/d\nclientPort=2181", my_id: None };
        parse(source, &Environment::new(), &[]).unwrap()
    }

    /// A value that is not the default.
    fn example(key: &Key) -> &'static str {
        match (key.name, key.form) {
            ("skipACL", _) => "yes",
            ("version", _) => "1f",
            ("watchManagerName", _) => "org.apache.zookeeper.server.watch.WatchManagerOptimized",
            ("maxSessionTimeout", _) => "70000",
            ("forceSync", _) => "no",
            ("snapshot.compression.method", _) => "gz",
            ("metricsProvider.className", _) => {
                "org.apache.zookeeper.metrics.impl.NullMetricsProvider"
            }
            ("pathStats.sampleRate" | "snapshotSizeFactor", _) => "0.7",
            (name, Form::Text) if name.starts_with("connection_throttle_") => "0.7",
            (_, Form::Int | Form::Long) => "700",
            (_, Form::Bool) if key.default == "true" => "false",
            (_, Form::Bool) => "true",
            (_, Form::Three) => "3",
            (_, Form::Role) => "observer",
            (_, Form::Text | Form::Provider) => "/other",
        }
    }

    #[test]
    fn a_key_does_what_its_class_says() {
        let same = |config: Config| Config { warnings: vec![], ..config } == plain();
        for key in KEYS.iter().filter(|key| key.scope != Scope::Variable) {
            let value = example(key);
            let result = with(key, value);
            match key.class {
                Class::Works if CHECKS.contains(&key.name) => {}
                Class::Works => {
                    let config = result.unwrap_or_else(|error| panic!("{error}"));
                    assert!(!same(config), "{}={value} changes nothing", key.name);
                }
                Class::Tunes | Class::Member if key.asks_nothing(value) => {
                    assert_eq!(result.unwrap().warnings, vec![], "{}", key.name);
                }
                Class::Tunes | Class::Member => {
                    let warned = format!("{:?}", result.unwrap().warnings);
                    assert!(
                        warned.contains(key.name.trim_end_matches('*')),
                        "{}: {warned}",
                        key.name
                    );
                    assert!(warned.contains("no effect"), "{}: {warned}", key.name);
                }
                Class::Guards => {
                    let harmless = key.harmless.map_or("false", |harmless| harmless);
                    let refused = if harmless == value { with(key, "x") } else { result };
                    let error = refused.expect_err(key.name).to_string();
                    assert!(error.contains(key.text), "{error}");
                    // Only TLS has guards that are on by default.
                    assert!(!key.disarms(harmless) || key.text == "TLS", "{}", key.name);
                }
                // Only some values make an ensemble: tested where they are read.
                Class::Ensemble => {}
            }
        }
    }

    #[test]
    fn what_members_use_changes_their_configuration() {
        let ensemble = |line: &str| {
            let is_other = |limit: &&str| line.split('=').next() != limit.split('=').next();
            let limits = ["initLimit=5\n", "syncLimit=2\n"].into_iter().filter(is_other);
            let limits: String = limits.collect();
            let text = format!(
                "dataDir=/d\nclientPort=2181\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n{limits}{line}\n"
            );
            let source = Source { name: "z", text: text.as_bytes(), my_id: Some("1") };
            let config = parse(source, &Environment::new(), &[]).unwrap();
            (config.ensemble.unwrap(), config.warnings)
        };
        let (plain, warnings) = ensemble("");
        assert_eq!(warnings, vec![]);
        let in_member = |key: &&Key| key.class == Class::Member && key.scope != Scope::Flag;
        for key in KEYS.iter().filter(in_member) {
            let name = key.name;
            let value = if name == "leaderServes" { "no" } else { example(key) };
            let (changed, warnings) = ensemble(&format!("{name}={value}"));
            if name == "peerType" {
                // It only repeats what the server's own line says.
                assert!(format!("{warnings:?}").contains("server.1 is a participant"));
                continue;
            }
            assert!(changed != plain, "{name}={value} changes nothing");
            assert_eq!(warnings, vec![], "{name}");
            if !["none", "-1"].contains(&key.default) {
                let (same, _) = ensemble(&format!("{name}={}", key.default));
                assert!(same == plain, "{name}={} changes something", key.default);
            }
        }
    }

    #[test]
    fn defaults_are_what_the_table_says() {
        let words = ["required", "none", "dataDir", "all addresses", "jute.maxbuffer"];
        for key in KEYS.iter().filter(|key| key.class == Class::Works) {
            if key.scope != Scope::Variable && !words.contains(&key.default) {
                let config = with(key, key.default).unwrap_or_else(|error| panic!("{error}"));
                let config = Config { warnings: vec![], ..config };
                assert_eq!(config, plain(), "{}={}", key.name, key.default);
            }
        }
    }
}
