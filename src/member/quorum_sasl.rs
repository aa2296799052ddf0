//! SASL between servers as a [`SaslExchange`] of both ports (ZooKeeper: `SaslQuorumAuthLearner`, `SaslQuorumAuthServer`): the server
//! that dials is the client of SASL.
//!
//! # Not here
//! The mechanisms (`auth::digest_md5`, and Kerberos in `net`), and which servers are dialed.

use super::auth_packet::{AuthPacket, AuthStatus};
use super::sasl_exchange::{ConnectionKind, SaslExchange, SaslExchanges, SaslProgress, Work};
use crate::auth::digest_md5::{self, Accounts, NONCE_BYTES};
use crate::auth::sasl::{Mechanism, Refusal, Step};
use crate::auth::server_principal::MemberHosts;
use crate::model::Secret;
use bytes::BytesMut;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Challenges of one exchange, at most; DIGEST-MD5 has one, and Kerberos three.
const CHALLENGES_MAX: usize = 5;

/// One end of an exchange of SASL.
pub trait Exchange: Send {
    /// Gives the peer's token. If there is work, it has to be done before the answer is there.
    fn put(&mut self, token: Vec<u8>) -> Option<Work>;

    /// The answer to the token; `None` while work is under way.
    fn take(&mut self) -> Option<Result<Answer, Refusal>>;
}

/// What one end of an exchange answers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    pub token: Option<Vec<u8>>,
    /// The exchange is complete at this end. For the accepting end it is the peer's name.
    pub complete: Option<String>,
}

/// Begins exchanges for connections that other servers make.
pub trait Acceptors: Send + Sync {
    fn begin(&self) -> Box<dyn Exchange>;

    /// The hosts of the members from now on.
    fn set_hosts(&self, _hosts: MemberHosts) {}

    /// A principal with one of these hosts is a server's; `None`: each user that the mechanism knows is a server.
    fn hosts(&self) -> Option<Arc<MemberHosts>> {
        None
    }
}

/// Begins exchanges for connections that this server makes.
pub trait Initiators: Send + Sync {
    /// * `host`: of the server that is dialed, as the configuration names it.
    fn begin(&self, host: &str) -> Box<dyn Exchange>;

    /// Whether the end that dials has a token before it has heard anything.
    fn speaks_first(&self) -> bool;
}

/// SASL for the connections of one server.
#[derive(Clone)]
pub struct QuorumSaslExchanges {
    pub acceptors: Arc<dyn Acceptors>,
    /// `None`: this server does not authenticate when it dials (`quorum.auth.learnerRequireSasl` is false).
    pub initiators: Option<Arc<dyn Initiators>>,
    /// `quorum.auth.serverRequireSasl`.
    pub is_required: bool,
}

impl fmt::Debug for QuorumSaslExchanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuorumSaslExchanges")
            .field("is_required", &self.is_required)
            .finish_non_exhaustive()
    }
}

impl SaslExchanges for QuorumSaslExchanges {
    fn accepted(&self, _kind: ConnectionKind, from: &str) -> Box<dyn SaslExchange> {
        Box::new(Accepting {
            exchange: self.acceptors.begin(),
            acceptors: self.acceptors.clone(),
            is_required: self.is_required,
            from: from.to_owned(),
            challenges: 0,
            has_heard: false,
            stage: Stage::Detecting,
        })
    }

    fn set_hosts(&self, hosts: BTreeSet<String>) {
        self.acceptors.set_hosts(MemberHosts::new(hosts));
    }

    fn dialed(&self, _kind: ConnectionKind, to: &[(String, u16)]) -> Box<dyn SaslExchange> {
        let host = to.first().map_or("", |(host, _)| host.as_str());
        Box::new(Dialing {
            exchange: self.initiators.as_ref().map(|initiators| initiators.begin(host)),
            has_first_token: self.initiators.as_ref().is_some_and(|all| all.speaks_first()),
            status: AuthStatus::InProgress,
            has_begun: false,
            is_asking: false,
            is_complete: false,
        })
    }
}

