//! One server: what it has promised, what it holds, and what it is just now.

use super::election::{
    self, Backing, Elected, Election, Notification, PeerState, Standing, Views, Vote,
};
use super::history::Logged;
use super::{
    Action, History, Input, Leader, Learner, LinkId, Note, Packet, Promise, Sabotage, Stats,
};
use crate::model::{Epoch, ServerId, View, Zxid};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Milliseconds of an [`Input::Tick`].
const TICK_MS: u64 = 5;

/// The times of an ensemble.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settings {
    pub tick_time_ms: u64,
    /// In ticks of `tick_time_ms`, as `initLimit` and `syncLimit` are.
    pub init_limit: u64,
    pub sync_limit: u64,
    /// `forceSnapshotSync`: every learner gets the whole tree.
    pub always_sends_tree: bool,
    /// `reconfigEnabled`.
    pub reconfigs: bool,
    /// First and last pause between two resends of a vote.
    pub resend_min_ms: u32,
    pub resend_max_ms: u32,
}

impl Settings {
    pub(super) const fn init_ticks(&self) -> u64 {
        self.init_limit * self.tick_time_ms / TICK_MS
    }

    pub(super) const fn sync_ticks(&self) -> u64 {
        self.sync_limit * self.tick_time_ms / TICK_MS
    }

    /// Half of tickTime.
    pub(super) const fn ping_ticks(&self) -> u64 {
        let ticks = self.tick_time_ms / 2 / TICK_MS;
        if ticks == 0 { 1 } else { ticks }
    }
}

/// What every role shares.
#[derive(Debug)]
pub struct Core {
    pub me: ServerId,
    pub settings: Settings,
    /// The configuration in force.
    pub view: View,
    pub accepted: Epoch,
    pub current: Epoch,
    pub history: History,
    /// How far the log is durable.
    pub flushed: Zxid,
    /// An empty directory that nobody said to be new: what is in it does not count (D-02).
    pub is_unsure: bool,
    /// The newest configuration a leader told of, not in force yet.
    heard: Option<View>,
    /// Asked of the disk and not done yet.
    promising: u32,
    truncating: u32,
    installing: u32,
    /// Not to be appended before the log is cut or the tree installed: a crash would leave a log with a hole.
    held: Vec<Logged>,
    /// The history of this epoch's leader can be had as a whole tree only.
    wants_tree: Option<Epoch>,
    /// The role is over, for this reason.
    over: Option<String>,
    #[cfg(feature = "sabotage")]
    pub sabotage: Option<super::Sabotage>,
    /// The epoch of a leader was adopted.
    pub(super) settled_on: Option<Epoch>,
    pub stats: Stats,
    /// What has happened since somebody took them away.
    pub notes: Vec<Note>,
}

impl Core {
    /// Whether those of `ids` who vote are enough, by every configuration that counts.
    pub(super) fn is_quorum(&self, ids: &BTreeSet<ServerId>) -> bool {
        self.view.has_quorum(ids)
    }

    pub(super) fn highest_agreed(&self, acked: &BTreeMap<ServerId, Zxid>) -> Option<Zxid> {
        self.view.highest_agreed(acked)
    }

    /// Whether all that was appended is durable.
    pub(super) fn is_durable(&self) -> bool {
        self.history.last() <= self.flushed
    }

    fn is_settled(&self) -> bool {
        self.has(Sabotage::LooksTooSoon)
            || self.is_durable() && self.promising + self.truncating + self.installing == 0
    }

    /// What the disk has done, whatever this server is.
    fn note(&mut self, input: &Input, out: &mut Vec<Action>) {
        match input {
            // What was flushed before a cut says nothing of what comes after it.
            Input::Flushed { through } if self.truncating == 0 => {
                self.flushed = self.flushed.max(*through);
            }
            Input::Truncated { to } => {
                self.truncating = self.truncating.saturating_sub(1);
                self.flushed = self.flushed.min(*to);
                self.append_held(out);
            }
            Input::Uncuttable { last } => self.on_uncuttable(*last),
            Input::Promised { promise, epoch } => {
                self.promising = self.promising.saturating_sub(1);
                match promise {
                    Promise::Accepted => self.accepted = *epoch,
                    Promise::Current => self.current = *epoch,
                }
            }
            Input::Installed { zxid } => {
                self.installing = self.installing.saturating_sub(1);
                self.flushed = self.flushed.max(*zxid);
                self.append_held(out);
            }
            _ => {}
        }
    }

    /// Ends the role once the input under way is dealt with.
    pub(super) fn look(&mut self, why: String) {
        self.over.get_or_insert(why);
    }

    pub(super) fn promise(&mut self, promise: Promise, epoch: Epoch, out: &mut Vec<Action>) {
        self.promising += 1;
        out.push(Action::Promise { promise, epoch });
    }

