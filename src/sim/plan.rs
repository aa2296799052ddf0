//! The faults and client actions of a world: all of them follow from its seed and its climate.
//!
//! A plan is made before its world begins, as a list of independent steps: a fault has its own end. So steps can be left out to find
//! those that a failure needs ([`super::shrink`]).

pub use super::climate::{
    Climate, MS, Micros, PlantedFault, SERVES_AFTER_BREAK_US, SERVES_US, STARTS_TOGETHER_US,
};
use super::workload::{self, Request};
use crate::model::Rng;
use std::fmt;
use std::ops::Range;

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

/// Where the tree that is restored comes from.
#[derive(Clone, Copy, Debug)]
pub enum TreeSource {
    /// One of the operator's copies.
    Copy { which: u64 },
    /// Another ensemble, made from a seed.
    Foreign { seed: u64 },
}

/// The loss of all data but that of one server, `spared` or, with `observes`, an observer. * `keeps`: picks which unsynced writes survive.
#[derive(Clone, Copy, Debug)]
pub struct Return {
    pub spared: usize,
    pub observes: bool,
    pub keeps: u64,
    pub down_us: Micros,
}

/// A fault. One that lasts says for how long.
#[derive(Clone, Debug)]
pub enum Fault {
    /// A server's process ends after `changes` more changes to its disk.
    Crash { server: usize, changes: u64, crash: Crash },
    /// A server is asked to stop, and starts again `down_us` after it has stopped.
    Stop { server: usize, down_us: Micros },
    /// All machines lose their power at once.
    PowerCutAll { keeps: u64, down_us: Micros },
    /// A server, or all its machine, stands still.
    Stall { server: usize, for_us: Micros },
    /// Nothing passes from the nodes `from` to the nodes `to`, and with `both_ways` nothing back. Nodes are the servers, then the clients.
    Cut { from: Vec<usize>, to: Vec<usize>, both_ways: bool, for_us: Micros },
    /// All connections between two nodes break, with what is on its way.
    Break { one: usize, other: usize },
    /// The wall clock of a server is set.
    SetClock { server: usize, by_ms: i64 },
    /// Old snapshots and logs are removed.
    Purge { server: usize },
    /// A disk is slow for a while.
    SlowDisk { server: usize, for_us: Micros },
    /// Much of what two nodes send each other is lost for a while, and sent again.
    Lossy { one: usize, other: usize, for_us: Micros },
    /// For a while what the leader sends reaches only the server `spared`, or no server if the leader is `spared` itself; then the
    /// leader crashes, or all its connections to other servers break.
    IsolateLeader { spared: usize, for_us: Micros, crash: Option<Crash> },
    /// The tasks of a server's learner connections are not scheduled for a while; its driver is.
    StarveTasks { server: usize, for_us: Micros },
    /// A byte of a file of the server whose disk is damaged is read wrong. * `kills`: the server's process ends too, so that the file is
    /// read soon.
    Damage { server: usize, place: u64, kills: bool, down_us: Micros },
    /// A server's disk is copied.
    CopyDisk { server: usize },
    /// A server's configuration files can't be written. * `restarts`: the process ends, and the next one starts so long after it.
    LockConfiguration { server: usize, for_us: Micros, restarts: Option<Micros> },
    /// Another program on the server's machine takes a port.
    TakePort { server: usize, port: u16, for_us: Micros },
    /// The oracle lets this one of two voters go on without the other, or, with `None`, neither.
    Oracle { server: Option<usize> },
    /// A server's process ends, and the next one does not start while the disk of its logs is not mounted.
    Unmount { server: usize, down_us: Micros },
    /// All servers stop, and those that are not spared, at least a quorum, start again without their data or with an older copy of it.
    Destroy { spared: Vec<usize>, restores: bool, keeps: u64, down_us: Micros },
    /// All servers stop, and all but one start again without their data. That one starts later.
    Return(Return),
    /// An operator copies the tree of a server.
    CopyTree { server: usize },
    /// An operator restores a tree at a server, or, with `None`, at the leader. * `crash`: ends the process after this many changes to its
    /// disk.
    Restore { server: Option<usize>, source: TreeSource, crash: Option<(u64, Crash)> },
    /// A server's process ends, and files are gone or old when the next one starts.
    Lose { server: usize, loss: Loss, down_us: Micros },
}

