//! Captures of connections between real Java servers, under `compat-tests/golden/quorum` and `compat-tests/golden/election`:
//! every frame is read and written again to the same bytes, and beside each capture is its text. `quorum/record` there runs
//! Java servers and captures anew; `UPDATE_EXPECT=1 cargo test --test captures` then writes the texts.
//!
//! A capture is one connection from its first byte on, both directions in the order in which the bytes were sent.

mod captures {
    pub mod election;
    pub mod entry;
    pub mod leads;
    pub mod learns;
    pub mod request;
    pub mod sockets;
    pub mod tape;
    pub mod tree;
    pub mod words;
}

use captures::words::{self, Said, Word};
use captures::{leads, learns, tape, tree};
use oxkeeper::zab::Packet;
use std::collections::BTreeSet;

/// All captures of learner connections, `observer-of-follower` at the follower's port for observers.
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

/// Reads a capture, compares it with the text beside it, and returns the names of its packets: `>` before those of a learner,
/// `<` before those of a leader.
#[track_caller]
fn told(name: &str) -> BTreeSet<String> {
    let words = words::of(&tape::read("quorum", name));
    let mut text = String::new();
    for word in &words {
        text += if word.is_dialer { "> " } else { "< " };
        text += &words::text(&word.said);
        text.push('\n');
    }
    tape::expect("quorum", name, &text);
    names(&words)
}

fn names(words: &[Word]) -> BTreeSet<String> {
    let packet = |word: &Word| match &word.said {
        Said::Packet(packet) => {
            Some(format!("{}{}", if word.is_dialer { ">" } else { "<" }, packet.name()))
        }
        Said::Tree { .. } => None,
    };
    words.iter().filter_map(packet).collect()
}

#[track_caller]
fn has(found: &BTreeSet<String>, wanted: &str) {
    for name in wanted.split(' ') {
        assert!(found.contains(name), "no {name} in the capture, only {found:?}");
    }
}

// rows: Q-40 Q-41 Q-42 Q-43 Q-44 Q-45 Q-46 Q-83
#[test]
fn packets_of_a_follower_are_read_and_written_again() {
    for name in ["first-start", "first-start-3.8"] {
        let found = told(name);
        has(&found, ">REQUEST <PROPOSAL >ACK <COMMIT <PING >PING >REVALIDATE <REVALIDATE <SYNC");
        assert_eq!(tree::digest_mismatches(name), 0, "{name}");
    }
}

// rows: Q-49 Q-50 Q-51 Q-52 Q-56 Q-57 Q-63
#[test]
fn packets_that_open_an_epoch_are_read_and_written_again() {
    for name in ["first-start", "first-start-3.8", "diff", "diff-from-log"] {
        let found = told(name);
        has(&found, ">FOLLOWERINFO <LEADERINFO >ACKEPOCH <DIFF <NEWLEADER >ACK <UPTODATE");
    }
    // A learner that has accepted this epoch before: its ACKEPOCH does not count again.
    let is_again = |word: &Word| match &word.said {
        Said::Packet(Packet::AckEpoch { current, .. }) => current.is_none(),
        _ => false,
    };
    let again = |name| words::of(&tape::read("quorum", name)).iter().any(is_again);
    assert_eq!(["first-start", "diff"].map(again), [false, true]);
}

// rows: Q-52 Q-53 Q-54 Q-71
#[test]
fn packets_of_a_synchronisation_are_read_and_written_again() {
    has(&told("first-start"), "<DIFF");
    has(&told("diff"), "<DIFF <PROPOSAL <COMMIT");
    has(&told("diff-from-log"), "<DIFF <PROPOSAL <COMMIT");
    assert!(!has_kind("trunc", "<DIFF"), "no DIFF comes before TRUNC");
    has(&told("trunc"), "<TRUNC");
    has(&told("snap-across-epochs"), "<SNAP");
    has(&told("snap"), "<SNAP");
    has(&told("outstanding"), "<DIFF <PROPOSAL <COMMIT");
}

fn has_kind(name: &str, kind: &str) -> bool {
    names(&words::of(&tape::read("quorum", name))).contains(kind)
}

// rows: Q-47 Q-55 Q-92
#[test]
fn packets_of_an_observer_are_read_and_written_again() {
    for name in ["observer", "observer-of-follower"] {
        let found = told(name);
        has(&found, ">OBSERVERINFO <LEADERINFO <NEWLEADER <UPTODATE <INFORM >REQUEST <SYNC");
        has(&found, "<PING >PING >REVALIDATE <REVALIDATE");
    }
}

// rows: Q-48 Q-49 Q-58 Q-99 Q-102
#[test]
fn packets_of_a_reconfiguration_are_read_and_written_again() {
    has(&told("reconfig-follower"), "<PROPOSAL <COMMITANDACTIVATE");
    has(&told("reconfig-observer"), "<INFORMANDACTIVATE");
    has(&told("reconfig-diff"), "<PROPOSAL <COMMIT <NEWLEADER");
    has(&told("reconfig-left"), "<COMMITANDACTIVATE");
}

#[test]
fn captures_have_every_known_packet() {
    let found: BTreeSet<String> =
        ALL.iter().flat_map(|name| names(&words::of(&tape::read("quorum", name)))).collect();
    let known = "<COMMIT <COMMITANDACTIVATE <DIFF <INFORM <INFORMANDACTIVATE <LEADERINFO <NEWLEADER <PING <PROPOSAL \
                 <REVALIDATE <SNAP <SYNC <TRUNC <UPTODATE >ACK >ACKEPOCH >FOLLOWERINFO >OBSERVERINFO >PING >REQUEST \
                 >REVALIDATE";
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>().join(" "), known);
}

// rows: Q-42 Q-57 Q-73 Q-75 Q-77
#[test]
fn learner_sends_the_bytes_that_javas_learner_sent() {
    for name in ALL {
        learns::replay(name);
    }
}

// rows: Q-44 Q-46 Q-65 Q-66 Q-67 Q-68 Q-72 Q-79
#[test]
fn leader_sends_the_bytes_that_javas_leader_sent() {
    for (name, me) in leads::CAPTURES {
        leads::replay(name, me);
    }
}
