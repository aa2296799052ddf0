//! Reconfigurations during which servers lose connections, power or a leader's tree at the worst moment.
//!
//! Five voters, led by server 4; server 0 is down. Most tests end with the partition {0, 1, 2} | {3, 4}.

use super::conditions::Conditions;
use super::world::World;
use oxkeeper::model::{Epoch, Epochs, Role as Kind, ServerId, Zxid};
use oxkeeper::zab::{Input, LearnerConnectionId, Packet, Peer, Role, Settings};
use support::connections::Item;
use support::disk::Disk;
use support::peer::PeerOnDisk;
use support::views::{VIEW, member, view_in, view_of};

pub fn leader(world: &World) -> Option<usize> {
    world.servers.iter().position(|server| server.leads.is_some())
}

/// Rounds in which disks write, time passes, and packets arrive between servers for which `passes(from, to)`.
///
/// * `no_tree`: servers whose disks are too slow to write a tree.
pub fn run(
    world: &mut World,
    rounds: usize,
    no_tree: &[usize],
    passes: &dyn Fn(usize, usize) -> bool,
) {
    for _ in 0..rounds {
        for at in 0..world.servers.len() {
            (0..8).for_each(|_| world.write_log(at));
            if !no_tree.contains(&at) {
                world.write_tree(at);
            }
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

fn connection_of(world: &World, learner: usize) -> LearnerConnectionId {
    world.servers[learner].connection.expect("the learner has a leader")
}

/// Server `at` proposes a configuration with these voters.
pub fn reconfigure(world: &mut World, at: usize, voters: &[i64]) {
    let mut view = world.servers[at].peer.as_ref().unwrap().core.view.clone();
    let voter = |&id: &i64| (ServerId(id), member(ServerId(id), Kind::Participant));
    view.members = voters.iter().map(voter).collect();
    world.propose_view(at, view);
}

pub fn show(world: &World, what: &str) {
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
pub fn counts(world: &World, at: usize, voters: &[i64]) -> bool {
    let core = &world.servers[at].peer.as_ref().unwrap().core;
    core.all_views().any(|view| view.voters().map(|id| id.0).eq(voters.iter().copied()))
}

/// Five voters with three transactions, led by server 4; server 0 is down.
pub fn begin(sends_trees: bool) -> World {
    let mut world = World::of(Conditions {
        elects: true,
        changes: true,
        sends_trees,
        ..Conditions::mild(5, 1)
    });
    world.calm();
    assert_eq!(leader(&world), Some(4));
    for _ in 0..3 {
        world.propose(4);
    }
    world.calm();
    world.cut_power(0);
    run(&mut world, 3, &[], &|_, _| true);
    assert_eq!(leader(&world), Some(4));
    world
}

const fn is_one_side(a: usize, b: usize) -> bool {
    (a <= 2) == (b <= 2)
}

/// Server 0 is back, and a partition separates {0, 1, 2} and {3, 4}.
pub fn part(world: &mut World) {
    world.restart(0);
    run(world, 900, &[], &is_one_side);
    show(world, "both sides have gone on");
}

#[test]
fn configuration_kept_in_the_log_after_a_tree_counts() {
    let mut world = begin(true);
    reconfigure(&mut world, 4, &[2, 3, 4]);
    // Only 2 receives the proposal, and its acknowledgement is lost.
    run(&mut world, 2, &[], &|from, to| (from, to) == (4, 2));
    show(&world, "2 has logged the configuration");
    let id = connection_of(&world, 2);
    world.end_connection(id);
    run(&mut world, 12, &[], &|from, to| from == 2 || (to == 2));
    show(&world, "2 came again and got the tree");
    // 3 acknowledges: {2, 3, 4} of the old configuration and of the new one have it.
    run(&mut world, 4, &[], &|from, to| from >= 3 && to >= 3);
    world.propose(4);
    run(&mut world, 4, &[], &|from, to| from >= 3 && to >= 3);
    show(&world, "committed, and another transaction committed by 3 and 4");
    part(&mut world);
    let count = world.servers.iter().filter(|server| server.leads.is_some()).count();
    assert!(count < 2, "two leaders serve");
    assert!(world.servers[2].leads.is_none(), "2 leads by the old configuration");
}

#[test]
fn configuration_in_a_tree_counts_without_newleader() {
    let mut world = begin(true);
    let id = connection_of(&world, 2);
    world.end_connection(id);
    // 2 finds its leader; its FOLLOWERINFO is late.
    for _ in 0..12 {
        for at in 0..5 {
            world.step(at, Input::Tick);
        }
        for (from, to) in world.elections.busy() {
            world.hear(from, to);
        }
    }
    show(&world, "2 connects to its leader");
    reconfigure(&mut world, 4, &[3, 4]);
    run(&mut world, 2, &[], &|from, to| [(4, 1), (4, 3)].contains(&(from, to)));
    // Acknowledged by 1 and 3, so committed; 1 gets no COMMIT.
    run(&mut world, 3, &[], &|from, to| [(1, 4), (3, 4), (4, 3)].contains(&(from, to)));
    show(&world, "committed");
    let id = connection_of(&world, 2);
    let is_tree_next =
        |world: &World| matches!(world.connections[&id].to_learner.front(), Some(Item::Tree(_)));
    for _ in 0..4 {
        while world.deliver(id, true) {}
        if is_tree_next(&world) {
            break;
        }
        world.deliver(id, false);
        (0..4).for_each(|_| world.write_log(2));
    }
    while !is_tree_next(&world) {
        assert!(world.deliver(id, false) || world.deliver(id, true), "no tree comes");
    }
    world.deliver(id, false);
    show(&world, "2 has read the tree, and nothing after it");
    world.end_connection(id);
    assert!(counts(&world, 2, &[3, 4]), "the tree has it");
    world.propose(4);
    run(&mut world, 4, &[], &|from, to| from >= 3 && to >= 3);
    part(&mut world);
    assert!(world.servers[2].leads.is_none(), "2 leads by the old configuration");
}

#[test]
fn configuration_committed_between_two_others_counts() {
    let mut world = begin(true);
    let id = connection_of(&world, 2);
    world.end_connection(id);
    run(&mut world, 12, &[2], &|_, _| true);
    show(&world, "2 writes the tree");
    reconfigure(&mut world, 4, &[3, 4]);
    run(&mut world, 2, &[2], &|from, _| from == 4);
    run(&mut world, 3, &[2], &|from, to| [(1, 4), (3, 4), (4, 3), (4, 2)].contains(&(from, to)));
    show(&world, "the second is committed; 1 gets no COMMIT");
    reconfigure(&mut world, 4, &[0, 1, 2, 3, 4]);
    let id = connection_of(&world, 2);
    while world.deliver(id, false) {}
    world.crash(4, 0, 0);
    show(&world, "the third was proposed to 2 alone");
    assert!(counts(&world, 2, &[3, 4]), "it was committed before the third was proposed");
    world.restart(4);
    run(&mut world, 300, &[2], &|from, to| from >= 3 && to >= 3);
    show(&world, "3 and 4 go on by the second");
    if let Some(at) = leader(&world) {
        world.propose(at);
        run(&mut world, 4, &[2], &|from, to| from >= 3 && to >= 3);
    }
    part(&mut world);
    assert!(world.servers[2].leads.is_none(), "2 leads by the old configuration");
}

#[test]
fn uncommitted_configuration_of_a_java_leader_is_not_in_force() {
    let zxid = |epoch, counter| Zxid::new(Epoch(epoch), counter);
    let first = view_of(zxid(1, 0x24).to_wire(), [1, 2, 3], []);
    let second = view_of(zxid(5, 4).to_wire(), [3, 4, 5], []);
    let settings = Settings { reconfigs: true, ..Settings::DEFAULT };
    // The file of proposed configurations may still have one from before this epoch that was never committed.
    let dead = view_of(zxid(4, 9).to_wire(), [1, 3], []);
    for saved in [vec![], vec![dead]] {
        let (epochs, last) = (Epochs::both(Epoch(5)), Some(zxid(5, 3)));
        let mut peer = Peer::member(ServerId(4), settings, first.clone(), epochs, last);
        peer.core.finds_view = view_in;
        peer.core.see_saved_views(saved, true);
        let mut server = PeerOnDisk::new(peer);
        server.settle(Input::Tick);
        for vote in server.votes_for(3) {
            server.settle(vote);
        }
        for packet in [
            Packet::LeaderInfo { epoch: Epoch(5) },
            Packet::Diff { zxid: zxid(5, 3) },
            Packet::Proposal { zxid: zxid(5, 4), entry: format!("{VIEW}{second}").into() },
            Packet::NewLeader { epoch: Epoch(5), view: second.to_string().into() },
            Packet::UpToDate,
        ] {
            server.settle(Input::Leader { packet });
        }
        let core = &server.peer.core;
        assert_eq!(core.view, first, "in force before it is committed");
        assert_eq!(core.next.as_ref(), Some(&second));
    }
}

#[test]
fn configuration_that_was_truncated_stays_away_after_a_restart() {
    let mut world = begin(false);
    world.restart(0);
    world.calm();
    reconfigure(&mut world, 4, &[2, 3, 4]);
    // 4 and 3 log it, and then the others go on without these two.
    run(&mut world, 2, &[], &|from, to| (from, to) == (4, 3));
    world.cut_power(3);
    world.cut_power(4);
    run(&mut world, 600, &[], &|from, to| from <= 2 && to <= 2);
    show(&world, "0, 1 and 2 go on");
    let at = leader(&world).expect("three are a quorum");
    for _ in 0..3 {
        world.propose(at);
    }
    world.calm();
    world.restart(3);
    world.restart(4);
    world.calm();
    world.propose(leader(&world).unwrap());
    world.calm();
    show(&world, "all are alike; the proposed configuration is truncated");
    world.assert_all_alike();
    (0..5).for_each(|at| world.cut_power(at));
    (0..5).for_each(|at| world.restart(at));
    world.calm();
    show(&world, "power was gone everywhere");
    let voters = |at: usize| world.servers[at].peer.as_ref().unwrap().core.view.voters().count();
    assert!((0..5).all(|at| voters(at) == 5), "the truncated configuration is back");
}

// Data is lost, and configuration files stay: by these the ensemble goes on without servers 0 and 1 (ReconfigRecoveryTest).
#[test]
fn configuration_that_only_a_file_has_counts_when_data_is_lost() {
    let mut world = begin(false);
    (1..5).for_each(|at| world.cut_power(at));
    let zxid = |counter| Zxid::new(Epoch(1), counter).to_wire();
    for at in 0..2 {
        let mut disk = Disk::default();
        disk.view = Some(view_of(zxid(1), [0, 1, 2], []));
        disk.next = vec![view_of(zxid(5), [2, 3, 4], [])];
        world.servers[at].disk = disk;
        world.restart(at);
    }
    run(&mut world, 900, &[], &|_, _| true);
    show(&world, "0 and 1 are a quorum of the first configuration");
    assert_eq!(leader(&world), None, "a second ensemble");
}

// The leader has made 2 an observer, and 2 has not got the COMMIT: it will reconnect as one, and get no proposal before it is committed.
#[test]
fn followers_that_were_made_observers_are_not_counted_as_synchronised() {
    let mut world = begin(false);
    let mut view = world.servers[4].peer.as_ref().unwrap().core.view.clone();
    view.members.insert(ServerId(2), member(ServerId(2), Kind::Observer));
    world.propose_view(4, view);
    run(&mut world, 4, &[], &|from, to| to == 4 || from == 4 && to != 2);
    show(&world, "4 has it in force");
    let peer = world.servers[4].peer.as_ref().unwrap();
    let Role::Leading(leader) = peer.role() else { panic!("4 leads") };
    assert!(peer.core.view.is_observer(ServerId(2)));
    assert_eq!(leader.connections().count(), 3, "2 follows");
    assert!(!leader.synced(&peer.core).contains(&ServerId(2)), "counted on as a follower");
}
