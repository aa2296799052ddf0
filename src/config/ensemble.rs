//! The configuration of a member of an ensemble.

use super::checker::Checker;
use super::members::{Files, Found, own_line};
use super::property_reader::{INT, Reader};
use super::system_properties::{Property, SystemProperties};
use crate::model::{Member, Role, ServerId, View};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// The settings of a member of an ensemble, in addition to those of every server.
///
/// Field by field the keys of ZooKeeper 3.9.5, corrections and defaults applied as in [`super::Config`].
#[derive(Clone, Debug, PartialEq)]
pub struct Ensemble {
    /// First line of the file `myid`; a member of the view, or of one in `last_seen`.
    pub my_id: ServerId,
    /// `server.N`, `group.N`, `weight.N`, and the version from the dynamic file's name.
    pub view: View,
    /// What `zoo.cfg.dynamic.next` holds: views that were proposed before the last stop, oldest first.
    pub last_seen: Vec<View>,
    /// The same if the operator has changed the `server.N` lines since. They count only if the data directory has a view that was in force.
    pub seen_before_lines: Vec<View>,
    /// The static file, as it was named.
    pub config_file: PathBuf,
    /// `dynamicConfigFile`; `None` while the members are listed in the static file.
    pub dynamic_file: Option<PathBuf>,
    /// `standaloneEnabled`: whether a single voter that a reconfig has left would be no ensemble any more.
    pub standalone_enabled: bool,
    /// `initLimit`: ticks for connecting to the leader and synchronising with it; never 0.
    pub init_limit_ticks: u32,
    /// `syncLimit`: ticks that a member may be silent; never 0.
    pub sync_limit_ticks: u32,
    /// `connectToLearnerMasterLimit`: ticks for which the leader is dialed; `initLimit` unless set.
    pub connect_limit_ticks: u32,
    /// `leaderConnectDelayDuringRetryMs`: pause between two dials of a leader that refuses.
    pub connect_retry_delay_ms: u32,
    /// `quorumListenOnAllIPs`: whether quorum port and election port listen on every address of the machine.
    pub listen_on_all_addresses: bool,
    /// `leaderServes`: whether a leader serves clients.
    pub leader_serves: bool,
    /// `syncEnabled`, `observer.syncEnabled`: read as Java reads them; an observer keeps log and snapshots in any case.
    pub sync_enabled: bool,
    /// `observerMasterPort`: port where followers accept observers; `None`: they accept none.
    pub observer_master_port: Option<u16>,
    /// `observer.reconnectDelayMs`: longest pause before an observer looks for another master.
    pub observer_reconnect_delay_ms: u64,
    /// `observer.election.DelayMs`: pause before an observer asks which server leads.
    pub observer_election_delay_ms: u64,
    /// `localSessionsEnabled`: whether new sessions are known to their own server alone.
    pub local_sessions_enabled: bool,
    /// `localSessionsUpgradingEnabled`: whether a local session becomes a global one when it creates its first ephemeral.
    pub local_sessions_upgrading_enabled: bool,
    /// `enableEagerACLCheck`: whether a learner itself refuses writes that the ACLs of its tree forbid.
    pub eager_acl_check: bool,
    /// `multiAddress.enabled`
    pub many_addresses: bool,
    /// `multiAddress.reachabilityCheckEnabled`: whether an address that does not answer is given up for another one.
    pub reachability_check: bool,
    /// `multiAddress.reachabilityCheckTimeoutMs`
    pub reachability_timeout_ms: u32,
    /// `oraclePath`: file that begins with `1` while this server, one of two voters, may lead alone.
    pub oracle_path: Option<PathBuf>,
    /// `cnxTimeout`: timeout of connecting to an election port.
    pub election_connect_timeout_ms: u32,
    /// `quorumCnxnTimeoutMs`: longest silence on an election connection; `syncLimit` ticks unless set.
    pub election_read_timeout_ms: u32,
    /// `electionPortBindRetry`: failed attempts to bind that port after which an ERROR is logged; `None`: never.
    pub election_bind_tries: Option<u32>,
    /// `tcpKeepAlive`: whether election sockets get `SO_KEEPALIVE`.
    pub election_keep_alive: bool,
    /// `fastleader.minNotificationInterval`: first pause before a notification is repeated.
    pub notification_interval_min_ms: u32,
    /// `fastleader.maxNotificationInterval`: the pause doubles up to this.
    pub notification_interval_max_ms: u32,
    /// `leader.maxConcurrentSnapSyncs`: snapshots sent to observers at once.
    pub concurrent_snaps_max: u32,
    /// `leader.maxConcurrentDiffSyncs`: differences sent to observers at once.
    pub concurrent_diffs_max: u32,
    /// `forceSnapshotSync`: whether every learner gets a whole snapshot.
    pub force_snapshot_sync: bool,
    /// `messageTracker.Enabled`: whether the last messages of a learner connection are logged when it ends.
    pub tracks_messages: bool,
    /// `messageTracker.BufferSize`: how many messages of each direction are kept for that.
    pub tracked_messages_max: u32,
}

