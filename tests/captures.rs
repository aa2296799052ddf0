//! Captures of connections between Java servers, in `compat-tests/golden/quorum` and `compat-tests/golden/election`: every packet is
//! decoded and encoded again to the same bytes, and the decoded packets are compared with the text beside each capture. `quorum/record`
//! there captures them again; `UPDATE_EXPECT=1 cargo test --test captures` then writes the texts.
//!
//! A capture is one connection from its first byte on, both directions in the order in which the bytes were sent.

mod captures {
    pub mod election;
    pub mod entry;
    pub mod leads;
    pub mod learns;
    pub mod packets;
    pub mod request;
    pub mod sockets;
    pub mod tape;
    pub mod tree;
}

use captures::packets::{self, Captured, Said};
use captures::{leads, learns, tape, tree};
use oxkeeper::zab::Packet;
use std::collections::BTreeSet;

/// All captures of learner connections: to the leader's port, and one to a follower's `observerMasterPort`.
const ALL: [&str; 14] = [
    "first-start",
    "first-start-3.8",
    "observer",
    "observer-of-follower",
    "snap",
    "diff",
    "diff-from-log",
    "outstanding",
    "trunc",
    "snap-across-epochs",
    "reconfig-follower",
    "reconfig-observer",
    "reconfig-diff",
    "reconfig-left",
];

/// Decodes a capture, compares it with the text beside it, and returns the names of its packets: `>` before a learner's, `<`
/// before a leader's.
#[track_caller]
fn decoded(name: &str) -> BTreeSet<String> {
    let packets = packets::of(&tape::read("quorum", name));
    let mut text = String::new();
    for captured in &packets {
        text += if captured.is_dialer { "> " } else { "< " };
        text += &packets::text(&captured.said);
        text.push('\n');
    }
    tape::expect("quorum", name, &text);
    names(&packets)
}

fn names(packets: &[Captured]) -> BTreeSet<String> {
    let packet = |captured: &Captured| match &captured.said {
        Said::Packet(packet) => {
            Some(format!("{}{}", if captured.is_dialer { ">" } else { "<" }, packet.name()))
        }
        Said::Tree { .. } => None,
    };
    packets.iter().filter_map(packet).collect()
}

#[track_caller]
fn has(found: &BTreeSet<String>, wanted: &str) {
    for name in wanted.split(' ') {
        assert!(found.contains(name), "no {name} in the capture, only {found:?}");
    }
}

// rows: Q-40 Q-41 Q-42 Q-43 Q-44 Q-45 Q-46 Q-83
#[test]
fn captures_of_followers_have_every_packet_of_broadcast() {
    for name in ["first-start", "first-start-3.8"] {
        let found = decoded(name);
        has(&found, ">REQUEST <PROPOSAL >ACK <COMMIT <PING >PING >REVALIDATE <REVALIDATE <SYNC");
        assert_eq!(tree::digest_mismatches(name), 0, "{name}");
    }
}

// rows: Q-49 Q-50 Q-51 Q-52 Q-56 Q-57 Q-63
#[test]
fn captures_have_every_packet_that_opens_an_epoch() {
    for name in ["first-start", "first-start-3.8", "diff", "diff-from-log"] {
        let found = decoded(name);
        has(&found, ">FOLLOWERINFO <LEADERINFO >ACKEPOCH <DIFF <NEWLEADER >ACK <UPTODATE");
    }
    // A learner that has accepted the epoch before sends no current epoch, so that its ACKEPOCH does not count again.
    let is_again = |captured: &Captured| match &captured.said {
        Said::Packet(Packet::AckEpoch { current, .. }) => current.is_none(),
        _ => false,
    };
    let again = |name| packets::of(&tape::read("quorum", name)).iter().any(is_again);
    assert_eq!(["first-start", "diff"].map(again), [false, true]);
}

// rows: Q-52 Q-53 Q-54 Q-71
#[test]
fn captures_have_diff_trunc_and_snap() {
    has(&decoded("first-start"), "<DIFF");
    has(&decoded("diff"), "<DIFF <PROPOSAL <COMMIT");
    has(&decoded("diff-from-log"), "<DIFF <PROPOSAL <COMMIT");
    assert!(!has_kind("trunc", "<DIFF"), "a DIFF before TRUNC");
    has(&decoded("trunc"), "<TRUNC");
    has(&decoded("snap-across-epochs"), "<SNAP");
    has(&decoded("snap"), "<SNAP");
    has(&decoded("outstanding"), "<DIFF <PROPOSAL <COMMIT");
}

fn has_kind(name: &str, kind: &str) -> bool {
    names(&packets::of(&tape::read("quorum", name))).contains(kind)
}

// rows: Q-47 Q-55 Q-92
#[test]
fn captures_of_observers_have_every_packet_of_their_protocol() {
    for name in ["observer", "observer-of-follower"] {
        let found = decoded(name);
        has(&found, ">OBSERVERINFO <LEADERINFO <NEWLEADER <UPTODATE <INFORM >REQUEST <SYNC");
        has(&found, "<PING >PING >REVALIDATE <REVALIDATE");
    }
}

// rows: Q-48 Q-49 Q-58 Q-99 Q-102
#[test]
fn captures_have_the_packets_of_reconfigurations() {
    has(&decoded("reconfig-follower"), "<PROPOSAL <COMMITANDACTIVATE");
    has(&decoded("reconfig-observer"), "<INFORMANDACTIVATE");
    has(&decoded("reconfig-diff"), "<PROPOSAL <COMMIT <NEWLEADER");
    has(&decoded("reconfig-left"), "<COMMITANDACTIVATE");
}

#[test]
fn captures_have_every_packet_type_that_we_decode() {
    let found: BTreeSet<String> =
        ALL.iter().flat_map(|name| names(&packets::of(&tape::read("quorum", name)))).collect();
    let known = "<COMMIT <COMMITANDACTIVATE <DIFF <INFORM <INFORMANDACTIVATE <LEADERINFO <NEWLEADER <PING <PROPOSAL \
                 <REVALIDATE <SNAP <SYNC <TRUNC <UPTODATE >ACK >ACKEPOCH >FOLLOWERINFO >OBSERVERINFO >PING >REQUEST \
                 >REVALIDATE";
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>().join(" "), known);
}

// rows: Q-42 Q-57 Q-73 Q-75 Q-77
#[test]
fn our_learner_sends_what_javas_learner_sent() {
    for name in ALL {
        learns::replay(name);
    }
}

// rows: Q-44 Q-46 Q-65 Q-66 Q-67 Q-68 Q-72 Q-79
#[test]
fn our_leader_sends_what_javas_leader_sent() {
    for (name, me) in leads::CAPTURES {
        leads::replay(name, me);
    }
}
