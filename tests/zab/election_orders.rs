//! Every order in which the messages of three servers can arrive while no clock ticks.

use super::election::{TEXT, setup, view, vote};
use oxkeeper::model::ServerId;
use oxkeeper::zab::election::{Action, Input};
use oxkeeper::zab::{Notification, Views, Vote};
use std::collections::{BTreeMap, BTreeSet};
use support::elector::Elector;

/// Three servers, and the newest unread notification between each two, as election connections keep it.
#[derive(Clone)]
struct Moment {
    servers: Vec<Elector>,
    slots: BTreeMap<(i64, i64), Notification>,
}

impl Moment {
    fn key(&self) -> String {
        format!("{:?} {:?}", self.servers, self.slots)
    }

    fn perform(&mut self, id: i64, out: Vec<Action>) {
        for action in out {
            match action {
                Action::SendNotification { to, notification } => {
                    self.slots.insert((id, to.0), notification);
                }
                Action::Elected(elected) => {
                    assert!(2 <= elected.electors.len());
                    self.servers[id as usize - 1] = Elector::settled(id, elected, TEXT);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn deliver(&mut self, views: &Views, (from, to): (i64, i64)) {
        let notification = self.slots.remove(&(from, to)).unwrap();
        let mut out = Vec::new();
        self.servers[to as usize - 1].hear(views, ServerId(from), notification, &mut out);
        self.perform(to, out);
    }
}

impl Moment {
    /// When nothing is left to be delivered, time passes until a server sends something or none is looking.
    fn after_a_wait(mut self) -> Self {
        let looks = |server: &Elector| server.current_vote().is_none();
        while self.servers.iter().any(looks) && self.slots.is_empty() {
            for id in 1..=3 {
                let mut out = Vec::new();
                self.servers[id as usize - 1].step(Input::Tick, &mut out);
                out.retain(|action| *action != Action::DialAll);
                self.perform(id, out);
            }
        }
        self
    }

    fn assert_all_follow(&self, best: Vote) {
        for server in &self.servers {
            let Some(current_vote) = server.current_vote() else { panic!("{}", self.key()) };
            assert_eq!(current_vote.vote, best);
        }
    }
}

/// Visits every moment, and returns their number.
fn explore(own: [Vote; 3], last_rounds: [i64; 3]) -> usize {
    let views = Views::of(view(1..=3, &[]));
    let mut first = Moment { servers: Vec::new(), slots: BTreeMap::new() };
    for id in 1..=3 {
        let at = id as usize - 1;
        let mut out = Vec::new();
        let setup = setup(id, views.clone(), own[at], last_rounds[at]);
        first.servers.push(Elector::look(setup, &mut out));
        first.perform(id, out);
    }
    let (mut seen, mut open) = (BTreeSet::new(), vec![first]);
    while let Some(moment) = open.pop() {
        for pair in moment.slots.keys().copied().collect::<Vec<_>>() {
            let mut next = moment.clone();
            next.deliver(&views, pair);
            if seen.insert(next.key()) {
                open.push(next);
            }
        }
        if moment.slots.is_empty() {
            let later = moment.after_a_wait();
            if later.slots.is_empty() {
                later.assert_all_follow(*own.iter().max().unwrap());
            } else if seen.insert(later.key()) {
                open.push(later);
            }
        }
    }
    seen.len()
}

#[test]
fn all_orders_end_with_the_best_leader_for_all() {
    let mut moments = 0;
    for last_rounds in [[0, 0, 0], [1, 0, 0], [0, 0, 1], [0, 1, 2], [2, 1, 0]] {
        for own in [
            [vote(1, 0, 0), vote(2, 0, 0), vote(3, 0, 0)],
            [vote(1, 9, 0), vote(2, 5, 0), vote(3, 0, 0)],
            [vote(1, 5, 0), vote(2, 0, 1), vote(3, 5, 0)],
        ] {
            moments += explore(own, last_rounds);
        }
    }
    assert!(1000 < moments, "{moments} moments");
}
