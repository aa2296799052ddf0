//! A small server's settings and parts, for those who move it by hand and for those whose threads do.

use oxkeeper::model::sync::Arc;
use oxkeeper::replica::{Replica, Settings};
use oxkeeper::request::{Conns, Limits, Shared};
use oxkeeper::tree::{State, Tree};

/// The first session; later ones count up.
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
    Arc::new(Shared {
        state: State::new(tree, 7),
        conns: Conns::default(),
        throttle: Default::default(),
        limits,
        clock_ms: Default::default(),
        at_rest: Default::default(),
        is_read_only: Default::default(),
    })
}

pub fn replica(shared: &Arc<Shared>) -> Replica {
    Replica::standalone(shared.clone(), settings(), 0)
}
