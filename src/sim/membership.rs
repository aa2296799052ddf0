//! The members of the ensemble, as each server's configuration files say.

use super::plan::Climate;
use super::workload::member;
use crate::config::{dynamic, parse_properties};
use crate::member::config_files::ConfigFiles;
use crate::member::start::Views;
use crate::model::View;
use crate::store::disk::{Reading, replace_file};
use crate::store::sim_disk::SimDisk;
use std::io::{self, Read};
use std::path::Path;

/// What the operator wrote for a server: those that begin together know of each other, and one that joins of them and of
/// itself.
pub fn first_view(climate: &Climate, me: usize) -> View {
    let first = climate.voters + climate.observers;
    let mut lines: Vec<String> = (0..first).map(|at| member(at, at < climate.voters)).collect();
    if first <= me {
        // Either is an operator's way to begin with one that is to vote later.
        lines.push(member(me, me.is_multiple_of(2)));
    }
    View::parse(&lines.join("\n")).expect("the lines are well formed")
}

/// The configuration file, whose neighbours a reconfiguration writes.
const CONFIG_FILE: &str = "/conf/zoo.cfg";

/// The configuration files of a server, on its disk.
pub fn files(disk: &SimDisk) -> ConfigFiles<SimDisk> {
    ConfigFiles::new(disk.clone(), CONFIG_FILE.into(), CONFIG_FILE.into())
}

/// The configurations a server starts with, as its files say. The first start writes the operator's file.
///
/// # Errors
/// Those of the disk, and a file that can't be read as what it should be.
pub fn start_views(disk: &SimDisk, climate: &Climate, me: usize) -> io::Result<Views> {
    let first = first_view(climate, me);
    if !climate.changes {
        return Ok(Views { in_force: first, proposed: None });
    }
    let Some(text) = read(disk, CONFIG_FILE)? else {
        let path = Path::new(CONFIG_FILE);
        let (folder, text) = (path.parent().unwrap_or(path), first.to_string());
        replace_file(disk, folder, "zoo.cfg", "zoo.cfg.tmp", text.as_bytes())?;
        return Ok(Views { in_force: first, proposed: None });
    };
    let entries = parse_properties(&text).map_err(io::Error::other)?;
    let in_force = match entries.get("dynamicConfigFile") {
        None => first,
        Some(named) => {
            let lines = read(disk, &named.value)?.unwrap_or_default();
            let version = dynamic::version_in(&named.value).unwrap_or(0);
            view(&[&lines, format!("\nversion={version:x}").as_bytes()].concat())?
        }
    };
    let next = dynamic::beside(Path::new(CONFIG_FILE), dynamic::NEXT);
    let proposed = read(disk, &next.to_string_lossy())?;
    Ok(Views { in_force, proposed: proposed.as_deref().map(view).transpose()? })
}

fn read(disk: &SimDisk, path: &str) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    match Reading::open(disk, Path::new(path)) {
        Ok(mut reading) => reading.read_to_end(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(text))
}

fn view(text: &[u8]) -> io::Result<View> {
    View::from_bytes(text).map_err(io::Error::other)
}

/// How many voters of a configuration `has` names, and how many are a quorum.
pub fn backing(view: &View, has: impl Fn(usize) -> bool) -> (usize, usize) {
    let holders = view.voters().filter(|id| has(id.0 as usize)).count();
    (holders, view.voters().count() / 2 + 1)
}

pub fn short(view: &View) -> String {
    let ids = |votes: bool| {
        let ids = view.members.keys().filter(|id| view.is_voter(**id) == votes);
        ids.map(|id| id.0).collect::<Vec<_>>()
    };
    format!("{:#x} voters {:?} observers {:?}", view.version, ids(true), ids(false))
}
