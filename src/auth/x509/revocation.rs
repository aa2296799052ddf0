//! What a CRL or an OCSP responder's answer says of a certificate. Both are foreign bytes until their signature is checked.

use super::certificate::{self, Certificate, oid};
use super::der::{
    self, BIT_STRING, ENUMERATED, GENERALIZED_TIME, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING,
    SEQUENCE,
};
use super::path::{Check, Checked, Signed};
use sha1::{Digest as _, Sha1};

/// Bits of keyUsage.
const DIGITAL_SIGNATURE: usize = 0;
const CRL_SIGN: usize = 6;

/// How far clocks may be apart, in seconds (Java's value).
const SKEW: i64 = 900;

/// The content of SHA-1's algorithm identifier: the names of certificates in requests are hashes.
const SHA1: &[u8] = &[6, 5, 0x2b, 0x0e, 3, 2, 26];
const OCSP_BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];
const OCSP_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 9];
const ISSUING_DISTRIBUTION_POINT: &[u8] = &[0x55, 0x1d, 28];

/// What an answer says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Status {
    Good,
    Revoked,
}

/// Why a CRL or an OCSP answer can't be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum AnswerError {
    #[error("it is not encoded as it should be")]
    Malformed,
    #[error("another CA has issued it")]
    OtherIssuer,
    #[error("its signature is not the CA's, nor that of a responder of the CA")]
    BadSignature,
    #[error("it is too old, or of the future: compare the clocks")]
    OutOfDate,
    #[error("it says nothing of this certificate")]
    OtherCertificate,
    #[error("it has a critical extension that is not understood here")]
    UnknownExtension,
    #[error("the responder has no answer (status {0})")]
    NoAnswer(u8),
    #[error("the responder does not know the certificate")]
    Unknown,
}

/// A certificate, and the one that issued it.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    pub certificate: &'a Certificate<'a>,
    pub issuer: &'a Certificate<'a>,
}

/// What a CRL says, given as DER.
///
/// # Errors
/// [`AnswerError`] if it is not the issuer's, out of date, or about other certificates.
pub fn crl_status(
    crl: &[u8],
    pair: Pair<'_>,
    now: i64,
    check: &dyn Check,
) -> Result<Status, AnswerError> {
    use AnswerError::Malformed;
    let mut fields = der::only(crl, SEQUENCE).ok_or(Malformed)?;
    let signed = der::take(&mut fields).filter(|tbs| tbs.tag == SEQUENCE).ok_or(Malformed)?;
    let algorithm = der::take_tagged(&mut fields, SEQUENCE).ok_or(Malformed)?;
    let signature =
        der::take_tagged(&mut fields, BIT_STRING).and_then(certificate::bits).ok_or(Malformed)?;
    let mut tbs = signed.content;
    der::take_optional(&mut tbs, INTEGER).ok_or(Malformed)?;
    let inner = der::take_tagged(&mut tbs, SEQUENCE).ok_or(Malformed)?;
    let issuer = der::take(&mut tbs).ok_or(Malformed)?.whole;
    if issuer != pair.certificate.issuer {
        return Err(AnswerError::OtherIssuer);
    }
    let may_sign = inner == algorithm && pair.issuer.has_usage(CRL_SIGN) == Some(true);
    if !may_sign || !is_signed(pair.issuer, algorithm, signed.whole, signature, check) {
        return Err(AnswerError::BadSignature);
    }
    let since = certificate::time(&mut tbs).ok_or(Malformed)?;
    let until = match tbs.first() {
        Some(&certificate_time)
            if certificate_time == der::UTC_TIME || certificate_time == GENERALIZED_TIME =>
        {
            certificate::time(&mut tbs).ok_or(Malformed)?
        }
        _ => return Err(AnswerError::OutOfDate), // A list without an end of its validity does not count in Java either.
    };
    if now < since - SKEW || now > until.saturating_add(SKEW) {
        return Err(AnswerError::OutOfDate);
    }
    let mut revoked = der::take_optional(&mut tbs, SEQUENCE).ok_or(Malformed)?.unwrap_or_default();
    let extensions = der::take_optional(&mut tbs, 0xa0).ok_or(Malformed)?;
    check_crl_extensions(extensions, pair.certificate)?;
    while !revoked.is_empty() {
        let mut entry = der::take_tagged(&mut revoked, SEQUENCE).ok_or(Malformed)?;
        if der::take_tagged(&mut entry, INTEGER).ok_or(Malformed)? == pair.certificate.serial {
            return Ok(Status::Revoked);
        }
    }
    Ok(Status::Good)
}

