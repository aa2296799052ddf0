//! The history of an ensemble as seen from outside: which server proposed what, which transactions are committed, and the
//! state after each of them.
//!
//! A zxid names one proposal, and the epoch's leader says which history it began with. So the last zxid of a server names
//! all of its history, whether it came by log, by DIFF or as a tree.

use super::model::Model;
use super::restored_tree::RestoredTree;
use crate::model::{Epoch, ServerId, View, Zxid};
use crate::tree::txn::{Entry, config_in};
use bytes::Bytes;
use std::collections::BTreeMap;

/// A committed transaction.
#[derive(Clone, Debug)]
pub struct Committed {
    pub zxid: Zxid,
    /// Empty if a tree was restored.
    pub entry: Bytes,
    /// Digest of the tree after the transaction, as its leader computed it.
    pub digest: u64,
}

pub struct History {
    proposed: BTreeMap<Zxid, Bytes>,
    /// The leader of each epoch, and the last zxid of the history it began with.
    pub leaders: BTreeMap<Epoch, (usize, Zxid)>,
    /// Those of the time before servers lost their data. A server that was down meanwhile may still have a history of that time.
    former_leaders: BTreeMap<Epoch, (usize, Zxid)>,
    committed: Vec<Committed>,
    /// The trees that were restored, by their zxids. A restore is the last proposal of its epoch.
    pub restores: BTreeMap<Zxid, RestoredTree>,
    /// The configuration that the ensemble began with, and those that were committed.
    views: Vec<View>,
    proposed_views: Vec<View>,
    /// The configuration that the operator wrote for all servers after a quorum had lost its data: it alone decides what remains.
    rewritten: Option<View>,
    /// Configurations that operators wrote before the first of `views`.
    lines: Vec<View>,
    /// Operators write lines at each start of a server: what the next leader makes of them replaces all configurations before it.
    pub writes_lines: bool,
    pub model: Model,
    /// Sessions are local until they create an ephemeral znode.
    pub local_sessions: bool,
    /// The one server is standalone. It opens no epochs: its zxids go on from its last one, and those of transactions that its disk has
    /// lost before they were answered are given out again. Only a restored tree may begin another epoch.
    pub is_alone: bool,
    /// A sync shows all that any reply showed before the sync was sent.
    pub confirms_syncs: bool,
    /// Each read shows all that any reply showed before the read was sent.
    pub confirms_reads: bool,
    /// The server of the current step, if an oracle lets it go on without the other of two voters.
    pub alone: Option<ServerId>,
    /// Digest of a tree without transactions.
    first_digest: u64,
}

impl History {
    /// * `first_digest`: of a new server's tree.
    /// * `first_view`: the configuration that the ensemble begins with.
    pub fn new(first_digest: u64, local_sessions: bool, first_view: View) -> Self {
        Self {
            proposed: BTreeMap::new(),
            leaders: BTreeMap::new(),
            former_leaders: BTreeMap::new(),
            committed: Vec::new(),
            restores: BTreeMap::new(),
            views: vec![first_view],
            proposed_views: Vec::new(),
            rewritten: None,
            lines: Vec::new(),
            writes_lines: false,
            model: Model::new(),
            local_sessions,
            is_alone: false,
            confirms_syncs: false,
            confirms_reads: false,
            alone: None,
            first_digest,
        }
    }

    /// The configurations that a transaction needs a quorum of each of: the newest one before it and, if it is a reconfiguration, the
    /// one that it proposes.
    pub fn deciders(&self, zxid: Zxid) -> impl Iterator<Item = &View> {
        let rewritten = self.rewritten.as_ref().filter(|view| zxid.to_wire() <= view.version);
        let by_history = self.deciders_by_history(zxid).filter(move |_| rewritten.is_none());
        rewritten.into_iter().chain(by_history)
    }

    fn deciders_by_history(&self, zxid: Zxid) -> impl Iterator<Item = &View> {
        let is_later = |view: &&View| zxid.to_wire() < view.version;
        let mut known = self.views.iter().rev().skip_while(is_later);
        let newest = known.next();
        let is_its_own = newest.is_some_and(|view| view.version == zxid.to_wire());
        newest.into_iter().chain(known.next().filter(|_| is_its_own))
    }

