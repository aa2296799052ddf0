//! An epoch has one leader (I-1).

use super::{Check, Seen};
use crate::model::Epoch;
use crate::sim::truth::Truth;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct OneLeader(BTreeMap<Epoch, usize>);

impl Check for OneLeader {
    fn name(&self) -> &'static str {
        "one leader"
    }

    fn see(&mut self, seen: &Seen<'_>, _: &Truth) -> Result<(), String> {
        let &Seen::Leads { server, epoch, .. } = seen else { return Ok(()) };
        match self.0.insert(epoch, server) {
            None => Ok(()),
            Some(other) => Err(format!("{server} leads epoch {}, which {other} led", epoch.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted::{fails, holds, truth, zxid};
    use super::*;

    #[test]
    fn two_leaders_are_found() {
        let (mut check, truth) = (OneLeader::default(), truth());
        let leads = |server, epoch| Seen::Leads {
            server,
            epoch: Epoch(epoch),
            last: zxid(1, 4),
            holders: 2,
            quorum: 2,
        };
        holds(&mut check, &leads(0, 1), &truth);
        holds(&mut check, &leads(1, 2), &truth);
        fails(&mut check, &leads(2, 1), &truth, "which 0 led");
        fails(&mut check, &leads(1, 2), &truth, "which 1 led");
    }
}
