//! `oxkeeper config check`: the effective value of each setting, and every problem of a configuration.

use super::config_check_stores::{self as stores, Stores};
use super::problem_groups;
use crate::config::{self, Check, FileRights, Problem, SettingPlace, Understood, Warning};
use crate::model::{Member, Role};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

/// Options of `config check`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Show settings that are not set, with their defaults, too.
    #[arg(long)]
    pub all: bool,
    /// The arguments the server would be started with: a zoo.cfg, or a client port and a data directory, and -Dkey=value flags.
    #[arg(allow_hyphen_values = true, value_hint = clap::ValueHint::AnyPath)]
    pub arguments: Vec<String>,
}

/// Resolves hosts: an unknown host to listen on for clients is a problem that parsing alone does not find; an unknown host of
/// a member is a warning, since it may be known later, or on the server's machine. Other problems of the file keep no host from
/// being looked up.
///
/// * `resolve`: fails if the host is unknown.
pub fn look_up<T>(check: &mut Check, resolve: impl Fn(&str) -> io::Result<T>) {
    for (key, place, member) in members(check) {
        for host in member.addresses.iter().map(|address| &address.host) {
            let Err(error) = resolve(host) else { continue };
            let text = format!(
                "{key}: can't resolve {host}: {error}; correct it, or the resolver of this machine"
            );
            check.warnings.push(Warning::new(place.clone(), text));
        }
    }
    let Some((host, place)) = &check.client_host else { return };
    let Err(error) = resolve(host) else { return };
    for setting in &mut check.settings {
        if setting.place.as_ref() == Some(place) {
            setting.state = "wrong";
        }
    }
    let text = format!("can't resolve {host}: {error}; name a host or address of this machine");
    check.problems.push(Problem { place: place.clone(), text });
}

/// The `server.N` lines that can be read, with their keys and places; none of a standalone server.
fn members(check: &Check) -> Vec<(String, SettingPlace, Member)> {
    let lines = check.settings.iter().filter_map(|setting| {
        let member = Member::parse(&setting.key, &setting.value).ok()?;
        Some((setting.key.clone(), setting.place.clone()?, member))
    });
    let lines: Vec<_> = lines.collect();
    let is_ensemble = check.ensemble.is_some() || lines.len() > 1;
    lines.into_iter().filter(|_| is_ensemble).collect()
}

/// Adds a risk for each file with keys or passwords that others can read, and one if root looks: root may read every file.
///
/// * `rights_of`: `None` if there is no such file.
pub fn look_at_files(check: &mut Check, rights_of: impl Fn(&Path) -> Option<FileRights>) {
    let is_root =
        |path: &PathBuf| rights_of(path).is_some_and(|rights| rights.user == config::ROOT);
    if check.secret_files.iter().any(|(_, path)| is_root(path)) {
        let text = "this check ran as root, who may read every file; run it as the server's user";
        check.risks.push(text.to_owned());
    }
    let exposed = check
        .secret_files
        .iter()
        .filter_map(|(setting, path)| config::exposed(setting, path, rights_of(path)?));
    check.risks.extend(exposed.collect::<Vec<_>>());
}

/// Adds why SASL can't work, which the start finds too: a keytab that can't be read, or has no key of the principal.
pub fn look_at_logins(check: &mut Check, reason: Option<String>) {
    let Some(text) = reason else { return };
    let flag =
        check.settings.iter_mut().find(|s| s.key.ends_with("java.security.auth.login.config"));
    let place = flag.and_then(|setting| {
        setting.state = "wrong";
        setting.place.clone()
    });
    let place = place.unwrap_or_else(|| SettingPlace::File(check.source.clone()));
    check.problems.push(Problem { place, text });
}

/// Reads the stores, and renders the result.
pub fn render(check: &mut Check, options: &Options) -> String {
    let stores = stores::look_at(check);
    match options.json {
        true => as_json(check, &stores),
        false => as_text(check, &stores, options.all),
    }
}

