//! Assembles the [`Config`].

use std::collections::BTreeMap;

use super::checker::Checker;
use super::client_address::SecureAddress;
use super::ensemble::{self, Ensemble};
use super::file_settings::FileSettings;
use super::logins::{JaasFile, Logins};
use super::members::{DataDirState, Files, MyId};
use super::sasl::{ClientSasl, QuorumSasl, SaslRules};
use super::system_properties::SystemProperties;
use super::tls::{AdminTls, ClientTls, QuorumTls};
use super::{
    Config, ConfigError, Entries, Environment, Problem, PropertiesError, SettingPlace, ShownConfig,
    Warning, admin_server, auth_providers, clashes, client_address, client_sasl, client_tls,
    dynamic, file_settings, keys, logins, members, parse_properties, property_settings,
    quorum_sasl, quorum_tls, throttle, unsupported, unused,
};
use crate::model::{View, ViewError};

/// The configuration without a named file: a standalone server on the usual port, data in `./data`.
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

/// The file that `dynamicConfigFile` names, already read.
#[derive(Clone, Debug)]
pub(super) struct Dynamic<'a> {
    /// Its name, for messages.
    pub name: &'a str,
    /// Its bytes, or why there are none.
    pub text: Result<&'a [u8], String>,
}

/// What a configuration depends on in addition to its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParseContext<'a> {
    pub env: &'a Environment,
    pub flags: &'a [String],
    /// The file that `-Djava.security.auth.login.config` names.
    pub jaas: Option<&'a JaasFile>,
    /// Name and bytes of the file beside the static one that holds proposed views, if there is one.
    pub next: Option<(&'a str, &'a [u8])>,
    /// What is at the path `dataDir`, if there is no `myid`.
    pub data_dir: DataDirState,
}

impl<'a> ParseContext<'a> {
    pub const fn new(env: &'a Environment, flags: &'a [String]) -> Self {
        Self { env, flags, jaas: None, next: None, data_dir: DataDirState::There }
    }
}

/// Reads the text of a configuration file that names no dynamic file.
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
    let (config, problems, _) = parse_all(source, None, ParseContext::new(env, flags));
    config.ok_or(ConfigError { problems })
}

/// As [`parse`], with the dynamic file; returns the warnings even where there are problems.
pub(super) fn parse_all(
    source: Source<'_>,
    dynamic: Option<Dynamic<'_>>,
    context: ParseContext<'_>,
) -> (Option<Config>, Vec<Problem>, Vec<Warning>) {
    let entries = match entries_of(source.name, source.text) {
        Ok(entries) => entries,
        Err(problem) => return (None, vec![problem], vec![]),
    };
    let mut checker = Checker::of_file(source.name, entries);
    let files = Files {
        config_file: source.name.into(),
        ..add_dynamic(&mut checker, dynamic, context.next)
    };
    let (config, problems, warnings) = assemble(checker, source.my_id, files, context);
    let config = config.map(|mut config| {
        config.admin.iter_mut().for_each(|admin| admin.shown.set_text(source.text));
        config
    });
    (config, problems, warnings)
}

fn entries_of(name: &str, text: &[u8]) -> Result<Entries, Problem> {
    parse_properties(text).map_err(|error| {
        let PropertiesError::Unicode { line } = error;
        let place = SettingPlace::Line { file: name.to_owned(), line };
        Problem { place, text: format!("{error}; write a backslash twice if it is meant") }
    })
}

