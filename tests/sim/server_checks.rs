//! The checks of agreement, disks and trees find the faults that are planted into observations.

use super::planted::{entry, fails, first_view, history, holds, new_history, zxid};
use oxkeeper::model::{Epoch, ServerId, View, Zxid, op};
use oxkeeper::sim::check::quorums::Quorums;
use oxkeeper::sim::check::restores::restores;
use oxkeeper::sim::check::servers::{
    Acknowledgements, Agreement, Configurations, Durability, InitialHistories, closed_connections,
    convergence, digests, memory, one_leader, primary_order, promises, snapshots, states,
};
use oxkeeper::sim::check::{Durable, Seen, Standing};
use oxkeeper::sim::history::History;
use oxkeeper::sim::model::Node;
use oxkeeper::sim::restored_tree::RestoredTree;
use oxkeeper::tree::txn::{Entry, Txn, write};
use oxkeeper::tree::{Options, Tree};
use oxkeeper::zab::{LearnerInfo, Packet};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn second_leader_of_an_epoch_is_found() {
    let mut history = history();
    let last = zxid(1, 4);
    let disks = &[last; 3];
    let leads = |server, epoch| Seen::Leads { server, epoch: Epoch(epoch), last, disks };
    holds(&mut one_leader, &leads(1, 2), &history);
    fails(&mut one_leader, &leads(2, 1), &history, "which 0 led");
    history.leaders.insert(Epoch(2), (1, last));
    fails(&mut one_leader, &leads(1, 2), &history, "which 1 led");
}

#[test]
fn gaps_foreign_proposals_and_leaders_without_the_history_are_found() {
    let (mut check, mut history) = (primary_order, history());
    let disks = &[];
    let leads = |epoch, last| Seen::Leads { server: 0, epoch: Epoch(epoch), last, disks };
    let logs = |server, zxid| Seen::Logs { server, zxid, entry: b"" };
    holds(&mut check, &leads(1, Zxid::ZERO), &new_history());
    holds(&mut check, &logs(1, zxid(1, 4)), &history);
    fails(&mut check, &logs(0, zxid(1, 6)), &history, "after 0x100000004");
    fails(&mut check, &logs(1, zxid(1, 7)), &history, "never proposed");
    fails(&mut check, &logs(1, zxid(2, 1)), &history, "has no leader");
    fails(&mut check, &leads(2, zxid(1, 3)), &history, "lacks 0x100000004");
    fails(&mut check, &leads(3, zxid(3, 1)), &history, "and has");
    holds(&mut check, &leads(4, zxid(1, 4)), &history);
    history.leaders.insert(Epoch(4), (0, zxid(1, 4)));
    holds(&mut check, &leads(3, zxid(1, 3)), &history);
}

#[test]
fn diverging_histories_and_steps_back_are_found() {
    let (mut check, history) = (Agreement::default(), history());
    let serves = |server, last, may_go_back| Seen::Applied {
        server,
        last,
        may_go_back,
        digest: 0,
        commits: None,
    };
    let applied = |server, last| serves(server, last, false);
    holds(&mut check, &applied(0, zxid(1, 3)), &history);
    holds(&mut check, &applied(1, Zxid::ZERO), &history);
    fails(&mut check, &applied(0, zxid(1, 2)), &history, "had served 0x100000003");
    holds(&mut check, &serves(1, zxid(1, 3), false), &history);
    holds(&mut check, &serves(1, zxid(1, 2), true), &history);
    fails(&mut check, &serves(1, zxid(1, 5), true), &history, "not committed");
    fails(&mut check, &applied(1, zxid(1, 5)), &history, "not committed");
    fails(&mut check, &applied(2, zxid(2, 1)), &history, "not committed");
    let logs = |entry| Seen::Logs { server: 2, zxid: zxid(1, 2), entry };
    let right = history.proposal(zxid(1, 2)).unwrap().clone();
    holds(&mut check, &logs(&right), &history);
    fails(&mut check, &logs(b"other"), &history, "logs another transaction");
}

