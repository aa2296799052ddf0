//! `authProvider.N`: Java's classes by their names, as far as their schemes are here (U-01, U-12).

use super::checker::Checker;
use super::system_properties::SystemProperties;

const DIGEST_ENABLED: &str = "zookeeper.DigestAuthenticationProvider.enabled";

/// Schemes that only a setting brings.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Providers {
    /// Named although it may be switched off otherwise.
    pub digest: bool,
    pub ensemble: bool,
    pub key: bool,
    /// `enforce.auth.schemes`, where `enforce.auth.enabled`: what clients must have shown one of; empty: nothing.
    pub required: Vec<String>,
}

/// Finds those that are known; of the others `judge` complains.
pub(super) fn find(system: &SystemProperties) -> Providers {
    let mut providers = Providers::default();
    for (name, property) in system.all() {
        if !name.starts_with("zookeeper.authProvider.") {
            continue;
        }
        match property.value.strip_prefix("org.apache.zookeeper.server.auth.") {
            Some("DigestAuthenticationProvider") => providers.digest = true,
            Some("EnsembleAuthenticationProvider") => providers.ensemble = true,
            Some("KeyAuthenticationProvider") => providers.key = true,
            _ => {}
        }
    }
    providers
}

/// The schemes of which every client must show one, with a problem for each that nobody could show.
///
/// Source: `AuthenticationHelper`, ZooKeeper 3.9.5.
pub(super) fn required(checker: &mut Checker, system: &SystemProperties) -> Vec<String> {
    let enabled = system.get("zookeeper.enforce.auth.enabled");
    if let Some(odd) = enabled
        && !["true", "false"].iter().any(|word| odd.value.eq_ignore_ascii_case(word))
    {
        let text = format!(
            "enforce.auth.enabled={} counts as false: nobody has to show who they are; write true",
            odd.value
        );
        checker.warn(&odd.place, text);
    }
    let enabled = enabled.filter(|property| property.value.eq_ignore_ascii_case("true"));
    let schemes = system.get("zookeeper.enforce.auth.schemes");
    let (enabled, schemes) = match (enabled, schemes) {
        (Some(enabled), Some(schemes)) => (enabled, schemes),
        (Some(enabled), None) => {
            let text = "enforce.auth.enabled=true without enforce.auth.schemes lets nobody in; \
                        name schemes, such as digest";
            checker.problem(&enabled.place, text);
            return Vec::new();
        }
        (None, Some(schemes)) => {
            let text = format!(
                "enforce.auth.schemes={} has no effect; enforce.auth.enabled is not true",
                schemes.value
            );
            checker.warn(&schemes.place, text);
            return Vec::new();
        }
        (None, None) => return Vec::new(),
    };
    let providers = find(system);
    let names = names(&schemes.value);
    for name in &names {
        let text = match name.as_str() {
            "ip" => continue,
            "digest" if providers.digest || system.is_true(DIGEST_ENABLED, true) => continue,
            "ensemble" if providers.ensemble => continue,
            "key" if providers.key => continue,
            "sasl" => "SASL, which this server does not have yet".to_owned(),
            "x509" => "TLS, which this server does not have yet".to_owned(),
            "digest" => {
                "a scheme that DigestAuthenticationProvider.enabled switches off".to_owned()
            }
            "ensemble" | "key" => format!("scheme {name}, whose authProvider is not set"),
            _ => format!("scheme {name:?}, by which nobody can show who they are"),
        };
        let line = format!("enforce.auth.schemes={} asks for {text}; name another", schemes.value);
        checker.problem(&schemes.place, line);
    }
    // An id of scheme ensemble is never given out, so that alone is a closed door, and Java's as well.
    if names.iter().all(|name| name == "ensemble") {
        let text = "enforce.auth.enabled=true lets nobody in by scheme ensemble alone";
        checker.warn(&enabled.place, text);
    }
    names
}

