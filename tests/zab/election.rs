//! One server's part in an election, notification by notification.

use bytes::Bytes;
use oxkeeper::model::{Rule, ServerId, View};
use oxkeeper::zab::election::{
    Action, CurrentVote, Elected, Election, Electors, Input, Setup, TICK_MS,
};
use oxkeeper::zab::{Notification, PeerState, Views, Vote};
use std::collections::{BTreeMap, BTreeSet};
use support::builders;
use support::views::view_of;

pub const TEXT: &str = "server.1=a:1:2:participant\nversion=0";

pub fn view(voters: impl IntoIterator<Item = i64>, observers: &[i64]) -> View {
    view_of(0, voters, observers.iter().copied())
}

pub fn vote(leader: i64, zxid: i64, epoch: i64) -> Vote {
    Vote { epoch, zxid, leader: ServerId(leader) }
}

pub fn setup(me: i64, views: Views, vote: Vote, last_round: i64) -> Setup {
    Setup {
        me: ServerId(me),
        views,
        adopts_views: true,
        failed_candidate: false,
        vote,
        history: vote,
        yields: false,
        waits: true,
        oracle: None,
        down: BTreeSet::new(),
        last_round,
        resend_min_ms: 200,
        resend_max_ms: 60_000,
    }
}

pub fn heard(state: PeerState, vote: Vote, round: i64) -> Notification {
    let config = Some(Bytes::from_static(TEXT.as_bytes()));
    builders::notification(state, vote, round, config)
}

fn ids<const N: usize>(ids: [i64; N]) -> BTreeSet<ServerId> {
    ids.map(ServerId).into()
}

/// One election, and its actions since they were last taken.
pub struct One {
    election: Election,
    out: Vec<Action>,
}

use PeerState::{Following, Leading, Looking, Observing};

impl One {
    pub fn begin(setup: Setup) -> Self {
        let mut out = Vec::new();
        let election = Election::begin(setup, &mut out);
        Self { election, out }
    }

    /// Server 1 of three, at zxid 5 of epoch 1, in round 1.
    pub fn of_three() -> Self {
        Self::begin(setup(1, Views::of(view(1..=3, &[9])), vote(1, 5, 1), 0)).quiet()
    }

    pub fn quiet(mut self) -> Self {
        self.out.clear();
        self
    }

    pub fn hear(&mut self, from: i64, state: PeerState, vote: Vote, round: i64) -> Vec<String> {
        self.step(Input::Notification {
            from: ServerId(from),
            notification: heard(state, vote, round),
        })
    }

    pub fn step(&mut self, input: Input) -> Vec<String> {
        self.election.step(input, &mut self.out);
        self.said()
    }

    pub fn said(&mut self) -> Vec<String> {
        self.out.drain(..).map(|action| short(&action)).collect()
    }

    /// The actions until `ms` have passed, each with its time.
    pub fn wait(&mut self, ms: u32) -> Vec<String> {
        let mut said = Vec::new();
        for tick in 1..=ms / TICK_MS {
            let at = tick * TICK_MS;
            said.extend(self.step(Input::Tick).into_iter().map(|what| format!("{at}: {what}")));
        }
        said
    }
}

/// `2<3@7/1 r4`: server 2 is sent a vote for 3 at zxid 7 of epoch 1, in round 4.
fn short(action: &Action) -> String {
    let of = |vote: &Vote| format!("{}@{}/{}", vote.leader.0, vote.zxid, vote.epoch);
    match action {
        Action::SendNotification { to, notification } => {
            let text = notification.config.as_deref().unwrap();
            assert!(notification.is_ours && text.ends_with(b"version=0"));
            let Notification { state, vote, round, .. } = notification;
            let state = if *state == Looking { String::new() } else { format!("{state:?} ") };
            format!("{}<{state}{} r{round}", to.0, of(vote))
        }
        Action::DialAll => "dial".into(),
        Action::Elected(Elected { vote, round, electors, .. }) => {
            let electors: Vec<_> = electors.iter().map(|id| id.0).collect();
            format!("elected {} r{round} by {electors:?}", of(vote))
        }
        Action::NewerView { from, view } => {
            let voters: Vec<_> = view.voters().map(|id| id.0).collect();
            format!("view {:x} of {} with {voters:?}", view.version, from.0)
        }
    }
}

