//! Takes calls and finds out who is calling.

use super::hello::{self, Hello, HelloError};
use super::hub::Command;
use super::inbox::Inbox;
use super::{Event, Settings};
use crate::request::foreign::Foreign;
use bytes::{Buf, BytesMut};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{sleep, timeout};

/// Callers that have not said who they are.
const STRANGERS_MAX: usize = 256;
/// Between two tries to listen.
const PAUSE: Duration = Duration::from_secs(1);
const BACKLOG: u32 = 50;

/// Where to listen.
#[derive(Clone, Debug)]
pub struct Place {
    /// `None` is every address.
    pub host: Option<String>,
    pub port: u16,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host.as_deref().unwrap_or("*"), self.port)
    }
}

/// Listens for ever: the name is looked up again at every try, and no error ends it (ZOOKEEPER-3320).
pub async fn listen(
    place: Place,
    settings: Settings,
    inbox: Inbox,
    calls: UnboundedSender<Command>,
) {
    let strangers = Arc::new(Semaphore::new(STRANGERS_MAX));
    let mut failures = 0_u32;
    loop {
        match bind(&place).await {
            Ok(listener) => {
                failures = 0;
                accept(&listener, &settings, &strangers, &calls).await;
            }
            Err(error) => {
                failures = failures.saturating_add(1);
                tracing::warn!(%error, failures, "listen for elections on {place}");
                if failures == settings.bind_tries_max {
                    inbox.put(Event::Deaf { place: place.to_string() });
                }
            }
        }
        sleep(PAUSE).await;
    }
}

async fn bind(place: &Place) -> io::Result<TcpListener> {
    let Some(host) = &place.host else {
        let v6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, place.port));
        return match listener(v6) {
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                listener(SocketAddr::from((Ipv4Addr::UNSPECIFIED, place.port)))
            }
            other => other,
        };
    };
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in tokio::net::lookup_host((host.as_str(), place.port)).await? {
        match listener(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(address),
        socket2::Type::STREAM,
        Some(socket2::Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG as i32)?;
    TcpListener::from_std(socket.into())
}

/// Returns when the listener is of no use any more.
async fn accept(
    listener: &TcpListener,
    settings: &Settings,
    strangers: &Arc<Semaphore>,
    calls: &UnboundedSender<Command>,
) {
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "accept an election connection");
                return;
            }
        };
        let Ok(place) = strangers.clone().try_acquire_owned() else {
            tracing::warn!(%peer, "election connection refused: {STRANGERS_MAX} others have not said who they are");
            continue;
        };
        let (settings, calls) = (settings.clone(), calls.clone());
        tokio::spawn(async move {
            let called = timeout(settings.greet_timeout, greet(stream, &settings)).await;
            drop(place);
            match called {
                Ok(Ok(call)) => {
                    // The hub is gone when all is being closed.
                    let _ = calls.send(call);
                }
                Ok(Err(error)) => tracing::warn!(%peer, %error, "election connection closed"),
                Err(_) => {
                    tracing::warn!(%peer, "election connection closed: it did not say who it is")
                }
            }
        });
    }
}

/// Why a caller is turned away.
#[derive(Debug, thiserror::Error)]
enum GreetError {
    #[error(transparent)]
    Hello(#[from] HelloError),
    #[error("read hello: {0}")]
    Io(#[from] io::Error),
    #[error("the connection ended in its hello")]
    Ended,
    #[error("{}", .0.reason())]
    Foreign(Foreign),
}

async fn greet(mut stream: TcpStream, settings: &Settings) -> Result<Command, GreetError> {
    prepare(&stream, settings)?;
    let mut read = BytesMut::with_capacity(hello::BYTES_MAX);
    loop {
        if let Some(what) = read.first_chunk().and_then(|head| Foreign::recognise(*head)) {
            return Err(GreetError::Foreign(what));
        }
        if let Some((hello, taken)) = Hello::parse(&read)? {
            read.advance(taken);
            return Ok(Command::Called { stream, hello, read });
        }
        if stream.read_buf(&mut read).await? == 0 {
            return Err(GreetError::Ended);
        }
    }
}

/// A connection that brings nothing to its other end any more is to end, so that another one is made to another address.
///
/// Java asks by ICMP, or at port 7, whether the address is there, each time something is to be sent.
pub fn look_after(stream: &TcpStream, settings: &Settings) -> io::Result<()> {
    let Some(timeout) = settings.reach_timeout else { return Ok(()) };
    // 0 would be the system's own patience, a quarter of an hour.
    let timeout_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX).max(1);
    Ok(rustix::net::sockopt::set_tcp_user_timeout(stream, timeout_ms)?)
}

/// What every election socket is set to.
pub fn prepare(stream: &TcpStream, settings: &Settings) -> io::Result<()> {
    stream.set_nodelay(true)?;
    socket2::SockRef::from(stream).set_keepalive(settings.keep_alive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ServerId;

    // rows: C-164
    #[tokio::test]
    async fn sockets_are_kept_alive_if_that_is_set() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let settings = |keep_alive| Settings {
            me: ServerId(1),
            addresses: Vec::new(),
            on_all_addresses: false,
            multi_address: false,
            timeout: Duration::from_secs(5),
            reach_timeout: None,
            greet_timeout: Duration::from_secs(1),
            keep_alive,
            bind_tries_max: 3,
        };
        for keep_alive in [true, false] {
            prepare(&stream, &settings(keep_alive)).unwrap();
            assert_eq!(socket2::SockRef::from(&stream).keepalive().unwrap(), keep_alive);
        }
    }
}
