//! A snapshot is restored over all that this server, or the ensemble that it leads, has.
//!
//! The restored tree gets a zxid of its own, the *stamp*: of this leader's epoch, and beyond every zxid that was proposed in it. No
//! transaction ever has that zxid. So the restore is to the other servers as one more transaction at the end of this leader's
//! history, though one that only a tree can bring them: the leader's log begins after it, so each of them is sent the tree, and
//! never a difference across it. What holds of a transaction that was logged by its leader alone holds of the restore too: if this
//! server ends before a quorum has the tree, the next leader decides whether it counts.
//!
//! ```text
//! plan      the stamp is chosen; this server goes on as it was, and its transactions stay below the stamp
//!           the tree is written to the disk, under a temporary name
//! restore   nothing is proposed any more: clients and learners are disconnected, the tree takes the old one's place
//!           the snapshot gets its name: from here on, a start of this server finds the restored tree and nothing else
//!           standalone: clients are served again; a member: an election, in which this server has the latest history
//! ```

use super::Replica;
use super::core::Core;
use super::dispatch;
use super::interface::{Action, Mode};
use super::role::Role;
use crate::model::{Epoch, Zxid};
use crate::tree::Tree;
use crate::zab;

/// A leader gives out fewer zxids than this while the snapshot is written.
const SLACK: u32 = 1 << 20;
/// The epochs of a snapshot may be later than this ensemble's by this many: it is of an older ensemble with the same data. As
/// everywhere, a farther one is believed to be damaged.
const LEAP_MAX: u32 = 1 << 20;

/// What an operator wants to restore.
#[derive(Clone, Copy, Debug)]
pub struct RestoreQuestion {
    /// The newest of the snapshot's zxid and those of its znodes.
    newest: Zxid,
    /// Digest and number of its znodes; `None` if there are no digests.
    znodes: Option<(u64, usize)>,
}

impl RestoreQuestion {
    /// Reads all of the tree's znodes.
    pub fn of(tree: &Tree) -> Self {
        Self { newest: tree.newest_zxid(), znodes: znodes_of(tree) }
    }
}

/// Digest and number of a tree's znodes, by which trees that come from one snapshot are recognised.
fn znodes_of(tree: &Tree) -> Option<(u64, usize)> {
    tree.options().digest.then(|| (tree.digest(), tree.node_count()))
}

/// How a snapshot is to be restored.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RestorePlan {
    /// The stamp.
    pub zxid: Zxid,
    /// What `/zookeeper/config` has to hold, its version, and the time of the change: the configuration in force stays as it is.
    pub config: Option<(String, i64, i64)>,
    /// The newest epoch of the snapshot's zxids, if the next epoch must be later than it.
    past: Option<Epoch>,
}

impl RestorePlan {
    /// Gives a tree the zxid and the configuration with which it is restored, before its snapshot is written.
    pub fn prepare(&self, tree: &mut Tree) {
        tree.restamp(self.zxid);
        if let Some((text, version, wall_ms)) = &self.config {
            tree.set_config(text.as_bytes(), *version, *wall_ms);
        }
    }
}

/// Why a snapshot is not restored.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RestoreRefusal {
    #[error(
        "this server follows another one: restore at the leader, which sends the tree to all others"
    )]
    NotLeading,
    /// No failure: the leader was restored, and has sent the tree.
    #[error("this server follows another one, and serves these znodes already")]
    Served,
    #[error("too few zxids are left in this epoch: ask again after the next election")]
    OutOfZxids,
    #[error(
        "the snapshot's zxid is too far from this ensemble's: it is damaged, or of a foreign ensemble"
    )]
    Foreign,
    #[error("a reconfiguration is under way: ask again after it")]
    Reconfiguring,
    #[error("this server's role has changed while the snapshot was written: ask again")]
    Changed,
    #[error("another restore is under way")]
    Busy,
    #[error("another server has led since, and its data counts: restore at the leader")]
    Lost,
}

