//! What `oxkeeper config check` finds on the machine: the folders of data, and the addresses to listen on.

use crate::config::{Check, Problem, SettingPlace, Warning};
use crate::store::names;
use crate::store::{Disk as _, RealDisk, RecoverError};
use std::io;
use std::path::Path;

const FOLDERS: &str = "folders";
const ADDRESSES: &str = "addresses";
const ADVICE: &str =
    "give it to the server's user (chown -R); if this check does not run as that user, run it so";
/// Settings of an address to listen on that have a key of their own.
const LISTEN_KEYS: [&str; 3] =
    ["admin.serverAddress", "secureClientPortAddress", "metricsProvider.httpHost"];

/// What is at the path of a folder of data.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FolderState {
    Missing,
    File,
    /// This user may not write there.
    Closed,
    Writable,
}

/// What a folder of data makes of a start.
enum Finding {
    Fine,
    /// It depends on the user that starts the server.
    Doubt(String),
    /// The start is refused for every user.
    Problem(String),
}

/// Tries the folders of data. What the start would refuse for every user is a problem; what depends on the user is a warning.
pub fn look_at_folders(check: &mut Check, state_of: impl Fn(&Path) -> FolderState) {
    for (key, folder) in check.folders.clone() {
        match finding(&folder, check.makes_folders, &state_of) {
            Finding::Fine => {}
            Finding::Doubt(text) => {
                let place = place_of(check, key);
                doubt(check, FOLDERS, &place, format!("{key}={}{text}", folder.display()));
            }
            Finding::Problem(text) => {
                refuse(check, key, format!("{key}={}{text}", folder.display()));
            }
        }
    }
}

/// * `makes_folders`: the start makes folders that are missing. Each text continues the setting.
fn finding(
    folder: &Path,
    makes_folders: bool,
    state_of: &impl Fn(&Path) -> FolderState,
) -> Finding {
    match state_of(folder) {
        FolderState::Writable => return Finding::Fine,
        FolderState::Closed => {
            return Finding::Doubt(format!(": this user may not write there; {ADVICE}"));
        }
        FolderState::File => {
            return Finding::Problem(" is a file and has to be a folder; move it away".to_owned());
        }
        FolderState::Missing if !makes_folders => {
            return Finding::Problem(
                " is missing, and datadir.autocreate=false; make it".to_owned(),
            );
        }
        FolderState::Missing => {}
    }
    let mut above = folder.ancestors().skip(1).map(|above| (above, state_of(above)));
    match above.find(|(_, state)| *state != FolderState::Missing) {
        Some((above, FolderState::File)) => Finding::Problem(format!(
            " can't be made, as {} is a file; correct the path",
            above.display()
        )),
        Some((above, FolderState::Closed)) => Finding::Doubt(format!(
            " is missing, and this user may not make it in {}; make it, and {ADVICE}",
            above.display()
        )),
        _ => Finding::Doubt(
            " is missing, and the start makes it; if it should have data, correct the path or mount its disk"
                .to_owned(),
        ),
    }
}

/// Tries what the start reads and writes in the folders: `version-2`, the newest snapshot and the newest log.
///
/// * `open`: opens a file for reading.
pub fn look_at_data(
    check: &mut Check,
    state_of: impl Fn(&Path) -> FolderState,
    open: impl Fn(&Path) -> io::Result<()>,
) {
    let folders = check.folders.clone();
    let last = folders.len().saturating_sub(1);
    for (at, (key, folder)) in folders.iter().enumerate() {
        let (place, inner) = (place_of(check, key), folder.join("version-2"));
        let shown = format!("{key}={}", folder.display());
        match state_of(&inner) {
            FolderState::Missing => continue,
            FolderState::File => {
                let text = format!(
                    "{shown}: version-2 in it is a file and must be a folder; move it away"
                );
                refuse(check, key, text);
                continue;
            }
            FolderState::Closed => {
                let text = format!("{shown}: this user may not write to version-2 in it; {ADVICE}");
                doubt(check, FOLDERS, &place, text);
            }
            FolderState::Writable => {}
        }
        let mut unreadable = |path: &Path, error: &io::Error| {
            let text = format!("{shown}: can't read {}: {error}; {ADVICE}", path.display());
            doubt(check, FOLDERS, &place, text);
        };
        let listed = match RealDisk.list(&inner) {
            Ok(listed) => listed,
            Err(error) => {
                unreadable(&inner, &error);
                continue;
            }
        };
        let snapshot = names::snapshots(&RealDisk, &inner).ok().filter(|_| at == 0);
        let log = names::logs(&RealDisk, &inner).ok().filter(|_| at == last);
        for newest in snapshot.into_iter().chain(log).filter_map(|mut named| named.pop()) {
            let path = inner.join(newest.name);
            if let Err(error) = open(&path) {
                unreadable(&path, &error);
            }
        }
        if 0 < last {
            let (prefix, what) =
                if at == 0 { ("log.", "log file") } else { ("snapshot.", "snapshot") };
            if let Some(name) = listed.iter().find(|name| name.starts_with(prefix)) {
                let path = inner.join(name);
                let error = RecoverError::<io::Error>::Misplaced { what, path };
                let (key, folder) = &folders[last];
                refuse(check, key, format!("{key}={}: {error}", folder.display()));
            }
        }
    }
}

