//! The lists of commands as JSON, a line at a time.

use super::super::connections::java_address;
use super::super::list::Line;
use super::super::status::ConnectionInfo;
use super::json::{Json, new_line, put_key, put_text};
use crate::model::Zxid;
use std::fmt::Write;

/// Depth of the keys of these lists.
const DEPTH: usize = 2;

/// Writes one list: a map of lists if its lines have heads, else a list of maps.
#[derive(Clone, Debug)]
pub struct JsonList {
    /// Its lines have heads.
    is_map: bool,
    heads: usize,
    items: usize,
}

impl JsonList {
    pub fn map() -> Self {
        Self { is_map: true, heads: 0, items: 0 }
    }

    pub fn list() -> Self {
        Self { is_map: false, heads: 0, items: 0 }
    }

    /// Appends a line. Those that only a learner's `dump` has are left out.
    pub fn put(&mut self, line: Line<'_>, to: &mut String) {
        match line {
            Line::Connection { of, brief } => {
                to.push_str(if self.items == 0 { "[ " } else { ", " });
                self.items += 1;
                connection(of, brief).put(to, DEPTH - 1);
            }
            Line::Expiring { at, .. } => self.head(at, to),
            Line::Watcher(session) | Line::Owner(session) => self.head(&session.to_string(), to),
            Line::WatchedPath(path) => self.head(path, to),
            Line::Session(session) => {
                self.item(to);
                _ = write!(to, "{session}"); // Writing to a string can't fail.
            }
            Line::Path(path) => {
                self.item(to);
                put_text(path, to);
            }
            Line::SessionTimeout { .. } | Line::ConnectionExpiry { .. } => {}
        }
    }

    fn head(&mut self, key: &str, to: &mut String) {
        to.push_str(if self.heads == 0 { "{" } else { " ]," });
        put_key(key, to, DEPTH);
        to.push('[');
        (self.heads, self.items) = (self.heads + 1, 0);
    }

    fn item(&mut self, to: &mut String) {
        to.push_str(if self.items == 0 { " " } else { ", " });
        self.items += 1;
    }

    /// Appends the end of the list.
    pub fn end(&self, to: &mut String) {
        match (self.is_map, self.heads + self.items) {
            (true, 0) => to.push_str("{ }"),
            (false, 0) => to.push_str("[ ]"),
            (true, _) => {
                to.push_str(" ]");
                new_line(to, DEPTH - 1);
                to.push('}');
            }
            (false, _) => to.push_str(" ]"),
        }
    }
}

/// Source: `ServerCnxn.getConnectionInfo`, ZooKeeper 3.9.5.
fn connection(of: &ConnectionInfo, brief: bool) -> Json {
    let interest = i64::from(of.reads) + 4 * i64::from(of.writes);
    let mut entries = vec![
        ("remote_socket_address", Json::text(java_address(of.remote).trim_start_matches('/'))),
        ("interest_ops", Json::Integer(interest)),
        ("outstanding_requests", Json::count(of.outstanding)),
        ("packets_received", Json::count(of.received)),
        ("packets_sent", Json::count(of.sent)),
    ];
    if let Some(session) = of.session.as_ref().filter(|_| !brief) {
        let zxid = session.last_zxid.map_or(-1, Zxid::to_wire);
        entries.extend([
            ("session_id", Json::Integer(session.id)),
            ("last_operation", Json::text(session.last_operation)),
            ("established", Json::count(session.established_ms)),
            ("session_timeout", Json::count(session.timeout_ms.into())),
            ("last_cxid", Json::Integer(session.last_cxid.unwrap_or(-1).into())),
            ("last_zxid", Json::Integer(zxid)),
            ("last_response_time", Json::count(session.last_response_ms)),
            ("last_latency", Json::count(session.last_latency_ms)),
            ("min_latency", Json::count(session.min_latency_ms)),
            ("avg_latency", Json::count(session.avg_latency_ms)),
            ("max_latency", Json::count(session.max_latency_ms)),
        ]);
    }
    Json::Map(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(mut list: JsonList, lines: &[Line<'_>]) -> String {
        let mut text = String::new();
        lines.iter().for_each(|line| list.put(*line, &mut text));
        list.end(&mut text);
        text
    }

    // rows: A-15 A-34 A-35
    #[test]
    fn maps_of_lists_are_as_jackson_prints_them() {
        assert_eq!(written(JsonList::map(), &[]), "{ }");
        let lines = [
            Line::WatchedPath("/a\"b"),
            Line::Session(5),
            Line::Session(-7),
            Line::WatchedPath("/c"),
            Line::Session(5),
        ];
        let expected = "{\n    \"/a\\\"b\" : [ 5, -7 ],\n    \"/c\" : [ 5 ]\n  }";
        assert_eq!(written(JsonList::map(), &lines), expected);
        let lines = [Line::Watcher(72_057_594_037_927_937), Line::Path("/x"), Line::Path("/y")];
        let expected = "{\n    \"72057594037927937\" : [ \"/x\", \"/y\" ]\n  }";
        assert_eq!(written(JsonList::map(), &lines), expected);
    }

    // rows: A-12
    #[test]
    fn connections_are_lists_of_maps() {
        assert_eq!(written(JsonList::list(), &[]), "[ ]");
        let remote = "127.0.0.1:5".parse().unwrap();
        let of = ConnectionInfo {
            remote,
            reads: true,
            writes: false,
            outstanding: 1,
            received: 2,
            sent: 3,
            session: None,
        };
        let line = Line::Connection { of: &of, brief: false };
        let one = "{\n    \"remote_socket_address\" : \"127.0.0.1:5\",\n    \"interest_ops\" : 1,\n    \
            \"outstanding_requests\" : 1,\n    \"packets_received\" : 2,\n    \"packets_sent\" : 3\n  }";
        assert_eq!(written(JsonList::list(), &[line, line]), format!("[ {one}, {one} ]"));
    }
}