impl Ensemble {
    /// This server's own line: in the view, or else in the newest proposed one that has it.
    pub fn own(&self) -> Option<&Member> {
        own_line(self.my_id, &self.view, &self.last_seen)
    }

    /// This server's role by its own line.
    pub fn role(&self) -> Role {
        self.own().map_or(Role::Participant, |member| member.role)
    }

    /// Whether another server may vote: only such a one can lead this server.
    pub fn has_other_voters(&self) -> bool {
        self.view.has_other_voters(self.my_id)
    }
}

/// The part of [`Ensemble`] that Java reads from the file alone.
pub(super) struct Keys {
    found: Found,
    init_limit_ticks: u32,
    sync_limit_ticks: u32,
    connect_limit_ticks: u32,
    observer_master_port: Option<u16>,
    listen_on_all_addresses: bool,
    sync_enabled: bool,
    local_sessions_enabled: bool,
    local_sessions_upgrading_enabled: bool,
    reachability_timeout_ms: Option<u32>,
    reachability_check: Option<bool>,
}

/// `None` if a setting was wrong; a problem says which.
///
/// Source: `QuorumPeerConfig.parseProperties`, `setupPeerType`, `checkValidity`, ZooKeeper 3.9.5.
pub(super) fn take_keys(checker: &mut Checker, found: Found) -> Option<Keys> {
    const ANY: RangeInclusive<i32> = i32::MIN..=i32::MAX;
    const PORT_MAX: i32 = u16::MAX as i32;
    let init_limit_ticks = take_limit(checker, &found, "initLimit", 10);
    let sync_limit_ticks = take_limit(checker, &found, "syncLimit", 5);
    let connect = checker.number("connectToLearnerMasterLimit", ANY).map_or(0, |(n, _)| n);
    let port = checker.number("observerMasterPort", i32::MIN..=PORT_MAX).map_or(0, |(n, _)| n);
    let mut flag = |key, default| checker.boolean(key).map_or(default, |(on, _)| on);
    let listen_on_all_addresses = flag("quorumListenOnAllIPs", false);
    let sync_enabled = flag("syncEnabled", true);
    let local_sessions_enabled = flag("localSessionsEnabled", false);
    let local_sessions_upgrading_enabled = flag("localSessionsUpgradingEnabled", false);
    let reachability_check =
        checker.boolean("multiAddress.reachabilityCheckEnabled").map(|(on, _)| on);
    let timeout = checker.number("multiAddress.reachabilityCheckTimeoutMs", 0..=i32::MAX);
    take_role(checker, &found);
    Some(Keys {
        init_limit_ticks: init_limit_ticks?,
        sync_limit_ticks: sync_limit_ticks?,
        connect_limit_ticks: match u32::try_from(connect) {
            Ok(ticks) if ticks > 0 => ticks,
            _ => init_limit_ticks?,
        },
        observer_master_port: u16::try_from(port).ok().filter(|&port| port > 0),
        listen_on_all_addresses,
        sync_enabled,
        local_sessions_enabled,
        local_sessions_upgrading_enabled,
        reachability_timeout_ms: timeout.map(|(ms, _)| ms as u32),
        reachability_check,
        found,
    })
}

fn take_limit(checker: &mut Checker, found: &Found, key: &str, usual: u32) -> Option<u32> {
    let problems = checker.problems.len();
    let limit = checker.number(key, 1..=i32::MAX);
    if limit.is_none() && checker.problems.len() == problems {
        let text = format!("{key} is not set, which an ensemble needs; add {key}={usual}");
        checker.problem(&found.place, text);
    }
    limit.map(|(ticks, _)| ticks as u32)
}

/// `peerType` only repeats what the server's own line says.
fn take_role(checker: &mut Checker, found: &Found) {
    let Some(said) = checker.one_of("peerType", &["participant", "observer"]) else { return };
    let Some(own) = found.view.members.get(&found.my_id) else { return };
    let listed = if own.role == Role::Observer { "observer" } else { "participant" };
    if !said.value.eq_ignore_ascii_case(listed) {
        let text = format!(
            "peerType={} has no effect: server.{} is a {listed} by its server.N line; correct one of them",
            said.value, found.my_id
        );
        checker.warn(&said.place, text);
    }
}

