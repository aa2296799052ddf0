//! Asks whether the certificates of a peer were revoked (`ssl.crl`, `ssl.ocsp`): OCSP responders
//! first, then CRLs. Without an answer the peer is refused.
//!
//! Source: `PKIXRevocationChecker` with its defaults, JDK 17.

use super::fetch::{FetchError, fetch};
use crate::auth::x509::Refusal;
use crate::auth::x509::path::Check;
use crate::auth::x509::revocation::{
    AnswerError, Pair, Status, crl_status, ocsp_request, ocsp_status,
};
use rustls_pki_types::CertificateRevocationListDer;
use rustls_pki_types::pem::PemObject as _;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Longest time for all questions about one peer.
const TIMEOUT: Duration = Duration::from_secs(15);

/// How long a list is used before its URL is asked again, as in Java.
const LIST_AGE_MAX: Duration = Duration::from_secs(30);

/// Most requests at once.
const REQUESTS_MAX: usize = 16;

/// Limit on the bytes of kept CRLs; above it all of them are dropped.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Checks certificates, and keeps CRLs for 30 s. Client ports share one, and so do the ports for servers.
pub struct Revocation {
    crl: bool,
    ocsp: bool,
    requests: Semaphore,
    lists: Mutex<HashMap<String, KeptList>>,
}

/// A revocation list as it came.
struct KeptList {
    since: Instant,
    bytes: Arc<Vec<u8>>,
}

impl KeptList {
    fn is_fresh(&self) -> bool {
        self.since.elapsed() < LIST_AGE_MAX
    }
}

/// What is asked about one certificate.
#[derive(Clone, Copy)]
struct Question<'a> {
    pair: Pair<'a>,
    /// Seconds since 1970.
    now: i64,
    /// Checks the signatures of answers.
    check: &'a (dyn Check + Sync),
}

/// What went wrong with one URL.
#[derive(Debug, thiserror::Error)]
enum UrlError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

impl Revocation {
    /// `None` if neither is asked for.
    pub fn new(crl: bool, ocsp: bool) -> Option<Self> {
        let (requests, lists) = (Semaphore::new(REQUESTS_MAX), Mutex::default());
        (crl || ocsp).then_some(Self { crl, ocsp, requests, lists })
    }

    /// Checks each certificate of a path, from the leaf up; each is paired with its issuer.
    ///
    /// # Errors
    /// [`Refusal`] if one is revoked, or there is no answer within 15 s.
    pub async fn check(
        &self,
        pairs: &[Pair<'_>],
        now: i64,
        check: &(dyn Check + Sync),
    ) -> Result<(), Refusal> {
        let asked = async {
            for pair in pairs {
                self.check_one(Question { pair: *pair, now, check }).await?;
            }
            Ok(())
        };
        timeout(TIMEOUT, asked).await.unwrap_or_else(|_| {
            let subject = pairs.first().map(|pair| pair.certificate.subject_text());
            let reason = "no answer within 15 s".to_owned();
            Err(self.no_answer(subject.unwrap_or_default(), reason))
        })
    }

    fn no_answer(&self, subject: String, reason: String) -> Refusal {
        let setting = if self.crl { "crl" } else { "ocsp" };
        Refusal::NoRevocationAnswer { subject, reason, setting }
    }

    async fn check_one(&self, question: Question<'_>) -> Result<(), Refusal> {
        let pair = question.pair;
        let (mut reasons, mut outcome) = (Vec::new(), None);
        let responders = if self.ocsp { pair.certificate.ocsp_urls() } else { Vec::new() };
        for url in responders {
            match self.ask_responder(url, question).await {
                Ok(status) => {
                    outcome = Some(status);
                    break;
                }
                Err(error) => reasons.push(format!("{url}: {error}")),
            }
        }
        let lists = if outcome.is_none() { pair.certificate.crl_urls() } else { Vec::new() };
        for url in lists {
            match self.ask_list(url, question).await {
                // If a certificate names several lists, any of them may revoke it.
                Ok(Status::Revoked) => outcome = Some(Status::Revoked),
                Ok(Status::Good) => outcome = outcome.or(Some(Status::Good)),
                Err(error) => reasons.push(format!("{url}: {error}")),
            }
        }
        let subject = pair.certificate.subject_text();
        match outcome {
            Some(Status::Good) => Ok(()),
            Some(Status::Revoked) => Err(Refusal::Revoked { subject }),
            None if reasons.is_empty() => {
                let reason = match pair.certificate.ocsp_urls().is_empty() {
                    true => "it names neither a list nor a responder",
                    // Responders were not asked.
                    false => {
                        "it names a responder and no list, and responders are asked with ocsp=true alone"
                    }
                };
                Err(self.no_answer(subject, reason.to_owned()))
            }
            None => Err(self.no_answer(subject, reasons.join("; "))),
        }
    }

    async fn ask_responder(&self, url: &str, asked: Question<'_>) -> Result<Status, UrlError> {
        let _place = self.requests.acquire().await;
        let answer = fetch(url, Some(ocsp_request(asked.pair))).await?;
        Ok(ocsp_status(&answer, asked.pair, asked.now, asked.check)?)
    }

    async fn ask_list(&self, url: &str, asked: Question<'_>) -> Result<Status, UrlError> {
        let list = match self.kept(url) {
            Some(list) => list,
            None => {
                let _place = self.requests.acquire().await;
                let list = Arc::new(fetch(url, None).await?);
                self.keep(url, list.clone());
                list
            }
        };
        Ok(crl_status(&as_der(&list), asked.pair, asked.now, asked.check)?)
    }

    fn kept(&self, url: &str) -> Option<Arc<Vec<u8>>> {
        let lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists.get(url).filter(|list| list.is_fresh()).map(|list| list.bytes.clone())
    }

    pub(super) fn keep(&self, url: &str, list: Arc<Vec<u8>>) {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists.retain(|_, list| list.is_fresh());
        let kept: usize = lists.values().map(|list| list.bytes.len()).sum();
        if kept + list.len() > KEPT_BYTES_MAX {
            lists.clear();
        }
        lists.insert(url.to_owned(), KeptList { since: Instant::now(), bytes: list });
    }
}

/// A list in PEM becomes DER.
pub(super) fn as_der(list: &[u8]) -> Cow<'_, [u8]> {
    if list.first() == Some(&0x30) {
        return Cow::Borrowed(list);
    }
    match CertificateRevocationListDer::from_pem_slice(list) {
        Ok(der) => Cow::Owned(der.as_ref().to_vec()),
        Err(_) => Cow::Borrowed(list),
    }
}
