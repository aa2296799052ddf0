//! How connections pass four-letter words to the part that answers them.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;

/// Answers four-letter words.
pub type Words =
    dyn Fn(WordRequest) -> Pin<Box<dyn Future<Output = WordAnswer> + Send>> + Send + Sync;

/// The answer to a four-letter word: pieces that are made one by one, while they are sent. A piece may be empty.
pub type WordAnswer = Box<dyn Iterator<Item = Vec<u8>> + Send>;

/// A four-letter word and the client that sent it.
#[derive(Clone, Debug)]
pub struct WordRequest {
    pub word: [u8; 4],
    /// The bytes that came after it.
    pub rest: Vec<u8>,
    pub peer: SocketAddr,
    /// It came to the secure client port.
    pub at_secure_port: bool,
}
