//! Who is this, and may they: access lists against identities (U-02, U-03, U-13..U-16).
//!
//! Pure: the identities of a connection are kept elsewhere. Schemes known so far: world, auth, ip, digest.

mod digest;
mod ip;

use crate::model::{Acl, Identity};

/// The schemes by which clients can show who they are, as configured.
#[derive(Clone, Debug)]
pub struct Schemes {
    /// `DigestAuthenticationProvider.enabled`.
    pub digest: bool,
    /// `DigestAuthenticationProvider.superDigest`: the `user:hash` that makes its owner `super`.
    pub super_digest: Option<String>,
}

/// Java's defaults.
impl Default for Schemes {
    fn default() -> Self {
        Self { digest: true, super_digest: None }
    }
}

/// What a client is by what it shows under `scheme`. `None`: no such scheme, or it does not convince.
///
/// An address is no secret to be shown: under `ip` everybody is who the socket says, and nothing is added (U-07).
///
/// Source: `DigestAuthenticationProvider.handleAuthentication`.
pub fn prove(schemes: &Schemes, scheme: &str, shown: Option<&[u8]>) -> Option<Vec<Identity>> {
    match scheme {
        "ip" => Some(Vec::new()),
        "digest" if schemes.digest => {
            let id = digest::identity(shown?);
            let is_super = schemes.super_digest.as_deref() == Some(&*id.id);
            let mut ids: Vec<Identity> =
                is_super.then(|| Identity::new("super", "")).into_iter().collect();
            ids.push(id);
            Some(ids)
        }
        _ => None,
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

/// The list is empty or names somebody who can't be named (-114).
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("access list is empty or has an entry that no scheme accepts")]
pub struct InvalidAcl;

/// Whether one of `who` has a permission of `wanted`, bits of [`crate::model::perms`].
///
/// An empty list permits everything, and so does an identity of scheme `super` (U-04, U-15).
///
/// Source: `ZooKeeperServer.checkACL`.
pub fn permits(acl: &[Acl], wanted: i32, who: &[Identity]) -> bool {
    acl.is_empty()
        || acl.iter().any(|entry| entry.perms & wanted != 0 && entry.who.is_anyone())
        || who.iter().any(|id| &*id.scheme == "super")
        || acl
            .iter()
            .any(|entry| entry.perms & wanted != 0 && who.iter().any(|id| matches(id, &entry.who)))
}

fn matches(id: &Identity, entry: &Identity) -> bool {
    id.scheme == entry.scheme
        && match &*entry.scheme {
            "ip" => ip::matches(&id.id, &entry.id),
            "digest" => id.id == entry.id,
            _ => false,
        }
}

/// Makes the list to be stored of the list that was asked for: duplicates removed, `auth` replaced by the caller's
/// identities.
///
/// # Errors
/// [`InvalidAcl`] for an empty list, an unknown scheme, an id its scheme refuses, or `auth` from somebody who has not
/// authenticated.
///
/// Source: `PrepRequestProcessor.fixupACL`.
pub fn fix(asked: Vec<Acl>, who: &[Identity]) -> Result<Vec<Acl>, InvalidAcl> {
    let mut unique: Vec<Acl> = Vec::with_capacity(asked.len());
    for entry in asked {
        if !unique.contains(&entry) {
            unique.push(entry);
        }
    }
    if unique.is_empty() {
        return Err(InvalidAcl);
    }
    let mut fixed = Vec::with_capacity(unique.len());
    for entry in unique {
        match &*entry.who.scheme {
            "world" if entry.who.is_anyone() => fixed.push(entry),
            "auth" => {
                // The peer's address is no proof of who it is (U-07).
                let proved = who.iter().filter(|id| &*id.scheme == "digest");
                let before = fixed.len();
                fixed.extend(proved.map(|id| Acl { perms: entry.perms, who: id.clone() }));
                if fixed.len() == before {
                    return Err(InvalidAcl);
                }
            }
            "ip" if ip::is_valid(&entry.who.id) => fixed.push(entry),
            "digest" if digest::is_valid(&entry.who.id) => fixed.push(entry),
            _ => return Err(InvalidAcl),
        }
    }
    Ok(fixed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::perms;

    fn acl(perms: i32, scheme: &str, id: &str) -> Acl {
        Acl { perms, who: Identity::new(scheme, id) }
    }

    // rows: U-02 U-13 U-15
    #[test]
    fn lists_permit_by_scheme_and_bit() {
        let local = [Identity::new("ip", "127.0.0.1")];
        assert!(permits(&[], perms::ADMIN, &local));
        assert!(permits(&[acl(perms::READ, "world", "anyone")], perms::READ, &[]));
        assert!(!permits(&[acl(perms::READ, "world", "anyone")], perms::WRITE, &local));
        assert!(permits(&[acl(perms::ALL, "ip", "127.0.0.0/8")], perms::WRITE, &local));
        assert!(!permits(&[acl(perms::ALL, "digest", "a:b")], perms::WRITE, &local));
        assert!(permits(
            &[acl(perms::ALL, "digest", "a:b")],
            perms::WRITE,
            &[Identity::new("super", "")]
        ));
    }

    // rows: U-04 U-05 U-07 P-60d
    #[test]
    fn showing_a_secret_makes_an_identity() {
        let plain = Schemes::default();
        let with_super = Schemes {
            digest: true,
            super_digest: Some("super:xQJmxLMiHGwaqBvst5y6rkB6HQs=".into()),
        };
        let owner = Identity::new("digest", "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=");
        let shown = Some(&b"super:admin"[..]);
        assert_eq!(prove(&plain, "digest", shown), Some(vec![owner.clone()]));
        let both = vec![Identity::new("super", ""), owner];
        assert_eq!(prove(&with_super, "digest", shown), Some(both.clone()));
        assert_eq!(both.iter().map(user).collect::<Vec<_>>(), ["", "super"]);
        assert_eq!(prove(&plain, "ip", None), Some(vec![]));
        let off = Schemes { digest: false, super_digest: None };
        for (schemes, scheme, shown) in [
            (&plain, "digest", None),
            (&off, "digest", shown),
            (&plain, "world", shown),
            (&plain, "auth", shown),
            (&plain, "super", shown),
            (&plain, "", shown),
        ] {
            assert_eq!(prove(schemes, scheme, shown), None, "{scheme}");
        }
    }

    // rows: U-03 U-14
    #[test]
    fn lists_are_fixed_as_java_does() {
        let open = Acl::open();
        assert_eq!(fix(vec![open.clone(), open.clone()], &[]), Ok(vec![open]));
        let bad = [
            ("world", "bob"),
            ("super", ""),
            ("x509", "CN=a"),
            ("ip", "127.0.0.1/33"),
            ("digest", "nocolon"),
            ("auth", ""),
        ];
        for (scheme, id) in bad {
            assert_eq!(
                fix(vec![acl(31, scheme, id)], &[Identity::new("ip", "::1")]),
                Err(InvalidAcl),
                "{scheme}:{id}"
            );
        }
        assert_eq!(fix(vec![], &[]), Err(InvalidAcl));
        assert_eq!(fix(vec![acl(0, "world", "anyone")], &[]), Ok(vec![acl(0, "world", "anyone")]));
        let me = [Identity::new("digest", "a:b")];
        assert_eq!(fix(vec![acl(3, "auth", "ignored")], &me), Ok(vec![acl(3, "digest", "a:b")]));
        // All that were proved, and neither the address nor what is above all lists (U-03).
        let many = [
            Identity::new("ip", "::1"),
            Identity::new("super", ""),
            Identity::new("digest", "a:b"),
            Identity::new("digest", "c:d"),
        ];
        let all = vec![acl(3, "digest", "a:b"), acl(3, "digest", "c:d")];
        assert_eq!(fix(vec![acl(3, "auth", "")], &many), Ok(all));
    }
}
