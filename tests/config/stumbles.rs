//! What operators write by mistake, and Java takes as it stands.

use crate::{file, of, with, with_flags};
use oxkeeper::config::{Environment, Launch, Settings, check, risks};

const LIMITS: &str = "dataDir=/d\nclientPort=2181\ninitLimit=5\nsyncLimit=2\n";

fn refused(text: &str) -> String {
    file(text, Some("1")).map(drop).unwrap_err().to_string()
}

#[test]
fn comment_after_a_value_is_named_as_such() {
    let comment = "a comment needs a line of its own, so move it";
    for (lines, problem) in [
        ("dataDir=/data # fast disk\nclientPort=1", "dataDir=/data # fast disk is not a directory"),
        ("dataDir=/d\nclientPort=2181 # clients", "clientPort=2181 # clients is not a number"),
        (
            "dataDir=/d\nclientPort=1\nreconfigEnabled=true\t# x",
            "reconfigEnabled=true\\t# x is neither true nor false",
        ),
    ] {
        let error = refused(lines);
        assert!(error.contains(&format!("{problem}; {comment}")), "{error}");
    }
    assert!(with("dataLogDir=/a#b").is_ok(), "a directory may have that name");
}

#[test]
fn addresses_that_cannot_all_be_bound_are_refused() {
    let twice = format!("{LIMITS}server.1=a:1:2\nserver.2=b:1:2\nserver.3=A:3:2\n");
    assert_eq!(
        refused(&twice),
        "zoo.cfg:7: A:2 is the election port of server.1 and the election port of server.3; give each its own"
    );
    let nobody = refused(&format!("{LIMITS}server.1=a:1:2\nserver.2=:1:2\n"));
    assert!(nobody.starts_with("zoo.cfg:6: server.2"), "{nobody}");
    let clients = format!("{LIMITS}server.1=a:2181:2\nserver.2=b:2181:2\n");
    assert_eq!(
        refused(&clients),
        "zoo.cfg:2: clientPort=2181 is the quorum port of server.1 too; give clients another port"
    );
    let elsewhere = format!("{clients}clientPortAddress=c\n");
    assert!(file(&elsewhere, Some("1")).is_ok());
}

#[test]
fn port_for_http_that_is_another_port_of_the_server_is_refused() {
    const PROMETHEUS: &str = "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n";
    let alone = "dataDir=/d\nclientPort=2181\n";
    assert_eq!(
        refused(&format!("{alone}admin.serverPort=2181")),
        "zoo.cfg:3: admin.serverPort=2181 is clientPort too; give it another port"
    );
    let metrics = |lines: &str| format!("{alone}{PROMETHEUS}metricsProvider.httpPort={lines}");
    assert_eq!(
        refused(&metrics("2181")),
        "zoo.cfg:4: metricsProvider.httpPort=2181 is clientPort too; give it another port"
    );
    assert_eq!(
        refused(&metrics("8080")),
        "zoo.cfg: admin.serverPort=8080 is metricsProvider.httpPort too; give it another port",
        "the default of AdminServer"
    );
    for good in [
        metrics("8080\nadmin.enableServer=false"),
        metrics("8080\nadmin.serverPort=0"),
        metrics("2181\nclientPortAddress=10.0.0.1\nmetricsProvider.httpHost=10.0.0.2"),
    ] {
        file(&good, None).unwrap();
    }
    // Java's member serves without AdminServer.
    let member = format!("{LIMITS}server.1=a:1:2\nserver.2=b:1:2\nadmin.serverPort=2181\n");
    let warnings = file(&member, Some("1")).unwrap().warnings;
    let text = "admin.serverPort=2181 is clientPort too; give it another port, or AdminServer does not start";
    assert!(warnings.iter().any(|warning| warning.to_string().contains(text)), "{warnings:?}");
}

#[test]
fn misspelt_class_of_metrics_is_refused_with_the_one_that_is_meant() {
    let text = |class: &str| refused(&format!("{LIMITS}metricsProvider.className={class}\n"));
    let meant = "is it org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider?";
    for class in ["org.apache.zookeeper.metrics.prometheus.Prometheus", "prometheusmetricprovider"]
    {
        assert!(text(class).ends_with(meant), "{}", text(class));
    }
    assert!(text("x.Y").ends_with("remove it"));
}

#[test]
fn settings_of_members_are_not_called_idle_because_of_another_problem() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zoo.cfg");
    let warned = |lines: &str| {
        std::fs::write(&path, format!("{LIMITS}{lines}\n")).unwrap();
        let launch = Launch { settings: Settings::File(path.clone()), flags: Vec::new() };
        check(&launch, &Environment::new())
            .warnings
            .iter()
            .map(ToString::to_string)
            .collect::<String>()
    };
    for lines in [
        "server.1=a:1",
        "server.1=a:1:2\nserver.2=b:1:2",
        "server.1=a:1:2\nserver.1=a:1:2\nserver.9=x",
    ] {
        assert!(!warned(lines).contains("only an ensemble"), "{lines}");
    }
    assert!(warned("").contains("initLimit=5"));
}

