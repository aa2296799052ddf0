//! A watch fires for the first change behind the answer that left it, once, before any answer that shows the change; and
//! none is lost while its session lives, wherever that goes.

use super::{Check, Seen};
use crate::model::{Code, EventKind};
use crate::sim::ask::{Body, Request};
use crate::sim::model::{Model, is_from};
use crate::sim::truth::Truth;
use std::collections::BTreeMap;

/// What one client waits for.
#[derive(Default)]
struct Waiting {
    /// Paths, each with the zxid of the answer that left the watch.
    data: BTreeMap<String, i64>,
    children: BTreeMap<String, i64>,
    /// Those that stay: path and whether for all below, with the zxid through which nothing more can come.
    lasting: BTreeMap<(String, bool), i64>,
    /// What was heard of them since, and how often: one transaction may change the children of a path more than once.
    heard: BTreeMap<(i64, String, i32), usize>,
    /// The newest zxid when the connection broke, until the server has been told of the watches again.
    since: Option<i64>,
}

#[derive(Default)]
pub struct Watches(BTreeMap<usize, Waiting>);

impl Check for Watches {
    fn name(&self) -> &'static str {
        "watches"
    }

    fn see(&mut self, seen: &Seen<'_>, truth: &Truth) -> Result<(), String> {
        match *seen {
            Seen::Event { client, zxid, kind, path } => {
                let waiting = self.0.entry(client).or_default();
                let heard = waiting.hear(zxid, kind, path, &truth.model);
                heard.map_err(|why| {
                    format!("client {client} hears {kind:?} {path} at {zxid:#x}: {why}")
                })
            }
            Seen::Asked { client, request: Request::Watches { since, .. }, .. } => {
                self.0.entry(client).or_default().since = Some(*since);
                Ok(())
            }
            Seen::Answered { client, request, header, body, .. } => {
                let waiting = self.0.entry(client).or_default();
                let (zxid, model) = (header.zxid, &truth.model);
                if let Request::Watches { .. } = request {
                    waiting
                        .take_up(zxid, model)
                        .map_err(|why| format!("client {client}: {why}"))?;
                }
                waiting
                    .miss_nothing(zxid, model)
                    .map_err(|why| format!("client {client}: {why}"))?;
                waiting.leave(request, Code(header.err), zxid, body);
                Ok(())
            }
            // With the session its watches go.
            Seen::Expired { client, .. } | Seen::Welcomed { client, is_new: true, .. } => {
                self.0.remove(&client);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Waiting {
    /// What an answer leaves behind.
    fn leave(&mut self, request: &Request, code: Code, zxid: i64, _: &Body) {
        match request {
            Request::Get { path, watch: true } if code.is_ok() => {
                self.data.insert(path.clone(), zxid);
            }
            Request::Exists { path, watch: true } if matches!(code, Code::OK | Code::NO_NODE) => {
                self.data.insert(path.clone(), zxid);
            }
            Request::Children { path, watch: true } if code.is_ok() => {
                self.children.insert(path.clone(), zxid);
            }
            Request::Follow { path, deep } if code.is_ok() => {
                // One that is there already stays as it is.
                self.lasting.entry((path.clone(), *deep)).or_insert(zxid);
            }
            _ => {}
        }
    }

    fn hear(
        &mut self,
        zxid: i64,
        kind: EventKind,
        path: &str,
        model: &Model,
    ) -> Result<(), String> {
        let of_children = matches!(kind, EventKind::NodeChildrenChanged | EventKind::NodeDeleted);
        let of_data = kind != EventKind::NodeChildrenChanged;
        let data = if of_data { self.data.remove(path) } else { None };
        // What was missed is told once for each list of watches.
        let is_told = zxid == -1 && data.is_some();
        let children = if of_children && !is_told { self.children.remove(path) } else { None };
        let lasts = zxid != -1 && self.hear_lasting(zxid, kind, path, model)?;
        if data.is_none() && children.is_none() && !lasts {
            return Err("nothing like that is waited for".to_owned());
        }
        if zxid == -1 {
            // Missed while there was no connection: no more is said of it than that.
            return match self.since {
                Some(_) => Ok(()),
                None => Err("the server was told of no watches".to_owned()),
            };
        }
        for (left, is_data) in [(data, true), (children, false)] {
            let Some(left) = left else { continue };
            let first = first_change(model, path, is_data, left, i64::MAX);
            if first != Some((zxid, kind)) {
                return Err(format!("left at {left:#x}, should have fired for {first:x?}"));
            }
        }
        Ok(())
    }

    /// The server was told of what is waited for: what it did not find missed is left anew.
    fn take_up(&mut self, zxid: i64, model: &Model) -> Result<(), String> {
        let since = self.since.take().unwrap_or(0);
        for (path, left) in &mut self.data {
            let before = model.at(path, since);
            let now = model.at(path, zxid);
            let has_fired = match (before, now) {
                (Some(_), None) | (None, Some(_)) => true,
                (Some(_), Some(now)) => since < now.mzxid,
                (None, None) => false,
            };
            if has_fired {
                return Err(format!("the watch of {path}, missed since {since:#x}, did not fire"));
            }
            *left = zxid;
        }
        // Of what they missed they are told nothing.
        self.lasting.values_mut().for_each(|left| *left = zxid);
        self.heard.clear();
        for (path, left) in &mut self.children {
            let now = model.at(path, zxid);
            if now.is_none_or(|now| since < now.pzxid) {
                return Err(format!(
                    "the watch below {path}, missed since {since:#x}, did not fire"
                ));
            }
            *left = zxid;
        }
        Ok(())
    }

    /// Whether a watch that stays hears of this.
    fn hear_lasting(
        &mut self,
        zxid: i64,
        kind: EventKind,
        path: &str,
        model: &Model,
    ) -> Result<bool, String> {
        let covers = |((at, deep), left): (&(String, bool), &i64)| {
            *left < zxid && if *deep { hears_deep(at, path, kind) } else { at == path }
        };
        if !self.lasting.iter().any(covers) {
            return Ok(false);
        }
        let heard = self.heard.entry((zxid, path.to_owned(), kind as i32)).or_default();
        *heard += 1;
        match times(model, path, zxid, kind) {
            0 => Err("nothing like that happened then".to_owned()),
            times if times < *heard => Err("that was heard before".to_owned()),
            _ => Ok(true),
        }
    }

    /// All that happened through `zxid` was heard of.
    fn settle_lasting(&mut self, zxid: i64, model: &Model) -> Result<(), String> {
        for ((path, deep), left) in &mut self.lasting {
            let missed = model.events_from(path, *left, zxid).find(|&(at, when, kind)| {
                let concerns = if *deep { hears_deep(path, at, kind) } else { at == path };
                let heard = self.heard.get(&(when, at.to_owned(), kind as i32)).copied();
                concerns && heard.unwrap_or(0) < times(model, at, when, kind)
            });
            if let Some((at, when, kind)) = missed {
                return Err(format!(
                    "an answer of {zxid:#x} before {kind:?} {at} of {when:#x}, and {path} is followed since {left:#x}"
                ));
            }
            *left = zxid.max(*left);
        }
        self.heard.retain(|(when, _, _), _| zxid < *when);
        Ok(())
    }

    /// Nothing that is waited for happened through `zxid`.
    fn miss_nothing(&mut self, zxid: i64, model: &Model) -> Result<(), String> {
        self.settle_lasting(zxid, model)?;
        for (watches, is_data) in [(&self.data, true), (&self.children, false)] {
            for (path, &left) in watches {
                if let Some((at, kind)) = first_change(model, path, is_data, left, zxid) {
                    return Err(format!(
                        "an answer of {zxid:#x} before {kind:?} {path} of {at:#x}, watched since {left:#x}"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// How often something happened to a path with one transaction.
fn times(model: &Model, path: &str, zxid: i64, kind: EventKind) -> usize {
    model.events(path, zxid - 1, zxid).filter(|(_, happened)| *happened == kind).count()
}

/// Whether a watch on `at` and all below hears of this.
fn hears_deep(at: &str, path: &str, kind: EventKind) -> bool {
    kind != EventKind::NodeChildrenChanged && is_from(at, path)
}

/// The first change that a watch on a path's data, or on its children, fires for.
fn first_change(
    model: &Model,
    path: &str,
    is_data: bool,
    after: i64,
    through: i64,
) -> Option<(i64, EventKind)> {
    let concerns = |kind: EventKind| match kind {
        EventKind::NodeDeleted => true,
        EventKind::NodeChildrenChanged => !is_data,
        EventKind::NodeCreated | EventKind::NodeDataChanged => is_data,
    };
    model.events(path, after, through).find(|(_, kind)| concerns(*kind))
}

#[cfg(test)]
mod tests {
    use super::super::planted::{fails, holds, truth, zxid};
    use super::*;
    use jute::proto::ReplyHeader;

    fn at(counter: u32) -> i64 {
        zxid(1, counter).to_wire()
    }

    fn answered<'a>(request: &'a Request, counter: u32, err: i32) -> Seen<'a> {
        let header = ReplyHeader { xid: 1, zxid: at(counter), err };
        Seen::Answered { client: 0, session: 7, request, header, body: &Body::Nothing, at_us: 0 }
    }

    fn event(kind: EventKind, path: &str, zxid: i64) -> Seen<'_> {
        Seen::Event { client: 0, zxid, kind, path }
    }

    #[test]
    fn late_lost_repeated_and_wrong_events_are_found() {
        use EventKind::{NodeChildrenChanged, NodeCreated, NodeDataChanged};
        let (mut check, truth) = (Watches::default(), truth());
        let absent = Request::Exists { path: "/e".into(), watch: true };
        let get = Request::Get { path: "/a".into(), watch: true };
        let other = Request::ReadPair;
        holds(&mut check, &answered(&absent, 1, -101), &truth);
        holds(&mut check, &answered(&get, 2, 0), &truth);
        holds(&mut check, &event(NodeDataChanged, "/a", at(3)), &truth);
        fails(&mut check, &event(NodeDataChanged, "/a", at(3)), &truth, "nothing like that");
        holds(&mut check, &answered(&other, 3, 0), &truth);
        fails(&mut check, &answered(&other, 4, 0), &truth, "before NodeCreated /e");
        holds(&mut check, &event(NodeCreated, "/e", at(4)), &truth);
        holds(&mut check, &answered(&get, 2, 0), &truth);
        fails(&mut check, &event(NodeDataChanged, "/a", at(4)), &truth, "should have fired");
        let children = Request::Children { path: "/".into(), watch: true };
        holds(&mut check, &answered(&children, 2, 0), &truth);
        fails(&mut check, &event(NodeChildrenChanged, "/", -1), &truth, "told of no watches");
    }

    #[test]
    fn events_of_lasting_watches_that_are_lost_or_repeated_are_found() {
        use EventKind::{NodeChildrenChanged, NodeCreated, NodeDataChanged};
        let truth = truth();
        for deep in [false, true] {
            let mut check = Watches::default();
            let path = if deep { "/" } else { "/a" };
            let follow = Request::Follow { path: path.into(), deep };
            holds(&mut check, &answered(&follow, 1, 0), &truth);
            let other = Request::ReadPair;
            fails(&mut check, &answered(&other, 2, 0), &truth, "before NodeCreated /a");
            holds(&mut check, &event(NodeCreated, "/a", at(2)), &truth);
            fails(&mut check, &event(NodeCreated, "/a", at(2)), &truth, "heard before");
            holds(&mut check, &answered(&other, 2, 0), &truth);
            fails(&mut check, &event(NodeCreated, "/a", at(2)), &truth, "nothing like that");
            fails(&mut check, &event(NodeDataChanged, "/a", at(4)), &truth, "happened then");
            holds(&mut check, &event(NodeDataChanged, "/a", at(3)), &truth);
            let children = event(NodeChildrenChanged, "/", at(4));
            fails(&mut check, &children, &truth, "nothing like that");
            if deep {
                holds(&mut check, &event(NodeCreated, "/e", at(4)), &truth);
            }
            holds(&mut check, &answered(&other, 4, 0), &truth);
        }
    }

    #[test]
    fn what_is_missed_between_connections_is_found() {
        let truth = truth();
        let get = Request::Get { path: "/a".into(), watch: true };
        let again = |since| Request::Watches {
            since,
            data: vec!["/a".into()],
            absent: Vec::new(),
            children: Vec::new(),
            lasting: Vec::new(),
        };
        for (since, fires, about) in [(2, false, "did not fire"), (3, false, ""), (2, true, "")] {
            let mut check = Watches::default();
            let request = again(at(since));
            holds(&mut check, &answered(&get, 2, 0), &truth);
            let asked = Seen::Asked { client: 0, session: 7, xid: -8, request: &request, at_us: 0 };
            holds(&mut check, &asked, &truth);
            if fires {
                holds(&mut check, &event(EventKind::NodeDataChanged, "/a", -1), &truth);
            }
            match about {
                "" => holds(&mut check, &answered(&request, 4, 0), &truth),
                about => fails(&mut check, &answered(&request, 4, 0), &truth, about),
            }
        }
    }
}
