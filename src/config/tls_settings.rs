//! Reads the settings of TLS: `ssl.*` for client ports, `ssl.quorum.*` for connections between servers, whose stores AdminServer
//! uses too, and `metricsProvider.ssl.*` for the port of metrics.

use super::checker::Checker;
use super::property_reader::Reader;
use super::system_properties::{Property, SystemProperties, trim};
use super::tls::{ClientAuth, StoreKind, StorePassword, StoreSettings, TlsSettings, TlsVersion};
use super::{SettingPlace, cipher_suites};
use crate::model::Secret;
use std::path::PathBuf;
use std::sync::Arc;

/// `handshakeDetectionTimeoutMillis` unless set.
const DETECTION_TIMEOUT_MS: u32 = 5000;

/// Versions of TLS that Java knows and this server refuses.
const OLD_VERSIONS: [&str; 4] = ["SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1"];

const KINDS: [(&str, &str, StoreKind); 4] = [
    ("JKS", ".jks", StoreKind::Jks),
    ("PEM", ".pem", StoreKind::Pem),
    ("PKCS12", ".p12", StoreKind::Pkcs12),
    ("BCFKS", ".bcfks", StoreKind::Bcfks),
];

/// The prefix of TLS settings, which says whose connections they are for; their defaults differ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SslPrefix {
    Client,
    Quorum,
    Metrics,
}

impl SslPrefix {
    const fn text(self) -> &'static str {
        match self {
            Self::Client => "ssl.",
            Self::Quorum => "ssl.quorum.",
            Self::Metrics => "metricsProvider.ssl.",
        }
    }

    /// The default of `clientHostnameVerification` and `allowReverseDnsLookup`.
    fn default(self) -> bool {
        self == Self::Quorum
    }
}

/// Takes all settings with one prefix; `None` if one was wrong, and a problem says which.
///
/// * `place`: the setting that switches TLS on, where missing settings are reported.
///
/// Source: `X509Util`, `ClientX509Util`, `SSLContextAndOptions`, ZooKeeper 3.9.5.
pub(super) fn take(
    checker: &mut Checker,
    system: &mut SystemProperties,
    ssl_prefix: SslPrefix,
    place: &SettingPlace,
) -> Option<TlsSettings> {
    let problems = checker.problems.len();
    let mut from = Taker { checker, system, ssl_prefix };
    let versions = from.versions();
    let suites = from.cipher_suites(versions.as_deref());
    let client_auth = from.client_auth();
    let key_store = from.store("keyStore");
    let trust_store = from.store("trustStore");
    let verifies_host = from.flag("hostnameVerification", true);
    let verifies_client_host = from.flag("clientHostnameVerification", ssl_prefix.default());
    let allows_reverse_dns = from.flag("allowReverseDnsLookup", ssl_prefix.default());
    let (crl, ocsp) = (from.flag("crl", false), from.flag("ocsp", false));
    let detection_timeout_ms = match ssl_prefix {
        SslPrefix::Quorum => from.detection_timeout(),
        SslPrefix::Client | SslPrefix::Metrics => DETECTION_TIMEOUT_MS,
    };
    from.check_stores(key_store.as_ref(), trust_store.as_ref(), client_auth, place);
    if problems < checker.problems.len() {
        return None;
    }
    let cipher_suites = suites?;
    let has_suite = |version: &TlsVersion| {
        cipher_suites.iter().any(|suite| cipher_suites::version_of(suite) == Some(*version))
    };
    Some(TlsSettings {
        prefix: ssl_prefix.text(),
        versions: versions?.into_iter().filter(has_suite).collect(),
        cipher_suites,
        key_store,
        trust_store,
        client_auth,
        verifies_host,
        verifies_client_host: verifies_client_host && verifies_host,
        allows_reverse_dns,
        crl,
        ocsp,
        detection_timeout_ms,
    })
}

