//! What holds after each step, whatever clients, peers and the disk say. A broken invariant ends the process: it is our own
//! bug, and the next step could serve a state that no quorum has.

use super::core::Core;
use super::interface::Mode;
use super::role::Role;
use crate::model::sync::Ordering;
use crate::zab;

/// Asserts what holds after a step, in release builds too.
///
/// # Panics
/// When an invariant is broken.
///
/// 1. Every action of `zab` was carried out, and no task that must be woken is left.
/// 2. The role fits the one in `zab`: a server that leads for its clients leads its learners too, in an epoch that a
///    quorum has acknowledged.
/// 3. Transactions that wait to be applied were proposed or received: their zxids are after the tree's and not after the
///    log's last one.
/// 4. A request without a zxid waits only after one with a zxid: the first request in the order is a transaction.
/// 5. A tree that came with SNAP is installed in the step it came in, or dropped.
/// 6. On a server that serves, what is committed is in the log, and no tree is being loaded from disk to replace its tree.
/// 7. The flags that connections read are those of the role, on a member of an ensemble: tests of single connections set the flags of a
///    standalone server. `epoch_begin` is 0 unless all clients are served.
///
/// Costly invariants are checked in tests and in the simulator: see [`assert_costly`].
pub fn assert_invariants(core: &Core, role: &Role) {
    assert!(core.zab_out.is_empty(), "actions of `zab` are left after a step");
    assert!(core.wakers.is_empty(), "tasks to be woken are left after a step");
    assert!(core.arrived.is_none(), "a tree that came with SNAP is left after a step");
    let agreed = core.zab.role();
    let is_allowed = match role {
        Role::Resting(_) => true,
        Role::ReadOnly => matches!(agreed, zab::Role::Looking(_)),
        Role::Standalone(_) | Role::Leading(_) => {
            matches!(agreed, zab::Role::Leading(leader) if leader.has_established())
        }
        Role::Following(_) => {
            matches!(agreed, zab::Role::Learning(by) if by.is_serving() && !by.is_observer())
        }
        Role::Observing(_) => {
            matches!(agreed, zab::Role::Learning(by) if by.is_serving() && by.is_observer())
        }
    };
    let mode = role.mode();
    assert!(is_allowed, "a server is {mode:?}, which does not fit its role in `zab`");
    let history = &core.zab.core.history;
    if let Some(first) = core.inflight.front() {
        let zxid = first.zxid;
        assert!(zxid.is_some(), "a request without a zxid is first in the order");
    }
    if let Some(zxid) = core.inflight.back().and_then(|inflight| inflight.zxid) {
        let last = history.last();
        assert!(zxid <= last, "{zxid} waits to be applied, but the log ends at {last}");
    }
    if let Some(processor) = role.processor() {
        let (prepared, last) = (processor.prep.last(), history.last());
        assert!(
            last <= prepared,
            "{last} is in the log, but the last zxid given out is {prepared}"
        );
    }
    let serves = !matches!(role, Role::Resting(_) | Role::ReadOnly);
    if serves {
        let (committed, last) = (history.committed(), history.last());
        assert!(committed <= last, "{committed} is committed, but the log ends at {last}");
        assert!(
            core.rebuilding.is_none(),
            "clients are served while the tree is being loaded from disk"
        );
    }
    assert_flags(core, mode);
    #[cfg(any(debug_assertions, feature = "sim"))]
    assert_costly(core, role);
}

/// The flags that connections read are those of the role.
fn assert_flags(core: &Core, mode: Mode) {
    let is_read_only = core.shared.is_read_only.load(Ordering::Relaxed);
    let at_rest = core.shared.at_rest.load(Ordering::Relaxed);
    let is_member = mode != Mode::Standalone; // Tests of single connections set the flags of a standalone server.
    assert!(!is_member || is_read_only == (mode == Mode::ReadOnly), "read-only and {mode:?}");
    let held = core.shared.connects_held_until_ms.load(Ordering::Relaxed) != 0;
    assert!(
        !held || !is_member || mode == Mode::Resting,
        "connect requests wait at a server that is {mode:?}"
    );
    let epoch_begin = core.shared.epoch_begin.load(Ordering::Relaxed);
    let is_full = !at_rest && !is_read_only;
    assert!(epoch_begin == 0 || is_full, "an epoch is served by a server that is {mode:?}");
    match mode {
        Mode::Resting => assert!(at_rest, "a server that rests accepts clients"),
        Mode::Leading => assert_eq!(at_rest, !core.settings.leader_serves, "leaderServes"),
        Mode::ReadOnly | Mode::Following | Mode::Observing => {
            assert!(!at_rest, "a server that is {mode:?} accepts no clients");
        }
        Mode::Standalone => {}
    }
}

/// Asserts the invariants that are costly to check:
///
/// 1. Zxids in the order strictly increase.
/// 2. On a server that serves: applied <= committed, and each zxid that waits is after the applied one. The check takes the
///    tree's lock.
/// 3. On a server that rests or is read-only: no client waits for a request in the order. On a learner: every SYNC and
///    revalidation it waits for belongs to a request, an observer or a client that reconnected.
#[cfg(any(debug_assertions, feature = "sim"))]
fn assert_costly(core: &Core, role: &Role) {
    let mode = role.mode();
    let history = &core.zab.core.history;
    let applied = core.shared.state.tree.read().last_zxid();
    let mut before = None;
    for inflight in &core.inflight {
        let Some(zxid) = inflight.zxid else { continue };
        assert!(before < Some(zxid), "{before:?} and then {zxid} wait to be applied");
        before = Some(zxid);
    }
    let serves = match role {
        Role::Resting(_) | Role::ReadOnly => {
            let is_asked = core.inflight.iter().any(|inflight| inflight.conn.is_some());
            assert!(!is_asked, "a client waits for a server that is {mode:?}");
            false
        }
        Role::Standalone(_) | Role::Leading(_) => true,
        Role::Following(forwarding) | Role::Observing(forwarding) => {
            forwarding.assert_invariants();
            true
        }
    };
    if serves {
        let committed = history.committed();
        assert!(applied <= committed, "{applied} is applied, but only {committed} is committed");
        let first = core.inflight.iter().find_map(|inflight| inflight.zxid);
        assert!(
            first.is_none_or(|first| applied < first),
            "{first:?} waits to be applied, but {applied} is"
        );
    }
}
