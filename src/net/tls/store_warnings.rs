//! Warnings about stores that can be used, for the log of the start and for `oxkeeper config check`.

use super::engine::EngineRole;
use super::stores::{self, Keys};
use super::verifier::Verifier;
use crate::auth::x509::{Certificate, HostNames, Purpose, Refusal, path, time_text};
use crate::config::tls::TlsSettings;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::{CertificateDer, UnixTime};

/// Time before the end of a certificate from which its end is reported, in seconds.
const SOON_S: i64 = 30 * 24 * 3600;

/// The stores that settings name, and who uses them.
pub struct Used<'a> {
    pub settings: &'a TlsSettings,
    pub role: EngineRole,
    pub keys: &'a Keys,
    pub trusted: &'a [CertificateDer<'static>],
    /// Hosts under which other servers dial this one; empty if they compare no names.
    pub hosts: &'a [String],
}

impl Used<'_> {
    /// All warnings at the start, except for the end of the server's own certificate, which `Watch` reports.
    pub fn warnings(&self, now: UnixTime) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(store) = &self.settings.key_store {
            all.extend(stores::warnings(store, Some(self.keys)));
        }
        if let Some(store) = &self.settings.trust_store {
            all.extend(stores::warnings(store, None));
        }
        all.extend(self.refusal(now).filter(|(ends, _)| !ends).map(|(_, text)| text));
        all.extend(self.ended_and_trusted(now));
        all
    }

    /// What makes peers refuse the certificate of this server, or will soon.
    pub fn certificate(&self, now: UnixTime) -> Option<String> {
        let refusal = self.refusal(now).map(|(_, text)| text);
        refusal.or_else(|| {
            let ends = self.keys.chain.iter().filter_map(|der| Certificate::parse(der));
            let first = ends.min_by_key(|certificate| certificate.not_after)?;
            (first.not_after < seconds(now) + SOON_S).then(|| {
                let (subject, end) = (first.subject_text(), time_text(first.not_after));
                format!(
                    "{}: the certificate of {subject} expires soon, on {end}: renew it",
                    self.key_store()
                )
            })
        })
    }

    /// Why peers refuse the certificate, and whether it is because it has ended.
    fn refusal(&self, now: UnixTime) -> Option<(bool, String)> {
        let reason = match self.role {
            EngineRole::Server => self.clients_refuse(seconds(now)),
            EngineRole::Peer => self.servers_refuse(now),
        };
        let with_text = |reason: Refusal| {
            let peers = if self.role == EngineRole::Server { "clients" } else { "servers" };
            let ends = matches!(reason, Refusal::Expired { .. });
            let reason = match reason {
                Refusal::UnknownIssuer { subject, issuer } => format!(
                    "the trust store has neither the certificate of {subject} nor its issuer, {issuer}; put its intermediate certificates into the key store, or have it issued by a CA that the servers trust"
                ),
                reason => reason.to_string(),
            };
            let store = self.key_store();
            (ends, format!("{store}: {peers} will refuse this server's certificate: {reason}"))
        };
        reason.map(with_text).or_else(|| self.other_host().map(|text| (false, text)))
    }

    fn key_store(&self) -> String {
        let path = self.settings.key_store.as_ref().map(|store| store.path.display().to_string());
        format!("{}keyStore.location={}", self.settings.prefix, path.unwrap_or_default())
    }

    /// Why clients refuse the certificate whatever they trust.
    fn clients_refuse(&self, now: i64) -> Option<Refusal> {
        let chain: Vec<_> =
            self.keys.chain.iter().filter_map(|der| Certificate::parse(der)).collect();
        let leaf = chain.first()?;
        let dates = chain.iter().find_map(|one| path::check_dates(one, now).err());
        let purpose = || path::check_leaf(leaf, Purpose::Server).err();
        // The signature of a self-signed certificate is not checked.
        let signed = || chain.iter().filter(|one| one.subject != one.issuer);
        dates.or_else(purpose).or_else(|| signed().find_map(|one| path::check_algorithm(one).err()))
    }

    /// Other servers have trust stores as this one's, and each server both dials and is dialed.
    fn servers_refuse(&self, now: UnixTime) -> Option<Refusal> {
        let (leaf, above) = self.keys.chain.split_first()?;
        let provider = aws_lc_rs::default_provider();
        let verifier = Verifier::new(&provider, self.trusted, true).ok()?;
        let refused = |purpose| verifier.judge(leaf, above, purpose, now).err();
        let refused = refused(Purpose::Server).or_else(|| refused(Purpose::Client))?;
        Some(refused.reason)
    }

    fn other_host(&self) -> Option<String> {
        let names = HostNames::of(&Certificate::parse(self.keys.chain.first()?)?);
        let host = self.hosts.iter().find(|host| !names.fit(host))?;
        Some(format!(
            "{}: servers will refuse this server's certificate: it is for {names}, and they dial {host}; have it issued for that name",
            self.key_store()
        ))
    }

    /// Certificates in the trust store that have ended. Their holders are trusted nevertheless, as in Java.
    pub fn ended_and_trusted(&self, now: UnixTime) -> Vec<String> {
        let path = self.settings.trust_store.as_ref().map(|store| store.path.display().to_string());
        let warning = |der: &CertificateDer<'_>| {
            let certificate = Certificate::parse(der)?;
            let is_ca = certificate.issues().is_some_and(|(is_ca, _)| is_ca);
            (!is_ca && certificate.not_after < seconds(now)).then(|| {
                format!(
                    "{}trustStore.location={}: the certificate of {} ended on {}, and its holder is still trusted; remove it, or trust its issuer instead",
                    self.settings.prefix,
                    path.as_deref().unwrap_or_default(),
                    certificate.subject_text(),
                    time_text(certificate.not_after)
                )
            })
        };
        self.trusted.iter().filter_map(warning).collect()
    }
}

