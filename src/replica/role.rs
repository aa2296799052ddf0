//! The roles of a server as types, and the changes between them.
//!
//! A role's state is built when the role begins and dropped when it ends, so nothing of an old role is left by accident.
//! What outlives a role is in [`Core`], by name: local sessions and ended sessions, requests whose transactions may still be
//! committed, and [`super::core::PastLeaderships`].
//!
//! ```text
//!            start, alone -> Standalone
//! start, of an ensemble -> Resting -> ReadOnly      2 s without a leader, readonlymode.enabled
//!                             |  ^------- '         an election has ended, or begins again
//!                             |--> Leading   --.    Action::Lead
//!                             |--> Following --|    Action::Follow
//!                             '--> Observing --|    Action::Follow, as an observer
//!                             ^----------------'    Action::StopServing
//! ```

use super::core::{Core, Service};
use super::forwarding::Forwarding;
use super::interface::Mode;
use super::learner_requests::Leading;
use super::request_processor::RequestProcessor;
use crate::model::sync::Arc;
use crate::model::{Epoch, SessionId};
use crate::request::{ClientHandle, Load, Sessions};
use crate::zab;

/// After this long without a leader, or a tickTime if that is longer, read-only clients are served.
const READ_ONLY_AFTER_MS: u64 = 2000;

/// The role in which no client is served.
#[derive(Default)]
pub struct Resting {
    /// Monotonic milliseconds since which an election is under way, if that leads to read-only service.
    looking_since_ms: Option<u64>,
}

/// What this server is to its clients.
pub enum Role {
    Resting(Resting),
    /// Its clients have local sessions only, which are the core's; it keeps nothing else.
    ReadOnly,
    Standalone(Box<RequestProcessor>),
    Leading(Box<Leading>),
    Following(Box<Forwarding>),
    Observing(Box<Forwarding>),
}

impl Role {
    pub const fn mode(&self) -> Mode {
        match self {
            Self::Resting(_) => Mode::Resting,
            Self::ReadOnly => Mode::ReadOnly,
            Self::Standalone(_) => Mode::Standalone,
            Self::Leading(_) => Mode::Leading,
            Self::Following(_) => Mode::Following,
            Self::Observing(_) => Mode::Observing,
        }
    }

    /// The request processor, of a standalone server or a leader.
    pub fn processor(&self) -> Option<&RequestProcessor> {
        match self {
            Self::Standalone(processor) => Some(processor),
            Self::Leading(leading) => Some(&leading.processor),
            Self::Resting(_) | Self::ReadOnly | Self::Following(_) | Self::Observing(_) => None,
        }
    }

    pub fn processor_mut(&mut self) -> Option<&mut RequestProcessor> {
        match self {
            Self::Standalone(processor) => Some(processor),
            Self::Leading(leading) => Some(&mut leading.processor),
            Self::Resting(_) | Self::ReadOnly | Self::Following(_) | Self::Observing(_) => None,
        }
    }

    pub fn leading_mut(&mut self) -> Option<&mut Leading> {
        match self {
            Self::Leading(leading) => Some(leading),
            Self::Resting(_)
            | Self::ReadOnly
            | Self::Standalone(_)
            | Self::Following(_)
            | Self::Observing(_) => None,
        }
    }

    /// The state of a follower or an observer, which forwards writes to its leader.
    pub fn forwarding_mut(&mut self) -> Option<&mut Forwarding> {
        match self {
            Self::Following(forwarding) | Self::Observing(forwarding) => Some(forwarding),
            Self::Resting(_) | Self::ReadOnly | Self::Standalone(_) | Self::Leading(_) => None,
        }
    }

    /// Global sessions: all of them on a standalone server or a leader; on a learner those of its own clients.
    pub fn sessions(&self) -> Option<&Sessions> {
        match self {
            Self::Resting(_) | Self::ReadOnly => None,
            Self::Standalone(processor) => Some(&processor.sessions),
            Self::Leading(leading) => Some(&leading.processor.sessions),
            Self::Following(forwarding) | Self::Observing(forwarding) => Some(&forwarding.sessions),
        }
    }