/// The end that accepts.
struct Accepting {
    exchange: Box<dyn Exchange>,
    acceptors: Arc<dyn Acceptors>,
    is_required: bool,
    from: String,
    /// How many were sent.
    challenges: usize,
    /// The peer has sent a byte.
    has_heard: bool,
    stage: Stage,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Stage {
    /// The first packet's magic says whether the peer authenticates.
    Detecting,
    AwaitingToken,
    /// The mechanism has the token.
    Asking,
}

impl SaslExchange for Accepting {
    fn step(&mut self, input: &mut BytesMut, output: &mut Vec<u8>) -> Result<SaslProgress, String> {
        self.has_heard |= !input.is_empty();
        loop {
            match self.stage {
                Stage::Detecting => match AuthPacket::is_ahead(input) {
                    None => return Ok(SaslProgress::NotYet),
                    Some(true) => self.stage = Stage::AwaitingToken,
                    Some(false) if self.is_required => {
                        return Err("it does not authenticate itself, as \
                            quorum.auth.serverRequireSasl asks: set quorum.auth.enableSasl and \
                            quorum.auth.learnerRequireSasl there"
                            .to_owned());
                    }
                    Some(false) => return Ok(SaslProgress::Done),
                },
                Stage::AwaitingToken => {
                    let packet = AuthPacket::take(input).map_err(|error| error.to_string())?;
                    let Some(packet) = packet else { return Ok(SaslProgress::NotYet) };
                    let Some(token) = packet.token else {
                        return self.refuse(&Refusal::new("a SASL packet without a token"), output);
                    };
                    self.stage = Stage::Asking;
                    if let Some(work) = self.exchange.put(token) {
                        return Ok(SaslProgress::Working(work));
                    }
                }
                Stage::Asking => match self.exchange.take() {
                    None => return Ok(SaslProgress::NotYet),
                    Some(Err(refusal)) => return self.refuse(&refusal, output),
                    Some(Ok(Answer { token, complete: Some(name) })) => {
                        // Asked now, since members may have changed since the exchange began.
                        let checked = self.acceptors.hosts().map(|hosts| hosts.check(&name));
                        if let Some(Err(refusal)) = checked {
                            return self.refuse(&refusal, output);
                        }
                        AuthPacket::put(AuthStatus::Success, token.as_deref(), output);
                        tracing::info!(peer = %self.from, %name, "the other server is authenticated");
                        return Ok(SaslProgress::Done);
                    }
                    Some(Ok(Answer { token, complete: None })) => {
                        self.challenge(token.as_deref(), output)?;
                    }
                },
            }
        }
    }

    fn accepts_silent_peer(&self) -> bool {
        !self.has_heard && !self.is_required
    }
}

impl Accepting {
    /// A peer that does not finish the exchange is disconnected, even if SASL is not required (unlike Java, Q-113b).
    fn challenge(&mut self, token: Option<&[u8]>, output: &mut Vec<u8>) -> Result<(), String> {
        if self.challenges == CHALLENGES_MAX {
            AuthPacket::put(AuthStatus::Error, token, output);
            return Err(format!("SASL was not done after {CHALLENGES_MAX} challenges"));
        }
        self.challenges += 1;
        AuthPacket::put(AuthStatus::InProgress, token, output);
        self.stage = Stage::AwaitingToken;
        Ok(())
    }

