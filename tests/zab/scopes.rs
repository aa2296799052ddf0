//! The ensembles that the explorer searches.

use super::conditions::Conditions;
use super::explorer::Budget;
pub use super::explorer::Scope;
use super::losses::Loss;
use super::schedules::{self, is_elected, is_elected_by, tick};
use super::world::World;

/// Longer than any wait except initLimit, which is 1 s in these worlds.
const ROUNDS_MAX: usize = 180;

/// Server 2 leads, and all servers serve clients.
fn established(world: &mut World) {
    world.calm();
    assert_eq!(world.leader(), Some(2));
}

/// Server 0 is down, and lacks a transaction that was committed without it.
fn one_behind(world: &mut World) {
    established(world);
    world.propose(2);
    world.calm();
    world.crash(0, 0, 0);
    world.propose(2);
    world.calm();
}

/// Server 2 is down with a transaction that no other server has, and the others have committed another one.
fn one_astray(world: &mut World) {
    established(world);
    world.propose(2);
    world.calm();
    world.propose(2);
    world.write_log(2);
    world.crash(2, 0, 0);
    world.calm();
    assert_eq!(world.leader(), Some(1));
    world.propose(1);
    world.calm();
}

/// Server 1 lacks what 0 and 2 have acknowledged, and 0 has lost all that it had, and notices.
fn one_emptied(world: &mut World) {
    established(world);
    world.propose(2);
    world.calm();
    world.crash(1, 0, 0);
    world.propose(2);
    world.calm();
    world.crash(0, 0, 0);
    world.lose(0, Loss::Everything);
    assert!(world.servers[0].disk.is_unsure);
    world.restart(0);
    world.restart(1);
}

/// Server 4 of five leads, and server 0 is down.
fn four_of_five(world: &mut World) {
    world.calm();
    assert_eq!(world.leader(), Some(4));
    world.crash(0, 0, 0);
}

/// Server 3 of four leads, and server 1 is down.
fn three_of_four(world: &mut World) {
    world.calm();
    assert_eq!(world.leader(), Some(3));
    world.crash(1, 0, 0);
    world.calm();
}

/// Ensembles in which a configuration must count that not every server knows: a server that lacks nothing else is elected, and in
/// every order of events no quorum of that configuration is passed over.
fn scheduled() -> Vec<Scope> {
    let scope = |name, voters, sends_trees, begin: fn(&mut World)| Scope {
        name,
        conditions: Conditions { changes: true, sends_trees, ..Conditions::mild(voters, 1) },
        budget: Budget { proposals: 1, cuts: 1, ..Budget::default() },
        views: &[],
        crashing: &[],
        begin,
        rounds_max: usize::MAX,
    };
    vec![
        scope("one was kept in the log after a tree", 5, true, |world| {
            schedules::kept_after_a_tree(world);
            is_elected_by(world, 2, &[0, 1]);
        }),
        scope("one was committed between two others", 5, true, |world| {
            schedules::committed_between_two_others(world);
            is_elected_by(world, 2, &[0, 1]);
        }),
        scope("a tree came without NEWLEADER", 5, true, |world| {
            schedules::tree_without_newleader(world);
            is_elected_by(world, 2, &[0, 1]);
        }),
        scope("only NEWLEADER named it", 7, false, |world| {
            schedules::epoch_opened_without_a_named_configuration(world);
            is_elected_by(world, 4, &[0, 1, 2, 3, 5]);
        }),
        scope("two were acknowledged", 9, true, |world| {
            schedules::two_configurations(world, false);
            is_elected_by(world, 4, &[0, 1, 3, 5]);
        }),
        Scope {
            conditions: Conditions {
                changes: true,
                observers: 1,
                java: Some(2),
                ..Conditions::mild(3, 1)
            },
            ..scope("an observer that is to vote has promised more", 3, false, |world| {
                schedules::observer_that_is_to_vote_has_promised_more(world);
                is_elected(world, 3, 1);
                tick(world, &[3], 20);
            })
        },
        scope("two were acknowledged, and a restart", 9, true, |world| {
            schedules::two_configurations(world, true);
            is_elected_by(world, 4, &[0, 1, 3, 5]);
        }),
    ]
}

