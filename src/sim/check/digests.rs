//! Equal last zxid, equal tree: its digest is the one its leader foretold, on every server (I-10).

use super::{Check, Seen};
use crate::sim::truth::Truth;

pub struct Digests;

impl Check for Digests {
    fn name(&self) -> &'static str {
        "digests"
    }

    fn see(&mut self, seen: &Seen<'_>, truth: &Truth) -> Result<(), String> {
        // What a server finds at its start may end with what nobody committed.
        let (server, last, digest) = match *seen {
            Seen::Applied { server, last, digest, .. } => (server, last, digest),
            Seen::Started { server, found, digest, .. } => (server, found.last, digest),
            _ => return Ok(()),
        };
        match truth.digest_at(last) {
            Some(wanted) if wanted != digest => Err(format!(
                "the tree of {server} at {last} is {digest:#x}, foretold was {wanted:#x}"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Durable;
    use super::super::planted::{fails, holds, truth, zxid};
    use super::*;

    #[test]
    fn another_tree_is_found() {
        let truth = truth();
        let last = zxid(1, 3);
        let applied = |digest| Seen::Applied { server: 1, last, digest, leads: None };
        holds(&mut Digests, &applied(last.to_wire() as u64), &truth);
        fails(&mut Digests, &applied(5), &truth, "the tree of 1 at");
        let found = Durable { last, ..Durable::default() };
        let before = found;
        fails(&mut Digests, &Seen::Started { server: 2, found, before, digest: 1 }, &truth, "of 2");
    }
}
