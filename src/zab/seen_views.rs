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
    /// Configurations in the history of a server whose own was written by its operator (version 0), oldest first. Those that are newer than the
    /// last one in force count beside the operator's. The others do not count until another server's configuration takes the place of the
    /// operator's.
    pub outranked: Vec<View>,
    /// The last configuration that was in force here, and then later ones that were saved when proposed, while the operator's (version 0) is in
    /// force: all count. A truncation does not remove them.
    pub in_force_before: Vec<View>,
    /// The configuration that NEWLEADER named.
    pub named: Option<i64>,
    /// Configurations in `.dynamic.next`, oldest first.
    pub saved: Vec<i64>,
    /// The newest in `.dynamic.next` has not counted since the start, and nothing has dialed its members.
    pub is_newest_unread: bool,
    /// A configuration that is a transaction of this server's history, and the configuration before it.
    pub followed: Option<(i64, i64)>,
}

impl SeenViews {
    /// The configurations that count beside the operator's (version 0).
    pub fn beside_operators(&self) -> impl Iterator<Item = &View> {
        let last = self.in_force_before.first();
        let is_newer = move |view: &&View| last.is_some_and(|last| last.version < view.version);
        self.in_force_before.iter().chain(self.outranked.iter().filter(is_newer))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Action, Core, Peer, Settings};
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
            core.see_last_in_force(view(3), None, &[].into(), Vec::new());
            assert_eq!(versions(&core), [0, 3]);
            core.truncate(Zxid::from_wire(2).unwrap(), false, &mut Vec::new());
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
            core.see_last_in_force(view(3), None, &beside.into_iter().collect(), Vec::new());
            assert_eq!(versions(&core), counting);
        }
    }

    /// A crash had come between `.dynamic.next` and the log. After the restart the configuration does not count, and a leader names it.
    #[test]
    fn members_of_a_saved_configuration_are_dialed_once_it_counts() {
        for newest_counts in [false, true] {
            let (mut core, mut out) = (started(1), Vec::new());
            core.see_saved_views(vec![view(2)], newest_counts);
            core.hear_view(&view(2).to_string().into());
            core.dial_saved_views(&mut out);
            core.dial_saved_views(&mut out);
            let is_news =
                matches!(&out[..], [Action::ViewsProposed { views }] if *views == [view(2)]);
            assert!(is_news != newest_counts, "{newest_counts} {out:?}");
            assert_eq!(versions(&core), [1, 2]);
        }
    }

    /// Version 3 has other voters than version 1, and version 4 has the same.
    #[test]
    fn newer_configuration_with_other_voters_is_ignored_without_reconfig_enabled() {
        for (reconfigs, own, leaders, expected) in
            [(false, 1, 3, true), (false, 1, 4, false), (false, 4, 3, false), (true, 1, 3, false)]
        {
            let mut core = started(own);
            core.settings.reconfigs = reconfigs;
            assert_eq!(core.ignores(&view(leaders)), expected, "{reconfigs} {own} {leaders}");
        }
    }

    /// It was stopped between the ACK and the commit of a reconfiguration, and then its zoo.cfg was written anew. What its history has counts until
    /// it is truncated; what `.dynamic.next` has, which may be in no history, until a leader's history comes without it.
    #[test]
    fn newer_configurations_than_the_last_one_in_force_count_beside_the_operators() {
        for (last, saved, logged, counting, after_cut) in [
            (1, vec![], vec![1, 3], vec![0, 1, 3], vec![0, 1]),
            (3, vec![], vec![1, 3], vec![0, 3], vec![0, 3]),
            (2, vec![1, 3], vec![1], vec![0, 2, 3], vec![0, 2]),
            (1, vec![2, 3], vec![2], vec![0, 1, 2, 3, 2], vec![0, 1, 2]),
        ] {
            let mut core = started(0);
            let of = |versions: Vec<i64>| versions.into_iter().map(view).collect::<Vec<_>>();
            core.see_last_in_force(view(last), None, &[].into(), of(saved));
            core.see_outranked_views(of(logged));
            assert_eq!(versions(&core), counting);
            core.truncate(Zxid::from_wire(2).unwrap(), false, &mut Vec::new());
            core.forget_dead_views(&mut Vec::new());
            assert_eq!(versions(&core), after_cut);
        }
    }

    /// It has heard of a later configuration, and has not promised the epoch of that.
    #[test]
    fn last_configuration_of_a_promised_epoch_counts_beside_the_operators() {
        let heard = View { version: Zxid::new(Epoch(1), 1).to_wire(), ..view(1) };
        for (promised, saved, counting) in [
            (Some(view(2)), vec![view(1), view(3)], vec![0, 2, 3]),
            (Some(heard.clone()), vec![view(3)], vec![0]),
            (None, vec![view(3)], vec![0]),
        ] {
            let mut core = started(0);
            core.see_last_in_force(heard.clone(), promised, &[].into(), saved);
            assert_eq!(versions(&core), counting);
        }
    }

    #[test]
    fn truncated_configuration_of_the_history_counts_never() {
        let mut core = started(0);
        core.see_outranked_views(vec![view(3)]);
        core.truncate(Zxid::from_wire(2).unwrap(), false, &mut Vec::new());
        core.activate(view(2), &mut Vec::new());
        assert_eq!(versions(&core), [2]);
    }
}
