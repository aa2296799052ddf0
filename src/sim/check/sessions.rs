//! A session sees time go forward wherever its client connects, its answers come in the order it asked, its ephemerals
//! live as long as it does, and who is told that it is over can rely on that.

use super::{Check, Seen};
use crate::sim::ask::Request;
use crate::sim::truth::Truth;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Default)]
pub struct Sessions {
    /// What was asked and not answered, by client.
    asked: BTreeMap<usize, VecDeque<i32>>,
    /// The newest zxid each session has seen.
    seen: BTreeMap<i64, i64>,
    /// Said to be over.
    over: BTreeSet<i64>,
    opened: BTreeSet<i64>,
}

impl Check for Sessions {
    fn name(&self) -> &'static str {
        "sessions"
    }

    fn see(&mut self, seen: &Seen<'_>, truth: &Truth) -> Result<(), String> {
        match *seen {
            Seen::Welcomed { client, session, is_new } => {
                let life = truth.model.sessions.get(&session);
                if life.is_none() && !truth.local_sessions {
                    return Err(format!(
                        "client {client} has session {session:#x}, which nobody knows"
                    ));
                }
                if is_new && !self.opened.insert(session) {
                    return Err(format!("session {session:#x} is given to client {client} anew"));
                }
                if self.over.contains(&session) {
                    let opened = life.map_or(0, |life| life.opened);
                    return Err(format!(
                        "session {session:#x} of {opened:#x} was over, and is back"
                    ));
                }
            }
            Seen::Expired { session, .. } => {
                self.over.insert(session);
            }
            Seen::Asked { client, xid, request, .. } if *request != Request::Ping => {
                self.asked.entry(client).or_default().push_back(xid);
            }
            Seen::Answered { client, session, request, header, .. } => {
                if *request != Request::Ping {
                    let next = self.asked.get_mut(&client).and_then(VecDeque::pop_front);
                    if next != Some(header.xid) {
                        let xid = header.xid;
                        return Err(format!(
                            "client {client} is answered {xid}, and awaits {next:?}"
                        ));
                    }
                }
                let newest = self.seen.entry(session).or_default();
                if header.zxid < *newest {
                    let (zxid, newest) = (header.zxid, *newest);
                    return Err(format!("session {session:#x} sees {zxid:#x} after {newest:#x}"));
                }
                *newest = header.zxid;
            }
            Seen::Parted { client } => {
                self.asked.remove(&client);
            }
            Seen::Calm { .. } => return self.at_the_end(truth),
            _ => {}
        }
        Ok(())
    }
}

impl Sessions {
    fn at_the_end(&self, truth: &Truth) -> Result<(), String> {
        let alive = self.over.iter().find(|&&session| truth.model.is_alive(session));
        if let Some(session) = alive {
            return Err(format!("session {session:#x} was said to be over, and lives"));
        }
        let orphan = truth
            .model
            .paths()
            .find(|(_, node)| node.owner != 0 && !truth.model.is_alive(node.owner));
        match orphan {
            Some((path, node)) => {
                Err(format!("{path} is of session {:#x}, which is over", node.owner))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted::{fails, holds, truth, zxid};
    use super::*;
    use crate::sim::ask::Body;
    use jute::proto::ReplyHeader;

    #[test]
    fn time_going_back_and_lost_order_are_found() {
        let (mut check, truth) = (Sessions::default(), truth());
        let request = &Request::ReadPair;
        let asked = |xid| Seen::Asked { client: 0, session: 7, xid, request, at_us: 0 };
        let answered = |xid, counter| Seen::Answered {
            client: 0,
            session: 7,
            request,
            header: ReplyHeader { xid, zxid: zxid(1, counter).to_wire(), err: 0 },
            body: &Body::Nothing,
            at_us: 0,
        };
        (1..7).for_each(|xid| holds(&mut check, &asked(xid), &truth));
        holds(&mut check, &answered(1, 2), &truth);
        holds(&mut check, &answered(2, 2), &truth);
        fails(&mut check, &answered(3, 1), &truth, "sees 0x100000001 after 0x100000002");
        fails(&mut check, &answered(5, 3), &truth, "awaits Some(4)");
        holds(&mut check, &Seen::Parted { client: 0 }, &truth);
        fails(&mut check, &answered(6, 3), &truth, "awaits None");
    }

    #[test]
    fn sessions_that_come_back_or_live_on_are_found() {
        let (mut check, truth) = (Sessions::default(), truth());
        let welcomed = |session, is_new| Seen::Welcomed { client: 0, session, is_new };
        holds(&mut check, &welcomed(7, true), &truth);
        holds(&mut check, &welcomed(7, false), &truth);
        fails(&mut check, &welcomed(8, true), &truth, "nobody knows");
        fails(&mut check, &welcomed(7, true), &truth, "anew");
        holds(&mut check, &Seen::Calm { servers: &[] }, &truth);
        holds(&mut check, &Seen::Expired { client: 0, session: 7 }, &truth);
        fails(&mut check, &Seen::Calm { servers: &[] }, &truth, "and lives");
        fails(&mut check, &welcomed(7, false), &truth, "is back");
    }
}