#[track_caller]
pub fn check<const N: usize>(said: Vec<String>, expected: [&str; N]) {
    assert_eq!(said, expected);
}

// rows: Q-27
#[test]
fn own_vote_counts_and_takes_no_connection() {
    let mut alone = One::begin(setup(1, Views::of(view([1], &[])), vote(1, 5, 1), 0));
    let mut said = alone.said();
    said.extend(alone.wait(1000));
    assert!(said.iter().any(|line| line.contains("elected 1@5/1 r1 by [1]")), "{said:?}");
    let mut one = One::begin(setup(1, Views::of(view(1..=3, &[])), vote(1, 5, 1), 0));
    let mut said = one.said();
    said.extend(one.hear(2, Looking, vote(1, 5, 1), 1));
    said.extend(one.wait(1000));
    assert!(said.iter().any(|line| line.contains("elected 1@5/1 r1 by [1, 2]")), "{said:?}");
    for said in [said, alone.out.iter().map(short).collect()] {
        assert!(said.iter().all(|line| !line.contains("1<")), "it notified itself: {said:?}");
    }
}

// rows: Q-04
#[test]
fn later_round_is_joined_earlier_is_answered_and_same_is_compared() {
    let mut one = One::begin(setup(1, Views::of(view(1..=5, &[])), vote(1, 5, 1), 3));
    check(one.said(), ["2<1@5/1 r4", "3<1@5/1 r4", "4<1@5/1 r4", "5<1@5/1 r4"]);
    // A worse vote of the same round is counted, and answered once: its server may have missed ours while it still
    // followed. A vote of an earlier round is answered.
    check(one.hear(2, Looking, vote(2, 4, 1), 4), ["2<1@5/1 r4"]);
    check(one.hear(2, Looking, vote(2, 4, 1), 4), []);
    check(one.hear(3, Looking, vote(3, 9, 1), 3), ["3<1@5/1 r4"]);
    check(
        one.hear(3, Looking, vote(3, 6, 1), 4),
        ["2<3@6/1 r4", "3<3@6/1 r4", "4<3@6/1 r4", "5<3@6/1 r4"],
    );
    // In a later round it votes for the better of the vote that it received and its vote for itself, whatever it voted for before.
    check(
        one.hear(2, Looking, vote(2, 4, 1), 6),
        ["2<1@5/1 r6", "3<1@5/1 r6", "4<1@5/1 r6", "5<1@5/1 r6"],
    );
    // Votes of the round before do not count any more.
    check(one.hear(4, Looking, vote(1, 5, 1), 6), ["4<1@5/1 r6"]);
    check(one.hear(5, Looking, vote(1, 5, 1), 6), ["5<1@5/1 r6"]);
    check(one.wait(200), ["200: elected 1@5/1 r6 by [1, 4, 5]"]);
}

// Server 4 votes by a configuration that was proposed to this server, and not to server 4.
// rows: Q-04
#[test]
fn later_round_of_a_voter_without_a_candidate_is_taken_over() {
    let views = Views {
        current: view(1..=3, &[4]),
        proposed: vec![View { version: 9, ..view(1..=4, &[]) }],
    };
    let mut one = One::begin(setup(1, views, vote(1, 5, 1), 3)).quiet();
    check(one.hear(2, Looking, vote(2, 9, 1), 4), ["2<2@9/1 r4", "3<2@9/1 r4", "4<2@9/1 r4"]);
    // The server votes for itself again, and the votes of the round before do not count any more.
    check(one.hear(4, Looking, Vote::NOTHING, 7), ["2<1@5/1 r7", "3<1@5/1 r7", "4<1@5/1 r7"]);
    check(one.hear(4, Looking, Vote::NOTHING, 7), []);
    check(one.hear(2, Following, vote(2, 9, 1), 4), []);
    assert_eq!(one.election.round(), 7);
}

// rows: Q-03
#[test]
fn vote_for_a_candidate_without_weight_is_never_better() {
    let mut view = view(1..=3, &[]);
    let weights = BTreeMap::from([(ServerId(1), 1), (ServerId(2), 1), (ServerId(3), 0)]);
    let groups = BTreeMap::from([(1, ids([1, 2, 3]))]);
    view.rule = Rule::Hierarchical { groups, weights };
    let mut one = One::begin(setup(1, Views::of(view), vote(1, 5, 1), 0)).quiet();
    check(one.hear(3, Looking, vote(3, 9, 9), 1), ["3<1@5/1 r1"]);
    check(one.hear(2, Looking, vote(1, 5, 1), 1), ["2<1@5/1 r1"]);
    // The vote of the server without weight may still change; the wait for it is no longer than for others.
    check(one.wait(200), ["200: elected 1@5/1 r1 by [1, 2]"]);
}

