//! Any bytes as what other members send to a member in any phase of any role: packets are refused with a reason or decoded, a decoded
//! packet is the same written and read again, and the member never fails an assertion, never ends, and keeps no more bytes than it
//! received.
//!
//! What an input means is in `tests/support/peer_bytes.rs`.

use crate::memory::within_memory;
use support::peer_bytes::play;

pub fn target(input: &[u8]) {
    within_memory(|| drop(play(input)));
}
