//! Authentication of clients, and their permissions by access lists (U-02, U-03, U-13..U-16).
//!
//! Pure: the identities of a connection are kept elsewhere. Schemes: world, auth, ip, digest, super, ensemble, key, sasl, x509.

mod digest;
pub mod digest_md5;
mod ip;
pub mod kerberos;
mod key;
pub mod principal;
pub mod sasl;
mod sasl_rules;
pub mod server_principal;
pub mod x509;

pub use digest::identity as digest_identity;
pub use ip::text as ip_text;
pub use sasl_rules::SaslRules;

use principal::Principal;

use crate::model::{AccessList, Acl, DigestAlgorithm, Identity, IpNet};
use std::collections::BTreeSet;

/// Longest access list that is built, in bytes as it is stored: `auth` expands to many entries, so that a short request could
/// ask for a list of gigabytes. No server can log a list of this length unless `jute.maxbuffer` is raised.
const LIST_BYTES_MAX: usize = 16 << 20;

/// The schemes with which clients can authenticate, as configured.
#[derive(Clone, Debug)]
pub struct Schemes {
    /// `DigestAuthenticationProvider.enabled`. If it is off, no client can authenticate by scheme
    /// digest, and no new ACL may name it.
    pub digest: bool,
    /// `DigestAuthenticationProvider.digestAlg`.
    pub algorithm: DigestAlgorithm,
    /// `DigestAuthenticationProvider.superDigest`: the `user:hash` that makes its owner `super`.
    pub super_digest: Option<String>,
    /// `EnsembleAuthenticationProvider` is among the providers: a client may name the ensemble that it expects.
    pub ensemble: bool,
    /// `ensembleAuthName`: the names of this ensemble; `None`: every name is accepted.
    pub ensemble_names: Option<Vec<String>>,
    /// `KeyAuthenticationProvider` is among the providers.
    pub key: bool,
    /// `SASLAuthenticationProvider` is among the providers: lists may name ids of scheme `sasl`.
    pub sasl: bool,
    /// What is made of names that clients prove by SASL, with that provider or without it.
    pub sasl_rules: SaslRules,
    /// `X509AuthenticationProvider` is among the providers: ACLs may name subjects of certificates.
    pub x509: bool,
    /// `X509AuthenticationProvider.superUser`: the subject whose owner is `super`.
    pub x509_super_user: Option<String>,
    /// `enforce.auth.schemes`: a client that has authenticated with none of these may only authenticate; empty: none is needed.
    pub required: Vec<String>,
}

impl Schemes {
    /// Whether one of `identities` is of a required scheme, or none is required.
    ///
    /// Source: `AuthenticationHelper.isCnxnAuthenticated`.
    pub fn is_authenticated(&self, identities: &[Identity]) -> bool {
        let is_shown = |scheme: &String| identities.iter().any(|id| *id.scheme == **scheme);
        self.required.is_empty() || self.required.iter().any(is_shown)
    }

    /// Whether clients must have authenticated by SASL.
    ///
    /// Source: `AuthenticationHelper.isSaslAuthRequired`.
    pub fn requires_sasl(&self) -> bool {
        self.required.iter().any(|scheme| scheme == "sasl")
    }

    /// Whether an identity of `scheme` authenticates its client, so that an ACL entry `auth` is
    /// replaced by it. A client's address does not (U-07).
    fn authenticates(&self, scheme: &str) -> bool {
        match scheme {
            "digest" => self.digest,
            "key" => self.key,
            "sasl" => self.sasl,
            "x509" => self.x509,
            _ => false,
        }
    }

