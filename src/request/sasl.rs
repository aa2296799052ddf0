//! The SASL exchange of a client (P-60a, U-18): each token is answered before the next request is looked at.
//!
//! A step of a mechanism that may block is not run here: [`Connection::take_step`] hands it out, and the connection takes no
//! further request until it was run.

use super::auth_request::decode;
use super::connection::Phase;
use super::{Connection, Need, reply};
use crate::auth::sasl::{Mechanism, Refusal, Step};
use crate::model::sync::{Arc, Mutex};
use crate::model::{Code, SessionId};
use jute::Encode;
use jute::proto::{GetSaslRequest, ReplyHeader, SetSaslResponse};

/// How far the exchange is.
pub(super) enum Exchange {
    /// The mechanism is here, or has ended and refuses what else comes.
    Begun(Box<dyn Mechanism>),
    /// A step that may block is wanted, and is under way once it was taken.
    Stepping { xid: i32, step: Option<SaslStep>, place: StepPlace },
}

/// A step that may block, for a thread that may.
pub struct SaslStep {
    mechanism: Box<dyn Mechanism>,
    token: Vec<u8>,
    place: StepPlace,
}

impl SaslStep {
    /// Runs the step. The connection finds the outcome when it is woken.
    pub fn run(mut self) {
        let outcome = self.mechanism.step(&self.token);
        self.place.put(Some(self.mechanism), outcome);
    }

    /// Where the outcome goes, to end the step from outside.
    pub fn place(&self) -> StepPlace {
        self.place.clone()
    }
}

/// The place of a step's outcome.
#[derive(Clone, Default)]
pub struct StepPlace(Arc<Mutex<Option<Outcome>>>);

/// The mechanism, unless it was given up, and its answer.
type Outcome = (Option<Box<dyn Mechanism>>, Result<Step, Refusal>);

impl StepPlace {
    /// Refuses the client because its step takes too long. Nothing if the step has ended.
    pub fn give_up(&self, reason: &'static str) {
        self.put(None, Err(Refusal::new(reason)));
    }

    fn put(&self, mechanism: Option<Box<dyn Mechanism>>, outcome: Result<Step, Refusal>) {
        self.0.lock().get_or_insert((mechanism, outcome));
    }

    fn is_filled(&self) -> bool {
        self.0.lock().is_some()
    }

    fn take(&self) -> Option<Outcome> {
        self.0.lock().take()
    }
}

/// A mechanism whose step was given up.
struct GivenUp;

impl Mechanism for GivenUp {
    fn step(&mut self, _token: &[u8]) -> Result<Step, Refusal> {
        Err(Refusal::new("the exchange was given up"))
    }
}

impl Connection {
    /// Answers a sasl request, or begins a step that may block. Without a mechanism Java answers OK without a token, which
    /// clients take for the end of an exchange that proved nothing.
    ///
    /// Source: `ZooKeeperServer.processSasl`.
    pub(super) fn sasl(
        &mut self,
        session: SessionId,
        answer: ReplyHeader,
        body: &[u8],
    ) -> Result<(), Need> {
        let request: GetSaslRequest<'_> = decode(body)?;
        let Some(token) = request.token else {
            return Err(Need::Close("sasl request without a token".into()));
        };
        let mut mechanism =
            match (self.exchange.take().map(|exchange| *exchange), &self.shared.limits.sasl) {
                (Some(Exchange::Begun(mechanism)), _) => mechanism,
                (None, Some(mechanisms)) => mechanisms.begin(),
                (None, None) => {
                    put_token(&mut self.unsent, answer, None);
                    return Ok(());
                }
                (Some(Exchange::Stepping { .. }), _) => {
                    unreachable!("no request is taken meanwhile")
                }
            };
        if mechanism.blocks() {
            let place = StepPlace::default();
            let step = SaslStep { mechanism, token: token.to_vec(), place: place.clone() };
            let stepping = Exchange::Stepping { xid: answer.xid, step: Some(step), place };
            self.exchange = Some(Box::new(stepping));
            self.phase = Phase::Authenticating(session);
            return Ok(());
        }
        let outcome = mechanism.step(token);
        self.exchange = Some(Box::new(Exchange::Begun(mechanism)));
        self.answer_step(answer, outcome)
    }

    /// The step that a thread which may block has to run, once.
    pub fn take_step(&mut self) -> Option<SaslStep> {
        match self.exchange.as_deref_mut() {
            Some(Exchange::Stepping { step, .. }) => step.take(),
            _ => None,
        }
    }

    /// Whether a step that was under way has ended.
    pub(super) fn has_stepped(&self) -> bool {
        matches!(self.exchange.as_deref(), Some(Exchange::Stepping { place, .. }) if place.is_filled())
    }

    /// Answers the request whose step was under way. `false`: it still is.
    pub(super) fn finish_step(&mut self, session: SessionId) -> Result<bool, Need> {
        let Some(Exchange::Stepping { xid, place, .. }) = self.exchange.as_deref() else {
            unreachable!("a step is under way");
        };
        let Some((mechanism, outcome)) = place.take() else { return Ok(false) };
        let answer = reply::header(*xid, 0, Code::OK);
        self.exchange = Some(Box::new(Exchange::Begun(mechanism.unwrap_or(Box::new(GivenUp)))));
        self.phase = Phase::Open(session);
        self.answer_step(answer, outcome).map(|()| true)
    }

    fn answer_step(
        &mut self,
        answer: ReplyHeader,
        outcome: Result<Step, Refusal>,
    ) -> Result<(), Need> {
        let outcome = outcome.and_then(|step| match step {
            Step::Challenge(token) => Ok(Some(token)),
            Step::Done { token, authorization } => {
                let identities =
                    self.shared.limits.schemes.sasl_rules.identities(&authorization)?;
                let too_many = Refusal::new("the connection would have too many identities");
                if self.add(identities) { Ok(token) } else { Err(too_many) }
            }
        });
        let schemes = &self.shared.limits.schemes;
        let refusal = match outcome {
            Ok(token) => {
                put_token(&mut self.unsent, answer, token.as_deref());
                return Ok(());
            }
            Err(refusal) => refusal,
        };
        let (is_required, rules) = (schemes.requires_sasl(), &schemes.sasl_rules);
        if rules.allows_failed_clients && !is_required {
            tracing::warn!(
                target: crate::model::STRANGERS,
                peer = %self.conn.peer,
                reason = %refusal,
                "SASL authentication failed, and the client is served without an id \
                 (allowSaslFailedClients); check its name and password"
            );
            put_token(&mut self.unsent, answer, None);
            return Ok(());
        }
        let code = if is_required { Code::SESSION_CLOSED_REQUIRE_AUTH } else { Code::AUTH_FAILED };
        put_token(&mut self.unsent, ReplyHeader { err: code.0, ..answer }, None);
        Err(Need::Close(format!("SASL authentication failed: {refusal}")))
    }
}

/// A sasl answer has a body even if it is an error.
fn put_token(unsent: &mut super::Outgoing, answer: ReplyHeader, token: Option<&[u8]>) {
    reply::put_with_body(unsent, answer, |to| SetSaslResponse { token }.encode(to));
}
