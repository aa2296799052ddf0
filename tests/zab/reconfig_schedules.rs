//! Schedules of whole ensembles after which a configuration that is in force might not count at a server that has acknowledged it.

use super::conditions::Conditions;
use super::schedules::{
    epoch_opened_without_a_named_configuration, exchange, exchange_all,
    interrupted_after_the_first_transaction, is_elected, tell_configuration, tick,
    two_configurations, zxid,
};
use super::world::World;
use oxkeeper::model::{Epoch, Epochs, ServerId, View};
use oxkeeper::zab::{Input, Packet, Peer, Settings};
use support::peer::PeerOnDisk;
use support::views::{VIEW, view_in, view_of};

// The test chooses the leader of each election, as the explorer does.
#[test]
fn epoch_is_opened_without_a_configuration_that_only_newleader_named() {
    let mut world = World::of(Conditions { changes: true, ..Conditions::mild(7, 1) });
    epoch_opened_without_a_named_configuration(&mut world);
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

// If it claimed epoch 3, it would lead those that have acknowledged V2, who would forget it, while 6 leads by it.
#[test]
fn server_stands_for_no_epoch_of_which_it_has_only_transactions() {
    let mut world = World::of(Conditions { changes: true, ..Conditions::mild(7, 1) });
    interrupted_after_the_first_transaction(&mut world);
    assert_eq!(world.servers[0].peer.as_ref().unwrap().core.history.last(), zxid(3, 1));
    // Epoch 4: 0 is elected by {1, 2, 4}.
    [0, 4, 1, 2].into_iter().for_each(|at| is_elected(&mut world, at, 0));
    exchange_all(&mut world, &[1, 2, 4], &[0, 1, 2, 4]);
    assert_eq!(world.servers[0].leads, None);
    // 6 goes on by V2, of which it tells 5.
    world.crash(6, 0, 0);
    world.restart(6);
    tick(&mut world, &[6], 1);
    tell_configuration(&mut world, 6, 5);
    [6, 5].into_iter().for_each(|at| is_elected(&mut world, at, 6));
    exchange_all(&mut world, &[5], &[5, 6]);
    assert_eq!(world.servers[6].leads, Some(Epoch(4)));
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

// As above, in a whole ensemble: if a quorum forgot the configuration, two leaders of one epoch would serve.
#[test]
fn configuration_before_the_one_in_a_tree_counts_at_a_quorum() {
    two_configurations_decide(false);
}

#[test]
fn configuration_before_the_one_in_a_tree_counts_at_a_quorum_after_a_power_cut() {
    two_configurations_decide(true);
}

/// * `restarts`: whether the servers that have acknowledged both configurations restart.
fn two_configurations_decide(restarts: bool) {
    let conditions = Conditions { changes: true, sends_trees: true, ..Conditions::mild(9, 1) };
    let mut world = World::of(conditions);
    two_configurations(&mut world, restarts);
    // 4 must not open the same epoch with quorums of V1 and V3 alone.
    [4, 0, 1, 3, 5].into_iter().for_each(|at| is_elected(&mut world, at, 4));
    exchange_all(&mut world, &[0, 1, 3, 5], &[0, 1, 3, 4, 5]);
    world.propose(4);
    exchange_all(&mut world, &[0, 1, 3, 5], &[0, 1, 3, 4, 5]);
    assert_eq!(world.servers[4].leads, None, "two leaders");
}

// A tree that replaces the history names its last configuration only, and so does a snapshot after a restart.
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
