//! Kerberos as mechanism GSSAPI of SASL (RFC 4752), both ends. No protection of later bytes is offered or taken: TLS is for that.

use super::gss::{Context, Credential, Established, Gss, GssError, Name};
use crate::auth::sasl::{Mechanism, Mechanisms, Refusal, Step};
use crate::config::sasl::{KerberosLogin, KeyTab, TicketCache};
use std::path::Path;
use std::sync::Arc;

/// The offer of no protection, and of no buffer for it.
const NO_LAYER: [u8; 4] = [1, 0, 0, 0];

impl From<GssError> for Refusal {
    fn from(error: GssError) -> Self {
        Self::new(error.to_string())
    }
}

/// Keys of a service, from a section of the JAAS file.
#[derive(Clone)]
pub struct Service {
    gss: &'static Gss,
    login: Arc<KerberosLogin>,
    /// A client may ask only for its own name as its authorization id.
    own_names_alone: bool,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GSSAPI of {:?}", self.login.principal)
    }
}

impl Service {
    /// Loads the library, and looks whether the key tab has a key of the principal. No KDC is asked.
    ///
    /// # Errors
    /// When one of these fails: no client could ever authenticate.
    pub fn of(login: &KerberosLogin, own_names_alone: bool) -> Result<Self, GssError> {
        let gss = super::gss::library()?;
        let service = Self { gss, login: Arc::new(login.clone()), own_names_alone };
        service.credential().map(|_found| service)
    }

    /// The keys as they are now: a key tab may be replaced while the server runs.
    fn credential(&self) -> Result<Credential, GssError> {
        self.gss.acceptor(key_tab(&self.login), self.login.principal.as_deref())
    }
}

/// Whether the key tab of an end that dials has a key of its principal.
///
/// # Errors
/// When it has none, or can't be read.
pub fn check_key_tab(gss: &'static Gss, login: &KerberosLogin) -> Result<(), GssError> {
    if login.key_tab.is_none() {
        return Ok(()); // Tickets are read when they are needed.
    }
    gss.acceptor(key_tab(login), login.principal.as_deref()).map(drop)
}

fn key_tab(login: &KerberosLogin) -> Option<&Path> {
    match &login.key_tab {
        Some(KeyTab::File(path)) => Some(path),
        Some(KeyTab::Default) | None => None,
    }
}

impl Mechanisms for Service {
    fn begin(&self) -> Box<dyn Mechanism> {
        let context = Context::new(self.gss);
        Box::new(Accepting {
            service: self.clone(),
            context,
            peer: String::new(),
            stage: Stage::Tokens,
        })
    }
}

enum Stage {
    /// The library's tokens are exchanged.
    Tokens,
    /// The last token was sent; the client answers nothing to it.
    AwaitingNothing,
    /// Protection was offered.
    AwaitingChoice,
    Ended,
}

/// The server's half of one exchange.
struct Accepting {
    service: Service,
    context: Context,
    peer: String,
    stage: Stage,
}

impl Mechanism for Accepting {
    fn step(&mut self, token: &[u8]) -> Result<Step, Refusal> {
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Tokens => self.accept(token),
            Stage::AwaitingNothing if token.is_empty() => self.offer(),
            Stage::AwaitingNothing => Err(Refusal::new("a token where none was expected")),
            Stage::AwaitingChoice => self.judge(token),
            Stage::Ended => Err(Refusal::new("the exchange has ended already")),
        }
    }

    fn blocks(&self) -> bool {
        true
    }
}

impl Accepting {
    fn accept(&mut self, token: &[u8]) -> Result<Step, Refusal> {
        let credential = self.service.credential()?;
        let Established { token, peer } = self.context.accept(&credential, token)?;
        match peer {
            None => self.stage = Stage::Tokens,
            Some(peer) if token.is_empty() => {
                self.peer = peer;
                return self.offer();
            }
            Some(peer) => (self.peer, self.stage) = (peer, Stage::AwaitingNothing),
        }
        Ok(Step::Challenge(token))
    }

    fn offer(&mut self) -> Result<Step, Refusal> {
        self.stage = Stage::AwaitingChoice;
        Ok(Step::Challenge(self.context.wrap(&NO_LAYER)?))
    }