#[test]
fn keys_are_named_as_they_were_written() {
    let warned = |lines: &str, flags: &str| {
        let config = with_flags(lines, flags).unwrap();
        config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let text = "preAllocSize=64M is not a valid number, so the default, 65536, is used; correct it";
    assert_eq!(warned("preAllocSize=64M", ""), [format!("zoo.cfg:3: {text}")]);
    assert_eq!(
        warned("", "-Dzookeeper.preAllocSize=64M"),
        [format!("-D flag in JVMFLAGS: -Dzookeeper.{text}")]
    );
}

#[test]
fn misspelt_flags_of_the_jvm_are_named() {
    let warned = |flags: &str| {
        let config = with_flags("", flags).unwrap();
        config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert!(warned("-Djute.maxbufer=5").contains("unknown flag, ignored; is it -Djute.maxbuffer?"));
    let login = warned("-Djava.security.auth.login.conf=/j");
    assert!(login.ends_with("is it -Djava.security.auth.login.config?"), "{login}");
    assert_eq!(warned("-Djava.net.preferIPv4Stack=true -Dcom.sun.x=1 -Duser.home=/h"), "");
}

#[test]
fn provider_of_sasl_without_a_login_is_warned_of() {
    let provider = "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider";
    let text = risks(&of(provider)).join("\n");
    assert!(
        text.contains("no JAAS file is named; set -Djava.security.auth.login.config=FILE"),
        "{text}"
    );
    assert!(!risks(&of("")).join("\n").contains("JAAS"));
}

#[test]
fn misspelt_server_lines_are_recognised_and_leave_a_standalone_server() {
    let base = "dataDir=/d\nclientPort=2181\n";
    let warned = |lines: &str, my_id: Option<&str>| {
        let config = file(&format!("{base}{lines}"), my_id).unwrap();
        assert!(config.ensemble.is_none());
        config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let alone = "so this server is standalone although it has";
    for line in ["server1", "Server.1", "sever.1", "servers.1", "server-1"] {
        let warnings = warned(&format!("{line}=a:1:2"), Some("1"));
        let hint = warnings.iter().any(|warning| warning.ends_with("is it server.1?"));
        assert!(hint, "{warnings:?}");
        let expected = format!(
            "zoo.cfg: no server.N line ({line} is none), {alone} the file /d/myid; write server.1"
        );
        assert!(warnings.contains(&expected), "{warnings:?}");
    }
    let misspelt = "initLimit=5\nsyncLimit=2\nserver2=b:1:2\nserver1=a:1:2\n";
    let warnings = warned(misspelt, None).join("\n");
    assert!(
        !warnings.contains("remove"),
        "the limits have an effect once the lines are right: {warnings}"
    );
    assert!(warnings.contains("(server2 is none)"), "the first of them: {warnings}");
    let limits = warned("initLimit=5\nsyncLimit=2", None);
    let expected = format!(
        "zoo.cfg: no server.N line, {alone} initLimit and syncLimit; for an ensemble list all its servers"
    );
    assert!(limits.contains(&expected), "{limits:?}");
    assert!(limits.join("\n").contains("only an ensemble uses this; remove them"), "{limits:?}");
    assert_eq!(warned("", None), Vec::<String>::new());
}

#[test]
fn problem_of_data_dir_leaves_out_that_myid_is_missing() {
    let servers = "clientPort=1\ninitLimit=5\nsyncLimit=2\nserver.1=a:1:2\nserver.2=b:1:2\n";
    for line in ["dataDir=/d # disk\n", "dataDir=\n", ""] {
        let error = file(&format!("{line}{servers}"), None).unwrap_err().to_string();
        assert!(error.contains("dataDir") && !error.contains("myid"), "{error}");
    }
    let error = file(&format!("dataDir=/d\n{servers}"), None).unwrap_err().to_string();
    assert!(error.contains("the file /d/myid is missing"), "{error}");
}

#[test]
fn data_dir_with_version_2_or_quotation_marks_is_named_as_the_cause() {
    let warned = |line: &str| {
        let config = file(&format!("dataDir={line}\nclientPort=1\n"), None).unwrap();
        config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let warning = warned("/x/data/version-2");
    assert!(warning.ends_with("for those in /x/data/version-2 write dataDir=/x/data"), "{warning}");
    let warning = warned("\"/x/data\"");
    assert!(
        warning.ends_with("the quotation marks are part of the path; remove them"),
        "{warning}"
    );
    assert_eq!(warned("/x/version-2/data"), "");
    let servers = "clientPort=1\ninitLimit=5\nsyncLimit=2\nserver.1=a:1:2\nserver.2=b:1:2\n";
    for (line, why) in [
        ("'/x/data'", "(quotation marks are part of dataDir: remove them)"),
        ("/x/version-2", "(dataDir is the folder above version-2)"),
    ] {
        let error = file(&format!("dataDir={line}\n{servers}"), None).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn loopback_address_beside_others_is_warned_of() {
    let warned = |lines: &str| {
        let text = format!("dataDir=/d\nclientPort=9\ninitLimit=5\nsyncLimit=2\n{lines}");
        let config = file(&text, Some("1")).unwrap();
        config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    for host in ["127.0.1.1", "localhost", "::ffff:127.0.0.1", "::1"] {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let own = format!("server.1={host}:1:2\n");
        let spread = warned(&format!("{own}server.2=zk2:1:2\nserver.3=zk3:1:2\n"));
        let expected = "zoo.cfg:5: server.1 has an address of this machine alone";
        assert!(spread.starts_with(expected) && spread.lines().count() == 1, "{spread}");
        let other = "server.2=127.0.0.1:3:4\nserver.3=localhost:5:6\n";
        assert_eq!(warned(&format!("{own}{other}")), "");
    }
}

#[test]
fn password_in_place_of_its_digest_is_warned_of() {
    let warned = |value: &str| {
        let line = format!("DigestAuthenticationProvider.superDigest={value}");
        let config = file(&format!("dataDir=/d\nclientPort=1\n{line}\n"), None).unwrap();
        config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    for wrong in ["super:password", "super", "super:", "xQJmxLMiHGwaqBvst5y6rkB6HQs="] {
        let warning = warned(wrong);
        assert!(
            warning.contains("is not user:DIGEST") && !warning.contains("password"),
            "{warning}"
        );
    }
    for right in ["super:xQJmxLMiHGwaqBvst5y6rkB6HQs=", "super:CY9rzUYh03PK3k6DJie09g=="] {
        assert_eq!(warned(right), "");
    }
}

#[test]
fn odd_words_are_to_be_removed_before_a_guarantee_is_given_up() {
    let text = "dataDir=/d\nclientPort=1\nforceSync=false\n";
    let config = file(text, None).unwrap();
    let expected = "zoo.cfg:3: forceSync=false has no effect: only no has one; remove it, or write no, with which acknowledged \
        writes can be lost";
    assert!(
        config.force_sync && config.warnings.iter().any(|warning| warning.to_string() == expected)
    );
}

#[test]
fn server_with_the_ports_of_all_others_in_reverse_is_warned_of() {
    let warned = |ports: [&str; 3]| {
        let [a, b, c] = ports;
        let text = format!(
            "dataDir=/d\nclientPort=9\ninitLimit=5\nsyncLimit=2\nserver.1=a:{a}\nserver.2=b:{b}\nserver.3=c:{c}\n"
        );
        let config = file(&text, Some("1")).unwrap();
        config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let warning = warned(["2888:3888", "3888:2888", "2888:3888"]);
    assert!(
        warning
            .starts_with("zoo.cfg:6: server.2 has the quorum port 3888 and the election port 2888"),
        "{warning}"
    );
    for ports in [
        ["2888:3888", "2888:3888", "2888:3888"],
        ["2888:3888", "3888:2888", "2889:3888"],
        ["1:2", "3:4", "5:6"],
    ] {
        assert_eq!(warned(ports), "");
    }
}

#[test]
fn tick_that_was_hardly_meant_in_ms_is_warned_of() {
    let warned = |tick: &str| {
        let config = file(&format!("dataDir=/d\nclientPort=1\ntickTime={tick}\n"), None).unwrap();
        config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let expected = "zoo.cfg:3: tickTime=2 makes ticks of 2 ms: is it meant in ms? 2000 is usual";
    assert_eq!(warned("2"), expected);
    assert!(warned("49").contains("is it meant in ms?"));
    assert_eq!(warned("50"), "");
}

#[test]
fn ports_for_clients_and_observers_that_servers_use_are_warned_of() {
    let warned = |lines: &str| {
        let config = file(&format!("{LIMITS}{lines}"), Some("1")).unwrap();
        config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let clients = "server.1=a:1:2\nserver.2=b:5:6\nserver.3=A:3:2181\n";
    let expected = "zoo.cfg:2: clientPort=2181 is the election port of server.3 too; give clients another port";
    assert_eq!(warned(clients), expected);
    assert_eq!(warned(&format!("{clients}clientPortAddress=a\n")), expected);
    assert_eq!(warned(&format!("{clients}clientPortAddress=c\n")), "");
    assert_eq!(warned("server.1=a:1:2\nserver.2=b:5:6\nserver.3=c:2181:4\n"), "");
    let servers = "server.1=a:1:2\nserver.2=b:5:6\nserver.3=c:3:4\n";
    let observers = |port: &str| warned(&format!("{servers}observerMasterPort={port}\n"));
    let named = |port: &str, what: &str| {
        format!(
            "zoo.cfg:8: observerMasterPort={port} is the {what} of server.1 too; give observers another port"
        )
    };
    assert_eq!(observers("1"), named("1", "quorum port"));
    assert_eq!(observers("2"), named("2", "election port"));
    assert_eq!(observers("5"), "", "another host has that port");
}
