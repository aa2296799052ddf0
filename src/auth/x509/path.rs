//! Whether a chain of certificates leads to a trusted one, as JSSE's PKIX decides (also for certificates of version 1).
//!
//! `net::tls` asks webpki first. webpki refuses five things that Java accepts: certificates of
//! version 1, leaves with CA:true, some values of extendedKeyUsage, critical extensions about
//! policies, and more than six CAs between leaf and root. For these this file decides. For every other chain that webpki refuses it finds the reason for the log.
//!
//! # Invariants
//! 1. A chain is trusted only if it ends at an entry of the trust store: the entry's key has signed
//!    the last certificate, or the entry has the leaf's subject and key.
//! 2. Every certificate between is of version 3, a CA with keyCertSign, within its pathLen and its dates.
//! 3. A certificate with an unknown critical extension is refused.
//! 4. At most [`SIGNATURES_MAX`] signatures are checked for a chain, in whatever order it comes.

use super::certificate::{Certificate, oid};
use super::der::{self, OBJECT_IDENTIFIER};
use super::dn::{self, oid_text};
use super::refusal::{Purpose, Refusal};

/// How many signatures are checked for one chain.
pub const SIGNATURES_MAX: u32 = 40;

/// Least bits of an RSA key.
const RSA_BITS_MIN: usize = 2048;

/// Object identifiers of purposes: any, of a client, of a server, and two old ones that Java takes for a server's.
pub(super) const ANY_PURPOSE: &[u8] = &[0x55, 0x1d, 0x25, 0];
pub(super) const CLIENT: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];
pub(super) const SERVER: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
pub(super) const NETSCAPE_SERVER: &[u8] = &[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 4, 1];
const MICROSOFT_SERVER: &[u8] = &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 10, 3, 3];

/// Bits of keyUsage.
const DIGITAL_SIGNATURE: usize = 0;
const KEY_CERT_SIGN: usize = 5;

/// Signature algorithms whose hash can be forged, with their names.
const WEAK: [(&[u8], &str); 6] = [
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 2], "MD2"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4], "MD5"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5], "SHA-1"),
    (&[0x2b, 0x0e, 3, 2, 29], "SHA-1"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1], "SHA-1"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x38, 4, 3], "SHA-1"),
];

/// RSASSA-PSS.
const PSS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 10];

/// A signature to check; algorithms are the contents of their `AlgorithmIdentifier`.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    pub algorithm: &'a [u8],
    pub message: &'a [u8],
    pub signature: &'a [u8],
    pub key_algorithm: &'a [u8],
    pub key: &'a [u8],
}

/// The outcome of checking a signature.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Checked {
    Good,
    Bad,
    /// This server lacks the algorithm, or the key does not fit it.
    Unsupported,
}

/// Checks signatures; `net` has the cryptography.
pub trait Check {
    fn check(&self, signed: &Signed<'_>) -> Checked;
}

/// The certificates of a trust store.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    der: Vec<u8>,
    subject: Vec<u8>,
    key_info: Vec<u8>,
}

impl Trust {
    /// Entries that are no certificates are left out: the stores refuse them when they are read.
    pub fn new<'a>(certificates: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let entry = |der: &'a [u8]| {
            let parsed = Certificate::parse(der)?;
            let (subject, key_info) = (parsed.subject.to_vec(), parsed.key_info.to_vec());
            Some(Entry { der: der.to_vec(), subject, key_info })
        };
        Self { entries: certificates.into_iter().filter_map(entry).collect() }
    }

    /// Whether this very certificate is trusted, or one with its subject and its key: then nothing
    /// else of the chain is checked, not even dates; the verifier checks the leaf's key length
    /// before.
    ///
    /// Source: `PKIXValidator.engineValidate`.
    pub fn pins(&self, leaf: &Certificate<'_>) -> bool {
        let is_same = |entry: &Entry| {
            entry.der == leaf.der
                || (entry.subject == leaf.subject && entry.key_info == leaf.key_info)
        };
        self.entries.iter().any(is_same)
    }

    /// Subjects of all entries, as DER: servers tell clients whose certificates they take.
    pub fn subjects(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().map(|entry| &*entry.subject)
    }

    /// The entries that may issue certificates: one of version 3 needs CA:true, and any keyUsage needs keyCertSign.
    pub fn authorities(&self) -> impl Iterator<Item = &[u8]> {
        let is_ca = |entry: &&Entry| {
            Certificate::parse(&entry.der).is_some_and(|anchor| check_anchor(&anchor).is_ok())
        };
        self.entries.iter().filter(is_ca).map(|entry| &*entry.der)
    }
}

