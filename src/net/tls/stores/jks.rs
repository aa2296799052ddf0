//! Java's own key stores, versions 1 and 2, read only.
//!
//! Magic, version, number of entries; entries; SHA-1 over the password, a constant and all bytes before. A private key is XORed
//! with a chain of SHA-1 over password and salt. Numbers are big-endian.

use super::bytes::Bytes;
use super::entry::{self, Entry, KeyBytes, KeyEntry, TrustedEntry};
use super::error::Fault;
use pkcs8::der::asn1::OctetStringRef;
use pkcs8::der::{Decode as _, Reader as _, SliceReader};
use pkcs8::{AlgorithmIdentifierRef, ObjectIdentifier};
use rustls_pki_types::CertificateDer;
use sha1::{Digest as _, Sha1};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

pub(super) const MAGIC: [u8; 4] = 0xFEED_FEED_u32.to_be_bytes();
/// JCEKS has the same layout, with entries that only Java can decode.
pub(super) const JCEKS_MAGIC: [u8; 4] = 0xCECE_CECE_u32.to_be_bytes();
const DIGEST_LEN: usize = 20;
/// What JKS mixes into the digest of a store.
const WHITENER: &[u8] = b"Mighty Aphrodite";
/// How `sun.security.provider.KeyProtector` names its protection of keys.
const KEY_PROTECTOR: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.42.2.17.1.1");
const NEW_KEY_PASSWORD: &str =
    "give it the store's: keytool -keypasswd -keystore FILE -alias ALIAS";

/// Reads all entries, in the order of the file. The password has to be the store's; a key that has another one is an entry with a
/// fault.
pub(super) fn read(data: &[u8], password: &str) -> Result<Vec<Entry>, Fault> {
    let password = utf16(password);
    let body_len = data.len().checked_sub(DIGEST_LEN).ok_or(Fault::Damaged("it ends too early"))?;
    let (body, digest) = data.split_at(body_len);
    let sum = Sha1::new().chain_update(&*password).chain_update(WHITENER).chain_update(body);
    if !bool::from(sum.finalize().as_slice().ct_eq(digest)) {
        return Err(if password.is_empty() { Fault::NoPassword } else { Fault::WrongPassword });
    }
    entries(body, |protected| unprotect(protected, &password).map(KeyBytes::Pkcs8))
}

/// Whether there is a private key, which shows without the password.
pub(super) fn has_key(data: &[u8]) -> Result<bool, Fault> {
    let all = entries(data, |_| Err(Fault::NoPassword))?;
    Ok(all.iter().any(|entry| matches!(entry, Entry::Key(_))))
}

/// * `unprotect`: gives the private key under its protection.
fn entries(
    body: &[u8],
    unprotect: impl Fn(&[u8]) -> Result<KeyBytes, Fault>,
) -> Result<Vec<Entry>, Fault> {
    let mut bytes = Bytes(body);
    bytes.take(MAGIC.len())?;
    let version = bytes.u32()?;
    if !(1..=2).contains(&version) {
        return Err(Fault::Damaged("a JKS of another version than 1 and 2"));
    }
    let mut entries = Vec::new(); // Grows with the entries that are there, whatever their number says.
    for _ in 0..bytes.u32()? {
        let tag = bytes.u32()?;
        let alias = modified_utf8(bytes.short_block()?);
        bytes.take(8)?; // When it was made.
        entries.push(match tag {
            1 => {
                let protected = bytes.block()?;
                let mut chain = Vec::new();
                for _ in 0..bytes.u32()? {
                    chain.push(certificate(&mut bytes, version)?);
                }
                let key = unprotect(protected);
                Entry::Key(KeyEntry { alias, chain, key })
            }
            2 => Entry::Trusted(TrustedEntry {
                alias,
                certificate: certificate(&mut bytes, version)?,
            }),
            _ => return Err(Fault::Damaged("a JKS entry that is neither key nor certificate")),
        });
    }
    Ok(entries)
}

/// The body of a JKS with the checksum that its password gives, for tests and the fuzzer.
#[cfg(any(test, feature = "sim"))]
pub fn seal_jks(body: &[u8], password: &str) -> Vec<u8> {
    let sum = Sha1::new().chain_update(&*utf16(password)).chain_update(WHITENER).chain_update(body);
    [body, sum.finalize().as_slice()].concat()
}

fn certificate(bytes: &mut Bytes<'_>, version: u32) -> Result<CertificateDer<'static>, Fault> {
    if version == 2 && bytes.short_block()? != b"X.509" {
        return Err(Fault::Damaged("a certificate of another kind than X.509"));
    }
    entry::certificate(bytes.block()?)
}

/// A private key as PKCS #8.
fn unprotect(protected: &[u8], password: &[u8]) -> Result<Zeroizing<Vec<u8>>, Fault> {
    const DAMAGED: Fault = Fault::Damaged("a key of another form than Java writes");
    let (algorithm, content) = encrypted_parts(protected).map_err(|_| DAMAGED)?;
    if algorithm != KEY_PROTECTOR {
        return Err(DAMAGED);
    }
    let key_len = content.len().checked_sub(2 * DIGEST_LEN).ok_or(DAMAGED)?;
    let (salt, rest) = content.split_at(DIGEST_LEN);
    let (mixed, digest) = rest.split_at(key_len);
    let mut key = Zeroizing::new(Vec::with_capacity(key_len));
    let mut pad = Zeroizing::new(salt.to_vec());
    for piece in mixed.chunks(DIGEST_LEN) {
        *pad = Sha1::new().chain_update(password).chain_update(&*pad).finalize().to_vec();
        key.extend(piece.iter().zip(pad.iter()).map(|(a, b)| a ^ b));
    }
    let sum = Sha1::new().chain_update(password).chain_update(&*key).finalize();
    let fits = bool::from(sum.as_slice().ct_eq(digest));
    fits.then_some(key).ok_or(Fault::KeyPassword(NEW_KEY_PASSWORD))
}

/// Algorithm and content of an `EncryptedPrivateKeyInfo`.
fn encrypted_parts(der: &[u8]) -> Result<(ObjectIdentifier, &[u8]), pkcs8::der::Error> {
    let mut reader = SliceReader::new(der)?;
    let parts = reader.sequence(|inner| {
        let algorithm = AlgorithmIdentifierRef::decode(inner)?.oid;
        let content: &OctetStringRef = inner.decode()?;
        Ok::<_, pkcs8::der::Error>((algorithm, content.as_bytes()))
    })?;
    reader.finish()?;
    Ok(parts)
}

/// A password as JKS hashes it: two bytes a character.
fn utf16(password: &str) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(password.encode_utf16().flat_map(u16::to_be_bytes).collect())
}

/// What `DataOutputStream.writeUTF` wrote: UTF-8 of single UTF-16 units, with two bytes for NUL.
fn modified_utf8(bytes: &[u8]) -> String {
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, after)) = rest.split_first() {
        let low = |at: usize| after.get(at).map_or(0, |&byte| u16::from(byte & 0x3F));
        let first_bits = u16::from(first);
        let (unit, more) = match first {
            0..=0x7F => (first_bits, 0),
            0xC0..=0xDF => ((first_bits & 0x1F) << 6 | low(0), 1),
            0xE0..=0xEF => ((first_bits & 0x0F) << 12 | low(0) << 6 | low(1), 2),
            _ => (0xFFFD, 0), // No byte that Java writes.
        };
        units.push(unit);
        rest = after.get(more..).unwrap_or_default();
    }
    String::from_utf16_lossy(&units)
}
