//! A watch fires once, for the first change after the reply that set the watch, and before any reply that shows the change. No watch is
//! lost while its session lives, whichever server the session is connected to.

use super::seen::{Answered, Check, Seen};
use crate::model::{Code, EventKind};
use crate::sim::history::History;
use crate::sim::model::{Model, is_from};
use crate::sim::workload::{Op, Request, Watch};
use std::collections::BTreeMap;

/// The watches of one client.
#[derive(Default)]
struct Watched {
    /// One-shot watches: the path and whether its data is watched or its children, with the zxid of the reply that set the watch.
    once: BTreeMap<(String, bool), i64>,
    /// Persistent watches: the path and whether all below is watched, with the zxid through which no more events can come.
    persistent: BTreeMap<(String, bool), i64>,
    /// Events of persistent watches after that zxid, and how often each came: one transaction may change the children of a path more
    /// than once.
    received: BTreeMap<(i64, String, i32), usize>,
    /// The newest zxid that the client had seen before it reconnected, from the moment it sends setWatches until that is answered.
    since: Option<i64>,
}

#[derive(Default)]
pub struct Watches(BTreeMap<usize, Watched>);

impl Check for Watches {
    fn see(&mut self, seen: &Seen<'_>, history: &History) -> Result<(), String> {
        let model = &history.model;
        match *seen {
            Seen::Event { client, zxid, kind, path } => {
                let received = self.0.entry(client).or_default().receive(zxid, kind, path, model);
                let about = || format!("client {client} receives {kind:?} {path} at {zxid:#x}");
                received.map_err(|why| format!("{}: {why}", about()))
            }
            Seen::Asked { client, request, .. } => {
                if let Op::SetWatches(lists) = &request.op {
                    self.0.entry(client).or_default().since = Some(lists.since);
                }
                Ok(())
            }
            Seen::Answered(Answered { client, request, header, .. }) => {
                let watched = self.0.entry(client).or_default();
                let settled = watched.settle(request, header.zxid, model);
                watched.leave(request, Code(header.err), header.zxid);
                settled.map_err(|why| format!("client {client}: {why}"))
            }
            // Watches end with their session.
            Seen::Expired { client, .. } | Seen::SessionOpened { client, is_new: true, .. } => {
                self.0.remove(&client);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Watched {
    fn leave(&mut self, request: &Request, code: Code, zxid: i64) {
        let path = request.path.clone();
        match request.watch_left(code) {
            Some(Watch::Data) => drop(self.once.insert((path, true), zxid)),
            Some(Watch::Children) => drop(self.once.insert((path, false), zxid)),
            // A persistent watch that is there already stays as it is.
            Some(Watch::Persistent { recursive }) => {
                self.persistent.entry((path, recursive)).or_insert(zxid);
            }
            None => {}
        }
    }

    fn receive(
        &mut self,
        zxid: i64,
        kind: EventKind,
        path: &str,
        model: &Model,
    ) -> Result<(), String> {
        let mut fired = Vec::new();
        for is_data in [true, false] {
            // A missed change gives one event for each list of watches in setWatches.
            let is_reported = zxid == -1 && !fired.is_empty();
            if fires(kind, is_data) && !is_reported {
                let left = self.once.remove(&(path.to_owned(), is_data));
                fired.extend(left.map(|left| (left, is_data)));
            }
        }
        let is_persistent = zxid != -1 && self.receive_persistent(zxid, kind, path, model)?;
        if fired.is_empty() && !is_persistent {
            return Err("no watch waits for that event".to_owned());
        }
        if zxid == -1 {
            // The change was missed while there was no connection; the event does not say when it happened.
            return match self.since {
                Some(_) => Ok(()),
                None => Err("the client has not sent setWatches".to_owned()),
            };
        }
        for (left, is_data) in fired {
            let first = first_change(model, path, is_data, left, i64::MAX);
            if first != Some((zxid, kind)) {
                return Err(format!("set at {left:#x}, should have fired for {first:x?}"));
            }
        }
        Ok(())
    }

    /// Whether a persistent watch fires for this event.
    fn receive_persistent(
        &mut self,
        zxid: i64,
        kind: EventKind,
        path: &str,
        model: &Model,
    ) -> Result<bool, String> {
        let mut watches = self.persistent.iter();
        if !watches.any(|((at, deep), left)| *left < zxid && covers(at, *deep, path, kind)) {
            return Ok(false);
        }
        let received = self.received.entry((zxid, path.to_owned(), kind as i32)).or_default();
        *received += 1;
        match times(model, path, zxid, kind) {
            0 => Err("that did not happen in this transaction".to_owned()),
            times if times < *received => Err("that event has come before".to_owned()),
            _ => Ok(true),
        }
    }

    /// After a reply, no event of a transaction through its zxid may be still to come.
    fn settle(&mut self, request: &Request, zxid: i64, model: &Model) -> Result<(), String> {
        if let Op::SetWatches(_) = request.op {
            self.set_again(zxid, model)?;
        }
        self.settle_persistent(zxid, model)?;
        for ((path, is_data), &left) in &self.once {
            if let Some((at, kind)) = first_change(model, path, *is_data, left, zxid) {
                return Err(format!(
                    "an answer of {zxid:#x} before {kind:?} {path} of {at:#x}, watched since {left:#x}"
                ));
            }
        }
        Ok(())
    }

    /// setWatches is answered: a watch whose change was missed must have fired, and every other watch is set again.
    fn set_again(&mut self, zxid: i64, model: &Model) -> Result<(), String> {
        let since = self.since.take().unwrap_or(0);
        for ((path, is_data), left) in &mut self.once {
            let has_fired = match (model.at(path, since), model.at(path, zxid)) {
                (_, now) if !*is_data => now.is_none_or(|now| since < now.stat.pzxid),
                (Some(_), Some(now)) => since < now.stat.mzxid,
                (before, now) => before.is_some() || now.is_some(),
            };
            if has_fired {
                return Err(format!("the watch of {path}, missed since {since:#x}, did not fire"));
            }
            *left = zxid;
        }
        // A persistent watch gets no events for the changes that it missed.
        self.persistent.values_mut().for_each(|left| *left = zxid);
        self.received.clear();
        Ok(())
    }

    fn settle_persistent(&mut self, zxid: i64, model: &Model) -> Result<(), String> {
        for ((path, deep), left) in &mut self.persistent {
            let missed = model.events_from(path, *left, zxid).find(|&(at, when, kind)| {
                let received = self.received.get(&(when, at.to_owned(), kind as i32)).copied();
                covers(path, *deep, at, kind)
                    && received.unwrap_or(0) < times(model, at, when, kind)
            });
            if let Some((at, when, kind)) = missed {
                return Err(format!(
                    "an answer of {zxid:#x} before {kind:?} {at} of {when:#x}, and {path} is watched since {left:#x}"
                ));
            }
            *left = zxid.max(*left);
        }
        self.received.retain(|(when, _, _), _| zxid < *when);
        Ok(())
    }
}

/// How many events of a kind one transaction makes for a path.
fn times(model: &Model, path: &str, zxid: i64, kind: EventKind) -> usize {
    model.events(path, zxid - 1, zxid).filter(|(_, happened)| *happened == kind).count()
}

/// Whether a persistent watch at `at` fires for this event.
fn covers(at: &str, recursive: bool, path: &str, kind: EventKind) -> bool {
    if recursive { kind != EventKind::NodeChildrenChanged && is_from(at, path) } else { at == path }
}

/// Whether a one-shot watch on data, or on children, fires for an event of this kind.
const fn fires(kind: EventKind, is_data: bool) -> bool {
    match kind {
        EventKind::NodeDeleted => true,
        EventKind::NodeChildrenChanged => !is_data,
        EventKind::NodeCreated | EventKind::NodeDataChanged => is_data,
    }
}

/// The first change that a watch on a path's data, or on its children, fires for.
fn first_change(
    model: &Model,
    path: &str,
    is_data: bool,
    after: i64,
    through: i64,
) -> Option<(i64, EventKind)> {
    model.events(path, after, through).find(|(_, kind)| fires(*kind, is_data))
}
