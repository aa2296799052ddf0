//! The configuration files of a world's servers.

use super::plan::{Climate, PlantedFault};
use super::process::{DATA_DIR, LOG_DIR, Server, TICK_TIME_MS, folders};
use super::workload::{member, quorum_system};
use crate::config::{self, Config, Environment, Launch, Settings, dynamic};
use crate::member::config_files::{ConfigFiles, LAST_IN_FORCE};
use crate::model::{Rng, Rule, ServerId, View};
use crate::store::disk::{read_file, remove_for_good, replace_file};
use crate::store::sim_disk::SimDisk;
use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// The static configuration file, beside which a reconfiguration writes others.
const CONFIG_FILE: &str = "/conf/zoo.cfg";
/// The members that an operator writes into the static file at each start, in worlds in which operators do that.
const LINES_FILE: &str = "/conf/lines";
/// A comment in a file that an operator has written after the server had written its own.
const REWRITTEN: &str = "# written again";
/// `observerMasterPort`, in worlds in which observers connect to followers.
const OBSERVER_PORT: u16 = 2889;

/// The members in the configuration that the operator wrote for a server: the first servers, and in a joiner's file also the joiner.
fn members(climate: &Climate, me: usize) -> Vec<String> {
    let first = climate.voters + climate.observers;
    let mut lines: Vec<String> = (0..first).map(|at| member(at, at < climate.voters)).collect();
    if climate.groups {
        let (voters, lightest) = ((0..climate.voters).collect::<Vec<_>>(), climate.changes.into());
        lines.extend(quorum_system(
            &mut Rng::new(climate.seed, 7),
            &voters,
            lightest,
            climate.damaged,
        ));
    }
    if first <= me {
        // Operators start a server that is to vote later as either; with groups, a participant would be in none of them.
        let votes = climate.only_grows() || me.is_multiple_of(2);
        lines.push(member(me, votes && !climate.groups));
    }
    lines
}

fn zoo_cfg(climate: &Climate, me: usize, members: Vec<String>) -> String {
    let mut lines = vec![
        format!("tickTime={TICK_TIME_MS}\ninitLimit=10\nsyncLimit=5"),
        format!("connectToLearnerMasterLimit=5\nmaxSessionTimeout={}", 40 * TICK_TIME_MS),
        format!("dataDir={DATA_DIR}\ndataLogDir={LOG_DIR}\npreAllocSize=64"),
        format!("db.autocreate={}", !climate.marks_new),
        format!("snapCount={}\nforceSnapshotSync={}", climate.snap_count, climate.sends_trees),
        "fastleader.minNotificationInterval=100\nfastleader.maxNotificationInterval=800".to_owned(),
        "cnxTimeout=1000\nquorumCnxnTimeoutMs=200\nleaderConnectDelayDuringRetryMs=60".to_owned(),
        "observer.election.DelayMs=100\nobserver.reconnectDelayMs=20".to_owned(),
        // Every client that may write may change the ensemble.
        format!("reconfigEnabled={}\nskipACL=yes", climate.changes),
        format!("localSessionsEnabled={}", climate.local_sessions),
        format!("localSessionsUpgradingEnabled={}", climate.local_sessions),
    ];
    if climate.plant != Some(PlantedFault::UnconfirmedReads) {
        lines.push(format!("oxkeeper.quorumSync={}", climate.quorum_sync));
        lines.push(format!("oxkeeper.linearizableReads={}", climate.linearizable_reads));
    }
    if !climate.is_alone_standalone(me) {
        lines.push("standaloneEnabled=false".to_owned());
    }
    if let Some(packing) = climate.packing {
        lines.push(format!("snapshot.compression.method={packing}"));
    }
    if climate.oracle {
        lines.push("oraclePath=/oracle".to_owned());
    }
    if climate.relays {
        lines.push(format!("observerMasterPort={OBSERVER_PORT}"));
    }
    match climate.alone {
        true => lines.push("clientPort=2181".to_owned()),
        false => lines.extend(members),
    }
    lines.join("\n") + "\n"
}