/// The settings of AdminServer: the stores of connections between servers, and nothing else of theirs.
///
/// * `quorum`: settings of connections between servers, which have taken the stores; `None`: the stores are not taken.
/// * `place`: the setting that switches TLS on.
///
/// Source: `JettyAdminServer`, ZooKeeper 3.9.5.
pub(super) fn take_for_admin(
    checker: &mut Checker,
    system: &mut SystemProperties,
    quorum: Option<&TlsSettings>,
    client_auth: ClientAuth,
    place: &SettingPlace,
) -> Option<TlsSettings> {
    let problems = checker.problems.len();
    let mut from = Taker { checker, system, ssl_prefix: SslPrefix::Quorum };
    let (key_store, trust_store) = match quorum {
        Some(quorum) => (quorum.key_store.clone(), quorum.trust_store.clone()),
        None => (from.store("keyStore"), from.store("trustStore")),
    };
    if key_store.is_none() {
        let text = "HTTPS of AdminServer needs a key and a certificate; set ssl.quorum.keyStore.location to their store";
        from.checker.problem(place, text);
    }
    if trust_store.is_none() && client_auth != ClientAuth::None {
        let text = "admin.needClientAuth=true needs the certificates that are trusted; set ssl.quorum.trustStore.location to their store";
        from.checker.problem(place, text);
    }
    if problems < checker.problems.len() {
        return None;
    }
    Some(TlsSettings {
        prefix: SslPrefix::Quorum.text(),
        versions: vec![TlsVersion::V12, TlsVersion::V13],
        cipher_suites: cipher_suites::DEFAULT.iter().map(|&suite| suite.to_owned()).collect(),
        key_store,
        trust_store,
        client_auth,
        verifies_host: false,
        verifies_client_host: false,
        allows_reverse_dns: false,
        crl: false,
        ocsp: false,
        detection_timeout_ms: DETECTION_TIMEOUT_MS,
    })
}

struct Taker<'a> {
    checker: &'a mut Checker,
    system: &'a mut SystemProperties,
    ssl_prefix: SslPrefix,
}

