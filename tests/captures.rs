//! What real Java servers said to each other, under `compat-tests/golden/quorum` and `compat-tests/golden/election`: every
//! frame is read and written again to the same bytes, and beside each capture stands what it says. `quorum/record` there has
//! Java say it all again; `UPDATE_EXPECT=1 cargo test --test captures` then writes the texts.
//!
//! A capture is one connection from its first byte on, both directions in the order in which they went over the wire.

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

/// All captures of the quorum port, and that of the port for observers.
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

/// Reads a capture, compares what it says with the text beside it, and gives the names of its packets: `>` in front of a
/// learner's, `<` in front of a leader's.
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
        assert!(found.contains(name), "no {name} any more, only {found:?}");
    }
}

// rows: Q-40 Q-41 Q-42 Q-43 Q-44 Q-45 Q-46 Q-83
#[test]
fn a_followers_life() {
    for name in ["first-start", "first-start-3.8"] {
        let found = told(name);
        has(&found, ">REQUEST <PROPOSAL >ACK <COMMIT <PING >PING >REVALIDATE <REVALIDATE <SYNC");
        assert_eq!(tree::digest_mismatches(name), 0, "{name}");
    }
}

// rows: Q-49 Q-50 Q-51 Q-52 Q-56 Q-57 Q-63
#[test]
fn how_an_epoch_is_opened() {
    for name in ["first-start", "first-start-3.8", "diff", "diff-from-log"] {
        let found = told(name);
        has(&found, ">FOLLOWERINFO <LEADERINFO >ACKEPOCH <DIFF <NEWLEADER >ACK <UPTODATE");
    }
    // Of one that was there before, and whose promise does not count again.
    let is_again = |word: &Word| match &word.said {
        Said::Packet(Packet::AckEpoch { current, .. }) => current.is_none(),
        _ => false,
    };
    let again = |name| words::of(&tape::read("quorum", name)).iter().any(is_again);
    assert_eq!(["first-start", "diff"].map(again), [false, true]);
}

// rows: Q-52 Q-53 Q-54 Q-71
#[test]
fn how_a_learner_is_brought_up_to_date() {
    has(&told("first-start"), "<DIFF");
    has(&told("diff"), "<DIFF <PROPOSAL <COMMIT");
    has(&told("diff-from-log"), "<DIFF <PROPOSAL <COMMIT");
    assert!(!has_kind("trunc", "<DIFF"), "nothing stands in front of TRUNC");
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
fn an_observers_life() {
    for name in ["observer", "observer-of-follower"] {
        let found = told(name);
        has(&found, ">OBSERVERINFO <LEADERINFO <NEWLEADER <UPTODATE <INFORM >REQUEST <SYNC");
        has(&found, "<PING >PING >REVALIDATE <REVALIDATE");
    }
}

// rows: Q-48 Q-49 Q-58 Q-99 Q-102
#[test]
fn what_a_reconfiguration_brings() {
    has(&told("reconfig-follower"), "<PROPOSAL <COMMITANDACTIVATE");
    has(&told("reconfig-observer"), "<INFORMANDACTIVATE");
    has(&told("reconfig-diff"), "<PROPOSAL <COMMIT <NEWLEADER");
    has(&told("reconfig-left"), "<COMMITANDACTIVATE");
}

#[test]
fn java_says_all_that_we_know() {
    let found: BTreeSet<String> =
        ALL.iter().flat_map(|name| names(&words::of(&tape::read("quorum", name)))).collect();
    let known = "<COMMIT <COMMITANDACTIVATE <DIFF <INFORM <INFORMANDACTIVATE <LEADERINFO <NEWLEADER <PING <PROPOSAL \
                 <REVALIDATE <SNAP <SYNC <TRUNC <UPTODATE >ACK >ACKEPOCH >FOLLOWERINFO >OBSERVERINFO >PING >REQUEST \
                 >REVALIDATE";
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>().join(" "), known);
}

// rows: Q-42 Q-57 Q-73 Q-75 Q-77
#[test]
fn our_learner_answers_as_javas_did() {
    for name in ALL {
        learns::replay(name);
    }
}

// rows: Q-44 Q-46 Q-65 Q-66 Q-67 Q-68 Q-72 Q-79
#[test]
fn our_leader_says_what_javas_did() {
    for (name, me) in leads::CAPTURES {
        leads::replay(name, me);
    }
}
