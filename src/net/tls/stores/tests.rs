//! Stores that keytool and openssl made (compat-tests/golden/tls/make). Their password is `secret1`.

use super::kind::kind_of;
use super::load::decoded;
use super::*;
use crate::config::tls::{StoreKind, StorePassword, StoreSettings};
use crate::model::Secret;
use rustls_pki_types::CertificateDer;
use std::path::PathBuf;
use std::sync::Arc;
use x509_parser::prelude::{FromDer as _, X509Certificate};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("compat-tests/golden/tls").join(name)
}

fn settings(path: PathBuf, password: &str) -> StoreSettings {
    let secret = Arc::new(Secret::new(password.into()));
    let password =
        if password.is_empty() { StorePassword::None } else { StorePassword::Given(secret) };
    StoreSettings { path, password, kind: None }
}

fn keys(name: &str) -> Result<Keys, String> {
    keys_with(name, "secret1")
}

fn keys_with(name: &str, password: &str) -> Result<Keys, String> {
    load_keys(&settings(golden(name), password)).map_err(|e| line(&e))
}

fn trust(name: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    load_trust(&settings(golden(name), "secret1")).map_err(|e| line(&e))
}

/// An error without the folder, and surely without a password.
fn line(error: &StoreError) -> String {
    let text = error.to_string();
    assert!(!text.contains("secret1") && !format!("{error:?}").contains("secret1"), "{text}");
    assert!(!text.contains('\n'), "{text}");
    text.replace(golden("").to_str().unwrap(), "")
}

fn subject(certificate: &CertificateDer<'_>) -> String {
    let (_, certificate) = X509Certificate::from_der(certificate).unwrap();
    certificate.subject().to_string()
}

fn shown(keys: &Keys) -> String {
    let subjects: Vec<String> = keys.chain.iter().map(subject).collect();
    format!("{}: {:?}, {}", keys.alias, keys.signer.algorithm(), subjects.join(" < "))
}

#[track_caller]
fn check_keys(name: &str, expected: &str) {
    assert_eq!(shown(&keys(name).unwrap()), expected, "{name}");
}

#[track_caller]
fn check_fault(found: Result<Keys, String>, expected: &str) {
    assert_eq!(found.err().as_deref(), Some(expected));
}

const EC_CHAIN: &str = "O=Oxkeeper, CN=ec.example < O=Oxkeeper, CN=Golden CA 2";
const RSA_LEAF: &str = "O=Oxkeeper, CN=rsa.example";

// rows: C-193 C-193c
#[test]
fn jks_with_ec_rsa_and_v1_certificates_is_read() {
    check_keys("ec.jks", &format!("zk: ECDSA, {EC_CHAIN}"));
    check_keys("rsa.jks", &format!("zk: RSA, {RSA_LEAF}"));
    // A certificate of X.509 v1, beside an authority.
    check_keys("v1.jks", "v1: ECDSA, O=Oxkeeper, CN=v1.example");
}

#[test]
fn pkcs12_of_keytool_and_openssl_is_read() {
    for name in ["openssl.p12", "keytool.p12", "keytool-legacy.p12"] {
        check_keys(name, &format!("zk: ECDSA, {EC_CHAIN}"));
    }
    check_keys("openssl-legacy.p12", &format!("zk: RSA, {RSA_LEAF}"));
    let unprotected = keys_with("no-password.p12", "").unwrap();
    assert_eq!(shown(&unprotected), format!("zk: ECDSA, {EC_CHAIN}"));
}

#[test]
fn pem_with_old_and_new_forms_of_keys_is_read() {
    check_keys("ec-pkcs8.pem", "key: ECDSA, O=Oxkeeper, CN=ec.example");
    check_keys("rsa-pkcs8.pem", &format!("key: RSA, {RSA_LEAF}"));
    check_keys("ec-old.pem", "key: ECDSA, O=Oxkeeper, CN=ec.example");
    check_keys("rsa-old.pem", &format!("key: RSA, {RSA_LEAF}"));
    check_keys("v1.pem", "key: ECDSA, O=Oxkeeper, CN=v1.example");
    for name in ["pbes2.pem", "pbes2-3des-sha1.pem", "pbes2-scrypt.pem", "pbes1-3des.pem"] {
        check_keys(name, &format!("key: ECDSA, {EC_CHAIN}"));
    }
}

// rows: C-194 C-194c
#[test]
fn only_trusted_entries_of_a_store_are_trusted() {
    for name in ["trust.jks", "trust.p12", "v1.jks", "ca.pem"] {
        let trusted = trust(name).unwrap();
        let subjects: Vec<String> = trusted.iter().map(subject).collect();
        assert_eq!(subjects, ["O=Oxkeeper, CN=Golden CA"], "{name}");
    }
    assert_eq!(trust("trust.pem").unwrap().len(), 2);
    let none = "no trusted certificate in it, only keys and certificates without Java's mark; add one: \
                keytool -importcert -keystore FILE -alias ALIAS -file CERTIFICATE";
    assert_eq!(trust("ec.jks").unwrap_err(), format!("trust store ec.jks (JKS): {none}"));
    let unmarked = format!("trust store openssl-trust.p12 (PKCS12): {none}");
    assert_eq!(trust("openssl-trust.p12").unwrap_err(), unmarked);
}

