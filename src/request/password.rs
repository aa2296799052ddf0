//! The password by which a client proves that a session is its own.

use crate::model::SessionId;

/// A session's password: the first 16 bytes of `java.util.Random` seeded with the id XOR a constant (P-16, G-09).
///
/// It must be Java's to the bit: a client may take its session from a Java server to this one and back.
pub fn password(session: SessionId) -> [u8; 16] {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;
    let mut state = ((session.0 as u64 ^ 0xB341_5C00) ^ MULTIPLIER) & MASK;
    let mut bytes = [0; 16];
    for four in bytes.chunks_exact_mut(4) {
        state = state.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        four.copy_from_slice(&((state >> 16) as u32).to_le_bytes());
    }
    bytes
}
