//! One member on a virtual disk, with the clock of its server, the pending work of its threads, and their reports.

use super::builders::WALL_MS;
use super::store::{LogThread, ServerDisk};
use bytes::Bytes;
use jute::put_frame;
use oxkeeper::member::election_connections::{self, ConnectionId, Input as Election};
use oxkeeper::member::election_hello::Hello;
use oxkeeper::member::{
    Action, Ended, EnsembleSettings, Input, LogReadLimit, Member, Now, Settings, SnapshotJob,
};
use oxkeeper::model::sync::Arc;
use oxkeeper::model::{ServerId, Zxid};
use oxkeeper::replica::Replica;
use oxkeeper::request::{ClientCommand, Shared};
use oxkeeper::store::{Command, Event, LogOptions};
use oxkeeper::tree::Options;
use oxkeeper::zab::{LearnerConnectionId, Notification};
use std::collections::{BTreeMap, VecDeque};

/// A part of the log that is to be read for a learner.
#[derive(Clone, Copy, Debug)]
pub struct LogToRead {
    connection: LearnerConnectionId,
    from: Zxid,
    through: Zxid,
    limit_bytes: u64,
}

/// The work that the member's threads have not done yet, in order for each thread.
#[derive(Default)]
pub struct PendingWork {
    pub log: VecDeque<Command>,
    pub snapshots: VecDeque<SnapshotJob>,
    pub reads: VecDeque<LogToRead>,
    /// Number of pending reloads of the tree.
    pub loads: usize,
}

pub struct MemberOnDisk {
    pub member: Member,
    pub shared: Arc<Shared>,
    pub now: Now,
    pub place: ServerDisk,
    log: LogThread,
    pub asked: PendingWork,
    /// Open election connections that other servers made.
    pub accepted: BTreeMap<ServerId, ConnectionId>,
    pub ended: Option<Ended>,
}

/// A log of small files.
const LOG: LogOptions = LogOptions { prealloc: 1 << 12, size_limit: 0, force_sync: true };

impl MemberOnDisk {
    /// A member on a new disk, which has the replica's tree in a snapshot.
    pub fn new(replica: Replica, ensemble: Option<EnsembleSettings>) -> Self {
        let (place, last) = {
            let mut tree = replica.shared().state.tree.write();
            (ServerDisk::with_tree(&mut tree), tree.last_zxid())
        };
        let log = place.log_thread(LOG, Some(last));
        Self::on(place, log, replica, ensemble)
    }

    pub fn on(
        place: ServerDisk,
        log: LogThread,
        replica: Replica,
        ensemble: Option<EnsembleSettings>,
    ) -> Self {
        let now = Now { us: 0, wall_ms: WALL_MS };
        let settings = Settings { ensemble, log_read: LogReadLimit::Bytes(100) };
        let shared = replica.shared().clone();
        let member = Member::new(replica, settings, now);
        let (asked, accepted) = (PendingWork::default(), BTreeMap::new());
        Self { member, shared, now, place, log, asked, accepted, ended: None }
    }

    /// Gives an input, hands work to the threads, and returns all actions.
    pub fn step(&mut self, input: Input) -> Vec<Action> {
        self.act(|member, now, out| member.step(now, input, out))
    }

    /// Starts the member, as [`MemberOnDisk::step`]; the returned actions open the ports of a server.
    pub fn start(&mut self) -> Vec<Action> {
        self.act(Member::start)
    }

    /// Begins a snapshot; returns all actions.
    pub fn snapshot(&mut self) -> Vec<Action> {
        self.act(Member::snapshot)
    }

    fn act(&mut self, act: impl FnOnce(&mut Member, Now, &mut Vec<Action>)) -> Vec<Action> {
        let mut actions = Vec::new();
        act(&mut self.member, self.now, &mut actions);
        actions.iter().for_each(|action| self.ask(action));
        actions
    }

