//! The names of all metrics, in the order in which a Java server prints them.
//!
//! Java's tables are hash tables, so the order means nothing, but it makes answers of two servers easy to compare by eye or with
//! `diff`. Taken from a running 3.9.5 server.

/// Counters in Java's order.
pub(super) const COUNTERS: &[&str] = &[
    "watch_bytes",
    "stale_requests_dropped",
    "throttled_ops",
    "insecure_admin_count",
    "connection_rejected",
    "sessionless_connections_expired",
    "dead_watchers_queued",
    "stale_requests",
    "connection_drop_count",
    "response_packet_cache_hits",
    "bytes_received_count",
    "add_dead_watcher_stall_time",
    "request_throttle_wait_count",
    "requests_not_forwarded_to_commit_processor",
    "response_packet_cache_misses",
    "prep_processor_request_queued",
    "stale_replies",
    "response_bytes",
    "ensemble_auth_fail",
    "diff_count",
    "connection_revalidate_count",
    "quit_leading_due_to_disloyal_voter",
    "unrecoverable_error_count",
    "unsuccessful_handshake",
    "commit_count",
    "outstanding_changes_queued",
    "request_commit_queued",
    "ensemble_auth_skip",
    "skip_learner_request_to_next_processor_count",
    "proposal_count",
    "large_requests_rejected",
    "outstanding_changes_removed",
    "restore_error_count",
    "cnxn_closed_without_zk_server_running",
    "looking_count",
    "snapshot_rate_limited_count",
    "learner_proposal_received_count",
    "digest_mismatches_count",
    "dead_watchers_cleared",
    "ensemble_auth_success",
    "learner_commit_received_count",
    "snapshot_error_count",
    "connection_request_count",
    "response_packet_get_children_cache_misses",
    "snap_count",
    "stale_sessions_expired",
    "restore_rate_limited_count",
    "response_packet_get_children_cache_hits",
    "sync_processor_request_queued",
    "tls_handshake_exceeded",
    "revalidate_count",
];

/// Counters that every request raises in a standalone Java server: reads, pings and syncs too, which pass no such queue here.
/// Reads, pings and syncs are counted as answers already, and are added from there, so that no read is counted twice.
pub(super) const OF_ALL_REQUESTS: &[&str] =
    &["prep_processor_request_queued", "sync_processor_request_queued"];
/// The same in a leader, whose log is handed writes alone.
pub(super) const OF_A_LEADERS_REQUESTS: &[&str] = &["prep_processor_request_queued"];

/// Summaries without percentiles, in Java's order.
pub(super) const SUMMARIES: &[&str] = &[
    "socket_closing_time",
    "proposal_process_time",
    "leader_unavailable_time",
    "node_created_watch_count",
    "session_queues_drained",
    "write_commit_proc_req_queued",
    "connection_token_deficit",
    "read_commit_proc_req_queued",
    "node_deleted_watch_count",
    "startup_txns_load_time",
    "sync_processor_queue_size",
    "follower_sync_time",
    "prep_processor_queue_size",
    "fsynctime",
    "inflight_snap_count",
    "reads_issued_from_session_queue",
    "restore_time",
    "learner_request_processor_queue_size",
    "snapshottime",
    "unavailable_time",
    "startup_txns_loaded",
    "reads_after_write_in_session_queue",
    "requests_in_session_queue",
    "write_commit_proc_issued",
    "prep_process_time",
    "pending_session_queue_size",
    "time_waiting_empty_pool_in_commit_processor_read_ms",
    "commit_process_time",
    "dbinittime",
    "inflight_diff_count",
    "netty_queued_buffer_capacity",
    "election_time",
    "commit_commit_proc_req_queued",
    "sync_processor_batch_size",
    "node_children_watch_count",
    "write_batch_time_in_commit_processor",
    "read_commit_proc_issued",
    "concurrent_request_processing_in_commit_processor",
    "observer_sync_time",
    "node_changed_watch_count",
    "sync_process_time",
    "startup_snap_load_time",
];

/// Summaries with percentiles, in Java's order.
pub(super) const PERCENTILES: &[&str] = &[
    "prep_processor_queue_time_ms",
    "jvm_pause_time_ms",
    "close_session_prep_time",
    "read_commitproc_time_ms",
    "updatelatency",
    "local_write_committed_time_ms",
    "request_throttle_queue_time_ms",
    "readlatency",
    "quorum_ack_latency",
    "om_commit_process_time_ms",
    "read_final_proc_time_ms",
    "commit_propagation_latency",
    "dead_watchers_cleaner_latency",
    "write_final_proc_time_ms",
    "proposal_ack_creation_latency",
    "proposal_latency",
    "om_proposal_process_time_ms",
    "sync_processor_queue_and_flush_time_ms",
    "propagation_latency",
    "server_write_committed_time_ms",
    "sync_processor_queue_time_ms",
    "sync_processor_queue_flush_time_ms",
    "write_commitproc_time_ms",
];

/// Names that are printed and never counted: the events cannot happen here, so their zeros are true.
///
/// Each group with what it counts. A name whose event can happen has a field in [`super::Registry`] instead.
#[cfg_attr(
    not(test),
    allow(dead_code, reason = "for readers, and for the test that holds them to it")
)]
pub(super) const NEVER: &[(&str, &[&str])] = &[
    (
        "of processor threads between agreement and reply: here a commit is applied by the thread that receives it",
        &[
            "requests_not_forwarded_to_commit_processor",
            "skip_learner_request_to_next_processor_count",
            "session_queues_drained",
            "write_commit_proc_req_queued",
            "read_commit_proc_req_queued",
            "reads_issued_from_session_queue",
            "learner_request_processor_queue_size",
            "reads_after_write_in_session_queue",
            "requests_in_session_queue",
            "write_commit_proc_issued",
            "read_commit_proc_issued",
            "pending_session_queue_size",
            "time_waiting_empty_pool_in_commit_processor_read_ms",
            "commit_process_time",
            "commit_commit_proc_req_queued",
            "write_batch_time_in_commit_processor",
            "concurrent_request_processing_in_commit_processor",
            "read_commitproc_time_ms",
            "write_commitproc_time_ms",
            "local_write_committed_time_ms",
            "server_write_committed_time_ms",
            "read_final_proc_time_ms",
            "write_final_proc_time_ms",
        ],
    ),
    ("of a thread that closes connections to learners and waits for it", &["socket_closing_time"]),
    (
        "of the hand-over of packets to an observer master: here a follower sends them to its observers in the step that receives them",
        &["om_commit_process_time_ms", "om_proposal_process_time_ms"],
    ),
    (
        "of the request throttler's queue, which every request passes in Java even if it is not throttled",
        &["request_throttle_queue_time_ms"],
    ),
    (
        "of a cache of replies: every reply is made from the tree",
        &[
            "response_packet_cache_hits",
            "response_packet_cache_misses",
            "response_packet_get_children_cache_hits",
            "response_packet_get_children_cache_misses",
        ],
    ),
    (
        "of a cleaner of dead watchers: watches are removed together with their connection",
        &[
            "dead_watchers_queued",
            "add_dead_watcher_stall_time",
            "dead_watchers_cleared",
            "dead_watchers_cleaner_latency",
        ],
    ),
    (
        "of errors after which a Java server goes on; here such an error ends the process",
        &["unrecoverable_error_count"],
    ),
    ("of the JVM and of Netty", &["jvm_pause_time_ms", "netty_queued_buffer_capacity"]),
];
