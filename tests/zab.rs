//! Peers without the rest of a server: whole ensembles of [`oxkeeper::zab::Peer`] on virtual disks and connections, where one seed
//! decides everything; and their parts: elections, notifications, packets, the history in memory.

#![allow(clippy::disallowed_methods, reason = "a test has a budget of time, and takes a seed")]
#![allow(clippy::print_stdout, reason = "what was done is worth a line")]

mod zab {
    mod alone;
    mod candidates;
    pub mod changes;
    pub mod checks;
    pub mod conditions;
    pub mod destruction;
    pub mod driver_turns;
    mod election;
    mod election_network;
    mod election_orders;
    mod election_yielding;
    pub mod explorer;
    mod history;
    pub mod losses;
    pub mod notation;
    mod notification;
    pub mod other_peers;
    mod packet;
    mod reconfig_elsewhere;
    mod reconfig_schedules;
    pub mod schedules;
    pub mod scopes;
    pub mod script;
    pub mod script_ensemble;
    mod script_manual;
    pub mod situations;
    pub mod strangers;
    mod unknown_servers;
    pub mod world;
}

use oxkeeper::model::{Epoch, Rng, Rule, ServerId};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use support::quorums::is_quorum;
use support::views::view_of;
use zab::conditions::Conditions;
use zab::driver_turns::Happened;
use zab::losses::Loss;
use zab::world::World;
use zab::{explorer, scopes, script, situations, strangers};

/// Seconds of random worlds; `OXKEEPER_LONG=1` makes them minutes.
const QUICK: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(600);

fn budget() -> Duration {
    if std::env::var_os("OXKEEPER_LONG").is_some() { LONG } else { QUICK }
}

// What servers do about their inputs, as text: the protocol's rules and the museum of ZooKeeper's bugs (docs/museum.md).
#[test]
fn scripts_play_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zab");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "txt"));
    files.sort();
    let mut complaints = String::new();
    for path in &files {
        let text = std::fs::read_to_string(path).unwrap();
        let played = script::outcome(&text);
        if played == text {
            continue;
        }
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(path, played).unwrap();
            continue;
        }
        let lines = text.lines().zip(played.lines()).find(|(wanted, got)| wanted != got);
        let (wanted, got) = lines.unwrap_or(("another end", "an end"));
        writeln!(complaints, "{}:\n  wanted: {wanted}\n  got:    {got}", path.display()).unwrap();
    }
    assert!(complaints.is_empty(), "{complaints}UPDATE_EXPECT=1 rewrites them");
    assert!(files.len() > 30, "the scripts were not found");
}

/// Limit on the states of each scope; `STATES=N` sets it. `OXKEEPER_LONG=1` searches each scope, larger ones too, for ten minutes or for
/// `MINUTES=N`. `SCOPE=WORDS` searches the scopes whose names contain these words.
const STATES_MAX: usize = 5_000;

// Small ensembles in every order of events, as far as the budget goes.
#[test]
fn small_ensembles_keep_every_property_in_every_order() {
    let is_long = std::env::var_os("OXKEEPER_LONG").is_some();
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let (states, minutes) = (number("STATES"), number("MINUTES"));
    let (states_max, time_max) = match is_long {
        true => (usize::MAX, minutes.map_or(LONG, |minutes| Duration::from_secs(60 * minutes))),
        false => (states.map_or(STATES_MAX, |states| states as usize), Duration::MAX),
    };
    let only = std::env::var("SCOPE").ok();
    let mut scopes = scopes::all();
    if is_long {
        scopes.extend(scopes::larger());
    }
    scopes.retain(|scope| only.as_ref().is_none_or(|only| scope.name.contains(only)));
    for scope in scopes {
        let found = explorer::search(&scope, states_max, time_max);
        println!("{}: {found}", scope.name);
        if let Some((what, path)) = &found.failure {
            panic!("{}: {what}\n{}", scope.name, explorer::trace(&scope, path));
        }
    }
}

fn leader(world: &World) -> Option<usize> {
    world.servers.iter().position(|node| node.leads.is_some())
}

