//! Elections come and go: what that means to the clients and to the tree.

use super::{Action, Fuzzy, Mode, Replica};
use crate::model::sync::Ordering;
use crate::model::{Epoch, SessionId, View, Zxid, op};
use crate::request::prep::Prep;
use crate::request::{Batch, Done, Ensemble, Owner, Sessions};
use crate::tree::{Tree, txn};
use crate::zab;

/// Teaches a peer to see a configuration in what is proposed, and tells it of the one in its history: decided or not, it
/// decides with the one in force until a leader knows more. The file that says so may have been lost with the power; and
/// what it says does not count unless the history has it, for then nobody had this server's word for it.
pub(super) fn adopt_view_finder(peer: &mut zab::Peer, tree: &Tree) {
    peer.core.finds_view = view_in;
    // A file that was never changed by a reconfiguration is its operator's, whatever an older one was.
    if peer.core.view.version > 0
        && let Some(text) = tree.config()
        && let Ok(view) = View::from_bytes(text)
    {
        // The driver keeps it for the next start when it is proposed; this one is there already.
        let version = view.version;
        peer.core.see_view(view, &mut Vec::new());
        if let Some(before) = tree.config_before().and_then(version_of) {
            peer.core.see_order(version, before);
        }
    }
}

/// Version of a configuration; an empty text is that of a server that was never told one.
fn version_of(text: &[u8]) -> Option<i64> {
    if text.is_empty() { Some(0) } else { View::from_bytes(text).ok().map(|view| view.version) }
}

/// The configuration that an entry proposes.
fn view_in(entry: &[u8]) -> Option<View> {
    View::from_bytes(txn::config_in(entry)?)
        .inspect_err(|error| tracing::error!("reconfiguration that cannot be read: {error}"))
        .ok()
}

impl Replica {
    /// By what a leader judges a reconfiguration.
    pub(super) fn ensemble(&self, asked: i32) -> Option<Ensemble> {
        let zab::Role::Leading(leader) = self.zab.role() else { return None };
        let core = &self.zab.core;
        (asked == op::RECONFIG && self.mode == Mode::Leading).then(|| Ensemble {
            view: core.view.clone(),
            is_changing: core.next.is_some(),
            synced: leader.synced(core),
        })
    }

    pub(super) fn on_peer(&mut self, input: zab::Input, out: &mut Vec<Action>) {
        let last = || self.shared.state.tree.read().last_zxid();
        let is_other = match input {
            // The tree holds what is no longer in the log.
            zab::Input::Truncated { to } => to < last(),
            // The log holds what is not in the tree, and what waited for its commit was given up with the cut.
            zab::Input::Uncuttable { last: logged } => last() < logged,
            _ => false,
        };
        if is_other {
            self.rebuilding = Some(input);
            return out.push(Action::Rebuild);
        }
        self.hand_over(input, out);
    }

    fn hand_over(&mut self, input: zab::Input, out: &mut Vec<Action>) {
        self.zab.step(input, &mut self.zab_out);
        self.on_zab(self.now_us, out);
    }

    /// The tree is what the log is now.
    pub(super) fn on_rebuilt(&mut self, tree: Box<Tree>, out: &mut Vec<Action>) {
        let Some(input) = self.rebuilding.take() else { return };
        let last = tree.last_zxid();
        if let zab::Input::Truncated { to } = input
            && to < last
        {
            return out.push(Action::Stop(
                "the log was cut, and the tree read from disk goes on behind the cut",
            ));
        }
        self.replace_tree(tree);
        self.inflight.retain(|inflight| inflight.zxid.is_some_and(|zxid| last < zxid));
        self.hand_over(input, out);
    }

    pub(super) fn on_leader_tree(&mut self, zxid: Zxid, tree: Box<Tree>, out: &mut Vec<Action>) {
        self.arrived = Some(tree);
        let packet = zab::Packet::Snap { zxid };
        self.on_peer(zab::Input::Leader { packet }, out);
        self.arrived = None; // Unless it was taken, nobody waited for it.
    }

    /// Nobody reads it: there are no clients, and snapshots of the old one end early.
    fn replace_tree(&mut self, tree: Box<Tree>) {
        let mut place = self.shared.state.tree.write();
        let mut tree = *tree;
        tree.succeed(&place);
        let old = std::mem::replace(&mut *place, tree);
        drop(place);
        drop(old); // It may be large: not under the lock.
    }

