//! Logs and counts what happens to one member: elections, roles, learners.

use super::absence::Absence;
use crate::member::{Member, start};
use crate::metrics::{Queues, Registry};
use crate::model::{STRANGERS, ServerId, View};
use crate::replica::{self, Replica};
use crate::zab::{Note, PeerState, Stats, Sync};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The pause between two WARNs of a member that serves no clients.
const AWAY_PAUSE_US: u64 = 60_000_000;

/// Says why no learner can connect to this server; `None`: its port is bound.
type PortError<'p> = &'p dyn Fn() -> Option<String>;

/// What the log lines and metrics of one member depend on.
pub struct Roles {
    metrics: Arc<Registry>,
    /// The server had data when it started, whether it counts or not.
    has_data: bool,
    /// When the election under way began, and since when clients are not served. These times are monotonic microseconds.
    looking_us: u64,
    away_us: Option<u64>,
    /// When a WARN says again that clients are not served.
    away_warning_us: u64,
    /// When the last election ended, when synchronisation with the leader began, when clients began to be served.
    elected_us: u64,
    promised_us: u64,
    serving_us: u64,
    state: PeerState,
    queues: Queues,
    /// The part of the peer's counters that is in the registry already.
    published: Stats,
    published_of_replica: replica::Stats,
    /// Proposals and commits that are in the observer master's metrics already, or came while this server was none.
    relayed: (u64, u64),
}

impl Roles {
    pub fn new(metrics: Arc<Registry>, has_data: bool) -> Self {
        Self {
            metrics,
            has_data,
            looking_us: 0,
            away_us: None,
            away_warning_us: 0,
            elected_us: 0,
            promised_us: 0,
            serving_us: 0,
            state: PeerState::Looking,
            queues: Queues::OfLearner,
            published: Stats::default(),
            published_of_replica: replica::Stats::default(),
            relayed: (0, 0),
        }
    }

    /// When the last election ended, in monotonic microseconds.
    pub const fn elected_us(&self) -> u64 {
        self.elected_us
    }

    /// When clients began to be served, in monotonic microseconds.
    pub const fn serving_us(&self) -> u64 {
        self.serving_us
    }

    /// Logs and counts what has happened since the last call.
    pub fn publish(&mut self, member: &mut Member, port_error: PortError<'_>, now_us: u64) {
        self.publish_replica(&mut member.replica, now_us);
        self.warn_if_away(member, port_error, now_us);
    }

    fn publish_replica(&mut self, replica: &mut Replica, now_us: u64) {
        for note in replica.notes() {
            let core = &replica.peer().core;
            if let Some(follower) = follower_of(&note, core.me, self.state) {
                warn_of_non_voter(follower, core.me, &core.view);
            }
            self.take(note, now_us);
        }
        let (stats, before) = (replica.peer().core.stats, self.published);
        let metrics = &self.metrics;
        metrics.proposal_count.add(stats.proposals - before.proposals);
        metrics.commit_count.add(stats.commits - before.commits);
        let heard = stats.commits_heard - before.commits_heard;
        metrics.learner_proposal_received_count.add(stats.proposals_heard - before.proposals_heard);
        metrics.learner_commit_received_count.add(heard);
        metrics.looking_count.add(stats.elections - before.elections);
        metrics.quit_leading_due_to_disloyal_voter.add(stats.disloyal - before.disloyal);
        let (own, own_before) = (replica.stats, self.published_of_replica);
        metrics.revalidate_count.add(own.revalidations - own_before.revalidations);
        // As Java, where syncs of a leader's own clients are answered at once, and those of its learners' clients are queued.
        let is_learner = self.queues == Queues::OfLearner;
        let syncs = if is_learner { own.syncs - own_before.syncs } else { 0 };
        metrics.request_commit_queued.add(stats.commits - before.commits + heard + syncs);
        metrics.prep_processor_request_queued.add(own.learners_syncs - own_before.learners_syncs);
        (self.published, self.published_of_replica) = (stats, own);
    }