/// The small scopes with larger budgets, and some larger scopes: too many states to see all of them.
pub fn larger() -> Vec<Scope> {
    let mut scopes = small();
    for scope in &mut scopes {
        let Budget { proposals, changes, crashes, cuts, elections, waits, .. } = scope.budget;
        scope.budget = Budget {
            proposals: proposals + 1,
            changes,
            crashes: crashes * 2,
            cuts: cuts + 1,
            elections: if elections == 0 { 0 } else { elections + 2 },
            stands_down: 1,
            restores: 1,
            waits: waits * 2,
        };
    }
    scopes.push(Scope {
        name: "two of five cease to vote, by trees",
        conditions: Conditions { changes: true, sends_trees: true, ..Conditions::mild(5, 1) },
        budget: Budget { changes: 1, cuts: 1, elections: 5, stands_down: 2, ..Budget::default() },
        views: &[&[2, 3, 4]],
        crashing: &[],
        begin: four_of_five,
        rounds_max: usize::MAX,
    });
    scopes.push(Scope {
        name: "two of three cease to vote and vote again, by trees",
        conditions: Conditions { changes: true, sends_trees: true, ..Conditions::mild(3, 1) },
        budget: Budget { changes: 2, crashes: 1, cuts: 1, elections: 3, ..Budget::default() },
        views: &[&[2], &[0, 1, 2]],
        crashing: &[0, 1, 2],
        begin: established,
        rounds_max: usize::MAX,
    });
    scopes.push(Scope {
        name: "one has lost all that it had",
        conditions: Conditions { marks_new: true, ..Conditions::mild(3, 1) },
        budget: Budget { crashes: 2, elections: 3, ..Budget::default() },
        views: &[],
        crashing: &[0, 2],
        begin: one_emptied,
        rounds_max: usize::MAX,
    });
    for (name, sends_trees) in [
        ("two changes in a row, one restarts between", false),
        ("two changes in a row, one restarts between, by trees", true),
    ] {
        scopes.push(Scope {
            name,
            conditions: Conditions { changes: true, sends_trees, ..Conditions::mild(4, 1) },
            budget: Budget { changes: 2, crashes: 1, elections: 3, ..Budget::default() },
            views: &[&[0, 2, 3], &[3]],
            crashing: &[2],
            begin: three_of_four,
            rounds_max: usize::MAX,
        });
    }
    scopes
}

/// Scopes whose states can all be seen within about a minute each, compiled with optimisation.
pub fn all() -> Vec<Scope> {
    small().into_iter().chain(scheduled()).collect()
}

/// The scopes to which [`larger`] gives larger budgets.
fn small() -> Vec<Scope> {
    let three = || Conditions::mild(3, 1);
    let scope = |name, conditions, budget, begin: fn(&mut World)| Scope {
        name,
        conditions,
        budget,
        views: &[],
        crashing: &[0, 1, 2],
        begin,
        rounds_max: usize::MAX,
    };
    let changes = |name, cuts, views| {
        let budget = Budget { changes: 1, crashes: 1, cuts, elections: 3, ..Budget::default() };
        let conditions = Conditions { changes: true, ..three() };
        Scope { views, ..scope(name, conditions, budget, established) }
    };
    let start = |name, waits, cuts| {
        let conditions = Conditions { elects: true, ..Conditions::mild(2, 1) };
        let budget = Budget { waits, cuts, ..Budget::default() };
        Scope { rounds_max: ROUNDS_MAX, ..scope(name, conditions, budget, |_| {}) }
    };
    let restores = |name, crashes, cuts, begin: fn(&mut World)| {
        let budget =
            Budget { proposals: 1, restores: 1, crashes, cuts, elections: 3, ..Budget::default() };
        scope(name, three(), budget, begin)
    };
    let learns = |name, crashing, conditions, begin: fn(&mut World)| {
        let budget =
            Budget { proposals: 1, crashes: 1, cuts: 1, elections: 3, ..Budget::default() };
        Scope { crashing, ..scope(name, conditions, budget, begin) }
    };
    vec![
        scope(
            "two proposals, the leader may crash",
            three(),
            Budget { proposals: 2, crashes: 1, elections: 3, ..Budget::default() },
            established,
        ),
        scope(
            "a proposal, one may crash, a connection ends",
            three(),
            Budget { proposals: 1, crashes: 1, cuts: 1, elections: 3, ..Budget::default() },
            established,
        ),
        scope(
            "three start, one may crash",
            three(),
            Budget { proposals: 1, crashes: 1, elections: 4, ..Budget::default() },
            |_| {},
        ),
        changes("two of three cease to vote", 0, &[&[2]]),
        changes("two of three cease to vote, a connection ends", 1, &[&[2]]),
        changes("the leader hands over", 0, &[&[0]]),
        changes("the leader hands over, a connection ends", 1, &[&[0]]),
        start("two start together", 4, 0),
        start("two start together, a connection ends", 3, 1),
        restores("a restore, one may crash", 1, 0, established),
        restores("a restore, a connection ends", 0, 1, established),
        restores("a restore, one lacks what was committed before", 0, 0, one_behind),
        learns("one learns by DIFF", &[0], three(), one_behind),
        learns("one learns by TRUNC", &[2], three(), one_astray),
        learns("one learns by SNAP", &[2], Conditions { sends_trees: true, ..three() }, one_astray),
    ]
}