    pub(super) fn on_role_action(&mut self, action: zab::Action, out: &mut Vec<Action>) {
        match action {
            zab::Action::Truncate { to } => {
                self.inflight.retain(|inflight| inflight.zxid.is_some_and(|zxid| zxid <= to));
                out.push(Action::Peer(zab::Action::Truncate { to }));
            }
            zab::Action::Install { zxid } => self.install(zxid, out),
            zab::Action::SendSnapshot { link } => {
                let frozen = self.shared.state.tree.write().freeze();
                if let Some(frozen) = frozen {
                    out.push(Action::SendTree { link, frozen });
                    let begun = zab::Input::SnapshotBegun { link, zxid: frozen.zxid };
                    self.zab.step(begun, &mut self.zab_out);
                }
            }
            zab::Action::Lead { epoch } => self.lead(epoch),
            zab::Action::Follow { .. } => {
                self.follow();
                self.settle_fuzzy(out);
            }
            zab::Action::Rest => self.rest(),
            zab::Action::FromLearner { link, packet } if self.judges() => {
                self.on_learner(link, packet, out);
            }
            zab::Action::FromLearner { link, packet } => self.relay_up(link, packet, out),
            zab::Action::FromLeader { packet } => self.on_leader(packet, out),
            action => out.push(Action::Peer(action)),
        }
    }

    fn install(&mut self, zxid: Zxid, out: &mut Vec<Action>) {
        let Some(tree) = self.arrived.take() else { return };
        self.replace_tree(tree);
        self.fuzzy = Some(Fuzzy::default());
        self.inflight.retain(|inflight| inflight.zxid.is_some_and(|at| zxid < at));
        let frozen = self.shared.state.tree.write().freeze();
        let frozen = frozen.expect("a new tree has no snapshot under way");
        out.push(Action::Install(frozen));
    }

    /// All that the leader had committed when it ended its tree is applied: it stood before NEWLEADER.
    fn settle_fuzzy(&mut self, out: &mut Vec<Action>) {
        let Some(Fuzzy { mismatches: 1.. }) = self.fuzzy.take() else { return };
        // The one written when the tree came is not of its zxid: it would be counted as a mismatch at the next start.
        self.snapshot(out);
        self.shared.state.tree.write().forget_digests();
    }

    fn lead(&mut self, epoch: Epoch) {
        self.mode = Mode::Leading;
        self.fuzzy = None;
        self.write_config();
        let shared = self.shared.clone();
        let tree = shared.state.tree.read();
        self.changes_before = self.changes().0;
        let settings = &self.settings;
        self.prep =
            Prep::leading(&tree, epoch, settings.counter_max, settings.seed, settings.rules);
        drop(tree);
        self.adopt_sessions();
        self.shared.at_rest.store(!self.settings.leader_serves, Ordering::Relaxed);
    }

    /// Every session of the tree gets its whole timeout from here.
    pub(super) fn adopt_sessions(&mut self) {
        self.sessions = Sessions::new(self.settings.tick_time_ms);
        let tree = self.shared.state.tree.read();
        for (&id, &timeout_ms) in tree.sessions() {
            self.sessions.track(SessionId(id), timeout_ms, Owner::Nobody, self.now_ms);
        }
    }

    fn write_config(&self) {
        let view = &self.zab.core.view;
        let text = view.to_string();
        let mut tree = self.shared.state.tree.write();
        tree.set_config(text.as_bytes(), view.version, self.wall_ms);
    }

    fn follow(&mut self) {
        let observes = matches!(
            self.zab.role(),
            zab::Role::Learning(learner) if learner.is_observer()
        );
        self.mode = if observes { Mode::Observing } else { Mode::Following };
        self.write_config();
        self.sessions = Sessions::new(self.settings.tick_time_ms);
        self.shared.at_rest.store(false, Ordering::Relaxed);
    }

    /// Clients go elsewhere or come again; what they asked and nobody committed may yet be.
    pub(super) fn rest(&mut self) {
        if self.mode == Mode::Resting {
            return;
        }
        self.mode = Mode::Resting;
        self.shared.at_rest.store(true, Ordering::Relaxed);
        for conn in self.shared.conns.all() {
            // What is answered is so, whoever leads: a reconfiguration may be what ends the role.
            conn.close_behind(&mut self.wakers);
        }
        let mut done = self.learning.clear();
        for inflight in &mut self.inflight {
            inflight.conn = None;
            let weight = std::mem::take(&mut inflight.weight);
            done.requests += weight.requests;
            done.large_bytes += weight.large_bytes;
        }
        self.inflight.retain(|inflight| inflight.zxid.is_some());
        self.shared.throttle.end(done, &mut self.wakers);
        self.sessions = Sessions::new(self.settings.tick_time_ms);
        self.sweep.forget();
    }

    /// Asked before the leader was lost, read after it.
    pub(super) fn drop_batch(&mut self, batch: &Batch) {
        let large_bytes = batch.requests.iter().map(|asked| u64::from(asked.large_bytes)).sum();
        let done = Done { requests: batch.requests.len() as u64, large_bytes };
        self.shared.throttle.end(done, &mut self.wakers);
    }
}
