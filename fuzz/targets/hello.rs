//! Any bytes over new connections to the quorum port and to the election port, with a SASL exchange and without one: they are refused with
//! a reason or understood, and the member never fails an assertion, never ends, and keeps no more bytes than it received.
//!
//! What an input means is in `tests/support/hello_bytes.rs`.

use crate::memory::within_memory;
use oxkeeper::member::sasl_exchange::{NoSasl, SaslExchanges};
use oxkeeper::member::sim_exchange::{SimExchanges, replayable_digest_exchanges};
use std::sync::Arc;
use support::hello_bytes::play;

pub fn target(input: &[u8]) {
    let exchanges: [Arc<dyn SaslExchanges>; 3] =
        [Arc::new(NoSasl), Arc::new(SimExchanges), Arc::new(replayable_digest_exchanges(false))];
    within_memory(|| drop(play(input, &exchanges)));
}
