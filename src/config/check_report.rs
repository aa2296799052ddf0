//! Each setting of a configuration with its value and its effect, as `oxkeeper config check` shows them.

use super::args::{self, Files};
use super::ensemble::Ensemble;
use super::keys::{self, Class, KEYS, Key, Scope};
use super::problem::OneLine;
use super::system_properties::{SystemProperties, trim};
use super::tls::{ClientTls, QuorumTls, TlsSettings};
use super::unused::{ServerConnections, Tls};
use super::{
    Config, Environment, Launch, Problem, SettingPlace, Settings, Warning, client_address,
    parse_properties, risks, secrets, unsupported, unused,
};
use crate::model::Member;
use std::path::PathBuf;

/// The line of a server whose disk fills up.
const NEVER_PURGED: &str = "autopurge.purgeInterval is 0, so old snapshots and logs are never removed; set it to hours, such as 24, or \
     run oxkeeper purge";

/// The state of a setting that no part knows.
const UNKNOWN: &str = "unknown";

/// The text before a value that takes the place of an odd one.
const COUNTS_AS: &str = " (counts as ";

/// A whole configuration, checked without starting a server.
#[derive(Clone, Debug)]
pub struct Check {
    /// The file, or where else the settings come from.
    pub source: String,
    /// Settings of the file in the order of its lines, then flags, variables and defaults.
    pub settings: Vec<Understood>,
    /// The server starts only if there are none.
    pub problems: Vec<Problem>,
    pub warnings: Vec<Warning>,
    /// What the settings leave open.
    pub risks: Vec<String>,
    /// Files that hold keys or passwords, each with the setting that names it.
    pub secret_files: Vec<(String, PathBuf)>,
    /// Folders of data, each with the setting that names it.
    pub folders: Vec<(&'static str, PathBuf)>,
    /// The server makes folders that are missing (`datadir.autocreate`).
    pub makes_folders: bool,
    /// What each warning about this machine is about: folders or addresses.
    pub doubts: Vec<&'static str>,
    /// The ensemble that this server is a member of, if it is.
    pub ensemble: Option<Ensemble>,
    /// The host where the server would listen for clients, and where it is set; `None`: every address. With problems it is what
    /// the file says.
    pub client_host: Option<(String, SettingPlace)>,
    /// TLS, if it is configured without problems.
    pub client_tls: Option<ClientTls>,
    pub quorum_tls: Option<QuorumTls>,
    /// TLS of the HTTP ports that have stores of their own.
    pub http_tls: Vec<TlsSettings>,
}

/// One setting.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Understood {
    /// As it was written; a flag with its `-D`.
    pub key: String,
    /// Without secrets, which are not shown.
    pub value: String,
    /// Where it was made; `None`: it is not set, and has its default.
    pub place: Option<SettingPlace>,
    /// `works`, `no effect`, `refused`, `ensemble`, `unknown`, `overridden`, `wrong`.
    pub state: &'static str,
    /// What it does, or why it has no effect.
    pub effect: String,
}

