//! What becomes of keys that set no field of [`super::Config`].
//!
//! Three kinds: those that would make or guard something this server lacks (refused), those that
//! mean nothing to a standalone server or to one that is not a JVM (checked and passed over in
//! silence, because every shipped `zoo.cfg` has them), and the rest (a warning).

use super::Place;
use super::check::Checker;
use super::system::{Property, SystemProperties};

const INT: (i32, i32) = (i32::MIN, i32::MAX);

/// Numbers of an ensemble or of the JVM; still checked, as Java would not start with a wrong one.
const UNUSED_NUMBERS: [&str; 9] = [
    "initLimit",
    "syncLimit",
    "connectToLearnerMasterLimit",
    "observerMasterPort",
    "quorum.cnxn.threads.size",
    "multiAddress.reachabilityCheckTimeoutMs",
    "jvm.pause.info-threshold.ms",
    "jvm.pause.warn-threshold.ms",
    "jvm.pause.sleep.time.ms",
];

/// Likewise, for booleans.
const UNUSED_BOOLEANS: [&str; 9] = [
    "localSessionsEnabled",
    "localSessionsUpgradingEnabled",
    "multiAddress.reachabilityCheckEnabled",
    "portUnification",
    "quorumListenOnAllIPs",
    "reconfigEnabled",
    "sslQuorumReloadCertFiles",
    "syncEnabled",
    "jvm.pause.monitor",
];

/// Likewise, for words; the guard they belong to is in [`GUARDING_BOOLEANS`].
const UNUSED_WORDS: [&str; 3] = [
    "quorum.auth.learner.saslLoginContext",
    "quorum.auth.server.saslLoginContext",
    "quorum.auth.kerberos.servicePrincipal",
];

const GUARDING_BOOLEANS: [&str; 4] = [
    "sslQuorum",
    "quorum.auth.enableSasl",
    "quorum.auth.serverRequireSasl",
    "quorum.auth.learnerRequireSasl",
];

const GUARDING_WORDS: [&str; 2] = ["secureClientPort", "secureClientPortAddress"];

/// System properties that guard something unless they are `false` or absent.
const GUARDING_PROPERTIES: [&str; 5] = [
    "zookeeper.client.portUnification",
    "zookeeper.enforce.auth.enabled",
    "zookeeper.requireClientAuthScheme",
    "zookeeper.requireKerberosConfig",
    "zookeeper.sessionRequireClientSASLAuth",
];

/// Families of system properties that guard something by being there at all.
const GUARDING_FAMILIES: [&str; 2] = ["zookeeper.ssl.", "zookeeper.authProvider."];

/// Families that only tune the JVM's threads, buffers and logs.
const UNUSED_FAMILIES: [&str; 8] = [
    "zookeeper.nio.",
    "zookeeper.jmx.",
    "zookeeper.log.",
    "zookeeper.root.logger",
    "zookeeper.console.threshold",
    "zookeeper.tracelog",
    "zookeeper.commitProcessor.",
    "zookeeper.intBufferStartingSizeBytes",
];

/// Settings that only a JVM flag makes: in a file Java reads them into a property nobody asks for.
const FLAG_ONLY: [&str; 5] = [
    "jute.maxbuffer",
    "readonlymode.enabled",
    "znode.container.checkIntervalMs",
    "znode.container.maxPerMinute",
    "znode.container.maxNeverUsedIntervalMs",
];

const REFUSED: &str = "guards something this server does not have yet; remove it to run without";

/// Takes the explicit keys that set nothing, and refuses those that guard.
pub(super) fn take_unused(checker: &mut Checker) {
    for key in UNUSED_NUMBERS {
        checker.number(key, INT);
    }
    for key in UNUSED_BOOLEANS {
        checker.boolean(key);
    }
    for key in UNUSED_WORDS {
        checker.take(key);
    }
    checker.number("electionAlg", (3, 3));
    if let Some(peer) = checker.take("peerType") {
        match peer.value.to_lowercase().as_str() {
            "participant" => {}
            "observer" => {
                checker.warn(&peer.place, "peerType=observer means nothing without peers")
            }
            _ => {
                let text = format!("peerType={} is neither participant nor observer", peer.value);
                checker.problem(&peer.place, text);
            }
        }
    }
    for key in GUARDING_BOOLEANS {
        if let Some((true, place)) = checker.boolean(key) {
            checker.problem(&place, format!("{key}=true {REFUSED}"));
        }
    }
    for key in GUARDING_WORDS {
        if let Some(setting) = checker.take(key) {
            checker.problem(&setting.place, format!("{key}={} {REFUSED}", setting.value));
        }
    }
}

/// Turns every key nobody took into `zookeeper.<key>`, over what a flag may have said.
pub(super) fn pass_through(checker: &mut Checker, system: &mut SystemProperties) {
    for (key, setting) in checker.take_all(|_| true) {
        system.set(&format!("zookeeper.{key}"), &setting.value, setting.place);
    }
}

