//! Copies the replica's counters and measurements into the registry.

use super::audit_log::AuditQueue;
use super::client_log::ClientLog;
use crate::member::Now;
use crate::metrics::{Registry, Samples};
use crate::model::EventKind;
use crate::replica::{Mode, Replica, Stats, WriteSample};
use crate::request::{ChangeCounts, Namespace, Shared};

/// The part of the replica's counters that is in the registry already.
#[derive(Default)]
pub struct Published {
    stats: Stats,
    changes: ChangeCounts,
    /// Takes events of the audit log; `None`: there is none.
    audit: Option<AuditQueue>,
    clients: ClientLog,
}

impl Published {
    pub fn new(audit: Option<AuditQueue>) -> Self {
        Self { audit, ..Self::default() }
    }

    pub fn publish(
        &mut self,
        replica: &mut Replica,
        metrics: &Registry,
        shared: &Shared,
        now: Now,
    ) {
        self.clients.log_if_due(metrics, shared.conns.count(), now.us);
        self.publish_replica(replica, metrics, now.wall_ms);
    }

    fn publish_replica(&mut self, replica: &mut Replica, metrics: &Registry, wall_ms: i64) {
        if let Some(audit) = &self.audit {
            audit.put(&mut replica.audit, wall_ms);
        }
        let (stats, changes) = (replica.stats, replica.changes());
        let before = self.stats;
        // Seldom: what is added is shared with other threads.
        if stats != before {
            metrics.digest_mismatches_count.add(stats.digest_mismatches - before.digest_mismatches);
            metrics.stale_sessions_expired.add(stats.sessions_expired - before.sessions_expired);
            metrics
                .sessionless_connections_expired
                .add(stats.sessionless_expired - before.sessionless_expired);
            metrics.stale_requests.add(stats.stale_requests - before.stale_requests);
            metrics.stale_replies.add(stats.stale_replies - before.stale_replies);
        }
        metrics.outstanding_changes_queued.add(changes.noted - self.changes.noted);
        let removed = changes.forgotten - self.changes.forgotten;
        metrics.outstanding_changes_removed.add(removed);
        let mode = replica.mode();
        let samples = &mut replica.samples;
        let age_ms = |born_ms: i64| Some(wall_ms - born_ms).filter(|age_ms| 0 <= *age_ms);
        samples
            .heard
            .drain(..)
            .filter_map(age_ms)
            .for_each(|ms| metrics.proposal_latency.record(ms));
        let committed = match mode {
            Mode::Leading => &metrics.quorum_ack_latency,
            _ => &metrics.commit_propagation_latency,
        };
        samples.committed.drain(..).filter_map(age_ms).for_each(|ms| committed.record(ms));
        for WriteSample { took_us, born_ms } in samples.writes.drain(..) {
            if let Some(took_us) = took_us {
                let took_ms = took_us as i64 / 1000;
                metrics.request_latency.record(took_ms);
                // As Java: a request that takes no zxid (a sync, a body that can't be decoded) counts as a read.
                let (kind, times) = match born_ms {
                    Some(_) => (&metrics.updatelatency, &metrics.write_times),
                    None => (&metrics.readlatency, &metrics.read_times),
                };
                kind.record(took_ms);
                times.record(took_us, 1);
            }
            // The wall clock may have been set back meanwhile.
            if let Some(age_ms) = born_ms.and_then(age_ms) {
                metrics.propagation_latency.record(age_ms);
            }
        }
        samples.spaces.publish(|space| {
            metrics.write_per_namespace.record(&space.name, &sampled(space));
        });
        for (kind, watchers) in samples.fired.drain(..) {
            let summary = match kind {
                EventKind::NodeCreated => &metrics.node_created_watch_count,
                EventKind::NodeDeleted => &metrics.node_deleted_watch_count,
                EventKind::NodeDataChanged => &metrics.node_changed_watch_count,
                EventKind::NodeChildrenChanged => &metrics.node_children_watch_count,
            };
            summary.record(watchers as i64);
        }
        replica.quota_refusals().publish(|space| {
            metrics.quota_exceeded_error_per_namespace.record(&space.name, &sampled(space));
        });
        (self.stats, self.changes) = (stats, changes);
    }
}

fn sampled(space: &Namespace) -> Samples {
    Samples {
        count: space.count,
        sum: space.sum_bytes as i64,
        min: space.min_bytes as i64,
        max: space.max_bytes as i64,
    }
}
