//! PEM: a private key and its certificates in one file, or trusted certificates.
//!
//! As in ZooKeeper's reader, the first private key and all certificates of a file are used, in
//! their order; text around them is ignored. Other than there, keys may be in PKCS #1 and SEC 1
//! too, and an encrypted key is recognised by its PEM label, whether a password is set or not.

use super::entry::{self, Entry, KeyBytes, KeyEntry, TrustedEntry};
use super::error::Fault;
use super::{choice, pbe};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use rustls_pki_types::CertificateDer;
use zeroize::Zeroizing;

/// Padding may be missing, as for Java's MIME decoder.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// One block of a file.
struct Block {
    label: String,
    /// Lines with a colon before the content: `Proc-Type` and `DEK-Info` of keys that openssl encrypted in its old form.
    is_encrypted: bool,
    der: Zeroizing<Vec<u8>>,
}

/// The entries of a file. All of its certificates are the chain of its key, and each of them is a trusted entry; the caller
/// knows which it asks for.
pub(super) fn read(data: &[u8], password: &str) -> Result<Vec<Entry>, Fault> {
    let blocks = blocks(data)?;
    let is_certificate = |block: &&Block| block.label.ends_with("CERTIFICATE");
    let certificates =
        blocks.iter().filter(is_certificate).map(|block| entry::certificate(&block.der));
    let chain: Vec<CertificateDer<'static>> = certificates.collect::<Result<_, _>>()?;
    let key = blocks.iter().find(|block| block.label.ends_with("PRIVATE KEY"));
    let mut entries = Vec::new();
    if let Some(block) = key {
        entries.push(Entry::Key(KeyEntry {
            alias: "key".into(), // Its name in Java.
            chain: chain.clone(),
            key: private_key(block, password),
        }));
    }
    for certificate in chain {
        entries.push(Entry::Trusted(TrustedEntry { alias: String::new(), certificate }));
    }
    Ok(entries)
}

fn private_key(block: &Block, password: &str) -> Result<KeyBytes, Fault> {
    if block.is_encrypted {
        return Err(Fault::Convert {
            what: "a key in the old encrypted form of openssl",
            command: "openssl pkcs8 -topk8 -v2 aes256 -in FILE -out KEY.pem, and put the certificates into the new file too",
        });
    }
    let der = || block.der.clone();
    match block.label.as_str() {
        "PRIVATE KEY" => Ok(KeyBytes::Pkcs8(der())),
        "RSA PRIVATE KEY" => Ok(KeyBytes::Pkcs1(der())),
        "EC PRIVATE KEY" => Ok(KeyBytes::Sec1(der())),
        "ENCRYPTED PRIVATE KEY" => pbe::decrypt(&block.der, password).map(KeyBytes::Pkcs8),
        "DSA PRIVATE KEY" => Err(choice::dsa()),
        _ => Err(Fault::UnusableKey(
            "its kind of PEM block is unknown; openssl pkey writes a known one",
        )),
    }
}

fn blocks(data: &[u8]) -> Result<Vec<Block>, Fault> {
    let mut blocks = Vec::new();
    let mut lines = data.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii);
    while let Some(line) = lines.next() {
        let Some(label) = marked(line, b"-----BEGIN ") else { continue };
        let mut content = Zeroizing::new(Vec::new());
        let mut is_encrypted = false;
        loop {
            let Some(line) = lines.next() else {
                return Err(Fault::Damaged("a PEM block without its last line"));
            };
            if marked(line, b"-----END ").is_some() {
                break;
            }
            if line.contains(&b':') {
                is_encrypted |= line.starts_with(b"Proc-Type:") && line.ends_with(b"ENCRYPTED");
                continue;
            }
            content.extend(line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()));
        }
        let label = String::from_utf8_lossy(label).into_owned();
        let Ok(der) = BASE64.decode(&*content).map(Zeroizing::new) else {
            return Err(Fault::Damaged("a PEM block that is not base64"));
        };
        blocks.push(Block { label, is_encrypted, der });
    }
    Ok(blocks)
}

/// The label of a first or last line.
fn marked<'a>(line: &'a [u8], start: &[u8]) -> Option<&'a [u8]> {
    line.strip_prefix(start)?.strip_suffix(b"-----")
}
