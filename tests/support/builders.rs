//! Parts of servers with the settings that tests use.

use bytes::Bytes;
use oxkeeper::member::election_connections;
use oxkeeper::member::sasl_exchange::NoSasl;
use oxkeeper::model::sync::Arc;
use oxkeeper::model::{Epochs, ServerId, View, Zxid};
use oxkeeper::replica::Settings;
use oxkeeper::request::{Limits, Shared};
use oxkeeper::tree::{State, Tree};
use oxkeeper::zab::{self, LearnerInfo, Notification, Peer, PeerState, Vote};

/// A notification of a Java server, whose format oxkeeper shares.
pub const fn notification(
    state: PeerState,
    vote: Vote,
    round: i64,
    config: Option<Bytes>,
) -> Notification {
    Notification { state, vote, round, version: 2, config, is_ours: false, candidates_view: None }
}

/// Three voters.
pub const THREE: &str = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n";
/// The wall clock at which the tests begin.
pub const WALL_MS: i64 = 1_700_000_000_000;

/// The first session of [`settings`]; later ones count up.
pub const FIRST_SESSION: i64 = 0x10;
pub const FRAME_MAX: usize = 64 * 1024;
pub const TICK_TIME_MS: u64 = 2000;

pub fn limits() -> Limits {
    Limits {
        frame_max: FRAME_MAX,
        min_session_timeout_ms: 4000,
        max_session_timeout_ms: 40_000,
        outstanding_max: 1000,
        ..Limits::default()
    }
}

pub fn settings() -> Settings {
    Settings {
        tick_time_ms: TICK_TIME_MS,
        first_session: FIRST_SESSION,
        snap_count: 1_000_000,
        snap_size_bytes: 0,
        sessionless_timeout_ms: 30_000,
        container_check_interval_ms: 60_000,
        container_max_per_minute: 10_000,
        container_max_never_used_ms: 0,
        seed: 7,
        ..Settings::DEFAULT
    }
}

pub fn shared(tree: Tree, limits: Limits) -> Arc<Shared> {
    Arc::new(Shared::new(State::new(tree, 7), limits))
}

/// A `zab` peer of the ensemble that `view` describes, with no epoch yet.
///
/// * `last`: of its log; `None`: its history is lost.
pub fn peer(id: i64, view: &str, settings: zab::Settings, last: Option<Zxid>) -> Peer {
    let view = View::parse(view).expect("a view");
    Peer::member(ServerId(id), settings, view, Epochs::default(), last)
}

/// Server `me` of an ensemble with each election port at `zoo` and the server's id.
pub fn election_settings(me: i64) -> election_connections::Settings {
    election_connections::Settings {
        me: ServerId(me),
        addresses: vec![(format!("zoo{me}"), 3888)],
        on_all_addresses: false,
        multi_address: false,
        connect_timeout_ms: 5000,
        hello_timeout_ms: 500,
        reach_timeout_ms: None,
        bind_tries_max: 3,
        exchanges: std::sync::Arc::new(NoSasl),
    }
}

/// The content of a learner's FOLLOWERINFO or OBSERVERINFO.
pub const fn learner_info(id: i64) -> LearnerInfo {
    LearnerInfo { id: ServerId(id), protocol_version: 0x1_0000, view_version: 0 }
}
