//! What each role does with each command and with each packet of another server: pure, total tables.
//!
//! No match arm is a wildcard, so a new role does not compile until each table has its row; and no row depends on the rows
//! before it. The tests compare the functions with the tables in their comments, row by row.

use super::interface::Mode;

/// What is done about a client that wants a new session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Open {
    /// Nothing: its connection is closed, or about to be.
    Drop,
    /// The connection is closed: a global session needs a leader. Java sends an answer that no client can read.
    Close,
    /// This server alone keeps the session.
    Local,
    /// The session is proposed here.
    Process,
    /// The request for the session is forwarded to the leader.
    Forward,
}

/// ```text
/// role                    localSessionsEnabled   a new session is
/// resting                          -             dropped
/// read-only                       yes            local
/// read-only                       no             refused: the connection is closed
/// standalone                       -             processed
/// leading                         yes            local
/// leading                         no             processed
/// following, observing            yes            local
/// following, observing            no             forwarded
/// ```
pub const fn open(mode: Mode, keeps_local: bool) -> Open {
    match (mode, keeps_local) {
        (Mode::Resting, true | false) => Open::Drop,
        (Mode::ReadOnly | Mode::Leading | Mode::Following | Mode::Observing, true) => Open::Local,
        (Mode::ReadOnly, false) => Open::Close,
        (Mode::Standalone, true | false) | (Mode::Leading, false) => Open::Process,
        (Mode::Following | Mode::Observing, false) => Open::Forward,
    }
}

/// What is done about a client that reconnects with its session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reopen {
    /// Nothing: its connection is closed, or about to be.
    Drop,
    /// The session is local: this server alone knows whether it is valid.
    Local,
    /// There is no leader to ask: the client may read.
    ReadOnly,
    /// This server keeps all sessions and knows whether it is valid.
    Process,
    /// The leader is asked to revalidate it.
    Forward,
}

/// ```text
/// role                    session is local here   it is
/// resting                          -              dropped
/// read-only                       yes             local
/// read-only                       no              read-only
/// standalone, leading             yes             local
/// standalone, leading             no              processed
/// following, observing            yes             local
/// following, observing            no              forwarded
/// ```
pub const fn reopen(mode: Mode, is_local: bool) -> Reopen {
    match (mode, is_local) {
        (Mode::Resting, true | false) => Reopen::Drop,
        (
            Mode::ReadOnly | Mode::Standalone | Mode::Leading | Mode::Following | Mode::Observing,
            true,
        ) => Reopen::Local,
        (Mode::ReadOnly, false) => Reopen::ReadOnly,
        (Mode::Standalone | Mode::Leading, false) => Reopen::Process,
        (Mode::Following | Mode::Observing, false) => Reopen::Forward,
    }
}

/// What is done about writes and syncs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Writes {
    /// They were sent before the leader was lost: the connection is closed, so the client knows that the outcome is open.
    Drop,
    /// Answered with an error: this server is read-only.
    Refuse,
    Process,
    Forward,
}

/// ```text
/// role                    writes and syncs are
/// resting                 dropped
/// read-only               refused
/// standalone, leading     processed
/// following, observing    forwarded
/// ```
pub const fn writes(mode: Mode) -> Writes {
    match mode {
        Mode::Resting => Writes::Drop,
        Mode::ReadOnly => Writes::Refuse,
        Mode::Standalone | Mode::Leading => Writes::Process,
        Mode::Following | Mode::Observing => Writes::Forward,
    }
}

/// What is done about a session whose connection has ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SessionAfterClose {
    /// The session is kept until it expires. When it was last heard stays known through its connection.
    Keep,
    /// The leader keeps the session, and this server forgets it.
    Forget,
}

/// ```text
/// role                    the session of a connection that ended is
/// resting, read-only      kept (there are no global sessions, and local ones expire)
/// standalone, leading     kept
/// following, observing    forgotten
/// ```
pub const fn session_after_close(mode: Mode) -> SessionAfterClose {
    match mode {
        Mode::Resting | Mode::ReadOnly | Mode::Standalone | Mode::Leading => {
            SessionAfterClose::Keep
        }
        Mode::Following | Mode::Observing => SessionAfterClose::Forget,
    }
}

/// What is done about a packet of a learner.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FromLearner {
    /// This server leads.
    Process,
    /// This server is the master of an observer, and asks its own leader.
    Forward,
    /// `zab` passes packets of learners on at a leader that broadcasts and at a follower that serves, at no other server.
    Never,
}

/// ```text
/// role                                        a learner's packet is
/// leading                                     processed
/// following                                   forwarded
/// resting, read-only, standalone, observing   never seen
/// ```
pub const fn from_learner(mode: Mode) -> FromLearner {
    match mode {
        Mode::Leading => FromLearner::Process,
        Mode::Following => FromLearner::Forward,
        Mode::Resting | Mode::ReadOnly | Mode::Standalone | Mode::Observing => FromLearner::Never,
    }
}

