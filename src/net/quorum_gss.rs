//! Kerberos between servers: the exchanges of SASL that run on threads which may wait, and whom they let in.

use super::gss::{Gss, GssError};
use super::gss_mechanism::{Initiating, Said, Service};
use super::step_places::StepPlaces;
use crate::auth::principal::Principal;
use crate::auth::sasl::{Mechanism, Mechanisms as _, Refusal};
use crate::config::sasl::KerberosLogin;
use crate::member::opening::Work;
use crate::member::quorum_sasl::{Acceptors, Answer, Exchange, Initiators};
use std::collections::BTreeSet;
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
    judge: Option<Hosts>,
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
        let answer = answer?;
        Some(answer.and_then(|answer| match (&self.judge, &answer.complete) {
            (Some(hosts), Some(name)) => hosts.judge(name).map(|()| answer),
            _ => Ok(answer),
        }))
    }
}

/// The hosts of the members of all configurations that count.
#[derive(Clone, Debug, Default)]
struct Hosts(Arc<RwLock<BTreeSet<String>>>);

impl Hosts {
    fn set(&self, hosts: BTreeSet<String>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = hosts;
    }

    /// A server is `service/host@REALM`, and its host is a member's: a ticket for any other name proves nothing here
    /// (CVE-2023-44981).
    fn judge(&self, name: &str) -> Result<(), Refusal> {
        let host = Principal::parse(name).filter(|it| it.realm.is_some()).and_then(|it| it.host);
        let hosts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match host {
            Some(host) if hosts.contains(host) => Ok(()),
            Some(_) => Err(Refusal::new(format!("the host of {name:?} is no member's"))),
            None => Err(Refusal::new(format!("{name:?} is not of the form service/host@REALM"))),
        }
    }
}

/// Kerberos for connections that other servers make.
pub struct KerberosAcceptors {
    service: Service,
    hosts: Hosts,
}

impl KerberosAcceptors {
    /// # Errors
    /// When the library or the key is missing.
    pub fn new(login: &KerberosLogin) -> Result<Self, GssError> {
        Ok(Self { service: Service::of(login, true)?, hosts: Hosts::default() })
    }
}

impl Acceptors for KerberosAcceptors {
    fn begin(&self) -> Box<dyn Exchange> {
        let call = |mechanism: &mut Box<dyn Mechanism>, token: &[u8]| {
            mechanism.step(token).map(Answer::from)
        };
        let judge = Some(self.hosts.clone());
        let (places, idle) = (&ACCEPTING, Some(self.service.begin()));
        Box::new(OffThread { call, places, idle, under_way: None, judge })
    }

    fn set_hosts(&self, hosts: BTreeSet<String>) {
        self.hosts.set(hosts);
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
        let own = login.principal.as_deref().and_then(|own| own.rsplit_once('@'));
        let realm = realm.or(own.map(|(_, realm)| realm)).map(str::to_owned);
        let service_principal = service_principal.to_owned();
        Ok(Self { gss, login: Arc::new(login.clone()), service_principal, realm })
    }
}

/// The principal of a server that is dialed at `host`.
///
/// Source: `SecurityUtils.getServerPrincipal`, `SecurityUtils.createSaslClient`, ZooKeeper 3.9.5.
fn principal_of(service_principal: &str, host: &str, realm: Option<&str>) -> String {
    let host = host.to_lowercase();
    let name = match service_principal.split_once('/') {
        Some((service, "_HOST")) => format!("{service}/{host}"),
        _ => service_principal.to_owned(),
    };
    match realm {
        Some(realm) if !name.contains('@') => format!("{name}@{realm}"),
        _ => name,
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
        Box::new(OffThread { call, places, idle, under_way: None, judge: None })
    }

    fn speaks_first(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: Q-113 C-223
    #[test]
    fn host_of_the_service_principal_is_the_dialed_servers_in_lower_case() {
        for (service, realm, principal) in [
            ("zkquorum/_HOST", Some("R"), "zkquorum/zoo1.x@R"),
            ("zkquorum/zoo@Q", Some("R"), "zkquorum/zoo@Q"),
            ("zkquorum/localhost", Some("R"), "zkquorum/localhost@R"),
            ("zkquorum/_HOST", None, "zkquorum/zoo1.x"),
        ] {
            assert_eq!(principal_of(service, "Zoo1.X", realm), principal);
        }
    }

    /// CVE-2023-44981: a principal without a host was let in.
    // rows: Q-113
    #[test]
    fn principal_of_two_parts_or_of_another_host_is_no_server() {
        let hosts = Hosts::default();
        hosts.set(["zoo1".to_owned()].into());
        assert_eq!(hosts.judge("zkquorum/zoo1@R"), Ok(()));
        for name in ["zkquorum@R", "zoo1@R", "zkquorum/zoo2@R", "zkquorum/zoo1", "a/zoo1/b@R", ""] {
            assert!(hosts.judge(name).is_err(), "{name}");
        }
        hosts.set(["zoo2".to_owned()].into());
        assert!(hosts.judge("zkquorum/zoo1@R").is_err(), "it is a member no more");
    }
}
