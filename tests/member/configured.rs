//! The settings of each part of a server, taken from its configuration.

use oxkeeper::config::{Config, Source, parse};
use oxkeeper::member::LogReadLimit;
use oxkeeper::member::configured::{PartSettings, entry_max, patience};
use oxkeeper::member::election_connections;
use oxkeeper::model::Zxid;
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::{Disk as _, Log};
use std::path::Path;
use std::time::Duration;
use support::configured::{config, parts, parts_of};

// rows: C-143 C-144
#[test]
fn log_options_follow_zoo_cfg_and_flags() {
    for (lines, flags, grown_kib, syncs) in [
        ("", "", 65536, true),
        ("preAllocSize=16", "", 16, true),
        ("", "-Dzookeeper.preAllocSize=32", 32, true),
        ("forceSync=no", "", 65536, false),
        ("", "-Dzookeeper.forceSync=no -Dzookeeper.preAllocSize=8", 8, false),
        // zoo.cfg is read last.
        ("preAllocSize=16\nforceSync=yes", "-Dzookeeper.forceSync=no", 16, true),
    ] {
        let disk = SimDisk::new();
        let options = parts(lines, flags).log;
        let mut log = Log::new(disk.clone(), Path::new("/log"), options, None);
        let mut entry = [0; 40];
        entry[19] = 1;
        log.append(Zxid::from_wire(1).unwrap(), &entry);
        log.flush().unwrap();
        let file = disk.open(Path::new("/log/log.1")).unwrap();
        let len = disk.len(&file).unwrap();
        assert_eq!(len, 16 + grown_kib * 1024, "{lines} {flags}");
        assert_eq!(disk.counts().syncs > 0, syncs, "{lines} {flags}");
    }
}

// rows: C-117
#[test]
fn sessionless_timeout_follows_zoo_cfg_and_flags() {
    let limit_ms = |lines, flags| parts(lines, flags).replica.sessionless_timeout_ms;
    assert_eq!(limit_ms("", ""), 10_000);
    assert_eq!(limit_ms("nio.sessionlessCnxnTimeout=700", ""), 700);
    assert_eq!(limit_ms("", "-Dzookeeper.nio.sessionlessCnxnTimeout=800"), 800);
}

fn election(config: &Config) -> election_connections::Settings {
    parts_of(config).member.ensemble.unwrap().election
}

fn member_of_three(lines: &str) -> Config {
    let servers = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2";
    config(&format!("tickTime=100\n{servers}\n{lines}"), "")
}

/// The settings of the parts of a member of three.
fn member_parts(lines: &str) -> PartSettings {
    parts_of(&member_of_three(&format!("initLimit=10\nsyncLimit=5\n{lines}")))
}

