//! What is logged, and where: by a `logback.xml`, else by flags, as ZooKeeper's own `logback.xml` would have it.

use super::args::{Launch, ReadFile, Settings, from_disk};
use super::log_output::{Appender, LogFile, Rolling, Stream, level, size};
use super::logback::{self, Logback};
use super::logback_pattern::PatternPart;
use super::system_properties::{Environment, flag_value};
use std::io;
use std::path::{Path, PathBuf};
use tracing::level_filters::LevelFilter;

/// A longer file is no configuration.
const FILE_MAX: usize = 1 << 20;
const MAX_SIZE: u64 = 256 << 20;
const MAX_INDEX: u32 = 20;

/// Where lines go, and from which level on.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LogSettings {
    /// Levels as `RUST_LOG` has them; `None`: nothing says so.
    pub levels: Option<String>,
    /// The appenders, at least one.
    pub appenders: Vec<Appender>,
    /// The form of lines, if a `logback.xml` has another one than ZooKeeper's own.
    pub pattern: Option<Vec<PatternPart>>,
    /// The audit log's file, if a `logback.xml` has one.
    pub audit: Option<LogFile>,
    /// What was not understood, or has no effect.
    pub warnings: Vec<String>,
    /// Whether there is a `logback.xml`, so that lines of Java's form are expected.
    pub is_logback: bool,
}

impl LogSettings {
    /// Standard error, as of a tool.
    pub fn of_tool() -> Self {
        let console = Appender::Console { stream: Stream::Err, threshold: LevelFilter::TRACE };
        Self { appenders: vec![console], ..Self::default() }
    }

    /// The settings of a server: by the file of `logback.configurationFile`, else by that beside the configuration, else by flags.
    ///
    /// * `as_java`: called as `java` is called, so the console is standard output.
    pub fn of_server(launch: &Launch, env: &Environment, as_java: bool) -> Self {
        Self::from_files(&from_disk, launch, env, as_java)
    }

    fn from_files(read: &ReadFile<'_>, launch: &Launch, env: &Environment, as_java: bool) -> Self {
        let flag = |name: &str| flag_value(env, &launch.flags, name);
        let console = if as_java { Stream::Out } else { Stream::Err };
        let folder = match &launch.settings {
            Settings::File(file) => file.parent().map(Path::to_owned),
            Settings::Positional(_) | Settings::Defaults => None,
        };
        let named = flag("logback.configurationFile").filter(|name| !name.is_empty());
        let found = match (&named, &folder) {
            (Some(name), folder) => Some(read_named(read, name, folder.as_deref())),
            (None, Some(folder)) => read_beside(read, &folder.join("logback.xml")),
            (None, None) => None,
        };
        let Some((path, content)) = found else { return Self::of_flags(&flag, console) };
        let is_read = content.is_ok();
        let parsed = content.and_then(|text| {
            let outside = logback::Outside {
                variable: &|name| flag(name).or_else(|| variable(env, name)),
                file: &|name| read_named(read, name, folder.as_deref()).1,
            };
            logback::parse(&text, &outside)
        });
        match parsed {
            Ok(logback) => Self::of_logback(logback, &path, console),
            Err(error) => {
                let mut this = Self::of_flags(&flag, console);
                let warning = match &named {
                    Some(name) if !is_read => format!(
                        "-Dlogback.configurationFile={name}: {error}; the log goes to the console: correct the flag"
                    ),
                    _ => format!(
                        "{}: {error}; it is not used, and the log goes to the console: correct the file",
                        path.display()
                    ),
                };
                this.warnings.push(warning);
                this
            }
        }
    }

    fn of_logback(logback: Logback, path: &Path, console: Stream) -> Self {
        let mut warnings = Vec::new();
        if !logback.left_out.is_empty() {
            let left_out = logback.left_out.join("; ");
            warnings.push(format!(
                "{}: these parts have no effect here, and can be removed: {left_out}",
                path.display()
            ));
        }
        let mut appenders = logback.appenders;
        if appenders.is_empty() {
            warnings.push(format!(
                "{}: its root logger has no appender that is known here, so the log goes to the console; name a ConsoleAppender or a RollingFileAppender",
                path.display()
            ));
            appenders.push(Appender::Console { stream: console, threshold: LevelFilter::TRACE });
        }
        let root = logback.root.unwrap_or(LevelFilter::DEBUG);
        let mut levels = root.to_string();
        for (module, level) in logback.levels {
            levels += &format!(",{module}={level}");
        }
        Self {
            levels: Some(levels),
            appenders,
            pattern: logback.pattern,
            audit: logback.audit,
            warnings,
            is_logback: true,
        }
    }

