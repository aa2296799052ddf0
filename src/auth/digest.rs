//! The `digest` scheme: a client shows `user:password`, lists hold `user:hash` (U-05).

use crate::model::{DigestAlgorithm, Identity};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use sha1::{Digest, Sha1};
use sha2::{Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};

/// The identity of a client that shows `user:password`. Text without a colon is a user without password.
///
/// The hash is over both, so equal passwords of two users differ in lists.
pub fn identity(algorithm: DigestAlgorithm, shown: &[u8]) -> Identity {
    let shown = String::from_utf8_lossy(shown);
    let user = shown.split_once(':').map_or(&*shown, |(user, _)| user);
    Identity::new("digest", &format!("{user}:{}", hash(algorithm, shown.as_bytes())))
}

/// A hash in base64.
fn hash(algorithm: DigestAlgorithm, bytes: &[u8]) -> String {
    fn of<D: Digest>(bytes: &[u8]) -> String {
        STANDARD.encode(D::digest(bytes))
    }
    let of = match algorithm {
        DigestAlgorithm::Md5 => of::<Md5>,
        DigestAlgorithm::Sha1 => of::<Sha1>,
        DigestAlgorithm::Sha224 => of::<Sha224>,
        DigestAlgorithm::Sha256 => of::<Sha256>,
        DigestAlgorithm::Sha384 => of::<Sha384>,
        DigestAlgorithm::Sha512 => of::<Sha512>,
        DigestAlgorithm::Sha512Of224 => of::<Sha512_224>,
        DigestAlgorithm::Sha512Of256 => of::<Sha512_256>,
        DigestAlgorithm::Sha3Of224 => of::<Sha3_224>,
        DigestAlgorithm::Sha3Of256 => of::<Sha3_256>,
        DigestAlgorithm::Sha3Of384 => of::<Sha3_384>,
        DigestAlgorithm::Sha3Of512 => of::<Sha3_512>,
    };
    of(bytes)
}

/// Whether the scheme accepts `id` in a list.
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
        let id = |shown: &[u8]| identity(DigestAlgorithm::Sha1, shown).id;
        assert_eq!(&*id(b"super:admin"), "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=");
        assert_eq!(&*id(b"bob:bobsecret"), "bob:WGAwC+XYxdw8bJ5K6KcPh8oL58U=");
        assert_eq!(&*id(b"x"), "x:EfatjsUqKYSrqv18O1FlA3hcIHI=");
    }

    #[test]
    fn ids_without_two_parts_are_refused() {
        assert!(is_valid("u:h") && is_valid(":h") && is_valid("u:h:"));
        assert!(!is_valid("u") && !is_valid("u:") && !is_valid("a:b:c") && !is_valid(""));
    }

    // rows: U-06 C-213
    #[test]
    fn algorithms_have_the_names_and_hashes_of_a_jvm() {
        // Each as `printf super:admin | openssl dgst -binary | base64` gives it.
        for (name, hash) in [
            ("md5", "vmvqb9Jqk1r+pQsU7OKtLQ=="),
            ("SHA", "xQJmxLMiHGwaqBvst5y6rkB6HQs="),
            ("SHA-224", "TKEn5Y1mky3Uh6A7+bMh1TPJgKlkcRututL4gg=="),
            ("sha256", "wtZw1Um4mq1rRKbXqxHs8ueodBP35/JhtBP/nwJ62WY="),
            ("SHA-384", "AiQTwhiDeP3kDoiUQOML+I9miGA1gKrmc4a4kQiyxZuR/PE8jM/7K5jr7trT/Q8d"),
            (
                "SHA-512",
                "ICbpgQLY7IUUeqcBGefDeb/WOl1Du5KoY5RX0+hDpW6UmhIeG6yfXhhCfQJHZChZeBdvUBXNvoumekY+NNKIPg==",
            ),
            ("SHA-512/224", "SMaFBFBNnPaXiL8X0xjo/P/POMVXbIIqkFxGmg=="),
            ("SHA-512/256", "QABeU55/SKMjm2TP7HSvKNTLdxDOOpOi8W/4V/8Kkss="),
            ("SHA3-224", "lQBR4+SBNfwCatzl7SI1BZjj79SPiQlvaNYdyA=="),
            ("SHA3-256", "n/RvsobH/8zZOcOjetd7nUc1fh+dZeopA1uboPolGDE="),
            ("SHA3-384", "n/1qY03X29x69kCFY+QusMs5JjBsIbsuO9GDSsEiJd988vo6s+XUL6fUu+xPCoyS"),
            (
                "sha3-512",
                "oqMHFOxcJdRIfsJaSRrLtjFjRGzBqKAig8eLLCwzc7HRwsfhOVcPeJpiHP86f9w2QDqDm6yl+5x5CsdwGrp2dw==",
            ),
        ] {
            let algorithm = DigestAlgorithm::named(name).expect(name);
            assert_eq!(*identity(algorithm, b"super:admin").id, format!("super:{hash}"), "{name}");
        }
        for unknown in ["", "CRC32", "SHA-3", "SHA 256", "md6"] {
            assert_eq!(DigestAlgorithm::named(unknown), None, "{unknown}");
        }
    }
}