    /// As in ZooKeeper, a server that may connect without SASL may also stay connected after its
    /// SASL has failed. The server that dialed usually closes the connection itself.
    fn refuse(&self, refusal: &Refusal, output: &mut Vec<u8>) -> Result<SaslProgress, String> {
        AuthPacket::put(AuthStatus::Error, Some(&[]), output);
        if self.is_required {
            return Err(format!("SASL failed: {refusal}"));
        }
        tracing::warn!(
            target: crate::model::STRANGERS, peer = %self.from, reason = %refusal,
            "SASL of a server that dials failed; it is not required, so the connection stays: correct that server's \
             section QuorumLearner, then set quorum.auth.serverRequireSasl=true"
        );
        Ok(SaslProgress::Done)
    }
}

/// The end that dials.
struct Dialing {
    /// `None`: this server does not authenticate.
    exchange: Option<Box<dyn Exchange>>,
    has_first_token: bool,
    has_begun: bool,
    /// The mechanism has a token.
    is_asking: bool,
    /// The exchange is complete here; the other end has to say that it is complete there too.
    is_complete: bool,
    /// The status of the last packet.
    status: AuthStatus,
}

impl SaslExchange for Dialing {
    fn step(&mut self, input: &mut BytesMut, output: &mut Vec<u8>) -> Result<SaslProgress, String> {
        if self.exchange.is_none() {
            return Ok(SaslProgress::Done);
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            if !self.has_first_token {
                AuthPacket::put(AuthStatus::InProgress, Some(&[]), output);
            } else if let Some(work) = self.ask(Vec::new()) {
                return Ok(SaslProgress::Working(work));
            }
        }
        loop {
            if self.is_asking {
                let Some(answer) = self.exchange.as_mut().and_then(|all| all.take()) else {
                    return Ok(SaslProgress::NotYet);
                };
                self.is_asking = false;
                let answer = answer.map_err(|refusal| format!("SASL failed: {refusal}"))?;
                if self.take_answer(answer, output)? {
                    return Ok(SaslProgress::Done);
                }
            }
            let packet = AuthPacket::take(input).map_err(|error| {
                format!("{error}: is quorum.auth.enableSasl set at the server that is dialed?")
            })?;
            let Some(packet) = packet else { return Ok(SaslProgress::NotYet) };
            self.status = packet.status;
            match packet.status {
                AuthStatus::Error => {
                    return Err(
                        "the server that is dialed refused SASL: its log has the reason".to_owned()
                    );
                }
                AuthStatus::Success if self.is_complete => return Ok(SaslProgress::Done),
                AuthStatus::InProgress if self.is_complete => {
                    return Err("SASL goes on after its end".to_owned());
                }
                AuthStatus::Success | AuthStatus::InProgress => {
                    let token = packet.token.ok_or("a SASL packet without a token")?;
                    if let Some(work) = self.ask(token) {
                        return Ok(SaslProgress::Working(work));
                    }
                }
            }
        }
    }
}

impl Dialing {
    fn ask(&mut self, token: Vec<u8>) -> Option<Work> {
        self.is_asking = true;
        self.exchange.as_mut().and_then(|exchange| exchange.put(token))
    }

    /// Returns whether the exchange is complete at both ends.
    fn take_answer(&mut self, answer: Answer, output: &mut Vec<u8>) -> Result<bool, String> {
        self.is_complete = answer.complete.is_some();
        match (self.status, answer.token) {
            (AuthStatus::Success, None) if self.is_complete => Ok(true),
            (AuthStatus::Success, _) => {
                Err("the server that is dialed ended SASL too early".to_owned())
            }
            (_, token) => {
                AuthPacket::put(AuthStatus::InProgress, token.as_deref(), output);
                Ok(false)
            }
        }
    }
}

/// An exchange that needs no thread of its own.
struct AtOnce<F>(F, Option<Result<Answer, Refusal>>);

impl<F: FnMut(&[u8]) -> Result<Answer, Refusal> + Send> Exchange for AtOnce<F> {
    fn put(&mut self, token: Vec<u8>) -> Option<Work> {
        self.1 = Some((self.0)(&token));
        None
    }

    fn take(&mut self) -> Option<Result<Answer, Refusal>> {
        self.1.take()
    }
}

impl From<Step> for Answer {
    fn from(step: Step) -> Self {
        match step {
            Step::Challenge(token) => Self { token: Some(token), complete: None },
            Step::Done { token, authorization } => Self { token, complete: Some(authorization) },
        }
    }
}

/// Random bytes, different each time.
pub type Nonces = Arc<dyn Fn() -> [u8; NONCE_BYTES] + Send + Sync>;

/// DIGEST-MD5 at the accepting end: the users of the section for servers.
pub struct DigestAcceptors {
    pub accounts: Arc<Accounts>,
    pub nonces: Nonces,
}

impl Acceptors for DigestAcceptors {
    fn begin(&self) -> Box<dyn Exchange> {
        let mut server = digest_md5::Server::new(self.accounts.clone(), (self.nonces)());
        Box::new(AtOnce(move |token: &[u8]| server.step(token).map(Answer::from), None))
    }
}

/// DIGEST-MD5 at the dialing end: the user of the section for learners.
pub struct DigestInitiators {
    pub user: String,
    pub password: Arc<Secret>,
    pub nonces: Nonces,
}

impl Initiators for DigestInitiators {
    fn begin(&self, _host: &str) -> Box<dyn Exchange> {
        let (user, password) = (self.user.clone(), self.password.clone());
        let service = digest_md5::Service::QUORUM;
        let mut client = digest_md5::Client::new(service, user, password, (self.nonces)());
        Box::new(AtOnce(
            move |token: &[u8]| {
                let token = client.step(token)?;
                let complete = token.is_none().then(String::new);
                Ok(Answer { token, complete })
            },
            None,
        ))
    }

    fn speaks_first(&self) -> bool {
        false
    }
}
