//! Notifications: the messages of election connections (port 3888).

use crate::model::ServerId;
use bytes::{BufMut, Bytes, BytesMut};
use std::fmt;

/// The leader that a server votes for, or that it knows to be elected. The derived order is the order of the election: a
/// candidate that weighs nothing is left out before votes are compared.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Vote {
    /// The candidate's `currentEpoch`, not the epoch of its zxid.
    pub epoch: i64,
    /// The last zxid of the candidate's log; -1 if it has no data at all and may not be elected.
    pub zxid: i64,
    pub leader: ServerId,
}

/// The round of a server that waits for a candidate other than itself: all that look for a leader are in a later one, and answer a server in an earlier one with their votes. Otherwise
/// those whose resends are a minute apart, as Java's, would not be heard in time.
pub const ASKING_ROUND: i64 = 0;

impl Vote {
    /// The epoch in the vote of a voter whose data is in quarantine: earlier than every epoch, so that no leader takes that voter for
    /// one with a later history.
    pub const UNKNOWN_EPOCH: i64 = -1;

    /// The vote of a server that does not vote: less than any other.
    pub const NOTHING: Self = Self { epoch: i64::MIN, zxid: i64::MIN, leader: ServerId(i64::MIN) };

    /// A server's vote for itself if its history does not count: it elects no server, and shows the epoch of the history. A leader asks for
    /// that when the server has promised a later epoch.
    pub const fn without_history(self) -> Self {
        Self { zxid: -1, ..self }
    }
}

impl fmt::Display for Vote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server {} at zxid {:#x} of epoch {:#x}", self.leader.0, self.zxid, self.epoch)
    }
}

/// What a server is doing, with its number on the wire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PeerState {
    Looking = 0,
    Following = 1,
    Leading = 2,
    Observing = 3,
}

impl PeerState {
    fn from_wire(raw: i32) -> Option<Self> {
        [Self::Looking, Self::Following, Self::Leading, Self::Observing]
            .into_iter()
            .find(|state| *state as i32 == raw)
    }
}

/// One message of an election.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Notification {
    pub state: PeerState,
    pub vote: Vote,
    /// Number of the election that `vote` belongs to; Java's electionEpoch and logicalclock.
    pub round: i64,
    /// Format: 0 before 3.4.6, 1 before 3.5, 2 since. It decides which fields of old votes may be compared.
    pub version: i32,
    /// The sender's configuration as text, from version 2 on.
    pub config: Option<Bytes>,
    /// Whether the sender is oxkeeper. It says so after the text, where Java does not look.
    pub is_ours: bool,
    /// The proposed configuration, as text, that lets the candidate vote where the one in force at the sender does not. Only oxkeeper sends
    /// it, after its mark.
    pub candidates_view: Option<Bytes>,
}

/// The format that this server sends.
pub const VERSION: i32 = 2;
/// Without peer epoch, without version.
const LEN_OLDEST: usize = 28;
/// With peer epoch and four bytes that mean nothing, or of version 1.
const LEN_OLD: usize = 40;
/// After the text: this, then one byte, the version of what follows: from version 2 on, the length and the text of the proposed
/// configuration that lets the candidate vote. Later versions may add to it.
const MARK: &[u8] = b"oxkeeper";
const MARK_ALONE: u8 = 1;
const MARK_WITH_VIEW: u8 = 2;

/// Why bytes are not a notification.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NotificationError {
    #[error("notification of {len} bytes is cut off in its {field}")]
    Short { len: usize, field: &'static str },
    #[error("notification of {len} bytes claims a configuration of {claimed}")]
    ConfigLength { len: usize, claimed: i32 },
    #[error("notification with state {0}")]
    State(i32),
}

impl Notification {
    /// Whether the sender looks for a leader and has no data that counts, so that it does not vote.
    pub fn is_without_data(&self) -> bool {
        self.state == PeerState::Looking && self.vote.zxid == -1
    }

