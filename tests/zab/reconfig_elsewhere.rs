//! Schedules that broke reconfigurations of other systems. The names of the tests name the system and its issue.

use super::reconfig_holes::{begin, counts, leader, part, reconfigure, run, show};
use super::world::World;
use oxkeeper::model::{Epoch, Epochs, ServerId, Zxid};
use oxkeeper::zab::{Input, Packet, Peer, Role, Settings};
use support::peer::PeerOnDisk;
use support::views::{VIEW, view_in, view_of};

fn voters_in_force(world: &World, at: usize) -> usize {
    world.servers[at].peer.as_ref().unwrap().core.view.voters().count()
}

// Camunda: a member that restarts uses the last committed configuration, and forgets the one at the end of its log.
#[test]
fn camunda_57386_configuration_that_the_log_ends_with_counts_after_a_restart() {
    let mut world = begin(false);
    reconfigure(&mut world, 4, &[2, 3, 4]);
    // 2 logs it and acknowledges it; it gets no COMMIT.
    run(&mut world, 2, &[], &|from, to| (from, to) == (4, 2));
    run(&mut world, 2, &[], &|from, to| (from, to) == (2, 4));
    world.cut_power(2);
    world.restart(2);
    assert!(counts(&world, 2, &[2, 3, 4]), "its log ends with it");
    assert_eq!(voters_in_force(&world, 2), 5, "nothing says that it is committed");
    // 3 acknowledges: {2, 3, 4} of both configurations have it. {3, 4} go on.
    run(&mut world, 4, &[], &|from, to| from >= 3 && to >= 3);
    world.propose(4);
    run(&mut world, 4, &[], &|from, to| from >= 3 && to >= 3);
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
    let mut world = begin(false);
    world.restart(0);
    world.calm();
    // Only server 4, the one voter of the new configuration, has it.
    reconfigure(&mut world, 4, &[4]);
    run(&mut world, 2, &[], &|_, _| false);
    assert_eq!(voters_in_force(&world, 4), 5, "its own ACK is no quorum of the five");
    world.cut_power(4);
    world.restart(4);
    // It is elected for its log, and then it is cut off from all others.
    let leads =
        |world: &World| matches!(world.servers[4].peer.as_ref().unwrap().role(), Role::Leading(_));
    for _ in 0..600 {
        if !leads(&world) {
            run(&mut world, 1, &[], &|_, _| true);
        }
    }
    assert!(leads(&world), "its log is the longest");
    assert!(counts(&world, 4, &[4]), "its log ends with it");
    run(&mut world, 900, &[], &|from, to| from != 4 && to != 4);
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
