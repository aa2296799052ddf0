//! The fields of each command's answer, for a server that serves.

use super::super::connections::java_address;
use super::super::list::List;
use super::super::monitor::{self, Figure};
use super::super::{Mode, Status, conf, environment, version};
use super::addresses;
use super::answer::{Call, Value};
use super::commands::AdminCommand;
use super::json::Json;
use crate::config::Config;
use crate::metrics::{Registry, SizeValues, Value as Number};
use crate::model::Zxid;

/// The keys of an answer before `command` and `error`, in Java's order.
pub(super) type Entries = Vec<(String, Value)>;

/// Source: `Commands`, ZooKeeper 3.9.5.
pub(super) fn of(call: &Call, config: &Config, metrics: &Registry, status: &Status) -> Entries {
    let mut entries = Entries::new();
    let shown = config.admin.as_ref().map(|admin| &admin.shown);
    let mut put = |key: &str, value: Json| entries.push((key.to_owned(), Value::Json(value)));
    match call.command {
        AdminCommand::Configuration => configuration(config, status, &mut put),
        AdminCommand::Dirs => {
            put("datadir_size", Json::count(status.data_dir_bytes));
            put("logdir_size", Json::count(status.log_dir_bytes));
        }
        AdminCommand::Environment => {
            let facts = environment::facts(&status.environment);
            facts.into_iter().for_each(|(key, value)| put(key, Json::Text(value)));
        }
        AdminCommand::GetTraceMask => put("tracemask", Json::Integer(status.trace_mask)),
        AdminCommand::Hash => put("digests", digests(&status.digests)),
        AdminCommand::InitialConfiguration => {
            // A member of an ensemble answers null.
            let text = shown.map(|shown| &shown.text).filter(|_| status.member.is_none());
            put("initial_configuration", text.map_or(Json::Null, Json::text));
        }
        AdminCommand::IsReadOnly => put("read_only", Json::Bool(status.mode == Mode::ReadOnly)),
        AdminCommand::LastSnapshot => last_snapshot(status, &mut put),
        AdminCommand::Leader => leader(status, &mut put),
        AdminCommand::Monitor => {
            monitor::each(config.metrics.provider, metrics, status, &mut |key, figure| {
                put(
                    key,
                    match figure {
                        Figure::Text(text) => Json::text(text),
                        Figure::Number(Number::Integer(value)) => Json::Integer(value),
                        Figure::Number(Number::Float(value)) => Json::Double(value),
                    },
                );
            });
        }
        AdminCommand::Observers => {
            put(
                "synced_observers",
                Json::count(status.leader.map_or(0, |leader| leader.observers)),
            );
            put("observers", Json::List(status.observers.iter().map(observer).collect()));
        }
        AdminCommand::ServerStats | AdminCommand::Stats => server_stats(metrics, status, &mut put),
        AdminCommand::SystemProperties => {
            let facts = shown.into_iter().flat_map(|shown| &shown.properties);
            facts.for_each(|(key, value)| put(key, Json::text(value)));
        }
        AdminCommand::VotingView => put("current_config", voting_view(config, status)),
        AdminCommand::WatchSummary => {
            put("num_connections", Json::count(status.watches.connections));
            put("num_paths", Json::count(status.watches.paths));
            put("num_total_watches", Json::count(status.watches.watches));
        }
        AdminCommand::Zabstate => zabstate(config, status, &mut put),
        _ => {}
    }
    let lists = lists(call.command);
    entries.extend(lists.iter().map(|(key, list)| ((*key).to_owned(), Value::List(*list))));
    entries
}

