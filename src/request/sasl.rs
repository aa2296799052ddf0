//! The SASL exchange of a client (P-60a, U-18): each token is answered before the next request is looked at.
//!
//! A step of a mechanism that may block is not run here: [`Connection::take_step`] hands it out, and the connection takes no
//! further request until it was run, or has taken too long ([`Connection::deadline_us`]).

use super::phase::Phase;
use super::sasl_exchange::{Exchange, GivenUp, Outcome, SaslStep, StepPlace};
use super::{Connection, Need, reply};
use crate::auth::sasl::{Refusal, Step};
use crate::model::{Code, SessionId};
use jute::proto::{GetSaslRequest, ReplyHeader, SetSaslResponse};
use jute::{Decode, Encode, Reader};

/// How long a client waits for a step, its wait for a thread included.
const STEP_MAX_US: u64 = 10_000_000;
const TOO_LONG: &str = "the step took more than 10 s; see whether the KDC and DNS answer";

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
            return Err(Need::Close("sasl request without a token; check that client".into()));
        };
        let mut mechanism =
            match (self.exchange.take().map(|exchange| *exchange), &self.shared.limits.sasl) {
                (Some(Exchange::Begun(mechanism)), _) => mechanism,
                (None, Some(mechanisms)) => mechanisms.begin(),
                (None, None) => {
                    put_token(&mut self.unsent, answer, None);
                    return Ok(());
                }
                (Some(Exchange::Asked { .. } | Exchange::Running { .. }), _) => {
                    unreachable!("no request is taken meanwhile")
                }
            };
        if mechanism.blocks() {
            let (xid, token) = (answer.xid, token.to_vec());
            self.exchange = Some(Box::new(Exchange::Asked { xid, mechanism, token }));
            self.phase = Phase::Authenticating(session);
            return Ok(());
        }
        let outcome = mechanism.step(token);
        self.exchange = Some(Box::new(Exchange::Begun(mechanism)));
        self.answer_step(answer, outcome)
    }

    /// The step that a thread which may block has to run, once. From now on it may take 10 s.
    pub fn take_step(&mut self, now_us: u64) -> Option<SaslStep> {
        if !matches!(self.exchange.as_deref(), Some(Exchange::Asked { .. })) {
            return None;
        }
        let Some(Exchange::Asked { xid, mechanism, token }) = self.exchange.take().map(|all| *all)
        else {
            unreachable!("it was looked at");
        };
        let (place, until_us) = (StepPlace::default(), now_us.saturating_add(STEP_MAX_US));
        let running = Exchange::Running { xid, place: place.clone(), until_us };
        self.exchange = Some(Box::new(running));
        Some(SaslStep { mechanism, token, place, until_us })
    }

    /// Monotonic microseconds at which the connection is to be advanced if nothing wakes it before: it then refuses a client whose
    /// step is still running. A client that does not take what it was sent is not refused meanwhile.
    pub fn deadline_us(&self) -> Option<u64> {
        match self.exchange.as_deref() {
            Some(Exchange::Running { until_us, .. }) if !self.is_full() => Some(*until_us),
            _ => None,
        }
    }

    /// Whether a step that was under way has ended, and its answer can be sent.
    pub(super) fn has_stepped(&self) -> bool {
        match self.exchange.as_deref() {
            Some(Exchange::Running { place, .. }) => place.is_filled() && !self.is_full(),
            _ => false,
        }
    }

    /// Answers the request whose step has ended, or has taken too long. `false`: the step is still running.
    pub(super) fn finish_step(&mut self, session: SessionId, now_us: u64) -> Result<bool, Need> {
        let (xid, place, until_us) = match self.exchange.as_deref() {
            Some(Exchange::Running { xid, place, until_us }) => (xid, place, until_us),
            Some(Exchange::Asked { .. }) => return Ok(false),
            Some(Exchange::Begun(_)) | None => unreachable!("a step is under way"),
        };
        let (mechanism, outcome): Outcome = match place.take() {
            Some(outcome) => outcome,
            None if now_us < *until_us => return Ok(false),
            None => (Box::new(GivenUp), Err(Refusal::new(TOO_LONG))),
        };
        let answer = reply::header(*xid, 0, Code::OK);
        self.exchange = Some(Box::new(Exchange::Begun(mechanism)));
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
        let refusal = refusal.to_string();
        let act = if refusal.contains("; ") { "" } else { ADVICE };
        Err(Need::Close(format!("SASL authentication failed: {refusal}{act}")))
    }
}

/// What to do about a refusal whose text does not say it.
const ADVICE: &str = "; correct the client's name and password, or its Kerberos ticket";

/// A sasl answer has a body even if it is an error.
fn put_token(unsent: &mut super::Outgoing, answer: ReplyHeader, token: Option<&[u8]>) {
    reply::put_with_body(unsent, answer, |to| SetSaslResponse { token }.encode(to));
}

/// The record of an authentication request.
pub(super) fn decode<'b, T: Decode<'b>>(body: &'b [u8]) -> Result<T, Need> {
    let fail =
        |error| Need::Close(format!("undecodable authentication: {error}; check that client"));
    Reader::new(body).read().map_err(fail)
}
