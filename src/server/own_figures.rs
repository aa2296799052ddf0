//! Collects the metrics that only this server has. Nothing here looks at every znode or watch.

use super::clock::Clock;
use super::report::FourLetterWords;
use crate::admin::{OwnFigures, PeerFigures};
use crate::request::Shared;
use crate::zab::PeerLag;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Ages of sessions in ms, with the names of those below.
const AGES: [(u64, &str); 3] = [(60_000, "<1m"), (3_600_000, "<1h"), (86_400_000, "<1d")];
const OLDER: &str = ">=1d";
/// Connections that are looked at under one hold of their lock.
const LOOKS_MAX: usize = 1024;

impl FourLetterWords {
    /// * `peers`: of a leader.
    pub(super) fn own_figures(&self, peers: &[PeerLag]) -> OwnFigures {
        let peaks = self.shared.state.tree.read().peaks();
        let now_s =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_secs_f64());
        let age = self.last_snapshot().map(|(_, written_s)| (now_s - written_s as f64).max(0.0));
        let dirs = [("dataDir", &self.config.data_dir), ("dataLogDir", &self.config.data_log_dir)];
        let peers = peers.iter().map(|peer| {
            let PeerLag { id, is_connected, lag_bytes } = *peer;
            PeerFigures { id, is_connected, lag_bytes }
        });
        OwnFigures {
            snapshot_age_seconds: age,
            free_bytes: dirs
                .iter()
                .filter_map(|(name, dir)| Some((*name, free_bytes(dir).ok()?)))
                .collect(),
            node_bytes_max: peaks.data_bytes.into(),
            children_max: peaks.children.into(),
            list_bytes_max: peaks.list_bytes,
            sequence_max: peaks.sequence.into(),
            jute_max_buffer_bytes: self.config.jute_max_buffer_bytes.into(),
            watch_bytes: self.shared.state.watches.bytes() as u64,
            sessions: sessions(&self.shared, self.clock),
            peers: peers.collect(),
        }
    }
}

fn sessions(shared: &Shared, clock: Clock) -> Vec<(&'static str, u64)> {
    let now_ms = clock.now_ms();
    let (mut counts, mut at) = ([0; AGES.len() + 1], 0);
    while let Some(conns) = shared.conns.next(&mut at, LOOKS_MAX) {
        for conn in conns.iter().filter(|conn| conn.session().is_some()) {
            let age_ms = now_ms.saturating_sub(conn.opened_ms);
            counts[AGES.partition_point(|(below_ms, _)| *below_ms <= age_ms)] += 1;
        }
    }
    AGES.map(|(_, name)| name).into_iter().chain([OLDER]).zip(counts).collect()
}

/// What a process without privileges may still write on the disk of a file or folder.
///
/// # Errors
/// Those of the file system.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}
