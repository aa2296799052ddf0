//! The leader of an epoch, and nobody else, proposes in it, without a gap, and begins with all that was committed before
//! (I-5, I-6, I-7, I-13).

use super::{Check, Seen};
use crate::model::{Epoch, Zxid};
use crate::sim::truth::Truth;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct PrimaryOrder {
    /// The last proposal of each epoch.
    last: BTreeMap<Epoch, Zxid>,
    newest: Epoch,
}

impl Check for PrimaryOrder {
    fn name(&self) -> &'static str {
        "primary order"
    }

    fn see(&mut self, seen: &Seen<'_>, truth: &Truth) -> Result<(), String> {
        match *seen {
            Seen::Leads { server, epoch, last, .. } => {
                if epoch <= last.epoch() {
                    return Err(format!("{server} leads epoch {} and has {last}", epoch.0));
                }
                // One whose epoch is over may hear only now that a quorum had its history: it commits nothing any more.
                if epoch < self.newest || truth.holds(last, truth.last()) {
                    self.newest = self.newest.max(epoch);
                    return Ok(());
                }
                let lost = truth.last();
                Err(format!(
                    "leader {server} begins with {last} and lacks {lost}, committed before"
                ))
            }
            Seen::Logs { server, zxid, .. } if truth.proposal(zxid).is_none() => {
                let epoch = zxid.epoch();
                let Some((leader, _)) = truth.leaders.get(&epoch) else {
                    return Err(format!("{server} logs {zxid}, and nobody leads its epoch"));
                };
                if *leader != server {
                    return Err(format!("{server} logs {zxid}, which {leader} never proposed"));
                }
                let before = self.last.insert(epoch, zxid).unwrap_or(Zxid::new(epoch, 0));
                if zxid.counter() != before.counter() + 1 {
                    return Err(format!("{server} proposes {zxid} behind {before}"));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted::{fails, holds, truth, zxid};
    use super::*;

    #[test]
    fn holes_strangers_and_late_leaders_are_found() {
        let (mut check, truth) = (PrimaryOrder::default(), truth());
        let leads = |epoch, last| Seen::Leads {
            server: 0,
            epoch: Epoch(epoch),
            last,
            holders: 2,
            quorum: 2,
        };
        let logs = |server, zxid| Seen::Logs { server, zxid, entry: b"" };
        holds(&mut check, &leads(1, Zxid::ZERO), &Truth::new(0));
        holds(&mut check, &logs(1, zxid(1, 4)), &truth);
        fails(&mut check, &logs(0, zxid(1, 6)), &truth, "behind 0x100000000");
        fails(&mut check, &logs(1, zxid(1, 7)), &truth, "never proposed");
        fails(&mut check, &logs(1, zxid(2, 1)), &truth, "nobody leads");
        fails(&mut check, &leads(2, zxid(1, 3)), &truth, "lacks 0x100000004");
        fails(&mut check, &leads(3, zxid(3, 1)), &truth, "and has");
        holds(&mut check, &leads(4, zxid(1, 4)), &truth);
        holds(&mut check, &leads(3, zxid(1, 3)), &truth);
    }
}
