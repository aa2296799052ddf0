//! The bytes of answers and events.

use super::Outgoing;
use super::frame_counts::FrameKind;
use crate::model::{Code, EventKind, SessionId, xid};
use jute::data::Stat;
use jute::proto::{ConnectResponse, ReplyHeader};
use jute::{Encode, put_frame, put_i32, put_string};

/// Keeper state of every event a server sends: SyncConnected (P-31).
const SYNC_CONNECTED: i32 = 3;

/// A reply; `body` runs only for a success. A reply too long for its length field is answered -5.
pub fn reply(out: &mut Outgoing, header: ReplyHeader, body: impl FnOnce(&mut Vec<u8>)) {
    put(out, FrameKind::Answer, header, body);
}

/// A reply whose bytes Java does not count: to a ping, to an authentication request, to an operation that is not served.
pub(super) fn put_uncounted(
    out: &mut Outgoing,
    header: ReplyHeader,
    body: impl FnOnce(&mut Vec<u8>),
) {
    put(out, FrameKind::Uncounted, header, body);
}

/// The same for a sasl request, whose answer has a body even if it is an error.
pub(super) fn put_with_body(
    out: &mut Outgoing,
    header: ReplyHeader,
    body: impl FnOnce(&mut Vec<u8>),
) {
    let built = out.frame(FrameKind::Uncounted, header, |out| {
        body(&mut out.bytes);
        Ok(())
    });
    debug_assert!(built.is_ok(), "a token fits a frame");
}

fn put(out: &mut Outgoing, kind: FrameKind, header: ReplyHeader, body: impl FnOnce(&mut Vec<u8>)) {
    let built = out.frame(kind, header, |out| {
        if header.err == 0 {
            body(&mut out.bytes);
        }
        Ok(())
    });
    if let Err(code) = built {
        let refusal = out.frame(kind, ReplyHeader { err: code.0, ..header }, |_| Ok(()));
        debug_assert!(refusal.is_ok(), "a header fits a frame");
    }
}

/// Header of a reply.
pub const fn header(xid: i32, zxid: i64, code: Code) -> ReplyHeader {
    ReplyHeader { xid, zxid, err: code.0 }
}

/// Body of create2, setData and their like: an optional path, then an optional stat.
pub fn path_and_stat(to: &mut Vec<u8>, path: Option<&str>, stat: Option<&Stat>) {
    if let Some(path) = path {
        put_string(to, path);
    }
    if let Some(stat) = stat {
        stat.encode(to);
    }
}

/// A watch event as a frame: encoded once, shared by all watchers (P-29).
///
/// * `zxid`: of the transaction; -1 for an event that `setWatches` finds missed.
pub fn event(to: &mut Vec<u8>, zxid: i64, kind: EventKind, path: &str) {
    put_frame(to, |to| {
        header(xid::NOTIFICATION, zxid, Code::OK).encode(to);
        put_i32(to, kind as i32);
        put_i32(to, SYNC_CONNECTED);
        put_string(to, path);
    });
}

/// The same for one client alone, which missed the event.
pub(super) fn missed(out: &mut Outgoing, kind: EventKind, path: &str) {
    let from = out.bytes.len();
    event(&mut out.bytes, -1, kind, path);
    out.noted(FrameKind::Event, from);
}

/// Answer to a connect request (P-11); session 0 with timeout 0 says "expired" (P-17).
///
/// * `read_only_flag`: the client sent the byte, so it gets one. `read_only`: this server is read-only.
pub fn welcome(
    out: &mut Outgoing,
    session: SessionId,
    timeout_ms: i32,
    read_only_flag: bool,
    read_only: bool,
) {
    let password = if session.0 == 0 { [0; 16] } else { super::password(session) };
    let from = out.bytes.len();
    put_frame(&mut out.bytes, |to| {
        let response = ConnectResponse {
            protocol_version: 0,
            timeout_ms: if session.0 == 0 { 0 } else { timeout_ms },
            session_id: session.0,
            password: Some(&password),
            read_only,
        };
        response.encode(to);
        if !read_only_flag {
            to.pop(); // The byte at the end, which an old client would take for the next frame.
        }
    });
    out.noted(FrameKind::ConnectResponse, from);
}