/// A chain to judge, and what with.
pub struct Question<'a> {
    pub trust: &'a Trust,
    /// As the peer sent it: its own certificate first, the others in any order.
    pub chain: &'a [Certificate<'a>],
    pub purpose: Purpose,
    /// Seconds since 1970.
    pub now: i64,
    /// Name constraints of issuers were checked elsewhere.
    pub names_are_checked: bool,
    pub check: &'a dyn Check,
}

/// A path that holds: the positions of its certificates in the chain, from the leaf up, and the trusted certificate that issued the last.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Path<'a> {
    pub certificates: Vec<usize>,
    pub anchor: &'a [u8],
}

/// Checks the number and the total length of the certificates, then parses them.
///
/// # Errors
/// [`Refusal`] if there are too many, too long or malformed ones.
pub fn parse_chain<'a>(
    chain: &[&'a [u8]],
    max: usize,
    len_max: usize,
) -> Result<Vec<Certificate<'a>>, Refusal> {
    if chain.len() > max {
        return Err(Refusal::TooManyCertificates { count: chain.len(), max });
    }
    if chain.iter().map(|der| der.len()).sum::<usize>() > len_max {
        return Err(Refusal::TooLong { max: len_max });
    }
    let parse = |(at, der): (usize, &&'a [u8])| {
        Certificate::parse(der).ok_or(Refusal::Malformed { at: at + 1 })
    };
    chain.iter().enumerate().map(parse).collect()
}

/// Whether the leaf may be used for `purpose`. Not called for a pinned leaf.
///
/// Source: `EndEntityChecker`.
///
/// # Errors
/// [`Refusal`], if not.
pub fn check_leaf(leaf: &Certificate<'_>, purpose: Purpose) -> Result<(), Refusal> {
    let malformed = || Refusal::MalformedExtension { subject: leaf.subject_text() };
    if !leaf.has_usage(DIGITAL_SIGNATURE).ok_or_else(malformed)? {
        return Err(Refusal::NoSignatures { subject: leaf.subject_text() });
    }
    let wanted: &[&[u8]] = match purpose {
        Purpose::Client => &[ANY_PURPOSE, CLIENT],
        Purpose::Server => &[ANY_PURPOSE, SERVER, NETSCAPE_SERVER, MICROSOFT_SERVER],
    };
    let purposes = leaf.purposes().ok_or_else(malformed)?;
    let fits = purposes.is_none_or(|purposes| purposes.iter().any(|found| wanted.contains(found)));
    let netscape_bit = if purpose == Purpose::Client { 0 } else { 1 };
    if !fits || !leaf.has_bit(oid::NETSCAPE_TYPE, netscape_bit).ok_or_else(malformed)? {
        return Err(Refusal::OtherPurpose { subject: leaf.subject_text(), purpose });
    }
    Ok(())
}

/// Whether an RSA key is long enough.
///
/// # Errors
/// [`Refusal::ShortKey`], if not.
pub fn check_key(certificate: &Certificate<'_>) -> Result<(), Refusal> {
    match certificate.rsa_bits() {
        Some(bits) if bits < RSA_BITS_MIN => {
            Err(Refusal::ShortKey { subject: certificate.subject_text(), bits })
        }
        _ => Ok(()),
    }
}

/// Finds a path from the leaf to a trusted certificate.
///
/// # Errors
/// The first [`Refusal`] that is about more than a missing issuer; if there is none, that of the missing issuer.
pub fn find<'a>(question: &Question<'a>) -> Result<Path<'a>, Refusal> {
    let leaf = question.chain.first().ok_or(Refusal::Malformed { at: 1 })?;
    let mut climb = Climb { question, path: vec![0], signatures: 0 };
    let anchor = climb.up()?;
    let certificates = climb.path;
    check_dates(leaf, question.now)?;
    check_extensions(leaf)?;
    check_leaf(leaf, question.purpose)?;
    Ok(Path { certificates, anchor })
}

