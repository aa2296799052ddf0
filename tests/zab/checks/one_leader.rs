//! An epoch has one leader (I-1).

use super::{Check, Event};
use oxkeeper::model::Epoch;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct OneLeader(BTreeMap<Epoch, usize>);

impl Check for OneLeader {
    fn name(&self) -> &'static str {
        "one leader"
    }

    fn see(&mut self, event: &mut Event<'_>) -> Result<(), String> {
        let &mut Event::Leads { at, epoch, .. } = event else { return Ok(()) };
        match self.0.insert(epoch, at) {
            None => Ok(()),
            Some(other) => Err(format!("{at} leads epoch {}, which {other} led", epoch.0)),
        }
    }
}

#[test]
fn second_leader_of_an_epoch_is_found() {
    use super::planted::{fails, holds, leads};
    let mut check = OneLeader::default();
    holds(&mut check, leads(0, 1, &[]));
    holds(&mut check, leads(1, 2, &[]));
    fails(&mut check, leads(2, 1, &[]), "which 0 led");
    fails(&mut check, leads(1, 2, &[]), "which 1 led");
}
