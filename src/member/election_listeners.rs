//! Where election connections are accepted: which places, and when a place that failed is tried again.

use super::election_hello::Address;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Between two attempts to listen at a place.
const RETRY_PAUSE_MS: u64 = 1000;

/// Where to listen.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ElectionAddress {
    /// `None` is every address of the machine.
    pub host: Option<String>,
    pub port: u16,
}

impl fmt::Display for ElectionAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host.as_deref().unwrap_or("*"), self.port)
    }
}

/// One attempt to listen; the next attempt at the same place has another number.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ListenerId(pub u64);

/// What is to be done at a place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    Listen { listener: ListenerId, place: ElectionAddress },
    Stop { listener: ListenerId },
}

#[derive(Debug)]
struct Listener {
    id: ListenerId,
    is_listening: bool,
    /// Failures to listen since it last succeeded.
    failures: u32,
    retry_at_ms: Option<u64>,
}

/// The places. Listening is tried for ever, whatever the error (ZOOKEEPER-3320).
#[derive(Debug, Default)]
pub struct Listeners {
    places: BTreeMap<ElectionAddress, Listener>,
    last: u64,
    /// After so many failures a place is reported; 0 is never.
    tries_max: u32,
}

impl Listeners {
    pub fn new(tries_max: u32) -> Self {
        Self { tries_max, ..Self::default() }
    }

    /// Listens at these addresses from now on and at no others. At every address of the machine a port can be bound only once.
    pub fn set(&mut self, addresses: &[Address], on_all_addresses: bool, out: &mut Vec<Change>) {
        let place = |(host, port): &Address| ElectionAddress {
            host: (!on_all_addresses).then(|| host.clone()),
            port: *port,
        };
        let wanted: BTreeSet<ElectionAddress> = addresses.iter().map(place).collect();
        self.places.retain(|place, listener| {
            let stays = wanted.contains(place);
            if !stays {
                out.push(Change::Stop { listener: listener.id });
            }
            stays
        });
        for place in wanted {
            if !self.places.contains_key(&place) {
                self.try_listen(place, 0, out);
            }
        }
    }

    fn try_listen(&mut self, place: ElectionAddress, failures: u32, out: &mut Vec<Change>) {
        self.last += 1;
        let id = ListenerId(self.last);
        let listener = Listener { id, is_listening: false, failures, retry_at_ms: None };
        self.places.insert(place.clone(), listener);
        out.push(Change::Listen { listener: id, place });
    }

    fn find(&mut self, id: ListenerId) -> Option<(&ElectionAddress, &mut Listener)> {
        self.places.iter_mut().find(|(_, listener)| listener.id == id)
    }

    pub fn on_listening(&mut self, id: ListenerId) {
        if let Some((_, listener)) = self.find(id) {
            (listener.is_listening, listener.failures) = (true, 0);
        }
    }

    /// Cannot listen, or cannot accept any more. Gives the place if it is time to report it.
    pub fn on_failed(
        &mut self,
        id: ListenerId,
        error: &str,
        now_ms: u64,
    ) -> Option<ElectionAddress> {
        let tries_max = self.tries_max;
        let (place, listener) = self.find(id)?;
        listener.retry_at_ms = Some(now_ms + RETRY_PAUSE_MS);
        if std::mem::take(&mut listener.is_listening) {
            tracing::warn!(%error, "accept an election connection");
            return None;
        }
        listener.failures = listener.failures.saturating_add(1);
        let failures = listener.failures;
        tracing::warn!(%error, failures, "listen for elections on {place}");
        (failures == tries_max).then(|| place.clone())
    }

    /// Tries again where it is time to.
    pub fn on_time(&mut self, now_ms: u64, out: &mut Vec<Change>) {
        let is_due = |listener: &Listener| listener.retry_at_ms.is_some_and(|at| at <= now_ms);
        let due = self.places.iter().filter(|(_, listener)| is_due(listener));
        let due: Vec<_> = due.map(|(place, listener)| (place.clone(), listener.failures)).collect();
        due.into_iter().for_each(|(place, failures)| self.try_listen(place, failures, out));
    }

    pub fn next_deadline_ms(&self) -> Option<u64> {
        self.places.values().filter_map(|listener| listener.retry_at_ms).min()
    }
}
