//! Any bytes over new connections to the quorum port and to the election port, with a SASL exchange and without one: they are refused with
//! a reason or understood, and the member never fails an assertion, never ends, and keeps no more bytes than it received.
//!
//! What an input means is in `tests/support/hello_bytes.rs`.

use crate::memory::within_memory;
use oxkeeper::member::sasl_exchange::{NoSasl, SaslExchanges};
use oxkeeper::member::sim_exchange::{SimExchanges, replayable_digest_exchanges};
use std::sync::{Arc, LazyLock};
use support::hello_bytes::play;

static EXCHANGES: LazyLock<[Arc<dyn SaslExchanges>; 3]> = LazyLock::new(|| {
    [Arc::new(NoSasl), Arc::new(SimExchanges), Arc::new(replayable_digest_exchanges(false))]
});

pub fn target(input: &[u8]) {
    within_memory(|| drop(play(input, &*EXCHANGES)));
}
