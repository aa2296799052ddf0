//! The members of an ensemble, and which sets of voters are a quorum.

mod change;
mod fields;
mod member;
mod text;

use super::{Epoch, ServerId, Zxid};
use std::collections::{BTreeMap, BTreeSet};

pub use change::ChangeError;
pub use fields::ViewError;
pub use member::{plain_host, without_brackets};

/// Whether a member votes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    Participant,
    Observer,
}

/// One address of a member, with its quorum port and its election port.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PeerAddress {
    /// A name as it was written, or an address in full and without the brackets of an IPv6 one.
    pub host: String,
    pub quorum_port: u16,
    pub election_port: u16,
}

/// A `server.N` line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Member {
    pub id: ServerId,
    /// At least one, sorted by host.
    pub addresses: Vec<PeerAddress>,
    pub role: Role,
    /// Where its clients connect: host (`None`: every address) and port.
    pub client: Option<(Option<String>, u16)>,
}

/// Which sets of voters are a quorum.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Rule {
    /// More than half of the voters.
    Majority,
    /// More than half of the weight in more than half of the groups; groups without weight do not count.
    Hierarchical { groups: BTreeMap<i64, BTreeSet<ServerId>>, weights: BTreeMap<ServerId, u64> },
}

/// One configuration of an ensemble.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct View {
    /// Zxid of the transaction that made it; 0 for a configuration from a file that was never changed.
    pub version: i64,
    pub members: BTreeMap<ServerId, Member>,
    pub rule: Rule,
}

impl View {
    /// The configuration of a standalone server.
    pub fn of_one(id: ServerId) -> Self {
        let member = Member { id, addresses: Vec::new(), role: Role::Participant, client: None };
        Self { version: 0, members: BTreeMap::from([(id, member)]), rule: Rule::Majority }
    }

    /// Whether a server that has promised the epoch `accepted` has promised that of this version.
    pub fn is_promised(&self, accepted: Epoch) -> bool {
        Zxid::from_wire(self.version).is_some_and(|at| at.epoch() <= accepted)
    }

    pub fn is_voter(&self, id: ServerId) -> bool {
        self.members.get(&id).is_some_and(|member| member.role == Role::Participant)
    }

    /// Whether a server is an observer in this configuration.
    pub fn is_observer(&self, id: ServerId) -> bool {
        self.members.get(&id).is_some_and(|member| member.role == Role::Observer)
    }

    /// The voters, in rising order.
    pub fn voters(&self) -> impl Iterator<Item = ServerId> {
        let votes = |member: &&Member| member.role == Role::Participant;
        self.members.values().filter(votes).map(|member| member.id)
    }

    /// Whether there is another voter than `me`: with a single one, no other server can lead it.
    pub fn has_other_voters(&self, me: ServerId) -> bool {
        self.voters().any(|voter| voter != me)
    }

    /// The weight of a member's vote: 1 if none is configured, and 0 for a server that is no voter.
    pub fn weight(&self, id: ServerId) -> u64 {
        match &self.rule {
            _ if !self.is_voter(id) => 0,
            Rule::Majority => 1,
            Rule::Hierarchical { weights, .. } => weights.get(&id).copied().unwrap_or(1),
        }
    }

    /// Whether the voters among `ids` are a quorum.
    ///
    /// Source: `QuorumMaj.containsQuorum`, `QuorumHierarchical.containsQuorum`, ZooKeeper 3.9.5.
    pub fn has_quorum(&self, ids: &BTreeSet<ServerId>) -> bool {
        match &self.rule {
            Rule::Majority => {
                let voters = self.voters().count();
                self.voters().filter(|id| ids.contains(id)).count() > voters / 2
            }
            Rule::Hierarchical { groups, weights } => {
                // Every member with a weight counts in its group's total, but only voters count in the part that is there.
                let whole = |group: &BTreeSet<ServerId>| {
                    let weight = |id| weights.get(id).copied().unwrap_or_else(|| self.weight(*id));
                    group.iter().map(|id| u128::from(weight(id))).sum::<u128>()
                };
                let part = |group: &BTreeSet<ServerId>| {
                    let there = group.iter().filter(|id| ids.contains(id));
                    there.map(|&id| u128::from(self.weight(id))).sum::<u128>()
                };
                let totals: Vec<_> = groups
                    .values()
                    .map(|group| (part(group), whole(group)))
                    .filter(|(_, total)| *total > 0)
                    .collect();
                let won = totals.iter().filter(|(there, total)| *there > total / 2).count();
                won > totals.len() / 2
            }
        }
    }

