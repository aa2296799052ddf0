//! Reads the stores and password files of an engine once a second, and loads them again if they have changed.

use super::engine::{Engine, Stores};
use super::stores::read_store;
use crate::auth::x509::{Certificate, time_text};
use crate::config::tls::{StorePassword, StoreSettings};
use crate::model::chain;
use sha2::{Digest as _, Sha256};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::spawn_blocking;

const EVERY: Duration = Duration::from_secs(1);
const DAY_S: i64 = 24 * 3600;

/// A digest of the files' bytes.
type Content = [u8; 32];

/// The stores of an engine, as they were last seen.
pub struct Watch {
    engine: Arc<Engine>,
    files: Vec<PathBuf>,
    /// Whether changed stores are loaded. If not, only the end of the certificates is watched.
    takes: bool,
    /// What was tried last, taken or not.
    seen: Content,
    /// Content that could not be used at the last look. A file may be half written, so the fault is
    /// logged only if the same content is still there a second later.
    faulty: Option<Content>,
    end: Option<CertificateEnd>,
}

/// The certificate of this server's chain that ends first.
#[derive(Clone, Debug, Eq, PartialEq)]
struct CertificateEnd {
    subject: String,
    /// Seconds since 1970.
    at_s: i64,
    /// The last warning's.
    warned: Option<i64>,
}

impl Watch {
    /// * `stores`: what the engine was made of. `takes`: changed stores are taken.
    pub fn new(engine: Arc<Engine>, stores: &Stores, takes: bool) -> Self {
        let settings = engine.settings();
        let stores_named = [&settings.key_store, &settings.trust_store].into_iter().flatten();
        let files: Vec<PathBuf> = stores_named.flat_map(files_of).collect();
        let seen = content(&files);
        Self { engine, files, takes, seen, faulty: None, end: end_of(stores) }
    }

    /// Watches for ever.
    pub async fn run(mut self) {
        let mut timer = tokio::time::interval(EVERY);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            timer.tick().await;
            let looked = spawn_blocking(move || {
                self.look(now_s());
                self
            });
            match looked.await {
                Ok(watch) => self = watch,
                Err(_) => return, // The server ends.
            }
        }
    }

    /// One look at the files and at the certificate's end.
    fn look(&mut self, now_s: i64) {
        if self.takes {
            let content = content(&self.files);
            if content != self.seen {
                self.take(content, now_s);
            }
        }
        let path = self.files.first().map(|path| path.display().to_string()).unwrap_or_default();
        let prefix = self.engine.settings().prefix;
        let Some(end) = &mut self.end else { return };
        let stage = stage((end.at_s - now_s).div_euclid(DAY_S));
        if stage.is_some() && stage != end.warned {
            let (subject, ends) = (&end.subject, time_text(end.at_s));
            if end.at_s < now_s {
                tracing::error!(
                    %path,
                    %subject,
                    %ends,
                    "the certificate of {prefix}keyStore.location, or one of its chain, has expired, so peers refuse this server: renew it"
                );
            } else {
                tracing::warn!(
                    %path,
                    %subject,
                    %ends,
                    "the certificate of {prefix}keyStore.location, or one of its chain, expires soon: renew it"
                );
            }
        }
        end.warned = stage;
    }

    fn take(&mut self, content: Content, now_s: i64) {
        let old = self.end.as_ref();
        match self.engine.reload(|stores| may_replace(old, end_of(stores).as_ref(), now_s)) {
            Ok(stores) => {
                let end = end_of(&stores);
                tracing::info!(
                    alias = %stores.keys.alias,
                    subject = end.as_ref().map(|end| display(&end.subject)),
                    ends = end.as_ref().map(|end| display(time_text(end.at_s))),
                    "stores of {}* loaded again: new connections use them",
                    self.engine.settings().prefix
                );
                (self.seen, self.faulty, self.end) = (content, None, end);
            }
            Err(_) if self.faulty != Some(content) => self.faulty = Some(content),
            Err(error) => {
                tracing::error!(
                    paths = %listed(&self.files),
                    error = %chain(&error),
                    "changed stores of {}* can't be used, and the old ones stay in force: correct them",
                    self.engine.settings().prefix
                );
                (self.seen, self.faulty) = (content, None);
            }
        }
    }
}

