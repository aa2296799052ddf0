//! Elections of a server that has doubted its data.

use super::election::{One, check, setup, view, vote};
use oxkeeper::zab::election::Setup;
use oxkeeper::zab::{PeerState::Looking, Views};

/// Server 3 of three, at zxid 5 of epoch 1, which has doubted its data.
///
/// * `round`: of its last election.
fn yielding(round: i64) -> One {
    let setup = setup(3, Views::of(view(1..=3, &[])), vote(3, 5, 1), round);
    One::begin(Setup { yields: true, ..setup })
}

#[test]
fn server_that_doubted_its_data_votes_for_a_lower_id_with_as_much() {
    let mut one = yielding(0);
    assert_eq!(one.said(), ["1<3@-1/1 r0", "2<3@-1/1 r0"]);
    // The vote of round 0 is answered by all: another of a server that waits, too, would be answered without end.
    check(one.hear(2, Looking, vote(2, -1, 1), 0), []);
    assert_eq!(one.hear(2, Looking, vote(2, 4, 1), 1), ["2<3@-1/1 r0"]);
    check(one.hear(1, Looking, vote(1, 5, 1), 1), ["1<1@5/1 r1", "2<1@5/1 r1"]);
    let said = one.wait(1000);
    assert!(said.iter().any(|line| line.ends_with("elected 1@5/1 r1 by [1, 3]")), "{said:?}");
}

// Java drops votes without a history, so it does not join their round; and others may be about to elect the candidate.
#[test]
fn candidate_is_voted_for_in_its_own_round_by_a_server_that_waits() {
    for round in [1, 5, 57] {
        let mut one = yielding(4);
        one.said();
        let votes = ["1<1@5/1 ", "2<1@5/1 "].map(|said| format!("{said}r{round}"));
        assert_eq!(one.hear(1, Looking, vote(1, 5, 1), round), votes);
        let elected = format!("elected 1@5/1 r{round} by [1, 3]");
        let said = one.wait(1000);
        assert!(said.iter().any(|line| line.ends_with(&elected)), "{said:?}");
    }
}

#[test]
fn server_that_doubted_its_data_stands_if_no_other_has_as_much() {
    let mut one = yielding(0);
    one.hear(2, Looking, vote(2, 4, 1), 1);
    let said = one.wait(400);
    assert_eq!(said.last().unwrap(), "400: 2<3@5/1 r1", "{said:?}");
}

// Server 2 may vote for this one already, so all vote anew, once.
#[test]
fn server_that_stands_gives_way_once_to_a_candidate_that_comes_later() {
    for (round, joined) in [(1, 3), (2, 3), (57, 58)] {
        let mut one = yielding(1);
        one.hear(2, Looking, vote(2, 4, 1), 2);
        one.wait(400);
        let votes = ["1<1@5/1 ", "2<1@5/1 "].map(|said| format!("{said}r{joined}"));
        let said = one.hear(1, Looking, vote(1, 5, 1), round);
        assert!(said.ends_with(&votes), "{said:?}");
        // The candidate votes for this server nevertheless: it has doubted, too, and gave way.
        let votes = ["1<3@5/1 ", "2<3@5/1 "].map(|said| format!("{said}r{}", joined + 1));
        assert_eq!(one.hear(1, Looking, vote(3, 5, 1), joined + 1), votes);
        check(
            one.hear(2, Looking, vote(1, 5, 1), joined + 1),
            [&*format!("2<3@5/1 r{}", joined + 1)],
        );
    }
}
