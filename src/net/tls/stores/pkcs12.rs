//! PKCS12: keytool's, old and new, and openssl's. The one file that knows crate p12-keystore.
//!
//! Certificates are assigned to keys as in the JDK: a key has the certificate with its key id, and
//! the chain goes on by issuer; a certificate is trusted only if it bears Java's mark, which
//! openssl does not give.

use super::entry::{Entry, KeyBytes, KeyEntry, TrustedEntry};
use super::error::Fault;
use super::pbe;
use p12_keystore::error::Error;
use p12_keystore::{Certificate, CertificateBag, Pkcs12Archive, PrivateKeyBag};
use rustls_pki_types::CertificateDer;
use zeroize::Zeroizing;

/// Reads all entries: the keys in the order of the file, as Java goes through them, then trusted certificates.
pub(super) fn read(data: &[u8], password: &str) -> Result<Vec<Entry>, Fault> {
    check_cost(data)?;
    let archive = Pkcs12Archive::from_pkcs12(data, password).map_err(|e| fault(&e, password))?;
    let single = archive.keys.len() == 1;
    let mut entries = Vec::new();
    for (index, key) in archive.keys.iter().enumerate() {
        let alias = alias(key.friendly_name.as_deref(), index);
        let key_der = KeyBytes::Pkcs8(Zeroizing::new(key.key.as_der().to_vec()));
        let chain = chain(key, single, &archive.certs);
        entries.push(Entry::Key(KeyEntry { alias, chain, key: Ok(key_der) }));
    }
    for (index, bag) in archive.certs.iter().filter(|bag| bag.trusted).enumerate() {
        let alias = alias(bag.friendly_name.as_deref(), index);
        entries.push(Entry::Trusted(TrustedEntry { alias, certificate: der(&bag.cert) }));
    }
    Ok(entries)
}

/// Java counts entries without a name.
fn alias(name: Option<&str>, index: usize) -> String {
    name.map_or_else(|| (index + 1).to_string(), str::to_owned)
}

fn der(certificate: &Certificate) -> CertificateDer<'static> {
    CertificateDer::from(certificate.as_der().to_vec())
}

fn chain(
    key: &PrivateKeyBag,
    single: bool,
    certs: &[CertificateBag],
) -> Vec<CertificateDer<'static>> {
    let leaf = match &key.local_key_id {
        Some(id) => certs.iter().find(|bag| bag.local_key_id.as_deref() == Some(id.as_ref())),
        // Java takes the first certificate for a single key without an id.
        None if single => certs.iter().find(|bag| !bag.trusted),
        None => None,
    };
    let mut chain: Vec<&Certificate> = Vec::new();
    let mut next = leaf.map(|bag| &bag.cert);
    while let Some(certificate) = next.filter(|certificate| !chain.contains(certificate)) {
        chain.push(certificate);
        next = (certificate.issuer() != certificate.subject())
            .then(|| {
                certs.iter().map(|bag| &bag.cert).find(|c| c.subject() == certificate.issuer())
            })
            .flatten();
    }
    chain.into_iter().map(der).collect()
}

fn fault(error: &Error, password: &str) -> Fault {
    match error {
        Error::MacError(_) if password.is_empty() => Fault::NoPassword,
        Error::MacError(_) => Fault::WrongPassword,
        Error::InvalidParameters => Fault::TooManyRounds,
        // The password fits the store: its checksum comes first.
        Error::UnpadError | Error::Pkcs5Error(_) => Fault::KeyPassword(
            "give it the store's: keytool -importkeystore makes a new store with one password",
        ),
        Error::UnsupportedEncryptionScheme | Error::UnsupportedMacAlgorithm => Fault::Convert {
            what: "a PKCS12 with an unknown encryption",
            command: "keytool -importkeystore -srckeystore FILE -srcstoretype PKCS12 -destkeystore NEW.p12 -deststoretype PKCS12",
        },
        Error::InvalidPrivateKey => Fault::Damaged("a private key that is no PKCS #8"),
        Error::X509Error(_) | Error::UnsupportedCertificateType => {
            Fault::Damaged("a certificate that is none of X.509")
        }
        _ => Fault::Damaged("no PKCS12 that can be read"),
    }
}

/// Object identifiers before the parameters of a derivation, as DER.
const PBKDF2: &[u8] = b"\x06\x09\x2A\x86\x48\x86\xF7\x0D\x01\x05\x0C";
const SCRYPT: &[u8] = b"\x06\x09\x2B\x06\x01\x04\x01\xDA\x47\x04\x0B";
const PBES1: &[u8] = b"\x06\x0A\x2A\x86\x48\x86\xF7\x0D\x01\x0C\x01";

/// Bounds the work that each derivation of the file asks for, and all of them together; the crate bounds only each.
fn check_cost(data: &[u8]) -> Result<(), Fault> {
    let mut rounds = 0_u64;
    for at in 0..data.len() {
        let rest = &data[at..];
        let mut these = 0;
        if let Some(parameters) = rest.strip_prefix(PBKDF2) {
            these = numbers(parameters).first().copied().unwrap_or(0);
        } else if let Some(parameters) = rest.strip_prefix(PBES1) {
            these = numbers(parameters.get(1..).unwrap_or_default()).first().copied().unwrap_or(0);
        } else if let Some(parameters) = rest.strip_prefix(SCRYPT)
            && let [cost, block_size, parallelization, ..] = numbers(parameters)[..]
            && !pbe::scrypt_fits(cost, block_size, parallelization)
        {
            return Err(Fault::TooManyRounds);
        }
        rounds = rounds.saturating_add(these);
        if these > pbe::ROUNDS_MAX.into() || rounds > ROUNDS_MAX {
            return Err(Fault::TooManyRounds);
        }
    }
    Ok(())
}

/// Rounds of all derivations of a file: a thousand entries by keytool, each with 10,000.
const ROUNDS_MAX: u64 = 10 * pbe::ROUNDS_MAX as u64;

/// The numbers that follow the salt in the parameters of a derivation.
fn numbers(parameters: &[u8]) -> Vec<u64> {
    use pkcs8::der::asn1::OctetStringRef;
    use pkcs8::der::{Decode as _, Header, SliceReader};
    let mut numbers = Vec::new();
    let Ok(mut reader) = SliceReader::new(parameters) else { return numbers };
    // What comes after the numbers does not matter, so the sequence is not read to its end.
    let salt = Header::decode(&mut reader).and_then(|_| <&OctetStringRef>::decode(&mut reader));
    while salt.is_ok()
        && numbers.len() < 3
        && let Ok(number) = u64::decode(&mut reader)
    {
        numbers.push(number);
    }
    numbers
}
