//! The command line, and the one place where configuration files are read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::dynamic::NEXT;
use super::logins::{self, JaasFile};
use super::members::DataDirState;
use super::parse::{self, DEFAULT_CONFIG, Dynamic, ParseContext, Source};
use super::system_properties::SystemProperties;
use super::{
    Config, ConfigError, Environment, Problem, SettingPlace, Warning, parse_properties,
    script_flags,
};
use crate::model::Secret;

/// The parsed command line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Launch {
    /// Where the settings come from.
    pub settings: Settings,
    /// Arguments that begin with `-D`, as they came.
    pub flags: Vec<String>,
}

/// Where the settings come from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Settings {
    /// `FILE` or `start-foreground FILE`.
    File(PathBuf),
    /// `port dataDir [tickTime] [maxClientCnxns]`.
    Positional(Vec<String>),
    /// Nothing was named: [`DEFAULT_CONFIG`].
    Defaults,
}

impl std::fmt::Display for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Positional(_) => f.write_str("command line arguments"),
            Self::Defaults => f.write_str("built-in defaults"),
        }
    }
}

/// Parses the arguments that follow the program's name.
///
/// Flags `-Dkey=value` may stand anywhere. Without a file, the one that `zkServer.sh` would take
/// from `ZOOCFGDIR` and `ZOOCFG` is taken if either is set.
///
/// # Errors
/// One [`Problem`] when there are more than four arguments, or where a word stands that is no port.
///
/// Source: `QuorumPeerMain.initializeAndRun`, `ServerConfig.parse`, `bin/zkServer.sh` and
/// `bin/zkEnv.sh`, ZooKeeper 3.9.5.
pub fn parse_args(args: &[String], env: &Environment) -> Result<Launch, ConfigError> {
    let (flags, mut rest): (Vec<String>, Vec<String>) =
        args.iter().cloned().partition(|arg| arg.starts_with("-D"));
    if rest.first().is_some_and(|arg| arg == "start-foreground") {
        rest.remove(0);
    }
    let settings = match rest.len() {
        0 => match (env.get("ZOOCFGDIR"), env.get("ZOOCFG")) {
            (None, None) => Settings::Defaults,
            (dir, name) => {
                let dir = dir.map_or("conf", String::as_str);
                Settings::File(Path::new(dir).join(name.map_or("zoo.cfg", String::as_str)))
            }
        },
        1 => Settings::File(PathBuf::from(rest.remove(0))),
        2..=4 if is_word(&rest[0]) => return Err(no_command(&rest[0]).into()),
        2..=4 if let Some(option) = rest.iter().find(|arg| is_option(arg)) => {
            return Err(no_command(option).into());
        }
        2..=4 if rest[0].contains(['/', '.']) => {
            let text = format!(
                "{} is not a port; two words or more are a port and a data directory, and a file is given alone",
                rest[0]
            );
            return Err(Problem { place: SettingPlace::Argument, text }.into());
        }
        2..=4 => Settings::Positional(rest),
        count => {
            let text =
                format!("{count} arguments; give a file, or port dataDir tickTime maxClientCnxns");
            return Err(Problem { place: SettingPlace::Argument, text }.into());
        }
    };
    Ok(Launch { settings, flags })
}

/// Reads the files that `launch` names, and checks their settings.
///
/// # Errors
/// A file that cannot be read, or every [`Problem`] in it.
pub fn load(launch: &Launch, env: &Environment) -> Result<Config, ConfigError> {
    let (config, problems, _) = load_all(launch, env);
    config.ok_or(ConfigError { problems })
}

/// Gives the bytes of a file.
pub type ReadFile<'a> = dyn Fn(&Path) -> io::Result<Vec<u8>> + 'a;