/// The lists of an answer, which are filled while it is sent.
const fn lists(command: AdminCommand) -> &'static [(&'static str, List)] {
    match command {
        AdminCommand::Connections => &[
            ("connections", List::Connections { brief: false }),
            ("secure_connections", List::SecureConnections { brief: false }),
        ],
        AdminCommand::Stats => &[
            ("connections", List::Connections { brief: true }),
            ("secure_connections", List::SecureConnections { brief: true }),
        ],
        AdminCommand::Dump => &[
            ("expiry_time_to_session_ids", List::Sessions),
            ("session_id_to_ephemeral_paths", List::Ephemerals),
        ],
        AdminCommand::Watches => &[("session_id_to_watched_paths", List::WatchesBySession)],
        AdminCommand::WatchesByPath => &[("path_to_session_ids", List::WatchesByPath)],
        _ => &[],
    }
}

/// Source: `ZooKeeperServerConf.toMap`, 3.9.5.
fn configuration(config: &Config, status: &Status, put: &mut impl FnMut(&str, Json)) {
    let plain_port = Some(status.client_port).filter(|&port| port > 0).map_or(-1, i64::from);
    put("client_port", Json::Integer(plain_port));
    put("data_dir", Json::Text(conf::absolute(&config.data_dir, status)));
    put("data_log_dir", Json::Text(conf::absolute(&config.data_log_dir, status)));
    put("tick_time", Json::Integer(config.tick_time_ms.into()));
    put("max_client_cnxns", Json::Integer(config.max_client_cnxns.into()));
    put("min_session_timeout", Json::Integer(config.min_session_timeout_ms.into()));
    put("max_session_timeout", Json::Integer(config.max_session_timeout_ms.into()));
    put("server_id", Json::Integer(status.member.as_ref().map_or(0, |member| member.id.0)));
    put("client_port_listen_backlog", Json::Integer(config.client_port_listen_backlog.into()));
}

fn digests(digests: &[(Zxid, u64)]) -> Json {
    let digests = digests.iter().map(|(zxid, digest)| {
        Json::map([
            ("zxid", Json::Integer(zxid.to_wire())),
            ("digest", Json::Integer(digest.cast_signed())),
            ("digest_version", Json::Integer(DIGEST_VERSION)),
        ])
    });
    Json::List(digests.collect())
}

/// Source: `DigestCalculator.DIGEST_VERSION`, 3.9.5.
const DIGEST_VERSION: i64 = 2;

fn last_snapshot(status: &Status, put: &mut impl FnMut(&str, Json)) {
    let (zxid, seconds) = match status.last_snapshot {
        Some((zxid, seconds)) => (zxid.to_wire(), Json::count(seconds)),
        None => (-1, Json::Integer(-1)),
    };
    put("zxid", Json::Text(format!("{zxid:x}")));
    put("timestamp", seconds);
}

fn leader(status: &Status, put: &mut impl FnMut(&str, Json)) {
    // A server that is standalone has an error instead: see `answer`.
    let Some(member) = &status.member else { return };
    let leads = status.mode == Mode::Leader;
    let id = if leads { Some(member.id) } else { member.leader };
    let host = id.and_then(|id| member.view.members.get(&id)?.addresses.first());
    put("is_leader", Json::Bool(leads));
    put("leader_id", Json::Integer(id.map_or(-1, |id| id.0)));
    put("leader_ip", Json::Text(host.map_or(String::new(), |at| at.host.clone())));
}

/// Source: `LearnerHandler.getLearnerHandlerInfo`, 3.9.5.
fn observer(observer: &super::super::ObserverInfo) -> Json {
    Json::map([
        ("remote_socket_address", Json::Text(java_address(observer.remote))),
        ("sid", Json::Integer(observer.id.0)),
        ("established", Json::count(observer.established_ms)),
        ("queued_packets", Json::count(observer.queued_packets)),
        ("queued_packets_size", Json::count(observer.queued_bytes)),
        ("packets_received", Json::count(observer.packets_received)),
        ("packets_sent", Json::count(observer.packets_sent)),
        ("requests", Json::count(observer.requests)),
        ("last_zxid", Json::Text(format!("0x{:x}", observer.last_zxid.map_or(-1, Zxid::to_wire)))),
    ])
}

