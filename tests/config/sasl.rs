//! SASL of clients and between servers: zoo.cfg, flags, and the JAAS file.

use oxkeeper::config::sasl::{KeyTab, Login, TicketCache};
use oxkeeper::config::{Check, Config, Environment, Launch, Settings, check, load_from};
use std::io;
use std::path::Path;

const FLAG: &str = "-Djava.security.auth.login.config=/jaas";
const PROVIDER: &str =
    "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n";
const DIGEST: &str = "org.apache.zookeeper.server.auth.DigestLoginModule required";
const KERBEROS: &str = "com.sun.security.auth.module.Krb5LoginModule required";

/// Loads a zoo.cfg and a JAAS file, as `load` would. What the running server does not do yet is no problem of the settings.
fn loaded(zoo: &str, jaas: Option<&str>, flags: &[&str]) -> Result<Config, String> {
    let read = |path: &Path| match path.to_str() {
        Some("/zoo.cfg") => Ok(format!("dataDir=/d\nclientPort=2181\n{zoo}").into_bytes()),
        Some("/jaas" | "/home/me/my jaas") if jaas.is_some() => {
            Ok(jaas.unwrap_or_default().as_bytes().to_vec())
        }
        Some("/d/myid") if zoo.lines().any(|line| line.starts_with("server.")) => {
            Ok(b"1\n".to_vec())
        }
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
    let launch = Launch { settings: Settings::File("/zoo.cfg".into()), flags };
    let env = Environment::from([("HOME".to_owned(), "/home/me".to_owned())]);
    load_from(&read, &launch, &env).map_err(|error| error.to_string())
}

fn warnings(config: &Config) -> Vec<String> {
    config.warnings.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn refused(zoo: &str, jaas: Option<&str>, flags: &[&str], why: &str) {
    let error = loaded(zoo, jaas, flags).expect_err(why);
    assert!(error.contains(why) && !error.contains('\n'), "{error}");
}

#[test]
fn users_of_clients_are_those_of_all_digest_modules() {
    let jaas = format!(
        "Server {{ {DIGEST} user_bob=\"s3\" user_super=\"s4\" other=x; {DIGEST} user_bob=\"s5\"; }};\n\
         Client {{ my.own.Module required; }};"
    );
    let zoo = format!("{PROVIDER}SASLAuthenticationProvider.superPassword=s6\n");
    let config = loaded(&zoo, Some(&jaas), &[FLAG]).unwrap();
    assert_eq!(config.warnings, vec![]);
    let sasl = config.client_sasl.unwrap();
    assert!(sasl.super_password.unwrap().matches(b"s6"));
    let Login::Digest(login) = sasl.login else { panic!("{:?}", sasl.login) };
    let users: Vec<&str> = login.users.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((sasl.section.as_str(), users), ("Server", vec!["bob", "super"]));
    assert!(login.users[0].1.matches(b"s5"), "the later one counts");
}

#[test]
fn jaas_file_is_found_by_path_property_and_url() {
    let jaas = format!("Server {{ {DIGEST} user_bob=\"${{user.home}}\"; }};");
    for path in [
        "${user.home}/my jaas",
        "file:/home/me/my%20jaas",
        "=file:///home/me/my%20jaas",
        "=/home/me/my jaas",
        "FILE://localhost/home/me/my%20jaas",
    ] {
        let flag = format!("-Djava.security.auth.login.config={path}");
        let sasl = loaded("", Some(&jaas), &[&flag]).unwrap().client_sasl.expect(path);
        let Login::Digest(login) = sasl.login else { panic!("{path}") };
        assert!(login.users[0].1.matches(b"/home/me"));
    }
    for (path, why) in [
        ("/other", "login.config=/other: "),
        ("file://elsewhere/jaas", "names host \"elsewhere\"; write file:///path"),
        ("http://x/jaas", "is not a file of this machine; name a file to read"),
        ("${nothing}/jaas", "property nothing is not set"),
    ] {
        refused("", Some(""), &[&format!("-Djava.security.auth.login.config={path}")], why);
    }
}

// rows: C-218
#[test]
fn missing_section_is_refused_only_if_it_is_named() {
    for jaas in ["", "Client { };", "// nothing"] {
        let config = loaded("", Some(jaas), &[FLAG]).unwrap();
        assert_eq!(config.client_sasl, None);
        let expected = "-D flag in the command line: /jaas has no section Server: clients can't \
                    authenticate by SASL; add it if they should";
        assert_eq!(warnings(&config), [expected]);
    }
    refused("sasl.serverconfig=Mine", Some(""), &[FLAG], "/jaas has no such section; add it");
    refused("sasl.serverconfig=Mine", None, &[], "no JAAS file is named");
    // Its users log in, and no others do.
    let section = |name: &str, user: &str| format!("{name} {{ {DIGEST} user_{user}=\"s3\"; }};\n");
    let jaas = section("Server", "eve") + &section("Mine", "bob");
    let sasl = loaded("sasl.serverconfig=Mine", Some(&jaas), &[FLAG]).unwrap().client_sasl.unwrap();
    let Login::Digest(login) = sasl.login else { panic!("{:?}", sasl.login) };
    let users: Vec<&str> = login.users.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((sasl.section.as_str(), users), ("Mine", vec!["bob"]));
    let config = loaded("SASLAuthenticationProvider.superPassword=s3", None, &[]).unwrap();
    assert!(warnings(&config)[0].contains("has no effect without SASL of clients"));
    let jaas = format!("Server {{ {DIGEST} user_bob=\"s3\"; }};");
    let zoo = format!("{PROVIDER}SASLAuthenticationProvider.superPassword=s6\n");
    let config = loaded(&zoo, Some(&jaas), &[FLAG]).unwrap();
    assert!(warnings(&config)[0].contains("has no user super; add user_super"));
}

#[test]
fn wrong_section_is_refused_with_its_line_and_without_its_passwords() {
    let server = |module: &str| format!("// ours\nServer {{\n {module};\n}};");
    for (jaas, why) in [
        (
            server("my.own.Module required"),
            "/jaas:3: section Server has login module my.own.Module",
        ),
        ("Server { };".to_owned(), "/jaas:1: section Server has no login module"),
        (
            server(&format!("{DIGEST} user_bob=s3@x")),
            "found a character that needs quotation marks",
        ),
        (server(KERBEROS), "/jaas:3: section Server needs useKeyTab=true"),
        (server(&format!("{KERBEROS} useKeyTab=true")), "needs principal=\"service/host@REALM\""),
        (
            server(&format!("{KERBEROS} useKeyTab=true principal=\"zk@R\"")),
            "needs principal=\"service/host@REALM\"",
        ),
        (
            server(&format!("{KERBEROS} useKeyTab=true principal=\"a/b@R\"; {KERBEROS}")),
            "/jaas:3: section Server has a second Krb5LoginModule",
        ),
    ] {
        let error = loaded("", Some(&jaas), &[FLAG]).expect_err(why);
        assert!(error.contains(why) && !error.contains("s3"), "{error}");
    }
    let empty = loaded("", Some(&server(DIGEST)), &[FLAG]).unwrap();
    assert!(warnings(&empty)[0].starts_with("/jaas:2: section Server has no user"), "{empty:?}");
}

#[test]
fn kerberos_options_are_those_of_javas_module() {
    let jaas = format!(
        "Server {{ {KERBEROS} useKeyTab=TRUE keyTab=\"FILE:/etc/zk.keytab\" storeKey=true isInitiator=false\n\
         principal=\"zookeeper/a.b@R\"; {DIGEST} user_bob=x; }};"
    );
    let config =
        loaded("", Some(&jaas), &[FLAG, "-Djava.security.krb5.conf=/etc/my.conf"]).unwrap();
    assert_eq!(config.krb5_conf.as_deref(), Some(Path::new("/etc/my.conf")));
    assert!(
        warnings(&config)[0].contains("DigestLoginModule has no effect beside Krb5LoginModule")
    );
    let Login::Kerberos(login) = config.client_sasl.unwrap().login else { panic!("no Kerberos") };
    assert_eq!(login.principal.as_deref(), Some("zookeeper/a.b@R"));
    assert_eq!(login.key_tab, Some(KeyTab::File("/etc/zk.keytab".into())));
    assert!(!login.is_initiator && login.ticket_cache.is_none());
}

// rows: C-186
#[test]
fn canonical_host_names_are_wanted_and_a_risk() {
    let sections = format!(
        "QuorumLearner {{ {KERBEROS} useKeyTab=true principal=\"zk/a@R\"; }};\n\
         QuorumServer {{ {KERBEROS} useKeyTab=true principal=\"zk/a@R\"; }};"
    );
    let zoo = "quorum.auth.enableSasl=true\nquorum.auth.learnerRequireSasl=true\n\
               kerberos.canonicalizeHostNames=true";
    let config = member(zoo, &sections).unwrap();
    assert!(config.quorum_sasl.as_ref().is_some_and(|sasl| sasl.canonicalizes_hosts));
    let risks = oxkeeper::config::risks(&config).join("\n");
    assert!(risks.contains("kerberos.canonicalizeHostNames"), "{risks}");
    let plain = zoo.replace("kerberos.canonicalizeHostNames=true", "");
    let config = member(&plain, &sections).unwrap();
    assert!(config.quorum_sasl.is_some_and(|sasl| !sasl.canonicalizes_hosts));
}

// rows: C-222
#[test]
fn rules_about_identities_are_read_without_a_jaas_file_too() {
    let config = loaded(
        "superUser=a\nsuperUser.x=b/c@R\nsuperUser.y=\nletAnySaslUserDoX=any\nallowSaslFailedClients=true\n\
         kerberos.removeHostFromPrincipal=true\nkerberos.removeRealmFromPrincipal=true\n\
         security.auth_to_local=RULE:[1:$1]\nrequireKerberosConfig=true",
        None,
        &[],
    )
    .unwrap();
    assert_eq!(config.warnings, vec![]);
    let rules = config.sasl_rules;
    assert_eq!(rules.super_users, ["a", "b/c@R"]);
    assert_eq!(rules.let_any_user_do.as_deref(), Some("any"));
    assert!(rules.allows_failed_clients && rules.removes_host && rules.removes_realm);
    assert!(rules.requires_kerberos_config);
    assert_eq!(rules.auth_to_local.text(), "RULE:[1:$1]");
    assert_eq!(loaded("", None, &[]).unwrap().sasl_rules.auth_to_local.text(), "DEFAULT");
}

#[test]
fn clients_that_must_authenticate_need_the_provider_and_a_section() {
    let zoo = format!("{PROVIDER}sessionRequireClientSASLAuth=true\nenforce.auth.schemes=digest\n");
    let jaas = format!("Server {{ {DIGEST} user_bob=\"s3\"; }};");
    let config = loaded(&zoo, Some(&jaas), &[FLAG]).unwrap();
    assert_eq!(config.providers.required, ["sasl"]);
    let idle = "enforce.auth.schemes=digest has no effect beside sessionRequireClientSASLAuth=true; remove one of them";
    assert!(warnings(&config)[0].ends_with(idle), "{:?}", config.warnings);
    refused("sessionRequireClientSASLAuth=true", Some(&jaas), &[FLAG], "needs scheme sasl; add");
    let zoo = format!("{PROVIDER}enforce.auth.enabled=true\nenforce.auth.schemes=sasl");
    let config = loaded(&zoo, None, &[]).unwrap();
    assert!(warnings(&config)[0].contains("clients must authenticate by SASL, and none can"));
    let old = loaded("requireClientAuthScheme=sasl\njaasLoginRenew=3600000", None, &[]).unwrap();
    assert_eq!(
        warnings(&old),
        [
            "/zoo.cfg:3: requireClientAuthScheme=sasl, jaasLoginRenew=3600000 (line 4): no effect; no release of ZooKeeper \
          reads it; sessionRequireClientSASLAuth=true makes clients authenticate by SASL; remove them"
        ]
    );
}

fn member(lines: &str, jaas: &str) -> Result<Config, String> {
    let servers = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\ninitLimit=5\nsyncLimit=2\n";
    loaded(&format!("{servers}{lines}"), Some(jaas), &[FLAG, "-Dzookeeper.server.realm=S"])
}

#[test]
fn sasl_between_servers_has_two_sections() {
    let jaas = format!(
        "QuorumServer {{ {DIGEST} user_zk=\"s3\"; }};\nQuorumLearner {{ {DIGEST} username=zk password=\"s3\"; }};\n\
         Server {{ {DIGEST} user_bob=x; }};"
    );
    let all = "quorum.auth.enableSasl=true\nquorum.auth.learnerRequireSasl=true\n\
               quorum.auth.serverRequireSasl=true\nfips-mode=false\n";
    let config = member(all, &jaas).unwrap();
    assert_eq!(config.warnings, vec![]);
    let sasl = config.quorum_sasl.unwrap();
    assert!(sasl.learner_requires && sasl.server_requires);
    assert_eq!(sasl.service_principal, "zkquorum/localhost");
    assert_eq!(sasl.server_realm.as_deref(), Some("S"));
    let Login::Digest(learner) = sasl.learner else { panic!("no digest") };
    assert_eq!(learner.user_name.as_deref(), Some("zk"));

    let kerberos = format!(
        "L {{ {KERBEROS} useTicketCache=true ticketCache=\"/tmp/c\"; }};\n\
         S {{ {KERBEROS} useKeyTab=true principal=\"zkquorum/a@R\"; }}; Server {{ {DIGEST} user_bob=x; }};"
    );
    let named = "quorum.auth.enableSasl=true\nquorum.auth.learner.saslLoginContext=L\n\
                 quorum.auth.server.saslLoginContext=S\nquorum.auth.kerberos.servicePrincipal=zk/_HOST\n\
                 quorum.cnxn.threads.size=5";
    let config = member(named, &kerberos).unwrap();
    assert!(warnings(&config)[0].contains("quorum.cnxn.threads.size=5: no effect; "));
    let sasl = config.quorum_sasl.unwrap();
    assert!(!sasl.learner_requires);
    assert_eq!(sasl.service_principal, "zk/_HOST");
    let (Login::Kerberos(learner), Login::Kerberos(server)) = (sasl.learner, sasl.server) else {
        panic!("no Kerberos")
    };
    assert_eq!(learner.ticket_cache, Some(TicketCache::File("/tmp/c".into())));
    assert_eq!(server.key_tab, Some(KeyTab::Default));
}

#[test]
fn switches_and_sections_between_servers_that_contradict_are_refused() {
    let digest = format!(
        "QuorumServer {{ {DIGEST} user_zk=\"s3\"; }}; QuorumLearner {{ {DIGEST} username=zk password=\"s3\"; }};"
    );
    let on = "quorum.auth.enableSasl=true\n";
    let learner = format!("{on}quorum.auth.learnerRequireSasl=true\n");
    for (lines, jaas, why) in [
        ("quorum.auth.learnerRequireSasl=true", "", "needs quorum.auth.enableSasl=true; add it"),
        (
            &format!("{on}quorum.auth.serverRequireSasl=true\n"),
            &digest,
            "this server could not join",
        ),
        (&learner, &digest, "DIGEST-MD5, which fips-mode=true forbids; set fips-mode=false"),
        (on, "QuorumLearner { };", "has no login module"),
    ] {
        let error = member(lines, jaas).expect_err(why);
        assert!(error.contains(why), "{error}");
    }
    let error = member(on, "").unwrap_err();
    assert!(error.contains("has no section QuorumLearner (quorum.auth.learner.saslLoginContext)"));
    assert!(error.contains("has no section QuorumServer (quorum.auth.server.saslLoginContext)"));
    let half = digest.replace("username=zk", "");
    assert!(member(on, &half).unwrap_err().contains("it needs username and password"));
    // Without a need to prove itself this server never uses the section.
    let config = member(on, &digest).unwrap();
    assert!(warnings(&config).iter().any(|warning| warning.contains("fips-mode=true forbids")));
    refused("quorum.auth.learnerRequireSasl=true", None, &[], "add it");
    let alone = loaded(on, None, &[]).unwrap();
    assert!(warnings(&alone)[0].ends_with("only an ensemble uses this; remove it"), "{alone:?}");
}

#[test]
fn config_check_reads_the_jaas_file_and_shows_no_password() {
    let dir = tempfile::tempdir().unwrap();
    let (zoo, jaas) = (dir.path().join("zoo.cfg"), dir.path().join("jaas"));
    std::fs::write(&zoo, "dataDir=/d\nclientPort=2181\n").unwrap();
    std::fs::write(&jaas, "Server {\n X required user_bob=\"secret-of-bob\";\n};").unwrap();
    let flags = vec![format!("-Djava.security.auth.login.config={}", jaas.display())];
    let launch = Launch { settings: Settings::File(zoo), flags };
    let Check { problems, settings, .. } = check(&launch, &Environment::new());
    let problem = problems[0].to_string();
    assert!(problem.contains("jaas:2: section Server has login module X"), "{problem}");
    assert!(!format!("{settings:?}{problems:?}").contains("secret-of-bob"));
}

#[test]
fn risks_name_what_is_open_and_what_shuts_it() {
    let risks = |config: &Config| oxkeeper::config::risks(config);
    assert_eq!(risks(&loaded("", None, &[]).unwrap()), [""; 0]);
    let open = format!(
        "Server {{ {DIGEST} user_super=\"s3\"; }}; QuorumServer {{ {DIGEST} user_zk=\"s3\"; }};\n\
         QuorumLearner {{ {DIGEST} username=zk password=\"s3\"; }};"
    );
    let stores = "ssl.keyStore.location=/k\nssl.quorum.keyStore.location=/k\nssl.quorum.trustStore.location=/t\n";
    let lines = format!(
        "{stores}quorum.auth.enableSasl=true\nportUnification=true\nclient.portUnification=true\nssl.clientAuth=none\n\
         ssl.quorum.clientAuth=want\nallowSaslFailedClients=true\nletAnySaslUserDoX=any\n\
         ssl.keyStore.passwordPath=/p\n"
    );
    let config = member(&lines, &open).unwrap();
    let found = risks(&config);
    for remedy in [
        "then set fips-mode=false",
        "set ssl.quorum.clientAuth=need",
        "set portUnification=false",
        "set ssl.clientAuth=need to require one",
        "set client.portUnification=false and secureClientPort",
        "remove letAnySaslUserDoX",
        "set sessionRequireClientSASLAuth=true",
        "remove allowSaslFailedClients",
        "remove user_super from the JAAS file, and name superusers with superUser",
        "use secureClientPort alone, without clientPort",
        "set quorum.auth.serverRequireSasl=true",
        "use sslQuorum=true, without portUnification",
    ] {
        assert_eq!(
            found.iter().filter(|risk| risk.ends_with(remedy)).count(),
            1,
            "{remedy}: {found:#?}"
        );
    }
    assert_eq!(found.len(), 12, "{found:#?}");
    let files = oxkeeper::config::secret_files(&config);
    let files: Vec<String> =
        files.iter().map(|(setting, path)| format!("{setting}={}", path.display())).collect();
    assert_eq!(
        files,
        [
            "ssl.keyStore.location=/k",
            "ssl.keyStore.passwordPath=/p",
            "ssl.quorum.keyStore.location=/k",
            "java.security.auth.login.config=/jaas",
        ]
    );
    for (lines, remedy) in [
        ("", Some("set ssl.quorum.allowReverseDnsLookup=false")),
        ("ssl.quorum.allowReverseDnsLookup=false", None),
        ("ssl.quorum.clientHostnameVerification=false", Some("clientHostnameVerification=true")),
        ("ssl.quorum.hostnameVerification=false", Some("ssl.quorum.hostnameVerification=true")),
    ] {
        let lines = format!("{stores}sslQuorum=true\nfips-mode=false\n{lines}");
        let found = risks(&member(&lines, "").unwrap());
        match remedy {
            Some(remedy) => assert!(found.len() == 1 && found[0].ends_with(remedy), "{found:?}"),
            None => assert_eq!(found, [""; 0]),
        }
    }
}
