//! Authentication providers, and the schemes by one of which a client must have authenticated.

use crate::with;
use oxkeeper::model::DigestAlgorithm;

// rows: C-77 C-78
#[test]
fn required_scheme_that_no_client_can_use_is_refused() {
    let on = |lines: &str| with(&format!("enforce.auth.enabled=TRUE\n{lines}"));
    let config = on("enforce.auth.schemes= digest , ip,,").unwrap();
    assert_eq!(config.providers.required, ["digest", "ip"]);
    assert_eq!(config.warnings, vec![]);
    let open = with("enforce.auth.enabled=yes").unwrap();
    assert!(open.providers.required.is_empty());
    assert!(open.warnings[0].text.contains("counts as false"), "{:?}", open.warnings);
    let class = "org.apache.zookeeper.server.auth";
    let key = format!("authProvider.1={class}.KeyAuthenticationProvider\nenforce.auth.schemes=key");
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
        ("enforce.auth.schemes=digest,sasl", "scheme sasl, whose authProvider is not set"),
        ("enforce.auth.schemes=x509", "scheme x509, whose authProvider is not set"),
        ("enforce.auth.schemes=world", "asks for scheme \"world\""),
        ("enforce.auth.schemes=key", "scheme key, whose authProvider is not set"),
        ("enforce.auth.schemes=digest\nDigestAuthenticationProvider.enabled=no", "switches off"),
    ] {
        let error = on(lines).expect_err(lines).to_string();
        assert!(error.contains(why) && !error.contains('\n'), "{error}");
    }
    let idle = with("enforce.auth.enabled=yes\nenforce.auth.schemes=sasl").unwrap();
    assert_eq!(idle.providers.required, [""; 0]);
    let warned = "zoo.cfg:4: enforce.auth.schemes=sasl has no effect without enforce.auth.enabled=true; set it, or remove this";
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
    for refused in ["authProvider.1=com.example.Mine", "DigestAuthenticationProvider.digestAlg=MD2"]
    {
        assert!(with(refused).is_err(), "{refused}");
    }
}