impl Replica {
    /// How a snapshot can be restored now.
    ///
    /// # Errors
    /// [`RestoreRefusal`].
    pub fn plan_restore(&self, asked: RestoreQuestion) -> Result<RestorePlan, RestoreRefusal> {
        let zxid = asked.newest;
        let zab = &self.core.zab.core;
        let last = zab.history.last();
        match dispatch::restore(self.mode(), zab.next.is_some()) {
            dispatch::Restore::Alone => {
                let stamp = last.max(zxid).to_wire().checked_add(i64::from(SLACK));
                let stamp = stamp.and_then(Zxid::from_wire).ok_or(RestoreRefusal::OutOfZxids)?;
                Ok(RestorePlan { zxid: stamp, config: None, past: None })
            }
            dispatch::Restore::Later => Err(RestoreRefusal::Reconfiguring),
            dispatch::Restore::AsLeader => {
                let epoch = zab.current;
                let counter = if last.epoch() == epoch { last.counter() } else { 0 };
                let counter = counter.checked_add(SLACK);
                let counter = counter.filter(|counter| *counter < self.core.settings.counter_max);
                let counter = counter.ok_or(RestoreRefusal::OutOfZxids)?;
                if !epoch.may_reach(zxid.epoch(), LEAP_MAX) {
                    return Err(RestoreRefusal::Foreign);
                }
                let config = (zab.view.to_string(), zab.view.version, self.core.wall_ms);
                let past = Some(zxid.epoch()).filter(|past| epoch <= *past);
                Ok(RestorePlan { zxid: Zxid::new(epoch, counter), config: Some(config), past })
            }
            dispatch::Restore::AskLeader => {
                let served = znodes_of(&self.core.shared.state.tree.read());
                let is_served = served.is_some() && served == asked.znodes;
                Err(if is_served { RestoreRefusal::Served } else { RestoreRefusal::NotLeading })
            }
            dispatch::Restore::Refuse => Err(RestoreRefusal::NotLeading),
        }
    }

    /// Puts a tree in the place of this server's own; [`Action::PlaceRestored`] says when its snapshot is to count.
    ///
    /// * `tree`: as the plan wants it, and on the disk.
    ///
    /// # Errors
    /// [`RestoreRefusal::Changed`]; nothing has happened then.
    pub fn restore(
        &mut self,
        plan: &RestorePlan,
        tree: Box<Tree>,
        out: &mut Vec<Action>,
    ) -> Result<(), RestoreRefusal> {
        let zab = &self.core.zab.core;
        let view = &zab.view;
        let fits = match (self.mode(), &plan.config) {
            (Mode::Standalone, None) => true,
            (Mode::Leading, Some((_, version, _))) => {
                *version == view.version && zab.next.is_none() && zab.current == plan.zxid.epoch()
            }
            (Mode::Standalone, Some(_))
            | (Mode::Leading, None)
            | (Mode::Resting | Mode::ReadOnly | Mode::Following | Mode::Observing, _) => false,
        };
        if !fits || plan.zxid <= zab.history.last() {
            return Err(RestoreRefusal::Changed);
        }
        self.core.arrived = Some(tree);
        let is_alone = self.mode() == Mode::Standalone;
        self.core.restoring = Some(is_alone);
        if is_alone {
            self.role.rest(&mut self.core);
            self.core.zab = zab::Peer::alone(self.core.zab.core.me, plan.zxid);
            self.core.install_restored(out);
        } else {
            let restore = zab::Input::Restore { zxid: plan.zxid, past: plan.past };
            self.core.zab.step(restore, &mut self.core.zab_out);
            self.carry_out(self.core.now_us, out);
        }
        self.end_step(out);
        Ok(())
    }

    /// The restored snapshot has its name. Its sessions get their whole timeouts from now on ([`Self::set_now`]).
    pub fn restored(&mut self, zxid: Zxid, out: &mut Vec<Action>) {
        match self.core.restoring.take() {
            Some(true) => self.role = Role::standalone(&mut self.core),
            Some(false) => self.hand_over(zab::Input::Installed { zxid }, out),
            None => {}
        }
        self.end_step(out);
    }
}

impl Core {
    /// The restored tree takes the place of the old one.
    pub(super) fn install_restored(&mut self, out: &mut Vec<Action>) {
        let Some(tree) = self.arrived.take() else { return };
        self.replace_tree(tree);
        self.mismatches.restore();
        self.inflight.clear();
        out.push(Action::PlaceRestored);
    }
}
