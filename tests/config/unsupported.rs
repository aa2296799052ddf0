//! Settings of what this server does not have: refused or warned of.

use crate::{with, with_flags};

/// The warnings of a configuration that is accepted.
#[track_caller]
fn warned(lines: &str, flags: &str) -> Vec<String> {
    let config = with_flags(lines, flags).unwrap();
    config.warnings.iter().map(ToString::to_string).collect()
}

// rows: C-203
#[test]
fn guards_are_refused_and_their_absence_is_not() {
    let guards = [
        "ssl.context.supplier.class=x.Y",
        "ssl.quorum.context.supplier.class=x.Y",
        "ssl.authProvider=mine",
        "ssl.sslProvider=GNUTLS",
        "authProvider.sasl=x",
        "audit.impl.class=x.Y",
        "DigestAuthenticationProvider.digestAlg=MD2",
    ];
    for guard in guards {
        let error = with(guard).expect_err(guard).to_string();
        assert!(error.starts_with("zoo.cfg:3: "), "{error}");
        assert!(
            !error.contains('\n') && error.contains(guard.split('=').next().unwrap()),
            "{error}"
        );
    }
    for off in [
        "sslQuorum=false",
        "sessionRequireClientSASLAuth=False",
        "client.portUnification=false",
        "ssl.authProvider=x509",
        "authProvider.1=org.apache.zookeeper.server.auth.DigestAuthenticationProvider",
        "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
    ] {
        assert_eq!(with(off).expect(off).warnings, vec![], "{off}");
    }
}

// rows: C-03
#[test]
fn strict_booleans_are_strict() {
    for line in ["syncEnabled=1", "sslQuorum=yes", "reconfigEnabled=", "localSessionsEnabled=on"] {
        let error = with(line).expect_err(line).to_string();
        assert!(error.contains("is neither true nor false"), "{error}");
    }
    assert!(with("syncEnabled=TRUE").is_ok());
}

#[test]
fn settings_of_ensembles_and_of_the_jvm_are_still_checked() {
    for wrong in [
        "initLimit=ten",
        "electionAlg=2",
        "peerType=leader",
        "jvm.pause.sleep.time.ms=x",
        "initLimit=2147483648",
        "metricsProvider.className=Mine",
        "metricsProvider.className=",
    ] {
        assert!(with(wrong).is_err(), "{wrong}");
    }
    assert!(with("jvm.pause.sleep.time.ms=2147483648").is_ok(), "Java reads a long there");
    for quiet in ["electionAlg=3", "peerType=Participant", "admin.enableServer=false"] {
        assert_eq!(with(quiet).expect(quiet).warnings, vec![], "{quiet}");
    }
}

#[test]
fn one_line_for_each_reason_names_all_it_is_about() {
    let lines =
        "initLimit=10\nsyncLimit=5\nadmin.httpVersion=10\nflushDelay=5\npeerType=observer\n";
    assert_eq!(
        warned(lines, "-Dzookeeper.multiAddress.reachabilityCheckEnabled=false"),
        [
            "zoo.cfg:3: initLimit=10, syncLimit=5 (line 4), peerType=observer (line 7), \
             -Dzookeeper.multiAddress.reachabilityCheckEnabled=false (-D flag in JVMFLAGS): no effect; only an ensemble uses \
             this; remove them",
            "zoo.cfg:5: admin.httpVersion=10: no effect; HTTP/1.1 is spoken, and 1.0 where a client asks for it; remove it",
            "zoo.cfg:6: flushDelay=5: no effect; writes that came while the disk was busy are \
             always flushed together; remove it",
            "zoo.cfg: no server.N line, so this server is standalone although it has initLimit and syncLimit; for an ensemble \
             list all its servers",
        ]
    );
    let secret = warned("SASLAuthenticationProvider.superPassword=s3\nmypassword=s3", "");
    assert!(secret.len() == 2 && !secret.join(" ").contains("s3"), "{secret:?}");
}

#[test]
fn setting_in_the_wrong_place_or_misspelt_is_reported() {
    let lines = "tickTme=2\nzookeeper.snapCount=7\njute.maxbuffer=9\nfrobnicate=1\n\
        \u{ef}\u{bb}\u{bf}x=1\njute.maxbufer=4194304";
    // The test writes UTF-8, which a properties text is not: the mark is spelt with its escapes.
    let lines = lines.replace("\u{ef}\u{bb}\u{bf}", "\\u00ef\\u00bb\\u00bf");
    let flags = "-Dzookeeper.tickTime=5 -DsnapCount=3 -Dzookeeper.snapcount=4 -Dmy.own=1 -Xmx1g";
    assert_eq!(
        warned(&lines, flags),
        [
            "zoo.cfg:3: tickTme=2: unknown setting, ignored; is it tickTime?",
            "zoo.cfg:4: zookeeper.snapCount=7 has no effect; in a file it is written snapCount",
            "zoo.cfg:5: jute.maxbuffer=9 has no effect; only the flag -Djute.maxbuffer sets it",
            "zoo.cfg:6: frobnicate=1: unknown setting, ignored; correct or remove it",
            "zoo.cfg:7: \u{ef}\u{bb}\u{bf}x=1 has no effect: a byte order mark is before it; \
             save the file without one",
            "zoo.cfg:8: jute.maxbufer=4194304: unknown setting, ignored; is it the flag -Djute.maxbuffer?",
            "-D flag in JVMFLAGS: -DsnapCount=3 has no effect; the flag is -Dzookeeper.snapCount",
            "-D flag in JVMFLAGS: -Dzookeeper.snapcount=4: unknown setting, ignored; \
             is it zookeeper.snapCount?",
            "-D flag in JVMFLAGS: -Dzookeeper.tickTime=5 has no effect; tickTime is read from \
             zoo.cfg only",
        ]
    );
}
