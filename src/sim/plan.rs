//! What a world is like and what will happen in it: all of it follows from a seed.
//!
//! A plan is made before its world begins, as a list of steps that stand for themselves: a fault brings its own end with
//! it. So steps can be left out to find those that a failure needs ([`super::shrink`]).

use super::workload::{self, Request};
use crate::member::opening::{NoOpening, Openings};
use crate::member::sim_opening::SimOpenings;
use crate::model::Rng;
use crate::model::Zxid;
use std::fmt;
use std::sync::Arc;

/// Microseconds of a world's time.
pub type Micros = u64;

pub const MS: Micros = 1000;

/// A bug of the world's own, for tests of the checks: each shows what a check is there to find.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Plant {
    /// A disk that says it has flushed what is gone with the next power cut.
    LyingDisk,
    /// A server whose epoch files are lost with each crash.
    ForgottenEpochs,
    /// A tree that was changed without a transaction.
    TamperedTree,
    /// An event that never reaches its client.
    LostEvent,
    /// An event that comes twice.
    RepeatedEvent,
    /// An event after the answer that shows the change.
    LateEvent,
    /// An answer of other data than the server gave.
    WrongAnswer,
    /// An answer with a zxid from before those that were there already.
    OldZxid,
    /// Two answers in each other's place.
    SwappedAnswers,
    /// A server that is cut off for ever.
    StuckServer,
    /// A log thread that says what it is about to do as if it were done.
    EarlyReport,
    /// A damaged disk whose server is believed when it comes back with less than it had acknowledged.
    UnmissedLoss,
    /// An event of a lasting watch that never reaches its client.
    LostLastingEvent,
}

impl Plant {
    pub const ALL: [Self; 13] = [
        Self::LyingDisk,
        Self::ForgottenEpochs,
        Self::TamperedTree,
        Self::LostEvent,
        Self::RepeatedEvent,
        Self::LateEvent,
        Self::WrongAnswer,
        Self::OldZxid,
        Self::SwappedAnswers,
        Self::StuckServer,
        Self::EarlyReport,
        Self::UnmissedLoss,
        Self::LostLastingEvent,
    ];
}

/// What a world is like.
#[derive(Clone, Debug, Default)]
pub struct Climate {
    pub seed: u64,
    pub voters: usize,
    pub observers: usize,
    /// Servers that are in no configuration when the world begins: they start as joiners, one by one.
    pub joiners: usize,
    /// Clients change the members of the ensemble, and their roles.
    pub changes: bool,
    pub clients: usize,
    /// Transactions between two snapshots, at the most.
    pub snap_count: u64,
    /// Every learner gets the whole tree.
    pub sends_trees: bool,
    /// Its disk takes fifty times as long.
    pub slow_disk: Option<usize>,
    /// Observers connect to any voter, which passes on what the leader sends.
    pub relays: bool,
    /// Sessions are their server's own until they make something ephemeral.
    pub local_sessions: bool,
    /// Sectors of this server's disk come back wrong now and then. Never of two servers': only one disk may be lost.
    pub damaged: Option<usize>,
    /// Counter of an epoch's last zxid: small in some worlds, so that one epoch after the other is used up.
    pub counter_max: u32,
    /// Every connection between servers opens with an exchange of words ([`SimOpenings`]).
    pub has_openings: bool,
    /// From one machine to another.
    pub latency_us: Micros,
    /// How long things fail, before all faults end.
    pub lasts_us: Micros,
    /// Leaders fail when it hurts: what they propose reaches few disks, and they are cut off as soon as their epoch is open.
    /// So do disks, around truncations.
    pub adverse: bool,
    /// Tasks of learner connections are scheduled late now and then, also those whose connection was closed.
    pub late_tasks: bool,
    /// A snapshot takes up to seconds now and then.
    pub slow_snapshots: bool,
    /// So many bytes fit into the socket of a learner connection, and as many may wait for it: the peer is given up then.
    pub small_buffers: Option<usize>,
    pub plant: Option<Plant>,
}

