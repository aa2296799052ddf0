//! The bytes that the two ends of an opening send.

use bytes::BytesMut;
use oxkeeper::member::opening::{ConnectionKind, Opened, Openings};

/// All that each end sends.
#[derive(Default)]
pub struct Words {
    pub dialer: Vec<u8>,
    pub acceptor: Vec<u8>,
}

/// # Panics
/// When the opening does not come to an end.
pub fn words_of(openings: &dyn Openings, kind: ConnectionKind) -> Words {
    let mut ends =
        [openings.dialed(kind, &[("there".to_owned(), 1)]), openings.accepted(kind, "here")];
    let (mut words, mut unread) = ([Vec::new(), Vec::new()], [BytesMut::new(), BytesMut::new()]);
    for _ in 0..10 {
        let mut opened = 0;
        for (at, end) in ends.iter_mut().enumerate() {
            let mut said = Vec::new();
            let step = end.step(&mut unread[at], &mut said).expect("two ends of one opening");
            opened += usize::from(step == Opened::Done);
            unread[1 - at].extend_from_slice(&said);
            words[at].extend(said);
        }
        if opened == ends.len() {
            let [dialer, acceptor] = words;
            return Words { dialer, acceptor };
        }
    }
    panic!("an opening without an end");
}
