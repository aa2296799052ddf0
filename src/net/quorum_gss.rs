//! Kerberos between servers: the exchanges of SASL, which run on threads that may wait. `auth::server_principal` says who is a server.

use super::gss::{Gss, GssError};
use super::gss_mechanism::{Initiating, Said, Service};
use super::resolve::canonical_name;
use super::step_places::StepPlaces;
use crate::auth::sasl::{Mechanism, Mechanisms as _, Refusal};
use crate::auth::server_principal::{MemberHosts, principal_of, realm_of_servers};
use crate::config::sasl::KerberosLogin;
use crate::member::quorum_sasl::{Acceptors, Answer, Exchange, Initiators};
use crate::member::sasl_exchange::Work;
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};

/// Steps of connections that other servers make, and of those that this server makes: a KDC that does not answer holds up the
/// second alone.
static ACCEPTING: StepPlaces = StepPlaces::new();
static DIALING: StepPlaces = StepPlaces::new();
const TOO_LONG: &str = "the step took more than 10 s; see whether the KDC and DNS answer";

/// One step of an exchange.
type Call<M> = fn(&mut M, &[u8]) -> Result<Answer, Refusal>;

/// A step that is under way, or was done and not taken.
struct UnderWay<M> {
    mechanism: Option<M>,
    token: Vec<u8>,
    answer: Option<Result<Answer, Refusal>>,
}

/// An exchange whose steps are work.
struct OffThread<M> {
    call: Call<M>,
    places: &'static StepPlaces,
    /// `None`: a step is under way, or has failed.
    idle: Option<M>,
    under_way: Option<Arc<Mutex<UnderWay<M>>>>,
}

impl<M: Send + 'static> Exchange for OffThread<M> {
    fn put(&mut self, token: Vec<u8>) -> Option<Work> {
        let step = UnderWay { mechanism: self.idle.take(), token, answer: None };
        let step = Arc::new(Mutex::new(step));
        self.under_way = Some(step.clone());
        let (call, places) = (self.call, self.places);
        Some(Work::new(move || {
            let mut step = step.lock().unwrap_or_else(PoisonError::into_inner);
            let token = std::mem::take(&mut step.token);
            if step.answer.is_some() {
                return;
            }
            let Some(mut mechanism) = step.mechanism.take() else {
                step.answer = Some(Err(Refusal::new("the exchange has ended already")));
                return;
            };
            let done = places.run(move || {
                let answer = call(&mut mechanism, &token);
                (mechanism, answer)
            });
            (step.mechanism, step.answer) = match done {
                Some((mechanism, answer)) => (Some(mechanism), Some(answer)),
                None => (None, Some(Err(Refusal::new(TOO_LONG)))),
            };
        }))
    }

    fn take(&mut self) -> Option<Result<Answer, Refusal>> {
        let under_way = self.under_way.take()?;
        let answer = match under_way.try_lock() {
            Ok(mut step) => {
                let answer = step.answer.take();
                if answer.is_some() {
                    self.idle = step.mechanism.take();
                }
                answer
            }
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => None,
        };
        if answer.is_none() {
            self.under_way = Some(under_way);
        }
        answer
    }
}

/// The hosts of the members.
#[derive(Default)]
struct Hosts {
    known: RwLock<KnownHosts>,
    /// Members are known by the names that name servers give for their addresses (`kerberos.canonicalizeHostNames`).
    canonicalizes: bool,
}

#[derive(Clone, Default)]
struct KnownHosts {
    /// By the `server.N` lines.
    named: Arc<MemberHosts>,
    /// The hosts whose principals are servers.
    counting: Arc<MemberHosts>,
}

impl Hosts {
    fn set(&self, hosts: MemberHosts) {
        let named = Arc::new(hosts);
        // Until they are looked up, no principal is a server's.
        let counting = if self.canonicalizes { Arc::default() } else { named.clone() };
        *self.known.write().unwrap_or_else(PoisonError::into_inner) =
            KnownHosts { named, counting };
    }

