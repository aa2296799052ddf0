//! Once faults stop, all servers have the same transactions, in memory and on disk, and the same configuration in force. The world
//! itself asserts that they come to rest.

use super::{Check, Event};
use support::disk::Entry;

#[derive(Clone, Debug, Default)]
pub struct Convergence(Option<(Vec<Entry>, i64)>);

impl Check for Convergence {
    fn name(&self) -> &'static str {
        "convergence"
    }

    fn see(&mut self, event: &mut Event<'_>) -> Result<(), String> {
        match *event {
            Event::Calm { at, tree, disk, view } => {
                let (first, first_view) = self.0.get_or_insert_with(|| (tree.to_vec(), view));
                if *first_view != view {
                    return Err(format!("{at} has {view:#x} in force, the first {first_view:#x}"));
                }
                if *first != tree {
                    let lens = (tree.len(), first.len());
                    return Err(format!("{at} has other transactions than the first: {lens:?}"));
                }
                if tree != disk {
                    return Err(format!("{at} has other transactions on disk than in memory"));
                }
                Ok(())
            }
            _ => {
                self.0 = None;
                Ok(())
            }
        }
    }
}

#[test]
fn server_that_lacks_transactions_or_a_configuration_is_found() {
    use super::planted::{entries, fails, holds};
    let tree = entries(&[(1, 1), (1, 2)]);
    let mut check = Convergence::default();
    let calm = |at, tree, disk, view| Event::Calm { at, tree, disk, view };
    holds(&mut check, calm(0, &tree, &tree, 5));
    fails(&mut check, calm(1, &tree, &tree[..1], 5), "on disk");
    fails(&mut check, calm(2, &tree[..1], &tree[..1], 5), "than the first");
    fails(&mut check, calm(3, &tree, &tree, 4), "0x4 in force");
}
