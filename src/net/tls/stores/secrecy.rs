//! Whether a store holds certificates alone, as far as its bytes show it without a password.

use super::bytes::Bytes;
use super::error::Fault;
use super::jks::MAGIC;

/// Begin of a PKCS12 store: a sequence with a length in two bytes, and version 3.
const PKCS12: (u8, [u8; 3]) = (0x30, [2, 1, 3]);
/// Kinds of what a PKCS12 store holds (1.2.840.113549.1.12.10.1): a key, a key under a password. Other bags may be encrypted, these are
/// not.
const KEY_BAG: &[u8] = b"\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x01";
const SHROUDED_KEY_BAG: &[u8] = b"\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x02";

/// False if the store may hold a private key, or is of an unknown kind.
pub fn holds_certificates_alone(store: &[u8]) -> bool {
    let has = |word: &[u8]| store.windows(word.len()).any(|part| part == word);
    if store.starts_with(&MAGIC) {
        return jks_has_no_key(store).unwrap_or(false);
    }
    if store.first() == Some(&PKCS12.0) && store.get(4..7) == Some(&PKCS12.1) {
        return !has(KEY_BAG) && !has(SHROUDED_KEY_BAG);
    }
    has(b"-----BEGIN CERTIFICATE-----") && !has(b"PRIVATE KEY-----")
}

fn jks_has_no_key(store: &[u8]) -> Result<bool, Fault> {
    let mut bytes = Bytes(store);
    bytes.take(MAGIC.len())?;
    let version = bytes.u32()?;
    for _ in 0..bytes.u32()? {
        if bytes.u32()? != 2 {
            return Ok(false);
        }
        bytes.short_block()?; // Alias.
        bytes.take(8)?; // When it was made.
        if version == 2 {
            bytes.short_block()?; // X.509.
        }
        bytes.block()?;
    }
    Ok(true)
}
