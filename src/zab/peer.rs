//! One server: what it has promised, its history, and its role.

use super::early_learners::EarlyLearners;
use super::election::{
    self, CurrentVote, Elected, Election, Electors, Notification, PeerState, Vote,
};
use super::election_links::ElectionLinks;
use super::{
    Action, Core, History, Input, Leader, Learner, LearnerConnectionId, Note, Packet, Settings,
};
use crate::model::{Epochs, ServerId, View, Zxid};
use bytes::Bytes;
use std::collections::BTreeMap;

/// The role of a server.
#[derive(Clone, Debug)]
pub enum Role {
    /// `None` until all that was appended is durable.
    Looking(Option<Box<Election>>),
    Leading(Box<Leader>),
    Learning(Learner),
}

/// The machine of one server.
#[derive(Clone, Debug)]
pub struct Peer {
    pub core: Core,
    pub(super) role: Role,
    /// Why an election is due; kept until all that was appended is durable and the election begins.
    due: Option<String>,
    /// The next leader, as a reconfiguration named it.
    named: Option<ServerId>,
    /// Learners that connected before this server knew that it leads.
    early: EarlyLearners,
    /// Notifications from before this server's election began: of members, and of [`UNKNOWN_HEARD_MAX`] servers in no configuration.
    heard: BTreeMap<ServerId, Notification>,
    /// The vote that is sent to other servers once the election is over.
    pub(super) current_vote: Option<CurrentVote>,
    /// The votes that made this server leader; kept until the servers that sent them follow this one.
    pub(super) backing: Option<Electors>,
    round: i64,
    /// Version of the configuration that is sent to other servers.
    sent_version: i64,
    /// Roles as a learner, one after the other, that ended before this server served.
    fruitless: u32,
    pub(super) links: ElectionLinks,
    /// Elections in a row that this server won, and in which no quorum followed it before the voters changed their votes.
    pub(super) unreached: u32,
    /// For how many ticks a due election waits: an observer lost its leader, as many others may have, or leaders keep refusing this server.
    pause_ticks: u64,
    /// For how many ticks this server stands for election although it is no voter of the configuration in force.
    stands_ticks: u64,
}

/// How long a learner waits that connects to a server which is itself a learner (100 ms): that server may be about to hear that it leads.
const EARLY_TICKS: u32 = 20;
/// A learner that connects to a server that is looking, and may still wait for better votes, waits half a second. It waits no longer,
/// because a server that was named or elected and then restarted does not know of it, and its learners would wait for initLimit.
const EARLY_LOOKING_TICKS: u32 = 100;

/// Limit on kept notifications of servers in no known configuration (joiners and strangers).
const UNKNOWN_HEARD_MAX: usize = 64;

/// After more than this many attempts in a row without serving, a learner pauses before it looks for a leader again: 10 ms, and twice
/// as long each time, up to a second. A learner that is always refused must not keep serving members busy.
const FRUITLESS_MAX: u32 = 5;
const PAUSE_TICKS_MAX: u64 = 200;

impl Peer {
    /// A standalone server, whose log ends at `last`.
    pub fn alone(me: ServerId, last: Zxid) -> Self {
        let settings = Settings {
            init_limit: u64::from(u32::MAX),
            sync_limit: u64::from(u32::MAX),
            window_txns: 0,
            ..Settings::DEFAULT
        };
        let mut core = Core::new(me, settings, View::of_one(me), History::forgetful(last));
        core.flushed = last;
        let role = Role::Leading(Box::new(Leader::alone(&core)));
        Self { role, ..Self::new(core) }
    }

