//! The command line, and the one place where configuration files are read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{
    Config, ConfigError, DEFAULT_CONFIG, Environment, Place, Problem, Source, parse,
    parse_positional, parse_properties,
};

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
            let text = format!("{count} arguments; at most port dataDir tickTime maxClientCnxns");
            return Err(Problem { place: Place::Argument, text }.into());
        }
    };
    Ok(Launch { settings, flags })
}

/// Reads the files that `launch` names, and checks what they say.
///
/// # Errors
/// A file that cannot be read, or every [`Problem`] in it.
pub fn load(launch: &Launch, env: &Environment) -> Result<Config, ConfigError> {
    let (name, text) = match &launch.settings {
        Settings::Positional(arguments) => {
            return parse_positional(arguments, env, &launch.flags);
        }
        Settings::Defaults => ("embedded defaults".to_owned(), DEFAULT_CONFIG.into()),
        Settings::File(path) => {
            let name = path.display().to_string();
            let text = fs::read(path).map_err(|error| unreadable(&name, &error))?;
            (name, text)
        }
    };
    let my_id = read_my_id(&text)?;
    parse(Source { name: &name, text: &text, my_id: my_id.as_deref() }, env, &launch.flags)
}

/// First line of `myid` in the `dataDir` that `text` names; `None` if there is no such file.
fn read_my_id(text: &[u8]) -> Result<Option<String>, ConfigError> {
    // A text that cannot be parsed is reported by `parse`.
    let entries = parse_properties(text).unwrap_or_default();
    let Some(data_dir) = entries.get("dataDir") else { return Ok(None) };
    let path = Path::new(data_dir.value.trim()).join("myid");
    match fs::read(&path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            Ok(Some(text.lines().next().unwrap_or_default().to_owned()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(&path.display().to_string(), &error)),
    }
}

fn unreadable(name: &str, error: &io::Error) -> ConfigError {
    Problem { place: Place::File(name.to_owned()), text: format!("read file: {error}") }.into()
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
}
