//! The settings of a world: all of them follow from a seed.

use crate::member::sasl_exchange::{NoSasl, SaslExchanges};
use crate::member::sim_exchange::{SimExchanges, digest_exchanges};
use crate::model::{Rng, Zxid};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Microseconds of a world's time.
pub type Micros = u64;

pub const MS: Micros = 1000;
/// Servers that start together start within this time.
pub const STARTS_TOGETHER_US: Micros = 100 * MS;
/// Servers that start together must serve within this time after the last start: less than initLimit, which is 1 s.
pub const SERVES_US: Micros = 800 * MS;
/// The same from the end of a first connection: learners of a leader that gave up for it are kept for half a second, and dials are slow.
pub const SERVES_AFTER_BREAK_US: Micros = 990 * MS;

/// The stream that says whether reconfigurations come in a hurry: none of the worlds that `tests/sabotage` names has them.
const HURRY_STREAM: u64 = 179;
/// The same of a server that comes back with lost data, of first connections that end, and of packets of other phases.
const RETURN_STREAM: u64 = 173;
const EARLY_STREAM: u64 = 167;
const STRAYS_STREAM: u64 = 168;
/// The same of rivals that observers meet.
const RIVALS_STREAM: u64 = 184;
/// The same of operators that write zoo.cfg anew at each start.
const REWRITES_STREAM: u64 = 5253;
/// The same of older epoch files.
const OLD_EPOCHS_STREAM: u64 = 7081;
/// The same of damaged trees that have the names which a Java leader gives them.
const JAVA_TREES_STREAM: u64 = 949;

/// A fault that the simulator itself makes, for tests of the checks: each is one that a check has to find.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PlantedFault {
    /// A disk that reports as flushed what the next power cut takes.
    LyingDisk,
    /// A server whose epoch files are lost with each crash.
    ForgottenEpochs,
    /// A tree that was changed without a transaction.
    TamperedTree,
    /// An event that never reaches its client.
    LostEvent,
    /// An event that comes twice.
    RepeatedEvent,
    /// An event after the reply that shows the change.
    LateEvent,
    /// A reply with other data than the server sent.
    WrongAnswer,
    /// A reply with an older zxid than those before it.
    OldZxid,
    /// Two replies in swapped order.
    SwappedAnswers,
    /// A server that is cut off for ever.
    StuckServer,
    /// A log thread that reports a flush before it happens.
    EarlyReport,
    /// A server with a damaged disk that votes, although it has less than it had acknowledged.
    UnmissedLoss,
    /// An event of a persistent watch that never reaches its client.
    LostLastingEvent,
    /// Servers that ignore `oxkeeper.quorumSync` and `oxkeeper.linearizableReads`.
    UnconfirmedReads,
    /// A leader that does not process its clients' pings.
    UnheardPings,
    /// Election connections that deliver nothing for the first second.
    SlowStart,
    /// A read-only server that answers writes as if it had done them.
    WriteInReadOnly,
    /// A start that creates `dataLogDir` where its disk is not mounted.
    MountPointMade,
    /// An oracle that lets a voter go on alone, whatever the other one has committed.
    WrongOracle,
    /// A server that tells a client which reconnects that its session is over, whether that is so or not.
    RefusedSession,
    /// An operator who empties one more server than the checks know of.
    MoreIsLost,
    /// The checks are told that a server of no configuration had established each epoch first.
    SecondLeader,
    /// The checks see a proposal in an epoch that has no leader.
    UnopenedEpoch,
    /// The checks are told that each server serves an earlier state again.
    StepBack,
    /// The checks see trees with other digests.
    OtherDigest,
    /// The checks are told that what a leader commits is on no disk but its own.
    FewDisks,
    /// The checks are told that a configuration is in force that was never proposed.
    UncommittedView,
    /// The checks see no ACK: each epoch is established by its leader's own ACK alone.
    MinorityEpoch,
    /// The checks are told that the disk of a learner is empty when it acknowledges a proposal.
    EarlyAck,
    /// The checks are told that the disk of a learner is empty when it acknowledges NEWLEADER.
    ShortHistory,
    /// The checks are told that each learner acknowledges the end of its history right after its ACKEPOCH.
    HastyAck,
    /// The checks are told that another client is given the same new session.
    SharedSession,
    /// The checks are told that the currentEpoch of a server that serves is not saved.
    UnsavedEpoch,
    /// The checks see a connection with more unsent bytes than its limit.
    UnsentBytes,
    /// The checks are told that a server acts on packets of a connection that it has closed.
    HeardAfterClose,
    /// The checks are told that the history of a snapshot was truncated before the snapshot got its name.
    CutSnapshot,
    /// The checks are told that a restore is done when it has just begun.
    UnfinishedRestore,
}