#[test]
fn servers_that_lost_power_have_all_transactions_after_they_rejoin() {
    for elects in [false, true] {
        let mut world = World::of(Conditions { elects, ..Conditions::mild(3, 1) });
        world.calm();
        let first = leader(&world).expect("they agree on one");
        for _ in 0..10 {
            world.propose(first);
        }
        world.calm();
        assert_eq!(world.assert_all_alike(), 10);
        let follower = (0..3).find(|&node| node != first).unwrap();
        world.cut_power(follower);
        for _ in 0..5 {
            world.propose(first);
        }
        world.calm();
        world.restart(follower);
        world.calm();
        assert_eq!(world.assert_all_alike(), 15);
        world.cut_power(first);
        world.calm();
        let second = leader(&world).expect("two are a quorum");
        world.propose(second);
        world.calm();
        world.restart(first);
        world.calm();
        assert_eq!(world.assert_all_alike(), 16);
        assert_eq!(world.servers[second].disk.current, Epoch(2));
    }
}

// What is committed stays, in one order, whatever fails; and once faults stop all servers have the same. `SEED=N`: one world;
// `FROM=N`: all from that seed on; `RARE=1`: of these only worlds with situations that few worlds have.
#[test]
fn random_worlds_keep_every_property() {
    let began = Instant::now();
    let number = |name: &str| -> Option<u64> {
        std::env::var(name).ok().map(|seed| seed.parse().expect("a seed is a number"))
    };
    let only = number("SEED");
    let first = only.or_else(|| number("FROM")).unwrap_or(1);
    let is_rare = std::env::var_os("RARE").is_some();
    let (mut seed, mut committed) = (first, 0);
    let (mut decided, mut named, mut losses) = (0, 0, BTreeMap::<_, usize>::new());
    let mut happened = BTreeMap::<_, usize>::new();
    // On a busy machine the time may be over before enough has happened.
    while began.elapsed() < budget() || only.is_none() && named <= 10 && seed < first + 5000 {
        let conditions = Conditions::of(seed);
        if only.is_none() && is_rare && !conditions.has_situations() {
            seed += 1;
            continue;
        }
        let mut world = World::of(conditions);
        world.witness.trace = only.and(std::env::var_os("TRACE")).map(|_| Vec::new());
        let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            committed += world.live();
        }));
        (decided, named) =
            (decided + world.witness.in_force_count, named + world.witness.named_count);
        for (what, times) in &world.witness.happened {
            *happened.entry(*what).or_default() += times;
        }
        for (loss, times) in &world.witness.losses {
            *losses.entry(*loss).or_default() += times;
        }
        if let Err(panic) = lived {
            for line in world.witness.trace.iter().flatten() {
                println!("{line}");
            }
            std::panic::resume_unwind(panic);
        }
        if only.is_some() {
            break;
        }
        seed += 1;
    }
    println!(
        "{seed} worlds, {committed} transactions, {decided} configurations adopted, another leader named {named} times; lost: {losses:?}; happened: {happened:?}"
    );
    assert!(only.is_some() || decided.min(named) > 10, "too few reconfigurations happened");
    assert!(only.is_some() || committed > 100, "worlds in which nothing happens prove nothing");
}

// Each situation of `tests/zab/driver_turns.rs` and `other_peers.rs`, and each loss of `losses.rs`, happens in the first worlds that can have it: none
// can vanish unnoticed.
#[test]
fn turns_locked_folders_oracles_and_losses_happen_in_the_first_worlds() {
    let mut happened = BTreeMap::<Happened, usize>::new();
    let mut losses = BTreeMap::<Loss, usize>::new();
    let has = |it: &Conditions| {
        let has_other_peers = it.repeats || it.strays || it.replaces || it.hurries || it.destroys;
        let loses = it.loses_files || it.loses_machine;
        it.batches || it.refuses_config || it.oracle_switches || has_other_peers || loses
    };
    for conditions in (1..8000).map(Conditions::of).filter(has) {
        let mut world = World::of(conditions);
        world.live();
        for (what, times) in &world.witness.happened {
            *happened.entry(*what).or_default() += times;
        }
        for (loss, times) in &world.witness.losses {
            *losses.entry(*loss).or_default() += times;
        }
        if happened.len() == Happened::ALL.len() && losses.len() == Loss::ALL.len() {
            break;
        }
    }
    for what in Happened::ALL {
        assert!(happened.contains_key(&what), "{what:?} never happened: {happened:?}");
    }
    for loss in Loss::ALL {
        assert!(losses.contains_key(&loss), "{loss:?} never happened: {losses:?}");
    }
}

// No packet or notification, at any time, breaks an assertion.
#[test]
fn strangers_that_say_anything_trip_no_assertion() {
    let (began, mut seed, mut led, mut followed) = (Instant::now(), 0, 0, 0);
    while seed < 50 || began.elapsed() < budget() / 5 {
        seed += 1;
        let mut strangers = strangers::Strangers::new(seed);
        let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| strangers.live(2000)));
        assert!(lived.is_ok(), "server among strangers {seed}");
        (led, followed) = (led + strangers.led, followed + strangers.followed);
    }
    println!("{seed} servers among strangers led {led} times and followed {followed} times");
    assert!(led.min(followed) > 0, "a server that never leads or never follows proves nothing");
}

