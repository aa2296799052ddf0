//! One server of an [`Ensemble`](super::ensemble::Ensemble), and what a Java member sends differently from ours.

use super::builders::WALL_MS;
use super::disk::{Disk, Entry, Write, last_of};
use super::txns::reconfig;
use super::views::view_in;
use oxkeeper::member::start::{RestoredHistory, peer};
use oxkeeper::model::{Epoch, ServerId, View, Zxid};
use oxkeeper::replica::configuration::{LastConfigs, set_views_of_history};
use oxkeeper::tree::txn::Entry as TxnEntry;
use oxkeeper::tree::{Options, Tree};
use oxkeeper::zab::{Action, Input, LearnerConnectionId as Id, Packet, Peer, Settings};
use std::collections::VecDeque;

/// Limit on the proposals that are repeated after a tree.
const REPEATED_MAX: usize = 3;

/// One server. The fields that a crash resets come first.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// `None`: it is down.
    pub peer: Option<Peer>,
    /// The transactions that are applied.
    pub tree: Vec<Entry>,
    /// Proposed or logged here and not applied.
    pub tail: VecDeque<Entry>,
    /// A leader's tree that came with SNAP.
    pub arrived: Option<Vec<Entry>>,
    pub is_looking: bool,
    /// Leads or follows, and serves clients.
    pub serves: bool,
    pub leads: Option<Epoch>,
    /// The last zxid that this server proposed as leader.
    pub proposed: Zxid,
    /// The epoch in the last LEADERINFO that it received.
    pub leader_info_epoch: Epoch,
    /// Its connection to its leader.
    pub connection: Option<Id>,
    /// ACKs that a Java learner sends later than ours.
    pub unsaid: Vec<Packet>,
    pub disk: Disk,
    /// What its oracle says, if it has one.
    pub oracle: Option<bool>,
    /// As a learner it acknowledges in Java's order: NEWLEADER, UPTODATE, and only then what was proposed meanwhile. As the leader it
    /// names in NEWLEADER the configuration that Java names.
    pub is_java: bool,
    /// As a Java leader it repeats, after a tree that it sends, the last proposals that the tree has.
    pub repeats: bool,
    /// A planted fault: it does not know that its history was lost.
    pub misses_loss: bool,
    /// At its next start its tree does not fit the digests in its log, although nothing is missing in it.
    pub doubts: bool,
    /// The machine is lost, for good.
    pub is_gone: bool,
    /// `Some`: its configuration files can't be written. When the server has to write one, it ends
    /// after this many pending writes of the log thread. It does not start again either.
    pub refuses_config: Option<usize>,
}

thread_local! {
    /// The tree of a history without configurations. Making a tree takes longer than the rest of a start.
    static WITHOUT_CONFIGS: Tree = Tree::new(Options::default());
}

