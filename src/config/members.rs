//! `server.N` lines, and the other settings that decide whether this server is a member of an ensemble.
//!
//! A single voter without observers is standalone while `standaloneEnabled` is true: the official
//! container image writes just such a file, with the client port in that line and nowhere else.

use super::checker::{Checker, Setting};
use super::{Entries, Entry, SettingPlace, clashes, keys};
use crate::model::{Member, Rule, ServerId, View, ViewError};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Where clients connect: host (`None` is every address) and port.
pub(super) type ClientAddress = (Option<String>, u16);

/// The files that the settings came from.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    pub config_file: PathBuf,
    pub dynamic_file: Option<PathBuf>,
    pub last_seen: Vec<View>,
    /// The dynamic file can't be read, as a problem says.
    pub lacks_lines: bool,
}

/// The ensemble as the lines give it.
pub(super) struct Found {
    /// The first of the lines, where problems of several lines are reported.
    pub place: SettingPlace,
    pub my_id: ServerId,
    pub view: View,
    /// `oraclePath`
    pub oracle_path: Option<PathBuf>,
    /// Whether members may have several addresses.
    pub many_addresses: bool,
    pub standalone_enabled: bool,
}

/// The client address in this server's own `server.N` line.
#[derive(Default)]
pub(super) struct OwnLine {
    /// The address for clients, if the line gives one.
    pub client: Option<ClientAddress>,
    /// The line may give one, but it is not known; a problem that was reported says why.
    pub is_lost: bool,
}

/// The result of reading the lines.
#[derive(Default)]
pub(super) struct Members {
    pub own_line: OwnLine,
    /// `Some` makes this server a member of an ensemble. Without members it stands for one that is lost.
    pub ensemble: Option<Found>,
    /// There are lines of an ensemble, and a problem that was reported keeps it from being known.
    pub is_lost: bool,
    /// There is no `server.N` line, and a setting that looks like a misspelt one, as a warning says.
    pub has_misspelt_line: bool,
}

impl Members {
    /// A problem that was reported keeps the lines from being known.
    fn unknown() -> Self {
        Self { own_line: OwnLine { client: None, is_lost: true }, is_lost: true, ..Self::default() }
    }
}

/// Whether a key belongs into the dynamic file once there is one.
pub(super) fn is_dynamic(key: &str) -> bool {
    ["server.", "group", "weight"].iter().any(|start| key.starts_with(start))
}

