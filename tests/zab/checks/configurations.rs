//! A configuration in force was committed by quorums of all configurations that count, no server goes back to an older one, and none
//! forgets at a start a configuration that counted when it acknowledged something. A configuration in the log counts, and the one
//! before it in the history is in force: a leader proposes one at a time.

use super::{Check, Event};
use oxkeeper::model::{View, Zxid};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
pub struct Configurations {
    /// Configurations that a leader put in force, by version.
    decided: BTreeMap<i64, View>,
    /// The history of these configurations is lost, so that later zxids may be lower; no more configurations are proposed.
    lost_before: bool,
    /// Version of the newest configuration that each server had in force.
    in_force: BTreeMap<usize, i64>,
}

impl Configurations {
    /// Notes a configuration that was in force before this check began.
    pub fn know(&mut self, view: View) {
        self.lost_before = true;
        self.decided.insert(view.version, view);
    }

    /// The newest configuration before a transaction that a leader put in force.
    pub fn newest_before(&self, zxid: Zxid) -> Option<&View> {
        let end = if self.lost_before { i64::MAX } else { zxid.to_wire() };
        self.decided.range(..end).next_back().map(|(_, view)| view)
    }
}

impl Check for Configurations {
    fn name(&self) -> &'static str {
        "configurations"
    }

    fn see(&mut self, event: &mut Event<'_>) -> Result<(), String> {
        if let Event::OlderView { at } = event {
            self.in_force.remove(at);
        }
        if let Event::Starts { at, acknowledged, views } = event {
            return remembers(*at, acknowledged, views);
        }
        match event {
            Event::Acknowledges { at, logged, views } => {
                // Beside a configuration that an operator has written the last two count: those before them were replaced.
                let last = if views.contains(&0) { 2 } else { usize::MAX };
                let ignored = logged.iter().rev().take(last).find(|it| !views.contains(it));
                return ignored.map_or(Ok(()), |version| {
                    Err(format!("{at} acknowledges {version:#x}, which does not count there"))
                });
            }
            // A configuration that an operator has written may be newer than those of a history that arrives.
            Event::LogsView { at, before, in_force } if 0 < *in_force && *in_force < *before => {
                return Err(format!(
                    "{at} logs a configuration after {before:#x}, and {in_force:#x} is in force"
                ));
            }
            _ => {}
        }
        let Event::InForce { at, view, leads } = event else { return Ok(()) };
        let version = view.version;
        if let Some(before) = self.in_force.insert(*at, version).filter(|before| version < *before)
        {
            return Err(format!("{at} goes back to {version:#x} from {before:#x}"));
        }
        if let Some(decided) = self.decided.get(&version) {
            return match decided == *view {
                true => Ok(()),
                false => Err(format!("{at} has another configuration {version:#x} in force")),
            };
        }
        if !*leads {
            return Err(format!("{at} has {version:#x} in force, which no leader committed"));
        }
        if let Some((newest, _)) =
            self.decided.last_key_value().filter(|(newest, _)| version < **newest)
        {
            return Err(format!("{at} commits {version:#x} after {newest:#x}"));
        }
        self.decided.insert(version, (*view).clone());
        Ok(())
    }
}

/// A start finds all configurations that counted at the last acknowledgement, unless a newer one is in force.
fn remembers(at: usize, acknowledged: &BTreeSet<i64>, views: &[&View]) -> Result<(), String> {
    let in_force = views.first().map_or(0, |view| view.version);
    let counts = |version: i64| views.iter().any(|view| view.version == version);
    let forgotten = acknowledged.iter().find(|&&version| in_force < version && !counts(version));
    match forgotten {
        Some(version) => Err(format!("{at} has forgotten {version:#x}, which it acknowledged")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted::{fails, holds};
    use super::*;
    use support::views::view_of;

    #[test]
    fn uncommitted_older_and_forgotten_configurations_are_found() {
        let view = |version| view_of(version, [1, 2, 3], []);
        let (first, second, third) = (view(5), view(7), view(9));
        let mut check = Configurations::default();
        let in_force = |at, view, leads| Event::InForce { at, view, leads };
        fails(&mut check, in_force(1, &first, false), "no leader committed");
        holds(&mut check, in_force(1, &second, true));
        holds(&mut check, in_force(2, &second, false));
        fails(&mut check, in_force(2, &first, false), "goes back");
        fails(&mut check, in_force(3, &first, true), "after 0x7");
        holds(&mut check, Event::OlderView { at: 2 });
        let other = view_of(7, [1, 2], []);
        fails(&mut check, in_force(4, &other, false), "another configuration");
        holds(&mut check, in_force(1, &third, true));
        let (logged, versions) = (BTreeSet::from([9]), BTreeSet::from([7, 9]));
        holds(&mut check, Event::Acknowledges { at: 1, logged: &logged, views: &versions });
        let ignored = Event::Acknowledges { at: 1, logged: &logged, views: &BTreeSet::from([7]) };
        fails(&mut check, ignored, "0x9, which does not count");
        holds(&mut check, Event::LogsView { at: 1, before: 7, in_force: 7 });
        fails(&mut check, Event::LogsView { at: 1, before: 7, in_force: 5 }, "0x5 is in force");
        let acknowledged = BTreeSet::from([5, 7]);
        let (both, later, neither) = ([&first, &second], [&third], [&first, &third]);
        let starts = |views| Event::Starts { at: 1, acknowledged: &acknowledged, views };
        holds(&mut check, starts(&both));
        holds(&mut check, starts(&later));
        fails(&mut check, starts(&neither), "has forgotten 0x7");
    }
}
