//! Any method, path and query at AdminServer: each request has an answer, and a body in JSON is well formed.

use oxkeeper::admin::Status;
use oxkeeper::admin::http::{AdminRequest, Credentials, Piece, authorize, read, run};
use oxkeeper::auth::Schemes;
use oxkeeper::config::{Config, Environment, Source, parse};
use oxkeeper::metrics::Registry;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::OnceLock;

fn config() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    CONFIG.get_or_init(|| {
        let source =
            Source { name: "zoo.cfg", text: b"dataDir=/d\nclientPort=2181\n", my_id: None };
        parse(source, &Environment::new(), &[]).expect("a configuration")
    })
}

pub fn target(input: &[u8]) {
    // `METHOD PATH QUERY AUTHORIZATION`, as in a head.
    let text = String::from_utf8_lossy(input);
    let mut words = text.splitn(4, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (method, path, query, authorization) = (word(), word(), word(), word());
    let answer = match read(method, path, query, config()) {
        AdminRequest::Answered(answer) => answer,
        AdminRequest::Probe(_) => return,
        AdminRequest::Command(call) if call.command.is_guarded() => {
            let credentials = Credentials {
                authorization: Some(authorization),
                forwarded_for: Some(query),
                peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
                subject: Some(path),
            };
            let admin = config().admin.as_ref().expect("it is on");
            let schemes = Schemes { x509: true, ..Schemes::default() };
            match authorize(&call, credentials, admin, &schemes, |_, identities| {
                identities.is_empty()
            }) {
                Ok(()) => panic!("nobody may"),
                Err(answer) => answer,
            }
        }
        AdminRequest::Command(call) => {
            let status = Status { serving: input.len().is_multiple_of(2), ..Status::default() };
            run(&call, config(), &Registry::default(), &status)
        }
    };
    assert!((200..600).contains(&answer.status));
    let pieces = answer.body.iter().map(|piece| match piece {
        Piece::Text(text) => text.as_str(),
        Piece::List(_) => "[ ]",
    });
    let body: String = pieces.collect();
    if answer.content_type == Some("application/json") {
        let depth =
            |open: char, close: char| body.matches(open).count() == body.matches(close).count();
        assert!(body.starts_with("{\n") && body.ends_with("\n}") && !body.is_empty());
        assert!(
            path.contains(['[', ']', '{', '}', '%'])
                || query.contains(['{', '}', '%'])
                || depth('{', '}')
        );
    }
}
