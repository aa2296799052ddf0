//! Openings for the simulator and for tests: both ends send some words in turn, and each must be the expected one; and DIGEST-MD5.

use super::opening::{ConnectionKind, Opened, Opening, Openings};
use super::quorum_sasl::{DigestAcceptors, DigestInitiators, Nonces, SaslOpenings};
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
struct SimOpening {
    words: [&'static str; 4],
    /// Words that were sent or received.
    done: usize,
    is_dialed: bool,
}

impl Opening for SimOpening {
    fn step(&mut self, input: &mut BytesMut, output: &mut Vec<u8>) -> Result<Opened, String> {
        while let Some(word) = self.words.get(self.done) {
            if self.done.is_multiple_of(2) == self.is_dialed {
                output.extend_from_slice(word.as_bytes());
            } else {
                let come = input.len().min(word.len());
                if input[..come] != word.as_bytes()[..come] {
                    return Err(format!("the opening expects the word {word:?}"));
                }
                if come < word.len() {
                    return Ok(Opened::NotYet);
                }
                input.advance(word.len());
            }
            self.done += 1;
        }
        Ok(Opened::Done)
    }
}

/// Makes an exchange of words for every connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimOpenings;

impl Openings for SimOpenings {
    fn accepted(&self, kind: ConnectionKind, _from: &str) -> Box<dyn Opening> {
        Box::new(SimOpening { words: words(kind), done: 0, is_dialed: false })
    }

    /// # Panics
    /// When `to` is empty: a SASL exchange needs the host of the server that is dialed.
    fn dialed(&self, kind: ConnectionKind, to: &[(String, u16)]) -> Box<dyn Opening> {
        assert!(!to.is_empty(), "a server without an address is dialed");
        Box::new(SimOpening { words: words(kind), done: 0, is_dialed: true })
    }
}

/// DIGEST-MD5 between servers that all have the same user and password. Nonces are counted.
///
/// * `is_required`: `quorum.auth.serverRequireSasl`.
pub fn digest_openings(is_required: bool) -> SaslOpenings {
    let counter = AtomicU64::new(0);
    digest_openings_with(
        is_required,
        Arc::new(move || {
            let mut nonce = [0; NONCE_BYTES];
            nonce[..8].copy_from_slice(&counter.fetch_add(1, Ordering::Relaxed).to_be_bytes());
            nonce
        }),
    )
}

/// The same with the same nonce in every exchange: the tokens of one exchange then fit every other one, and tests may replay them.
pub fn replayable_digest_openings(is_required: bool) -> SaslOpenings {
    digest_openings_with(is_required, Arc::new(|| [7; NONCE_BYTES]))
}

fn digest_openings_with(is_required: bool, nonces: Nonces) -> SaslOpenings {
    let password = Arc::new(Secret::new(b"a password".to_vec()));
    let accounts = Arc::new(Accounts::of_servers(&[("member".to_owned(), password.clone())]));
    let acceptors = Arc::new(DigestAcceptors { accounts, nonces: nonces.clone() });
    let initiators = DigestInitiators { user: "member".to_owned(), password, nonces };
    SaslOpenings { acceptors, initiators: Some(Arc::new(initiators)), is_required }
}
