//! The SASL exchange of a client (P-60a, U-18): each token is answered before the next request is looked at.
//!
//! A step of a mechanism that may block is not run here: [`Connection::take_step`] hands it out, and the connection takes no
//! further request until it was run.

use super::phase::Phase;
use super::sasl_exchange::{Exchange, GivenUp, SaslStep, StepPlace};
use super::{Connection, Need, reply};
use crate::auth::sasl::{Refusal, Step};
use crate::model::{Code, SessionId};
use jute::proto::{GetSaslRequest, ReplyHeader, SetSaslResponse};
use jute::{Decode, Encode, Reader};

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

    /// Answers the request whose step has ended. `false`: the step is still running.
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

/// The record of an authentication request.
pub(super) fn decode<'b, T: Decode<'b>>(body: &'b [u8]) -> Result<T, Need> {
    let fail = |error| Need::Close(format!("undecodable authentication: {error}"));
    Reader::new(body).read().map_err(fail)
}