fn seconds(now: UnixTime) -> i64 {
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::tls::test_certificates::{Authority, settings};
    use std::time::Duration;

    #[test]
    fn certificates_that_every_peer_would_refuse_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let (authority, other) =
            (Authority::new(folder.path(), "ca"), Authority::new(folder.path(), "other"));
        let settings = settings(&authority.issue("own"), &authority.trust);
        let keys = stores::load_keys(settings.key_store.as_ref().unwrap()).unwrap();
        let trusted = stores::load_trust(settings.trust_store.as_ref().unwrap()).unwrap();
        let of = |path| crate::config::tls::StoreSettings {
            path,
            ..settings.trust_store.clone().unwrap()
        };
        let strange = stores::load_trust(&of(other.trust.clone())).unwrap();
        let warnings_of = |role, trusted: &[_], hosts: &[&str], now: UnixTime| {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            let used = Used { settings: &settings, role, keys: &keys, trusted, hosts: &hosts };
            (used.warnings(now).join("\n"), used.certificate(now).unwrap_or_default())
        };
        let (now, early) = (UnixTime::now(), UnixTime::since_unix_epoch(Duration::from_secs(0)));
        let end = Certificate::parse(&keys.chain[0]).unwrap().not_after.unsigned_abs();
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        for role in [EngineRole::Server, EngineRole::Peer] {
            assert_eq!(warnings_of(role, &trusted, &["localhost"], now), Default::default());
            let (start, check) = warnings_of(role, &trusted, &[], early);
            assert!(start.contains("is valid from") && check.contains("is valid from"), "{start}");
            let (start, check) = warnings_of(role, &trusted, &[], at(end + 9));
            assert!(start.is_empty() && check.contains("was valid until"), "{start} {check}");
            let (start, check) = warnings_of(role, &trusted, &[], at(end - 9));
            assert!(start.is_empty() && check.contains("expires soon, on "), "{start} {check}");
        }
        let (start, check) = warnings_of(EngineRole::Peer, &strange, &[], now);
        assert!(start.contains("servers will refuse") && check.contains("CN=ca"), "{start}");
        assert!(start.ends_with("or have it issued by a CA that the servers trust"), "{start}");
        let (start, _) = warnings_of(EngineRole::Peer, &trusted, &["localhost", "zk7"], now);
        assert!(start.contains("and they dial zk7"), "{start}");
        let (start, _) = warnings_of(EngineRole::Server, &keys.chain, &[], at(end + 9));
        assert!(start.contains("its holder is still trusted"), "{start}");
    }
}
