//! Candidates that only a proposed configuration lets vote.

use super::election::{heard, setup, view, vote};
use bytes::Bytes;
use oxkeeper::model::{ServerId, View};
use oxkeeper::zab::PeerState::{Following, Looking};
use oxkeeper::zab::election::{Action, Election, Input, Setup};
use oxkeeper::zab::{Notification, Views};

/// The configuration that lets server 5 vote is sent with each vote for it, and noted by a voter that has less than server 5.
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
    let from_2 = |setup: Setup, state, zxid, view: Option<&View>| {
        let candidates_view = view.map(|view| view.to_string().into());
        let voted = heard(state, vote(5, zxid, 1), 1);
        let notification = Notification { is_ours: true, candidates_view, ..voted };
        let mut election = Election::begin(setup, &mut Vec::new());
        let mut out = Vec::new();
        election.step(Input::Notification { from: ServerId(2), notification }, &mut out);
        out.into_iter().find_map(|action| match action {
            Action::CandidatesView { from: ServerId(2), view } => Some(view),
            _ => None,
        })
    };
    let own = |zxid| setup(1, Views::of(view(1..=3, &[])), vote(1, zxid, 1), 0);
    assert_eq!(from_2(own(5), Looking, 6, Some(&next)), Some(next.clone()));
    assert_eq!(from_2(own(5), Looking, 5, Some(&next)), None);
    assert_eq!(from_2(own(-1), Looking, 6, Some(&next)), None);
    assert_eq!(from_2(own(5), Following, 6, Some(&next)), None);
    assert_eq!(from_2(own(5), Looking, 6, None), None);
    assert_eq!(from_2(own(5), Looking, 6, Some(&older)), None);
    assert_eq!(from_2(own(5), Looking, 6, Some(&without)), None);
    assert_eq!(from_2(Setup { adopts_views: false, ..own(5) }, Looking, 6, Some(&next)), None);
    let known = Views { proposed: vec![without], ..own(5).views };
    assert_eq!(from_2(Setup { views: known, ..own(5) }, Looking, 6, Some(&next)), None);
}
