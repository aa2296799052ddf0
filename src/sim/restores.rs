//! An operator restores a tree by HTTP (AdminServer's `restore`): an older tree of this ensemble, or one of another ensemble.
//!
//! The tree gets a zxid of its own, after all that its leader has proposed. So to the history of a world a restore is one more proposal
//! of that leader, which changes all znodes and all sessions. It may be committed, as the last proposal of its epoch, or lost with its
//! leader. What the operator loses with it is exactly what the restored tree does not have; the model of the tree
//! ([`super::model`]) has it from then on, and the checks go on with it.
//!
//! 1. The operator copies the trees of servers that serve.
//! 2. The operator asks a server how the tree can be restored; only a leader says how.
//! 3. The tree is written to the disk of that server.
//! 4. The server restores it, and answers once it is known which data counts.

use super::boot::{stream_of, write_snapshot};
use super::check::Seen;
use super::network::ProcessId;
use super::plan::{Crash, MS, TreeSource};
use super::process::Server;
use super::restored_tree::{RestoreAsked, RestoredTree, SimRestoring, TreeCopy, tree_from};
use super::world::World;
use crate::member::{Answer, Input};
use crate::replica::{RestorePlan, RestoreQuestion, RestoreRefusal};

/// Most copies of trees that the operator keeps.
const COPIES_MAX: usize = 4;

impl World {
    pub fn copy_tree(&mut self, server: usize) {
        let Some(process) = &self.servers[server].process else { return };
        if !process.is_serving() {
            return;
        }
        let mut tree = process.shared.state.tree.write();
        let Some(frozen) = tree.freeze_for_learner(true) else { return };
        let body = stream_of(&tree, frozen);
        drop(tree.thaw(frozen));
        drop(tree);
        self.trace.count("trees copied");
        self.copies.push(TreeCopy { zxid: frozen.zxid, body });
        if COPIES_MAX < self.copies.len() {
            self.copies.remove(0);
        }
    }

    /// An operator asks a server to restore a tree.
    ///
    /// * `server`: `None` for the leader.
    /// * `crash`: the process ends after this many changes to its disk.
    pub fn ask_to_restore(
        &mut self,
        server: Option<usize>,
        source: TreeSource,
        crash: Option<(u64, Crash)>,
    ) {
        let leads = |server: &Server| server.process.as_ref().is_some_and(|it| it.is_leading);
        let server = server.or_else(|| self.servers.iter().position(leads));
        let Some(at) = server.map(|server| self.process_id(server)) else { return };
        let Some(process) = self.process(at) else { return };
        let is_busy = process.restore_asked.is_some() || process.restoring.is_some();
        if process.member.is_stopping() || is_busy {
            return;
        }
        let options = process.tree_options;
        let Some((tree, paths)) = tree_from(source, &self.copies, options) else { return };
        self.trace.count("restores asked for");
        let question = RestoreQuestion::of(&tree);
        self.process(at).expect("the server is up").restore_asked =
            Some(RestoreAsked { tree, paths, crash });
        self.report(at, Input::PlanRestore { ask: 0, question });
    }

    /// An operator is answered.
    pub fn on_answer(&mut self, at: ProcessId, answer: Answer) {
        match answer {
            Answer::Plan(Ok(plan)) => {
                self.do_within(100, 40 * MS, move |world| world.write_restored(at, &plan));
            }
            Answer::Plan(Err(refusal)) => {
                self.count_refused(refusal);
                if let Some(process) = self.process(at) {
                    process.restore_asked = None;
                }
            }
            Answer::Restore(result) => {
                let ended = self.process(at).and_then(|process| process.restoring.take());
                let Some(SimRestoring { zxid, has_begun, .. }) = ended else { return };
                self.note(at.server, || format!("* restore of {zxid}: {result:?}"));
                match result {
                    Ok(()) => self.trace.count("trees restored"),
                    Err(refusal) => self.count_refused(refusal),
                }
                if has_begun {
                    let (server, is_done) = (at.server, result.is_ok());
                    self.see(&Seen::RestoreEnded { server, zxid, is_done });
                }
            }
            Answer::Snapshot(_) => {}
        }
    }

    fn count_refused(&mut self, refusal: RestoreRefusal) {
        self.trace.count(match refusal {
            RestoreRefusal::NotLeading => "restores refused: no leader",
            RestoreRefusal::Served => "restores refused: served already",
            RestoreRefusal::OutOfZxids => "restores refused: too few zxids",
            RestoreRefusal::Foreign => "restores refused: epochs too far",
            RestoreRefusal::Reconfiguring => "restores refused: reconfiguration",
            RestoreRefusal::Changed => "restores refused: another role since",
            RestoreRefusal::Busy => "restores refused: another restore",
            RestoreRefusal::Lost => "restores lost",
        });
    }

    /// Writes the tree to the disk as the plan wants it, and hands it over.
    fn write_restored(&mut self, at: ProcessId, plan: &RestorePlan) {
        let Some(process) = self.process(at) else { return };
        let Some(RestoreAsked { mut tree, paths, crash }) = process.restore_asked.take() else {
            return;
        };
        plan.prepare(&mut tree);
        let frozen = tree.freeze().expect("no other snapshot of this tree is under way");
        let body = stream_of(&tree, frozen);
        drop(tree.thaw(frozen));
        let style = process.snapshot_style;
        let Ok(draft) = write_snapshot(&process.disk, &process.folders, frozen, style, &body)
        else {
            return self.crash_if_due(at);
        };
        let restored = RestoredTree::of(&tree, paths.into_iter());
        process.restoring =
            Some(SimRestoring { zxid: plan.zxid, tree: restored, has_begun: false });
        if let Some((changes, crash)) = crash {
            self.arm(at.server, changes, crash);
        }
        let plan = plan.clone();
        self.do_within(100, 4000, move |world| {
            world.report(at, Input::Restore { ask: 0, plan, tree, draft });
        });
    }

    /// A server has given up its history for the restored tree, which it is about to name.
    pub fn begin_restored(&mut self, at: ProcessId) {
        let server = at.server;
        let Some(process) = self.process(at) else { return };
        let Some(restoring) = &mut process.restoring else { return };
        restoring.has_begun = true;
        let (zxid, tree) = (restoring.zxid, restoring.tree.clone());
        self.trace.count("restores begun");
        self.see(&Seen::Restores { server, zxid, tree: &tree });
    }
}
