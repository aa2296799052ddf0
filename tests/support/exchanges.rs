//! The bytes that the two ends of a SASL exchange send.

use bytes::BytesMut;
use oxkeeper::member::sasl_exchange::{ConnectionKind, SaslExchanges, SaslProgress};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// All that each end sends.
pub struct Words {
    pub dialer: Vec<u8>,
    pub acceptor: Vec<u8>,
}

type Known = (Arc<dyn SaslExchanges>, ConnectionKind, Rc<Words>);

/// The limit on exchanges whose words are kept.
const KNOWN_MAX: usize = 8;

thread_local! {
    static KNOWN: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) };
}

/// All that the two ends of a SASL exchange send. It is kept: fuzz targets ask for the same words for each of millions of inputs.
///
/// # Panics
/// When the SASL exchange does not come to an end.
pub fn words_of(exchanges: &Arc<dyn SaslExchanges>, kind: ConnectionKind) -> Rc<Words> {
    KNOWN.with_borrow_mut(|known| {
        let is_it = |(of, its, _): &&Known| Arc::ptr_eq(of, exchanges) && *its == kind;
        if let Some((_, _, words)) = known.iter().find(is_it) {
            return words.clone();
        }
        if known.len() == KNOWN_MAX {
            known.clear();
        }
        let words = Rc::new(said(&**exchanges, kind));
        known.push((exchanges.clone(), kind, words.clone()));
        words
    })
}

fn said(exchanges: &dyn SaslExchanges, kind: ConnectionKind) -> Words {
    let mut ends =
        [exchanges.dialed(kind, &[("there".to_owned(), 1)]), exchanges.accepted(kind, "here")];
    let (mut words, mut unread) = ([Vec::new(), Vec::new()], [BytesMut::new(), BytesMut::new()]);
    let mut is_done = [false; 2];
    for _ in 0..10 {
        for (at, end) in ends.iter_mut().enumerate() {
            if is_done[at] {
                continue; // What else comes belongs to the connection's own protocol.
            }
            let mut said = Vec::new();
            let step = end.step(&mut unread[at], &mut said).expect("two ends of one SASL exchange");
            is_done[at] = step == SaslProgress::Done;
            unread[1 - at].extend_from_slice(&said);
            words[at].extend(said);
        }
        if is_done == [true; 2] {
            let [dialer, acceptor] = words;
            return Words { dialer, acceptor };
        }
    }
    panic!("a SASL exchange without an end");
}