/// The files that a server's next process finds missing or older.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Loss {
    AcceptedEpoch,
    CurrentEpoch,
    BothEpochs,
    Logs,
    /// One file of the log, the newest or the one before it: some of the losses of logs.
    NewestLog,
    OlderLog,
    /// The file of the log before the newest one, and the snapshots that make up for it.
    OlderLogAndSnapshots,
    Snapshots,
    /// All but the epochs: some of the losses of snapshots.
    LogsAndSnapshots,
    /// Snapshots and epochs.
    SnapshotFolder,
    /// All of version-2.
    Data,
    DynamicFile,
    /// `.dynamic.next`
    ProposedFile,
    MyId,
    /// All of version-2 is as it was when it was copied.
    OldData,
    /// All files are as they were when the disk was copied.
    OldDisk,
    /// Both epoch files are as they were when the disk was copied: a dataDir was restored, and not the dataLogDir.
    OldEpochs,
    /// `currentEpoch` alone, where the log shows that it was later.
    OldCurrentEpoch,
    /// The digests in the log are not those of the tree.
    Digests,
    /// The machine, for good: where members change, a reconfiguration removes it.
    Machine,
    /// All snapshots, which the operator removes; the log has everything. The next process is started with `snapshot.trust.empty`.
    Migration,
}

impl Loss {
    pub const ALL: [Self; 14] = [
        Self::AcceptedEpoch,
        Self::CurrentEpoch,
        Self::BothEpochs,
        Self::Logs,
        Self::Snapshots,
        Self::SnapshotFolder,
        Self::Data,
        Self::DynamicFile,
        Self::ProposedFile,
        Self::MyId,
        Self::OldData,
        Self::OldDisk,
        Self::Digests,
        Self::Machine,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::AcceptedEpoch => "lost: acceptedEpoch",
            Self::CurrentEpoch => "lost: currentEpoch",
            Self::BothEpochs => "lost: both epochs",
            Self::Logs => "lost: logs",
            Self::NewestLog => "lost: newest log",
            Self::OlderLog => "lost: older log",
            Self::OlderLogAndSnapshots => "lost: older log and its snapshots",
            Self::Snapshots => "lost: snapshots",
            Self::LogsAndSnapshots => "lost: logs and snapshots",
            Self::SnapshotFolder => "lost: snapshots and epochs",
            Self::Data => "lost: all data",
            Self::DynamicFile => "lost: dynamic file",
            Self::ProposedFile => "lost: proposed configuration",
            Self::MyId => "lost: myid",
            Self::OldData => "restored: older data",
            Self::OldDisk => "restored: older disk",
            Self::OldEpochs => "restored: older epochs",
            Self::OldCurrentEpoch => "restored: older currentEpoch",
            Self::Digests => "other digests",
            Self::Machine => "lost: machines",
            Self::Migration => "snapshots removed by the operator",
        }
    }
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
pub enum PlannedEvent {
    Client { client: usize, action: ClientAction },
    Fault(Fault),
}

