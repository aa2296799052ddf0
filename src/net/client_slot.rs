//! Keeps a client connection between its turns, so that another thread with a reply can send it at once.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

thread_local! {
    static REPLIES_LEFT: Cell<u32> = const { Cell::new(0) };
}

/// Calls `wake`. Up to `max` of the connections that it wakes are sent their replies on this thread, which costs less than a
/// change of threads; for the others, and those whose socket is full, the connection's task is woken.
pub fn reply_at_once(max: u32, wake: impl FnOnce()) {
    REPLIES_LEFT.set(max);
    wake();
    REPLIES_LEFT.set(0);
}

/// How a turn has ended.
pub(super) enum Turned {
    /// There is nothing to do until the connection is woken.
    Waits,
    Again,
    /// The client is not read from any more.
    Ends,
    /// The client has closed the connection.
    Left,
}

/// The connection that is kept in a slot.
pub(super) trait SlotClient: Send + 'static {
    /// One turn, if there is anything to do.
    ///
    /// * `waker`: woken when other threads have put something for this connection.
    fn poll_turn(&mut self, cx: &mut Context<'_>, waker: &Waker) -> Poll<io::Result<Turned>>;

    /// Sends what other threads have put into the outbox, if this connection waits for nothing but that and further requests;
    /// `false`: it waits for something else, or the socket is full, and the connection's task has to go on.
    fn reply(&mut self, waker: &Waker) -> bool;
}

/// A connection and its task.
pub(super) struct Slot<C> {
    /// `None` once the connection ends.
    client: Mutex<Option<C>>,
    task: Mutex<Option<Waker>>,
}

/// Takes the connection out of its slot when the task ends, however it ends: the connection holds a waker that holds the slot.
pub(super) struct Owner<C>(Arc<Slot<C>>);

impl<C> Drop for Owner<C> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl<C> Owner<C> {
    pub fn take(&self) -> Option<C> {
        self.0.client().take()
    }
}

impl<C> Slot<C> {
    fn client(&self) -> MutexGuard<'_, Option<C>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: SlotClient> Slot<C> {
    pub fn owned(client: C) -> Owner<C> {
        let (client, task) = (Mutex::new(Some(client)), Mutex::default());
        Owner(Arc::new(Self { client, task }))
    }

    /// Remembers the task to wake.
    fn set_task(&self, waker: &Waker) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if !task.as_ref().is_some_and(|task| task.will_wake(waker)) {
            *task = Some(waker.clone());
        }
    }

    fn wake_task(&self) {
        if let Some(task) = &*self.task.lock().unwrap_or_else(PoisonError::into_inner) {
            task.wake_by_ref();
        }
    }

    fn reply(&self, waker: &Waker) -> bool {
        let Ok(mut client) = self.client.try_lock() else { return false };
        client.as_mut().is_some_and(|client| client.reply(waker))
    }
}

impl<C: SlotClient> Owner<C> {
    /// Runs turns of the connection until the client is not read from any more.
    pub async fn run(&self) -> io::Result<()> {
        let slot = &self.0;
        let waker = Waker::from(slot.clone());
        loop {
            let turned = poll_fn(|cx| {
                slot.set_task(cx.waker());
                match slot.client().as_mut() {
                    Some(client) => client.poll_turn(cx, &waker),
                    None => Poll::Ready(Ok(Turned::Left)),
                }
            });
            match turned.await? {
                Turned::Waits => {}
                Turned::Again => tokio::task::yield_now().await,
                Turned::Ends | Turned::Left => return Ok(()),
            }
        }
    }
}

impl<C: SlotClient> Wake for Slot<C> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let left = REPLIES_LEFT.get();
        if left > 0 {
            REPLIES_LEFT.set(left - 1);
            if self.reply(&Waker::from(self.clone())) {
                return;
            }
        }
        self.wake_task();
    }
}