    /// Counts what this server has received as an observer master since the last call. As Java, also without an observer.
    ///
    /// * `relaying`: how long it took to put what the observers were sent meanwhile.
    pub fn publish_relayed(&mut self, replica: &Replica, relaying: Duration) {
        let core = &replica.peer().core;
        self.take_relayed(core.settings.relays, core.stats, relaying);
    }

    fn take_relayed(&mut self, relays: bool, stats: Stats, relaying: Duration) {
        let now = (stats.proposals_heard, stats.commits_heard);
        let before = std::mem::replace(&mut self.relayed, now);
        if !relays || self.state != PeerState::Following {
            return;
        }
        let (proposals, commits) = (now.0 - before.0, now.1 - before.1);
        if proposals > 0 {
            self.metrics.om_proposal_process_time_ms.record_many(0, proposals);
        }
        if commits > 0 {
            let each_ms = relaying.as_millis() as i64 / commits as i64;
            self.metrics.om_commit_process_time_ms.record_many(each_ms, commits);
        }
    }

    /// Warns once a minute that no client is served, from when no server has led for initLimit.
    fn warn_if_away(&mut self, member: &Member, port_error: PortError<'_>, now_us: u64) {
        let core = &member.replica.peer().core;
        let limit_ms = core.settings.init_limit * core.settings.tick_time_ms;
        if let Some(away_s) = self.due_warning_s(limit_ms, now_us) {
            let absence = Absence {
                state: self.state,
                is_unsure: core.is_unsure,
                has_data: self.has_data,
                away_s,
                reach: member.reach(),
                port_error: port_error(),
                last_voters: start::last_voters(core),
            };
            absence.warn();
        }
    }

    /// For how many seconds no client was served, if a WARN is due.
    fn due_warning_s(&mut self, limit_ms: u64, now_us: u64) -> Option<u64> {
        let away_us = self.away_us?;
        if now_us < self.away_warning_us.max(away_us + limit_ms * 1000) {
            return None;
        }
        self.away_warning_us = now_us + AWAY_PAUSE_US;
        Some((now_us - away_us) / 1_000_000)
    }

    fn take(&mut self, note: Note, now_us: u64) {
        match note {
            Note::Looking { why } => {
                tracing::info!(target: STRANGERS, reason = %why, "looking for a leader");
                self.looking_us = now_us;
                self.away_us.get_or_insert(now_us);
                self.state = PeerState::Looking;
            }
            Note::Elected { leader, state } => self.on_elected(leader, state, now_us),
            Note::Synchronising { leader, epoch } => {
                tracing::debug!(server_id = leader.0, epoch = epoch.0, "synchronising");
                self.promised_us = now_us;
            }
            Note::SyncBegun { sync, under_way } => self.on_sync(sync, under_way, true),
            Note::SyncEnded { sync, under_way } => self.on_sync(sync, under_way, false),
            Note::Believed => tracing::error!(
                "no server has led for initLimit whose tree could replace this server's, which \
                 does not match the digests in its log: this server votes again, and stands if \
                 no other has as much; compare the znodes of the members, and restart this server \
                 once others have a leader without it"
            ),
            Note::BelievedBesideEmpty => tracing::error!(
                "the other servers have no data, and would elect one of themselves: this server votes although its data does not match the digests in its log; compare the znodes with a backup"
            ),
            Note::Reconfigured { version } => {
                let config_version = format!("{version:x}");
                tracing::info!(%config_version, "the configuration in force has changed");
            }
            Note::Leads { epoch, voters } => {
                let away_ms = self.serve(Queues::OfLeader, now_us);
                self.metrics.leader_unavailable_time.record(away_ms);
                let voters: Vec<String> = voters.iter().map(ServerId::to_string).collect();
                let voters = voters.join(" ");
                tracing::info!(epoch = epoch.0, %voters, away_ms, "leading: clients are served");
            }
            Note::Alone { is_alone: true } => {
                tracing::warn!(
                    "the other voter is not connected; this server leads alone, as its oracle \
                     allows; bring the other voter back"
                );
            }
            Note::Alone { is_alone: false } => tracing::info!("this server leads alone no longer"),
            Note::Learns { leader, epoch, sync_type, txns } => {
                let away_ms = self.serve(Queues::OfLearner, now_us);
                let sync_ms = since_ms(self.promised_us, now_us);
                let role = if self.state == PeerState::Observing {
                    self.metrics.observer_sync_time.record(sync_ms);
                    "observing"
                } else {
                    self.metrics.follower_sync_time.record(sync_ms);
                    "following"
                };
                tracing::info!(
                    target: STRANGERS,
                    server_id = leader.0,
                    epoch = epoch.0,
                    sync = %sync_type.name(),
                    txns,
                    sync_ms,
                    away_ms,
                    "{role}: clients are served"
                );
            }
        }
    }

