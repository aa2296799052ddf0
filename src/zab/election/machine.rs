//! One server's part in one election.

use super::ballots::{Ballot, Ballots};
use super::candidates::{Candidates, view_in};
use super::{Notification, PeerState, Views, Vote, notification};
use crate::model::{ServerId, View};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Milliseconds per [`Input::Tick`].
pub const TICK_MS: u32 = 5;
/// How long an election waits for a better vote after a quorum agrees.
const FINALIZE_TICKS: u32 = 200 / TICK_MS;
const REDIAL_TICKS: u32 = 1000 / TICK_MS;
/// When a quorum of the configuration in force follows a leader: how long this server waits until a quorum of each proposed
/// configuration does, too. 400 ms.
const UNITE_TICKS: u64 = 400 / TICK_MS as u64;
/// How long a server that has doubted its data waits for another candidate. 400 ms.
const YIELD_TICKS: u64 = 400 / TICK_MS as u64;
/// So many servers that don't vote are remembered as answered. There may be any number of them, since they name themselves.
const ANSWERED_MAX: usize = 256;
/// How long this server votes for a candidate that only another server's vote lets vote, without a quorum that agrees. 1 s.
const CANDIDATE_TICKS: u64 = 1000 / TICK_MS as u64;
/// For how long it votes for none of them after that, so that those who never do so elect another leader, if they can. 2 s.
const WITHOUT_CANDIDATES_TICKS: u64 = 2000 / TICK_MS as u64;

/// All that can happen to a server that looks for a leader.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// [`TICK_MS`] have passed.
    Tick,
    /// A notification came over the election connection to `from`.
    Notification { from: ServerId, notification: Notification },
    /// There is a new election connection to `to`; what was sent on the last one may be lost.
    ElectionConnected { to: ServerId },
    /// The election connection to `to` broke: that server counts as dead until it is heard of again. A server that never had a
    /// connection does not: it may be starting at this moment, as all do after a power cut, and have the better vote.
    ElectionDisconnected { to: ServerId },
    /// See [`Setup::oracle`].
    Oracle { agrees: bool },
}

/// All that an election can ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send in place of what is still unsent to `to`; without a connection, dial.
    SendNotification { to: ServerId, notification: Notification },
    /// Dial every voter without a connection.
    DialAll,
    /// The election is over; this machine does nothing more.
    Elected(Elected),
    /// A newer configuration than the current one: adopt it, and begin a new election with it. This machine does
    /// nothing more.
    NewerView { from: ServerId, view: View },
}

/// How an election ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Elected {
    /// `vote.leader` leads, perhaps this server itself.
    pub vote: Vote,
    pub round: i64,
    /// The servers that agreed, as far as this server knows.
    pub electors: BTreeSet<ServerId>,
    /// The elections of a quorum of other servers had ended with this leader before, so it does not wait for this server.
    pub others_suffice: bool,
    /// The proposed configuration that lets the leader vote, if none of this server's does: it has the leader's addresses.
    pub leaders_view: Option<View>,
}

/// What an election begins with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub me: ServerId,
    pub views: Views,
    /// Whether a newer configuration may be adopted (`reconfigEnabled`).
    pub adopts_views: bool,
    /// The last election ended with a leader that only another server's vote let vote ([`Elected::leaders_view`]), and it did not come to
    /// lead: this election begins without such candidates.
    pub failed_candidate: bool,
    /// This server's vote for itself; [`Vote::NOTHING`] if it doesn't vote.
    pub vote: Vote,
    /// The vote that it would have for itself if it voted.
    pub history: Vote,
    /// Whether this server has doubted its data: it stands only if no other server with as much does.
    pub yields: bool,
    /// Whether such a server waits for another before it stands.
    pub waits: bool,
    /// Whether this server may go on without the other of two voters, where there is an oracle to say so.
    pub oracle: Option<bool>,
    /// Servers whose connection broke and did not come back: they are not waited for (see [`Input::ElectionDisconnected`]).
    pub down: BTreeSet<ServerId>,
    /// Round of the last election, 0 before the first.
    pub last_round: i64,
    /// Shortest and longest pause between two resends (`fastleader.minNotificationInterval`, 200, and `max`, 60 000).
    pub resend_min_ms: u32,
    pub resend_max_ms: u32,
}

