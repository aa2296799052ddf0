//! What clients and servers say to each other, as the clients do it: connecting, asking, hearing.

use super::ask::{Body, Request};
use super::check::Seen;
use super::client::Place;
use super::network::{Chunk, End, PipeId};
use super::plan::{Deed, MS, Micros};
use super::world::{CLIENT_TURN_US, Event, World};
use crate::model::{EventKind, SessionId, xid};
use crate::request::password;
use jute::proto::{ConnectRequest, ConnectResponse, ReplyHeader, WatcherEvent};
use jute::{Decode, Encode, Reader, put_frame};

/// Asked and not answered, at the most.
const ASKED_MAX: usize = 40;

impl World {
    pub fn do_deed(&mut self, client: usize, deed: Deed) {
        match deed {
            Deed::Ask(asks) => {
                let asked = asks.into_iter().flat_map(|ask| self.clients[client].requests(ask));
                let requests: Vec<Request> = asked.collect();
                self.send_requests(client, requests);
            }
            Deed::Move { server } => {
                self.clients[client].wants = Some(server);
                self.part(client, 0);
            }
            Deed::Sleep { for_us } => {
                let until_us = self.now_us + for_us;
                self.note_client(client, || format!("sleeps for {for_us} us"));
                self.clients[client].asleep_us = until_us;
            }
        }
    }

    /// It takes nothing up, and says nothing.
    pub fn is_asleep(&self, client: usize) -> bool {
        !self.is_healing && self.now_us < self.clients[client].asleep_us
    }

    fn send_requests(&mut self, client: usize, requests: Vec<Request>) {
        if self.is_asleep(client) {
            return;
        }
        let now_us = self.now_us;
        let Place::Open(pipe) = self.clients[client].place else { return };
        let mut bytes = Vec::new();
        for request in requests {
            let found = &mut self.clients[client];
            if found.is_closing || ASKED_MAX <= found.asked.len() {
                break;
            }
            let xid = match request {
                Request::Ping => xid::PING,
                Request::Watches { .. } => xid::SET_WATCHES,
                _ => {
                    found.xid_last += 1;
                    found.xid_last
                }
            };
            request.put(xid, &mut bytes);
            found.said_us = now_us;
            found.is_closing = request == Request::Close;
            let session = found.session;
            self.note_client(client, || format!("asks {xid} {request:?}"));
            let seen = Seen::Asked { client, session, xid, request: &request, at_us: now_us };
            self.see(&seen);
            if request != Request::Ping {
                self.clients[client].asked.push_back((xid, request));
            }
        }
        if !bytes.is_empty() {
            self.send(pipe, End::Caller, bytes.into());
        }
    }

    /// The client looks up: it connects, pings, or gives up a connection that is silent.
    pub fn turn_client(&mut self, client: usize) {
        self.ask(self.now_us + CLIENT_TURN_US, Event::Client(client));
        if self.is_asleep(client) {
            return;
        }
        let found = &self.clients[client];
        let timeout_us = found.timeout_ms as Micros * MS;
        match found.place {
            Place::Nowhere { from_us } if from_us <= self.now_us => self.greet(client),
            Place::Nowhere { .. } => {}
            Place::Greeting(_) | Place::Open(_)
                if found.heard_us + timeout_us * 2 / 3 < self.now_us =>
            {
                self.note_client(client, || "hears nothing".to_owned());
                self.part(client, 0);
            }
            Place::Open(_) if found.said_us + timeout_us / 3 < self.now_us => {
                self.send_requests(client, vec![Request::Ping]);
            }
            Place::Greeting(_) | Place::Open(_) => {}
        }
    }

    fn greet(&mut self, client: usize) {
        let (now_us, servers) = (self.now_us, self.servers.len());
        let found = &mut self.clients[client];
        let server = found.wants.take().unwrap_or_else(|| found.rng.pick(servers));
        let Some(pipe) = self.accept(servers + client, server) else {
            let from_us = now_us + self.rng.range(10, 60) * MS;
            self.clients[client].place = Place::Nowhere { from_us };
            return;
        };
        let found = &mut self.clients[client];
        found.place = Place::Greeting(pipe);
        (found.heard_us, found.said_us) = (now_us, now_us);
        found.input.clear();
        let password = password(SessionId(found.session));
        let mut bytes = Vec::new();
        put_frame(&mut bytes, |to| {
            let request = ConnectRequest {
                protocol_version: 0,
                last_zxid_seen: found.last_zxid,
                timeout_ms: found.timeout_ms,
                session_id: found.session,
                password: Some(&password),
                read_only: false,
            };
            request.encode(to);
        });
        let session = found.session;
        self.note_client(client, || format!("calls {server} with session {session:#x}"));
        self.send(pipe, End::Caller, bytes.into());
    }

    /// The connection ends; what was not answered may be done or not.
    fn part(&mut self, client: usize, pause_ms: u64) {
        let from_us = self.now_us + pause_ms * MS;
        let found = &mut self.clients[client];
        let pipe = found.pipe();
        found.place = Place::Nowhere { from_us };
        found.asked.clear();
        found.input.clear();
        found.held.clear();
        let session = found.session;
        let is_closing = found.is_closing;
        self.see(&Seen::Parted { client });
        if is_closing {
            // Who has asked for the end of its session does not come back to it.
            self.clients[client].forget_session();
            self.see(&Seen::Expired { client, session });
        }
        if let Some(pipe) = pipe {
            self.close(pipe, End::Caller);
        }
    }