pub(super) fn from_disk(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// As [`load`], from the files that `read` gives.
///
/// # Errors
/// As [`load`].
pub fn load_from(
    read: &ReadFile<'_>,
    launch: &Launch,
    env: &Environment,
) -> Result<Config, ConfigError> {
    let (config, problems, _) = load_checked(read, launch, env);
    config.ok_or(ConfigError { problems })
}

/// As [`load`], and returns the warnings even where there are problems.
pub(super) fn load_all(
    launch: &Launch,
    env: &Environment,
) -> (Option<Config>, Vec<Problem>, Vec<Warning>) {
    load_checked(&from_disk, launch, env)
}

fn load_checked(
    read: &ReadFile<'_>,
    launch: &Launch,
    env: &Environment,
) -> (Option<Config>, Vec<Problem>, Vec<Warning>) {
    let jaas = read_jaas(read, env, &launch.flags);
    let mut context = ParseContext::new(env, &launch.flags);
    context.jaas = jaas.as_ref();
    if let Settings::Positional(arguments) = &launch.settings {
        return parse::positional_all(arguments, context);
    }
    let files = match Files::read(read, &launch.settings) {
        Ok(files) => files,
        Err(problem) => return (None, vec![problem], vec![]),
    };
    context.data_dir = files.data_dir;
    let source = Source { name: &files.name, text: &files.text, my_id: files.my_id.as_deref() };
    let dynamic = files
        .dynamic
        .as_ref()
        .map(|(name, text)| Dynamic { name, text: text.as_deref().map_err(Clone::clone) });
    context.next = files.next.as_ref().map(|(name, text)| (name.as_str(), text.as_slice()));
    let mut all = parse::parse_all(source, dynamic, context);
    if let Settings::File(path) = &launch.settings {
        let system = SystemProperties::from_flags(env, &launch.flags);
        let lost = script_flags::warnings(read, path, env, &system);
        all.0.iter_mut().for_each(|config| config.warnings.extend(lost.clone()));
        all.2.extend(lost);
    }
    if let (Some(Config { ensemble: Some(ensemble), .. }), Settings::File(path)) =
        (&mut all.0, &launch.settings)
    {
        ensemble.config_file.clone_from(path); // Its name may not be UTF-8.
    }
    all
}

/// Reads the JAAS file, if a flag names one.
fn read_jaas(read: &ReadFile<'_>, env: &Environment, flags: &[String]) -> Option<JaasFile> {
    let system = SystemProperties::from_flags(env, flags);
    let name = &system.get(logins::FLAG)?.value;
    let path = logins::path(name, &|name| logins::property(env, &system, name));
    let shown = path.as_ref().map_or_else(|_| name.clone(), |path| path.display().to_string());
    let text = path.and_then(|path| read(&path).map_err(|error| error.to_string()));
    Some(JaasFile { name: shown, text: text.map(Secret::new) })
}

/// The texts to parse, read from the disk.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub name: String,
    pub text: Vec<u8>,
    /// First line of `myid`, if there is one.
    pub my_id: Option<String>,
    /// What is at the path `dataDir`, if there is no `myid`.
    pub data_dir: DataDirState,
    /// Name of the dynamic file, and its bytes or why there are none.
    pub dynamic: Option<(String, Result<Vec<u8>, String>)>,
    /// Name and bytes of the file that holds proposed views.
    pub next: Option<(String, Vec<u8>)>,
}

