//! Java's `logback.xml`: levels, consoles and rolling files. The rest is named, so that nothing is silent.

use super::log_output::{Appender, LogFile, OLDER_MAX, Rolling, Stream, level, size};
use super::logback_loggers::{AUDIT, modules};
use super::logback_xml::{Element, Variables, read};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tracing::level_filters::LevelFilter;

/// ZooKeeper's own patterns, of the log and of the audit log: lines have these forms, whatever a file says.
const PATTERNS: [&str; 2] =
    ["%d{ISO8601} [myid:%X{myid}] - %-5p [%t:%C{1}@%L] - %m%n", "%d{ISO8601} %p %c{2}: %m%n"];
/// For files that are to be renamed by date alone, as in ZooKeeper's own file.
const BY_DATE_SIZE: u64 = 256 << 20;

/// What a file says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Logback {
    /// Level of the root logger.
    pub root: Option<LevelFilter>,
    /// Levels of our modules.
    pub levels: Vec<(String, LevelFilter)>,
    /// Where the root's lines go.
    pub appenders: Vec<Appender>,
    /// The file of the audit log's logger.
    pub audit: Option<LogFile>,
    /// What has no effect here, in words.
    pub left_out: Vec<String>,
}

/// Reads a `logback.xml`.
///
/// * `outside`: variables that the file does not define: system properties, then the environment.
///
/// # Errors
/// What is malformed, with its line where there is one.
pub fn parse(text: &str, outside: &dyn Fn(&str) -> Option<String>) -> Result<Logback, String> {
    let root = read(text)?;
    let mut reading = Reading {
        variables: Variables::new(outside),
        appenders: BTreeMap::new(),
        found: Logback::default(),
    };
    let mut loggers = Vec::new();
    for attribute in &root.attributes {
        let is_off = attribute.1.eq_ignore_ascii_case("false");
        if matches!(attribute.0.as_str(), "scan" | "debug" | "packagingData") && !is_off {
            reading.leave_out(format!("{}={}", attribute.0, attribute.1));
        }
    }
    for element in &root.children {
        match element.name.as_str() {
            "property" | "variable" | "substitutionproperty" => reading.define(element)?,
            "appender" => reading.appender(element)?,
            "root" => loggers.push((String::new(), reading.logger(element)?)),
            "logger" => {
                let name = reading.value(element, "name")?.unwrap_or_default();
                let name = if name.eq_ignore_ascii_case("root") { String::new() } else { name };
                loggers.push((name, reading.logger(element)?));
            }
            "contextname" => {}
            other => reading.leave_out(format!("<{other}>")),
        }
    }
    // The level of a class wins over that of its package.
    loggers.sort_by_key(|(name, _)| name.len());
    for (name, logger) in loggers {
        match name.as_str() {
            "" => reading.root(logger),
            AUDIT => reading.audit(logger),
            _ => reading.level_of(&name, logger),
        }
    }
    let mut seen = Vec::new();
    reading.found.left_out.retain(|what| {
        !seen.contains(what) && {
            seen.push(what.clone());
            true
        }
    });
    Ok(reading.found)
}

/// A logger as it stands there.
struct Logger {
    level: Option<String>,
    refs: Vec<String>,
}

/// An appender as it stands there, used or not.
struct Given {
    kind: Kind,
    left_out: Vec<String>,
}

enum Kind {
    One(Appender),
    /// Passes its lines to others.
    Async(Vec<String>),
    Unknown,
}

struct Reading<'o> {
    variables: Variables<'o>,
    appenders: BTreeMap<String, Given>,
    found: Logback,
}

