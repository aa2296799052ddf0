//! The gauges of `mntr`.

use super::status::{LeaderInfo, Status};
use crate::metrics::{Registry, Value};

/// Passes every gauge of a server in this role to `line`, in Java's order.
pub(super) fn gauges(metrics: &Registry, status: &Status, line: &mut dyn FnMut(&str, Value)) {
    let count = |count: u64| Value::Integer(i64::try_from(count).unwrap_or(i64::MAX));
    let latency = metrics.request_latency.values();
    let sizes = metrics.client_response_size.values();
    let proposals = metrics.proposal_size.values();
    let leader = |figure: fn(&LeaderInfo) -> u64| status.leader.as_ref().map(figure).map(count);
    let proposal = |size: i64| status.leader.map(|_| Value::Integer(size));
    let quorum_size =
        status.member.as_ref().map(|member| count(member.view.voters().count() as u64));
    let gauges = [
        ("ephemerals_count", Some(count(status.ephemerals_count))),
        ("num_alive_connections", Some(count(status.connection_count))),
        ("avg_latency", Some(Value::Float(latency.avg))),
        ("min_proposal_size", proposal(proposals.min)),
        ("outstanding_requests", Some(count(status.outstanding_requests))),
        ("znode_count", Some(count(status.node_count))),
        ("global_sessions", Some(count(status.global_sessions))),
        // Connections to a client port that accepts plain connections, alone or as well as TLS.
        ("non_mtls_remote_conn_count", Some(count(metrics.tls.non_mtls_remote.get()))),
        ("last_client_response_size", Some(Value::Integer(sizes.last))),
        ("packets_sent", Some(count(metrics.packets_sent.get()))),
        ("packets_received", Some(count(metrics.packets_received.get()))),
        ("max_proposal_size", proposal(proposals.max)),
        ("max_client_response_size", Some(Value::Integer(sizes.max))),
        ("synced_followers", leader(|leader| leader.followers)),
        ("connection_drop_probability", Some(Value::Float(status.connection_drop_chance))),
        ("watch_count", Some(count(status.watch_count))),
        ("synced_non_voting_followers", leader(|leader| leader.non_voting_followers)),
        ("synced_observers", leader(|leader| leader.observers)),
        // Handshakes and client certificates refused: Java counts no other failed authentication here.
        ("auth_failed_count", Some(count(metrics.tls.auth_failed.get()))),
        ("min_latency", Some(Value::Integer(latency.min))),
        ("max_file_descriptor_count", status.max_file_descriptors.map(count)),
        ("approximate_data_size", Some(count(status.approximate_data_size_bytes))),
        ("open_file_descriptor_count", status.open_file_descriptors.map(count)),
        ("last_proposal_size", proposal(proposals.last)),
        ("pending_syncs", leader(|leader| leader.pending_syncs)),
        ("leader_uptime", leader(|leader| leader.uptime_ms)),
        // Sessions that only this member of the ensemble knows.
        ("local_sessions", Some(count(status.local_sessions))),
        ("uptime", Some(count(status.uptime_ms))),
        ("max_latency", Some(Value::Integer(latency.max))),
        ("outstanding_tls_handshake", Some(count(metrics.tls.handshakes_under_way()))),
        ("learners", leader(|leader| leader.learners)),
        ("min_client_response_size", Some(Value::Integer(sizes.min))),
        ("non_mtls_local_conn_count", Some(count(metrics.tls.non_mtls_local.get()))),
        ("quorum_size", quorum_size),
    ];
    for (name, value) in gauges {
        if let Some(value) = value {
            line(name, value);
        }
    }
}
