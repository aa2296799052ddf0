//! Turns of several inputs, configuration folders that can't be written, and an oracle that changes sides. They are drawn from
//! `Checker::turns`, a stream of its own.

use super::world::{Checker, World};
use oxkeeper::model::ServerId;
use oxkeeper::zab::{Input, LearnerConnectionId};
use support::disk::Write;
use support::ensemble::Ensemble;

/// Events that have to happen in some worlds, or their situations prove nothing.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Happened {
    /// A server took packets of several connections in one turn.
    TurnOfSeveral,
    /// A packet was discarded because an earlier one of its turn ended the connection.
    Discarded,
    /// A server ended because it could not write a configuration file.
    ConfigRefused,
    /// The turn that failed had several inputs.
    TurnFailed,
    /// The oracle has changed sides: it agrees with a voter, and agreed with the other one before.
    OracleSwitched,
    /// The voter to which the oracle changed leads without the other.
    LeadsAfterSwitch,
    /// A stranger sent a learner a packet of another phase.
    Strayed,
    /// An election connection to a leader was replaced.
    Replaced,
    /// A leader was cut off right after it proposed a configuration.
    CutOff,
    /// A quorum lost its data.
    Destroyed,
    /// A voter whose data is of a later epoch came back.
    CameBack,
    /// An observer came back with epochs later than all others', and without its data.
    ObserverCameBack,
    /// A Java leader repeated proposals after a tree.
    Repeated,
}

impl Happened {
    pub const ALL: [Self; 13] = [
        Self::TurnOfSeveral,
        Self::Discarded,
        Self::ConfigRefused,
        Self::TurnFailed,
        Self::OracleSwitched,
        Self::LeadsAfterSwitch,
        Self::Strayed,
        Self::Replaced,
        Self::CutOff,
        Self::Destroyed,
        Self::CameBack,
        Self::ObserverCameBack,
        Self::Repeated,
    ];
}

/// Limit on the events of one turn, without the tick at its end.
const TURN_EVENTS_MAX: usize = 16;
/// Limit on the events of a turn after a pause.
const STALLED_EVENTS_MAX: usize = 64;

impl World {
    /// Now and then an event of this world's situations happens; all other events do not depend on it.
    pub fn rare_step(&mut self) {
        let conditions = &self.witness.conditions;
        let (batches, refuses) = (conditions.batches, conditions.refuses_config);
        let (strays, replaces) = (conditions.strays, conditions.replaces);
        let hurries = conditions.hurries;
        let doubts = conditions.doubts;
        if conditions.oracle_switches {
            self.ask_oracle();
        }
        if doubts {
            self.doubt_some();
        }
        if hurries {
            self.hurry();
        }
        if strays {
            self.stray();
        }
        if replaces {
            self.replace_connections();
        }
        if refuses {
            self.lock_folder();
        }
        if batches {
            self.stall_or_turn();
        }
    }

    /// Now and then a server's tree comes to fit its digests, or ceases to; its next start notices that.
    fn doubt_some(&mut self) {
        let count = self.servers.len();
        let at = self.witness.rare.pick(count * 30);
        if at < count {
            self.servers[at].doubts ^= true;
        }
    }

    /// A server takes a turn, or takes no input for a while, so that much is waiting when its next turn begins.
    fn stall_or_turn(&mut self) {
        let servers = self.servers.len();
        let Checker { turns, stalled, .. } = &mut self.witness;
        if let Some(at) = *stalled {
            if turns.one_in(30) {
                *stalled = None;
                self.take_turn(at, STALLED_EVENTS_MAX);
            }
        } else if turns.one_in(5) {
            let at = turns.pick(servers);
            if turns.one_in(6) {
                *stalled = Some(at);
            } else {
                self.take_turn(at, TURN_EVENTS_MAX);
            }
        }
    }

