//! What only the driver knows of the figures that four-letter words show.

use super::clock::Clock;
use super::role_log::Roles;
use crate::admin::{LeaderInfo, MemberInfo, Mode, ObserverInfo};
use crate::model::{ServerId, Zxid};
use crate::replica::{self, Replica};
use crate::zab::{LearnerConnectionId, PeerLag, Role};

/// The figures that only the driver knows.
pub struct Report {
    pub outstanding: u64,
    pub local_sessions: u64,
    /// `None`: clients are not served.
    pub mode: Option<Mode>,
    /// `None`: standalone.
    pub member: Option<MemberInfo>,
    pub leader: Option<LeaderInfo>,
    /// The observers of a leader; [`observers`] says which they are.
    pub observers: Vec<ObserverInfo>,
    /// For a leader: how far the other members are.
    pub peers: Vec<PeerLag>,
    /// The zxid with which a leader's epoch begins: the last transaction may be of an earlier epoch.
    pub begin: Zxid,
    /// Monotonic milliseconds from which the uptime counts.
    pub since_ms: u64,
}

impl Report {
    /// * `roles`: `None`: standalone.
    pub fn of(replica: &Replica, roles: Option<&Roles>, clock: Clock) -> Self {
        let mode = match replica.mode() {
            replica::Mode::Resting => None,
            replica::Mode::ReadOnly => Some(Mode::ReadOnly),
            replica::Mode::Standalone => Some(Mode::Standalone),
            replica::Mode::Leading => Some(Mode::Leader),
            replica::Mode::Following => Some(Mode::Follower),
            replica::Mode::Observing => Some(Mode::Observer),
        };
        let peer = replica.peer();
        let core = &peer.core;
        let mut report = Self {
            outstanding: replica.outstanding() as u64,
            local_sessions: replica.local_count() as u64,
            mode,
            member: None,
            leader: None,
            observers: Vec::new(),
            peers: Vec::new(),
            begin: Zxid::ZERO,
            since_ms: 0,
        };
        let Some(roles) = roles else { return report };
        report.since_ms = roles.elected_us() / 1000;
        let mut member = MemberInfo { id: core.me, view: core.view.clone(), leader: None };
        match peer.role() {
            Role::Looking(_) => {}
            Role::Learning(learner) => member.leader = Some(learner.leader()),
            Role::Leading(leader) => {
                let learners = leader.learners(core);
                report.peers = leader.peers(core);
                report.begin = Zxid::new(leader.epoch(), 0);
                report.leader = Some(LeaderInfo {
                    learners: learners.connected,
                    followers: learners.followers,
                    non_voting_followers: learners.non_voting,
                    observers: learners.observers,
                    pending_syncs: replica.pending_syncs() as u64,
                    uptime_ms: clock.now_ms().saturating_sub(roles.serving_us() / 1000),
                });
            }
        }
        report.member = Some(member);
        report
    }
}

/// The learner at a connection of a leader.
pub fn learner_id(replica: &Replica, connection: LearnerConnectionId) -> Option<ServerId> {
    match replica.peer().role() {
        Role::Leading(leader) => leader.learner_id(connection),
        Role::Looking(_) | Role::Learning(_) => None,
    }
}

/// The observers of a leader that are sent what is committed, by their connections.
pub fn observers(replica: &Replica) -> Vec<(LearnerConnectionId, ServerId)> {
    match replica.peer().role() {
        Role::Leading(leader) => leader.observers(),
        Role::Looking(_) | Role::Learning(_) => Vec::new(),
    }
}
