//! The authentication schemes that settings of clients result in.

use crate::{with, with_flags};
use oxkeeper::auth::Schemes;
use oxkeeper::config::Config;
use oxkeeper::config::sasl::{ClientSasl, DigestLogin, KerberosLogin, Login};
use oxkeeper::model::{DigestAlgorithm, Identity, Secret};
use std::sync::Arc;

const DIGEST: &str = "DigestAuthenticationProvider";

fn of(lines: &str) -> Schemes {
    with(lines).unwrap().client_schemes(String::new())
}

fn provider(name: &str) -> String {
    format!("authProvider.1=org.apache.zookeeper.server.auth.{name}AuthenticationProvider")
}

// rows: C-77 C-78 C-210 C-211 C-212 C-213 C-217
#[test]
fn authentication_schemes_are_those_of_the_configuration() {
    let plain = of("");
    assert!(plain.digest && !plain.ensemble && !plain.key && plain.required.is_empty());
    assert_eq!((plain.super_digest, plain.ensemble_names), (None, None));
    assert_eq!(plain.algorithm, DigestAlgorithm::Sha1);
    assert!(!of(&format!("{DIGEST}.enabled=false")).digest);
    assert_eq!(of(&format!("{DIGEST}.digestAlg=MD5")).algorithm, DigestAlgorithm::Md5);
    let super_digest = of(&format!("{DIGEST}.superDigest=a:b")).super_digest;
    assert_eq!(super_digest.as_deref(), Some("a:b"));
    assert!(of(&format!("{DIGEST}.enabled=false\n{}", provider("Digest"))).digest);
    assert!(of(&provider("Key")).key);
    let ensemble = of(&format!("{}\nensembleAuthName=a,b", provider("Ensemble")));
    assert!(ensemble.ensemble);
    assert_eq!(ensemble.ensemble_names, Some(vec!["a".to_owned(), "b".to_owned()]));
    let required = of("enforce.auth.enabled=true\nenforce.auth.schemes=digest,ip").required;
    assert_eq!(required, ["digest", "ip"]);
}

// rows: C-74 C-75 C-79 C-219
#[test]
fn rules_of_sasl_are_those_of_the_configuration() {
    let plain = with("").unwrap().client_schemes("R".to_owned());
    assert!(!plain.sasl && !plain.x509 && !plain.sasl_rules.allows_failed_clients);
    assert!(plain.sasl_rules.super_users.is_empty() && plain.sasl_rules.any_user_is.is_none());
    assert!(!plain.sasl_rules.removes_host && !plain.sasl_rules.removes_realm);
    assert_eq!(plain.sasl_rules.default_realm, "R");
    let flags = "-Dzookeeper.superUser=root -Dzookeeper.letAnySaslUserDoX=any \
                 -Dzookeeper.allowSaslFailedClients=true \
                 -Dzookeeper.kerberos.removeHostFromPrincipal=true";
    let config = with_flags(&provider("SASL"), flags).unwrap();
    let sasl = config.client_schemes(String::new());
    let rules = &sasl.sasl_rules;
    assert!(sasl.sasl && rules.allows_failed_clients);
    assert!(rules.removes_host && !rules.removes_realm);
    assert_eq!(rules.super_users, ["root"]);
    assert_eq!(rules.any_user_is, Some(Identity::new("sasl", "any")));
}

// rows: C-222
#[test]
fn default_realm_counts_if_names_may_have_a_realm() {
    let plain = with("").unwrap();
    let logs_in = |login: Login| {
        let section = "Server".to_owned();
        let sasl = ClientSasl { section, login, super_password: None };
        Config { client_sasl: Some(sasl), ..plain.clone() }.needs_default_realm()
    };
    let user = |name: &str| {
        let users = vec![(name.to_owned(), Arc::new(Secret::new(b"x".to_vec())))];
        Login::Digest(DigestLogin { users, ..DigestLogin::default() })
    };
    assert!(!plain.needs_default_realm());
    assert!(!logs_in(user("bob")));
    assert!(logs_in(user("bob@R")));
    assert!(logs_in(Login::Kerberos(KerberosLogin::default())));
    let mut required = plain.clone();
    required.sasl_rules.requires_kerberos_config = true;
    assert!(required.needs_default_realm());
}