/// Reads the system properties, and joins them with the keys.
///
/// * `tick_time_ms`: for defaults that are counted in ticks.
pub(super) fn take(
    checker: &mut Checker,
    system: &mut SystemProperties,
    keys: Keys,
    files: Files,
    tick_time_ms: u32,
) -> Ensemble {
    let reach = take_ms(checker, system, "multiAddress.reachabilityCheckTimeoutMs");
    let connect = take_ms(checker, system, "cnxTimeout");
    let mut from = Reader::new(system, &mut checker.warnings);
    from.flag("zookeeper.multiAddress.enabled", false); // Read with the addresses.
    let by_flag = from.optional_flag("zookeeper.multiAddress.reachabilityCheckEnabled");
    let tries = from.number("zookeeper.electionPortBindRetry", INT, 3);
    let tries = u32::try_from(tries).unwrap_or(3);
    let silence = from.positive("zookeeper.quorumCnxnTimeoutMs");
    let sync_by_flag = from.optional_flag("zookeeper.observer.syncEnabled");
    Ensemble {
        my_id: keys.found.my_id,
        view: keys.found.view,
        last_seen: files.last_seen,
        seen_before_lines: Vec::new(),
        config_file: files.config_file,
        dynamic_file: files.dynamic_file,
        standalone_enabled: keys.found.standalone_enabled,
        init_limit_ticks: keys.init_limit_ticks,
        sync_limit_ticks: keys.sync_limit_ticks,
        connect_limit_ticks: keys.connect_limit_ticks,
        connect_retry_delay_ms: from.int("zookeeper.leaderConnectDelayDuringRetryMs", 100),
        listen_on_all_addresses: keys.listen_on_all_addresses,
        sync_enabled: sync_by_flag.unwrap_or(keys.sync_enabled),
        leader_serves: from.text("zookeeper.leaderServes").is_none_or(|serves| serves != "no"),
        observer_master_port: keys.observer_master_port,
        observer_reconnect_delay_ms: from.long("zookeeper.observer.reconnectDelayMs", 0),
        observer_election_delay_ms: from.long("zookeeper.observer.election.DelayMs", 200),
        local_sessions_enabled: keys.local_sessions_enabled,
        local_sessions_upgrading_enabled: keys.local_sessions_upgrading_enabled,
        eager_acl_check: from.flag("zookeeper.enableEagerACLCheck", false),
        many_addresses: keys.found.many_addresses,
        reachability_check: keys.reachability_check.or(by_flag).unwrap_or(true),
        reachability_timeout_ms: keys.reachability_timeout_ms.or(reach).unwrap_or(1000),
        oracle_path: keys.found.oracle_path,
        election_connect_timeout_ms: connect.unwrap_or(5000),
        election_read_timeout_ms: silence
            .unwrap_or_else(|| tick_time_ms.saturating_mul(keys.sync_limit_ticks)),
        election_bind_tries: Some(tries).filter(|&tries| tries > 0),
        election_keep_alive: from.flag("zookeeper.tcpKeepAlive", false),
        notification_interval_min_ms: from.int("zookeeper.fastleader.minNotificationInterval", 200),
        notification_interval_max_ms: from
            .int("zookeeper.fastleader.maxNotificationInterval", 60_000),
        concurrent_snaps_max: from.int("zookeeper.leader.maxConcurrentSnapSyncs", 10),
        concurrent_diffs_max: from.int("zookeeper.leader.maxConcurrentDiffSyncs", 100),
        force_snapshot_sync: from.flag("zookeeper.forceSnapshotSync", false),
        tracks_messages: from.flag("zookeeper.messageTracker.Enabled", false),
        tracked_messages_max: from.int("zookeeper.messageTracker.BufferSize", 10),
    }
}

/// Takes a property that Java refuses to start with unless it is a number.
fn take_ms(checker: &mut Checker, system: &mut SystemProperties, key: &str) -> Option<u32> {
    let Property { value, place } = system.take(&format!("zookeeper.{key}"))?;
    let number = value.parse::<i32>().ok().and_then(|number| u32::try_from(number).ok());
    if number.is_none() {
        let text = format!("{key}={value} is not a number of ms; write one from 0 to {}", i32::MAX);
        checker.problem(&place, text);
    }
    number
}