// rows: Q-03
#[test]
fn candidate_without_weight_votes_for_one_with_as_much_history() {
    let mut view = view(1..=3, &[]);
    let weights = BTreeMap::from([(ServerId(1), 1), (ServerId(2), 1), (ServerId(3), 0)]);
    let groups = BTreeMap::from([(1, ids([1, 2, 3]))]);
    view.rule = Rule::Hierarchical { groups, weights };
    let mut three = One::begin(setup(3, Views::of(view), vote(3, 5, 1), 0)).quiet();
    check(three.hear(1, Looking, vote(1, 4, 1), 1), ["1<3@5/1 r1"]);
    check(three.hear(2, Looking, vote(2, 5, 1), 1), ["1<2@5/1 r1", "2<2@5/1 r1"]);
    check(three.hear(1, Looking, vote(1, 5, 1), 1), []);
}

// rows: Q-05
#[test]
fn election_waits_200_ms_for_a_better_vote_after_a_quorum_agrees() {
    let mut one = One::of_three();
    check(one.hear(2, Looking, vote(1, 5, 1), 1), ["2<1@5/1 r1"]);
    check(one.wait(150), []);
    check(one.hear(3, Looking, vote(3, 8, 1), 1), ["2<3@8/1 r1", "3<3@8/1 r1"]);
    check(one.wait(195), []);
    check(one.hear(2, Looking, vote(3, 8, 1), 1), ["elected 3@8/1 r1 by [1, 2, 3]"]);
    check(one.hear(2, Looking, vote(2, 9, 9), 7), []);
}

#[test]
fn election_does_not_wait_for_a_voter_whose_connection_broke() {
    let mut one = One::of_three();
    check(one.step(Input::ElectionDisconnected { to: ServerId(3) }), []);
    check(one.hear(2, Looking, vote(1, 5, 1), 1), ["2<1@5/1 r1", "elected 1@5/1 r1 by [1, 2]"]);

    let down = ids([3]);
    let mut known =
        One::begin(Setup { down, ..setup(1, Views::of(view(1..=3, &[])), vote(1, 5, 1), 0) })
            .quiet();
    check(known.hear(2, Looking, vote(1, 5, 1), 1), ["2<1@5/1 r1", "elected 1@5/1 r1 by [1, 2]"]);

    let mut heard_later = One::of_three();
    check(heard_later.hear(2, Looking, vote(1, 5, 1), 1), ["2<1@5/1 r1"]);
    check(
        heard_later.step(Input::ElectionDisconnected { to: ServerId(3) }),
        ["elected 1@5/1 r1 by [1, 2]"],
    );

    let mut back = One::of_three();
    back.step(Input::ElectionDisconnected { to: ServerId(3) });
    check(back.step(Input::ElectionConnected { to: ServerId(3) }), ["3<1@5/1 r1"]);
    check(back.hear(2, Looking, vote(1, 5, 1), 1), ["2<1@5/1 r1"]);
    check(back.wait(200), ["200: elected 1@5/1 r1 by [1, 2]"]);
}

#[test]
fn later_round_is_joined_in_the_last_wait_for_a_better_vote_or_without_a_quorum() {
    let mut one = One::of_three();
    one.hear(2, Looking, vote(1, 5, 1), 1);
    check(one.hear(3, Looking, vote(3, 4, 1), 8), []);
    check(one.wait(100), []);
    check(one.hear(3, Looking, vote(3, 7, 1), 8), ["2<3@7/1 r8", "3<3@7/1 r8"]);
    check(one.wait(200), ["200: elected 3@7/1 r8 by [1, 3]"]);

    let mut left = One::of_three();
    left.hear(2, Looking, vote(1, 5, 1), 1);
    check(left.hear(2, Looking, vote(3, 4, 1), 8), ["2<1@5/1 r8", "3<1@5/1 r8"]);
    assert!(left.wait(400).iter().all(|said| !said.contains("elected")), "2 votes elsewhere");

    // The round in which the others elect each other now has to be joined at once: they don't wait longer than this server would before
    // it sends its vote again, and a leader without this server's history is left again (tests/zab, world 2300038386).
    let mut outbid = One::of_three();
    outbid.hear(2, Looking, vote(1, 5, 1), 1);
    check(outbid.hear(3, Looking, vote(3, 4, 1), 8), []);
    check(outbid.hear(2, Looking, vote(3, 4, 1), 8), ["2<1@5/1 r8", "3<1@5/1 r8"]);

    let mut undisturbed = One::of_three();
    undisturbed.hear(2, Looking, vote(1, 5, 1), 1);
    undisturbed.hear(3, Looking, vote(3, 4, 1), 8);
    check(undisturbed.wait(200), ["200: elected 1@5/1 r1 by [1, 2]"]);
}

