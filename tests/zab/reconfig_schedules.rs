//! Schedules of whole ensembles in which a configuration that is in force decides nothing at a server that has acknowledged it.

use super::conditions::Conditions;
use super::world::World;
use oxkeeper::model::{Epoch, Epochs, Role as Kind, ServerId, View, Zxid};
use oxkeeper::zab::{
    Input, LearnerConnectionId, Notification, Packet, Peer, PeerState, Settings, Vote,
};
use support::connections::Item;
use support::election::votes_for;
use support::peer::PeerOnDisk;
use support::views::{VIEW, member, view_in, view_of};

fn reconfigure(world: &mut World, at: usize, voters: &[i64]) {
    let mut view = world.servers[at].peer.as_ref().unwrap().core.view.clone();
    let voter = |&id: &i64| (ServerId(id), member(ServerId(id), Kind::Participant));
    view.members = voters.iter().map(voter).collect();
    world.propose_view(at, view);
}

fn connection_of(world: &World, learner: usize) -> LearnerConnectionId {
    world.servers[learner].connection.expect("it has a leader")
}

/// The disks of these servers do all they were asked.
fn write(world: &mut World, servers: &[usize]) {
    for &at in servers {
        for _ in 0..20 {
            world.write_log(at);
            world.write_tree(at);
        }
    }
}

fn tick(world: &mut World, servers: &[usize], ticks: usize) {
    for _ in 0..ticks {
        servers.iter().for_each(|&at| world.step(at, Input::Tick));
    }
}

/// Packets between these learners and their leaders arrive, but no UPTODATE, and nothing after one.
fn exchange(world: &mut World, learners: &[usize], servers: &[usize]) {
    for _ in 0..20 {
        for &learner in learners {
            let Some(id) = world.servers[learner].connection else { continue };
            while world.deliver(id, true) {}
            let goes = |world: &World| {
                let front = world.connections.get(&id).and_then(|it| it.to_learner.front());
                front.is_some_and(|item| !matches!(item, Item::Packet(Packet::UpToDate)))
            };
            if goes(world) {
                world.deliver(id, false);
            }
        }
        write(world, servers);
    }
}

/// The next packet to a learner arrives.
fn deliver_next(world: &mut World, learner: usize) {
    let id = connection_of(world, learner);
    assert!(world.deliver(id, false), "nothing is under way to {learner}");
}

fn leave(world: &mut World, learners: &[usize]) {
    for &learner in learners {
        if let Some(id) = world.servers[learner].connection {
            world.end_connection(id);
        }
    }
}

/// A server hears from the other voters that `leader` leads, from those with high ids first.
fn is_elected(world: &mut World, at: usize, leader: usize) {
    let server = &mut world.servers[at];
    server.is_looking = false;
    let votes = server.peer.as_ref().map(|peer| votes_for(peer, ServerId(leader as i64)));
    votes.into_iter().flatten().rev().for_each(|vote| world.step(at, vote));
}

const fn zxid(epoch: u32, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), counter)
}

