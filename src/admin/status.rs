//! The values that answers of four-letter words are made of.

use std::net::SocketAddr;

use super::EnvironmentInfo;
use super::own_figures::OwnFigures;
use crate::metrics::Queues;
use crate::model::{ServerId, View, Zxid};

/// The role of a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    #[default]
    Standalone,
    Leader,
    Follower,
    Observer,
    /// Without a leader, and serving clients that accept a read-only server.
    ReadOnly,
}

impl Mode {
    /// The name that `srvr` and `mntr` print.
    pub fn name(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Leader => "leader",
            Self::Follower => "follower",
            Self::Observer => "observer",
            Self::ReadOnly => "read-only",
        }
    }
}

impl Mode {
    /// The queues that every request passes in a Java server of this mode.
    pub fn queues(self) -> Queues {
        match self {
            Self::Standalone | Self::ReadOnly => Queues::OfStandalone,
            Self::Leader => Queues::OfLeader,
            Self::Follower | Self::Observer => Queues::OfLearner,
        }
    }

    /// Java's state of the peer, for `mntr`.
    pub(super) fn peer_state(self) -> &'static str {
        match self {
            Self::Leader => "leading - broadcast",
            Self::Follower => "following - broadcast",
            Self::Observer => "observing - broadcast",
            // Only a server that serves answers; the others look for a leader.
            Self::Standalone | Self::ReadOnly => "looking",
        }
    }
}

/// What a member of an ensemble has in addition to the values of every server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MemberInfo {
    pub id: ServerId,
    /// The configuration in force.
    pub view: View,
    /// The server that it follows or observes; `None` for a leader.
    pub leader: Option<ServerId>,
}

/// What a leader has in addition to the values of every member.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaderInfo {
    /// Learners that are connected.
    pub learners: u64,
    /// Learners that get proposals, voters or not.
    pub followers: u64,
    /// Followers that are not voters.
    pub non_voting_followers: u64,
    pub observers: u64,
    /// Syncs that wait until earlier proposals are committed.
    pub pending_syncs: u64,
    /// Milliseconds since this server began to lead.
    pub uptime_ms: u64,
}

/// A server at one moment. Collections are filled only for the four-letter words that they name.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Whether clients are served; if not, most four-letter words answer just that.
    pub serving: bool,
    pub mode: Mode,
    /// `None`: standalone.
    pub member: Option<MemberInfo>,
    /// `None`: not a leader.
    pub leader: Option<LeaderInfo>,
    /// Last transaction applied; zero before the first.
    pub zxid: Zxid,
    /// Znodes, those under `/zookeeper` included.
    pub node_count: u64,
    /// Watches left on this server.
    pub watch_count: u64,
    /// Ephemeral znodes.
    pub ephemerals_count: u64,
    /// Size of all paths and data, as Java adds them up.
    pub approximate_data_size_bytes: u64,
    /// Client connections, the one that asks included.
    pub connection_count: u64,
    /// Chance that a new connection is dropped, 0 to 1.
    pub connection_drop_chance: f64,
    /// Requests received and not yet answered.
    pub outstanding_requests: u64,
    /// Sessions that the whole ensemble knows.
    pub global_sessions: u64,
    /// Sessions that only this server knows.
    pub local_sessions: u64,
    /// Since the process began to serve; a member of an ensemble: since its last election.
    pub uptime_ms: u64,
    /// Open file descriptors; `None`: unknown.
    pub open_file_descriptors: Option<u64>,
    /// Limit of that number.
    pub max_file_descriptors: Option<u64>,
    /// The port that is bound, which `clientPort=0` leaves to the system.
    /// 0: there is only a secure port.
    pub client_port: u16,
    /// The secure port that is bound; `None`: there is none.
    pub secure_client_port: Option<u16>,
    /// For [`super::Word::needs_dir_sizes`]: bytes of the files in `dataDir/version-2`.
    pub data_dir_bytes: u64,
    /// For [`super::Word::needs_dir_sizes`]: bytes of the files in `dataLogDir/version-2`.
    pub log_dir_bytes: u64,
    /// For `wchs`: data watches only, as in Java.
    pub watches: WatchTotals,
    /// Counts that `dump` shows.
    pub dump: DumpCounts,
    /// Digests that `hash` shows, each after its zxid.
    pub digests: Vec<(Zxid, u64)>,
    /// For `gtmk`.
    pub trace_mask: i64,
    /// For `mntr`: each gauge of quotas with its values by namespace, in Java's order.
    pub quotas: Vec<(&'static str, Vec<(String, i64)>)>,
    /// For `envi`; its working directory also for `conf`.
    pub environment: EnvironmentInfo,
    /// The newest snapshot, and when its file was written, in seconds since 1970.
    pub last_snapshot: Option<(Zxid, u64)>,
    /// For a leader: its observers.
    pub observers: Vec<ObserverInfo>,
    /// For metrics; `None`: not asked for.
    pub process: Option<ProcessInfo>,
    pub own: Option<OwnFigures>,
}