/// Takes `server.*`, `group*`, `weight*`, `standaloneEnabled`, `multiAddress.enabled`, `oraclePath`, and, of an
/// ensemble, `version`.
///
/// * `many_by_flag`: whether a flag lets members have several addresses.
///
/// Source: `QuorumPeerConfig.parseDynamicConfig`, `setupMyId`, `isDistributed`, ZooKeeper 3.9.5.
pub(super) fn take(
    checker: &mut Checker,
    file: &MyId<'_>,
    many_by_flag: bool,
    files: &Files,
) -> Members {
    let problems = checker.problems.len();
    let my_id = file.read(checker);
    let standalone = checker.boolean("standaloneEnabled");
    let standalone_enabled = standalone.as_ref().is_none_or(|(on, _)| *on);
    let many_in_file = checker.boolean("multiAddress.enabled");
    let many_allowed = many_by_flag || many_in_file.as_ref().is_some_and(|(on, _)| *on);
    let oracle = checker.take("oraclePath").filter(|oracle| !oracle.value.is_empty());
    let lines = checker.take_all(is_dynamic);

    if !lines.iter().any(|(key, _)| key.starts_with("server.")) {
        return take_standalone(checker, file, files.lacks_lines, &lines, oracle, standalone);
    }
    let place = lines[0].1.place.clone();
    check_members(checker, &lines, many_allowed);
    clashes::check_lines(checker, &lines);
    if problems < checker.problems.len() {
        let ensemble = lost(checker, place, my_id, file, &lines, standalone_enabled);
        // The line that is wrong may be the one with the client port.
        let is_lost = lines.iter().any(|(_, line)| line.raw.contains(';'));
        let own_line = OwnLine { client: None, is_lost };
        return Members { own_line, is_lost: true, ensemble, ..Members::default() };
    }
    let version = checker.all().into_iter().find(|(key, _)| key == "version");
    let counted = lines.iter().chain(&version);
    let view = match view_of(counted, oracle.is_some()) {
        Ok(view) => view,
        Err((error, at)) => {
            checker.problem(&at.unwrap_or(place), format!("{error}; correct it"));
            return Members::unknown();
        }
    };
    let own = my_id.and_then(|id| own_line(id, &view, &files.last_seen));
    let client = own.and_then(|member| member.client.clone());
    let own_line = OwnLine { client, is_lost: false };
    // A reconfiguration has written the dynamic file of a server that is not in it: it was joining an ensemble of one, or was removed.
    let is_member =
        files.dynamic_file.is_some() && my_id.is_some_and(|id| !view.members.contains_key(&id));
    if view.voters().count() == 1 && standalone_enabled && !is_member {
        let is_lost = !is_alone(checker, &place, &view);
        idle_oracle(checker, oracle);
        return Members { own_line, is_lost, ..Members::default() };
    }
    checker.take("version");
    let Some(my_id) = whose(checker, &place, my_id, file, &view, own.is_some()) else {
        let is_lost = view.members.values().any(|member| member.client.is_some());
        let own_line = OwnLine { client: None, is_lost };
        return Members { own_line, is_lost: true, ..Members::default() };
    };
    warn(checker, &place, &lines, &view, oracle.as_ref());
    clashes::warn_of_swapped_ports(checker, &lines, &view);
    let ensemble = Found {
        place,
        my_id,
        view,
        oracle_path: oracle.map(|oracle| PathBuf::from(oracle.value)),
        many_addresses: many_in_file.map_or(many_by_flag, |(on, _)| on),
        standalone_enabled,
    };
    Members { own_line, ensemble: Some(ensemble), ..Members::default() }
}

/// Whether the one voter is listed alone, and so runs standalone.
fn is_alone(checker: &mut Checker, place: &SettingPlace, view: &View) -> bool {
    let is_alone = view.members.len() == 1;
    if is_alone {
        checker.warn(place, "one server is listed, so it runs standalone; for an ensemble list all its servers, or set standaloneEnabled=false");
    } else {
        let text = "observers without at least two voters are not an ensemble; remove them";
        checker.problem(place, text);
    }
    is_alone
}

/// What stands for an ensemble whose lines have a problem, so that its other settings are checked too; `None` if a single
/// line may be meant for a standalone server.
fn lost(
    checker: &mut Checker,
    place: SettingPlace,
    my_id: Option<ServerId>,
    file: &MyId<'_>,
    lines: &[(String, Setting)],
    standalone_enabled: bool,
) -> Option<Found> {
    let servers = lines.iter().filter(|(key, _)| key.starts_with("server.")).count();
    if servers == 1 && standalone_enabled {
        return None;
    }
    if file.text.is_none() {
        file.report_missing(checker, "");
    }
    checker.take("version");
    Some(Found {
        place,
        my_id: my_id.unwrap_or(ServerId(0)),
        view: View { version: 0, members: BTreeMap::new(), rule: Rule::Majority },
        oracle_path: None,
        many_addresses: false,
        standalone_enabled,
    })
}