/// The configuration that the ensemble begins with.
///
/// # Panics
/// If what the operator wrote is no configuration.
pub fn first_view(climate: &Climate) -> View {
    View::parse(&members(climate, 0).join("\n")).expect("its operator's configuration")
}

/// Writes what an operator writes for a server.
///
/// # Errors
/// If the simulated disk fails: the process does not start.
pub fn write_files(disk: &SimDisk, climate: &Climate, me: usize) -> io::Result<()> {
    let zoo_cfg = zoo_cfg(climate, me, members(climate, me));
    replace_file(disk, Path::new(CONFIG_FILE), zoo_cfg.as_bytes())?;
    if climate.rewrites && me < climate.voters {
        write_lines(disk, Some(&(0..climate.voters).collect()))?;
    }
    if me < climate.voters + climate.observers {
        mark_new(disk, climate)?;
    }
    write_my_id(disk, me)
}

/// The members that an operator writes into a server's zoo.cfg from now on. `None`: the server keeps its files.
///
/// # Errors
/// If the simulated disk fails.
pub fn write_lines(disk: &SimDisk, members: Option<&BTreeSet<usize>>) -> io::Result<()> {
    let Some(members) = members else {
        return remove_for_good(disk, Path::new(LINES_FILE)).map(drop);
    };
    replace_file(disk, Path::new(LINES_FILE), voters_text(members).as_bytes())
}

fn voters_text(voters: &BTreeSet<usize>) -> String {
    let lines: Vec<String> = voters.iter().map(|&at| member(at, true)).collect();
    lines.join("\n")
}

/// The configuration that [`write_lines`] writes.
///
/// # Panics
/// Never: the lines are right.
pub fn view_of(members: &BTreeSet<usize>) -> View {
    View::parse(&voters_text(members)).expect("its operator's configuration")
}

/// The servers that operators start with lines of theirs.
pub fn lines_of(servers: &[Server]) -> BTreeSet<usize> {
    let has_lines =
        |(_, server): &(usize, &Server)| read_file(&server.disk, Path::new(LINES_FILE)).is_ok();
    servers.iter().enumerate().filter(has_lines).map(|(at, _)| at).collect()
}

/// Writes a configuration in the place of what a server has. A server that is not in it is to join.
///
/// # Errors
/// If the simulated disk fails: the process does not start.
pub fn rewrite_files(disk: &SimDisk, climate: &Climate, me: usize, view: &View) -> io::Result<()> {
    let files = files(disk);
    let is_member = view.members.contains_key(&ServerId(me as i64));
    // Beside lines that its operator has written since, what is left of an older life does not count.
    if view.version == 0 || is_member {
        files.forget_proposed()?;
    }
    if view.version != 0 && is_member {
        files.commit(view, true, true)?;
        // The operator writes no copy in the data directory, and removes the one that is there.
        return remove_for_good(disk, &folders().snapshots.join(LAST_IN_FORCE)).map(drop);
    }
    let members = if view.version == 0 {
        members(climate, me)
    } else {
        let text = view.to_string();
        let lines = text.lines().filter(|line| !line.starts_with("version="));
        lines.map(str::to_owned).chain([member(me, false)]).collect()
    };
    replace_file(disk, Path::new(CONFIG_FILE), zoo_cfg(climate, me, members).as_bytes())
}

/// Marks a server's directory as new, in worlds with `db.autocreate=false`.
///
/// # Errors
/// If the simulated disk fails: the process does not start.
pub fn mark_new(disk: &SimDisk, climate: &Climate) -> io::Result<()> {
    if !climate.marks_new {
        return Ok(());
    }
    replace_file(disk, &Path::new(LOG_DIR).join("initialize"), b"")
}

/// Whether the server may still begin with an empty directory.
pub fn is_marked_new(disk: &SimDisk) -> bool {
    read_file(disk, &Path::new(LOG_DIR).join("initialize")).is_ok()
}

/// # Errors
/// If the simulated disk fails: the process does not start.
pub fn write_my_id(disk: &SimDisk, me: usize) -> io::Result<()> {
    replace_file(disk, &my_id(), format!("{me}\n").as_bytes())
}

pub fn my_id() -> PathBuf {
    Path::new(DATA_DIR).join("myid")
}