/// Names between commas; Java's split forgets empty ones at the end.
pub(super) fn names(text: &str) -> Vec<String> {
    let kept = text.trim_end_matches(',');
    kept.split(',').map(|name| super::system_properties::trim(name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, ConfigError, Environment, Source, parse};
    use crate::model::DigestAlgorithm;

    fn with(lines: &str) -> Result<Config, ConfigError> {
        let text = format!("dataDir=/d\nclientPort=2181\n{lines}\n");
        let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: None };
        parse(source, &Environment::new(), &[])
    }

    // rows: C-77 C-78
    #[test]
    fn required_schemes_can_be_shown() {
        let on = |lines: &str| with(&format!("enforce.auth.enabled=TRUE\n{lines}"));
        let config = on("enforce.auth.schemes= digest , ip,,").unwrap();
        assert_eq!(config.providers.required, ["digest", "ip"]);
        assert_eq!(config.warnings, vec![]);
        let open = with("enforce.auth.enabled=yes").unwrap();
        assert!(open.providers.required.is_empty());
        assert!(open.warnings[0].text.contains("counts as false"), "{:?}", open.warnings);
        let class = "org.apache.zookeeper.server.auth";
        let key =
            format!("authProvider.1={class}.KeyAuthenticationProvider\nenforce.auth.schemes=key");
        assert_eq!(on(&key).unwrap().providers.required, ["key"]);
        let again = format!(
            "authProvider.1={class}.DigestAuthenticationProvider\nenforce.auth.schemes=digest\n\
             DigestAuthenticationProvider.enabled=false"
        );
        assert_eq!(on(&again).unwrap().providers.required, ["digest"]);
        let ensemble = format!(
            "authProvider.1={class}.EnsembleAuthenticationProvider\nenforce.auth.schemes=ensemble"
        );
        assert_eq!(on(&ensemble).unwrap().warnings.len(), 1);
        for (lines, why) in [
            ("", "zoo.cfg:3: enforce.auth.enabled=true without enforce.auth.schemes"),
            ("enforce.auth.schemes=", "zoo.cfg:4: enforce.auth.schemes= asks for scheme \"\""),
            ("enforce.auth.schemes=digest,sasl", "asks for SASL"),
            ("enforce.auth.schemes=x509", "asks for TLS"),
            ("enforce.auth.schemes=world", "asks for scheme \"world\""),
            ("enforce.auth.schemes=key", "scheme key, whose authProvider is not set"),
            (
                "enforce.auth.schemes=digest\nDigestAuthenticationProvider.enabled=no",
                "switches off",
            ),
        ] {
            let error = on(lines).expect_err(lines).to_string();
            assert!(error.contains(why) && !error.contains('\n'), "{error}");
        }
        let idle = with("enforce.auth.enabled=yes\nenforce.auth.schemes=sasl").unwrap();
        assert_eq!(idle.providers.required, [""; 0]);
        let warned =
            "zoo.cfg:4: enforce.auth.schemes=sasl has no effect; enforce.auth.enabled is not true";
        assert_eq!(idle.warnings[1].to_string(), warned);
    }

    // rows: C-210 C-213 C-217 U-12
    #[test]
    fn providers_are_known_by_their_classes() {
        let class = "org.apache.zookeeper.server.auth";
        let config = with(&format!(
            "authProvider.1={class}.EnsembleAuthenticationProvider\nensembleAuthName=a, b,,\n\
             authProvider.x={class}.KeyAuthenticationProvider\nauthProvider.ip={class}.IPAuthenticationProvider\n\
             DigestAuthenticationProvider.digestAlg=sha3-256\nDigestAuthenticationProvider.enabled=false"
        ))
        .unwrap();
        assert!(config.providers.ensemble && config.providers.key && !config.providers.digest);
        assert_eq!(config.ensemble_names.as_deref(), Some(&["a".to_owned(), "b".into()][..]));
        assert_eq!(config.digest_algorithm, DigestAlgorithm::Sha3Of256);
        assert_eq!((config.digest_auth_enabled, config.warnings), (false, vec![]));
        for refused in [
            "authProvider.1=com.example.Mine",
            "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            "authProvider.1=org.apache.zookeeper.server.auth.X509AuthenticationProvider",
            "DigestAuthenticationProvider.digestAlg=MD2",
        ] {
            assert!(with(refused).is_err(), "{refused}");
        }
    }
}
