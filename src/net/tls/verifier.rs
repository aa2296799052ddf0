//! Judges the peer's certificates in a handshake, as JSSE does: webpki is asked first, and
//! `auth::x509::path` decides where the two differ. Hosts and revocation are checked after the
//! handshake (`peer_check.rs`), because they may take seconds.

use crate::auth::x509::path::{self, Checked, Question, Signed, Trust};
use crate::auth::x509::{Certificate, HostNames, Purpose, Refusal};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme,
};
use rustls_pki_types::{
    CertificateDer, ServerName, SubjectPublicKeyInfoDer, TrustAnchor, UnixTime,
};
use std::sync::Arc;
use webpki::{EndEntityCert, KeyUsage};

/// Most certificates of a peer that dialed, and of one that was dialed (JSSE's limits).
const CLIENT_CHAIN_MAX: usize = 8;
const SERVER_CHAIN_MAX: usize = 10;

/// Most bytes of a chain: JSSE's limit on a handshake message.
const CHAIN_BYTES_MAX: usize = 32 << 10;

/// A refused peer: the subject of its certificate, and the reason.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{reason}")]
pub struct Refused {
    /// The subject of the peer's own certificate; empty if it can't be read.
    pub subject: String,
    pub reason: Refusal,
}

impl Refused {
    pub fn of(leaf: &[u8], reason: Refusal) -> Self {
        let parsed = Certificate::parse(leaf);
        Self { subject: parsed.map(|leaf| leaf.subject_text()).unwrap_or_default(), reason }
    }
}

/// Why the verifier refused the peer, if `error` says that it did.
pub fn refused(error: &Error) -> Option<&Refused> {
    match error {
        Error::InvalidCertificate(CertificateError::Other(OtherError(source))) => {
            source.downcast_ref()
        }
        _ => None,
    }
}

/// Judges certificates of peers that dial, and of those that are dialed.
#[derive(Debug)]
pub struct Verifier {
    trust: Trust,
    /// The CAs among the trusted certificates. webpki gets only these, because it accepts every trust anchor as a CA.
    authorities: Vec<TrustAnchor<'static>>,
    subjects: Vec<DistinguishedName>,
    is_mandatory: bool,
    compares_hosts: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    /// # Errors
    /// A reason, if the trust store has no certificate.
    pub fn new(
        provider: &CryptoProvider,
        trusted: &[CertificateDer<'static>],
        is_mandatory: bool,
    ) -> Result<Self, String> {
        let trust = Trust::new(trusted.iter().map(AsRef::as_ref));
        let anchor = |der: &[u8]| {
            let der = CertificateDer::from(der);
            webpki::anchor_from_trusted_cert(&der).ok().map(|anchor| anchor.to_owned())
        };
        let authorities = trust.authorities().filter_map(anchor).collect();
        let subjects: Vec<DistinguishedName> =
            trust.subjects().map(|name| DistinguishedName::from(name.to_vec())).collect();
        if subjects.is_empty() {
            return Err("there is no certificate in it".to_owned());
        }
        let algorithms = provider.signature_verification_algorithms;
        let compares_hosts = false;
        Ok(Self { trust, authorities, subjects, is_mandatory, compares_hosts, algorithms })
    }

    /// Compares the host that is dialed with the certificate, for connections without a `PeerCheck` (`peer_check.rs`).
    pub fn comparing_hosts(self) -> Self {
        Self { compares_hosts: true, ..self }
    }

    /// Whether the chain leads to a trusted certificate, and its leaf may be used for `purpose`.
    ///
    /// # Errors
    /// `Refused`, if not.
    pub fn judge(
        &self,
        leaf: &CertificateDer<'_>,
        above: &[CertificateDer<'_>],
        purpose: Purpose,
        now: UnixTime,
    ) -> Result<(), Refused> {
        self.decide(leaf, above, purpose, now).map_err(|reason| Refused::of(leaf, reason))
    }

    fn decide(
        &self,
        leaf: &CertificateDer<'_>,
        above: &[CertificateDer<'_>],
        purpose: Purpose,
        now: UnixTime,
    ) -> Result<(), Refusal> {
        let chain = parsed(leaf, above, purpose)?;
        let first = chain.first().ok_or(Refusal::Malformed { at: 1 })?;
        path::check_key(first)?;
        if self.trust.pins(first) {
            return Ok(());
        }
        let asked = match EndEntityCert::try_from(leaf) {
            Ok(leaf) => self.ask_webpki(&leaf, above, purpose, now),
            Err(error) => Err(error),
        };
        let Err(error) = asked else {
            return path::check_leaf(first, purpose);
        };
        path::find(&self.question(&chain, purpose, now, false)).map_err(
            |refusal| match refusal {
                // webpki has compared the names, and one does not match.
                Refusal::NameConstraints { issuer }
                    if error == webpki::Error::NameConstraintViolation =>
                {
                    Refusal::NameNotIssued { issuer }
                }
                refusal => refusal,
            },
        )?;
        match error {
            webpki::Error::CaUsedAsEndEntity
            | webpki::Error::UnsupportedCertVersion
            | webpki::Error::MaximumPathDepthExceeded
            | webpki::Error::UnsupportedCriticalExtension
            | webpki::Error::RequiredEkuNotFoundContext(_) => Ok(()),
            error => {
                Err(Refusal::Strict { subject: first.subject_text(), reason: error.to_string() })
            }
        }
    }

    fn ask_webpki(
        &self,
        leaf: &EndEntityCert<'_>,
        above: &[CertificateDer<'_>],
        purpose: Purpose,
        now: UnixTime,
    ) -> Result<(), webpki::Error> {
        let usage = match purpose {
            Purpose::Client => KeyUsage::client_auth(),
            Purpose::Server => KeyUsage::server_auth(),
        };
        let (algorithms, anchors) = (self.algorithms.all, &self.authorities);
        leaf.verify_for_usage(algorithms, anchors, above, now, usage, None, None).map(|_path| ())
    }

    fn question<'a>(
        &'a self,
        chain: &'a [Certificate<'a>],
        purpose: Purpose,
        now: UnixTime,
        names_are_checked: bool,
    ) -> Question<'a> {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        Question { trust: &self.trust, chain, purpose, now, names_are_checked, check: self }
    }

    /// The path of a chain that `judge` has accepted: its certificates from the leaf up, and the
    /// trusted certificate. `None` for a pinned leaf, which no CA can revoke.
    ///
    /// # Errors
    /// [`Refusal`], if the chain no longer holds.
    pub fn path<'a>(
        &'a self,
        chain: &'a [Certificate<'a>],
        purpose: Purpose,
        now: UnixTime,
    ) -> Result<Option<path::Path<'a>>, Refusal> {
        match chain.first() {
            Some(leaf) if self.trust.pins(leaf) => Ok(None),
            _ => path::find(&self.question(chain, purpose, now, true)).map(Some),
        }
    }

    /// A signature of a handshake, by the key of a certificate of any version.
    fn check_handshake(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
        is_tls13: bool,
    ) -> Result<HandshakeSignatureValid, Error> {
        let bad = |error| Error::InvalidCertificate(error);
        let parsed =
            Certificate::parse(certificate).ok_or_else(|| bad(CertificateError::BadEncoding))?;
        let mut all = self.algorithms.all.iter();
        if !all.any(|algorithm| algorithm.public_key_alg_id().as_ref() == parsed.key_algorithm) {
            let reason = Refusal::UnknownKey { subject: parsed.subject_text() };
            return Err(to_error(Refused::of(certificate, reason)));
        }
        if is_tls13 {
            let key = SubjectPublicKeyInfoDer::from(parsed.key_info);
            return verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms);
        }
        let mapped = self.algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
        let (_, algorithms) = mapped.ok_or_else(|| {
            Error::from(rustls::PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)
        })?;
        let fits = algorithms.iter().any(|algorithm| {
            algorithm.public_key_alg_id().as_ref() == parsed.key_algorithm
                && algorithm.verify_signature(parsed.key, message, signed.signature()).is_ok()
        });
        match fits {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => Err(bad(CertificateError::BadSignature)),
        }
    }
}