/// Judges the properties nobody took: guards are problems, other `zookeeper.*` are warnings.
pub(super) fn judge_leftovers(checker: &mut Checker, system: &mut SystemProperties) {
    for (name, Property { value, place }) in system.take_all(|name| name.starts_with("zookeeper."))
    {
        let key = match place {
            Place::Line { .. } => name.trim_start_matches("zookeeper."),
            _ => name.as_str(),
        };
        let shown = shown(key, &value);
        let bare = name.trim_start_matches("zookeeper.");
        let starts = |family: &str| name.starts_with(family);
        let guards = GUARDING_FAMILIES.iter().any(|f| starts(f))
            || (GUARDING_PROPERTIES.contains(&name.as_str()) && !is_false(&value));
        if guards {
            checker.problem(&place, format!("{shown} {REFUSED}"));
        } else if FLAG_ONLY.contains(&bare) {
            checker.warn(&place, format!("{shown} has no effect; only the flag -D{bare} sets it"));
        } else if !UNUSED_FAMILIES.iter().any(|f| starts(f)) && !is_switched_off(&name, &value) {
            checker.warn(&place, format!("{shown} has no effect on this server"));
        }
    }
}

/// `key=value`, without the value where it may be a secret: these lines go to logs.
fn shown(key: &str, value: &str) -> String {
    let secret = ["pass", "digest"].iter().any(|part| key.to_lowercase().contains(part));
    if secret { key.to_owned() } else { format!("{key}={value}") }
}

/// What it would guard is switched off, here as in Java.
fn is_false(value: &str) -> bool {
    value.eq_ignore_ascii_case("false")
}

/// Settings whose `false` asks for just what this server does.
fn is_switched_off(name: &str, value: &str) -> bool {
    let off_is_ours = [
        "zookeeper.admin.enableServer",
        "zookeeper.audit.enable",
        "zookeeper.client.portUnification",
        "zookeeper.enforce.auth.enabled",
        "zookeeper.requireKerberosConfig",
        "zookeeper.sessionRequireClientSASLAuth",
    ];
    off_is_ours.contains(&name) && is_false(value)
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, ConfigError, Environment, Source, parse};

    fn with(line: &str) -> Result<Config, ConfigError> {
        let text = format!("dataDir=/d\nclientPort=2181\n{line}\n");
        let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: None };
        parse(source, &Environment::new(), &[])
    }

    #[test]
    fn guards_are_refused_and_their_absence_is_not() {
        let guards = [
            "secureClientPort=2281",
            "sslQuorum=true",
            "ssl.clientAuth=need",
            "client.portUnification=true",
            "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            "authProvider.sasl=x",
            "requireClientAuthScheme=sasl",
            "enforce.auth.enabled=true",
            "sessionRequireClientSASLAuth=true",
            "quorum.auth.enableSasl=true",
            "DigestAuthenticationProvider.digestAlg=MD2",
        ];
        for guard in guards {
            let error = with(guard).expect_err(guard).to_string();
            assert!(error.starts_with("zoo.cfg:3: "), "{error}");
            assert!(!error.contains('\n') && error.contains(guard.split('=').next().unwrap()));
        }
        for off in [
            "sslQuorum=false",
            "enforce.auth.enabled=false",
            "sessionRequireClientSASLAuth=False",
            "quorum.auth.enableSasl=FALSE",
            "client.portUnification=false",
        ] {
            assert_eq!(with(off).expect(off).warnings, vec![], "{off}");
        }
    }

    // rows: C-03
    #[test]
    fn strict_booleans_are_strict() {
        for line in
            ["syncEnabled=1", "sslQuorum=yes", "reconfigEnabled=", "localSessionsEnabled=on"]
        {
            let error = with(line).expect_err(line).to_string();
            assert!(error.ends_with("is neither true nor false"), "{error}");
        }
        assert!(with("syncEnabled=TRUE").is_ok());
    }

    #[test]
    fn what_an_ensemble_or_a_jvm_wants_is_still_checked() {
        assert!(with("initLimit=ten").is_err());
        assert!(with("electionAlg=2").is_err());
        assert!(with("peerType=leader").is_err());
        for quiet in
            ["initLimit=10", "electionAlg=3", "peerType=participant", "nio.numWorkerThreads=4"]
        {
            assert_eq!(with(quiet).expect(quiet).warnings, vec![], "{quiet}");
        }
        for warned in ["flushDelay=5", "admin.serverPort=9", "peerType=observer"] {
            assert_eq!(with(warned).expect(warned).warnings.len(), 1, "{warned}");
        }
        let secret = with("SASLAuthenticationProvider.superPassword=s3").unwrap();
        assert!(!secret.warnings[0].to_string().contains("s3"));
    }
}