    pub(super) fn append(&mut self, zxid: Zxid, payload: Bytes, out: &mut Vec<Action>) {
        self.history.append(zxid, payload.clone());
        let is_free = self.truncating + self.installing == 0;
        if is_free || self.has(Sabotage::AppendBehindTree) {
            out.push(Action::Append { zxid, payload });
        } else {
            self.held.push((zxid, payload));
        }
    }

    fn append_held(&mut self, out: &mut Vec<Action>) {
        if self.truncating + self.installing == 0 {
            let held = std::mem::take(&mut self.held);
            out.extend(held.into_iter().map(|(zxid, payload)| Action::Append { zxid, payload }));
        }
    }

    fn on_uncuttable(&mut self, last: Zxid) {
        self.truncating = self.truncating.saturating_sub(1);
        self.held.clear();
        self.history = History::new(last);
        self.flushed = last;
    }

    /// A leader of this epoch wants a cut that cannot be made. Its epoch is promised to, so that what is said of our log the
    /// next time is no vote.
    pub(super) fn want_tree(&mut self, epoch: Epoch) {
        self.wants_tree = Some(epoch);
    }

    /// What is said of our log to the leader of `epoch`.
    pub(super) fn last_for(&self, epoch: Epoch, is_vote: bool) -> Option<Zxid> {
        let wants_tree = !is_vote && self.wants_tree == Some(epoch);
        (!self.is_unsure && !wants_tree).then_some(self.history.last())
    }

    pub(super) fn truncate(&mut self, to: Zxid, out: &mut Vec<Action>) {
        self.history.truncate(to);
        if self.has(Sabotage::TruncationIgnored) {
            return;
        }
        self.truncating += 1;
        out.push(Action::Truncate { to });
    }

    pub(super) fn install(&mut self, zxid: Zxid, out: &mut Vec<Action>) {
        self.history.restart(zxid);
        (self.is_unsure, self.wants_tree) = (false, None);
        if !self.has(Sabotage::TreeNotAwaited) {
            self.installing += 1;
        }
        out.push(Action::Install { zxid });
    }

    /// Nothing is on its way to the disk that the history of a leader depends on.
    pub(super) fn has_history(&self) -> bool {
        self.is_durable() && self.truncating + self.installing == 0
    }

    /// What a leader of `epoch` makes its learners agree on: the first configuration gets a number of its own.
    pub(super) fn next_view(&self, epoch: Epoch) -> View {
        let mut view = self.view.clone();
        if view.version == 0 {
            view.version = Zxid::new(epoch, 0).to_wire();
        }
        view
    }

    pub(super) fn adopt_next_view(&mut self, epoch: Epoch) {
        if self.settings.reconfigs {
            self.view = self.next_view(epoch);
        }
    }

    /// Remembers the configuration a leader tells of; text that is none is passed over, as Java does.
    pub(super) fn heard_view(&mut self, text: &Bytes) {
        if text.len() <= 1 {
            return;
        }
        match std::str::from_utf8(text)
            .map_err(|error| error.to_string())
            .and_then(|text| View::parse(text).map_err(|error| error.to_string()))
        {
            Ok(view) => self.heard = Some(view),
            Err(error) => tracing::warn!("configuration of the leader not understood: {error}"),
        }
    }

    pub(super) fn adopt_heard_view(&mut self) {
        let Some(view) = self.heard.take() else { return };
        if self.settings.reconfigs && self.view.version < view.version {
            self.view = view;
        }
    }
}

/// What a server is just now.
#[derive(Debug)]
pub enum Role {
    /// `None` until the disk has everything.
    Looking(Option<Box<Election>>),
    Leading(Leader),
    Learning(Learner),
}

/// The machine of one server.
#[derive(Debug)]
pub struct Peer {
    pub core: Core,
    role: Role,
    /// Why an election is due, until the disk has everything.
    due: Option<String>,
    /// First words of learners that came before we knew that we lead.
    early: BTreeMap<LinkId, Packet>,
    /// What others said before our election began.
    heard: BTreeMap<ServerId, Notification>,
    /// What the others are told once the election is over.
    standing: Option<Standing>,
    /// Whose votes made us leader, until they follow.
    backing: Option<Backing>,
    round: i64,
    /// Whose election link broke and is not back: an election does not wait for them.
    down: BTreeSet<ServerId>,
}