impl path::Check for Verifier {
    fn check(&self, signed: &Signed<'_>) -> Checked {
        let fitting = self.algorithms.all.iter().filter(|algorithm| {
            algorithm.signature_alg_id().as_ref() == signed.algorithm
                && algorithm.public_key_alg_id().as_ref() == signed.key_algorithm
        });
        let mut outcome = Checked::Unsupported;
        for algorithm in fitting {
            match algorithm.verify_signature(signed.key, signed.message, signed.signature) {
                Ok(()) => return Checked::Good,
                Err(_) => outcome = Checked::Bad,
            }
        }
        outcome
    }
}

/// Parses a chain within the limits for its sender.
pub(super) fn parsed<'a>(
    leaf: &'a CertificateDer<'_>,
    above: &'a [CertificateDer<'_>],
    purpose: Purpose,
) -> Result<Vec<Certificate<'a>>, Refusal> {
    let max = match purpose {
        Purpose::Client => CLIENT_CHAIN_MAX,
        Purpose::Server => SERVER_CHAIN_MAX,
    };
    let chain: Vec<&[u8]> = std::iter::once(leaf).chain(above).map(AsRef::as_ref).collect();
    path::parse_chain(&chain, max, CHAIN_BYTES_MAX)
}

fn check_host(leaf: &CertificateDer<'_>, host: &str) -> Result<(), Error> {
    let names = Certificate::parse(leaf).map(|leaf| HostNames::of(&leaf)).unwrap_or_default();
    if names.fit(host) {
        return Ok(());
    }
    let subject = Certificate::parse(leaf).map(|leaf| leaf.subject_text()).unwrap_or_default();
    let (names, hosts, setting) = (names.to_string(), host.to_owned(), "hostnameVerification");
    // The server is told that its certificate is refused.
    Err(to_error(Refused::of(leaf, Refusal::OtherHost { subject, names, hosts, setting })))
}

fn to_error(refused: Refused) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(refused))))
}

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        self.is_mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.subjects
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        above: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.judge(leaf, above, Purpose::Client, now).map_err(to_error)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_handshake(message, certificate, signed, false)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_handshake(message, certificate, signed, true)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        above: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.judge(leaf, above, Purpose::Server, now).map_err(to_error)?;
        if self.compares_hosts {
            check_host(leaf, &name.to_str())?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_handshake(message, certificate, signed, false)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_handshake(message, certificate, signed, true)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