    /// Reads every format that 3.9 reads; bytes after the text are the sender's own.
    ///
    /// # Errors
    /// On a message that is too short for its format, a wrong length of the text or a state that is none. The connection
    /// may go on: the next message has its own length.
    pub fn decode(bytes: &[u8]) -> Result<Self, NotificationError> {
        let len = bytes.len();
        let mut rest = Rest { bytes, len };
        if len < LEN_OLDEST {
            return Err(rest.short("fixed part"));
        }
        let raw_state = rest.int("state")?;
        let leader = ServerId(rest.long("leader")?);
        let zxid = rest.long("zxid")?;
        let round = rest.long("round")?;
        let epoch = if len == LEN_OLDEST { zxid >> 32 } else { rest.long("epoch")? };
        let version = if len == LEN_OLDEST || len == LEN_OLD { 0 } else { rest.int("version")? };
        let mut config = None;
        if version > 1 {
            let text_len = rest.length("configuration's length")?;
            config = Some(Bytes::copy_from_slice(rest.take(text_len, "configuration")?));
        }
        let mark = rest.bytes.strip_prefix(MARK).filter(|_| config.is_some());
        rest.bytes = mark.unwrap_or_default();
        let mut candidates_view = None;
        if let [(MARK_WITH_VIEW..), after @ ..] = rest.bytes {
            rest.bytes = after;
            let text_len = rest.length("length of the candidate's configuration")?;
            let text = rest.take(text_len, "candidate's configuration")?;
            candidates_view = Some(Bytes::copy_from_slice(text));
        }
        let state = PeerState::from_wire(raw_state).ok_or(NotificationError::State(raw_state))?;
        let (vote, is_ours) = (Vote { epoch, zxid, leader }, mark.is_some());
        Ok(Self { state, vote, round, version, config, is_ours, candidates_view })
    }

    /// The message as version 2, whatever it came in.
    pub fn encode(&self) -> Bytes {
        let config = self.config.as_deref().unwrap_or_default();
        let mark_len = MARK.len() + 5 + self.candidates_view.as_ref().map_or(0, Bytes::len);
        let mut out = BytesMut::with_capacity(44 + config.len() + mark_len);
        out.put_i32(self.state as i32);
        out.put_i64(self.vote.leader.0);
        out.put_i64(self.vote.zxid);
        out.put_i64(self.round);
        out.put_i64(self.vote.epoch);
        out.put_i32(VERSION);
        put_text(&mut out, config);
        if self.is_ours {
            out.put_slice(MARK);
            out.put_u8(self.candidates_view.as_ref().map_or(MARK_ALONE, |_| MARK_WITH_VIEW));
            self.candidates_view.iter().for_each(|text| put_text(&mut out, text));
        }
        out.freeze()
    }

    /// Version of the sender's configuration; 0 if there is none that can be read.
    pub fn config_version(&self) -> i64 {
        let text = self.config.as_deref().unwrap_or_default();
        let version = text.rsplit(|byte| *byte == b'\n').find_map(|line| {
            let hex = line.trim_ascii().strip_prefix(b"version=")?;
            i64::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
        });
        version.unwrap_or(0)
    }
}

fn put_text(out: &mut BytesMut, text: &[u8]) {
    out.put_i32(i32::try_from(text.len()).expect("a configuration is far below 2 GiB"));
    out.put_slice(text);
}

/// What is left to read of a message of `len` bytes.
struct Rest<'a> {
    bytes: &'a [u8],
    len: usize,
}

impl<'a> Rest<'a> {
    fn take(&mut self, n: usize, field: &'static str) -> Result<&'a [u8], NotificationError> {
        let (taken, rest) = self.bytes.split_at_checked(n).ok_or_else(|| self.short(field))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn int(&mut self, field: &'static str) -> Result<i32, NotificationError> {
        let taken = self.take(4, field)?;
        Ok(i32::from_be_bytes(taken.try_into().expect("four were taken")))
    }

    /// The length of a text, which may not be longer than the message.
    fn length(&mut self, field: &'static str) -> Result<usize, NotificationError> {
        let (claimed, len) = (self.int(field)?, self.len);
        let valid = usize::try_from(claimed).ok().filter(|claimed| *claimed <= len);
        valid.ok_or(NotificationError::ConfigLength { len, claimed })
    }

    fn long(&mut self, field: &'static str) -> Result<i64, NotificationError> {
        let taken = self.take(8, field)?;
        Ok(i64::from_be_bytes(taken.try_into().expect("eight were taken")))
    }

    fn short(&self, field: &'static str) -> NotificationError {
        NotificationError::Short { len: self.len, field }
    }
}
