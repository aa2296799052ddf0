//! Puts a server together from its configuration and from what its disk holds.

use super::config_files::LastInForce;
use super::configured::PartSettings;
use super::{Action, Member, Now};
use crate::config::{Config, Ensemble};
use crate::model::{Epoch, Epochs, ServerId, View, Zxid};
use crate::replica::{LastConfigs, Mode, Replica};
use crate::request::Shared;
use crate::store::decide::Start;
use crate::store::epoch::{self, EpochError};
use crate::store::{Disk, Folders, Log, Recovered, differing, doubted};
use crate::tree::freeze::Frozen;
use crate::tree::rebuild::Comparison;
use crate::tree::{State, Tree};
use crate::zab::{self, Peer};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// A server that is about to serve, or to look for a leader.
pub struct Started<D: Disk> {
    pub member: Member,
    pub shared: Arc<Shared>,
    pub log: Log<D>,
    /// The `Member`'s first actions.
    pub actions: Vec<Action>,
}

/// A file of `version-2` without which a member does not know its promises.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    #[error(transparent)]
    Epoch(#[from] EpochError),
    #[error("read the last configuration {}", path.display())]
    LastInForce { path: PathBuf, source: io::Error },
    #[error("read or write the mark {} of a doubted tree", path.display())]
    Doubt { path: PathBuf, source: io::Error },
    #[error(
        "zoo.cfg makes this a standalone server, and its data are those of a member of the ensemble of servers {last_voters}"
    )]
    Alone { last_voters: String },
}

impl From<(PathBuf, io::Error)> for AssembleError {
    fn from((path, source): (PathBuf, io::Error)) -> Self {
        Self::LastInForce { path, source }
    }
}

/// The history that was loaded from the disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RestoredHistory {
    /// Last zxid of the log; `None`: this server has nothing that counts.
    pub last: Option<Zxid>,
    /// The tree had each digest in the log, or differs since a transaction after which it differed from its leader's, too.
    pub fits_digests: bool,
    /// An earlier run has noted that the tree differs from its leader's since this transaction.
    pub differs_since: Option<Zxid>,
}

impl RestoredHistory {
    /// Judges how the tree compared with its log, by what an earlier run has noted of its leader's digests. Removes a note that the log no
    /// longer shows.
    ///
    /// * `last`: the last zxid of the log.
    pub fn judge<D: Disk>(
        disk: &D,
        folders: &Folders,
        last: Option<Zxid>,
        comparison: Comparison,
    ) -> Self {
        let mut noted = noted_difference(disk, folders);
        let fits_digests = match comparison.differs_since {
            None => true,
            Some(since) => noted.is_some_and(|noted| noted <= since),
        };
        let has_ended = comparison.differs_since.is_none() && noted <= comparison.last;
        if noted.is_some() && has_ended {
            match differing::forget(disk, &folders.snapshots) {
                Ok(()) => noted = None,
                Err(error) => warn_of_note(&error, folders),
            }
        }
        Self { last, fits_digests, differs_since: noted }
    }
}

/// The transaction since which the tree differs from its leaders', if an earlier run has noted one. Without the note such a tree is in
/// doubt, which is the careful side.
fn noted_difference<D: Disk>(disk: &D, folders: &Folders) -> Option<Zxid> {
    let noted = differing::since(disk, &folders.snapshots);
    noted.unwrap_or_else(|error| {
        warn_of_note(&error, folders);
        None
    })
}

fn warn_of_difference(since: Zxid) {
    tracing::warn!(
        %since,
        "the tree of this server, which had fitted its own log, differed from its leader's after that transaction: compare the znodes of all members before \
         one is emptied (docs/operations.md, Trees that differ)"
    );
}

fn warn_of_note(error: &io::Error, folders: &Folders) {
    tracing::warn!(
        path = %differing::path(&folders.snapshots).display(), %error,
        "the note of a tree that differs from its leader's can't be read or removed, so it does not count; check the file"
    );
}

/// Which snapshot a start takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FirstSnapshot {
    None,
    /// It is on disk before clients are served.
    BeforeServing,
    /// It is written while clients are served.
    BesideServing,
}

impl FirstSnapshot {
    /// A directory without a snapshot gets one before clients are served. A fresh directory gets its `snapshot.0`. If the server has
    /// loaded its tree from a log alone (snapshot.trust.empty), it can then start again without that setting, even if it is
    /// killed at once. A standalone server that has replayed a log onto a snapshot takes another snapshot (D-33, D-60). A
    /// member does not, because its leader may truncate its history.
    ///
    /// * `snapshot`: zxid of the snapshot that was loaded. `last`: last zxid of the tree.
    pub fn of(start: Start, snapshot: Option<Zxid>, last: Zxid, is_member: bool) -> Self {
        match start {
            Start::Empty | Start::ReplayOntoEmpty => Self::BeforeServing,
            Start::Replay if !is_member && snapshot != Some(last) => Self::BesideServing,
            Start::Replay | Start::Unsure | Start::RefuseNoSnapshot | Start::RefuseBadSnapshots => {
                Self::None
            }
        }
    }
}