/// What is done about a ping of the leader.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ping {
    /// Answered with the sessions that were touched.
    Answer,
    /// Answered with none: NEWLEADER is acknowledged, and there are no clients yet.
    AnswerEmpty,
    /// `zab` lets no ping through to this role.
    Never,
}

/// ```text
/// role                               a ping is
/// resting                            answered with no sessions
/// following, observing               answered with sessions
/// read-only, standalone, leading     never seen
/// ```
pub const fn ping(mode: Mode) -> Ping {
    match mode {
        Mode::Resting => Ping::AnswerEmpty,
        Mode::Following | Mode::Observing => Ping::Answer,
        Mode::ReadOnly | Mode::Standalone | Mode::Leading => Ping::Never,
    }
}

/// What is done about the leader's answer to a sync or a revalidation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LeadersAnswer {
    /// The client or observer that waits for it is answered.
    Answer,
    /// `zab` lets no answer through to this role: it has sent no request.
    Never,
}

/// ```text
/// role                                        an answer of the leader is
/// following, observing                        given to the client or observer
/// resting, read-only, standalone, leading     never seen
/// ```
pub const fn leaders_answer(mode: Mode) -> LeadersAnswer {
    match mode {
        Mode::Following | Mode::Observing => LeadersAnswer::Answer,
        Mode::Resting | Mode::ReadOnly | Mode::Standalone | Mode::Leading => LeadersAnswer::Never,
    }
}

/// What is done about an operator who wants a snapshot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AskedFor {
    Taken,
    /// This server serves no clients, or only reads of a tree that may be old.
    Refused,
}

/// ```text
/// role                                        a snapshot is
/// standalone, leading, following, observing   taken
/// resting, read-only                          refused
/// ```
pub const fn snapshot(mode: Mode) -> AskedFor {
    match mode {
        Mode::Standalone | Mode::Leading | Mode::Following | Mode::Observing => AskedFor::Taken,
        Mode::Resting | Mode::ReadOnly => AskedFor::Refused,
    }
}

/// What is done about an operator who wants to restore a snapshot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Restore {
    /// This server alone has the tree.
    Alone,
    /// This server's tree is that of the ensemble.
    AsLeader,
    /// Refused until the reconfiguration has ended.
    Later,
    /// Refused; the server may have got the tree from its leader.
    AskLeader,
    /// Refused: no leader is known.
    Refuse,
}

