//! What has to hold in every world, whatever fails: one file per property, each with the fault that it must find.
//!
//! The invariants of "Multi-Grained Specifications for Distributed System Model Checking and Verification" (EuroSys'25),
//! of which the first seven stand in ZooKeeper's own TLA+ specification too, and who keeps them here:
//!
//! ```text
//! I-1   primary uniqueness           one_leader
//! I-2   integrity                    agreement: what is served was proposed, once
//! I-3   agreement                    agreement: one history, of which every server that serves holds a beginning
//! I-4   total order                  agreement
//! I-5   local primary order          primary_order
//! I-6   global primary order         primary_order
//! I-7   primary integrity            primary_order: a leader begins with all that was committed before it
//! I-8   initial history integrity    promises: NEWLEADER is acknowledged when history and epoch are on disk
//! I-9   commit completeness          durability: what is committed is on the disks of a quorum, and stays there
//! I-10  history consistency          agreement, digests: equal last zxid, equal history and equal tree
//! I-11  no bad state                 states; the assertions of `zab`, which no world may set off; convergence
//! I-12  no bad acknowledgement       promises
//! I-13  no bad proposal              primary_order: nobody but the epoch's leader proposes, and without a gap
//! I-14  no bad commit                durability, agreement: only what was proposed and is on a quorum's disks
//! ```
//!
//! What clients are promised: `answers` (each says what is so at its zxid; a write is done once), `sessions`, `watches`,
//! `real_time`. That it all comes to a good end: `convergence`.

mod agreement;
mod answers;
mod convergence;
mod digests;
mod durability;
mod one_leader;
mod primary_order;
mod promises;
mod real_time;
mod sessions;
mod states;
mod watches;

use super::ask::{Body, Request};
use super::plan::Micros;
use super::truth::Truth;
use crate::model::{Epoch, EventKind, Zxid};
use crate::tree::Tree;
use crate::zab::Packet;
use jute::proto::ReplyHeader;

pub use convergence::Server;
pub use states::Standing;

/// What a server's disk holds for certain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Durable {
    /// The end of its history.
    pub last: Zxid,
    pub accepted: Epoch,
    pub current: Epoch,
}

