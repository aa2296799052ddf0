//! Checks settings against the table of keys: they are refused, without effect, or unknown.

use std::ops::RangeInclusive;

use super::checker::Checker;
use super::keys::{self, Class, Form, Key, Scope};
use super::secrets::shown;
use super::system_properties::{Property, SystemProperties};
use super::{SettingPlace, Warning};

const INT: RangeInclusive<i32> = i32::MIN..=i32::MAX;

/// Authentication providers that this server has.
const OWN_PROVIDERS: [&str; 6] = [
    "org.apache.zookeeper.server.auth.DigestAuthenticationProvider",
    "org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider",
    "org.apache.zookeeper.server.auth.KeyAuthenticationProvider",
    "org.apache.zookeeper.server.auth.IPAuthenticationProvider",
    "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
    "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
];

/// Settings without effect, grouped by the reason: each reason makes one line.
#[derive(Debug, Default)]
pub(super) struct Idle {
    groups: Vec<(&'static str, Vec<(SettingPlace, String)>)>,
}

impl Idle {
    pub fn add(&mut self, why: &'static str, place: SettingPlace, shown: String) {
        match self.groups.iter_mut().find(|(other, _)| *other == why) {
            Some((_, settings)) => settings.push((place, shown)),
            None => self.groups.push((why, vec![(place, shown)])),
        }
    }

    /// Forgets the settings that have no effect for this reason.
    pub fn forget(&mut self, why: &str) {
        self.groups.retain(|(other, _)| *other != why);
    }