#[derive(Clone, Debug)]
pub struct Step {
    pub at_us: Micros,
    pub event: PlannedEvent,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub climate: Climate,
    /// The steps, in the order of their times.
    pub steps: Vec<Step>,
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        Self::in_climate(Climate::of(seed))
    }

    /// The plan for the seed of a climate that a test may have changed.
    pub fn in_climate(climate: Climate) -> Self {
        let mut rng = Rng::new(climate.seed, 2);
        let mut steps = Vec::new();
        let busy_ms = [20, 40, 80][rng.pick(3)];
        let busy_ms = if climate.hurries { 20 } else { busy_ms };
        for client in 0..climate.clients {
            let mut at_us = (200 + 100 * client as u64) * MS;
            let mut action = ClientAction::Send(workload::setup());
            while at_us < climate.lasts_us {
                steps.push(Step { at_us, event: PlannedEvent::Client { client, action } });
                at_us += rng.range(1, busy_ms) * MS;
                action = some_action(&mut rng, &climate);
            }
        }
        let mut at_us = 0;
        // Some worlds have many faults, some have few: either may show what the other hides.
        let pause_ms = [60, 200, 600][rng.pick(3)];
        // The faults of an adverse climate need leaders that live for a while.
        let is_timed = climate.adverse || climate.hurries || climate.returns;
        let pause_ms = if is_timed { 4 * pause_ms } else { pause_ms };
        loop {
            at_us += rng.range(1, 2 * pause_ms) * MS;
            if climate.lasts_us <= at_us {
                break;
            }
            let fault = some_fault(&mut rng, &climate);
            steps.push(Step { at_us, event: PlannedEvent::Fault(fault) });
        }
        if climate.adverse {
            add_adversities(&climate, &mut steps);
        }
        if climate.loses_files {
            add_losses(&climate, &mut steps);
        }
        if climate.oracle {
            add_faults(&climate, 10, 100..1000, &mut steps, |rng| Fault::Oracle {
                server: match rng.pick(3) {
                    2 => None,
                    _ if climate.changes => Some(rng.pick(climate.servers())),
                    voter => Some(voter),
                },
            });
        }
        if climate.read_only {
            add_faults(&climate, 12, 300..2500, &mut steps, |rng| lonely_server(rng, &climate));
        }
        if climate.unmounts {
            add_faults(&climate, 11, 200..1500, &mut steps, |rng| Fault::Unmount {
                server: rng.pick(climate.servers()),
                down_us: rng.range(5, 900) * MS,
            });
        }
        if climate.destroys {
            add_faults(&climate, 14, 100..900, &mut steps, |rng| destruction(rng, &climate));
        }
        if climate.restores {
            add_faults(&climate, 19, 50..700, &mut steps, |rng| restore(rng, &climate));
        }
        add_returns(&climate, &mut steps);
        add_rare_operations(&climate, &mut steps);
        if climate.starts_together {
            // There are no faults until the servers serve; clients may connect.
            let is_calm = |at_us| at_us < latest_service_us(&climate);
            steps.retain(|step| {
                matches!(step.event, PlannedEvent::Client { .. }) || !is_calm(step.at_us)
            });
        }
        steps.sort_by_key(|step| step.at_us);
        Self { climate, steps }
    }

    /// This plan with only the steps at these places.
    pub fn only(&self, kept: &[usize]) -> Self {
        let steps = kept.iter().filter_map(|&at| self.steps.get(at).cloned()).collect();
        Self { climate: self.climate.clone(), steps }
    }
}

/// The latest moment at which servers that start together have to serve.
const fn latest_service_us(climate: &Climate) -> Micros {
    let breaks_us = if climate.breaks_early { SERVES_AFTER_BREAK_US } else { 0 };
    STARTS_TOGETHER_US + SERVES_US + breaks_us
}

