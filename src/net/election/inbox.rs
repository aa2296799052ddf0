//! What came in and was not read yet.

use crate::member::election_connections::Event;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// The oldest ones are dropped above this: whoever sent them says it again.
const EVENTS_MAX: usize = 100;

/// A bounded queue that never makes its writers wait. One reads, many write.
#[derive(Clone, Debug, Default)]
pub struct Inbox(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    events: Mutex<VecDeque<Event>>,
    filled: Notify,
}

impl Inbox {
    pub(super) fn put(&self, event: Event) {
        let mut events = self.0.events.lock().expect("a panic aborts");
        if EVENTS_MAX <= events.len() {
            events.pop_front();
        }
        events.push_back(event);
        self.0.filled.notify_one();
    }

    /// The next event, if there is one.
    pub fn try_take(&self) -> Option<Event> {
        self.0.events.lock().expect("a panic aborts").pop_front()
    }

    /// Waits for the next event. Nothing is lost if the wait is given up.
    pub async fn take(&self) -> Event {
        loop {
            if let Some(event) = self.try_take() {
                return event;
            }
            self.0.filled.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ServerId;

    // rows: Q-25
    #[tokio::test]
    async fn the_oldest_makes_room() {
        let inbox = Inbox::default();
        for id in 0..103 {
            inbox.put(Event::ElectionConnected { to: ServerId(id) });
        }
        assert_eq!(inbox.take().await, Event::ElectionConnected { to: ServerId(3) });
        let mut left = 0;
        while inbox.try_take().is_some() {
            left += 1;
        }
        assert_eq!(left, 99);
    }
}
