//! The client connections of this server, by the watcher id under which they set watches.

use super::ClientHandle;
use crate::model::sync::{Arc, RwLock};
use crate::tree::WatcherId;

/// A table that uses freed ids again; an id is freed only after the connection's watches are removed.
#[derive(Default)]
pub struct ClientHandles {
    places: RwLock<Places>,
}

#[derive(Default)]
struct Places {
    conns: Vec<Option<Arc<ClientHandle>>>,
    free: Vec<u32>,
}

impl ClientHandles {
    /// Adds a new connection under a free id.
    pub fn add(&self, make: impl FnOnce(WatcherId) -> ClientHandle) -> Arc<ClientHandle> {
        let mut places = self.places.write();
        let at = places.free.pop().unwrap_or_else(|| {
            places.conns.push(None);
            places.conns.len() as u32 - 1
        });
        let conn = Arc::new(make(WatcherId(at)));
        places.conns[at as usize] = Some(conn.clone());
        conn
    }

    pub fn remove(&self, id: WatcherId) {
        let mut places = self.places.write();
        if places.conns[id.0 as usize].take().is_some() {
            places.free.push(id.0);
        }
    }

    pub fn get(&self, id: WatcherId) -> Option<Arc<ClientHandle>> {
        self.places.read().conns.get(id.0 as usize).cloned().flatten()
    }

    /// All connections at this moment.
    pub fn all(&self) -> Vec<Arc<ClientHandle>> {
        self.places.read().conns.iter().flatten().cloned().collect()
    }

    /// The connections at the next `max` places from `at` on, which is moved past them; `None` if there are no more places.
    pub fn next(&self, at: &mut usize, max: usize) -> Option<Vec<Arc<ClientHandle>>> {
        let places = self.places.read();
        let end = places.conns.len().min(*at + max);
        let found = places.conns.get(*at..end).filter(|places| !places.is_empty())?;
        *at = end;
        Some(found.iter().flatten().cloned().collect())
    }

    pub fn count(&self) -> usize {
        let places = self.places.read();
        places.conns.len() - places.free.len()
    }
}