    /// Whether there are exactly two voters, without weights: an oracle may then decide which of them goes on without
    /// the other.
    pub fn is_pair(&self) -> bool {
        self.rule == Rule::Majority && self.voters().count() == 2
    }

    /// Whether it has the voters of another configuration, with the same weights and groups.
    pub fn has_quorums_of(&self, other: &Self) -> bool {
        self.voters().eq(other.voters()) && self.rule == other.rule
    }

    /// As [`View::has_quorum`]; `alone`: this one of two voters is enough.
    pub fn has_quorum_or(&self, ids: &BTreeSet<ServerId>, alone: Option<ServerId>) -> bool {
        self.lets(alone).is_some_and(|id| ids.contains(&id)) || self.has_quorum(ids)
    }

    /// As [`View::highest_agreed`]; `alone`: this one of two voters is enough.
    pub fn highest_agreed_or(
        &self,
        acked: &BTreeMap<ServerId, Zxid>,
        alone: Option<ServerId>,
    ) -> Option<Zxid> {
        match self.lets(alone) {
            Some(id) => acked.get(&id).copied(),
            None => self.highest_agreed(acked),
        }
    }

    fn lets(&self, alone: Option<ServerId>) -> Option<ServerId> {
        alone.filter(|id| self.is_pair() && self.is_voter(*id))
    }

