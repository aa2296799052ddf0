//! Every metric of this server, by the name Java gives it.

use super::counter::Counter;
use super::percentiles::Percentiles;
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
        }

        impl Registry {
            /// Forgets everything counted, as the word `srst` asks.
            pub fn reset(&self) {
                $(self.$unlisted.reset();)*
                $(self.$counter.reset();)*
                $(self.$summary.reset();)*
                $(self.$percentile.reset();)*
            }

            /// Hands out every number: counters by their names, summaries as `avg_`, `min_`,
            /// `max_`, `cnt_` and `sum_`, percentiles with `p50_` to `p999_` besides.
            ///
            /// Source: `DefaultMetricsContext.dump`, ZooKeeper 3.9.5 (there in hash order).
            pub fn dump(&self, sink: &mut dyn FnMut(&str, Value)) {
                $(sink(stringify!($counter), integer(self.$counter.get()));)*
                $(dump_summary(stringify!($summary), self.$summary.values(), sink);)*
                $(dump_percentiles(stringify!($percentile), &self.$percentile, sink);)*
            }
        }
    };
}

registry! {
    unlisted {
        /// Whole time of each request, read or write; `srvr` and three gauges show it.
        request_latency: Summary,
        /// Frames from clients, connect requests and four-letter words included; a gauge shows it.
        packets_received: Counter,
        /// Frames to clients, events included; a gauge shows it.
        packets_sent: Counter,
        /// Refused authentications; a gauge shows it.
        auth_failed_count: Counter,
    }
    counters {
        /// Bytes of frames from clients.
        bytes_received_count,
        /// Bytes of replies to reads.
        response_bytes,
        /// Bytes of watch events.
        watch_bytes,
        /// Connect requests that were looked at.
        connection_request_count,
        /// Connections refused for a limit.
        connection_rejected,
        /// Connections closed by this server or found broken.
        connection_drop_count,
        /// Sessions asked for again by another connection.
        connection_revalidate_count,
        /// Connections closed because no session came in time.
        sessionless_connections_expired,
        /// Sessions ended because their client went silent.
        stale_sessions_expired,
        /// Transactions committed.
        commit_count,
        /// Transactions proposed.
        proposal_count,
        /// Requests handed to the log.
        sync_processor_request_queued,
        /// Snapshots that could not be written.
        snapshot_error_count,
        /// Transactions after which the tree's digest was not the predicted one.
        digest_mismatches_count,
    }
    summaries {
        /// Time of one flush of the log.
        fsynctime,
        /// Time to write a snapshot.
        snapshottime,
        /// Time to load snapshot and log at the start.
        dbinittime,
        /// Transactions replayed at the start.
        startup_txns_loaded,
        /// Time to replay them.
        startup_txns_load_time,
        /// Time to load the snapshot at the start.
        startup_snap_load_time,
        /// Transactions under one flush.
        sync_processor_batch_size,
        /// Watchers told of one creation.
        node_created_watch_count,
        /// Watchers told of one deletion.
        node_deleted_watch_count,
        /// Watchers told of one change of data.
        node_changed_watch_count,
        /// Watchers told of one change of children.
        node_children_watch_count,
    }
    percentiles {
        /// Time of a read, from its frame to its reply.
        readlatency,
        /// Time of a write, likewise.
        updatelatency,
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

fn dump_percentiles(name: &str, metric: &Percentiles, sink: &mut dyn FnMut(&str, Value)) {
    dump_summary(name, metric.values(), sink);
    let quantiles = metric.quantiles();
    sink(&format!("p50_{name}"), Value::Integer(quantiles.p50));
    sink(&format!("p95_{name}"), Value::Integer(quantiles.p95));
    sink(&format!("p99_{name}"), Value::Integer(quantiles.p99));
    sink(&format!("p999_{name}"), Value::Integer(quantiles.p999));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn dumped(registry: &Registry) -> BTreeMap<String, Value> {
        let mut all = BTreeMap::new();
        registry.dump(&mut |name, value| {
            assert!(all.insert(name.to_owned(), value).is_none(), "{name} twice");
        });
        all
    }

    // rows: M-30 M-31 M-32
    #[test]
    fn names_follow_the_kind() {
        let registry = Registry::default();
        registry.commit_count.add(3);
        registry.fsynctime.record(2);
        registry.fsynctime.record(3);
        registry.readlatency.record(5);
        let all = dumped(&registry);
        assert_eq!(all["commit_count"], Value::Integer(3));
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