impl Reading<'_> {
    fn leave_out(&mut self, what: String) {
        self.found.left_out.push(what);
    }

    /// An attribute, with its variables replaced.
    fn value(&self, element: &Element, attribute: &str) -> Result<Option<String>, String> {
        let value = element.attribute(attribute).map(|text| self.variables.substitute(text.trim()));
        value.transpose()
    }

    /// The text of an element, with its variables replaced.
    fn text(&self, element: &Element) -> Result<String, String> {
        self.variables.substitute(element.text.trim())
    }

    fn define(&mut self, element: &Element) -> Result<(), String> {
        match (self.value(element, "name")?, self.value(element, "value")?) {
            (Some(name), Some(value)) => self.variables.define(&name, value),
            _ => self.leave_out("properties of other files".to_owned()),
        }
        Ok(())
    }

    fn logger(&mut self, element: &Element) -> Result<Logger, String> {
        let mut logger = Logger { level: self.value(element, "level")?, refs: Vec::new() };
        for child in &element.children {
            match child.name.as_str() {
                "appender-ref" => logger.refs.extend(self.value(child, "ref")?),
                "level" => logger.level = self.value(child, "value")?,
                other => self.leave_out(format!("<{other}> of a logger")),
            }
        }
        Ok(logger)
    }

    fn appender(&mut self, element: &Element) -> Result<(), String> {
        let name = self.value(element, "name")?.unwrap_or_default();
        let class = self.value(element, "class")?.unwrap_or_default();
        let given = match class.rsplit('.').next().unwrap_or_default() {
            "ConsoleAppender" => self.console(element, &name)?,
            "FileAppender" | "RollingFileAppender" => self.file(element, &name)?,
            "AsyncAppender" => {
                let refs = element.children.iter().filter(|child| child.name == "appender-ref");
                let refs: Result<Vec<_>, _> = refs.map(|child| self.value(child, "ref")).collect();
                Given {
                    kind: Kind::Async(refs?.into_iter().flatten().collect()),
                    left_out: Vec::new(),
                }
            }
            _ => {
                Given { kind: Kind::Unknown, left_out: vec![format!("appender {name} of {class}")] }
            }
        };
        self.appenders.insert(name, given);
        Ok(())
    }

    fn console(&self, element: &Element, name: &str) -> Result<Given, String> {
        let (mut threshold, mut left_out) = (LevelFilter::TRACE, Vec::new());
        let mut stream = Stream::Out;
        for child in &element.children {
            match child.name.as_str() {
                "target" if self.text(child)?.eq_ignore_ascii_case("System.err") => {
                    stream = Stream::Err;
                }
                "target" | "withjansi" | "immediateflush" => {}
                _ => self.common(child, name, &mut threshold, &mut left_out)?,
            }
        }
        Ok(Given { kind: Kind::One(Appender::Console { stream, threshold }), left_out })
    }

    fn file(&self, element: &Element, name: &str) -> Result<Given, String> {
        let (mut threshold, mut left_out) = (LevelFilter::TRACE, Vec::new());
        let (mut path, mut policies) = (None, Vec::new());
        for child in &element.children {
            match child.name.as_str() {
                "file" => path = Some(self.text(child)?).filter(|path| !path.is_empty()),
                "rollingpolicy" | "triggeringpolicy" => policies.push(child),
                "immediateflush" | "buffersize" => {}
                "append" | "prudent" => {
                    let value = self.text(child)?;
                    if value.eq_ignore_ascii_case("true") == (child.name == "prudent") {
                        left_out.push(format!("{}={value} of {name}", child.name));
                    }
                }
                _ => self.common(child, name, &mut threshold, &mut left_out)?,
            }
        }
        let mut window = Window::default();
        for policy in policies {
            self.policy(policy, name, &mut window, &mut left_out)?;
        }
        let path = path.or_else(|| window.pattern.as_deref().map(without_numbers));
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            left_out.push(format!("appender {name}, which names no file"));
            return Ok(Given { kind: Kind::Unknown, left_out });
        };
        let rolling = window.rolling(&path, name, &mut left_out);
        let file = LogFile { path: PathBuf::from(path), threshold, rolling };
        Ok(Given { kind: Kind::One(Appender::File(file)), left_out })
    }

    /// What appenders of every kind may have.
    fn common(
        &self,
        child: &Element,
        name: &str,
        threshold: &mut LevelFilter,
        left_out: &mut Vec<String>,
    ) -> Result<(), String> {
        let class = self.value(child, "class")?.unwrap_or_default();
        match (child.name.as_str(), class.rsplit('.').next().unwrap_or_default()) {
            ("filter", "ThresholdFilter") => {
                let given = child.children.iter().find(|child| child.name == "level");
                let text = given.map_or(Ok(String::new()), |given| self.text(given))?;
                match level(&text) {
                    Some(level) => *threshold = (*threshold).min(level),
                    None => left_out.push(format!("level {text:?} of {name}")),
                }
            }
            ("filter", class) => left_out.push(format!("filter {class} of {name}")),
            ("encoder" | "layout", class) => {
                let is_pattern = class.is_empty() || class.starts_with("Pattern");
                let patterns = patterns(child);
                let is_known = |pattern: &&Element| PATTERNS.contains(&pattern.text.trim());
                if !is_pattern && patterns.is_empty() {
                    left_out.push(format!("encoder {class} of {name}, see --log-format"));
                } else if !patterns.iter().all(is_known) {
                    left_out
                        .push(format!("pattern of {name}: lines have the form of --log-format"));
                }
            }
            (other, _) => left_out.push(format!("<{other}> of {name}")),
        }
        Ok(())
    }

    /// A rolling or a triggering policy.
    fn policy(
        &self,
        element: &Element,
        name: &str,
        window: &mut Window,
        left_out: &mut Vec<String>,
    ) -> Result<(), String> {
        let class = self.value(element, "class")?.unwrap_or_default();
        match class.rsplit('.').next().unwrap_or_default() {
            "FixedWindowRollingPolicy" => window.is_window = true,
            "SizeBasedTriggeringPolicy" => window.size.0 = true,
            "SizeAndTimeBasedRollingPolicy" | "TimeBasedRollingPolicy" => window.is_by_date = true,
            class => left_out.push(format!("policy {class} of {name}")),
        }
        for child in &element.children {
            let text = self.text(child)?;
            let number = || text.parse::<u32>().ok();
            let is_read = match child.name.as_str() {
                "filenamepattern" => {
                    window.pattern = Some(text.clone());
                    true
                }
                "minindex" => number().map(|number| window.min = Some(number)).is_some(),
                "maxindex" | "maxhistory" => {
                    number().map(|number| window.max = Some(number)).is_some()
                }
                "maxfilesize" => size(&text).map(|size| window.size.1 = Some(size)).is_some(),
                "totalsizecap" => size(&text).map(|size| window.cap = Some(size)).is_some(),
                "cleanhistoryonstart" | "checkincrement" | "parent" => true,
                _ => false,
            };
            if !is_read {
                left_out.push(format!("{}={text} of {name}", child.name));
            }
        }
        Ok(())
    }

    /// The appenders that are meant, each once.
    fn referred(&mut self, refs: &[String]) -> Vec<Appender> {
        let (mut waiting, mut seen) = (refs.to_vec(), Vec::new());
        let mut found = Vec::new();
        waiting.reverse();
        while let Some(name) = waiting.pop() {
            if seen.contains(&name) {
                continue;
            }
            match self.appenders.get(&name) {
                None => self.found.left_out.push(format!("appender {name}, which is not there")),
                Some(given) => {
                    self.found.left_out.extend(given.left_out.iter().cloned());
                    match &given.kind {
                        Kind::One(appender) => found.push(appender.clone()),
                        Kind::Async(refs) => waiting.extend(refs.iter().rev().cloned()),
                        Kind::Unknown => {}
                    }
                }
            }
            seen.push(name);
        }
        found
    }

    fn root(&mut self, logger: Logger) {
        if let Some(text) = logger.level {
            self.found.root = level(&text);
            if self.found.root.is_none() {
                self.leave_out(format!("level {text:?} of the root logger"));
            }
        }
        let appenders = self.referred(&logger.refs);
        self.found.appenders.extend(appenders);
    }

    fn audit(&mut self, logger: Logger) {
        if logger.refs.is_empty() {
            // Its lines go where the root's go.
            return self.level_of(AUDIT, logger);
        }
        let mut files =
            self.referred(&logger.refs).into_iter().filter_map(|appender| match appender {
                Appender::File(file) => Some(file),
                Appender::Console { .. } => None,
            });
        self.found.audit = files.next_back();
    }

    fn level_of(&mut self, name: &str, logger: Logger) {
        if !logger.refs.is_empty() {
            self.leave_out(format!("appenders of logger {name}: its lines go where the root's go"));
        }
        let Some(text) = logger.level else { return };
        let modules = modules(name);
        match level(&text) {
            None => self.leave_out(format!("level {text:?} of logger {name}")),
            Some(_) if modules.is_empty() => {
                self.leave_out(format!("logger {name}, which has no counterpart"));
            }
            Some(level) => {
                self.found.levels.extend(modules.into_iter().map(|module| (module, level)));
            }
        }
    }
}

