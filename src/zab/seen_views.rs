//! From where a server knows its proposed configurations.

use crate::model::View;
use std::collections::BTreeSet;

/// Versions of configurations that were proposed.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenViews {
    /// Configurations in this server's history.
    pub in_history: BTreeSet<i64>,
    /// `in_history` and `outranked` before a truncation that is under way.
    pub before_cut: Option<(BTreeSet<i64>, Vec<View>)>,
    /// Configurations in the history of a server whose own was written by its operator (version 0), oldest first. They do not count until
    /// another server's configuration takes the place of the operator's.
    pub outranked: Vec<View>,
    /// The last configuration that was in force here, while the operator's (version 0) is: both count. A truncation does not remove it:
    /// it was committed.
    pub in_force_before: Option<View>,
    /// The configuration that NEWLEADER named.
    pub named: Option<i64>,
    /// Configurations in `.dynamic.next`, oldest first.
    pub saved: Vec<i64>,
    /// A configuration that is a transaction of this server's history, and the configuration before it.
    pub followed: Option<(i64, i64)>,
}

#[cfg(test)]
mod tests {
    use super::super::{Core, Peer, Settings};
    use super::View;
    use crate::model::{Epoch, Epochs, ServerId, Zxid};

    /// Members whose configuration is the first, of which server 2 alone is a quorum, and the second, of which it is no member.
    fn view(version: i64) -> View {
        let text = match version {
            0 => "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2",
            2 => "server.2=b:1:2\nserver.3=c:1:2\ngroup.1=2:3\nweight.2=2\nweight.3=1",
            3 => "server.1=a:1:2\nserver.3=c:1:2",
            _ => "server.1=a:1:2\nserver.2=b:1:2",
        };
        View::parse(&format!("{text}\nversion={version:x}")).unwrap()
    }

    /// Server 2, which starts with this configuration. Its history ends with 0:3.
    fn started(own: i64) -> Core {
        let settings = Settings { reconfigs: true, ..Settings::DEFAULT };
        let epochs = Epochs { accepted: Epoch(0), current: Epoch(0) };
        Peer::member(ServerId(2), settings, view(own), epochs, Zxid::from_wire(3)).core
    }

    fn versions(core: &Core) -> Vec<i64> {
        core.all_views().map(|view| view.version).collect()
    }

    /// An operator has written the configuration of a server that a reconfiguration had removed. It then hears of an older one.
    #[test]
    fn configuration_of_the_history_counts_once_an_older_one_replaces_the_operators() {
        for (heard, counting) in [(2, vec![2, 3]), (3, vec![3]), (4, vec![4])] {
            let mut core = started(0);
            core.see_outranked_views(vec![view(1), view(3)]);
            assert_eq!(versions(&core), [0]);
            core.activate(view(heard), &mut Vec::new());
            assert_eq!(versions(&core), counting);
        }
    }

    /// Its zoo.cfg was written anew, and a member that has been gone since an earlier configuration returns with that one.
    #[test]
    fn configuration_that_was_in_force_counts_beside_an_older_one() {
        for (heard, counting) in [(2, vec![2, 3]), (3, vec![3]), (4, vec![4])] {
            let mut core = started(0);
            core.see_last_in_force(view(3), &[].into());
            assert_eq!(versions(&core), [0, 3]);
            core.truncate(Zxid::from_wire(2).unwrap(), &mut Vec::new());
            core.activate(view(heard), &mut Vec::new());
            assert_eq!(versions(&core), counting);
        }
    }

    /// A server has adopted an older configuration, and starts again before the one that was in force is saved as a proposed one.
    #[test]
    fn configuration_that_was_in_force_counts_at_a_start_with_an_older_one() {
        for (own, beside, counting) in
            [(2, vec![1, 2], vec![2, 3]), (2, vec![1], vec![2]), (4, vec![2], vec![4])]
        {
            let mut core = started(own);
            core.see_last_in_force(view(3), &beside.into_iter().collect());
            assert_eq!(versions(&core), counting);
        }
    }

    #[test]
    fn truncated_configuration_of_the_history_counts_never() {
        let mut core = started(0);
        core.see_outranked_views(vec![view(3)]);
        core.truncate(Zxid::from_wire(2).unwrap(), &mut Vec::new());
        core.activate(view(2), &mut Vec::new());
        assert_eq!(versions(&core), [2]);
    }
}