/// A table of the settings, the ensemble and the stores; then risks, warnings and problems, and the verdict last, where it is
/// seen.
fn as_text(check: &Check, stores: &[Stores], all: bool) -> String {
    let mut text = String::new();
    put_settings(&mut text, check, all);
    if let Some(ensemble) = &check.ensemble {
        let role = match ensemble.role() {
            Role::Participant => "participant",
            Role::Observer => "observer",
        };
        _ = writeln!(text, "{role} {} of an ensemble:", ensemble.my_id);
        ensemble.view.to_string().lines().for_each(|line| _ = writeln!(text, "  {line}"));
        text.push('\n');
    }
    if let Some(why) = alone(check) {
        _ = writeln!(text, "standalone server: {why}\n");
    }
    stores::put_text(&mut text, stores);
    let lines = |all: &[Warning]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    let problems = problem_groups::lines(&check.problems);
    for (noun, count, lines) in [
        ("risk", check.risks.len(), &check.risks),
        ("warning", check.warnings.len(), &lines(&check.warnings)),
        ("problem", check.problems.len(), &problems),
    ] {
        if !lines.is_empty() {
            _ = writeln!(text, "{}:", counted(count, noun));
            lines.iter().for_each(|line| _ = writeln!(text, "  {line}"));
            text.push('\n');
        }
    }
    let verdict = match problems.first() {
        None if stores::are_faulty(stores) => {
            "no problems in the file, but see the warnings of its certificates".to_owned()
        }
        None if !check.doubts.is_empty() => {
            let mut about = check.doubts.clone();
            about.sort_unstable_by(|a, b| b.cmp(a));
            about.dedup();
            let count = counted(check.doubts.len(), "warning");
            format!("no problems in the file, {count} about its {}", about.join(" and "))
        }
        None => "no problems in the file".to_owned(),
        Some(first) => {
            let count = counted(check.problems.len(), "problem");
            // How they are used is known only then.
            let is_store = |setting: &Understood| {
                setting.place.is_some() && setting.key.ends_with("Store.location")
            };
            let has_stores = check.settings.iter().any(is_store);
            let later = if has_stores && stores.is_empty() {
                " (what is in key stores and trust stores is checked once these are mended)"
            } else {
                ""
            };
            let more = if check.problems.len() > 1 { "; the first" } else { "" };
            format!("{count}, the server refuses to start with it{later}{more}: {first}")
        }
    };
    _ = writeln!(text, "{}: {verdict}", check.source);
    text
}

/// Why this server is no member of an ensemble; `None`: it is one, or a problem keeps that from being known.
fn alone(check: &Check) -> Option<&'static str> {
    let has = |start: &str| check.settings.iter().any(|setting| setting.key.starts_with(start));
    let is_known = check.problems.is_empty() || !has("server.") && !has("dynamicConfigFile");
    let why = if has("server.") { "one server.N line" } else { "no server.N line" };
    Some(why).filter(|_| check.ensemble.is_none() && is_known && !check.settings.is_empty())
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// * `all`: with those that are not set.
fn put_settings(text: &mut String, check: &Check, all: bool) {
    let (shown, hidden): (Vec<&Understood>, Vec<&Understood>) =
        check.settings.iter().partition(|setting| all || setting.place.is_some());
    let rows = shown.into_iter().map(|setting| {
        let from = place(setting, &check.source);
        [
            setting.key.clone(),
            setting.value.clone(),
            from,
            setting.state.to_owned(),
            setting.effect.clone(),
        ]
    });
    let head = ["KEY", "VALUE", "FROM", "STATE", "EFFECT"].map(str::to_owned);
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths = [0, 1, 2, 3].map(|column| width(column).unwrap_or(0));
    if 1 < rows.len() {
        for row in &rows {
            for (cell, width) in row.iter().zip(widths) {
                _ = write!(text, "{cell:width$}  "); // Writing to a string can't fail.
            }
            *text += &row[4];
            text.push('\n');
        }
        text.push('\n');
    }
    if !hidden.is_empty() {
        let count = counted(hidden.len(), "setting");
        _ = writeln!(text, "{count} more, which have their defaults: --all shows them\n");
    }
}

/// Where a setting was made: the line alone if it is in the file that is checked.
fn place(setting: &Understood, source: &str) -> String {
    match &setting.place {
        None => "default".to_owned(),
        Some(SettingPlace::Line { file, line }) if file == source => format!("line {line}"),
        Some(place) => place.to_string(),
    }
}

