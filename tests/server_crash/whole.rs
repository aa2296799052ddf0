//! The whole server on one thread: connections, replica, tree and log worker. Its part is that of `server`: it moves bytes, steps the
//! machines and performs their actions.

use super::client::Client;
use super::history::History;
use crate::Script;
use oxkeeper::member::start::FirstSnapshot;
use oxkeeper::member::{Input, SnapshotJob};
use oxkeeper::model::{Acl, Rng, SessionId, op};
use oxkeeper::replica::{Replica, Settings, TICK_MS};
use oxkeeper::request::Limits;
use oxkeeper::store::{Command, Event, Recovered};
use oxkeeper::tree::Tree;
use oxkeeper::tree::txn::Entry;
use support::builders;
use support::client::open;
use support::member::MemberOnDisk;
use support::store::{ServerDisk, Snapshot};

const CLIENTS: usize = 5;

pub struct Whole<'d> {
    place: &'d ServerDisk,
    snapshot: Option<(Snapshot<'d>, SnapshotJob)>,
    /// Snapshots that are in place.
    pub snapshots: u32,
    server: MemberOnDisk,
    clients: Vec<Client>,
    /// Sessions whose connection broke.
    left: Vec<SessionId>,
    batch_max: usize,
}

impl<'d> Whole<'d> {
    pub fn start(
        place: &'d ServerDisk,
        tree: Tree,
        recovered: &Recovered,
        script: &Script,
        history: &mut History,
    ) -> Self {
        let last = tree.last_zxid();
        let kept: Vec<SessionId> = tree.sessions().keys().map(|&id| SessionId(id)).collect();
        let limits = Limits { frame_max: 1 << 20, ..builders::limits() };
        let settings = Settings {
            tick_time_ms: 2000,
            // Greater after each start, as ids made from a server's clock are.
            first_session: 0x100_0000_0000 + last.to_wire() * 1000,
            snap_count: script.snap_count,
            snap_size_bytes: 0,
            sessionless_timeout_ms: 5000,
            container_check_interval_ms: 1000,
            container_max_per_minute: 60_000,
            container_max_never_used_ms: 2000,
            seed: 7,
            ..Settings::DEFAULT
        };
        let replica = Replica::standalone(builders::shared(tree, limits), settings, 0);
        let log = place.log_thread(script.log, recovered.last);
        let mut server = Self {
            place,
            snapshot: None,
            snapshots: 0,
            server: MemberOnDisk::on(place.clone(), log, replica, None),
            clients: Vec::new(),
            left: kept,
            batch_max: script.batch_max,
        };
        let snapshot = recovered.snapshot.map(|(zxid, _)| zxid);
        let first = FirstSnapshot::of(recovered.start, snapshot, last, false);
        if first != FirstSnapshot::None {
            server.server.snapshot();
        }
        server.settle(history);
        if first == FirstSnapshot::BeforeServing {
            server.end_snapshot(history);
        }
        server.take_up(history);
        server
    }

    /// Resumes the sessions that survived a crash.
    fn take_up(&mut self, history: &mut History) {
        let kept: Vec<SessionId> = self.left.drain(..self.left.len().min(CLIENTS)).collect();
        kept.iter().for_each(|&session| self.connect(Some(session), 20_000));
        self.settle(history);
        let taken: Vec<SessionId> = self.clients.iter().filter_map(|c| c.session).collect();
        assert_eq!(taken, kept);
    }

    /// Fills the tree with this many znodes.
    pub fn fill(&mut self, znodes: usize, history: &mut History) {
        self.connect(None, 40_000);
        self.settle(history);
        for at in 0..znodes {
            let path = match at {
                0..100 => format!("/fill{at}"),
                _ => format!("/fill{}/child-{at}", at % 100),
            };
            self.clients[0].create(op::CREATE, &path, Some(&[at as u8; 60]), &[Acl::open()], 0);
            if at % 99 == 98 {
                self.settle(history);
            }
        }
        self.settle(history);
        self.end_snapshot(history);
    }

