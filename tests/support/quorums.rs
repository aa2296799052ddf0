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
