//! Every metric of this server, by the name Java gives it.

use super::counter::Counter;
use super::histogram::Histogram;
use super::names;
use super::percentiles::{Percentiles, Quantiles};
use super::sets::SummarySet;
use super::sizes::Sizes;
use super::summary::{Summary, SummaryValues};
use super::tls_figures::TlsFigures;
use super::window;

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
        /// The counters and summaries of a running server, shared by all its threads.
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
            /// Forgets everything counted, for the four-letter word `srst`.
            pub fn reset(&self) {
                $(self.$unlisted.reset();)*
                $(self.$counter.reset();)*
                $(self.$summary.reset();)*
                $(self.$percentile.reset();)*
                $(self.$counted.reset();)*
                $(self.$set.reset();)*
            }

            /// Begins the next part of the windows of quantiles; see [`super::PART_LASTS`].
            pub fn turn_windows(&self) {
                let plain = [$(&self.$summary),*].into_iter();
                let ranked = [$(self.$percentile.summary()),*].into_iter();
                let sets = [$(&self.$counted,)* $(&self.$set),*];
                let clear_sets = |part| sets.iter().for_each(|set| set.clear_part(part));
                window::turn(plain.chain(ranked).map(Summary::window), clear_sets);
            }

            pub(super) fn counter(&self, name: &str) -> Option<&Counter> {
                match name {
                    $(stringify!($counter) => Some(&self.$counter),)*
                    _ => None,
                }
            }

            pub(super) fn summary(&self, name: &str) -> Option<&Summary> {
                match name {
                    $(stringify!($summary) => Some(&self.$summary),)*
                    _ => None,
                }
            }

            pub(super) fn percentiles(&self, name: &str) -> Option<&Percentiles> {
                match name {
                    $(stringify!($percentile) => Some(&self.$percentile),)*
                    _ => None,
                }
            }

            pub(super) fn counter_sets(&self) -> [(&'static str, &SummarySet); [$(stringify!($counted)),*].len()] {
                [$((stringify!($counted), &self.$counted)),*]
            }

            pub(super) fn sets(&self) -> [(&'static str, &SummarySet); [$(stringify!($set)),*].len()] {
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
        /// Frames to clients, connect responses, events and answers to four-letter words included; a gauge shows it.
        packets_sent: Counter,
        /// Sizes of answers and events, in bytes; three gauges show them.
        client_response_size: Sizes,
        /// Sizes of a leader's proposals, in bytes; three gauges of a leader show them.
        proposal_size: Sizes,
        /// Flushes of the log that took longer than `fsync.warningthresholdms`; `server_stats` shows it.
        slow_flushes: Counter,
        /// Reads answered before this server took its present role.
        reads_before: Counter,
        /// Four gauges show these.
        tls: TlsFigures,
        /// Whole time of each read, write and flush; histograms for Prometheus.
        read_times: Histogram,
        write_times: Histogram,
        flush_times: Histogram,
    }
    counters {
        /// Plain connections to AdminServer where its port has TLS too.
        insecure_admin_count,
        /// Bytes of watch events.
        watch_bytes,
        /// Throttled writes that waited longer than their session's timeout; each closed its connection.
        stale_requests_dropped,
        /// Throttled writes that waited for too long, and were refused.
        throttled_ops,
        /// Writes that were prepared although their connection was closed.
        stale_requests,
        /// Writes that were throttled: they had to wait for others.
        request_throttle_wait_count,
        /// Replies to writes whose connection was closed.
        stale_replies,
        /// Frames refused because large requests took all their memory.
        large_requests_rejected,
        /// Connections refused because a limit was reached.
        connection_rejected,
        /// TLS handshakes of clients that did not succeed.
        unsuccessful_handshake,
        /// Connections closed because too many TLS handshakes were under way.
        tls_handshake_exceeded,
        /// Connections closed before their TLS handshake, because this server served no client.
        cnxn_closed_without_zk_server_running,
        /// Connections closed because they had no session in time.
        sessionless_connections_expired,
        /// Connections that the client closed without closing the session first.
        connection_drop_count,
        /// Bytes of frames from clients, and of four-letter words.
        bytes_received_count,
        /// Transactions prepared. The dump adds every request answered without one, as they all pass this queue in Java.
        prep_processor_request_queued,
        /// Bytes of replies, except those to pings, connect requests and auth requests.
        response_bytes,
        /// Clients that named another ensemble; their connections were closed.
        ensemble_auth_fail,
        /// Clients that named no ensemble, or clients of a server that requires no name.
        ensemble_auth_skip,
        /// Clients that named this ensemble.
        ensemble_auth_success,
        /// Connect requests for an existing session.
        connection_revalidate_count,
        /// Changes of znodes that were prepared.
        outstanding_changes_queued,
        /// Changes of znodes that were applied after they were prepared.
        outstanding_changes_removed,
        /// Transactions after which the tree's digest was not the predicted one.
        digest_mismatches_count,
        /// Snapshots that could not be written.
        snapshot_error_count,
        /// Commands `snapshot` refused because another one was carried out shortly before.
        snapshot_rate_limited_count,
        /// Commands `restore` that failed.
        restore_error_count,
        /// Commands `restore` refused because another one was carried out shortly before.
        restore_rate_limited_count,
        /// Connect requests received.
        connection_request_count,
        /// Sessions expired because their client was silent.
        stale_sessions_expired,
        /// Transactions handed to the log. The dump adds requests as for `prep_processor_request_queued`.
        sync_processor_request_queued,
        /// Learners that this leader synchronised by transactions.
        diff_count,
        /// Learners that this leader synchronised by SNAP.
        snap_count,
        /// Elections begun.
        looking_count,
        /// Transactions that this leader committed.
        commit_count,
        /// Transactions that this leader proposed.
        proposal_count,
        /// Times this leader gave up because voters that had elected it looked for another leader.
        quit_leading_due_to_disloyal_voter,
        /// Commits and syncs that a member of an ensemble made or received.
        request_commit_queued,
        /// Proposals that this learner received.
        learner_proposal_received_count,
        /// Commits that this learner received.
        learner_commit_received_count,
        /// Sessions that this leader revalidated for its learners.
        revalidate_count,
    }
    summaries {
        /// Time from a write's preparation until the log thread had it, without the log's own work.
        proposal_process_time,
        /// Watchers notified of one creation.
        node_created_watch_count,
        /// Tokens taken when a client connected; always 0 without the throttle of connections.
        connection_token_deficit,
        /// Watchers notified of one deletion.
        node_deleted_watch_count,
        /// Time to replay the log at the start.
        startup_txns_load_time,
        /// Requests that wait for the log when more are handed to it.
        sync_processor_queue_size,
        /// Requests that are prepared together in one turn.
        prep_processor_queue_size,
        /// Time of one flush of the log that is forced to the disk.
        fsynctime,
        /// Time to write a snapshot.
        snapshottime,
        /// Time that a command `restore` took.
        restore_time,
        /// Transactions replayed at the start.
        startup_txns_loaded,
        /// Time to prepare a write.
        prep_process_time,
        /// Time to load snapshot and log at the start.
        dbinittime,
        /// Transactions in one flush.
        sync_processor_batch_size,
        /// Watchers notified of one change of children.
        node_children_watch_count,
        /// Watchers notified of one change of data.
        node_changed_watch_count,
        /// A request's share of the time that the log takes over its batch before the flush.
        sync_process_time,
        /// Time to load the snapshot at the start.
        startup_snap_load_time,
        /// Time from the begin of an election until this server serves clients again, as the leader.
        leader_unavailable_time,
        /// Time from the begin of an election until this server serves clients again, in any role.
        unavailable_time,
        /// Time of a follower from its ACKEPOCH until it serves.
        follower_sync_time,
        /// Time of an observer from its ACKEPOCH until it serves.
        observer_sync_time,
        /// Learners that are being synchronised by SNAP, whenever such a synchronisation begins or ends.
        inflight_snap_count,
        /// Learners that are being synchronised by transactions, whenever such a synchronisation begins or ends.
        inflight_diff_count,
        /// Time of an election in which this server votes.
        election_time,
    }
    percentiles {
        /// Time from a write's frame until it is prepared.
        prep_processor_queue_time_ms,
        /// By how much a timer of the server and its main loop were late, together; with `jvm.pause.monitor` alone.
        jvm_pause_time_ms,
        /// Time to prepare a closeSession, and the requests that came together with it.
        close_session_prep_time,
        /// Time of a write, from its frame to its reply.
        updatelatency,
        /// Time of a read, from its frame to its reply.
        readlatency,
        /// Time a request was with the log: `sync_processor_queue_time_ms` and `sync_processor_queue_flush_time_ms` together.
        sync_processor_queue_and_flush_time_ms,
        /// Time from a transaction's creation until it is applied.
        propagation_latency,
        /// Time a request waited for the log.
        sync_processor_queue_time_ms,
        /// Time of one flush of the log, for which its requests wait.
        sync_processor_queue_flush_time_ms,
        /// At a leader: time from a transaction's creation until a quorum has acknowledged it.
        quorum_ack_latency,
        /// At a learner: time from a transaction's creation until its commit is received.
        commit_propagation_latency,
        /// At a voter: time from a transaction's creation until this server has it on its disk.
        proposal_ack_creation_latency,
        /// At a learner: time from a transaction's creation until its proposal is received.
        proposal_latency,
        /// At an observer master: time that it takes over a proposal for its observers, which is always 0: they get it at its commit.
        om_proposal_process_time_ms,
        /// At an observer master: time until a commit is with the connections of all its observers.
        om_commit_process_time_ms,
    }
    counter_sets {
        /// Writes refused because they would have passed a hard limit; of the samples only their number is shown.
        quota_exceeded_error_per_namespace,
    }
    sets {
        /// Bytes of each read, by the first name of the path.
        read_per_namespace,
        /// Bytes of each write, by the first name of the path.
        write_per_namespace,
    }
}

impl Registry {
    /// Gives every number to `sink`, in Java's order: counters by their names, summaries as `avg_`, `min_`, `max_`, `cnt_`
    /// and `sum_`, percentiles also as `p50_` to `p999_`; in sets the key stands before the name.
    ///
    /// A name without a field is zero: see `names::NEVER`.
    ///
    /// * `queues`: the queues that every request passes in a Java server of this role.
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
    /// This server begins a new role, for which Java begins the figures about clients anew; the other figures go on.
    ///
    /// * `before`: the role until now.
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

    pub(super) fn reads_in_role(&self) -> u64 {
        self.readlatency.values().count.saturating_sub(self.reads_before.get())
    }
}

/// The queues that every request passes in Java, reads included, by the server's role.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Queues {
    #[default]
    OfStandalone,
    OfLeader,
    OfLearner,
}

impl Queues {
    pub(super) const fn names(self) -> &'static [&'static str] {
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
    fn names_have_the_affixes_of_their_kind() {
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
    fn requests_without_a_transaction_are_added_to_queued_requests() {
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
    fn reads_are_added_to_queued_requests_by_role() {
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
    fn new_role_begins_the_figures_about_clients_anew() {
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
    fn every_name_is_counted_or_listed_as_impossible() {
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
