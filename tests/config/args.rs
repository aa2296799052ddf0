//! The forms of the command line, and the files that are read for it.

use oxkeeper::config::{Config, Environment, Launch, Settings, dynamic, load, parse_args};
use oxkeeper::model::View;
use std::fs;
use std::path::Path;

fn settings(args: &[&str], env: &[(&str, &str)]) -> Settings {
    let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
    let env = env.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    parse_args(&args, &env).unwrap().settings
}

/// A start with a file alone.
fn launch(file: &Path) -> Launch {
    Launch { settings: Settings::File(file.to_owned()), flags: vec![] }
}

/// The configuration in a file, or its problems.
fn loaded_from(file: &Path) -> Result<Config, String> {
    load(&launch(file), &Environment::new()).map_err(|error| error.to_string())
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
fn word_that_is_no_port_and_an_unknown_option_are_named_as_such() {
    let error_of = |args: &[&str]| {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        parse_args(&args, &Environment::new()).unwrap_err().to_string()
    };
    assert!(error_of(&["conf/zoo.cfg", "--strict"]).contains("--strict: unknown option"));
    let extra = error_of(&["conf/zoo.cfg", "extra"]);
    assert!(extra.contains("conf/zoo.cfg is not a port"), "{extra}");
    assert!(extra.contains("a file is given alone"), "{extra}");
    let below_0 = settings(&["2181", "/d", "2000", "-1"], &[]);
    assert!(matches!(below_0, Settings::Positional(all) if all.len() == 4));
}

#[test]
fn missing_myid_is_named_with_its_path_and_whether_the_folder_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zoo.cfg");
    let launch = launch(&path);
    let error_of = |data: &std::path::Path| {
        let text = format!(
            "# ours\ndataDir={}\nclientPort=1\ninitLimit=5\nsyncLimit=2\nserver.1=a:1:2\nserver.2=b:1:2\n",
            data.display()
        );
        fs::write(&path, text).unwrap();
        load(&launch, &Environment::new()).unwrap_err().to_string()
    };
    let (there, nowhere) = (dir.path(), dir.path().join("nowhere"));
    let expected =
        format!("zoo.cfg:2: the file {} is missing; write", there.join("myid").display());
    assert!(error_of(there).contains(&expected), "{}", error_of(there));
    let folder = "/nowhere/myid is missing (its folder too: is a disk not mounted?); write";
    assert!(error_of(&nowhere).contains(folder), "{}", error_of(&nowhere));
    let below = path.join("data");
    let below = error_of(&below);
    assert!(below.contains("/zoo.cfg/data/myid is missing (its folder too"), "{below}");
    let expected = format!(
        "zoo.cfg:2: dataDir={} is a file and has to be a folder; correct the path, or move the file away",
        path.display()
    );
    let file = error_of(&path);
    assert!(file.ends_with(&expected) && !file.contains("myid"), "{file}");
}

// rows: D-01
#[test]
fn reads_the_file_and_myid() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zoo.cfg");
    let launch = launch(&file);
    let error = load(&launch, &Environment::new()).unwrap_err().to_string();
    assert!(error.contains("zoo.cfg: can't read file"), "{error}");

    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("myid"), "3\n").unwrap();
    let text = format!("dataDir={}\nserver.3=localhost:1:2;2189\n", data.display());
    fs::write(&file, text).unwrap();
    assert_eq!(load(&launch, &Environment::new()).unwrap().client_port, Some(2189));
}