impl PlantedFault {
    pub const ALL: [Self; 37] = [
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
        Self::UnconfirmedReads,
        Self::UnheardPings,
        Self::SlowStart,
        Self::WriteInReadOnly,
        Self::MountPointMade,
        Self::WrongOracle,
        Self::RefusedSession,
        Self::MoreIsLost,
        Self::SecondLeader,
        Self::UnopenedEpoch,
        Self::StepBack,
        Self::OtherDigest,
        Self::FewDisks,
        Self::UncommittedView,
        Self::MinorityEpoch,
        Self::EarlyAck,
        Self::ShortHistory,
        Self::HastyAck,
        Self::SharedSession,
        Self::UnsavedEpoch,
        Self::UnsentBytes,
        Self::HeardAfterClose,
        Self::CutSnapshot,
        Self::UnfinishedRestore,
    ];
}

/// The settings of a world.
#[derive(Clone, Debug, Default)]
pub struct Climate {
    pub seed: u64,
    /// The one server is standalone: it is in no ensemble.
    pub alone: bool,
    pub voters: usize,
    pub observers: usize,
    /// Servers that are in no configuration when the world begins: they start as joiners, one by one.
    pub joiners: usize,
    /// Clients change the members of the ensemble, and their roles.
    pub changes: bool,
    /// Some of these reconfigurations are conditional: they name the version of the configuration that one of the servers has.
    pub conditional: bool,
    /// Voters have weights and groups, in the first configuration and in some of the later ones.
    pub groups: bool,
    pub clients: usize,
    /// `snapCount`: limit on transactions between two snapshots.
    pub snap_count: u64,
    /// `forceSnapshotSync`: every learner gets the whole tree (SNAP).
    pub sends_trees: bool,
    /// The server whose disk takes fifty times as long.
    pub slow_disk: Option<usize>,
    /// `observerMasterPort`: observers connect to any voter, which relays what the leader sends.
    pub relays: bool,
    /// `localSessionsEnabled`: sessions are local until they create an ephemeral znode.
    pub local_sessions: bool,
    /// The server whose disk sometimes returns wrong sectors. Never two servers: the data of only one may be lost.
    pub damaged: Option<usize>,
    /// `oxkeeper.quorumSync`: a leader has a quorum confirm that it leads before it answers a sync.
    pub quorum_sync: bool,
    /// `oxkeeper.linearizableReads`: each read waits for such a sync.
    pub linearizable_reads: bool,
    /// The first servers start within 100 ms, and nothing fails until they serve.
    pub starts_together: bool,
    /// `snapshot.compression.method`
    pub packing: Option<&'static str>,
    /// Files are lost while a server is down, and its operator does as docs say.
    pub loses_files: bool,
    /// `oraclePath`: of two voters at most one at a time may go on without the other, and it has all that was committed then.
    pub oracle: bool,
    /// The disk of `dataLogDir` is sometimes not mounted when a server is to start.
    pub unmounts: bool,
    /// `readonlymode.enabled`: some clients accept read-only servers.
    pub read_only: bool,
    /// db.autocreate=false: the operator marks the directories of the first members with `initialize`.
    pub marks_new: bool,
    /// Counter of an epoch's last zxid: small in some worlds, so that zxids roll over often.
    pub counter_max: u32,
    /// Every connection between servers has a SASL exchange: [`SimExchanges`], or DIGEST-MD5 in every second of these worlds.
    pub has_sasl: bool,
    /// How long bytes take from one machine to another.
    pub latency_us: Micros,
    /// How long there are faults.
    pub lasts_us: Micros,
    /// Faults are timed by the state of the ensemble (`super::adversary`): leaders fail whose proposals are on few disks, or are cut off
    /// as soon as their epoch is open, and machines lose power around truncations.
    pub adverse: bool,
    /// Tasks of learner connections are sometimes scheduled late, also after their connection was closed.
    pub late_tasks: bool,
    /// A snapshot sometimes takes seconds.
    pub slow_snapshots: bool,
    /// This many bytes fit into the socket of a learner connection, and as many into its outbox; above that the peer is disconnected.
    pub small_buffers: Option<usize>,
    /// `oxkeeper.lagBytes`: small in some worlds, so that commits wait for learners, and learners are left behind.
    pub lag_bytes: Option<u64>,
    /// Servers lose a log that is not their newest one, together with the snapshots that make up for it: none of them may replay the
    /// newest log without it.
    pub loses_older_logs: bool,
    /// The operator starts every server with `snapshot.trust.empty`, where no server loses all its snapshots.
    pub trusts_empty: bool,
    /// The folders of configuration files can't be written for a while. Where members change, a server then ends instead of acknowledging a
    /// reconfiguration, and one that starts then ends before it serves; elsewhere it writes none, and goes on.
    pub locks_folders: bool,
    /// A machine is lost for good. Where members change, a reconfiguration can still remove it at the end; elsewhere all others settle
    /// without it.
    pub loses_machine: bool,
    /// Operators remove the snapshots of a server whose log has everything. It must not start without `snapshot.trust.empty`, votes with all
    /// that it had after a start with that setting, and has to start without it from then on.
    pub migrates: bool,
    /// Epoch files are replaced by older copies: some servers can tell by their logs that they have promised more, and must not start.
    pub restores_epochs: bool,
    /// Reconfigurations give members other client ports, some of which another program has for a while. No client is served at another port
    /// than the configuration in force names, and each member is at that port at the end.
    pub moves_ports: bool,
    /// An operator destroys the data of a quorum while all servers are down (`super::destruction`).
    pub destroys: bool,
    /// An operator restores older and foreign trees (`super::restores`).
    pub restores: bool,
    /// Clients reconfigure the ensemble again and again, and connections of the leader are cut off and break at these moments
    /// (`super::hurry`).
    pub hurries: bool,
    /// A stranger sends learners packets of another phase than theirs, as if their leader had sent them (`super::other_peers`).
    pub strays: bool,
    /// Servers start together, and the first connections between them end: a learner's to the server that it has just dialed, or an
    /// election connection, which another one replaces (`super::other_peers`).
    pub breaks_early: bool,
    /// All members but one lose their data, and that one comes back to the ensemble that the others form anew (`super::returns`).
    pub returns: bool,
    /// Observers have promised more than their leader, because they have met a rival of it (`super::rivals`).
    pub rivals: bool,
    /// Operators write zoo.cfg anew at each start, and add and take out servers by its lines (`super::rescales`).
    pub rewrites: bool,
    /// The ensemble begins as one server (`super::growth`).
    pub grows: bool,
    /// Servers that send what members running Java send, in Java's order (`super::java`).
    pub java: BTreeSet<usize>,
    /// The server whose disk is damaged gets trees, which have the names that a Java leader gives them when they are damaged
    /// (`super::java`).
    pub java_trees: bool,
    pub plant: Option<PlantedFault>,
    /// The name of a check whose findings are ignored, so that a test sees whether other checks find a planted fault.
    pub left_out: Option<&'static str>,
}

