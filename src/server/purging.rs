//! Removes old snapshots and logs, once at the start and then every few hours (`autopurge`).

use crate::config::Config;
use crate::model::chain;
use crate::store::{Folders, RealDisk, purge};
use std::time::Duration;

/// Purges now, before the first snapshot is written: on a full disk it may need the room. Then purges now and then on a task.
/// `None`: `autopurge.purgeInterval` is 0.
pub fn start(config: &Config, folders: &Folders) -> Option<tokio::task::JoinHandle<()>> {
    let (hours, keep) = (config.purge_interval_hours?, config.purge_snap_retain_count as usize);
    purge_once(folders, hours, keep);
    Some(tokio::spawn(purge_often(folders.clone(), hours, keep)))
}

/// Not through `FailStop`: a file that can't be removed must not end the server.
fn purge_once(folders: &Folders, hours: u32, keep: usize) {
    match purge::purge(&RealDisk, folders, keep) {
        Ok(removed) => tracing::info!(removed = removed.len(), keep, "old files purged"),
        Err(error) => tracing::warn!(
            "autopurge failed, next try in {hours} h; check the folder's rights and the disk: {}",
            chain(&error)
        ),
    }
}

/// Purges old snapshots and logs every `hours` hours.
async fn purge_often(folders: Folders, hours: u32, keep: usize) {
    let mut timer = tokio::time::interval(Duration::from_secs(u64::from(hours) * 3600));
    timer.tick().await; // The start has purged.
    loop {
        timer.tick().await;
        let folders = folders.clone();
        let purging = tokio::task::spawn_blocking(move || purge_once(&folders, hours, keep));
        if let Err(error) = purging.await {
            tracing::warn!(%error, "autopurge ended before it was done, next try in {hours} h: report it unless the server is stopping");
        }
    }
}