#[test]
fn wrong_or_missing_password_is_named() {
    for (name, kind) in [
        ("ec.jks", "JKS"),
        ("keytool.p12", "PKCS12"),
        ("keytool-legacy.p12", "PKCS12"),
        ("openssl.p12", "PKCS12"),
        ("pbes2.pem", "PEM), alias key"),
        ("pbes1-3des.pem", "PEM), alias key"),
    ] {
        let place = format!("key store {name} ({kind})").replace("key)", "key");
        let fault = "the password is wrong, or the file was changed";
        check_fault(keys_with(name, "secret2"), &format!("{place}: {fault}"));
        let fault = "it needs a password, and none is set";
        check_fault(keys_with(name, ""), &format!("{place}: {fault}"));
    }
}

#[test]
fn key_with_another_password_is_refused_by_its_alias() {
    check_fault(
        keys("another.jks"),
        "key store another.jks (JKS), alias zk: its key has another password than the store, which Java refuses too; \
         give it the store's: keytool -keypasswd -keystore FILE -alias ALIAS",
    );
}

#[test]
fn key_without_its_certificate_is_refused_with_a_remedy() {
    check_fault(
        keys("mismatch.pem"),
        "key store mismatch.pem (PEM), alias key: key and certificate do not belong together; \
         put the certificate of this key into the store",
    );
    check_fault(
        keys("wrong-order.pem"),
        "key store wrong-order.pem (PEM), alias key: key and certificate do not belong together; \
         the certificate of the key has to come first, before those of its issuers",
    );
    check_fault(
        keys("weak.pem"),
        "key store weak.pem (PEM), alias key: its key can't be used: RSA with less than 2048 bits; make a key of 2048 or more",
    );
    let none = "no private key in it; a certificate alone can't serve";
    check_fault(keys("ca.pem"), &format!("key store ca.pem (PEM): {none}"));
    check_fault(keys("trust.jks"), &format!("key store trust.jks (JKS): {none}"));
}

#[test]
fn kinds_and_keys_that_are_not_read_are_refused_with_their_conversion() {
    let converts = |name: &str, command: &str| {
        let fault = keys(name).err().unwrap();
        assert!(fault.contains("convert it: ") && fault.contains(command), "{fault}");
    };
    converts("jceks.jceks", "-srcstoretype JCEKS -destkeystore NEW.p12");
    converts("old-encrypted.pem", "openssl pkcs8 -topk8");
    converts("pbes1-des.pem", "openssl pkcs8 -in FILE");
    converts("certificate.der", "openssl x509 -inform DER");
    let fault = keys("dsa.p12").err().unwrap();
    assert!(fault.contains("make a new key: keytool -genkeypair -keyalg EC"), "{fault}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys.bcfks");
    // Encrypted entries of a BCFKS: the algorithm comes first.
    std::fs::write(&path, b"\x30\x82\x01\x00\x30\x81\x80\x30\x53\x06\x09\x2A\x86\x48").unwrap();
    let fault = load_keys(&settings(path, "secret1")).err().unwrap().to_string();
    assert!(fault.contains("a BCFKS store") && fault.contains("-srcstoretype BCFKS"), "{fault}");
}

#[test]
fn store_without_a_private_key_holds_certificates_alone() {
    let is_public = |name: &str| holds_certificates_alone(&std::fs::read(golden(name)).unwrap());
    for name in ["trust.jks", "trust.p12", "openssl-trust.p12", "ca.pem", "trust.pem"] {
        assert!(is_public(name), "{name}");
    }
    for name in [
        "ec.jks",
        "many.jks",
        "jceks.jceks",
        "keytool.p12",
        "keytool-legacy.p12",
        "openssl.p12",
        "openssl-legacy.p12",
        "no-password.p12",
        "ec-pkcs8.pem",
        "rsa-old.pem",
    ] {
        assert!(!is_public(name), "{name}");
    }
    assert!(!holds_certificates_alone(b"") && !holds_certificates_alone(b"\xfe\xed\xfe\xed"));
}

#[test]
fn file_that_is_no_store_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let fault = |name: &str, data: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, data).unwrap();
        load_keys(&settings(path, "secret1")).err().unwrap().fault.to_string()
    };
    assert_eq!(fault("empty", b""), "the file is empty");
    assert_eq!(fault("text", b"hello"), "it is not a JKS, PKCS12 or PEM store");
    assert_eq!(
        fault("large", &vec![b'x'; (16 << 20) + 1]),
        "it has more than 16 MiB, which no store has"
    );
    assert_eq!(
        fault("cut.jks", b"\xFE\xED\xFE\xED"),
        "damaged, or not what it says: it ends too early"
    );
    let absent = load_keys(&settings(dir.path().join("absent"), "")).err().unwrap().to_string();
    assert!(absent.contains("can't read it: No such file"), "{absent}");
}

