//! The tree is replaced: by the leader's, which came with SNAP, or by what the disk holds after the log was truncated.

use super::core::Core;
use super::interface::Action;
use crate::model::Zxid;
use crate::tree::Tree;
use crate::tree::freeze::Frozen;
use crate::zab;

impl Core {
    /// Returns the input, unless the tree has to be loaded from disk before `zab` may have it: then it asks for that, and
    /// keeps the input until [`Self::rebuilt`].
    pub fn keep_until_rebuilt(
        &mut self,
        input: zab::Input,
        out: &mut Vec<Action>,
    ) -> Option<zab::Input> {
        let last = || self.shared.state.tree.read().last_zxid();
        let differs = match input {
            // The tree holds transactions that are no longer in the log.
            zab::Input::Truncated { to } => to < last(),
            // The log holds transactions that are not in the tree; those that waited for their commit were given up with the
            // truncation.
            zab::Input::CannotTruncate { last: logged } => last() < logged,
            zab::Input::Tick
            | zab::Input::Notification { .. }
            | zab::Input::ElectionConnected { .. }
            | zab::Input::ElectionDisconnected { .. }
            | zab::Input::ElectionUnreached { .. }
            | zab::Input::StandDown { .. }
            | zab::Input::Restore { .. }
            | zab::Input::Oracle { .. }
            | zab::Input::Propose { .. }
            | zab::Input::Flushed { .. }
            | zab::Input::Promised { .. }
            | zab::Input::Installed { .. }
            | zab::Input::TreeViews { .. }
            | zab::Input::Learner { .. }
            | zab::Input::LearnerGone { .. }
            | zab::Input::Progress { .. }
            | zab::Input::Sync { .. }
            | zab::Input::SnapshotBegun { .. }
            | zab::Input::LogRead { .. }
            | zab::Input::Leader { .. }
            | zab::Input::LeaderGone => false,
        };
        if !differs {
            return Some(input);
        }
        self.rebuilding = Some(input);
        out.push(Action::Rebuild);
        None
    }

    /// Installs the tree that was loaded from disk. Returns the input that waited for it.
    ///
    /// A tree that does not fit the digests in its log is not what the leader has at that zxid: a file before it is lost, or the snapshot
    /// was written by a Java server while it applied what is now cut off. Then the leader is asked for its tree, as at a start.
    pub fn rebuilt(
        &mut self,
        tree: Box<Tree>,
        differs_since: Option<Zxid>,
        out: &mut Vec<Action>,
    ) -> Option<zab::Input> {
        let input = self.rebuilding.take()?;
        let last = tree.last_zxid();
        if let zab::Input::Truncated { to } = input
            && to < last
        {
            out.push(Action::Stop(
                "the log was truncated, and the tree read from disk goes on after that zxid",
            ));
            return None;
        }
        self.replace_tree(tree);
        self.mismatches.truncate(last);
        self.inflight.retain(|inflight| inflight.zxid.is_some_and(|zxid| last < zxid));
        if differs_since.is_none_or(|since| self.mismatches.is_known_to_differ(since)) {
            return Some(input);
        }
        tracing::error!(
            zxid = %last,
            "after a truncation the data does not match the digests in its log: this server asks the leader for its tree, and votes for no \
             server until it has come, or until no server has led for initLimit; compare the znodes of the members"
        );
        self.doubt();
        Some(match input {
            zab::Input::Truncated { to } => zab::Input::CannotTruncate { last: to },
            input => input,
        })
    }

    /// The tree does not fit the digests in the log.
    pub fn doubt(&mut self) {
        self.mismatches.differ();
        self.zab.doubt();
    }

    /// Drops what was to be applied after `to`: the log is truncated there.
    pub fn truncate(&mut self, to: Zxid) {
        self.inflight.retain(|inflight| inflight.zxid.is_some_and(|zxid| zxid <= to));
    }

    /// The tree that came with SNAP takes the place of the old one.
    pub fn install(&mut self, zxid: Zxid, out: &mut Vec<Action>) {
        let Some(tree) = self.arrived.take() else { return };
        self.replace_tree(tree);
        self.mismatches.expect();
        self.inflight.retain(|inflight| inflight.zxid.is_some_and(|at| zxid < at));
        let frozen = self.shared.state.tree.write().freeze();
        let frozen = frozen.expect("a new tree has no snapshot under way");
        out.push(Action::Install(frozen));
    }

    /// * `frozen`: of this server's own tree.
    pub fn write_snapshot(&self, frozen: Frozen, out: &mut Vec<Action>) {
        if self.mismatches.tree_differs() {
            out.push(Action::NoteDoubt);
        }
        out.push(Action::Snapshot(frozen));
    }

    /// Replaces the tree: no client reads the old one any more, and snapshots of it end early.
    pub(super) fn replace_tree(&mut self, tree: Box<Tree>) {
        let mut place = self.shared.state.tree.write();
        let mut tree = *tree;
        tree.succeed(&place);
        let old = std::mem::replace(&mut *place, tree);
        self.shared.throttle.note_snapshot_saved(0, &mut self.wakers);
        drop(place);
        drop(old); // Not under the lock: it may be large.
    }

    /// This server follows: all that the leader had committed when it finished writing its tree is applied, since that came
    /// before NEWLEADER.
    pub fn settle_digests(&mut self, out: &mut Vec<Action>) {
        if self.mismatches.expect_no_more() == 0 {
            return;
        }
        // The snapshot written when the tree came is not exactly of its zxid: that would count as a mismatch at the next
        // start.
        self.snapshot(out);
        self.shared.state.tree.write().forget_digests();
    }
}