// rows: Q-06 C-165 C-166
#[test]
fn vote_is_sent_again_in_growing_pauses() {
    let mut one = One::of_three();
    let lines: Vec<String> =
        one.wait(130_000).into_iter().filter(|line| line.contains("2<")).collect();
    let at: Vec<u32> =
        lines.iter().map(|line| line.split(':').next().unwrap().parse().unwrap()).collect();
    assert_eq!(at, [200, 600, 1400, 3000, 6200, 12_600, 25_400, 51_000, 102_200]);
    check(one.step(Input::ElectionConnected { to: ServerId(2) }), ["2<1@5/1 r1"]);
    check(one.wait(400), ["200: 2<1@5/1 r1", "200: 3<1@5/1 r1"]);
}

#[test]
fn voter_that_lacks_the_vote_gets_it_whatever_others_say_meanwhile() {
    let five = setup(1, Views::of(view(1..=5, &[])), vote(1, 5, 1), 0);
    let mut one = One::begin(five).quiet();
    one.wait(200); // The pause before the next resend is 400 ms.
    one.hear(2, Looking, Vote::NOTHING, 1);
    let mut said = Vec::new();
    for _ in 0..4 {
        said.extend(one.hear(3, Looking, vote(1, 5, 1), 1));
        said.extend(one.wait(100));
    }
    assert!(said.contains(&"100: 2<1@5/1 r1".to_owned()), "{said:?} (tests/zab, world 4000035631)");
}

#[test]
fn zk_2164_voter_without_a_connection_is_dialed_every_second() {
    let dials: Vec<String> =
        One::of_three().wait(3500).into_iter().filter(|said| said.contains("dial")).collect();
    assert_eq!(dials, ["1000: dial", "2000: dial", "3000: dial"]);
}

// rows: Q-07
#[test]
fn server_without_data_neither_elects_nor_is_elected() {
    let mut empty = One::begin(setup(3, Views::of(view(1..=3, &[])), vote(3, -1, 0), 0)).quiet();
    check(empty.hear(1, Looking, vote(1, 5, 1), 1), []);
    check(empty.hear(2, Looking, vote(1, 5, 1), 1), []);
    check(empty.wait(195), []);
    check(empty.hear(2, Following, vote(1, 5, 1), 1), []);
    check(empty.hear(1, Leading, vote(1, 5, 1), 1), ["elected 1@5/1 r1 by [1, 2]"]);

    let mut other = One::of_three();
    check(other.hear(3, Looking, vote(3, -1, 9), 1), []);
    check(other.hear(2, Looking, vote(2, -1, 9), 7), []);
    check(other.wait(195), []);
}

// rows: Q-08
#[test]
fn leader_that_a_quorum_and_itself_name_is_followed() {
    // In another round than its own a server counts the votes of a quorum and of the leader itself.
    let mut late = One::of_three();
    check(late.hear(2, Following, vote(3, 2, 1), 7), []);
    check(late.hear(3, Leading, vote(3, 2, 1), 7), ["elected 3@2/1 r7 by [2, 3]"]);
    assert_eq!(late.election.round(), 7);

    // Zxid and round may differ between servers that are no longer looking.
    let mut differing = One::of_three();
    check(differing.hear(3, Leading, vote(3, 2, 4), 7), []);
    check(differing.hear(2, Following, vote(3, 1, 4), 6), ["elected 3@1/4 r6 by [2, 3]"]);

    // In its own round it counts them together with looking servers that have the same vote.
    let mut same_round = One::of_three();
    check(same_round.hear(2, Looking, vote(3, 6, 1), 1), ["2<3@6/1 r1", "3<3@6/1 r1"]);
    check(same_round.hear(3, Leading, vote(3, 6, 1), 1), ["elected 3@6/1 r1 by [1, 2, 3]"]);
}

