//! What a member of an ensemble has beside what every server has: promises, and sockets for the other members.

use super::boot::ServerError;
use super::driver::Event;
use super::membership::{Membership, election_address, election_addresses};
use super::peers::Peers;
use crate::config::Config;
use crate::model::{View, Zxid};
use crate::net::ClientPlace;
use crate::net::election::{self, ElectionNet};
use crate::net::quorum::Patience;
use crate::request::Shared;
use crate::store::Disk;
use crate::store::epoch;
use crate::tree::Options;
use crate::zab::{Peer, Settings};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedSender};

/// Java calls a leader that refuses so many times.
const CONNECT_TRIES: u32 = 5;
/// Of bytes of log that are read for one learner at most.
const LOG_READ_MAX_BYTES: u64 = 256 << 20;

/// The machine of a member, about to look for a leader; `None` for a server that is alone.
///
/// * `last`: of its log; `None`: it has nothing that counts.
///
/// # Errors
/// When an epoch file can't be read.
pub fn peer<D: Disk>(
    config: &Config,
    (disk, dir): (&D, &Path),
    last: Option<Zxid>,
) -> Result<Option<Peer>, ServerError> {
    let Some(ensemble) = &config.ensemble else { return Ok(None) };
    let epochs = epoch::promised(disk, dir, last.unwrap_or(Zxid::ZERO)).map_err(|error| {
        ServerError::System { what: "read the epochs promised to", source: io::Error::other(error) }
    })?;
    let settings = Settings {
        tick_time_ms: u64::from(config.tick_time_ms),
        init_limit: u64::from(ensemble.init_limit_ticks),
        sync_limit: u64::from(ensemble.sync_limit_ticks),
        always_sends_tree: ensemble.force_snapshot_sync,
        reconfigs: config.reconfig_enabled,
        resend_min_ms: ensemble.notification_interval_min_ms,
        resend_max_ms: ensemble.notification_interval_max_ms,
    };
    let mut peer = Peer::member(ensemble.my_id, settings, ensemble.view.clone(), epochs, last);
    // Of what is not in the log nobody has this server's word.
    let is_logged = |view: &View| view.version <= last.map_or(0, Zxid::to_wire);
    if let Some(view) = ensemble.last_seen.clone().filter(is_logged) {
        peer.core.see_view(view, &mut Vec::new());
    }
    Ok(Some(peer))
}

/// Opens the ports for the other members, if there are any.
pub fn connect(
    config: &Config,
    shared: &Arc<Shared>,
    options: Options,
    driver: UnboundedSender<Event>,
    clients: UnboundedSender<ClientPlace>,
) -> Option<Peers> {
    let ensemble = config.ensemble.as_ref()?;
    let (sender, events) = mpsc::unbounded_channel();
    let own = ensemble.view.members.get(&ensemble.my_id);
    let membership = Membership::new(ensemble, config.reconfig_enabled, sender.clone(), clients);
    let settings = election::Settings {
        me: ensemble.my_id,
        addresses: own.map(election_address).unwrap_or_default(),
        on_all_addresses: ensemble.listen_on_all_addresses,
        multi_address: ensemble.many_addresses,
        timeout: Duration::from_millis(u64::from(ensemble.election_connect_timeout_ms)),
        keep_alive: ensemble.election_keep_alive,
        bind_tries_max: ensemble.election_bind_tries.unwrap_or(0),
    };
    let others = election_addresses(&ensemble.view, ensemble.my_id);
    let elections = ElectionNet::start(settings, others);
    let silence_ms = u64::from(ensemble.connect_limit_ticks) * u64::from(config.tick_time_ms);
    let patience = Patience {
        silence: Duration::from_millis(silence_ms),
        refusals: Duration::from_millis(u64::from(ensemble.connect_retry_delay_ms)) * CONNECT_TRIES,
    };
    Some(Peers::new(
        (shared.clone(), options),
        patience,
        LOG_READ_MAX_BYTES,
        (sender, events),
        elections,
        membership,
        driver,
    ))
}