/// All patterns of an encoder, which may have a layout.
fn patterns(element: &Element) -> Vec<&Element> {
    let mut found = Vec::new();
    for child in &element.children {
        match child.name.as_str() {
            "pattern" => found.push(child),
            "layout" => {
                found.extend(child.children.iter().filter(|inner| inner.name == "pattern"));
            }
            _ => {}
        }
    }
    found
}

/// What the policies of a rolling file say.
#[derive(Default)]
struct Window {
    is_window: bool,
    is_by_date: bool,
    pattern: Option<String>,
    min: Option<u32>,
    max: Option<u32>,
    /// Whether there is a limit, and which.
    size: (bool, Option<u64>),
    cap: Option<u64>,
}

impl Window {
    /// Defaults as in logback 1.3.15: 10 MB, numbers 1 to 7.
    fn rolling(&self, path: &str, name: &str, left_out: &mut Vec<String>) -> Option<Rolling> {
        if self.is_by_date {
            left_out.push(format!("dates of {name}: its file is renamed by size"));
            let size = self.size.1.unwrap_or(BY_DATE_SIZE);
            let by_cap = self.cap.map(|cap| u32::try_from(cap / size).unwrap_or(OLDER_MAX));
            let kept = by_cap.or(self.max.filter(|max| *max > 0)).unwrap_or(OLDER_MAX);
            return Some(Rolling::beside(path.as_ref(), size, kept.min(OLDER_MAX)));
        }
        if !self.is_window && !self.size.0 {
            return None;
        }
        let size = self.size.1.unwrap_or(10 << 20);
        let (first, last) = (self.min.unwrap_or(1), self.max.unwrap_or(7));
        let wanted = (last.saturating_add(1)).saturating_sub(first);
        if wanted > OLDER_MAX {
            left_out.push(format!("maxIndex={last} of {name}: {OLDER_MAX} older files are kept"));
        }
        let mut rolling = Rolling::beside(path.as_ref(), size, wanted.min(OLDER_MAX));
        let pattern = self.pattern.as_deref().unwrap_or_default();
        let packed = [".gz", ".zip", ".xz"].into_iter().find(|suffix| pattern.ends_with(suffix));
        if packed.is_some() {
            left_out.push(format!("packing of {name}'s older files"));
        }
        let plain = pattern.strip_suffix(packed.unwrap_or_default()).unwrap_or(pattern);
        match plain.split_once("%i") {
            Some((before, after)) if !before.contains('%') && !after.contains('%') => {
                (rolling.first, rolling.older) = (first, (before.to_owned(), after.to_owned()));
            }
            _ => left_out.push(format!("fileNamePattern={pattern} of {name}")),
        }
        Some(rolling)
    }
}