/// Without `server.N` lines the other settings have no effect.
fn take_standalone(
    checker: &mut Checker,
    file: &MyId<'_>,
    lacks_lines: bool,
    lines: &[(String, Setting)],
    oracle: Option<Setting>,
    standalone: Option<(bool, SettingPlace)>,
) -> Members {
    if lacks_lines {
        return Members::unknown();
    }
    if let Some((false, place)) = standalone {
        checker.problem(&place, "standaloneEnabled=false needs servers; add server.N lines");
    }
    without_members(checker, lines, oracle.is_some());
    idle_oracle(checker, oracle);
    warn_standalone(checker, file);
    let has_misspelt_line = misspelt_line(checker).is_some();
    Members { has_misspelt_line, ..Members::default() }
}

/// Warns of a standalone server that has what only members of an ensemble need: its `server.N` lines may be misspelt.
fn warn_standalone(checker: &mut Checker, file: &MyId<'_>) {
    let limits = ["initLimit", "syncLimit"];
    let limits: Vec<&str> =
        limits.into_iter().filter(|limit| checker.get(limit).is_some()).collect();
    let found = match (file.text, limits.as_slice()) {
        (Some(_), _) => format!("the file {}", file.path),
        (None, []) => return,
        (None, limits) => limits.join(" and "),
    };
    let whole = checker.whole.clone();
    let text = match misspelt_line(checker) {
        Some((key, meant)) => format!(
            "no server.N line ({key} is none), so this server is standalone although it has {found}; write {meant}"
        ),
        None => format!(
            "no server.N line, so this server is standalone although it has {found}; for an ensemble list all its servers"
        ),
    };
    checker.warn(&whole, text);
}

/// The first setting that looks like a misspelt `server.N` line, and the key that is meant.
fn misspelt_line(checker: &Checker) -> Option<(String, String)> {
    let unknown = checker.all().into_iter().filter(|(key, _)| keys::in_file(key).is_none());
    let meant = unknown.filter_map(|(key, setting)| {
        let meant = keys::nearest_server_line(&key)?;
        Some((setting.place, key, meant))
    });
    meant.min().map(|(_, key, meant)| (key, meant))
}

/// Groups, weights and a version without `server.N` lines have no effect, but must be valid.
fn without_members(checker: &mut Checker, lines: &[(String, Setting)], by_oracle: bool) {
    let version = checker.all().into_iter().find(|(key, _)| key == "version");
    match view_of(lines.iter().chain(&version), by_oracle) {
        Ok(_) | Err((ViewError::NoVoters, _)) => {}
        Err((error, at)) => {
            let place = at.unwrap_or_else(|| checker.whole.clone());
            checker.problem(&place, format!("{error}; correct it"));
            return;
        }
    }
    for (key, Setting { value, place, .. }) in lines {
        checker.warn(
            place,
            format!("{key}={value}: no effect; there are no server.N lines; remove it"),
        );
    }
}

/// What is at the path `dataDir`, as far as a missing `myid` shows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum DataDirState {
    #[default]
    There,
    Missing,
    File,
}

/// The file `myid`.
pub(super) struct MyId<'a> {
    /// Its first line, if there is one.
    text: Option<&'a str>,
    path: String,
    data_dir: DataDirState,
    /// `dataDir` has a problem of its own: the file is in another folder then.
    pub is_elsewhere: bool,
    /// Where `dataDir` is set.
    place: SettingPlace,
}

impl<'a> MyId<'a> {
    pub fn new(checker: &Checker, text: Option<&'a str>, data_dir: DataDirState) -> Self {
        let (path, place) = match checker.get("dataDir") {
            Some(Setting { value, place, .. }) => {
                (PathBuf::from(value).join("myid").display().to_string(), place.clone())
            }
            None => ("myid in dataDir".to_owned(), checker.whole.clone()),
        };
        Self { text, path, data_dir, is_elsewhere: false, place }
    }

    /// `None` without a file, and for -1, which means the same to Java.
    fn read(&self, checker: &mut Checker) -> Option<ServerId> {
        let Self { text, path, place, .. } = self;
        let text = (*text)?;
        let id = text.parse().ok();
        if id.is_none() {
            let text = format!(
                "the file {path} has \"{text}\", which is not a number; write this server's id into it"
            );
            checker.problem(place, text);
        }
        id.filter(|&id| id != -1).map(ServerId)
    }

