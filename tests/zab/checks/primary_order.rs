//! Transactions are committed in the order of their leader's proposals, without a gap, and a leader begins only after all that
//! earlier leaders committed (I-5, I-6, I-7).

use super::{Check, Event};
use oxkeeper::model::{Epoch, Zxid};
use support::disk::Entry;

#[derive(Clone, Debug, Default)]
pub struct PrimaryOrder {
    /// The last committed zxid, and how many transactions are committed.
    last: Zxid,
    count: usize,
    /// The newest epoch that was established.
    newest: Epoch,
}

impl PrimaryOrder {
    fn grow(&mut self, at: usize, tree: &[Entry], is_beginning: bool) -> Result<(), String> {
        for (zxid, _) in tree.iter().skip(self.count) {
            if zxid.epoch() < self.newest && !is_beginning {
                let newest = self.newest.0;
                return Err(format!("{at} serves {zxid:?} first after epoch {newest} began"));
            }
            if *zxid <= self.last {
                return Err(format!("{at} serves {zxid:?} after {:?}", self.last));
            }
            let begins = zxid.epoch() != self.last.epoch();
            let follows =
                if begins { zxid.counter() == 1 } else { Some(*zxid) == self.last.next() };
            if !follows {
                return Err(format!("{at} serves {zxid:?} right after {:?}", self.last));
            }
            (self.last, self.count) = (*zxid, self.count + 1);
        }
        Ok(())
    }
}

impl Check for PrimaryOrder {
    fn name(&self) -> &'static str {
        "primary order"
    }

    fn see(&mut self, event: &mut Event<'_>) -> Result<(), String> {
        match *event {
            Event::Leads { at, epoch, tree, .. } => {
                self.grow(at, tree, epoch > self.newest)?;
                self.newest = self.newest.max(epoch);
                Ok(())
            }
            Event::Follows { at, tree } | Event::Applied { at, tree, .. } => {
                self.grow(at, tree, false)
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn holes_steps_back_and_late_commits_are_found() {
    use super::planted::{entries, fails, holds, leads};
    let mut check = PrimaryOrder::default();
    holds(&mut check, leads(0, 1, &[]));
    fails(&mut check, Event::Follows { at: 0, tree: &entries(&[(1, 2)]) }, "right after");
    let tree = entries(&[(1, 1), (1, 2)]);
    holds(&mut check, Event::Follows { at: 0, tree: &tree });
    let hole = entries(&[(1, 1), (1, 2), (1, 4)]);
    fails(&mut check, Event::Follows { at: 0, tree: &hole }, "right after");
    let back = entries(&[(1, 1), (1, 2), (1, 1)]);
    fails(&mut check, Event::Follows { at: 0, tree: &back }, "serves 1:1 after");
    holds(&mut check, leads(1, 2, &tree));
    let late = entries(&[(1, 1), (1, 2), (1, 3)]);
    fails(&mut check, Event::Applied { at: 0, tree: &late, leads: None }, "after epoch 2 began");
}
