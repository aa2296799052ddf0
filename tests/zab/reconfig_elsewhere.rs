//! Schedules that broke reconfigurations of other systems. The names of the tests name the system and its issue.
//!
//! Five voters, led by server 4; server 0 is down.

use super::conditions::Conditions;
use super::world::World;
use oxkeeper::model::{Epoch, Epochs, Role as Kind, ServerId, Zxid};
use oxkeeper::zab::{Input, Packet, Peer, Role, Settings};
use support::peer::PeerOnDisk;
use support::views::{VIEW, member, view_in, view_of};

fn leader(world: &World) -> Option<usize> {
    world.servers.iter().position(|server| server.leads.is_some())
}

/// Rounds in which disks write, time passes, and packets arrive between servers for which `passes(from, to)`.
fn run(world: &mut World, rounds: usize, passes: &dyn Fn(usize, usize) -> bool) {
    for _ in 0..rounds {
        for at in 0..world.servers.len() {
            (0..8).for_each(|_| world.write_log(at));
            world.write_tree(at);
            world.step(at, Input::Tick);
        }
        for id in world.connections.keys().copied().collect::<Vec<_>>() {
            for _ in 0..8 {
                let Some(connection) = world.connections.get(&id) else { break };
                let (leader, learner) = (connection.leader, connection.learner);
                if passes(learner, leader) {
                    world.deliver(id, true);
                }
                if passes(leader, learner) {
                    world.deliver(id, false);
                }
            }
        }
        for (from, to) in world.elections.busy() {
            if passes(from, to) {
                world.hear(from, to);
            }
        }
    }
}

/// Server `at` proposes a configuration with these voters.
fn reconfigure(world: &mut World, at: usize, voters: &[i64]) {
    let mut view = world.servers[at].peer.as_ref().unwrap().core.view.clone();
    let voter = |&id: &i64| (ServerId(id), member(ServerId(id), Kind::Participant));
    view.members = voters.iter().map(voter).collect();
    world.propose_view(at, view);
}

fn show(world: &World, what: &str) {
    println!("--- {what}");
    for (at, server) in world.servers.iter().enumerate() {
        let Some(peer) = &server.peer else {
            println!("{at}: down");
            continue;
        };
        let core = &peer.core;
        let voters =
            |view: &oxkeeper::model::View| view.voters().map(|id| id.0).collect::<Vec<_>>();
        let role: String = format!("{:?}", peer.role()).chars().take(40).collect();
        println!(
            "{at}: accepted {} current {} last {:?} committed {:?} in force {:?} next {:?} leads {:?} {role}",
            core.accepted.0,
            core.current.0,
            core.history.last(),
            core.history.committed(),
            voters(&core.view),
            core.next.as_ref().map(voters),
            server.leads
        );
    }
}

/// Whether a configuration with these voters counts at a server: in force, or proposed.
fn counts(world: &World, at: usize, voters: &[i64]) -> bool {
    let core = &world.servers[at].peer.as_ref().unwrap().core;
    core.all_views().any(|view| view.voters().map(|id| id.0).eq(voters.iter().copied()))
}

/// Five voters with three transactions, led by server 4; server 0 is down.
fn begin() -> World {
    let mut world = World::of(Conditions { elects: true, changes: true, ..Conditions::mild(5, 1) });
    world.calm();
    assert_eq!(leader(&world), Some(4));
    for _ in 0..3 {
        world.propose(4);
    }
    world.calm();
    world.cut_power(0);
    run(&mut world, 3, &|_, _| true);
    assert_eq!(leader(&world), Some(4));
    world
}

const fn is_one_side(a: usize, b: usize) -> bool {
    (a <= 2) == (b <= 2)
}

/// Server 0 is back, and a partition separates {0, 1, 2} and {3, 4}.
fn part(world: &mut World) {
    world.restart(0);
    run(world, 900, &is_one_side);
    show(world, "both sides have gone on");
}

fn voters_in_force(world: &World, at: usize) -> usize {
    world.servers[at].peer.as_ref().unwrap().core.view.voters().count()
}