    /// A member of an ensemble, about to look for a leader.
    ///
    /// * `last`: the last zxid of its log, all of it in the tree; `None`: it has nothing that counts (D-02).
    pub fn member(
        me: ServerId,
        settings: Settings,
        view: View,
        epochs: Epochs,
        last: Option<Zxid>,
    ) -> Self {
        let last_or_zero = last.unwrap_or(Zxid::ZERO);
        let history = History::with_window(last_or_zero, settings.window_txns);
        let mut core = Core::new(me, settings, view, history);
        (core.accepted, core.current) = (epochs.accepted, epochs.current);
        core.is_unsure = last.is_none();
        core.flushed = core.history.last();
        Self { due: Some("this server has just started".to_owned()), ..Self::new(core) }
    }

    fn new(core: Core) -> Self {
        Self {
            core,
            role: Role::Looking(None),
            due: None,
            named: None,
            early: EarlyLearners::default(),
            heard: BTreeMap::new(),
            current_vote: None,
            backing: None,
            round: 0,
            sent_version: 0,
            fruitless: 0,
            links: ElectionLinks::default(),
            unreached: 0,
            pause_ticks: 0,
            stands_ticks: 0,
        }
    }

    pub const fn role(&self) -> &Role {
        &self.role
    }

    /// Whether no countdown runs.
    pub(super) fn counts_nothing_down(&self) -> bool {
        self.pause_ticks == 0
            && self.stands_ticks == 0
            && self.core.doubt_ticks == 0
            && self.early.is_empty()
            && self.due.is_none()
    }

    /// Applies one input and pushes what must happen next.
    pub fn step(&mut self, input: Input, out: &mut Vec<Action>) {
        #[cfg(feature = "sim")]
        self.core.tape.iter_mut().for_each(|tape| tape.push(input.clone()));
        self.take(input, out);
        self.core.assert_invariants();
        self.assert_invariants();
    }

    fn take(&mut self, input: Input, out: &mut Vec<Action>) {
        self.core.note(&input, out);
        self.note_connections(&input, out);
        if input == Input::Tick {
            self.pause_ticks = self.pause_ticks.saturating_sub(1);
            self.withdraw_in_time(out);
            self.stop_doubting_in_time(out);
            if !matches!(self.role, Role::Leading(_)) {
                self.early.tick(out);
            }
        }
        let Some(input) = self.take_early(input, out) else { return self.settle(out) };
        match (&mut self.role, input) {
            (_, Input::Notification { from, notification }) => {
                self.on_heard(from, notification, out)
            }
            (_, Input::StandDown { why }) => self.stand_down(why, out),
            (_, Input::Restore { zxid, past }) => self.restore(zxid, past, out),
            (Role::Looking(Some(_)), Input::ElectionConnected { to }) => {
                self.elect(election::Input::ElectionConnected { to }, out);
            }
            (Role::Looking(Some(_)), Input::ElectionDisconnected { to }) => {
                self.elect(election::Input::ElectionDisconnected { to }, out);
            }
            (Role::Looking(Some(_)), Input::Oracle { agrees }) => {
                self.elect(election::Input::Oracle { agrees }, out);
            }
            (Role::Looking(Some(_)), Input::Tick) => self.elect(election::Input::Tick, out),
            (
                _,
                Input::ElectionConnected { .. }
                | Input::ElectionDisconnected { .. }
                | Input::ElectionUnreached { .. }
                | Input::Oracle { .. },
            ) => {}
            // `Core::note` has processed the disk's reports; the other inputs belong to a role that has ended.
            (
                Role::Looking(_),
                Input::Tick
                | Input::Propose { .. }
                | Input::Flushed { .. }
                | Input::Promised { .. }
                | Input::Truncated { .. }
                | Input::CannotTruncate { .. }
                | Input::Installed { .. }
                | Input::TreeViews { .. }
                | Input::Learner { .. }
                | Input::LearnerGone { .. }
                | Input::Progress { .. }
                | Input::Sync { .. }
                | Input::SnapshotBegun { .. }
                | Input::LogRead { .. }
                | Input::Leader { .. }
                | Input::LeaderGone,
            ) => {}
            (Role::Leading(leader), input) => leader.step(&mut self.core, input, out),
            (Role::Learning(learner), input) => learner.step(&mut self.core, input, out),
        }
        self.settle(out);
    }

