//! Sockets for the other members of an ensemble.

use super::error::ServerError;
use super::inbox::Inbox;
use super::oracle;
use super::peers::{LearnerSettings, Peers};
use crate::config::Config;
use crate::member::config_files::ConfigFiles;
use crate::member::configured::{entry_max, patience};
use crate::member::sasl_exchange::SaslExchanges;
use crate::net::PeerSecurity;
use crate::request::Shared;
use crate::store::{Folders, RealDisk};
use crate::tree::Options;
use std::sync::Arc;

/// Prepares the connections to the other members; `None`: standalone.
///
/// * `exchanges`: as in [`crate::member::configured::PartSettings::of`].
///
/// # Errors
/// When the path of the current directory is unknown.
pub fn connect(
    config: &Config,
    shared: &Arc<Shared>,
    options: Options,
    exchanges: Arc<dyn SaslExchanges>,
    security: PeerSecurity,
    inbox: &Arc<Inbox>,
) -> Result<Option<Peers>, ServerError> {
    let Some(ensemble) = &config.ensemble else { return Ok(None) };
    let file = &ensemble.config_file;
    let absolute = std::path::absolute(file)
        .map_err(|source| ServerError::System { what: "find the configuration file", source })?;
    let snapshots = Folders::new(&config.data_dir, &config.data_log_dir).snapshots;
    let files = ConfigFiles::new(RealDisk, file.clone(), absolute, snapshots);
    if let Some(path) = ensemble.oracle_path.clone() {
        tokio::spawn(oracle::poll_file(path, inbox.clone()));
    }
    let settings = LearnerSettings {
        patience: patience(config, ensemble),
        options,
        entry_max: entry_max(config),
        observer_master_port: ensemble.observer_master_port,
    };
    Ok(Some(Peers::new(
        shared.clone(),
        settings,
        exchanges,
        security,
        ensemble.election_keep_alive,
        files,
        inbox.clone(),
    )))
}