/// The file with the configuration in force, once the server has written it.
pub fn dynamic_file(disk: &SimDisk) -> Option<PathBuf> {
    let text = read_file(disk, Path::new(CONFIG_FILE)).ok()?;
    let entries = config::parse_properties(&text).ok()?;
    Some(PathBuf::from(entries.get("dynamicConfigFile")?.value.clone()))
}

/// The file with a proposed configuration, `.dynamic.next`.
pub fn proposed_file() -> PathBuf {
    dynamic::beside(Path::new(CONFIG_FILE), dynamic::NEXT)
}

/// The configuration files of a server, on its disk.
pub fn files(disk: &SimDisk) -> ConfigFiles<SimDisk> {
    let snapshots = Path::new(DATA_DIR).join("version-2");
    ConfigFiles::new(disk.clone(), CONFIG_FILE.into(), CONFIG_FILE.into(), snapshots)
}

/// Reads the configuration of a server from its disk. A server that was removed from the ensemble does not start with the
/// files that it has written itself: its operator writes others, by which it joins again. One that was stopped while it joined starts with
/// its own.
///
/// Also gives whether the operator has written these files again.
///
/// * `trusts_empty`: the operator starts the server with `snapshot.trust.empty`.
///
/// # Errors
/// As [`config::load`], and those of the disk.
pub fn load(
    disk: &SimDisk,
    climate: &Climate,
    me: usize,
    trusts_empty: bool,
) -> Result<(Config, bool), Box<dyn Error>> {
    let mut flags = vec![format!("-Dreadonlymode.enabled={}", climate.read_only)];
    if trusts_empty || climate.trusts_empty {
        flags.push("-Dzookeeper.snapshot.trust.empty=true".to_owned());
    }
    let launch = Launch { settings: Settings::File(CONFIG_FILE.into()), flags };
    let read = || config::load_from(&|path| read_file(disk, path), &launch, &Environment::new());
    if let Ok(lines) = read_file(disk, Path::new(LINES_FILE)) {
        let lines = vec![REWRITTEN.to_owned(), String::from_utf8(lines)?];
        replace_file(disk, Path::new(CONFIG_FILE), zoo_cfg(climate, me, lines).as_bytes())?;
    } else if let Some(mut members) = written_members(disk)?
        && !members.iter().any(|line| line.starts_with(&format!("server.{me}=")))
        && read().is_err()
    {
        members.push(member(me, climate.only_grows()));
        members.insert(0, REWRITTEN.to_owned());
        replace_file(disk, Path::new(CONFIG_FILE), zoo_cfg(climate, me, members).as_bytes())?;
    }
    let config = read()?;
    if config.ensemble.is_some() == climate.alone {
        return Err("a standalone server is in an ensemble, or a member is in none".into());
    }
    let text = String::from_utf8(read_file(disk, Path::new(CONFIG_FILE))?)?;
    Ok((config, text.contains(REWRITTEN) && written_members(disk)?.is_none()))
}

/// The lines of the dynamic file, once the server has written one.
fn written_members(disk: &SimDisk) -> Result<Option<Vec<String>>, Box<dyn Error>> {
    let Some(path) = dynamic_file(disk) else { return Ok(None) };
    let text = String::from_utf8(read_file(disk, &path)?)?;
    Ok(Some(text.lines().map(str::to_owned).collect()))
}

pub fn short(view: &View) -> String {
    let ids = |votes: bool| {
        let ids = view.members.keys().filter(|id| view.is_voter(**id) == votes);
        ids.map(|id| id.0).collect::<Vec<_>>()
    };
    let rule = match &view.rule {
        Rule::Majority => String::new(),
        Rule::Hierarchical { groups, weights } => {
            let ids = |ids: &BTreeSet<ServerId>| ids.iter().map(|id| id.0).collect::<Vec<_>>();
            let groups: Vec<_> = groups.values().map(ids).collect();
            let weights: Vec<_> = weights.iter().map(|(id, weight)| (id.0, weight)).collect();
            format!(" groups {groups:?} weights {weights:?}")
        }
    };
    format!("{:#x} voters {:?} observers {:?}{rule}", view.version, ids(true), ids(false))
}
