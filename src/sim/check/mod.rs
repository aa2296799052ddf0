//! The properties that must hold in every world, whatever fails. `tests/sim` has a planted fault for each, which it must find.
//!
//! The invariants of "Multi-Grained Specifications for Distributed System Model Checking and Verification" (EuroSys'25),
//! with the properties that keep them here. ZooKeeper's own TLA+ specification has the first seven too.
//!
//! ```text
//! I-1   primary uniqueness           one_leader
//! I-2   integrity                    agreement: what is served was proposed, once
//! I-3   agreement                    agreement: one history, of which every server that serves has a prefix
//! I-4   total order                  agreement
//! I-5   local primary order          primary_order
//! I-6   global primary order         primary_order
//! I-7   primary integrity            primary_order: a leader begins with all that was committed before it
//! I-8   initial history integrity    initial_histories, promises: NEWLEADER is acknowledged when history and epoch are on disk
//! I-9   commit completeness          durability: what is committed is on the disks of a quorum, and stays there
//! I-10  history consistency          agreement, digests: equal last zxid, equal history and equal tree
//! I-11  no bad state                 states; the assertions of `zab`, which must not fail in any world; convergence
//! I-12  no bad acknowledgement       promises: the acknowledged transaction itself is on the disk; acknowledgements: NEWLEADER first
//! I-13  no bad proposal              primary_order: only the epoch's leader proposes, and without a gap
//! I-14  no bad commit                durability, agreement: only what was proposed and is on a quorum's disks
//! ```
//!
//! The guarantees to clients: `answers` (each reply fits the state at its zxid; a write is done once), `sessions`, `watches`,
//! `real_time`, `early_expiry`, `living_sessions`. That every world settles: `convergence`. Beside these: `snapshots` (none has
//! what was truncated from the log), `configurations` (a configuration in force was committed, and no server goes back to an older one),
//! `quorums` (those that decided under one configuration have a voter in common), `memory` (unsent bytes for a server that reads nothing
//! are bounded), `closed_connections` (what a closed connection had received is discarded), `restores` (an operator is told that a tree is
//! restored only when it is committed; all zxids after it are later than all before it, and than those in the tree).

pub mod answers;
pub mod quorums;
pub mod restores;
pub mod seen;
pub mod servers;
pub mod sessions;
pub mod watches;

use super::history::History;
use crate::model::{View, Zxid};
use crate::tree::Tree;

pub use seen::{Answered, Check, Durable, Seen, Standing};

/// A property that does not hold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// Name of the check; `panic` if a server could not go on.
    pub check: &'static str,
    pub what: String,
}

/// Number of checks, the first ones, that see a new leader before the history has it.
const OF_LEADERS: usize = 2;

pub struct Checks {
    pub history: History,
    /// The name of a check whose findings are ignored.
    pub left_out: Option<&'static str>,
    all: Vec<(&'static str, Box<dyn Check>)>,
}

impl Checks {
    /// * `first`: a new server's tree.
    /// * `first_view`: the configuration that the ensemble begins with.
    pub fn new(first: &Tree, local_sessions: bool, first_view: View) -> Self {
        let all: Vec<(&'static str, Box<dyn Check>)> = vec![
            ("one leader", Box::new(servers::one_leader)),
            ("primary order", Box::new(servers::primary_order)),
            ("agreement", Box::<servers::Agreement>::default()),
            ("digests", Box::new(servers::digests)),
            ("durability", Box::<servers::Durability>::default()),
            ("configurations", Box::<servers::Configurations>::default()),
            ("quorums", Box::<quorums::Quorums>::default()),
            ("promises", Box::new(servers::promises)),
            ("acknowledgements", Box::<servers::Acknowledgements>::default()),
            ("initial histories", Box::<servers::InitialHistories>::default()),
            ("answers", Box::<answers::Answers>::default()),
            ("real time", Box::<sessions::RealTime>::default()),
            ("sessions", Box::<sessions::Sessions>::default()),
            ("early expiry", Box::new(sessions::early_expiry)),
            ("living sessions", Box::new(sessions::LivingSessions::default())),
            ("watches", Box::<watches::Watches>::default()),
            ("convergence", Box::new(servers::convergence)),
            ("states", Box::new(servers::states)),
            ("memory", Box::new(servers::memory)),
            ("closed connections", Box::new(servers::closed_connections)),
            ("snapshots", Box::new(servers::snapshots)),
            ("restores", Box::new(restores::restores)),
        ];
        Self {
            history: History::new(first.digest(), local_sessions, first_view),
            left_out: None,
            all,
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.all.iter().map(|(name, _)| *name)
    }

    /// # Errors
    /// The first property that does not hold.
    pub fn see(&mut self, seen: &Seen<'_>) -> Result<(), Failure> {
        let mut judged = 0;
        if let Seen::Destroyed { left, promised } = *seen {
            self.history.lose(left, promised);
        }
        if let Seen::Leads { server, epoch, last, .. } = *seen {
            judged = OF_LEADERS;
            self.judge(seen, 0..judged)?;
            self.history.leaders.insert(epoch, (server, last));
        }
        if let Seen::Restores { server, zxid, tree } = *seen
            && self.history.is_alone
        {
            self.history.restore_alone(server, zxid, tree.before);
        }
        // Only a leader, or a standalone server, decides what is committed.
        if let Seen::Leads { last, .. } | Seen::Applied { last, commits: Some(_), .. } = *seen {
            self.commit_through(last)?;
        }
        if let Seen::InForce { server, view, .. } = *seen {
            self.history.see_in_force(server, view);
        }
        self.judge(seen, judged..self.all.len())?;
        if let Seen::Started { server, found, .. } = *seen
            && self.history.is_alone
        {
            self.history.start_alone(server, found.last);
        }
        if let Seen::Restores { zxid, tree, .. } = *seen {
            self.history.restore(zxid, tree.clone());
        }
        if let Seen::Logs { zxid, entry, .. } = *seen
            && self.history.proposal(zxid).is_none()
        {
            self.history.propose(zxid, bytes::Bytes::copy_from_slice(entry));
        }
        Ok(())
    }

    fn judge(&mut self, seen: &Seen<'_>, checks: std::ops::Range<usize>) -> Result<(), Failure> {
        let Self { history, left_out, all } = self;
        all[checks].iter_mut().try_for_each(|(name, check)| {
            let seen = check.see(seen, history);
            let seen = if *left_out == Some(*name) { Ok(()) } else { seen };
            seen.map_err(|what| Failure { check: name, what })
        })
    }

    fn commit_through(&mut self, last: Zxid) -> Result<(), Failure> {
        let known = self.history.last();
        if last <= known {
            return Ok(());
        }
        let zxids = self.history.between(known, last);
        let committed = zxids.and_then(|zxids| self.history.commit(&zxids));
        committed.map_err(|what| Failure { check: "agreement", what })
    }
}
