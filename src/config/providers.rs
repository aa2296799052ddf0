//! `authProvider.N`: Java's classes by their names, as far as their schemes are here (U-01, U-12).

use super::system::SystemProperties;

/// Schemes that only a setting brings.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Providers {
    /// Named although it may be switched off otherwise.
    pub digest: bool,
    pub ensemble: bool,
    pub key: bool,
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

/// Names between commas; Java's split forgets empty ones at the end.
pub(super) fn ensemble_names(text: &str) -> Vec<String> {
    let kept = text.trim_end_matches(',');
    kept.split(',').map(|name| super::system::trim(name).to_owned()).collect()
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