impl Climate {
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed, 1);
        let voters = if rng.one_in(3) { 5 } else { 3 };
        let observers = if rng.one_in(4) { rng.range(1, 2) as usize } else { 0 };
        let changes = rng.one_in(3);
        let old = Self {
            voters,
            observers,
            changes,
            // Five servers and two more at the most: with more of them less happens to each.
            joiners: if changes { rng.pick(if voters == 5 { 2 } else { 3 }) } else { 0 },
            clients: rng.range(2, 4) as usize,
            snap_count: [8, 20, 60, 1000][rng.pick(4)],
            sends_trees: rng.one_in(6),
            slow_disk: rng.one_in(4).then(|| rng.pick(voters)),
            relays: observers > 0 && rng.one_in(2),
            local_sessions: rng.one_in(5),
            damaged: (!changes && rng.one_in(3)).then(|| rng.pick(voters)),
            counter_max: match rng.below(6) {
                0 => [19, 99, 399][rng.pick(3)],
                _ => Zxid::COUNTER_MAX,
            },
            latency_us: [100, 500, 3000][rng.pick(3)],
            lasts_us: rng.range(2000, 5000) * MS,
            has_openings: rng.one_in(6),
            ..Self::calm(seed)
        };
        // Three servers have too few disks for a history that only some of those alive have.
        let adverse = if voters == 5 { !rng.one_in(3) } else { rng.one_in(3) };
        Self {
            adverse,
            snap_count: if adverse { [6, 12, 60][rng.pick(3)] } else { old.snap_count },
            late_tasks: rng.one_in(2),
            slow_snapshots: adverse || rng.one_in(4),
            lasts_us: old.lasts_us + if adverse { 2000 * MS } else { 0 },
            small_buffers: rng.one_in(4).then(|| [1000, 2000, 4000][rng.pick(3)]),
            sends_trees: old.sends_trees || adverse && rng.one_in(3),
            ..old
        }
    }

    /// Three servers, three clients, and nothing special.
    pub fn calm(seed: u64) -> Self {
        Self {
            seed,
            voters: 3,
            clients: 3,
            snap_count: 100,
            counter_max: Zxid::COUNTER_MAX,
            latency_us: 500,
            lasts_us: 6000 * MS,
            ..Self::default()
        }
    }

    /// What speaks first on connections between servers.
    pub fn openings(&self) -> Arc<dyn Openings> {
        if self.has_openings { Arc::new(SimOpenings) } else { Arc::new(NoOpening) }
    }

    /// Voters first, then observers, then those that join.
    pub const fn servers(&self) -> usize {
        self.voters + self.observers + self.joiners
    }
}

/// How a process ends.
#[derive(Clone, Copy, Debug)]
pub enum CrashKind {
    /// The process is killed; what it wrote stays with its machine.
    Process,
    /// The machine loses its power. * `keeps`: picks which unsynced writes survive.
    Power { keeps: u64 },
    /// The disk refuses one change, and the process ends because of it.
    DiskError,
}

/// The end of a process, and for how long it is down.
#[derive(Clone, Copy, Debug)]
pub struct Crash {
    pub kind: CrashKind,
    pub down_us: Micros,
}

/// Something goes wrong. A fault that lasts says for how long.
#[derive(Clone, Debug)]
pub enum Fault {
    /// A server's process ends, `changes` changes to its disk from now.
    Crash { server: usize, changes: u64, crash: Crash },
    /// A server is asked to stop, and starts again so long after it has.
    Stop { server: usize, down_us: Micros },
    /// All machines lose their power at once.
    PowerCutAll { keeps: u64, down_us: Micros },
    /// A server, or all its machine, stands still.
    Stall { server: usize, for_us: Micros },
    /// Nothing passes from one of these nodes to one of the others, or back. Clients count on from the servers.
    Cut { from: Vec<usize>, to: Vec<usize>, both_ways: bool, for_us: Micros },
    /// All connections between two nodes break, with what is on its way.
    Break { one: usize, other: usize },
    /// The wall clock of a server is set.
    SetClock { server: usize, by_ms: i64 },
    /// Old snapshots and logs are removed.
    Purge { server: usize },
    /// A disk is slow for a while.
    SlowDisk { server: usize, for_us: Micros },
    /// Between two nodes much is lost for a while, and sent again.
    Lossy { one: usize, other: usize, for_us: Micros },
    /// What the leader sends reaches only the server `spared`, or none if it is that itself, for so long; then it
    /// crashes, or all its connections to other servers break.
    IsolateLeader { spared: usize, for_us: Micros, crash: Option<Crash> },
    /// The tasks of a server's learner connections are not scheduled for a while; its driver is.
    StarveTasks { server: usize, for_us: Micros },
    /// A byte of a file of the server whose disk is damaged comes back wrong. * `kills`: its process ends too, so that the
    /// file is read soon.
    Damage { server: usize, place: u64, kills: bool, down_us: Micros },
}

/// A client does something.
#[derive(Clone, Debug)]
pub enum ClientAction {
    /// Sends these requests together.
    Send(Vec<Request>),
    /// Leaves its connection and goes to that server with its session.
    Move { server: usize },
    /// Says nothing for so long, which may cost it its session.
    Sleep { for_us: Micros },
}

#[derive(Clone, Debug)]
pub enum What {
    Client { client: usize, action: ClientAction },
    Fault(Fault),
}