impl Files {
    /// Reads the files that `settings` names; none for arguments.
    pub fn read(read: &ReadFile<'_>, settings: &Settings) -> Result<Self, Problem> {
        let name = settings.to_string();
        let text = match settings {
            Settings::Positional(_) => return Ok(Self::default()),
            Settings::Defaults => DEFAULT_CONFIG.into(),
            Settings::File(path) => read(path).map_err(|error| unreadable(&name, &error))?,
        };
        // A text that cannot be parsed is reported by the parser.
        let entries = parse_properties(&text).unwrap_or_default();
        let value = |key: &str| entries.get(key).map(|entry| entry.value.trim().to_owned());
        let data_dir = value("dataDir");
        let my_id = data_dir.as_ref().map_or(Ok(None), |dir| read_my_id(read, dir));
        let line = || SettingPlace::Line { file: name.clone(), line: entries["dataDir"].line };
        let my_id = my_id.map_err(|text| text.in_place(line))?;
        let data_dir = data_dir.filter(|_| my_id.is_none());
        let data_dir = data_dir.map(|dir| state_of(read, &dir)).unwrap_or_default();
        let dynamic = value("dynamicConfigFile")
            .map(|name| (read(Path::new(&name)).map_err(|error| error.to_string()), name))
            .map(|(text, name)| (name, text));
        // A file that cannot be read counts as missing, as in Java.
        let next = format!("{name}{NEXT}");
        let next = match settings {
            Settings::File(_) => read(Path::new(&next)).ok().map(|text| (next, text)),
            _ => None,
        };
        Ok(Self { name, text, my_id, data_dir, dynamic, next })
    }
}

/// First line of `myid` in that directory; `None` if there is no such file.
fn read_my_id(read: &ReadFile<'_>, data_dir: &str) -> Result<Option<String>, NoMyId> {
    let path = Path::new(data_dir).join("myid");
    match read(&path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            Ok(Some(text.lines().next().unwrap_or_default().to_owned()))
        }
        // A dataDir that is no directory is reported when it is used.
        Err(error)
            if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) =>
        {
            Ok(None)
        }
        Err(error) if is(io::ErrorKind::PermissionDenied, read(Path::new(data_dir))) => {
            let text = format!(
                "dataDir={data_dir}: this user may not enter it ({error}); give it to this user, as by chown -R"
            );
            Err(NoMyId::Folder(text))
        }
        Err(error) => Err(NoMyId::File(unreadable(&path.display().to_string(), &error))),
    }
}

/// Why `myid` can't be read.
enum NoMyId {
    /// `dataDir` is no folder; the text says what it is.
    Folder(String),
    File(Problem),
}

impl NoMyId {
    fn in_place(self, place: impl FnOnce() -> SettingPlace) -> Problem {
        match self {
            Self::Folder(text) => Problem { place: place(), text },
            Self::File(problem) => problem,
        }
    }
}

/// What is at the path of a folder that has no `myid`.
fn state_of(read: &ReadFile<'_>, folder: &str) -> DataDirState {
    use io::ErrorKind::{NotADirectory, NotFound};
    match read(Path::new(folder)) {
        Ok(_) => DataDirState::File,
        Err(error) if [NotFound, NotADirectory].contains(&error.kind()) => DataDirState::Missing,
        Err(_) => DataDirState::There,
    }
}

fn is<T>(kind: io::ErrorKind, result: io::Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == kind)
}

/// Whether an argument looks like a command or an option: not like a port, and not like a path.
fn is_word(argument: &str) -> bool {
    argument.starts_with(|first: char| first == '-' || first.is_ascii_alphabetic())
        && !argument.contains(['/', '.'])
}

/// Whether an argument is an option, rather than a negative number.
fn is_option(argument: &str) -> bool {
    argument.starts_with('-') && argument.parse::<i64>().is_err()
}

fn no_command(word: &str) -> Problem {
    let text = if word.starts_with('-') {
        format!("{word}: unknown option; oxkeeper --help lists them")
    } else {
        format!(
            "{word} is not a command, and no file of this name can be read; oxkeeper --help lists the commands"
        )
    };
    Problem { place: SettingPlace::Argument, text }
}

fn unreadable(name: &str, error: &io::Error) -> Problem {
    if error.kind() == io::ErrorKind::NotFound && is_word(name) {
        return no_command(name);
    }
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => "give this user the right to read it",
        _ => "name a file that this user may read",
    };
    let text = format!("can't read file: {error}; {advice}");
    Problem { place: SettingPlace::File(name.to_owned()), text }
}