// Servers are told who leads, as in the explorer: which elections end so is not the question here.
#[test]
fn epoch_is_opened_without_a_configuration_that_only_newleader_named() {
    let mut world = World::of(Conditions { changes: true, ..Conditions::mild(7, 1) });
    world.calm();
    assert_eq!(world.leader(), Some(6));
    world.propose(6);
    world.calm();
    // Epoch 1: 6 proposes V2 = {4, 5, 6}; only 4 logs it.
    reconfigure(&mut world, 6, &[4, 5, 6]);
    write(&mut world, &[6]);
    deliver_next(&mut world, 4);
    write(&mut world, &[4]);
    leave(&mut world, &[0, 1, 2, 3, 4, 5]);
    world.step(6, Input::StandDown { why: "it is cut off".to_owned() });
    tick(&mut world, &[0, 1, 2, 3, 4, 5, 6], 1);
    // Epoch 2: 3 opens it with {0, 1, 2, 3}, and cuts V2 off at 4 and 6; nobody reads NEWLEADER.
    [3, 0, 1, 2, 4, 6].into_iter().for_each(|at| world.is_elected(at, 3));
    tick(&mut world, &[4, 6], 80); // They have waited for a quorum of V2.
    for learner in [0, 1, 2] {
        let id = connection_of(&world, learner);
        while world.deliver(id, true) {}
    }
    write(&mut world, &[3]);
    for learner in [0, 1, 2] {
        let id = connection_of(&world, learner);
        while world.deliver(id, true) {}
        deliver_next(&mut world, learner);
        write(&mut world, &[learner]);
        while world.deliver(id, true) {}
    }
    write(&mut world, &[3]);
    for learner in [4, 6] {
        let id = connection_of(&world, learner);
        while world.deliver(id, true) {}
        deliver_next(&mut world, learner);
        write(&mut world, &[learner]);
        while world.deliver(id, true) {}
        deliver_next(&mut world, learner);
        write(&mut world, &[learner]);
    }
    world.crash(3, 0, 0);
    tick(&mut world, &[0, 1, 2, 4, 5, 6], 1);
    // Epoch 3: 6 leads; it names V2, with {1, 2, 4, 6}; 5 comes late.
    [6, 4, 1, 2, 5].into_iter().for_each(|at| world.is_elected(at, 6));
    exchange(&mut world, &[1, 2, 4], &[1, 2, 4, 6]);
    assert_eq!(world.servers[6].leads, Some(Epoch(3)));
    assert_eq!(world.servers[6].peer.as_ref().unwrap().core.view.voters().count(), 3);
    leave(&mut world, &[1, 2, 4]);
    // 5 gets NEWLEADER, T is proposed, and 5 acknowledges both; UPTODATE does not reach it.
    let id = connection_of(&world, 5);
    while world.deliver(id, true) {}
    deliver_next(&mut world, 5);
    write(&mut world, &[5]);
    while world.deliver(id, true) {}
    world.propose(6);
    while world.deliver(id, false) {}
    write(&mut world, &[5, 6]);
    while world.deliver(id, true) {}
    assert_eq!(world.servers[6].peer.as_ref().unwrap().core.history.committed(), zxid(3, 1));
    world.crash(6, 0, 0);
    world.restart(3);
    tick(&mut world, &[0, 1, 2, 3, 4, 5], 1);
    // Epoch 4: 4 leads.
    [4, 0, 1, 2, 3, 5].into_iter().for_each(|at| is_elected(&mut world, at, 4));
    exchange(&mut world, &[5, 0, 1, 2, 3], &[0, 1, 2, 3, 4, 5]);
    tick(&mut world, &[5], 2);
    world.is_elected(5, 4);
    exchange(&mut world, &[5, 0, 1, 2, 3], &[0, 1, 2, 3, 4, 5]);
    world.restart(6);
    world.calm();
    world.assert_all_alike();
}

