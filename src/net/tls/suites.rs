//! Cipher suites by the names that Java gives them.

use super::stores::Keys;
use crate::config::tls::{TlsSettings, TlsVersion};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{SignatureAlgorithm, SupportedCipherSuite};

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

/// The kind of a key, as suites and operators name it.
pub(super) fn kind_of_key(keys: &Keys) -> &'static str {
    match keys.signer.algorithm() {
        SignatureAlgorithm::RSA => "RSA",
        SignatureAlgorithm::ECDSA => "EC",
        SignatureAlgorithm::ED25519 => "Ed25519",
        _ => "unknown",
    }
}

/// Why no handshake can end well, if the key signs for no suite of the enabled versions. Each suite of TLS 1.2 is for one kind of key,
/// those of TLS 1.3 are for all.
pub fn unfit_key(settings: &TlsSettings, keys: &Keys) -> Option<String> {
    let has = |version| settings.versions.contains(&version);
    let fits = |suite: &SupportedCipherSuite| match suite {
        SupportedCipherSuite::Tls12(suite) => {
            has(TlsVersion::V12) && keys.signer.choose_scheme(suite.sign).is_some()
        }
        SupportedCipherSuite::Tls13(_) => has(TlsVersion::V13),
    };
    let provider = limited(aws_lc_rs::default_provider(), &settings.cipher_suites);
    if provider.cipher_suites.iter().any(fits) {
        return None;
    }
    let kind = kind_of_key(keys);
    let store = settings.key_store.as_ref().map(|store| store.path.display().to_string());
    let suite = match kind {
        "RSA" => "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        _ => "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    };
    Some(format!(
        "{prefix}ciphersuites={suites} has no suite for the {kind} key of {prefix}keyStore.location={store}, so every handshake would fail; add {suite}",
        prefix = settings.prefix,
        suites = settings.cipher_suites.join(","),
        store = store.unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::tls::stores;
    use crate::net::tls::test_certificates::{Authority, settings};

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

    // rows: C-192
    #[test]
    fn key_needs_a_suite_of_its_kind_or_of_tls_13() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path(), "ca");
        let settings = settings(&authority.issue("server"), &authority.trust);
        let keys = stores::load_keys(settings.key_store.as_ref().unwrap()).unwrap();
        let unfit = |versions: &[TlsVersion], suites: &[&str]| {
            let cipher_suites = suites.iter().map(|&suite| suite.to_owned()).collect();
            unfit_key(
                &TlsSettings { versions: versions.to_vec(), cipher_suites, ..settings.clone() },
                &keys,
            )
        };
        let (both, old) = ([TlsVersion::V12, TlsVersion::V13], [TlsVersion::V12]);
        let (rsa, ec) =
            ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384");
        assert_eq!(unfit(&old, &[rsa, ec]), None);
        assert_eq!(unfit(&both, &[rsa, "TLS_AES_128_GCM_SHA256"]), None);
        let text = unfit(&both, &[rsa]).unwrap();
        let begin =
            format!("ssl.ciphersuites={rsa} has no suite for the EC key of ssl.keyStore.location=");
        assert!(text.starts_with(&begin) && text.ends_with(&format!("; add {ec}")), "{text}");
    }
}
