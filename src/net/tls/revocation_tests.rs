//! Answers that openssl made (`test_answers/make`).

use super::revocation::*;
use crate::auth::x509::revocation::{
    AnswerError, Pair, Status, crl_status, ocsp_request, ocsp_status,
};
use crate::auth::x509::{Certificate, Purpose, Refusal};
use crate::net::tls::verifier::Verifier;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::{CertificateDer, UnixTime};
use std::sync::Arc;
use std::time::Duration;

const ROOT: &[u8] = include_bytes!("test_answers/root.der");
const LEAF: &[u8] = include_bytes!("test_answers/leaf.der");
const GOOD_LIST: &[u8] = include_bytes!("test_answers/list-good.der");
const REVOKED_LIST: &[u8] = include_bytes!("test_answers/list-revoked.der");

/// 2026-12-26: all answers are of a month before, and last for a century.
const NOW: i64 = 1_798_286_400;

fn verifier() -> Verifier {
    let root = CertificateDer::from(ROOT.to_vec());
    Verifier::new(&aws_lc_rs::default_provider(), &[root], true).unwrap()
}

fn with_pair<T>(ask: impl FnOnce(Pair<'_>) -> T) -> T {
    let (certificate, issuer) =
        (Certificate::parse(LEAF).unwrap(), Certificate::parse(ROOT).unwrap());
    ask(Pair { certificate: &certificate, issuer: &issuer })
}

fn listed(list: &[u8], now: i64) -> Result<Status, AnswerError> {
    with_pair(|pair| crl_status(list, pair, now, &verifier()))
}

fn answered(answer: &[u8], now: i64) -> Result<Status, AnswerError> {
    with_pair(|pair| ocsp_status(answer, pair, now, &verifier()))
}

#[test]
fn crls_that_openssl_made_give_good_and_revoked() {
    assert_eq!(listed(GOOD_LIST, NOW), Ok(Status::Good));
    assert_eq!(listed(REVOKED_LIST, NOW), Ok(Status::Revoked));
    let pem = include_bytes!("test_answers/list-good.pem");
    assert_eq!(listed(&as_der(pem), NOW), Ok(Status::Good));
    assert_eq!(listed(GOOD_LIST, 0), Err(AnswerError::OutOfDate));
    assert_eq!(listed(GOOD_LIST, i64::MAX / 2), Err(AnswerError::OutOfDate));
}

#[test]
fn ocsp_answers_of_openssl_are_read() {
    let good = include_bytes!("test_answers/ocsp-good.der");
    assert_eq!(answered(good, NOW), Ok(Status::Good));
    assert_eq!(answered(include_bytes!("test_answers/ocsp-good-by-ca.der"), NOW), Ok(Status::Good));
    assert_eq!(answered(include_bytes!("test_answers/ocsp-revoked.der"), NOW), Ok(Status::Revoked));
    assert_eq!(
        answered(good, i64::MAX / 2),
        Err(AnswerError::BadSignature),
        "the responder's certificate has expired"
    );
    let by_ca = include_bytes!("test_answers/ocsp-good-by-ca.der");
    assert_eq!(answered(by_ca, i64::MAX / 2), Err(AnswerError::OutOfDate));
    assert_eq!(answered(by_ca, 0), Err(AnswerError::OutOfDate));
    assert_eq!(with_pair(ocsp_request), include_bytes!("test_answers/request.der"));
    assert_eq!(answered(&[0x30, 3, 0x0a, 1, 6], NOW), Err(AnswerError::NoAnswer(6)));
}

#[test]
fn an_answer_of_a_certificate_for_another_purpose_does_not_count() {
    let by_other = include_bytes!("test_answers/ocsp-by-other.der");
    assert_eq!(answered(by_other, NOW), Err(AnswerError::BadSignature));
}

#[test]
fn changed_answers_never_say_that_a_certificate_is_good() {
    let good = include_bytes!("test_answers/ocsp-good-by-ca.der");
    for at in 0..GOOD_LIST.len() {
        let mut list = GOOD_LIST.to_vec();
        list[at] ^= 1;
        assert_ne!(listed(&list, NOW), Ok(Status::Good), "byte {at}");
        assert!(listed(&GOOD_LIST[..at], NOW).is_err());
    }
    for at in 0..good.len() {
        // Certificates after the signature are not needed: the CA itself has signed.
        let mut answer = good.to_vec();
        answer[at] ^= 1;
        let is_after = at > good.len() - 365;
        assert!(is_after || answered(&answer, NOW) != Ok(Status::Good), "byte {at}");
        assert!(answered(&good[..at], NOW).is_err());
    }
}

#[tokio::test]
async fn a_peer_without_an_answer_is_refused() {
    let verifier = verifier();
    let revocation = Revocation::new(true, true).unwrap();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW.unsigned_abs()));
    let chain = [Certificate::parse(LEAF).unwrap()];
    let path = verifier.path(&chain, Purpose::Client, now).unwrap().unwrap();
    let anchor = Certificate::parse(path.anchor).unwrap();
    let pairs = [Pair { certificate: &chain[0], issuer: &anchor }];
    let refusal = revocation.check(&pairs, NOW, &verifier).await.unwrap_err().to_string();
    assert!(refusal.contains("http://127.0.0.1:1/ocsp: connect: "), "{refusal}");
    assert!(refusal.contains("http://127.0.0.1:1/list.crl: connect: "), "{refusal}");
    assert!(refusal.contains("ldap: is not supported"), "{refusal}");
    // One usable list is enough to accept, and one list that revokes is enough to refuse.
    revocation.keep("http://127.0.0.1:1/list.crl", Arc::new(GOOD_LIST.to_vec()));
    assert_eq!(revocation.check(&pairs, NOW, &verifier).await, Ok(()));
    revocation.keep("ldap://host/list", Arc::new(REVOKED_LIST.to_vec()));
    let subject = "CN=leaf".to_owned();
    assert_eq!(revocation.check(&pairs, NOW, &verifier).await, Err(Refusal::Revoked { subject }));
}
