//! Java's `logback.xml`: levels, consoles and rolling files. The rest is named, so that nothing is silent.

use super::log_output::{Appender, LogFile, Stream, level};
use super::logback_loggers::{AUDIT, modules};
use super::logback_pattern::{self, PatternPart};
use super::logback_rolling::Window;
use super::logback_xml::{Element, Variables, read};
use crate::model::properties;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tracing::level_filters::LevelFilter;

/// ZooKeeper's own patterns, of the log and of the audit log.
const OF_LOG: &str = "%d{ISO8601} [myid:%X{myid}] - %-5p [%t:%C{1}@%L] - %m%n";
const OF_AUDIT_LOG: &str = "%d{ISO8601} %p %c{2}: %m%n";
/// Limit on the files that a file includes, those within each other included.
const INCLUDES_MAX: usize = 32;

/// What a file says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Logback {
    /// Level of the root logger.
    pub root: Option<LevelFilter>,
    /// Levels of our modules.
    pub levels: Vec<(String, LevelFilter)>,
    /// Where the root's lines go.
    pub appenders: Vec<Appender>,
    /// The form of lines; `None`: that of ZooKeeper's own file.
    pub pattern: Option<Vec<PatternPart>>,
    /// The file of the audit log's logger.
    pub audit: Option<LogFile>,
    /// What has no effect here, in words.
    pub left_out: Vec<String>,
}

/// What a file may name that is not in it.
pub struct Outside<'o> {
    /// Variables that the file does not define: system properties, then the environment.
    pub variable: &'o dyn Fn(&str) -> Option<String>,
    /// The text of another file, by its path or by its name in the configuration's folder.
    pub file: &'o dyn Fn(&str) -> Result<String, String>,
}

/// Reads a `logback.xml`.
///
/// # Errors
/// What is malformed, with its line where there is one.
pub fn parse(text: &str, outside: &Outside<'_>) -> Result<Logback, String> {
    let root = read(text, "configuration")?;
    let mut reading = Reading {
        outside,
        variables: Variables::new(outside.variable),
        appenders: BTreeMap::new(),
        loggers: Vec::new(),
        included: 0,
        found: Logback::default(),
    };
    for attribute in &root.attributes {
        let is_off = attribute.1.eq_ignore_ascii_case("false");
        if matches!(attribute.0.as_str(), "scan" | "debug" | "packagingData") && !is_off {
            reading.leave_out(format!("{}={}", attribute.0, attribute.1));
        }
    }
    reading.elements(&root.children)?;
    let mut loggers = std::mem::take(&mut reading.loggers);
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
    /// Its lines also go where those of the root go.
    is_additive: bool,
}

/// An appender as it stands there, used or not.
struct Given {
    kind: Kind,
    /// The form of its lines; `None`: it has none, or lines of another kind.
    pattern: Option<String>,
    left_out: Vec<String>,
}

/// A file that an element names.
struct OtherFile {
    name: String,
    /// What is in it, or why it can't be read.
    text: Result<String, String>,
}

/// What appenders of every kind have.
struct Common {
    threshold: LevelFilter,
    pattern: Option<String>,
    left_out: Vec<String>,
}

impl Default for Common {
    fn default() -> Self {
        Self { threshold: LevelFilter::TRACE, pattern: None, left_out: Vec::new() }
    }
}

enum Kind {
    One(Appender),
    /// Passes its lines to others.
    Async(Vec<String>),
    Unknown,
}

