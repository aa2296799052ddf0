//! Peers alone: whole ensembles of [`oxkeeper::zab::Peer`] on virtual disks and connections, one seed decides everything.

#![allow(clippy::disallowed_methods, reason = "a test has a budget of time, and takes a seed")]
#![allow(clippy::print_stdout, reason = "what was done is worth a line")]

#[path = "zab/world.rs"]
mod world;

use oxkeeper::model::Epoch;
use std::time::{Duration, Instant};
use world::{Fault, World};

/// Seconds of random worlds; `OXKEEPER_LONG=1` makes them minutes.
const QUICK: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(600);

fn budget() -> Duration {
    if std::env::var_os("OXKEEPER_LONG").is_some() { LONG } else { QUICK }
}

#[test]
fn three_agree_and_a_fourth_comes_late() {
    let mut world = World::new(3, 1);
    world.calm();
    let first = world.leader().expect("they agree on one");
    for _ in 0..10 {
        world.propose(first);
    }
    world.calm();
    world.assert_alike(10);
    let follower = (0..3).find(|&node| node != first).unwrap();
    world.crash(follower);
    for _ in 0..5 {
        world.propose(first);
    }
    world.calm();
    world.restart(follower);
    world.calm();
    world.assert_alike(15);
    world.crash(first);
    world.calm();
    let second = world.leader().expect("two are a quorum");
    world.propose(second);
    world.calm();
    world.restart(first);
    world.calm();
    world.assert_alike(16);
    assert_eq!(world.epoch(second), Epoch(2));
}

// What is committed stays, in one order, whatever fails; and once nothing fails any more all are alike.
#[test]
fn random_worlds() {
    let began = Instant::now();
    let mut seed: u64 =
        std::env::var("SEED").ok().map_or(1, |seed| seed.parse().expect("SEED is a number"));
    let once = std::env::var_os("SEED").is_some();
    let mut committed = 0;
    while began.elapsed() < budget() {
        let mut world = World::new(if seed.is_multiple_of(3) { 5 } else { 3 }, seed);
        let steps = 3000;
        for _ in 0..steps {
            world.random_step(Fault::ALL);
        }
        world.heal();
        world.calm();
        committed += world.assert_all_alike();
        if once {
            break;
        }
        seed += 1;
    }
    println!("{seed} worlds, {committed} transactions");
    assert!(committed > 100, "worlds in which nothing happens prove nothing");
}