impl<D: Disk> Started<D> {
    /// Takes the first snapshot of a start.
    ///
    /// * `disk`, `folders`: where a doubted tree is noted, before its snapshot hides that from the next start.
    /// * `write`: writes the tree as it was frozen, and names the snapshot. The tree's lock is not held meanwhile.
    ///
    /// # Errors
    /// Those of `write`, and if the doubt can't be noted.
    pub fn take_first_snapshot<E: From<AssembleError>>(
        mut self,
        disk: &D,
        folders: &Folders,
        recovered: &Recovered,
        now: Now,
        write: impl FnOnce(&Shared, Frozen) -> Result<(), E>,
    ) -> Result<Self, E> {
        let tree = &self.shared.state.tree;
        let last = tree.read().last_zxid();
        let snapshot = recovered.snapshot.map(|(zxid, _)| zxid);
        let is_member = self.member.replica.mode() != Mode::Standalone;
        match FirstSnapshot::of(recovered.start, snapshot, last, is_member) {
            FirstSnapshot::None => {}
            FirstSnapshot::BesideServing => self.member.snapshot(now, &mut self.actions),
            FirstSnapshot::BeforeServing => {
                if self.member.replica.doubts_tree() {
                    let path = doubted::path(&folders.snapshots);
                    doubted::note(disk, &folders.snapshots)
                        .map_err(|source| AssembleError::Doubt { path, source })?;
                }
                let frozen = tree.write().freeze();
                if let Some(frozen) = frozen {
                    let written = write(&self.shared, frozen);
                    tree.write().thaw(frozen);
                    written?;
                }
            }
        }
        Ok(self)
    }
}

/// Puts a server together.
///
/// * `parts`: the settings that `config` gives. `tree`: what was loaded.
///
/// # Errors
/// If a file that the server needs for the agreement can't be used.
pub fn assemble<D: Disk + Clone>(
    disk: &D,
    folders: &Folders,
    config: &Config,
    parts: PartSettings,
    tree: Tree,
    history: RestoredHistory,
    now: Now,
) -> Result<Started<D>, AssembleError> {
    let PartSettings { log, limits, agreement, replica, mut member, .. } = parts;
    let log = Log::new(disk.clone(), &folders.logs, log, Some(tree.last_zxid()));
    let shared = Arc::new(Shared::new(State::new(tree, parts.tree.seed), limits));
    let now_ms = now.us / 1000;
    let history = match &config.ensemble {
        Some(ensemble) => with_earlier_doubt(disk, folders, ensemble, history)?,
        None => history,
    };
    let mut replica = match config.ensemble.as_ref().zip(agreement) {
        None => {
            check_alone(disk, folders, config.reconfig_enabled)?;
            Replica::standalone(shared.clone(), replica, now_ms)
        }
        Some((ensemble, settings)) => {
            let last = match settings.reconfigs {
                true => LastInForce::read(disk, &folders.snapshots)?,
                false => None,
            };
            if last.is_some() {
                epoch::check_member(disk, &folders.snapshots)?;
            }
            let epochs = epoch::promised(disk, &folders.snapshots, history.last)?;
            let logged = LastConfigs::of(&shared.state.tree.read()).views();
            let committed = committed_in(&logged, history.last).cloned();
            let StartViews { view, saved, saved_before, decided } =
                StartViews::of(ensemble, last.as_ref(), logged, epochs.accepted);
            let last = last.map(|last| {
                let known = committed.iter().chain(&decided).max_by_key(|view| view.version);
                with_decided(last, known, epochs.accepted)
            });
            if let Some((own, decided)) = member.ensemble.as_mut().zip(decided) {
                own.decided = decided;
            }
            let mut peer = peer(ensemble.my_id, settings, view, saved, epochs, history);
            if let Some(last) = last {
                let saved = acknowledged(saved_before, epochs.current, history.last);
                let LastInForce { view, promised, beside, .. } = last;
                peer.core.see_last_in_force(view, promised, &beside, saved);
            }
            peer.core.oracle = ensemble.oracle_path.as_ref().map(|_| false);
            let replica = Replica::member(shared.clone(), peer, replica, now_ms);
            warn_of_other_quorums(&replica.peer().core);
            replica
        }
    };
    // A standalone server serves its tree nevertheless, as there is no other; but it may become a member.
    if !history.fits_digests {
        replica.doubt_tree();
    }
    if config.ensemble.is_some()
        && let Some(since) = history.differs_since
    {
        warn_of_difference(since);
        replica.know_difference(since);
    }
    let mut member = Member::new(replica, member, now);
    let mut actions = Vec::new();
    member.start(now, &mut actions);
    Ok(Started { member, shared, log, actions })
}