/// ```text
/// role                    reconfiguration under way   a restore is
/// standalone                         -                done alone
/// leading                           no                done as leader
/// leading                           yes               refused until it has ended
/// following, observing               -                refused: the leader is to be asked
/// resting, read-only                 -                refused
/// ```
pub const fn restore(mode: Mode, reconfigures: bool) -> Restore {
    match (mode, reconfigures) {
        (Mode::Standalone, true | false) => Restore::Alone,
        (Mode::Leading, false) => Restore::AsLeader,
        (Mode::Leading, true) => Restore::Later,
        (Mode::Following | Mode::Observing, true | false) => Restore::AskLeader,
        (Mode::Resting | Mode::ReadOnly, true | false) => Restore::Refuse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    const MODES: [Mode; 6] = [
        Mode::Resting,
        Mode::ReadOnly,
        Mode::Standalone,
        Mode::Leading,
        Mode::Following,
        Mode::Observing,
    ];
    const BOTH: [bool; 2] = [false, true];

    /// A row of a table: roles, the other fact (`None` matches any), and what is done.
    type Row<F, D> = (&'static [Mode], Option<F>, D);

    /// Exactly one row matches each combination and says what the function does; each row is used.
    #[track_caller]
    fn check<F: Copy + Debug + PartialEq, D: Copy + Debug + PartialEq>(
        facts: &[F],
        function: impl Fn(Mode, F) -> D,
        rows: &[Row<F, D>],
    ) {
        let mut used = vec![false; rows.len()];
        for mode in MODES {
            for &fact in facts {
                let is_match = |row: &Row<F, D>| {
                    row.0.contains(&mode) && row.1.is_none_or(|cell| cell == fact)
                };
                let matching: Vec<usize> =
                    (0..rows.len()).filter(|&at| is_match(&rows[at])).collect();
                let [at] = matching[..] else {
                    panic!("{mode:?} {fact:?} matches rows {matching:?}")
                };
                assert_eq!(function(mode, fact), rows[at].2, "{mode:?} {fact:?}");
                used[at] = true;
            }
        }
        assert!(used.iter().all(|used| *used), "a row is never used: {used:?}");
    }

    const PROCESSORS: &[Mode] = &[Mode::Standalone, Mode::Leading];
    const LEARNERS: &[Mode] = &[Mode::Following, Mode::Observing];

    #[test]
    fn every_role_has_one_row_for_every_command() {
        check(
            &BOTH,
            open,
            &[
                (&[Mode::Resting], None, Open::Drop),
                (&[Mode::ReadOnly], Some(true), Open::Local),
                (&[Mode::ReadOnly], Some(false), Open::Close),
                (&[Mode::Standalone], None, Open::Process),
                (&[Mode::Leading], Some(true), Open::Local),
                (&[Mode::Leading], Some(false), Open::Process),
                (LEARNERS, Some(true), Open::Local),
                (LEARNERS, Some(false), Open::Forward),
            ],
        );
        check(
            &BOTH,
            reopen,
            &[
                (&[Mode::Resting], None, Reopen::Drop),
                (&[Mode::ReadOnly], Some(true), Reopen::Local),
                (&[Mode::ReadOnly], Some(false), Reopen::ReadOnly),
                (PROCESSORS, Some(true), Reopen::Local),
                (PROCESSORS, Some(false), Reopen::Process),
                (LEARNERS, Some(true), Reopen::Local),
                (LEARNERS, Some(false), Reopen::Forward),
            ],
        );
        check(
            &[()],
            |mode, ()| writes(mode),
            &[
                (&[Mode::Resting], None, Writes::Drop),
                (&[Mode::ReadOnly], None, Writes::Refuse),
                (PROCESSORS, None, Writes::Process),
                (LEARNERS, None, Writes::Forward),
            ],
        );
        let keeps = &[Mode::Resting, Mode::ReadOnly, Mode::Standalone, Mode::Leading];
        check(
            &[()],
            |mode, ()| session_after_close(mode),
            &[(keeps, None, SessionAfterClose::Keep), (LEARNERS, None, SessionAfterClose::Forget)],
        );
    }

    #[test]
    fn every_role_has_one_row_for_what_an_operator_asks_for() {
        let idle = &[Mode::Resting, Mode::ReadOnly];
        let serving = &[Mode::Standalone, Mode::Leading, Mode::Following, Mode::Observing];
        check(
            &[()],
            |mode, ()| snapshot(mode),
            &[(serving, None, AskedFor::Taken), (idle, None, AskedFor::Refused)],
        );
        check(
            &BOTH,
            restore,
            &[
                (&[Mode::Standalone], None, Restore::Alone),
                (&[Mode::Leading], Some(false), Restore::AsLeader),
                (&[Mode::Leading], Some(true), Restore::Later),
                (LEARNERS, None, Restore::AskLeader),
                (idle, None, Restore::Refuse),
            ],
        );
    }

    #[test]
    fn every_role_has_one_row_for_every_packet_of_another_server() {
        let never = &[Mode::Resting, Mode::ReadOnly, Mode::Standalone, Mode::Observing];
        check(
            &[()],
            |mode, ()| from_learner(mode),
            &[
                (&[Mode::Leading], None, FromLearner::Process),
                (&[Mode::Following], None, FromLearner::Forward),
                (never, None, FromLearner::Never),
            ],
        );
        check(
            &[()],
            |mode, ()| ping(mode),
            &[
                (&[Mode::Resting], None, Ping::AnswerEmpty),
                (LEARNERS, None, Ping::Answer),
                (&[Mode::ReadOnly, Mode::Standalone, Mode::Leading], None, Ping::Never),
            ],
        );
        let never = &[Mode::Resting, Mode::ReadOnly, Mode::Standalone, Mode::Leading];
        check(
            &[()],
            |mode, ()| leaders_answer(mode),
            &[(LEARNERS, None, LeadersAnswer::Answer), (never, None, LeadersAnswer::Never)],
        );
    }

    /// A row asks only for parts that its role has.
    #[test]
    fn writes_are_processed_or_forwarded_only_by_roles_that_can() {
        for mode in MODES {
            for fact in BOTH {
                let processes = open(mode, fact) == Open::Process
                    || reopen(mode, fact) == Reopen::Process
                    || writes(mode) == Writes::Process;
                let forwards = open(mode, fact) == Open::Forward
                    || reopen(mode, fact) == Reopen::Forward
                    || writes(mode) == Writes::Forward
                    || session_after_close(mode) == SessionAfterClose::Forget
                    || from_learner(mode) == FromLearner::Forward
                    || ping(mode) == Ping::Answer
                    || leaders_answer(mode) == LeadersAnswer::Answer;
                assert!(!processes || PROCESSORS.contains(&mode), "{mode:?}");
                assert!(!forwards || LEARNERS.contains(&mode), "{mode:?}");
            }
        }
    }
}