/// Checks a configuration; a file that cannot be read is a problem.
pub fn check(launch: &Launch, env: &Environment) -> Check {
    let (config, problems, warnings) = args::load_all(launch, env);
    let mut settings = match &launch.settings {
        Settings::Positional(arguments) => of_arguments(arguments),
        settings => Files::read(&args::from_disk, settings)
            .map(|files| of_files(&files))
            .unwrap_or_default(),
    };
    let flags = of_flags(env, &launch.flags, &settings);
    settings.extend(flags);
    settings.extend(of_variables(env));
    settings.iter_mut().for_each(|setting| mark(setting, &problems, &warnings));
    let is_fine = config.is_some();
    let risks = config.as_ref().map(risks_of).unwrap_or_default();
    let secret_files = config.as_ref().map(risks::secret_files).unwrap_or_default();
    let folders = config.as_ref().map(folders_of).unwrap_or_default();
    let makes_folders = config.as_ref().is_some_and(|config| config.data_dir_auto_create);
    let tls = config.as_ref().map(where_tls_is);
    let idle = |key: &str| {
        let key = key.trim_start_matches("-Dzookeeper.");
        tls.and_then(|tls| unused::reason(key, tls))
    };
    let (client_tls, quorum_tls, http_tls) = config.as_ref().map(tls_of).unwrap_or_default();
    let client_host = client_host(config.as_ref(), &settings, launch);
    let ensemble = config.and_then(|config| config.ensemble);
    // With a problem there is no checked ensemble, but `server.N` lines show that the file is a member's.
    let is_of_ensemble = |key: &str| key.starts_with("server.") || key == "dynamicConfigFile";
    let is_member = || settings.iter().any(|setting: &Understood| is_of_ensemble(&setting.key));
    if ensemble.is_some() || !is_fine && is_member() {
        settings.iter_mut().for_each(used_by_member);
    } else if let Some(line) = settings.iter().find(is_meant_as_server_line).cloned() {
        let idle = settings.iter_mut().filter(|setting| setting.effect == keys::MEMBERS_ONLY);
        idle.for_each(|setting| {
            setting.effect = format!("{}, and {} is no server.N line", keys::MEMBERS_ONLY, line.key)
        });
    }
    for setting in settings.iter_mut().filter(|setting| setting.state == Class::Works.word()) {
        if let Some(why) = idle(&setting.key) {
            setting.state = Class::Tunes.word();
            setting.effect = why.to_owned();
        }
    }
    if is_fine {
        let defaults = defaults(&settings).into_iter();
        let defaults: Vec<_> = defaults.filter(|setting| idle(&setting.key).is_none()).collect();
        settings.extend(defaults);
    }
    let source = launch.settings.to_string();
    Check {
        source,
        settings,
        problems,
        warnings,
        risks,
        secret_files,
        folders,
        makes_folders,
        doubts: Vec::new(),
        ensemble,
        client_host,
        client_tls,
        quorum_tls,
        http_tls,
    }
}

/// Marks a setting whose value is not accepted, or counts as another one.
fn mark(setting: &mut Understood, problems: &[Problem], warnings: &[Warning]) {
    let is_wrong = problems.iter().any(|problem| is_about(setting, &problem.place, &problem.text));
    if is_wrong && setting.state != Class::Guards.word() {
        setting.state = "wrong";
    }
    let about = warnings.iter().filter(|w| is_about(setting, &w.place, &w.text));
    let used = about.filter_map(|warning| warning.used.as_deref()).next();
    if let Some(used) = used.filter(|_| !setting.value.contains(COUNTS_AS)) {
        setting.value = format!("{}{COUNTS_AS}{used})", setting.value);
    }
}

/// Whether a problem or a warning is about this setting. A line of a file has one setting; flags and arguments share their place,
/// so the text has to name it.
fn is_about(setting: &Understood, place: &SettingPlace, text: &str) -> bool {
    let key = setting.key.trim_start_matches("-D");
    let named = text.split_once('=').map(|(named, _)| named.trim_start_matches("-D"));
    let is_named = || named == Some(key) || named == key.strip_prefix("zookeeper.");
    let is_line = matches!(place, SettingPlace::Line { .. });
    setting.place.as_ref() == Some(place) && (is_line || is_named())
}

fn risks_of(config: &Config) -> Vec<String> {
    let never_purged = config.purge_interval_hours.is_none().then(|| NEVER_PURGED.to_owned());
    never_purged.into_iter().chain(risks::risks(config)).collect()
}

fn folders_of(config: &Config) -> Vec<(&'static str, PathBuf)> {
    let mut folders = vec![("dataDir", config.data_dir.clone())];
    if config.data_log_dir != config.data_dir {
        folders.push(("dataLogDir", config.data_log_dir.clone()));
    }
    folders
}

/// The settings of TLS: of client ports, between servers, and of HTTP ports.
fn tls_of(config: &Config) -> (Option<ClientTls>, Option<QuorumTls>, Vec<TlsSettings>) {
    (config.client_tls.clone(), config.quorum_tls.clone(), risks::http_tls(config))
}

fn where_tls_is(config: &Config) -> Tls {
    let servers = match (&config.ensemble, &config.quorum_tls) {
        (None, _) => ServerConnections::Alone,
        (Some(_), None) => ServerConnections::Plain,
        (Some(_), Some(_)) => ServerConnections::Tls,
    };
    let admin = config.admin.as_ref().is_some_and(|admin| admin.tls.is_some());
    Tls { clients: config.client_tls.is_some(), servers, admin }
}

fn client_host(
    config: Option<&Config>,
    settings: &[Understood],
    launch: &Launch,
) -> Option<(String, SettingPlace)> {
    let written = || written_client_host(settings, launch);
    let host = config.map_or_else(written, |config| config.client_host.clone())?;
    let place = place_of_host(settings, &host);
    let place = place.unwrap_or_else(|| SettingPlace::File(launch.settings.to_string()));
    Some((host, place))
}

