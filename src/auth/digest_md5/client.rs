//! The client's half of an exchange; between servers that is the server that dials.

use super::{Exchange, NONCE_BYTES, NONCE_COUNT, Service, directives, nonce_text};
use crate::auth::sasl::Refusal;
use crate::model::Secret;
use std::sync::Arc;

/// Longest challenge; the JDK's limit.
const CHALLENGE_BYTES_MAX: usize = 2048;

/// One exchange. The server sends the first token (the challenge). Where the client has to send one
/// first, that one is empty.
pub struct Client {
    service: Service,
    user: String,
    password: Arc<Secret>,
    cnonce: String,
    state: State,
}

enum State {
    Fresh,
    /// The response was made; this is what a server that knows the password answers.
    Responded(Secret),
    Ended,
}

impl Client {
    /// * `cnonce`: random, for this exchange alone.
    pub fn new(
        service: Service,
        user: String,
        password: Arc<Secret>,
        cnonce: [u8; NONCE_BYTES],
    ) -> Self {
        Self { service, user, password, cnonce: nonce_text(cnonce), state: State::Fresh }
    }

    /// Takes the server's next token, and returns what to answer; `None`: the server knows the password too, and the exchange
    /// is complete.
    ///
    /// # Errors
    /// [`Refusal`]; the exchange has ended.
    ///
    /// Source: `DigestMD5Client`, JDK 17.
    pub fn step(&mut self, challenge: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
        let state = std::mem::replace(&mut self.state, State::Ended);
        if challenge.len() > CHALLENGE_BYTES_MAX {
            let len = challenge.len();
            let reason = format!("a challenge of {len} bytes; {CHALLENGE_BYTES_MAX} is the most");
            return Err(Refusal::new(reason));
        }
        match state {
            State::Fresh => self.respond(challenge).map(Some),
            State::Responded(expected) => {
                let [answer] = directives::parse(challenge, ["rspauth"])?;
                if answer.is_some_and(|answer| expected.matches(&answer)) {
                    return Ok(None);
                }
                Err(Refusal::new("the server has not shown that it knows the password"))
            }
            State::Ended => Err(Refusal::new("the exchange has ended already")),
        }
    }

    fn respond(&mut self, challenge: &[u8]) -> Result<Vec<u8>, Refusal> {
        const KEYS: [&str; 6] = ["realm", "qop", "algorithm", "nonce", "maxbuf", "charset"];
        let [realm, qop, algorithm, nonce, maxbuf, charset] = directives::parse(challenge, KEYS)?;
        let is_utf_8 = charset.is_some();
        if charset.is_some_and(|charset| charset != b"utf-8") {
            return Err(Refusal::new("the challenge's charset is not utf-8"));
        }
        if algorithm.as_deref() != Some(b"md5-sess") {
            return Err(Refusal::new("the challenge's algorithm is not md5-sess"));
        }
        let nonce = nonce.ok_or_else(|| Refusal::new("the challenge has no nonce"))?;
        if maxbuf.is_some_and(|len| String::from_utf8_lossy(&len).parse::<i32>().is_err()) {
            return Err(Refusal::new("the challenge's maxbuf is not a number"));
        }
        let offers = |offered: Vec<u8>| {
            let mut offers = offered.split(|byte| matches!(byte, b',' | b' ' | b'\t' | b'\n'));
            offers.any(|offer| offer == b"auth")
        };
        if !qop.is_none_or(offers) {
            return Err(Refusal::new("the challenge does not offer qop=auth"));
        }
        let realm = realm.map(|realm| decode(&realm, is_utf_8)).unwrap_or_default();
        let uri = self.service.uri();
        let exchange = Exchange {
            user: &self.user,
            realm: &realm,
            nonce: &nonce,
            cnonce: self.cnonce.as_bytes(),
            uri: &uri,
            authzid: Some(self.user.as_bytes()),
        };
        let mut token = Vec::new();
        if is_utf_8 {
            token.extend_from_slice(b"charset=utf-8,");
        }
        token.extend_from_slice(b"username=");
        directives::put_quoted(&encode(&self.user, is_utf_8), &mut token);
        if !realm.is_empty() {
            token.extend_from_slice(b",realm=");
            directives::put_quoted(&encode(&realm, is_utf_8), &mut token);
        }
        token.extend_from_slice(b",nonce=");
        directives::put_quoted(&nonce, &mut token);
        token.extend_from_slice(format!(",nc={NONCE_COUNT},cnonce=").as_bytes());
        directives::put_quoted(self.cnonce.as_bytes(), &mut token);
        token.extend_from_slice(format!(",digest-uri=\"{uri}\",maxbuf=65536,response=").as_bytes());
        token.extend_from_slice(exchange.response(&self.password).reveal());
        token.extend_from_slice(b",qop=auth,authzid=");
        directives::put_quoted(self.user.as_bytes(), &mut token);
        self.state = State::Responded(exchange.answer(&self.password));
        Ok(token)
    }
}

fn decode(bytes: &[u8], is_utf_8: bool) -> String {
    if is_utf_8 {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    bytes.iter().copied().map(char::from).collect()
}

/// Characters that Latin-1 lacks become question marks, as in Java.
fn encode(text: &str, is_utf_8: bool) -> Vec<u8> {
    if is_utf_8 {
        return text.as_bytes().to_vec();
    }
    text.chars().map(|letter| u8::try_from(letter).unwrap_or(b'?')).collect()
}
