//! What the key stores and trust stores of a configuration hold, for `oxkeeper config check`.

use crate::auth::x509::{Certificate, HostNames, Purpose, name, time_text};
use crate::config::tls::{StoreSettings, TlsSettings};
use crate::config::{Check, Problem, SettingPlace, Warning};
use crate::model::{ServerId, View};
use crate::net::tls::stores::{self, Keys, Shown, StoreError};
use crate::net::tls::{EngineRole, Used, Verifier, unfit_key};
use rustls_pki_types::{CertificateDer, UnixTime};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The stores of client ports, of the ports between servers, or of an HTTP port.
pub struct Stores {
    /// `ssl.`, `ssl.quorum.` or `metricsProvider.ssl.`.
    prefix: &'static str,
    stores: Vec<Store>,
    /// The certificate that a peer needs in its trust store to trust this server.
    peers_trust: Option<String>,
    /// Each `server.N`, and whether the certificate of this server would pass as it.
    servers: Vec<(String, String)>,
    /// Peers refuse this server's certificate, or will soon.
    is_faulty: bool,
}

struct Store {
    /// `keyStore` or `trustStore`.
    role: &'static str,
    path: String,
    kind: &'static str,
    entries: Vec<Entry>,
}

struct Entry {
    alias: String,
    /// `key`, `key, not used` or `trusted`.
    what: &'static str,
    fault: Option<String>,
    chain: Vec<Line>,
}

/// A certificate.
struct Line {
    subject: String,
    hosts: String,
    issuer: String,
    ends: String,
}

/// Reads the stores. A store that can't be used is a problem, as at the start of the server.
pub fn look_at(check: &mut Check) -> Vec<Stores> {
    let is_known =
        check.client_tls.is_some() || check.quorum_tls.is_some() || !check.http_tls.is_empty();
    if !check.problems.is_empty() && !is_known {
        look_for_files(check);
    }
    let mut all = Vec::new();
    if let Some(tls) = check.client_tls.clone() {
        all.push(stores_of(check, &tls.settings, None));
    }
    if let Some(tls) = check.quorum_tls.clone() {
        let view = check.ensemble.as_ref().map(|ensemble| (ensemble.view.clone(), ensemble.my_id));
        let compares = tls.settings.verifies_host;
        let members = view.as_ref().map(|(view, id)| Members { view, own: *id, compares });
        all.push(stores_of(check, &tls.settings, members));
    }
    for settings in check.http_tls.clone() {
        all.push(stores_of(check, &settings, None));
    }
    all
}

/// With other problems it is not known how the stores are used, but their files must be there.
fn look_for_files(check: &mut Check) {
    let is_store = |key: &str| {
        ["keyStore.location", "trustStore.location"].iter().any(|end| key.ends_with(end))
    };
    let has_effect = |state: &str| !["overridden", "unknown"].contains(&state);
    let mut faults = Vec::new();
    for setting in check.settings.iter_mut() {
        if !is_store(&setting.key) || !has_effect(setting.state) {
            continue;
        }
        if let Err(error) = std::fs::File::open(&setting.value) {
            setting.state = "wrong";
            let text = format!(
                "{}={}: {error}; name a file that this user may read",
                setting.key, setting.value
            );
            let place = setting.place.clone();
            faults.extend(place.map(|place| Problem { place, text }));
        }
    }
    check.problems.extend(faults);
}

/// The ensemble, and whether its members compare names with certificates.
struct Members<'a> {
    view: &'a View,
    /// This server.
    own: ServerId,
    compares: bool,
}

impl Members<'_> {
    /// The hosts under which other servers dial this one, if they compare names.
    fn own_hosts(&self) -> Vec<String> {
        let own = self.view.members.get(&self.own).filter(|_| self.compares).into_iter();
        own.flat_map(|own| &own.addresses).map(|address| address.host.to_string()).collect()
    }
}