/// The inner keys, in an order seen from a Java server; Java's order changes from one start to the next.
///
/// Source: `SrvrCommand` and `ServerStats`, 3.9.5.
fn server_stats(metrics: &Registry, status: &Status, put: &mut impl FnMut(&str, Json)) {
    let latency = metrics.request_latency.values();
    let sizes = || buffer_sizes(metrics.client_response_size.values());
    put("version", Json::Text(version()));
    put("read_only", Json::Bool(status.mode == Mode::ReadOnly));
    let stats = Json::map([
        ("packets_sent", Json::count(metrics.packets_sent.get())),
        ("packets_received", Json::count(metrics.packets_received.get())),
        ("fsync_threshold_exceed_count", Json::count(metrics.slow_flushes.get())),
        ("client_response_stats", sizes()),
        ("data_dir_size", Json::count(status.data_dir_bytes)),
        ("log_dir_size", Json::count(status.log_dir_bytes)),
        ("provider_null", Json::Bool(false)),
        ("last_processed_zxid", Json::Integer(status.zxid.to_wire())),
        ("outstanding_requests", Json::count(status.outstanding_requests)),
        ("server_state", Json::text(status.mode.name())),
        ("avg_latency", Json::Double(latency.avg)),
        ("max_latency", Json::Integer(latency.max)),
        ("min_latency", Json::Integer(latency.min)),
        ("num_alive_client_connections", Json::count(status.connection_count)),
        ("uptime", Json::count(status.uptime_ms)),
        ("auth_failed_count", Json::count(metrics.tls.auth_failed.get())),
        ("non_mtlsremote_conn_count", Json::count(metrics.tls.non_mtls_remote.get())),
        ("non_mtlslocal_conn_count", Json::count(metrics.tls.non_mtls_local.get())),
    ]);
    put("server_stats", stats);
    put("client_response", sizes());
    if status.mode == Mode::Leader {
        put("proposal_stats", buffer_sizes(metrics.proposal_size.values()));
    }
    put("node_count", Json::count(status.node_count));
}

fn buffer_sizes(sizes: SizeValues) -> Json {
    Json::map([
        ("last_buffer_size", Json::Integer(sizes.last)),
        ("min_buffer_size", Json::Integer(sizes.min)),
        ("max_buffer_size", Json::Integer(sizes.max)),
    ])
}

fn own_client(config: &Config, status: &Status) -> Option<String> {
    let port = Some(status.client_port).filter(|&port| port > 0)?;
    Some(addresses::client(config.client_host.as_deref(), port))
}

fn voting_view(config: &Config, status: &Status) -> Json {
    let Some(member) = &status.member else { return Json::Map(Vec::new()) };
    let voters = member.view.voters().filter_map(|id| {
        let own = own_client(config, status).filter(|_| id == member.id);
        Some((id.0.to_string(), addresses::voter(member.view.members.get(&id)?, own)))
    });
    Json::Map(voters.collect())
}

fn zabstate(config: &Config, status: &Status, put: &mut impl FnMut(&str, Json)) {
    let Some(member) = status.member.as_ref().filter(|_| status.serving) else {
        put("voting", Json::Bool(false));
        put("zabstate", Json::text(""));
        return;
    };
    put("myid", Json::Integer(member.id.0));
    put("is_leader", Json::Bool(status.mode == Mode::Leader));
    if let Some(own) = member.view.members.get(&member.id) {
        put("quorum_address", addresses::own(own, |at| at.quorum_port));
        put("election_address", addresses::own(own, |at| at.election_port));
    }
    put("client_address", own_client(config, status).map_or(Json::Null, Json::Text));
    put("voting", Json::Bool(member.view.is_voter(member.id)));
    put("last_zxid", Json::Text(format!("0x{:x}", status.zxid.to_wire())));
    put("zab_epoch", Json::Integer(status.zxid.to_wire() >> 32));
    put("zab_counter", Json::Integer(status.zxid.counter().into()));
    put(
        "zabstate",
        Json::text(if status.mode == Mode::ReadOnly { "election" } else { "broadcast" }),
    );
}
