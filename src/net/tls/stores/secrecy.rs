//! Whether a store holds certificates alone, as far as its bytes show it without a password.

use super::jks;
use super::kind::{Kind, contains, kind_of};

/// Kinds of what a PKCS12 store holds (1.2.840.113549.1.12.10.1): a key, a key under a password. Other bags may be encrypted, these are
/// not.
const KEY_BAG: &[u8] = b"\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x01";
const SHROUDED_KEY_BAG: &[u8] = b"\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x02";

/// False if the store may hold a private key, or is of a kind that is not read.
pub fn holds_certificates_alone(store: &[u8]) -> bool {
    let has = |word: &[u8]| contains(store, word);
    match kind_of(store) {
        Ok(Kind::Jks) => jks::has_key(store).is_ok_and(|has_key| !has_key),
        Ok(Kind::Pkcs12) => !has(KEY_BAG) && !has(SHROUDED_KEY_BAG),
        Ok(Kind::Pem) => has(b"-----BEGIN CERTIFICATE-----") && !has(b"PRIVATE KEY-----"),
        Err(_) => false,
    }
}