/// Calls `read` with the configurations that a start finds: the last one in the leader's tree, and
/// those in the log after it.
fn read_configs<R>(
    from_tree: &[Entry],
    from_log: &[Entry],
    read: impl FnOnce(LastConfigs<'_>) -> R,
) -> R {
    if !from_tree.iter().chain(from_log).any(|(_, entry)| view_in(entry).is_some()) {
        return WITHOUT_CONFIGS.with(|tree| read(LastConfigs::of(tree)));
    }
    let mut tree = Tree::new(Options::default());
    if let Some(last) = from_tree.iter().rev().find_map(|(_, entry)| view_in(entry)) {
        tree.set_config(last.to_string().as_bytes(), last.version, WALL_MS);
    }
    for (zxid, entry) in from_log {
        let Some(view) = view_in(entry) else { continue };
        let entry = reconfig(*zxid, &view.to_string());
        let entry = TxnEntry::decode(&entry).expect("our own");
        tree.apply(&entry.header, &entry.txn, &mut Vec::new());
    }
    read(LastConfigs::of(&tree))
}

impl Server {
    /// Starts the `zab` peer from the disk.
    pub fn start(&mut self, me: ServerId, first_view: &View, settings: Settings) {
        let view = self.disk.view.clone().unwrap_or_else(|| first_view.clone());
        let (epochs, mut last) = self.disk.start();
        self.tree = self.disk.whole().to_vec();
        if self.misses_loss {
            last.get_or_insert(last_of(&self.tree));
        }
        let history = RestoredHistory { last, fits_digests: !self.doubts, differs_since: None };
        let mut peer = peer(me, settings, view, self.disk.next.clone(), epochs, history);
        peer.core.finds_view = view_in;
        // Proposed configurations are in the log, committed or not.
        let (from_tree, from_log) = self.tree.split_at(self.disk.newest_tree_len());
        read_configs(from_tree, from_log, |configs| set_views_of_history(&mut peer, configs));
        peer.core.oracle = self.oracle;
        self.peer = Some(peer);
    }

    /// The server loses its power: only the disk remains.
    pub fn end(&mut self) {
        let mut disk = std::mem::take(&mut self.disk);
        disk.asked.clear();
        let Self { oracle, is_java, repeats, misses_loss, doubts, is_gone, .. } = *self;
        let refuses_config = self.refuses_config;
        let kept = Self { oracle, is_java, repeats, misses_loss, is_gone, ..Self::default() };
        *self = Self { disk, doubts, refuses_config, ..kept };
    }

    /// The actions of a running server after an input.
    pub fn answer(&mut self, input: Input) -> Vec<Action> {
        let mut actions = Vec::new();
        self.peer.as_mut().expect("the server is up").step(input, &mut actions);
        actions
    }

    /// Returns the write that an action requests, and the actions that follow from it: the server's memory changes at once.
    pub fn take_in(&mut self, action: &Action) -> (Write, Vec<Action>) {
        let mut write = Write::of(action).expect("the action is for the disk");
        let mut views = None;
        match &mut write {
            Write::Append(entry) => self.tail.push_back(entry.clone()),
            Write::Truncate { to, .. } => self.tail.retain(|(zxid, _)| zxid <= to),
            Write::Install(zxid, tree) => {
                self.tree = self.arrived.take().expect("a tree came with SNAP");
                self.tail.retain(|(at, _)| *zxid < *at);
                tree.clone_from(&self.tree);
                views = Some(read_configs(tree, &[], |configs| configs.views()));
            }
            Write::Promise(..) | Write::Roll | Write::Joining => {}
        }
        let more = views.map_or_else(Vec::new, |views| self.answer(Input::TreeViews { views }));
        (write, more)
    }

    /// The packets that follow a tree. Java's leader chooses the first zxid that it forwards before it writes the tree, so what follows as
    /// PROPOSAL and COMMIT may be in the tree already (`LearnerHandler.syncFollower` and `run`, ZooKeeper 3.9.5).
    pub fn proposed_again(&self) -> Vec<Packet> {
        let Some(epoch) = self.leads.filter(|_| self.repeats) else { return Vec::new() };
        let own = self.tree.iter().rev().take_while(|(zxid, _)| zxid.epoch() == epoch);
        let mut again: Vec<&Entry> = own.take(REPEATED_MAX).collect();
        again.reverse();
        let packets = |(zxid, entry): &Entry| {
            let (zxid, entry) = (*zxid, entry.clone());
            [Packet::Proposal { zxid, entry }, Packet::Commit { zxid }]
        };
        again.into_iter().flat_map(packets).collect()
    }

    /// Java's leader names in NEWLEADER the newest configuration that it has seen, committed or not.
    pub fn say_as_java(&self, packets: &mut [Packet]) {
        let Some(peer) = self.peer.as_ref().filter(|_| self.is_java) else { return };
        for packet in packets {
            if let (Packet::NewLeader { view, .. }, Some(next)) = (packet, &peer.core.next) {
                *view = next.to_string().into();
            }
        }
    }

    /// The packets that a learner sends now: Java's learner keeps its ACKs of proposals back until it follows.
    pub fn say_later_as_java(&mut self, packets: Vec<Packet>) -> Vec<Packet> {
        let is_early = self.is_java && !self.serves;
        let waits = |packet: &Packet| matches!(packet, Packet::Ack { zxid } if is_early && zxid.counter() != 0);
        let (late, said) = packets.into_iter().partition(waits);
        self.unsaid.extend::<Vec<_>>(late);
        said
    }
}