/// A search, depth first.
struct Climb<'q, 'a> {
    question: &'q Question<'a>,
    path: Vec<usize>,
    signatures: u32,
}

impl<'a> Climb<'_, 'a> {
    /// Looks for an issuer of the last certificate: a trusted one, else one of the chain.
    fn up(&mut self) -> Result<&'a [u8], Refusal> {
        let question = self.question;
        let top = &question.chain[self.path[self.path.len() - 1]];
        let issuer = dn::name(top.issuer).unwrap_or_default();
        let mut reason = Refusal::UnknownIssuer { subject: top.subject_text(), issuer };
        for entry in question.trust.entries.iter().filter(|entry| entry.subject == top.issuer) {
            match self.under_anchor(top, &entry.der) {
                Ok(()) => return Ok(&entry.der),
                Err(refusal) => reason = refusal,
            }
        }
        for (at, issuer) in question.chain.iter().enumerate() {
            if issuer.subject != top.issuer || self.path.contains(&at) {
                continue;
            }
            if let Err(refusal) = self.under(top, issuer) {
                reason = further(reason, refusal);
                continue;
            }
            self.path.push(at);
            match self.up() {
                Ok(anchor) => return Ok(anchor),
                Err(refusal) => reason = further(reason, refusal),
            }
            self.path.pop();
        }
        Err(reason)
    }

    fn under_anchor(&mut self, below: &Certificate<'a>, anchor: &[u8]) -> Result<(), Refusal> {
        let anchor = Certificate::parse(anchor).ok_or(Refusal::Malformed { at: 0 })?;
        check_anchor(&anchor)?;
        self.check_constraints(&anchor)?;
        self.check_signature(below, &anchor)
    }

    /// Whether `issuer`, of the chain, may have issued the last certificate of the path, and has.
    fn under(&mut self, below: &Certificate<'a>, issuer: &Certificate<'a>) -> Result<(), Refusal> {
        check_extensions(issuer)?;
        self.check_constraints(issuer)?;
        let (is_ca, len_max) = issuer
            .issues()
            .ok_or_else(|| Refusal::MalformedExtension { subject: issuer.subject_text() })?;
        if issuer.version != 3 || !is_ca {
            return Err(Refusal::IssuerIsNoCa { issuer: issuer.subject_text() });
        }
        check_cert_sign(issuer)?;
        // Intermediate certificates; self-issued ones (a CA's new key) do not count.
        let between = self.path[1..].iter().filter(|&&at| {
            let between = &self.question.chain[at];
            between.subject != between.issuer
        });
        let between = u32::try_from(between.count()).unwrap_or(u32::MAX);
        if let Some(max) = len_max.filter(|max| between > *max) {
            return Err(Refusal::PathTooLong { issuer: issuer.subject_text(), max });
        }
        check_dates(issuer, self.question.now)?;
        self.check_signature(below, issuer)
    }

    fn check_constraints(&self, issuer: &Certificate<'_>) -> Result<(), Refusal> {
        match issuer.extension(oid::NAME_CONSTRAINTS) {
            Some(_) if !self.question.names_are_checked => {
                Err(Refusal::NameConstraints { issuer: issuer.subject_text() })
            }
            _ => Ok(()),
        }
    }

    fn check_signature(
        &mut self,
        below: &Certificate<'_>,
        issuer: &Certificate<'_>,
    ) -> Result<(), Refusal> {
        check_key(issuer)?;
        let subject = || below.subject_text();
        check_algorithm(below)?;
        let algorithm = algorithm_of(below);
        self.signatures += 1;
        if self.signatures > SIGNATURES_MAX {
            return Err(Refusal::TooManyPaths);
        }
        let signed = Signed {
            algorithm: below.signature_algorithm,
            message: below.signed,
            signature: below.signature,
            key_algorithm: issuer.key_algorithm,
            key: issuer.key,
        };
        match self.question.check.check(&signed) {
            Checked::Good => Ok(()),
            Checked::Bad => Err(Refusal::BadSignature { subject: subject() }),
            Checked::Unsupported => {
                let mut text = oid_text(algorithm).unwrap_or_default();
                if algorithm == PSS {
                    // The usual form is supported, so the number alone would mislead.
                    text += " (RSASSA-PSS, with another salt length than its digest's, or by a key for RSASSA-PSS alone)";
                }
                Err(Refusal::UnknownAlgorithm { subject: subject(), algorithm: text })
            }
        }
    }
}