#[test]
fn server_that_does_not_say_that_it_leads_is_not_followed() {
    let mut one = One::of_three();
    check(one.hear(2, Following, vote(3, 9, 1), 7), []);
    check(one.hear(3, Following, vote(3, 9, 1), 7), []);
    check(one.hear(3, Observing, vote(3, 9, 1), 7), []);
    // Followers that name this server elected it before it restarted; they count only if their vote is of this round.
    let mut mine = One::of_three();
    check(mine.hear(2, Following, vote(1, 5, 1), 7), []);
    check(mine.hear(3, Following, vote(1, 5, 1), 7), []);
    let mut now = One::of_three();
    check(now.hear(2, Following, vote(1, 5, 1), 1), ["elected 1@5/1 r1 by [1, 2]"]);
}

// rows: Q-10
#[test]
fn zk_1807_observer_notifies_voters_only_and_learns_the_leader() {
    let views = || Views::of(view(1..=3, &[8, 9]));
    let mut observer = One::begin(setup(9, views(), Vote::NOTHING, 0));
    let min = i64::MIN;
    let nothing = |to: i64| format!("{to}<{min}@{min}/{min} r1");
    assert_eq!(observer.said(), [nothing(1), nothing(2), nothing(3)]);
    check(observer.hear(1, Following, vote(3, 9, 1), 7), []);
    check(observer.hear(3, Leading, vote(3, 9, 1), 7), ["elected 3@9/1 r7 by [1, 3]"]);

    // It also counts the votes of looking servers.
    let mut counting = One::begin(setup(9, views(), Vote::NOTHING, 0)).quiet();
    check(counting.hear(1, Looking, vote(3, 9, 1), 2), ["1<3@9/1 r2", "2<3@9/1 r2", "3<3@9/1 r2"]);
    check(counting.hear(3, Looking, vote(3, 9, 1), 2), []);
    check(counting.wait(200), ["200: elected 3@9/1 r2 by [1, 3]"]);

    // An observer of a later round ignores a voter's vote, because it can never join that round.
    let mut later = One::begin(setup(9, views(), Vote::NOTHING, 6)).quiet();
    check(later.hear(1, Looking, vote(3, 9, 1), 2), []);
}

#[test]
fn non_voter_is_answered_once_each_pause_and_only_while_it_looks() {
    let mut one = One::of_three();
    check(one.hear(9, Looking, Vote::NOTHING, 4), ["9<1@5/1 r1"]);
    check(one.hear(9, Looking, Vote::NOTHING, 4), []);
    check(one.hear(70, Looking, vote(70, 9, 9), 4), ["70<1@5/1 r1"]);
    check(one.hear(71, Following, vote(3, 9, 9), 4), []);
    let quiet: Vec<String> =
        one.wait(200).into_iter().filter(|said| said.contains("elected")).collect();
    assert!(quiet.is_empty());
    check(one.hear(9, Looking, Vote::NOTHING, 4), ["9<1@5/1 r1"]);
    for id in 100..1000 {
        one.hear(id, Looking, Vote::NOTHING, 4);
    }
}

// rows: Q-11
#[test]
fn newer_configuration_ends_the_election_if_it_may_be_adopted() {
    let newer = |from, adopts_views, text: &'static str| {
        let setup =
            Setup { adopts_views, ..setup(1, Views::of(view(1..=3, &[])), vote(1, 5, 1), 0) };
        let mut one = One::begin(setup).quiet();
        let config = Some(Bytes::from_static(text.as_bytes()));
        let notification = Notification { config, ..heard(Looking, vote(2, 4, 1), 1) };
        one.step(Input::Notification { from: ServerId(from), notification })
    };
    let text = "server.4=zoo4:2888:3888:participant\nversion=2a";
    check(newer(2, true, text), ["view 2a of 2 with [4]"]);
    check(newer(70, true, text), ["view 2a of 70 with [4]"]);
    check(newer(2, false, text), ["2<1@5/1 r1"]);
    // Text that is no configuration is ignored, and the vote counts.
    check(newer(70, true, "server.4=zoo4\nversion=2a"), ["70<1@5/1 r1"]);
    check(One::of_three().hear(2, Looking, vote(2, 4, 1), 1), ["2<1@5/1 r1"]);
}