    /// A global session has ended. Returns the connection to this server that owned it last.
    pub fn end_session(
        &mut self,
        core: &mut Core,
        session: SessionId,
    ) -> Option<Arc<ClientHandle>> {
        match self {
            Self::Resting(_) | Self::ReadOnly => None,
            Self::Standalone(processor) => processor.sessions.remove(session),
            Self::Leading(leading) => {
                if core.settings.local_sessions {
                    core.note_end_of(session);
                }
                leading.processor.sessions.remove(session)
            }
            Self::Following(forwarding) | Self::Observing(forwarding) => {
                forwarding.observers.ended(session);
                forwarding.sessions.remove(session)
            }
        }
    }

    /// The role of a standalone server.
    pub fn standalone(core: &mut Core) -> Self {
        core.set_service(Service::Full);
        Self::Standalone(Box::new(RequestProcessor::standalone(core)))
    }

    /// The role of an ensemble member before its first election.
    pub fn resting(core: &mut Core) -> Self {
        core.set_service(Service::None);
        core.hold_connects();
        Self::Resting(Resting::default())
    }

    /// A role of `zab` begins. If one election ends and another begins in the same step, read-only service ends only here.
    fn start_from_rest(&mut self, core: &mut Core) {
        if matches!(self, Self::ReadOnly) {
            self.rest(core);
        }
        assert!(matches!(self, Self::Resting(_)), "a role begins while {:?} goes on", self.mode());
    }

    /// This server leads, and all of its history is applied.
    pub fn lead(&mut self, core: &mut Core, epoch: Epoch) {
        self.start_from_rest(core);
        core.mismatches.expect_no_more();
        core.begin_epoch(epoch);
        core.write_config();
        *self = Self::Leading(Box::new(Leading::new(RequestProcessor::leading(core, epoch))));
        let serves = core.settings.leader_serves;
        core.set_service(if serves { Service::Full } else { Service::None });
        core.release_connects();
    }

    /// This server follows or observes a leader, and is up to date.
    pub fn follow(&mut self, core: &mut Core) {
        self.start_from_rest(core);
        let is_observer = matches!(
            core.zab.role(),
            zab::Role::Learning(learner) if learner.is_observer()
        );
        core.begin_epoch(core.zab.core.current);
        core.write_config();
        let forwarding = Box::new(Forwarding::new(core.settings.tick_time_ms));
        *self = match is_observer {
            true => Self::Observing(forwarding),
            false => Self::Following(forwarding),
        };
        core.set_service(Service::Full);
    }

    /// The role ends. Clients reconnect to this server or another one; their requests that are not committed may yet be.
    pub fn rest(&mut self, core: &mut Core) {
        let forwarded = match std::mem::replace(self, Self::Resting(Resting::default())) {
            Self::Resting(resting) => {
                *self = Self::Resting(resting);
                return;
            }
            Self::ReadOnly => {
                core.forget_locals();
                Load::default()
            }
            Self::Standalone(processor) => {
                processor.leave(core);
                Load::default()
            }
            Self::Leading(leading) => {
                leading.processor.leave(core);
                Load::default()
            }
            Self::Following(forwarding) | Self::Observing(forwarding) => forwarding.requests.load(),
        };
        core.set_service(Service::None);
        core.hold_connects();
        give_up_requests(core, forwarded);
    }

    /// Serves read-only clients when there has been no leader for long enough. To be called at each tick.
    pub fn consider_read_only(&mut self, core: &mut Core) {
        let Self::Resting(resting) = self else { return };
        let is_looking = matches!(core.zab.role(), zab::Role::Looking(_));
        if !is_looking || !core.settings.read_only {
            resting.looking_since_ms = None;
            return;
        }
        let since_ms = *resting.looking_since_ms.get_or_insert(core.now_ms);
        if since_ms + READ_ONLY_AFTER_MS.max(core.settings.tick_time_ms) <= core.now_ms {
            tracing::info!("no leader: clients that accept a read-only server are served");
            *self = Self::ReadOnly;
            core.forget_locals();
            core.set_service(Service::ReadOnly);
        }
    }

    /// The election is over: read-only clients are disconnected, and come back to a server that also writes.
    pub fn end_read_only(&mut self, core: &mut Core) {
        if matches!(self, Self::ReadOnly) && !matches!(core.zab.role(), zab::Role::Looking(_)) {
            tracing::info!("there is a leader again: read-only clients are disconnected");
            self.rest(core);
        }
    }
}

