//! SASL as the server sees it: a mechanism takes the client's tokens one by one, and ends with an identity or a refusal.

use std::borrow::Cow;

/// What a mechanism answers to a token.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// The exchange goes on: the client has to answer this token.
    Challenge(Vec<u8>),
    /// The client is authenticated.
    Done {
        /// What the client is still sent, such as a proof that the server knows the password too.
        token: Option<Vec<u8>>,
        /// The name that was proved, before the rules of names: a user of DIGEST-MD5, a principal
        /// of Kerberos. The client's authzid never is.
        authorization: String,
    },
}

/// Why a client is not authenticated, for the log: never a secret or a token. The client does not learn the reason.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(Cow<'static, str>);

impl Refusal {
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Self(reason.into())
    }
}

/// The server's half of one exchange. It may end only once: a token after the end is refused.
pub trait Mechanism: Send {
    /// Takes the client's next token; the first one may be empty.
    ///
    /// # Errors
    /// [`Refusal`]; the exchange has ended, and every further token is refused too.
    fn step(&mut self, token: &[u8]) -> Result<Step, Refusal>;

    /// Whether [`Mechanism::step`] may wait for a disk or another machine, so that only a thread that may block calls it.
    fn blocks(&self) -> bool {
        false
    }
}

/// Begins exchanges: the mechanism that the settings name, with what it needs.
pub trait Mechanisms: std::fmt::Debug + Send + Sync {
    /// The server's half of a new exchange.
    fn begin(&self) -> Box<dyn Mechanism>;
}