// rows: C-193b C-194b
#[test]
fn password_file_loses_one_newline() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    let mut settings = settings(golden("ec.jks"), "");
    settings.password = StorePassword::File(file.clone());
    let fault = load_keys(&settings).err().unwrap().to_string();
    assert!(
        fault.contains("can't read its password from ") && fault.contains("No such file"),
        "{fault}"
    );
    for (text, fits) in
        [("secret1", true), ("secret1\n", true), ("secret1\n\n", false), ("secret1\r\n", false)]
    {
        std::fs::write(&file, text).unwrap();
        assert_eq!(load_keys(&settings).is_ok(), fits, "{text:?}");
    }
}

#[test]
fn of_many_keys_javas_first_is_taken() {
    let order = std::fs::read_to_string(golden("many.txt")).unwrap();
    let order: Vec<&str> = order.lines().collect();
    let keys = keys("many.jks").unwrap();
    assert_eq!((keys.alias.as_str(), keys.others.len()), (order[0], order.len() - 1));
    assert_eq!(keys.others, order[1..]);
    let warnings = warnings(&settings(golden("many.jks"), "secret1"), Some(&keys));
    assert!(warnings[0].contains("has several keys: zk1.example is shown"), "{warnings:?}");
}

#[test]
fn kind_that_is_not_what_the_settings_say_is_named() {
    let mut settings = settings(golden("openssl.p12"), "secret1");
    for (kind, differs) in
        [(StoreKind::Pkcs12, false), (StoreKind::Jks, true), (StoreKind::Bcfks, true)]
    {
        settings.kind = Some(kind);
        assert!(load_keys(&settings).is_ok());
        assert_eq!(warnings(&settings, None).len(), usize::from(differs), "{kind:?}");
    }
}

/// Every store cut at every place, and with each byte changed, is an error or is read; nothing panics.
#[test]
fn damaged_stores_are_errors() {
    let password = StorePassword::Given(Arc::new(Secret::new(b"secret1".to_vec())));
    for name in ["v1.jks", "trust.jks", "v1.pem", "no-password.p12"] {
        let data = std::fs::read(golden(name)).unwrap();
        let kind = kind_of(&data).unwrap();
        for at in 0..data.len() {
            let mut changed = data.clone();
            changed[at] ^= 0x55;
            drop(decoded(&changed, kind, &password));
            drop(decoded(&data[..at], kind, &password));
            // A JKS with a checksum that fits, so that its entries are reached.
            if kind == Kind::Jks && at < data.len() - 20 {
                drop(count_entries(&seal_jks(&changed[..data.len() - 20], "secret1"), "secret1"));
                drop(count_entries(&seal_jks(&data[..at], "secret1"), "secret1"));
            }
        }
    }
}

/// Wherever the rounds of a derivation stand, they are refused before they are done.
#[test]
fn costly_derivations_are_refused() {
    let password = StorePassword::Given(Arc::new(Secret::new(b"secret1".to_vec())));
    for name in ["openssl.p12", "keytool-legacy.p12", "pbes2.pem", "pbes1-3des.pem"] {
        assert!(keys(name).is_ok());
    }
    let mut data = std::fs::read(golden("openssl.p12")).unwrap();
    let rounds: Vec<usize> =
        (0..data.len() - 4).filter(|&at| data[at..at + 4] == [0x02, 0x02, 0x08, 0x00]).collect();
    assert!(rounds.len() > 1);
    // 2048 rounds are two bytes; longer ones need a longer file.
    let at = rounds[0];
    data.splice(at..at + 4, [0x02, 0x04, 0x7F, 0xFF, 0xFF, 0xFF]);
    let fault = decoded(&data, Kind::Pkcs12, &password).err().unwrap();
    assert!(matches!(fault, Fault::TooManyRounds), "{fault}");
    // Each derivation counts by itself: several with 600,000, as openssl's `-iter 600000` makes, are no reason.
    let rounds = |each: [u8; 3]| {
        let mut data = std::fs::read(golden("openssl.p12")).unwrap();
        for at in rounds.iter().rev() {
            data.splice(*at..*at + 4, [0x02, 0x03].into_iter().chain(each));
        }
        decoded(&data, Kind::Pkcs12, &password).err().unwrap()
    };
    let many = rounds([0x09, 0x27, 0xC0]);
    assert!(!matches!(many, Fault::TooManyRounds), "{many}");
    let too_many = rounds([0x0F, 0x42, 0x41]);
    assert!(matches!(too_many, Fault::TooManyRounds), "{too_many}");
}