    pub fn step(&mut self, rng: &mut Rng, history: &mut History) {
        while self.clients.len() < CLIENTS {
            // Some clients resume an earlier session, perhaps from before a crash; some of these sessions have expired.
            let session = (!self.left.is_empty() && rng.one_in(2))
                .then(|| self.left.swap_remove(rng.pick(self.left.len())));
            self.connect(session, 4000 + rng.pick(20_000) as i32);
        }
        if rng.one_in(6) {
            let client = self.clients.remove(rng.pick(CLIENTS));
            self.part(client, history);
        }
        self.settle(history);
        for _ in 0..1 + rng.pick(self.batch_max) {
            let at = rng.pick(self.clients.len());
            if self.clients[at].session.is_some() && !self.clients[at].ended {
                self.clients[at].ask(rng, history);
            }
        }
        if rng.one_in(3) {
            for tick in 1..=rng.pick(300) {
                self.server.pass(TICK_MS);
                // The records of one flush came within a second: a torn flush is distinguished from damage by that.
                if tick % 100 == 0 {
                    self.perform(history);
                }
            }
        }
        self.settle(history);
        for client in &self.clients {
            assert!(client.ended || client.asked.is_empty(), "unanswered: {:?}", client.asked);
        }
        match rng.pick(12) {
            0..6 => self.piece(),
            6 => self.server.idle(),
            7 if rng.one_in(4) => self.place.purge(),
            _ => {}
        }
        assert_eq!(self.server.member.replica.stats.digest_mismatches, 0);
    }

    /// Milliseconds since the start.
    const fn now_ms(&self) -> u64 {
        self.server.now.us / 1000
    }

    fn piece(&mut self) {
        let Some((snapshot, _)) = &mut self.snapshot else { return };
        if snapshot.piece(&self.server.shared.state.tree.read())
            && let Some((snapshot, job)) = self.snapshot.take()
        {
            let draft = Some(snapshot.draft());
            self.server.step(Input::SnapshotWritten { job, draft });
        }
    }

    fn end_snapshot(&mut self, history: &mut History) {
        while self.snapshot.is_some() {
            self.piece();
        }
        self.perform(history);
    }

    fn connect(&mut self, session: Option<SessionId>, timeout_ms: i32) {
        let connection = open(&self.server.shared, "127.0.0.1", self.now_ms());
        self.clients.push(Client::connect(connection, session, timeout_ms));
    }

    /// The connection of a client breaks; its session stays.
    fn part(&mut self, mut client: Client, history: &History) {
        client.connection.end();
        for command in client.connection.commands.drain(..) {
            self.server.command(command);
        }
        let exists = |session: &SessionId| history.now.sessions.contains_key(&session.0);
        self.left.extend(client.session.filter(exists));
    }

    /// Runs connections, replica and log in turn, until nothing is left to do without new input.
    fn settle(&mut self, history: &mut History) {
        loop {
            let (mut commands, now_us) = (Vec::new(), self.now_ms() * 1000);
            for client in &mut self.clients {
                client.pump(&mut commands, now_us, history);
            }
            let asked = &self.server.asked;
            let has_work = !asked.log.is_empty() || !asked.snapshots.is_empty();
            let quiet = commands.is_empty() && !has_work;
            for command in commands {
                self.server.command(command);
            }
            self.perform(history);
            if quiet {
                break;
            }
        }
        let (gone, stay) = std::mem::take(&mut self.clients).into_iter().partition(|c| c.ended);
        self.clients = stay;
        for client in Vec::into_iter(gone) {
            self.part(client, history);
        }
    }

    fn perform(&mut self, history: &mut History) {
        for job in std::mem::take(&mut self.server.asked.snapshots) {
            self.snapshot = Some((self.place.snapshot(job.frozen), job));
        }
        let asked = &self.server.asked.log;
        if asked.is_empty() {
            return;
        }
        for command in asked {
            match command {
                Command::Append { zxid, entry } => {
                    history.sent(zxid.to_wire(), entry);
                    let decoded = Entry::decode(entry).expect("of our own making");
                    // An error transaction holds the error code alone (D-42).
                    let refused = decoded.header.kind == op::ERROR;
                    assert_eq!((decoded.digest.is_none(), entry.len() == 36), (refused, refused));
                }
                Command::Roll | Command::Place { replaces: false, .. } => {}
                other => panic!("a standalone server asks its disk for {other:?}"),
            }
        }
        for (changes, event) in self.server.run_log(usize::MAX) {
            let flushed = match &event {
                Event::Flushed(report) => Some(report.through.to_wire()),
                Event::Placed { .. } => None,
                event => panic!("{event:?}"),
            };
            self.server.step(Input::Log(event));
            match flushed {
                // Its answers are in the outboxes now, and count as received from this moment.
                Some(zxid) => history.answered(changes, zxid),
                None => self.snapshots += 1,
            }
        }
        let tree = self.server.shared.state.tree.read();
        assert_eq!(tree.last_zxid().to_wire(), history.now.zxid);
        if let Some(wrong) = history.now.differs_from(&tree).filter(|_| history.keeps) {
            panic!("the running server's tree: {wrong}");
        }
    }
}