/// One server in one election.
#[derive(Clone, Debug)]
pub struct Election {
    pub(super) setup: Setup,
    /// Text of the current configuration.
    config: Bytes,
    /// This server's vote; within a round never worse than its vote for itself.
    pub(super) vote: Vote,
    pub(super) round: i64,
    /// Votes of this round.
    pub(super) votes: Ballots,
    /// Votes of servers that are not looking, of whatever round.
    settled: Ballots,
    /// Servers that count as dead.
    down: BTreeSet<ServerId>,
    /// Ticks since the begin.
    pub(super) now: u64,
    /// Without news the vote is sent to all again at that tick; the pause doubles.
    resend_at: u64,
    pub(super) resend_ticks: u64,
    /// A voter seems to have lost the better vote, and is sent it again at that tick, whatever others say until then.
    owed_at: Option<u64>,
    /// A quorum agrees, and the election is over at that tick.
    ends_at: Option<u64>,
    /// A proposed configuration that came with a vote for a server which only that configuration lets vote. Its servers are candidates in
    /// this election; it adds no quorum to any decision, and is forgotten with the election: it may never have been committed.
    candidates: Option<Candidates>,
    /// Such candidates are taken from that tick on.
    candidates_from: u64,
    /// A leader that a quorum of the configuration in force follows, and not yet one of each proposed configuration.
    found: Option<Found>,
    /// This server waits for another candidate, and stands at that tick: see [`Setup::waits`].
    pub(super) stands_at: Option<u64>,
    /// It has given way to a candidate that came later.
    pub(super) has_given_way: bool,
    /// The vote was sent to all once more, because a voter follows another server than the one elected.
    has_doubted: bool,
    /// Servers that say that they lead, and until which tick that counts.
    pub(super) leading: BTreeMap<ServerId, u64>,
    /// When servers that don't vote were last answered.
    answered: BTreeMap<ServerId, u64>,
    is_over: bool,
}

/// See [`Election::found`].
#[derive(Clone, Debug)]
struct Found {
    /// The last notification that named the leader.
    heard: Notification,
    /// The tick at which it is followed nevertheless.
    until: u64,
}

impl Election {
    /// Begins the next round and sends the vote to every voter.
    pub fn begin(setup: Setup, out: &mut Vec<Action>) -> Self {
        let resend_ticks = u64::from(setup.resend_min_ms / TICK_MS).max(1);
        let waits = setup.yields && setup.waits;
        let mut election = Self {
            config: setup.views.current.to_string().into(),
            vote: if waits { setup.vote.without_history() } else { setup.vote },
            round: setup.last_round.saturating_add(1),
            votes: Ballots::default(),
            settled: Ballots::default(),
            down: setup.down.clone(),
            now: 0,
            resend_at: resend_ticks,
            resend_ticks,
            owed_at: None,
            ends_at: None,
            candidates: None,
            candidates_from: if setup.failed_candidate { WITHOUT_CANDIDATES_TICKS } else { 0 },
            found: None,
            stands_at: waits.then_some(YIELD_TICKS),
            has_given_way: false,
            has_doubted: false,
            leading: BTreeMap::new(),
            answered: BTreeMap::new(),
            is_over: false,
            setup,
        };
        election.send_vote_to_all(out);
        election.judge(out);
        election
    }

    /// Applies one input and pushes what must happen next. Does nothing once the election is over.
    pub fn step(&mut self, input: Input, out: &mut Vec<Action>) {
        if self.is_over {
            return;
        }
        match input {
            Input::Tick => self.on_tick(out),
            Input::Notification { from, notification } => self.on_heard(from, &notification, out),
            Input::ElectionConnected { to } => self.on_connected(to, out),
            Input::ElectionDisconnected { to } => {
                // Strangers connect to the election port too, each with another id.
                if self.is_candidate(to) {
                    self.down.insert(to);
                }
                self.leading.remove(&to);
                if to == self.vote.leader && self.votes_for_candidate() {
                    self.drop_candidates(out);
                }
            }
            Input::Oracle { agrees } => self.setup.oracle = self.setup.oracle.map(|_| agrees),
        }
        self.judge(out);
        self.assert_invariants();
    }

