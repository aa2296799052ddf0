//! TLS of client ports and between servers, as settings.

use crate::{file, of, with, with_flags};
use oxkeeper::config::Config;
use oxkeeper::config::tls::{
    ClientAuth, ClientTls, QuorumTls, StoreKind, StorePassword, TlsVersion,
};

const STORES: &str = "ssl.keyStore.location=/k.p12\nssl.trustStore.location=/t.pem\n";

fn clients(lines: &str) -> (ClientTls, Vec<String>) {
    let config = of(&format!("secureClientPort=2281\n{STORES}{lines}"));
    let warnings = config.warnings.iter().map(|warning| warning.text.clone()).collect();
    (config.client_tls.unwrap(), warnings)
}

#[track_caller]
fn refused(lines: &str) -> String {
    let error = with(&format!("secureClientPort=2281\n{STORES}{lines}")).expect_err(lines);
    assert_eq!(error.problems.len(), 1, "{error}");
    error.to_string()
}

fn member(lines: &str) -> Result<Config, oxkeeper::config::ConfigError> {
    let servers = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\ninitLimit=5\nsyncLimit=2\n";
    let text = format!("dataDir=/d\nclientPort=2181\n{servers}{lines}");
    file(&text, Some("1"))
}

fn servers(lines: &str) -> QuorumTls {
    let stores = STORES.replace("ssl.", "ssl.quorum.");
    let config = member(&format!("{stores}{lines}")).unwrap();
    assert_eq!(config.warnings, vec![], "{lines}");
    config.quorum_tls.unwrap()
}

#[test]
fn secure_port_may_be_the_only_port_for_clients() {
    let (tls, warnings) = clients("secureClientPortAddress=[::1]");
    assert_eq!(
        (tls.secure_port, tls.secure_host.as_deref()),
        (Some(2281), Some("0:0:0:0:0:0:0:1"))
    );
    assert_eq!((tls.unified, warnings), (false, vec![]));
    let alone = file(&format!("dataDir=/d\nsecureClientPort=0\n{STORES}"), None).unwrap();
    assert_eq!((alone.client_port, alone.client_host), (None, None));
    assert_eq!(alone.client_tls.unwrap().secure_port, Some(0));
    for (lines, why) in [
        ("secureClientPortAddress=a", "secureClientPort is not; add secureClientPort=2281"),
        ("secureClientPort=70000", "is not within 0 and 65535"),
        ("secureClientPort=2181", "is the clientPort too; choose another one"),
        ("secureClientPort=1\nsecureClientPortAddress=[x]", "no IPv6 address between them"),
    ] {
        let error = with(&format!("{STORES}{lines}")).expect_err(lines).to_string();
        assert!(error.contains(why) && !error.contains('\n'), "{error}");
    }
    let two =
        "clientPortAddress=127.0.0.1\nsecureClientPortAddress=127.0.0.2\nsecureClientPort=2181";
    assert!(with(&format!("{STORES}{two}")).is_ok(), "one port of two addresses");
}

#[test]
fn client_port_alone_accepts_tls_with_port_unification() {
    let config = of(&format!(
        "client.portUnification=true\n{STORES}netty.server.outstandingHandshake.limit=7\n\
         netty.server.earlyDropSecureConnectionHandshakes=true\n\
         X509AuthenticationProvider.superUser=CN=boss"
    ));
    let tls = config.client_tls.unwrap();
    assert!(tls.unified && tls.secure_port.is_none() && tls.drops_early && config.providers.x509);
    assert_eq!((tls.handshakes_max, tls.x509_super_user.as_deref()), (Some(7), Some("CN=boss")));
    let (tls, _) = clients("netty.server.outstandingHandshake.limit=0");
    assert_eq!((tls.handshakes_max, tls.unified), (None, false));
}

// rows: C-214
#[test]
fn superuser_that_can_be_no_subject_of_a_certificate_is_a_warning() {
    let warnings = |subject: &str| {
        let (tls, warnings) = clients(&format!("X509AuthenticationProvider.superUser={subject}"));
        assert_eq!(tls.x509_super_user.as_deref(), Some(subject), "Java's comparison stays");
        warnings
    };
    assert_eq!(warnings("CN=boss,O=a firm"), [""; 0]);
    for subject in ["CN=boss, O=a firm", "boss"] {
        let why = format!(
            "X509AuthenticationProvider.superUser={subject} is the subject of no certificate, so no client is the superuser; "
        );
        let [warning] = &warnings(subject)[..] else { panic!("{subject}") };
        assert!(warning.starts_with(&why), "{warning}");
    }
}

