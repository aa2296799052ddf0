//! What a client connection waits for.

/// What the machine needs before it can go on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Need {
    /// More bytes from the client: at least this many, the rest of its frame.
    Bytes(usize),
    /// One of these, and no bytes before it: an answer of `replica`, the answer to a silent sync, or the end of a step that
    /// [`super::Connection::take_step`] hands out.
    Answer,
    /// The client to receive what was sent to it.
    Room,
    /// Another turn: this one has used its share.
    Turn,
    /// Fewer outstanding writes on all connections.
    FewerOutstanding,
    /// A four-letter word came instead of a connect request: answer it and close.
    Word([u8; 4]),
    /// To be closed once everything is sent, for the reason given (empty: a regular end).
    Close(String),
}
