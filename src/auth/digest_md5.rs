//! DIGEST-MD5 (RFC 2831), both halves of the exchange, with the checks of the JDK's.
//!
//! Pure: nonces are arguments. A nonce must never be given twice, or the response to it could be replayed.

mod client;
mod directives;
mod offer;
mod server;

pub use client::Client;
pub use offer::Offer;
pub use server::{Accounts, Server};

use crate::model::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use sha1::Digest;
use zeroize::Zeroizing;

/// Random bytes of a nonce; the JDK's has as many.
pub const NONCE_BYTES: usize = 30;

/// What both halves have to agree on besides the password. The server's name is the realm too.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Service {
    pub protocol: &'static str,
    pub server: &'static str,
}

impl Service {
    /// Clients and servers.
    pub const CLIENTS: Self = Self { protocol: "zookeeper", server: "zk-sasl-md5" };
    /// Servers between themselves.
    pub const QUORUM: Self = Self { protocol: "zookeeper-quorum", server: "zk-quorum-sasl-md5" };

    fn uri(self) -> String {
        format!("{}/{}", self.protocol, self.server)
    }
}

/// A nonce as it is sent.
fn nonce_text(nonce: [u8; NONCE_BYTES]) -> String {
    STANDARD.encode(nonce)
}

/// The directive `nc`: the nonce is used for the first time, as every nonce here.
const NONCE_COUNT: &str = "00000001";

/// What a response is computed from, in addition to the password.
struct Exchange<'e> {
    user: &'e str,
    realm: &'e str,
    nonce: &'e [u8],
    cnonce: &'e [u8],
    uri: &'e str,
    /// `authzid`, if the client sent one: the name that it wants to act as.
    authzid: Option<&'e [u8]>,
}

impl Exchange<'_> {
    /// The directive `response`: proves that the client knows the password.
    fn response(&self, password: &Secret) -> Secret {
        self.value("AUTHENTICATE", password)
    }

    /// The directive `rspauth`: proves that the server knows the password too.
    fn answer(&self, password: &Secret) -> Secret {
        self.value("", password)
    }

    fn value(&self, method: &str, password: &Secret) -> Secret {
        let mut user = Zeroizing::new(Vec::new());
        user.extend(latin_1_or_utf_8(self.user).iter());
        user.push(b':');
        user.extend(latin_1_or_utf_8(self.realm).iter());
        user.push(b':');
        user.extend(latin_1_or_utf_8(&String::from_utf8_lossy(password.reveal())).iter());
        let user = Zeroizing::new(<[u8; 16]>::from(Md5::digest(&*user)));
        let mut session = Md5::new_with_prefix(*user);
        session.update(b":");
        session.update(self.nonce);
        session.update(b":");
        session.update(self.cnonce);
        if let Some(authzid) = self.authzid {
            session.update(b":");
            session.update(authzid);
        }
        let session = Zeroizing::new(hex(session.finalize().into()));
        let action = hex(Md5::digest(format!("{method}:{}", self.uri)).into());
        let mut value = Md5::new();
        let parts: [&[u8]; 6] = [
            session.as_bytes(),
            self.nonce,
            NONCE_COUNT.as_bytes(),
            self.cnonce,
            b"auth",
            action.as_bytes(),
        ];
        for (at, part) in parts.into_iter().enumerate() {
            if at > 0 {
                value.update(b":");
            }
            value.update(part);
        }
        Secret::new(hex(value.finalize().into()).into_bytes())
    }
}

/// Names and passwords are hashed as Latin-1 if they can be written in it, else as UTF-8.
fn latin_1_or_utf_8(text: &str) -> Zeroizing<Vec<u8>> {
    let latin_1 = text.chars().map(|letter| u8::try_from(letter).ok()).collect();
    Zeroizing::new(Option::<Vec<u8>>::unwrap_or_else(latin_1, || text.as_bytes().to_vec()))
}

fn hex(bytes: [u8; 16]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |bits: u8| char::from(DIGITS[usize::from(bits)]);
    bytes.into_iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
