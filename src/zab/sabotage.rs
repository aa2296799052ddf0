//! Bugs that can be put back, so that it is seen which test finds them (feature `sabotage`, for tests only).
//!
//! Without the feature no server can be spoiled, and the compiler drops every trace of this.

use super::Core;
use super::sync::Plan;
use crate::model::Zxid;

/// A bug to put back. What it breaks stands in `docs/museum.md`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sabotage {
    /// The epoch is saved while the history is still on its way to the disk (ZOOKEEPER-4643).
    EpochBeforeHistory,
    /// NEWLEADER is acknowledged as soon as it is read (ZOOKEEPER-4646, 3911).
    AckBeforeFlush,
    /// A tree that came counts as written when it was read (ZOOKEEPER-3642, 2872).
    TreeNotAwaited,
    /// The log goes on behind a tree that is not written yet.
    AppendBehindTree,
    /// A cut counts as done, and nothing was cut (ZOOKEEPER-3701, 5094).
    TruncationIgnored,
    /// What a synchronisation brings is applied at once (ZOOKEEPER-1549, 2845).
    CommitBeforeUpToDate,
    /// An election begins before the disk has everything (ZOOKEEPER-4712, 4882).
    LooksTooSoon,
    /// The epoch is promised before it is saved (ZOOKEEPER-335, 1653).
    PromiseUnsaved,
    /// A promise given once counts for every leader of that epoch.
    PromiseTwice,
    /// An epoch is opened without asking a quorum which ones it knows.
    EpochUnasked,
    /// A follower that is ahead of its leader is taken in (ZOOKEEPER-1154, 1156).
    AheadIsAccepted,
    /// What a server acknowledged before it came again counts on.
    AckedIsKept,
    /// A learner that missed more than the window holds gets the window (ZOOKEEPER-4925, 4352).
    DiffWithHole,
    /// A learner is cut across epochs (ZOOKEEPER-3526, 2846).
    TruncAcrossEpochs,
    /// Clients are served before a quorum has the history (ZOOKEEPER-1558).
    ServesTooSoon,
    /// What is proposed and not committed is not sent to a learner that comes meanwhile.
    TailForgotten,
    /// What a learner keeps behind a tree it does not acknowledge again.
    KeptUnacknowledged,
    /// A server that is promised to a later epoch is left outside for ever.
    PromisedStaysOut,
    /// Who is to vote is not asked while a reconfiguration is under way.
    NewcomersUnasked,
    /// A reconfiguration that came to nothing decides on (the stuck `.dynamic.next`).
    LostViewDecides,
    /// A vote does not say how far its server's history goes: anybody may be elected.
    VoteHidesHistory,
    /// Who was elected waits for voters that changed their mind (ZOOKEEPER-3109).
    ElectorsAwaited,
}

impl Sabotage {
    pub const ALL: [Self; 22] = [
        Self::EpochBeforeHistory,
        Self::AckBeforeFlush,
        Self::TreeNotAwaited,
        Self::AppendBehindTree,
        Self::TruncationIgnored,
        Self::CommitBeforeUpToDate,
        Self::LooksTooSoon,
        Self::PromiseUnsaved,
        Self::PromiseTwice,
        Self::EpochUnasked,
        Self::AheadIsAccepted,
        Self::AckedIsKept,
        Self::DiffWithHole,
        Self::TruncAcrossEpochs,
        Self::ServesTooSoon,
        Self::TailForgotten,
        Self::KeptUnacknowledged,
        Self::PromisedStaysOut,
        Self::NewcomersUnasked,
        Self::LostViewDecides,
        Self::VoteHidesHistory,
        Self::ElectorsAwaited,
    ];
}

impl Core {
    #[cfg(feature = "sabotage")]
    pub(super) fn has(&self, bug: Sabotage) -> bool {
        self.sabotage == Some(bug)
    }

    #[cfg(not(feature = "sabotage"))]
    pub(super) const fn has(&self, _bug: Sabotage) -> bool {
        false
    }

    /// The plan, or a bad one if that is wanted.
    pub(super) fn spoilt(&self, plan: Plan, last: Option<Zxid>) -> Plan {
        let Some(last) = last else { return plan };
        match plan {
            Plan::ReadLog if self.has(Sabotage::DiffWithHole) => Plan::Diff { after: last },
            Plan::Snap if self.has(Sabotage::TruncAcrossEpochs) => {
                Plan::Trunc { to: self.history.committed().min(last) }
            }
            plan => plan,
        }
    }
}