// rows: Q-12
#[test]
fn election_needs_both_quorums_while_a_configuration_is_proposed() {
    let next = View { version: 9, ..view(3..=5, &[]) };
    let views = Views { current: view(1..=3, &[]), proposed: vec![next] };
    let mut one = One::begin(setup(3, views.clone(), vote(3, 5, 1), 0));
    check(one.said(), ["1<3@5/1 r1", "2<3@5/1 r1", "4<3@5/1 r1", "5<3@5/1 r1"]);
    check(one.hear(1, Looking, vote(3, 5, 1), 1), ["1<3@5/1 r1"]);
    check(one.wait(195), []);
    check(one.hear(4, Looking, vote(3, 5, 1), 1), ["4<3@5/1 r1"]);
    let end = one.wait(200);
    check(end, ["200: elected 3@5/1 r1 by [1, 3, 4]"]);

    // A server that votes only in the proposed configuration is a candidate like any other.
    let mut joiner = One::begin(setup(3, views, vote(3, 5, 1), 0)).quiet();
    assert_eq!(joiner.hear(5, Looking, vote(5, 5, 1), 1).len(), 4);
    // A vote for a server that votes in neither configuration does not count.
    check(joiner.hear(1, Looking, vote(7, 9, 9), 4), []);
}

// A server that followed at once could not promise: the leader may need its promise, and would wait until initLimit.
// rows: Q-08
#[test]
fn leader_is_followed_once_each_quorum_does_or_400_ms_later() {
    let next = View { version: 9, ..view(3..=5, &[]) };
    let views = Views { current: view(1..=3, &[]), proposed: vec![next] };
    let begin_at = |zxid| {
        let mut one = One::begin(setup(3, views.clone(), vote(3, zxid, 1), 0)).quiet();
        for (from, state) in [(1, Following), (2, Leading)] {
            let said = one.hear(from, state, vote(2, 5, 1), 1);
            assert!(!said.iter().any(|what| what.contains("elected")), "{said:?}");
        }
        one
    };
    let begin = || begin_at(5);
    let mut one = begin_at(6);
    assert!(!one.hear(4, Following, vote(2, 5, 1), 1).concat().contains("elected"));
    let said = one.hear(5, Following, vote(2, 5, 1), 1);
    assert_eq!(said.last().unwrap(), "elected 2@5/1 r1 by [1, 2, 4, 5]");
    let said = begin().wait(1000);
    assert_eq!(said.last().unwrap(), "400: elected 2@5/1 r1 by [1, 2]");
    // Its own vote counts if its history is not ahead of the leader's.
    let said = begin().hear(4, Following, vote(2, 5, 1), 1);
    assert_eq!(said.last().unwrap(), "elected 2@5/1 r1 by [1, 2, 3, 4]");
    // A server that is an observer in the configuration in force has no vote to compare with the leader's: it does not count itself.
    let mut one = One::begin(setup(3, views.clone(), Vote::NOTHING, 0)).quiet();
    one.hear(1, Following, vote(2, 5, 1), 1);
    let said = one.hear(2, Leading, vote(2, 5, 1), 2);
    assert!(!said.iter().any(|what| what.contains("elected")), "{said:?}");
    // A leader that looks for a leader itself is not followed, nor is it while this server elects it again.
    for waits in [1000, 260] {
        let mut one = begin();
        for from in [1, 2] {
            one.hear(from, Looking, vote(2, 6, 1), 5);
        }
        let said = one.wait(waits);
        assert!(!said.iter().any(|what| what.contains("elected")), "{said:?}");
        one.hear(4, Looking, vote(2, 6, 1), 5);
        let said = one.wait(205);
        assert_eq!(said.last().unwrap(), "200: elected 2@6/1 r5 by [1, 2, 3, 4]");
    }
    // A leader whose connection broke is not followed.
    let mut one = begin();
    one.step(Input::ElectionDisconnected { to: ServerId(2) });
    let said = one.wait(1000);
    assert!(!said.iter().any(|what| what.contains("elected")), "{said:?}");
}

#[test]
fn a_voter_alone_elects_itself_at_once() {
    let mut one = One::begin(setup(1, Views::of(view([1], &[])), vote(1, 0, 0), 0));
    check(one.said(), ["elected 1@0/0 r1 by [1]"]);
}

