//! One server of an [`Ensemble`](super::ensemble::Ensemble), and what a member that runs Java says otherwise than ours.

use super::disk::{Disk, Entry, Write, last_of};
use super::views::view_in;
use oxkeeper::member::start::saved_view_counts;
use oxkeeper::model::{Epoch, Epochs, ServerId, View, Zxid};
use oxkeeper::replica::configuration::{LastConfigs, tell_of_history};
use oxkeeper::zab::{Action, Input, LearnerConnectionId as Id, Packet, Peer, Settings};
use std::collections::VecDeque;

/// One server. What a crash takes from it comes first.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// `None`: it is down.
    pub peer: Option<Peer>,
    /// What is applied.
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
    /// The epoch of its leader's LEADERINFO.
    pub told: Epoch,
    /// To its leader.
    pub connection: Option<Id>,
    /// What a Java learner says later than ours.
    pub unsaid: Vec<Packet>,
    pub disk: Disk,
    /// What its oracle says, if it has one.
    pub oracle: Option<bool>,
    /// As learner it acknowledges in Java's order: NEWLEADER, UPTODATE, and only then what was proposed meanwhile. As leader it
    /// names the configuration that Java names in NEWLEADER.
    pub is_java: bool,
    /// A planted fault: it does not know that its history was lost.
    pub misses_loss: bool,
}

/// Texts of the last two configurations: of those in a leader's tree it has the last, and then those in the log.
#[derive(Default)]
struct Configs {
    before: Option<String>,
    last: Option<String>,
}

impl Configs {
    fn of(from_tree: &[Entry], from_log: &[Entry]) -> Self {
        let last = from_tree.iter().rev().find_map(|(_, entry)| view_in(entry));
        let mut configs = Self { before: None, last: last.map(|view| view.to_string()) };
        for view in from_log.iter().filter_map(|(_, entry)| view_in(entry)) {
            configs.before = Some(configs.last.unwrap_or_default());
            configs.last = Some(view.to_string());
        }
        configs
    }

    fn texts(&self) -> LastConfigs<'_> {
        let [before, last] =
            [&self.before, &self.last].map(|text| text.as_deref().map(str::as_bytes));
        LastConfigs { before, last }
    }
}

impl Server {
    /// Starts the peer from the disk.
    pub fn start(&mut self, me: ServerId, first_view: &View, settings: Settings) {
        let view = self.disk.view.clone().unwrap_or_else(|| first_view.clone());
        self.tree = self.disk.whole().to_vec();
        let Disk { accepted, current, .. } = self.disk;
        let last = last_of(&self.tree);
        let knows = !self.disk.is_unsure || self.misses_loss;
        let mut peer =
            Peer::member(me, settings, view, Epochs { accepted, current }, knows.then_some(last));
        peer.core.finds_view = view_in;
        // What was proposed is in the log, committed or not.
        let (from_tree, from_log) = self.tree.split_at(self.disk.newest_tree_len());
        tell_of_history(&mut peer, Configs::of(from_tree, from_log).texts());
        if let Some(view) = self.disk.next.clone() {
            let counts = saved_view_counts(&view, current, knows.then_some(last));
            peer.core.see_saved_view(view, counts);
        }
        peer.core.oracle = self.oracle;
        self.peer = Some(peer);
    }

    /// Power is gone: only the disk is left.
    pub fn end(&mut self) {
        let mut disk = std::mem::take(&mut self.disk);
        disk.asked.clear();
        let (oracle, is_java, misses_loss) = (self.oracle, self.is_java, self.misses_loss);
        *self = Self { disk, oracle, is_java, misses_loss, ..Self::default() };
    }

    /// What a running server does about an input.
    pub fn answer(&mut self, input: Input) -> Vec<Action> {
        let mut actions = Vec::new();
        self.peer.as_mut().expect("it runs").step(input, &mut actions);
        actions
    }

    /// Asks the disk for what an action wants of it; what is in memory follows at once. Gives the actions that this leads to.
    pub fn write(&mut self, action: &Action) -> Vec<Action> {
        let mut write = Write::of(action).expect("it is for the disk");
        let mut views = None;
        match &mut write {
            Write::Append(entry) => self.tail.push_back(entry.clone()),
            Write::Truncate(to) => self.tail.retain(|(zxid, _)| zxid <= to),
            Write::Install(zxid, tree) => {
                self.tree = self.arrived.take().expect("a tree came with SNAP");
                self.tail.retain(|(at, _)| *zxid < *at);
                tree.clone_from(&self.tree);
                views = Some(Configs::of(tree, &[]).texts().views());
            }
            Write::Promise(..) | Write::Roll => {}
        }
        self.disk.asked.push_back(write);
        views.map_or_else(Vec::new, |views| self.answer(Input::TreeViews { views }))
    }

    /// A leader of Java's names the newest configuration that it has seen, committed or not.
    pub fn say_as_java(&self, packets: &mut [Packet]) {
        let Some(peer) = self.peer.as_ref().filter(|_| self.is_java) else { return };
        for packet in packets {
            if let (Packet::NewLeader { view, .. }, Some(next)) = (packet, &peer.core.next) {
                *view = next.to_string().into();
            }
        }
    }

    /// What a learner says now: one of Java's keeps acknowledgements of proposals until it follows.
    pub fn say_later_as_java(&mut self, packets: Vec<Packet>) -> Vec<Packet> {
        let is_early = self.is_java && !self.serves;
        let waits = |packet: &Packet| matches!(packet, Packet::Ack { zxid } if is_early && zxid.counter() != 0);
        let (late, said) = packets.into_iter().partition(waits);
        self.unsaid.extend::<Vec<_>>(late);
        said
    }
}