/// Closes the connections of all clients. Their requests stay in the order, since their transactions may yet be committed,
/// but are not answered; requests without a zxid are dropped.
///
/// * `done`: requests that are dropped already.
fn give_up_requests(core: &mut Core, mut done: Load) {
    for conn in core.shared.conns.all() {
        // Answers in the outbox are sent before the connection is closed, whichever server leads next: a reconfiguration may be what ends the role.
        conn.close_after_sending(&mut core.wakers);
    }
    for inflight in &mut core.inflight {
        inflight.conn = None;
        done += std::mem::take(&mut inflight.load);
    }
    core.inflight.retain(|inflight| inflight.zxid.is_some());
    core.shared.throttle.end(done, &mut core.wakers);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sync::Ordering;
    use crate::replica::core::test_member as member;
    use crate::replica::interface::Settings;
    use crate::request::Owner;

    /// The flags that connections read: no client is accepted, and only read-only clients are.
    fn flags(core: &Core) -> (bool, bool) {
        let shared = &core.shared;
        (shared.at_rest.load(Ordering::Relaxed), shared.is_read_only.load(Ordering::Relaxed))
    }

    // rows: Q-93
    #[test]
    fn read_only_service_ends_with_its_flags_and_sessions_when_another_election_begins() {
        let mut core = member(Settings { read_only: true, ..Settings::DEFAULT });
        let mut role = Role::resting(&mut core);
        assert_eq!(flags(&core), (true, false));
        for _ in 0..=600 {
            assert_eq!(role.mode(), Mode::Resting, "at {} ms", core.now_ms);
            core.advance_clock();
            role.consider_read_only(&mut core);
        }
        assert_eq!((role.mode(), flags(&core)), (Mode::ReadOnly, (false, true)));
        core.locals.track(SessionId(7), 4000, Owner::Nobody, core.now_ms);
        role.rest(&mut core);
        assert_eq!((role.mode(), flags(&core)), (Mode::Resting, (true, false)));
        assert!(core.locals.is_empty());
        // The wait for read-only service starts again.
        core.advance_clock();
        role.consider_read_only(&mut core);
        assert_eq!(role.mode(), Mode::Resting);
    }

    #[test]
    fn connect_requests_are_held_during_an_election_for_at_most_connect_hold() {
        let held = |core: &Core| core.shared.connects_held_until_ms.load(Ordering::Relaxed);
        let mut core = member(Settings { connect_hold_ms: 20, ..Settings::DEFAULT });
        let mut role = Role::resting(&mut core);
        assert_eq!(held(&core), core.now_ms + 20);
        (0..3).for_each(|_| core.advance_clock());
        core.release_late_connects();
        assert_ne!(held(&core), 0, "5 ms are left");
        core.advance_clock();
        core.release_late_connects();
        assert_eq!(held(&core), 0);
        role.lead(&mut core, Epoch(1));
        role.rest(&mut core);
        assert_eq!(held(&core), core.now_ms + 20, "another election");
        role.follow(&mut core);
        assert_eq!(held(&core), 0);
        role.rest(&mut core);
        core.settings.leader_serves = false;
        role.lead(&mut core, Epoch(2));
        assert_eq!((held(&core), flags(&core).0), (0, true), "it will not serve");
    }

    #[test]
    fn next_leadership_keeps_only_local_sessions_and_container_times() {
        let mut core = member(Settings::DEFAULT);
        let mut role = Role::resting(&mut core);
        role.lead(&mut core, Epoch(1));
        assert_eq!((role.mode(), flags(&core)), (Mode::Leading, (false, false)));
        let processor = role.processor_mut().unwrap();
        processor.sessions.track(SessionId(7), 4000, Owner::Nobody, 0);
        core.locals.track(SessionId(8), 4000, Owner::Nobody, 0);
        let first_look_ms = core.past.containers.next_look_ms;
        core.now_ms = first_look_ms;
        processor.sweep.look(&core);
        role.rest(&mut core);
        assert!(role.processor().is_none() && role.sessions().is_none());
        role.lead(&mut core, Epoch(2));
        let processor = role.processor().unwrap();
        assert!(processor.sessions.is_empty(), "the tree has no sessions");
        assert_eq!(processor.sweep.times().next_look_ms, 2 * first_look_ms);
        assert_eq!(core.locals.len(), 1);
    }
}