/// The configurations in the files of a member.
struct StartViews {
    /// The one that zoo.cfg has or names.
    view: View,
    /// Those in `.dynamic.next`, oldest first: proposed after `view`, and proposed before an operator wrote `view`.
    saved: Vec<View>,
    saved_before: Vec<View>,
    /// What was in force by the version of a dynamic file whose lines an operator has changed.
    decided: Option<View>,
}

impl StartViews {
    /// Dynamic files get their names from transactions, and nothing else is in force by the same version. If the lines in one make other
    /// quorums than the configuration of that version that `last` has, or else the history, an operator has written them, as into zoo.cfg
    /// (version 0). Where an operator has removed the copy (`last`), the lines count alone.
    ///
    /// Together with what was in force before an operator wrote, `.dynamic.next` counts as well. If nothing in force was of a promised epoch,
    /// it counts beside the operator's lines, as at a member that was stopped before its first configuration came in force.
    ///
    /// * `logged`: the configurations of the history. `accepted`: the last promise.
    fn of(
        ensemble: &Ensemble,
        last: Option<&LastInForce>,
        logged: Vec<View>,
        accepted: Epoch,
    ) -> Self {
        let (mut view, seen) = (ensemble.view.clone(), ensemble.last_seen.clone());
        // An oracle takes the place of weights and groups, which a transaction may have nevertheless.
        let has_other_quorums = |decided: &View| match ensemble.oracle_path {
            None => !decided.has_quorums_of(&view),
            Some(_) => !decided.voters().eq(view.voters()),
        };
        let of_version = last.and_then(|last| {
            let mut known = last.views().chain(&logged);
            known.find(|known| known.version == view.version).cloned()
        });
        let decided = of_version.filter(|it| view.version != 0 && has_other_quorums(it));
        if decided.is_none() {
            let saved_before = ensemble.seen_before_lines.clone();
            return Self { view, saved: seen, saved_before, decided };
        }
        view.version = 0;
        let was_promised = last
            .into_iter()
            .flat_map(LastInForce::views)
            .chain(&decided)
            .any(|known| known.is_promised(accepted));
        let (saved, saved_before) = if was_promised { (vec![], seen) } else { (seen, vec![]) };
        Self { view, saved, saved_before, decided }
    }
}

/// The last configuration in force, and the newest one that this server has promised: when the copy was made, it may only have heard of
/// that one.
///
/// * `last`: the copy. `decided`: the newest that is known to have been in force otherwise: what a dynamic file had whose lines an operator
///   has changed, or what the history has and a Java server has put in force here. The copy is of an earlier time if it does not have that.
fn with_decided(last: LastInForce, decided: Option<&View>, accepted: Epoch) -> LastInForce {
    let is_newer = |decided: &&View| last.views().all(|known| known.version < decided.version);
    let view = decided.filter(is_newer).unwrap_or(&last.view).clone();
    let named = last.named.iter().chain(decided).cloned().collect();
    let known = LastInForce { view, named, ..last };
    let promised = known.newest_promised(accepted).cloned();
    LastInForce { promised, ..known }
}

/// The newest configuration of a history that was committed: the history has a transaction of a later epoch, whose leader had that
/// configuration in its own history, and opened its epoch with a quorum of it. docs/deviations.md says which leaders needed none.
///
/// * `last`: the last transaction.
fn committed_in(logged: &[View], last: Option<Zxid>) -> Option<&View> {
    let last = last.filter(|last| last.counter() != 0)?;
    let is_of_earlier_epoch = |view: &&View| {
        let at = Zxid::from_wire(view.version);
        view.version != 0 && at.is_some_and(|at| at.epoch() < last.epoch())
    };
    logged.iter().rev().find(is_of_earlier_epoch)
}

/// The history, whose tree does not fit if an earlier start found that, and a snapshot hides it since.
fn with_earlier_doubt<D: Disk>(
    disk: &D,
    folders: &Folders,
    ensemble: &Ensemble,
    history: RestoredHistory,
) -> Result<RestoredHistory, AssembleError> {
    let path = doubted::path(&folders.snapshots);
    let was_doubted = doubted::is_noted(disk, &folders.snapshots)
        .map_err(|source| AssembleError::Doubt { path: path.clone(), source })?;
    let is_news = history.fits_digests && history.last.is_some();
    if was_doubted && is_news && ensemble.has_other_voters() {
        tracing::error!(
            path = %path.display(),
            "the tree of an earlier run did not match the digests in its log, and a snapshot hides it since: this server votes for no server until a leader has \
             sent its tree, or until no server has led for initLimit; compare the znodes of the members, and remove that file if they are the same"
        );
    }
    Ok(RestoredHistory { fits_digests: history.fits_digests && !was_doubted, ..history })
}

