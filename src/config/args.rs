//! The command line, and the one place where configuration files are read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::dynamic::NEXT;
use super::parse::{self, DEFAULT_CONFIG, Dynamic, Source};
use super::{Config, ConfigError, Environment, Problem, SettingPlace, Warning, parse_properties};

/// What the command line asks for.
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
            Self::Positional(_) => f.write_str("the arguments"),
            Self::Defaults => f.write_str("built-in defaults"),
        }
    }
}

/// Sorts the arguments that follow the program's name.
///
/// Flags `-Dkey=value` may stand anywhere. Without a file, the one that `zkServer.sh` would take
/// from `ZOOCFGDIR` and `ZOOCFG` is taken if either is set.
///
/// # Errors
/// One [`Problem`] when there are more than four arguments.
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
        2..=4 => Settings::Positional(rest),
        count => {
            let text =
                format!("{count} arguments; give a file, or port dataDir tickTime maxClientCnxns");
            return Err(Problem { place: SettingPlace::Argument, text }.into());
        }
    };
    Ok(Launch { settings, flags })
}

/// Reads the files that `launch` names, and checks what they say.
///
/// # Errors
/// A file that cannot be read, or every [`Problem`] in it.
pub fn load(launch: &Launch, env: &Environment) -> Result<Config, ConfigError> {
    let (config, problems, _) = load_all(launch, env);
    config.ok_or(ConfigError { problems })
}

/// As [`load`]; warnings come along even where there are problems.
pub(super) fn load_all(
    launch: &Launch,
    env: &Environment,
) -> (Option<Config>, Vec<Problem>, Vec<Warning>) {
    if let Settings::Positional(arguments) = &launch.settings {
        return parse::positional_all(arguments, env, &launch.flags);
    }
    let files = match Files::read(&launch.settings) {
        Ok(files) => files,
        Err(problem) => return (None, vec![problem], vec![]),
    };
    let source = Source { name: &files.name, text: &files.text, my_id: files.my_id.as_deref() };
    let dynamic = files.dynamic.as_ref().map(|(name, text)| Dynamic {
        name,
        text: text.as_deref().map_err(Clone::clone),
        next: files.next.as_ref().map(|(name, text)| (name.as_str(), text.as_slice())),
    });
    let mut all = parse::parse_all(source, dynamic, env, &launch.flags);
    if let (Some(Config { ensemble: Some(ensemble), .. }), Settings::File(path)) =
        (&mut all.0, &launch.settings)
    {
        ensemble.config_file.clone_from(path); // Its name may be no UTF-8.
    }
    all
}

/// What there is to parse, read from the disk.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub name: String,
    pub text: Vec<u8>,
    /// First line of `myid`, if there is one.
    pub my_id: Option<String>,
    /// Name of the dynamic file, and its bytes or why there are none.
    pub dynamic: Option<(String, Result<Vec<u8>, String>)>,
    /// Name and bytes of the file that holds a proposed view.
    pub next: Option<(String, Vec<u8>)>,
}

impl Files {
    /// Reads what `settings` names; nothing for arguments.
    pub fn read(settings: &Settings) -> Result<Self, Problem> {
        let name = settings.to_string();
        let text = match settings {
            Settings::Positional(_) => return Ok(Self::default()),
            Settings::Defaults => DEFAULT_CONFIG.into(),
            Settings::File(path) => fs::read(path).map_err(|error| unreadable(&name, &error))?,
        };
        // A text that cannot be parsed is reported by whoever parses it.
        let entries = parse_properties(&text).unwrap_or_default();
        let value = |key: &str| entries.get(key).map(|entry| entry.value.trim().to_owned());
        let my_id = value("dataDir").map_or(Ok(None), |dir| read_my_id(&dir))?;
        let dynamic = value("dynamicConfigFile")
            .map(|name| (fs::read(&name).map_err(|error| error.to_string()), name))
            .map(|(text, name)| (name, text));
        // One that cannot be read is as good as none, in Java as well.
        let next = dynamic.as_ref().and_then(|_| {
            let next = format!("{name}{NEXT}");
            fs::read(&next).ok().map(|text| (next, text))
        });
        Ok(Self { name, text, my_id, dynamic, next })
    }
}

/// First line of `myid` in that directory; `None` if there is no such file.
fn read_my_id(data_dir: &str) -> Result<Option<String>, Problem> {
    let path = Path::new(data_dir).join("myid");
    match fs::read(&path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            Ok(Some(text.lines().next().unwrap_or_default().to_owned()))
        }
        // A dataDir that is no directory is found out when it is used.
        Err(error)
            if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) =>
        {
            Ok(None)
        }
        Err(error) => Err(unreadable(&path.display().to_string(), &error)),
    }
}