/// Warns of addresses to listen on that this machine does not have.
///
/// * `is_here`: whether a port of that host can be bound; true for a host that is unknown, which has a warning already.
pub fn look_at_addresses(check: &mut Check, is_here: impl Fn(&str) -> bool) {
    let mut addresses: Vec<(String, String, SettingPlace)> = Vec::new();
    if let Some((host, place)) = &check.client_host {
        let key = check.settings.iter().find(|setting| setting.place.as_ref() == Some(place));
        let key = key.map_or("clientPortAddress", |setting| setting.key.as_str());
        addresses.push((key.to_owned(), host.clone(), place.clone()));
    }
    if let Some(ensemble) = check.ensemble.as_ref().filter(|its| !its.listen_on_all_addresses) {
        let key = format!("server.{}", ensemble.my_id);
        let place = place_of(check, &key);
        let own = ensemble.view.members.get(&ensemble.my_id);
        for address in own.into_iter().flat_map(|own| &own.addresses) {
            addresses.push((key.clone(), address.host.clone(), place.clone()));
        }
    }
    for setting in check.settings.iter().filter(|setting| setting.state == "works") {
        let key = setting.key.trim_start_matches("-Dzookeeper.");
        if let Some(place) = setting.place.clone().filter(|_| LISTEN_KEYS.contains(&key)) {
            addresses.push((setting.key.clone(), setting.value.clone(), place));
        }
    }
    addresses.dedup();
    for (key, host, place) in addresses {
        if !host.is_empty() && !is_here(&host) {
            let or_id = if key.starts_with("server.") { ", or dataDir/myid" } else { "" };
            let text = format!(
                "{key}: {host} is no address of this machine, so no port of it can be listened on; correct it{or_id}, \
                 or run this check on the server's machine"
            );
            doubt(check, ADDRESSES, &place, text);
        }
    }
}

/// Where a setting is made; the whole file if it is not set.
fn place_of(check: &Check, key: &str) -> SettingPlace {
    let place = check.settings.iter().find(|setting| setting.key == key);
    let place = place.and_then(|setting| setting.place.clone());
    place.unwrap_or_else(|| SettingPlace::File(check.source.clone()))
}

/// Adds a warning about what the machine has.
fn doubt(check: &mut Check, about: &'static str, place: &SettingPlace, text: String) {
    check.doubts.push(about);
    check.warnings.push(Warning::new(place.clone(), text));
}