/// A CRL that covers only some certificates (issuingDistributionPoint) has to cover this one.
fn check_crl_extensions(
    list: Option<&[u8]>,
    certificate: &Certificate<'_>,
) -> Result<(), AnswerError> {
    use AnswerError::Malformed;
    let Some(list) = list else { return Ok(()) };
    let list = der::only(list, SEQUENCE).and_then(certificate::extensions).ok_or(Malformed)?;
    for extension in list {
        if extension.oid != ISSUING_DISTRIBUTION_POINT {
            match extension.is_critical {
                true => return Err(AnswerError::UnknownExtension),
                false => continue,
            }
        }
        let mut fields = der::only(extension.value, SEQUENCE).ok_or(Malformed)?;
        let is_ca = certificate.issues().is_some_and(|(is_ca, _)| is_ca);
        while !fields.is_empty() {
            let field = der::take(&mut fields).ok_or(Malformed)?;
            let is_set = field.content != [0];
            let fits = match field.tag {
                // The place where the CRL is has to be one of the certificate's.
                0xa0 => {
                    let named = names(field.content);
                    named.is_empty() || named.iter().any(|url| certificate.crl_urls().contains(url))
                }
                0x81 => !is_set || !is_ca,
                0x82 => !is_set || is_ca,
                0x84 | 0x85 => !is_set,
                _ => false,
            };
            if !fits {
                return Err(AnswerError::OtherCertificate);
            }
        }
    }
    Ok(())
}

/// The URLs of a DistributionPointName.
fn names(content: &[u8]) -> Vec<&str> {
    let mut urls = Vec::new();
    let mut names = der::only(content, 0xa0).unwrap_or_default();
    while let Some(name) = der::take(&mut names) {
        urls.extend(str::from_utf8(name.content).ok().filter(|_| name.tag == 0x86));
    }
    urls
}

/// A request for an OCSP responder, as DER.
pub fn ocsp_request(pair: Pair<'_>) -> Vec<u8> {
    let id = der::encode(
        SEQUENCE,
        &[
            &der::encode(SEQUENCE, &[SHA1, &[5, 0]]),
            &der::encode(OCTET_STRING, &[&Sha1::digest(pair.issuer.subject)]),
            &der::encode(OCTET_STRING, &[&Sha1::digest(pair.issuer.key)]),
            &der::encode(INTEGER, &[pair.certificate.serial]),
        ],
    );
    // From the inside out: Request, requestList, TBSRequest, OCSPRequest.
    let one = der::encode(SEQUENCE, &[&id]);
    let list = der::encode(SEQUENCE, &[&one]);
    der::encode(SEQUENCE, &[&der::encode(SEQUENCE, &[&list])])
}

/// What an OCSP responder's answer says, given as DER.
///
/// # Errors
/// [`AnswerError`] if it is not the issuer's or a responder's of it, out of date, or about other certificates.
pub fn ocsp_status(
    answer: &[u8],
    pair: Pair<'_>,
    now: i64,
    check: &dyn Check,
) -> Result<Status, AnswerError> {
    use AnswerError::Malformed;
    let mut fields = der::only(answer, SEQUENCE).ok_or(Malformed)?;
    match der::take_tagged(&mut fields, ENUMERATED).ok_or(Malformed)? {
        [0] => {}
        status => return Err(AnswerError::NoAnswer(status.first().copied().unwrap_or_default())),
    }
    let content = der::take_tagged(&mut fields, 0xa0).ok_or(Malformed)?;
    let mut typed = der::only(content, SEQUENCE).ok_or(Malformed)?;
    if der::take_tagged(&mut typed, OBJECT_IDENTIFIER) != Some(OCSP_BASIC) {
        return Err(Malformed);
    }
    let basic = der::take_tagged(&mut typed, OCTET_STRING).ok_or(Malformed)?;
    let mut basic = der::only(basic, SEQUENCE).ok_or(Malformed)?;
    let signed = der::take(&mut basic).filter(|tbs| tbs.tag == SEQUENCE).ok_or(Malformed)?;
    let algorithm = der::take_tagged(&mut basic, SEQUENCE).ok_or(Malformed)?;
    let signature =
        der::take_tagged(&mut basic, BIT_STRING).and_then(certificate::bits).ok_or(Malformed)?;
    let certificates = der::take_optional(&mut basic, 0xa0).ok_or(Malformed)?;
    if !(basic.is_empty() && typed.is_empty() && fields.is_empty()) {
        return Err(Malformed);
    }
    let is_issuers = is_signed(pair.issuer, algorithm, signed.whole, signature, check);
    let is_responders = || {
        responders(certificates, pair.issuer, now, check).is_some_and(|responder| {
            is_signed(&responder, algorithm, signed.whole, signature, check)
        })
    };
    if !is_issuers && !is_responders() {
        return Err(AnswerError::BadSignature);
    }
    let mut tbs = signed.content;
    der::take_optional(&mut tbs, 0xa0).ok_or(Malformed)?;
    der::take(&mut tbs).ok_or(Malformed)?; // Which responder it is; its key has signed.
    certificate::time(&mut tbs).ok_or(Malformed)?;
    let mut answers = der::take_tagged(&mut tbs, SEQUENCE).ok_or(Malformed)?;
    while !answers.is_empty() {
        let mut one = der::take_tagged(&mut answers, SEQUENCE).ok_or(Malformed)?;
        let mut id = der::take_tagged(&mut one, SEQUENCE).ok_or(Malformed)?;
        if is_about(&mut id, pair).ok_or(Malformed)? {
            return single_status(one, now);
        }
    }
    Err(AnswerError::OtherCertificate)
}

