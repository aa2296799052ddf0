//! A learner and its leader speak in the order of the protocol: the first ACK on a connection is that of NEWLEADER, the ACKs of
//! proposals rise, and a learner leaves a leader that sends a packet of another phase (I-12).
//!
//! Source: `LearnerHandler.run` ("Next packet was supposed to be an ACK"), `Leader.waitForNewLeaderAck`, `Learner.registerWithLeader`,
//! `Learner.syncWithLeader`, ZooKeeper 3.9.5.

use super::{Check, Event};
use oxkeeper::model::{Epoch, Zxid};
use oxkeeper::zab::Packet;
use std::collections::BTreeMap;

/// How far a learner is, by the packets on its connection alone.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Phase {
    /// FOLLOWERINFO or OBSERVERINFO was sent.
    #[default]
    Asking,
    /// LEADERINFO was received.
    EpochKnown,
    /// ACKEPOCH was sent.
    Promised,
    /// DIFF, TRUNC or SNAP was received.
    Synchronising,
    /// NEWLEADER was received.
    Named,
    /// UPTODATE was received.
    UpToDate,
}

impl Phase {
    /// The phase after a packet of the leader; `None`: the packet belongs to another phase.
    pub fn after(self, packet: &Packet) -> Option<Self> {
        use Phase::{Asking, EpochKnown, Named, Promised, Synchronising, UpToDate};
        Some(match (self, packet) {
            (_, Packet::Ping { .. }) => self,
            (Asking, Packet::LeaderInfo { .. }) => EpochKnown,
            (Promised, Packet::Diff { .. } | Packet::Trunc { .. } | Packet::Snap { .. }) => {
                Synchronising
            }
            (Synchronising, Packet::NewLeader { .. }) => Named,
            (Named | UpToDate, Packet::UpToDate) => UpToDate,
            (
                Synchronising | Named | UpToDate,
                Packet::Proposal { .. }
                | Packet::Commit { .. }
                | Packet::Inform { .. }
                | Packet::CommitAndActivate { .. }
                | Packet::InformAndActivate { .. },
            ) => self,
            (UpToDate, Packet::Sync | Packet::Revalidate { .. }) => self,
            _ => return None,
        })
    }
}

#[derive(Clone, Debug, Default)]
struct Learner {
    phase: Phase,
    /// The last zxid that was acknowledged on this connection; `None`: NEWLEADER was not.
    acked: Option<Zxid>,
    /// The packet of another phase that the learner was sent.
    stray: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Phases(BTreeMap<usize, Learner>);

impl Phases {
    /// How far a learner is; `None`: it has no leader.
    pub fn phase(&self, at: usize) -> Option<Phase> {
        self.0.get(&at).map(|learner| learner.phase)
    }

    fn on_ack(&mut self, at: usize, zxid: Zxid, epoch: Epoch) -> Result<(), String> {
        let learner = self.0.entry(at).or_default();
        let is_epoch = zxid == Zxid::new(epoch, 0);
        match learner.acked {
            None if is_epoch => learner.acked = Some(zxid),
            None => return Err(format!("{at} acknowledges {zxid:?} before NEWLEADER")),
            Some(_) if is_epoch => {}
            Some(before) if zxid <= before => {
                return Err(format!("{at} acknowledges {zxid:?} after {before:?}"));
            }
            Some(_) => learner.acked = Some(zxid),
        }
        Ok(())
    }
}

impl Check for Phases {
    fn name(&self) -> &'static str {
        "phases"
    }

    fn see(&mut self, event: &mut Event<'_>) -> Result<(), String> {
        match *event {
            Event::Leaves { at } => {
                self.0.remove(&at);
            }
            Event::ToLeader { at, packet, epoch, .. } => match packet {
                Packet::FollowerInfo { .. } | Packet::ObserverInfo { .. } => {
                    self.0.insert(at, Learner::default());
                }
                Packet::AckEpoch { .. } => self.0.entry(at).or_default().phase = Phase::Promised,
                Packet::Ack { zxid } => return self.on_ack(at, *zxid, epoch),
                _ => {}
            },
            Event::FromLeader { at, packet } => {
                let Some(learner) = self.0.get_mut(&at) else { return Ok(()) };
                if let Some(stray) = &learner.stray {
                    return Err(format!("{at} goes on under its leader after {stray}"));
                }
                match learner.phase.after(packet) {
                    Some(phase) => learner.phase = phase,
                    None => {
                        let (name, phase) = (packet.name(), learner.phase);
                        learner.stray = Some(format!("{name} while {phase:?}"));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted::{fails, holds};
    use super::*;
    use oxkeeper::model::ServerId;
    use oxkeeper::zab::LearnerInfo;
    use support::disk::Disk;

    #[test]
    fn early_and_repeated_acknowledgements_and_overlooked_packets_are_found() {
        let (disk, mut check) = (Disk::default(), Phases::default());
        let zxid = |counter| Zxid::new(Epoch(2), counter);
        let to_leader = |packet: &Packet, judge: &mut dyn FnMut(Event<'_>)| {
            let (epoch, known) = (Epoch(2), &mut std::iter::empty());
            judge(Event::ToLeader { at: 1, packet, disk: &disk, epoch, votes: true, known });
        };
        let info = LearnerInfo { id: ServerId(1), protocol_version: 0x1_0000, view_version: 0 };
        let hello = Packet::FollowerInfo { accepted: Epoch(1), info };
        to_leader(&hello, &mut |event| holds(&mut check, event));
        let packet = &Packet::LeaderInfo { epoch: Epoch(2) };
        holds(&mut check, Event::FromLeader { at: 1, packet });
        let promise = Packet::AckEpoch { current: Some(Epoch(1)), last: None };
        to_leader(&promise, &mut |event| holds(&mut check, event));
        holds(&mut check, Event::FromLeader { at: 1, packet: &Packet::Diff { zxid: zxid(0) } });
        let ack = |counter| Packet::Ack { zxid: zxid(counter) };
        to_leader(&ack(1), &mut |event| fails(&mut check, event, "before NEWLEADER"));
        for counter in [0, 1, 0, 2] {
            to_leader(&ack(counter), &mut |event| holds(&mut check, event));
        }
        to_leader(&ack(2), &mut |event| fails(&mut check, event, "after"));
        // A packet of another phase: the learner leaves, or the next packet shows that it did not.
        holds(&mut check, Event::FromLeader { at: 1, packet: &Packet::UpToDate });
        let packet = &Packet::Ping { zxid: 0, touched: None };
        fails(&mut check, Event::FromLeader { at: 1, packet }, "after UPTODATE");
        holds(&mut check, Event::Leaves { at: 1 });
        holds(&mut check, Event::FromLeader { at: 1, packet });
    }
}
