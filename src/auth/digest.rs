//! The `digest` scheme: `user:password` shown, `user:hash` kept in lists (U-05).

use crate::model::Identity;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

/// Who somebody is that shows `user:password`. What has no colon is a user without password.
///
/// The hash is over both, so equal passwords of two users differ in lists.
pub fn identity(shown: &[u8]) -> Identity {
    let shown = String::from_utf8_lossy(shown);
    let user = shown.split_once(':').map_or(&*shown, |(user, _)| user);
    Identity::new("digest", &format!("{user}:{}", STANDARD.encode(Sha1::digest(shown.as_bytes()))))
}

/// Whether `id` is something the scheme accepts in a list.
///
/// Java splits at colons and drops empty parts at the end.
pub fn is_valid(id: &str) -> bool {
    id.trim_end_matches(':').split(':').count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: U-05
    #[test]
    fn hashes_are_javas() {
        let id = |shown: &[u8]| identity(shown).id;
        assert_eq!(&*id(b"super:admin"), "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=");
        assert_eq!(&*id(b"bob:bobsecret"), "bob:WGAwC+XYxdw8bJ5K6KcPh8oL58U=");
        assert_eq!(&*id(b"x"), "x:EfatjsUqKYSrqv18O1FlA3hcIHI=");
    }

    #[test]
    fn ids_have_two_parts() {
        assert!(is_valid("u:h") && is_valid(":h") && is_valid("u:h:"));
        assert!(!is_valid("u") && !is_valid("u:") && !is_valid("a:b:c") && !is_valid(""));
    }
}