    fn judge(&mut self, token: &[u8]) -> Result<Step, Refusal> {
        let choice = self.context.unwrap(token)?;
        check_name(&self.peer)?;
        let Some((layer, wish)) = choice.split_first_chunk::<4>() else {
            return Err(Refusal::new("the choice of a protection is too short"));
        };
        if layer[0] != NO_LAYER[0] {
            return Err(Refusal::new("a protection is asked for that was not offered"));
        }
        if self.service.own_names_alone && !wish.is_empty() && wish != self.peer.as_bytes() {
            return Err(Refusal::new(format!(
                "\"{}\" asks for another name",
                self.peer.escape_debug()
            )));
        }
        Ok(Step::Done { token: None, authorization: self.peer.clone() })
    }
}

/// Whether the exchange is complete at the end that dials, and what it says.
pub struct Said {
    pub token: Vec<u8>,
    pub is_complete: bool,
}

/// The half of one exchange that dials.
pub struct Initiating {
    gss: &'static Gss,
    login: Arc<KerberosLogin>,
    /// The principal of the server that is dialed.
    to: String,
    context: Context,
    /// This end's credential and the other end's name, while tokens are exchanged.
    with: Option<(Credential, Name)>,
    stage: Stage,
}

impl Initiating {
    /// * `to`: `service/host@REALM`.
    pub const fn new(gss: &'static Gss, login: Arc<KerberosLogin>, to: String) -> Self {
        Self { gss, login, to, context: Context::new(gss), with: None, stage: Stage::Tokens }
    }

    /// Takes the server's next token; at first an empty one.
    ///
    /// # Errors
    /// [`Refusal`]; the exchange has ended.
    pub fn step(&mut self, token: &[u8]) -> Result<Said, Refusal> {
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Tokens => self.tokens(token),
            Stage::AwaitingNothing | Stage::AwaitingChoice => self.choose(token),
            Stage::Ended => Err(Refusal::new("the exchange has ended already")),
        }
    }

    fn tokens(&mut self, token: &[u8]) -> Result<Said, Refusal> {
        if self.with.is_none() {
            // The library asks the KDC again when a ticket has ended.
            let key_tab = key_tab(&self.login);
            let credential =
                self.gss.initiator(key_tab, cache(&self.login), self.login.principal.as_deref())?;
            self.with = Some((credential, self.gss.name(&self.to)?));
        }
        let Some((credential, to)) = &self.with else { return Err(Refusal::new("no ticket")) };
        let Established { token, peer } = self.context.initiate(credential, to, token)?;
        self.stage = if peer.is_some() { Stage::AwaitingChoice } else { Stage::Tokens };
        Ok(Said { token, is_complete: false })
    }

    fn choose(&mut self, token: &[u8]) -> Result<Said, Refusal> {
        let offer = self.context.unwrap(token)?;
        if offer.len() != NO_LAYER.len() || offer[0] & NO_LAYER[0] == 0 {
            return Err(Refusal::new("the server insists on a protection that is not supported"));
        }
        Ok(Said { token: self.context.wrap(&NO_LAYER)?, is_complete: true })
    }
}

/// Where tickets are kept: those of a key tab in memory.
fn cache(login: &KerberosLogin) -> Option<String> {
    match (&login.key_tab, &login.ticket_cache) {
        (_, Some(TicketCache::File(path))) => Some(format!("FILE:{}", path.display())),
        (None, _) => None,
        (Some(_), _) => Some("MEMORY:oxkeeper".to_owned()),
    }
}

/// The library writes a `/`, `@` or `\` inside a part of a name with a `\` before it. Taken as any other text it would divide
/// parts, and the name would be another's.
fn check_name(name: &str) -> Result<(), Refusal> {
    if name.contains('\\') {
        return Err(Refusal::new(format!(
            "the name \"{}\" has a part with a special character",
            name.escape_debug()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: U-19
    #[test]
    fn principals_with_special_characters_are_refused() {
        assert_eq!(check_name("zk/host.example@R"), Ok(()));
        for name in ["zk\\/host@R", "zk\\@R@S", "a\\\\b@R", "zk\\nhost@R"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
