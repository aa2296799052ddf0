//! The threads around the machines: one drives the replica, one is the log thread, and each client has one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Wake, Waker};

use bytes::Bytes;
use oxkeeper::model::Zxid;
use oxkeeper::replica::Input;
use oxkeeper::request::{ClientCommand, Connection, Need, Shared};
use oxkeeper::tree::Tree;
use oxkeeper::tree::freeze::Frozen;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread::{JoinHandle, spawn};

use support::builders;
use support::client::open;
use support::disk::Write;
use support::replica::ReplicaOnDisk;
use support::requests::{FrameReader, Said, drain, hello_bytes};

/// What reaches the driver.
pub enum Event {
    Command(ClientCommand),
    Flushed(Zxid),
    Snapshot,
    SnapshotEnded(Frozen),
    Stop,
}

/// A server whose parts are threads of shuttle.
pub struct World {
    pub shared: Arc<Shared>,
    pub events: Sender<Event>,
    /// Snapshots that were begun.
    pub frozen: Receiver<Frozen>,
    driver: JoinHandle<Vec<(Zxid, Bytes)>>,
    log: JoinHandle<()>,
}

/// A planted fault: does what the replica would do with a command, but wrongly. `None`: it has done it.
pub type FaultPlanter = fn(&Shared, ClientCommand) -> Option<ClientCommand>;

impl World {
    pub fn new(tree: Tree) -> Self {
        Self::meddled(tree, |_, command| Some(command))
    }

    /// * `meddler`: sees each command before the replica does.
    pub fn meddled(tree: Tree, meddler: FaultPlanter) -> Self {
        let server = ReplicaOnDisk::standalone(tree, builders::limits(), builders::settings());
        let shared = server.shared.clone();
        let (events, inbox) = channel();
        let (appends, appended) = channel();
        let (began, frozen) = channel();
        let log = {
            let events = events.clone();
            spawn(move || flush(&appended, &events))
        };
        let driver = {
            let shared = shared.clone();
            let meddle = move |command| meddler(&shared, command);
            spawn(move || drive(server, &inbox, &appends, &began, meddle))
        };
        Self { shared, events, frozen, driver, log }
    }

    /// Ends the driver and the log thread after all that was requested before is done. Returns what was logged.
    pub fn stop(self) -> Vec<(Zxid, Bytes)> {
        self.events.send(Event::Stop).expect("the driver runs");
        let logged = self.driver.join().expect("the driver ends well");
        self.log.join().expect("the log ends well");
        logged
    }

    /// A connection without a session.
    pub fn client(&self) -> TestClient {
        TestClient::new(&self.shared, &self.events)
    }
}

/// The log thread: all that was appended meanwhile is flushed together.
fn flush(appended: &Receiver<Zxid>, events: &Sender<Event>) {
    while let Ok(mut last) = appended.recv() {
        while let Ok(more) = appended.try_recv() {
            last = more;
        }
        if events.send(Event::Flushed(last)).is_err() {
            return;
        }
    }
}

fn drive(
    mut server: ReplicaOnDisk,
    inbox: &Receiver<Event>,
    appends: &Sender<Zxid>,
    began: &Sender<Frozen>,
    meddle: impl Fn(ClientCommand) -> Option<ClientCommand>,
) -> Vec<(Zxid, Bytes)> {
    let mut logged = Vec::new();
    let mut stopping = false;
    while !stopping || server.replica.outstanding() > 0 {
        let Ok(event) = inbox.recv() else { break };
        match event {
            Event::Command(command) => {
                if let Some(command) = meddle(command) {
                    server.step(Input::Command { command, wall_ms: 1 });
                }
            }
            Event::Flushed(through) => {
                server.step(Input::Flushed { through });
            }
            Event::Snapshot => server.snapshot(),
            Event::SnapshotEnded(frozen) => {
                server.step(Input::SnapshotEnded(frozen));
            }
            Event::Stop => stopping = true,
        }
        for write in server.disk.asked.drain(..) {
            if let Write::Append((zxid, entry)) = write {
                logged.push((zxid, entry));
                appends.send(zxid).expect("the log thread runs");
            }
        }
        for frozen in server.frozen.drain(..) {
            began.send(frozen).expect("the test runs");
        }
    }
    logged
}

/// Wakes a client's thread when its connection has something to do.
#[derive(Default)]
struct ThreadWaker {
    rung: Mutex<bool>,
    hear: Condvar,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        *self.rung.lock().expect("no poison") = true;
        self.hear.notify_one();
    }
}