/// The newest configuration that counts beside the operator's lines (version 0) and has other quorums.
pub fn with_other_quorums(core: &zab::Core) -> Option<&View> {
    let others = core.views_beside_operators().filter(|view| !view.has_quorums_of(&core.view));
    others.max_by_key(|view| view.version)
}

/// The voters of [`with_other_quorums`].
pub fn last_voters(core: &zab::Core) -> Option<String> {
    with_other_quorums(core).map(View::voters_text)
}

/// Refuses a standalone start with the data of a member whose ensemble may go on: by the same zxids it would have another history.
///
/// * `reconfigs`: `reconfigEnabled`; without it the operator of a copy of the data is warned.
fn check_alone<D: Disk>(disk: &D, folders: &Folders, reconfigs: bool) -> Result<(), AssembleError> {
    // A file that can't be read says nothing, and a standalone server does not need it.
    let last = LastInForce::read(disk, &folders.snapshots).ok().flatten();
    let Some(last) = last.filter(|last| 1 < last.view.voters().count()) else { return Ok(()) };
    let last_voters = last.view.voters_text();
    if reconfigs {
        return Err(AssembleError::Alone { last_voters });
    }
    tracing::warn!(
        %last_voters,
        "standalone server with the data of a member of an ensemble: what is written here is lost if that ensemble goes on; add its server.N lines to zoo.cfg, or remove version-2/lastConfiguration if this server is to stay alone"
    );
    Ok(())
}

fn warn_of_other_quorums(core: &zab::Core) {
    if let Some(last_voters) = last_voters(core) {
        tracing::warn!(
            voters = %core.view.voters_text(), %last_voters,
            "the server.N lines have other voters, weights or groups than the last configuration in force: a leader needs a quorum of both, and then the lines count alone; if a quorum of the last one is gone for good, stop ALL servers, remove version-2/lastConfiguration at each, and start those with data first"
        );
    }
}

/// The `zab` peer of a member, about to look for a leader, without the configurations of its history.
///
/// * `view`: the configuration of the start. `saved`: those in `.dynamic.next`, oldest first.
pub fn peer(
    me: ServerId,
    settings: zab::Settings,
    view: View,
    saved: Vec<View>,
    epochs: Epochs,
    history: RestoredHistory,
) -> Peer {
    let has_others = view.has_other_voters(me);
    let mut peer = Peer::member(me, settings, view, epochs, history.last);
    // A single voter has no other candidate to wait for.
    if !history.fits_digests && has_others {
        peer.doubt();
    }
    set_saved_views(&mut peer, saved, epochs.current, history.last);
    peer
}

/// Gives a starting server's `zab` peer the configurations in `.dynamic.next`. This comes before its history
/// (`replica::configuration::set_views_of_history`): while there is no file that a reconfiguration wrote, those configurations of the
/// history count that are saved.
///
/// * `saved`: the configurations, oldest first. `current`, `last`: see [`saved_view_counts`].
fn set_saved_views(peer: &mut Peer, saved: Vec<View>, current: Epoch, last: Option<Zxid>) {
    let counts = saved.last().is_none_or(|newest| saved_view_counts(newest, current, last));
    peer.core.see_saved_views(saved, counts);
}

/// The configurations in `.dynamic.next` without a newest one that this server has not acknowledged.
fn acknowledged(mut saved: Vec<View>, current: Epoch, last: Option<Zxid>) -> Vec<View> {
    saved.pop_if(|newest| !saved_view_counts(newest, current, last));
    saved
}

/// Whether the newest configuration in `.dynamic.next` may have been committed with the help of this server.
///
/// A Java server writes a proposed configuration there before it logs the proposal. After a crash between the two, the log
/// without the configuration proves that the proposal was not acknowledged. In two cases the log proves nothing: Java
/// acknowledges the configuration of a NEWLEADER although no log has it, and a log may be lost while configuration files stay.
///
/// * `current`: the epoch of the history. `last`: its end; `None`: this server has nothing that counts.
pub fn saved_view_counts(saved: &View, current: Epoch, last: Option<Zxid>) -> bool {
    let (Some(last), Some(version)) = (last, Zxid::from_wire(saved.version)) else { return true };
    // After an interrupted synchronisation the log is ahead of currentEpoch.
    let epoch = current.max(last.epoch());
    let is_of_one_epoch = version.epoch() == epoch && last.epoch() == epoch;
    !(is_of_one_epoch && last < version)
}