    /// The configuration that was committed last, or that the ensemble began with, and those that were proposed after it.
    pub fn newest_views(&self) -> impl Iterator<Item = &View> {
        let newest = self.views.last();
        let version = newest.map_or(0, |view| view.version);
        newest.into_iter().chain(self.proposed_views.iter().filter(move |it| version < it.version))
    }

    /// The newest configuration in a history that ends with `last`, committed or not.
    ///
    /// # Panics
    /// Never: an ensemble begins with a configuration.
    pub fn newest_in(&self, last: Zxid) -> &View {
        let zxid = |view: &View| Zxid::from_wire(view.version);
        let is_in = |view: &&View| zxid(view).is_some_and(|zxid| self.holds(last, zxid));
        let newest = self.proposed_views.iter().filter(is_in).max_by_key(|view| view.version);
        newest.or(self.views.first()).expect("the first configuration")
    }

    /// The configurations that were proposed in a history that ends with `last`, after the last tree that was restored there.
    pub fn views_in(&self, last: Zxid) -> impl Iterator<Item = &View> {
        let restored = self.restores.keys().rfind(|zxid| self.holds(last, **zxid)).copied();
        self.proposed_views.iter().filter(move |view| {
            let zxid = Zxid::from_wire(view.version);
            zxid.is_some_and(|zxid| restored < Some(zxid) && self.holds(last, zxid))
        })
    }

    /// Whether a leader that proposed `zxid` had the configuration of this version in force then.
    pub fn was_in_force(&self, version: i64, zxid: Zxid) -> bool {
        let is_before = |view: &&View| view.version < zxid.to_wire();
        let Some(newest) = self.views.iter().rev().find(is_before) else { return false };
        match newest.version {
            // The version of the first configuration is the zxid with which its first leader began.
            0 => version != 0 && Zxid::from_wire(version).is_some_and(|it| it.counter() == 0),
            newest => newest == version,
        }
    }

    /// Zxids of the reconfigurations that are committed after one zxid, through another.
    pub fn reconfigurations(&self, after: Zxid, through: Zxid) -> impl Iterator<Item = Zxid> {
        let zxids = self.views.iter().filter_map(|view| Zxid::from_wire(view.version));
        let is_between = move |&zxid: &Zxid| after < zxid && zxid <= through;
        // A configuration that only NEWLEADER named is in no history.
        zxids.filter(is_between).filter(|zxid| self.find(*zxid).is_some())
    }

    /// * `view`: committed. Where operators write lines, it may have been proposed before the newest ones, which it does not replace.
    fn put_in_force(&mut self, view: View) {
        let is_newest = self.views.last().is_none_or(|newest| newest.version < view.version);
        if is_newest || !self.writes_lines {
            self.views.push(view);
        }
    }

    /// Sees a configuration in force.
    ///
    /// * `server`: where it is in force.
    pub fn see_in_force(&mut self, server: usize, view: &View) {
        if self.writes_lines && self.is_of_operators(view) {
            self.put_in_force(view.clone());
        } else if !self.has_view(view) {
            self.agree_on(server, view);
        }
    }

    /// Sees a configuration in force that is not committed. It counts from now on if it was proposed in an epoch before the newest
    /// one, and no later epoch has been established without it: quorums of both configurations acknowledged it with NEWLEADER, from a
    /// leader that knows it from `.dynamic.next` alone, because its log was truncated by a leader that then established no epoch. The
    /// epoch of the leader itself may just have been established.
    ///
    /// * `server`: where it is in force.
    fn agree_on(&mut self, server: usize, view: &View) {
        let Some(version) = Zxid::from_wire(view.version) else { return };
        let of = |entry: &Bytes| View::from_bytes(config_in(entry)?).ok();
        let was_proposed = self.proposed.get(&version).and_then(of).as_ref() == Some(view);
        // The leader that proposed it puts it in force by a commit.
        let is_of_earlier = self.leaders.keys().any(|epoch| version.epoch() < *epoch);
        let last = self.last().epoch();
        let is_excluded = self.leaders.iter().any(|(epoch, (leader, _))| {
            version.epoch() < *epoch && (*leader != server || *epoch <= last)
        });
        if was_proposed && is_of_earlier && !is_excluded {
            self.views.push(view.clone());
        }
    }