fn some_action(rng: &mut Rng, climate: &Climate) -> ClientAction {
    match rng.below(60) {
        0 | 1 => ClientAction::Move { server: rng.pick(climate.servers()) },
        2 => ClientAction::Sleep { for_us: rng.range(200, 3000) * MS },
        3..18 if climate.hurries => ClientAction::Send(vec![Request::some_reconfig(rng, climate)]),
        3 | 4 if climate.changes && !climate.rewrites => {
            ClientAction::Send(vec![Request::some_reconfig(rng, climate)])
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

/// Adds faults of one kind, with a random stream of their own.
///
/// * `pause_ms`: between one fault and the next.
fn add_faults(
    climate: &Climate,
    stream: u64,
    pause_ms: Range<u64>,
    steps: &mut Vec<Step>,
    fault: impl Fn(&mut Rng) -> Fault,
) {
    let mut rng = Rng::new(climate.seed, stream);
    let mut at_us = rng.range(pause_ms.start, pause_ms.end) * MS;
    while at_us < climate.lasts_us {
        steps.push(Step { at_us, event: PlannedEvent::Fault(fault(&mut rng)) });
        at_us += rng.range(pause_ms.start, pause_ms.end) * MS;
    }
}

/// Adds the faults of an adverse climate.
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
            // The server starts again too late for the election that follows.
            let crash = Crash { kind, down_us: rng.range(800, 2000) * MS };
            let crash = rng.one_in(3).then_some(crash);
            let for_us = rng.range(20, 400) * MS;
            Fault::IsolateLeader { spared: rng.pick(climate.servers()), for_us, crash }
        };
        steps.push(Step { at_us, event: PlannedEvent::Fault(fault) });
    }
}

/// Adds losses of files, and the copies of disks that some of these need.
fn add_losses(climate: &Climate, steps: &mut Vec<Step>) {
    let (mut rng, mut more) = (Rng::new(climate.seed, 8), Rng::new(climate.seed, 48));
    let mut which_log = Rng::new(climate.seed, 58);
    let mut at_us = 0;
    loop {
        at_us += rng.range(50, 800) * MS;
        if climate.lasts_us <= at_us {
            break;
        }
        // Where a disk may be damaged at any time, no other server loses files.
        let server = climate.damaged.unwrap_or_else(|| rng.pick(climate.servers()));
        let (loss, down_us) = (Loss::ALL[rng.pick(Loss::ALL.len())], rng.range(5, 900) * MS);
        let loss = match loss {
            Loss::Snapshots if more.one_in(2) => Loss::LogsAndSnapshots,
            Loss::Logs if which_log.one_in(3) => Loss::NewestLog,
            Loss::Logs if which_log.one_in(2) => Loss::OlderLog,
            loss => loss,
        };
        let fault = match rng.below(6) {
            0 | 1 => Fault::CopyDisk { server },
            2 if climate.changes => {
                Fault::LockConfiguration { server, for_us: down_us, restarts: None }
            }
            _ => Fault::Lose { server, loss, down_us },
        };
        steps.push(Step { at_us, event: PlannedEvent::Fault(fault) });
    }
}

/// Adds the return of a server with data that all others have lost.
fn add_returns(climate: &Climate, steps: &mut Vec<Step>) {
    if !climate.returns {
        return;
    }
    // Some epochs have to begin before.
    add_faults(climate, 68, 200..900, steps, |rng| {
        let crash = Crash { kind: CrashKind::Process, down_us: rng.range(5, 300) * MS };
        let (spared, for_us) = (rng.pick(climate.servers()), rng.range(5, 50) * MS);
        Fault::IsolateLeader { spared, for_us, crash: Some(crash) }
    });
    let from_ms = climate.lasts_us / MS / 3;
    add_faults(climate, 67, from_ms..2 * from_ms, steps, |rng| {
        Fault::Return(Return {
            spared: rng.pick(climate.voters),
            observes: climate.changes && rng.one_in(2),
            keeps: rng.below(4000),
            down_us: rng.range(5, 100) * MS,
        })
    });
}