/// Adds the dynamic file. The lines that may change while an ensemble runs are all in it, or all in the static file (C-06).
fn add_dynamic(
    checker: &mut Checker,
    dynamic: Option<Dynamic<'_>>,
    next: Option<(&str, &[u8])>,
) -> Files {
    let Some(named) = checker.take("dynamicConfigFile") else { return Files::default() };
    let mut files = Files { dynamic_file: Some((&named.value).into()), ..Files::default() };
    if let Some(version) = checker.take("version") {
        checker.warn(&version.place, "version has no effect beside dynamicConfigFile; remove it");
    }
    for (key, setting) in checker.take_all(members::is_dynamic) {
        let text = format!("{key} is set beside dynamicConfigFile={}; move it there", named.value);
        checker.problem(&setting.place, text);
    }
    let (name, text) = match dynamic {
        Some(Dynamic { name, text: Ok(text) }) => {
            files.last_seen =
                next.map(|(name, text)| last_seen(checker, name, text)).unwrap_or_default();
            (name, text)
        }
        other => {
            let why = other.map_or("not read".to_owned(), |d| d.text.err().unwrap_or_default());
            let text = format!("dynamicConfigFile={}: {why}; name a file to read", named.value);
            checker.problem(&named.place, text);
            files.lacks_lines = true;
            return files;
        }
    };
    let entries = match entries_of(name, text) {
        Ok(entries) => entries,
        Err(problem) => {
            checker.problems.push(problem);
            files.lacks_lines = true;
            return files;
        }
    };
    let (good, strange): (Entries, Entries) =
        entries.into_iter().partition(|(key, _)| members::is_dynamic(key.trim()));
    for (key, entry) in strange {
        let place = SettingPlace::Line { file: name.to_owned(), line: entry.line };
        let text = match key.trim() {
            "version" => {
                "version must not stand in a dynamic file; its name ends with it".to_owned()
            }
            key => format!("{key} must not stand in a dynamic file; move it to the static one"),
        };
        checker.problem(&place, text);
    }
    checker.add_file(name, good);
    if let Some(version) = dynamic::version_in(name) {
        checker.set("version", format!("{version:x}"), named.place);
    }
    files
}

/// The views that were proposed, and perhaps committed, before the last stop, oldest first (D-09).
fn last_seen(checker: &mut Checker, name: &str, text: &[u8]) -> Vec<View> {
    let place = SettingPlace::File(name.to_owned());
    match proposed_views(text) {
        Ok(Some(views)) => return views,
        Ok(None) => checker.warn(&place, "has no server.N line, so it is ignored; remove it"),
        Err(error) => {
            checker.problem(
                &place,
                format!(
                    "{error}; while a majority of the other members has a leader, remove the file; otherwise copy it from another member, as it may be the only word of a reconfiguration"
                ),
            );
        }
    }
    Vec::new()
}

/// The views in the text of proposed ones, oldest first. `None`: it has no `server.N` line.
fn proposed_views(text: &[u8]) -> Result<Option<Vec<View>>, ViewError> {
    let entries = parse_properties(text)?;
    if !entries.keys().any(|key| key.trim().starts_with("server.")) {
        return Ok(None);
    }
    let newest = View::from_entries(&entries)?;
    let mut views = dynamic::earlier_proposed(&String::from_utf8_lossy(text))?;
    views.push(newest);
    Ok(Some(views))
}

fn ensemble_of(
    checker: &mut Checker,
    system: &mut SystemProperties,
    keys: ensemble::Keys,
    files: Files,
    from_file: &Option<FileSettings>,
    context: ParseContext<'_>,
) -> Ensemble {
    let tick_time_ms = from_file.as_ref().map_or(0, |from_file| from_file.tick_time_ms);
    let ensemble = ensemble::take(checker, system, keys, files, tick_time_ms);
    match from_file {
        Some(FileSettings { reconfig_enabled: true, .. }) => {
            with_last_seen(checker, context.next, ensemble)
        }
        _ => ensemble,
    }
}

/// Adds the views that were proposed before the last stop, if the static file names the members. Java does not read them there. But a server
/// that is stopped after it has acknowledged its first proposed view has no dynamic file yet. If its operator has changed the members' lines
/// since, [`Ensemble::seen_before_lines`] has them.
fn with_last_seen(
    checker: &mut Checker,
    next: Option<(&str, &[u8])>,
    ensemble: Ensemble,
) -> Ensemble {
    let next = next.filter(|_| ensemble.dynamic_file.is_none());
    let Some((name, text)) = next else { return ensemble };
    if !dynamic::is_beside(&String::from_utf8_lossy(text), &ensemble.view) {
        let seen_before_lines = proposed_views(text).ok().flatten().unwrap_or_default();
        return Ensemble { seen_before_lines, ..ensemble };
    }
    let last_seen = last_seen(checker, name, text);
    if !last_seen.is_empty() {
        let text = "this server has acknowledged this configuration before it was stopped: it counts in addition to the server.N lines until a leader says whether it was committed; let its members run, or see docs/operations.md, \"A proposed configuration whose members are gone\"";
        checker.warn(&SettingPlace::File(name.to_owned()), text);
    }
    Ensemble { last_seen, ..ensemble }
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
    let context = ParseContext::new(env, flags);
    let (config, problems, _) = positional_all(arguments, context);
    config.ok_or(ConfigError { problems })
}

