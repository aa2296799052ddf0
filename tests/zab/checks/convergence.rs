//! Once faults stop, all servers have the same transactions, in memory and on disk. The world itself asserts that they come to
//! rest.

use super::{Check, Event};
use support::disk::Entry;

#[derive(Clone, Debug, Default)]
pub struct Convergence(Option<Vec<Entry>>);

impl Check for Convergence {
    fn name(&self) -> &'static str {
        "convergence"
    }

    fn see(&mut self, event: &mut Event<'_>) -> Result<(), String> {
        match *event {
            Event::Calm { at, tree, disk } => {
                let first = self.0.get_or_insert_with(|| tree.to_vec());
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
fn server_that_lacks_transactions_is_found() {
    use super::planted::{entries, fails, holds};
    let tree = entries(&[(1, 1), (1, 2)]);
    let mut check = Convergence::default();
    holds(&mut check, Event::Calm { at: 0, tree: &tree, disk: &tree });
    fails(&mut check, Event::Calm { at: 1, tree: &tree, disk: &tree[..1] }, "on disk");
    fails(&mut check, Event::Calm { at: 2, tree: &tree[..1], disk: &tree[..1] }, "than the first");
}