    /// The highest zxid that a quorum has acknowledged. * `acked`: the last zxid that each server has acknowledged.
    pub fn highest_agreed(&self, acked: &BTreeMap<ServerId, Zxid>) -> Option<Zxid> {
        if self.rule == Rule::Majority {
            let mut zxids: Vec<Zxid> =
                self.voters().filter_map(|id| acked.get(&id).copied()).collect();
            zxids.sort_unstable();
            // With n voters, n/2 + 1 of them are a quorum: the one in that place from the top.
            return zxids.len().checked_sub(self.voters().count() / 2 + 1).map(|at| zxids[at]);
        }
        let mut zxids: Vec<Zxid> = acked.values().copied().collect();
        zxids.sort_unstable();
        let reached = |zxid: &Zxid| {
            acked.iter().filter(|(_, acked)| zxid <= acked).map(|(&id, _)| id).collect()
        };
        zxids.into_iter().rev().find(|zxid| self.has_quorum(&reached(zxid)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Epoch;

    fn view(voters: impl IntoIterator<Item = i64>, rule: Rule) -> View {
        let member = |id| Member {
            id: ServerId(id),
            addresses: Vec::new(),
            role: if id < 100 { Role::Participant } else { Role::Observer },
            client: None,
        };
        let members = voters.into_iter().map(|id| (ServerId(id), member(id))).collect();
        View { version: 0, members, rule }
    }

    fn set<const N: usize>(ids: [i64; N]) -> BTreeSet<ServerId> {
        ids.map(ServerId).into()
    }

    #[test]
    fn more_than_half_of_the_voters_are_a_quorum() {
        let zxid = |n| Zxid::new(Epoch(1), n);
        let three = view([1, 2, 3, 107], Rule::Majority);
        assert!(!three.has_quorum(&set([1, 107])));
        assert!(three.has_quorum(&set([1, 3])));
        let mut acked = BTreeMap::from([(ServerId(1), zxid(9)), (ServerId(107), zxid(9))]);
        assert_eq!(three.highest_agreed(&acked), None);
        acked.insert(ServerId(2), zxid(4));
        assert_eq!(three.highest_agreed(&acked), Some(zxid(4)));
        acked.insert(ServerId(3), zxid(6));
        assert_eq!(three.highest_agreed(&acked), Some(zxid(6)));
        assert!(!view([1, 2, 3, 4], Rule::Majority).has_quorum(&set([1, 2])));
    }

    // rows: Q-96
    #[test]
    fn one_of_two_voters_is_a_quorum_if_an_oracle_lets_it() {
        let zxid = |n| Zxid::new(Epoch(1), n);
        let acked = BTreeMap::from([(ServerId(1), zxid(9)), (ServerId(2), zxid(4))]);
        let two = view([1, 2, 107], Rule::Majority);
        let alone = |id| Some(ServerId(id));
        assert!(!two.has_quorum_or(&set([1]), None));
        assert!(two.has_quorum_or(&set([1]), alone(1)) && two.has_quorum_or(&set([1, 2]), None));
        assert!(!two.has_quorum_or(&set([2, 107]), alone(1)), "server 1 is not among them");
        assert!(!two.has_quorum_or(&set([107]), alone(107)), "an observer");
        assert_eq!(two.highest_agreed_or(&acked, alone(1)), Some(zxid(9)));
        assert_eq!(two.highest_agreed_or(&acked, None), Some(zxid(4)));
        let three = view(1..=3, Rule::Majority);
        assert!(!three.has_quorum_or(&set([1]), alone(1)), "there are three voters");
        assert_eq!(three.highest_agreed_or(&acked, alone(1)), Some(zxid(4)));
    }

    // rows: Q-95 C-64 C-65
    #[test]
    fn quorum_needs_more_than_half_the_weight_in_more_than_half_the_groups() {
        let groups = [(1, set([1, 2, 3])), (2, set([4, 5, 6])), (3, set([7, 8, 9]))];
        let weights =
            (1..=6).map(|id| (ServerId(id), 1)).chain((7..=9).map(|id| (ServerId(id), 0)));
        let rule = Rule::Hierarchical { groups: groups.into(), weights: weights.collect() };
        let view = view(1..=9, rule);
        assert!(view.has_quorum(&set([1, 2, 4, 5])));
        assert!(!view.has_quorum(&set([1, 2, 3, 4, 7, 8, 9])), "the third group weighs nothing");
        let zxid = |n| Zxid::new(Epoch(1), n);
        let acked = [(1, 5), (2, 4), (4, 9), (5, 7)].map(|(id, n)| (ServerId(id), zxid(n)));
        assert_eq!(view.highest_agreed(&acked.into()), Some(zxid(4)));
    }

    proptest::proptest! {
        /// Agreement depends on this: two quorums of one configuration have a voter in common. And a superset of a quorum is one.
        #[test]
        fn two_quorums_have_a_voter_in_common(
            places in proptest::collection::vec((0..3_i64, 0..4_u64, 0..5_u8), 1..9),
            (one, more) in (0_u32..512, 0_u32..512),
            by_groups: bool,
        ) {
            // One in five is an observer.
            let ids: Vec<i64> = places.iter().zip(1..).map(|((.., role), id)| id + 100 * i64::from(*role == 0)).collect();
            let mut groups: BTreeMap<i64, BTreeSet<ServerId>> = BTreeMap::new();
            for (id, (group, ..)) in ids.iter().zip(&places) {
                groups.entry(*group).or_default().insert(ServerId(*id));
            }
            let weights = ids.iter().zip(&places).map(|(id, (_, weight, _))| (ServerId(*id), *weight));
            let weights = weights.collect();
            let rule =
                if by_groups { Rule::Hierarchical { groups, weights } } else { Rule::Majority };
            let view = view(ids.iter().copied(), rule);
            let chosen = |mask: u32| -> BTreeSet<ServerId> {
                let there = ids.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1);
                there.map(|(_, id)| ServerId(*id)).collect()
            };
            let is_quorum = |mask| view.has_quorum(&chosen(mask));
            proptest::prop_assert!(!(is_quorum(one) && is_quorum(!one)), "{view:?}");
            proptest::prop_assert!(!is_quorum(one) || is_quorum(one | more), "{view:?}");
            let zxid = |mask| if mask { Zxid::new(Epoch(1), 2) } else { Zxid::new(Epoch(1), 1) };
            let acked = ids.iter().map(|id| (ServerId(*id), zxid(chosen(one).contains(&ServerId(*id)))));
            let agreed = view.highest_agreed(&acked.collect());
            proptest::prop_assert_eq!(agreed == Some(zxid(true)), is_quorum(one));
        }
    }

    #[test]
    fn weight_of_an_observer_counts_only_in_its_groups_total() {
        let text = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nserver.4=d:1:2:observer\ngroup.1=1:2:3:4";
        let of = |weight| View::parse(&format!("{text}\nweight.4={weight}")).unwrap();
        assert!(of(0).has_quorum(&set([1, 2])));
        assert!(!of(2).has_quorum(&set([1, 2, 4])) && of(2).has_quorum(&set([1, 2, 3])));
        assert!(
            !of(3).has_quorum(&set([1, 2, 3, 4])),
            "Java never decides with such weights either"
        );
        let huge = i64::MAX;
        let view = View::parse(&format!(
            "{text}\nweight.1={huge}\nweight.2={huge}\nweight.3={huge}\nweight.4=1"
        ));
        assert!(view.unwrap().has_quorum(&set([2, 3])));
    }
}
