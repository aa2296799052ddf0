//! One connection: a task that reads, one that writes, and the place where what is to be written waits.

use super::hello::{Address, Hello};
use super::inbox::Inbox;
use super::listen::prepare;
use super::{Event, Settings};
use crate::model::ServerId;
use crate::net::dial::dial_once;
use bytes::{Buf, Bytes, BytesMut};
use std::io;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;

/// Longest message.
const MESSAGE_BYTES_MAX: usize = 512 * 1024;
const READ_BYTES: usize = 4096;

/// What one server is to be sent. Outlives its connections.
#[derive(Clone, Debug, Default)]
pub struct Slot(Arc<SlotShared>);

#[derive(Debug, Default)]
struct SlotShared {
    messages: Mutex<Messages>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Messages {
    /// The newest one wins.
    unsent: Option<Bytes>,
    last: Option<Bytes>,
}

impl Slot {
    pub fn put(&self, message: Bytes) {
        self.lock().unsent = Some(message);
        self.0.filled.notify_one();
    }

    /// For a new connection: what was sent last, unless there is something newer.
    fn refill(&self) {
        let mut messages = self.lock();
        if messages.unsent.is_none() {
            messages.unsent = messages.last.clone();
        }
    }

    async fn take(&self) -> Bytes {
        loop {
            {
                let mut messages = self.lock();
                if let Some(message) = messages.unsent.take() {
                    messages.last = Some(message.clone());
                    return message;
                }
            }
            self.0.filled.notified().await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Messages> {
        self.0.messages.lock().expect("a panic aborts")
    }
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("a message of {0} bytes")]
    Length(i32),
    #[error("closed by the peer")]
    Closed,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Moves messages both ways until the connection breaks.
///
/// * `read`: what came in behind the hello.
pub async fn carry(
    stream: TcpStream,
    read: BytesMut,
    from: ServerId,
    slot: Slot,
    inbox: Inbox,
) -> LinkError {
    let (reader, writer) = stream.into_split();
    slot.refill();
    tokio::select! {
        error = receive(reader, read, from, inbox) => error,
        error = send(writer, slot) => error.into(),
    }
}

async fn receive(
    mut reader: OwnedReadHalf,
    mut read: BytesMut,
    from: ServerId,
    inbox: Inbox,
) -> LinkError {
    loop {
        match next_message(&mut read) {
            Ok(Some(message)) => inbox.put(Event::Heard { from, message }),
            Ok(None) => {
                // Grows with what has come, not with what a length promises.
                read.reserve(READ_BYTES);
                match reader.read_buf(&mut read).await {
                    Ok(0) => return LinkError::Closed,
                    Ok(_) => {}
                    Err(error) => return error.into(),
                }
            }
            Err(error) => return error,
        }
    }
}

/// Takes one message off the front; `None` while it is not all there.
///
/// # Errors
/// [`LinkError::Length`] on a length outside of 1 to 524,288.
pub fn next_message(read: &mut BytesMut) -> Result<Option<Bytes>, LinkError> {
    let Some(raw_len) = read.first_chunk::<4>() else { return Ok(None) };
    let len = i32::from_be_bytes(*raw_len);
    let valid = usize::try_from(len).ok().filter(|len| (1..=MESSAGE_BYTES_MAX).contains(len));
    let valid = valid.ok_or(LinkError::Length(len))?;
    if read.len() < 4 + valid {
        return Ok(None);
    }
    read.advance(4);
    Ok(Some(read.split_to(valid).freeze()))
}

async fn send(mut writer: OwnedWriteHalf, slot: Slot) -> io::Error {
    loop {
        let message = slot.take().await;
        let len = u32::try_from(message.len()).expect("the sender keeps to the limit");
        let frame = [&len.to_be_bytes()[..], &message].concat();
        if let Err(error) = writer.write_all(&frame).await {
            return error;
        }
    }
}

/// Connects to whichever of the addresses answers first and says who is calling. Names are looked up at each call.
///
/// # Errors
/// When none answers within the timeout: that of the last one.
pub async fn dial(addresses: Vec<Address>, settings: Settings) -> io::Result<TcpStream> {
    let mut stream = dial_once(addresses, settings.timeout, settings.reach_timeout).await?;
    prepare(&stream, &settings)?;
    let hello = Hello { id: settings.me, addresses: settings.addresses };
    stream.write_all(&hello.encode(settings.multi_address)).await?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: Q-24
    #[test]
    fn messages_have_a_length() {
        let mut read = BytesMut::from(&b"\0\0\0\x02ab\0\0\0\x01c\0\0\0\x05de"[..]);
        let mut next = || next_message(&mut read).unwrap().map(|message| message.to_vec());
        assert_eq!([next(), next(), next()], [Some(b"ab".to_vec()), Some(b"c".to_vec()), None]);
        for len in [0, -1, 512 * 1024 + 1, i32::MAX] {
            let error = next_message(&mut BytesMut::from(&len.to_be_bytes()[..])).unwrap_err();
            assert!(matches!(error, LinkError::Length(claimed) if claimed == len));
        }
        let longest = 512 * 1024_i32;
        assert!(next_message(&mut BytesMut::from(&longest.to_be_bytes()[..])).unwrap().is_none());
    }

    // rows: Q-25 Q-26
    #[tokio::test]
    async fn the_newest_is_sent_and_the_last_again() {
        let slot = Slot::default();
        slot.refill();
        slot.put(Bytes::from_static(b"old"));
        slot.put(Bytes::from_static(b"new"));
        assert_eq!(slot.take().await, "new");
        slot.refill();
        assert_eq!(slot.take().await, "new");
        slot.put(Bytes::from_static(b"newer"));
        slot.refill();
        assert_eq!(slot.take().await, "newer");
    }
}
