//! Log lines in the form of ZooKeeper 3.9's own pattern, or of that of a `logback.xml`, so that programs that read Java's logs read these lines, too:
//! `2026-11-22 18:00:00,123 [myid:1] - INFO  [main:Class@1] - text key=value`.

use super::clock::wall_ms;
use super::local_time::LocalTime;
use super::pattern_line::{LineOrigin, LineValues, put_class, put_parts};
use crate::config::PatternPart;
use crate::model::{ServerId, put_in_one_line};
use std::fmt::{self, Write};
use std::sync::{Mutex, OnceLock};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The server's id, once the configuration is read.
static SERVER_ID: OnceLock<ServerId> = OnceLock::new();

/// Has all later lines name the server as a member of an ensemble.
pub fn set_server_id(id: ServerId) {
    let _once = SERVER_ID.set(id);
}

/// The formatter of these lines.
#[derive(Default)]
pub struct JavaLine {
    time: Mutex<LocalTime>,
    /// `None`: ZooKeeper's own.
    pattern: Option<Vec<PatternPart>>,
}

impl JavaLine {
    /// * `pattern`: `None`: ZooKeeper's own.
    pub fn new(pattern: Option<Vec<PatternPart>>) -> Self {
        Self { time: Mutex::default(), pattern }
    }
}

impl<S, N> FormatEvent<S, N> for JavaLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut text = String::new();
        context.format_fields(Writer::new(&mut text), event)?;
        let metadata = event.metadata();
        let thread = std::thread::current();
        let origin = LineOrigin {
            thread: thread.name().unwrap_or("thread"),
            module: metadata.module_path().unwrap_or_default(),
            line: metadata.line().unwrap_or_default(),
        };
        let mut time = self.time.lock().expect("a panic aborts");
        if let Some(parts) = &self.pattern {
            let (server_id, level) = (SERVER_ID.get(), *metadata.level());
            let (time, origin, text) = (&*time, &origin, text.as_str());
            let values = LineValues { wall_ms: wall_ms(), time, server_id, level, origin, text };
            return put_parts(&mut writer, parts, &values);
        }
        let time = time.text(wall_ms());
        put_line(&mut writer, &time, SERVER_ID.get(), *metadata.level(), &origin, &text)
    }
}

fn put_line(
    to: &mut impl Write,
    time: &str,
    server_id: Option<&ServerId>,
    level: Level,
    origin: &LineOrigin<'_>,
    text: &str,
) -> fmt::Result {
    write!(to, "{time} [myid:")?;
    if let Some(id) = server_id {
        write!(to, "{id}")?;
    }
    write!(to, "] - {level:<5} [{}:", origin.thread)?;
    put_class(to, origin.module)?;
    write!(to, "@{}] - ", origin.line)?;
    put_in_one_line(to, text, &['\t'])?;
    to.write_char('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: Option<ServerId>, level: Level, module: &str, text: &str) -> String {
        let mut line = String::new();
        let origin = LineOrigin { thread: "main", module, line: 7 };
        put_line(&mut line, "2026-11-22 18:00:00,123", id.as_ref(), level, &origin, text).unwrap();
        line
    }

    #[test]
    fn line_has_the_form_of_zookeepers_pattern() {
        assert_eq!(
            line(None, Level::INFO, "oxkeeper::server::client_ports", "serves address=[::]:2181"),
            "2026-11-22 18:00:00,123 [myid:] - INFO  [main:ClientPorts@7] - serves address=[::]:2181\n"
        );
        assert_eq!(
            line(Some(ServerId(3)), Level::ERROR, "oxkeeper", "a\nb\u{2028}c\td"),
            "2026-11-22 18:00:00,123 [myid:3] - ERROR [main:Oxkeeper@7] - a\\u000ab\\u2028c\td\n"
        );
    }

    /// The patterns of two log readers, Google's Ops Agent and lnav.
    const PATTERNS: [&str; 2] = [
        r"^(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}_[0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3})_\[myid:(?P<myid>[0-9]+)?\]_-_(?P<level>[A-Z]+)_+\[(?P<thread>.+):(?P<class>.+)@(?P<line>[0-9]+)\]_+-_*(?P<text>.*)$",
        r"^(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3}) \[myid:(?P<myid>[0-9]+)?\] - (?P<level>[A-Z]+)_+\[(?P<thread>.*):(?P<class>[A-Za-z0-9.$]+)@(?P<line>[0-9]+)\] - (?P<text>.*)$",
    ];

    fn patterns() -> Vec<regex::Regex> {
        // `_` stands for white space: the regex crate has `\s` only with its Unicode tables.
        let whole = |pattern: &str| regex::Regex::new(&pattern.replace('_', "[ \t]")).unwrap();
        PATTERNS.into_iter().map(whole).collect()
    }

    // rows: C-269
    #[test]
    fn patterns_of_shippers_match_lines_of_java_and_ours() {
        let java = include_str!("../../compat-tests/golden/logs/java-3.9.5.txt");
        assert!(java.lines().count() > 10);
        for pattern in patterns() {
            for line in java.lines() {
                assert!(pattern.is_match(line), "{line}");
            }
            for (id, level) in [(None, Level::INFO), (Some(ServerId(12)), Level::WARN)] {
                let text = "text key=[a:b@1]x - c";
                let line = line(id, level, "oxkeeper::auth::digest_md5", text);
                let found = pattern.captures(line.trim_end()).unwrap();
                assert_eq!((&found["level"], &found["line"]), (level.as_str(), "7"));
                assert_eq!((&found["thread"], &found["class"]), ("main", "DigestMd5"));
                assert_eq!(&found["text"], text);
            }
        }
    }
}