    fn ask(&mut self, action: &Action) {
        match action {
            Action::Log(command) => self.asked.log.push_back(command.clone()),
            Action::WriteSnapshot(job) => self.asked.snapshots.push_back(*job),
            Action::DiscardSnapshot(draft) => self.place.discard(draft.clone()),
            Action::LoadTree => self.asked.loads += 1,
            &Action::ReadLog { connection, from, through, limit_bytes } => {
                let read = LogToRead { connection, from, through, limit_bytes };
                self.asked.reads.push_back(read);
            }
            Action::Election(election_connections::Action::Close { connection }) => {
                self.accepted.retain(|_, open| open != connection);
            }
            Action::Wake(waker) => waker.wake_by_ref(),
            Action::End(ended) => self.ended = Some(ended.clone()),
            _ => {}
        }
    }

    /// Lets this many milliseconds pass; returns all actions.
    pub fn pass(&mut self, ms: u64) -> Vec<Action> {
        self.now.us += ms * 1000;
        self.now.wall_ms += ms as i64;
        self.step(Input::Timer)
    }

    /// Gives a client's command; returns all actions.
    pub fn command(&mut self, command: ClientCommand) -> Vec<Action> {
        self.step(Input::Client(command))
    }

    /// Performs the log thread's first `commands` commands as one batch. Returns its reports, which the member has not received,
    /// each with the number of changes to the disk before it.
    pub fn run_log(&mut self, commands: usize) -> Vec<(u64, Event)> {
        let batch = self.asked.log.drain(..commands.min(self.asked.log.len())).collect();
        let mut reports = Vec::new();
        self.log.run(batch, |changes, event| reports.push((changes, event)));
        reports
    }

    /// Performs what the log thread does while no command waits.
    pub fn idle(&mut self) {
        self.log.idle();
    }

    /// As [`MemberOnDisk::step`], with a log thread that performs its commands at once. The actions that follow its reports are
    /// returned, too.
    pub fn settle(&mut self, input: Input) -> Vec<Action> {
        let mut actions = self.step(input);
        while !self.asked.log.is_empty() {
            for (_, event) in self.run_log(1) {
                actions.extend(self.step(Input::Log(event)));
            }
        }
        actions
    }

    /// Writes a snapshot, and returns the report for the member. The tree may have been replaced meanwhile.
    pub fn write_snapshot(&self, job: SnapshotJob) -> Input {
        let tree = self.shared.state.tree.read();
        let is_held = tree.holds(job.frozen);
        let draft = is_held.then(|| self.place.snapshot(job.frozen).whole(&tree));
        Input::SnapshotWritten { job, draft }
    }

    /// Reads the log for the member's first pending request, and returns the report for the member.
    pub fn read_log(&mut self) -> Option<Input> {
        let LogToRead { connection, from, through, limit_bytes } = self.asked.reads.pop_front()?;
        let read = self.place.read_log(from, through, limit_bytes);
        Some(Input::LogRead { connection, read })
    }

    /// Loads the tree again, if that is pending, and returns the report for the member.
    pub fn load_tree(&mut self, options: Options) -> Option<Input> {
        self.asked.loads = self.asked.loads.checked_sub(1)?;
        Some(self.place.load_again(options))
    }

    /// Another server dials the election port; returns the connection and all actions. `None`: the member has too many connections there.
    pub fn accept(&mut self) -> Option<(ConnectionId, Vec<Action>)> {
        let connection = self.member.next_election_connection()?;
        let peer = "here".to_owned();
        Some((connection, self.step(Input::Election(Election::Accepted { connection, peer }))))
    }
}

/// The bytes with which another server sends a notification over its election connection, after its hello if the connection is new.
pub fn notification_bytes(
    from: ServerId,
    notification: &Notification,
    exchange: Option<&[u8]>,
) -> Bytes {
    let mut bytes = Vec::new();
    if let Some(exchange) = exchange {
        let addresses = vec![(format!("host{}", from.0), 3888)];
        bytes = Hello { id: from, addresses }.encode(false);
        bytes.extend(exchange);
    }
    put_frame(&mut bytes, |to| to.extend_from_slice(&notification.encode()));
    bytes.into()
}
