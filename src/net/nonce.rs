//! Random bytes for exchanges in which each side shows that it takes part now.

use crate::auth::digest_md5::NONCE_BYTES;

/// Random bytes that no peer can predict: if a nonce came again, an eavesdropper's copy of its answer would be accepted.
pub fn nonce() -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    let filled = rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty());
    assert_eq!(filled, Ok(NONCE_BYTES), "the kernel gives as many random bytes as are asked for");
    nonce
}