impl Climate {
    pub fn of(seed: u64) -> Self {
        let (mut rng, mut more) = (Rng::new(seed, 1), Rng::new(seed, 6));
        let voters = if rng.one_in(3) { 5 } else { 3 };
        let voters = match more.below(24) {
            0 | 1 => 7,
            2 => 2,
            _ => voters,
        };
        let observers = if rng.one_in(4) { rng.range(1, 2) as usize } else { 0 };
        let changes = rng.one_in(3);
        let old = Self {
            voters,
            observers,
            changes,
            // At most two with up to three voters, and one with more: the more servers, the less happens to each.
            joiners: if changes { rng.pick(if voters <= 3 { 3 } else { 2 }) } else { 0 },
            groups: more.one_in(5),
            loses_files: more.one_in(4),
            marks_new: more.one_in(2),
            quorum_sync: more.one_in(6),
            linearizable_reads: more.one_in(6),
            starts_together: more.one_in(8),
            packing: [None, None, Some("gz"), Some("snappy")][more.pick(4)],
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
            has_sasl: rng.one_in(6),
            ..Self::calm(seed)
        };
        let damaged = (changes && more.one_in(4)).then(|| more.pick(voters)).or(old.damaged);
        // One voter of two is no quorum.
        let damaged = damaged.filter(|_| 2 < voters);
        // Each confirmation takes a zxid: in epochs of few zxids syncs alone would cause rollovers.
        let has_room = old.counter_max == Zxid::COUNTER_MAX;
        // Three servers are too few for a history that only some of the running servers have.
        let adverse = if 3 < voters { !rng.one_in(3) } else { rng.one_in(3) };
        Self {
            adverse,
            damaged,
            quorum_sync: old.quorum_sync && has_room,
            linearizable_reads: old.linearizable_reads && has_room,
            starts_together: old.starts_together && !adverse && old.slow_disk.is_none(),
            // Joiners have no data at first; with a damaged server too many members might be without data.
            marks_new: old.marks_new && !(changes && damaged.is_some()),
            snap_count: if adverse { [6, 12, 60][rng.pick(3)] } else { old.snap_count },
            late_tasks: rng.one_in(2),
            slow_snapshots: adverse || rng.one_in(4),
            lasts_us: old.lasts_us + if adverse { 2000 * MS } else { 0 },
            lag_bytes: Rng::new(seed, 41).one_in(4).then_some(600),
            small_buffers: rng.one_in(4).then(|| [1000, 2000, 4000][rng.pick(3)]),
            sends_trees: old.sends_trees || adverse && rng.one_in(3),
            ..old
        }
        .with_newest()
        .with_changing_pair()
        .with_other_destructions()
        .with_rare_operations()
        .with_one_kind_of_faults()
        .with_standalone()
    }

