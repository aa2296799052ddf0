//! Where the task of a socket puts the events of its connection.

use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// Takes values from any thread, without waiting.
pub struct Sink<T>(Arc<dyn Fn(T) + Send + Sync>);

impl<T> Sink<T> {
    pub fn new(put: impl Fn(T) + Send + Sync + 'static) -> Self {
        Self(Arc::new(put))
    }

    pub fn put(&self, value: T) {
        (self.0)(value);
    }
}

impl<T> Clone for Sink<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Values are dropped once the channel's receiver is gone.
impl<T: Send + 'static> From<UnboundedSender<T>> for Sink<T> {
    fn from(sender: UnboundedSender<T>) -> Self {
        Self::new(move |value| {
            let _gone = sender.send(value);
        })
    }
}
