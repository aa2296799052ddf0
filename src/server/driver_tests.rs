//! The driver with slow and fast disks, and when the server stops.

use super::clock::Clock;
use super::driver::{Driver, Parts};
use super::inbox::Inbox;
use super::load_tree::Restorer;
use super::shared_driver::{LogReports, SharedDriver};
use crate::client::{ConnectRequest, put_request};
use crate::config::{Environment, Source, parse};
use crate::member::configured::{PartSettings, SnapshotStyle};
use crate::member::failure::FailureCause;
use crate::member::sasl_exchange::NoSasl;
use crate::member::start::{RestoredHistory, Started, assemble};
use crate::member::{Ended, Input, Now};
use crate::metrics::Registry;
use crate::model::{Acl, op};
use crate::request::{ClientHandle, Connection, Shared};
use crate::store::log_thread::{self, LogQueue, Reports};
use crate::store::sim_disk::SimDisk;
use crate::store::worker::Event;
use crate::store::{Disk, Folders, RecoverOptions, names, recover};
use crate::tree::txn::Txn;
use crate::tree::{Options, Tree};
use jute::Vector;
use jute::proto::CreateRequest;
use jute::txn::TxnHeader;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinHandle;

const SESSIONS: i64 = 400;

/// Sessions that expire one after the other, every 20 ms.
fn sessions() -> Tree {
    let mut tree = Tree::new(Options::default());
    for number in 1..=SESSIONS {
        let kind = op::CREATE_SESSION;
        let header = TxnHeader { client_id: number, cxid: 0, zxid: number, time: 0, kind };
        let timeout_ms = number as i32 * 20;
        tree.apply(&header, &Txn::CreateSession { timeout_ms }, &mut Vec::new());
    }
    tree
}

/// How long a sync of the slow disk takes.
const SLOW: Duration = Duration::from_millis(60);

/// A running driver.
struct Driven {
    shared: Arc<Shared>,
    disk: SimDisk,
    inbox: Arc<Inbox>,
    driving: JoinHandle<Ended>,
    /// Number of reports from the log thread.
    reports: Arc<AtomicU32>,
}

/// Counts reports and passes them on.
struct Counted {
    to: LogReports<SimDisk>,
    count: Arc<AtomicU32>,
}

impl Reports for Counted {
    fn report(&mut self, event: Event) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.to.report(event);
    }

    fn report_when_idle(&mut self, event: Event) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.to.report_when_idle(event);
    }
}

fn folders() -> Folders {
    Folders::new(Path::new("/d"), Path::new("/d"))
}

/// * `sync_takes`: of the disk.
fn drive(tree: Tree, sync_takes: Duration) -> Driven {
    let text = b"dataDir=/d\nclientPort=0\ntickTime=20\n";
    let source = Source { name: "zoo.cfg", text, my_id: None };
    let config = parse(source, &Environment::new(), &[]).unwrap();
    let (disk, clock, folders) = (SimDisk::new(), Clock::start(), folders());
    disk.create_dir(&folders.logs).unwrap();
    disk.slow_down(sync_takes);
    let parts = PartSettings::of(&config, Arc::new(NoSasl), 0, clock.wall_ms());
    let now = Now { us: clock.now_us(), wall_ms: clock.wall_ms() };
    let history = RestoredHistory { last: None, fits_digests: true, differs_since: None };
    let started = assemble(&disk, &folders, &config, parts, tree, history, now).unwrap();
    let Started { member, shared, log, actions } = started;
    let (inbox, queue) = (Arc::<Inbox>::default(), LogQueue::default());
    let dir = folders.logs.clone();
    let parts = Parts {
        member,
        shared: shared.clone(),
        inbox: inbox.clone(),
        log: queue.clone(),
        disk: disk.clone(),
        folders,
        snapshot_style: SnapshotStyle::of(&config),
        metrics: Arc::new(Registry::default()),
        clock,
        peers: None,
        roles: None,
        client_ports: unbounded_channel().0,
        audit: None,
        loader: Arc::new(|| Err(String::new())),
    };
    let driver = Driver::new(parts, actions);
    let driver = Arc::new(SharedDriver::new(driver, inbox.clone(), clock.epoch));
    let reports = Arc::<AtomicU32>::default();
    let to = LogReports { driver: driver.clone(), runtime: Handle::current() };
    let counted = Counted { to, count: reports.clone() };
    let log = log_thread::spawn(queue, disk.clone(), log, &dir, Duration::MAX, counted).unwrap();
    let driving = tokio::spawn(async move {
        let _log = log;
        driver.run().await
    });
    Driven { shared, disk, inbox, driving, reports }
}

/// Three sessions expire during each flush: a server that waited for all of them would take eight seconds to stop.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_stops_waits_for_no_new_work() {
    let Driven { shared, inbox, driving, .. } = drive(sessions(), SLOW);
    while shared.state.tree.read().sessions().len() as i64 == SESSIONS {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    inbox.put_input(Input::Stop);
    assert_eq!(driving.await.unwrap(), Ended::Stopped);
    assert!(!shared.state.tree.read().sessions().is_empty(), "sessions are kept for a restart");
}

/// A client without a socket.
struct Client {
    machine: Connection,
    input: Vec<u8>,
    /// Creates sent so far.
    sent: i32,
    heard: Vec<u8>,
}

impl Client {
    fn new(shared: &Arc<Shared>) -> Self {
        let peer = ([127, 0, 0, 1], 1).into();
        let conn = shared.conns.add(|id| ClientHandle::new(id, peer, 0));
        let mut input = Vec::new();
        ConnectRequest { timeout_ms: 30_000, password: vec![0; 16], ..ConnectRequest::default() }
            .put(&mut input);
        let machine = Connection::new(conn, shared.clone());
        Self { machine, input, sent: 0, heard: Vec::new() }
    }