    /// Whether a configuration was committed.
    pub fn has_view(&self, view: &View) -> bool {
        self.views.contains(view)
            || self.rewritten.as_ref() == Some(view)
            || self.is_of_operators(view)
    }

    /// Whether operators wrote this configuration. It has got the zxid of its first leader as its version.
    fn is_of_operators(&self, view: &View) -> bool {
        let has_first = Zxid::from_wire(view.version).is_some_and(|zxid| zxid.counter() == 0);
        let is_same = |it: &View| View { version: it.version, ..view.clone() } == *it;
        has_first && self.views.first().into_iter().chain(&self.lines).any(is_same)
    }

    pub fn last(&self) -> Zxid {
        self.committed.last().map_or(Zxid::ZERO, |last| last.zxid)
    }

    pub fn committed(&self) -> &[Committed] {
        &self.committed
    }

    pub fn proposal(&self, zxid: Zxid) -> Option<&Bytes> {
        self.proposed.get(&zxid)
    }

    /// The last proposal of an epoch.
    pub fn last_proposal(&self, epoch: Epoch) -> Option<Zxid> {
        let of_epoch = Zxid::new(epoch, 0)..=Zxid::new(epoch, u32::MAX);
        self.proposed.range(of_epoch).next_back().map(|(&zxid, _)| zxid)
    }

    pub fn propose(&mut self, zxid: Zxid, entry: Bytes) {
        let view = config_in(&entry).and_then(|text| View::from_bytes(text).ok());
        self.proposed_views.extend(view);
        self.proposed.insert(zxid, entry);
    }

    /// A leader proposes a tree in the place of all that was before.
    pub fn restore(&mut self, zxid: Zxid, tree: RestoredTree) {
        self.proposed.insert(zxid, Bytes::new());
        self.restores.insert(zxid, tree);
    }

    /// A standalone server starts with a history that ends with `last`: what came after it was never answered.
    pub fn start_alone(&mut self, server: usize, last: Zxid) {
        self.proposed.retain(|zxid, _| *zxid <= last);
        self.restores.retain(|zxid, _| *zxid <= last);
        self.leaders.retain(|epoch, _| *epoch <= last.epoch());
        self.leaders.entry(Epoch(0)).or_insert((server, Zxid::ZERO));
    }

    /// A standalone server restores a tree: its zxids go on after that.
    pub fn restore_alone(&mut self, server: usize, zxid: Zxid, before: Zxid) {
        self.leaders.entry(zxid.epoch()).or_insert((server, before));
    }

    /// What was committed and is not in the history that ends with `left` is lost, and so is all of the epochs after `promised`.
    /// The newest configuration of that history is in force from now on.
    pub fn lose(&mut self, left: Zxid, promised: Epoch) {
        self.rewritten = Some(self.newest_in(left).clone());
        let kept = self.committed.partition_point(|committed| self.holds(left, committed.zxid));
        self.committed.truncate(kept);
        let last = self.last();
        let mut views = std::mem::take(&mut self.views);
        let zxid = |view: &View| Zxid::from_wire(view.version);
        views.retain(|view| zxid(view).is_some_and(|zxid| self.is_committed(zxid)));
        self.views = views;
        self.proposed_views.retain(|view| zxid(view).is_some_and(|zxid| zxid.epoch() <= promised));
        self.former_leaders.clone_from(&self.leaders);
        self.leaders.retain(|epoch, _| *epoch <= promised);
        self.proposed.retain(|zxid, _| zxid.epoch() <= promised);
        self.restores.retain(|zxid, _| zxid.epoch() <= promised);
        self.model.lose_after(last.to_wire());
    }

    /// All that was committed is lost, and this configuration alone decides what follows. * `view`: may be of any version.
    pub fn begin_with(&mut self, view: View) {
        self.views = vec![view.clone()];
        self.rewritten = Some(view);
    }

    /// Operators have written other `server.N` lines on all servers, while these were down.
    pub fn write_lines(&mut self, view: View) {
        self.lines.extend(std::mem::take(&mut self.views));
        self.views = vec![view];
    }