/// The name of a file whose appender gives a pattern alone: without dates, numbers and the marks before them.
fn without_numbers(pattern: &str) -> String {
    let mut name = String::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('%') {
        name.push_str(before.trim_end_matches(['.', '-', '_']));
        let after = after.get(1..).unwrap_or_default();
        rest = match after.strip_prefix('{').and_then(|inside| inside.split_once('}')) {
            Some((_, after)) => after,
            None => after,
        };
    }
    name.push_str(rest);
    let bare = [".gz", ".zip", ".xz"].into_iter().find_map(|suffix| name.strip_suffix(suffix));
    bare.unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn parsed(body: &str) -> Logback {
        parse(&format!("<configuration>{body}</configuration>"), &|_| None).unwrap()
    }

    const CONSOLE: &str = "<appender name='CONSOLE' class='ch.qos.logback.core.ConsoleAppender'><encoder>\
        <pattern>%d{ISO8601} [myid:%X{myid}] - %-5p [%t:%C{1}@%L] - %m%n</pattern></encoder>\
        <filter class='ch.qos.logback.classic.filter.ThresholdFilter'><level>WARN</level></filter></appender>";

    // rows: C-269
    #[test]
    fn file_of_zookeeper_is_read_without_a_remark() {
        let found = parsed(&format!(
            "<property name='zookeeper.log.dir' value='/l'/><property name='zookeeper.log.file' value='z.log'/>{CONSOLE}
             <appender name='ROLLINGFILE' class='ch.qos.logback.core.rolling.RollingFileAppender'>
               <File>${{zookeeper.log.dir}}/${{zookeeper.log.file}}</File>
               <rollingPolicy class='ch.qos.logback.core.rolling.FixedWindowRollingPolicy'><maxIndex>${{index:-20}}</maxIndex>
                 <FileNamePattern>${{zookeeper.log.dir}}/${{zookeeper.log.file}}.%i</FileNamePattern></rollingPolicy>
               <triggeringPolicy class='ch.qos.logback.core.rolling.SizeBasedTriggeringPolicy'><MaxFileSize>256MB</MaxFileSize></triggeringPolicy>
             </appender>
             <logger name='org.apache.zookeeper.server.persistence' level='debug'/>
             <root level='INFO'><appender-ref ref='CONSOLE'/><appender-ref ref='ROLLINGFILE'/></root>"
        ));
        let path = Path::new("/l/z.log");
        let file = LogFile {
            path: path.to_owned(),
            threshold: LevelFilter::TRACE,
            rolling: Some(Rolling::beside(path, 256 << 20, 20)),
        };
        let console = Appender::Console { stream: Stream::Out, threshold: LevelFilter::WARN };
        assert_eq!(found.appenders, [console, Appender::File(file)]);
        assert_eq!(found.root, Some(LevelFilter::INFO));
        assert_eq!(found.levels, [("oxkeeper::store".to_owned(), LevelFilter::DEBUG)]);
        assert_eq!(found.left_out, Vec::<String>::new());
    }

    // rows: C-269
    #[test]
    fn parts_without_effect_are_named_once() {
        let found = parsed(
            "<include file='x'/><property file='y'/><statusListener class='z'/>
             <appender name='UNUSED' class='no.Such'/>
             <appender name='SYSLOG' class='ch.qos.logback.classic.net.SyslogAppender'/>
             <appender name='A' class='ch.qos.logback.core.FileAppender'><file>a</file><append>false</append>
               <encoder class='net.logstash.logback.encoder.LogstashEncoder'/><filter class='x.LevelFilter'/></appender>
             <appender name='B' class='ch.qos.logback.classic.AsyncAppender'><appender-ref ref='A'/><queueSize>5</queueSize></appender>
             <logger name='org.eclipse.jetty' level='WARN'/>
             <logger name='org.apache.zookeeper' level='loud'><appender-ref ref='A'/></logger>
             <root level='INFO'><appender-ref ref='B'/><appender-ref ref='SYSLOG'/><appender-ref ref='A'/><appender-ref ref='C'/></root>",
        );
        assert_eq!(found.appenders.len(), 1);
        let Appender::File(file) = &found.appenders[0] else { panic!("{found:?}") };
        assert_eq!((file.path.as_path(), &file.rolling), (Path::new("a"), &None));
        let left_out = found.left_out.join("; ");
        assert_eq!(
            left_out,
            "<include>; properties of other files; <statuslistener>; append=false of A; encoder LogstashEncoder of A, see --log-format; \
             filter LevelFilter of A; appender SYSLOG of ch.qos.logback.classic.net.SyslogAppender; appender C, which is not there; \
             logger org.eclipse.jetty, which has no counterpart; \
             appenders of logger org.apache.zookeeper: its lines go where the root's go; \
             level \"loud\" of logger org.apache.zookeeper"
        );
    }

    // rows: C-269 U-30
    #[test]
    fn audit_log_has_the_file_of_its_logger() {
        let found = parsed(
            "<appender name='RFAAUDIT' class='ch.qos.logback.core.rolling.RollingFileAppender'><File>/l/audit.log</File>
               <encoder><pattern>%d{ISO8601} %p %c{2}: %m%n</pattern></encoder>
               <rollingPolicy class='x.FixedWindowRollingPolicy'><maxIndex>3</maxIndex><FileNamePattern>/l/audit-%i.log.gz</FileNamePattern></rollingPolicy>
               <triggeringPolicy class='x.SizeBasedTriggeringPolicy'/></appender>
             <logger name='org.apache.zookeeper.audit.Slf4jAuditLogger' additivity='false' level='INFO, RFAAUDIT'><appender-ref ref='RFAAUDIT'/></logger>",
        );
        let rolling = Rolling {
            size_bytes: 10 << 20,
            kept: 3,
            first: 1,
            older: ("/l/audit-".to_owned(), ".log".to_owned()),
        };
        let file = LogFile {
            path: "/l/audit.log".into(),
            threshold: LevelFilter::TRACE,
            rolling: Some(rolling),
        };
        assert_eq!(found.audit, Some(file));
        let quiet = "<logger name='org.apache.zookeeper.audit.Slf4jAuditLogger' level='OFF'/>";
        assert_eq!(
            parsed(quiet).levels,
            [("oxkeeper::server::audit_log".to_owned(), LevelFilter::OFF)]
        );
        assert_eq!(found.left_out, ["packing of RFAAUDIT's older files"]);
    }

    // rows: C-269
    #[test]
    fn files_by_size_and_date_are_renamed_by_size() {
        let found = parsed(
            "<appender name='F' class='RollingFileAppender'>
               <rollingPolicy class='SizeAndTimeBasedRollingPolicy'><fileNamePattern>/l/zk.%d{yyyy-MM-dd}.%i.log.gz</fileNamePattern>
               <maxFileSize>1MB</maxFileSize><maxHistory>60</maxHistory><totalSizeCap>8MB</totalSizeCap></rollingPolicy></appender>
             <root level='DEBUG'><appender-ref ref='F'/></root>",
        );
        let Appender::File(file) = &found.appenders[0] else { panic!("{found:?}") };
        assert_eq!(file.path, Path::new("/l/zk.log"));
        assert_eq!(file.rolling, Some(Rolling::beside(&file.path, 1 << 20, 8)));
        assert_eq!(found.left_out, ["dates of F: its file is renamed by size"]);
    }

    proptest::proptest! {
        #[test]
        fn no_text_causes_a_panic(text in "(<[a-z/]{0,9}( [a-z]{1,4}='[^']{0,9}')?>|[$%{}a-z:&;-]{0,9}){0,9}") {
            let _may_fail = parse(&format!("<configuration>{text}</configuration>"), &|_| None);
        }
    }
}
