//! Whole handshakes with certificates that webpki refuses, and each refusal of the verifier.

use super::verifier::*;
use crate::auth::x509::test_certificates::{Draft, purposes};
use crate::auth::x509::{Purpose, Refusal};
use rcgen::{KeyPair, PublicKeyData as _, SigningKey as _};
use rustls::client::ResolvesClientCert;
use rustls::crypto::aws_lc_rs;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{
    ClientConfig, ClientConnection, Error, ServerConfig, ServerConnection, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use std::sync::Arc;

const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
const CLIENT: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];

/// A draft with its key, signed by the issuer's.
struct Issued {
    der: CertificateDer<'static>,
    key: KeyPair,
}

fn now() -> i64 {
    i64::try_from(UnixTime::now().as_secs()).unwrap()
}

fn issue(draft: Draft, issuer: Option<&KeyPair>) -> Issued {
    let key = KeyPair::generate().unwrap();
    let draft =
        Draft { key: key.der_bytes().to_vec(), from: now() - 1000, until: now() + 1000, ..draft };
    let der = draft.signed(|tbs| issuer.unwrap_or(&key).sign(tbs).unwrap());
    Issued { der: der.into(), key }
}

fn verifier(trusted: &[&Issued]) -> Arc<Verifier> {
    let trusted: Vec<_> = trusted.iter().map(|issued| issued.der.clone()).collect();
    Arc::new(Verifier::new(&aws_lc_rs::default_provider(), &trusted, true).unwrap())
}

#[derive(Debug)]
struct OneKey(Arc<CertifiedKey>);

impl ResolvesServerCert for OneKey {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

impl ResolvesClientCert for OneKey {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
    fn has_certs(&self) -> bool {
        true
    }
}

fn one_key(issued: &Issued) -> Arc<OneKey> {
    let key = PrivateKeyDer::try_from(issued.key.serialize_der()).unwrap();
    let key = aws_lc_rs::sign::any_supported_type(&key).unwrap();
    Arc::new(OneKey(Arc::new(CertifiedKey::new(vec![issued.der.clone()], key))))
}

/// A handshake in memory; the error is that of the side that refused.
fn shake(
    root: &Issued,
    server: &Issued,
    client: &Issued,
    version: &'static rustls::SupportedProtocolVersion,
) -> Result<(), Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = verifier(&[root]);
    let config = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[version])?
        .with_client_cert_verifier(verifier.clone())
        .with_cert_resolver(one_key(server));
    let mut accepted = ServerConnection::new(Arc::new(config))?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_cert_resolver(one_key(client));
    let mut dialed = ClientConnection::new(Arc::new(config), "host".try_into().unwrap())?;
    for _ in 0..6 {
        let mut bytes = Vec::new();
        dialed.write_tls(&mut bytes).unwrap();
        accepted.read_tls(&mut &*bytes).unwrap();
        accepted.process_new_packets()?;
        let mut bytes = Vec::new();
        accepted.write_tls(&mut bytes).unwrap();
        dialed.read_tls(&mut &*bytes).unwrap();
        dialed.process_new_packets()?;
    }
    assert!(!accepted.is_handshaking() && !dialed.is_handshaking());
    Ok(())
}

#[test]
fn handshake_with_version_1_certificates_succeeds() {
    let root = issue(Draft::authority("root", "root"), None);
    let old = |name| issue(Draft { version: 1, ..Draft::new(name, "root") }, Some(&root.key));
    let (server, client) = (old("server"), old("client"));
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        assert_eq!(shake(&root, &server, &client, version), Ok(()), "{version:?}");
    }
}

#[test]
fn a_refusal_comes_out_of_the_handshake_with_its_reason() {
    let root = issue(Draft::authority("root", "root"), None);
    let server = issue(Draft::new("server", "root"), Some(&root.key));
    let client = issue(Draft::new("client", "stranger"), None);
    let error = shake(&root, &server, &client, &rustls::version::TLS13).unwrap_err();
    let (subject, issuer) = ("CN=client".to_owned(), "CN=stranger".to_owned());
    let reason = Refusal::UnknownIssuer { subject: subject.clone(), issuer };
    assert_eq!(refused(&error), Some(&Refused { subject, reason }));
    assert_eq!(refused(&Error::DecryptError), None);
}

#[test]
fn handshake_with_the_key_of_another_certificate_is_refused() {
    let root = issue(Draft::authority("root", "root"), None);
    let server = issue(Draft::new("server", "root"), Some(&root.key));
    for version in [1, 3] {
        let whole = issue(Draft { version, ..Draft::new("client", "root") }, Some(&root.key));
        let stolen = Issued { der: whole.der, key: KeyPair::generate().unwrap() };
        for tls in [&rustls::version::TLS12, &rustls::version::TLS13] {
            assert!(shake(&root, &server, &stolen, tls).is_err(), "{version} {tls:?}");
        }
    }
}

