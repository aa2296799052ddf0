//! Cipher suites by the names that Java gives them.

use rustls::SupportedCipherSuite;
use rustls::crypto::CryptoProvider;

/// The provider with only these suites, in their order.
///
/// * `names`: JSSE names. Suites that this server does not have are left out.
pub(super) fn limited(mut provider: CryptoProvider, names: &[String]) -> CryptoProvider {
    let all = std::mem::take(&mut provider.cipher_suites);
    let named = |name: &String| all.iter().find(|suite| jsse_name(suite) == *name).copied();
    provider.cipher_suites = names.iter().filter_map(named).collect();
    provider
}

/// JSSE writes suites of TLS 1.3 as those of TLS 1.2, without the version.
pub(super) fn jsse_name(suite: &SupportedCipherSuite) -> String {
    let name = suite.suite().as_str().unwrap_or_default();
    name.strip_prefix("TLS13_").map_or_else(|| name.to_owned(), |rest| format!("TLS_{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::aws_lc_rs;

    // rows: C-192
    #[test]
    fn suites_are_found_by_jsse_names_in_the_given_order() {
        let names = [
            "TLS_AES_128_GCM_SHA256",
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            "TLS_AES_256_GCM_SHA384",
        ];
        let names = names.map(str::to_owned);
        let limited = limited(aws_lc_rs::default_provider(), &names);
        let found: Vec<String> = limited.cipher_suites.iter().map(jsse_name).collect();
        assert_eq!(found, names);
    }
}