/// Adds what [`Climate`] has chances of their own for.
fn add_rare_operations(climate: &Climate, steps: &mut Vec<Step>) {
    // Where a disk may be damaged at any time, no other server loses files.
    let server = |rng: &mut Rng| climate.damaged.unwrap_or_else(|| rng.pick(climate.servers()));
    let mut lose = |stream, pause_ms, loss| {
        add_faults(climate, stream, pause_ms, steps, |rng| Fault::Lose {
            server: server(rng),
            loss,
            down_us: rng.range(5, 900) * MS,
        });
    };
    if climate.loses_older_logs {
        lose(61, 100..1000, Loss::OlderLogAndSnapshots);
    }
    if climate.loses_machine {
        lose(62, 300..3000, Loss::Machine);
    }
    if climate.migrates {
        lose(63, 200..1200, Loss::Migration);
    }
    if climate.restores_epochs {
        lose(7031, 200..1200, Loss::OldEpochs);
        lose(7033, 200..1200, Loss::OldCurrentEpoch);
        add_faults(climate, 7032, 100..800, steps, |rng| Fault::CopyDisk { server: server(rng) });
    }
    if climate.locks_folders {
        add_faults(climate, 64, 100..1200, steps, |rng| Fault::LockConfiguration {
            server: rng.pick(climate.servers()),
            for_us: rng.range(50, 1500) * MS,
            restarts: (!rng.one_in(3)).then(|| rng.range(5, 200) * MS),
        });
    }
    if climate.moves_ports {
        let mut ports = Rng::new(climate.seed, 65);
        for step in &mut *steps {
            if let PlannedEvent::Client { action: ClientAction::Send(requests), .. } =
                &mut step.event
            {
                requests.iter_mut().for_each(|request| request.give_other_ports(&mut ports));
            }
        }
        add_faults(climate, 66, 50..500, steps, |rng| Fault::TakePort {
            server: rng.pick(climate.servers()),
            port: workload::CLIENT_PORT + 1 + rng.below(3) as u16,
            for_us: rng.range(100, 2500) * MS,
        });
    }
}

/// The data of a quorum is gone, or a disk is copied before that.
fn destruction(rng: &mut Rng, climate: &Climate) -> Fault {
    if !rng.one_in(5) {
        return Fault::CopyDisk { server: rng.pick(climate.servers()) };
    }
    let servers = if climate.changes { climate.servers() } else { climate.voters };
    let spared = (0..servers).filter(|_| rng.one_in(2)).collect();
    let (restores, keeps, down_us) = (rng.one_in(2), rng.below(4000), rng.range(5, 300) * MS);
    Fault::Destroy { spared, restores, keeps, down_us }
}

/// An operator copies a tree, or restores one: at the leader or at any server.
fn restore(rng: &mut Rng, climate: &Climate) -> Fault {
    let server = rng.pick(climate.servers());
    if rng.one_in(2) {
        return Fault::CopyTree { server };
    }
    let source = match rng.below(3) {
        0 => TreeSource::Foreign { seed: rng.next() },
        _ => TreeSource::Copy { which: rng.next() },
    };
    let (changes, keeps, down_us) = (rng.below(24), rng.below(4000), rng.range(5, 900) * MS);
    let kind = if rng.one_in(2) { CrashKind::Process } else { CrashKind::Power { keeps } };
    let crash = rng.one_in(2).then_some((changes, Crash { kind, down_us }));
    Fault::Restore { server: rng.one_in(4).then_some(server), source, crash }
}

/// One server is cut off from the others for so long that it serves read-only clients, which may be cut off together with it.
fn lonely_server(rng: &mut Rng, climate: &Climate) -> Fault {
    let (server, takes_clients) = (rng.pick(climate.servers()), rng.one_in(2));
    let with_it = |node: usize| match node.checked_sub(climate.servers()) {
        Some(client) => takes_clients && climate.accepts_read_only(client),
        None => node == server,
    };
    let from = (0..climate.servers() + climate.clients).filter(|&node| with_it(node)).collect();
    let to = (0..climate.servers()).filter(|&node| node != server).collect();
    Fault::Cut { from, to, both_ways: true, for_us: rng.range(2200, 4000) * MS }
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
        write!(f, "{:>9.3} ms  {:?}", self.at_us as f64 / 1000.0, self.event)
    }
}
