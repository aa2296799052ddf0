//! No server that serves is in a state it cannot have come to: it believes nothing of its disk that this does not hold, and
//! the epochs, the end of its history and what of it is committed stand in their order (I-11).

use super::{Check, Durable, Seen};
use crate::model::{Epoch, Zxid};
use crate::sim::truth::Truth;

/// What a server that serves believes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Standing {
    pub accepted: Epoch,
    pub current: Epoch,
    pub committed: Zxid,
    /// The end of its history, and how far its disk has said that it has it.
    pub last: Zxid,
    pub flushed: Zxid,
}

#[derive(Default)]
pub struct States;

impl Check for States {
    fn name(&self) -> &'static str {
        "states"
    }

    fn see(&mut self, seen: &Seen<'_>, _: &Truth) -> Result<(), String> {
        let &Seen::Stands { server, standing, durable } = seen else { return Ok(()) };
        match complaint(standing, durable) {
            None => Ok(()),
            Some(why) => Err(format!(
                "{server} serves with {standing:?}, and its disk has {durable:?}: {why}"
            )),
        }
    }
}

fn complaint(believed: Standing, durable: Durable) -> Option<&'static str> {
    let Standing { accepted, current, committed, last, flushed } = believed;
    if durable.accepted < accepted || durable.current < current {
        Some("it believes in an epoch that is not saved")
    } else if durable.last < flushed {
        Some("it believes in a history that is not flushed")
    } else if accepted < current {
        Some("it follows an epoch it never promised itself to")
    } else if current < last.epoch() {
        Some("its history goes on behind its epoch")
    } else if last < committed {
        Some("it has committed what it does not have")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted::{fails, holds, truth, zxid};
    use super::*;

    #[test]
    fn states_that_cannot_be_are_found() {
        let truth = truth();
        let durable = Durable { last: zxid(2, 3), accepted: Epoch(2), current: Epoch(2) };
        let sound = Standing {
            accepted: Epoch(2),
            current: Epoch(2),
            committed: zxid(2, 2),
            last: zxid(2, 4),
            flushed: zxid(2, 3),
        };
        let seen = |standing| Seen::Stands { server: 1, standing, durable };
        holds(&mut States, &seen(sound), &truth);
        for (standing, about) in [
            (Standing { accepted: Epoch(3), ..sound }, "not saved"),
            (Standing { flushed: zxid(2, 4), ..sound }, "not flushed"),
            (Standing { accepted: Epoch(1), ..sound }, "never promised"),
            (Standing { current: Epoch(1), ..sound }, "behind its epoch"),
            (Standing { committed: zxid(2, 5), ..sound }, "does not have"),
        ] {
            fails(&mut States, &seen(standing), &truth, about);
        }
    }
}
