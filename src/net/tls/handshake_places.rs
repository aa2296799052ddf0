//! The places for handshakes under way. While all are taken, the handshake that has taken longest gives its place to one that
//! waits: a peer that stops half-way costs others a second, not the ten that it may take.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How long a handshake keeps its place in any case.
pub const TURN: Duration = Duration::from_secs(1);

/// Pause until the next oldest handshake is ended, too, if a connection still waits.
const PAUSE: Duration = Duration::from_millis(50);

/// A bounded number of places, which are given in the order in which they are asked for.
pub struct HandshakePlaces {
    free: Semaphore,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    next: u64,
    /// By number: the oldest comes first.
    turns: BTreeMap<u64, Turn>,
}

struct Turn {
    until: Instant,
    give_way: CancellationToken,
}

/// A place, until it is dropped.
pub struct HandshakePlace<'p> {
    places: &'p HandshakePlaces,
    number: u64,
    give_way: CancellationToken,
    _permit: Option<SemaphorePermit<'p>>,
}

impl HandshakePlaces {
    pub fn new(count: usize) -> Self {
        Self { free: Semaphore::new(count), taken: Mutex::default() }
    }

    /// Waits for a place.
    pub async fn take(&self) -> HandshakePlace<'_> {
        let permit = match self.free.try_acquire() {
            Ok(permit) => Some(permit),
            Err(_) => {
                let waiting = self.free.acquire();
                tokio::pin!(waiting);
                let permit = tokio::select! {
                    biased;
                    permit = &mut waiting => permit,
                    never = self.end_oldest() => match never {},
                };
                permit.ok() // It is never closed.
            }
        };
        let give_way = CancellationToken::new();
        let turn = Turn { until: Instant::now() + TURN, give_way: give_way.clone() };
        let mut taken = self.taken();
        let number = taken.next;
        taken.next += 1;
        taken.turns.insert(number, turn);
        drop(taken);
        HandshakePlace { places: self, number, give_way, _permit: permit }
    }

    /// Tells the oldest handshake to give way, once it has had its turn, and the next one a little later: the place of the first
    /// may go to another one that waits.
    async fn end_oldest(&self) -> Infallible {
        loop {
            let now = Instant::now();
            let mut next = now + PAUSE;
            if let Some(oldest) = self.taken().turns.first_entry() {
                match oldest.get().until {
                    until if now < until => next = until,
                    _ => oldest.remove().give_way.cancel(),
                }
            }
            sleep_until(next).await;
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HandshakePlace<'_> {
    /// Returns when the place is to be given up.
    pub async fn gives_way(&self) {
        self.give_way.cancelled().await;
    }
}

impl Drop for HandshakePlace<'_> {
    fn drop(&mut self) {
        self.places.taken().turns.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::timeout;

    #[tokio::test]
    async fn oldest_handshake_gives_way_to_one_that_waits_after_its_turn() {
        let places = HandshakePlaces::new(2);
        let began = Instant::now();
        let (old, young) = (places.take().await, places.take().await);
        let giving_way = async {
            old.gives_way().await;
            drop(old);
        };
        let (third, ()) = tokio::join!(places.take(), giving_way);
        assert!(TURN <= began.elapsed());
        assert!(timeout(Duration::ZERO, young.gives_way()).await.is_err());
        // A place that is given back is taken at once, and no handshake gives way for it.
        drop(young);
        let fourth = timeout(Duration::from_millis(100), places.take()).await.unwrap();
        for place in [&third, &fourth] {
            assert!(timeout(Duration::ZERO, place.gives_way()).await.is_err());
        }
    }
}
