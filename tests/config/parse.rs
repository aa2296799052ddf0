//! The file, the flags and the problems as a whole.

use crate::{of, with_flags};
use oxkeeper::config::{DEFAULT_CONFIG, Environment, Source, parse, parse_positional};

// rows: C-02 C-05
#[test]
fn the_file_wins_over_flags_with_its_prefix_only() {
    let config = with_flags("snapCount=10", "-Dzookeeper.snapCount=20 -DsnapCount=30").unwrap();
    assert_eq!(config.snap_count, 10);
    assert_eq!(with_flags("", "-Dzookeeper.snapCount=20").unwrap().snap_count, 20);
    let doubled = of("zookeeper.snapCount=20");
    assert_eq!((doubled.snap_count, doubled.warnings.len()), (100_000, 1));
    // Keys of `FileSettings` are never read from a flag.
    let config = with_flags("tickTime=2000", "-Dzookeeper.tickTime=5").unwrap();
    assert_eq!((config.tick_time_ms, config.warnings.len()), (2000, 1));
}

// rows: C-110
#[test]
fn every_problem_is_reported_with_its_line() {
    let error = with_flags(
        "tickTime=0\nmaxClientCnxns=x\n\nreconfigEnabled=yes\nssl.keyStore.password=s3\n\
        secureClientPort=2281\nserverCnxnFactory=Mine",
        "-Dzookeeper.authProvider.1=A",
    )
    .unwrap_err()
    .to_string();
    let lines: Vec<&str> = error.lines().collect();
    let starts = [
        "zoo.cfg:3: tickTime=0 is not within 1 and",
        "zoo.cfg:4: maxClientCnxns=x is not a number",
        "zoo.cfg:6: reconfigEnabled=yes is neither true nor false",
        "zoo.cfg:8: TLS needs a key and a certificate; set ssl.keyStore.location",
        "zoo.cfg:8: clients are asked for certificates (ssl.clientAuth); set ssl.trustStore",
        "zoo.cfg:9: serverCnxnFactory=Mine is not known",
        "-D flag in JVMFLAGS: -Dzookeeper.authProvider.1=A asks for an authentication provider",
    ];
    assert_eq!(lines.len(), starts.len(), "{error}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
    let source = Source { name: "z", text: b"a=1\nb=\\u", my_id: None };
    let error = parse(source, &Environment::new(), &[]).unwrap_err();
    let text = "z:2: malformed \\uxxxx encoding; write a backslash twice if it is meant";
    assert_eq!(error.to_string(), text);
}

#[test]
fn the_command_line_form_has_no_limit_on_connections() {
    let arguments = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let parse = |words| parse_positional(&arguments(words), &Environment::new(), &[]);
    let config = parse("2181 /d").unwrap();
    assert_eq!((config.client_port, config.tick_time_ms), (Some(2181), 3000));
    assert_eq!((config.max_client_cnxns, config.max_session_timeout_ms), (0, 60_000));
    let config = parse("2181 /d 500 9").unwrap();
    assert_eq!((config.min_session_timeout_ms, config.max_client_cnxns), (1000, 9));
    let error = parse("x /d").unwrap_err().to_string();
    assert_eq!(error, "command line: clientPort=x is not a number; write one from 0 to 65535");
}

#[test]
fn the_defaults_are_a_valid_file() {
    let source = Source { name: "d", text: DEFAULT_CONFIG.as_bytes(), my_id: None };
    let config = parse(source, &Environment::new(), &[]).unwrap();
    assert_eq!((config.client_port, config.warnings), (Some(2181), vec![]));
}