#[test]
fn tree_with_another_digest_is_found() {
    let history = history();
    let last = zxid(1, 3);
    let applied =
        |digest| Seen::Applied { server: 1, last, may_go_back: false, digest, commits: None };
    holds(&mut digests, &applied(last.to_wire() as u64), &history);
    fails(&mut digests, &applied(5), &history, "the tree of 1 at");
    let found = Durable { last, ..Durable::default() };
    let before = found;
    fails(&mut digests, &Seen::Started { server: 2, found, before, digest: 1 }, &history, "of 2");
}

#[test]
fn commits_without_a_quorum_and_lost_disk_contents_are_found() {
    let history = history();
    let (last, may_go_back) = (zxid(1, 2), false);
    let applied = |commits| Seen::Applied { server: 0, last, may_go_back, digest: 0, commits };
    let mut durability = Durability::default();
    let (none, earlier) = (Zxid::ZERO, zxid(1, 1));
    let (one, two) = ([last, earlier, none], [none, last, zxid(1, 4)]);
    fails(&mut Durability::default(), &applied(Some(&one)), &history, "[0] have");
    holds(&mut durability, &applied(Some(&two)), &history);
    holds(&mut durability, &applied(None), &history);
    let before = Durable { last: zxid(1, 3), accepted: Epoch(2), current: Epoch(1) };
    let started = |found| Seen::Started { server: 1, found, before, digest: 0 };
    holds(&mut durability, &started(before), &history);
    let short = Durable { last: zxid(1, 2), ..before };
    fails(&mut durability, &started(short), &history, "had Durable");
    let forgot = Durable { accepted: Epoch(1), ..before };
    fails(&mut durability, &started(forgot), &history, "accepted: Epoch(1)");
}

/// A history whose fifth transaction, a reconfiguration, leaves server 0 as the only member.
fn reconfigured() -> (History, View) {
    let (mut history, view) = with_proposed_view();
    history.commit(&[zxid(1, 5)]).unwrap();
    (history, view)
}

/// A history whose leader has proposed server 0 as the only member.
fn with_proposed_view() -> (History, View) {
    let mut history = history();
    let first = first_view();
    let members = first.members.into_iter().filter(|(id, _)| id.0 == 0).collect();
    let view = View { version: zxid(1, 5).to_wire(), members, ..first };
    let bytes = entry(zxid(1, 5), (7, 4), op::RECONFIG, |to| {
        write::set_data(to, "/zookeeper/config", Some(view.to_string().as_bytes()), 0);
    });
    history.propose(zxid(1, 5), bytes.into());
    (history, view)
}

// The zxid of such a configuration is on no disk, as no log has it.
#[test]
fn configuration_that_only_newleader_named_counts_for_its_newly_established_leader() {
    let (mut history, view) = with_proposed_view();
    history.leaders.insert(Epoch(3), (1, zxid(1, 4)));
    history.see_in_force(0, &view);
    assert!(!history.has_view(&view), "another server leads");
    history.see_in_force(1, &view);
    assert!(history.has_view(&view));
    assert_eq!(history.reconfigurations(Zxid::ZERO, zxid(3, 9)).count(), 0);
    let (mut history, view) = with_proposed_view();
    history.leaders.insert(Epoch(2), (1, zxid(1, 4)));
    history.leaders.insert(Epoch(3), (1, zxid(1, 4)));
    history.propose(zxid(2, 1), entry(zxid(2, 1), (7, 9), op::DELETE, |_| {}).into());
    history.commit(&[zxid(2, 1)]).unwrap();
    history.see_in_force(1, &view);
    assert!(!history.has_view(&view), "an epoch before was established without it");
}

#[test]
fn reconfigurations_without_quorums_of_both_configurations_are_found() {
    let (history, _) = reconfigured();
    let (last, may_go_back) = (zxid(1, 5), false);
    let check = |disks: &[Zxid], about| {
        let commits = Some(disks);
        let seen = Seen::Applied { server: 0, last, may_go_back, digest: 0, commits };
        match about {
            None => holds(&mut Durability::default(), &seen, &history),
            Some(about) => fails(&mut Durability::default(), &seen, &history, about),
        }
    };
    let before = zxid(1, 4);
    check(&[last, last, before], None);
    check(&[last, before, before], Some("voters [0, 1, 2]"));
    check(&[before, last, last], Some("voters [0]"));
}

