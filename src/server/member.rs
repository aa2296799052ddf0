//! What a member of an ensemble has beside what every server has: promises, and sockets for the other members.

use super::error::ServerError;
use super::inbox::Inbox;
use super::oracle;
use super::peers::Peers;
use crate::config::{Config, Ensemble};
use crate::member::config_files::ConfigFiles;
use crate::member::start::{self, Views};
use crate::member::{self, EnsembleSettings, LogReadLimit, election_address, election_connections};
use crate::model::Zxid;
use crate::net::quorum::Patience;
use crate::request::Shared;
use crate::store::{Disk, RealDisk};
use crate::tree::Options;
use crate::zab::{Peer, Settings};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Java calls a leader that refuses so many times.
const CONNECT_TRIES: u32 = 5;

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
    let views = Views { in_force: ensemble.view.clone(), proposed: ensemble.last_seen.clone() };
    let settings = settings(config, ensemble);
    let peer = start::peer(disk, dir, ensemble.my_id, settings, views, last);
    let mut peer = peer.map_err(|error| ServerError::System {
        what: "read the epochs promised to",
        source: io::Error::other(error),
    })?;
    peer.core.oracle = ensemble.oracle_path.as_ref().map(|_| false);
    Ok(Some(peer))
}

/// What agreement goes by.
fn settings(config: &Config, ensemble: &Ensemble) -> Settings {
    Settings {
        tick_time_ms: u64::from(config.tick_time_ms),
        init_limit: u64::from(ensemble.init_limit_ticks),
        sync_limit: u64::from(ensemble.sync_limit_ticks),
        always_sends_tree: ensemble.force_snapshot_sync,
        trees_max: ensemble.concurrent_snaps_max,
        differences_max: ensemble.concurrent_diffs_max,
        window_txns: config.commit_log_count as usize,
        reconfigs: config.reconfig_enabled,
        relays: ensemble.observer_master_port.is_some(),
        resend_min_ms: ensemble.notification_interval_min_ms,
        resend_max_ms: ensemble.notification_interval_max_ms,
        observer_election_delay_ms: ensemble.observer_election_delay_ms,
        observer_reconnect_delay_ms: ensemble.observer_reconnect_delay_ms,
    }
}

/// What decides around the replica goes by.
pub fn member_settings(config: &Config) -> member::Settings {
    let ensemble = config.ensemble.as_ref().map(|ensemble| EnsembleSettings {
        my_id: ensemble.my_id,
        view: ensemble.view.clone(),
        election: election_settings(ensemble),
        listen_on_all_addresses: ensemble.listen_on_all_addresses,
        observer_master_port: ensemble.observer_master_port,
        backs_up_config: config.reconfig_enabled && ensemble.dynamic_file.is_none(),
        tracked_messages: ensemble.tracks_messages.then_some(ensemble.tracked_messages_max),
    });
    let log_read = LogReadLimit::Factor(config.snapshot_size_factor);
    member::Settings { ensemble, log_read }
}

/// Prepares the connections to the other members, if there are any.
///
/// # Errors
/// When the folder that the process is in can't be named.
pub fn connect(
    config: &Config,
    shared: &Arc<Shared>,
    options: Options,
    inbox: &Arc<Inbox>,
) -> Result<Option<Peers>, ServerError> {
    let Some(ensemble) = &config.ensemble else { return Ok(None) };
    let file = &ensemble.config_file;
    let absolute = std::path::absolute(file)
        .map_err(|source| ServerError::System { what: "name the configuration file", source })?;
    let files = ConfigFiles::new(RealDisk, file.clone(), absolute);
    if let Some(path) = ensemble.oracle_path.clone() {
        tokio::spawn(oracle::poll_file(path, inbox.clone()));
    }
    let patience = patience(config, ensemble);
    Ok(Some(Peers::new(
        shared.clone(),
        options,
        patience,
        ensemble.election_keep_alive,
        files,
        inbox.clone(),
    )))
}

