//! How far a client connection is.

use crate::model::SessionId;

/// How far a client connection is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Phase {
    /// Neither a connect request nor a four-letter word has come yet.
    Fresh,
    /// The connect request is with `replica`. `resumes`: the client has named a session.
    Connecting {
        resumes: bool,
    },
    Open(SessionId),
    /// A step of the client's SASL exchange is under way on another thread.
    Authenticating(SessionId),
    /// Nothing more is read: closeSession has come, or the connection is being closed.
    Ending,
}
