//! Candidates that only a proposed configuration lets vote.

use super::election::{heard, setup, view, vote};
use bytes::Bytes;
use oxkeeper::model::{ServerId, View};
use oxkeeper::zab::PeerState::{Following, Looking};
use oxkeeper::zab::election::{Action, Elected, Election, Input, Setup, TICK_MS};
use oxkeeper::zab::{Notification, Views, Vote};

/// The configuration that lets server 5 vote is sent with each vote for it, and a voter that has less than server 5 votes for it,
/// too.
#[test]
fn candidate_of_a_proposed_configuration_is_named_with_that_configuration() {
    let next = View { version: 9, ..view([2, 5], &[]) };
    let views = Views { current: view(1..=3, &[5]), proposed: vec![next.clone()] };
    let mut out = Vec::new();
    let mut election = Election::begin(setup(2, views.clone(), vote(2, 4, 1), 0), &mut out);
    let sent_views = |out: &mut Vec<Action>| -> Vec<Option<Bytes>> {
        let sent = out.drain(..).filter_map(|action| match action {
            Action::SendNotification { notification, .. } => Some(notification.candidates_view),
            _ => None,
        });
        sent.collect()
    };
    assert_eq!(sent_views(&mut out), vec![None; 3]);
    let notification = heard(Looking, vote(5, 6, 1), 1);
    election.step(Input::Notification { from: ServerId(5), notification }, &mut out);
    let text = Some(Bytes::from(next.to_string()));
    assert_eq!(sent_views(&mut out), vec![text.clone(); 3]);

    let older = View { version: -1, ..next.clone() };
    let without = View { version: 9, ..view(2..=4, &[5]) };
    let said_by_2 = |epoch, zxid, view: Option<&View>| {
        let candidates_view = view.map(|view| view.to_string().into());
        let voted = heard(Looking, vote(5, zxid, epoch), 1);
        Notification { is_ours: true, candidates_view, ..voted }
    };
    let voted_for_5 = |setup: Setup, notification| -> Vec<i64> {
        let mut election = Election::begin(setup, &mut Vec::new());
        let mut out = Vec::new();
        election.step(Input::Notification { from: ServerId(2), notification }, &mut out);
        let is_for_5 = |said: &Notification| said.vote.leader == ServerId(5);
        let mut to = Vec::new();
        for action in out {
            if let Action::SendNotification { to: id, notification } = action
                && is_for_5(&notification)
            {
                assert!(notification.candidates_view.is_some());
                to.push(id.0);
            }
        }
        to
    };
    let votes_for_5 = |setup: Setup, notification| {
        let to = voted_for_5(setup, notification);
        assert!(to.is_empty() || to == [2, 3], "{to:?}");
        !to.is_empty()
    };
    let own = |epoch, zxid| setup(1, Views::of(view(1..=3, &[])), vote(1, zxid, epoch), 0);
    assert!(votes_for_5(own(1, 5), said_by_2(1, 6, Some(&next))));
    assert!(votes_for_5(own(1, 5), said_by_2(2, 4, Some(&next))));
    assert!(!votes_for_5(own(1, 5), said_by_2(1, 5, Some(&next))), "no more than this server");
    assert!(!votes_for_5(own(2, 5), said_by_2(1, 6, Some(&next))), "an earlier epoch");
    assert!(!votes_for_5(own(1, -1), said_by_2(1, 6, Some(&next))), "no data that counts");
    assert!(!votes_for_5(own(1, 5), said_by_2(1, 6, None)));
    assert!(!votes_for_5(own(1, 5), said_by_2(1, 6, Some(&older))));
    assert!(!votes_for_5(own(1, 5), said_by_2(1, 6, Some(&without))));
    let follows = Notification { state: Following, ..said_by_2(1, 6, Some(&next)) };
    assert!(!votes_for_5(own(1, 5), follows));
    let observer = Setup { vote: Vote::NOTHING, ..setup(4, own(1, 5).views, vote(4, 5, 1), 0) };
    assert!(!votes_for_5(observer, said_by_2(1, 6, Some(&next))));
    let failed = Setup { failed_candidate: true, ..own(1, 5) };
    assert!(!votes_for_5(failed, said_by_2(1, 6, Some(&next))));
    // By that configuration it would vote: its vote is needed there.
    let newcomer = Setup { vote: Vote::NOTHING, ..setup(4, own(1, 5).views, vote(4, 5, 1), 0) };
    let with_newcomer = View { version: 9, ..view([2, 4, 5], &[]) };
    let said = said_by_2(1, 6, Some(&with_newcomer));
    assert_eq!(voted_for_5(newcomer, said), [1, 2, 3]);
    let fixed = Setup { adopts_views: false, ..own(1, 5) };
    assert!(!votes_for_5(fixed, said_by_2(1, 6, Some(&next))));
}

/// Votes of the configuration in force elect such a candidate. The next election begins without it.
#[test]
fn candidate_of_an_unknown_configuration_is_elected_by_the_one_in_force() {
    let next = View { version: 9, ..view([2, 5], &[]) };
    let mut out = Vec::new();
    let own = setup(1, Views::of(view(1..=3, &[])), vote(1, 5, 1), 0);
    let mut election = Election::begin(own, &mut out);
    let voted = heard(Looking, vote(5, 6, 1), 1);
    let said = Notification { candidates_view: Some(next.to_string().into()), ..voted.clone() };
    election.step(Input::Notification { from: ServerId(2), notification: said }, &mut out);
    election.step(Input::Notification { from: ServerId(5), notification: voted }, &mut out);
    (0..200 / TICK_MS).for_each(|_| election.step(Input::Tick, &mut out));
    let elected = out.into_iter().find_map(|action| match action {
        Action::Elected(elected) => Some(elected),
        _ => None,
    });
    let electors = [1, 2].map(ServerId).into();
    let leaders_view = Some(next);
    let expected =
        Elected { vote: vote(5, 6, 1), round: 1, electors, others_suffice: false, leaders_view };
    assert_eq!(elected, Some(expected));
}