/// As [`parse_positional`], and returns the warnings even where there are problems.
pub(super) fn positional_all(
    arguments: &[String],
    context: ParseContext<'_>,
) -> (Option<Config>, Vec<Problem>, Vec<Warning>) {
    let names = ["clientPort", "dataDir", "tickTime", "maxClientCnxns"];
    let mut settings: BTreeMap<_, _> = names.into_iter().zip(arguments.iter().cloned()).collect();
    settings.entry("maxClientCnxns").or_insert_with(|| "0".to_owned());
    let checker = Checker::of_arguments(settings.into_iter());
    assemble(checker, None, Files::default(), context)
}

/// The configuration if there is no problem, all problems, all warnings.
fn assemble(
    mut checker: Checker,
    my_id: Option<&str>,
    files: Files,
    context: ParseContext<'_>,
) -> (Option<Config>, Vec<Problem>, Vec<Warning>) {
    let (mut system, odd_words) = SystemProperties::with_warnings(context.env, context.flags);
    checker.warnings.extend(odd_words);
    let many_addresses = system.is_true("zookeeper.multiAddress.enabled", false);
    let mut my_id = MyId::new(&checker, my_id, context.data_dir);
    let data_dir = file_settings::take_data_dir(&mut checker);
    my_id.is_elsewhere = data_dir.is_none();
    let places = clashes::PortPlaces::of(&checker, &system);
    let members = members::take(&mut checker, &my_id, many_addresses, &files);
    let mut idle = unsupported::Idle::default();
    let (is_member, is_lost) = (members.ensemble.is_some(), members.is_lost);
    let has_misspelt_line = members.has_misspelt_line;
    let keys = members.ensemble.and_then(|found| ensemble::take_keys(&mut checker, found));
    quorum_sasl::check_switches(&mut checker);
    let switches = is_member.then(|| Switches::take(&mut checker));
    unsupported::take_idle(&mut checker, &mut idle);
    let problems = checker.problems.len();
    let secure = client_address::take_secure(&mut checker);
    let secure_is_wrong = checker.problems.len() > problems;
    let client_place = checker.get("clientPort").map(|setting| setting.place.clone());
    let from_file = file_settings::take(
        &mut checker,
        data_dir,
        members.own_line,
        secure.as_ref(),
        secure_is_wrong,
    );
    unsupported::pass_through(&mut checker, &mut system);
    let shown = ShownConfig::of(&system);
    let ensemble =
        keys.map(|keys| ensemble_of(&mut checker, &mut system, keys, files, &from_file, context));
    let logins = logins::read(&mut checker, context.env, &mut system, context.jaas);
    let secured = Secured::take(&mut checker, &mut system, secure, switches, &logins, &mut idle);
    unsupported::properties(&mut checker, &system, &mut idle);
    property_settings::refuse_unknown_names(&mut checker, &mut system);
    throttle::refuse(&mut checker, &system);
    let providers = auth_providers::find(&mut checker, &system, secured.clients_use_tls);
    if secured.client_sasl.is_none() {
        client_sasl::check_required(&mut checker, &system, &providers, &logins);
    }
    // Without the settings of the file no server will run; properties that are not taken then only miss their warnings.
    let config =
        from_file.map(|from_file| property_settings::take(&mut checker, &mut system, from_file));
    let jaas_file = logins.file();
    let config =
        config.map(|config| secured.into_config(Config { providers, jaas_file, ..config }));
    if let Some(config) = &config {
        check_ports(&mut checker, config, ensemble.as_ref(), client_place, &places);
    }
    if is_lost || has_misspelt_line {
        idle.forget(keys::MEMBERS_ONLY); // The member that is meant would use them.
    }
    checker.warnings.extend(idle.warnings());
    checker.problems.sort_by(|a, b| a.place.cmp(&b.place));
    checker.warnings.sort_by(|a, b| a.place.cmp(&b.place));
    assert!(config.is_some() || !checker.problems.is_empty(), "no config and no problem");
    let warnings = checker.warnings.clone();
    let config = config.filter(|_| checker.problems.is_empty());
    (
        config.map(|config| with_shown(Config { ensemble, warnings, ..config }, shown)),
        checker.problems,
        checker.warnings,
    )
}

