//! Nobody says what its disk does not know yet: epochs, histories and acknowledgements (I-8, I-12).

use super::{Check, Seen};
use crate::sim::truth::Truth;
use crate::zab::Packet;

pub struct Promises;

impl Check for Promises {
    fn name(&self) -> &'static str {
        "promises"
    }

    fn see(&mut self, seen: &Seen<'_>, _: &Truth) -> Result<(), String> {
        match *seen {
            Seen::ToLearner { server, packet: Packet::LeaderInfo { epoch }, durable }
                if durable.accepted < *epoch =>
            {
                let (epoch, saved) = (epoch.0, durable.accepted.0);
                Err(format!("{server} tells of epoch {epoch}, and its disk of {saved}"))
            }
            Seen::ToLearner { server, packet: Packet::NewLeader { epoch, .. }, durable }
                if durable.current < *epoch =>
            {
                Err(format!("{server} says NEWLEADER before epoch {} is saved", epoch.0))
            }
            Seen::ToLeader { server, packet: Packet::AckEpoch { .. }, durable, told }
                if durable.accepted < told =>
            {
                Err(format!("{server} promises epoch {} before it is saved", told.0))
            }
            Seen::ToLeader { server, packet: Packet::Ack { zxid }, durable, .. } => {
                if zxid.counter() == 0 && durable.current < zxid.epoch() {
                    return Err(format!("{server} acknowledges {zxid} before its epoch is saved"));
                }
                if zxid.counter() != 0 && durable.last < *zxid {
                    let last = durable.last;
                    return Err(format!("{server} acknowledges {zxid}, and its disk has {last}"));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Durable;
    use super::super::planted::{fails, holds, truth, zxid};
    use super::*;
    use crate::model::{Epoch, Zxid};

    #[test]
    fn words_before_deeds_are_found() {
        let truth = truth();
        let durable = Durable { last: zxid(1, 3), accepted: Epoch(2), current: Epoch(1) };
        let mut check = Promises;
        let up = |packet: &Packet, told: u32, check: &mut dyn FnMut(&Seen<'_>)| {
            check(&Seen::ToLeader { server: 1, packet, durable, told: Epoch(told) });
        };
        let ack = |zxid: Zxid| Packet::Ack { zxid };
        up(&ack(zxid(1, 3)), 2, &mut |seen| holds(&mut Promises, seen, &truth));
        up(&ack(zxid(1, 0)), 2, &mut |seen| holds(&mut Promises, seen, &truth));
        up(&ack(zxid(1, 4)), 2, &mut |seen| fails(&mut Promises, seen, &truth, "its disk has"));
        up(&ack(zxid(2, 0)), 2, &mut |seen| fails(&mut Promises, seen, &truth, "its epoch"));
        let promise = Packet::AckEpoch { current: None, last: None };
        up(&promise, 2, &mut |seen| holds(&mut Promises, seen, &truth));
        up(&promise, 3, &mut |seen| fails(&mut Promises, seen, &truth, "promises epoch 3"));
        let down = |packet| Seen::ToLearner { server: 0, packet, durable };
        let info = Packet::LeaderInfo { epoch: Epoch(3) };
        fails(&mut check, &down(&info), &truth, "tells of epoch 3");
        let new = Packet::NewLeader { epoch: Epoch(2), view: bytes::Bytes::new() };
        fails(&mut check, &down(&new), &truth, "NEWLEADER");
    }
}