#[test]
fn versions_of_tls_are_javas_without_the_broken_ones() {
    use TlsVersion::{V12, V13};
    for (lines, versions) in [
        ("", vec![V13]),
        ("ssl.protocol=TLSv1.2", vec![V12]),
        ("ssl.enabledProtocols=TLSv1.3,TLSv1.2", vec![V12, V13]),
        ("ssl.protocol=TLSv1.2\nssl.enabledProtocols=TLSv1.3", vec![V13]),
        // A version without any suite is not offered.
        (
            "ssl.enabledProtocols=TLSv1.3,TLSv1.2\nssl.ciphersuites=TLS_AES_128_GCM_SHA256",
            vec![V13],
        ),
    ] {
        assert_eq!(clients(lines).0.settings.versions, versions, "{lines}");
    }
    let (tls, warnings) = clients("ssl.enabledProtocols=TLSv1.2, TLSv1.1,TLSv1");
    assert_eq!(tls.settings.versions, [V12]);
    assert!(warnings[0].contains("TLSv1.1, TLSv1 left out"), "{warnings:?}");
    for (lines, why) in [
        ("ssl.protocol=TLS", "not a version that this server has"),
        ("ssl.protocol=TLSv1.1", "not a version that this server has"),
        ("ssl.enabledProtocols=TLSv1.1,SSLv3", "leaves no version"),
        ("ssl.enabledProtocols=TLSv1.4", "\"TLSv1.4\", which is not a version of TLS"),
    ] {
        assert!(refused(lines).contains(why), "{}", refused(lines));
    }
    for (lines, versions) in [
        ("", vec![V12, V13]),
        ("ssl.quorum.protocol=TLS", vec![V12, V13]),
        ("ssl.quorum.protocol=TLSv1.2", vec![V12]),
        ("ssl.quorum.enabledProtocols=TLSv1.3", vec![V13]),
    ] {
        let tls = servers(&format!("sslQuorum=true\n{lines}"));
        assert_eq!(tls.settings.versions, versions, "{lines}");
    }
}

#[test]
fn cipher_suites_keep_their_order_and_lose_what_is_missing() {
    let both = "ssl.enabledProtocols=TLSv1.3,TLSv1.2\n";
    let (tls, warnings) = clients(both);
    assert_eq!(
        tls.settings.cipher_suites,
        [
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            "TLS_AES_256_GCM_SHA384",
            "TLS_AES_128_GCM_SHA256",
            "TLS_CHACHA20_POLY1305_SHA256",
        ]
    );
    assert_eq!(warnings, [""; 0]);
    let given = "TLS_RSA_WITH_AES_128_CBC_SHA, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256";
    let (tls, warnings) = clients(&format!("{both}ssl.ciphersuites={given}"));
    let kept = ["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"];
    assert_eq!(tls.settings.cipher_suites, kept);
    let expected = "ssl.ciphersuites: TLS_RSA_WITH_AES_128_CBC_SHA left out: ";
    assert!(warnings.len() == 1 && warnings[0].starts_with(expected), "{warnings:?}");
    for (list, why) in [
        ("TLS_AES_128_GCM_SHA256,FAST", "\"FAST\", which is not a cipher suite"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "leaves no cipher suite"),
        // Only for TLSv1.2, which is not enabled.
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "leaves no cipher suite"),
    ] {
        assert!(refused(&format!("ssl.ciphersuites={list}")).contains(why), "{list}");
    }
}

#[test]
fn stores_have_a_file_a_password_and_a_kind() {
    let (tls, warnings) = clients(
        "ssl.keyStore.password=s3\nssl.trustStore.password=s4\nssl.trustStore.passwordPath=/p\n\
         ssl.trustStore.type=jks",
    );
    let (key, trust) = (tls.settings.key_store.unwrap(), tls.settings.trust_store.unwrap());
    assert_eq!((key.path.to_str(), key.kind), (Some("/k.p12"), Some(StoreKind::Pkcs12)));
    let StorePassword::Given(password) = key.password else { panic!("{:?}", key.password) };
    assert!(password.matches(b"s3"));
    assert_eq!(trust.password, StorePassword::File("/p".into()));
    assert_eq!(trust.kind, Some(StoreKind::Jks));
    let expected = "ssl.trustStore.password has no effect beside ssl.trustStore.passwordPath; remove one of them";
    assert_eq!(warnings, [expected]);
    let (tls, _) = clients("ssl.keyStore.location=/k.store");
    assert_eq!(tls.settings.key_store.unwrap().kind, None);
    assert!(
        refused("ssl.keyStore.type=PKCS11")
            .contains("not one of JKS, PEM, PKCS12 and BCFKS; write one")
    );
}

#[test]
fn missing_store_is_refused_where_it_is_needed() {
    let key = "ssl.keyStore.location=/k\n";
    let without = |lines: &str| with(&format!("secureClientPort=2281\n{lines}"));
    for (lines, why) in [
        ("ssl.clientAuth=none", "set ssl.keyStore.location to their store"),
        (key, "or ssl.clientAuth=none"),
        (&format!("{key}ssl.clientAuth=WANT"), "set ssl.trustStore.location"),
    ] {
        let error = without(lines).expect_err(lines).to_string();
        assert!(error.starts_with("zoo.cfg:3: ") && error.contains(why), "{error}");
    }
    let open = without(&format!("{key}ssl.clientAuth=none")).unwrap().client_tls.unwrap();
    assert_eq!((open.settings.client_auth, open.settings.trust_store), (ClientAuth::None, None));
    assert_eq!(clients("ssl.clientAuth=").0.settings.client_auth, ClientAuth::Need);
    assert!(
        refused("ssl.clientAuth=maybe")
            .contains("is not one of need, want and none; write one of them")
    );
    let quorum = "sslQuorum=true\nssl.quorum.clientAuth=none\n";
    let error = member(quorum).unwrap_err().to_string();
    assert!(error.contains("ssl.quorum.keyStore.location"), "{error}");
    assert!(error.contains("ssl.quorum.trustStore.location"), "{error}");
}