/// The host for clients as the server's own line or `clientPortAddress` names it, where problems keep it from being checked.
fn written_client_host(settings: &[Understood], launch: &Launch) -> Option<String> {
    let files = Files::read(&args::from_disk, &launch.settings).ok();
    let own_key = files.and_then(|files| files.my_id).map(|id| format!("server.{}", id.trim()));
    let find = |key: &str| settings.iter().find(|setting| setting.key == key);
    let own_line = own_key.and_then(|key| find(&key));
    let own = own_line.and_then(|line| Member::parse(&line.key, &line.value).ok());
    match own.and_then(|own| own.client) {
        Some((host, _)) => host,
        None => client_address::host_of(&find("clientPortAddress")?.value).ok().flatten(),
    }
}

/// The setting that gives the host for clients: the key for it, or the line of this server.
fn place_of_host(settings: &[Understood], host: &str) -> Option<SettingPlace> {
    let is_line = |setting: &&Understood| {
        let member = Member::parse(&setting.key, &setting.value);
        member
            .is_ok_and(|member| member.client.is_some_and(|(its, _)| its.as_deref() == Some(host)))
    };
    let is_key = |setting: &&Understood| setting.key == "clientPortAddress";
    let by = settings.iter().find(is_line).or_else(|| settings.iter().find(is_key))?;
    by.place.clone()
}

/// On a member, marks a setting that only members use as `works`.
fn used_by_member(setting: &mut Understood) {
    let known = match setting.key.strip_prefix("-D") {
        Some(flag) => keys::in_flag(flag),
        None => keys::in_file(&setting.key),
    };
    if let Some(known) = known.filter(|known| known.class == Class::Member) {
        if setting.state == Class::Member.word() {
            setting.state = Class::Works.word();
        }
        if setting.effect == keys::MEMBERS_ONLY {
            setting.effect = known.text.to_owned();
        }
    }
}

/// Whether an unknown setting of a file is a misspelt `server.N`.
fn is_meant_as_server_line(setting: &&Understood) -> bool {
    setting.state == UNKNOWN && keys::nearest_server_line(&setting.key).is_some()
}

fn of_arguments(arguments: &[String]) -> Vec<Understood> {
    let names = ["clientPort", "dataDir", "tickTime", "maxClientCnxns"];
    let pairs = names.into_iter().zip(arguments);
    pairs
        .map(|(key, value)| understood(keys::in_file(key), key, value, SettingPlace::Argument))
        .collect()
}

