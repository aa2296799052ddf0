//! The WARN of a member that serves no clients.

use crate::member::Reach;
use crate::model::STRANGERS;
use crate::zab::PeerState;

/// A member that serves no clients, and why that may be so.
pub struct Absence {
    pub state: PeerState,
    /// Its own data does not count, so it does not vote.
    pub is_unsure: bool,
    /// It had data when it started, whether it counts or not.
    pub has_data: bool,
    /// Seconds for which no client was served.
    pub away_s: u64,
    pub reach: Reach,
    /// Why it can't listen at its quorum port; `None`: it does.
    pub port_error: Option<String>,
    /// The voters of the last configuration in force, of which a leader needs a quorum as well, because zoo.cfg was written anew.
    pub last_voters: Option<String>,
}

impl Absence {
    /// One WARN with what an operator needs to know: since when, and which servers are missing for which reason.
    pub fn warn(&self) {
        match (self.state, &self.reach.deaf, &self.port_error) {
            (PeerState::Looking, Some(error), _) => self.warn_of_election_port(error),
            (PeerState::Looking, None, _) if self.is_unsure => self.warn_without_vote(),
            (PeerState::Looking, None, _) => self.warn_without_leader(),
            (PeerState::Leading, _, Some(error)) => {
                let (away_s, heard_of) = (self.away_s, self.reach.heard());
                tracing::warn!(
                    target: STRANGERS, away_s, %heard_of, %error,
                    "clients are not served: this server is to lead, and no learner can connect, as it can't listen at its quorum port; do \
                     what the error says"
                );
            }
            (PeerState::Leading, _, None) => {
                let (away_s, heard_of, missing) = self.fields();
                tracing::warn!(
                    target: STRANGERS, away_s, %heard_of, %missing,
                    "clients are not served: this server is to lead, and too few servers are in sync with it; look into their logs"
                );
            }
            (PeerState::Following | PeerState::Observing, ..) => {
                let (away_s, heard_of, missing) = self.fields();
                tracing::warn!(
                    target: STRANGERS, away_s, %heard_of, %missing,
                    "clients are not served: this server is not in sync with its leader; look into the leader's log"
                );
            }
        }
    }

    fn fields(&self) -> (u64, String, String) {
        (self.away_s, self.reach.heard(), self.reach.missing())
    }

    fn warn_of_election_port(&self, error: &str) {
        let (away_s, heard_of, missing) = self.fields();
        tracing::warn!(
            target: STRANGERS, away_s, %heard_of, %missing, %error,
            "clients are not served: no server can connect to this one, as it can't listen at its election port; do what the error says"
        );
    }

    /// This server does not vote.
    fn warn_without_vote(&self) {
        let (away_s, heard_of, missing) = self.fields();
        let without_vote = self.reach.without_vote();
        if self.has_data {
            tracing::warn!(
                target: STRANGERS, away_s, %heard_of, %missing, without_vote = without_vote.map(display),
                "clients are not served: this server hears of no leader, and it does not vote, as its own data does not count (an ERROR of its \
                 start says why); nothing to do here, a majority of the other servers has to run with data that counts"
            );
        } else {
            tracing::warn!(
                target: STRANGERS, away_s, %heard_of, %missing, without_vote = without_vote.map(display),
                "clients are not served: this server hears of no leader, and it has no data, so it does not vote; start a majority of the \
                 servers with their data, or, in a new ensemble, make a file initialize on each"
            );
        }
    }

    /// This server votes, and hears of no leader.
    fn warn_without_leader(&self) {
        let (away_s, heard_of, missing) = self.fields();
        let last_voters = self.last_voters.as_deref();
        if let Some(other_lines) = self.reach.other_lines() {
            tracing::warn!(
                target: STRANGERS, away_s, %heard_of, %missing, %other_lines, last_voters = last_voters.map(display),
                "clients are not served: this server hears of no leader, and others have other server.N lines; correct the wrong ones, in \
                 zoo.cfg or in the dynamic file that it names, and restart those members"
            );
            return;
        }
        match self.reach.without_vote() {
            Some(without_vote) if self.reach.missing.is_empty() => tracing::warn!(
                target: STRANGERS, away_s, %heard_of, %without_vote,
                "clients are not served: all members are connected, and too few of them vote; do what the log of those without a vote says of \
                 their data"
            ),
            None if self.reach.missing.is_empty() => tracing::warn!(
                target: STRANGERS, away_s, %heard_of, last_voters = last_voters.map(display),
                "clients are not served: all members are connected, and none of them leads; look into their logs"
            ),
            without_vote => tracing::warn!(
                target: STRANGERS, away_s, %heard_of, %missing, without_vote = without_vote.map(display), last_voters = last_voters.map(display),
                "clients are not served: this server hears of no leader; start the missing servers, or let them connect, until a majority runs"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::Unreachable;
    use crate::model::ServerId;
    use crate::server::test_log::log_of;

    fn line(absence: &Absence) -> String {
        log_of(|| absence.warn())
    }

    fn absence(state: PeerState) -> Absence {
        let heard = vec![ServerId(2), ServerId(3)];
        let reach = Reach { heard, ..Reach::default() };
        let (port_error, last_voters) = (None, None);
        Absence {
            state,
            is_unsure: false,
            has_data: true,
            away_s: 9,
            reach,
            port_error,
            last_voters,
        }
    }

    #[test]
    fn looking_server_names_members_that_are_missing_or_have_no_vote() {
        let mut absence = absence(PeerState::Looking);
        assert!(line(&absence).contains("none of them leads"), "{}", line(&absence));
        absence.last_voters = Some("1 2 3".to_owned());
        assert!(line(&absence).contains("last_voters=1 2 3;"), "{}", line(&absence));
        absence.reach.without_vote = vec![ServerId(2)];
        let text = line(&absence);
        assert!(
            text.contains("too few of them vote") && text.contains("without_vote=2;"),
            "{text}"
        );
        let id = ServerId(4);
        let missing = Unreachable { id, address: "zk4:3888".to_owned(), error: None };
        absence.reach.missing = vec![missing];
        let text = line(&absence);
        assert!(text.contains("start the missing") && text.contains("without_vote=2;"), "{text}");
        absence.reach.other_lines = vec![(ServerId(2), "1 2 4".to_owned())];
        let text = line(&absence);
        assert!(text.contains("other_lines=2 has voters 1 2 4;"), "{text}");
        absence.is_unsure = true;
        let text = line(&absence);
        assert!(text.contains("its own data") && text.contains("without_vote=2;"), "{text}");
    }

    #[test]
    fn server_that_can_not_listen_names_its_own_port_as_the_cause() {
        let mut leader = absence(PeerState::Leading);
        assert!(line(&leader).contains("too few servers"), "{}", line(&leader));
        leader.port_error = Some("zk1:2888 is in use".to_owned());
        let text = line(&leader);
        assert!(text.contains("at its quorum port") && text.contains("zk1:2888"), "{text}");
        let mut looking = absence(PeerState::Looking);
        looking.reach.deaf = Some("zk1:3888 is in use".to_owned());
        let text = line(&looking);
        assert!(text.contains("at its election port") && text.contains("zk1:3888"), "{text}");
    }
}