/// What a world tells of.
pub enum Seen<'a> {
    /// A server has started, and this is what it found. `before`: what its disk held for certain.
    Started { server: usize, found: Durable, before: Durable, digest: u64 },
    /// An epoch is established. `holders` of `quorum` voters have all of its history on disk.
    Leads { server: usize, epoch: Epoch, last: Zxid, holders: usize, quorum: usize },
    /// A server hands this to its log.
    Logs { server: usize, zxid: Zxid, entry: &'a [u8] },
    /// A server serves with this tree, from now on or still. `leads`: with how many disks, and how many are enough.
    Applied { server: usize, last: Zxid, digest: u64, leads: Option<(usize, usize)> },
    /// A server serves, and believes something new.
    Stands { server: usize, standing: Standing, durable: Durable },
    /// A packet to a leader, by one that was told of epoch `told`.
    ToLeader { server: usize, packet: &'a Packet, durable: Durable, told: Epoch },
    /// A packet to a learner.
    ToLearner { server: usize, packet: &'a Packet, durable: Durable },
    /// A client sends something.
    Asked { client: usize, session: i64, xid: i32, request: &'a Request, at_us: Micros },
    /// A client is answered.
    Answered {
        client: usize,
        session: i64,
        request: &'a Request,
        header: ReplyHeader,
        body: &'a Body,
        at_us: Micros,
    },
    /// A client hears of a change.
    Event { client: usize, zxid: i64, kind: EventKind, path: &'a str },
    /// A client's connection is gone, with all that was not answered on it.
    Parted { client: usize },
    /// A client has a session: a new one, or the one it had.
    Welcomed { client: usize, session: i64, is_new: bool },
    /// A client is told that its session is no more.
    Expired { client: usize, session: i64 },
    /// All faults are over and everything has come to rest: each server's tree.
    Calm { servers: &'a [Server<'a>] },
    /// It should have come to rest long ago.
    Restless { why: &'a str },
}

pub trait Check {
    fn name(&self) -> &'static str;

    /// # Errors
    /// What does not hold.
    fn see(&mut self, seen: &Seen<'_>, truth: &Truth) -> Result<(), String>;
}

/// What does not hold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// Name of the check; `panic` when the server itself found it.
    pub check: &'static str,
    pub what: String,
}

pub struct Checks {
    pub truth: Truth,
    all: Vec<Box<dyn Check>>,
}

impl Checks {
    /// * `first`: a new server's tree.
    pub fn new(first: &Tree) -> Self {
        let all: Vec<Box<dyn Check>> = vec![
            Box::<one_leader::OneLeader>::default(),
            Box::<primary_order::PrimaryOrder>::default(),
            Box::<agreement::Agreement>::default(),
            Box::new(digests::Digests),
            Box::new(durability::Durability),
            Box::new(promises::Promises),
            Box::<answers::Answers>::default(),
            Box::<real_time::RealTime>::default(),
            Box::<sessions::Sessions>::default(),
            Box::<watches::Watches>::default(),
            Box::new(convergence::Convergence),
            Box::new(states::States),
        ];
        Self { truth: Truth::new(first.digest()), all }
    }

    /// # Errors
    /// The first property that does not hold.
    pub fn see(&mut self, seen: &Seen<'_>) -> Result<(), Failure> {
        let fail = |check| move |what| Failure { check, what };
        match seen {
            // Judged before it becomes the truth.
            Seen::Leads { server, epoch, last, .. } => {
                self.all.iter_mut().take(2).try_for_each(|check| {
                    check.see(seen, &self.truth).map_err(fail(check.name()))
                })?;
                self.truth.leaders.insert(*epoch, (*server, *last));
                self.grow(*last)?;
                return self.rest(seen, 2);
            }
            Seen::Logs { zxid, entry, .. } => {
                self.rest(seen, 0)?;
                if self.truth.proposal(*zxid).is_none() {
                    self.truth.propose(*zxid, bytes::Bytes::copy_from_slice(entry));
                }
                return Ok(());
            }
            // Only a leader decides what is committed.
            Seen::Applied { last, leads: Some(_), .. } => self.grow(*last)?,
            _ => {}
        }
        self.rest(seen, 0)
    }

    fn rest(&mut self, seen: &Seen<'_>, from: usize) -> Result<(), Failure> {
        self.all.iter_mut().skip(from).try_for_each(|check| {
            let name = check.name();
            check.see(seen, &self.truth).map_err(|what| Failure { check: name, what })
        })
    }

    /// A leader has committed all through `last`.
    fn grow(&mut self, last: Zxid) -> Result<(), Failure> {
        let known = self.truth.last();
        if last <= known {
            return Ok(());
        }
        let check = "agreement";
        let zxids = self.truth.between(known, last);
        let zxids = zxids.map_err(|what| Failure { check, what })?;
        self.truth.commit(&zxids).map_err(|what| Failure { check, what })
    }
}

#[cfg(test)]
pub mod planted {
    //! For the tests of the checks: a short history, and what each check makes of it.

    use super::*;
    use crate::model::{SessionId, op};
    use crate::tree::txn::{CreateKind, write};
    use jute::Encode;
    use jute::txn::{TxnDigest, TxnHeader};

    pub fn zxid(epoch: u32, counter: u32) -> Zxid {
        Zxid::new(Epoch(epoch), counter)
    }

    pub fn entry(
        zxid: Zxid,
        (session, xid): (i64, i32),
        kind: i32,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        let header =
            TxnHeader { client_id: session, cxid: xid, zxid: zxid.to_wire(), time: 1, kind };
        header.encode(&mut bytes);
        body(&mut bytes);
        TxnDigest { version: 2, tree_digest: zxid.to_wire() }.encode(&mut bytes);
        bytes
    }

    pub const SESSION: SessionId = SessionId(7);

    /// Epoch 1, led by server 0: session 7 opens, makes /a, sets it (version 1), makes the ephemeral /e.
    pub fn truth() -> Truth {
        let mut truth = Truth::new(0);
        truth.leaders.insert(Epoch(1), (0, Zxid::ZERO));
        let open = crate::model::OPEN_ACL;
        let entries = [
            entry(zxid(1, 1), (7, 0), op::CREATE_SESSION, |to| jute::put_i32(to, 1000)),
            entry(zxid(1, 2), (7, 1), op::CREATE, |to| {
                write::create(to, "/a", Some(b"1"), open, CreateKind::Persistent, 1);
            }),
            entry(zxid(1, 3), (7, 2), op::SET_DATA, |to| {
                write::set_data(to, "/a", Some(b"2"), 1);
            }),
            entry(zxid(1, 4), (7, 3), op::CREATE, |to| {
                write::create(to, "/e", Some(b"3"), open, CreateKind::Ephemeral, 2);
            }),
        ];
        for (at, bytes) in entries.into_iter().enumerate() {
            truth.propose(zxid(1, at as u32 + 1), bytes.into());
        }
        let zxids = truth.between(Zxid::ZERO, zxid(1, 4)).expect("one epoch");
        truth.commit(&zxids).expect("well formed");
        truth
    }

    #[track_caller]
    pub fn fails(check: &mut dyn Check, seen: &Seen<'_>, truth: &Truth, about: &str) {
        let error = check.see(seen, truth).expect_err("it finds the planted fault");
        assert!(error.contains(about), "{error}");
    }

    #[track_caller]
    pub fn holds(check: &mut dyn Check, seen: &Seen<'_>, truth: &Truth) {
        check.see(seen, truth).expect("nothing is wrong with this");
    }
}