    /// Settings each with a stream of its own. The numbers of the streams are those with which no world that `tests/sabotage` names has
    /// one of these settings, so that these worlds stay as they were.
    fn with_rare_operations(self) -> Self {
        let has = |stream, one_in| Rng::new(self.seed, stream).one_in(one_in);
        let keeps_snapshots = !self.loses_files && self.damaged.is_none() && !self.destroys;
        Self {
            loses_older_logs: has(156, 8),
            trusts_empty: has(156, 8) && keeps_snapshots && !has(113, 10) && has(169, 2),
            locks_folders: has(160, 8),
            loses_machine: has(106, 10),
            migrates: has(113, 10),
            restores_epochs: has(OLD_EPOCHS_STREAM, 16),
            moves_ports: self.changes && has(137, 4),
            ..self
        }
    }

    fn with_one_kind_of_faults(self) -> Self {
        self.with_hurry()
            .with_other_peers()
            .with_return()
            .with_rivals()
            .with_java_trees()
            .with_rewrites()
            .with_growth()
    }

    /// Reconfigurations in a hurry, with what of this world does not disturb them.
    pub(super) fn in_a_hurry(&self) -> Self {
        Self {
            hurries: true,
            changes: true,
            clients: self.clients,
            late_tasks: self.late_tasks,
            snap_count: self.snap_count,
            latency_us: self.latency_us.min(500),
            packing: self.packing,
            ..Self::calm(self.seed)
        }
    }

