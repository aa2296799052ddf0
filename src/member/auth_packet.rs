//! The packets of SASL between servers (ZooKeeper: `QuorumAuthPacket`), on both ports.

use bytes::{Buf, BytesMut};

/// What every packet begins with. No hello of a learner and no election message begins so.
const MAGIC: i64 = 0x5f24_3501_3501_edcc;
/// The first four bytes of a packet.
pub const FIRST_BYTES: [u8; 4] = [0x5f, 0x24, 0x35, 0x01];
/// Message of the server that takes no part in SASL.
pub const UNEXPECTED: &str = "the dialing server authenticates by SASL, and this server takes no part in it: set quorum.auth.enableSasl=true here first";
/// Magic, status and length.
const HEAD_BYTES: usize = 16;
/// Longest token. A ticket of Kerberos with the groups of a user may have 48 kB.
pub const TOKEN_BYTES_MAX: usize = 60 * 1024;

/// How far the exchange is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AuthStatus {
    InProgress,
    Success,
    Error,
}

/// One packet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AuthPacket {
    pub status: AuthStatus,
    pub token: Option<Vec<u8>>,
}

/// Why bytes are no packet.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum AuthPacketError {
    #[error("no SASL packet where one was expected")]
    Magic,
    #[error("a SASL packet with the unknown status {0}")]
    Status(i32),
    #[error("a SASL packet whose token has {0} bytes")]
    Length(i32),
}

impl AuthPacket {
    /// Whether `bytes` begin with a packet. `None`: too few bytes have come to decide.
    pub fn is_ahead(bytes: &[u8]) -> Option<bool> {
        let magic = MAGIC.to_be_bytes();
        let come = bytes.len().min(magic.len());
        match bytes[..come] == magic[..come] {
            true => (come == magic.len()).then_some(true),
            false => Some(false),
        }
    }

    /// Takes one packet off the front; `None` while it has not come completely.
    ///
    /// # Errors
    /// When the bytes are no packet.
    pub fn take(input: &mut BytesMut) -> Result<Option<Self>, AuthPacketError> {
        if Self::is_ahead(input) == Some(false) {
            return Err(AuthPacketError::Magic);
        }
        let Some(head) = input.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let int =
            |at: usize| i32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let status = match int(8) {
            0 => AuthStatus::InProgress,
            1 => AuthStatus::Success,
            -1 => AuthStatus::Error,
            other => return Err(AuthPacketError::Status(other)),
        };
        let len = int(12);
        if len == -1 {
            input.advance(HEAD_BYTES);
            return Ok(Some(Self { status, token: None }));
        }
        let token_len = usize::try_from(len).ok().filter(|len| *len <= TOKEN_BYTES_MAX);
        let token_len = token_len.ok_or(AuthPacketError::Length(len))?;
        if input.len() < HEAD_BYTES + token_len {
            return Ok(None);
        }
        input.advance(HEAD_BYTES);
        let token = Some(input.split_to(token_len).to_vec());
        Ok(Some(Self { status, token }))
    }

    /// Appends a packet. Tokens above [`TOKEN_BYTES_MAX`] are the caller's mistake: no mechanism makes one.
    pub fn put(status: AuthStatus, token: Option<&[u8]>, output: &mut Vec<u8>) {
        output.extend(MAGIC.to_be_bytes());
        let status: i32 = match status {
            AuthStatus::InProgress => 0,
            AuthStatus::Success => 1,
            AuthStatus::Error => -1,
        };
        output.extend(status.to_be_bytes());
        let len = token.map_or(-1, |token| i32::try_from(token.len()).expect("tokens are short"));
        output.extend(len.to_be_bytes());
        output.extend(token.unwrap_or_default());
    }
}
