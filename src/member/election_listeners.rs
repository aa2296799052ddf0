//! The addresses where election connections are accepted, and the number of each attempt to listen at one.

use super::dial::HostPort;
use super::listening::{ListenAddress, ListenStep, Listening, Port};
use std::collections::{BTreeMap, BTreeSet};

/// One attempt to listen; the next attempt at the same address has another number.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ListenerId(pub u64);

/// What is to be done at an address.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    Listen { listener: ListenerId, place: ListenAddress },
    Stop { listener: ListenerId },
}

#[derive(Debug)]
struct Listener {
    id: ListenerId,
    listening: Listening,
    /// Why the last attempt failed; `None`: it succeeded, or none has ended.
    error: Option<String>,
}

/// All the addresses. Listening is tried for ever, whatever the error (ZOOKEEPER-3320).
#[derive(Debug, Default)]
pub struct Listeners {
    places: BTreeMap<ListenAddress, Listener>,
    last: u64,
    /// Failures after which an address is reported; 0 is never.
    tries_max: u32,
}

impl Listeners {
    pub fn new(tries_max: u32) -> Self {
        Self { tries_max, ..Self::default() }
    }

    /// Listens at these addresses from now on and at no others. With `on_all_addresses` a port is bound only once.
    pub fn set(&mut self, addresses: &[HostPort], on_all_addresses: bool, out: &mut Vec<Change>) {
        let place = |(host, port): &HostPort| ListenAddress {
            host: (!on_all_addresses).then(|| host.clone()),
            port: *port,
        };
        let wanted: BTreeSet<ListenAddress> = addresses.iter().map(place).collect();
        self.places.retain(|place, listener| {
            let stays = wanted.contains(place);
            if !stays {
                out.push(Change::Stop { listener: listener.id });
            }
            stays
        });
        for place in wanted {
            let listening = Listening::new(Port::Elections);
            let listener = Listener { id: ListenerId(0), listening, error: None };
            self.places.entry(place).or_insert(listener);
        }
        self.on_time(0, out);
    }

    fn find(&mut self, id: ListenerId) -> Option<(&ListenAddress, &mut Listener)> {
        self.places.iter_mut().find(|(_, listener)| listener.id == id)
    }

    pub fn on_listening(&mut self, id: ListenerId) {
        if let Some((_, listener)) = self.find(id) {
            listener.error = None;
            listener.listening.bound();
        }
    }

    /// The address could not be bound. Returns the address if it has failed `tries_max` times.
    pub fn on_failed(&mut self, id: ListenerId, error: &str, now_ms: u64) -> Option<ListenAddress> {
        let tries_max = self.tries_max;
        let (place, listener) = self.find(id)?;
        let failures = listener.listening.bind_failed(now_ms);
        listener.error = Some(error.to_owned());
        // Each second there is another attempt.
        if failures.is_power_of_two() {
            tracing::warn!(address = %place, %error, failures, "can't listen for elections, tried again each second: do what the error says, or correct dataDir/myid if it has another server's number");
        }
        (failures == tries_max).then(|| place.clone())
    }

    /// Why no server can connect at one of the addresses.
    pub fn error(&self) -> Option<String> {
        self.places.values().find_map(|listener| listener.error.clone())
    }

    /// Listens again where the pause after a failure is over.
    pub fn on_time(&mut self, now_ms: u64, out: &mut Vec<Change>) {
        for (place, listener) in &mut self.places {
            if listener.listening.next(now_ms) == ListenStep::Bind {
                self.last += 1;
                listener.id = ListenerId(self.last);
                out.push(Change::Listen { listener: listener.id, place: place.clone() });
            }
        }
    }

    pub fn next_deadline_ms(&self) -> Option<u64> {
        self.places.values().filter_map(|listener| listener.listening.retry_ms()).min()
    }
}