impl ThreadWaker {
    fn wait(&self) {
        let mut rung = self.rung.lock().expect("no poison");
        while !*rung {
            rung = self.hear.wait(rung).expect("no poison");
        }
        *rung = false;
    }
}

/// A client and its connection, driven by one thread as `net` drives the connection.
pub struct TestClient {
    pub machine: Connection,
    bell: Arc<ThreadWaker>,
    input: Vec<u8>,
    need: Need,
    ear: FrameReader,
    /// All replies and events so far.
    pub said: Vec<Said>,
    pub shared: Arc<Shared>,
    events: Sender<Event>,
}

impl TestClient {
    pub fn new(shared: &Arc<Shared>, events: &Sender<Event>) -> Self {
        Self {
            machine: open(shared, "10.0.0.1", 0),
            bell: Arc::default(),
            input: Vec::new(),
            need: Need::Bytes(1),
            ear: FrameReader::default(),
            said: Vec::new(),
            shared: shared.clone(),
            events: events.clone(),
        }
    }

    pub fn greet(&mut self, hello: &oxkeeper::client::ConnectRequest) -> i64 {
        self.input.extend_from_slice(&hello_bytes(hello));
        self.until(|said| matches!(said.last(), Some(Said::ConnectResponse(_))));
        match &self.said[0] {
            Said::ConnectResponse(welcome) => welcome.session_id,
            other => panic!("{other:?}"),
        }
    }

    pub fn send(&mut self, requests: &[Vec<u8>]) {
        for request in requests {
            self.ear.asked(request);
            self.input.extend_from_slice(request);
        }
    }

    /// Sends requests, and takes turns until `replies` replies have come in all.
    pub fn ask(&mut self, requests: &[Vec<u8>], replies: usize) {
        self.send(requests);
        self.until(|said| replies <= self::replies(said));
    }

    /// Takes turns until what came is enough, or the connection is closed.
    pub fn until(&mut self, enough: impl Fn(&[Said]) -> bool) {
        loop {
            self.turn();
            if enough(&self.said) || self.is_closed() {
                return;
            }
            self.rest();
        }
    }

    /// Sleeps until there is something to do.
    pub fn rest(&self) {
        if self.need != Need::Turn && self.machine.wait(&Waker::from(self.bell.clone())) {
            self.bell.wait();
        }
    }

    pub fn turn(&mut self) {
        let (taken, need) = self.machine.advance(&self.input, 1);
        self.input.drain(..taken);
        self.need = need;
        self.hear();
        for command in self.machine.commands.drain(..) {
            // Fails when the test has stopped the server already.
            let _stopped = self.events.send(Event::Command(command));
        }
    }

    /// Takes the replies and events that the connection's machine sends.
    pub fn hear(&mut self) {
        let bytes = drain(&mut self.machine.unsent);
        self.said.extend(self.ear.hear(&bytes));
    }

    pub fn is_closed(&self) -> bool {
        matches!(self.need, Need::Close(_))
    }
}

pub fn replies(said: &[Said]) -> usize {
    said.iter().filter(|said| matches!(said, Said::Reply { .. })).count()
}

/// Tries `count` schedules, half of them random at each step, half by priorities that change a few times.
pub fn explore(count: usize, scenario: impl Fn() + Send + Sync + Copy + 'static) {
    let count = if std::env::var_os("OXKEEPER_LONG").is_some() { count * 20 } else { count };
    run(RandomScheduler::new_from_seed(1, count / 2), scenario);
    run(PctScheduler::new_from_seed(2, 3, count / 2), scenario);
}

/// Asserts that one of `count` schedules fails.
#[track_caller]
pub fn finds(count: usize, scenario: impl Fn() + Send + Sync + Copy + 'static) {
    let tried = || {
        run(RandomScheduler::new_from_seed(1, count / 2), scenario);
        run(PctScheduler::new_from_seed(2, 3, count / 2), scenario);
    };
    assert!(catch_unwind(AssertUnwindSafe(tried)).is_err(), "the planted fault was not found");
}

fn run(scheduler: impl Scheduler + 'static, scenario: impl Fn() + Send + Sync + 'static) {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 19; // Trees are built on it.
    config.failure_persistence = shuttle::FailurePersistence::None; // Seeds are fixed.
    shuttle::Runner::new(scheduler, config).run(scenario);
}
