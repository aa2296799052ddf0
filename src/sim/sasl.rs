//! Worlds whose servers require SASL: each client authenticates by DIGEST-MD5 on every connection, before anything else, and has a
//! certificate besides.

use super::network::EndId;
use super::plan::Climate;
use super::world::World;
use crate::auth::Schemes;
use crate::auth::digest_md5::{Accounts, Client, NONCE_BYTES, Offer, Service};
use crate::model::sync::Mutex;
use crate::model::{Identity, Rng, Secret, op};
use crate::request::Limits;
use jute::proto::{GetSaslRequest, ReplyHeader, RequestHeader, SetSaslResponse};
use jute::{DecodeError, Encode, Reader, put_frame};
use std::sync::Arc;

/// What the xid of a sasl request is.
const XID: i32 = -102;
const USER: &str = "client";

fn password() -> Arc<Secret> {
    Arc::new(Secret::new(b"password".to_vec()))
}

fn nonce(rng: &mut Rng) -> [u8; NONCE_BYTES] {
    std::array::from_fn(|_| rng.range(0, 255) as u8)
}

/// The settings of a server that requires SASL.
pub fn require(limits: &mut Limits, seed: u64) {
    let required = vec!["sasl".to_owned()];
    limits.schemes = Schemes { required, sasl: true, x509: true, ..Schemes::default() };
    let accounts = Accounts::of_clients(&[(USER.to_owned(), password())], None);
    let nonces = Mutex::new(Rng::new(seed, 7));
    limits.sasl = Some(Arc::new(Offer::new(accounts, move || nonce(&mut nonces.lock()))));
}

/// The subject of a client's certificate.
pub fn subject(client: usize) -> String {
    format!("CN=client {client}")
}

impl Climate {
    /// Whether servers require SASL of their clients. A planted fault may spoil the frames of an exchange.
    pub fn requires_sasl(&self) -> bool {
        self.seed % 5 == 3 && self.plant.is_none()
    }
}

impl World {
    /// Begins the exchange of a client that has a session.
    pub fn begin_sasl(&mut self, client: usize, end: EndId) {
        let found = &mut self.clients[client];
        let cnonce = nonce(&mut found.rng);
        found.exchange = Some(Client::new(Service::CLIENTS, USER.to_owned(), password(), cnonce));
        self.send_token(end, b"");
    }

    /// Takes the server's token. `true`: the exchange is complete.
    pub fn on_sasl(
        &mut self,
        client: usize,
        end: EndId,
        frame: &[u8],
    ) -> Result<bool, DecodeError> {
        let mut from = Reader::new(frame);
        let header: ReplyHeader = from.read()?;
        let SetSaslResponse { token } = from.read()?;
        let Some(exchange) = &mut self.clients[client].exchange else { return Ok(false) };
        let step = exchange.step(token.unwrap_or_default()).map_err(|refusal| refusal.to_string());
        match step {
            Ok(Some(response)) if header.err == 0 && header.xid == XID => {
                self.send_token(end, &response);
                return Ok(false);
            }
            Ok(None) if header.err == 0 && header.xid == XID => {}
            other => {
                self.fail("identities", format!("client {client}: {other:?} after {header:?}"));
                return Ok(false);
            }
        }
        self.clients[client].exchange = None;
        self.trace.count("SASL exchanges");
        let wanted = [Identity::new("x509", &subject(client)), Identity::new("sasl", USER)];
        let identities = self.identities_at(end);
        if !identities.as_ref().is_none_or(|identities| identities.ends_with(&wanted)) {
            self.fail("identities", format!("client {client} is {identities:?} at its server"));
        }
        Ok(true)
    }

    fn send_token(&mut self, end: EndId, token: &[u8]) {
        let mut bytes = Vec::new();
        put_frame(&mut bytes, |to| {
            RequestHeader { xid: XID, kind: op::SASL }.encode(to);
            GetSaslRequest { token: Some(token) }.encode(to);
        });
        self.send(end, bytes.into());
    }
}