#[test]
fn leaves_that_java_takes_and_webpki_refuses_are_trusted() {
    let root = issue(Draft::authority("root", "root"), None);
    let judge = |draft: Draft, purpose| {
        let leaf = issue(draft, Some(&root.key));
        verifier(&[&root])
            .judge(&leaf.der, &[], purpose, UnixTime::now())
            .map_err(|error| error.reason)
    };
    assert_eq!(judge(Draft::authority("leaf", "root"), Purpose::Client), Ok(()), "CA:true");
    let any = purposes(&[&[0x55, 0x1d, 0x25, 0]]);
    let any = Draft::new("leaf", "root").with(EXTENDED_KEY_USAGE, false, &any);
    assert_eq!(judge(any, Purpose::Server), Ok(()), "any purpose");
    let policies = Draft::new("leaf", "root").with(&[0x55, 0x1d, 54], true, &[2, 1, 0]);
    assert_eq!(judge(policies, Purpose::Client), Ok(()), "critical inhibitAnyPolicy");
    let client = Draft::new("leaf", "root").with(EXTENDED_KEY_USAGE, false, &purposes(&[CLIENT]));
    assert_eq!(judge(client.clone(), Purpose::Client), Ok(()));
    let refusal = Refusal::OtherPurpose { subject: "CN=leaf".to_owned(), purpose: Purpose::Server };
    assert_eq!(judge(client, Purpose::Server), Err(refusal));
}

#[test]
fn a_pinned_certificate_is_trusted_after_its_end() {
    let key = KeyPair::generate().unwrap();
    let draft =
        Draft { key: key.der_bytes().to_vec(), until: now() - 1, ..Draft::new("leaf", "leaf") };
    let pinned = Issued { der: draft.signed(|tbs| key.sign(tbs).unwrap()).into(), key };
    let verifier = verifier(&[&pinned]);
    assert_eq!(verifier.judge(&pinned.der, &[], Purpose::Client, UnixTime::now()), Ok(()));
    let other = issue(Draft::new("other", "leaf"), Some(&pinned.key));
    let refused = verifier.judge(&other.der, &[], Purpose::Client, UnixTime::now()).unwrap_err();
    assert_eq!(refused.reason, Refusal::AnchorIsNoCa { issuer: "CN=leaf".to_owned() });
}

#[test]
fn chains_with_more_cas_than_webpki_takes_are_trusted() {
    let root = issue(Draft::authority("ca0", "ca0"), None);
    let verifier = verifier(&[&root]);
    let mut authorities = vec![root];
    for at in 1..10 {
        let draft = Draft::authority(&format!("ca{at}"), &format!("ca{}", at - 1));
        authorities.push(issue(draft, Some(&authorities[at - 1].key)));
    }
    for (purpose, length) in [(Purpose::Client, 8), (Purpose::Server, 10)] {
        let nearest = length - 1;
        let leaf = Draft::new("leaf", &format!("ca{nearest}"));
        let leaf = issue(leaf, Some(&authorities[nearest].key));
        let above: Vec<_> =
            authorities[1..=nearest].iter().rev().map(|ca| ca.der.clone()).collect();
        let judge = |above: &[_]| {
            verifier.judge(&leaf.der, above, purpose, UnixTime::now()).map_err(|error| error.reason)
        };
        assert_eq!(judge(&above), Ok(()));
        let (subject, issuer) = (format!("CN=ca{nearest}"), format!("CN=ca{}", nearest - 1));
        let unknown = Refusal::UnknownIssuer { subject, issuer };
        assert_eq!(judge(&above[..1]), Err(unknown));
    }
}

#[test]
fn chains_are_limited_as_in_jsse() {
    let root = issue(Draft::authority("root", "root"), None);
    let leaf = issue(Draft::new("leaf", "root"), Some(&root.key));
    let verifier = verifier(&[&root]);
    for (purpose, max) in [(Purpose::Client, 8), (Purpose::Server, 10)] {
        let judge = |above: usize| {
            let above = vec![root.der.clone(); above];
            verifier
                .judge(&leaf.der, &above, purpose, UnixTime::now())
                .map_err(|error| error.reason)
        };
        assert_eq!(judge(max - 1), Ok(()));
        assert_eq!(judge(max), Err(Refusal::TooManyCertificates { count: max + 1, max }));
    }
}