    /// The identities by which an ACL entry `auth` is replaced.
    fn proved<'a>(&self, identities: &'a [Identity]) -> impl Iterator<Item = &'a Identity> {
        identities.iter().filter(|id| self.authenticates(&id.scheme))
    }

    /// Bytes of these identities as entries of a stored list.
    pub fn proved_len(&self, identities: &[Identity]) -> usize {
        self.proved(identities).map(stored_len).sum()
    }

    /// Whether a provider for the scheme of an identity is configured. (A client can have a sasl id
    /// without `SASLAuthenticationProvider`.)
    pub fn knows(&self, scheme: &str) -> bool {
        self.sasl || scheme != "sasl"
    }

    /// The identities that a client gets for the subject of its certificate; none if scheme x509 is not configured.
    ///
    /// Source: `X509AuthenticationProvider.handleAuthentication`, ZooKeeper 3.9.5.
    pub fn of_certificate(&self, subject: &str) -> Vec<Identity> {
        if !self.x509 {
            return Vec::new();
        }
        let is_super = self.x509_super_user.as_deref() == Some(subject);
        let of_super = is_super.then(|| Identity::new("super", subject));
        of_super.into_iter().chain([Identity::new("x509", subject)]).collect()
    }
}

/// Java's defaults.
impl Default for Schemes {
    fn default() -> Self {
        Self {
            digest: true,
            algorithm: DigestAlgorithm::Sha1,
            super_digest: None,
            ensemble: false,
            ensemble_names: None,
            key: false,
            sasl: false,
            sasl_rules: SaslRules::default(),
            x509: false,
            x509_super_user: None,
            required: Vec::new(),
        }
    }
}

/// The outcome of a client's authentication.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Proof {
    /// The client has these identities, besides those that it had.
    Is(Vec<Identity>),
    /// The client expects this ensemble. It is accepted, but gets no identity that a list could name.
    EnsembleMatches,
    /// The client does not name the ensemble that it expects, or this one has no name: the client is accepted too.
    NoEnsembleNamed,
    /// The scheme is unknown, or the authentication failed (-115).
    Fails,
    /// The client expects another ensemble. Its connection is closed without an answer, so that it tries another server; an
    /// error would make it give up.
    OtherEnsemble,
}

/// Authenticates a client by what it shows under `scheme`.
///
/// * `key`: the data of the znode `/key`, if there is one; asked for by scheme `key` only.
///
/// Under `ip` the client's address is that of its socket, whatever it shows, and nothing is added (U-07).
///
/// Source: `DigestAuthenticationProvider`, `EnsembleAuthenticationProvider`, `KeyAuthenticationProvider`.
pub fn authenticate(
    schemes: &Schemes,
    scheme: &str,
    shown: Option<&[u8]>,
    key: impl FnOnce() -> Option<Vec<u8>>,
) -> Proof {
    match (scheme, shown) {
        ("ip", _) => Proof::Is(Vec::new()),
        ("digest", Some(shown)) if schemes.digest => {
            let id = digest::identity(schemes.algorithm, shown);
            let is_super = schemes.super_digest.as_deref() == Some(&*id.id);
            let mut ids: Vec<Identity> =
                is_super.then(|| Identity::new("super", "")).into_iter().collect();
            ids.push(id);
            Proof::Is(ids)
        }
        ("ensemble", shown) if schemes.ensemble => {
            let name = String::from_utf8_lossy(shown.unwrap_or_default());
            match &schemes.ensemble_names {
                Some(names) if names.iter().any(|ours| *ours == name) => Proof::EnsembleMatches,
                Some(_) if !name.is_empty() => Proof::OtherEnsemble,
                _ => Proof::NoEnsembleNamed,
            }
        }
        ("key", Some(shown)) if schemes.key => match key() {
            Some(key) if !key::fits(&key, shown) => Proof::Fails,
            _ => Proof::Is(vec![Identity::new("key", "")]),
        },
        _ => Proof::Fails,
    }
}

/// The user that an identity names, without what proves it; empty for schemes without users (P-60d).
pub fn user(id: &Identity) -> &str {
    match &*id.scheme {
        "digest" => id.id.split_once(':').map_or(&*id.id, |(user, _)| user),
        "super" => "",
        _ => &id.id,
    }
}

