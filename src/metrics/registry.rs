//! Every metric of this server, by the name Java gives it.

use super::counter::Counter;
use super::names;
use super::percentiles::{Percentiles, Quantiles};
use super::sets::SummarySet;
use super::sizes::Sizes;
use super::summary::{Summary, SummaryValues};

/// One number of a dump.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Integer(i64),
    /// Averages, rounded to four decimals.
    Float(f64),
}

macro_rules! registry {
    (
        unlisted { $($(#[$unlisted_doc:meta])* $unlisted:ident: $unlisted_type:ty,)* }
        counters { $($(#[$counter_doc:meta])* $counter:ident,)* }
        summaries { $($(#[$summary_doc:meta])* $summary:ident,)* }
        percentiles { $($(#[$percentile_doc:meta])* $percentile:ident,)* }
        counter_sets { $($(#[$counted_doc:meta])* $counted:ident,)* }
        sets { $($(#[$set_doc:meta])* $set:ident,)* }
    ) => {
        /// What a server counts while it runs; shared by all its threads.
        ///
        /// A field is published under its own name, with the affixes of its kind. Times are ms.
        #[derive(Debug, Default)]
        pub struct Registry {
            $($(#[$unlisted_doc])* pub $unlisted: $unlisted_type,)*
            $($(#[$counter_doc])* pub $counter: Counter,)*
            $($(#[$summary_doc])* pub $summary: Summary,)*
            $($(#[$percentile_doc])* pub $percentile: Percentiles,)*
            $($(#[$counted_doc])* pub $counted: SummarySet,)*
            $($(#[$set_doc])* pub $set: SummarySet,)*
        }

        impl Registry {
            /// Forgets everything counted, as the word `srst` asks.
            pub fn reset(&self) {
                $(self.$unlisted.reset();)*
                $(self.$counter.reset();)*
                $(self.$summary.reset();)*
                $(self.$percentile.reset();)*
                $(self.$counted.reset();)*
                $(self.$set.reset();)*
            }

            fn counter(&self, name: &str) -> Option<&Counter> {
                match name {
                    $(stringify!($counter) => Some(&self.$counter),)*
                    _ => None,
                }
            }

            fn summary(&self, name: &str) -> Option<&Summary> {
                match name {
                    $(stringify!($summary) => Some(&self.$summary),)*
                    _ => None,
                }
            }

            fn percentiles(&self, name: &str) -> Option<&Percentiles> {
                match name {
                    $(stringify!($percentile) => Some(&self.$percentile),)*
                    _ => None,
                }
            }

            fn counter_sets(&self) -> [(&'static str, &SummarySet); [$(stringify!($counted)),*].len()] {
                [$((stringify!($counted), &self.$counted)),*]
            }

            fn sets(&self) -> [(&'static str, &SummarySet); [$(stringify!($set)),*].len()] {
                [$((stringify!($set), &self.$set)),*]
            }
        }

        /// Every field that has a place of its own in the dump.
        #[cfg(test)]
        const FIELDS: &[&str] =
            &[$(stringify!($counter),)* $(stringify!($summary),)* $(stringify!($percentile),)*];
    };
}

registry! {
    unlisted {
        /// Whole time of each request, read or write; `srvr` and three gauges show it.
        request_latency: Summary,
        /// Frames from clients, connect requests and four-letter words included; a gauge shows it.
        packets_received: Counter,
        /// Frames to clients, answers to connect requests, events and answers to words included; a gauge shows it.
        packets_sent: Counter,
        /// Sizes of answers and events, in bytes; three gauges show them.
        client_response_size: Sizes,
        /// Sizes of what a leader proposed, in bytes; three gauges of a leader show them.
        proposal_size: Sizes,
        /// Reads answered before this server took the role it has.
        reads_before: Counter,
    }
    counters {
        /// Bytes of watch events.
        watch_bytes,
        /// Writes that waited for relief until they had outlived their session; each closed its connection.
        stale_requests_dropped,
        /// Writes that waited for relief for too long, and were refused.
        throttled_ops,
        /// Writes that were judged although their connection was gone.
        stale_requests,
        /// Writes that had to wait for relief.
        request_throttle_wait_count,
        /// Answers to writes that nobody was left to take.
        stale_replies,
        /// Frames refused because large ones had all the room.
        large_requests_rejected,
        /// Connections refused for a limit.
        connection_rejected,
        /// Connections closed because no session came in time.
        sessionless_connections_expired,
        /// Connections that their client ended without closing the session first.
        connection_drop_count,
        /// Bytes of frames from clients, and of four-letter words.
        bytes_received_count,
        /// Transactions judged. The dump adds every request answered without one, as they all take this queue in Java.
        prep_processor_request_queued,
        /// Bytes of answers, those to pings, connect requests and identifications left out.
        response_bytes,
        /// Clients that said they look for another ensemble, and were closed.
        ensemble_auth_fail,
        /// Clients that identified themselves by an ensemble without its having to be right.
        ensemble_auth_skip,
        /// Clients that named this ensemble.
        ensemble_auth_success,
        /// Connect requests for a session that was there before.
        connection_revalidate_count,
        /// Znodes' changes that were judged and not applied yet.
        outstanding_changes_queued,
        /// Those that were applied since.
        outstanding_changes_removed,
        /// Transactions after which the tree's digest was not the predicted one.
        digest_mismatches_count,
        /// Snapshots that could not be written.
        snapshot_error_count,
        /// Connect requests that were looked at.
        connection_request_count,
        /// Sessions ended because their client went silent.
        stale_sessions_expired,
        /// Transactions handed to the log; likewise.
        sync_processor_request_queued,
        /// Learners that were brought up to date by transactions, by this leader.
        diff_count,
        /// Learners that were sent the whole tree.
        snap_count,
        /// Elections begun.
        looking_count,
        /// Transactions that this leader committed.
        commit_count,
        /// Transactions that this leader proposed.
        proposal_count,
        /// Times this leader gave up, because those who had voted for it no longer wanted it.
        quit_leading_due_to_disloyal_voter,
        /// Commits and syncs that a member of an ensemble learned of.
        request_commit_queued,
        /// Transactions that this learner's leader proposed to it.
        learner_proposal_received_count,
        /// Commits that this learner's leader told it of.
        learner_commit_received_count,
        /// Sessions that came to another server, which asked this leader.
        revalidate_count,
    }
    summaries {
        /// Time from a write's judgement until the log had it, the log's own work left out.
        proposal_process_time,
        /// Watchers told of one creation.
        node_created_watch_count,
        /// Tokens that were taken when a client connected; without a throttle of connections always 0.
        connection_token_deficit,
        /// Watchers told of one deletion.
        node_deleted_watch_count,
        /// Time to replay the log at the start.
        startup_txns_load_time,
        /// Requests that wait for the log when more are handed to it.
        sync_processor_queue_size,
        /// Requests that wait for their judgement when the judge comes to them.
        prep_processor_queue_size,
        /// Time of one flush of the log that is forced to the disk.
        fsynctime,
        /// Time to write a snapshot.
        snapshottime,
        /// Transactions replayed at the start.
        startup_txns_loaded,
        /// Time to judge a write.
        prep_process_time,
        /// Time to load snapshot and log at the start.
        dbinittime,
        /// Transactions under one flush.
        sync_processor_batch_size,
        /// Watchers told of one change of children.
        node_children_watch_count,
        /// Watchers told of one change of data.
        node_changed_watch_count,
        /// A request's share of the time that the log takes over its batch before the flush.
        sync_process_time,
        /// Time to load the snapshot at the start.
        startup_snap_load_time,
        /// Time from the begin of an election until clients are served again, by a leader.
        leader_unavailable_time,
        /// Likewise, whatever this server is then.
        unavailable_time,
        /// Time of a follower from its promise until it serves.
        follower_sync_time,
        /// Likewise, of an observer.
        observer_sync_time,
        /// Learners that are being sent the tree, whenever one begins or ends.
        inflight_snap_count,
        /// Learners that are being sent transactions, likewise.
        inflight_diff_count,
        /// Time of an election, where this server may vote.
        election_time,
    }
    percentiles {
        /// Time from a write's frame to its judgement.
        prep_processor_queue_time_ms,
        /// Time to judge a closeSession, and what was asked together with it.
        close_session_prep_time,
        /// Time of a write, from its frame to its reply.
        updatelatency,
        /// Time of a read, likewise.
        readlatency,
        /// Time a request was with the log: the next two together.
        sync_processor_queue_and_flush_time_ms,
        /// Time from a transaction's birth until it is applied.
        propagation_latency,
        /// Time a request waited for the log.
        sync_processor_queue_time_ms,
        /// Time of one flush of the log, as those who wait see it.
        sync_processor_queue_flush_time_ms,
        /// Time from a transaction's birth until a quorum has it, at its leader.
        quorum_ack_latency,
        /// Likewise until a learner knows.
        commit_propagation_latency,
        /// Likewise until this server, if it votes, has it on its disk.
        proposal_ack_creation_latency,
        /// Likewise until a learner has heard of it.
        proposal_latency,
    }
    counter_sets {
        /// Writes refused because they would have passed a hard limit; of the samples only their number is shown.
        quota_exceeded_error_per_namespace,
    }
    sets {
        /// Bytes of each read, by the first name of the path.
        read_per_namespace,
        /// Bytes of each write, likewise.
        write_per_namespace,
    }
}

impl Registry {
    /// Hands out every number, in Java's order: counters by their names, summaries as `avg_`, `min_`, `max_`, `cnt_`
    /// and `sum_`, percentiles with `p50_` to `p999_` besides; of sets each key before the name.
    ///
    /// What has no field is zero: see `names::NEVER`.
    ///
    /// * `queues`: which of this server's queues every request takes in Java.
    ///
    /// Source: `DefaultMetricsContext.dump`, ZooKeeper 3.9.5.
    pub fn dump(&self, queues: Queues, sink: &mut dyn FnMut(&str, Value)) {
        let reads = self.reads_in_role();
        for name in names::COUNTERS {
            let counted = self.counter(name).map_or(0, Counter::get);
            let takes_all = queues.names().contains(name);
            sink(name, integer(if takes_all { counted + reads } else { counted }));
        }
        for (name, set) in self.counter_sets() {
            for (key, values) in set.values() {
                sink(&format!("{key}_{name}"), integer(values.count));
            }
        }
        for name in names::SUMMARIES {
            let values = self.summary(name).map(Summary::values).unwrap_or_default();
            dump_summary(name, values, sink);
        }
        for name in names::PERCENTILES {
            let (values, quantiles) = self
                .percentiles(name)
                .map(|metric| (metric.values(), metric.quantiles()))
                .unwrap_or_default();
            dump_summary(name, values, sink);
            dump_quantiles(name, quantiles, sink);
        }
        for (name, set) in self.sets() {
            for (key, values) in set.values() {
                dump_summary(&format!("{key}_{name}"), values, sink);
            }
        }
    }
}

impl Registry {
    /// This server begins to be something else to its clients, which in Java makes a new set of figures for them; what
    /// it counts about itself goes on.
    ///
    /// * `before`: what it was until now.
    ///
    /// Source: `ZooKeeperServer` and its `ServerStats`, one for each role, ZooKeeper 3.9.5.
    pub fn begin_role(&self, before: Queues) {
        if before == Queues::OfLeader {
            self.prep_processor_request_queued.add(self.reads_in_role());
        }
        self.reads_before.add(self.reads_in_role());
        self.request_latency.reset();
        self.packets_received.reset();
        self.packets_sent.reset();
        self.client_response_size.reset();
        self.proposal_size.reset();
    }

    fn reads_in_role(&self) -> u64 {
        self.readlatency.values().count.saturating_sub(self.reads_before.get())
    }
}

/// Which queues every request takes in Java, reads included.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Queues {
    #[default]
    OfStandalone,
    OfLeader,
    OfLearner,
}

impl Queues {
    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::OfStandalone => names::OF_ALL_REQUESTS,
            Self::OfLeader => names::OF_A_LEADERS_REQUESTS,
            Self::OfLearner => &[],
        }
    }
}

fn integer(count: u64) -> Value {
    Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

fn dump_summary(name: &str, values: SummaryValues, sink: &mut dyn FnMut(&str, Value)) {
    sink(&format!("avg_{name}"), Value::Float(values.avg));
    sink(&format!("min_{name}"), Value::Integer(values.min));
    sink(&format!("max_{name}"), Value::Integer(values.max));
    sink(&format!("cnt_{name}"), integer(values.count));
    sink(&format!("sum_{name}"), Value::Integer(values.sum));
}

fn dump_quantiles(name: &str, quantiles: Quantiles, sink: &mut dyn FnMut(&str, Value)) {
    sink(&format!("p50_{name}"), Value::Integer(quantiles.p50));
    sink(&format!("p95_{name}"), Value::Integer(quantiles.p95));
    sink(&format!("p99_{name}"), Value::Integer(quantiles.p99));
    sink(&format!("p999_{name}"), Value::Integer(quantiles.p999));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Samples;
    use std::collections::BTreeMap;

    fn dumped(registry: &Registry) -> BTreeMap<String, Value> {
        let mut all = BTreeMap::new();
        registry.dump(Queues::OfStandalone, &mut |name, value| {
            assert!(all.insert(name.to_owned(), value).is_none(), "{name} twice");
        });
        all
    }

    // rows: M-30 M-31 M-32
    #[test]
    fn names_follow_the_kind() {
        let registry = Registry::default();
        registry.watch_bytes.add(3);
        registry.fsynctime.record(2);
        registry.fsynctime.record(3);
        registry.readlatency.record(5);
        let all = dumped(&registry);
        assert_eq!(all["watch_bytes"], Value::Integer(3));
        assert_eq!(all["avg_fsynctime"], Value::Float(2.5));
        assert_eq!(all["min_fsynctime"], Value::Integer(2));
        assert_eq!(all["max_fsynctime"], Value::Integer(3));
        assert_eq!(all["cnt_fsynctime"], Value::Integer(2));
        assert_eq!(all["sum_fsynctime"], Value::Integer(5));
        assert!(!all.contains_key("p50_fsynctime"));
        for name in ["p50_readlatency", "p95_readlatency", "p99_readlatency", "p999_readlatency"] {
            assert_eq!(all[name], Value::Integer(5), "{name}");
        }
        assert!(!all.contains_key("packets_received"), "a gauge, shown by admin");
    }

    // rows: M-14
    #[test]
    fn requests_without_a_transaction_are_queued_in_name() {
        let registry = Registry::default();
        registry.prep_processor_request_queued.add(3);
        registry.sync_processor_request_queued.add(2);
        registry.readlatency.record_many(0, 5);
        let all = dumped(&registry);
        assert_eq!(all["prep_processor_request_queued"], Value::Integer(8));
        assert_eq!(all["sync_processor_request_queued"], Value::Integer(7));
    }

    // rows: M-14
    #[test]
    fn roles_differ_in_what_their_queues_take() {
        let registry = Registry::default();
        let queued = |queues| {
            let mut found = Vec::new();
            registry.dump(queues, &mut |name, value| {
                if name.ends_with("_processor_request_queued") {
                    found.push(value);
                }
            });
            found
        };
        let (three, five) = (Value::Integer(3), Value::Integer(5));
        registry.prep_processor_request_queued.add(3);
        registry.sync_processor_request_queued.add(3);
        registry.readlatency.record_many(0, 2);
        assert_eq!(queued(Queues::OfLearner), [three, three]);
        assert_eq!(queued(Queues::OfLeader), [five, three]);
        registry.begin_role(Queues::OfLeader);
        assert_eq!(queued(Queues::OfLearner), [five, three], "what was counted stays");
        registry.readlatency.record_many(0, 7);
        assert_eq!(queued(Queues::OfLearner), [five, three]);
        registry.begin_role(Queues::OfLearner);
        assert_eq!(queued(Queues::OfLeader), [five, three], "reads of another role");
    }

    #[test]
    fn a_new_role_begins_with_new_figures_for_clients() {
        let registry = Registry::default();
        let size = crate::metrics::SizeValues { last: 9, min: 9, max: 9 };
        registry.request_latency.record(9);
        registry.packets_sent.increment();
        registry.packets_received.increment();
        registry.client_response_size.record(size, 1);
        registry.proposal_size.record(size, 1);
        registry.watch_bytes.add(4);
        registry.begin_role(Queues::OfLearner);
        assert_eq!(registry.request_latency.values(), SummaryValues::default());
        assert_eq!((registry.packets_sent.get(), registry.packets_received.get()), (0, 0));
        assert_eq!(registry.client_response_size.values().last, -1);
        assert_eq!(registry.proposal_size.values().max, -1);
        assert_eq!(registry.watch_bytes.get(), 4);
    }

    // rows: M-33
    #[test]
    fn sets_have_the_key_before_the_name() {
        let registry = Registry::default();
        registry
            .read_per_namespace
            .record("app", &Samples { count: 2, sum: 150, min: 70, max: 80 });
        let refused = Samples { count: 3, ..Samples::NONE };
        registry.quota_exceeded_error_per_namespace.record("app", &refused);
        let all = dumped(&registry);
        assert_eq!(all["app_quota_exceeded_error_per_namespace"], Value::Integer(3));
        assert_eq!(all["avg_app_read_per_namespace"], Value::Float(75.0));
        assert_eq!(all["max_app_read_per_namespace"], Value::Integer(80));
        assert_eq!(all["cnt_app_read_per_namespace"], Value::Integer(2));
        registry.reset();
        // As in Java, a key once seen stays, at zero.
        assert_eq!(dumped(&registry)["cnt_app_read_per_namespace"], Value::Integer(0));
    }

    #[test]
    fn a_name_is_counted_or_can_not_happen() {
        let never: Vec<&str> =
            names::NEVER.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let listed: Vec<&str> = [names::COUNTERS, names::SUMMARIES, names::PERCENTILES].concat();
        for name in &listed {
            assert_ne!(FIELDS.contains(name), never.contains(name), "{name}: one of the two");
        }
        for name in FIELDS.iter().chain(&never) {
            assert!(listed.contains(name), "{name} is not printed");
        }
    }

    #[test]
    fn reset_forgets_all() {
        let registry = Registry::default();
        let empty = dumped(&registry);
        registry.watch_bytes.add(1);
        registry.packets_sent.increment();
        registry.request_latency.record(9);
        registry.updatelatency.record(9);
        registry.reset();
        assert_eq!(dumped(&registry), empty);
        assert_eq!(registry.packets_sent.get(), 0);
        assert_eq!(registry.request_latency.values(), SummaryValues::default());
    }
}
