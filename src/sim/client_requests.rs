//! What clients send and receive: connecting, requests, answers, events.

use super::check::{Answered, Seen};
use super::client::{Connection, OpenedSession};
use super::network::{Chunk, EndId};
use super::plan::{ClientAction, MS, Micros};
use super::trace::short;
use super::workload::{Body, Op, Request, Required};
use super::world::{CLIENT_TURN_US, World};
use crate::model::{Code, EventKind, SessionId, xid};
use crate::request::password;
use jute::proto::{ConnectRequest, ConnectResponse, ReplyHeader, WatcherEvent};
use jute::{Decode, DecodeError, Encode, Reader, put_frame};

/// Limit on a client's outstanding requests.
const OUTSTANDING_MAX: usize = 40;
/// A client of a read-only server looks for another server after this time.
const READ_ONLY_US: Micros = 300 * MS;

impl World {
    pub fn act_as_client(&mut self, client: usize, action: ClientAction) {
        match action {
            ClientAction::Send(planned) => {
                let may_reconfigure = self.reconfigures;
                let is_allowed = |request: &Request| {
                    may_reconfigure || !matches!(request.op, Op::Reconfig { .. })
                };
                let (found, servers) = (&mut self.clients[client], &self.servers);
                let requests = planned.into_iter().filter(is_allowed).filter_map(|request| {
                    found.fill(request, |server| servers[server].view.as_ref())
                });
                let requests = requests.collect();
                self.send_requests(client, requests);
            }
            ClientAction::Move { server } => {
                self.clients[client].next_server = Some(server);
                self.disconnect(client, 0);
            }
            ClientAction::Sleep { for_us } => {
                self.note_client(client, || format!("sleeps for {for_us} us"));
                self.clients[client].asleep_us = self.now_us + for_us;
            }
        }
    }

    /// Whether the client receives nothing and sends nothing.
    pub fn is_asleep(&self, client: usize) -> bool {
        !self.is_healing && self.now_us < self.clients[client].asleep_us
    }

    fn send_requests(&mut self, client: usize, requests: Vec<Request>) {
        let now_us = self.now_us;
        let Connection::Connected(end) = self.clients[client].connection else { return };
        if self.is_asleep(client) {
            return;
        }
        let mut bytes = Vec::new();
        for request in requests {
            let found = &mut self.clients[client];
            if found.session.is_closing || OUTSTANDING_MAX <= found.outstanding.len() {
                break;
            }
            let xid = match request.op {
                Op::Ping => xid::PING,
                Op::SetWatches(_) => xid::SET_WATCHES,
                _ => {
                    found.session.last_xid += 1;
                    found.session.last_xid
                }
            };
            request.put(xid, &mut bytes);
            found.sent_us = now_us;
            found.session.is_closing = request.op == Op::Close;
            let session = found.session.id;
            self.note_client(client, || format!("sends {xid} {request:?}"));
            self.see(&Seen::Asked { client, session, xid, request: &request });
            if request.op != Op::Ping {
                self.clients[client].outstanding.push_back((xid, request));
            }
        }
        if !bytes.is_empty() {
            self.send(end, bytes.into());
        }
    }

    /// The client's timer: the client connects, pings, or closes a connection that is silent.
    pub fn turn_client(&mut self, client: usize) {
        self.do_at(self.now_us + CLIENT_TURN_US, move |world| world.turn_client(client));
        if self.is_asleep(client) {
            return;
        }
        let found = &self.clients[client];
        let timeout_us = found.timeout_ms as Micros * MS;
        let is_silent = found.received_us + timeout_us * 2 / 3 < self.now_us;
        let has_pause = found.sent_us + timeout_us / 3 < self.now_us;
        match found.connection {
            Connection::None if found.connects_us <= self.now_us => self.connect(client),
            Connection::None => {}
            _ if is_silent => {
                self.note_client(client, || "receives nothing".to_owned());
                self.disconnect(client, 0);
            }
            Connection::Connected(_) if found.leaves_us.is_some_and(|at| at <= self.now_us) => {
                self.note_client(client, || "looks for a read-write server".to_owned());
                self.disconnect(client, 0);
            }
            Connection::Connected(_) if has_pause => {
                self.send_requests(client, vec![Request::new(Op::Ping, "")]);
            }
            Connection::Connecting(_) | Connection::Connected(_) => {}
        }
    }