#[test]
fn hostile_rounds_and_ids_do_no_harm() {
    let mut one = One::of_three();
    assert_eq!(one.hear(3, Looking, vote(3, i64::MAX, i64::MAX), i64::MAX).len(), 2);
    assert_eq!(one.election.round(), i64::MAX);
    check(one.hear(1, Looking, vote(1, 9, 9), i64::MAX), []);
    let mut next = One::begin(setup(1, Views::of(view(1..=3, &[])), vote(1, 5, 1), i64::MAX));
    assert_eq!(next.said().len(), 2);
    check(next.hear(2, Leading, vote(2, i64::MIN, i64::MIN), i64::MIN), []);
}

fn current_vote(state: PeerState) -> CurrentVote {
    let config = Bytes::from_static(TEXT.as_bytes());
    CurrentVote { state, vote: vote(3, 7, 4), vote_round: 6, round: 8, config }
}

// rows: Q-10
#[test]
fn looking_server_is_answered_with_the_current_vote() {
    let views = Views::of(view(1..=3, &[9]));
    for state in [Following, Leading, Observing] {
        let answer =
            |from, heard: &Notification| current_vote(state).answer(&views, ServerId(from), heard);
        let sent = answer(1, &heard(Looking, vote(1, 9, 9), 99)).unwrap();
        assert_eq!((sent.state, sent.vote, sent.round), (state, vote(3, 7, 4), 6));
        assert_eq!((sent.version, sent.config.as_deref()), (2, Some(TEXT.as_bytes())));
        let sent = answer(9, &heard(Looking, Vote::NOTHING, 1)).unwrap();
        assert_eq!(
            (sent.state, sent.round),
            (state, 8),
            "a server that does not vote gets the current round"
        );
        assert_eq!(answer(1, &heard(Following, vote(1, 9, 9), 99)), None);
        assert_eq!(answer(9, &heard(Observing, vote(1, 9, 9), 99)), None);
    }
}

#[test]
fn zk_3109_leader_notices_that_its_electors_changed_their_votes() {
    let views = Views::of(view(1..=5, &[]));
    let begin = Electors::new(vote(1, 5, 1), 2, ids([1, 2, 3]));
    let (mut backing, mut led) = (begin.clone(), begin);
    let mut holds = |from, state, vote, round| {
        backing.holds_after(&views, ServerId(from), &heard(state, vote, round))
    };
    assert!(holds(2, Looking, vote(1, 5, 1), 2), "elector 2 only waits for better votes");
    assert!(holds(5, Looking, vote(5, 9, 1), 2), "server 5 never was an elector");
    assert!(holds(3, Following, vote(1, 5, 1), 2), "elector 3 has ended its election");
    assert!(!holds(3, Looking, vote(5, 9, 1), 2));
    assert!(!holds(3, Looking, vote(1, 5, 1), 2), "a vote that changed twice does not count");
    let following = heard(Following, vote(4, 9, 1), 3);
    assert!(!led.holds_after(&views, ServerId(3), &following), "elector 3 follows another leader");
}

// rows: Q-08
#[test]
fn server_that_may_lead_already_is_asked_once_more() {
    let begin = || {
        let mut one = One::begin(setup(3, Views::of(view(1..=3, &[])), vote(3, 5, 1), 1)).quiet();
        // Server 2 voted for server 3, and received the vote of its own follower after that.
        check(one.hear(1, Following, vote(2, 5, 1), 2), []);
        check(one.hear(2, Looking, vote(3, 5, 1), 2), ["2<3@5/1 r2"]);
        check(one.wait(200), ["200: 1<3@5/1 r2", "200: 2<3@5/1 r2"]);
        one
    };
    check(begin().hear(2, Leading, vote(2, 5, 1), 2), ["elected 2@5/1 r2 by [1, 2]"]);
    check(begin().wait(200), ["200: elected 3@5/1 r2 by [2, 3]"]);
    let mut dead = One::begin(setup(3, Views::of(view(1..=5, &[])), vote(3, 5, 1), 1)).quiet();
    dead.step(Input::ElectionDisconnected { to: ServerId(4) });
    dead.hear(1, Following, vote(4, 5, 1), 2);
    dead.hear(5, Looking, vote(3, 5, 1), 2);
    dead.hear(2, Looking, vote(3, 5, 1), 2);
    check(dead.wait(200), ["200: elected 3@5/1 r2 by [2, 3, 5]"]);
}
