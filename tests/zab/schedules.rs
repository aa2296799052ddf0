//! What happens before the critical moment of some reconfigurations, from where tests and small ensembles go on.
//!
//! The schedules name the leader of each election, as the explorer does: which elections end so is not the question here.

use super::world::World;
use oxkeeper::model::{Epoch, Role as Kind, ServerId, Zxid};
use oxkeeper::zab::{Input, LearnerConnectionId, Packet, PeerState, Vote};
use support::builders;
use support::connections::Item;
use support::election::votes_for;
use support::views::member;

pub fn reconfigure(world: &mut World, at: usize, voters: &[i64]) {
    let mut view = world.servers[at].peer.as_ref().unwrap().core.view.clone();
    let voter = |&id: &i64| (ServerId(id), member(ServerId(id), Kind::Participant));
    view.members = voters.iter().map(voter).collect();
    world.propose_view(at, view);
}

pub fn connection_of(world: &World, learner: usize) -> LearnerConnectionId {
    world.servers[learner].connection.expect("the learner has a leader")
}

/// The disks of these servers do all pending writes.
pub fn write(world: &mut World, servers: &[usize]) {
    for &at in servers {
        for _ in 0..20 {
            world.write_log(at);
            world.write_tree(at);
        }
    }
}

pub fn tick(world: &mut World, servers: &[usize], ticks: usize) {
    for _ in 0..ticks {
        servers.iter().for_each(|&at| world.step(at, Input::Tick));
    }
}

/// Packets between these learners and their leaders arrive, except UPTODATE and what follows it.
pub fn exchange(world: &mut World, learners: &[usize], servers: &[usize]) {
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
pub fn deliver_next(world: &mut World, learner: usize) {
    let id = connection_of(world, learner);
    assert!(world.deliver(id, false), "nothing is under way to {learner}");
}

pub fn leave(world: &mut World, learners: &[usize]) {
    for &learner in learners {
        if let Some(id) = world.servers[learner].connection {
            world.end_connection(id);
        }
    }
}

/// A server gets votes of the other voters for `leader`, of those with high ids first.
pub fn is_elected(world: &mut World, at: usize, leader: usize) {
    let server = &mut world.servers[at];
    server.is_looking = false;
    let votes = server.peer.as_ref().map(|peer| votes_for(peer, ServerId(leader as i64)));
    votes.into_iter().flatten().rev().for_each(|vote| world.step(at, vote));
}

/// All packets to and from these learners arrive, in order.
pub fn exchange_all(world: &mut World, learners: &[usize], servers: &[usize]) {
    for _ in 0..20 {
        for &learner in learners {
            let Some(id) = world.servers[learner].connection else { continue };
            while world.deliver(id, true) {}
            while world.deliver(id, false) {}
        }
        write(world, servers);
    }
}

/// A notification with the configuration that is in force at `from`, and a vote of epoch 1.
pub fn tell_configuration(world: &mut World, from: usize, to: usize) {
    let config = world.servers[from].peer.as_ref().unwrap().core.view.to_string();
    let from = ServerId(from as i64);
    let vote = Vote { epoch: 1, zxid: zxid(1, 3).to_wire(), leader: from };
    let (state, config) = (PeerState::Looking, Some(config.into()));
    let notification = builders::notification(state, vote, 1, config);
    world.step(to, Input::Notification { from, notification });
}

pub fn send_up(world: &mut World, learner: usize) {
    let id = connection_of(world, learner);
    while world.deliver(id, true) {}
}

pub const fn zxid(epoch: u32, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), counter)
}

/// `leader` leads all servers in the first configuration, and they have a transaction.
fn established(world: &mut World, leader: usize) {
    world.calm();
    assert_eq!(world.leader(), Some(leader));
    world.propose(leader);
    world.calm();
}

/// `leader` proposes a configuration with these voters, `learners` acknowledge it, and it is in force at the leader alone.
fn reconfigure_with(world: &mut World, leader: usize, voters: &[i64], learners: &[usize]) {
    reconfigure(world, leader, voters);
    write(world, &[leader]);
    for &learner in learners {
        deliver_next(world, learner);
        write(world, &[learner]);
        send_up(world, learner);
    }
    let view = &world.servers[leader].peer.as_ref().unwrap().core.view;
    assert_eq!(view.voters().count(), voters.len());
}