    /// The round it is in: the next election has to begin from it.
    pub fn round(&self) -> i64 {
        self.round
    }

    fn resend_min_ticks(&self) -> u64 {
        u64::from(self.setup.resend_min_ms / TICK_MS).max(1)
    }

    fn on_tick(&mut self, out: &mut Vec<Action>) {
        self.now += 1;
        self.stand_in_time(out);
        // Not while this server's own vote is about to elect a leader.
        if self.ends_at.is_none()
            && let Some(Found { heard, .. }) = self.found.take_if(|found| found.until <= self.now)
            && !self.down.contains(&heard.vote.leader)
            && let Some(electors) = self.electors_of(&heard)
        {
            self.round = heard.round;
            return self.end(heard.vote, electors, out);
        }
        if self.ends_at.is_none() && self.candidates.as_ref().is_some_and(|it| it.until <= self.now)
        {
            self.drop_candidates(out);
        }
        let due = self.owed_at.unwrap_or(u64::MAX).min(self.resend_at);
        if self.ends_at.is_none() && due <= self.now {
            let max = u64::from(self.setup.resend_max_ms / TICK_MS);
            self.resend_ticks = (self.resend_ticks * 2).min(max).max(1);
            self.resend_at = self.now + self.resend_ticks;
            self.send_vote_to_all(out);
        }
        if self.now.is_multiple_of(u64::from(REDIAL_TICKS)) {
            out.push(Action::DialAll);
        }
    }

    fn on_connected(&mut self, to: ServerId, out: &mut Vec<Action>) {
        self.down.remove(&to);
        // A server is back: what it is sent should not wait for a pause that has grown to minutes.
        self.resend_ticks = self.resend_min_ticks();
        self.resend_at = self.now + self.resend_ticks;
        // A server in no configuration known here may have a newer configuration.
        let views = &self.setup.views;
        if to != self.setup.me && (views.is_voter(to) || !views.has_member(to)) {
            self.send_vote(to, out);
        }
    }

    fn on_heard(&mut self, from: ServerId, heard: &Notification, out: &mut Vec<Action>) {
        if from == self.setup.me {
            return; // From a server with this server's id: its vote does not count.
        }
        self.down.remove(&from);
        if let Some(view) = self.newer_view(from, heard) {
            self.is_over = true;
            out.push(Action::NewerView { from, view });
            return;
        }
        if !self.setup.views.is_voter(from) {
            self.answer_non_voter(from, heard, out);
            return;
        }
        self.note_leading(from, heard);
        let resend_at = self.resend_at;
        self.resend_at = self.now + self.resend_ticks;
        let is_behind = heard.round == self.round && heard.vote < self.vote;
        if heard.state == PeerState::Looking && is_behind {
            // It may have lost the better vote, and would never get it while notifications put off this server's resends.
            let due = resend_at.min(self.now + self.resend_min_ticks());
            self.owed_at = Some(self.owed_at.map_or(due, |owed| owed.min(due)));
        }
        let votes_itself = self.setup.views.is_voter(self.setup.me);
        let answers = votes_itself && !self.is_waiting();
        if heard.state == PeerState::Looking && heard.round < self.round && answers {
            self.send_vote(from, out);
        }
        if !self.is_candidate(heard.vote.leader) {
            let Some(candidates) = self.candidates_of(from, heard) else {
                return self.on_unknown_candidate(from, heard, out);
            };
            self.candidates = Some(candidates);
        }
        match heard.state {
            PeerState::Looking => self.on_looking(from, heard, out),
            PeerState::Following | PeerState::Leading => self.on_settled(from, heard, out),
            PeerState::Observing => {}
        }
    }

    /// The sender's configuration, if it is newer and may be adopted.
    fn newer_view(&self, from: ServerId, heard: &Notification) -> Option<View> {
        let Setup { views, adopts_views, .. } = &self.setup;
        if !adopts_views || heard.config_version() <= views.current.version {
            return None;
        }
        view_in(from, heard.config.as_deref()?)
    }

