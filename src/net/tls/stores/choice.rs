//! Which of a store's keys is used, and whether it fits its certificate.
//!
//! A Java server chooses a key for each client: the first valid one in the order of its store that
//! has the signature algorithm which the client prefers. This server has one key for all clients:
//! the first valid EC key in that order, or else the first valid key. That gives the same result
//! for clients of Java and OpenSSL, which prefer ECDSA to RSA.

use super::entry::{KeyBytes, KeyEntry, Keys};
use super::error::{EntryFault, Fault};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::sign::SigningKey;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;
use std::time::SystemTime;
use x509_parser::prelude::{FromDer as _, SubjectPublicKeyInfo, X509Certificate};

const EC: &str = "1.2.840.10045.2.1";
const RSA: &str = "1.2.840.113549.1.1.1";
const RSA_PSS: &str = "1.2.840.113549.1.1.10";
const DSA: &str = "1.2.840.10040.4.1";

/// Takes the key of a key store. `entries` are in Java's order.
pub(super) fn choose(mut entries: Vec<KeyEntry>, now: SystemTime) -> Result<Keys, EntryFault> {
    if entries.is_empty() {
        return Err(Fault::NoKey.into());
    }
    // The sort is stable, so that equals stay in Java's order.
    entries.sort_by_key(|entry| {
        let leaf = entry.chain.first().and_then(|leaf| parsed(leaf));
        leaf.map_or((true, true), |leaf| (!is_valid(&leaf, now), algorithm(&leaf) != EC))
    });
    let others = entries.iter().skip(1).map(|entry| entry.alias.clone()).collect();
    let entry = entries.swap_remove(0);
    let alias = entry.alias.clone();
    match usable(entry) {
        Ok((chain, signer)) => Ok(Keys { alias, chain, signer, others }),
        Err(fault) => Err(EntryFault { alias: Some(alias), fault }),
    }
}

pub(super) type Usable = (Vec<CertificateDer<'static>>, Arc<dyn SigningKey>);

/// A key that can be used, with its certificates.
pub(super) fn usable(entry: KeyEntry) -> Result<Usable, Fault> {
    let key = entry.key?;
    let Some(leaf) = entry.chain.first() else { return Err(Fault::NoCertificate) };
    let leaf = parsed(leaf).ok_or(Fault::Damaged("its certificate is no X.509 certificate"))?;
    check_algorithm(&leaf)?;
    let signer = signer(&key)?;
    if !fits(&*signer, &leaf) {
        let another = entry.chain.iter().filter_map(|der| parsed(der)).any(|c| fits(&*signer, &c));
        return Err(Fault::Mismatch(match another {
            true => "the certificate of the key has to come first, before those of its issuers",
            false => "put the certificate of this key into the store",
        }));
    }
    Ok((entry.chain, signer))
}

fn check_algorithm(leaf: &X509Certificate<'_>) -> Result<(), Fault> {
    match algorithm(leaf).as_str() {
        DSA => Err(dsa()),
        RSA | RSA_PSS if modulus_bits(leaf).is_some_and(|bits| bits < 2048) => {
            Err(Fault::UnusableKey("RSA with less than 2048 bits; make a key of 2048 or more"))
        }
        _ => Ok(()),
    }
}

/// DSA signs for no cipher suite of today's clients, so that no conversion helps.
pub(super) fn dsa() -> Fault {
    Fault::NewKey {
        what: "a DSA key, which TLS 1.3 and this server do not have",
        command: "keytool -genkeypair -keyalg EC -keystore NEW.p12 -storetype PKCS12 -alias ALIAS, \
                  and have your authority sign a certificate for it",
    }
}

fn modulus_bits(leaf: &X509Certificate<'_>) -> Option<usize> {
    match leaf.public_key().parsed().ok()? {
        x509_parser::public_key::PublicKey::RSA(rsa) => Some(rsa.key_size()),
        _ => None,
    }
}

fn signer(key: &KeyBytes) -> Result<Arc<dyn SigningKey>, Fault> {
    let der = match key {
        KeyBytes::Pkcs8(der) => PrivateKeyDer::Pkcs8(der.as_slice().into()),
        KeyBytes::Pkcs1(der) => PrivateKeyDer::Pkcs1(der.as_slice().into()),
        KeyBytes::Sec1(der) => PrivateKeyDer::Sec1(der.as_slice().into()),
    };
    any_supported_type(&der).map_err(|_| {
        Fault::UnusableKey(
            "only RSA keys from 2048 bits on, EC keys on secp256r1, secp384r1 or secp521r1, and Ed25519 keys can be used",
        )
    })
}

fn fits(signer: &dyn SigningKey, leaf: &X509Certificate<'_>) -> bool {
    let Some(public) = signer.public_key() else { return false };
    let Ok((_, public)) = SubjectPublicKeyInfo::from_der(&public) else { return false };
    // Without the parameters of the algorithm, which some write and some leave out.
    public.subject_public_key.data == leaf.public_key().subject_public_key.data
}

fn is_valid(leaf: &X509Certificate<'_>, now: SystemTime) -> bool {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |passed| passed.as_secs());
    let validity = leaf.validity();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    validity.not_before.timestamp() <= now && now <= validity.not_after.timestamp()
}

fn algorithm(leaf: &X509Certificate<'_>) -> String {
    leaf.public_key().algorithm.algorithm.to_id_string()
}

fn parsed<'a>(der: &'a CertificateDer<'_>) -> Option<X509Certificate<'a>> {
    X509Certificate::from_der(der).ok().map(|(_, certificate)| certificate)
}
