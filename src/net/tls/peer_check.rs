//! Checks of a peer after its handshake and before its first byte: the hosts that its certificate
//! names, and revocation.
//!
//! Names may have to be resolved and lists fetched, which takes seconds; it is done by the task of the connection, not by the
//! threads of the handshakes.

use super::revocation::Revocation;
use super::verifier::{Refused, Verifier, parsed};
use crate::auth::x509::revocation::Pair;
use crate::auth::x509::{Certificate, Found, HostCheck, Lookup, Peer, Purpose, Refusal};
use crate::config::tls::TlsSettings;
use crate::net::resolve::{names_of, resolve_all};
use rustls_pki_types::{CertificateDer, UnixTime};
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::timeout;

/// Longest time for a name to be resolved, or an address to be looked up.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The rules, from the settings.
pub struct PeerCheck {
    verifies_host: bool,
    verifies_client_host: bool,
    allows_reverse_dns: bool,
    revocation: Option<Revocation>,
}

impl PeerCheck {
    pub fn new(settings: &TlsSettings) -> Self {
        Self {
            verifies_host: settings.verifies_host,
            verifies_client_host: settings.verifies_client_host,
            allows_reverse_dns: settings.allows_reverse_dns,
            revocation: Revocation::new(settings.crl, settings.ocsp),
        }
    }

    /// Judges a peer whose handshake succeeded.
    ///
    /// * `chain`: as the peer sent it; empty if it showed no certificate, and did not have to.
    ///
    /// # Errors
    /// [`Refused`]: the connection has to be closed before anything of it is used.
    pub async fn check_peer(
        &self,
        verifier: &Verifier,
        peer: Peer<'_>,
        chain: &[CertificateDer<'_>],
    ) -> Result<(), Refused> {
        let Some((leaf, above)) = chain.split_first() else { return Ok(()) };
        let (purpose, names) = match peer {
            Peer::Dialed { .. } => (Purpose::Server, self.verifies_host),
            Peer::Member { .. } | Peer::Client { .. } => {
                (Purpose::Client, self.verifies_client_host)
            }
        };
        if !names && self.revocation.is_none() {
            return Ok(()); // The handshake has judged all that the settings ask for.
        }
        let checked = async {
            let chain = parsed(leaf, above, purpose)?;
            let leaf = chain.first().ok_or(Refusal::Malformed { at: 1 })?;
            if names {
                self.check_host(leaf, peer).await?;
            }
            self.check_revocation(verifier, &chain, purpose).await
        };
        checked.await.map_err(|reason| Refused::of(leaf, reason))
    }

    /// Judges a client's certificate that another engine's handshake has accepted: its path and revocation, not its host.
    ///
    /// # Errors
    /// [`Refused`]: it says nothing about the client.
    pub async fn check_shown(
        &self,
        verifier: &Verifier,
        chain: &[CertificateDer<'_>],
    ) -> Result<(), Refused> {
        let Some((leaf, above)) = chain.split_first() else { return Ok(()) };
        verifier.judge(leaf, above, Purpose::Client, UnixTime::now())?;
        if self.revocation.is_none() {
            return Ok(());
        }
        let checked = async {
            let chain = parsed(leaf, above, Purpose::Client)?;
            self.check_revocation(verifier, &chain, Purpose::Client).await
        };
        checked.await.map_err(|reason| Refused::of(leaf, reason))
    }

    async fn check_host(&self, leaf: &Certificate<'_>, peer: Peer<'_>) -> Result<(), Refusal> {
        let mut check = HostCheck::new(leaf, peer, self.allows_reverse_dns);
        let mut found = None;
        while let Some(lookup) = check.next(found)? {
            found = Some(match lookup {
                Lookup::Resolves { host, address } => {
                    Found::Resolves(resolves_to(host, address).await)
                }
                Lookup::Names(address) => Found::Names(reverse(address).await),
            });
        }
        Ok(())
    }

    async fn check_revocation(
        &self,
        verifier: &Verifier,
        chain: &[Certificate<'_>],
        purpose: Purpose,
    ) -> Result<(), Refusal> {
        let Some(revocation) = &self.revocation else { return Ok(()) };
        let now = UnixTime::now();
        let Some(path) = verifier.path(chain, purpose, now)? else { return Ok(()) };
        let anchor = Certificate::parse(path.anchor).ok_or(Refusal::Malformed { at: 0 })?;
        let certificates: Vec<&Certificate<'_>> =
            path.certificates.iter().map(|&at| &chain[at]).collect();
        let issuers = certificates.iter().copied().skip(1).chain([&anchor]);
        let pairs: Vec<Pair<'_>> = (certificates.iter().copied().zip(issuers))
            .map(|(certificate, issuer)| Pair { certificate, issuer })
            .collect();
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        revocation.check(&pairs, now, verifier).await
    }
}

/// Whether a name has this address now.
async fn resolves_to(host: String, address: IpAddr) -> bool {
    let resolve = tokio::task::spawn_blocking(move || resolve_all(&host, 0));
    match timeout(LOOKUP_TIMEOUT, resolve).await {
        Ok(Ok(Ok(found))) => found.iter().any(|found| found.ip().to_canonical() == address),
        _ => false,
    }
}

/// The names of an address; none, if that takes too long.
async fn reverse(address: IpAddr) -> Vec<String> {
    let asked = tokio::task::spawn_blocking(move || names_of(address));
    timeout(LOOKUP_TIMEOUT, asked).await.ok().and_then(Result::ok).unwrap_or_default()
}
