//! Puts requests into frames, and reads replies and events from frames.

use jute::proto::{ReplyHeader, RequestHeader, WatcherEvent};
use jute::{Decode, DecodeError, Encode, Reader, put_frame};

/// Appends one framed request: header, then what `body` appends.
pub fn put_request(to: &mut Vec<u8>, xid: i32, kind: i32, body: impl FnOnce(&mut Vec<u8>)) {
    put_frame(to, |to| {
        RequestHeader { xid, kind }.encode(to);
        body(to);
    });
}

/// A frame from the server of an established session.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming<'a> {
    Event {
        header: ReplyHeader,
        event: WatcherEvent<'a>,
    },
    /// `body` is empty for operations without one and, most often, for errors.
    Reply {
        header: ReplyHeader,
        body: &'a [u8],
    },
}

impl<'a> Incoming<'a> {
    /// Reads a frame's body as an event or a reply.
    ///
    /// # Errors
    /// [`DecodeError`] when there is no whole reply header, or a notification without a whole event.
    pub fn parse(frame: &'a [u8]) -> Result<Self, DecodeError> {
        let mut from = Reader::new(frame);
        let header = ReplyHeader::decode(&mut from)?;
        if header.xid == super::xid::NOTIFICATION {
            return Ok(Self::Event { header, event: from.read()? });
        }
        Ok(Self::Reply { header, body: from.rest() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notification_is_recognised_by_its_xid() {
        let mut frame = Vec::new();
        ReplyHeader { xid: -1, zxid: 7, err: 0 }.encode(&mut frame);
        let event = WatcherEvent { kind: 3, state: 3, path: Some("/a".into()) };
        event.encode(&mut frame);
        let header = ReplyHeader { xid: -1, zxid: 7, err: 0 };
        assert_eq!(Incoming::parse(&frame), Ok(Incoming::Event { header, event }));
        assert!(Incoming::parse(&frame[..15]).is_err());
        let header = ReplyHeader { xid: 5, zxid: 7, err: -101 };
        let mut frame = Vec::new();
        header.encode(&mut frame);
        assert_eq!(Incoming::parse(&frame), Ok(Incoming::Reply { header, body: &[] }));
    }

    #[test]
    fn request_is_framed() {
        let mut bytes = Vec::new();
        put_request(&mut bytes, 9, super::super::op::PING, |_| ());
        assert_eq!(bytes, [0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 11]);
    }
}