// rows: C-06 C-31
#[test]
fn servers_may_stand_in_a_dynamic_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let data = dir.path().display();
    let fixed = format!("dataDir={data}\ndynamicConfigFile={data}/zoo.dyn\n");
    fs::write(path("zoo.cfg"), &fixed).unwrap();
    fs::write(path("myid"), "3\n").unwrap();
    let loaded = || loaded_from(&path("zoo.cfg"));
    let error = loaded().unwrap_err();
    assert!(error.contains("zoo.cfg:2: dynamicConfigFile=") && error.contains("No such file"));
    assert_eq!(error.lines().count(), 1, "what only follows from that is not told: {error}");
    fs::write(path("zoo.cfg"), format!("{fixed}initLimit=5\nsyncLimit=2\n")).unwrap();
    let check = oxkeeper::config::check(&launch(&path("zoo.cfg")), &Environment::new());
    assert_eq!(check.warnings, vec![], "the limits are used once the file can be read");
    fs::write(path("zoo.dyn"), "server.3=localhost:1;2189\nserver.4=b:1:2;2181\n").unwrap();
    let error = loaded().unwrap_err();
    assert!(error.starts_with(&format!("{data}/zoo.dyn:1: ")), "{error}");
    assert_eq!(error.lines().count(), 1, "the line that is wrong gives the client port: {error}");
    fs::write(path("zoo.cfg"), &fixed).unwrap();

    fs::write(path("zoo.dyn"), "server.3=localhost:1:2;2189\n").unwrap();
    assert_eq!(loaded().unwrap().client_port, Some(2189));
    fs::write(path("zoo.dyn"), "server.3=a:1:2;2189\nserver.4=b:1:2\n").unwrap();
    let error = loaded().unwrap_err();
    assert!(error.contains("zoo.dyn:1: initLimit is not set"), "{error}");
    fs::write(path("zoo.dyn"), "server.3=a:1:2;2189\ntickTime=3\nversion=1").unwrap();
    let error = loaded().unwrap_err();
    assert!(error.contains("zoo.dyn:2: tickTime must not stand in a dynamic file"), "{error}");
    assert!(error.contains("zoo.dyn:3: version must not"), "{error}");
    fs::write(path("zoo.cfg"), format!("{fixed}server.3=a:1:2;2189")).unwrap();
    let error = loaded().unwrap_err();
    assert!(error.contains("zoo.cfg:3: server.3 is set beside dynamicConfigFile"), "{error}");
}

// rows: D-09 D-11 C-31
#[test]
fn config_of_a_member_names_its_static_and_dynamic_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let loaded = || loaded_from(&path("zoo.cfg"));
    let (data, dynamic_file) = (dir.path().display(), path("zoo.cfg.dynamic.1f"));
    let fixed = format!("dataDir={data}\nclientPort=2181\ninitLimit=5\nsyncLimit=2\n");
    let servers = "server.3=a:1:2\nserver.4=b:1:2\n";
    fs::write(path("myid"), "3\n").unwrap();
    fs::write(path("zoo.cfg.dynamic.next"), "server.3=a:1:2\nversion=20").unwrap();

    fs::write(path("zoo.cfg"), format!("{fixed}{servers}")).unwrap();
    let ensemble = loaded().unwrap().ensemble.unwrap();
    assert_eq!((ensemble.config_file, ensemble.dynamic_file), (path("zoo.cfg"), None));
    assert_eq!((ensemble.view.version, ensemble.last_seen), (0, vec![]));

    // It has acknowledged its first proposed configuration, and was stopped before that came in force.
    let with_reconfig = format!("{fixed}reconfigEnabled=true\n");
    let listing = |servers: &str| fs::write(path("zoo.cfg"), format!("{with_reconfig}{servers}"));
    listing(servers).unwrap();
    let view = loaded().unwrap().ensemble.unwrap().view;
    let proposed = View::parse("server.3=a:1:2\nversion=20").unwrap();
    let text = dynamic::proposed(&[proposed], Some(&view));
    fs::write(path("zoo.cfg.dynamic.next"), text).unwrap();
    let config = loaded().unwrap();
    let ensemble = config.ensemble.unwrap();
    let versions: Vec<i64> = ensemble.last_seen.iter().map(|view| view.version).collect();
    assert_eq!((ensemble.dynamic_file, ensemble.view.version, versions), (None, 0, vec![0x20]));
    let warned = config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>();
    let wanted = "zoo.cfg.dynamic.next: this server has acknowledged this configuration";
    assert!(warned.iter().any(|line| line.contains(wanted)), "{warned:?}");
    // Its operator has written other lines since: they count together with the file only if there is a copy of the last configuration in force.
    let before_lines = || {
        let ensemble = loaded().unwrap().ensemble.unwrap();
        assert_eq!(ensemble.last_seen, []);
        ensemble.seen_before_lines.iter().map(|view| view.version).collect::<Vec<_>>()
    };
    listing("server.3=a:1:2\nserver.4=b:1:2\nserver.5=c:1:2\n").unwrap();
    assert_eq!(before_lines(), [0x20]);
    // Java does not say beside which lines it has written the file.
    listing(servers).unwrap();
    fs::write(path("zoo.cfg.dynamic.next"), "server.3=a:1:2\nversion=20").unwrap();
    assert_eq!(before_lines(), [0x20]);
    fs::write(path("zoo.cfg.dynamic.next"), "server.3=a").unwrap();
    assert_eq!(before_lines(), [0; 0]);
    fs::write(path("zoo.cfg.dynamic.next"), "server.3=a:1:2\nversion=20").unwrap();

    // As a reconfiguration would make it.
    fs::write(&dynamic_file, servers).unwrap();
    let text = fs::read(path("zoo.cfg")).unwrap();
    let name = dynamic_file.to_str().unwrap();
    let text = dynamic::static_naming(&text, name, false).unwrap();
    fs::write(path("zoo.cfg"), text).unwrap();
    let ensemble = loaded().unwrap().ensemble.unwrap();
    assert_eq!((ensemble.dynamic_file, ensemble.view.version), (Some(dynamic_file), 0x1f));
    assert_eq!(ensemble.last_seen[0].version, 0x20);
    // A configuration without members proposes nothing.
    for text in ["", "\n", "no such thing"] {
        fs::write(path("zoo.cfg.dynamic.next"), text).unwrap();
        let config = loaded().unwrap();
        assert_eq!(config.ensemble.unwrap().last_seen, []);
        let warned = config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>();
        let wanted = "zoo.cfg.dynamic.next: has no server.N line, so it is ignored; remove it";
        assert!(warned.iter().any(|line| line.ends_with(wanted)), "{warned:?}");
    }
    fs::write(path("zoo.cfg.dynamic.next"), "server.3=a").unwrap();
    let error = loaded().unwrap_err();
    assert!(error.contains("zoo.cfg.dynamic.next: server.3=a is not host:port:port"), "{error}");
}

