//! All servers serve the same transactions in the same order, each was proposed once, and none is ever lost (I-2, I-3, I-4, I-9).

use super::{Check, Event};
use bytes::Bytes;
use oxkeeper::model::Zxid;
use std::collections::BTreeMap;
use support::disk::Entry;

#[derive(Clone, Debug, Default)]
pub struct Agreement {
    proposed: BTreeMap<Zxid, Vec<Bytes>>,
    committed: Vec<Entry>,
    /// How far each server's tree was compared since it began to serve.
    compared: BTreeMap<usize, usize>,
}

impl Agreement {
    pub fn committed(&self) -> &[Entry] {
        &self.committed
    }

    fn compare(&mut self, at: usize, tree: &[Entry], from: usize) -> Result<(), String> {
        let common = tree.len().min(self.committed.len());
        let pairs = tree.iter().zip(&self.committed).enumerate().skip(from.min(common));
        for (n, (ours, theirs)) in pairs {
            if ours != theirs {
                return Err(format!("{at} serves {ours:?} as transaction {n}, others {theirs:?}"));
            }
        }
        for (zxid, payload) in &tree[common..] {
            if !self.proposed.get(zxid).is_some_and(|all| all.contains(payload)) {
                return Err(format!("{at} serves {zxid:?}, which was never proposed"));
            }
            self.committed.push((*zxid, payload.clone()));
        }
        self.compared.insert(at, tree.len());
        Ok(())
    }
}

impl Check for Agreement {
    fn name(&self) -> &'static str {
        "agreement"
    }

    fn see(&mut self, event: &mut Event<'_>) -> Result<(), String> {
        match *event {
            Event::Proposed { entry: (zxid, payload) } => {
                self.proposed.entry(*zxid).or_default().push(payload.clone());
                Ok(())
            }
            Event::Follows { at, tree } => self.compare(at, tree, 0),
            Event::Applied { at, tree, .. } => {
                let from = self.compared.get(&at).copied().unwrap_or(0);
                self.compare(at, tree, from)
            }
            Event::Leads { at, tree, .. } => {
                if tree.len() < self.committed.len() {
                    let lost = &self.committed[tree.len()];
                    return Err(format!("leader {at} has lost {lost:?}"));
                }
                self.compare(at, tree, 0)
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn reordered_lost_and_invented_transactions_are_found() {
    use super::planted::{entries, fails, holds, leads};
    let three = entries(&[(1, 1), (1, 2), (1, 3)]);
    let mut check = Agreement::default();
    for entry in &three {
        holds(&mut check, Event::Proposed { entry });
    }
    holds(&mut check, leads(0, 1, &[]));
    holds(&mut check, Event::Applied { at: 0, tree: &three[..2], leads: None });
    holds(&mut check, Event::Follows { at: 1, tree: &three[..1] });
    let other = entries(&[(1, 1), (1, 3)]);
    fails(&mut check, Event::Applied { at: 1, tree: &other, leads: None }, "as transaction 1");
    fails(&mut check, leads(2, 2, &three[..1]), "has lost");
    let invented = entries(&[(1, 1), (1, 2), (1, 4)]);
    fails(&mut check, Event::Applied { at: 0, tree: &invented, leads: None }, "never proposed");
}