// Camunda: a member that restarts uses the last committed configuration, and forgets the one at the end of its log.
#[test]
fn camunda_57386_configuration_that_the_log_ends_with_counts_after_a_restart() {
    let mut world = begin();
    reconfigure(&mut world, 4, &[2, 3, 4]);
    // 2 logs it and acknowledges it; it gets no COMMIT.
    run(&mut world, 2, &|from, to| (from, to) == (4, 2));
    run(&mut world, 2, &|from, to| (from, to) == (2, 4));
    world.cut_power(2);
    world.restart(2);
    assert!(counts(&world, 2, &[2, 3, 4]), "its log ends with it");
    assert_eq!(voters_in_force(&world, 2), 5, "nothing says that it is committed");
    // 3 acknowledges: {2, 3, 4} of both configurations have it. {3, 4} go on.
    run(&mut world, 4, &|from, to| from >= 3 && to >= 3);
    world.propose(4);
    run(&mut world, 4, &|from, to| from >= 3 && to >= 3);
    show(&world, "committed, and another transaction committed by 3 and 4");
    part(&mut world);
    assert_eq!(leader(&world), Some(4), "{{0, 1, 2}} are no quorum of what 2 has acknowledged");
    world.calm();
    world.assert_all_alike();
}

// Scylla, and Camunda 61854: a leader with a configuration at the end of its log puts it in force with a quorum of that
// configuration alone, before a quorum of the one in force has its log.
#[test]
fn scylladb_30936_last_logged_configuration_is_in_force_once_both_quorums_have_it() {
    let mut world = begin();
    world.restart(0);
    world.calm();
    // Only server 4, the one voter of the new configuration, has it.
    reconfigure(&mut world, 4, &[4]);
    run(&mut world, 2, &|_, _| false);
    assert_eq!(voters_in_force(&world, 4), 5, "its own ACK is no quorum of the five");
    world.cut_power(4);
    world.restart(4);
    // It is elected for its log, and then it is cut off from all others.
    let leads =
        |world: &World| matches!(world.servers[4].peer.as_ref().unwrap().role(), Role::Leading(_));
    for _ in 0..600 {
        if !leads(&world) {
            run(&mut world, 1, &|_, _| true);
        }
    }
    assert!(leads(&world), "its log is the longest");
    assert!(counts(&world, 4, &[4]), "its log ends with it");
    run(&mut world, 900, &|from, to| from != 4 && to != 4);
    show(&world, "the others have gone on");
    assert_eq!(voters_in_force(&world, 4), 5, "its own ACK is no quorum of the five");
    assert_eq!(world.servers[4].leads, None, "it serves beside another leader");
    let at = leader(&world).expect("four of five are a quorum");
    world.propose(at);
    world.calm();
    world.assert_all_alike();
}

// etcd's library: a snapshot from before a configuration replaces the log that has it, and the older one is in force again.
#[test]
fn etcd_raft_456_older_tree_does_not_bring_an_older_configuration_back() {
    let zxid = |counter| Zxid::new(Epoch(1), counter);
    let first = view_of(zxid(0).to_wire(), 0..5, []);
    let second = view_of(zxid(5).to_wire(), [2, 3, 4], []);
    let settings = Settings { reconfigs: true, ..Settings::DEFAULT };
    let epochs = Epochs::both(Epoch(1));
    let mut peer = Peer::member(ServerId(2), settings, first.clone(), epochs, Some(zxid(4)));
    peer.core.finds_view = view_in;
    let mut server = PeerOnDisk::new(peer);
    server.settle(Input::Tick);
    server.votes_for(4).into_iter().for_each(|vote| drop(server.settle(vote)));
    for packet in [
        Packet::LeaderInfo { epoch: Epoch(1) },
        Packet::Diff { zxid: zxid(4) },
        Packet::NewLeader { epoch: Epoch(1), view: first.to_string().into() },
        Packet::UpToDate,
        Packet::Proposal { zxid: zxid(5), entry: format!("{VIEW}{second}").into() },
        Packet::CommitAndActivate { zxid: zxid(5), leader: ServerId(4) },
    ] {
        server.settle(Input::Leader { packet });
    }
    assert_eq!(server.peer.core.view, second);
    server.settle(Input::LeaderGone);
    // Its next leader has lost the configuration, and sends an older tree.
    server.votes_for(4).into_iter().for_each(|vote| drop(server.settle(vote)));
    for input in [
        Input::Leader { packet: Packet::LeaderInfo { epoch: Epoch(2) } },
        Input::Leader { packet: Packet::Snap { zxid: zxid(4) } },
        Input::TreeViews { views: vec![first.clone()] },
        Input::Leader {
            packet: Packet::NewLeader { epoch: Epoch(2), view: first.to_string().into() },
        },
        Input::Leader { packet: Packet::UpToDate },
    ] {
        server.settle(input);
    }
    assert_eq!(server.peer.core.view, second, "the configuration in force went back");
}