// rows: D-09
#[test]
fn server_that_was_stopped_while_it_joined_has_its_line_in_the_proposed_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let loaded = || loaded_from(&path("zoo.cfg"));
    let (data, dynamic_file) = (dir.path().display(), path("zoo.cfg.dynamic.1f"));
    let limits = "initLimit=5\nsyncLimit=2\nreconfigEnabled=true";
    let text = format!("dataDir={data}\n{limits}\ndynamicConfigFile={}\n", dynamic_file.display());
    fs::write(path("zoo.cfg"), text).unwrap();
    fs::write(path("myid"), "3\n").unwrap();
    fs::write(&dynamic_file, "server.4=b:1:2;2181\nserver.5=c:1:2;2181\n").unwrap();
    let joined =
        |version: &str| format!("server.3=a:1:2;2181\nserver.4=b:1:2;2181\nversion={version}");
    fs::write(path("zoo.cfg.dynamic.next"), joined("20")).unwrap();
    let config = loaded().unwrap();
    let port = config.client_port;
    let ensemble = config.ensemble.unwrap();
    let own = ensemble.own().map(ToString::to_string);
    let line = "a:1:2:participant;0.0.0.0:2181".to_owned();
    assert_eq!((port, own, ensemble.view.members.len()), (Some(2181), Some(line), 2));
    let warned = config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>();
    let wanted = "server 3 has no line here, but one in a configuration that was proposed";
    assert!(warned.iter().any(|line| line.contains(wanted)), "{warned:?}");
    // A configuration that was in force since has taken it out.
    for older in ["1e", "1f"] {
        fs::write(path("zoo.cfg.dynamic.next"), joined(older)).unwrap();
        let error = loaded().unwrap_err();
        assert!(error.contains("which is not one of the servers 4, 5"), "{error}");
    }
    // Nor is it a standalone server if it was to join an ensemble of one.
    fs::write(&dynamic_file, "server.4=b:1:2;2181\n").unwrap();
    assert!(loaded().unwrap_err().contains("which is not one of the servers 4"));
    fs::write(path("zoo.cfg.dynamic.next"), joined("20")).unwrap();
    assert_eq!(loaded().unwrap().ensemble.unwrap().view.members.len(), 1);
    fs::write(path("myid"), "4\n").unwrap();
    fs::write(path("zoo.cfg.dynamic.next"), "").unwrap();
    assert!(loaded().unwrap().ensemble.is_none());
}