fn is_about(id: &mut &[u8], pair: Pair<'_>) -> Option<bool> {
    let mut algorithm = der::take_tagged(id, SEQUENCE)?;
    let is_sha1 = der::take(&mut algorithm)?.whole == SHA1;
    let name = der::take_tagged(id, OCTET_STRING)?;
    let key = der::take_tagged(id, OCTET_STRING)?;
    let serial = der::take_tagged(id, INTEGER)?;
    Some(
        is_sha1
            && name == &Sha1::digest(pair.issuer.subject)[..]
            && key == &Sha1::digest(pair.issuer.key)[..]
            && serial == pair.certificate.serial,
    )
}

/// The status of one certificate, after its identifier.
fn single_status(mut fields: &[u8], now: i64) -> Result<Status, AnswerError> {
    use AnswerError::Malformed;
    let status = der::take(&mut fields).ok_or(Malformed)?;
    let since = certificate::time(&mut fields).ok_or(Malformed)?;
    let until = match der::take_optional(&mut fields, 0xa0).ok_or(Malformed)? {
        Some(mut until) => certificate::time(&mut until).ok_or(Malformed)?,
        None => since,
    };
    if now < since - SKEW || now > until.max(since).saturating_add(SKEW) {
        return Err(AnswerError::OutOfDate);
    }
    match status.tag {
        0x80 => Ok(Status::Good),
        0xa1 => Ok(Status::Revoked),
        0x82 => Err(AnswerError::Unknown),
        _ => Err(Malformed),
    }
}

/// The first certificate in an answer that the issuer has given to a responder, for that purpose, and that is valid now.
fn responders<'a>(
    certificates: Option<&'a [u8]>,
    issuer: &Certificate<'_>,
    now: i64,
    check: &dyn Check,
) -> Option<Certificate<'a>> {
    let mut list = der::only(certificates?, SEQUENCE)?;
    // An answer has few certificates, and each costs a signature.
    for _ in 0..4 {
        let responder = Certificate::parse(der::take(&mut list)?.whole)?;
        let is_for_answers =
            responder.purposes().flatten().is_some_and(|purposes| purposes.contains(&OCSP_SIGNING));
        let is_valid = (responder.not_before..=responder.not_after).contains(&now)
            && responder.has_usage(DIGITAL_SIGNATURE) == Some(true)
            && !responder.extensions().iter().any(|extension| {
                extension.is_critical
                    && ![oid::KEY_USAGE, oid::EXTENDED_KEY_USAGE, oid::BASIC_CONSTRAINTS]
                        .contains(&extension.oid)
            });
        let (algorithm, signature) = (responder.signature_algorithm, responder.signature);
        if is_for_answers
            && is_valid
            && responder.issuer == issuer.subject
            && is_signed(issuer, algorithm, responder.signed, signature, check)
        {
            return Some(responder);
        }
    }
    None
}

fn is_signed(
    signer: &Certificate<'_>,
    algorithm: &[u8],
    message: &[u8],
    signature: &[u8],
    check: &dyn Check,
) -> bool {
    let (key_algorithm, key) = (signer.key_algorithm, signer.key);
    check.check(&Signed { algorithm, message, signature, key_algorithm, key }) == Checked::Good
}