impl Peer {
    /// A server that is alone, whose log ends at `last`.
    pub fn alone(me: ServerId, last: Zxid) -> Self {
        let settings = Settings {
            tick_time_ms: 1000,
            init_limit: u64::from(u32::MAX),
            sync_limit: u64::from(u32::MAX),
            always_sends_tree: false,
            reconfigs: false,
            resend_min_ms: 200,
            resend_max_ms: 60_000,
        };
        let mut core = Core::new(me, settings, View::of_one(me), History::forgetful(last));
        core.flushed = last;
        let role = Role::Leading(Leader::alone(&core));
        Self { role, ..Self::new(core) }
    }

    /// A member of an ensemble, about to look for a leader.
    ///
    /// * `last`: of its log, all of it in the tree; `None`: it has nothing that counts (D-02).
    pub fn member(
        me: ServerId,
        settings: Settings,
        view: View,
        (accepted, current): (Epoch, Epoch),
        last: Option<Zxid>,
    ) -> Self {
        let history = History::new(last.unwrap_or(Zxid::ZERO));
        let mut core = Core::new(me, settings, view, history);
        (core.accepted, core.current) = (accepted, current);
        core.is_unsure = last.is_none();
        core.flushed = core.history.last();
        Self { due: Some("this server has just started".to_owned()), ..Self::new(core) }
    }

    fn new(core: Core) -> Self {
        Self {
            core,
            role: Role::Looking(None),
            due: None,
            early: BTreeMap::new(),
            heard: BTreeMap::new(),
            standing: None,
            backing: None,
            round: 0,
            down: BTreeSet::new(),
        }
    }

    pub const fn role(&self) -> &Role {
        &self.role
    }

    /// Applies one input and pushes what must happen next.
    pub fn step(&mut self, input: Input, out: &mut Vec<Action>) {
        self.core.note(&input, out);
        self.note_link(&input);
        match (&mut self.role, input) {
            (_, Input::Heard { from, notification }) => self.on_heard(from, notification, out),
            (
                Role::Looking(Some(_)),
                input @ (Input::LinkUp { .. } | Input::LinkDown { .. } | Input::Tick),
            ) => {
                let input = match input {
                    Input::LinkUp { to } => election::Input::LinkUp { to },
                    Input::LinkDown { to } => election::Input::LinkDown { to },
                    _ => election::Input::Tick,
                };
                self.elect(input, out);
            }
            // Its process is gone, or about to elect another.
            (Role::Learning(learner), Input::LinkDown { to })
                if learner.leader() == to && learner.is_asking() =>
            {
                self.core.look(format!("leader {to} left before it was reached"));
            }
            (_, Input::LinkUp { .. } | Input::LinkDown { .. }) => {}
            (Role::Looking(_), Input::Elected { leader }) => {
                if self.due.is_none() {
                    self.begin(leader, out);
                }
            }
            // It elected us before we know of it.
            (Role::Looking(_), Input::Learner { link, packet }) => {
                self.early.insert(link, packet);
            }
            (Role::Looking(_), Input::LearnerGone { link }) => {
                self.early.remove(&link);
            }
            (Role::Looking(_), _) => {}
            (Role::Leading(leader), input) => leader.step(&mut self.core, input, out),
            (Role::Learning(_), Input::Learner { link, .. }) => {
                out.push(Action::CloseLink { link, why: "we do not lead".to_owned() });
            }
            (Role::Learning(learner), input) => learner.step(&mut self.core, input, out),
        }
        if let Some(epoch) = self.core.settled_on.take()
            && let Some(standing) = &mut self.standing
        {
            standing.vote.epoch = i64::from(epoch.0);
            standing.config = Bytes::from(self.core.view.to_string());
        }
        if let Some(why) = self.core.over.take() {
            self.stand_down(why, out);
        }
        if self.core.is_settled()
            && let Some(why) = self.due.take()
        {
            self.core.stats.elections += 1;
            self.core.notes.push(Note::Looking { why: why.clone() });
            out.push(Action::Look { why });
            self.look(out);
        }
    }

    /// A leader's link breaks before its learners look for another.
    fn note_link(&mut self, input: &Input) {
        match input {
            Input::LinkDown { to } => {
                self.down.insert(*to);
            }
            Input::LinkUp { to } | Input::Heard { from: to, .. } => {
                self.down.remove(to);
            }
            _ => {}
        }
    }

    /// Begins an election.
    fn look(&mut self, out: &mut Vec<Action>) {
        let core = &self.core;
        let zxid = if core.is_unsure { -1 } else { core.history.last().to_wire() };
        let votes = core.view.is_voter(core.me);
        let own = Vote { epoch: i64::from(core.current.0), zxid, leader: core.me };
        let setup = election::Setup {
            me: core.me,
            views: Views::of(core.view.clone()),
            adopts_views: core.settings.reconfigs,
            vote: if votes { own } else { Vote::NOTHING },
            down: self.down.clone(),
            last_round: self.round,
            resend_min_ms: core.settings.resend_min_ms,
            resend_max_ms: core.settings.resend_max_ms,
        };
        let mut actions = Vec::new();
        let election = Election::begin(setup, &mut actions);
        self.role = Role::Looking(Some(Box::new(election)));
        self.on_election(actions, out);
        for (from, notification) in std::mem::take(&mut self.heard) {
            self.on_heard(from, notification, out);
        }
    }