    /// In some worlds little else fails than what is timed by reconfigurations.
    fn with_hurry(self) -> Self {
        let mut rng = Rng::new(self.seed, HURRY_STREAM);
        if !rng.one_in(12) {
            return self;
        }
        let voters = [3, 3, 5][rng.pick(3)];
        let joiners = if voters == 3 { 2 } else { 1 };
        let all = voters + joiners;
        let slow_disk = rng.one_in(3).then(|| rng.pick(all));
        let java = if rng.one_in(3) { BTreeSet::new() } else { (0..all).collect() };
        let is_small = self.lag_bytes.is_some() || self.small_buffers.is_some();
        Self {
            voters,
            joiners,
            sends_trees: rng.one_in(2),
            loses_files: rng.one_in(3),
            locks_folders: self.locks_folders && !is_small,
            groups: self.groups && rng.one_in(4),
            slow_disk,
            java,
            lasts_us: rng.range(2500, 5000) * MS,
            ..self.in_a_hurry()
        }
    }

    /// In some worlds servers start together, and nothing fails but their first connections.
    fn with_other_peers(self) -> Self {
        let mut rng = Rng::new(self.seed, EARLY_STREAM);
        let strays = Rng::new(self.seed, STRAYS_STREAM).one_in(20);
        if !rng.one_in(20) {
            return Self { strays, ..self };
        }
        Self {
            breaks_early: true,
            starts_together: true,
            voters: [2, 2, 3][rng.pick(3)],
            clients: 2,
            latency_us: [100, 500, 3000][rng.pick(3)],
            lasts_us: 2500 * MS,
            ..Self::calm(self.seed)
        }
    }

    /// In some worlds a server comes back with data that all others have lost.
    fn with_return(self) -> Self {
        let mut rng = Rng::new(self.seed, RETURN_STREAM);
        if !rng.one_in(24) {
            return self;
        }
        let changes = rng.one_in(2);
        Self {
            returns: true,
            changes,
            voters: [3, 3, 5][rng.pick(3)],
            observers: if changes { rng.range(1, 2) as usize } else { 0 },
            snap_count: self.snap_count,
            sends_trees: self.sends_trees,
            marks_new: self.marks_new,
            packing: self.packing,
            lasts_us: rng.range(4000, 6000) * MS,
            ..Self::calm(self.seed)
        }
    }

    /// In some worlds with reconfigurations in a hurry observers have promised more than their leader.
    fn with_rivals(self) -> Self {
        let mut rng = Rng::new(self.seed, RIVALS_STREAM);
        if !rng.one_in(32) {
            return self;
        }
        let (voters, observers) = (3, rng.range(1, 2) as usize);
        let java = if rng.one_in(4) { BTreeSet::new() } else { (0..voters + observers).collect() };
        Self {
            rivals: true,
            voters,
            observers,
            relays: !rng.one_in(3),
            sends_trees: rng.one_in(2),
            java,
            lasts_us: rng.range(2500, 5000) * MS,
            ..self.in_a_hurry()
        }
    }

    /// In some worlds members change by the lines that their operators write, and by nothing else.
    fn with_rewrites(self) -> Self {
        let mut rng = Rng::new(self.seed, REWRITES_STREAM);
        if !rng.one_in(40) {
            return self;
        }
        Self {
            rewrites: true,
            changes: true,
            joiners: 1,
            snap_count: self.snap_count,
            sends_trees: rng.one_in(3),
            latency_us: self.latency_us,
            packing: self.packing,
            late_tasks: self.late_tasks,
            lasts_us: rng.range(4000, 8000) * MS,
            ..Self::calm(self.seed)
        }
    }

