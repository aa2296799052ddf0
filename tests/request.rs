//! The connection's machine and the replica behind it, byte for byte, without sockets, threads or a disk.
//!
//! Each test lets a few clients talk and states all that they hear, one line per frame: `2 @5 ok "x" v1` is the answer
//! to the request with xid 2, at zxid 5; `event @5 NodeDeleted /a` is what a watch tells.

#[path = "request/frames.rs"]
mod frames;
#[path = "request/handshake.rs"]
mod handshake;
#[path = "request/harness.rs"]
mod harness;
#[path = "request/limits.rs"]
mod limits;
#[path = "request/order.rs"]
mod order;
#[path = "request/parts.rs"]
mod parts;
#[path = "request/sessions.rs"]
mod sessions;
#[path = "request/watches.rs"]
mod watches;
#[path = "request/wire.rs"]
mod wire;