    fn note_connections(&mut self, input: &Input, out: &mut Vec<Action>) {
        self.links.note(input, |id| self.core.is_member(id));
        self.stop_awaiting_leader(out);
        if let Role::Learning(learner) = &mut self.role {
            learner.note_election_connection(&mut self.core, input);
        }
    }

    /// Keeps the first packets of learners that connect before this server leads: others may know earlier that it was elected, or
    /// named by a reconfiguration. Returns any other input.
    fn take_early(&mut self, input: Input, out: &mut Vec<Action>) -> Option<Input> {
        let is_relayed = |connection: &LearnerConnectionId, packet: Option<&Packet>| matches!(&self.role, Role::Learning(learner) if !self.early.holds(*connection) && learner.takes(*connection, packet));
        match (&self.role, input) {
            (Role::Looking(_) | Role::Learning(_), Input::Learner { connection, packet })
                if !is_relayed(&connection, Some(&packet)) =>
            {
                let is_looking = matches!(self.role, Role::Looking(_));
                let ticks = if is_looking { EARLY_LOOKING_TICKS } else { EARLY_TICKS };
                let is_member = |id| self.core.is_member(id);
                self.early.take(connection, packet, ticks, is_member, out);
                None
            }
            (Role::Looking(_) | Role::Learning(_), Input::LearnerGone { connection })
                if !is_relayed(&connection, None) =>
            {
                self.early.forget(connection);
                None
            }
            (_, input) => Some(input),
        }
    }

    /// Ends a step: takes another role if this one is over, and begins a due election once the disk has everything.
    fn settle(&mut self, out: &mut Vec<Action>) {
        if let Some(epoch) = self.core.settled_on.take()
            && let Some(current_vote) = &mut self.current_vote
        {
            current_vote.vote.epoch = i64::from(epoch.0);
            current_vote.config = Bytes::from(self.core.view.to_string());
        }
        if self.core.activate_followed(out) {
            self.learn_as_configured();
        }
        self.update_sent_view();
        self.end_role_that_is_over(out);
        if self.core.is_settled()
            && self.pause_ticks == 0
            && let Some(why) = self.due.take()
        {
            if let Some(leader) = self.named.take() {
                self.go_on_under(leader, why, out);
                return self.end_role_that_is_over(out);
            }
            self.core.stats.elections += 1;
            self.core.notes.push(Note::Looking { why: why.clone() });
            out.push(Action::Look { why });
            self.look(out);
            self.end_role_that_is_over(out);
        }
    }

    fn end_role_that_is_over(&mut self, out: &mut Vec<Action>) {
        if let Some((why, named)) = self.core.over.take() {
            self.stand_down(why, out);
            self.named = named;
        }
    }

    /// A configuration came into force before the leader named it: a follower that is an observer in it, or an observer that is to
    /// vote in it, goes on under the same leader in its new role.
    fn learn_as_configured(&mut self) {
        if let Role::Learning(learner) = &self.role
            && learner.is_observer() != self.core.is_observer()
        {
            let version = self.core.view.version;
            let why = format!("this server has another role by configuration {version:#x}");
            self.core.go_on_under(Some(learner.leader()), why);
        }
    }

    /// Makes the configuration in force the one that is sent to other servers.
    fn update_sent_view(&mut self) {
        let Some(current_vote) = &mut self.current_vote else { return };
        if self.sent_version != self.core.view.version {
            self.sent_version = self.core.view.version;
            current_vote.config = Bytes::from(self.core.view.to_string());
        }
    }

