//! Which servers are a quorum, counted here without the code with which the servers count.

use oxkeeper::model::{Role, Rule, ServerId, View};

/// How many votes, or groups that are won, some servers have in a configuration, and how many a quorum needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Count {
    pub there: usize,
    pub needed: usize,
}

impl Count {
    /// * `is_there`: the servers that are counted.
    pub fn of(view: &View, is_there: impl Fn(ServerId) -> bool) -> Self {
        let votes = |id: ServerId| {
            view.members.get(&id).is_some_and(|member| member.role == Role::Participant)
        };
        let (groups, weights) = match &view.rule {
            Rule::Majority => {
                let voters: Vec<ServerId> =
                    view.members.keys().copied().filter(|id| votes(*id)).collect();
                let there = voters.iter().filter(|id| is_there(**id)).count();
                return Self { there, needed: voters.len() / 2 + 1 };
            }
            Rule::Hierarchical { groups, weights } => (groups, weights),
        };
        // For each group: the weight of the voters that are there, and the weight of the whole group.
        let weight = |id: &ServerId| weights.get(id).copied().unwrap_or(u64::from(votes(*id)));
        let sums = groups.values().map(|group| {
            let there = group.iter().filter(|id| votes(**id) && is_there(**id));
            (there.map(weight).sum::<u64>(), group.iter().map(weight).sum::<u64>())
        });
        let sums: Vec<(u64, u64)> = sums.filter(|(_, all)| 0 < *all).collect();
        let there = sums.iter().filter(|(there, all)| all < &(2 * there)).count();
        Self { there, needed: sums.len() / 2 + 1 }
    }

    pub const fn is_quorum(self) -> bool {
        self.needed <= self.there
    }
}

pub fn is_quorum(view: &View, is_there: impl Fn(ServerId) -> bool) -> bool {
    Count::of(view, is_there).is_quorum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::view_of;
    use std::collections::BTreeMap;

    /// Configurations of five voters, of two voters and three observers, and of groups whose servers weigh more or less, or nothing.
    fn views() -> Vec<View> {
        let ids = |ids: &[i64]| ids.iter().map(|&id| ServerId(id)).collect();
        let groups = BTreeMap::from([(1, ids(&[0, 1, 2])), (2, ids(&[3])), (3, ids(&[4]))]);
        let two_groups = BTreeMap::from([(1, ids(&[0, 1, 2])), (2, ids(&[3, 4]))]);
        let weights = |weights: [u64; 5]| (0..5).map(ServerId).zip(weights).collect();
        let rules = [
            Rule::Majority,
            Rule::Hierarchical { groups: groups.clone(), weights: weights([1; 5]) },
            Rule::Hierarchical { groups, weights: weights([3, 1, 1, 1, 0]) },
            Rule::Hierarchical { groups: two_groups, weights: weights([2, 2, 3, 0, 5]) },
        ];
        let of = |rule| View { rule, ..view_of(1, 0..5, []) };
        let few = view_of(1, [0, 1], [2, 3, 4]);
        rules.into_iter().map(of).chain([few]).collect()
    }

    #[test]
    fn two_quorums_of_a_configuration_have_a_voter_in_common() {
        for view in views() {
            let is_of = |set: u8| move |id: ServerId| set >> id.0 & 1 == 1;
            let quorums: Vec<u8> = (0..32).filter(|&set| is_quorum(&view, is_of(set))).collect();
            assert!(!quorums.is_empty(), "{view:?}");
            for (one, other) in quorums.iter().flat_map(|a| quorums.iter().map(move |b| (a, b))) {
                let is_in_both = is_of(one & other);
                let mut voters = view.voters();
                assert!(voters.any(is_in_both), "{one:#b} and {other:#b} of {view:?}");
            }
        }
    }
}