/// A leader and one learner commit another transaction.
fn go_on(world: &mut World, leader: usize, learner: usize) {
    world.propose(leader);
    exchange_all(world, &[learner], &[learner, leader]);
}

/// `leader` is elected by `others`, which follow it.
pub fn is_elected_by(world: &mut World, leader: usize, others: &[usize]) {
    is_elected(world, leader, leader);
    others.iter().for_each(|&at| is_elected(world, at, leader));
}

/// Seven voters in epoch 3: 6 leads by V2 = {4, 5, 6}, which no log has: NEWLEADER named it, and {1, 2, 4} have acknowledged that
/// and left.
///
/// * `promising`: they promise epoch 2. `late`: it is about to follow 6.
fn configuration_that_only_newleader_named(world: &mut World, promising: [usize; 3], late: usize) {
    // Epoch 1: 6 proposes V2; only 4 logs it.
    reconfigure(world, 6, &[4, 5, 6]);
    write(world, &[6]);
    deliver_next(world, 4);
    write(world, &[4]);
    leave(world, &[0, 1, 2, 3, 4, 5]);
    world.step(6, Input::StandDown { why: "it is cut off".to_owned() });
    tick(world, &[0, 1, 2, 3, 4, 5, 6], 1);
    // Epoch 2: 3 opens it, and 4 and 6 truncate V2; no server reads NEWLEADER.
    [3].into_iter().chain(promising).chain([4, 6]).for_each(|at| world.is_elected(at, 3));
    tick(world, &[4, 6], 80); // They waited for a quorum of V2.
    for learner in promising {
        send_up(world, learner);
    }
    write(world, &[3]);
    for learner in promising {
        send_up(world, learner);
        deliver_next(world, learner);
        write(world, &[learner]);
        send_up(world, learner);
    }
    write(world, &[3]);
    for learner in [4, 6] {
        send_up(world, learner);
        deliver_next(world, learner);
        write(world, &[learner]);
        send_up(world, learner);
        deliver_next(world, learner);
        write(world, &[learner]);
    }
    world.crash(3, 0, 0);
    tick(world, &[0, 1, 2, 4, 5, 6], 1);
    // Epoch 3: 6 leads, with {1, 2, 4, 6}, and names V2.
    [6, 4, 1, 2, late].into_iter().for_each(|at| world.is_elected(at, 6));
    exchange(world, &[1, 2, 4], &[1, 2, 4, 6]);
    assert_eq!(world.servers[6].leads, Some(Epoch(3)));
    assert_eq!(world.servers[6].peer.as_ref().unwrap().core.view.voters().count(), 3);
    leave(world, &[1, 2, 4]);
}

/// Seven voters before epoch 4, all of them up except 6: a configuration that only NEWLEADER of epoch 3 named is in force, and of
/// them only 5 has what was committed in it.
pub fn epoch_opened_without_a_named_configuration(world: &mut World) {
    established(world, 6);
    configuration_that_only_newleader_named(world, [0, 1, 2], 5);
    // 5 gets NEWLEADER, T is proposed, and 5 acknowledges both; UPTODATE does not reach it.
    let id = connection_of(world, 5);
    while world.deliver(id, true) {}
    deliver_next(world, 5);
    write(world, &[5]);
    while world.deliver(id, true) {}
    world.propose(6);
    while world.deliver(id, false) {}
    write(world, &[5, 6]);
    while world.deliver(id, true) {}
    assert_eq!(world.servers[6].peer.as_ref().unwrap().core.history.committed(), zxid(3, 1));
    world.crash(6, 0, 0);
    world.restart(3);
    tick(world, &[0, 1, 2, 3, 4, 5], 1);
}