fn unreadable(name: &str, error: &io::Error) -> Problem {
    let text = format!("read file: {error}; name a file that this user may read");
    Problem { place: SettingPlace::File(name.to_owned()), text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(args: &[&str], env: &[(&str, &str)]) -> Settings {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        let env = env.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        parse_args(&args, &env).unwrap().settings
    }

    // rows: C-07
    #[test]
    fn takes_every_form_java_takes() {
        assert_eq!(settings(&["a.cfg"], &[]), Settings::File("a.cfg".into()));
        assert_eq!(settings(&["start-foreground", "a.cfg"], &[]), Settings::File("a.cfg".into()));
        assert_eq!(
            settings(&["2181", "-Dx=y", "/d"], &[]),
            Settings::Positional(vec!["2181".into(), "/d".into()])
        );
        assert_eq!(settings(&["start-foreground"], &[]), Settings::Defaults);
        let file = Settings::File("/conf/zoo.cfg".into());
        assert_eq!(settings(&[], &[("ZOOCFGDIR", "/conf")]), file);
        let five: Vec<String> = ["1", "2", "3", "4", "5"].map(str::to_owned).into();
        assert!(parse_args(&five, &Environment::new()).is_err());
    }

    // rows: D-01
    #[test]
    fn reads_the_file_and_myid() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("zoo.cfg");
        let launch = Launch { settings: Settings::File(file.clone()), flags: vec![] };
        let error = load(&launch, &Environment::new()).unwrap_err().to_string();
        assert!(error.contains("zoo.cfg: read file"), "{error}");

        let data = dir.path().join("data");
        fs::create_dir(&data).unwrap();
        fs::write(data.join("myid"), "3\n").unwrap();
        let text = format!("dataDir={}\nserver.3=localhost:1:2;2189\n", data.display());
        fs::write(&file, text).unwrap();
        assert_eq!(load(&launch, &Environment::new()).unwrap().client_port, 2189);
    }

    // rows: C-06 C-31
    #[test]
    fn servers_may_stand_in_a_dynamic_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let launch = Launch { settings: Settings::File(path("zoo.cfg")), flags: vec![] };
        let data = dir.path().display();
        let fixed = format!("dataDir={data}\ndynamicConfigFile={data}/zoo.dyn\n");
        fs::write(path("zoo.cfg"), &fixed).unwrap();
        fs::write(path("myid"), "3\n").unwrap();
        let loaded = || load(&launch, &Environment::new()).map_err(|error| error.to_string());
        let error = loaded().unwrap_err();
        assert!(error.contains("zoo.cfg:2: dynamicConfigFile=") && error.contains("No such file"));

        fs::write(path("zoo.dyn"), "server.3=localhost:1:2;2189\n").unwrap();
        assert_eq!(loaded().unwrap().client_port, 2189);
        fs::write(path("zoo.dyn"), "server.3=a:1:2;2189\nserver.4=b:1:2\n").unwrap();
        let error = loaded().unwrap_err();
        assert!(error.contains("zoo.dyn:1: initLimit is not set"), "{error}");
        fs::write(path("zoo.dyn"), "server.3=a:1:2;2189\ntickTime=3\nversion=1").unwrap();
        let error = loaded().unwrap_err();
        assert!(error.contains("zoo.dyn:2: tickTime must not stand in a dynamic file"), "{error}");
        assert!(error.contains("zoo.dyn:3: version must not"), "{error}");
        fs::write(path("zoo.cfg"), format!("{fixed}server.3=a:1:2;2189")).unwrap();
        let error = loaded().unwrap_err();
        assert!(error.contains("zoo.cfg:3: server.3 stands beside dynamicConfigFile"), "{error}");
    }

    // rows: D-09 D-11 C-31
    #[test]
    fn an_ensemble_knows_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let launch = Launch { settings: Settings::File(path("zoo.cfg")), flags: vec![] };
        let loaded = || load(&launch, &Environment::new()).map_err(|error| error.to_string());
        let (data, dynamic) = (dir.path().display(), path("zoo.cfg.dynamic.1f"));
        let fixed = format!("dataDir={data}\nclientPort=2181\ninitLimit=5\nsyncLimit=2\n");
        let servers = "server.3=a:1:2\nserver.4=b:1:2\n";
        fs::write(path("myid"), "3\n").unwrap();
        fs::write(path("zoo.cfg.dynamic.next"), "server.3=a:1:2\nversion=20").unwrap();

        fs::write(path("zoo.cfg"), format!("{fixed}{servers}")).unwrap();
        let ensemble = loaded().unwrap().ensemble.unwrap();
        assert_eq!((ensemble.config_file, ensemble.dynamic_file), (path("zoo.cfg"), None));
        assert_eq!((ensemble.view.version, ensemble.last_seen), (0, None));

        // As a reconfiguration would make it.
        fs::write(&dynamic, servers).unwrap();
        let text = fs::read(path("zoo.cfg")).unwrap();
        let name = dynamic.to_str().unwrap();
        let text = crate::config::dynamic::static_naming(&text, name, false).unwrap();
        fs::write(path("zoo.cfg"), text).unwrap();
        let ensemble = loaded().unwrap().ensemble.unwrap();
        assert_eq!((ensemble.dynamic_file, ensemble.view.version), (Some(dynamic), 0x1f));
        assert_eq!(ensemble.last_seen.unwrap().version, 0x20);
        // What names nobody proposes nothing.
        for text in ["", "\n", "no such thing"] {
            fs::write(path("zoo.cfg.dynamic.next"), text).unwrap();
            let config = loaded().unwrap();
            assert_eq!(config.ensemble.unwrap().last_seen, None);
            let warned = config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>();
            let wanted = "zoo.cfg.dynamic.next: names no server; nothing was proposed by it";
            assert!(warned.iter().any(|line| line.ends_with(wanted)), "{warned:?}");
        }
        fs::write(path("zoo.cfg.dynamic.next"), "server.3=a").unwrap();
        let error = loaded().unwrap_err();
        assert!(
            error.contains("zoo.cfg.dynamic.next: server.3=a is not host:port:port"),
            "{error}"
        );
    }
}
