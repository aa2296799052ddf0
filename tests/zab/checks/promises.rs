//! No server sends an epoch, a NEWLEADER or an ACK before its disk has what that packet stands for (I-8, I-12), and no voter follows a
//! leader whose epoch is before one that it has promised. A server withholds its promise only if it has waited for the votes that it lacks,
//! and a lost history is replaced by none of an earlier epoch.

use super::{Check, Event};
use oxkeeper::zab::Packet;

/// For so long an election goes on for the votes without which a server can't promise to the leader: 400 ms.
const UNITE_TICKS: u64 = 80;

#[derive(Clone, Debug, Default)]
pub struct Promises;

impl Check for Promises {
    fn name(&self) -> &'static str {
        "promises"
    }

    fn see(&mut self, event: &mut Event<'_>) -> Result<(), String> {
        match event {
            Event::ToLearner { at, packet: Packet::LeaderInfo { epoch }, disk }
                if disk.accepted < *epoch =>
            {
                let (saved, epoch) = (disk.accepted.0, epoch.0);
                return Err(format!("{at} sends epoch {epoch}, and its disk has {saved}"));
            }
            Event::ToLearner { at, packet: Packet::NewLeader { epoch, .. }, disk }
                if disk.current < *epoch =>
            {
                return Err(format!("{at} sends NEWLEADER before epoch {} is saved", epoch.0));
            }
            Event::ToLeader { at, packet: Packet::AckEpoch { .. }, disk, epoch, .. }
                if disk.accepted < *epoch =>
            {
                return Err(format!("{at} promises epoch {} before it is saved", epoch.0));
            }
            Event::ToLeader {
                at,
                packet: Packet::AckEpoch { .. },
                disk,
                epoch,
                votes: true,
                ..
            } if *epoch < disk.accepted => {
                let (epoch, accepted) = (epoch.0, disk.accepted.0);
                return Err(format!(
                    "{at} follows in epoch {epoch}, and is promised to {accepted}"
                ));
            }
            Event::Withholds { at, ticks } if *ticks < UNITE_TICKS => {
                return Err(format!("{at} withholds its promise after {ticks} ticks"));
            }
            Event::Counts { at, disk, epoch } if *epoch < disk.current => {
                let (epoch, current) = (epoch.0, disk.current.0);
                return Err(format!("{at} counts as of epoch {current} with a tree of {epoch}"));
            }
            Event::ToLeader { at, packet: Packet::Ack { zxid }, disk, known, .. } => {
                let is_epoch = zxid.counter() == 0;
                if is_epoch && disk.current < zxid.epoch() {
                    return Err(format!("{at} acknowledges {zxid:?} before its epoch is saved"));
                }
                let lacks = |entry: &&_| !disk.whole().contains(entry);
                let mut said = known.filter(|(known, _)| known <= zxid);
                if let Some((lost, _)) = said.find(lacks) {
                    return Err(format!("{at} acknowledges {zxid:?}, and {lost:?} is not on disk"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[test]
fn packets_ahead_of_their_senders_disk_are_found() {
    use super::planted::{entries, fails, holds};
    use oxkeeper::model::{Epoch, Zxid};
    use oxkeeper::zab::Promise;
    use support::disk::{Disk, Write};
    let known = entries(&[(1, 1)]);
    let mut disk = Disk::default();
    let ack = |disk: &_, check: &mut dyn FnMut(Event<'_>)| {
        let packet = &Packet::Ack { zxid: Zxid::new(Epoch(2), 0) };
        let (epoch, known) = (Epoch(2), &mut known.iter());
        check(Event::ToLeader { at: 0, packet, disk, epoch, votes: true, known });
    };
    ack(&disk, &mut |event| fails(&mut Promises, event, "its epoch"));
    disk.perform(Write::Promise(Promise::Current, Epoch(2)));
    ack(&disk, &mut |event| fails(&mut Promises, event, "1:1 is not on disk"));
    disk.perform(Write::Append(known[0].clone()));
    ack(&disk, &mut |event| holds(&mut Promises, event));
    let packet = &Packet::AckEpoch { current: None, last: None };
    let promise = |disk: &_, epoch, votes, check: &mut dyn FnMut(Event<'_>)| {
        let (epoch, known) = (Epoch(epoch), &mut std::iter::empty());
        check(Event::ToLeader { at: 0, packet, disk, epoch, votes, known });
    };
    promise(&disk, 1, true, &mut |event| fails(&mut Promises, event, "promises epoch 1"));
    let mut promised = disk.clone();
    promised.perform(Write::Promise(Promise::Accepted, Epoch(5)));
    promise(&promised, 5, true, &mut |event| holds(&mut Promises, event));
    promise(&promised, 2, false, &mut |event| holds(&mut Promises, event));
    promise(&promised, 2, true, &mut |event| fails(&mut Promises, event, "is promised to 5"));
    fails(&mut Promises, Event::Withholds { at: 0, ticks: 79 }, "79 ticks");
    holds(&mut Promises, Event::Withholds { at: 0, ticks: 80 });
    let counts = |epoch| Event::Counts { at: 0, disk: &disk, epoch: Epoch(epoch) };
    fails(&mut Promises, counts(1), "of epoch 2 with a tree of 1");
    holds(&mut Promises, counts(2));
    let packet = &Packet::LeaderInfo { epoch: Epoch(3) };
    fails(&mut Promises, Event::ToLearner { at: 0, packet, disk: &disk }, "sends epoch 3");
    let packet = &Packet::NewLeader { epoch: Epoch(3), view: bytes::Bytes::new() };
    fails(&mut Promises, Event::ToLearner { at: 0, packet, disk: &disk }, "NEWLEADER");
}