#[derive(Clone, Debug)]
pub struct Step {
    pub at_us: Micros,
    pub what: What,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub climate: Climate,
    /// In the order of their times.
    pub steps: Vec<Step>,
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        Self::in_climate(Climate::of(seed))
    }

    /// What happens to the climate's seed in a climate that may have been changed.
    pub fn in_climate(climate: Climate) -> Self {
        let mut rng = Rng::new(climate.seed, 2);
        let mut steps = Vec::new();
        let busy_ms = [20, 40, 80][rng.pick(3)];
        for client in 0..climate.clients {
            let mut at_us = (200 + 100 * client as u64) * MS;
            let mut action = ClientAction::Send(workload::setup());
            while at_us < climate.lasts_us {
                steps.push(Step { at_us, what: What::Client { client, action } });
                at_us += rng.range(1, busy_ms) * MS;
                action = some_action(&mut rng, &climate);
            }
        }
        let mut at_us = 0;
        // Some worlds are rough, some are nearly calm: what one hides the other may show.
        let pause_ms = [60, 200, 600][rng.pick(3)];
        // Its own faults need leaders that live for a while.
        let pause_ms = if climate.adverse { 4 * pause_ms } else { pause_ms };
        loop {
            at_us += rng.range(1, 2 * pause_ms) * MS;
            if climate.lasts_us <= at_us {
                break;
            }
            let fault = some_fault(&mut rng, &climate);
            steps.push(Step { at_us, what: What::Fault(fault) });
        }
        if climate.adverse {
            add_adversities(&climate, &mut steps);
        }
        steps.sort_by_key(|step| step.at_us);
        Self { climate, steps }
    }

    /// Only the steps at these places.
    pub fn only(&self, kept: &[usize]) -> Self {
        let steps = kept.iter().filter_map(|&at| self.steps.get(at).cloned()).collect();
        Self { climate: self.climate.clone(), steps }
    }
}

fn some_action(rng: &mut Rng, climate: &Climate) -> ClientAction {
    match rng.below(60) {
        0 | 1 => ClientAction::Move { server: rng.pick(climate.servers()) },
        2 => ClientAction::Sleep { for_us: rng.range(200, 3000) * MS },
        3 | 4 if climate.changes => {
            ClientAction::Send(vec![Request::some_reconfig(rng, climate.servers())])
        }
        _ => {
            let count = if rng.one_in(4) { rng.range(2, 8) } else { 1 };
            ClientAction::Send((0..count).map(|_| Request::some(rng)).collect())
        }
    }
}

fn some_fault(rng: &mut Rng, climate: &Climate) -> Fault {
    let server = rng.pick(climate.servers());
    let nodes = climate.servers() + climate.clients;
    let (one, other) = (rng.pick(nodes), rng.pick(nodes));
    let (down_us, for_us) = (rng.range(5, 900) * MS, rng.range(50, 1500) * MS);
    let (changes, keeps) = (rng.below(12), rng.below(4000));
    if let Some(server) = climate.damaged
        && rng.one_in(8)
    {
        return Fault::Damage { server, place: rng.next(), kills: !rng.one_in(4), down_us };
    }
    let crash = |kind| Fault::Crash { server, changes, crash: Crash { kind, down_us } };
    match rng.below(30) {
        0..4 => crash(CrashKind::Process),
        4..8 => crash(CrashKind::Power { keeps }),
        8 => Fault::PowerCutAll { keeps, down_us },
        9 => crash(CrashKind::DiskError),
        10..13 => Fault::Stall { server, for_us: rng.range(20, 1200) * MS },
        13..20 => some_cut(rng, climate),
        20..23 => Fault::Break { one, other },
        23 | 24 => Fault::SetClock { server, by_ms: rng.below(20_000_000) as i64 - 10_000_000 },
        25 => Fault::SlowDisk { server, for_us },
        26 | 27 => Fault::Lossy { one, other, for_us },
        28 => Fault::Stop { server, down_us },
        _ => Fault::Purge { server },
    }
}

/// Faults of a climate in which leaders fail when it hurts.
fn add_adversities(climate: &Climate, steps: &mut Vec<Step>) {
    let mut rng = Rng::new(climate.seed, 5);
    let mut at_us = 0;
    loop {
        at_us += rng.range(100, 800) * MS;
        if climate.lasts_us <= at_us {
            break;
        }
        let fault = if climate.late_tasks && rng.one_in(3) {
            let server = rng.pick(climate.servers());
            Fault::StarveTasks { server, for_us: rng.range(50, 1500) * MS }
        } else {
            let keeps = rng.below(4000);
            let kind = if rng.one_in(2) { CrashKind::Process } else { CrashKind::Power { keeps } };
            // Too late for the election that follows.
            let crash = Crash { kind, down_us: rng.range(800, 2000) * MS };
            let crash = rng.one_in(3).then_some(crash);
            let for_us = rng.range(20, 400) * MS;
            Fault::IsolateLeader { spared: rng.pick(climate.servers()), for_us, crash }
        };
        steps.push(Step { at_us, what: What::Fault(fault) });
    }
}

fn some_cut(rng: &mut Rng, climate: &Climate) -> Fault {
    let nodes: Vec<usize> = (0..climate.servers() + climate.clients).collect();
    let for_us = rng.range(20, 1500) * MS;
    let (from, to): (Vec<usize>, Vec<usize>) = if rng.one_in(2) {
        let alone = nodes[rng.pick(climate.servers())];
        nodes.iter().partition(|&&node| node == alone)
    } else {
        nodes.iter().partition(|_| rng.one_in(2))
    };
    let (from, to) = if rng.one_in(2) { (from, to) } else { (to, from) };
    Fault::Cut { from, to, both_ways: !rng.one_in(3), for_us }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3} ms  {:?}", self.at_us as f64 / 1000.0, self.what)
    }
}