    fn on_elected(&mut self, leader: ServerId, state: PeerState, now_us: u64) {
        (self.state, self.elected_us) = (state, now_us);
        let election_ms = since_ms(self.looking_us, now_us);
        // As Java, which does not measure the elections of observers.
        if state != PeerState::Observing {
            self.metrics.election_time.record(election_ms);
        }
        if state == PeerState::Leading {
            tracing::info!(target: STRANGERS, election_ms, "elected: this server is to lead");
        } else {
            let server_id = leader.0;
            tracing::info!(target: STRANGERS, server_id, election_ms, "elected: another server is to lead");
        }
    }

    /// Clients are served from now on. Returns for how long no client was served, in milliseconds.
    fn serve(&mut self, queues: Queues, now_us: u64) -> i64 {
        self.metrics.begin_role(self.queues);
        (self.queues, self.serving_us, self.away_warning_us) = (queues, now_us, 0);
        let away_ms = since_ms(self.away_us.take().unwrap_or(now_us), now_us);
        self.metrics.unavailable_time.record(away_ms);
        away_ms
    }

    fn on_sync(&self, sync: Sync, under_way: u64, begins: bool) {
        let Sync { learner, is_observer, sync_type, txns } = sync;
        let (all, inflight) = if sync_type.is_tree() {
            (&self.metrics.snap_count, &self.metrics.inflight_snap_count)
        } else {
            (&self.metrics.diff_count, &self.metrics.inflight_diff_count)
        };
        inflight.record(under_way as i64);
        let (learner, sync) = (learner.0, sync_type.name());
        match begins {
            true => {
                all.increment();
                tracing::debug!(
                    server_id = learner,
                    is_observer,
                    %sync,
                    txns,
                    "synchronising a learner"
                );
            }
            false => {
                tracing::info!(target: STRANGERS, server_id = learner, is_observer, %sync, txns, "a learner is in sync")
            }
        }
    }
}

/// The follower that is in sync with its leader from now on: a learner of this server, or this server.
fn follower_of(note: &Note, me: ServerId, state: PeerState) -> Option<ServerId> {
    match note {
        Note::SyncEnded { sync, .. } => (!sync.is_observer).then_some(sync.learner),
        Note::Learns { .. } => (state == PeerState::Following).then_some(me),
        _ => None,
    }
}

/// The log can't be read for a learner, with the reason; `None`: it was read.
pub fn warn_of_unread_log(learner: Option<ServerId>, logs: &Path, error: Option<&str>) {
    if let Some(error) = error {
        tracing::warn!(
            target: STRANGERS, server_id = learner.map(|id| id.0), path = %logs.display(), %error,
            "can't read the log for a learner, which gets the tree instead: check the disk of the log"
        );
    }
}

