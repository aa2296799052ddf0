//! Reads a request, and answers it.

use super::super::{Effect, Status};
use super::answer::{AdminRequest, Answer, Call, Piece, Probe, Value};
use super::commands::AdminCommand;
use super::figures;
use super::json::{Json, put_key};
use super::target::{self, Target};
use crate::config::Config;
use crate::metrics::Registry;
use std::collections::BTreeMap;

const JSON: &str = "application/json";

/// Reads the head of a request.
///
/// * `path`, `query`: still encoded.
///
/// Source: `JettyAdminServer`, ZooKeeper 3.9.5, and a running one.
pub fn read(method: &str, path: &str, query: &str, config: &Config) -> AdminRequest {
    let Some(admin) = &config.admin else {
        return AdminRequest::Answered(Answer::page(404, "Not Found"));
    };
    let Some(place) = target::of(path, &admin.command_url) else {
        return AdminRequest::Answered(Answer::page(400, "Bad Request"));
    };
    let is_post = match method {
        "GET" | "HEAD" => false,
        "POST" => true,
        "TRACE" => return AdminRequest::Answered(Answer::empty(403)),
        "PUT" | "DELETE" => return AdminRequest::Answered(Answer::empty(405)),
        "OPTIONS" => {
            let takes_post = !matches!(place, Target::Other(_));
            return AdminRequest::Answered(Answer::methods(takes_post));
        }
        _ => return AdminRequest::Answered(Answer::empty(501)),
    };
    let name = match place {
        Target::Links => return AdminRequest::Answered(links(&admin.command_url)),
        Target::Command(name) => name,
        Target::Other(path) => {
            let probe = Probe::at(&path).filter(|_| config.probes && !is_post);
            let refusal = || match is_post {
                true => Answer::no_post(),
                false => Answer::page(404, "Not Found"),
            };
            return probe.map_or_else(|| AdminRequest::Answered(refusal()), AdminRequest::Probe);
        }
    };
    let Some(command) = AdminCommand::named(&name) else {
        let error = format!("Unknown command: {name}");
        return AdminRequest::Answered(refused(200, &name, &error));
    };
    let Some(parameters) = target::parameters(query) else {
        return AdminRequest::Answered(Answer::page(400, "Bad Request"));
    };
    AdminRequest::Command(Call { command, name, parameters, is_post })
}

fn links(command_url: &str) -> Answer {
    let link = |command: &AdminCommand| {
        let name = command.name();
        format!("<a href=\"{command_url}/{name}\">{name}</a>\n<br/>\n")
    };
    let text = AdminCommand::ALL.iter().map(link).collect();
    Answer::of(200, None, vec![Piece::Text(text)])
}

/// An answer made before the command ran: it has the name as the request has it.
pub(super) fn refused(status: u16, name: &str, error: &str) -> Answer {
    let entries = [("command", Json::text(name)), ("error", Json::text(error))];
    Answer::of(status, Some(JSON), json_map(as_values(entries)))
}

fn as_values<const N: usize>(entries: [(&str, Json); N]) -> Vec<(String, Value)> {
    entries.map(|(key, value)| (key.to_owned(), Value::Json(value))).into()
}

/// The answer to a command that needs a server, while clients are not served.
pub fn not_serving(call: &Call) -> Answer {
    refused(200, &call.name, "This ZooKeeper instance is not currently serving requests")
}

/// Runs a command that asks for no credentials.
///
/// * `status`: with what [`AdminCommand::word`] needs.
pub fn run(call: &Call, config: &Config, metrics: &Registry, status: &Status) -> Answer {
    let command = call.command;
    // Java declares that `monitor` needs no server, and fails without one.
    if !status.serving && (command.needs_server() || command == AdminCommand::Monitor) {
        return not_serving(call);
    }
    if call.is_post {
        return Answer::page(500, "Server Error: this command is asked for by GET");
    }
    let mut entries = Vec::new();
    let mut effect = Effect::None;
    let mut error = None;
    match command {
        AdminCommand::StatReset => effect = Effect::ResetServer,
        AdminCommand::ObserverConnectionStatReset => effect = Effect::ResetObservers,
        AdminCommand::ConnectionStatReset => effect = Effect::ResetConnections,
        AdminCommand::SetTraceMask => match trace_mask(&call.parameters) {
            Ok(mask) => {
                effect = Effect::SetTraceMask(mask);
                entries.extend(as_values([("tracemask", Json::Integer(mask))]));
            }
            Err(text) => error = Some(text),
        },
        AdminCommand::Leader if status.member.is_none() => {
            error = Some("server is not initialized".to_owned());
        }
        _ => entries = figures::of(call, config, metrics, status),
    }
    let name = ("command", Json::text(command.name()));
    match error {
        // A command's own error keeps its place before the name.
        Some(error) => entries.extend(as_values([("error", Json::Text(error)), name])),
        None => entries.extend(as_values([name, ("error", Json::Null)])),
    }
    Answer { effect, ..Answer::of(200, Some(JSON), json_map(entries)) }
}

/// An answer of a command that ran.
pub(super) fn in_json(status: u16, command: AdminCommand, data: Vec<(&str, Json)>) -> Answer {
    let end = [("command", Json::text(command.name())), ("error", Json::Null)];
    let entries = data.into_iter().chain(end);
    let entries = entries.map(|(key, value)| (key.to_owned(), Value::Json(value))).collect();
    Answer::of(status, Some(JSON), json_map(entries))
}

fn trace_mask(parameters: &BTreeMap<String, String>) -> Result<i64, String> {
    const NEEDED: &str = "setTraceMask requires long traceMask argument";
    let given = parameters.get("traceMask").ok_or_else(|| NEEDED.to_owned())?;
    given.parse().map_err(|_| format!("{NEEDED}, got {given}"))
}

