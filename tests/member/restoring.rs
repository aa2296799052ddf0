//! A snapshot that an operator restores, or asks for: what happens in which order, and what is answered.

use crate::{Server, txn};
use oxkeeper::member::{Action, Answer, Input};
use oxkeeper::model::{Epoch, Zxid, op};
use oxkeeper::replica::{Mode, RestorePlan, RestoreRefusal};
use oxkeeper::store::worker::Event;
use oxkeeper::store::{Command, Draft};
use oxkeeper::tree::{Options, Tree};
use oxkeeper::zab::{Core, Packet};

fn answers(actions: Vec<Action>) -> Vec<(u64, Answer)> {
    let answer = |action| match action {
        Action::Answer { ask, answer } => Some((ask, answer)),
        _ => None,
    };
    actions.into_iter().filter_map(answer).collect()
}

impl Server {
    fn plan(&mut self, zxid: i64) -> Result<RestorePlan, RestoreRefusal> {
        let zxid = Zxid::from_wire(zxid).unwrap();
        let answered = answers(self.step(Input::PlanRestore { ask: 1, zxid }));
        match <[_; 1]>::try_from(answered) {
            Ok([(1, Answer::Plan(plan))]) => plan,
            other => panic!("{other:?}"),
        }
    }

    /// The tree that is restored, and its snapshot.
    fn drafted(&self, plan: &RestorePlan) -> (Box<Tree>, Draft) {
        let mut tree = Tree::new(Options::default());
        tree.restamp(plan.zxid);
        let frozen = tree.freeze().unwrap();
        let draft = self.place.snapshot(frozen).whole(&tree);
        tree.thaw(frozen);
        (Box::new(tree), draft)
    }

    fn restore(&mut self, plan: RestorePlan) -> Vec<Action> {
        let (tree, draft) = self.drafted(&plan);
        self.step(Input::Restore { ask: 2, plan, tree, draft })
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
    let told = answers(server.run_all());
    let zxid = job.zxid();
    assert!(
        matches!(told[..], [(1, Answer::Snapshot(Some((at, bytes))))] if at == zxid && bytes > 0),
        "{told:?}"
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
