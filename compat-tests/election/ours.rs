//! Our server: an election machine on real election connections, which answers notifications once the election is over.

use super::java::{Ensemble, PATIENCE};
use super::{Golden, hex};
use bytes::Bytes;
use oxkeeper::member::election_connections::{Event, Settings};
use oxkeeper::member::sasl_exchange::NoSasl;
use oxkeeper::model::ServerId;
use oxkeeper::zab::election::{
    Action, Elected, Input, Notification, PeerState, Setup, TICK_MS, Views, Vote,
};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use support::election_net::{ElectionNet, Inbox};
use support::elector::Elector;
use tokio::time::{Instant, Interval, interval, timeout};

pub struct Ours {
    pub id: i64,
    views: Views,
    net: ElectionNet,
    inbox: Inbox,
    ticks: Interval,
    elector: Elector,
    elected: Option<Elected>,
    round: i64,
    heard: Vec<Bytes>,
    down: Vec<i64>,
}

impl Ours {
    /// Must be called inside a tokio runtime.
    pub fn start(ensemble: &Ensemble, id: i64, vote: Vote) -> Self {
        let address = |id: i64| ("127.0.0.1".to_owned(), ensemble.election_port(id));
        let settings = Settings {
            me: ServerId(id),
            addresses: vec![address(id)],
            on_all_addresses: false,
            multi_address: false,
            connect_timeout_ms: 5000,
            reach_timeout_ms: None,
            hello_timeout_ms: 5000,
            bind_tries_max: 3,
            exchanges: Arc::new(NoSasl),
        };
        let peers = ensemble.ids().map(|id| (ServerId(id), vec![address(id)])).collect();
        let (net, inbox) = ElectionNet::start(settings, peers);
        let views = Views::of(ensemble.view());
        let mut out = Vec::new();
        let elector = Elector::look(setup(id, views.clone(), vote, 0, &[]), &mut out);
        let mut ours = Self {
            id,
            views,
            net,
            inbox,
            ticks: interval(Duration::from_millis(TICK_MS.into())),
            elector,
            elected: None,
            round: 0,
            heard: Vec::new(),
            down: Vec::new(),
        };
        ours.perform(out);
        ours
    }

    pub fn look_again(&mut self, vote: Vote) {
        let setup = setup(self.id, self.views.clone(), vote, self.round, &self.down);
        let mut out = Vec::new();
        self.elector = Elector::look(setup, &mut out);
        self.elected = None;
        self.perform(out);
    }

    /// Takes part in the election until it has an outcome.
    pub async fn elect(&mut self) -> io::Result<Elected> {
        let done = |ours: &Self| ours.elected.clone();
        self.live(done, "an election that ends").await
    }

    /// Answers the notifications of servers that are LOOKING until `holds`.
    pub async fn stay_until(&mut self, holds: impl Fn() -> bool) -> io::Result<()> {
        self.live(|_| holds().then_some(()), "what the Java server should come to").await
    }

    pub async fn stay_until_down(&mut self, id: i64) -> io::Result<()> {
        self.live(|ours| ours.down.contains(&id).then_some(()), "the end of a connection").await
    }

    /// Records the first message received from a server in `state`, and checks that decoding and encoding give the same bytes.
    pub fn note_heard(&self, state: PeerState, name: &'static str, golden: &mut Golden) {
        let read = |bytes: &Bytes| Notification::decode(bytes).expect("heard before");
        let of_state = self.heard.iter().find(|bytes| read(bytes).state == state);
        let bytes = of_state.unwrap_or_else(|| panic!("no message from a {name} server"));
        assert_eq!(read(bytes).encode(), bytes, "{name}");
        golden.entry(name).or_insert_with(|| hex(bytes));
    }

    async fn live<T>(&mut self, done: impl Fn(&Self) -> Option<T>, what: &str) -> io::Result<T> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(done) = done(self) {
                return Ok(done);
            }
            if end <= Instant::now() {
                return Err(io::Error::other(format!(
                    "waited in vain for {what}: {:?}",
                    self.elector
                )));
            }
            let wait = timeout(Duration::from_millis(100), async {
                tokio::select! {
                    _ = self.ticks.tick() => None,
                    event = self.inbox.take() => Some(event),
                }
            });
            match wait.await {
                Ok(Some(event)) => self.on_event(event)?,
                Ok(None) => self.step(Input::Tick),
                Err(_) => {}
            }
        }
    }

    fn on_event(&mut self, event: Event) -> io::Result<()> {
        match event {
            Event::ElectionConnected { to } => {
                self.down.retain(|id| *id != to.0);
                self.step(Input::ElectionConnected { to });
            }
            Event::ElectionDisconnected { to } => {
                self.down.push(to.0);
                self.step(Input::ElectionDisconnected { to });
            }
            Event::ElectionUnreached { .. } => {} // An election does not ask for it.
            Event::BindFailed { place, error } => {
                return Err(io::Error::other(format!("can't listen on {place}: {error}")));
            }
            Event::Heard { from, message } => {
                let notification = Notification::decode(&message).map_err(io::Error::other)?;
                self.heard.push(message);
                let mut out = Vec::new();
                self.elector.hear(&self.views, from, notification, &mut out);
                self.perform(out);
            }
        }
        Ok(())
    }

    fn step(&mut self, input: Input) {
        let mut out = Vec::new();
        self.elector.step(input, &mut out);
        self.perform(out);
    }

    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::SendNotification { to, notification } => {
                    self.net.send(to, notification.encode())
                }
                Action::DialAll => self.net.dial_all(),
                Action::NewerView { .. } => panic!("no server has another configuration"),
                Action::Elected(elected) => {
                    self.round = elected.round;
                    let config = self.views.current.to_string();
                    self.elector = Elector::settled(self.id, elected.clone(), config);
                    self.elected = Some(elected);
                }
            }
        }
    }
}

fn setup(id: i64, views: Views, vote: Vote, last_round: i64, down: &[i64]) -> Setup {
    Setup {
        me: ServerId(id),
        views,
        adopts_views: false,
        vote,
        history: vote,
        yields: false,
        waits: true,
        failed_candidate: false,
        oracle: None,
        down: down.iter().copied().map(ServerId).collect(),
        last_round,
        resend_min_ms: 200,
        resend_max_ms: 60_000,
    }
}