#[test]
fn configurations_that_were_not_committed_and_steps_back_are_found() {
    let (history, view) = reconfigured();
    let first = first_view();
    let led = View { version: zxid(1, 0).to_wire(), ..first.clone() };
    let mut check = Configurations::default();
    holds(&mut check, &Seen::InForce { server: 0, view: &first }, &history);
    holds(&mut check, &Seen::InForce { server: 0, view: &led }, &history);
    holds(&mut check, &Seen::InForce { server: 0, view: &view }, &history);
    fails(&mut check, &Seen::InForce { server: 0, view: &led }, &history, "goes back");
    holds(&mut check, &Seen::ForgetsView { server: 0 }, &history);
    holds(&mut check, &Seen::InForce { server: 0, view: &led }, &history);
    let other = View { version: zxid(1, 4).to_wire(), ..first };
    fails(&mut check, &Seen::InForce { server: 1, view: &other }, &history, "not committed");
}

#[test]
fn quorums_without_a_voter_in_common_are_found() {
    let (mut check, history) = (Quorums::default(), history());
    let (last, disks) = (zxid(1, 4), &[zxid(1, 4); 3]);
    let leads = |server, epoch| Seen::Leads { server, epoch: Epoch(epoch), last, disks };
    let durable = Durable { last, ..Durable::default() };
    let acknowledges = |check: &mut Quorums, server, zxid| {
        let packet = &Packet::Ack { zxid };
        holds(check, &Seen::ToLeader { server, packet, durable, epoch: Epoch(0) }, &history);
    };
    acknowledges(&mut check, 1, zxid(2, 0));
    holds(&mut check, &leads(0, 2), &history);
    acknowledges(&mut check, 1, zxid(3, 0));
    holds(&mut check, &leads(2, 3), &history);
    fails(&mut check, &leads(2, 4), &history, "decide epoch 4");
}

#[test]
fn packets_sent_before_the_disk_is_written_are_found() {
    let history = history();
    let durable = Durable { last: zxid(1, 3), accepted: Epoch(2), current: Epoch(1) };
    let up = |packet: &Packet, epoch: u32, check: &mut dyn FnMut(&Seen<'_>)| {
        check(&Seen::ToLeader { server: 1, packet, durable, epoch: Epoch(epoch) });
    };
    let ack = |zxid: Zxid| Packet::Ack { zxid };
    up(&ack(zxid(1, 3)), 2, &mut |seen| holds(&mut promises, seen, &history));
    up(&ack(zxid(1, 0)), 2, &mut |seen| holds(&mut promises, seen, &history));
    up(&ack(zxid(1, 4)), 2, &mut |seen| fails(&mut promises, seen, &history, "its disk has"));
    up(&ack(zxid(2, 0)), 2, &mut |seen| fails(&mut promises, seen, &history, "its epoch"));
    let promise = Packet::AckEpoch { current: None, last: None };
    up(&promise, 2, &mut |seen| holds(&mut promises, seen, &history));
    up(&promise, 3, &mut |seen| fails(&mut promises, seen, &history, "promises epoch 3"));
    let down = |packet| Seen::ToLearner { server: 0, packet, durable };
    let info = Packet::LeaderInfo { epoch: Epoch(3) };
    fails(&mut promises, &down(&info), &history, "LEADERINFO of epoch 3");
    let new = Packet::NewLeader { epoch: Epoch(2), view: bytes::Bytes::new() };
    fails(&mut promises, &down(&new), &history, "NEWLEADER");
}

#[test]
fn acknowledgement_before_that_of_newleader_is_found() {
    let (history, mut check) = (history(), Acknowledgements::default());
    let up = |packet: &Packet, check: &mut dyn FnMut(&Seen<'_>)| {
        let (durable, epoch) = (Durable::default(), Epoch(2));
        check(&Seen::ToLeader { server: 1, packet, durable, epoch });
    };
    let ack = |counter| Packet::Ack { zxid: zxid(2, counter) };
    up(&ack(0), &mut |seen| holds(&mut check, seen, &history));
    up(&ack(1), &mut |seen| holds(&mut check, seen, &history));
    let info = LearnerInfo { id: ServerId(1), protocol_version: 0x1_0000, view_version: 0 };
    let hello = Packet::FollowerInfo { accepted: Epoch(2), info };
    up(&hello, &mut |seen| holds(&mut check, seen, &history));
    up(&ack(2), &mut |seen| fails(&mut check, seen, &history, "before NEWLEADER"));
}

