//! Elections of a server that has doubted its data.

use super::election::{One, check, setup, view, vote};
use oxkeeper::zab::election::Setup;
use oxkeeper::zab::{PeerState::Looking, Views};

/// Server 3 of three, at zxid 5 of epoch 1, which has doubted its data.
fn yielding() -> One {
    let setup = setup(3, Views::of(view(1..=3, &[])), vote(3, 5, 1), 0);
    One::begin(Setup { yields: true, ..setup })
}

#[test]
fn server_that_doubted_its_data_votes_for_a_lower_id_with_as_much() {
    let mut one = yielding();
    let min = i64::MIN;
    let nothing = |to| format!("{to}<{min}@{min}/{min} r1");
    assert_eq!(one.said(), [1, 2].map(nothing));
    assert_eq!(one.hear(2, Looking, vote(2, 4, 1), 1), [nothing(2)]);
    check(one.hear(1, Looking, vote(1, 5, 1), 1), ["1<1@5/1 r1", "2<1@5/1 r1"]);
    let said = one.wait(1000);
    assert!(said.iter().any(|line| line.ends_with("elected 1@5/1 r1 by [1, 3]")), "{said:?}");
}

#[test]
fn server_that_doubted_its_data_stands_if_no_other_has_as_much() {
    let mut one = yielding();
    one.hear(2, Looking, vote(2, 4, 1), 1);
    let said = one.wait(400);
    assert_eq!(said.last().unwrap(), "400: 2<3@5/1 r1", "{said:?}");
    // Another one comes: server 2 may vote for this one already, so all vote anew, once.
    let min = i64::MIN;
    let later = |to| format!("{to}<{min}@{min}/{min} r2");
    assert_eq!(one.hear(1, Looking, vote(1, 5, 1), 1), [later(1), later(2)]);
    let said = one.wait(400);
    assert_eq!(said.last().unwrap(), "400: 2<3@5/1 r2", "{said:?}");
    check(one.hear(1, Looking, vote(1, 5, 1), 2), ["1<3@5/1 r2"]);
}