/// An expired certificate does not replace one that has not expired.
fn may_replace(
    old: Option<&CertificateEnd>,
    new: Option<&CertificateEnd>,
    now_s: i64,
) -> Result<(), String> {
    match (old, new) {
        (Some(old), Some(new)) if new.at_s < now_s && now_s <= old.at_s => {
            Err(format!("the certificate of {} expired on {}", new.subject, time_text(new.at_s)))
        }
        _ => Ok(()),
    }
}

/// The stage of the warning for the days that are left: one from 30 days on, one from 7 days on,
/// and one for each day from the last day on.
const fn stage(days: i64) -> Option<i64> {
    match days {
        31.. => None,
        8..=30 => Some(30),
        2..=7 => Some(7),
        days => Some(days),
    }
}

fn files_of(store: &StoreSettings) -> Vec<PathBuf> {
    let password = match &store.password {
        StorePassword::File(path) => Some(path.clone()),
        StorePassword::None | StorePassword::Given(_) => None,
    };
    std::iter::once(store.path.clone()).chain(password).collect()
}

/// The files for log lines.
fn listed(files: &[PathBuf]) -> String {
    let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    files.join(", ")
}

/// A digest of all files. A file that can't be read differs from all that can, and by the reason from others.
fn content(files: &[PathBuf]) -> Content {
    let mut digest = Sha256::new();
    let mut add = |is_read: bool, bytes: &[u8]| {
        digest.update([u8::from(is_read)]);
        digest.update((bytes.len() as u64).to_be_bytes());
        digest.update(bytes);
    };
    for path in files {
        match read_store(path) {
            Ok(bytes) => add(true, &bytes),
            Err(fault) => add(false, fault.to_string().as_bytes()),
        }
    }
    digest.finalize().into()
}

fn end_of(stores: &Stores) -> Option<CertificateEnd> {
    let ends = stores.keys.chain.iter().filter_map(|der| {
        let certificate = Certificate::parse(der)?;
        let subject = certificate.subject_text();
        Some(CertificateEnd { subject, at_s: certificate.not_after, warned: None })
    });
    ends.min_by_key(|end| end.at_s)
}

fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::tls::EngineRole;
    use crate::net::tls::test_certificates::{Authority, settings};

    #[test]
    fn warnings_come_within_30_7_and_1_days_and_daily_after_that() {
        let mut last = None;
        let mut warned = Vec::new();
        for days in (-3..40).rev() {
            let now = stage(days);
            if now.is_some() && now != last {
                warned.push(days);
            }
            last = now;
        }
        assert_eq!(warned, [30, 7, 1, 0, -1, -2, -3]);
    }

    #[test]
    fn expired_certificate_does_not_replace_one_that_has_not_expired() {
        let end = |at_s| CertificateEnd { subject: "CN=a".to_owned(), at_s, warned: None };
        let (sound, ended) = (end(100), end(10));
        assert_eq!(
            may_replace(Some(&sound), Some(&ended), 50),
            Err("the certificate of CN=a expired on 1970-01-01T00:00:10Z".to_owned())
        );
        assert_eq!(may_replace(Some(&sound), Some(&ended), 10), Ok(()));
        assert_eq!(may_replace(Some(&ended), Some(&ended), 50), Ok(()), "nothing is lost by that");
        assert_eq!(may_replace(Some(&sound), None, 50), Ok(()));
    }

    // rows: C-40 C-119
    #[test]
    fn store_that_is_too_long_or_a_pipe_is_refused_and_a_good_one_is_taken_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path(), "ca");
        let (old, new) = (authority.issue("old, of a firm"), authority.issue("new"));
        let path = folder.path().join("store.pem");
        std::fs::copy(old, &path).unwrap();
        let (engine, stores) =
            Engine::new(settings(&path, &authority.trust), EngineRole::Peer).unwrap();
        let mut watch = Watch::new(Arc::new(engine), &stores, true);
        let subject = |watch: &Watch| watch.end.as_ref().unwrap().subject.clone();
        let refuse = |watch: &mut Watch| {
            watch.look(0);
            assert!(watch.faulty.is_some(), "it is reported if it stays so");
            watch.look(0);
            assert!(watch.faulty.is_none(), "it was reported");
            assert_eq!(subject(watch), r"CN=old\, of a firm", "as other log lines print it");
        };
        std::fs::File::create(&path).unwrap().set_len(17 << 20).unwrap();
        refuse(&mut watch);
        std::fs::remove_file(&path).unwrap();
        // Nothing is written to the pipe.
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        refuse(&mut watch);
        std::fs::remove_file(&path).unwrap();
        std::fs::copy(new, &path).unwrap();
        watch.look(0);
        assert_eq!(subject(&watch), "CN=new");
    }

    /// The subject of the watched chain shows which certificate new connections get.
    // rows: C-40 C-119
    #[test]
    fn changed_stores_are_taken_once_key_and_certificate_fit() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path(), "ca");
        let (old, new) = (authority.issue("old"), authority.issue("new"));
        let other = authority.issue("other");
        // As Kubernetes does: a symbolic link to a folder of files, which is replaced.
        let link = folder.path().join("store.pem");
        std::os::unix::fs::symlink(&old, &link).unwrap();
        let (engine, stores) =
            Engine::new(settings(&link, &authority.trust), EngineRole::Peer).unwrap();
        let engine = Arc::new(engine);
        let mut watch = Watch::new(engine.clone(), &stores, true);
        let subject = |watch: &Watch| watch.end.as_ref().unwrap().subject.clone();
        watch.look(0);
        assert_eq!(subject(&watch), "CN=old");
        let swap = folder.path().join("swap");
        std::os::unix::fs::symlink(&new, &swap).unwrap();
        std::fs::rename(&swap, &link).unwrap();
        watch.look(0);
        assert_eq!(subject(&watch), "CN=new");
        // In place, half written: a certificate without its key.
        let whole = std::fs::read_to_string(&other).unwrap();
        let (half, _) = whole.split_once("-----BEGIN PRIVATE KEY").unwrap();
        std::fs::write(&new, half).unwrap();
        watch.look(0);
        assert!(watch.faulty.is_some(), "it is reported if it stays so");
        watch.look(0);
        assert!(watch.faulty.is_none(), "it was reported");
        assert_eq!(subject(&watch), "CN=new");
        std::fs::write(&new, &whole).unwrap();
        watch.look(0);
        assert_eq!(subject(&watch), "CN=other");
        // A key of another certificate.
        let (_, key) = std::fs::read_to_string(&old)
            .map(|text| {
                let (certificate, key) = text.split_once("-----BEGIN PRIVATE KEY").unwrap();
                (certificate.to_owned(), key.to_owned())
            })
            .unwrap();
        let (certificate, _) = whole.split_once("-----BEGIN PRIVATE KEY").unwrap();
        std::fs::write(&new, format!("{certificate}-----BEGIN PRIVATE KEY{key}")).unwrap();
        watch.look(0);
        watch.look(0);
        assert_eq!(subject(&watch), "CN=other");

        let mut still = Watch::new(engine, &stores, false);
        std::fs::write(&new, std::fs::read(&old).unwrap()).unwrap();
        still.look(0);
        assert_eq!(subject(&still), "CN=old", "what it was made with: nothing was taken");
    }
}