/// Seven voters, before epoch 4: 6 leads in epoch 3 by V2 = {4, 5, 6}, which 1, 2 and 4 have acknowledged. 0 has logged a
/// transaction of epoch 3, and was stopped before it saved which configuration NEWLEADER named.
pub fn interrupted_after_the_first_transaction(world: &mut World) {
    established(world, 6);
    leave(world, &[0]);
    world.propose(6);
    exchange_all(world, &[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5, 6]);
    tick(world, &[0], 1);
    configuration_that_only_newleader_named(world, [1, 2, 5], 0);
    send_up(world, 0);
    deliver_next(world, 0);
    write(world, &[0]);
    send_up(world, 0);
    world.propose(6);
    write(world, &[6]);
    let id = connection_of(world, 0);
    while world.deliver(id, false) {}
    world.crash(0, 2, 0);
    world.restart(0);
    tick(world, &[0, 1, 2, 4, 5], 1);
}

/// Nine voters, with trees: 7 leads 6 in V2, which 3 and 4 have acknowledged in addition to V3; 2 and 8 are down.
///
/// * `restarts`: 3 and 4 restart.
pub fn two_configurations(world: &mut World, restarts: bool) {
    established(world, 8);
    // Epoch 1: 2 elects 8 again, and its FOLLOWERINFO is late. {3, 4, 6, 7, 8} acknowledge V2, which is in force at 8.
    leave(world, &[0, 1, 2, 5]);
    tick(world, &[0, 1, 2, 5], 1);
    world.is_elected(2, 8);
    reconfigure_with(world, 8, &[6, 7, 8], &[3, 4, 6, 7]);
    // 2 gets the tree and NEWLEADER, V3, and no UPTODATE.
    send_up(world, 2);
    deliver_next(world, 2);
    write(world, &[2]);
    send_up(world, 2);
    reconfigure(world, 8, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    write(world, &[8]);
    for _ in 0..3 {
        deliver_next(world, 2);
        write(world, &[2]);
    }
    leave(world, &[3, 4, 6, 7]);
    world.crash(8, 0, 0);
    tick(world, &[0, 1, 2, 3, 4, 5, 6, 7], 1);
    // Epoch 2: 2 opens it, with {2, 3, 4, 6, 7}; 3 and 4 get its tree and NEWLEADER.
    [2, 3, 4, 6, 7].into_iter().for_each(|at| is_elected(world, at, 2));
    [3, 4, 6, 7].into_iter().for_each(|learner| send_up(world, learner));
    write(world, &[2]);
    for learner in [3, 4, 6, 7] {
        deliver_next(world, learner);
        write(world, &[learner]);
        send_up(world, learner);
    }
    write(world, &[2]);
    for learner in [3, 4] {
        for _ in 0..2 {
            deliver_next(world, learner);
            write(world, &[learner]);
        }
        send_up(world, learner);
    }
    world.crash(2, 0, 0);
    for at in [3, 4].into_iter().filter(|_| restarts) {
        world.crash(at, 0, 0);
        world.restart(at);
    }
    // 6 and 7 get a notification from 8 with V2, and go on with it.
    world.restart(8);
    tick(world, &[0, 1, 3, 4, 5, 6, 7], 1);
    [6, 7].into_iter().for_each(|to| tell_configuration(world, 8, to));
    world.crash(8, 0, 0);
    [7, 6].into_iter().for_each(|at| is_elected(world, at, 7));
    exchange_all(world, &[6], &[6, 7]);
    go_on(world, 7, 6);
}

/// Five voters, with trees: 4 leads 3 in V2 = {3, 4}, and 2 has read a tree with it and nothing more. 0 lags, 1 has acknowledged V2.
pub fn tree_without_newleader(world: &mut World) {
    established(world, 4);
    leave(world, &[0, 2]);
    tick(world, &[0, 2], 1);
    world.is_elected(2, 4);
    reconfigure_with(world, 4, &[3, 4], &[1, 3]);
    exchange_all(world, &[3], &[3, 4]);
    let id = connection_of(world, 2);
    send_up(world, 2);
    let is_tree_next =
        |world: &World| matches!(world.connections[&id].to_learner.front(), Some(Item::Tree(_)));
    while !is_tree_next(world) {
        deliver_next(world, 2);
        write(world, &[2]);
        send_up(world, 2);
    }
    deliver_next(world, 2);
    write(world, &[2]);
    leave(world, &[1, 2]);
    tick(world, &[0, 1, 2], 1);
    go_on(world, 4, 3);
}

/// Five voters, with trees: 4 leads 3 in V2 = {3, 4}. 2 has read that V2 is committed while it was synchronised, and after that a
/// proposal of V3, which no other server has. 0 lags, 1 has acknowledged V2.
pub fn committed_between_two_others(world: &mut World) {
    established(world, 4);
    leave(world, &[0, 2]);
    tick(world, &[0, 2], 1);
    world.is_elected(2, 4);
    // 2 has read NEWLEADER, and its disk has not written the tree.
    let id = connection_of(world, 2);
    while world.deliver(id, true) || world.deliver(id, false) {
        (0..20).for_each(|_| world.write_log(2));
    }
    reconfigure_with(world, 4, &[3, 4], &[1, 3]);
    exchange_all(world, &[3], &[3, 4]);
    reconfigure(world, 4, &[0, 1, 2, 3, 4]);
    while world.deliver(id, false) {}
    leave(world, &[1, 2, 3]);
    world.crash(4, 0, 0);
    world.restart(4);
    write(world, &[2]);
    tick(world, &[0, 1, 2, 3, 4], 1);
    [4, 3].into_iter().for_each(|at| is_elected(world, at, 4));
    exchange_all(world, &[3], &[3, 4]);
    go_on(world, 4, 3);
}

/// Five voters, with trees: 4 leads 3 in V2 = {2, 3, 4}, which 2 has logged before it reconnected and got a tree. 0 and 1 lag.
pub fn kept_after_a_tree(world: &mut World) {
    established(world, 4);
    leave(world, &[0]);
    reconfigure(world, 4, &[2, 3, 4]);
    write(world, &[4]);
    deliver_next(world, 2);
    write(world, &[2]);
    leave(world, &[2]);
    tick(world, &[0, 2], 1);
    world.is_elected(2, 4);
    exchange_all(world, &[2], &[2, 4]);
    deliver_next(world, 3);
    write(world, &[3]);
    send_up(world, 3);
    leave(world, &[1, 2]);
    assert_eq!(world.servers[4].peer.as_ref().unwrap().core.view.voters().count(), 3);
    exchange_all(world, &[3], &[3, 4]);
    go_on(world, 4, 3);
    tick(world, &[0, 1, 2], 1);
}

/// Three voters and an observer, 3: 1 leads 0 in epoch 2, and 2 is down. 3 knows from NEWLEADER that it is to vote, and has promised
/// epoch 3 to 2, in two attempts that no voter heard of.
pub fn observer_that_is_to_vote_has_promised_more(world: &mut World) {
    established(world, 2);
    leave(world, &[3]);
    tick(world, &[3], 60);
    reconfigure(world, 2, &[0, 1, 2, 3]);
    write(world, &[2]);
    is_elected(world, 3, 2);
    tick(world, &[3], 20);
    exchange(world, &[3], &[3]);
    let core = &world.servers[3].peer.as_ref().unwrap().core;
    assert!(core.next.as_ref().is_some_and(|next| next.is_voter(ServerId(3))));
    for _ in 0..2 {
        leave(world, &[0, 1, 3]);
        world.step(2, Input::StandDown { why: "it is cut off".to_owned() });
        tick(world, &[0, 1, 2, 3], 60);
        is_elected_by(world, 2, &[1, 3]);
        tick(world, &[3], 20);
        send_up(world, 1);
        send_up(world, 3);
        write(world, &[2]);
        deliver_next(world, 3);
        write(world, &[3]);
    }
    world.crash(2, 0, 0);
    leave(world, &[1, 3]);
    tick(world, &[0, 1, 3], 60);
    is_elected_by(world, 1, &[0]);
    exchange_all(world, &[0], &[0, 1]);
    assert_eq!(world.servers[1].leads, Some(Epoch(2)));
    assert_eq!(world.servers[3].disk.accepted, Epoch(3));
}