fn algorithm_of<'a>(certificate: &Certificate<'a>) -> &'a [u8] {
    let mut algorithm = certificate.signature_algorithm;
    der::take_tagged(&mut algorithm, OBJECT_IDENTIFIER).unwrap_or_default()
}

/// Whether the hash of its signature can't be forged.
///
/// # Errors
/// [`Refusal::WeakSignature`], if it can.
pub fn check_algorithm(certificate: &Certificate<'_>) -> Result<(), Refusal> {
    let algorithm = algorithm_of(certificate);
    match WEAK.iter().find(|(weak, _)| *weak == algorithm) {
        Some((_, weak)) => {
            Err(Refusal::WeakSignature { subject: certificate.subject_text(), algorithm: weak })
        }
        None => Ok(()),
    }
}

/// The refusal of two that is about more than a missing issuer.
fn further(first: Refusal, second: Refusal) -> Refusal {
    match first {
        Refusal::UnknownIssuer { .. } => second,
        first => first,
    }
}

/// Whether a trusted certificate may issue others: one of version 3 needs CA:true; older versions
/// have no such extension. The dates of a trusted certificate are not checked.
///
/// Source: `PKIXValidator.verifyTrustAnchor`.
fn check_anchor(anchor: &Certificate<'_>) -> Result<(), Refusal> {
    let is_ca = anchor.version < 3 || anchor.issues().is_some_and(|(is_ca, _)| is_ca);
    if !is_ca {
        return Err(Refusal::AnchorIsNoCa { issuer: anchor.subject_text() });
    }
    check_cert_sign(anchor)
}

fn check_cert_sign(issuer: &Certificate<'_>) -> Result<(), Refusal> {
    match issuer.has_usage(KEY_CERT_SIGN) {
        Some(true) => Ok(()),
        Some(false) => Err(Refusal::IssuerMayNotSign { issuer: issuer.subject_text() }),
        None => Err(Refusal::MalformedExtension { subject: issuer.subject_text() }),
    }
}

/// Whether the certificate is within its dates.
///
/// # Errors
/// [`Refusal`], if not.
pub fn check_dates(certificate: &Certificate<'_>, now: i64) -> Result<(), Refusal> {
    let subject = || certificate.subject_text();
    if now < certificate.not_before {
        return Err(Refusal::NotYetValid { subject: subject(), from: certificate.not_before });
    }
    if now > certificate.not_after {
        return Err(Refusal::Expired { subject: subject(), until: certificate.not_after });
    }
    Ok(())
}

/// Whether policyConstraints has inhibitPolicyMapping alone, and no requireExplicitPolicy.
fn requires_no_policy(value: &[u8]) -> bool {
    let Some(mut fields) = der::only(value, der::SEQUENCE) else { return false };
    der::take_tagged(&mut fields, 0x81).is_some() && fields.is_empty()
}

/// Refuses a certificate with an unknown critical extension.
fn check_extensions(certificate: &Certificate<'_>) -> Result<(), Refusal> {
    // Policies decide only where a certificate requires an explicit one: nothing here asks for a policy.
    const KNOWN: [&[u8]; 7] = [
        oid::CERTIFICATE_POLICIES,
        oid::INHIBIT_ANY_POLICY,
        oid::KEY_USAGE,
        oid::ALTERNATIVE_NAMES,
        oid::BASIC_CONSTRAINTS,
        oid::NAME_CONSTRAINTS,
        oid::EXTENDED_KEY_USAGE,
    ];
    let is_unknown = |extension: &&super::certificate::Extension<'_>| {
        let is_known = KNOWN.contains(&extension.oid)
            || (extension.oid == oid::POLICY_CONSTRAINTS && requires_no_policy(extension.value));
        extension.is_critical && !is_known
    };
    match certificate.extensions().iter().find(is_unknown) {
        Some(unknown) => Err(Refusal::UnknownExtension {
            subject: certificate.subject_text(),
            oid: oid_text(unknown.oid).unwrap_or_default(),
        }),
        None => Ok(()),
    }
}