    pub fn client_hears(&mut self, client: usize, pipe: PipeId, chunk: Chunk) {
        if self.clients[client].pipe() != Some(pipe) {
            return;
        }
        let Chunk::Bytes(bytes) = chunk else {
            self.note_client(client, || "is cut off".to_owned());
            let pause_ms = self.rng.range(5, 40);
            return self.part(client, pause_ms);
        };
        let found = &mut self.clients[client];
        found.heard_us = self.now_us;
        found.input.extend_from_slice(&bytes);
        while let Some(frame) = next_frame(&mut self.clients[client].input) {
            for frame in self.plant(client, frame) {
                if self.clients[client].pipe() != Some(pipe) || self.failure.is_some() {
                    return;
                }
                let is_greeting = matches!(self.clients[client].place, Place::Greeting(_));
                let read = if is_greeting {
                    self.hear_welcome(client, pipe, &frame)
                } else {
                    self.hear(client, &frame)
                };
                if let Err(error) = read {
                    self.fail("answers", format!("client {client} can't read {frame:?}: {error}"));
                }
            }
        }
    }

    fn hear_welcome(
        &mut self,
        client: usize,
        pipe: PipeId,
        frame: &[u8],
    ) -> Result<(), jute::DecodeError> {
        let welcome = ConnectResponse::decode(&mut Reader::new(frame))?;
        let found = &mut self.clients[client];
        let (before, session) = (found.session, welcome.session_id);
        if session == 0 {
            found.forget_session();
            self.note_client(client, || format!("has lost session {before:#x}"));
            self.trace.count("sessions lost");
            self.see(&Seen::Expired { client, session: before });
            self.part(client, 5);
            return Ok(());
        }
        if before == 0 {
            found.forget_session();
        }
        found.session = session;
        found.place = Place::Open(pipe);
        self.note_client(client, || format!("has session {session:#x}"));
        self.trace.count(if before == 0 { "sessions" } else { "sessions moved" });
        self.see(&Seen::Welcomed { client, session, is_new: before == 0 });
        let found = &self.clients[client];
        let lists = [found.data_watches.len(), found.child_watches.len(), found.lasting.len()];
        if lists.iter().any(|&len| len > 0) {
            let watches = found.watches();
            self.send_requests(client, vec![watches]);
        }
        Ok(())
    }

    fn hear(&mut self, client: usize, frame: &[u8]) -> Result<(), jute::DecodeError> {
        let mut from = Reader::new(frame);
        let header: ReplyHeader = from.read()?;
        if header.xid == xid::NOTIFICATION {
            let event: WatcherEvent<'_> = from.read()?;
            return self.hear_event(client, header.zxid, &event);
        }
        let session = self.clients[client].session;
        let mut is_awaited = true;
        let request = if header.xid == xid::PING {
            Request::Ping
        } else {
            match self.clients[client].asked.pop_front() {
                Some((xid, request)) => {
                    is_awaited = xid == header.xid;
                    request
                }
                None => {
                    self.fail(
                        "sessions",
                        format!("client {client} is answered {header:?}, and asked nothing"),
                    );
                    return Ok(());
                }
            }
        };
        let body = if is_awaited { request.answer(header, from.rest())? } else { Body::Nothing };
        self.note_client(client, || {
            let body = super::driver::short(&format!("{body:?}"));
            format!("is told {header:x?} {body}")
        });
        self.trace.count(match (header.err == 0, request.is_write()) {
            (true, true) => "writes",
            (true, false) => "reads",
            (false, _) => "refusals",
        });
        let at_us = self.now_us;
        let (told, body_ref) = (&request, &body);
        self.see(&Seen::Answered { client, session, request: told, header, body: body_ref, at_us });
        let found = &mut self.clients[client];
        found.last_zxid = found.last_zxid.max(header.zxid);
        found.learn(&request, header, &body);
        found.last_done += u64::from(self.is_healing && request.is_write() && header.err == 0);
        if request == Request::Close {
            self.part(client, 20);
        }
        Ok(())
    }

    fn hear_event(
        &mut self,
        client: usize,
        zxid: i64,
        event: &WatcherEvent<'_>,
    ) -> Result<(), jute::DecodeError> {
        let path = event.path.as_deref().unwrap_or_default();
        let kind = match event.kind {
            1 => EventKind::NodeCreated,
            2 => EventKind::NodeDeleted,
            3 => EventKind::NodeDataChanged,
            4 => EventKind::NodeChildrenChanged,
            kind => {
                self.fail("watches", format!("client {client} hears an event of kind {kind}"));
                return Ok(());
            }
        };
        self.note_client(client, || format!("hears {kind:?} {path} at {zxid:#x}"));
        self.trace.count(if zxid == -1 { "events missed" } else { "events" });
        let found = &mut self.clients[client];
        found.last_zxid = found.last_zxid.max(zxid);
        if kind != EventKind::NodeChildrenChanged {
            found.data_watches.remove(path);
        }
        if matches!(kind, EventKind::NodeChildrenChanged | EventKind::NodeDeleted) {
            found.child_watches.remove(path);
        }
        self.see(&Seen::Event { client, zxid, kind, path });
        Ok(())
    }
}

/// Takes a whole frame off the front.
fn next_frame(input: &mut Vec<u8>) -> Option<Vec<u8>> {
    let len = i32::from_be_bytes(*input.first_chunk::<4>()?) as usize;
    if input.len() < 4 + len {
        return None;
    }
    Some(input.drain(..4 + len).skip(4).collect())
}