    /// Takes the role that a reconfiguration gave this server.
    fn go_on_under(&mut self, leader: ServerId, why: String, out: &mut Vec<Action>) {
        let state = self.state_under(leader);
        let config = Bytes::from(self.core.view.to_string());
        let zxid = self.core.history.last().to_wire();
        // As in Java: no round and no epoch, until the new leader has one.
        let vote = Vote { epoch: -1, zxid, leader };
        self.current_vote = Some(CurrentVote {
            state,
            vote,
            vote_round: CurrentVote::NO_ROUND,
            round: self.round,
            config,
        });
        self.core.notes.push(Note::Looking { why });
        self.core.notes.push(Note::Elected { leader, state });
        self.begin(leader, false, false, out);
        if matches!(self.role, Role::Leading(_)) {
            // No voter was asked, so each counts until it looks for a leader: after a restart it does not know of this one.
            let voters = self.core.views().voters();
            let epoch = i64::from(self.core.current.0);
            self.backing = Some(Electors::of_named(Vote { epoch, ..vote }, voters));
        }
        self.hear_kept(out);
    }

    /// Hears what other servers have sent since the last role ended.
    fn hear_kept(&mut self, out: &mut Vec<Action>) {
        for (from, notification) in std::mem::take(&mut self.heard) {
            self.on_heard(from, notification, out);
        }
    }

    fn state_under(&self, leader: ServerId) -> PeerState {
        if leader == self.core.me {
            PeerState::Leading
        } else if self.core.is_observer() {
            PeerState::Observing
        } else {
            PeerState::Following
        }
    }

    /// Begins an election.
    pub(super) fn look(&mut self, out: &mut Vec<Action>) {
        self.stop_doubting_at_election();
        self.core.dial_saved_views(out);
        self.core.forget_outlived_views(out);
        self.core.vote_epochs.clear();
        self.core.for_empty.clear();
        let core = &self.core;
        let zxid = match core.history.last() {
            _ if core.is_unsure => -1,
            last => last.to_wire(),
        };
        let votes = core.view.is_voter(core.me) || 0 < self.stands_ticks;
        // Data in quarantine is of an unknown epoch; data that is only doubted is whole, and of the current epoch.
        let is_quarantined = core.is_unsure && !core.is_doubted();
        let current = i64::from(core.current.0);
        let epoch = if is_quarantined { Vote::UNKNOWN_EPOCH } else { current };
        let own = Vote { epoch, zxid, leader: core.me };
        let setup = election::Setup {
            me: core.me,
            views: core.views(),
            adopts_views: core.settings.reconfigs,
            vote: if votes { own } else { Vote::NOTHING },
            history: own,
            failed_candidate: core.leaders_view.is_some(),
            yields: votes && core.yields && !core.is_unsure,
            waits: !core.has_stood,
            oracle: core.oracle,
            down: self.links.down(),
            last_round: self.round,
            resend_min_ms: core.settings.resend_min_ms,
            resend_max_ms: core.settings.resend_max_ms,
        };
        let mut actions = Vec::new();
        let election = Election::begin(setup, &mut actions);
        self.core.leaders_view = None;
        self.role = Role::Looking(Some(Box::new(election)));
        self.on_election(actions, out);
        self.hear_kept(out);
    }

    /// Whether this server is a voter only of a proposed configuration, and was disconnected by a leader to which it had reported its
    /// last zxid: it may be the only server that has what was committed after the proposal, and then no other server can lead.
    fn was_turned_away(&self) -> bool {
        let core = &self.core;
        matches!(&self.role, Role::Learning(learner) if learner.is_waiting())
            && core.is_voter(core.me)
            && !core.view.is_voter(core.me)
    }

    /// Ends the candidacy of a server that only a proposed configuration lets vote: perhaps no voter that knows that configuration votes
    /// for it, and its votes may have kept the others from electing one of themselves.
    fn withdraw_in_time(&mut self, out: &mut Vec<Action>) {
        if self.stands_ticks == 1 && matches!(self.role, Role::Looking(Some(_))) {
            self.stands_ticks = 0;
            return self.look(out);
        }
        self.stands_ticks = self.stands_ticks.saturating_sub(1);
    }

