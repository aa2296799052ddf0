//! Writes are linearizable: one that was answered before another was sent stands before it in the history.

use super::{Check, Seen};
use crate::model::Code;
use crate::sim::ask::{Request, is_of_session};
use crate::sim::truth::Truth;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct RealTime {
    /// The newest zxid that anybody's write was answered with.
    answered: i64,
    /// What that was when each write under way was sent, by client and xid.
    floors: BTreeMap<(usize, i32), i64>,
}

impl Check for RealTime {
    fn name(&self) -> &'static str {
        "real time"
    }

    fn see(&mut self, seen: &Seen<'_>, truth: &Truth) -> Result<(), String> {
        match *seen {
            Seen::Asked { client, xid, request, .. } if request.is_write() => {
                self.floors.insert((client, xid), self.answered);
            }
            Seen::Answered { client, request, header, .. } if request.is_write() => {
                let floor = self.floors.remove(&(client, header.xid));
                // The end of a session that only its server knew is no transaction.
                let is_own = truth.local_sessions && *request == Request::Close;
                // One that was refused may take no place in the history.
                if is_own || header.err != 0 || is_of_session(Code(header.err)) {
                    return Ok(());
                }
                let floor = floor.unwrap_or(0);
                if header.zxid <= floor {
                    return Err(format!(
                        "a write of client {client} stands at {:#x}, although one at {floor:#x} was answered before",
                        header.zxid
                    ));
                }
                self.answered = self.answered.max(header.zxid);
            }
            Seen::Parted { client } => self.floors.retain(|(of, _), _| *of != client),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted::{fails, holds, truth, zxid};
    use super::*;
    use crate::sim::ask::Body;
    use jute::proto::ReplyHeader;

    #[test]
    fn a_write_before_its_time_is_found() {
        let (mut check, truth) = (RealTime::default(), truth());
        let request = &Request::Delete { path: "/a".into(), version: -1 };
        let asked = |client| Seen::Asked { client, session: 7, xid: 1, request, at_us: 0 };
        let answered = |client, counter| Seen::Answered {
            client,
            session: 7,
            request,
            header: ReplyHeader { xid: 1, zxid: zxid(1, counter).to_wire(), err: 0 },
            body: &Body::Nothing,
            at_us: 0,
        };
        holds(&mut check, &asked(0), &truth);
        holds(&mut check, &asked(1), &truth);
        holds(&mut check, &answered(0, 3), &truth);
        holds(&mut check, &answered(1, 2), &truth);
        holds(&mut check, &asked(1), &truth);
        fails(&mut check, &answered(1, 3), &truth, "was answered before");
        holds(&mut check, &asked(2), &truth);
        holds(&mut check, &Seen::Parted { client: 2 }, &truth);
    }
}