fn stores_of(check: &mut Check, settings: &TlsSettings, members: Option<Members<'_>>) -> Stores {
    let prefix = settings.prefix;
    let mut found = Stores {
        prefix,
        stores: Vec::new(),
        peers_trust: None,
        servers: Vec::new(),
        is_faulty: false,
    };
    let mut keys = None;
    if let Some(store) = &settings.key_store {
        let key = format!("{prefix}keyStore.location");
        match stores::load_keys(store) {
            Ok(loaded) => keys = Some(loaded),
            Err(error) => add_problem(check, prefix, store, &error),
        }
        found.stores.extend(shown(store, "keyStore", keys.as_ref()));
        warn(check, &key, stores::warnings(store, keys.as_ref()));
    }
    let mut trusted = Vec::new();
    if let Some(store) = &settings.trust_store {
        let key = format!("{prefix}trustStore.location");
        match stores::load_trust(store) {
            Ok(loaded) => trusted = loaded,
            Err(error) => add_problem(check, prefix, store, &error),
        }
        found.stores.extend(shown(store, "trustStore", None));
        warn(check, &key, stores::warnings(store, None));
    }
    if let Some(keys) = &keys {
        let role = if members.is_some() { EngineRole::Peer } else { EngineRole::Server };
        let hosts = members.as_ref().map(Members::own_hosts).unwrap_or_default();
        let used = Used { settings, role, keys, trusted: &trusted, hosts: &hosts };
        let now = UnixTime::now();
        let refusal = used.certificate(now);
        found.is_faulty = refusal.is_some();
        warn(check, &format!("{prefix}keyStore.location"), refusal.into_iter().collect());
        check.risks.extend(used.ended_and_trusted(now));
    }
    let unfit = keys.as_ref().and_then(|keys| unfit_key(settings, keys));
    if let Some(text) = &unfit {
        let place = place_of(check, &format!("{prefix}ciphersuites"));
        add_fault(check, place, text.clone());
    }
    found.peers_trust = keys.as_ref().and_then(|keys| root(&keys.chain));
    if let (Some(keys), Some(members)) = (&keys, members) {
        found.servers = passes(keys, &trusted, &members, unfit);
    }
    found
}

/// Where a setting was made; `None`: it is not set.
fn found(check: &Check, key: &str) -> Option<SettingPlace> {
    let named = |written: &str| written.trim_start_matches("-Dzookeeper.") == key;
    let setting = check.settings.iter().rev().find(|setting| named(&setting.key));
    setting.and_then(|setting| setting.place.clone())
}

fn place_of(check: &Check, key: &str) -> SettingPlace {
    found(check, key).unwrap_or_else(|| SettingPlace::File(check.source.clone()))
}

/// The setting to look at, as at the start of the server; of a password that is not set, that of its store.
fn add_problem(check: &mut Check, prefix: &str, store: &StoreSettings, error: &StoreError) {
    let mut key = format!("{prefix}{}", error.setting(store));
    if found(check, &key).is_none()
        && let Some((role, _)) = key.rsplit_once('.')
    {
        key = format!("{role}.location");
    }
    let (place, text) = (place_of(check, &key), format!("{key}: {}", error.line(prefix, store)));
    add_fault(check, place, text);
}

fn add_fault(check: &mut Check, place: SettingPlace, text: String) {
    for setting in check.settings.iter_mut().filter(|s| s.place.as_ref() == Some(&place)) {
        setting.state = "wrong";
    }
    check.problems.push(Problem { place, text });
}

fn warn(check: &mut Check, key: &str, texts: Vec<String>) {
    let place = place_of(check, key);
    check.warnings.extend(texts.into_iter().map(|text| Warning::new(place.clone(), text)));
}

/// All entries of a store; none of one that cannot be read, which is a problem already.
fn shown(settings: &StoreSettings, role: &'static str, keys: Option<&Keys>) -> Option<Store> {
    let is_key_store = role == "keyStore";
    let (kind, entries) = stores::show(settings, is_key_store).ok()?;
    // Every certificate of a PEM file might be trusted; a key store is asked for its keys.
    let entries = entries.into_iter().filter(|entry| entry.is_key == is_key_store);
    let entries = entries.map(|shown| entry(shown, keys)).collect();
    Some(Store { role, path: settings.path.display().to_string(), kind: kind.name(), entries })
}