impl Taker<'_> {
    /// A setting that is not empty.
    fn take(&mut self, name: &str) -> Option<Property> {
        let property = self.system.take(&format!("zookeeper.{}{name}", self.ssl_prefix.text()));
        property.filter(|property| !property.value.is_empty())
    }

    fn flag(&mut self, name: &str, default: bool) -> bool {
        let key = format!("zookeeper.{}{name}", self.ssl_prefix.text());
        Reader::new(self.system, &mut self.checker.warnings).flag(&key, default)
    }

    fn problem(&mut self, name: &str, setting: &Property, why: &str) {
        let text = format!("{}{name}={} {why}", self.ssl_prefix.text(), setting.value);
        self.checker.problem(&setting.place, text);
    }

    fn warn(&mut self, name: &str, setting: &Property, why: &str) {
        let text = format!("{}{name}={}: {why}", self.ssl_prefix.text(), setting.value);
        self.checker.warn(&setting.place, text);
    }

    /// The versions of TLS, in ascending order.
    fn versions(&mut self) -> Option<Vec<TlsVersion>> {
        let by_protocol = self.protocol();
        let Some(enabled) = self.take("enabledProtocols") else { return by_protocol };
        let (mut versions, mut old) = (Vec::new(), Vec::new());
        for name in enabled.value.split(',').map(trim) {
            match name {
                "TLSv1.2" => versions.push(TlsVersion::V12),
                "TLSv1.3" => versions.push(TlsVersion::V13),
                _ if OLD_VERSIONS.contains(&name) => old.push(name),
                _ => {
                    let why = format!(
                        "names \"{name}\", which is not a version of TLS; write TLSv1.3,TLSv1.2"
                    );
                    self.problem("enabledProtocols", &enabled, &why);
                    return None;
                }
            }
        }
        versions.sort_unstable();
        versions.dedup();
        if versions.is_empty() {
            let why = "leaves no version: this server has TLSv1.2 and TLSv1.3; add one of them";
            self.problem("enabledProtocols", &enabled, why);
            return None;
        }
        if !old.is_empty() {
            let why = format!("{} left out: they are broken; remove them here", old.join(", "));
            self.warn("enabledProtocols", &enabled, &why);
        }
        by_protocol?;
        Some(versions)
    }

    /// The versions if only `protocol` is set. On client ports it is just that version, although
    /// ZooKeeper's manual says otherwise.
    fn protocol(&mut self) -> Option<Vec<TlsVersion>> {
        let both = vec![TlsVersion::V12, TlsVersion::V13];
        let takes_both = self.ssl_prefix != SslPrefix::Client;
        let Some(protocol) = self.take("protocol") else {
            return Some(if takes_both { both } else { vec![TlsVersion::V13] });
        };
        match protocol.value.as_str() {
            "TLSv1.3" | "TLS" if takes_both => Some(both),
            "TLSv1.3" => Some(vec![TlsVersion::V13]),
            "TLSv1.2" => Some(vec![TlsVersion::V12]),
            _ => {
                let why = "is not a version that this server has; write TLSv1.3 or TLSv1.2";
                self.problem("protocol", &protocol, why);
                None
            }
        }
    }

    /// * `versions`: `None` if they were wrong.
    fn cipher_suites(&mut self, versions: Option<&[TlsVersion]>) -> Option<Vec<String>> {
        let fits = |suite: &str| {
            let version = cipher_suites::version_of(suite);
            version.is_some_and(|version| versions.is_none_or(|all| all.contains(&version)))
        };
        let Some(given) = self.take("ciphersuites") else {
            let defaults = cipher_suites::DEFAULT.iter().filter(|suite| fits(suite));
            return Some(defaults.map(|&suite| suite.to_owned()).collect());
        };
        let (mut kept, mut dropped) = (Vec::new(), Vec::new());
        for suite in given.value.split(',').map(trim) {
            if !cipher_suites::is_known(suite) {
                let why =
                    format!("names \"{suite}\", which is not a cipher suite; write Java's names");
                self.problem("ciphersuites", &given, &why);
                return None;
            }
            if cipher_suites::version_of(suite).is_none() {
                dropped.push(suite);
            } else if fits(suite) && !kept.iter().any(|other| other == suite) {
                kept.push(suite.to_owned());
            }
        }
        if kept.is_empty() {
            let why = "leaves no cipher suite that this server has for its versions of TLS; \
                       add TLS_AES_256_GCM_SHA384 or TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384";
            self.problem("ciphersuites", &given, why);
            return None;
        }
        if !dropped.is_empty() {
            let why = format!(
                "{} left out: this server has only suites of ECDHE with GCM or ChaCha20, and those of TLSv1.3",
                dropped.join(", ")
            );
            let text = format!("{}ciphersuites: {why}", self.ssl_prefix.text());
            self.checker.warn(&given.place, text);
        }
        Some(kept)
    }

    fn client_auth(&mut self) -> ClientAuth {
        if self.ssl_prefix == SslPrefix::Metrics {
            // Both are on unless set, and the first wins.
            let (need, want) =
                (self.flag("need.client.auth", true), self.flag("want.client.auth", true));
            return match (need, want) {
                (true, _) => ClientAuth::Need,
                (false, true) => ClientAuth::Want,
                (false, false) => ClientAuth::None,
            };
        }
        let Some(auth) = self.take("clientAuth") else { return ClientAuth::Need };
        match auth.value.to_ascii_lowercase().as_str() {
            "none" => ClientAuth::None,
            "want" => ClientAuth::Want,
            "need" => ClientAuth::Need,
            _ => {
                self.problem(
                    "clientAuth",
                    &auth,
                    "is not one of need, want and none; write one of them",
                );
                ClientAuth::Need
            }
        }
    }

    /// * `which`: `keyStore` or `trustStore`.
    fn store(&mut self, which: &str) -> Option<StoreSettings> {
        let location = self.take(&format!("{which}.location"));
        let password = self.take(&format!("{which}.password"));
        let file = self.take(&format!("{which}.passwordPath"));
        let kind = self.kind(&format!("{which}.type"));
        let prefix = self.ssl_prefix.text();
        let Some(location) = location else {
            for (given, name) in [(password, "password"), (file, "passwordPath")] {
                if let Some(given) = given {
                    let text = format!(
                        "{prefix}{which}.{name} has no effect without {prefix}{which}.location; set that, or remove this"
                    );
                    self.checker.warn(&given.place, text);
                }
            }
            return None;
        };
        if let (Some(given), Some(_)) = (&password, &file) {
            let text = format!(
                "{prefix}{which}.password has no effect beside {prefix}{which}.passwordPath; remove one of them"
            );
            self.checker.warn(&given.place, text);
        }
        let by_suffix = || {
            KINDS.iter().find(|(_, suffix, _)| location.value.ends_with(suffix)).map(|kind| kind.2)
        };
        let kind = kind.or_else(by_suffix);
        let password = match (file, password) {
            (Some(file), _) => StorePassword::File(PathBuf::from(file.value)),
            (None, Some(given)) => {
                StorePassword::Given(Arc::new(Secret::new(given.value.into_bytes())))
            }
            (None, None) => StorePassword::None,
        };
        Some(StoreSettings { path: PathBuf::from(location.value), password, kind })
    }

    fn kind(&mut self, name: &str) -> Option<StoreKind> {
        let given = self.take(name)?;
        let kind = KINDS.iter().find(|(kind, ..)| kind.eq_ignore_ascii_case(&given.value));
        if kind.is_none() {
            self.problem(
                name,
                &given,
                "is not one of JKS, PEM, PKCS12 and BCFKS; write one of them",
            );
        }
        kind.map(|kind| kind.2)
    }

    fn detection_timeout(&mut self) -> u32 {
        const NAME: &str = "handshakeDetectionTimeoutMillis";
        let Some(given) = self.take(NAME) else { return DETECTION_TIMEOUT_MS };
        match given.value.parse::<i32>() {
            Ok(ms) if ms > 0 => return ms as u32,
            Ok(_) => self.warn(NAME, &given, "is below 1, so 5000 is used; write 1 or more"),
            Err(_) => {
                let why = format!("is not a number of ms; write one from 1 to {}", i32::MAX);
                self.problem(NAME, &given, &why);
            }
        }
        DETECTION_TIMEOUT_MS
    }

    /// Refuses to serve TLS without the stores that it needs; Java starts, and fails each connection.
    fn check_stores(
        &mut self,
        key_store: Option<&StoreSettings>,
        trust_store: Option<&StoreSettings>,
        client_auth: ClientAuth,
        place: &SettingPlace,
    ) {
        let prefix = self.ssl_prefix.text();
        if key_store.is_none() {
            let text = format!(
                "TLS needs a key and a certificate; set {prefix}keyStore.location to their store"
            );
            self.checker.problem(place, text);
        }
        if trust_store.is_some() {
            return;
        }
        let text = match (self.ssl_prefix, client_auth) {
            (SslPrefix::Quorum, _) => {
                "TLS between servers needs the certificates that are trusted; set ssl.quorum.trustStore.location to their store"
            }
            (SslPrefix::Client | SslPrefix::Metrics, ClientAuth::None) => return,
            (SslPrefix::Metrics, _) => {
                "readers of metrics are asked for certificates; set metricsProvider.ssl.trustStore.location to those that are \
                 trusted, or metricsProvider.ssl.need.client.auth=false and metricsProvider.ssl.want.client.auth=false"
            }
            (SslPrefix::Client, _) => {
                "clients are asked for certificates (ssl.clientAuth); set ssl.trustStore.location to those that are trusted, \
                 or ssl.clientAuth=none"
            }
        };
        self.checker.problem(place, text);
    }
}