/// A map in JSON, in pieces.
fn json_map(entries: Vec<(String, Value)>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut text = String::from("{");
    for (at, (key, value)) in entries.into_iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        put_key(&key, &mut text, 1);
        match value {
            Value::Json(value) => value.put(&mut text, 1),
            Value::List(list) => {
                pieces.extend([Piece::Text(std::mem::take(&mut text)), Piece::List(list)]);
            }
        }
    }
    text.push_str("\n}");
    pieces.push(Piece::Text(text));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, Source, parse};

    fn config() -> Config {
        let source = Source { name: "z", text: b"dataDir=/d\nclientPort=2181\n", my_id: None };
        parse(source, &Environment::new(), &[]).unwrap()
    }

    fn answered(method: &str, target: &str, serving: bool) -> Answer {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let config = config();
        match read(method, path, query, &config) {
            AdminRequest::Answered(answer) => answer,
            AdminRequest::Command(call) => {
                let status = Status { serving, ..Status::default() };
                run(&call, &config, &Registry::default(), &status)
            }
            AdminRequest::Probe(_) => panic!("{target} is a probe"),
        }
    }

    fn text(answer: &Answer) -> String {
        let texts = answer.body.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::List(_) => "LIST",
        });
        texts.collect()
    }

    // rows: A-01 A-05
    #[test]
    fn methods_have_jettys_status() {
        for (method, target, status) in [
            ("GET", "/commands", 200),
            ("HEAD", "/commands/", 200),
            ("POST", "/commands", 200),
            ("POST", "/commands/ruok", 500),
            ("POST", "/commands/nope", 200),
            ("PUT", "/x", 405),
            ("DELETE", "/commands/ruok", 405),
            ("TRACE", "/x", 403),
            ("FOO", "/x", 501),
            ("GET", "/x", 404),
            ("POST", "/x", 405),
            ("GET", "/%zz", 400),
            ("GET", "/commands/stmk?%", 400),
        ] {
            assert_eq!(answered(method, target, true).status, status, "{method} {target}");
        }
        let links = answered("GET", "/commands", true);
        assert_eq!(links.content_type, None);
        assert_eq!(text(&links).len(), 1518);
        let allowed = answered("OPTIONS", "/commands", true).headers;
        assert_eq!(allowed, [("Allow", "GET, HEAD, POST, TRACE, OPTIONS".to_owned())]);
        let allowed = answered("OPTIONS", "/x", true).headers;
        assert_eq!(allowed, [("Allow", "GET, HEAD, TRACE, OPTIONS".to_owned())]);
    }

    // rows: A-03 A-04 A-10 A-17 A-25 A-26 A-30
    #[test]
    fn answers_have_javas_words() {
        let json = |target, serving| text(&answered("GET", target, serving));
        let healthy = "{\n  \"command\" : \"ruok\",\n  \"error\" : null\n}";
        assert_eq!(json("/commands/ruok", true), healthy);
        let unknown = "{\n  \"command\" : \"x/\",\n  \"error\" : \"Unknown command: x/\"\n}";
        assert_eq!(json("/commands/x/", true), unknown);
        // As the request names it.
        let down = "{\n  \"command\" : \"mntr\",\n  \"error\" : \"This ZooKeeper instance is not currently serving requests\"\n}";
        assert_eq!(json("/commands/mntr", false), down);
        let mask = "{\n  \"error\" : \"setTraceMask requires long traceMask argument, got x\",\n  \"command\" : \"set_trace_mask\"\n}";
        assert_eq!(json("/commands/stmk?traceMask=x", false), mask);
        let set = answered("GET", "/commands/stmk?traceMask=5&traceMask=6", false);
        assert_eq!(set.effect, Effect::SetTraceMask(5));
        let expected =
            "{\n  \"tracemask\" : 5,\n  \"command\" : \"set_trace_mask\",\n  \"error\" : null\n}";
        assert_eq!(text(&set), expected);
        let alone =
            "{\n  \"error\" : \"server is not initialized\",\n  \"command\" : \"leader\"\n}";
        assert_eq!(json("/commands/lead", true), alone);
        assert!(json("/commands/gtmk", false).contains("\"tracemask\" : 0,"));
        assert_eq!(answered("GET", "/commands/srst", true).effect, Effect::ResetServer);
        assert_eq!(answered("GET", "/commands/crst", true).effect, Effect::ResetConnections);
    }

    #[test]
    fn lists_stand_between_texts() {
        let shown = text(&answered("GET", "/commands/cons", true));
        let expected = "{\n  \"connections\" : LIST,\n  \"secure_connections\" : LIST,\n  \
            \"command\" : \"connections\",\n  \"error\" : null\n}";
        assert_eq!(shown, expected);
    }

    #[test]
    fn probes_have_paths_of_their_own() {
        let config = config();
        assert_eq!(read("GET", "/ready", "", &config), AdminRequest::Probe(Probe::Ready));
        assert_eq!(read("HEAD", "/live", "", &config), AdminRequest::Probe(Probe::Live));
        let mut without = config.clone();
        without.probes = false;
        let AdminRequest::Answered(answer) = read("GET", "/live", "", &without) else { panic!() };
        assert_eq!(answer.status, 404);
        let statuses = [super::super::ready(Some("leader")), super::super::ready(None)];
        assert_eq!(statuses.map(|answer| answer.status), [200, 503]);
        let statuses = [super::super::live(true), super::super::live(false)];
        assert_eq!(statuses.map(|answer| answer.status), [200, 503]);
    }
}
