//! The checked configuration of a server, which the rest of the server reads.

use super::admin_server::AdminServer;
use super::auth_providers::Providers;
use super::ensemble::Ensemble;
use super::log_output::LogFile;
use super::metrics_provider::MetricsSettings;
use super::pause_monitor::PauseMonitor;
use super::problem::Warning;
use super::sasl::{ClientSasl, QuorumSasl, SaslRules};
use super::throttle::Throttle;
use super::tls::{ClientTls, QuorumTls};
use super::whitelist::Whitelist;
use crate::model::DigestAlgorithm;
use std::path::PathBuf;

/// How a snapshot file is packed; `snapshot.compression.method`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SnapshotCompression {
    /// Plain bytes under an Adler-32 seal.
    #[default]
    None,
    /// Files named `snapshot.<zxid>.gz`.
    Gzip,
    /// Files named `snapshot.<zxid>.snappy`.
    Snappy,
}

/// Everything a server needs to know before it opens its first file.
///
/// Field by field the keys of ZooKeeper 3.9.5; the unit is in the name, and "off" is `None` or 0
/// as each field says. Values have Java's corrections already applied (minima, defaults).
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `dataDir`: snapshots, epochs, `myid`; the files are in its `version-2`.
    pub data_dir: PathBuf,
    /// `dataLogDir`: transaction logs; equals [`Config::data_dir`] when not set.
    pub data_log_dir: PathBuf,
    /// `clientPortAddress`: host name or address to bind, without brackets; `None` is every address of the machine.
    pub client_host: Option<String>,
    /// `clientPort`: TCP port for clients; 0 lets the system choose one; `None`: `secureClientPort` is the only port for clients.
    pub client_port: Option<u16>,
    /// `clientPortListenBacklog`: connections waiting in `listen`; below 1 is the system's maximum.
    pub client_port_listen_backlog: i32,
    /// `tickTime`: the unit of session timeouts; never 0.
    pub tick_time_ms: u32,
    /// `minSessionTimeout`: at most the maximum; 2 ticks unless set; below 0 forbids nothing.
    pub min_session_timeout_ms: i32,
    /// `maxSessionTimeout`: 20 ticks unless set; sessions of 0 ms and less end at once.
    pub max_session_timeout_ms: i32,
    /// `maxClientCnxns`: connections from one address; 0 and less are no limit.
    pub max_client_cnxns: i32,
    /// `maxCnxns`: connections in all; 0 is no limit.
    pub max_cnxns: u32,
    /// `clientTcpKeepAlive`: whether client sockets get `SO_KEEPALIVE`.
    pub client_tcp_keep_alive: bool,
    /// `nio.sessionlessCnxnTimeout`: how long a connection may go without a session.
    pub sessionless_cnxn_timeout_ms: u32,
    /// `globalOutstandingLimit`: limit on outstanding writes; above it, connections that wait for a write are not read.
    pub global_outstanding_limit: u32,
    /// `largeRequestThreshold`: body size above which a request is large; `None` is off.
    pub large_request_threshold_bytes: Option<u32>,
    /// `largeRequestMaxBytes`: sum of large requests in flight; never 0.
    pub large_request_max_bytes: u32,
    /// Limits on outstanding writes and on new connections.
    pub throttle: Throttle,
    /// `jute.maxbuffer`: largest frame or buffer a client may send; only a JVM flag sets it.
    pub jute_max_buffer_bytes: u32,
    /// `jute.maxbuffer.extrasize`: what a record on disk or between servers may add to that.
    pub jute_max_buffer_extra_bytes: u32,
    /// `4lw.commands.whitelist`: the four-letter words that are answered.
    pub four_letter_words: Whitelist,
    /// `skipACL=yes`: every access check passes.
    pub skip_acl: bool,
    /// `reconfigEnabled`: whether reconfig is enabled; a standalone server then answers it as unimplemented, else as disabled.
    pub reconfig_enabled: bool,
    pub metrics: MetricsSettings,
    /// `enforceQuota`: whether a quota refuses writes or only logs.
    pub enforce_quota: bool,
    /// `DigestAuthenticationProvider.enabled`: whether scheme `digest` exists.
    pub digest_auth_enabled: bool,
    /// `DigestAuthenticationProvider.superDigest`: `user:base64(hash)` of the superuser.
    pub super_digest: Option<String>,
    /// `DigestAuthenticationProvider.digestAlg`.
    pub digest_algorithm: DigestAlgorithm,
    /// `authProvider.N`: authentication providers that are named.
    pub providers: Providers,
    /// `ensembleAuthName`: names that clients may give under scheme `ensemble`; `None`: any.
    pub ensemble_names: Option<Vec<String>>,
    /// `extendedTypesEnabled`: whether TTL znodes may be created.
    pub extended_types_enabled: bool,
    /// `emulate353TTLNodes`: whether TTLs are encoded as release 3.5.3 did.
    pub emulate_353_ttl_nodes: bool,
    /// `znode.container.checkIntervalMs`: pause between checks for empty containers and expired TTL znodes.
    pub container_check_interval_ms: u32,
    /// `znode.container.maxPerMinute`: limit on containers deleted per minute.
    pub container_max_per_minute: u32,
    /// `znode.container.maxNeverUsedIntervalMs`: age at which a container that never had a child
    /// is deleted; 0 is never.
    pub container_max_never_used_ms: u64,
    /// `readonlymode.enabled`: only a JVM flag sets it; also enables the word `isro`.
    pub read_only_mode_enabled: bool,
    /// `oxkeeper.quorumSync`: a leader answers a sync only after a quorum has confirmed that it still leads.
    pub quorum_sync: bool,
    /// `oxkeeper.connectHold`: for how long a client that connects during an election may wait for its end.
    pub connect_hold_ms: u32,
    /// `oxkeeper.linearizableReads`: reads see all that was committed before they came; a leader answers syncs as with
    /// `quorum_sync`.
    pub linearizable_reads: bool,
    /// `snapCount`: transactions between snapshots, randomised between half and all of this; at least 2.
    pub snap_count: u32,
    /// `snapSizeLimitInKb`: log bytes between snapshots; `None` is off.
    pub snap_size_limit_bytes: Option<u64>,
    /// `txnLogSizeLimitInKb`: size at which a log file is closed; `None` is off.
    pub txn_log_size_limit_bytes: Option<u64>,
    /// `preAllocSize`: step by which a log file grows ahead; 0 is off.
    pub pre_alloc_bytes: u64,
    /// `forceSync`: whether the log is flushed before a write is acknowledged.
    pub force_sync: bool,
    /// `fsync.warningthresholdms`: a flush slower than this is logged.
    pub fsync_warning_threshold_ms: u64,
    /// `commitLogCount`: committed transactions kept in memory; at least 500.
    pub commit_log_count: u32,
    /// `snapshotSizeFactor`: log bytes, as a share of a snapshot's, that may be sent instead of it;
    /// `None` is off.
    pub snapshot_size_factor: Option<f64>,
    /// `snapshot.trust.empty`: whether logs without any snapshot are accepted.
    pub trust_empty_snapshot: bool,
    /// `snapshot.compression.method`.
    pub snapshot_compression: SnapshotCompression,
    /// `datadir.autocreate`: whether missing directories are created.
    pub data_dir_auto_create: bool,
    /// `db.autocreate`: whether an empty directory starts an empty tree without a file `initialize`.
    pub db_auto_create: bool,
    /// `digest.enabled`: whether the tree's digest is kept, logged and compared.
    pub digest_enabled: bool,
    /// `closeSessionTxn.enabled`: whether the transaction that ends a session names the paths it deletes.
    pub close_session_txn_enabled: bool,
    /// `serializeLastProcessedZxid.enabled`: whether a snapshot ends with its last zxid.
    pub serialize_last_processed_zxid: bool,
    /// `autopurge.snapRetainCount`: snapshots kept; at least 3.
    pub purge_snap_retain_count: u32,
    /// `autopurge.purgeInterval`: pause between purges; `None` is off.
    pub purge_interval_hours: Option<u32>,
    /// `jvm.pause.*`.
    pub pause_monitor: PauseMonitor,
    /// TLS on client ports; `None`: `clientPort` alone, without TLS.
    pub client_tls: Option<ClientTls>,
    /// TLS between servers; `None`: plain connections.
    pub quorum_tls: Option<QuorumTls>,
    /// SASL on client ports; `None`: no mechanism is offered.
    pub client_sasl: Option<ClientSasl>,
    pub sasl_rules: SaslRules,
    /// SASL between servers; `None`: no exchange.
    pub quorum_sasl: Option<QuorumSasl>,
    /// `-Djava.security.auth.login.config`: the JAAS file, which has been read.
    pub jaas_file: Option<PathBuf>,
    /// `-Djava.security.krb5.conf`: becomes `KRB5_CONFIG` for the Kerberos library.
    pub krb5_conf: Option<PathBuf>,
    /// `audit.enable`: whether the audit log is written.
    pub audit_enabled: bool,
    /// `zookeeper.auditlog.file` in `zookeeper.log.dir`, else that of `logback.xml`: the file of the audit log; `None`: it goes to
    /// the main log.
    pub audit_file: Option<LogFile>,
    /// AdminServer; `None`: `admin.enableServer=false`.
    pub admin: Option<AdminServer>,
    /// `oxkeeper.admin.probes`: whether `/ready` and `/live` are answered, at AdminServer's port and at those of metrics.
    pub probes: bool,
    /// Settings of a member of an ensemble; `None`: standalone.
    pub ensemble: Option<Ensemble>,
    /// Settings without effect, and risky ones; `main` logs each.
    pub warnings: Vec<Warning>,
}
