//! SASL between servers: the switches in zoo.cfg, and the two sections of the JAAS file.

use super::SettingPlace;
use super::checker::Checker;
use super::logins::{self, Logins, Use};
use super::property_reader::Reader;
use super::sasl::{Login, QuorumSasl};
use super::system_properties::SystemProperties;

const ENABLE: &str = "quorum.auth.enableSasl";
const LEARNER_REQUIRES: &str = "quorum.auth.learnerRequireSasl";
const SERVER_REQUIRES: &str = "quorum.auth.serverRequireSasl";
const LEARNER_SECTION: &str = "quorum.auth.learner.saslLoginContext";
const SERVER_SECTION: &str = "quorum.auth.server.saslLoginContext";
const PRINCIPAL: &str = "quorum.auth.kerberos.servicePrincipal";

/// The settings that are read from the file alone.
pub(super) struct Switches {
    /// Where SASL is switched on; `None`: it is off.
    enabled: Option<SettingPlace>,
    learner_requires: bool,
    server_requires: bool,
    learner_section: String,
    server_section: String,
    service_principal: String,
}

/// Refuses switches that contradict each other, on every server, as Java does.
///
/// Source: `QuorumPeerConfig.parseProperties`, ZooKeeper 3.9.5.
pub(super) fn check_switches(checker: &mut Checker) {
    let on = |key: &str| {
        let setting = checker.get(key).filter(|set| set.value.eq_ignore_ascii_case("true"));
        setting.map(|setting| setting.place.clone())
    };
    let (enabled, learner, server) = (on(ENABLE), on(LEARNER_REQUIRES), on(SERVER_REQUIRES));
    for (key, place) in [(LEARNER_REQUIRES, &learner), (SERVER_REQUIRES, &server)] {
        if let (Some(place), None) = (place, &enabled) {
            checker.problem(place, format!("{key}=true needs {ENABLE}=true; add it"));
        }
    }
    if let (Some(place), None, Some(_)) = (&server, &learner, &enabled) {
        let text = format!(
            "{SERVER_REQUIRES}=true needs {LEARNER_REQUIRES}=true, or this server could not join; add it"
        );
        checker.problem(place, text);
    }
}

/// Takes the switches of a member of an ensemble.
pub(super) fn take_switches(checker: &mut Checker) -> Switches {
    let enabled = checker.boolean(ENABLE).filter(|(on, _)| *on).map(|(_, place)| place);
    let mut flag = |key| checker.boolean(key).is_some_and(|(on, _)| on);
    let (learner_requires, server_requires) = (flag(LEARNER_REQUIRES), flag(SERVER_REQUIRES));
    let mut text = |key: &str, default: &str| {
        checker.take(key).map_or_else(|| default.to_owned(), |setting| setting.value)
    };
    Switches {
        enabled,
        learner_requires,
        server_requires,
        learner_section: text(LEARNER_SECTION, "QuorumLearner"),
        server_section: text(SERVER_SECTION, "QuorumServer"),
        service_principal: text(PRINCIPAL, "zkquorum/localhost"),
    }
}

/// `None` without SASL between servers, and if a setting was wrong.
///
/// Source: `QuorumPeer.initialize`, `SaslQuorumAuthServer`, `SaslQuorumAuthLearner`, ZooKeeper 3.9.5.
pub(super) fn take(
    checker: &mut Checker,
    system: &mut SystemProperties,
    switches: Switches,
    logins: &Logins,
    fips_mode: bool,
) -> Option<QuorumSasl> {
    let mut from = Reader::new(system, &mut checker.warnings);
    let canonicalizes_hosts = from.flag("zookeeper.kerberos.canonicalizeHostNames", false);
    let server_realm = from.text("zookeeper.server.realm").filter(|realm| !realm.is_empty());
    let place = switches.enabled?;
    let learner =
        section(checker, &place, LEARNER_SECTION, &switches.learner_section, logins, Use::Dials);
    let server =
        section(checker, &place, SERVER_SECTION, &switches.server_section, logins, Use::Accepts);
    let learner = learner?;
    if fips_mode && matches!(learner, Login::Digest(_)) {
        let text = format!(
            "section {} proves this server by DIGEST-MD5, which fips-mode=true forbids; set fips-mode=false (with TLS, also ssl.quorum.hostnameVerification=false until each certificate has its server's host), or use Kerberos",
            switches.learner_section
        );
        // A server that need not prove itself when it dials never uses the section.
        match switches.learner_requires {
            true => checker.problem(&place, text),
            false => checker.warn(&place, text),
        }
    }
    Some(QuorumSasl {
        learner,
        server: server?,
        learner_requires: switches.learner_requires,
        server_requires: switches.server_requires,
        service_principal: switches.service_principal,
        server_realm,
        canonicalizes_hosts,
    })
}

/// * `key`: the setting that names the section. * `name`: of the section.
fn section(
    checker: &mut Checker,
    place: &SettingPlace,
    key: &str,
    name: &str,
    logins: &Logins,
    used: Use,
) -> Option<Login> {
    let text = match logins {
        Logins::Broken => return None,
        Logins::NoFile => {
            format!(
                "{ENABLE}=true needs a JAAS file with a section {name}; set -D{}=FILE",
                logins::FLAG
            )
        }
        Logins::Found { file, sections, .. } => {
            if let Some(section) = sections.iter().find(|section| section.name == name) {
                return logins::login(checker, file, section, used);
            }
            format!("{ENABLE}=true: {file} has no section {name} ({key}); add it")
        }
    };
    checker.problem(place, text);
    None
}
