//! How clients can authenticate, from the configuration.

use super::error::ServerError;
use crate::auth::digest_md5::{Accounts, Offer};
use crate::auth::sasl::Mechanisms;
use crate::auth::{SaslRules, Schemes};
use crate::config::Config;
use crate::config::sasl::{ClientSasl, KerberosLogin, KeyTab, Login};
use crate::model::Identity;
use crate::net::gss::{self, GssError};
use crate::net::gss_mechanism::Service;
use crate::net::nonce;
use std::sync::Arc;

/// The authentication schemes.
pub fn schemes(config: &Config) -> Schemes {
    let rules = &config.sasl_rules;
    Schemes {
        digest: config.digest_auth_enabled || config.providers.digest,
        algorithm: config.digest_algorithm,
        super_digest: config.super_digest.clone(),
        ensemble: config.providers.ensemble,
        ensemble_names: config.ensemble_names.clone(),
        key: config.providers.key,
        sasl: config.providers.sasl,
        sasl_rules: SaslRules {
            super_users: rules.super_users.clone(),
            any_user_is: rules.let_any_user_do.as_deref().map(|id| Identity::new("sasl", id)),
            allows_failed_clients: rules.allows_failed_clients,
            removes_host: rules.removes_host,
            removes_realm: rules.removes_realm,
            name_rules: rules.auth_to_local.clone(),
            default_realm: default_realm(config),
        },
        x509: config.providers.x509,
        x509_super_user: config.client_tls.as_ref().and_then(|tls| tls.x509_super_user.clone()),
        required: config.providers.required.clone(),
    }
}

/// The default realm of the Kerberos library, where names with a realm may have to be shortened; empty: there is none.
fn default_realm(config: &Config) -> String {
    let may_have_realm = config.client_sasl.as_ref().is_some_and(|sasl| match &sasl.login {
        Login::Digest(login) => login.users.iter().any(|(user, _)| user.contains('@')),
        Login::Kerberos(_) => true,
    });
    let library = (may_have_realm || config.sasl_rules.requires_kerberos_config).then(gss::library);
    library.and_then(Result::ok).map(gss::Gss::default_realm).unwrap_or_default()
}

/// What begins the SASL exchanges of clients; `None`: the settings name no mechanism.
///
/// # Errors
/// When Kerberos can't work: without its library, without the server's key, or without a default realm where one is required.
pub fn mechanisms(config: &Config) -> Result<Option<Arc<dyn Mechanisms>>, ServerError> {
    check_required_configuration(config)?;
    let Some(ClientSasl { section, login, super_password }) = &config.client_sasl else {
        return Ok(None);
    };
    match login {
        Login::Digest(login) => {
            let accounts = Accounts::of_clients(&login.users, super_password.as_ref());
            Ok(Some(Arc::new(Offer::new(accounts, nonce))))
        }
        Login::Kerberos(login) => {
            let service = Service::of(login, false);
            Ok(Some(Arc::new(service.map_err(|error| kerberos_error(section, login, &error))?)))
        }
    }
}

/// `requireKerberosConfig`: the Kerberos library must have a default realm.
///
/// # Errors
/// When it has none.
///
/// Source: `KerberosName`, ZooKeeper 3.9.5.
fn check_required_configuration(config: &Config) -> Result<(), ServerError> {
    if !config.sasl_rules.requires_kerberos_config {
        return Ok(());
    }
    let realm = gss::library().map(gss::Gss::default_realm);
    let reason = match realm {
        Ok(realm) if !realm.is_empty() => return Ok(()),
        Ok(_) => "krb5.conf has no default_realm; add it to its section libdefaults, or name \
                  another file by -Djava.security.krb5.conf"
            .to_owned(),
        Err(error) => error.to_string(),
    };
    Err(ServerError::Failed { reason: format!("requireKerberosConfig=true: {reason}"), exit: 2 })
}

/// Kerberos can't work as a section of the JAAS file says.
pub fn kerberos_error(section: &str, login: &KerberosLogin, error: &GssError) -> ServerError {
    let file = match &login.key_tab {
        Some(KeyTab::File(path)) => path.display().to_string(),
        Some(KeyTab::Default) | None => "the default one".to_owned(),
    };
    let principal = login.principal.as_deref().unwrap_or("any");
    let reason = format!(
        "section {section} of the JAAS file: principal {principal}, keytab {file}: {error}; correct them"
    );
    ServerError::Failed { reason, exit: 2 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, Source, parse};
    use crate::model::DigestAlgorithm;

    // rows: C-75 C-77 C-78 C-210 C-211 C-212 C-213 C-217
    #[test]
    fn authentication_schemes_are_those_of_the_configuration() {
        let of = |lines: &str| {
            let text = format!("dataDir=/d\nclientPort=0\n{lines}\n");
            let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: None };
            schemes(&parse(source, &Environment::new(), &[]).unwrap())
        };
        let plain = of("");
        assert!(plain.digest && !plain.ensemble && !plain.key && plain.required.is_empty());
        assert_eq!((plain.super_digest, plain.ensemble_names), (None, None));
        assert_eq!(plain.algorithm, DigestAlgorithm::Sha1);
        const DIGEST: &str = "DigestAuthenticationProvider";
        assert!(!of(&format!("{DIGEST}.enabled=false")).digest);
        assert_eq!(of(&format!("{DIGEST}.digestAlg=MD5")).algorithm, DigestAlgorithm::Md5);
        let super_digest = of(&format!("{DIGEST}.superDigest=a:b")).super_digest;
        assert_eq!(super_digest.as_deref(), Some("a:b"));
        let provider = |name: &str| {
            format!("authProvider.1=org.apache.zookeeper.server.auth.{name}AuthenticationProvider")
        };
        assert!(of(&format!("{DIGEST}.enabled=false\n{}", provider("Digest"))).digest);
        assert!(of(&provider("Key")).key);
        let ensemble = of(&format!("{}\nensembleAuthName=a,b", provider("Ensemble")));
        assert!(ensemble.ensemble);
        assert_eq!(ensemble.ensemble_names, Some(vec!["a".to_owned(), "b".to_owned()]));
        let source = Source { name: "zoo.cfg", text: b"dataDir=/d\nclientPort=0\n", my_id: None };
        let mut config = parse(source, &Environment::new(), &[]).unwrap();
        config.providers.sasl = true;
        config.sasl_rules.super_users = vec!["root".to_owned(), "eve".to_owned()];
        config.sasl_rules.let_any_user_do = Some("any".to_owned());
        config.sasl_rules.allows_failed_clients = true;
        let sasl = schemes(&config);
        let rules = &sasl.sasl_rules;
        assert!(sasl.sasl && !plain.sasl && rules.allows_failed_clients && !sasl.x509);
        assert_eq!(rules.super_users, ["root", "eve"]);
        assert_eq!(rules.any_user_is, Some(Identity::new("sasl", "any")));
        let required = of("enforce.auth.enabled=true\nenforce.auth.schemes=digest,ip").required;
        assert_eq!(required, ["digest", "ip"]);
    }
}