    /// Whether a server may be voted for.
    fn is_candidate(&self, id: ServerId) -> bool {
        self.setup.views.is_voter(id) || self.candidates.iter().any(|candidates| candidates.has(id))
    }

    /// The candidates that come with a vote which this server is about to adopt, if it may.
    fn candidates_of(&self, from: ServerId, heard: &Notification) -> Option<Candidates> {
        let Setup { me, views, adopts_views, vote, history, .. } = &self.setup;
        let is_better = self.round == heard.round && self.vote < heard.vote;
        let is_adopted = self.ends_at.is_none() && (self.round < heard.round || is_better);
        let may = *adopts_views && self.candidates_from <= self.now && is_adopted;
        if !may || self.down.contains(&heard.vote.leader) {
            return None;
        }
        let until = self.now + CANDIDATE_TICKS;
        Candidates::of_vote((from, heard), *me, (*vote, *history), views, until)
    }

    /// Whether this server votes for such a candidate.
    fn votes_for_candidate(&self) -> bool {
        self.candidates.is_some() && !self.setup.views.is_voter(self.vote.leader)
    }

    /// No quorum agrees on such a candidate, or it is gone: begins a later round without it, so that all vote anew. Servers that don't know
    /// that configuration and have as much, and Java's, never vote for it, and would wait for this vote for ever.
    fn drop_candidates(&mut self, out: &mut Vec<Action>) {
        let voted = self.votes_for_candidate();
        self.candidates = None;
        if voted {
            self.candidates_from = self.now + WITHOUT_CANDIDATES_TICKS;
            self.begin_round(self.round.saturating_add(1), out);
        }
    }

    pub(super) fn begin_round(&mut self, round: i64, out: &mut Vec<Action>) {
        self.round = round;
        self.votes.clear();
        self.vote = self.first_vote();
        self.send_vote_to_all(out);
    }

    /// The proposed configuration that lets this vote's candidate vote, where the one in force does not.
    fn candidates_view(&self) -> Option<Bytes> {
        let (views, candidate) = (&self.setup.views, self.vote.leader);
        if views.current.is_voter(candidate) {
            return None;
        }
        let proposed = views.proposed.iter().find(|view| view.is_voter(candidate));
        let mut candidates = self.candidates.iter().filter(|it| it.has(candidate));
        proposed
            .map(|view| view.to_string().into())
            .or_else(|| candidates.next().map(|it| it.text.clone()))
    }

    fn answer_non_voter(&mut self, from: ServerId, heard: &Notification, out: &mut Vec<Action>) {
        let recently = |at: &u64| self.now < at + u64::from(FINALIZE_TICKS);
        if heard.state != PeerState::Looking || self.answered.get(&from).is_some_and(recently) {
            return;
        }
        if ANSWERED_MAX <= self.answered.len() {
            self.answered.clear();
        }
        self.answered.insert(from, self.now);
        self.send_vote(from, out);
    }

    fn on_looking(&mut self, from: ServerId, heard: &Notification, out: &mut Vec<Action>) {
        self.settled.remove(from);
        // A server without data follows a leader that others elected, and its own vote does not count.
        if self.setup.vote.zxid == -1 || heard.vote.zxid == -1 {
            return;
        }
        if self.gives_way_to(heard.vote) {
            return self.give_way(from, heard, out);
        }
        if heard.round < self.round {
            return;
        }
        if self.round < heard.round {
            if self.ends_at.is_some() && heard.vote < self.vote {
                // If the sender agreed with this server, it votes in that round now: a leader elected here would wait for it in vain. Without
                // it there may be no quorum any more, and then that round is joined at once, before it elects another.
                self.votes.remove(from);
                if self.has_quorums(&self.agreeing()) {
                    return;
                }
            }
            self.round = heard.round;
            self.votes.clear();
            let own = self.first_vote();
            self.vote = if self.is_better(heard.vote, own) { heard.vote } else { own };
            self.send_vote_to_all(out);
        } else if self.is_better(heard.vote, self.vote) {
            self.vote = heard.vote;
            self.send_vote_to_all(out);
        } else if self.votes.get(from).is_none() && self.setup.views.is_voter(self.setup.me) {
            // The sender may have missed our vote while it still followed, and would get it with the next resend only.
            self.send_vote(from, out);
        }
        self.votes.put(from, Ballot::of_round(heard));
    }