    /// How often [`Self::write_lines`] was called.
    pub const fn rewritings(&self) -> usize {
        self.lines.len()
    }

    /// The committed transaction of this zxid.
    pub fn find(&self, zxid: Zxid) -> Option<&Committed> {
        let at = self.committed.binary_search_by_key(&zxid, |committed| committed.zxid).ok()?;
        Some(&self.committed[at])
    }

    /// Whether a committed transaction has this zxid; also zero, where the history begins.
    pub fn is_committed(&self, zxid: Zxid) -> bool {
        zxid == Zxid::ZERO || self.find(zxid).is_some()
    }

    /// The digest of a tree whose last transaction is this committed one.
    pub fn digest_at(&self, zxid: Zxid) -> Option<u64> {
        if zxid == Zxid::ZERO { Some(self.first_digest) } else { Some(self.find(zxid)?.digest) }
    }

    /// Whether a history that ends with `last` holds `zxid`.
    pub fn holds(&self, last: Zxid, zxid: Zxid) -> bool {
        holds(&self.leaders, last, zxid)
    }

    /// The same of a history of the time before other servers lost their data.
    pub fn held(&self, last: Zxid, zxid: Zxid) -> bool {
        holds(&self.former_leaders, last, zxid)
    }

    /// What a history that ends with `last` holds after `after`, in order.
    ///
    /// # Errors
    /// Why there is no such history.
    pub fn between(&self, after: Zxid, last: Zxid) -> Result<Vec<Zxid>, String> {
        let (mut zxids, mut at) = (Vec::new(), last);
        while after < at {
            if at.counter() == 0 {
                return Err(format!("{at} is no transaction"));
            }
            if !self.proposed.contains_key(&at) {
                return Err(format!("{at} was never proposed"));
            }
            zxids.push(at);
            at = if let Some(restored) = self.restores.get(&at) {
                restored.before
            } else if at.counter() > 1 {
                Zxid::new(at.epoch(), at.counter() - 1)
            } else {
                let Some((_, before)) = self.leaders.get(&at.epoch()) else {
                    return Err(format!("epoch {} has no leader", at.epoch().0));
                };
                *before
            };
        }
        if at != after {
            return Err(format!("a history that ends with {last} does not hold {after}, but {at}"));
        }
        zxids.reverse();
        Ok(zxids)
    }

    /// Commits the next transactions.
    ///
    /// # Errors
    /// When one of them can't be read.
    pub fn commit(&mut self, zxids: &[Zxid]) -> Result<(), String> {
        for &zxid in zxids {
            if let Some(tree) = self.restores.get(&zxid) {
                self.model.restore(zxid.to_wire(), &tree.znodes, &tree.sessions);
                let (entry, digest) = (Bytes::new(), tree.digest);
                self.committed.push(Committed { zxid, entry, digest });
                continue;
            }
            let bytes = self.proposed.get(&zxid).ok_or("committed without a proposal")?.clone();
            let before = self.committed.last().map_or(self.first_digest, |last| last.digest);
            let entry = Entry::decode(&bytes).map_err(|error| format!("{zxid}: {error}"))?;
            self.model.apply(&entry.header, &entry.txn);
            let digest = entry.digest.map_or(before, |digest| digest.tree_digest as u64);
            self.committed.push(Committed { zxid, entry: bytes.clone(), digest });
            if let Some(text) = config_in(&bytes) {
                let view = View::from_bytes(text).map_err(|error| format!("{zxid}: {error}"))?;
                self.put_in_force(view);
            }
        }
        Ok(())
    }
}

/// Whether a history that ends with `last` holds `zxid`.
///
/// * `leaders`: see [`History::leaders`].
fn holds(leaders: &BTreeMap<Epoch, (usize, Zxid)>, last: Zxid, zxid: Zxid) -> bool {
    let mut last = last;
    loop {
        if last <= zxid || zxid == Zxid::ZERO {
            return zxid <= last;
        }
        if last.epoch() == zxid.epoch() {
            return true;
        }
        match leaders.get(&last.epoch()) {
            Some((_, before)) if *before < last => last = *before,
            _ => return false,
        }
    }
}