/// Bytes of an entry of a stored list.
fn stored_len(id: &Identity) -> usize {
    12 + id.text_len()
}

/// Why a list is not stored.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum AclError {
    /// -114.
    #[error("access list is empty or has an entry that no scheme accepts")]
    Invalid,
    /// -5, as for every entry of the log that would be too long.
    #[error("access list would be longer than {LIST_BYTES_MAX} bytes")]
    TooLong,
}

/// Whether one of `identities` has a permission of `wanted`, bits of [`crate::model::perms`].
///
/// An empty list permits everything, and so does an identity of scheme `super` (U-04, U-15).
///
/// Source: `ZooKeeperServer.checkACL`.
pub fn permits(schemes: &Schemes, acl: &AccessList, wanted: i32, identities: &[Identity]) -> bool {
    acl.permits_anyone(wanted)
        || acl.is_empty()
        || identities.iter().any(|id| match &*id.scheme {
            "super" => true,
            "ip" => acl.permits_address(wanted, &id.id),
            "digest" => schemes.digest && acl.permits_identity(wanted, id),
            "key" => schemes.key && acl.permits_identity(wanted, id),
            "sasl" => schemes.sasl && schemes.sasl_rules.permit(acl, wanted, id),
            "x509" => {
                let is_super = || schemes.x509_super_user.as_deref() == Some(&*id.id);
                schemes.x509
                    && (acl.permits_identity(wanted, id)
                        || (is_super() && sasl_rules::permits_scheme(acl, wanted, "x509")))
            }
            _ => false,
        })
}

/// Converts a requested list to the list that is stored: duplicates are removed, and `auth` is replaced by the client's
/// identities.
///
/// # Errors
/// [`AclError::Invalid`] for an empty list, an unknown scheme, an id its scheme refuses, or `auth` from a client that has not
/// authenticated; [`AclError::TooLong`] before such a list is built.
///
/// Source: `PrepRequestProcessor.fixupACL`.
pub fn fix(
    schemes: &Schemes,
    asked: Vec<Acl>,
    identities: &[Identity],
) -> Result<Vec<Acl>, AclError> {
    let mut seen = BTreeSet::new();
    let mut unique = asked;
    unique
        .retain(|entry| seen.insert((entry.perms, entry.who.scheme.clone(), entry.who.id.clone())));
    if unique.is_empty() {
        return Err(AclError::Invalid);
    }
    let proved: Vec<&Identity> = schemes.proved(identities).collect();
    let proved_len = schemes.proved_len(identities);
    let len_of = |entry: &Acl| match &*entry.who.scheme {
        "auth" => proved_len,
        _ => stored_len(&entry.who),
    };
    if unique.iter().map(len_of).sum::<usize>() > LIST_BYTES_MAX {
        return Err(AclError::TooLong);
    }
    let mut fixed = Vec::with_capacity(unique.len());
    for entry in unique {
        match &*entry.who.scheme {
            "world" if entry.who.is_anyone() => fixed.push(entry),
            "auth" => {
                if proved.is_empty() {
                    return Err(AclError::Invalid);
                }
                let own = |id: &&Identity| Acl { perms: entry.perms, who: (*id).clone() };
                fixed.extend(proved.iter().map(own));
            }
            "ip" if IpNet::parse(&entry.who.id).is_some() => fixed.push(entry),
            "digest" if schemes.digest && digest::is_valid(&entry.who.id) => fixed.push(entry),
            "key" if schemes.key => fixed.push(entry),
            "sasl" if schemes.sasl && Principal::parse(&entry.who.id).is_some() => {
                fixed.push(entry)
            }
            "x509" if schemes.x509 && x509::is_valid_name(&entry.who.id) => fixed.push(entry),
            _ => return Err(AclError::Invalid),
        }
    }
    Ok(fixed)
}
