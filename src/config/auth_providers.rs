//! `authProvider.N`: authentication providers by the names of Java's classes, as far as this server has their schemes (U-01, U-12).

use super::checker::Checker;
use super::system_properties::SystemProperties;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const SASL_REQUIRED: &str = "zookeeper.sessionRequireClientSASLAuth";
const SASL_PROVIDER: &str = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider";
const DIGEST_ENABLED: &str = "zookeeper.DigestAuthenticationProvider.enabled";

/// Schemes that are there only if a setting names them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Providers {
    /// Named, which counts even if `DigestAuthenticationProvider.enabled` is false.
    pub digest: bool,
    pub ensemble: bool,
    pub key: bool,
    pub sasl: bool,
    /// Named, or there because a port for clients accepts TLS.
    pub x509: bool,
    /// `enforce.auth.schemes`, where `enforce.auth.enabled`: a client must have authenticated by one of them; empty: by none.
    pub required: Vec<String>,
}

/// Finds the providers that are known; `judge` reports the others.
///
/// * `clients_use_tls`: whether a port for clients accepts TLS.
pub(super) fn find(
    checker: &mut Checker,
    system: &SystemProperties,
    clients_use_tls: bool,
) -> Providers {
    check_super_digest(checker, system);
    let mut providers = Providers { x509: clients_use_tls, ..Providers::default() };
    for (name, property) in system.all() {
        if !name.starts_with("zookeeper.authProvider.") {
            continue;
        }
        match property.value.strip_prefix("org.apache.zookeeper.server.auth.") {
            Some("DigestAuthenticationProvider") => providers.digest = true,
            Some("EnsembleAuthenticationProvider") => providers.ensemble = true,
            Some("KeyAuthenticationProvider") => providers.key = true,
            Some("SASLAuthenticationProvider") => providers.sasl = true,
            Some("X509AuthenticationProvider") => providers.x509 = true,
            _ => {}
        }
    }
    let required = required(checker, system, &providers);
    Providers { required, ..providers }
}

/// The schemes of which every client must have authenticated by at least one; a scheme that no client can use is a problem.
///
/// Source: `AuthenticationHelper`, ZooKeeper 3.9.5.
fn required(
    checker: &mut Checker,
    system: &SystemProperties,
    providers: &Providers,
) -> Vec<String> {
    if system.is_true(SASL_REQUIRED, false) {
        return sasl_alone(checker, system, providers);
    }
    let enabled = system.get("zookeeper.enforce.auth.enabled");
    if let Some(odd) = enabled
        && !["true", "false"].iter().any(|word| odd.value.eq_ignore_ascii_case(word))
    {
        let text = format!(
            "enforce.auth.enabled={} counts as false: clients need not authenticate; write true",
            odd.value
        );
        checker.warn(&odd.place, text);
    }
    let enabled = enabled.filter(|property| property.value.eq_ignore_ascii_case("true"));
    let schemes = system.get("zookeeper.enforce.auth.schemes");
    let (enabled, schemes) = match (enabled, schemes) {
        (Some(enabled), Some(schemes)) => (enabled, schemes),
        (Some(enabled), None) => {
            let text = "enforce.auth.enabled=true without enforce.auth.schemes admits no client; \
                        name schemes, such as digest";
            checker.problem(&enabled.place, text);
            return Vec::new();
        }
        (None, Some(schemes)) => {
            let text = format!(
                "enforce.auth.schemes={} has no effect without enforce.auth.enabled=true; set it, or remove this",
                schemes.value
            );
            checker.warn(&schemes.place, text);
            return Vec::new();
        }
        (None, None) => return Vec::new(),
    };
    let names = names(&schemes.value);
    for name in &names {
        let text = match name.as_str() {
            "ip" => continue,
            "digest" if providers.digest || system.is_true(DIGEST_ENABLED, true) => continue,
            "ensemble" if providers.ensemble => continue,
            "key" if providers.key => continue,
            "sasl" if providers.sasl => continue,
            "x509" if providers.x509 => continue,
            "digest" => {
                "a scheme that DigestAuthenticationProvider.enabled switches off".to_owned()
            }
            "ensemble" | "key" | "sasl" | "x509" => {
                format!("scheme {name}, whose authProvider is not set")
            }
            _ => format!("scheme {name:?}, by which no client can authenticate"),
        };
        let line = format!("enforce.auth.schemes={} asks for {text}; name another", schemes.value);
        checker.problem(&schemes.place, line);
    }
    // Scheme ensemble gives a client no id, so with it alone every client is refused, as in Java.
    if names.iter().all(|name| name == "ensemble") {
        let text = "enforce.auth.enabled=true with scheme ensemble alone admits no client; name another scheme beside it";
        checker.warn(&enabled.place, text);
    }
    names
}

/// `sessionRequireClientSASLAuth`, which overrules the other two settings.
fn sasl_alone(
    checker: &mut Checker,
    system: &SystemProperties,
    providers: &Providers,
) -> Vec<String> {
    let place = system.get(SASL_REQUIRED).map(|property| property.place.clone());
    if let Some(place) = place.filter(|_| !providers.sasl) {
        let text = format!(
            "sessionRequireClientSASLAuth=true needs scheme sasl; add authProvider.sasl={SASL_PROVIDER}"
        );
        checker.problem(&place, text);
    }
    for key in ["enforce.auth.enabled", "enforce.auth.schemes"] {
        if let Some(idle) = system.get(&format!("zookeeper.{key}")) {
            let text = format!(
                "{key}={} has no effect beside sessionRequireClientSASLAuth=true; remove one of them",
                idle.value
            );
            checker.warn(&idle.place, text);
        }
    }
    vec!["sasl".to_owned()]
}

/// Names separated by commas; Java's split drops empty ones at the end.
pub(super) fn names(text: &str) -> Vec<String> {
    let kept = text.trim_end_matches(',');
    kept.split(',').map(|name| super::system_properties::trim(name).to_owned()).collect()
}
/// Bytes of the shortest digest that may be configured, of MD5.
const DIGEST_MIN: usize = 16;

/// Warns of a password in place of its digest: no client could be `super`.
fn check_super_digest(checker: &mut Checker, system: &SystemProperties) {
    const KEY: &str = "DigestAuthenticationProvider.superDigest";
    let Some(property) = system.get(&format!("zookeeper.{KEY}")) else { return };
    let is_digest =
        |text: &str| STANDARD.decode(text).is_ok_and(|digest| DIGEST_MIN <= digest.len());
    let (_, digest) = property.value.split_once(':').unwrap_or_default();
    if !is_digest(digest) {
        let place = property.place.clone();
        let text = format!(
            "{KEY} is not user:DIGEST with a digest in base64, so no client is the superuser; make it by \
             printf 'super:PASSWORD' | openssl dgst -sha1 -binary | base64"
        );
        checker.warn(&place, text);
    }
}