    fn elect(&mut self, input: election::Input, out: &mut Vec<Action>) {
        let Role::Looking(Some(election)) = &mut self.role else { return };
        let mut actions = Vec::new();
        election.step(input, &mut actions);
        self.core.has_stood |= election.has_stood();
        self.round = self.round.max(election.round());
        self.on_election(actions, out);
    }

    fn on_election(&mut self, actions: Vec<election::Action>, out: &mut Vec<Action>) {
        for action in actions {
            match action {
                election::Action::SendNotification { to, notification } => {
                    out.push(Action::SendNotification { to, notification });
                }
                election::Action::DialAll => out.push(Action::DialAll),
                election::Action::NewerView { view, .. } => {
                    self.core.activate(view, out);
                    return self.look(out);
                }
                election::Action::Elected(elected) => return self.on_elected(elected, out),
            }
        }
    }

    fn on_elected(&mut self, elected: Elected, out: &mut Vec<Action>) {
        self.ask_if_not_needed(&elected);
        let Elected { vote, round, electors, leaders_view, .. } = elected;
        let leader = vote.leader;
        self.core.leaders_view = leaders_view;
        let state = self.state_under(leader);
        self.round = round;
        let config = Bytes::from(self.core.view.to_string());
        self.current_vote = Some(CurrentVote { state, vote, vote_round: round, round, config });
        self.core.notes.push(Note::Elected { leader, state });
        let has_all = self.core.views().have_quorums(&electors);
        // An oracle lets one of two voters decide, whatever is proposed.
        let withholds_promise = !has_all && self.core.is_joint() && self.core.oracle.is_none();
        self.begin(leader, withholds_promise, self.needs(leader), out);
        // No voter can take back what the oracle allowed.
        let leads = matches!(self.role, Role::Leading(_));
        if leads && has_all {
            self.backing = Some(Electors::new(vote, round, electors));
        }
    }

    fn on_heard(&mut self, from: ServerId, notification: Notification, out: &mut Vec<Action>) {
        if notification.state == PeerState::Looking {
            self.core.note_vote(from, &notification.vote);
        }
        match &self.role {
            Role::Looking(None) => {
                if notification.state == PeerState::Looking && !self.core.is_observer() {
                    self.pause_ticks = 0; // An election may need this server.
                }
                self.keep_for_election(from, notification);
            }
            Role::Looking(Some(_)) => {
                self.stand_beside_empty(from, &notification, out);
                self.elect(election::Input::Notification { from, notification }, out);
            }
            Role::Learning(learner) if self.has_left(learner, from, &notification) => {
                self.stand_down(format!("leader {} looks for another leader", from.0), out);
                self.keep_for_election(from, notification);
            }
            Role::Leading(_) | Role::Learning(_) => {
                self.note_earlier_round(from, &notification);
                let views = self.core.views();
                if let Some(current_vote) = &self.current_vote
                    && let Some(notification) = current_vote.answer(&views, from, &notification)
                {
                    out.push(Action::SendNotification { to: from, notification });
                }
                self.give_up_without_electors(&views, from, &notification, out);
            }
        }
    }

    /// Keeps a notification until the next election. If the sender is in no configuration, the notification's configuration is kept
    /// only if this server could adopt it.
    fn keep_for_election(&mut self, from: ServerId, mut notification: Notification) {
        let core = &self.core;
        if !core.is_member(from) {
            let unknown = self.heard.keys().filter(|id| !core.is_member(**id)).count();
            if UNKNOWN_HEARD_MAX <= unknown && !self.heard.contains_key(&from) {
                return;
            }
            notification.candidates_view = None;
            if !core.settings.reconfigs || notification.config_version() <= core.view.version {
                notification.config = None;
            }
        }
        self.heard.insert(from, notification);
    }

