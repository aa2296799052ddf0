//! Any bytes over new connections to the quorum port and to the election port, with an opening and without one: they are refused with
//! a reason or understood, and the member never fails an assertion, never ends, and keeps no more bytes than it received.
//!
//! What an input means is in `tests/support/hello_bytes.rs`.

use crate::memory::within_memory;
use oxkeeper::member::opening::{NoOpening, Openings};
use oxkeeper::member::sim_opening::{SimOpenings, replayable_digest_openings};
use std::sync::Arc;
use support::hello_bytes::play;

pub fn target(input: &[u8]) {
    let openings: [Arc<dyn Openings>; 3] =
        [Arc::new(NoOpening), Arc::new(SimOpenings), Arc::new(replayable_digest_openings(false))];
    within_memory(|| drop(play(input, &openings)));
}