fn of_files(files: &Files) -> Vec<Understood> {
    let dynamic = files.dynamic.iter().filter_map(|(name, text)| Some((name, text.as_ref().ok()?)));
    let mut settings = Vec::new();
    for (file, text) in [(&files.name, &files.text)].into_iter().chain(dynamic) {
        let entries = parse_properties(text).unwrap_or_default();
        let mut lines: Vec<_> = entries.into_iter().collect();
        lines.sort_by_key(|(_, entry)| entry.line);
        for (key, entry) in lines {
            let place = SettingPlace::Line { file: file.clone(), line: entry.line };
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

/// ZooKeeper's flags; a setting that is in the file too is overridden by the file.
fn of_flags(env: &Environment, flags: &[String], settings: &[Understood]) -> Vec<Understood> {
    let mut found = Vec::new();
    for (name, property) in SystemProperties::from_flags(env, flags).all() {
        let (bare, key) = (name.strip_prefix("zookeeper."), keys::in_flag(&name));
        if bare.is_none() && key.is_none() {
            continue; // The JVM's own.
        }
        let shown = format!("-D{name}");
        let mut setting = understood(key, &shown, &property.value, property.place);
        let is_own = key.is_some_and(|key| key.scope == Scope::Own);
        let in_file = if is_own { Some(name.as_str()) } else { bare };
        let same = |other: &&Understood| Some(other.key.as_str()) == in_file;
        match key.map(|key| key.scope) {
            Some(Scope::File) => {
                setting.state = Class::Tunes.word();
                setting.effect = "read from zoo.cfg only".to_owned();
            }
            Some(Scope::Both | Scope::Own)
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
            definition.map_or(word.to_owned(), |(k, v)| format!("-D{}", secrets::shown(k, v)))
        });
        words.collect::<Vec<_>>().join(" ")
    };
    set.map(|(key, value)| understood(Some(key), key.name, &shown(value), SettingPlace::Variable))
        .collect()
}

/// Settings that have an effect and are not set.
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

fn understood(known: Option<&Key>, key: &str, value: &str, place: SettingPlace) -> Understood {
    let (state, effect) = match known {
        None => (UNKNOWN, "unknown setting, ignored".to_owned()),
        Some(known) if unsupported::asks_nothing(known, value) => {
            (Class::Works.word(), "same as the default".to_owned())
        }
        Some(known) if known.class == Class::Member => {
            (known.class.word(), keys::MEMBERS_ONLY.to_owned())
        }
        Some(known) => {
            let asks = if known.class == Class::Guards { "asks for " } else { "" };
            (known.class.word(), format!("{asks}{}", known.text))
        }
    };
    // A setting that is read from the file alone is checked strictly: an odd value is a problem.
    let lenient = known.filter(|known| known.scope != Scope::File);
    let counts_as = lenient.and_then(|known| known.form.counts_as(value, known.default));
    let value = match counts_as {
        Some(counts_as) => {
            format!("{}{COUNTS_AS}{counts_as})", OneLine(secrets::masked(key, value)))
        }
        None => OneLine(secrets::masked(key, value)).to_string(),
    };
    Understood { key: OneLine(key).to_string(), value, place: Some(place), state, effect }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{load, parse_args};

    #[test]
    fn odd_value_is_shown_with_the_value_that_it_counts_as() {
        let value = |line: &str| {
            let (key, value) = line.split_once('=').unwrap();
            understood(keys::in_file(key), key, value, SettingPlace::Argument).value
        };
        assert_eq!(value("digest.enabled=yes"), "yes (counts as false)");
        assert_eq!(value("digest.enabled=True"), "True");
        assert_eq!(value("snapCount=many"), "many (counts as 100000)");
        assert_eq!(value("snapCount=0x10"), "0x10");
        assert_eq!(value("tickTime=x"), "x", "this value is a problem");
        // AdminServer listens then, as with Java.
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("zoo.cfg");
        let text =
            format!("dataDir={}\nclientPort=2181\nadmin.enableServer=no\n", dir.path().display());
        std::fs::write(&file, text).unwrap();
        let env = Environment::new();
        let launch = parse_args(&[file.display().to_string()], &env).unwrap();
        let check = check(&launch, &env);
        let admin = check.settings.iter().find(|s| s.key == "admin.enableServer").unwrap();
        assert_eq!((admin.value.as_str(), admin.state), ("no (counts as true)", "works"));
    }

    // rows: C-267
    #[test]
    fn variables_of_javas_scripts_work_or_are_shown_without_effect() {
        let dir = tempfile::tempdir().unwrap();
        let text = format!("dataDir={}\nclientPort=2199\n", dir.path().display());
        std::fs::write(dir.path().join("my.cfg"), text).unwrap();
        let folder = dir.path().display().to_string();
        let env: Environment = [
            ("ZOOCFGDIR", folder.as_str()),
            ("ZOOCFG", "my.cfg"),
            ("ZOO_DATADIR_AUTOCREATE_DISABLE", "1"),
            ("ZOO_LOG_DIR", "/logs"),
            ("ZOO_LOG_FILE", "zk.log"),
            ("ZOOPIDFILE", "/run/zk.pid"),
            ("ZOOMAIN", "my.Main"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let launch = parse_args(&[], &env).unwrap();
        let config = load(&launch, &env).unwrap();
        assert_eq!((config.client_port, config.data_dir_auto_create), (Some(2199), false));
        let check = check(&launch, &env);
        let setting = |name: &str| check.settings.iter().find(|s| s.key == name).unwrap();
        for works in ["ZOOCFGDIR", "ZOOCFG", "ZOO_DATADIR_AUTOCREATE_DISABLE"] {
            assert_eq!(setting(works).state, "works", "{works}");
        }
        for (idle, value) in [
            ("ZOO_LOG_DIR", "/logs"),
            ("ZOO_LOG_FILE", "zk.log"),
            ("ZOOPIDFILE", "/run/zk.pid"),
            ("ZOOMAIN", "my.Main"),
        ] {
            assert_eq!((setting(idle).state, setting(idle).value.as_str()), ("no effect", value));
        }
    }
}