    /// A server takes inputs of several connections, and performs its actions only after all of them.
    fn take_turn(&mut self, at: usize, events_max: usize) {
        if self.servers[at].peer.is_none() {
            return;
        }
        let turns = &mut self.witness.turns;
        let (count, mut connections, discarded) = (1 + turns.pick(events_max), 0, self.discarded);
        let failed = self.witness.happened.get(&Happened::ConfigRefused).copied();
        self.turn(at, |world| {
            let mut last = None;
            let mut taken = 0;
            while taken < count {
                let ids = arriving(world, at);
                let logs = world.servers[at].disk.asked_of_log().next().is_some();
                let busy = world.elections.busy();
                let heard: Vec<usize> =
                    busy.iter().filter(|&&(_, to)| to == at).map(|&(from, _)| from).collect();
                let events = ids.len() + usize::from(logs) + heard.len();
                if events == 0 {
                    break;
                }
                let event = world.witness.turns.pick(events);
                // Packets that were read together follow one another.
                let more = 1 + world.witness.turns.pick(4);
                match event.checked_sub(ids.len()) {
                    None => {
                        let (id, goes_to_leader) = ids[event];
                        connections += usize::from(last.replace(id) != Some(id));
                        for _ in 0..more {
                            world.deliver(id, goes_to_leader);
                        }
                    }
                    Some(0) if logs => (0..more).for_each(|_| world.write_log(at)),
                    Some(event) => {
                        world.hear(heard[event - usize::from(logs)], at);
                    }
                }
                taken += more;
            }
            world.step(at, Input::Tick);
        });
        self.witness.in_turn = None;
        if 1 < connections {
            self.witness.count(Happened::TurnOfSeveral);
        }
        if discarded < self.discarded {
            self.witness.count(Happened::Discarded);
        }
        if failed < self.witness.happened.get(&Happened::ConfigRefused).copied() {
            self.witness.count(Happened::TurnFailed);
        }
    }

    /// Makes a folder of configuration files read-only, or writable again.
    fn lock_folder(&mut self) {
        let servers = self.servers.len();
        let at = self.witness.turns.pick(servers);
        match self.witness.turns.below(100) {
            0 => {
                let logged = self.witness.turns.pick(4);
                self.servers[at].refuses_config = Some(logged);
                self.witness.note(|| format!("{at} can't write its configuration from now on"));
            }
            1..6 => self.servers[at].refuses_config = None,
            _ => {}
        }
    }

    /// The oracle of two voters may change sides: it first says no to both, and then yes to a voter that has all that the other one may
    /// have committed or promised. `src/sim/oracle.rs` has the same rule: an oracle that changes to a voter without that loses what the
    /// other voter committed alone, here and in ZooKeeper (docs/deviations.md).
    fn ask_oracle(&mut self) {
        let at = self.witness.turns.pick(2);
        match self.witness.turns.below(100) {
            0..2 => {
                if let Some(before) = self.witness.agreed.take() {
                    self.oracle_says(before, false);
                }
            }
            2..8 if self.witness.agreed.is_none() && self.knows_all(at) => {
                self.witness.agreed = Some(at);
                if self.witness.agreed_last.replace(at) == Some(1 - at) {
                    self.witness.count(Happened::OracleSwitched);
                    self.witness.has_switched = true;
                }
                self.oracle_says(at, true);
            }
            _ => {}
        }
        if let Some(alone) = self.witness.agreed
            && self.witness.has_switched
            && self.servers[alone].leads.is_some()
            && self.servers[1 - alone].peer.is_none()
        {
            self.witness.has_switched = false;
            self.witness.count(Happened::LeadsAfterSwitch);
        }
    }

    fn oracle_says(&mut self, at: usize, agrees: bool) {
        self.witness.note(|| format!("the oracle says {agrees} to {at}"));
        self.servers[at].oracle = Some(agrees);
        self.step(at, Input::Oracle { agrees });
    }

    /// Whether a voter's disk has all that the other of two voters may have committed, and all that that one has promised or is about to.
    fn knows_all(&self, at: usize) -> bool {
        if self.witness.conditions.oracle_is_wrong {
            return true;
        }
        let (disk, other) = (&self.servers[at].disk, 1 - at);
        let is_idle = self.servers[other].peer.as_ref().is_none_or(|peer| {
            peer.core.accepted <= disk.accepted && peer.core.current <= disk.current
        });
        // An epoch on its way to the disk is one that the other voter is about to promise or to open (world 610555).
        let mut asked = self.servers[other].disk.asked_of_log();
        let is_idle = is_idle && !asked.any(|write| matches!(write, Write::Promise(..)));
        is_idle && self.makes_up_for(ServerId(at as i64), other)
    }
}

/// The learner connections with a packet for this server that may arrive now, and its direction.
fn arriving(world: &Ensemble<Checker>, at: usize) -> Vec<(LearnerConnectionId, bool)> {
    let of = |goes_to_leader: bool| {
        world.connections.iter().filter_map(move |(&id, it)| {
            let (to, from, is_empty) = match goes_to_leader {
                true => (it.leader, it.learner, it.to_leader.is_empty()),
                false => (it.learner, it.leader, it.to_learner.is_empty()),
            };
            let comes = to == at && !is_empty && world.witness.lets_through(from, to);
            (comes && world.servers[from].peer.is_some()).then_some((id, goes_to_leader))
        })
    };
    of(true).chain(of(false)).collect()
}