#[test]
fn checks_of_certificates_have_javas_defaults() {
    let shown = |tls: &oxkeeper::config::tls::TlsSettings| {
        let hosts = (tls.verifies_host, tls.verifies_client_host, tls.allows_reverse_dns);
        (hosts, tls.crl, tls.ocsp)
    };
    assert_eq!(shown(&clients("").0.settings), ((true, false, false), false, false));
    let all = "ssl.clientHostnameVerification=true\nssl.allowReverseDnsLookup=true\nssl.crl=true\nssl.ocsp=true\n";
    assert_eq!(shown(&clients(all).0.settings), ((true, true, true), true, true));
    let off = format!("{all}ssl.hostnameVerification=false");
    assert_eq!(shown(&clients(&off).0.settings), ((false, false, true), true, true));
    // In fips-mode, which is the default, no host names are compared between servers.
    for (mode, compares) in [("", false), ("fips-mode=true", false), ("fips-mode=false", true)] {
        let quorum = servers(&format!("sslQuorum=true\n{mode}"));
        assert_eq!(shown(&quorum.settings), ((compares, compares, true), false, false), "{mode}");
    }
}

#[test]
fn switches_of_tls_between_servers_are_independent() {
    let tls = servers("sslQuorum=true");
    assert!(tls.dials && !tls.unified && !tls.reloads && tls.fips_mode);
    assert_eq!(tls.settings.detection_timeout_ms, 5000);
    let tls = servers(
        "portUnification=true\nsslQuorumReloadCertFiles=true\nfips-mode=false\n\
        ssl.quorum.handshakeDetectionTimeoutMillis=70",
    );
    assert!(!tls.dials && tls.unified && tls.reloads && !tls.fips_mode);
    assert_eq!(tls.settings.detection_timeout_ms, 70);
    let stores = STORES.replace("ssl.", "ssl.quorum.");
    let odd = |value: &str| {
        member(&format!(
            "{stores}sslQuorum=true\nssl.quorum.handshakeDetectionTimeoutMillis={value}"
        ))
    };
    let config = odd("0").unwrap();
    assert_eq!(config.quorum_tls.unwrap().settings.detection_timeout_ms, 5000);
    assert!(config.warnings[0].text.ends_with("=0: is below 1, so 5000 is used; write 1 or more"));
    assert!(odd("soon").is_err());
    assert!(member("portUnification=true").is_err(), "there are no stores");
    assert_eq!(member("sslQuorum=false").unwrap().quorum_tls, None);
}

#[test]
fn settings_of_tls_that_is_off_are_named_in_one_line_each() {
    let text_of = |lines: &str, flags: &str| {
        let config = with_flags(lines, flags).unwrap();
        assert_eq!((config.client_tls, config.quorum_tls), (None, None));
        config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        text_of(
            "ssl.keyStore.location=/k\nssl.keyStore.password=s3\nssl.quorum.crl=true\nsslQuorum=true\n\
             ssl.clientAuth=need\nclient.certReload=true\nX509AuthenticationProvider.superUser=CN=a",
            "-Dzookeeper.ssl.ocsp=true -Djdk.tls.rejectClientInitiatedRenegotiation=false"
        ),
        [
            "zoo.cfg:3: ssl.keyStore.location=/k, ssl.keyStore.password=(not shown) (line 4), \
             X509AuthenticationProvider.superUser=CN=a (line 9), -Dzookeeper.ssl.ocsp=true (-D flag in JVMFLAGS): no effect; \
             no port for clients has TLS: set secureClientPort, or client.portUnification=true",
            "zoo.cfg:5: ssl.quorum.crl=true, sslQuorum=true (line 6): no effect; only an ensemble uses this; remove them",
            "-D flag in JVMFLAGS: -Djdk.tls.rejectClientInitiatedRenegotiation=false: no effect; \
             TLS connections are never renegotiated; remove it",
        ]
    );
    let config = member("ssl.quorum.clientAuth=want").unwrap();
    let why = "no effect; connections between servers are plain: set sslQuorum=true, or portUnification=true";
    assert!(config.warnings[0].text.ends_with(why), "{:?}", config.warnings);
    let (_, warnings) = clients("ssl.handshakeDetectionTimeoutMillis=9");
    assert!(
        warnings[0].ends_with("only ssl.quorum.handshakeDetectionTimeoutMillis has one: remove it")
    );
    let unknown = of("ssl.keystore.location=/k");
    let text = "ssl.keystore.location=/k: unknown setting, ignored; is it ssl.keyStore.location?";
    assert_eq!(unknown.warnings[0].text, text);
}
