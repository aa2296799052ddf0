//! Why a certificate is refused, each reason so that an operator can act on it.

use super::certificate::time_text;

/// What the holder of a certificate does with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// It dialed.
    Client,
    /// It was dialed.
    Server,
}

/// The subject of the certificate that a message is about.
pub type Subject = String;

/// Why a peer's certificate, or one above it, is refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error(
        "it sent {count} certificates; {max} are taken at most: send the chain without certificates that are in the trust store already"
    )]
    TooManyCertificates { count: usize, max: usize },
    #[error(
        "its certificates are longer than {max} bytes together: send the chain without those that are not needed"
    )]
    TooLong { max: usize },
    #[error("certificate {at} of its chain is not encoded as DER: have it issued anew")]
    Malformed { at: usize },
    #[error(
        "the trust store has neither the certificate of {subject} nor its issuer, {issuer}: add the issuer, or have the peer send the intermediate certificates"
    )]
    UnknownIssuer { subject: Subject, issuer: String },
    #[error(
        "the certificate {issuer} in the trust store is not a CA's: trust the CA above it, or the peer's certificate itself"
    )]
    AnchorIsNoCa { issuer: Subject },
    #[error("the certificate of {subject} is valid from {} on: compare the clocks", time_text(*.from))]
    NotYetValid { subject: Subject, from: i64 },
    #[error("the certificate of {subject} was valid until {}: renew it", time_text(*.until))]
    Expired { subject: Subject, until: i64 },
    #[error(
        "the signature of the certificate of {subject} is wrong, as if its issuer had a new key under an old name: compare the issuer's certificate in the trust store"
    )]
    BadSignature { subject: Subject },
    #[error(
        "the certificate of {subject} is signed with {algorithm}, which can be forged: have it issued anew with SHA-256"
    )]
    WeakSignature { subject: Subject, algorithm: &'static str },
    #[error(
        "the certificate of {subject} is signed with the algorithm {algorithm}, which this server does not support: have it issued anew with RSA or ECDSA and SHA-256"
    )]
    UnknownAlgorithm { subject: Subject, algorithm: String },
    #[error(
        "the RSA key of {subject} has {bits} bits: have the certificate issued for one of 2048 or more"
    )]
    ShortKey { subject: Subject, bits: usize },
    #[error(
        "{issuer} has issued a certificate, but is not a CA (basicConstraints): have it issued by a CA"
    )]
    IssuerIsNoCa { issuer: Subject },
    #[error(
        "{issuer} has issued a certificate, but its keyUsage lacks keyCertSign: have it issued by a CA that has it"
    )]
    IssuerMayNotSign { issuer: Subject },
    #[error(
        "{issuer} allows {max} certificates between itself and the peer's (pathLen), and there are more: have the peer's issued by a CA above them"
    )]
    PathTooLong { issuer: Subject, max: u32 },
    #[error(
        "the certificate of {subject} has the critical extension {oid}, which is not understood here: have it issued without"
    )]
    UnknownExtension { subject: Subject, oid: String },
    #[error("an extension of the certificate of {subject} is encoded wrongly: have it issued anew")]
    MalformedExtension { subject: Subject },
    #[error(
        "{issuer} restricts the names that it issues, which is not supported for certificates of version 1 or of this form: have the peer's issued anew with version 3"
    )]
    NameConstraints { issuer: Subject },
    #[error(
        "{issuer} may not issue a name that the peer's certificate has (nameConstraints): have it issued anew with names that the CA may issue"
    )]
    NameNotIssued { issuer: Subject },
    #[error(
        "the key of {subject} is of a kind that this server does not support: have the certificate issued anew for a key of RSA, ECDSA (secp256r1, secp384r1, secp521r1) or Ed25519"
    )]
    UnknownKey { subject: Subject },
    #[error("the certificate of {subject} may not be used as a {} (extendedKeyUsage or nsCertType): have it issued for that too", purpose_text(*.purpose))]
    OtherPurpose { subject: Subject, purpose: Purpose },
    #[error(
        "the certificate of {subject} may not be used for signatures (keyUsage lacks digitalSignature): have it issued with that"
    )]
    NoSignatures { subject: Subject },
    #[error(
        "its certificates can be put together in too many ways: send the chain without those that are not needed"
    )]
    TooManyPaths,
    #[error("the certificate of {subject} was revoked by its CA: have a new one issued")]
    Revoked { subject: Subject },
    #[error("no usable answer on whether the certificate of {subject} is revoked: {reason}")]
    NoRevocationAnswer { subject: Subject, reason: String, setting: &'static str },
    #[error(
        "the certificate of {subject} is for {names}, and the peer is {hosts}: have it issued for that name or address"
    )]
    OtherHost { subject: Subject, names: String, hosts: String, setting: &'static str },
    /// webpki refuses the chain for a reason that `path` does not check.
    #[error("the certificate of {subject} is refused: {reason}")]
    Strict { subject: Subject, reason: String },
}

fn purpose_text(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Client => "TLS client",
        Purpose::Server => "TLS server",
    }
}

impl Refusal {
    /// The setting to look at, without its prefix.
    pub fn setting(&self) -> Option<&'static str> {
        match self {
            Self::UnknownIssuer { .. } | Self::AnchorIsNoCa { .. } | Self::BadSignature { .. } => {
                Some("trustStore.location")
            }
            Self::NoRevocationAnswer { setting, .. } | Self::OtherHost { setting, .. } => {
                Some(setting)
            }
            _ => None,
        }
    }
}
