//! Hashes for passwords in access lists.

/// What `DigestAuthenticationProvider.digestAlg` may name (U-06): the message digests of Java 17 except MD2.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DigestAlgorithm {
    Md5,
    #[default]
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Sha512Of224,
    Sha512Of256,
    Sha3Of224,
    Sha3Of256,
    Sha3Of384,
    Sha3Of512,
}

impl DigestAlgorithm {
    /// The algorithm of a name that `java.security.MessageDigest` knows, in any case.
    pub fn named(name: &str) -> Option<Self> {
        Some(match &*name.to_ascii_uppercase() {
            "MD5" => Self::Md5,
            "SHA" | "SHA1" | "SHA-1" => Self::Sha1,
            "SHA224" | "SHA-224" => Self::Sha224,
            "SHA256" | "SHA-256" => Self::Sha256,
            "SHA384" | "SHA-384" => Self::Sha384,
            "SHA512" | "SHA-512" => Self::Sha512,
            "SHA512/224" | "SHA-512/224" => Self::Sha512Of224,
            "SHA512/256" | "SHA-512/256" => Self::Sha512Of256,
            "SHA3-224" => Self::Sha3Of224,
            "SHA3-256" => Self::Sha3Of256,
            "SHA3-384" => Self::Sha3Of384,
            "SHA3-512" => Self::Sha3Of512,
            _ => return None,
        })
    }
}
