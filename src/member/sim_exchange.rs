//! SASL exchanges for the simulator and for tests: both ends send some words in turn, and each must be the expected one; and DIGEST-MD5.

use super::quorum_sasl::{DigestAcceptors, DigestInitiators, Nonces, QuorumSaslExchanges};
use super::sasl_exchange::{ConnectionKind, SaslExchange, SaslExchanges, SaslProgress};
use crate::auth::digest_md5::{Accounts, NONCE_BYTES};
use crate::model::Secret;
use crate::model::sync::{AtomicU64, Ordering};
use bytes::{Buf, BytesMut};
use std::sync::Arc;

/// What the two ends send in turn, the dialing end first.
///
/// The third word names the kind of connection, so that a connection to the other port fails.
const fn words(kind: ConnectionKind) -> [&'static str; 4] {
    match kind {
        ConnectionKind::Learner => ["hello?", "which?", "learner", "enter"],
        ConnectionKind::Election => ["hello?", "which?", "election", "enter"],
    }
}

/// One end of the exchange.
struct SimExchange {
    words: [&'static str; 4],
    /// Words that were sent or received.
    done: usize,
    is_dialed: bool,
}

impl SaslExchange for SimExchange {
    fn step(&mut self, input: &mut BytesMut, output: &mut Vec<u8>) -> Result<SaslProgress, String> {
        while let Some(word) = self.words.get(self.done) {
            if self.done.is_multiple_of(2) == self.is_dialed {
                output.extend_from_slice(word.as_bytes());
            } else {
                let come = input.len().min(word.len());
                if input[..come] != word.as_bytes()[..come] {
                    return Err(format!("the SASL exchange expects the word {word:?}"));
                }
                if come < word.len() {
                    return Ok(SaslProgress::NotYet);
                }
                input.advance(word.len());
            }
            self.done += 1;
        }
        Ok(SaslProgress::Done)
    }
}

/// Makes an exchange of words for every connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimExchanges;

impl SaslExchanges for SimExchanges {
    fn accepted(&self, kind: ConnectionKind, _from: &str) -> Box<dyn SaslExchange> {
        Box::new(SimExchange { words: words(kind), done: 0, is_dialed: false })
    }

    /// # Panics
    /// When `to` is empty: a SASL exchange needs the host of the server that is dialed.
    fn dialed(&self, kind: ConnectionKind, to: &[(String, u16)]) -> Box<dyn SaslExchange> {
        assert!(!to.is_empty(), "a server without an address is dialed");
        Box::new(SimExchange { words: words(kind), done: 0, is_dialed: true })
    }
}

/// DIGEST-MD5 between servers that all have the same user and password. Nonces are counted.
///
/// * `is_required`: `quorum.auth.serverRequireSasl`.
pub fn digest_exchanges(is_required: bool) -> QuorumSaslExchanges {
    let counter = AtomicU64::new(0);
    digest_exchanges_with(
        is_required,
        Arc::new(move || {
            let mut nonce = [0; NONCE_BYTES];
            nonce[..8].copy_from_slice(&counter.fetch_add(1, Ordering::Relaxed).to_be_bytes());
            nonce
        }),
    )
}

/// The same with the same nonce in every exchange: the tokens of one exchange then fit every other one, and tests may replay them.
pub fn replayable_digest_exchanges(is_required: bool) -> QuorumSaslExchanges {
    digest_exchanges_with(is_required, Arc::new(|| [7; NONCE_BYTES]))
}

fn digest_exchanges_with(is_required: bool, nonces: Nonces) -> QuorumSaslExchanges {
    let password = Arc::new(Secret::new(b"a password".to_vec()));
    let accounts = Arc::new(Accounts::of_servers(&[("member".to_owned(), password.clone())]));
    let acceptors = Arc::new(DigestAcceptors { accounts, nonces: nonces.clone() });
    let initiators = DigestInitiators { user: "member".to_owned(), password, nonces };
    QuorumSaslExchanges { acceptors, initiators: Some(Arc::new(initiators)), is_required }
}
