//! The lists in answers of four-letter words, and their lines. They can be long, so they are not made with the rest of an answer
//! but a part at a time, while earlier parts are sent.

use std::fmt::Write;
use std::net::SocketAddr;

use super::connections::{java_address, render};
use super::status::{ConnectionInfo, SetCounts};

/// A list in an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum List {
    /// `cons`, and `stat` in brief (without sessions): connections of the plain port, or of the port where the four-letter word was sent.
    Connections { brief: bool },
    /// The same of the secure port.
    SecureConnections { brief: bool },
    /// `wchp`.
    WatchesByPath,
    /// `wchc`.
    WatchesBySession,
    /// `dump`: sessions by the time at which they expire.
    Sessions,
    /// `dump`: local sessions by the time at which they expire.
    LocalSessions,
    /// `dump` of a learner, which expires no global session: sessions with their timeouts.
    SessionTimeouts,
    /// `dump`: ephemeral znodes by session.
    Ephemerals,
    /// `dump`: connections by the time at which they are closed.
    ConnectionExpiries,
}

/// A line of a list.
#[derive(Clone, Copy, Debug)]
pub enum Line<'a> {
    Connection {
        of: &'a ConnectionInfo,
        brief: bool,
    },
    /// Above the sessions or connections that expire at one time; the date is printed as in Java.
    Expiring {
        count: usize,
        at: &'a str,
    },
    /// The session above paths of `wchc`.
    Watcher(i64),
    /// The session above ephemeral znodes.
    Owner(i64),
    /// Above sessions of `wchp`.
    WatchedPath(&'a str),
    Session(i64),
    Path(&'a str),
    SessionTimeout {
        session: i64,
        timeout_ms: i32,
    },
    ConnectionExpiry {
        peer: SocketAddr,
        session: i64,
    },
}

impl Line<'_> {
    /// Appends the line with its end.
    ///
    /// Source: `DumpCommand`, `ExpiryQueue.dump`, `LearnerSessionTracker.dumpSessions`, `DataTree.dumpEphemerals` and
    /// `WatchManager.dumpWatches`, ZooKeeper 3.9.5.
    pub fn put(self, to: &mut String) {
        // Writing to a string can't fail.
        _ = match self {
            Self::Connection { of, brief } => {
                to.push_str(&render(of, brief));
                to.write_char('\n')
            }
            Self::Expiring { count, at } => writeln!(to, "{count} expire at {at}:"),
            Self::Watcher(session) => writeln!(to, "0x{session:x}"),
            Self::Owner(session) => writeln!(to, "0x{session:x}:"),
            Self::WatchedPath(path) => writeln!(to, "{path}"),
            Self::Session(session) => writeln!(to, "\t0x{session:x}"),
            Self::Path(path) => writeln!(to, "\t{path}"),
            Self::SessionTimeout { session, timeout_ms } => {
                writeln!(to, "0x{session:x}\t{timeout_ms}ms")
            }
            Self::ConnectionExpiry { peer, session } => {
                writeln!(to, "\tip: {} sessionId: 0x{session:x}", java_address(peer))
            }
        };
    }
}

/// Sessions or connections by their expiry, listed in sets of those that expire in the same second.
#[derive(Clone, Debug)]
pub struct Expiries<T> {
    /// Each with its expiry in wall-clock milliseconds, the next to expire first.
    all: Vec<(u64, T)>,
    next: usize,
}

impl<T> Default for Expiries<T> {
    fn default() -> Self {
        Self { all: Vec::new(), next: 0 }
    }
}

impl<T: Ord> Expiries<T> {
    pub fn new(mut all: Vec<(u64, T)>) -> Self {
        all.sort_unstable();
        Self { all, next: 0 }
    }

    pub fn counts(&self) -> SetCounts {
        let seconds = |chunk: &[(u64, T)]| chunk[0].0 / 1000 == chunk[1].0 / 1000;
        let joined = self.all.windows(2).filter(|pair| seconds(pair)).count();
        SetCounts { sets: self.all.len() - joined, all: self.all.len() }
    }

    /// Gives at most `max` lines in addition to heads to `to`. `false`: the list has ended.
    ///
    /// * `date`: prints wall-clock milliseconds.
    pub fn put(
        &mut self,
        to: &mut dyn FnMut(Line<'_>),
        max: usize,
        date: impl Fn(u64) -> String,
        line: impl Fn(&T) -> Line<'static>,
    ) -> bool {
        let end = self.all.len().min(self.next + max);
        for at in self.next..end {
            let second = self.all[at].0 / 1000;
            if at == 0 || self.all[at - 1].0 / 1000 != second {
                let after = &self.all[at..];
                let count = after.partition_point(|(at_ms, _)| at_ms / 1000 == second);
                to(Line::Expiring { count, at: &date(self.all[at].0) });
            }
            to(line(&self.all[at].1));
        }
        self.next = end;
        end < self.all.len()
    }
}
