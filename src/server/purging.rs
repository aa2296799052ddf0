//! Removes old snapshots and logs, once at the start and then every few hours (`autopurge`).

use crate::config::Config;
use crate::model::chain;
use crate::store::recover::Skipped;
use crate::store::{Folders, Packing, RealDisk, purge, snapshot};
use std::path::Path;
use std::time::Duration;

/// Purges now, before the first snapshot is written: on a full disk it may need the room. Then purges now and then on a task.
/// `None`: `autopurge.purgeInterval` is 0.
///
/// * `skipped`: what the start did not use. Those snapshots are not whole, and the one that it loaded is, so this purge reads none to its end.
pub fn start(
    config: &Config,
    folders: &Folders,
    skipped: &[Skipped],
) -> Option<tokio::task::JoinHandle<()>> {
    let purge = Purge {
        folders: folders.clone(),
        hours: config.purge_interval_hours?,
        keep: config.purge_snap_retain_count as usize,
    };
    purge.once(|path, packing| {
        let is_skipped = skipped.iter().any(|skipped| skipped.path == path);
        !is_skipped && snapshot::looks_whole(&RealDisk, path, packing).unwrap_or(false)
    });
    Some(tokio::spawn(purge.often()))
}

#[derive(Clone)]
struct Purge {
    folders: Folders,
    hours: u32,
    keep: usize,
}

impl Purge {
    /// Not through `FailStop`: a file that can't be removed must not end the server.
    ///
    /// * `is_whole`: as for [`purge::obsolete`].
    fn once(&self, is_whole: impl FnMut(&Path, Packing) -> bool) {
        let Self { folders, hours, keep } = self;
        match purge::purge(&RealDisk, folders, *keep, is_whole) {
            Ok(removed) => tracing::info!(removed = removed.len(), keep, "old files purged"),
            Err(error) => tracing::warn!(
                "autopurge failed, next try in {hours} h; check the folder's rights and the disk: {}",
                chain(&error)
            ),
        }
    }

    /// Purges every `hours` hours.
    async fn often(self) {
        let hours = self.hours;
        let mut timer = tokio::time::interval(Duration::from_secs(u64::from(hours) * 3600));
        timer.tick().await; // The start has purged.
        loop {
            timer.tick().await;
            let purge = self.clone();
            let once = move || purge.once(purge::read_whole(&RealDisk));
            if let Err(error) = tokio::task::spawn_blocking(once).await {
                tracing::warn!(%error, "autopurge ended before it was done, next try in {hours} h: report it unless the server is stopping");
            }
        }
    }
}