#[test]
fn acknowledgement_of_another_history_is_found() {
    let mut history = history();
    history.leaders.insert(Epoch(2), (1, zxid(1, 3)));
    fn up(packet: &Packet, last: Zxid) -> Seen<'_> {
        let durable = Durable { last, accepted: Epoch(2), current: Epoch(2) };
        Seen::ToLeader { server: 1, packet, durable, epoch: Epoch(2) }
    }
    let ack = |epoch, counter| Packet::Ack { zxid: zxid(epoch, counter) };
    holds(&mut promises, &up(&ack(1, 3), zxid(2, 1)), &history);
    // The transaction was truncated before epoch 2.
    fails(&mut promises, &up(&ack(1, 4), zxid(2, 1)), &history, "its disk has");
    let mut check = InitialHistories::default();
    holds(&mut check, &up(&ack(2, 0), zxid(1, 4)), &history);
    fails(&mut check, &up(&ack(2, 0), zxid(1, 2)), &history, "with 0x100000002");
    let new = |last| Seen::Leads { server: 0, epoch: Epoch(3), last, disks: &[] };
    let mut check = InitialHistories::default();
    holds(&mut check, &up(&ack(3, 0), zxid(1, 4)), &history);
    fails(&mut check, &new(zxid(2, 1)), &history, "epoch 3 and 0x200000001 with 0x100000004");
    holds(&mut check, &new(zxid(2, 1)), &history);
}

#[test]
fn snapshots_and_transactions_with_other_digests_are_found() {
    let history = history();
    let (server, at) = (1, zxid(1, 3));
    let digest = history.digest_at(at).expect("the transaction is committed");
    holds(&mut digests, &Seen::Frozen { server, zxid: at, digest }, &history);
    holds(&mut digests, &Seen::Frozen { server, zxid: zxid(1, 9), digest }, &history);
    fails(
        &mut digests,
        &Seen::Frozen { server, zxid: at, digest: !digest },
        &history,
        "its leader's",
    );
    fails(&mut digests, &Seen::Mismatch { server }, &history, "another tree");
}

#[test]
fn impossible_states_are_found() {
    let history = history();
    let durable = Durable { last: zxid(2, 3), accepted: Epoch(2), current: Epoch(2) };
    let sound = Standing {
        accepted: Epoch(2),
        current: Epoch(2),
        committed: zxid(2, 2),
        last: zxid(2, 4),
        flushed: zxid(2, 3),
    };
    let seen = |standing| Seen::Stands { server: 1, standing, durable };
    holds(&mut states, &seen(sound), &history);
    for (standing, about) in [
        (Standing { accepted: Epoch(3), ..sound }, "not saved"),
        (Standing { flushed: zxid(2, 4), ..sound }, "not flushed"),
        (Standing { accepted: Epoch(1), ..sound }, "never promised"),
        (Standing { current: Epoch(1), ..sound }, "after its epoch"),
        (Standing { committed: zxid(2, 5), ..sound }, "does not have"),
    ] {
        fails(&mut states, &seen(standing), &history, about);
    }
}

#[test]
fn connection_kept_with_more_unsent_than_its_limit_is_found() {
    let queued = |unsent| Seen::Queued { server: 1, unsent, limit: 100, batch: 20 };
    holds(&mut memory, &queued(120), &history());
    fails(&mut memory, &queued(121), &history(), "121 bytes unsent, of 100");
}

#[test]
fn actions_because_of_a_closed_connection_are_found() {
    let from_closed = |actions| Seen::FromClosed { server: 1, actions };
    holds(&mut closed_connections, &from_closed(0), &history());
    fails(&mut closed_connections, &from_closed(2), &history(), "1 acts 2 times");
}

#[test]
fn snapshot_of_truncated_transactions_is_found() {
    let mut history = history();
    history.leaders.insert(Epoch(2), (1, zxid(1, 3)));
    let named = |last, tree| {
        let durable = Durable { last, ..Durable::default() };
        Seen::Named { server: 1, zxid: zxid(1, 4), tree, durable }
    };
    let own = Zxid::ZERO;
    holds(&mut snapshots, &named(zxid(1, 4), own), &history);
    fails(&mut snapshots, &named(zxid(1, 3), own), &history, "its history ends with 0x100000003");
    fails(&mut snapshots, &named(zxid(2, 1), own), &history, "its history ends with 0x200000001");
    holds(&mut snapshots, &named(zxid(2, 1), zxid(2, 1)), &history);
}

