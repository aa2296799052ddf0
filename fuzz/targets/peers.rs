//! Any bytes as what other members say to one in any phase of any role: they are refused with a reason or understood, what was
//! understood is the same written and read again, and the member never asserts, never ends, and keeps no more than it received.
//!
//! What an input means is in `tests/support/peer_bytes.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxkeeper_fuzz::within_memory;
use support::peer_bytes::play;

fuzz_target!(|input: &[u8]| within_memory(|| drop(play(input))));