fn election_settings(ensemble: &Ensemble) -> election_connections::Settings {
    let own = ensemble.view.members.get(&ensemble.my_id);
    let reach_timeout = reach_timeout(ensemble).filter(|_| ensemble.many_addresses);
    election_connections::Settings {
        me: ensemble.my_id,
        addresses: own.map(election_address).unwrap_or_default(),
        on_all_addresses: ensemble.listen_on_all_addresses,
        multi_address: ensemble.many_addresses,
        connect_timeout_ms: u64::from(ensemble.election_connect_timeout_ms),
        hello_timeout_ms: u64::from(ensemble.election_read_timeout_ms),
        reach_timeout_ms: reach_timeout.map(|timeout| timeout.as_millis() as u64),
        bind_tries_max: ensemble.election_bind_tries.unwrap_or(0),
    }
}

/// How long a leader is called.
fn patience(config: &Config, ensemble: &Ensemble) -> Patience {
    let silence_ms = u64::from(ensemble.connect_limit_ticks) * u64::from(config.tick_time_ms);
    Patience {
        silence: Duration::from_millis(silence_ms),
        refusals: Duration::from_millis(u64::from(ensemble.connect_retry_delay_ms)) * CONNECT_TRIES,
        others: reach_timeout(ensemble),
    }
}

