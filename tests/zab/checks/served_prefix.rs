//! What a server has served to clients it serves for ever: neither an election nor a restart takes it back.

use super::{Check, Event};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct ServedPrefix(BTreeMap<usize, usize>);

impl Check for ServedPrefix {
    fn name(&self) -> &'static str {
        "served prefix"
    }

    fn see(&mut self, event: &mut Event<'_>) -> Result<(), String> {
        let (Event::Leads { at, tree, .. }
        | Event::Follows { at, tree }
        | Event::Applied { at, tree, .. }) = event
        else {
            return Ok(());
        };
        match self.0.insert(*at, tree.len()) {
            Some(before) if tree.len() < before => {
                Err(format!("{at} serves {} transactions, and had served {before}", tree.len()))
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn server_that_serves_fewer_transactions_again_is_found() {
    use super::planted::{entries, fails, holds};
    let tree = entries(&[(1, 1), (1, 2)]);
    let mut check = ServedPrefix::default();
    holds(&mut check, Event::Follows { at: 0, tree: &tree });
    holds(&mut check, Event::Follows { at: 1, tree: &tree[..1] });
    fails(&mut check, Event::Follows { at: 0, tree: &tree[..1] }, "had served 2");
}