    fn create(&mut self) {
        self.sent += 1;
        let (path, acl) = (format!("/{}", self.sent), Acl::open());
        let acl = Vector::Owned(vec![acl.to_record()]);
        let request = CreateRequest { path: Some(path.into()), data: None, acl, flags: 0 };
        put_request(&mut self.input, self.sent, op::CREATE, |to| {
            jute::Encode::encode(&request, to)
        });
    }

    fn turn(&mut self, inbox: &Inbox) {
        let (taken, _) = self.machine.advance(&self.input, 1);
        self.input.drain(..taken);
        for command in self.machine.commands.drain(..) {
            inbox.put_command(command);
        }
        self.heard.append(&mut self.machine.unsent.bytes);
        self.machine.unsent.clear();
    }

    /// Creates answered so far; asserts that replies are in order and without errors. `None`: no connect response yet.
    fn acknowledged(&self) -> Option<i32> {
        let (welcome, mut rest) = self.heard.split_at_checked(4 + 36)?;
        assert_eq!(welcome[..4], 36_i32.to_be_bytes());
        let mut count = 0;
        while let Some((head, after)) = rest.split_first_chunk::<4>() {
            let (frame, after) = after.split_at(i32::from_be_bytes(*head) as usize);
            count += 1;
            assert_eq!((&frame[..4], &frame[12..16]), (&i32::to_be_bytes(count)[..], &[0; 4][..]));
            rest = after;
        }
        Some(count)
    }
}

/// The server is stopped while writes are under way, and the power fails right after its end.
// rows: P-87
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn stopping_server_flushes_and_answers_all_requests_that_came_before() {
    let Driven { shared, disk, inbox, mut driving, .. } =
        drive(Tree::new(Options::default()), SLOW);
    let mut client = Client::new(&shared);
    while client.acknowledged().is_none_or(|count| count < 20) {
        if client.acknowledged().is_some() {
            client.create();
        }
        client.turn(&inbox);
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
    let (sent, acknowledged) = (client.sent, client.acknowledged().unwrap());
    assert!(acknowledged < sent, "a flush is under way");
    inbox.put_input(Input::Stop);
    let ended = loop {
        tokio::select! {
            ended = &mut driving => break ended.unwrap(),
            () = tokio::time::sleep(Duration::from_millis(4)) => {
                // Ignored once the server has taken what had come before.
                client.create();
                client.turn(&inbox);
            }
        }
    };
    assert_eq!(ended, Ended::Stopped);
    client.turn(&inbox);
    let answered = client.acknowledged().unwrap();
    assert!(sent <= answered && answered < client.sent, "{sent} {answered} {}", client.sent);
    for seed in 0..20 {
        let found = disk.image().crash(seed);
        let mut restorer = Restorer::new(Options::default());
        recover(&found, &folders(), RecoverOptions::default(), &mut restorer, || Duration::ZERO)
            .unwrap();
        let tree = restorer.finish().tree;
        assert!((1..=answered).all(|at| tree.find(&format!("/{at}")).is_some()), "seed {seed}");
    }
}

/// Sends one write after the other; returns how many flushes the log thread did.
async fn flushes_of_the_log_thread(clients: usize, sync_takes: Duration) -> u32 {
    let tree = Tree::new(Options::default());
    let Driven { shared, inbox, driving, reports, .. } = drive(tree, sync_takes);
    let mut clients: Vec<_> = (0..clients).map(|_| Client::new(&shared)).collect();
    let client = &mut clients[0];
    let deadline = Instant::now() + Duration::from_secs(600); // A machine may be busy with other builds.
    while client.acknowledged() != Some(WRITES) {
        assert!(Instant::now() < deadline, "{} are acknowledged", client.sent);
        if client.acknowledged() == Some(client.sent) {
            client.create();
        }
        client.turn(&inbox);
        tokio::time::sleep(Duration::from_micros(100)).await;
    }
    inbox.put_input(Input::Stop);
    assert_eq!(driving.await.unwrap(), Ended::Stopped);
    reports.load(Ordering::SeqCst)
}

const WRITES: i32 = 40;

/// A change of threads costs more than the rest of a write.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_driver_flushes_itself_for_an_only_client() {
    let flushes = flushes_of_the_log_thread(1, Duration::ZERO).await;
    assert!(flushes < WRITES as u32, "{flushes} of {WRITES} were the log thread's");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_log_thread_flushes_if_others_would_wait() {
    // One flush is for the session; the other client only holds a connection.
    assert_eq!(flushes_of_the_log_thread(2, Duration::ZERO).await, 1 + WRITES as u32);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_log_thread_flushes_if_the_disk_is_slow() {
    assert_eq!(flushes_of_the_log_thread(1, Duration::from_millis(5)).await, 1 + WRITES as u32);
}

/// The failure comes in the same turn as the create of a session, and before it.
#[tokio::test]
async fn nothing_is_logged_after_a_failure() {
    let Driven { shared, disk, inbox, driving, .. } =
        drive(Tree::new(Options::default()), Duration::ZERO);
    let failed = (String::from("write snapshot"), 10);
    let cause = FailureCause::Disk;
    inbox.put_input(Input::Failed { reason: failed.0.clone(), exit: failed.1, cause });
    Client::new(&shared).turn(&inbox);
    let ended = driving.await.unwrap();
    assert_eq!(ended, Ended::Failed { reason: failed.0, exit: failed.1, cause });
    let logs = names::logs(&disk, &folders().logs).unwrap();
    assert!(logs.is_empty(), "{logs:?}");
}
