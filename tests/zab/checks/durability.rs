//! When a leader commits a transaction, it is on the disks of a quorum: at that very moment, not some time later.

use super::{Check, Event};

#[derive(Clone, Debug, Default)]
pub struct Durability;

impl Check for Durability {
    fn name(&self) -> &'static str {
        "durability"
    }

    fn see(&mut self, event: &mut Event<'_>) -> Result<(), String> {
        let (Event::Leads { at, holders, quorum, tree, .. }
        | Event::Applied { at, tree, leads: Some((holders, quorum)) }) = event
        else {
            return Ok(());
        };
        if tree.is_empty() || quorum <= holders {
            return Ok(());
        }
        let last = &tree[tree.len() - 1].0;
        Err(format!("leader {at} commits {last:?}, which {holders} of {quorum} disks have"))
    }
}

#[test]
fn commit_before_a_quorum_has_it_on_disk_is_found() {
    use super::planted::{entries, fails, holds};
    let tree = &entries(&[(1, 1)])[..];
    holds(&mut Durability, Event::Applied { at: 0, tree, leads: Some((2, 2)) });
    holds(&mut Durability, Event::Applied { at: 0, tree, leads: None });
    let early = Event::Applied { at: 0, tree, leads: Some((1, 2)) };
    fails(&mut Durability, early, "1 of 2 disks");
}