/// Java counts every follower in `synced_followers`, so one without a vote hides that a voter is lost.
fn warn_of_non_voter(follower: ServerId, me: ServerId, view: &View) {
    if view.is_voter(follower) {
        return;
    }
    if follower == me {
        tracing::warn!(
            "this server follows, and is no voter of the configuration in force, so no quorum counts it: add it to the configuration, or, \
             if it was removed, stop it"
        );
    } else {
        tracing::warn!(
            target: STRANGERS, server_id = follower.0,
            "a server follows that is no voter of the configuration in force: no quorum counts it, but zk_synced_followers does; add it to \
             the configuration, or, if it was removed, stop it"
        );
    }
}

const fn since_ms(from_us: u64, now_us: u64) -> i64 {
    (now_us.saturating_sub(from_us) / 1000) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Epoch, Zxid};
    use crate::server::test_log::log_of;
    use crate::zab::SyncType;

    fn roles() -> (Arc<Registry>, Roles) {
        let metrics = Arc::new(Registry::default());
        (metrics.clone(), Roles::new(metrics, true))
    }

    fn looking() -> Note {
        Note::Looking { why: "a test".to_owned() }
    }

    // rows: M-02
    #[test]
    fn unavailable_time_runs_from_the_first_election_until_clients_are_served() {
        let (metrics, mut roles) = roles();
        let (leader, epoch) = (ServerId(2), Epoch(1));
        roles.take(looking(), 1_000_000);
        roles.take(Note::Elected { leader, state: PeerState::Following }, 1_300_000);
        roles.take(Note::Synchronising { leader, epoch }, 1_400_000);
        // The leader died: no client was served meanwhile, and the next election is measured on its own.
        roles.take(looking(), 2_000_000);
        roles.take(Note::Elected { leader, state: PeerState::Following }, 2_050_000);
        roles.take(Note::Synchronising { leader, epoch }, 2_060_000);
        roles.take(Note::Learns { leader, epoch, sync_type: SyncType::Diff, txns: 3 }, 2_080_000);
        let sums = |summary: crate::metrics::SummaryValues| (summary.count, summary.sum);
        assert_eq!(sums(metrics.election_time.values()), (2, 300 + 50));
        assert_eq!(sums(metrics.follower_sync_time.values()), (1, 20));
        assert_eq!(sums(metrics.unavailable_time.values()), (1, 1080));
        assert_eq!(metrics.leader_unavailable_time.values().count, 0);
        assert_eq!((roles.elected_us(), roles.serving_us()), (2_050_000, 2_080_000));

        roles.take(looking(), 3_000_000);
        roles.take(Note::Elected { leader, state: PeerState::Leading }, 3_010_000);
        roles.take(Note::Leads { epoch, voters: vec![leader] }, 3_030_000);
        assert_eq!(sums(metrics.leader_unavailable_time.values()), (1, 30));
        assert_eq!(sums(metrics.unavailable_time.values()), (2, 1110));

        roles.take(looking(), 4_000_000);
        roles.take(Note::Elected { leader, state: PeerState::Observing }, 4_500_000);
        roles.take(Note::Synchronising { leader, epoch }, 4_500_000);
        roles.take(Note::Learns { leader, epoch, sync_type: SyncType::Diff, txns: 0 }, 4_507_000);
        assert_eq!(metrics.election_time.values().count, 3, "an observer has no election");
        assert_eq!(sums(metrics.observer_sync_time.values()), (1, 7));
    }

    // rows: M-06
    #[test]
    fn observer_master_counts_proposals_and_commits_and_other_members_do_not() {
        let (metrics, mut roles) = roles();
        let heard = |proposals_heard, commits_heard| Stats {
            proposals_heard,
            commits_heard,
            ..Stats::default()
        };
        let counts = || {
            let values = [&metrics.om_proposal_process_time_ms, &metrics.om_commit_process_time_ms];
            values.map(|metric| (metric.values().count, metric.values().sum))
        };
        let relaying = Duration::from_micros(9500);
        roles.state = PeerState::Observing;
        roles.take_relayed(true, heard(3, 3), relaying);
        roles.state = PeerState::Following;
        roles.take_relayed(false, heard(5, 5), relaying);
        assert_eq!(counts(), [(0, 0), (0, 0)], "an observer, and a follower without the port");
        roles.take_relayed(true, heard(9, 8), relaying);
        assert_eq!(counts(), [(4, 0), (3, 9)]);
        roles.take_relayed(true, heard(9, 8), relaying);
        assert_eq!(counts(), [(4, 0), (3, 9)], "pings alone count nothing");
    }

    #[test]
    fn member_without_a_leader_warns_after_init_limit_and_then_once_a_minute() {
        let (_metrics, mut roles) = roles();
        let (limit_s, mut due) = (20, Vec::new());
        let mut warns_at = |roles: &mut Roles, s: u64| {
            due.extend(
                roles.due_warning_s(limit_s * 1000, s * 1_000_000).map(|away_s| (s, away_s)),
            );
        };
        warns_at(&mut roles, 1);
        roles.take(looking(), 2_000_000);
        for s in 2..150 {
            warns_at(&mut roles, s);
        }
        roles.serve(Queues::OfLearner, 150_000_000);
        warns_at(&mut roles, 1000);
        roles.take(looking(), 1_000_000_000);
        for s in 1000..=1020 {
            warns_at(&mut roles, s);
        }
        assert_eq!(due, [(22, limit_s), (82, 80), (142, 140), (1020, limit_s)]);
    }

    #[test]
    fn follower_without_a_vote_is_named_by_the_leader_and_by_itself() {
        let view =
            View::parse("server.1=a:1:2\nserver.2=b:1:2\nserver.4=d:1:2:observer\n").unwrap();
        let (me, removed) = (ServerId(1), ServerId(3));
        let line_of = |note: &Note, me, state| {
            log_of(|| {
                if let Some(follower) = follower_of(note, me, state) {
                    warn_of_non_voter(follower, me, &view);
                }
            })
        };
        let synced = |learner, is_observer| {
            let sync = Sync { learner, is_observer, sync_type: SyncType::Diff, txns: 0 };
            Note::SyncEnded { sync, under_way: 0 }
        };
        let leads =
            |learner, is_observer| line_of(&synced(learner, is_observer), me, PeerState::Leading);
        assert_eq!(
            (leads(ServerId(2), false), leads(ServerId(4), true)),
            (String::new(), String::new())
        );
        assert!(leads(removed, false).contains("server_id=3;"), "{}", leads(removed, false));
        let learns =
            Note::Learns { leader: me, epoch: Epoch(1), sync_type: SyncType::Diff, txns: 0 };
        let follows = |me| line_of(&learns, me, PeerState::Following);
        assert_eq!(follows(ServerId(2)), "");
        assert!(follows(removed).contains("this server follows"), "{}", follows(removed));
        assert_eq!(line_of(&learns, ServerId(4), PeerState::Observing), "");
    }

    // rows: M-12
    #[test]
    fn synchronisations_are_counted_by_kind() {
        let (metrics, mut roles) = roles();
        let sync =
            |sync_type| Sync { learner: ServerId(1), is_observer: false, sync_type, txns: 0 };
        let snap = SyncType::Snap { zxid: Zxid::ZERO };
        let trunc = SyncType::Trunc { to: Zxid::ZERO };
        for (sync_type, under_way) in [(SyncType::Diff, 1), (trunc, 2), (snap, 1)] {
            roles.take(Note::SyncBegun { sync: sync(sync_type), under_way }, 0);
        }
        roles.take(Note::SyncEnded { sync: sync(trunc), under_way: 1 }, 0);
        assert_eq!((metrics.diff_count.get(), metrics.snap_count.get()), (2, 1));
        let inflight = metrics.inflight_diff_count.values();
        assert_eq!((inflight.count, inflight.sum, inflight.max), (3, 4, 2));
        assert_eq!(metrics.inflight_snap_count.values().count, 1);
    }
}