    fn with_java_trees(self) -> Self {
        let has_some = Rng::new(self.seed, JAVA_TREES_STREAM).one_in(8);
        let java_trees = has_some && self.damaged.is_some();
        Self { java_trees, sends_trees: self.sends_trees || java_trees, ..self }
    }

    /// Few worlds have no ensemble.
    fn with_standalone(self) -> Self {
        let mut rng = Rng::new(self.seed, 47);
        if rng.one_in(20) { Self { restores: !rng.one_in(4), ..self.alone() } } else { self }
    }

    /// The same with one standalone server, whose data an operator restores. What only ensembles have is off, and no disk is damaged:
    /// what one disk loses is lost.
    #[must_use]
    pub fn alone(self) -> Self {
        Self {
            alone: true,
            voters: 1,
            clients: self.clients,
            snap_count: self.snap_count,
            slow_disk: self.slow_disk.map(|_| 0),
            packing: self.packing,
            slow_snapshots: self.slow_snapshots,
            latency_us: self.latency_us,
            lasts_us: self.lasts_us,
            restores: true,
            ..Self::calm(self.seed)
        }
    }

    /// Quorums lose their data where members change or a disk is damaged, too.
    fn with_other_destructions(self) -> Self {
        let may_have = (self.changes || self.damaged.is_some()) && !self.adverse && !self.oracle;
        let destroys = may_have && Rng::new(self.seed, 17).one_in(3);
        Self { destroys: self.destroys || destroys, ..self }
    }

    /// In some worlds with reconfigurations: two voters, an oracle, and servers that join.
    fn with_changing_pair(self) -> Self {
        if !self.changes || !Rng::new(self.seed, 16).one_in(6) {
            return self;
        }
        let (voters, joiners) = (2, self.joiners.max(1));
        Self { voters, joiners, oracle: true, groups: false, damaged: None, ..self }
    }

    /// Settings with random streams of their own, so that the other settings of a seed stay as they were.
    fn with_newest(self) -> Self {
        let mut rng = Rng::new(self.seed, 9);
        let oracle = self.voters == 2 && !self.changes && !rng.one_in(3);
        let read_only = rng.one_in(6);
        Self {
            oracle,
            read_only,
            unmounts: rng.one_in(8),
            restores: Rng::new(self.seed, 18).one_in(5),
            conditional: rng.one_in(2),
            java: self.java_members(),
            // There are no reconfigurations: configuration files would have lost ones. Leaders are not isolated, since that may begin
            // at any time.
            destroys: Rng::new(self.seed, 15).one_in(2)
                && !self.changes
                && self.damaged.is_none()
                && !self.adverse
                && !oracle,
            // An oracle and groups exclude each other.
            groups: self.groups && !oracle,
            lasts_us: self.lasts_us + if read_only { 3000 * MS } else { 0 },
            ..self
        }
    }

    fn java_members(&self) -> BTreeSet<usize> {
        let mut rng = Rng::new(self.seed, 13);
        let has_some = rng.one_in(3);
        (0..self.servers()).filter(|_| has_some && rng.one_in(2)).collect()
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

    /// The SASL exchanges of connections between servers.
    pub fn exchanges(&self) -> Arc<dyn SaslExchanges> {
        match (self.has_sasl, self.seed % 2) {
            (false, _) => Arc::new(NoSasl),
            (true, 0) => Arc::new(SimExchanges),
            (true, _) => Arc::new(digest_exchanges(true)),
        }
    }

    /// Whether a client accepts read-only servers.
    pub const fn accepts_read_only(&self, client: usize) -> bool {
        self.read_only && client.is_multiple_of(2)
    }

    /// Number of servers: voters first, then observers, then joiners.
    pub const fn servers(&self) -> usize {
        self.voters + self.observers + self.joiners
    }
}