fn as_json(check: &Check, stores: &[Stores]) -> String {
    let settings: Vec<_> = check
        .settings
        .iter()
        .map(|setting| {
            serde_json::json!({
                "key": setting.key,
                "value": setting.value,
                "from": setting.place.as_ref().map(ToString::to_string),
                "state": setting.state,
                "effect": setting.effect,
            })
        })
        .collect();
    let entry = |place: &SettingPlace, text: &str| serde_json::json!({"place": place.to_string(), "text": text});
    let whole = serde_json::json!({
        "source": check.source,
        "settings": settings,
        "problems": check.problems.iter().map(|p| entry(&p.place, &p.text)).collect::<Vec<_>>(),
        "ensemble": check.ensemble.as_ref().map(|ensemble| {
            serde_json::json!({"myId": ensemble.my_id.0, "view": ensemble.view.to_string()})
        }),
        "risks": check.risks,
        "stores": stores::as_json(stores),
        "warnings": check.warnings.iter().map(|w| entry(&w.place, &w.text)).collect::<Vec<_>>(),
    });
    format!("{whole:#}\n")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::config::{Environment, Launch, Settings};

    const TABLE: Options = Options { json: false, all: false, arguments: Vec::new() };
    const ALL: Options = Options { json: false, all: true, arguments: Vec::new() };
    const JSON: Options = Options { json: true, all: false, arguments: Vec::new() };

    pub fn table(check: &mut Check) -> String {
        render(check, &TABLE)
    }

    pub fn checked(text: &str, flags: &[&str]) -> Check {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("zoo.cfg");
        std::fs::write(&file, text).unwrap();
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        let launch = Launch { settings: Settings::File(file.clone()), flags };
        let env =
            Environment::from([("SERVER_JVMFLAGS".into(), "-Xmx1g -Dzookeeper.x.pass=s3".into())]);
        let check = config::check(&launch, &env);
        // The temporary directory has another name in each run.
        let name = file.display().to_string();
        let place = |place: SettingPlace| match place {
            SettingPlace::Line { file, line } if file == name => {
                SettingPlace::Line { file: "zoo.cfg".into(), line }
            }
            SettingPlace::File(file) if file == name => SettingPlace::File("zoo.cfg".into()),
            other => other,
        };
        let settings = check.settings.into_iter().map(|s| Understood {
            effect: s.effect.replace(&name, "zoo.cfg"),
            place: s.place.map(place),
            ..s
        });
        let problems =
            check.problems.into_iter().map(|p| config::Problem { place: place(p.place), ..p });
        let warnings =
            check.warnings.into_iter().map(|w| config::Warning { place: place(w.place), ..w });
        Check {
            source: "zoo.cfg".into(),
            settings: settings.collect(),
            problems: problems.collect(),
            warnings: warnings.collect(),
            risks: check.risks,
            secret_files: check.secret_files,
            folders: check.folders,
            makes_folders: check.makes_folders,
            doubts: check.doubts,
            ensemble: check.ensemble,
            client_tls: check.client_tls,
            quorum_tls: check.quorum_tls,
            http_tls: check.http_tls,
            client_host: check.client_host.map(|(host, its)| (host, place(its))),
        }
    }

    #[test]
    fn every_setting_and_every_problem_is_shown() {
        let text = "# ours\ntickTime=0\ndataDir=/data\nclientPort=2181\nclientPort=2182\ninitLimit=10\n\
            sslQuorum=false\nsecureClientPort=2281\nsnapCount=5\ntickTme=7\n";
        let check = checked(text, &["-Dzookeeper.snapCount=9", "-Djute.maxbuffer=4194304"]);
        let expected = "\
KEY                    VALUE                                  FROM                         STATE       EFFECT
tickTime               0                                      line 2                       wrong       unit of time, ms; sessions expire on its multiples
dataDir                /data                                  line 3                       works       directory of snapshots; the files are in its version-2
clientPort             2182                                   line 5                       works       TCP port for clients; 0: any free port
initLimit              10                                     line 6                       no effect   only an ensemble uses this
sslQuorum              false                                  line 7                       works       same as the default
secureClientPort       2281                                   line 8                       wrong       TCP port for clients with TLS; 0: any free port; with it clientPort may be absent
snapCount              5                                      line 9                       works       transactions between snapshots, randomised between half and all of this; at least 2
tickTme                7                                      line 10                      unknown     unknown setting, ignored
-Djute.maxbuffer       4194304                                -D flag in the command line  works       largest frame a client may send, bytes
-Dzookeeper.snapCount  9                                      -D flag in the command line  overridden  set by zoo.cfg:9
-Dzookeeper.x.pass     (not shown)                            -D flag in SERVER_JVMFLAGS   unknown     unknown setting, ignored
SERVER_JVMFLAGS        -Xmx1g -Dzookeeper.x.pass=(not shown)  environment                  works       its -D flags are read

standalone server: no server.N line

5 warnings:
  zoo.cfg:4: clientPort is set again in line 5, which counts; remove one of them
  zoo.cfg:6: initLimit=10: no effect; only an ensemble uses this; remove it
  zoo.cfg:10: tickTme=7: unknown setting, ignored; is it tickTime?
  zoo.cfg: no server.N line, so this server is standalone although it has initLimit; for an ensemble list all its servers
  -D flag in SERVER_JVMFLAGS: -Dzookeeper.x.pass=(not shown): unknown setting, ignored; correct or remove it

3 problems:
  zoo.cfg:2: tickTime=0 is not within 1 and 2147483647; correct it
  zoo.cfg:8: TLS needs a key and a certificate; set ssl.keyStore.location to their store
  zoo.cfg:8: clients are asked for certificates (ssl.clientAuth); set ssl.trustStore.location to those that are trusted, or ssl.clientAuth=none

zoo.cfg: 3 problems, the server refuses to start with it; the first: zoo.cfg:2: tickTime=0 is not within 1 and 2147483647; correct it
";
        let table = render(&mut check.clone(), &TABLE);
        assert_eq!(table, expected);
    }

    #[test]
    fn settings_of_a_member_with_a_wrong_line_keep_what_they_are_for() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("myid"), "2\n").unwrap();
        let effect_of = |lines: &str, key: &str| {
            let data = dir.path().display();
            let text = format!("dataDir={data}\nclientPort=2181\ninitLimit=10\n{lines}");
            let check = checked(&text, &[]);
            let found = check.settings.into_iter().find(|setting| setting.key == key).unwrap();
            (found.state, found.effect)
        };
        let lines = "syncLimit=5\nobserverMasterPort=80000\nserver.1=a:1:2\nserver.2=b:1:2\n";
        let (state, effect) = effect_of(lines, "observerMasterPort");
        assert!(state == "wrong" && effect.starts_with("port where followers"), "{effect}");
        let (state, effect) = effect_of("server1=a:1:2\nserver2=b:1:2\n", "initLimit");
        let expected = "only an ensemble uses this, and server1 is no server.N line";
        assert_eq!((state, effect.as_str()), ("no effect", expected));
    }

    #[test]
    fn check_of_a_member_shows_its_ensemble_and_then_the_warnings() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("myid"), "2\n").unwrap();
        let text = format!(
            "dataDir={}\nclientPort=2181\ninitLimit=10\nsyncLimit=5\npeerType=observer\n\
             server.1=a:2888:3888\nserver.2=b:2888:3888:observer\nserver.3=c:2888:3888\n\
             server.4=[fd::1]:2888:3888;2181\nobserver.reconnectDelayMs=9\nenableEagerACLCheck=true\n\
             observerMaster.sizeLimit=9\n",
            dir.path().display()
        );
        let check = checked(&text, &["-Dzookeeper.cnxTimeout=700"]);
        let table = render(&mut check.clone(), &TABLE);
        let expected = "\
observer 2 of an ensemble:
  server.1=a:2888:3888:participant
  server.2=b:2888:3888:observer
  server.3=c:2888:3888:participant
  server.4=[fd:0:0:0:0:0:0:1]:2888:3888:participant;0.0.0.0:2181
  version=0