/// After which an address of several does not count; `None`: all count.
fn reach_timeout(ensemble: &Ensemble) -> Option<Duration> {
    let timeout = Duration::from_millis(u64::from(ensemble.reachability_timeout_ms));
    ensemble.reachability_check.then_some(timeout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, Source, parse};

    fn configured(lines: &str) -> Config {
        let text = format!(
            "dataDir=/d\nclientPort=0\ntickTime=100\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n{lines}\n"
        );
        let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: Some("1") };
        parse(source, &Environment::new(), &[]).unwrap()
    }

    // rows: C-24 C-25 C-146 C-153 C-165 C-166 C-173 C-174
    #[test]
    fn agreement_goes_by_what_is_set() {
        let of = |lines| {
            let config = configured(lines);
            settings(&config, config.ensemble.as_ref().unwrap())
        };
        let plain = of("initLimit=10\nsyncLimit=5");
        let limits = (plain.init_limit, plain.sync_limit, plain.always_sends_tree);
        assert_eq!((plain.tick_time_ms, limits), (100, (10, 5, false)));
        assert_eq!((plain.trees_max, plain.differences_max, plain.window_txns), (10, 100, 500));
        assert_eq!((plain.resend_min_ms, plain.resend_max_ms), (200, 60_000));
        let set = of("initLimit=7\nsyncLimit=3\nforceSnapshotSync=true\ncommitLogCount=900\n\
            fastleader.minNotificationInterval=50\nfastleader.maxNotificationInterval=800\n\
            leader.maxConcurrentSnapSyncs=2\nleader.maxConcurrentDiffSyncs=4");
        let limits = (set.init_limit, set.sync_limit, set.always_sends_tree);
        assert_eq!(limits, (7, 3, true));
        assert_eq!((set.trees_max, set.differences_max, set.window_txns), (2, 4, 900));
        assert_eq!((set.resend_min_ms, set.resend_max_ms), (50, 800));
    }

    // rows: C-59 C-60 C-61 C-185 C-185a C-185b
    #[test]
    fn several_addresses_are_told_and_looked_after_where_that_is_set() {
        let of = |lines: &str, flags: &[&str]| {
            let text = format!(
                "dataDir=/d\nclientPort=0\ninitLimit=10\nsyncLimit=5\nserver.1=a:1:2|b:3:4\nserver.2=c:1:2\n{lines}\n"
            );
            let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: Some("1") };
            let flags = format!("-Dzookeeper.{}", flags.join(" -Dzookeeper."));
            let environment = [("JVMFLAGS".to_owned(), flags)].into();
            let config = parse(source, &environment, &[]);
            config.map(|config| {
                let ensemble = config.ensemble.clone().unwrap();
                (election_settings(&ensemble), patience(&config, &ensemble).others)
            })
        };
        let ms = |ms| Some(Duration::from_millis(ms));
        assert!(of("", &["x=y"]).is_err(), "several addresses");
        let (election, others) = of("multiAddress.enabled=true", &["x=y"]).unwrap();
        assert_eq!(election.addresses, [("a".to_owned(), 2), ("b".to_owned(), 4)]);
        assert!(election.multi_address);
        assert_eq!((election.reach_timeout_ms, others), (Some(1000), ms(1000)));
        let set = "multiAddress.enabled=true\nmultiAddress.reachabilityCheckTimeoutMs=70";
        let (election, others) = of(set, &["x=y"]).unwrap();
        assert_eq!((election.reach_timeout_ms, others), (Some(70), ms(70)));
        let off = "multiAddress.enabled=true\nmultiAddress.reachabilityCheckEnabled=false";
        assert_eq!(of(off, &["x=y"]).unwrap().0.reach_timeout_ms, None);
        let flags = ["multiAddress.enabled=true", "multiAddress.reachabilityCheckTimeoutMs=80"];
        let (election, others) = of("", &flags).unwrap();
        assert!(election.multi_address && others == ms(80));
        let off = ["multiAddress.enabled=true", "multiAddress.reachabilityCheckEnabled=false"];
        assert_eq!(of("", &off).unwrap().1, None);
    }

    // rows: C-181 C-182
    #[test]
    fn observers_wait_as_long_as_is_set() {
        let delays = |lines: &str| {
            let config = configured(&format!("initLimit=10\nsyncLimit=5\n{lines}"));
            let settings = settings(&config, config.ensemble.as_ref().unwrap());
            (settings.observer_election_delay_ms, settings.observer_reconnect_delay_ms)
        };
        assert_eq!(delays(""), (200, 0));
        let set = "observer.election.DelayMs=70\nobserver.reconnectDelayMs=80";
        assert_eq!(delays(set), (70, 80));
    }

    // rows: C-106 C-107
    #[test]
    fn messages_are_kept_if_that_is_set() {
        let kept = |lines: &str| {
            let config = configured(&format!("initLimit=10\nsyncLimit=5\n{lines}"));
            member_settings(&config).ensemble.unwrap().tracked_messages
        };
        assert_eq!(kept(""), None);
        assert_eq!(kept("messageTracker.BufferSize=5"), None);
        assert_eq!(kept("messageTracker.Enabled=true"), Some(10));
        assert_eq!(kept("messageTracker.Enabled=true\nmessageTracker.BufferSize=5"), Some(5));
    }

    // rows: C-26 C-28 C-161 C-162 C-163 C-164 C-180
    #[test]
    fn calls_go_by_what_is_set() {
        let of = |lines: &str| {
            let config = configured(&format!("initLimit=10\nsyncLimit=5\n{lines}"));
            let ensemble = config.ensemble.clone().unwrap();
            let keep_alive = ensemble.election_keep_alive;
            (election_settings(&ensemble), patience(&config, &ensemble), keep_alive)
        };
        let ms = Duration::from_millis;
        let (election, patience, keep_alive) = of("");
        assert_eq!((election.connect_timeout_ms, election.hello_timeout_ms), (5000, 500));
        assert_eq!((election.bind_tries_max, keep_alive), (3, false));
        assert!(!election.on_all_addresses);
        assert_eq!((patience.silence, patience.refusals), (ms(1000), ms(500)));
        let (election, patience, keep_alive) =
            of("connectToLearnerMasterLimit=20\nquorumListenOnAllIPs=true\n\
            cnxTimeout=70\nquorumCnxnTimeoutMs=80\nelectionPortBindRetry=0\ntcpKeepAlive=true\n\
            leaderConnectDelayDuringRetryMs=30");
        assert_eq!((election.connect_timeout_ms, election.hello_timeout_ms), (70, 80));
        assert_eq!((election.bind_tries_max, keep_alive), (0, true));
        assert!(election.on_all_addresses);
        assert_eq!((patience.silence, patience.refusals), (ms(2000), ms(150)));
    }
}