    fn elect(&mut self, input: election::Input, out: &mut Vec<Action>) {
        let Role::Looking(Some(election)) = &mut self.role else { return };
        let mut actions = Vec::new();
        election.step(input, &mut actions);
        self.round = self.round.max(election.round());
        self.on_election(actions, out);
    }

    fn on_election(&mut self, actions: Vec<election::Action>, out: &mut Vec<Action>) {
        for action in actions {
            match action {
                election::Action::Tell { to, notification } => {
                    out.push(Action::Tell { to, notification });
                }
                election::Action::DialAll => out.push(Action::DialAll),
                election::Action::NewerView { view, .. } => {
                    self.core.view = view;
                    return self.look(out);
                }
                election::Action::Elected(elected) => return self.on_elected(elected, out),
            }
        }
    }

    fn on_elected(&mut self, elected: Elected, out: &mut Vec<Action>) {
        let Elected { vote, round, electors } = elected;
        let (core, leader) = (&self.core, vote.leader);
        let state = if leader == core.me {
            PeerState::Leading
        } else if core.view.is_voter(core.me) {
            PeerState::Following
        } else {
            PeerState::Observing
        };
        self.round = round;
        let config = Bytes::from(core.view.to_string());
        self.standing = Some(Standing { state, vote, vote_round: round, round, config });
        self.core.notes.push(Note::Elected { leader, state });
        self.begin(leader, out);
        if state == PeerState::Leading {
            self.backing = Some(Backing::new(vote, round, electors));
        }
    }

    fn on_heard(&mut self, from: ServerId, notification: Notification, out: &mut Vec<Action>) {
        match &self.role {
            Role::Looking(None) => {
                self.heard.insert(from, notification);
            }
            Role::Looking(Some(_)) => {
                self.elect(election::Input::Heard { from, notification }, out);
            }
            Role::Leading(_) | Role::Learning(_) => {
                let views = Views::of(self.core.view.clone());
                if let Some(standing) = &self.standing
                    && let Some(notification) = standing.answer(&views, from, &notification)
                {
                    out.push(Action::Tell { to: from, notification });
                }
                let is_waiting =
                    matches!(&self.role, Role::Leading(leader) if !leader.has_followers());
                if is_waiting
                    && let Some(backing) = &mut self.backing
                    && !backing.holds_after(&views, from, &notification)
                {
                    self.core.stats.disloyal += 1;
                    self.stand_down("voters changed their minds".to_owned(), out);
                }
            }
        }
    }

    /// Gives up whatever this server is, so that an election follows.
    pub fn stand_down(&mut self, why: String, out: &mut Vec<Action>) {
        (self.standing, self.backing) = (None, None);
        match std::mem::replace(&mut self.role, Role::Looking(None)) {
            Role::Looking(_) => {}
            Role::Leading(leader) => {
                for link in leader.link_ids() {
                    out.push(Action::CloseLink { link, why: why.clone() });
                }
            }
            Role::Learning(_) => out.push(Action::HangUp),
        }
        out.push(Action::Rest);
        self.due = Some(why);
    }

    fn begin(&mut self, leader: ServerId, out: &mut Vec<Action>) {
        assert!(self.due.is_none() && self.core.is_settled(), "elected while the disk is behind");
        let early = std::mem::take(&mut self.early);
        if leader != self.core.me {
            self.role = Role::Learning(Learner::new(&self.core, leader, out));
            let why = "we do not lead".to_owned();
            out.extend(early.into_keys().map(|link| Action::CloseLink { link, why: why.clone() }));
            return;
        }
        let mut leader = Leader::new(&mut self.core, out);
        for (link, packet) in early {
            leader.step(&mut self.core, Input::Learner { link, packet }, out);
        }
        self.role = Role::Leading(leader);
    }
}

impl Core {
    fn new(me: ServerId, settings: Settings, view: View, history: History) -> Self {
        Self {
            me,
            settings,
            view,
            accepted: Epoch(0),
            current: Epoch(0),
            flushed: history.last(),
            history,
            is_unsure: false,
            heard: None,
            promising: 0,
            truncating: 0,
            installing: 0,
            held: Vec::new(),
            wants_tree: None,
            over: None,
            #[cfg(feature = "sabotage")]
            sabotage: None,
            settled_on: None,
            stats: Stats::default(),
            notes: Vec::new(),
        }
    }
}