1 risk:
  autopurge.purgeInterval is 0, so old snapshots and logs are never removed; set it to hours, such as 24, or run oxkeeper purge

2 warnings:
  zoo.cfg:12: observerMaster.sizeLimit=9: no effect; observers of a follower are synchronised like any learner: from the commitLogCount last transactions, from the log, or by SNAP; remove it
  -D flag in SERVER_JVMFLAGS: -Dzookeeper.x.pass=(not shown): unknown setting, ignored; correct or remove it

zoo.cfg: no problems in the file
";
        let at = table.find("observer 2 of").unwrap_or_else(|| panic!("{table}"));
        assert_eq!(&table[at..], expected);
        let state = |key: &str| check.settings.iter().find(|s| s.key == key).unwrap().state;
        for key in ["initLimit", "peerType", "-Dzookeeper.cnxTimeout", "enableEagerACLCheck"] {
            assert_eq!(state(key), "works", "{key}");
        }
        assert_eq!(state("server.2"), "ensemble");
        assert_eq!(state("observer.reconnectDelayMs"), "works");
        assert_eq!(state("observerMaster.sizeLimit"), "no effect");
        let json: serde_json::Value =
            serde_json::from_str(&render(&mut check.clone(), &JSON)).unwrap();
        assert_eq!(json["ensemble"]["myId"], 2);
    }

    #[test]
    fn files_that_others_can_read_are_risks() {
        let mut check = checked("dataDir=/data\nclientPort=2181\n", &[]);
        check.secret_files.push(("keyTab".to_owned(), "/k".into()));
        check.risks.push("all doors are open; shut them".to_owned());
        let of = |user| move |_: &Path| Some(FileRights { mode: 0o644, owner: 7, user });
        look_at_files(&mut check, of(7));
        let table = render(&mut check, &TABLE);
        let expected = "3 risks:\n  autopurge.purgeInterval is 0, so old snapshots and logs are never removed; set it to hours, such as 24, or run oxkeeper purge\n  all doors are open; shut them\n  keyTab=/k holds secrets, and everybody can read it";
        assert!(table.contains(expected), "{table}");
        let json: serde_json::Value = serde_json::from_str(&render(&mut check, &JSON)).unwrap();
        assert_eq!(json["risks"][1], "all doors are open; shut them");
        look_at_files(&mut check, of(config::ROOT));
        assert!(check.risks.iter().any(|risk| risk.contains("ran as root")), "{:?}", check.risks);
    }

    #[test]
    fn missing_store_is_reported_beside_another_problem() {
        let text = "dataDir=/d\nclientPort=2181\nsecureClientPort=2281\nssl.clientAuth=some\n\
            ssl.keyStore.location=/nowhere/k.jks\nssl.trustStore.location=/nowhere/t.jks\n";
        let shown = render(&mut checked(text, &[]), &TABLE);
        for part in [
            "\n  zoo.cfg, lines 5 to 6: ssl.keyStore.location=/nowhere/k.jks, ssl.trustStore.location=/nowhere/t.jks: No such file",
            "(what is in key stores and trust stores is checked once these are mended); the first: zoo.cfg:4: ",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    // rows: C-15
    #[test]
    fn settings_of_an_ensemble_work_despite_a_problem_elsewhere() {
        let servers = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n";
        let text = format!("dataDir=/d\nclientPort=x\ninitLimit=5\nsyncLimit=2\n{servers}");
        let shown = render(&mut checked(&text, &[]), &TABLE);
        let line = shown.lines().find(|line| line.contains("initLimit")).unwrap();
        assert!(line.contains("works"), "{shown}");
    }

    #[test]
    fn client_host_that_does_not_resolve_is_a_problem() {
        let nobody = |_: &str| -> io::Result<()> { Err(io::Error::other("nobody knows it")) };
        let known = |host: &str| match host {
            "here" => Ok(()),
            other => Err(io::Error::other(other.to_owned())),
        };
        let mut every = checked("dataDir=/data\nclientPort=2181\nclientPortAddress=[::]\n", &[]);
        look_up(&mut every, nobody);
        assert_eq!(every.problems, vec![]);
        let mut named = checked("clientPortAddress=here\ndataDir=/data\nclientPort=2181\n", &[]);
        look_up(&mut named, known);
        assert_eq!(named.problems, vec![]);
        look_up(&mut named, nobody);
        let table = render(&mut named.clone(), &TABLE);
        let problem = "zoo.cfg:1: can't resolve here: nobody knows it; name a host or address";
        assert!(table.contains(problem), "{table}");
        let verdict = format!("zoo.cfg: 1 problem, the server refuses to start with it: {problem}");
        assert!(table.contains(&verdict), "{table}");
        assert_eq!(named.settings[0].state, "wrong");

        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("myid"), "2\n").unwrap();
        let text = format!("dataDir={}\nserver.2=a:2888:3888;there:2181\n", dir.path().display());
        let mut line = checked(&text, &[]);
        look_up(&mut line, known);
        assert_eq!(
            line.problems[0].to_string(),
            "zoo.cfg:2: can't resolve there: there; name a host or address of this machine"
        );
        let text = text
            + "initLimit=5\nsyncLimit=2\nclientPort=2181\nserver.3=here:1:2\nserver.4=gone:1:2\n";
        let mut member = checked(&text, &[]);
        let before = member.warnings.len();
        look_up(&mut member, known);
        let warnings: Vec<String> =
            member.warnings[before..].iter().map(ToString::to_string).collect();
        let advice = "correct it, or the resolver of this machine";
        assert_eq!(
            warnings,
            [
                format!("zoo.cfg:2: server.2: can't resolve a: a; {advice}"),
                format!("zoo.cfg:7: server.4: can't resolve gone: gone; {advice}"),
            ]
        );
    }

    #[test]
    fn hosts_are_looked_up_despite_problems_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("myid"), "2\n").unwrap();
        let data = format!("dataDir={}\ninitLimit=5\nsyncLimit=2\n", dir.path().display());
        let found = |lines: &str| {
            let mut check = checked(&format!("{data}{lines}"), &[]);
            let (warnings, problems) = (check.warnings.len(), check.problems.len());
            assert!(problems > 0, "{lines}");
            look_up(&mut check, |host: &str| match host {
                "here" => Ok(()),
                _ => Err(io::Error::other("unknown")),
            });
            let warnings = check.warnings[warnings..].iter().map(ToString::to_string);
            let problems = check.problems[problems..].iter().map(ToString::to_string);
            warnings.chain(problems).collect::<Vec<_>>()
        };
        let member = |line: u8, key: &str, host: &str| {
            format!(
                "zoo.cfg:{line}: {key}: can't resolve {host}: unknown; correct it, or the resolver of this machine"
            )
        };
        let client = |line: u8, host: &str| {
            format!(
                "zoo.cfg:{line}: can't resolve {host}: unknown; name a host or address of this machine"
            )
        };
        // A line that is wrong itself has a problem already.
        let servers = "server.1=here:1:2\nserver.2=a:1:2\nserver.3=b:x:2\n";
        let all = found(&format!("tickTime=x\nclientPort=2181\nclientPortAddress=c\n{servers}"));
        assert_eq!(all, [member(8, "server.2", "a"), client(6, "c")]);
        let all = found("tickTime=x\nserver.1=d:1:2;here:2181\nserver.2=here:1:2;e:2181\n");
        assert_eq!(all, [member(5, "server.1", "d"), client(6, "e")]);
        let all = found("tickTime=x\nserver.2=a:1:2;here:2181\n");
        assert!(all.is_empty(), "the only server runs standalone: {all:?}");
    }

    #[test]
    fn file_without_problems_is_shown_with_its_defaults() {
        let check = checked("dataDir=/data\nclientPort=2181\n", &[]);
        let table = render(&mut check.clone(), &TABLE);
        assert!(table.ends_with("zoo.cfg: no problems in the file\n"), "{table}");
        assert!(table.contains(" more, which have their defaults: --all shows them"), "{table}");
        assert!(!table.contains("tickTime "), "{table}");
        let table = render(&mut check.clone(), &ALL);
        let tick = table.lines().find(|line| line.starts_with("tickTime ")).unwrap();
        assert!(tick.contains(" 3000 ") && tick.contains(" default "), "{tick}");
        assert!(!table.contains("s3"), "{table}");
        let json: serde_json::Value =
            serde_json::from_str(&render(&mut check.clone(), &JSON)).unwrap();
        assert_eq!(json["settings"][0]["from"], "zoo.cfg:1");
        assert_eq!(json["problems"], serde_json::json!([]));
    }
}