    /// Takes the vote of a server whose election is over, for the leader that it follows or is.
    fn on_settled(&mut self, from: ServerId, heard: &Notification, out: &mut Vec<Action>) {
        if heard.round == self.round {
            self.votes.put(from, Ballot::of_round(heard));
        }
        self.settled.put(from, Ballot::settled(heard));
        let electors = self.electors_of(heard).or_else(|| self.oracle_follows(from, heard));
        if let Some(electors) = electors {
            self.follow(heard, electors, out);
        }
    }

    /// The servers whose last votes make the leader of a settled vote this server's leader, too.
    fn electors_of(&self, heard: &Notification) -> Option<BTreeSet<ServerId>> {
        let (Setup { me, views, .. }, cast) = (&self.setup, Ballot::settled(heard));
        let of_round = (heard.round == self.round)
            .then(|| self.votes.settle(&cast, views, *me, self.round))
            .flatten();
        of_round.or_else(|| self.settled.settle(&cast, views, *me, self.round))
    }

    /// A quorum of the configuration in force follows a leader. If one of each proposed configuration does, or will with this
    /// server, the election ends. Otherwise it goes on for a while: this server could not promise to that leader, which may
    /// need the promise, and most often the others are about to say that they follow it too.
    fn follow(
        &mut self,
        heard: &Notification,
        mut electors: BTreeSet<ServerId>,
        out: &mut Vec<Action>,
    ) {
        let Setup { me, views, vote: own, .. } = &self.setup;
        let vote = heard.vote;
        let has_no_more = (own.epoch, own.zxid) <= (vote.epoch, vote.zxid);
        let votes = own.leader == *me && own.zxid != -1;
        if !views.have_quorums(&electors) && votes && has_no_more {
            electors.insert(*me);
        }
        if views.have_quorums(&electors) || self.setup.oracle.is_some() {
            self.round = heard.round;
            return self.end(vote, electors, out);
        }
        let is_same = |found: &&Found| found.heard.vote.leader == vote.leader;
        let until = self.found.as_ref().filter(is_same).map(|found| found.until);
        if until.is_none() {
            // Servers that follow the leader answer a looking server's vote with theirs.
            let is_silent = |id: &ServerId| id != me && !electors.contains(id);
            views.voters().into_iter().filter(is_silent).for_each(|id| self.send_vote(id, out));
        }
        let until = until.unwrap_or(self.now + UNITE_TICKS);
        self.found = Some(Found { heard: heard.clone(), until });
    }

    /// Ends the election if a quorum agrees on this server's vote and no voter can have a better one.
    fn judge(&mut self, out: &mut Vec<Action>) {
        if self.is_over || self.is_waiting() {
            return;
        }
        let agreeing = self.agreeing();
        if !self.has_quorums(&agreeing) {
            self.ends_at = None;
            return;
        }
        let ends_at = *self.ends_at.get_or_insert(self.now + u64::from(FINALIZE_TICKS));
        let agrees = |voter| agreeing.contains(voter) || self.down.contains(voter);
        let nobody_else = self.setup.views.voters().iter().all(agrees);
        if !nobody_else && self.now < ends_at {
            return;
        }
        if !nobody_else && !self.has_doubted && self.is_doubtful() {
            self.has_doubted = true;
            self.send_vote_to_all(out);
            self.ends_at = Some(self.now + u64::from(FINALIZE_TICKS));
            return;
        }
        self.end(self.vote, agreeing, out);
    }

    /// The servers that vote as this one does.
    fn agreeing(&self) -> BTreeSet<ServerId> {
        let (state, vote, round) = (PeerState::Looking, self.vote, self.round);
        self.votes.for_same(&Ballot { state, vote, round, versioned: false })
    }

    /// Whether `agreeing` are enough to elect.
    fn has_quorums(&self, agreeing: &BTreeSet<ServerId>) -> bool {
        self.setup.views.have_quorums_or(agreeing, self.alone())
    }

