//! Bugs put back into agreement, one at a time: the random worlds must find each, or a script must read differently.
//!
//! `cargo test --features sabotage --test sabotage`

#![allow(clippy::disallowed_methods, reason = "a test has a budget of time, and takes a name")]
#![allow(clippy::print_stdout, reason = "what was found is worth a line")]

#[path = "zab/changes.rs"]
mod changes;
#[path = "zab/checks/mod.rs"]
mod checks;
#[path = "zab/climate.rs"]
mod climate;
#[path = "zab/disk.rs"]
mod disk;
#[path = "zab/script.rs"]
mod script;
#[path = "zab/views.rs"]
mod views;
#[path = "zab/wires.rs"]
mod wires;
#[path = "zab/world.rs"]
mod world;

use climate::Climate;
use oxkeeper::zab::Sabotage::{self, *};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};
use world::World;

/// A bug is found within so many seconds of random worlds, or it is not.
const BUDGET: Duration = Duration::from_secs(30);

/// Each bug, the script under `tests/zab` that reads differently with it, and whether random worlds find it
/// as well: they do not need an epoch that nobody was asked for, show the lost acknowledgements once in 20,000, end before a
/// configuration that came to nothing is in the way, and have time to wait for initLimit.
const TABLE: &[(Sabotage, &str, bool)] = &[
    (EpochBeforeHistory, "zk_4643_history_before_epoch", true),
    (AckBeforeFlush, "zk_4646_nothing_is_acknowledged_before_it_is_on_disk", true),
    (TreeNotAwaited, "zk_3642_a_tree_counts_once_it_is_on_disk", true),
    (AppendBehindTree, "zk_3642_a_tree_counts_once_it_is_on_disk", true),
    (TruncationIgnored, "zk_3701_a_cut_counts_once_it_is_done", true),
    (CommitBeforeUpToDate, "zk_1549_nothing_is_applied_before_uptodate", true),
    (LooksTooSoon, "zk_4712_an_election_waits_for_the_disk", true),
    (PromiseUnsaved, "zk_1653_an_epoch_is_saved_before_it_is_promised", true),
    (PromiseTwice, "zk_335_a_promise_counts_once", true),
    (EpochUnasked, "zk_335_an_epoch_is_opened_above_those_of_a_quorum", false),
    (AheadIsAccepted, "zk_1154_who_is_ahead_is_not_led", true),
    (AckedIsKept, "old_acknowledgements_do_not_count", true),
    (DiffWithHole, "zk_4925_what_the_window_lacks_is_read_from_the_log", true),
    (TruncAcrossEpochs, "zk_3526_nobody_is_cut_across_epochs", true),
    (ServesTooSoon, "zk_1558_a_quorum_has_the_history_before_anybody_is_served", true),
    (TailForgotten, "who_comes_while_something_is_proposed_gets_it", true),
    (KeptUnacknowledged, "what_is_kept_behind_a_tree_is_acknowledged_again", false),
    (PromisedStaysOut, "who_is_promised_to_a_later_epoch_is_let_in", true),
    (NewcomersUnasked, "reconfig_both_decide_until_one_is_named", true),
    (LostViewDecides, "reconfig_what_came_to_nothing_is_forgotten", false),
    (VoteHidesHistory, "a_voter_that_is_behind_in_our_round_is_told_again", true),
    (ElectorsAwaited, "zk_3109_voters_that_change_their_mind", false),
];

/// What the first world says in which the bug shows, and how many lived before.
fn hunt(bug: Sabotage) -> (u64, Option<String>) {
    let began = Instant::now();
    let mut seed = 0;
    while began.elapsed() < BUDGET {
        seed += 1;
        let climate = Climate { sabotage: Some(bug), ..Climate::of(seed) };
        let lived = catch_unwind(AssertUnwindSafe(|| {
            let mut world = World::new(climate);
            world.live();
        }));
        if let Err(panic) = lived {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            return (seed, Some(text.unwrap_or_default()));
        }
    }
    (seed, None)
}

#[test]
fn every_bug_is_found() {
    std::panic::set_hook(Box::new(|_| {})); // These panics are wanted.
    let only = std::env::var("BUG").ok();
    let mut complaints = Vec::new();
    for bug in Sabotage::ALL {
        let name = format!("{bug:?}");
        if only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        let Some((_, file, finds)) = TABLE.iter().find(|(of, _, _)| *of == bug) else {
            complaints.push(format!("{name} is not in the table"));
            continue;
        };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/zab/{file}.txt"));
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let spoil = |peer: &mut oxkeeper::zab::Peer| peer.core.sabotage = Some(bug);
        let played = catch_unwind(AssertUnwindSafe(|| script::outcome(&text, &spoil)));
        if text.is_empty() || played.is_ok_and(|played| played == text) {
            complaints.push(format!("{name}: {file} does not notice it"));
        }
        if !finds {
            continue;
        }
        let (seeds, found) = hunt(bug);
        println!("{name}: world {seeds}: {}", found.as_deref().unwrap_or("nothing"));
        if found.is_none() {
            complaints.push(format!("{name}: {seeds} random worlds do not show it"));
        }
    }
    let _own = std::panic::take_hook();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
