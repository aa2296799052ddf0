//! Who belongs to the ensemble, as each server knows it: what `server::membership` keeps in files.

use super::ask::member;
use super::plan::Climate;
use super::server::{Disk, Server};
use super::world::{Of, World};
use crate::member::election_connections::Input;
use crate::model::{ServerId, View, Zxid};
use crate::store::disk::{Reading, remove_if_there, replace_file};
use crate::zab::Peer;
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;

/// Beside the data, as a folder of settings would be.
const FOLDER: &str = "/conf";
/// Of the next start.
const DECIDED: &str = "dynamic";
/// What was proposed, decided or not.
const PROPOSED: &str = "dynamic.next";

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

fn read(disk: &Disk, name: &str) -> io::Result<Option<View>> {
    let mut text = Vec::new();
    match Reading::open(disk, &Path::new(FOLDER).join(name)) {
        Ok(mut reading) => reading.read_to_end(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    View::from_bytes(&text).map(Some).map_err(io::Error::other)
}

fn write(disk: &Disk, name: &str, view: &View) -> io::Result<()> {
    let temporary = format!("{name}.tmp");
    replace_file(disk, Path::new(FOLDER), name, &temporary, view.to_string().as_bytes())
}

/// The configuration a server starts with, as its files say.
///
/// # Errors
/// Those of the disk.
pub fn start_view(disk: &Disk, climate: &Climate, me: usize) -> io::Result<View> {
    if !climate.changes {
        return Ok(first_view(climate, me));
    }
    Ok(read(disk, DECIDED)?.unwrap_or_else(|| first_view(climate, me)))
}

/// What was proposed to it decides too, unless its log does not have it.
///
/// # Errors
/// Those of the disk.
pub fn see_proposed(disk: &Disk, peer: &mut Peer, last: Option<Zxid>) -> io::Result<()> {
    if peer.core.settings.reconfigs
        && let Some(view) = read(disk, PROPOSED)?
        && view.version <= last.map_or(0, Zxid::to_wire)
    {
        peer.core.see_view(view, &mut Vec::new());
    }
    Ok(())
}

impl World {
    pub fn keep_proposed(&mut self, of: Of, view: &View) {
        self.note(of.server, || format!("> proposed {}", short(view)));
        let Some(process) = self.process(of) else { return };
        let kept = write(&process.disk, PROPOSED, view);
        self.settle(of, kept);
        self.know_peers(of);
        let ids = view.members.keys();
        ids.for_each(|&to| self.step_wires(of, Input::Dial { to }));
    }

    /// * `is_last`: none that was proposed is newer.
    pub fn keep_decided(&mut self, of: Of, view: &View, is_last: bool) {
        self.trace.count("configurations adopted");
        self.note(of.server, || format!("> in force {}, last {is_last}", short(view)));
        let Some(process) = self.process(of) else { return };
        let kept = write(&process.disk, DECIDED, view).and_then(|()| {
            if is_last {
                remove_if_there(&process.disk, &Path::new(FOLDER).join(PROPOSED))?;
            }
            Ok(())
        });
        self.settle(of, kept);
        self.know_peers(of);
    }

    /// A server goes on without its files; one that is struck while it writes them does not.
    fn settle(&mut self, of: Of, kept: io::Result<()>) {
        if let Err(error) = kept {
            self.cannot(of, &error.to_string());
        }
    }

    /// Whom a server can call: those of the configurations it knows.
    pub fn known_to(&mut self, of: Of) -> BTreeSet<usize> {
        let Some(process) = self.process(of) else { return BTreeSet::new() };
        let core = &process.replica.peer().core;
        let views = [Some(&core.view), core.next.as_ref()];
        views.into_iter().flatten().flat_map(members).collect()
    }

    /// Who belongs to the newest configuration that any server has in force.
    pub fn members(&self) -> BTreeSet<usize> {
        let views = self.servers.iter().filter_map(|server| Some(server.process.as_ref()?.view()));
        let newest = views.max_by_key(|view| view.version);
        newest.into_iter().flat_map(members).collect()
    }

    /// How many voters have a history on disk, and how many are a quorum: by the configuration a server has in force, and by
    /// that which was proposed, if there it is worse.
    pub fn backing(&self, server: usize, last: Zxid) -> (usize, usize) {
        let Some(process) = &self.servers[server].process else { return (0, 1) };
        let core = &process.replica.peer().core;
        let has = |id: &ServerId| {
            self.servers
                .get(id.0 as usize)
                .is_some_and(|server: &Server| self.checks.truth.holds(server.vouched(), last))
        };
        let of = |view: &View| (view.voters().filter(has).count(), view.voters().count() / 2 + 1);
        let next = core.next.as_ref().map(of);
        next.filter(|(holders, quorum)| holders < quorum).unwrap_or_else(|| of(&core.view))
    }
}

fn members(view: &View) -> impl Iterator<Item = usize> {
    view.members.keys().map(|id| id.0 as usize)
}

pub fn short(view: &View) -> String {
    let ids = |votes: bool| {
        let ids = view.members.keys().filter(|id| view.is_voter(**id) == votes);
        ids.map(|id| id.0).collect::<Vec<_>>()
    };
    format!("{:#x} voters {:?} observers {:?}", view.version, ids(true), ids(false))
}
