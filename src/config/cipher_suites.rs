//! Cipher suites by their JSSE names.

use super::tls::TlsVersion;

/// The suites that this server has, and the version of TLS of each.
const OWN: [(&str, TlsVersion); 9] = [
    ("TLS_AES_128_GCM_SHA256", TlsVersion::V13),
    ("TLS_AES_256_GCM_SHA384", TlsVersion::V13),
    ("TLS_CHACHA20_POLY1305_SHA256", TlsVersion::V13),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", TlsVersion::V12),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", TlsVersion::V12),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", TlsVersion::V12),
    ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", TlsVersion::V12),
    ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", TlsVersion::V12),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", TlsVersion::V12),
];

/// Java's list without its suites with CBC, in its order, which is that of the server's preference.
///
/// Source: `X509Util`, ZooKeeper 3.9.5, on Java 9 and later.
pub(super) const DEFAULT: [&str; 7] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
];

/// The parts of the other names that Java 17 takes.
const KEY_EXCHANGES: [&str; 13] = [
    "RSA",
    "DHE_RSA",
    "DHE_DSS",
    "ECDHE_ECDSA",
    "ECDHE_RSA",
    "ECDH_ECDSA",
    "ECDH_RSA",
    "DH_anon",
    "ECDH_anon",
    "RSA_EXPORT",
    "DHE_RSA_EXPORT",
    "DHE_DSS_EXPORT",
    "DH_anon_EXPORT",
];
const CIPHERS: [&str; 18] = [
    "AES_128_GCM_SHA256",
    "AES_256_GCM_SHA384",
    "CHACHA20_POLY1305_SHA256",
    "AES_128_CBC_SHA",
    "AES_256_CBC_SHA",
    "AES_128_CBC_SHA256",
    "AES_256_CBC_SHA256",
    "AES_256_CBC_SHA384",
    "3DES_EDE_CBC_SHA",
    "DES_CBC_SHA",
    "DES40_CBC_SHA",
    "RC4_128_SHA",
    "RC4_128_MD5",
    "RC4_40_MD5",
    "NULL_SHA",
    "NULL_SHA256",
    "NULL_SHA384",
    "NULL_MD5",
];

/// The version of TLS that has this suite; `None`: this server does not have the suite.
pub(super) fn version_of(suite: &str) -> Option<TlsVersion> {
    OWN.iter().find(|(name, _)| *name == suite).map(|(_, version)| *version)
}

/// Whether Java has a suite of this name.
pub(super) fn is_known(suite: &str) -> bool {
    let parts = suite.strip_prefix("TLS_").or_else(|| suite.strip_prefix("SSL_"));
    let is_pair =
        parts.and_then(|parts| parts.split_once("_WITH_")).is_some_and(|(key_exchange, cipher)| {
            KEY_EXCHANGES.contains(&key_exchange) && CIPHERS.contains(&cipher)
        });
    is_pair || suite == "TLS_EMPTY_RENEGOTIATION_INFO_SCSV" || version_of(suite).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_names_of_suites_are_known() {
        assert!(DEFAULT.iter().all(|suite| version_of(suite).is_some()));
        for known in [
            "TLS_AES_256_GCM_SHA384",
            "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            "SSL_RSA_WITH_RC4_128_MD5",
            "SSL_DH_anon_EXPORT_WITH_DES40_CBC_SHA",
            "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384",
            "TLS_RSA_WITH_AES_128_CBC_SHA",
        ] {
            assert!(is_known(known), "{known}");
        }
        for unknown in
            ["ECDHE-RSA-AES128-GCM-SHA256", "tls_aes_256_gcm_sha384", "TLS_AES_128_CCM_SHA256", ""]
        {
            assert!(!is_known(unknown), "{unknown}");
        }
    }
}
