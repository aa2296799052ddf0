//! The server's half of an exchange.

use super::{Exchange, NONCE_BYTES, NONCE_COUNT, Service, directives, nonce_text};
use crate::auth::sasl::{Mechanism, Refusal, Step};
use crate::model::Secret;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Longest response; the JDK's limit.
const RESPONSE_BYTES_MAX: usize = 4096;

/// The users that may authenticate, with their passwords.
pub struct Accounts {
    service: Service,
    passwords: BTreeMap<String, Arc<Secret>>,
    /// A user whose authzid is another name is refused.
    own_names_alone: bool,
}

impl Accounts {
    /// The accounts of clients. Their authzid is ignored.
    ///
    /// * `super_password`: replaces the password of user `super`, if there is such a user (U-21).
    pub fn of_clients(
        users: &[(String, Arc<Secret>)],
        super_password: Option<&Arc<Secret>>,
    ) -> Self {
        let mut passwords: BTreeMap<_, _> = users.iter().cloned().collect();
        if let (Some(of_super), Some(password)) = (passwords.get_mut("super"), super_password) {
            *of_super = password.clone();
        }
        Self { service: Service::CLIENTS, passwords, own_names_alone: false }
    }

    /// The users of servers that dial this one.
    pub fn of_servers(users: &[(String, Arc<Secret>)]) -> Self {
        let passwords = users.iter().cloned().collect();
        Self { service: Service::QUORUM, passwords, own_names_alone: true }
    }
}

/// One exchange.
pub struct Server {
    accounts: Arc<Accounts>,
    nonce: String,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    Fresh,
    Challenged,
    /// One answer was taken, right or wrong.
    Ended,
}

impl Server {
    /// * `nonce`: random, for this exchange alone.
    pub fn new(accounts: Arc<Accounts>, nonce: [u8; NONCE_BYTES]) -> Self {
        Self { accounts, nonce: nonce_text(nonce), state: State::Fresh }
    }

    /// Source: `DigestMD5Server.generateChallenge`, JDK 17.
    fn challenge(&self) -> Vec<u8> {
        let (realm, nonce) = (self.accounts.service.server, &self.nonce);
        format!("realm=\"{realm}\",nonce=\"{nonce}\",charset=utf-8,algorithm=md5-sess").into_bytes()
    }

    fn judge(&self, token: &[u8]) -> Result<Step, Refusal> {
        let service = self.accounts.service;
        let Response { user, cnonce, uri, response, authzid } =
            Response::read(token, service, self.nonce.as_bytes())?;
        let Some(password) = self.accounts.passwords.get(&user) else {
            return Err(Refusal::new(format!("user {} is not known", shown(&user))));
        };
        let exchange = Exchange {
            user: &user,
            realm: service.server,
            nonce: self.nonce.as_bytes(),
            cnonce: &cnonce,
            uri: &uri,
            authzid: authzid.as_deref(),
        };
        if !exchange.response(password).matches(&response) {
            return Err(Refusal::new(format!("wrong password of user {}", shown(&user))));
        }
        let asks_for_other = authzid.as_deref().is_some_and(|id| text(id) != user);
        if self.accounts.own_names_alone && asks_for_other {
            return Err(Refusal::new(format!("user {} asks for another name", shown(&user))));
        }
        let mut token = b"rspauth=".to_vec();
        token.extend_from_slice(exchange.answer(password).reveal());
        Ok(Step::Done { token: Some(token), authorization: user })
    }
}

/// A client's response that fits the challenge; whether it proves the password is not judged yet.
struct Response {
    user: String,
    cnonce: Vec<u8>,
    /// As the client wrote it: its case counts in what is hashed.
    uri: String,
    response: Vec<u8>,
    authzid: Option<Vec<u8>>,
}

impl Response {
    /// Reads a response to the challenge that had `nonce`.
    ///
    /// Source: `DigestMD5Server.validateClientResponse`, JDK 17. Beyond the JDK, which looks for the count under a key that no
    /// client sends: `nc` has to be 1.
    fn read(token: &[u8], service: Service, own_nonce: &[u8]) -> Result<Self, Refusal> {
        const KEYS: [&str; 11] = [
            "username",
            "realm",
            "nonce",
            "cnonce",
            "nc",
            "qop",
            "digest-uri",
            "response",
            "maxbuf",
            "charset",
            "authzid",
        ];
        let [user, realm, nonce, cnonce, count, qop, uri, response, maxbuf, charset, authzid] =
            directives::parse(token, KEYS)?;
        if charset.is_some_and(|charset| charset != b"utf-8") {
            return Err(Refusal::new("the response's charset is not utf-8"));
        }
        if maxbuf.is_some_and(|len| text(&len).parse::<i32>().is_err()) {
            return Err(Refusal::new("the response's maxbuf is not a number"));
        }
        let user = text(&user.ok_or_else(|| missing("username"))?);
        if realm.unwrap_or_default() != service.server.as_bytes() {
            return Err(Refusal::new("the response is for another realm"));
        }
        if nonce.ok_or_else(|| missing("nonce"))? != own_nonce {
            return Err(Refusal::new("the response is to another nonce: replayed, or mixed up"));
        }
        let cnonce = cnonce.ok_or_else(|| missing("cnonce"))?;
        if count.is_some_and(|count| count != NONCE_COUNT.as_bytes()) {
            return Err(Refusal::new("the response is not the first to its nonce (nc)"));
        }
        if qop.is_some_and(|qop| qop != b"auth") {
            return Err(Refusal::new(
                "the response asks for a protection that is not offered (qop)",
            ));
        }
        let uri = text(&uri.ok_or_else(|| missing("digest-uri"))?);
        if !uri.eq_ignore_ascii_case(&service.uri()) {
            return Err(Refusal::new("the response is for another service (digest-uri)"));
        }
        let response = response.ok_or_else(|| missing("response"))?;
        Ok(Self { user, cnonce, uri, response, authzid })
    }
}

impl Mechanism for Server {
    fn step(&mut self, token: &[u8]) -> Result<Step, Refusal> {
        let state = std::mem::replace(&mut self.state, State::Ended);
        if token.len() > RESPONSE_BYTES_MAX {
            let reason =
                format!("a token of {} bytes; {RESPONSE_BYTES_MAX} is the most", token.len());
            return Err(Refusal::new(reason));
        }
        match state {
            // A client that comes with a response to an earlier nonce is challenged anew.
            State::Fresh => {
                self.state = State::Challenged;
                Ok(Step::Challenge(self.challenge()))
            }
            State::Challenged => self.judge(token),
            State::Ended => Err(Refusal::new("the exchange has ended already")),
        }
    }
}

fn missing(key: &str) -> Refusal {
    Refusal::new(format!("the response has no {key}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A user name for the log: quoted and cut at 64 characters, because the client chose it.
fn shown(user: &str) -> String {
    let cut: String = user.chars().take(64).collect();
    format!("{cut:?}")
}
