//! DIGEST-MD5 as the mechanism that a server offers.

use super::{Accounts, NONCE_BYTES, Server};
use crate::auth::sasl::{Mechanism, Mechanisms};
use std::fmt;
use std::sync::Arc;

/// Begins exchanges, each with a nonce of its own.
pub struct Offer<N> {
    accounts: Arc<Accounts>,
    nonces: N,
}

impl<N: Fn() -> [u8; NONCE_BYTES] + Send + Sync> Offer<N> {
    /// * `nonces`: a source of random bytes that no peer can predict.
    pub fn new(accounts: Accounts, nonces: N) -> Self {
        Self { accounts: Arc::new(accounts), nonces }
    }
}

impl<N: Fn() -> [u8; NONCE_BYTES] + Send + Sync> Mechanisms for Offer<N> {
    fn begin(&self) -> Box<dyn Mechanism> {
        Box::new(Server::new(self.accounts.clone(), (self.nonces)()))
    }
}

impl<N> fmt::Debug for Offer<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DIGEST-MD5")
    }
}
