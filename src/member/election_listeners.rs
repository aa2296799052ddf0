//! Where election connections are accepted: which places, and the number of each attempt to listen at one.

use super::dial::HostPort;
use super::listening::{ListenAddress, ListenStep, Listening, Port};
use std::collections::{BTreeMap, BTreeSet};

/// One attempt to listen; the next attempt at the same place has another number.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ListenerId(pub u64);

/// What is to be done at a place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    Listen { listener: ListenerId, place: ListenAddress },
    Stop { listener: ListenerId },
}

#[derive(Debug)]
struct Listener {
    id: ListenerId,
    listening: Listening,
}

/// The places. Listening is tried for ever, whatever the error (ZOOKEEPER-3320).
#[derive(Debug, Default)]
pub struct Listeners {
    places: BTreeMap<ListenAddress, Listener>,
    last: u64,
    /// After so many failures a place is reported; 0 is never.
    tries_max: u32,
}

impl Listeners {
    pub fn new(tries_max: u32) -> Self {
        Self { tries_max, ..Self::default() }
    }

    /// Listens at these addresses from now on and at no others. At every address of the machine a port can be bound only once.
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
            self.places.entry(place).or_insert(Listener { id: ListenerId(0), listening });
        }
        self.on_time(0, out);
    }

    fn find(&mut self, id: ListenerId) -> Option<(&ListenAddress, &mut Listener)> {
        self.places.iter_mut().find(|(_, listener)| listener.id == id)
    }

    pub fn on_listening(&mut self, id: ListenerId) {
        if let Some((_, listener)) = self.find(id) {
            listener.listening.bound();
        }
    }

    /// The address could not be bound. Returns it if it is time to report it.
    pub fn on_failed(&mut self, id: ListenerId, error: &str, now_ms: u64) -> Option<ListenAddress> {
        let tries_max = self.tries_max;
        let (place, listener) = self.find(id)?;
        let failures = listener.listening.bind_failed(now_ms);
        tracing::warn!(%error, failures, "listen for elections on {place}");
        (failures == tries_max).then(|| place.clone())
    }

    /// Listens where it is time to.
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
