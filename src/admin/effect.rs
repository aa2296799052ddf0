//! What an answer changes.

/// The effect of a four-letter word or a command, in addition to its answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effect {
    None,
    /// [`crate::metrics::Registry::reset`].
    ResetServer,
    /// Every connection's counts, latencies and last request.
    ResetConnections,
    /// The counts of a leader's connections to observers.
    ResetObservers,
    /// [`super::Status::trace_mask`] from now on.
    SetTraceMask(i64),
}