fn check_ports(
    checker: &mut Checker,
    config: &Config,
    ensemble: Option<&Ensemble>,
    client_place: Option<SettingPlace>,
    places: &clashes::PortPlaces,
) {
    let mut own = None;
    if let Some(ensemble) = ensemble {
        members::check_id_range(checker, config.extended_types_enabled, ensemble.my_id);
        own = ensemble.own();
        let (view, id) = (&ensemble.view, ensemble.my_id);
        let (host, port) = (config.client_host.as_deref(), config.client_port);
        clashes::check_client_port(checker, host, port, client_place, view, id);
        let (port, place) = (ensemble.observer_master_port, places.observer_master.as_ref());
        own.inspect(|own| clashes::warn_of_observer_master_port(checker, port, place, own));
    }
    let Config { client_tls, metrics, admin, .. } = config;
    let client = (config.client_host.as_deref(), config.client_port);
    let (tls, metrics, admin) = (client_tls.as_ref(), metrics.prometheus.as_ref(), admin.as_ref());
    clashes::check_http_ports(
        checker,
        &clashes::Ports { client, tls, metrics, admin, own },
        places,
    );
}

fn with_shown(mut config: Config, shown: ShownConfig) -> Config {
    if let Some(admin) = &mut config.admin {
        admin.shown = shown;
    }
    config
}

/// Switches of TLS and SASL between servers, which are read from the file alone.
struct Switches {
    tls: quorum_tls::Switches,
    sasl: quorum_sasl::Switches,
}

impl Switches {
    fn take(checker: &mut Checker) -> Self {
        Self { tls: quorum_tls::take_switches(checker), sasl: quorum_sasl::take_switches(checker) }
    }
}

/// The settings of TLS and SASL.
struct Secured {
    clients_use_tls: bool,
    client_tls: Option<ClientTls>,
    quorum_tls: Option<QuorumTls>,
    admin_tls: Option<AdminTls>,
    client_sasl: Option<ClientSasl>,
    sasl_rules: SaslRules,
    quorum_sasl: Option<QuorumSasl>,
}

impl Secured {
    /// * `switches`: those of a member of an ensemble.
    fn take(
        checker: &mut Checker,
        system: &mut SystemProperties,
        secure: Option<SecureAddress>,
        switches: Option<Switches>,
        logins: &Logins,
        idle: &mut unsupported::Idle,
    ) -> Self {
        let servers =
            unused::ServerConnections::of(switches.as_ref().map(|switches| &switches.tls));
        let clients_use_tls = client_tls::is_on(system, secure.as_ref());
        let client_tls = client_tls::take(checker, system, secure);
        let client_sasl = client_sasl::take(checker, system, logins);
        let sasl_rules = client_sasl::take_rules(checker, system);
        let (mut quorum_tls, mut quorum_sasl): (Option<QuorumTls>, _) = (None, None);
        if let Some(Switches { tls, sasl }) = switches {
            let fips_mode = quorum_tls::take_fips_mode(checker, system);
            quorum_tls = quorum_tls::take(checker, system, &tls, fips_mode);
            quorum_sasl = quorum_sasl::take(checker, system, sasl, logins, fips_mode);
        }
        let of_servers = quorum_tls.as_ref().map(|tls| &tls.settings);
        let admin_tls = match (servers, of_servers) {
            // Problems with the stores are reported already.
            (unused::ServerConnections::Tls, None) => None,
            (_, quorum) => admin_server::take_tls(checker, system, quorum),
        };
        let place = unused::Tls { clients: clients_use_tls, servers, admin: admin_tls.is_some() };
        unused::report(system, idle, place);
        Self {
            clients_use_tls,
            client_tls,
            quorum_tls,
            admin_tls,
            client_sasl,
            sasl_rules,
            quorum_sasl,
        }
    }

    fn into_config(mut self, mut config: Config) -> Config {
        if let Some(admin) = &mut config.admin {
            admin.tls = self.admin_tls.take();
        }
        let Self { client_tls, quorum_tls, client_sasl, sasl_rules, quorum_sasl, .. } = self;
        Config { client_tls, quorum_tls, client_sasl, sasl_rules, quorum_sasl, ..config }
    }
}
