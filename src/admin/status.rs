//! The values that answers are made of.

use std::net::SocketAddr;

use super::EnvironmentInfo;
use crate::metrics::Queues;
use crate::model::{ServerId, View, Zxid};

/// What a server is at the moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    #[default]
    Standalone,
    Leader,
    Follower,
    Observer,
    /// Cut off from its ensemble, and serving those who accept that.
    ReadOnly,
}

impl Mode {
    /// As `srvr` and `mntr` print it.
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
    /// Which queues every request takes in a Java server of this mode.
    pub fn queues(self) -> Queues {
        match self {
            Self::Standalone | Self::ReadOnly => Queues::OfStandalone,
            Self::Leader => Queues::OfLeader,
            Self::Follower | Self::Observer => Queues::OfLearner,
        }
    }

    /// As members of an ensemble call it among themselves.
    pub(super) fn peer_state(self) -> &'static str {
        match self {
            Self::Leader => "leading - broadcast",
            Self::Follower => "following - broadcast",
            Self::Observer => "observing - broadcast",
            // Only who serves is asked; the others look for a leader.
            Self::Standalone | Self::ReadOnly => "looking",
        }
    }
}

/// What a member of an ensemble has beside what every server has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MemberInfo {
    pub id: ServerId,
    /// The configuration in force.
    pub view: View,
    /// Whom it follows or observes; `None` for a leader.
    pub leader: Option<ServerId>,
}

/// What a leader has besides.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaderInfo {
    /// Learners that are connected.
    pub learners: u64,
    /// Those that get what is proposed, whether they vote or not.
    pub followers: u64,
    /// Of these, those that do not vote.
    pub non_voting_followers: u64,
    pub observers: u64,
    /// Syncs that wait for what was proposed before them.
    pub pending_syncs: u64,
    /// Since it leads.
    pub uptime_ms: u64,
}

/// A server at one moment. Collections are only read by the words that say so.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Whether clients are served; most words say no more when they are not.
    pub serving: bool,
    pub mode: Mode,
    /// `None` is standalone.
    pub member: Option<MemberInfo>,
    /// Of a leader.
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
    /// Chance that a new connection is turned away, 0 to 1.
    pub connection_drop_chance: f64,
    /// Requests taken in and not yet answered.
    pub outstanding_requests: u64,
    /// Sessions the ensemble knows.
    pub global_sessions: u64,
    /// Sessions that only this server knows.
    pub local_sessions: u64,
    /// Since the process began to serve; a member of an ensemble: since its last election.
    pub uptime_ms: u64,
    /// File descriptors; `None` where the system does not tell.
    pub open_file_descriptors: Option<u64>,
    /// Limit of that number.
    pub max_file_descriptors: Option<u64>,
    /// The port that is bound, which `clientPort=0` leaves to the system.
    pub client_port: u16,
    /// For [`super::Word::needs_dir_sizes`]: bytes of the files in `dataDir/version-2`.
    pub data_dir_bytes: u64,
    /// Likewise in `dataLogDir/version-2`.
    pub log_dir_bytes: u64,
    /// For `wchs`: data watches only, as in Java.
    pub watches: WatchTotals,
    /// For `dump`.
    pub dump: DumpCounts,
    /// For `hash`.
    pub digests: Vec<(Zxid, u64)>,
    /// For `gtmk`.
    pub trace_mask: i64,
    /// For `mntr`: each gauge of quotas with its values by namespace, in Java's order.
    pub quotas: Vec<(&'static str, Vec<(String, i64)>)>,
    /// For `envi`; its working directory also for `conf`.
    pub environment: EnvironmentInfo,
}

/// What `dump` says above its lists.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DumpCounts {
    pub sessions: SetCounts,
    /// `None` where there are no sessions that only this server knows.
    pub local_sessions: Option<SetCounts>,
    /// Sessions with ephemeral znodes.
    pub owners: usize,
    pub connections: SetCounts,
}

/// What stands above a list of what expires: sets of what expires in the same second, and all.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SetCounts {
    pub sets: usize,
    pub all: usize,
}

/// How many watches there are, and whose.
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
    /// Whether more is read from it; Java shows its selector's interest, of which this is bit 0.
    pub reads: bool,
    /// Whether replies wait for the socket; bit 2 of the same number.
    pub writes: bool,
    /// Requests taken in and not yet answered.
    pub outstanding: u64,
    pub received: u64,
    pub sent: u64,
    /// `None` until the handshake is done.
    pub session: Option<SessionInfo>,
}

/// What a connection knows about its session.
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