struct Reading<'o> {
    outside: &'o Outside<'o>,
    variables: Variables<'o>,
    appenders: BTreeMap<String, Given>,
    /// Each with its name, which is empty for the root.
    loggers: Vec<(String, Logger)>,
    /// Number of included files.
    included: usize,
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

    /// The elements of a file in their order, those of included files in the place of `<include>`.
    fn elements(&mut self, elements: &[Element]) -> Result<(), String> {
        for element in elements {
            match element.name.as_str() {
                "property" | "variable" | "substitutionproperty" => self.define(element)?,
                "include" => self.include(element)?,
                "appender" => self.appender(element)?,
                "root" => {
                    let logger = self.logger(element)?;
                    self.loggers.push((String::new(), logger));
                }
                "logger" => {
                    let name = self.value(element, "name")?.unwrap_or_default();
                    let name = if name.eq_ignore_ascii_case("root") { String::new() } else { name };
                    let logger = self.logger(element)?;
                    self.loggers.push((name, logger));
                }
                "contextname" => {}
                other => self.leave_out(format!("<{other}>")),
            }
        }
        Ok(())
    }

    /// The file that an element names; `None`: it names a URL, or nothing.
    fn other_file(&self, element: &Element) -> Result<Option<OtherFile>, String> {
        let name = match self.value(element, "file")? {
            None => self.value(element, "resource")?,
            name => name,
        };
        Ok(name.map(|name| OtherFile { text: (self.outside.file)(&name), name }))
    }

    fn define(&mut self, element: &Element) -> Result<(), String> {
        if let (Some(name), Some(value)) =
            (self.value(element, "name")?, self.value(element, "value")?)
        {
            self.variables.define(&name, value);
            return Ok(());
        }
        let Some(OtherFile { name, text }) = self.other_file(element)? else {
            self.leave_out("a property without name and value".to_owned());
            return Ok(());
        };
        let read = text
            .and_then(|text| properties::parse(text.as_bytes()).map_err(|error| error.to_string()));
        match read {
            Ok(entries) => {
                for (key, entry) in entries {
                    self.variables.define(&key, entry.value);
                }
            }
            Err(error) => self.leave_out(format!("properties of {name}: {error}")),
        }
        Ok(())
    }

    fn include(&mut self, element: &Element) -> Result<(), String> {
        if self.included == INCLUDES_MAX {
            self.leave_out(format!("<include> after {INCLUDES_MAX} others"));
            return Ok(());
        }
        self.included += 1;
        let is_optional = element.attribute("optional").is_some_and(|given| given.trim() == "true");
        let Some(OtherFile { name, text }) = self.other_file(element)? else {
            self.leave_out("<include> of a URL".to_owned());
            return Ok(());
        };
        if is_optional && text.is_err() {
            return Ok(());
        }
        match text.and_then(|text| read(&text, "included")) {
            Ok(root) => self.elements(&root.children),
            Err(error) => {
                self.leave_out(format!("<include> of {name}: {error}"));
                Ok(())
            }
        }
    }

    fn logger(&mut self, element: &Element) -> Result<Logger, String> {
        let is_additive = self.value(element, "additivity")?;
        let is_additive = is_additive.is_none_or(|given| !given.eq_ignore_ascii_case("false"));
        let level = self.value(element, "level")?;
        let mut logger = Logger { level, refs: Vec::new(), is_additive };
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
                let (mut refs, mut left_out) = (Vec::new(), Vec::new());
                for child in &element.children {
                    match child.name.as_str() {
                        "appender-ref" => refs.extend(self.value(child, "ref")?),
                        // Lines wait for a thread here in any case.
                        "queuesize"
                        | "discardingthreshold"
                        | "neverblock"
                        | "maxflushtime"
                        | "includecallerdata" => {}
                        other => left_out.push(format!("<{other}> of {name}")),
                    }
                }
                Given { kind: Kind::Async(refs), pattern: None, left_out }
            }
            _ => {
                let left_out = vec![format!("appender {name} of {class}")];
                Given { kind: Kind::Unknown, pattern: None, left_out }
            }
        };
        self.appenders.insert(name, given);
        Ok(())
    }

    fn console(&self, element: &Element, name: &str) -> Result<Given, String> {
        let mut common = Common::default();
        let mut stream = Stream::Out;
        for child in &element.children {
            match child.name.as_str() {
                "target" if self.text(child)?.eq_ignore_ascii_case("System.err") => {
                    stream = Stream::Err;
                }
                "target" | "withjansi" | "immediateflush" => {}
                _ => self.common(child, name, &mut common)?,
            }
        }
        let Common { threshold, pattern, left_out } = common;
        Ok(Given { kind: Kind::One(Appender::Console { stream, threshold }), pattern, left_out })
    }

    fn file(&self, element: &Element, name: &str) -> Result<Given, String> {
        let mut common = Common::default();
        let (mut path, mut policies) = (None, Vec::new());
        for child in &element.children {
            match child.name.as_str() {
                "file" => path = Some(self.text(child)?).filter(|path| !path.is_empty()),
                "rollingpolicy" | "triggeringpolicy" => policies.push(child),
                "immediateflush" | "buffersize" => {}
                "append" | "prudent" => {
                    let value = self.text(child)?;
                    if value.eq_ignore_ascii_case("true") == (child.name == "prudent") {
                        common.left_out.push(format!("{}={value} of {name}", child.name));
                    }
                }
                _ => self.common(child, name, &mut common)?,
            }
        }
        let Common { threshold, pattern, mut left_out } = common;
        let mut window = Window::default();
        for policy in policies {
            window.read(&self.variables, policy, name, &mut left_out)?;
        }
        let is_named = path.is_some();
        let path = path.or_else(|| window.name());
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            left_out.push(format!("appender {name}, which names no file"));
            return Ok(Given { kind: Kind::Unknown, pattern, left_out });
        };
        let rolling = window.rolling(&path, is_named, name, &mut left_out);
        let file = LogFile { path: PathBuf::from(path), threshold, rolling };
        Ok(Given { kind: Kind::One(Appender::File(file)), pattern, left_out })
    }

    /// What appenders of every kind may have.
    fn common(&self, child: &Element, name: &str, common: &mut Common) -> Result<(), String> {
        let class = self.value(child, "class")?.unwrap_or_default();
        let left_out = &mut common.left_out;
        match (child.name.as_str(), class.rsplit('.').next().unwrap_or_default()) {
            ("filter", "ThresholdFilter") => {
                let given = child.children.iter().find(|child| child.name == "level");
                let text = given.map_or(Ok(String::new()), |given| self.text(given))?;
                match level(&text) {
                    Some(level) => common.threshold = common.threshold.min(level),
                    None => left_out.push(format!("level {text:?} of {name}")),
                }
            }
            ("filter", class) => left_out.push(format!("filter {class} of {name}")),
            ("encoder" | "layout", class) => {
                let pattern = patterns(child).pop().map(|pattern| self.text(pattern));
                let is_pattern = class.is_empty() || class.starts_with("Pattern");
                if !is_pattern && pattern.is_none() {
                    left_out.push(format!("encoder {class} of {name}, see --log-format"));
                    return Ok(());
                }
                common.pattern = pattern.transpose()?;
                for inner in &child.children {
                    match inner.name.as_str() {
                        "pattern" | "layout" | "immediateflush" => {}
                        "charset" if self.text(inner)?.eq_ignore_ascii_case("UTF-8") => {}
                        other => left_out.push(format!("{other}={} of {name}", self.text(inner)?)),
                    }
                }
            }
            (other, _) => left_out.push(format!("<{other}> of {name}")),
        }
        Ok(())
    }

    /// The appenders that are meant, each once, with their names and their patterns.
    fn referred(&mut self, refs: &[String]) -> Vec<(String, Option<String>, Appender)> {
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
                        Kind::One(appender) => {
                            found.push((name.clone(), given.pattern.clone(), appender.clone()));
                        }
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
        // All outputs have lines of one form.
        let mut chosen: Option<String> = None;
        for (name, pattern, appender) in self.referred(&logger.refs) {
            self.found.appenders.push(appender);
            let Some(pattern) = pattern else { continue };
            match &chosen {
                _ if logback_pattern::parse(&pattern).is_none() => {
                    self.leave_out(format!(
                        "pattern of {name}: lines have the form of --log-format"
                    ));
                }
                None => chosen = Some(pattern),
                Some(first) if *first != pattern => {
                    self.leave_out(format!(
                        "pattern of {name}: lines have that of the appender before it"
                    ));
                }
                Some(_) => {}
            }
        }
        let own = chosen.filter(|pattern| pattern != OF_LOG);
        self.found.pattern = own.and_then(|pattern| logback_pattern::parse(&pattern));
    }

    fn audit(&mut self, logger: Logger) {
        if logger.refs.is_empty() {
            // Its lines go where the root's go.
            return self.level_of(AUDIT, logger);
        }
        let mut file = None;
        for (name, pattern, appender) in self.referred(&logger.refs) {
            if pattern.is_some_and(|pattern| pattern != OF_LOG && pattern != OF_AUDIT_LOG) {
                self.leave_out(format!(
                    "pattern of {name}: the audit log's lines have ZooKeeper's form"
                ));
            }
            match appender {
                Appender::File(found) => file = Some(found),
                Appender::Console { .. } => {
                    self.leave_out(format!("appender {name} of the audit log's logger"));
                }
            }
        }
        // ZooKeeper's own file has `INFO, RFAAUDIT` there, as log4j had it.
        let text = logger.level.unwrap_or_default();
        let first = text.split(',').next().unwrap_or_default();
        match (level(first), &mut file) {
            (Some(level), Some(file)) => file.threshold = file.threshold.min(level),
            (None, _) if !text.is_empty() => {
                self.leave_out(format!("level {text:?} of the audit log's logger"));
            }
            _ => {}
        }
        self.found.audit = file;
        if logger.is_additive && self.found.audit.is_some() {
            let text = "additivity of the audit log's logger: its lines go into its file alone";
            self.leave_out(text.to_owned());
        }
    }

    fn level_of(&mut self, name: &str, logger: Logger) {
        if !logger.refs.is_empty() {
            self.leave_out(format!("appenders of logger {name}: its lines go where the root's go"));
        } else if !logger.is_additive {
            self.leave_out(format!("additivity=false of logger {name}: set its level to OFF"));
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