    fn get(&self) -> KnownHosts {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks the names up, if these are wanted. It may take seconds.
    fn look_up(&self) {
        if !self.canonicalizes {
            return;
        }
        let named = self.get().named;
        let canonical = Arc::new(named.renamed(canonical_name));
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // There may be another configuration meanwhile.
        if Arc::ptr_eq(&named, &known.named) {
            known.counting = canonical;
        }
    }
}

/// An exchange of a connection that another server makes.
struct Accepting {
    mechanism: Box<dyn Mechanism>,
    hosts: Arc<Hosts>,
}

/// Kerberos for connections that other servers make.
pub struct KerberosAcceptors {
    service: Service,
    hosts: Arc<Hosts>,
}

impl KerberosAcceptors {
    /// * `canonicalizes`: members are known by the names that name servers give for their addresses.
    ///
    /// # Errors
    /// When the library or the key is missing.
    pub fn new(login: &KerberosLogin, canonicalizes: bool) -> Result<Self, GssError> {
        let hosts = Arc::new(Hosts { canonicalizes, ..Hosts::default() });
        Ok(Self { service: Service::of(login, true)?, hosts })
    }
}

impl Acceptors for KerberosAcceptors {
    fn begin(&self) -> Box<dyn Exchange> {
        let call = |accepting: &mut Accepting, token: &[u8]| {
            let answer = Answer::from(accepting.mechanism.step(token)?);
            if answer.complete.is_some() {
                accepting.hosts.look_up();
            }
            Ok(answer)
        };
        let accepting = Accepting { mechanism: self.service.begin(), hosts: self.hosts.clone() };
        let (places, idle) = (&ACCEPTING, Some(accepting));
        Box::new(OffThread { call, places, idle, under_way: None })
    }

    fn set_hosts(&self, hosts: MemberHosts) {
        self.hosts.set(hosts);
    }

    fn hosts(&self) -> Option<Arc<MemberHosts>> {
        Some(self.hosts.get().counting)
    }
}

/// Kerberos for connections that this server makes.
pub struct KerberosInitiators {
    gss: &'static Gss,
    login: Arc<KerberosLogin>,
    /// `service/host`; the host `_HOST` stands for the server that is dialed.
    service_principal: String,
    realm: Option<String>,
    /// `_HOST` stands for the name that name servers give for the server's address.
    canonicalizes: bool,
}

/// An exchange whose other end is named in its first step, since name servers may have to be asked.
struct Dialing {
    begin: Option<Box<dyn FnOnce() -> Initiating + Send>>,
    begun: Option<Initiating>,
}

impl Dialing {
    fn step(&mut self, token: &[u8]) -> Result<Said, Refusal> {
        if let Some(begin) = self.begin.take() {
            self.begun = Some(begin());
        }
        let begun = self.begun.as_mut();
        begun.ok_or_else(|| Refusal::new("the exchange has not begun"))?.step(token)
    }
}

impl KerberosInitiators {
    /// * `realm`: of the servers; `None`: that of this server's own principal.
    ///
    /// # Errors
    /// When the library is missing, or the key tab has no key of the principal. No KDC is asked.
    pub fn new(
        login: &KerberosLogin,
        service_principal: &str,
        realm: Option<&str>,
        canonicalizes: bool,
    ) -> Result<Self, GssError> {
        let gss = super::gss::library()?;
        super::gss_mechanism::check_key_tab(gss, login)?;
        let realm = realm_of_servers(realm, login.principal.as_deref()).map(str::to_owned);
        let service_principal = service_principal.to_owned();
        Ok(Self { gss, login: Arc::new(login.clone()), service_principal, realm, canonicalizes })
    }
}

impl Initiators for KerberosInitiators {
    fn begin(&self, host: &str) -> Box<dyn Exchange> {
        let (gss, login, realm) = (self.gss, self.login.clone(), self.realm.clone());
        let (service_principal, canonicalizes) =
            (self.service_principal.clone(), self.canonicalizes);
        let host = host.to_owned();
        let begin = move || {
            let host = if canonicalizes { canonical_name(&host) } else { host };
            Initiating::new(gss, login, principal_of(&service_principal, &host, realm.as_deref()))
        };
        let call = |dialing: &mut Dialing, token: &[u8]| {
            let Said { token, is_complete } = dialing.step(token)?;
            Ok(Answer { token: Some(token), complete: is_complete.then(String::new) })
        };
        let (places, idle) =
            (&DIALING, Some(Dialing { begin: Some(Box::new(begin)), begun: None }));
        Box::new(OffThread { call, places, idle, under_way: None })
    }

    fn speaks_first(&self) -> bool {
        true
    }
}
