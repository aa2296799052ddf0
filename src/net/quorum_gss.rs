//! Kerberos between servers: the exchanges of SASL, which run on threads that may wait. `auth::server_principal` says who is a server.

use super::gss::{Gss, GssError};
use super::gss_mechanism::{Initiating, Said, Service};
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

/// Kerberos for connections that other servers make.
pub struct KerberosAcceptors {
    service: Service,
    hosts: RwLock<Arc<MemberHosts>>,
}

impl KerberosAcceptors {
    /// # Errors
    /// When the library or the key is missing.
    pub fn new(login: &KerberosLogin) -> Result<Self, GssError> {
        Ok(Self { service: Service::of(login, true)?, hosts: RwLock::default() })
    }
}

impl Acceptors for KerberosAcceptors {
    fn begin(&self) -> Box<dyn Exchange> {
        let call = |mechanism: &mut Box<dyn Mechanism>, token: &[u8]| {
            mechanism.step(token).map(Answer::from)
        };
        let (places, idle) = (&ACCEPTING, Some(self.service.begin()));
        Box::new(OffThread { call, places, idle, under_way: None })
    }

    fn set_hosts(&self, hosts: MemberHosts) {
        *self.hosts.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(hosts);
    }

    fn hosts(&self) -> Option<Arc<MemberHosts>> {
        Some(self.hosts.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// Kerberos for connections that this server makes.
pub struct KerberosInitiators {
    gss: &'static Gss,
    login: Arc<KerberosLogin>,
    /// `service/host`; the host `_HOST` stands for the server that is dialed.
    service_principal: String,
    realm: Option<String>,
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
    ) -> Result<Self, GssError> {
        let gss = super::gss::library()?;
        super::gss_mechanism::check_key_tab(gss, login)?;
        let realm = realm_of_servers(realm, login.principal.as_deref()).map(str::to_owned);
        let service_principal = service_principal.to_owned();
        Ok(Self { gss, login: Arc::new(login.clone()), service_principal, realm })
    }
}

impl Initiators for KerberosInitiators {
    fn begin(&self, host: &str) -> Box<dyn Exchange> {
        let to = principal_of(&self.service_principal, host, self.realm.as_deref());
        let call = |initiating: &mut Initiating, token: &[u8]| {
            let Said { token, is_complete } = initiating.step(token)?;
            Ok(Answer { token: Some(token), complete: is_complete.then(String::new) })
        };
        let initiating = Initiating::new(self.gss, self.login.clone(), to);
        let (places, idle) = (&DIALING, Some(initiating));
        Box::new(OffThread { call, places, idle, under_way: None })
    }

    fn speaks_first(&self) -> bool {
        true
    }
}
