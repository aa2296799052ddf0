//! A snapshot that an operator restores, or asks for: what happens in which order, and what is answered.

use crate::{Server, txn};
use oxkeeper::member::{Action, Answer, Input, QuorumPeer};
use oxkeeper::model::{Epoch, ServerId, Zxid, op};
use oxkeeper::replica::{Mode, RestorePlan, RestoreQuestion, RestoreRefusal};
use oxkeeper::store::worker::Event;
use oxkeeper::store::{Command, Draft};
use oxkeeper::tree::{Options, Tree};
use oxkeeper::zab::{Core, Packet, Role};
use std::sync::Arc;
use support::builders::learner_info;
use support::learner_streams::LearnerStreams;
use support::member::MemberOnDisk;
use support::phases::{NoSasl, Phase};
use support::trees::{tree_at, tree_with_session};

fn answers(actions: Vec<Action>) -> Vec<(u64, Answer)> {
    let answer = |action| match action {
        Action::Answer { ask, answer } => Some((ask, answer)),
        _ => None,
    };
    actions.into_iter().filter_map(answer).collect()
}

/// The answer to the question how a snapshot of this zxid can be restored.
fn plan(server: &mut MemberOnDisk, zxid: i64) -> Result<RestorePlan, RestoreRefusal> {
    let tree = tree_at(Zxid::from_wire(zxid).unwrap(), 1);
    plan_of(server, RestoreQuestion::of(&tree))
}

fn plan_of(
    server: &mut MemberOnDisk,
    question: RestoreQuestion,
) -> Result<RestorePlan, RestoreRefusal> {
    let answered = answers(server.step(Input::PlanRestore { ask: 1, question }));
    match <[_; 1]>::try_from(answered) {
        Ok([(1, Answer::Plan(plan))]) => plan,
        other => panic!("{other:?}"),
    }
}

/// The tree that is restored, and its snapshot.
fn drafted(server: &MemberOnDisk, plan: &RestorePlan) -> (Box<Tree>, Draft) {
    drafted_of(Tree::new(Options::default()), server, plan)
}

fn drafted_of(mut tree: Tree, server: &MemberOnDisk, plan: &RestorePlan) -> (Box<Tree>, Draft) {
    plan.prepare(&mut tree);
    let frozen = tree.freeze().unwrap();
    let draft = server.place.snapshot(frozen).whole(&tree);
    tree.thaw(frozen);
    (Box::new(tree), draft)
}

fn restoring(server: &MemberOnDisk, plan: RestorePlan) -> Input {
    let (tree, draft) = drafted(server, &plan);
    Input::Restore { ask: 2, plan, tree, draft }
}

impl Server {
    fn plan(&mut self, zxid: i64) -> Result<RestorePlan, RestoreRefusal> {
        plan(self, zxid)
    }

    fn restore(&mut self, plan: RestorePlan) -> Vec<Action> {
        let asked = restoring(self, plan);
        self.step(asked)
    }

    fn core(&self) -> &Core {
        &self.member.replica.peer().core
    }

    /// The log thread does all that was asked of it; returns the last actions.
    fn run_all(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        while !self.asked.log.is_empty() {
            for (_, event) in self.run_log(1) {
                assert!(!matches!(event, Event::Failed(_)), "{event:?}");
                actions.extend(self.step(Input::Log(event)));
            }
        }
        actions
    }
}

fn is_place(action: &Action) -> bool {
    matches!(action, Action::Log(Command::PlaceRestored { .. }))
}

// rows: D-70
#[test]
fn standalone_server_serves_what_is_restored_once_its_snapshot_has_its_name() {
    let mut server = Server::standalone();
    let plan = server.plan(0x7_0000_0005).unwrap();
    assert!(Zxid::from_wire(0x7_0000_0005).unwrap() < plan.zxid, "its znodes come before it");
    let actions = server.restore(plan.clone());
    assert!(actions.iter().any(is_place) && answers(actions).is_empty());
    assert_eq!(server.member.replica.mode(), Mode::Resting);
    assert_eq!(server.plan(5), Err(RestoreRefusal::Busy));
    // Time passes, and a snapshot is asked for.
    server.pass(50);
    let asked = answers(server.step(Input::TakeSnapshot { ask: 9 }));
    assert!(matches!(asked[..], [(9, Answer::Snapshot(None))]), "{asked:?}");
    let restored = answers(server.run_all());
    assert!(matches!(restored[..], [(2, Answer::Restore(Ok(())))]), "{restored:?}");
    assert_eq!(server.member.replica.mode(), Mode::Standalone);
    assert_eq!(server.shared.state.tree.read().last_zxid(), plan.zxid);
    assert_eq!(server.core().history.last(), plan.zxid);
    // It can be done again; a plan of before does not fit.
    let late = answers(server.restore(plan));
    assert!(matches!(late[..], [(2, Answer::Restore(Err(RestoreRefusal::Changed)))]), "{late:?}");
    assert!(server.plan(5).is_ok());
}

/// The server stands still while the restored snapshot gets its name, and counts the ticks of that time afterwards.
#[test]
fn restored_session_has_its_whole_timeout_from_the_end_of_the_restore() {
    let mut server = Server::standalone();
    let plan = server.plan(5).unwrap();
    let tree = *tree_with_session(plan.zxid, 0x77, 4000);
    let (tree, draft) = drafted_of(tree, &server, &plan);
    server.step(Input::Restore { ask: 2, plan, tree, draft });
    server.now.us += 10_000_000;
    let restored = answers(server.run_all());
    assert!(matches!(restored[..], [(2, Answer::Restore(Ok(())))]), "{restored:?}");
    let lives = |server: &Server| server.shared.state.tree.read().sessions().contains_key(&0x77);
    server.pass(3000);
    server.run_all();
    assert!(lives(&server));
    server.pass(10_000);
    server.run_all();
    assert!(!lives(&server));
}

