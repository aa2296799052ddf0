//! What checked settings may ask for and the running server does not do yet. This is the one list of it: the part of the server
//! that does it removes the line.

use super::sasl::Login;
use super::{Config, Problem, SettingPlace, Warning};

/// A feature that settings ask for.
struct Missing {
    is_asked: fn(&Config) -> bool,
    what: &'static str,
    /// Whether it protects something: then the server does not start without it.
    guards: bool,
}

const MISSING: [Missing; 2] = [
    Missing {
        is_asked: |config| {
            let clients = config.client_sasl.as_ref();
            config.sasl_rules.requires_kerberos_config
                || clients.is_some_and(|sasl| is_kerberos(&sasl.login))
        },
        what: "Kerberos for clients",
        guards: true,
    },
    Missing {
        is_asked: |config| {
            config.quorum_sasl.as_ref().is_some_and(|sasl| {
                is_kerberos(&sasl.server) || sasl.learner_requires && is_kerberos(&sasl.learner)
            })
        },
        what: "Kerberos between servers",
        guards: true,
    },
];

/// Refuses the settings whose protection is missing, and warns of the others.
pub(super) fn judge(
    source: &str,
    (config, mut problems, mut warnings): (Option<Config>, Vec<Problem>, Vec<Warning>),
) -> (Option<Config>, Vec<Problem>, Vec<Warning>) {
    let Some(mut config) = config else { return (None, problems, warnings) };
    let place = SettingPlace::File(source.to_owned());
    for missing in MISSING.iter().filter(|missing| (missing.is_asked)(&config)) {
        let (what, place) = (missing.what, place.clone());
        if missing.guards {
            let text = format!(
                "asks for {what}, which this server does not have yet; \
                 remove those settings to run without that protection"
            );
            problems.push(Problem { place, text });
        } else {
            let text = format!("asks for {what}, which this server does not have yet");
            warnings.push(Warning { place, text });
        }
    }
    config.warnings.clone_from(&warnings);
    (Some(config).filter(|_| problems.is_empty()), problems, warnings)
}

fn is_kerberos(login: &Login) -> bool {
    matches!(login, Login::Kerberos(_))
}