fn entry(shown: Shown, keys: Option<&Keys>) -> Entry {
    let what = match (shown.is_key, keys) {
        (true, Some(keys)) if keys.alias == shown.alias => "key",
        (true, _) => "key, not used",
        (false, _) => "trusted",
    };
    let chain = shown.chain.iter().filter_map(|der| line(der)).collect();
    Entry { alias: shown.alias, what, fault: shown.fault, chain }
}

fn line(der: &CertificateDer<'_>) -> Option<Line> {
    let certificate = Certificate::parse(der)?;
    Some(Line {
        subject: certificate.subject_text(),
        hosts: HostNames::of(&certificate).to_string(),
        issuer: name(certificate.issuer).unwrap_or_default(),
        ends: time_text(certificate.not_after),
    })
}

/// The subject of the certificate that is not sent, or of the last one that is sent if it has signed itself.
fn root(chain: &[CertificateDer<'static>]) -> Option<String> {
    let last = Certificate::parse(chain.last()?)?;
    name(last.issuer).ok()
}

/// Each member, and whether the certificate of this server would pass as it.
///
/// * `unfit`: why its key fits no cipher suite.
fn passes(
    keys: &Keys,
    trusted: &[CertificateDer<'static>],
    members: &Members<'_>,
    unfit: Option<String>,
) -> Vec<(String, String)> {
    let Some((leaf, above)) = keys.chain.split_first() else { return Vec::new() };
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let judged = |purpose| match Verifier::new(&provider, trusted, true) {
        Ok(verifier) => {
            let refused = verifier.judge(leaf, above, purpose, UnixTime::now()).err();
            refused.map(|refused| refused.to_string())
        }
        Err(_) => Some("this server has no trust store to compare with".to_owned()),
    };
    // Members dial each other, so that a certificate has to do for both sides.
    let refused = unfit.or_else(|| judged(Purpose::Server)).or_else(|| judged(Purpose::Client));
    let names = Certificate::parse(leaf).map(|leaf| HostNames::of(&leaf)).unwrap_or_default();
    let verdict = |hosts: &[&str]| {
        if let Some(reason) = &refused {
            return format!("would not pass: {reason}");
        }
        match hosts.iter().find(|host| !names.fit(host)) {
            None => "would pass".to_owned(),
            Some(host) if members.compares => {
                format!("would not pass: the certificate names {names}, and not {host}")
            }
            Some(host) => format!(
                "would pass, as names are not compared; the certificate names {names}, and not {host}"
            ),
        }
    };
    let members = members.view.members.iter();
    let line = |(id, member): (&crate::model::ServerId, &crate::model::Member)| {
        let hosts: Vec<&str> = member.addresses.iter().map(|address| &*address.host).collect();
        (format!("server.{} {}", id.0, hosts.join("|")), verdict(&hosts))
    };
    members.map(line).collect()
}

/// Whether peers refuse a certificate of this server, or will soon.
pub fn are_faulty(all: &[Stores]) -> bool {
    all.iter().any(|stores| stores.is_faulty)
}

/// Appends the stores to the table.
pub fn put_text(text: &mut String, all: &[Stores]) {
    for stores in all {
        for store in &stores.stores {
            let (prefix, role) = (stores.prefix, store.role);
            _ = writeln!(text, "{prefix}{role} {} ({}):", store.path, store.kind); // Writing to a string can't fail.
            for entry in &store.entries {
                put_entry(text, entry);
            }
        }
        if let Some(subject) = &stores.peers_trust {
            _ = writeln!(text, "peers must trust: {subject}");
        }
        for (server, verdict) in &stores.servers {
            _ = writeln!(text, "this server's certificate as {server}: {verdict}");
        }
        text.push('\n');
    }
}

fn put_entry(text: &mut String, entry: &Entry) {
    let alias = if entry.alias.is_empty() { "certificate" } else { &entry.alias };
    let fits = match (&entry.fault, entry.what) {
        (Some(fault), _) => format!(": {fault}"),
        (None, "trusted") => String::new(),
        (None, _) => ": fits its certificate".to_owned(),
    };
    _ = writeln!(text, "  {} ({}){fits}", alias.escape_debug(), entry.what);
    for line in &entry.chain {
        let Line { subject, hosts, issuer, ends } = line;
        _ = writeln!(text, "    {subject}; names {hosts}; issued by {issuer}; ends on {ends}");
    }
}

/// The same for programs.
pub fn as_json(all: &[Stores]) -> Value {
    let entry = |entry: &Entry| {
        let chain = entry.chain.iter().map(|line| {
            json!({"subject": line.subject, "names": line.hosts, "issuer": line.issuer, "endsOn": line.ends})
        });
        json!({
            "alias": entry.alias,
            "what": entry.what,
            "fault": entry.fault,
            "chain": chain.collect::<Vec<_>>(),
        })
    };
    let store = |store: &Store| {
        let entries: Vec<Value> = store.entries.iter().map(entry).collect();
        json!({"role": store.role, "path": store.path, "kind": store.kind, "entries": entries})
    };
    let whole = |stores: &Stores| {
        let servers = stores.servers.iter();
        let servers =
            servers.map(|(server, verdict)| json!({"server": server, "verdict": verdict}));
        json!({
            "prefix": stores.prefix,
            "stores": stores.stores.iter().map(store).collect::<Vec<_>>(),
            "peersMustTrust": stores.peers_trust,
            "servers": servers.collect::<Vec<_>>(),
        })
    };
    all.iter().map(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::config::tls::{ClientAuth, StorePassword, TlsVersion};
    use crate::model::{Member, PeerAddress, Role, Rule, Secret};
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::sync::Arc;

    /// A store that keytool or openssl made; compat-tests/golden/tls/make.
    fn golden(name: &str) -> StoreSettings {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("compat-tests/golden/tls");
        let password = StorePassword::Given(Arc::new(Secret::new(b"secret1".to_vec())));
        StoreSettings { path: folder.join(name), password, kind: None }
    }

    fn settings(keys: &str, trust: &str) -> TlsSettings {
        TlsSettings {
            prefix: "ssl.quorum.",
            versions: vec![TlsVersion::V13],
            cipher_suites: vec!["TLS_AES_128_GCM_SHA256".to_owned()],
            key_store: Some(golden(keys)),
            trust_store: Some(golden(trust)),
            client_auth: ClientAuth::Need,
            verifies_host: true,
            verifies_client_host: true,
            allows_reverse_dns: true,
            crl: false,
            ocsp: false,
            detection_timeout_ms: 5000,
        }
    }

    fn view() -> View {
        let member = |id, host: &str| {
            let address = PeerAddress { host: host.into(), quorum_port: 2888, election_port: 3888 };
            let id = ServerId(id);
            (id, Member { id, addresses: vec![address], role: Role::Participant, client: None })
        };
        let members = BTreeMap::from([member(1, "zk1.example"), member(2, "zk2.example")]);
        View { version: 0, members, rule: Rule::Majority }
    }

    fn check() -> Check {
        Check {
            doubts: Vec::new(),
            source: "zoo.cfg".into(),
            settings: Vec::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
            risks: Vec::new(),
            secret_files: Vec::new(),
            folders: Vec::new(),
            makes_folders: true,
            ensemble: None,
            client_host: None,
            client_tls: None,
            quorum_tls: None,
            http_tls: Vec::new(),
        }
    }

    fn text(stores: Stores) -> String {
        let folder = golden("").path.display().to_string();
        let mut text = String::new();
        put_text(&mut text, &[stores]);
        text.replace(&folder, "")
    }

    // rows: C-193 C-194
    #[test]
    fn stores_are_shown_with_their_certificates_and_members() {
        let (mut check, view) = (check(), view());
        let members = Some(Members { view: &view, own: ServerId(1), compares: true });
        let stores = stores_of(&mut check, &settings("ec.jks", "trust.jks"), members);
        assert_eq!((check.problems.len(), check.warnings.len()), (0, 0), "{:?}", check.problems);
        let json = as_json(std::slice::from_ref(&stores));
        assert_eq!(json[0]["stores"][0]["kind"], "JKS");
        assert_eq!(json[0]["servers"][0]["verdict"], "would pass");
        let shown = text(stores);
        for part in [
            "ssl.quorum.keyStore ec.jks (JKS):\n  zk (key): fits its certificate\n    CN=ec.example,O=Oxkeeper; \
             names zk1.example, 127.0.0.1; issued by CN=Golden CA 2,O=Oxkeeper; ends on ",
            "ssl.quorum.trustStore trust.jks (JKS):\n",
            "peers must trust: CN=Golden CA,O=Oxkeeper\n",
            "this server's certificate as server.1 zk1.example: would pass\n",
            "this server's certificate as server.2 zk2.example: would not pass: the certificate names zk1.example, 127.0.0.1, and not zk2.example\n",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    #[test]
    fn unusable_store_is_a_problem() {
        let mut check = check();
        stores_of(&mut check, &settings("mismatch.pem", "openssl-trust.p12"), None);
        let problems: Vec<String> = check.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("key and certificate do not belong together"), "{problems:?}");
        assert!(problems[1].contains("no trusted certificate in it"), "{problems:?}");
    }

    #[test]
    fn key_that_fits_no_suite_is_a_problem_and_passes_nowhere() {
        for (keys, suites, kind) in [("ec.jks", "RSA", "EC"), ("rsa.jks", "ECDSA", "RSA")] {
            let (mut check, view) = (check(), view());
            let mut tls = settings(keys, "trust.jks");
            tls.versions = vec![TlsVersion::V12];
            tls.cipher_suites = vec![format!("TLS_ECDHE_{suites}_WITH_AES_128_GCM_SHA256")];
            let members = Some(Members { view: &view, own: ServerId(1), compares: true });
            let shown = text(stores_of(&mut check, &tls, members));
            let problems: Vec<String> = check.problems.iter().map(ToString::to_string).collect();
            assert_eq!(problems.len(), 1, "{problems:?}");
            let reason = format!(
                "ssl.quorum.ciphersuites={} has no suite for the {kind} key of ssl.quorum.keyStore.location=",
                tls.cipher_suites[0]
            );
            assert!(problems[0].contains(&reason) && problems[0].contains(keys), "{problems:?}");
            assert!(
                shown.contains("zk1.example: would not pass: ssl.quorum.ciphersuites="),
                "{shown}"
            );
            assert!(!shown.contains("would pass"), "{shown}");
        }
    }

    #[test]
    fn problem_of_a_password_names_its_line_or_else_that_of_the_store() {
        let set = |key: &str, line| config::Understood {
            key: key.to_owned(),
            value: String::new(),
            place: Some(SettingPlace::Line { file: "zoo.cfg".into(), line }),
            state: "works",
            effect: String::new(),
        };
        let problem_of = |password, also: Option<config::Understood>| {
            let (mut check, mut tls) = (check(), settings("ec.jks", "trust.jks"));
            check.settings.push(set("ssl.quorum.keyStore.location", 7));
            check.settings.extend(also);
            tls.key_store = Some(StoreSettings { password, ..golden("ec.jks") });
            stores_of(&mut check, &tls, None);
            check.problems.first().map(ToString::to_string).unwrap_or_default()
        };
        let none = problem_of(StorePassword::None, None);
        assert!(none.starts_with("zoo.cfg:7: ssl.quorum.keyStore.location: key store "), "{none}");
        let wrong = StorePassword::Given(Arc::new(Secret::new(b"wrong".to_vec())));
        let wrong = problem_of(wrong, Some(set("ssl.quorum.keyStore.password", 9)));
        assert!(wrong.starts_with("zoo.cfg:9: ssl.quorum.keyStore.password: "), "{wrong}");
        assert!(wrong.ends_with("; correct ssl.quorum.keyStore.password"), "{wrong}");
    }

    #[test]
    fn certificate_of_a_foreign_authority_passes_nowhere() {
        let (mut check, view) = (check(), view());
        let members = Some(Members { view: &view, own: ServerId(1), compares: false });
        let stores = stores_of(&mut check, &settings("v1.jks", "weak.pem"), members);
        assert!(are_faulty(std::slice::from_ref(&stores)));
        let warnings: Vec<String> = check.warnings.iter().map(ToString::to_string).collect();
        assert!(
            warnings
                .iter()
                .any(|warning| warning.contains("servers will refuse this server's certificate")),
            "{warnings:?}"
        );
        let shown = text(stores);
        assert!(shown.contains("as server.1 zk1.example: would not pass: "), "{shown}");
    }
}