// rows: A-28
#[test]
fn snapshot_that_is_asked_for_is_answered_when_it_has_its_name() {
    let mut server = Server::standalone();
    let first = server.step(Input::TakeSnapshot { ask: 1 });
    assert!(matches!(first[..], [Action::WriteSnapshot(_)]), "{first:?}");
    // The next two wait, and get a snapshot that begins after them.
    assert!(server.step(Input::TakeSnapshot { ask: 2 }).is_empty());
    assert!(server.step(Input::TakeSnapshot { ask: 3 }).is_empty());
    let job = server.asked.snapshots.pop_front().unwrap();
    let written = server.write_snapshot(job);
    let next = server.step(written);
    assert!(answers(next).is_empty());
    let answered = answers(server.run_all());
    let zxid = job.zxid();
    assert!(
        matches!(answered[..], [(1, Answer::Snapshot(Some((at, bytes))))] if at == zxid && bytes > 0),
        "{answered:?}"
    );
    let job = server.asked.snapshots.pop_front().unwrap();
    let lost = answers(server.step(Input::SnapshotWritten { job, draft: None }));
    assert!(matches!(lost[..], [(2, Answer::Snapshot(None)), (3, Answer::Snapshot(None))]));
}

// rows: D-70
#[test]
fn member_that_follows_restores_nothing() {
    let mut server = Server::following();
    assert_eq!(server.plan(5), Err(RestoreRefusal::NotLeading));
    // A script may restore the same snapshot at the leader and then here.
    let served = RestoreQuestion::of(&server.shared.state.tree.read());
    assert_eq!(plan_of(&mut server, served), Err(RestoreRefusal::Served));
    let mut alone = Server::standalone();
    let plan = alone.plan(5).unwrap();
    let refused = answers(server.restore(plan));
    assert!(matches!(refused[..], [(2, Answer::Restore(Err(RestoreRefusal::Changed)))]));
    assert_eq!(server.member.replica.mode(), Mode::Following);
    // Its leader's history goes on.
    server.hear(1, vec![txn(1, op::SET_DATA, "/zookeeper", b"")]);
    server.hear(1, vec![Packet::Commit { zxid: Zxid::new(Epoch(1), 1) }]);
    assert_eq!(server.shared.state.tree.read().last_zxid(), Zxid::new(Epoch(1), 1));
}

/// The answers that the operator gets to a restore at a leader whose followers have all left it.
///
/// * `loses`: another server leads first, and its tree replaces the restored one; it ends before UPTODATE.
fn answers_after_the_election(loses: bool) -> Vec<(u64, Answer)> {
    let mut leader = Phase::LeaderBroadcasts.enter(0, Arc::new(NoSasl), 1 << 20);
    let plan = plan(&mut leader.member.host, 5).unwrap();
    let stamp = plan.zxid;
    let asked = restoring(&leader.member.host, plan);
    leader.member.step(asked);
    leader.report_all();
    assert_eq!(leader.member.core().history.floor(), stamp);
    if loses {
        follow_briefly(&mut leader, stamp);
    }
    lead_again(&mut leader);
    std::mem::take(&mut leader.member.sockets.answers)
}

fn look(server: &mut LearnerStreams) {
    while !matches!(server.member.role(), Role::Looking(Some(_))) {
        server.report_all();
        server.pass(5);
    }
}

/// Server 2 leads, its tree takes the place of all that this server has, and it ends.
fn follow_briefly(server: &mut LearnerStreams, stamp: Zxid) {
    look(server);
    server.member.elect(ServerId(2));
    server.report_all();
    let epoch = server.member.core().accepted.next().unwrap();
    let zxid = Zxid::new(server.member.core().current, 3);
    assert!(zxid < stamp);
    let peer = QuorumPeer::Leader { dial: server.member.sockets.dial };
    server.send(peer, &[Packet::LeaderInfo { epoch }]);
    server.member.step(Input::LeaderTree {
        dial: server.member.sockets.dial,
        zxid,
        tree: tree_at(zxid, 2),
    });
    let view = server.member.core().view.to_string().into();
    server.send(peer, &[Packet::NewLeader { epoch, view }]);
    assert_eq!(server.member.core().history.floor(), zxid, "the tree is replaced");
    server.end(peer);
}

/// This server is elected, and server 2 follows it with the same history.
fn lead_again(server: &mut LearnerStreams) {
    look(server);
    server.member.elect(ServerId(1));
    server.report_all();
    let (accepted, last) = (server.member.core().accepted, server.member.core().history.last());
    let (peer, info) = (server.connect(), learner_info(2));
    server.send(peer, &[Packet::FollowerInfo { accepted, info }]);
    let epoch = server.member.core().accepted;
    server.send(peer, &[Packet::AckEpoch { current: Some(accepted), last: Some(last) }]);
    let ack = Packet::Ack { zxid: Zxid::new(epoch, 0) };
    server.send(peer, &[ack.clone(), ack]);
    assert_eq!(server.member.host.member.replica.mode(), Mode::Leading);
}

// rows: D-70
#[test]
fn operator_gets_an_error_if_a_tree_was_lost_even_if_the_server_leads_again_without_it() {
    let kept = answers_after_the_election(false);
    assert!(matches!(kept[..], [(2, Answer::Restore(Ok(())))]), "{kept:?}");
    let lost = answers_after_the_election(true);
    assert!(matches!(lost[..], [(2, Answer::Restore(Err(RestoreRefusal::Lost)))]), "{lost:?}");
}