#[test]
fn restores_without_a_leader_a_zxid_or_a_quorum_are_found() {
    let (mut check, mut history) = (restores, history());
    let tree = RestoredTree {
        before: zxid(1, 4),
        digest: 5,
        znodes: BTreeMap::new(),
        sessions: BTreeMap::from([(9, 1000)]),
    };
    let begins = |server, at| Seen::Restores { server, zxid: zxid(1, at), tree: &tree };
    holds(&mut check, &begins(0, 9), &history);
    fails(&mut check, &begins(1, 9), &history, "server 0 leads that epoch");
    fails(&mut check, &begins(0, 4), &history, "0x100000004 was proposed");
    history.restore(zxid(1, 9), tree.clone());
    let done = Seen::RestoreEnded { server: 0, zxid: zxid(1, 9), is_done: true };
    fails(&mut check, &done, &history, "not committed");
    let zxids = history.between(zxid(1, 4), zxid(1, 9)).expect("one epoch");
    assert_eq!(zxids, [zxid(1, 9)]);
    history.commit(&zxids).expect("well formed");
    holds(&mut check, &done, &history);
    let model = &history.model;
    assert!(model.is_alive(9) && !model.is_alive(7), "sessions are those of the tree");
    let (before, after) = (zxid(1, 4).to_wire(), zxid(1, 9).to_wire());
    assert!(model.at("/a", before).is_some() && model.at("/a", after).is_none());
    let stat = jute::data::Stat { mzxid: zxid(8, 1).to_wire(), ..Default::default() };
    let node = Node { data: None, stat };
    let znodes = BTreeMap::from([("/f".to_owned(), node)]);
    history.restore(zxid(1, 9), RestoredTree { znodes, ..tree.clone() });
    let leads =
        |epoch| Seen::Leads { server: 1, epoch: Epoch(epoch), last: zxid(1, 9), disks: &[] };
    holds(&mut check, &leads(9), &history);
    fails(&mut check, &leads(8), &history, "has znodes of epoch 8");
}

#[test]
fn standalone_restores_with_a_zxid_in_the_tree_and_lost_zxids_given_out_twice_are_distinguished() {
    let (mut check, mut history) = (restores, history());
    history.is_alone = true;
    let stat = jute::data::Stat { mzxid: zxid(8, 1).to_wire(), ..Default::default() };
    let tree = RestoredTree {
        before: zxid(1, 4),
        digest: 5,
        znodes: BTreeMap::from([("/f".to_owned(), Node { data: None, stat })]),
        sessions: BTreeMap::new(),
    };
    let begins = |at| Seen::Restores { server: 0, zxid: zxid(8, at), tree: &tree };
    fails(&mut check, &begins(2), &history, "no server leads that epoch");
    history.restore_alone(0, zxid(8, 2), tree.before);
    fails(&mut check, &begins(1), &history, "has znodes of 0x800000001");
    holds(&mut check, &begins(2), &history);
    history.restore(zxid(8, 2), tree.clone());
    history.propose(zxid(8, 3), b"".as_slice().into());
    let all = [zxid(8, 2), zxid(8, 3)];
    assert_eq!(history.between(zxid(1, 4), zxid(8, 3)), Ok(all.to_vec()));
    assert!(history.holds(zxid(8, 3), zxid(1, 4)));
    // The disk has not kept the last transaction, and then not the restored tree either.
    history.start_alone(0, zxid(8, 2));
    assert!(history.proposal(zxid(8, 3)).is_none() && history.proposal(zxid(8, 2)).is_some());
    history.start_alone(0, zxid(1, 4));
    assert!(history.between(zxid(1, 4), zxid(8, 2)).is_err() && history.restores.is_empty());
    let disks = &[];
    let serves = Seen::Leads { server: 0, epoch: Epoch(8), last: zxid(1, 4), disks };
    holds(&mut check, &serves, &history);
}

