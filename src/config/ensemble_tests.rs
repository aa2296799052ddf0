//! Whole configurations of members, compared with their outcome in Java.

use crate::config::parse::{Dynamic, ParseContext, parse_all};
use crate::config::{Config, ConfigError, Environment, Source};
use crate::model::golden::bytes_of;
use crate::model::{Role, View};

/// A case of `Conf.java`: `myid!static file&&name:another file`.
fn parsed(case: &str) -> Result<Config, ConfigError> {
    let (my_id, files) = match case.split_once('!') {
        Some((id, files)) => (Some(id), files),
        None => (None, case),
    };
    let mut files = files.split("&&");
    let text = bytes_of(files.next().unwrap_or_default());
    let files: Vec<(String, Vec<u8>)> = files
        .filter_map(|file| file.split_once(':'))
        .map(|(name, text)| (format!("@/{name}"), bytes_of(text)))
        .collect();
    let (next, dynamic): (Vec<_>, Vec<_>) =
        files.iter().partition(|(name, _)| name.ends_with(".next"));
    let dynamic = dynamic.first().map(|(name, text)| Dynamic { name, text: Ok(text) });
    let source = Source { name: "@/zoo.cfg", text: &text, my_id };
    let env = Environment::new();
    let mut context = ParseContext::new(&env, &[]);
    context.next = next.first().map(|(name, text)| (name.as_str(), text.as_slice()));
    let (config, problems, _) = parse_all(source, dynamic, context);
    config.ok_or(ConfigError { problems })
}

/// A line of what `Conf.java` prints of an ensemble.
fn outcome(config: &Config) -> String {
    let Some(ensemble) = &config.ensemble else { return config.client_port.unwrap().to_string() };
    let shown = |view: &View| view.to_string().replace('\n', "%0a");
    let connect = ensemble.connect_limit_ticks;
    let needs_backup = config.reconfig_enabled && ensemble.dynamic_file.is_none();
    [
        "ENSEMBLE".to_owned(),
        config.client_port.unwrap().to_string(),
        ensemble.my_id.to_string(),
        ensemble.init_limit_ticks.to_string(),
        ensemble.sync_limit_ticks.to_string(),
        if connect == ensemble.init_limit_ticks { 0 } else { connect }.to_string(),
        ensemble.observer_master_port.unwrap_or(0).to_string(),
        ensemble.listen_on_all_addresses.to_string(),
        if ensemble.role() == Role::Observer { "OBSERVER" } else { "PARTICIPANT" }.to_owned(),
        ensemble.sync_enabled.to_string(),
        ensemble.local_sessions_enabled.to_string(),
        ensemble.local_sessions_upgrading_enabled.to_string(),
        ensemble.many_addresses.to_string(),
        ensemble.reachability_check.to_string(),
        ensemble.reachability_timeout_ms.to_string(),
        ensemble.oracle_path.as_ref().map_or("null".to_owned(), |p| p.display().to_string()),
        if needs_backup { "backed-up" } else { "-" }.to_owned(),
        shown(&ensemble.view),
        ensemble.last_seen.last().map_or("-".to_owned(), shown),
    ]
    .join(" ")
}

/// Why this server refuses what Java's parser takes.
const STRICTER: [(&str, &str); 4] = [
    ("4!", "myid has 4, which is not one of the servers"),
    ("-7!", "myid has -7, which is not one of the servers"),
    ("server.01=", "server.1 repeats number 1"),
    ("sslQuorum=true", "TLS needs"),
];

// rows: C-06 C-08 C-10 D-09 Q-101
#[test]
fn every_ensemble_has_the_outcome_it_has_in_java() {
    let cases = include_str!("../../compat-tests/golden/config/cases.txt");
    let expected = include_str!("../../compat-tests/golden/config/expected.txt");
    let mut ensembles = 0;
    for (case, expected) in cases.lines().zip(expected.lines()) {
        if !expected.starts_with("ENSEMBLE") && !case.contains("&&") {
            continue;
        }
        ensembles += 1;
        let config = parsed(case).map_err(|error| error.to_string());
        let stricter = STRICTER.iter().find(|(part, _)| case.contains(part));
        match (config, stricter) {
            (Err(error), Some((_, why))) => assert!(error.contains(why), "{error}"),
            (Err(error), None) => assert_eq!(expected, "REFUSED", "case {case}: {error}"),
            // One server alone, by a dynamic file that is empty.
            (Ok(config), None) if config.ensemble.is_none() => {
                assert!(expected.starts_with("2181 *"), "case {case}");
            }
            (Ok(config), _) => assert_eq!(outcome(&config), expected, "case {case}"),
        }
    }
    assert!(ensembles > 35, "{ensembles}");
}
