//! The sender's rights, the limiter and the answers of the guarded commands.

use super::answer::{Answer, Call, Piece};
use super::commands::AdminCommand;
use super::guard::{
    Credentials, Limiters, Task, authorize, failed, restored, snapshot_taken, streams, task,
};
use crate::auth::{self, Schemes};
use crate::config::{Config, Environment, Source, parse};
use crate::metrics::Registry;
use crate::model::{AccessList, Acl, Identity, Zxid};
use std::collections::BTreeMap;
use std::net::IpAddr;

fn config(lines: &str) -> Config {
    let text = format!("dataDir=/d\nclientPort=2181\n{lines}\n");
    let source = Source { name: "z", text: text.as_bytes(), my_id: None };
    parse(source, &Environment::new(), &[]).unwrap()
}

fn call(command: AdminCommand, is_post: bool, streaming: Option<&str>) -> Call {
    let value = |value: &str| ("streaming".to_owned(), value.to_owned());
    let parameters: BTreeMap<_, _> = streaming.map(value).into_iter().collect();
    Call { command, name: "asked".to_owned(), parameters, is_post }
}

fn text_of(answer: &Answer) -> String {
    let Some(Piece::Text(text)) = answer.body.first() else { return String::new() };
    format!("{} {text}", answer.status)
}

fn acl(perms: i32, scheme: &str, id: &str) -> Acl {
    Acl { perms, who: Identity::new(scheme, id) }
}

/// The status that a request gets from a server whose root has this list.
fn status(list: Vec<Acl>, credentials: Credentials<'_>, lines: &str) -> u16 {
    let admin = config(lines).admin.unwrap();
    let schemes = Schemes {
        super_digest: Some("super:xQJmxLMiHGwaqBvst5y6rkB6HQs=".to_owned()),
        x509: true,
        ..Schemes::default()
    };
    let list = AccessList::new(list);
    let may =
        |wanted: i32, identities: &[Identity]| auth::permits(&schemes, &list, wanted, identities);
    let asked = call(AdminCommand::Snapshot, false, None);
    match authorize(&asked, credentials, &admin, &schemes, may) {
        Ok(()) => 200,
        Err(answer) => {
            let error = text_of(&answer);
            assert!(error.contains("\"command\" : \"asked\""), "{error}");
            answer.status
        }
    }
}

const NOBODY: Credentials<'_> = Credentials {
    authorization: None,
    forwarded_for: None,
    peer: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 7)),
    subject: None,
};

fn by(authorization: &str) -> Credentials<'_> {
    Credentials { authorization: Some(authorization), ..NOBODY }
}

const BOB: &str = "bob:WGAwC+XYxdw8bJ5K6KcPh8oL58U=";

// rows: A-06
#[test]
fn identities_are_read_from_the_authorization_header_as_in_java() {
    let bobs = || vec![acl(31, "digest", BOB)];
    for (shown, wanted) in [
        ("digest bob:bobsecret", 200),
        ("digest bob:bobsecret ", 200),
        ("digest bob:wrong", 403),
        ("digest super:admin", 200),
        ("digest", 401),
        ("digest  bob:bobsecret", 401),
        ("digest bob:bob secret", 401),
        ("Digest bob:bobsecret", 401),
        ("digestbob:bobsecret", 401),
        ("sasl bob", 401),
        ("key x", 401),
        ("world anyone", 401),
        ("", 401),
        ("x509", 401),
        ("ip", 403),
    ] {
        assert_eq!(status(bobs(), by(shown), ""), wanted, "{shown:?}");
    }
    assert_eq!(status(bobs(), NOBODY, ""), 401);
    assert_eq!(status(vec![acl(31, "world", "anyone")], by("digest any:one"), ""), 200);
    let certified = Credentials { subject: Some("CN=bob"), ..by("x509") };
    assert_eq!(status(vec![acl(31, "x509", "CN=bob")], certified, ""), 200);
    assert_eq!(status(vec![acl(31, "x509", "CN=eve")], certified, ""), 403);
}

// rows: A-07
#[test]
fn every_single_permission_on_the_root_is_needed() {
    for missing in [1, 2, 4, 8, 16] {
        let list = vec![acl(31 & !missing, "digest", BOB)];
        assert_eq!(status(list.clone(), by("digest bob:bobsecret"), ""), 403, "{missing}");
        assert_eq!(status(list.clone(), by("digest super:admin"), ""), 200);
        let both = [list, vec![acl(missing, "world", "anyone")]].concat();
        assert_eq!(status(both, by("digest bob:bobsecret"), ""), 200, "{missing}");
    }
}

