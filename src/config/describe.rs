//! What was understood of a configuration, setting by setting: what `oxkeeper config check` shows.

use super::args::{self, Files};
use super::ensemble::{Ensemble, USED};
use super::keys::{self, Class, KEYS, Key, Scope};
use super::problem::OneLine;
use super::system::{SystemProperties, trim};
use super::{Environment, Launch, Place, Problem, Settings, Warning, judge, parse_properties};

/// A whole configuration, looked through without starting anything.
#[derive(Clone, Debug)]
pub struct Check {
    /// The file, or where else the settings come from.
    pub source: String,
    /// Those of the file in the order of its lines, then flags, variables and defaults.
    pub settings: Vec<Understood>,
    /// The server starts only without any.
    pub problems: Vec<Problem>,
    pub warnings: Vec<Warning>,
    /// The ensemble that this server is a member of, if it is.
    pub ensemble: Option<Ensemble>,
}

/// One setting.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Understood {
    /// As it was written; a flag with its `-D`.
    pub key: String,
    /// Not a secret: those are left out.
    pub value: String,
    /// Where it was made; `None` is nowhere, so that it has its default.
    pub place: Option<Place>,
    /// `works`, `no effect`, `refused`, `ensemble`, `unknown`, `overridden`, `wrong`.
    pub state: &'static str,
    /// What it does, or why it does nothing.
    pub effect: String,
}

/// Looks a configuration through; what cannot be read is a problem.
pub fn check(launch: &Launch, env: &Environment) -> Check {
    let (config, problems, warnings) = args::load_all(launch, env);
    let mut settings = match &launch.settings {
        Settings::Positional(arguments) => of_arguments(arguments),
        settings => Files::read(settings).map(|files| of_files(&files)).unwrap_or_default(),
    };
    let flags = of_flags(env, &launch.flags, &settings);
    settings.extend(flags);
    settings.extend(of_variables(env));
    for setting in &mut settings {
        let is_wrong =
            problems.iter().any(|problem| setting.place.as_ref() == Some(&problem.place));
        if is_wrong
            && matches!(setting.place, Some(Place::Line { .. }))
            && setting.state != Class::Guards.word()
        {
            setting.state = "wrong";
        }
    }
    let is_fine = config.is_some();
    let ensemble = config.and_then(|config| config.ensemble);
    if ensemble.is_some() {
        settings.iter_mut().for_each(used_by_member);
    }
    if is_fine {
        let defaults = defaults(&settings);
        settings.extend(defaults);
    }
    Check { source: launch.settings.to_string(), settings, problems, warnings, ensemble }
}

/// What nothing comes of elsewhere.
fn used_by_member(setting: &mut Understood) {
    let key = setting.key.trim_start_matches("-Dzookeeper.");
    if setting.state == Class::Tunes.word() && USED.contains(&key) {
        setting.state = Class::Ensemble.word();
        setting.effect = "a member of an ensemble uses this".to_owned();
    }
}

fn of_arguments(arguments: &[String]) -> Vec<Understood> {
    let names = ["clientPort", "dataDir", "tickTime", "maxClientCnxns"];
    let pairs = names.into_iter().zip(arguments);
    pairs.map(|(key, value)| understood(keys::in_file(key), key, value, Place::Argument)).collect()
}

fn of_files(files: &Files) -> Vec<Understood> {
    let dynamic = files.dynamic.iter().filter_map(|(name, text)| Some((name, text.as_ref().ok()?)));
    let mut settings = Vec::new();
    for (file, text) in [(&files.name, &files.text)].into_iter().chain(dynamic) {
        let entries = parse_properties(text).unwrap_or_default();
        let mut lines: Vec<_> = entries.into_iter().collect();
        lines.sort_by_key(|(_, entry)| entry.line);
        for (key, entry) in lines {
            let place = Place::Line { file: file.clone(), line: entry.line };
            let (key, value) = (trim(&key), trim(&entry.value));
            let mut setting = understood(keys::in_file(key), key, value, place);
            if keys::in_file(key).is_some_and(|key| key.scope == Scope::Flag) {
                setting.state = Class::Tunes.word();
                setting.effect = format!("only the flag -D{key} sets it");
            }
            settings.push(setting);
        }
    }
    settings
}

/// Flags that are ZooKeeper's; the file wins over those that it may hold as well.
fn of_flags(env: &Environment, flags: &[String], settings: &[Understood]) -> Vec<Understood> {
    let mut found = Vec::new();
    for (name, property) in SystemProperties::from_flags(env, flags).all() {
        let (bare, key) = (name.strip_prefix("zookeeper."), keys::in_flag(&name));
        if bare.is_none() && key.is_none() {
            continue; // The JVM's own.
        }
        let shown = format!("-D{name}");
        let mut setting = understood(key, &shown, &property.value, property.place);
        let same = |other: &&Understood| Some(other.key.as_str()) == bare;
        match key.map(|key| key.scope) {
            Some(Scope::File) => {
                setting.state = Class::Tunes.word();
                setting.effect = "read from zoo.cfg only".to_owned();
            }
            Some(Scope::Both)
                if let Some(Some(by)) = settings.iter().find(same).map(|s| &s.place) =>
            {
                setting.state = "overridden";
                setting.effect = format!("set by {by}");
            }
            _ => {}
        }
        found.push(setting);
    }
    found
}

/// Variables of ZooKeeper's scripts that are set. Their flags have lines of their own.
fn of_variables(env: &Environment) -> Vec<Understood> {
    let known = KEYS.iter().filter(|key| key.scope == Scope::Variable);
    let set = known.filter_map(|key| Some((key, env.get(key.name)?)));
    let shown = |value: &str| {
        let words = value.split_ascii_whitespace().map(|word| {
            let definition = word.strip_prefix("-D").and_then(|flag| flag.split_once('='));
            definition.map_or(word.to_owned(), |(k, v)| format!("-D{}", judge::shown(k, v)))
        });
        words.collect::<Vec<_>>().join(" ")
    };
    set.map(|(key, value)| understood(Some(key), key.name, &shown(value), Place::Variable))
        .collect()
}

/// What has an effect and was not set.
fn defaults(settings: &[Understood]) -> Vec<Understood> {
    let is_set = |key: &Key| {
        settings.iter().any(|s| {
            s.key == key.name
                || s.key.trim_start_matches("-Dzookeeper.") == key.name
                || s.key.trim_start_matches("-D") == key.name
        })
    };
    let unset = KEYS
        .iter()
        .filter(|key| key.class == Class::Works && key.scope != Scope::Variable && !is_set(key));
    unset
        .map(|key| Understood {
            key: if key.scope == Scope::Flag {
                format!("-D{}", key.name)
            } else {
                key.name.to_owned()
            },
            value: key.default.to_owned(),
            place: None,
            state: key.class.word(),
            effect: key.text.to_owned(),
        })
        .collect()
}

fn understood(known: Option<&Key>, key: &str, value: &str, place: Place) -> Understood {
    let (state, effect) = match known {
        None => ("unknown", "no setting of ZooKeeper's".to_owned()),
        Some(known) if judge::asks_nothing(known, value) => {
            (Class::Works.word(), "asks for what is so anyway".to_owned())
        }
        Some(known) => {
            let asks = if known.class == Class::Guards { "asks for " } else { "" };
            (known.class.word(), format!("{asks}{}", known.text))
        }
    };
    let value = OneLine(judge::masked(key, value)).to_string();
    Understood { key: OneLine(key).to_string(), value, place: Some(place), state, effect }
}
