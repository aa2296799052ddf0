//! Metrics that ZooKeeper does not have; each HELP says in words what it is.

use super::super::own_figures::OwnFigures;
use super::super::status::{Mode, ProcessInfo, Status};
use super::prometheus::{Metrics, Sample, sample};
use crate::metrics::{HistogramValues, Registry};

type Labels = Vec<(&'static str, String)>;

impl Metrics {
    pub(super) fn put_own(&mut self, metrics: &Registry, status: &Status) {
        let leads = status.serving && status.mode == Mode::Leader;
        let role = if status.serving { status.mode.name() } else { "looking" };
        let own = env!("CARGO_PKG_VERSION").to_owned();
        let labels = vec![("version", own), ("as", super::super::COMPATIBLE_WITH.to_owned())];
        self.put_gauge(
            "oxkeeper_info",
            "This server's version, and the ZooKeeper it is like.",
            vec![(labels, 1.0)],
        );
        self.put_one(
            "oxkeeper_is_leader",
            "1 if this server leads an ensemble, else 0.",
            u64::from(leads),
        );
        self.put_gauge(
            "oxkeeper_role",
            "1 for the role of this server: standalone, leader, follower, observer, read-only or looking.",
            vec![(vec![("role", role.to_owned())], 1.0)],
        );
        let zxid = status.zxid;
        self.put_one(
            "oxkeeper_epoch",
            "The epoch of the last transaction.",
            (zxid.to_wire() >> 32) as u64,
        );
        self.put_one(
            "oxkeeper_epoch_transactions_left",
            "Transactions until the epoch is used up and a new leader is elected.",
            u64::from(u32::MAX - zxid.counter()),
        );
        self.put_times(metrics);
        if let Some(own) = &status.own {
            self.put_sizes(own);
            self.put_state(own);
            self.put_peers(own);
        }
        if let Some(process) = &status.process {
            self.put_stand_ins(process);
        }
    }

    fn put_times(&mut self, metrics: &Registry) {
        let of = |kind: &str| vec![("op", kind.to_owned())];
        self.put_histogram(
            "oxkeeper_request_seconds",
            "Time of a request, from its bytes to its answer; op is read (syncs too) or write.",
            vec![
                (of("read"), metrics.read_times.values()),
                (of("write"), metrics.write_times.values()),
            ],
        );
        self.put_histogram(
            "oxkeeper_fsync_seconds",
            "Time of one flush of the log to the disk, for which its writes wait.",
            vec![(vec![], metrics.flush_times.values())],
        );
    }

    fn put_sizes(&mut self, own: &OwnFigures) {
        for (name, help, value) in [
            (
                "oxkeeper_largest_node_bytes",
                "Data of the largest znode since the tree was loaded, also if it was deleted since.",
                own.node_bytes_max,
            ),
            (
                "oxkeeper_largest_list_bytes",
                "About the names of the longest list of children since the tree was loaded, as one reply has them.",
                own.list_bytes_max,
            ),
            ("oxkeeper_largest_list_children", "Children in that list.", own.children_max),
            (
                "oxkeeper_jute_maxbuffer_bytes",
                "jute.maxbuffer of this server: Java's clients have a limit of their own, which replies must not pass.",
                own.jute_max_buffer_bytes,
            ),
            (
                "oxkeeper_sequences_left",
                "Creations below one znode until its sequential names pass 2147483647, for the znode with the fewest left.",
                u64::try_from(i64::from(i32::MAX) - own.sequence_max).unwrap_or(0),
            ),
            (
                "oxkeeper_watch_bytes",
                "About the memory of all watches; watch_bytes counts bytes of events.",
                own.watch_bytes,
            ),
        ] {
            self.put_one(name, help, value);
        }
    }

    fn put_state(&mut self, own: &OwnFigures) {
        let age = own.snapshot_age_seconds.map(|age| (vec![], age));
        self.put_gauge(
            "oxkeeper_snapshot_age_seconds",
            "Time since the newest snapshot file was written.",
            age.into_iter().collect(),
        );
        let free = own
            .free_bytes
            .iter()
            .map(|(dir, free)| (vec![("dir", (*dir).to_owned())], *free as f64));
        self.put_gauge(
            "oxkeeper_disk_free_bytes",
            "Free bytes of the file system of a directory, by the setting that names it.",
            free.collect(),
        );
        let ages = own
            .sessions
            .iter()
            .map(|(age, count)| (vec![("age", (*age).to_owned())], *count as f64));
        self.put_gauge(
            "oxkeeper_sessions",
            "Sessions of clients that are connected here, by the time for which they are connected.",
            ages.collect(),
        );
    }

    fn put_peers(&mut self, own: &OwnFigures) {
        let sid = |id: crate::model::ServerId| vec![("sid", id.0.to_string())];
        let connected =
            own.peers.iter().map(|peer| (sid(peer.id), f64::from(u8::from(peer.is_connected))));
        self.put_gauge(
            "oxkeeper_peer_connected",
            "1 if the member is connected to this leader, else 0; only a leader knows.",
            connected.collect(),
        );
        let behind =
            own.peers.iter().filter_map(|peer| Some((sid(peer.id), peer.lag_bytes? as f64)));
        self.put_gauge(
            "oxkeeper_peer_lag_bytes",
            "Committed bytes that a connected member has not acknowledged; only a leader knows.",
            behind.collect(),
        );
    }

    /// What dashboards for ZooKeeper ask a JVM for.
    fn put_stand_ins(&mut self, process: &ProcessInfo) {
        let Some(heap_max) = process.heap_max_bytes else { return };
        let heap = || vec![("area", "heap".to_owned())];
        for (name, help, labels, value) in [
            (
                "jvm_memory_bytes_used",
                "There is no JVM: resident memory of this process stands in for its heap.",
                heap(),
                process.resident_bytes,
            ),
            (
                "jvm_memory_bytes_max",
                "There is no JVM: the limit of the control group, or the memory of the machine.",
                heap(),
                heap_max,
            ),
            (
                "jvm_threads_current",
                "There is no JVM: threads of this process.",
                vec![],
                process.threads,
            ),
            ("jvm_threads_deadlocked", "There is no JVM: always 0.", vec![], 0.0),
            (
                "jvm_info",
                "There is no JVM: this is oxkeeper.",
                vec![
                    ("version", env!("CARGO_PKG_VERSION").to_owned()),
                    ("vendor", "oxkeeper".to_owned()),
                    ("runtime", "none".to_owned()),
                ],
                1.0,
            ),
        ] {
            self.put_gauge(name, help, vec![(labels, value)]);
        }
    }

    fn put_one(&mut self, name: &str, help: &str, value: u64) {
        self.put_gauge(name, help, vec![(vec![], value as f64)]);
    }

    fn put_gauge(&mut self, name: &str, help: &str, values: Vec<(Labels, f64)>) {
        let samples = values.into_iter().map(|(labels, value)| sample(name, labels, value));
        self.put(name, help, "gauge", samples.collect());
    }

    fn put_histogram(&mut self, name: &str, help: &str, all: Vec<(Labels, HistogramValues)>) {
        let mut samples: Vec<Sample> = Vec::new();
        for (labels, values) in all {
            let bounds = values.buckets.iter().map(|(bound, count)| (bound.to_string(), *count));
            for (bound, count) in bounds.chain([("+Inf".to_owned(), values.count)]) {
                let mut labels = labels.clone();
                labels.push(("le", bound));
                samples.push(sample(&format!("{name}_bucket"), labels, count as f64));
            }
            let count = values.count as f64;
            samples.push(sample(&format!("{name}_count"), labels.clone(), count));
            samples.push(sample(&format!("{name}_sum"), labels, values.sum_seconds));
        }
        self.put(name, help, "histogram", samples);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::PeerFigures;
    use crate::model::ServerId;

    #[test]
    fn own_metrics_are_exported_with_their_labels() {
        let registry = Registry::default();
        registry.read_times.record(700, 3);
        registry.flush_times.record(20_000_000, 1);
        let own = OwnFigures {
            free_bytes: vec![("dataDir", 5)],
            sequence_max: 2_147_483_600,
            sessions: vec![("<1m", 2)],
            peers: vec![
                PeerFigures { id: ServerId(2), is_connected: true, lag_bytes: Some(9) },
                PeerFigures { id: ServerId(3), is_connected: false, lag_bytes: None },
            ],
            ..OwnFigures::default()
        };
        let process =
            ProcessInfo { threads: 7.0, heap_max_bytes: Some(64.0), ..ProcessInfo::default() };
        let status = Status { own: Some(own), process: Some(process), ..Status::default() };
        let text = Metrics::of(&registry, &status).text(&[]);
        for part in [
            "# TYPE oxkeeper_request_seconds histogram\noxkeeper_request_seconds_bucket{op=\"read\",le=\"0.0001\",} 0.0\n",
            "oxkeeper_request_seconds_bucket{op=\"read\",le=\"0.001\",} 3.0\n",
            "oxkeeper_request_seconds_count{op=\"read\",} 3.0\n",
            "oxkeeper_request_seconds_count{op=\"write\",} 0.0\n",
            "oxkeeper_fsync_seconds_bucket{le=\"10\",} 0.0\noxkeeper_fsync_seconds_bucket{le=\"+Inf\",} 1.0\n",
            "oxkeeper_fsync_seconds_sum 20.0\n",
            "oxkeeper_disk_free_bytes{dir=\"dataDir\",} 5.0\n",
            "oxkeeper_sequences_left 47.0\n",
            "oxkeeper_sessions{age=\"<1m\",} 2.0\n",
            "oxkeeper_peer_connected{sid=\"2\",} 1.0\noxkeeper_peer_connected{sid=\"3\",} 0.0\n",
            "gauge\noxkeeper_peer_lag_bytes{sid=\"2\",} 9.0\n",
            "jvm_memory_bytes_max{area=\"heap\",} 64.0\n",
            "jvm_threads_current 7.0\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let words = |line: &&str| line.starts_with("# HELP oxkeeper_");
        assert!(text.lines().filter(words).all(|line| line.split(' ').count() > 4), "{text}");
        let plain = Status { process: Some(ProcessInfo::default()), ..Status::default() };
        assert!(!Metrics::of(&registry, &plain).text(&[]).contains("jvm_memory"));
    }
}