/// Adds a problem of the setting.
fn refuse(check: &mut Check, key: &str, text: String) {
    let place = place_of(check, key);
    check.problems.push(Problem { place, text });
    for setting in check.settings.iter_mut().filter(|setting| setting.key == key) {
        setting.state = "wrong";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::config_check::tests::checked;

    #[test]
    fn folders_are_tried_and_odd_values_shown_with_what_they_count_as() {
        use FolderState::{Closed, File, Missing, Writable};
        let found_in = |flags: &[&str], states: &[(&str, FolderState)]| {
            let mut check = checked("dataDir=/a/b\nclientPort=2181\n", flags);
            let state = |path: &Path| {
                states
                    .iter()
                    .find(|(at, _)| Path::new(at) == path)
                    .map_or(Writable, |(_, state)| *state)
            };
            look_at_folders(&mut check, state);
            let mut texts: Vec<String> = check.warnings.iter().map(|w| w.text.clone()).collect();
            texts.retain(|text| text.starts_with("dataDir"));
            texts.extend(check.problems.iter().map(|p| format!("problem: {}", p.text)));
            (texts.pop().unwrap_or_default(), check.settings[0].state)
        };
        let never = "-Dzookeeper.datadir.autocreate=false";
        for (flags, states, text, state) in [
            (&[][..], &[][..], "", "works"),
            (&[], &[("/a/b", Missing)], "and the start makes it", "works"),
            (&[], &[("/a/b", Closed)], "/a/b: this user may not write there", "works"),
            (&[], &[("/a/b", Missing), ("/a", Closed)], "may not make it in /a", "works"),
            (
                &[],
                &[("/a/b", Missing), ("/a", File)],
                "problem: dataDir=/a/b can't be made",
                "wrong",
            ),
            (&[], &[("/a/b", File)], "problem: dataDir=/a/b is a file", "wrong"),
            (&[never], &[("/a/b", Missing)], "problem: dataDir=/a/b is missing", "wrong"),
        ] {
            let (found, its) = found_in(flags, states);
            assert!(found.contains(text) && (text.is_empty() == found.is_empty()), "{found}");
            assert_eq!(its, state, "{found}");
        }
        let lines = "snapCount=1\nglobalOutstandingLimit=0\nmaxClientCnxns=-3\n";
        let flags = ["-Dzookeeper.ssl.clientAuth=sometimes", "-Dzookeeper.outstandingChanges.x=1"];
        let check = checked(&format!("dataDir=/a\nsecureClientPort=1\n{lines}"), &flags);
        let of = |key: &str| {
            let setting = check.settings.iter().find(|setting| setting.key == key).unwrap();
            (setting.value.as_str(), setting.state)
        };
        assert_eq!(of("snapCount"), ("1 (counts as 2)", "works"));
        assert_eq!(of("globalOutstandingLimit"), ("0 (counts as 1000)", "works"));
        assert_eq!(of("maxClientCnxns"), ("-3 (counts as 0)", "works"));
        assert_eq!(of("-Dzookeeper.ssl.clientAuth"), ("sometimes", "wrong"));
        assert_eq!(of("-Dzookeeper.outstandingChanges.x").1, "unknown");
    }

    #[test]
    fn data_that_cannot_be_read_is_a_warning_and_a_log_in_the_wrong_folder_a_problem() {
        let dir = tempfile::tempdir().unwrap();
        let (data, logs) = (dir.path().join("data"), dir.path().join("logs"));
        for inner in [&data, &logs] {
            std::fs::create_dir_all(inner.join("version-2")).unwrap();
        }
        for name in ["snapshot.0", "snapshot.a", "log.1"] {
            std::fs::write(data.join("version-2").join(name), "x").unwrap();
        }
        let alone = format!("dataDir={}\nclientPort=2181\n", data.display());
        let both = format!("{alone}dataLogDir={}\n", logs.display());
        let found_in = |text: &str, state: FolderState, denied: &str| {
            let mut check = checked(text, &[]);
            let before = check.warnings.len();
            let open = |path: &Path| match path.ends_with(denied) {
                true => Err(io::ErrorKind::PermissionDenied.into()),
                false => Ok(()),
            };
            look_at_data(&mut check, |_| state, open);
            let mut texts: Vec<String> =
                check.warnings[before..].iter().map(|warning| warning.text.clone()).collect();
            assert_eq!(check.doubts.len(), texts.len());
            texts.extend(check.problems.iter().map(|problem| format!("problem: {}", problem.text)));
            texts.join("\n")
        };
        use FolderState::{Closed, File, Missing, Writable};
        assert_eq!(found_in(&alone, Writable, "none"), "");
        assert_eq!(found_in(&alone, Missing, "snapshot.a"), "");
        assert!(
            found_in(&alone, Closed, "none").contains("this user may not write to version-2 in it")
        );
        assert!(found_in(&alone, File, "none").starts_with("problem: dataDir="));
        assert_eq!(found_in(&alone, Writable, "snapshot.0"), "", "it is not the newest");
        let snapshot = found_in(&alone, Writable, "snapshot.a");
        assert!(snapshot.contains("version-2/snapshot.a: permission denied; give"), "{snapshot}");
        assert!(found_in(&alone, Writable, "log.1").contains("version-2/log.1: permission denied"));
        let wrong = found_in(&both, Writable, "none");
        let start = format!("problem: dataLogDir={}: log file {}", logs.display(), data.display());
        assert!(wrong.starts_with(&start), "{wrong}");
        assert!(wrong.ends_with("if dataLogDir was set only now, move log.* there"), "{wrong}");
    }

    #[test]
    fn address_of_another_machine_is_a_warning_and_changes_the_verdict() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("myid"), "2\n").unwrap();
        let text = format!(
            "dataDir={}\nclientPort=2181\ninitLimit=5\nsyncLimit=2\nclientPortAddress=10.0.0.1\n\
             server.1=a:1:2\nserver.2=10.0.0.2:1:2\nserver.3=c:1:2\n",
            dir.path().display()
        );
        let flags = ["-Dzookeeper.admin.serverAddress=10.0.0.3"];
        let found_in = |text: &str| {
            let mut check = checked(text, &flags);
            let before = check.warnings.len();
            look_at_addresses(&mut check, |_| false);
            let texts: Vec<String> =
                check.warnings[before..].iter().map(|w| w.to_string()).collect();
            (texts, check)
        };
        let (texts, mut check) = found_in(&text);
        for (found, start) in texts.iter().zip([
            "zoo.cfg:5: clientPortAddress: 10.0.0.1 is no address of this machine",
            "zoo.cfg:7: server.2: 10.0.0.2 is no address of this machine",
            "-D flag in the command line: -Dzookeeper.admin.serverAddress: 10.0.0.3 is no address",
        ]) {
            assert!(found.starts_with(start), "{found}");
        }
        assert_eq!(texts.len(), 3, "{texts:?}");
        check.doubts.push(FOLDERS);
        let table = crate::tools::config_check::tests::table(&mut check);
        let verdict =
            "zoo.cfg: no problems in the file, 4 warnings about its folders and addresses\n";
        assert!(table.ends_with(verdict), "{table}");
        let (texts, _) = found_in(&format!("{text}quorumListenOnAllIPs=true\n"));
        assert_eq!(texts.len(), 2, "{texts:?}");
        let mut check = checked(&text, &flags);
        look_at_addresses(&mut check, |_| true);
        assert!(check.doubts.is_empty());
    }
}