// rows: C-216 U-22
#[test]
fn header_of_a_proxy_names_the_address_only_where_it_is_trusted() {
    let trusts = "IPAuthenticationProvider.usexforwardedfor=true";
    let from = |header| Credentials { forwarded_for: header, ..by("ip") };
    let list = |ip: &str| vec![acl(31, "ip", ip)];
    assert_eq!(status(list("10.0.0.7"), from(Some("10.9.9.9")), ""), 200);
    assert_eq!(status(list("10.9.9.9"), from(Some("10.9.9.9")), ""), 403);
    assert_eq!(status(list("10.9.9.9"), from(Some(" 10.9.9.9 , 10.0.0.7")), trusts), 200);
    assert_eq!(status(list("10.9.9.9"), from(Some("10.0.0.7, 10.9.9.9")), trusts), 403);
    assert_eq!(status(list("10.0.0.7"), from(None), trusts), 200);
    assert_eq!(status(list("10.0.0.7"), from(Some(",")), trusts), 401);
}

// rows: C-239 C-240 C-241 M-10
#[test]
fn tasks_are_refused_by_settings_and_limiter() {
    let metrics = Registry::default();
    let (snapshot, restore) =
        (call(AdminCommand::Snapshot, false, None), call(AdminCommand::Restore, true, None));
    let mut limiters = Limiters::default();
    let mut asked = |call: &Call, lines: &str, now_ms| {
        let config = config(lines);
        let admin = config.admin.clone().unwrap();
        let task = task(call, &config, &admin, &metrics, &mut limiters, now_ms);
        task.map_err(|answer| answer.status)
    };
    assert_eq!(asked(&snapshot, "admin.snapshot.enabled=false", 1), Err(503));
    assert_eq!(asked(&restore, "admin.restore.enabled=false", 1), Err(503));
    assert_eq!(asked(&restore, "serializeLastProcessedZxid.enabled=false", 1), Err(500));
    assert_eq!(asked(&call(AdminCommand::Restore, false, None), "", 1), Err(500));
    assert_eq!(asked(&call(AdminCommand::Snapshot, true, None), "", 1), Err(500));
    // Intervals begin with the process, or with the first call after a pause.
    assert_eq!(asked(&restore, "", 299_000), Ok(Task::Restore));
    assert_eq!(asked(&restore, "", 299_500), Err(429));
    assert_eq!(asked(&restore, "", 300_000), Err(429));
    assert_eq!(asked(&restore, "", 300_001), Ok(Task::Restore));
    assert_eq!(asked(&snapshot, "", 300_001), Ok(Task::Snapshot { streams: true }));
    assert_eq!(asked(&snapshot, "", 300_002), Err(429));
    for _ in 0..2 {
        let taken = asked(&snapshot, "admin.rateLimiterIntervalInMS=0", 300_002);
        assert_eq!(taken, Ok(Task::Snapshot { streams: true }));
    }
    assert_eq!(metrics.restore_rate_limited_count.get(), 2);
    assert_eq!(metrics.snapshot_rate_limited_count.get(), 1);
}

#[test]
fn snapshot_is_streamed_unless_the_query_says_otherwise() {
    let values = [(None, true), (Some("TRUE"), true), (Some("false"), false), (Some(""), false)];
    for (value, wanted) in values {
        assert_eq!(streams(&call(AdminCommand::Snapshot, false, value)), wanted, "{value:?}");
    }
}

// rows: A-24 A-28
#[test]
fn answers_have_javas_form() {
    let zxid = Zxid::from_wire(0x1_0000_001f).unwrap();
    let snapshot = call(AdminCommand::Snapshot, false, None);
    let streamed = snapshot_taken(&snapshot, zxid, 77, true);
    assert_eq!((streamed.status, streamed.content_type), (200, Some("application/octet-stream")));
    let headers = [("last_zxid", "0x10000001f".to_owned()), ("snapshot_size", "77".to_owned())];
    assert_eq!(streamed.headers, headers);
    let plain = snapshot_taken(&snapshot, zxid, 77, false);
    assert_eq!(plain.headers, headers);
    let body = "{\n  \"command\" : \"snapshot\",\n  \"error\" : null\n}";
    assert_eq!(text_of(&plain), format!("200 {body}"));
    assert_eq!(text_of(&failed(&snapshot, 429)), format!("429 {body}"));
    let restored = restored(&call(AdminCommand::Restore, true, None), zxid.to_wire());
    let body =
        "{\n  \"last_zxid\" : 4294967327,\n  \"command\" : \"restore\",\n  \"error\" : null\n}";
    assert_eq!(text_of(&restored), format!("200 {body}"));
}