    /// Whether a voter says that in this round another server was elected, one that is up: the other server may have voted with
    /// us and then been elected, and does not say so unless it gets our vote again. Java's server then waits for `initLimit`.
    fn is_doubtful(&self) -> bool {
        let leads = |leader| leader != self.vote.leader && !self.down.contains(&leader);
        self.votes.settled_leaders().any(leads)
    }

    fn end(&mut self, vote: Vote, electors: BTreeSet<ServerId>, out: &mut Vec<Action>) {
        self.is_over = true;
        let is_known = self.setup.views.is_voter(vote.leader);
        let leaders_view = self.candidates.take().filter(|_| !is_known).map(|it| it.view);
        let others_suffice = self.setup.views.have_quorums(&self.settled.settled_for(vote.leader));
        let round = self.round;
        let elected = Elected { vote, round, electors, others_suffice, leaders_view };
        out.push(Action::Elected(elected));
    }

    /// A candidate that weighs nothing can't be elected: it votes for any other with as much history. In Java it votes for itself for
    /// ever if its id is higher, and a configuration that needs its vote elects no leader.
    fn is_better(&self, new: Vote, than: Vote) -> bool {
        let views = &self.setup.views;
        if self.setup.yields && than.zxid == -1 {
            return self.has_as_much(new);
        }
        let is_no_rival =
            views.weighs_nothing(than.leader) && (than.epoch, than.zxid) <= (new.epoch, new.zxid);
        !views.weighs_nothing(new.leader) && (than < new || is_no_rival)
    }

    /// Sends the vote to every other voter, and to its candidate if that was heard of and is no voter known here. A server's own vote
    /// counts here like any other.
    pub(super) fn send_vote_to_all(&mut self, out: &mut Vec<Action>) {
        // A new vote begins a new wait.
        (self.ends_at, self.owed_at) = (None, None);
        let notification = self.notification();
        let mut send = |to| {
            let notification = notification.clone();
            out.push(Action::SendNotification { to, notification });
        };
        let voters = self.setup.views.voters();
        for &to in &voters {
            if to != self.setup.me {
                send(to);
            } else if self.vote.zxid != -1 {
                self.votes.put(to, Ballot::of_round(&notification));
            }
        }
        let candidate = self.vote.leader;
        if self.answered.contains_key(&candidate) && !voters.contains(&candidate) {
            send(candidate);
        }
    }

    fn send_vote(&self, to: ServerId, out: &mut Vec<Action>) {
        out.push(Action::SendNotification { to, notification: self.notification() });
    }

    fn notification(&self) -> Notification {
        Notification {
            state: PeerState::Looking,
            vote: self.vote,
            round: if self.is_waiting() { notification::ASKING_ROUND } else { self.round },
            version: notification::VERSION,
            config: Some(self.config.clone()),
            is_ours: true,
            candidates_view: self.candidates_view(),
        }
    }

    fn assert_invariants(&self) {
        let Setup { vote: own, last_round, .. } = &self.setup;
        let own_is_light = self.setup.views.weighs_nothing(own.leader);
        let yields = self.is_waiting() || self.has_as_much(self.vote);
        assert!(
            own_is_light || self.setup.yields && yields || *own <= self.vote,
            "votes for {}, worse than {own}",
            self.vote
        );
        let joined = self.is_over; // The leader may have been elected in an earlier round.
        let goes_back = joined || self.setup.yields; // To the round of a candidate that it has waited for.
        // Rounds don't overflow: a peer that claims the last one does no other harm than that no round follows.
        assert!(goes_back || *last_round <= self.round, "round {} after {last_round}", self.round);
        let (now, until) = (self.now, self.ends_at.unwrap_or_default());
        let latest = now + u64::from(FINALIZE_TICKS);
        assert!(until <= latest, "ends at tick {until}, and {latest} is the latest");
        if !joined && let Some(cast) = self.votes.get(self.setup.me) {
            let own = (cast.vote, cast.round);
            assert!(own == (self.vote, self.round), "counts itself for {own:?}, {:?}", self.vote);
        }
    }
}
