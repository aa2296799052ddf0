//! The bytes that the two ends of an opening send.

use bytes::BytesMut;
use oxkeeper::member::opening::{ConnectionKind, Opened, Openings};

/// All that each end sends.
#[derive(Default)]
pub struct Words {
    pub dialer: Vec<u8>,
    pub acceptor: Vec<u8>,
}

/// All that the two ends of an opening send.
///
/// # Panics
/// When the opening does not come to an end.
pub fn words_of(openings: &dyn Openings, kind: ConnectionKind) -> Words {
    let mut ends =
        [openings.dialed(kind, &[("there".to_owned(), 1)]), openings.accepted(kind, "here")];
    let (mut words, mut unread) = ([Vec::new(), Vec::new()], [BytesMut::new(), BytesMut::new()]);
    let mut is_open = [false; 2];
    for _ in 0..10 {
        for (at, end) in ends.iter_mut().enumerate() {
            if is_open[at] {
                continue; // What else comes belongs to the connection's own protocol.
            }
            let mut said = Vec::new();
            let step = end.step(&mut unread[at], &mut said).expect("two ends of one opening");
            is_open[at] = step == Opened::Done;
            unread[1 - at].extend_from_slice(&said);
            words[at].extend(said);
        }
        if is_open == [true; 2] {
            let [dialer, acceptor] = words;
            return Words { dialer, acceptor };
        }
    }
    panic!("an opening without an end");
}