// rows: Q-96
// One of two voters goes on alone as long as its oracle says yes, and nothing is lost as long as that is always the same voter.
#[test]
fn one_of_two_voters_leads_alone_while_its_oracle_agrees() {
    let (began, mut seed, mut committed) = (Instant::now(), 0_u64, 0);
    while seed < 20 || began.elapsed() < budget() / 5 {
        seed += 1;
        let conditions = Conditions {
            elects: true,
            may_lead_alone: Some(seed as usize % 2),
            java: seed.is_multiple_of(3).then_some(seed as usize % 2),
            sends_trees: seed.is_multiple_of(4),
            observers: usize::from(seed.is_multiple_of(5)),
            ..Conditions::mild(2, seed)
        };
        let mut world = World::of(conditions);
        committed += world.live();
        let may_lead_alone = seed as usize % 2;
        world.cut_power(1 - may_lead_alone);
        world.calm();
        assert_eq!(leader(&world), Some(may_lead_alone), "{seed}: its oracle says yes");
        world.propose(may_lead_alone);
        world.calm();
        world.cut_power(may_lead_alone);
        world.restart(1 - may_lead_alone);
        for _ in 0..2000 {
            world.step(1 - may_lead_alone, oxkeeper::zab::Input::Tick);
        }
        assert_eq!(leader(&world), None, "{seed}: its oracle says no");
        world.restart(may_lead_alone);
        world.calm();
        world.assert_all_alike();
    }
    println!("{seed} worlds, {committed} transactions");
    assert!(committed > 100, "worlds in which nothing happens prove nothing");
}

/// A planted fault is found in some world, and no check fails in the same world without it.
///
/// * `of`: a world's conditions, by its seed and whether it has the fault. `harmless`: what the world has without the fault.
fn assert_fault_is_found(of: impl Fn(u64, bool) -> Conditions, harmless: &str) {
    let passes =
        |seed, has_fault| explorer::caught(|| World::of(of(seed, has_fault)).live()).is_ok();
    let broken = (1..100).find(|&seed| !passes(seed, true)).expect("found in some world");
    assert!(passes(broken, false), "{broken}: {harmless} does no harm");
}

// The planted fault of a disk that loses its history: if the server does not notice, the ensemble loses committed transactions.
#[test]
fn unnoticed_loss_of_a_history_is_found() {
    let of = |seed, loses_unknown| Conditions {
        elects: true,
        loses: Some(seed as usize % 3),
        loses_unknown,
        ..Conditions::mild(3, seed)
    };
    assert_fault_is_found(of, "a server that notices its loss");
}

// The planted fault of an operator: a server loses files whose content the other servers need.
#[test]
fn loss_that_others_cannot_make_up_for_is_found() {
    let of = |seed, loses_needed| Conditions {
        elects: true,
        loses_files: true,
        loses_needed,
        ..Conditions::mild(3, seed)
    };
    assert_fault_is_found(of, "a loss that the others can make up for");
}

// rows: Q-96
// The planted fault of an oracle: it agrees with a voter that lacks what the other one committed alone.
#[test]
fn oracle_that_switches_to_a_voter_with_less_is_found() {
    let of = |seed, oracle_is_wrong| Conditions {
        elects: true,
        oracle_switches: true,
        oracle_is_wrong,
        ..Conditions::mild(2, seed)
    };
    assert_fault_is_found(of, "an oracle that waits until a voter has all");
}

// The checks count quorums with code of their own.
#[test]
fn checks_and_servers_count_the_same_quorums() {
    let mut rng = Rng::seeded(7);
    let mut ruled = 0;
    for voters in (1..8).cycle().take(500) {
        let mut view = view_of(0, 0..voters, voters..voters + 1);
        view.rule = situations::some_rule(&mut rng, &view, true);
        ruled += usize::from(view.rule != Rule::Majority);
        for chosen in 0..1 << (voters + 1) {
            let is_there = |id: ServerId| chosen >> id.0 & 1 == 1;
            let there = view.members.keys().copied().filter(|id| is_there(*id)).collect();
            assert_eq!(
                is_quorum(&view, is_there),
                view.has_quorum(&there),
                "{there:?} of {view:?}"
            );
        }
    }
    assert!(ruled > 100, "{ruled} of them have groups");
}