    fn connect(&mut self, client: usize) {
        let (now_us, servers) = (self.now_us, self.servers.len());
        let found = &mut self.clients[client];
        let server = found.next_server.take().unwrap_or_else(|| found.rng.pick(servers));
        let Some(end) = self.accept_client(client, server) else {
            self.clients[client].connects_us = now_us + self.rng.range(10, 60) * MS;
            return;
        };
        let found = &mut self.clients[client];
        found.connection = Connection::Connecting(end);
        (found.received_us, found.sent_us) = (now_us, now_us);
        let session = found.session.id;
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: found.session.last_zxid,
            timeout_ms: found.timeout_ms,
            session_id: session,
            password: Some(&password(SessionId(session))),
            read_only: found.accepts_read_only,
        };
        let mut bytes = Vec::new();
        put_frame(&mut bytes, |to| request.encode(to));
        self.note_client(client, || format!("connects to {server} with session {session:#x}"));
        self.send(end, bytes.into());
        self.see(&Seen::Connects { client, session });
    }

    /// Ends the client's connection; its outstanding requests may be done or not.
    fn disconnect(&mut self, client: usize, pause_ms: u64) {
        let found = &mut self.clients[client];
        let end = found.end();
        found.connection = Connection::None;
        (found.opened, found.exchange) = (None, None);
        found.leaves_us = None;
        found.connects_us = self.now_us + pause_ms * MS;
        found.outstanding.clear();
        found.input.clear();
        found.held.clear();
        self.see(&Seen::Disconnected { client });
        if self.clients[client].session.is_closing {
            // A client that has asked for the end of its session does not come back to it.
            self.forget_session(client);
        }
        if let Some(end) = end {
            self.close(end);
        }
    }

    /// Makes a client forget its session and the zxids that it has seen. A client of read-only servers has no session, but has seen zxids.
    pub fn begin_anew(&mut self, client: usize) {
        self.disconnect(client, 0);
        self.forget_session(client);
    }

    fn forget_session(&mut self, client: usize) {
        let session = std::mem::take(&mut self.clients[client].session).id;
        self.see(&Seen::Expired { client, session });
    }

    pub fn client_receives(&mut self, client: usize, end: EndId, chunk: Chunk) {
        let found = &mut self.clients[client];
        if found.end() != Some(end) {
            return;
        }
        let Chunk::Bytes(bytes) = chunk else {
            self.note_client(client, || "is disconnected".to_owned());
            let pause_ms = self.rng.range(5, 40);
            return self.disconnect(client, pause_ms);
        };
        found.received_us = self.now_us;
        found.input.extend_from_slice(&bytes);
        while let Some(frame) = next_frame(&mut self.clients[client].input) {
            for frame in self.spoil_frame(client, frame) {
                if self.clients[client].end() != Some(end) || self.failure.is_some() {
                    return;
                }
                let read = match self.clients[client].connection {
                    Connection::Connecting(_) => match self.clients[client].opened {
                        None => self.on_connect_response(client, end, &frame),
                        Some(opened) => self.on_sasl(client, end, &frame).map(|is_complete| {
                            if is_complete {
                                self.on_session(client, end, opened);
                            }
                        }),
                    },
                    _ => self.on_reply(client, &frame),
                };
                if let Err(error) = read {
                    self.fail("answers", format!("client {client} can't read {frame:?}: {error}"));
                }
            }
        }
    }

    fn on_connect_response(
        &mut self,
        client: usize,
        end: EndId,
        frame: &[u8],
    ) -> Result<(), DecodeError> {
        let ConnectResponse { session_id: session, read_only, .. } =
            ConnectResponse::decode(&mut Reader::new(frame))?;
        let before = self.clients[client].session.id;
        if session == 0 {
            self.note_client(client, || format!("has lost session {before:#x}"));
            self.trace.count("sessions lost");
            self.see(&Seen::ExpiryReported { client, session: before });
            self.forget_session(client);
            self.disconnect(client, 5);
            return Ok(());
        }
        let opened = OpenedSession { session, is_read_only: read_only };
        if self.climate().requires_sasl() {
            self.clients[client].opened = Some(opened);
            self.begin_sasl(client, end);
        } else {
            self.on_session(client, end, opened);
        }
        Ok(())
    }

    /// The client may send requests.
    fn on_session(&mut self, client: usize, end: EndId, opened: OpenedSession) {
        let OpenedSession { session, is_read_only } = opened;
        let leaves_us = self.now_us + READ_ONLY_US;
        let found = &mut self.clients[client];
        let before = found.session.id;
        found.connection = Connection::Connected(end);
        found.opened = None;
        if is_read_only {
            found.leaves_us = Some(leaves_us);
            self.note_client(client, || format!("is read-only, with session {session:#x}"));
            self.trace.count(if before == 0 { "read-only sessions" } else { "sessions read-only" });
            // A new session of a read-only server is known to that server alone: a read-write server is asked for another one.
            return;
        }
        found.session.id = session;
        self.note_client(client, || format!("has session {session:#x}"));
        self.trace.count(if before == 0 { "sessions" } else { "sessions moved" });
        self.see(&Seen::SessionOpened { client, session, is_new: before == 0 });
        let set_watches = self.clients[client].set_watches();
        self.send_requests(client, set_watches.into_iter().collect());
    }

    fn on_reply(&mut self, client: usize, frame: &[u8]) -> Result<(), DecodeError> {
        let mut from = Reader::new(frame);
        let header: ReplyHeader = from.read()?;
        if header.xid == xid::NOTIFICATION {
            let event: WatcherEvent<'_> = from.read()?;
            self.on_event(client, header.zxid, &event);
            return Ok(());
        }
        let found = &mut self.clients[client];
        let session = found.session.id;
        let (xid, request) = if header.xid == xid::PING {
            (xid::PING, Request::new(Op::Ping, ""))
        } else if let Some(oldest) = found.outstanding.pop_front() {
            oldest
        } else {
            let why = format!("client {client} has no request for the reply {header:?}");
            self.fail("sessions", why);
            return Ok(());
        };
        let is_awaited = xid == header.xid;
        let body = if is_awaited { request.answer(header, from.rest())? } else { Body::Nothing };
        self.note_client(client, || {
            format!("receives {header:x?} {}", short(&format!("{body:?}")))
        });
        let is_read_only = self.clients[client].leaves_us.is_some();
        self.trace.count(match (header.err == 0, request.is_write()) {
            (true, true) => "writes",
            (true, false) if is_read_only => "reads without a leader",
            (true, false) => "reads",
            (false, _) => "refusals",
        });
        if let Op::Reconfig { required: Required::Version(_), .. } = request.op {
            self.trace.count(match Code(header.err) {
                Code::OK => "conditional reconfigurations",
                Code::BAD_VERSION => "conditional reconfigurations of another version",
                _ => "conditional reconfigurations refused",
            });
        }
        let answered = Answered { client, session, request: &request, header, body: &body };
        self.see(&if is_read_only {
            Seen::AnsweredReadOnly(answered)
        } else {
            Seen::Answered(answered)
        });
        let found = &mut self.clients[client];
        found.learn(&request, header, &body);
        found.last_done += u64::from(self.is_healing && request.is_write() && header.err == 0);
        if request.op == Op::Close {
            self.disconnect(client, 20);
        }
        Ok(())
    }

    fn on_event(&mut self, client: usize, zxid: i64, event: &WatcherEvent<'_>) {
        let path = event.path.as_deref().unwrap_or_default();
        let kind = match event.kind {
            1 => EventKind::NodeCreated,
            2 => EventKind::NodeDeleted,
            3 => EventKind::NodeDataChanged,
            4 => EventKind::NodeChildrenChanged,
            _ => return self.fail("watches", format!("client {client} receives {event:?}")),
        };
        self.note_client(client, || format!("receives {kind:?} {path} at {zxid:#x}"));
        self.trace.count(if zxid == -1 { "events missed" } else { "events" });
        self.clients[client].learn_event(zxid, kind, path);
        self.see(&Seen::Event { client, zxid, kind, path });
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