/// What the system knows of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessInfo {
    pub cpu_seconds: f64,
    /// When the process started, in seconds since 1970.
    pub start_seconds: f64,
    pub open_files: f64,
    pub files_max: f64,
    pub virtual_bytes: f64,
    pub resident_bytes: f64,
    pub threads: f64,
    /// Limit of its memory, if figures stand in for those of a JVM.
    pub heap_max_bytes: Option<f64>,
}

/// An observer of a leader.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ObserverInfo {
    pub remote: SocketAddr,
    pub id: ServerId,
    /// Wall clock, ms since 1970.
    pub established_ms: u64,
    /// Packets, and their bytes, that wait for the socket.
    pub queued_packets: u64,
    pub queued_bytes: u64,
    pub packets_received: u64,
    pub packets_sent: u64,
    /// Packets that were clients' requests.
    pub requests: u64,
    /// The zxid of the last packet that named one.
    pub last_zxid: Option<Zxid>,
}

/// The counts that `dump` prints above its lists.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DumpCounts {
    pub sessions: SetCounts,
    /// `None` if local sessions are disabled.
    pub local_sessions: Option<SetCounts>,
    /// Sessions with ephemeral znodes.
    pub owners: usize,
    pub connections: SetCounts,
}

/// The counts above a list by expiry: sets that expire in the same second, and all entries.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SetCounts {
    pub sets: usize,
    pub all: usize,
}

/// The totals that `wchs` prints.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WatchTotals {
    pub connections: u64,
    pub paths: u64,
    pub watches: u64,
}

/// One client connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConnectionInfo {
    pub remote: SocketAddr,
    /// Whether the connection is read from; Java shows its selector's interest, of which this is bit 0.
    pub reads: bool,
    /// Whether replies wait for the socket; bit 2 of the same number.
    pub writes: bool,
    /// Requests received and not yet answered.
    pub outstanding: u64,
    pub received: u64,
    pub sent: u64,
    /// `None` until the handshake is done.
    pub session: Option<SessionInfo>,
}

/// The session of a connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SessionInfo {
    pub id: i64,
    /// Java's four letters for the last request (`PING`, `GETD`, ...), `NA` before the first.
    pub last_operation: &'static str,
    /// Wall clock, ms since 1970.
    pub established_ms: u64,
    pub timeout_ms: u32,
    /// `None` until a request carried one that is not negative.
    pub last_cxid: Option<i32>,
    /// `None` until a reply carried one.
    pub last_zxid: Option<Zxid>,
    /// Monotonic clock, ms; 0 before the first.
    pub last_response_ms: u64,
    pub last_latency_ms: u64,
    pub min_latency_ms: u64,
    pub avg_latency_ms: u64,
    pub max_latency_ms: u64,
}
