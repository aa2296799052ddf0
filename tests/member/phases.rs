//! The fuzz targets `peers` and `hello` begin where they are meant to: in each phase of each role, also from their seeds.

use oxkeeper::member::sasl_exchange::{NoSasl, SaslExchanges};
use oxkeeper::member::sim_exchange::{SimExchanges, replayable_digest_exchanges};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use support::phases::Phase;
use support::{hello_bytes, peer_bytes};

/// SASL is required here, so that an exchange which fails ends the connection and the phase is not reached.
fn exchanges() -> [Arc<dyn SaslExchanges>; 3] {
    [Arc::new(NoSasl), Arc::new(SimExchanges), Arc::new(replayable_digest_exchanges(true))]
}

/// `enter` asserts that the phase is reached.
#[test]
fn every_phase_is_reached_with_any_settings_and_exchanges() {
    let exchanges = exchanges();
    for phase in Phase::ALL {
        for settings in [0, 1, 2, 4, 8, 16, 32, 63] {
            for exchanges in &exchanges {
                phase.enter(settings, exchanges.clone(), 512);
            }
        }
    }
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let into = tempfile::tempdir().unwrap();
    let made = Command::new("python3").arg(root.join("fuzz/seeds.py")).arg(into.path()).status();
    assert!(made.unwrap().success(), "fuzz/seeds.py");
    let files = std::fs::read_dir(into.path().join(target)).unwrap();
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn seeds_of_fuzz_target_peers_take_members_of_every_role_through_their_phases() {
    let (mut phases, mut roles) = (BTreeMap::new(), BTreeMap::<&str, usize>::new());
    for input in seeds("peers") {
        *phases.entry(peer_bytes::phase_of(&input)).or_insert(0) += 1;
        for (role, steps) in peer_bytes::play(&input).member.roles {
            *roles.entry(role).or_default() += steps;
        }
    }
    for phase in Phase::ALL {
        assert!(phases.get(&phase).is_some_and(|seeds| *seeds > 20), "{phase:?}: {phases:?}");
    }
    for role in
        ["not serving", "leading learners", "following", "following with observers", "observing"]
    {
        assert!(roles.get(role).is_some_and(|steps| *steps > 30), "{role}: {roles:?}");
    }
}

#[test]
fn seeds_of_fuzz_target_hello_connect_to_both_ports() {
    let exchanges = exchanges();
    let (mut roles, mut hellos) = (BTreeMap::<&str, usize>::new(), 0);
    for input in seeds("hello") {
        let streams = hello_bytes::play(&input, &exchanges);
        hellos += streams.member.sockets.sent("LEADERINFO");
        for (role, steps) in streams.member.roles {
            *roles.entry(role).or_default() += steps;
        }
    }
    assert!(hellos > 10, "{hellos} hellos of learners were answered");
    for role in ["not serving", "leading learners", "following with observers"] {
        assert!(roles.get(role).is_some_and(|steps| *steps > 30), "{role}: {roles:?}");
    }
}

/// Found by fuzz target `hello`: the last two bytes of a learner are 5f 00.
#[test]
fn learner_that_begins_as_sasl_does_is_judged_the_same_however_its_bytes_are_cut() {
    let mut input = vec![2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0];
    input.extend([0x4d, 6, 4, 0, 0, 0x28, 0, 0, 6, 0x10, 0, 0, 0, 1, 8, 0x5f, 0]);
    let exchanges = || -> Arc<dyn SaslExchanges> { Arc::new(replayable_digest_exchanges(false)) };
    hello_bytes::play(&input, &[Arc::new(NoSasl), Arc::new(SimExchanges), exchanges()]);
}

/// Found by fuzz target `peers`: it waits for a leader by its first packet, and the end of that wait closed an observer's connection.
#[test]
fn learner_that_says_follower_and_then_observer_goes_on_waiting_for_a_leader() {
    peer_bytes::play(&[0x0b, 2, 0, 0x0c, 0x15, 0x0c, 0, 0x15, 0x0d, 0, 0x3b]);
}
