//! What is committed is on the disks of a quorum at that very moment, and no disk loses what it was said to have (I-9,
//! I-14).

use super::{Check, Seen};
use crate::model::Zxid;
use crate::sim::truth::Truth;

pub struct Durability;

impl Check for Durability {
    fn name(&self) -> &'static str {
        "durability"
    }

    fn see(&mut self, seen: &Seen<'_>, truth: &Truth) -> Result<(), String> {
        match *seen {
            Seen::Leads { server, last, holders, quorum, .. }
            | Seen::Applied { server, last, leads: Some((holders, quorum)), .. }
                if holders < quorum && last != Zxid::ZERO =>
            {
                Err(format!(
                    "leader {server} commits {last}, which {holders} of {quorum} disks have"
                ))
            }
            Seen::Started { server, found, before, .. } => {
                if !truth.holds(found.last, before.last) {
                    let (found, before) = (found.last, before.last);
                    return Err(format!("{server} starts with {found}, and had {before} on disk"));
                }
                if found.accepted < before.accepted || found.current < before.current {
                    return Err(format!("{server} starts with {found:?}, and had {before:?}"));
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
    use crate::model::Epoch;

    #[test]
    fn early_commits_and_forgetful_disks_are_found() {
        let truth = truth();
        let applied = |leads| Seen::Applied { server: 0, last: zxid(1, 2), digest: 0, leads };
        holds(&mut Durability, &applied(Some((2, 2))), &truth);
        holds(&mut Durability, &applied(None), &truth);
        fails(&mut Durability, &applied(Some((1, 2))), &truth, "1 of 2 disks");
        let before = Durable { last: zxid(1, 3), accepted: Epoch(2), current: Epoch(1) };
        let started = |found| Seen::Started { server: 1, found, before, digest: 0 };
        holds(&mut Durability, &started(before), &truth);
        let short = Durable { last: zxid(1, 2), ..before };
        fails(&mut Durability, &started(short), &truth, "had 0x100000003 on disk");
        let forgot = Durable { accepted: Epoch(1), ..before };
        fails(&mut Durability, &started(forgot), &truth, "accepted: Epoch(1)");
    }
}