    /// One warning for each reason, at the first of its settings.
    pub fn warnings(self) -> impl Iterator<Item = Warning> {
        self.groups.into_iter().map(|(why, mut settings)| {
            settings.sort_by(|a, b| a.0.cmp(&b.0));
            let first = settings[0].0.clone();
            let mut names = Vec::new();
            for (place, shown) in settings {
                names.push(match &place {
                    _ if place == first => shown,
                    SettingPlace::Line { line, .. } => format!("{shown} (line {line})"),
                    _ => format!("{shown} ({place})"),
                });
            }
            let act = match names.len() {
                _ if has_remedy(why) => "",
                1 => "; remove it",
                _ => "; remove them",
            };
            let text = format!("{}: no effect; {why}{act}", names.join(", "));
            Warning::new(first, text)
        })
    }
}

/// Whether the reason for no effect says itself what to do.
fn has_remedy(why: &str) -> bool {
    why.contains(": set ") || why.ends_with(": remove it")
}

/// Takes the settings that only a file may have and that set nothing in this server.
///
/// Values are still checked: Java does not start with a wrong one, whether it is used or not.
pub(super) fn take_idle(checker: &mut Checker, idle: &mut Idle) {
    for (name, setting) in checker.all() {
        let Some(key) = keys::in_file(&name).filter(|key| key.scope == Scope::File) else {
            continue;
        };
        if matches!(key.class, Class::Works | Class::Ensemble) {
            continue;
        }
        if is_well_formed(checker, key, &name) {
            judge(checker, idle, key, &name, &setting.value, setting.place);
        }
        checker.take(&name);
    }
}

/// Checks the form of a value as Java does; a problem says what is wrong.
fn is_well_formed(checker: &mut Checker, key: &Key, name: &str) -> bool {
    let problems = checker.problems.len();
    match key.form {
        Form::Int => _ = checker.number(name, INT),
        Form::Three => _ = checker.number(name, 3..=3),
        Form::Long => drop(checker.long(name)),
        Form::Bool => _ = checker.boolean(name),
        Form::Role => _ = checker.one_of(name, &["participant", "observer"]),
        Form::Provider | Form::Text => {}
    }
    checker.problems.len() == problems
}

/// Turns every key that was not taken into the property `zookeeper.<key>`, and oxkeeper's own keys into properties of the same
/// name. They win over flags.
pub(super) fn pass_through(checker: &mut Checker, system: &mut SystemProperties) {
    for (key, setting) in checker.take_all(|_| true) {
        let is_own = keys::in_file(&key).is_some_and(|key| key.scope == Scope::Own);
        let name = if is_own { key } else { format!("zookeeper.{key}") };
        system.set(&name, &setting.value, setting.place);
    }
}

/// Checks all properties; none is taken.
pub(super) fn properties(checker: &mut Checker, system: &SystemProperties, idle: &mut Idle) {
    for (name, Property { value, place }) in system.all() {
        match place {
            SettingPlace::Line { .. } => {
                let key = name.strip_prefix("zookeeper.").unwrap_or(&name);
                from_file(checker, idle, key, &value, place);
            }
            _ => from_flag(checker, idle, &name, &value, place),
        }
    }
}

fn from_file(checker: &mut Checker, idle: &mut Idle, name: &str, value: &str, place: SettingPlace) {
    let shown = shown(name, value);
    let doubled = name.strip_prefix("zookeeper.").filter(|rest| keys::in_file(rest).is_some());
    match keys::in_file(name) {
        Some(key) if key.scope == Scope::Flag => {
            let text = format!("{shown} has no effect; only the flag -D{name} sets it");
            checker.warn(&place, text);
        }
        Some(key) => judge(checker, idle, key, name, value, place),
        None if doubled.is_some() => {
            let key = doubled.unwrap_or_default();
            checker.warn(&place, format!("{shown} has no effect; in a file it is written {key}"));
        }
        None if name.starts_with('\u{ef}') => {
            let text = format!(
                "{shown} has no effect: a byte order mark is before it; save the file without one"
            );
            checker.warn(&place, text);
        }
        None => {
            let hint = hint(name, "", "the flag ");
            checker.warn(&place, format!("{shown}: unknown setting, ignored; {hint}"));
        }
    }
}

fn from_flag(checker: &mut Checker, idle: &mut Idle, name: &str, value: &str, place: SettingPlace) {
    let shown = format!("-D{}", shown(name, value));
    let bare = name.strip_prefix("zookeeper.");
    match (keys::in_flag(name), bare) {
        (Some(key), _) if key.scope == Scope::File => {
            let key = bare.unwrap_or(name);
            checker.warn(&place, format!("{shown} has no effect; {key} is read from zoo.cfg only"));
        }
        (Some(key), _) => judge(checker, idle, key, &format!("-D{name}"), value, place),
        (None, Some(bare)) => {
            let hint = hint(bare, "zookeeper.", "");
            checker.warn(&place, format!("{shown}: unknown setting, ignored; {hint}"));
        }
        // This one Java also reads under its older, bare name.
        (None, None) if name == "fsync.warningthresholdms" => {}
        (None, None) if keys::in_file(name).is_some_and(|key| key.scope == Scope::Both) => {
            checker.warn(&place, format!("{shown} has no effect; the flag is -Dzookeeper.{name}"));
        }
        // Properties of the JVM and of other software, unless the name is nearly that of a setting.
        (None, None) => {
            if let Some(meant) = keys::nearest_flag(name) {
                let text = format!("{shown}: unknown flag, ignored; is it -D{meant}?");
                checker.warn(&place, text);
            }
        }
    }
}

/// What an operator does about an unknown setting.
///
/// * `before_key`, `before_flag`: texts before the name of the key or flag that `name` may be a misspelling of.
fn hint(name: &str, before_key: &str, before_flag: &str) -> String {
    if let Some(line) = keys::nearest_server_line(name).filter(|_| before_key.is_empty()) {
        return format!("is it {line}?");
    }
    match (keys::nearest(name), keys::nearest_flag(name)) {
        (Some(key), _) => format!("is it {before_key}{key}?"),
        (None, Some(flag)) => format!("is it {before_flag}-D{flag}?"),
        (None, None) => "correct or remove it".to_owned(),
    }
}

/// Whether the setting stands for what this server does anyway.
pub(super) fn asks_nothing(key: &Key, value: &str) -> bool {
    let own_provider = key.class == Class::Guards && OWN_PROVIDERS.contains(&value);
    key.asks_nothing(value) || own_provider
}

/// Treats a known setting by its class.
fn judge(
    checker: &mut Checker,
    idle: &mut Idle,
    key: &'static Key,
    name: &str,
    value: &str,
    place: SettingPlace,
) {
    let shown = shown(name, value);
    match key.class {
        Class::Works | Class::Ensemble => {}
        _ if asks_nothing(key, value) => {}
        Class::Tunes => idle.add(key.text, place, shown),
        Class::Member => idle.add(keys::MEMBERS_ONLY, place, shown),
        Class::Guards => {
            let asks = key.text;
            let text = format!(
                "{shown} asks for {asks}, which this server does not have; \
                 remove it to run without that protection"
            );
            checker.problem(&place, text);
        }
    }
}