    /// As ZooKeeper's own `logback.xml` with all its appenders; `zookeeper.root.logger` names those that are used.
    fn of_flags(flag: &dyn Fn(&str) -> Option<String>, console: Stream) -> Self {
        let mut this = Self::default();
        let root = flag("zookeeper.root.logger").unwrap_or_default();
        let mut words = root.split(',').map(str::trim).filter(|word| !word.is_empty());
        if let Some(word) = words.next() {
            this.levels = level(word).map(|level| level.to_string());
            if this.levels.is_none() {
                this.warn("zookeeper.root.logger", &root);
            }
        }
        for word in words {
            match word.to_ascii_uppercase().as_str() {
                "CONSOLE" => this.add_console(flag, console),
                "ROLLINGFILE" => {
                    let file = this.rolling_file(flag);
                    this.appenders.push(Appender::File(file));
                }
                "TRACEFILE" => {
                    let dir = flag("zookeeper.tracelog.dir").or_else(|| flag("zookeeper.log.dir"));
                    let file = flag("zookeeper.tracelog.file");
                    let file = file.unwrap_or_else(|| "zookeeper_trace.log".to_owned());
                    let path = PathBuf::from(dir.unwrap_or_else(|| ".".to_owned())).join(file);
                    let file = LogFile { path, threshold: LevelFilter::TRACE, rolling: None };
                    this.appenders.push(Appender::File(file));
                }
                _ => this.warn("zookeeper.root.logger", &root),
            }
        }
        if this.appenders.is_empty() {
            this.add_console(flag, console);
        }
        this
    }

    fn add_console(&mut self, flag: &dyn Fn(&str) -> Option<String>, stream: Stream) {
        let threshold = self.threshold(flag, "zookeeper.console.threshold");
        self.appenders.push(Appender::Console { stream, threshold });
    }

    fn rolling_file(&mut self, flag: &dyn Fn(&str) -> Option<String>) -> LogFile {
        let text = |name: &str, default: &str| {
            flag(name).filter(|text| !text.is_empty()).unwrap_or_else(|| default.to_owned())
        };
        let dir = PathBuf::from(text("zookeeper.log.dir", "."));
        let path = dir.join(text("zookeeper.log.file", "zookeeper.log"));
        let max_size = flag("zookeeper.log.maxfilesize");
        let bytes = max_size.as_deref().map_or(Some(MAX_SIZE), size);
        if bytes.is_none() {
            self.warn("zookeeper.log.maxfilesize", &max_size.unwrap_or_default());
        }
        let index = flag("zookeeper.log.maxbackupindex");
        let kept = index.as_deref().map_or(Some(MAX_INDEX), |text| text.trim().parse().ok());
        let kept = kept.filter(|kept| *kept <= super::log_output::OLDER_MAX);
        if kept.is_none() {
            self.warn("zookeeper.log.maxbackupindex", &index.unwrap_or_default());
        }
        let threshold = self.threshold(flag, "zookeeper.log.threshold");
        let rolling = Rolling::beside(&path, bytes.unwrap_or(MAX_SIZE), kept.unwrap_or(MAX_INDEX));
        LogFile { path, threshold, rolling: Some(rolling) }
    }

    fn threshold(&mut self, flag: &dyn Fn(&str) -> Option<String>, name: &str) -> LevelFilter {
        let Some(text) = flag(name) else { return LevelFilter::TRACE };
        level(&text).unwrap_or_else(|| {
            self.warn(name, &text);
            LevelFilter::TRACE
        })
    }

    fn warn(&mut self, name: &str, value: &str) {
        self.warnings
            .push(format!("-D{name}={value} is not valid, so the default is used; correct it"));
    }
}

/// The file that `logback.configurationFile` names: a path, a `file:` URL, or a name of the configuration's folder.
fn read_named(
    read: &ReadFile<'_>,
    name: &str,
    folder: Option<&Path>,
) -> (PathBuf, Result<String, String>) {
    let path = name.strip_prefix("file://").or_else(|| name.strip_prefix("file:")).unwrap_or(name);
    let direct = (PathBuf::from(path), read_text(read, Path::new(path)));
    match (direct.1.is_err(), folder.map(|folder| folder.join(path))) {
        (true, Some(beside)) => match read_text(read, &beside) {
            Ok(text) => (beside, Ok(text)),
            Err(_) => direct,
        },
        _ => direct,
    }
}

/// `None`: there is no such file.
fn read_beside(read: &ReadFile<'_>, path: &Path) -> Option<(PathBuf, Result<String, String>)> {
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        content => Some((path.to_owned(), decoded(content))),
    }
}

fn read_text(read: &ReadFile<'_>, path: &Path) -> Result<String, String> {
    decoded(read(path))
}