// A leader that has not established its epoch sends a tree whose last configuration is proposed only; the one before it is committed.
#[test]
fn configuration_before_the_one_in_a_tree_counts_after_newleader() {
    let first = view_of(zxid(1, 0).to_wire(), 0..5, []);
    let second = view_of(zxid(1, 5).to_wire(), [3, 4, 5], []);
    let third = view_of(zxid(1, 6).to_wire(), 0..5, []);
    let settings = Settings { reconfigs: true, ..Settings::DEFAULT };
    let (epochs, last) = (Epochs::both(Epoch(1)), Some(zxid(1, 4)));
    let mut peer = Peer::member(ServerId(2), settings, first, epochs, last);
    peer.core.finds_view = view_in;
    let mut server = PeerOnDisk::new(peer);
    server.settle(Input::Tick);
    // It follows 4 and acknowledges the second, with 3 and 4.
    for vote in server.votes_for(4) {
        server.settle(vote);
    }
    for packet in [
        Packet::LeaderInfo { epoch: Epoch(1) },
        Packet::Diff { zxid: zxid(1, 4) },
        Packet::NewLeader { epoch: Epoch(1), view: server.peer.core.view.to_string().into() },
        Packet::UpToDate,
        Packet::Proposal { zxid: zxid(1, 5), entry: format!("{VIEW}{second}").into() },
    ] {
        server.settle(Input::Leader { packet });
    }
    assert_eq!(server.peer.core.next.as_ref(), Some(&second));
    server.settle(Input::LeaderGone);
    // Server 1 has both from its log, the first in force, and opens epoch 2.
    for vote in server.votes_for(1) {
        server.settle(vote);
    }
    server.settle(Input::Leader { packet: Packet::LeaderInfo { epoch: Epoch(2) } });
    server.settle(Input::Leader { packet: Packet::Snap { zxid: zxid(1, 6) } });
    server.settle(Input::TreeViews { views: vec![third.clone()] });
    let packet = Packet::NewLeader { epoch: Epoch(2), view: third.to_string().into() };
    server.settle(Input::Leader { packet });
    let core = &server.peer.core;
    assert_eq!(core.current, Epoch(2));
    assert!(
        core.all_views().any(|view| *view == second),
        "it was acknowledged, and is in force elsewhere"
    );
}

/// All packets to and from these learners arrive, in order.
fn exchange_all(world: &mut World, learners: &[usize], servers: &[usize]) {
    for _ in 0..20 {
        for &learner in learners {
            let Some(id) = world.servers[learner].connection else { continue };
            while world.deliver(id, true) {}
            while world.deliver(id, false) {}
        }
        write(world, servers);
    }
}

fn send_up(world: &mut World, learner: usize) {
    let id = connection_of(world, learner);
    while world.deliver(id, true) {}
}

// As above, in a whole ensemble: forgotten by a quorum, it would end with two leaders of one epoch, and each would serve.
#[test]
fn configuration_before_the_one_in_a_tree_counts_at_a_quorum() {
    two_configurations_decide(false);
}

#[test]
fn configuration_before_the_one_in_a_tree_counts_at_a_quorum_after_a_power_cut() {
    two_configurations_decide(true);
}