    /// * `listed`: the ids that it may have.
    fn report_missing(&self, checker: &mut Checker, listed: &str) {
        let Self { path, data_dir, is_elsewhere, place, .. } = self;
        if *is_elsewhere {
            return;
        }
        let folder = match data_dir {
            _ if path.starts_with(['"', '\'']) => {
                " (quotation marks are part of dataDir: remove them)"
            }
            _ if path.ends_with("/version-2/myid") => " (dataDir is the folder above version-2)",
            DataDirState::There => "",
            DataDirState::Missing => " (its folder too: is a disk not mounted?)",
            DataDirState::File => {
                let folder = Path::new(path).parent().unwrap_or(Path::new(path)).display();
                let text = format!(
                    "dataDir={folder} is a file and has to be a folder; correct the path, or move the file away"
                );
                return checker.problem(place, text);
            }
        };
        let text =
            format!("the file {path} is missing{folder}; write this server's id into it{listed}");
        checker.problem(place, text);
    }
}

/// The highest server id whose session ids can be distinguished from the owners of TTL znodes.
const EXTENDED_ID_MAX: i64 = 254;

/// Refuses a server id that leaves no room for TTL znodes, as Java does once its server has a leader.
///
/// Source: `EphemeralType.validateServerId`, ZooKeeper 3.9.5.
pub(super) fn check_id_range(checker: &mut Checker, extended_types: bool, my_id: ServerId) {
    if extended_types && EXTENDED_ID_MAX < my_id.0 {
        let whole = checker.whole.clone();
        let text = format!(
            "myid {my_id} is above {EXTENDED_ID_MAX}, the highest with extendedTypesEnabled=true; choose a lower one"
        );
        checker.problem(&whole, text);
    }
}

fn idle_oracle(checker: &mut Checker, oracle: Option<Setting>) {
    if let Some(Setting { value, place, .. }) = oracle {
        checker.warn(
            &place,
            format!("oraclePath={value}: no effect; only an ensemble uses this; remove it"),
        );
    }
}

/// Reports every line that is wrong by itself, not only the first.
fn check_members(checker: &mut Checker, lines: &[(String, Setting)], many_allowed: bool) {
    for (key, Setting { raw, place, .. }) in lines {
        if !key.starts_with("server.") {
            continue;
        }
        match Member::parse(key, raw) {
            Ok(member) if member.addresses.len() > 1 && !many_allowed => {
                let text = format!(
                    "{key}={raw} has several addresses, but multiAddress.enabled is not true; set it on all servers"
                );
                checker.problem(place, text);
            }
            Ok(_) => {}
            Err(error) => checker.problem(place, format!("{error}; correct it")),
        }
    }
}

/// The view; an error comes with the line it is about.
///
/// * `by_oracle`: groups and weights are ignored (Java's `QuorumOracleMaj`).
fn view_of<'a>(
    lines: impl Iterator<Item = &'a (String, Setting)> + Clone,
    by_oracle: bool,
) -> Result<View, (ViewError, Option<SettingPlace>)> {
    let is_used = |key: &str| !by_oracle || key.starts_with("server.") || key == "version";
    let used = lines.clone().filter(|(key, _)| is_used(key));
    let entry = |setting: &Setting| Entry { value: setting.raw.clone(), ..Entry::default() };
    let entries: Entries = used.map(|(key, setting)| (key.clone(), entry(setting))).collect();
    View::from_entries(&entries).map_err(|error| {
        let about = error.key().and_then(|about| lines.clone().find(|(key, _)| *key == about));
        (error, about.map(|(_, setting)| setting.place.clone()))
    })
}

