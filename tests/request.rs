//! Client connections and the replica, byte for byte, without sockets, threads or a disk.
//!
//! Most tests have a [`World`](request::harness::World). Each lets a few clients send requests and lists all that they
//! receive, one line per frame: `2 @5 ok "x" v1` is the answer to the request with xid 2, at zxid 5; `event @5 NodeDeleted
//! /a` is a watch event.

mod request {
    mod audit;
    pub mod auth;
    mod configured;
    mod connection;
    pub mod frames;
    pub mod handshake;
    pub mod harness;
    pub mod limits;
    pub mod order;
    mod permissions;
    mod reconfig;
    mod replies;
    mod sasl;
    mod session_tracker;
    pub mod sessions;
    pub mod watches;
    mod writes;
}