/// * `restarts`: whether those that have acknowledged both configurations start again.
fn two_configurations_decide(restarts: bool) {
    let conditions = Conditions { changes: true, sends_trees: true, ..Conditions::mild(9, 1) };
    let mut world = World::of(conditions);
    world.calm();
    assert_eq!(world.leader(), Some(8));
    world.propose(8);
    world.calm();
    // Epoch 1: 2 elects 8 again, and its hello is late. V2 is acknowledged by {3, 4, 6, 7, 8} and in force at 8.
    leave(&mut world, &[0, 1, 2, 5]);
    tick(&mut world, &[0, 1, 2, 5], 1);
    world.is_elected(2, 8);
    reconfigure(&mut world, 8, &[6, 7, 8]);
    write(&mut world, &[8]);
    for learner in [3, 4, 6, 7] {
        deliver_next(&mut world, learner);
        write(&mut world, &[learner]);
        send_up(&mut world, learner);
    }
    assert_eq!(world.servers[8].peer.as_ref().unwrap().core.view.voters().count(), 3);
    // 2 gets the tree and NEWLEADER, V3, and no UPTODATE.
    send_up(&mut world, 2);
    deliver_next(&mut world, 2);
    write(&mut world, &[2]);
    send_up(&mut world, 2);
    reconfigure(&mut world, 8, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    write(&mut world, &[8]);
    for _ in 0..3 {
        deliver_next(&mut world, 2);
        write(&mut world, &[2]);
    }
    leave(&mut world, &[3, 4, 6, 7]);
    world.crash(8, 0, 0);
    tick(&mut world, &[0, 1, 2, 3, 4, 5, 6, 7], 1);
    // Epoch 2: 2 opens it, with {2, 3, 4, 6, 7}; 3 and 4 get its tree and NEWLEADER.
    [2, 3, 4, 6, 7].into_iter().for_each(|at| is_elected(&mut world, at, 2));
    [3, 4, 6, 7].into_iter().for_each(|learner| send_up(&mut world, learner));
    write(&mut world, &[2]);
    for learner in [3, 4, 6, 7] {
        deliver_next(&mut world, learner);
        write(&mut world, &[learner]);
        send_up(&mut world, learner);
    }
    write(&mut world, &[2]);
    for learner in [3, 4] {
        for _ in 0..2 {
            deliver_next(&mut world, learner);
            write(&mut world, &[learner]);
        }
        send_up(&mut world, learner);
    }
    world.crash(2, 0, 0);
    for at in [3, 4].into_iter().filter(|_| restarts) {
        world.crash(at, 0, 0);
        world.restart(at);
    }
    // 6 and 7 hear from 8 that V2 is in force, and go on by it.
    world.restart(8);
    let config = world.servers[8].peer.as_ref().unwrap().core.view.to_string();
    world.crash(8, 0, 0);
    tick(&mut world, &[0, 1, 3, 4, 5, 6, 7], 1);
    let vote = Vote { epoch: 1, zxid: zxid(1, 3).to_wire(), leader: ServerId(8) };
    for at in [6, 7] {
        let (state, config) = (PeerState::Looking, Some(config.clone().into()));
        let notification =
            Notification { state, vote, round: 1, version: 2, config, is_ours: false };
        world.step(at, Input::Notification { from: ServerId(8), notification });
    }
    [7, 6].into_iter().for_each(|at| is_elected(&mut world, at, 7));
    exchange_all(&mut world, &[6], &[6, 7]);
    world.propose(7);
    exchange_all(&mut world, &[6], &[6, 7]);
    // 4 must not open the same epoch by V1 and V3.
    [4, 0, 1, 3, 5].into_iter().for_each(|at| is_elected(&mut world, at, 4));
    exchange_all(&mut world, &[0, 1, 3, 5], &[0, 1, 3, 4, 5]);
    world.propose(4);
    exchange_all(&mut world, &[0, 1, 3, 5], &[0, 1, 3, 4, 5]);
    assert_eq!(world.servers[4].leads, None, "two leaders");
}

// A tree that replaces the history tells of its last configuration only, and so does a snapshot after a restart.
#[test]
fn configuration_before_the_one_in_the_log_is_in_force() {
    let first = view_of(zxid(1, 0).to_wire(), 0..5, []);
    let second = view_of(zxid(1, 5).to_wire(), [2, 3, 4], []);
    let third = view_of(zxid(1, 6).to_wire(), 0..5, []);
    let settings = Settings { reconfigs: true, ..Settings::DEFAULT };
    let member = |views: &[&View], last| {
        let epochs = Epochs::both(Epoch(1));
        let mut peer = Peer::member(ServerId(2), settings, first.clone(), epochs, Some(last));
        peer.core.finds_view = view_in;
        views.iter().for_each(|&view| peer.core.see_logged_view(view.clone()));
        let mut server = PeerOnDisk::new(peer);
        server.settle(Input::Tick);
        server
    };
    let server = member(&[&second, &third], zxid(1, 6));
    assert_eq!(server.peer.core.view, second, "read from the log at the start");
    assert_eq!(server.peer.core.next.as_ref(), Some(&third));
    let mut server = member(&[&second], zxid(1, 5));
    assert_eq!(server.peer.core.view, first, "no other follows it");
    for vote in server.votes_for(1) {
        server.settle(vote);
    }
    // A synchronisation of Java's: a plain COMMIT for a reconfiguration.
    for packet in [
        Packet::LeaderInfo { epoch: Epoch(2) },
        Packet::Diff { zxid: zxid(1, 6) },
        Packet::Proposal { zxid: zxid(1, 6), entry: format!("{VIEW}{third}").into() },
    ] {
        server.settle(Input::Leader { packet });
    }
    assert_eq!(server.peer.core.view, second);
    assert_eq!(server.peer.core.next.as_ref(), Some(&third));
}