/// This server's id; a problem unless it is one of the members.
///
/// * `has_line`: this server has a line in the view, or in a proposed one.
fn whose(
    checker: &mut Checker,
    place: &SettingPlace,
    my_id: Option<ServerId>,
    file: &MyId<'_>,
    view: &View,
    has_line: bool,
) -> Option<ServerId> {
    let listed = || view.members.keys().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match my_id {
        Some(id) if has_line => {
            if !view.members.contains_key(&id) {
                let text = format!(
                    "server {id} has no line here, but one in a configuration that was proposed before it was stopped: it starts; if it is no voter once a leader serves, add it again (reconfig)"
                );
                checker.warn(place, text);
            }
            return Some(id);
        }
        Some(id) => {
            let text = format!(
                "the file {} has {id}, which is not one of the servers {}; correct the file; if a reconfiguration removed this server, leave it stopped, or add it as docs/operations.md, \"Add or remove a member\", says; so also if it was stopped while it joined",
                file.path,
                listed()
            );
            checker.problem(place, text);
        }
        None => file.report_missing(checker, &format!(", one of {}", listed())),
    }
    None
}

/// A server's line in a configuration, or else in the newest proposed one that has it: a server that joined has acknowledged that one, and
/// may not know that it was committed.
///
/// * `proposed`: oldest first.
pub(super) fn own_line<'a>(
    me: ServerId,
    view: &'a View,
    proposed: &'a [View],
) -> Option<&'a Member> {
    let newer = proposed.iter().rev().filter(|proposed| view.version < proposed.version);
    std::iter::once(view).chain(newer).find_map(|view| view.members.get(&me))
}

/// Whether no other machine finds a server at this host.
fn is_loopback(host: &str) -> bool {
    let is_address = host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
    is_address || host.eq_ignore_ascii_case("localhost")
}

/// Warns of ensembles that work but are risky.
fn warn(
    checker: &mut Checker,
    place: &SettingPlace,
    lines: &[(String, Setting)],
    view: &View,
    oracle: Option<&Setting>,
) {
    let voters = view.voters().count();
    if let Some(Setting { value, place, .. }) = oracle.filter(|_| voters != 2) {
        let text =
            format!("oraclePath={value}: no effect with {voters} voters; it is for two: remove it");
        checker.warn(place, text);
    }
    if oracle.is_some() && voters == 2 {
        let text = "Two voters and an oracle: if it lets both lead at the same time, acknowledged \
            writes are lost. Three voters need no oracle.";
        checker.warn(place, text);
    } else if voters <= 2 {
        let count = if voters == 1 { "One voter" } else { "Two voters" };
        let text = format!("{count}: any failure stops the ensemble. Use at least three.");
        checker.warn(place, text);
    } else if voters.is_multiple_of(2) {
        let fewer = voters - 1;
        let text =
            format!("{voters} voters survive no more failures than {fewer}. Use an odd number.");
        checker.warn(place, text);
    }
    if !view.has_quorum(&view.voters().collect()) {
        checker.warn(place, "all voters together are not a quorum; correct the weights");
    }
    let is_local =
        |member: &Member| member.addresses.iter().all(|address| is_loopback(&address.host));
    let is_spread = !view.members.values().all(is_local);
    for (key, Setting { place, .. }) in lines {
        let member = view.members.values().find(|member| *key == format!("server.{}", member.id));
        if is_spread && member.is_some_and(is_local) {
            let text = format!(
                "{key} has an address of this machine alone, and other servers have others, so they can't connect to it; name its host"
            );
            checker.warn(place, text);
        }
        let is_any = |host: &str| ["0.0.0.0", "0:0:0:0:0:0:0:0"].contains(&host);
        if member.is_some_and(|member| member.addresses.iter().any(|a| is_any(&a.host))) {
            let text = format!(
                "{key} has an address to which no other server can connect; \
                 name another, and set quorumListenOnAllIPs=true"
            );
            checker.warn(place, text);
        }
    }
}