// rows: C-24 C-25 C-146 C-153 C-165 C-166 C-173 C-174
#[test]
fn zab_settings_follow_zoo_cfg() {
    let of = |lines| {
        let config = member_of_three(lines);
        parts_of(&config).agreement.unwrap()
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
fn multi_address_settings_follow_zoo_cfg_and_flags() {
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
            (election(&config), patience(&config, &ensemble).others)
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
fn observer_delays_follow_zoo_cfg() {
    let delays = |lines: &str| {
        let config = member_of_three(&format!("initLimit=10\nsyncLimit=5\n{lines}"));
        let settings = parts_of(&config).agreement.unwrap();
        (settings.observer_election_delay_ms, settings.observer_reconnect_delay_ms)
    };
    assert_eq!(delays(""), (200, 0));
    let set = "observer.election.DelayMs=70\nobserver.reconnectDelayMs=80";
    assert_eq!(delays(set), (70, 80));
}

// rows: C-106 C-107
#[test]
fn messages_are_tracked_only_if_message_tracker_is_enabled() {
    let kept = |lines: &str| {
        let config = member_of_three(&format!("initLimit=10\nsyncLimit=5\n{lines}"));
        parts_of(&config).member.ensemble.unwrap().tracked_messages
    };
    assert_eq!(kept(""), None);
    assert_eq!(kept("messageTracker.BufferSize=5"), None);
    assert_eq!(kept("messageTracker.Enabled=true"), Some(10));
    assert_eq!(kept("messageTracker.Enabled=true\nmessageTracker.BufferSize=5"), Some(5));
}

// rows: C-26 C-28 C-161 C-162 C-163 C-164 C-180
#[test]
fn dial_settings_follow_zoo_cfg() {
    let of = |lines: &str| {
        let config = member_of_three(&format!("initLimit=10\nsyncLimit=5\n{lines}"));
        let ensemble = config.ensemble.clone().unwrap();
        let keep_alive = ensemble.election_keep_alive;
        (election(&config), patience(&config, &ensemble), keep_alive)
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

// rows: C-142
#[test]
fn log_files_end_at_txn_log_size_limit() {
    let files = |lines| {
        let disk = SimDisk::new();
        let mut log = Log::new(disk.clone(), Path::new("/log"), parts(lines, "").log, None);
        for zxid in 1..=20 {
            let mut entry = [0; 400];
            entry[19] = zxid;
            log.append(Zxid::from_wire(i64::from(zxid)).unwrap(), &entry);
            log.flush().unwrap();
        }
        disk.list(Path::new("/log")).unwrap().len()
    };
    assert_eq!(files(""), 1);
    assert_eq!(files("txnLogSizeLimitInKb=-1"), 1);
    assert_eq!(files("txnLogSizeLimitInKb=2"), 4, "a file ends with its fifth record of 413 bytes");
}

// rows: C-34 C-35 C-36 C-37 C-59 C-71 C-160 C-261
#[test]
fn client_settings_of_members_follow_zoo_cfg() {
    let plain = member_parts("");
    let plain_bytes = plain.limits.outstanding_bytes_max;
    let plain = plain.replica;
    let rules = plain.rules;
    assert!(plain.leader_serves && !plain.local_sessions && !plain.local_upgrades);
    assert!(!plain.eager_acl_check && !plain.quorum_sync && !plain.read_only);
    assert!(rules.needs_two_voters && !rules.reconfigs && !rules.many_addresses);
    assert_eq!((plain.tick_time_ms, plain.connect_hold_ms), (100, 500));
    assert!(!member_parts("leaderServes=no").replica.leader_serves);
    assert!(member_parts("localSessionsEnabled=true").replica.local_sessions);
    let upgrades = "localSessionsEnabled=true\nlocalSessionsUpgradingEnabled=true";
    assert!(member_parts(upgrades).replica.local_upgrades);
    assert!(member_parts("enableEagerACLCheck=true").replica.eager_acl_check);
    assert!(member_parts("oxkeeper.quorumSync=true").replica.quorum_sync);
    let linearizable = member_parts("oxkeeper.linearizableReads=true");
    assert!(linearizable.replica.quorum_sync && linearizable.limits.linearizable_reads);
    assert!(!member_parts("oxkeeper.quorumSync=true").limits.linearizable_reads);
    assert_eq!(member_parts("oxkeeper.connectHold=70").replica.connect_hold_ms, 70);
    let bytes = member_parts("oxkeeper.outstandingBytes=5000").limits.outstanding_bytes_max;
    assert_eq!((plain_bytes, bytes), (32 << 20, 5000));
    let lag_bytes = |line| member_parts(line).agreement.unwrap().lag_bytes_max;
    assert_eq!((lag_bytes(""), lag_bytes("oxkeeper.lagBytes=5000")), (64 << 20, 5000));
    assert!(member_parts("reconfigEnabled=true").replica.rules.reconfigs);
    assert!(!member_parts("standaloneEnabled=false").replica.rules.needs_two_voters);
    assert!(member_parts("multiAddress.enabled=true").replica.rules.many_addresses);
    let members = "initLimit=10\nsyncLimit=5\nserver.1=a:1:2\nserver.2=b:1:2";
    assert!(parts(members, "-Dreadonlymode.enabled=true").replica.read_only);
}

// rows: C-18 C-35
#[test]
fn reconfig_and_observer_master_settings_follow_zoo_cfg() {
    let of = |lines: &str| {
        let parts = member_parts(lines);
        let (agreement, member) = (parts.agreement.unwrap(), parts.member.ensemble.unwrap());
        let files = (member.backs_up_config, member.writes_config);
        (agreement.reconfigs, files, agreement.relays, member.observer_master_port)
    };
    assert_eq!(of(""), (false, (false, false), false, None));
    assert_eq!(of("reconfigEnabled=true"), (true, (true, true), false, None));
    assert_eq!(of("observerMasterPort=7"), (false, (false, false), true, Some(7)));
    assert!(!member_parts("").member.ensemble.unwrap().listen_on_all_addresses);
    let all = member_parts("quorumListenOnAllIPs=true").member.ensemble.unwrap();
    assert!(all.listen_on_all_addresses);
}

// rows: C-147
#[test]
fn log_read_limit_follows_snapshot_size_factor() {
    let factor = |lines| match member_parts(lines).member.log_read {
        LogReadLimit::Factor(factor) => factor,
        LogReadLimit::Bytes(bytes) => panic!("{bytes} bytes were not set"),
    };
    assert_eq!(factor(""), Some(0.33));
    assert_eq!(factor("snapshotSizeFactor=0.5"), Some(0.5));
    assert_eq!(factor("snapshotSizeFactor=-1"), None);
}

#[test]
fn learner_packets_may_be_as_long_as_log_entries() {
    for (flags, bytes) in [
        ("", 2 * 0xf_ffff),
        ("-Djute.maxbuffer=2000 -Dzookeeper.jute.maxbuffer.extrasize=1024", 3024),
    ] {
        assert_eq!(entry_max(&config("", flags)), bytes);
        assert_eq!(parts("", flags).replica.rules.entry_max, bytes);
    }
}