fn decoded(content: io::Result<Vec<u8>>) -> Result<String, String> {
    let bytes = content.map_err(|error| error.to_string())?;
    if FILE_MAX < bytes.len() {
        return Err(format!("it has {} bytes, more than {FILE_MAX}", bytes.len()));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").map(<[u8]>::to_vec).unwrap_or(bytes);
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// Variables of a JVM and of logback that files name, then the environment's.
fn variable(env: &Environment, name: &str) -> Option<String> {
    let variable = match name {
        "user.home" => "HOME",
        "user.name" => "USER",
        "user.dir" => "PWD",
        "java.io.tmpdir" => return Some("/tmp".to_owned()),
        other => other,
    };
    env.get(variable).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)], flags: &[&str], as_java: bool) -> LogSettings {
        let read = |path: &Path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| text.as_bytes().to_vec()).ok_or(io::ErrorKind::NotFound.into())
        };
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        let launch = Launch { settings: Settings::File("conf/zoo.cfg".into()), flags };
        LogSettings::from_files(&read, &launch, &Environment::new(), as_java)
    }

    const EMPTY: &str = "<configuration><root level='WARN'/></configuration>";

    fn console(stream: Stream, threshold: LevelFilter) -> Appender {
        Appender::Console { stream, threshold }
    }

    // rows: C-269
    #[test]
    fn file_beside_the_configuration_is_read_unless_a_flag_names_another() {
        let plain = of(&[], &[], false);
        assert_eq!(plain.appenders, [console(Stream::Err, LevelFilter::TRACE)]);
        assert_eq!((plain.levels, plain.is_logback), (None, false));
        let beside = ("conf/logback.xml", EMPTY);
        let found = of(&[beside], &[], true);
        assert_eq!(found.levels.as_deref(), Some("warn"));
        assert_eq!(found.appenders, [console(Stream::Out, LevelFilter::TRACE)]);
        assert!(found.is_logback && found.warnings[0].contains("has no appender"));
        let other = "<configuration><root level='ERROR'/></configuration>";
        for (name, flag) in [
            ("/x/l.xml", "-Dlogback.configurationFile=/x/l.xml"),
            ("/x/l.xml", "-Dlogback.configurationFile=file:///x/l.xml"),
            ("conf/l.xml", "-Dlogback.configurationFile=l.xml"),
        ] {
            let found = of(&[beside, (name, other)], &[flag], false);
            assert_eq!(found.levels.as_deref(), Some("error"), "{flag}");
        }
    }

    // rows: C-269
    #[test]
    fn malformed_or_missing_file_is_one_warning_and_the_log_goes_to_the_console() {
        let wrong = [("conf/logback.xml", "<configuration>\n<root></configuration>")];
        for (files, flags) in [(&wrong[..], &[][..]), (&[], &["-Dlogback.configurationFile=/no"])] {
            let found = of(files, flags, false);
            assert_eq!(found.appenders, [console(Stream::Err, LevelFilter::TRACE)]);
            assert_eq!((found.warnings.len(), found.is_logback), (1, false), "{found:?}");
        }
        assert!(of(&wrong, &[], false).warnings[0].starts_with("conf/logback.xml: line 2: "));
    }

    // rows: C-267
    #[test]
    fn flags_alone_give_the_appenders_of_zookeepers_own_file() {
        let all = [
            "-Dzookeeper.root.logger=DEBUG, CONSOLE, ROLLINGFILE,TRACEFILE",
            "-Dzookeeper.console.threshold=WARN",
            "-Dzookeeper.log.dir=/l",
            "-Dzookeeper.log.file=z.log",
            "-Dzookeeper.log.threshold=INFO",
            "-Dzookeeper.log.maxfilesize=1MB",
            "-Dzookeeper.log.maxbackupindex=3",
            "-Dzookeeper.tracelog.file=t.log",
        ];
        let found = of(&[], &all, true);
        let path = PathBuf::from("/l/z.log");
        let rolling = Some(Rolling::beside(&path, 1 << 20, 3));
        let file = LogFile { path, threshold: LevelFilter::INFO, rolling };
        let trace =
            LogFile { path: "/l/t.log".into(), threshold: LevelFilter::TRACE, rolling: None };
        let console = console(Stream::Out, LevelFilter::WARN);
        assert_eq!(found.appenders, [console, Appender::File(file), Appender::File(trace)]);
        assert_eq!((found.levels.as_deref(), found.warnings.len()), (Some("debug"), 0));
        let wrong = [
            "-Dzookeeper.root.logger=LOUD,ROLLINGFILE,NOWHERE",
            "-Dzookeeper.log.threshold=x",
            "-Dzookeeper.log.maxfilesize=x",
            "-Dzookeeper.log.maxbackupindex=99",
        ];
        let found = of(&[], &wrong, true);
        assert_eq!((found.appenders.len(), found.warnings.len()), (1, 5), "{found:?}");
    }
}