    /// Gives up the role, so that an election follows.
    pub(super) fn stand_down(&mut self, why: String, out: &mut Vec<Action>) {
        (self.current_vote, self.backing, self.named, self.unreached) = (None, None, None, 0);
        self.fruitless = match &self.role {
            Role::Learning(learner) if !learner.is_serving() => self.fruitless.saturating_add(1),
            Role::Looking(_) => self.fruitless,
            Role::Learning(_) | Role::Leading(_) => 0,
        };
        self.stands_ticks =
            if self.was_turned_away() { self.core.settings.init_ticks() } else { 0 };
        let doublings = self.fruitless.saturating_sub(FRUITLESS_MAX);
        self.pause_ticks = (1 << doublings.min(16)).min(PAUSE_TICKS_MAX) * u64::from(0 < doublings);
        match std::mem::replace(&mut self.role, Role::Looking(None)) {
            Role::Looking(_) => {}
            Role::Leading(leader) => {
                for connection in leader.connections() {
                    out.push(Action::CloseLearner { connection, why: why.clone() });
                }
            }
            Role::Learning(learner) => {
                if learner.is_observer() {
                    let delay_ms = self.core.settings.observer_election_delay_ms;
                    self.pause_ticks = self.pause_ticks.max(self.core.wait_ticks(delay_ms));
                }
                for connection in learner.connections() {
                    out.push(Action::CloseLearner { connection, why: why.clone() });
                }
                out.push(Action::Disconnect);
            }
        }
        out.push(Action::StopServing);
        self.due = Some(why);
    }

    /// * `withholds_promise`, `is_needed`: as in [`Learner::new`].
    fn begin(
        &mut self,
        leader: ServerId,
        withholds_promise: bool,
        is_needed: bool,
        out: &mut Vec<Action>,
    ) {
        assert!(
            self.due.is_none() && self.core.is_settled(),
            "elected before the disk has done all that was asked of it"
        );
        if leader == self.core.me && self.core.is_unsure {
            return self.stand_down("elected without data that counts".to_owned(), out);
        }
        if leader != self.core.me {
            let learner = Learner::new(&mut self.core, leader, withholds_promise, is_needed, out);
            self.role = Role::Learning(learner);
            return self.early.close_all(out);
        }
        let mut leader = Leader::new(&mut self.core, out);
        for (connection, packet) in self.early.take_all() {
            leader.step(&mut self.core, Input::Learner { connection, packet }, out);
        }
        self.role = Role::Leading(Box::new(leader));
    }

    fn assert_invariants(&self) {
        let (due, is_settled) = (&self.due, self.core.is_settled());
        let wants_another = self.core.over.is_some();
        assert!(!wants_another, "{:?} is over, and goes on", self.core.over);
        assert!(self.named.is_none() || due.is_some(), "{:?} is named, {due:?} is due", self.named);
        match &self.role {
            Role::Looking(None) => assert!(due.is_some(), "no election, {due:?} is due"),
            Role::Looking(Some(_)) => {
                let (last, flushed) = (self.core.history.last(), self.core.flushed);
                assert!(is_settled, "an election with {last} logged and {flushed} flushed");
                assert!(due.is_none(), "an election goes on, and {due:?} is due");
            }
            Role::Leading(leader) => {
                let (early, epoch) = (self.early.len(), leader.epoch().0);
                assert!(early == 0, "leads epoch {epoch}, and {early} learners wait for it");
                assert!(due.is_none(), "leads epoch {epoch}, and {due:?} is due");
                assert!(!self.core.is_unsure, "leads epoch {epoch} with nothing that counts");
            }
            Role::Learning(learner) => {
                let leader = learner.leader().0;
                assert!(due.is_none(), "learns from server {leader}, and {due:?} is due");
                assert!(learner.leader() != self.core.me, "learns from server {leader}, itself");
            }
        }
        let leads = matches!(self.role, Role::Leading(_));
        assert!(leads || self.backing.is_none(), "leads: {leads}, by votes: {:?}", self.backing);
    }
}