#[test]
fn settled_servers_that_lag_or_differ_are_found() {
    let history = history();
    let tree = |count: usize, spoil: bool| {
        let mut tree = Tree::new(Options::default());
        for committed in history.committed().iter().take(count) {
            let entry = Entry::decode(&committed.entry).unwrap();
            tree.apply(&entry.header, &entry.txn, &mut Vec::new());
            if spoil {
                tree.apply(&entry.header, &entry.txn, &mut Vec::new());
            }
        }
        tree
    };
    fn server(tree: &Tree, mismatches: u64) -> Seen<'_> {
        Seen::Settled { server: 2, tree, mismatches }
    }
    let (whole, short, mut check) = (tree(4, false), tree(3, false), convergence);
    holds(&mut check, &server(&whole, 0), &history);
    fails(&mut check, &server(&short, 0), &history, "ends with");
    fails(&mut check, &server(&whole, 1), &history, "1 digests");
    let mut other = tree(4, false);
    let close =
        jute::txn::TxnHeader { client_id: 7, cxid: 0, zxid: 0, time: 0, kind: op::CLOSE_SESSION };
    other.apply(&close, &Txn::CloseSession { paths: None }, &mut Vec::new());
    fails(&mut check, &server(&other, 0), &history, "has sessions");
    fails(&mut check, &Seen::Unsettled { why: "no leader" }, &history, "no leader");
}

#[test]
fn configurations_that_do_not_count_where_they_are_acknowledged_are_found() {
    let (history, view) = with_proposed_view();
    let (last, version) = (zxid(1, 5), view.version);
    let counts = |last, after, counted| Seen::Counts { server: 1, last, after, counted };
    let mut check = Configurations::default();
    let (both, next) = ([0, version], [version + 1]);
    holds(&mut check, &counts(last, 0, &both), &history);
    holds(&mut check, &counts(last, version, &[0]), &history);
    holds(&mut check, &counts(zxid(1, 4), 0, &[0]), &history);
    fails(&mut check, &counts(last, 0, &[0]), &history, "does not count there");
    let acknowledged = &BTreeSet::from([version]);
    let remembers = |counted| Seen::Remembers { server: 1, acknowledged, counted };
    holds(&mut check, &remembers(&both), &history);
    holds(&mut check, &remembers(&next), &history);
    fails(&mut check, &remembers(&[0]), &history, "starts without it");
    let looks = |unmet| Seen::Looks { server: 1, unmet };
    holds(&mut check, &looks(None), &history);
    fails(&mut check, &looks(Some(3)), &history, "does not dial 3");
}

#[test]
fn learner_that_goes_on_after_a_packet_of_another_phase_is_found() {
    let (mut check, history) = (Acknowledgements::default(), history());
    let strayed = |goes_on| Seen::Strayed { server: 1, packet: &Packet::UpToDate, goes_on };
    holds(&mut check, &strayed(false), &history);
    fails(&mut check, &strayed(true), &history, "after UPTODATE");
}

#[test]
fn promises_to_leaders_of_earlier_epochs_or_without_votes_are_found() {
    let answers = |epoch, promises, is_backed| {
        let (server, accepted, votes) = (1, Epoch(5), true);
        Seen::AnswersEpoch { server, epoch: Epoch(epoch), accepted, votes, promises, is_backed }
    };
    let history = history();
    holds(&mut promises, &answers(5, true, true), &history);
    holds(&mut promises, &answers(5, false, false), &history);
    fails(&mut promises, &answers(4, false, true), &history, "has promised epoch 5");
    fails(&mut promises, &answers(5, true, false), &history, "lacks votes of a quorum");
}

#[test]
fn configurations_saved_before_the_log_has_them_or_after_their_ack_are_found() {
    let (history, zxid) = (history(), zxid(1, 4));
    let acknowledges = |is_saved| Seen::AcknowledgesView { server: 2, zxid, is_saved };
    holds(&mut promises, &acknowledges(true), &history);
    fails(&mut promises, &acknowledges(false), &history, "has not saved its members");
    let saves = |is_proposed, durable| Seen::SavesView { server: 2, zxid, is_proposed, durable };
    holds(&mut promises, &saves(true, zxid), &history);
    holds(&mut promises, &saves(false, Zxid::ZERO), &history);
    fails(&mut promises, &saves(true, Zxid::ZERO), &history, "and its log has 0x0");
}
