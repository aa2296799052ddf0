//! What one server tells another about an election: the message of port 3888.

use crate::model::ServerId;
use bytes::{BufMut, Bytes, BytesMut};
use std::fmt;

/// Whom a server wants to lead, or knows to lead. The derived order is the order of the election: a candidate that
/// weighs nothing is left out before votes are compared.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Vote {
    /// The candidate's `currentEpoch`, not the epoch of its zxid.
    pub epoch: i64,
    /// The last zxid of the candidate's log; -1 if it has no data at all and may not be elected.
    pub zxid: i64,
    pub leader: ServerId,
}

impl Vote {
    /// What a server proposes that has no vote: less than anything.
    pub const NOTHING: Self = Self { epoch: i64::MIN, zxid: i64::MIN, leader: ServerId(i64::MIN) };
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
    /// Format: 0 before 3.4.6, 1 before 3.5, 2 since. It tells which fields of old votes may be compared.
    pub version: i32,
    /// The sender's configuration as text, from version 2 on.
    pub config: Option<Bytes>,
    /// Whether the sender is oxkeeper. It says so behind the text, where Java does not look.
    pub is_ours: bool,
}

/// Format that is sent.
pub const VERSION: i32 = 2;
/// Without peer epoch, without version.
const LEN_OLDEST: usize = 28;
/// With peer epoch and four bytes that mean nothing, or of version 1.
const LEN_OLD: usize = 40;
/// Behind the text: this, then one byte, the version of what may follow.
const MARK: &[u8] = b"oxkeeper";
const MARK_VERSION: u8 = 1;

/// Why bytes are no notification.
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
    /// Reads every format that 3.9 reads; bytes behind the text are the sender's own.
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
            let claimed = rest.int("configuration's length")?;
            let valid = usize::try_from(claimed).ok().filter(|claimed| *claimed <= len);
            let text_len = valid.ok_or(NotificationError::ConfigLength { len, claimed })?;
            config = Some(Bytes::copy_from_slice(rest.take(text_len, "configuration")?));
        }
        let is_ours = config.is_some() && rest.bytes.starts_with(MARK);
        let state = PeerState::from_wire(raw_state).ok_or(NotificationError::State(raw_state))?;
        Ok(Self { state, vote: Vote { epoch, zxid, leader }, round, version, config, is_ours })
    }

    /// The message as version 2, whatever it came in.
    pub fn encode(&self) -> Bytes {
        let config = self.config.as_deref().unwrap_or_default();
        let mut out = BytesMut::with_capacity(44 + config.len() + MARK.len() + 1);
        out.put_i32(self.state as i32);
        out.put_i64(self.vote.leader.0);
        out.put_i64(self.vote.zxid);
        out.put_i64(self.round);
        out.put_i64(self.vote.epoch);
        out.put_i32(VERSION);
        out.put_i32(i32::try_from(config.len()).expect("a configuration is far below 2 GiB"));
        out.put_slice(config);
        if self.is_ours {
            out.put_slice(MARK);
            out.put_u8(MARK_VERSION);
        }
        out.freeze()
    }

    /// Version of the sender's configuration; 0 if it names none that can be read.
    pub fn config_version(&self) -> i64 {
        let text = self.config.as_deref().unwrap_or_default();
        let version = text.rsplit(|byte| *byte == b'\n').find_map(|line| {
            let hex = line.trim_ascii().strip_prefix(b"version=")?;
            i64::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
        });
        version.unwrap_or(0)
    }
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

    fn long(&mut self, field: &'static str) -> Result<i64, NotificationError> {
        let taken = self.take(8, field)?;
        Ok(i64::from_be_bytes(taken.try_into().expect("eight were taken")))
    }

    fn short(&self, field: &'static str) -> NotificationError {
        NotificationError::Short { len: self.len, field }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "server.1=127.0.0.1:1:2:participant\nversion=1f";

    fn notification() -> Notification {
        Notification {
            state: PeerState::Following,
            vote: Vote { epoch: 3, zxid: 0x2_0000_0005, leader: ServerId(7) },
            round: 9,
            version: VERSION,
            config: Some(Bytes::from_static(TEXT.as_bytes())),
            is_ours: false,
        }
    }

    // rows: Q-01
    #[test]
    fn fields_stand_where_java_puts_them() {
        let bytes = notification().encode();
        assert_eq!(bytes[..4], 1_i32.to_be_bytes());
        assert_eq!(bytes[4..12], 7_i64.to_be_bytes());
        assert_eq!(bytes[12..20], 0x2_0000_0005_i64.to_be_bytes());
        assert_eq!(bytes[20..28], 9_i64.to_be_bytes());
        assert_eq!(bytes[28..36], 3_i64.to_be_bytes());
        assert_eq!(bytes[36..40], 2_i32.to_be_bytes());
        assert_eq!(bytes[40..44], (TEXT.len() as i32).to_be_bytes());
        assert_eq!(&bytes[44..], TEXT.as_bytes());
    }

    // rows: Q-01
    #[test]
    fn what_java_said_is_read_and_written_alike() {
        let golden = include_str!("../../../compat-tests/golden/election/messages.txt");
        let mut states = Vec::new();
        for (name, hex) in golden.lines().filter_map(|line| line.split_once(' ')) {
            if name == "hello" {
                continue; // The connection's, not an election's.
            }
            let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
            let read = Notification::decode(&bytes).unwrap();
            assert_eq!((read.version, read.is_ours, read.config_version()), (2, false, 0));
            assert_eq!(read.encode(), bytes, "{name}");
            states.push((name, read.state, read.vote.leader.0, read.vote.epoch));
        }
        use PeerState::{Following, Leading, Looking};
        let expected = [
            ("following", Following, 2, 1),
            ("leading", Leading, 2, 1),
            ("looking", Looking, 2, 0),
        ];
        assert_eq!(states, expected);
    }

    // rows: Q-02
    #[test]
    fn zk_1810_older_formats_are_read() {
        let whole = notification().encode();
        let read = |bytes: &[u8]| Notification::decode(bytes).unwrap();
        let oldest = read(&whole[..28]);
        assert_eq!((oldest.version, oldest.vote.epoch), (0, 2), "epoch of the zxid");
        let old = read(&whole[..40]);
        assert_eq!((old.version, old.vote.epoch, old.config), (0, 3, None), "no version is read");
        let mut first = whole[..44].to_vec();
        first[36..40].copy_from_slice(&1_i32.to_be_bytes());
        let first = read(&first);
        assert_eq!((first.version, first.config), (1, None));
        assert_eq!(read(&whole), notification());
    }

    #[test]
    fn zk_3769_what_is_cut_off_is_an_error() {
        let whole = notification().encode();
        for len in (0..whole.len()).filter(|len| ![28, 40].contains(len)) {
            let error = Notification::decode(&whole[..len]).unwrap_err();
            let wrong_length = 44 <= len && matches!(error, NotificationError::ConfigLength { .. });
            assert!(wrong_length || matches!(error, NotificationError::Short { .. }), "{error}");
        }
        for claimed in [-1, i32::MIN, i32::MAX, whole.len() as i32 + 1] {
            let mut wrong = whole.to_vec();
            wrong[40..44].copy_from_slice(&claimed.to_be_bytes());
            let error = Notification::decode(&wrong).unwrap_err();
            assert_eq!(error, NotificationError::ConfigLength { len: whole.len(), claimed });
        }
        let mut wrong = whole.to_vec();
        wrong[3] = 4;
        assert_eq!(Notification::decode(&wrong), Err(NotificationError::State(4)));
    }

    #[test]
    fn zk_4787_any_text_is_carried_as_it_is() {
        let text = "server.1=zoo-\u{e9}\u{4e2d}:1:2\nversion=2".as_bytes().to_vec();
        for text in [text, b"\xff\xfe\nversion=2".to_vec()] {
            let sent = Notification { config: Some(text.clone().into()), ..notification() };
            let read = Notification::decode(&sent.encode()).unwrap();
            assert_eq!((read.config.as_deref(), read.config_version()), (Some(&text[..]), 2));
        }
    }

    #[test]
    fn our_mark_is_found_behind_the_text_only() {
        let ours = Notification { is_ours: true, ..notification() };
        let bytes = ours.encode();
        assert_eq!(Notification::decode(&bytes).unwrap(), ours);
        let mut later = bytes.to_vec();
        later[bytes.len() - 1] = 9;
        later.extend_from_slice(b"what a later version adds");
        assert!(Notification::decode(&later).unwrap().is_ours);
        let inside = Notification { config: Some(Bytes::from_static(MARK)), ..notification() };
        assert!(!Notification::decode(&inside.encode()).unwrap().is_ours);
    }

    #[test]
    fn version_of_the_configuration() {
        let of = |text: &'static str| {
            Notification { config: Some(text.into()), ..notification() }.config_version()
        };
        assert_eq!(of(TEXT), 0x1f);
        assert_eq!(of("version=100000003\n"), 0x1_0000_0003);
        assert_eq!([of(""), of("version=x"), of("server.1=a:1:2")], [0; 3]);
    }

    #[test]
    fn votes_are_ordered_by_epoch_then_zxid_then_server() {
        let vote = |epoch, zxid, leader| Vote { epoch, zxid, leader: ServerId(leader) };
        assert!(vote(2, 0, 1) > vote(1, 9, 9));
        assert!(vote(1, 5, 1) > vote(1, 4, 9));
        assert!(vote(1, 5, 3) > vote(1, 5, 2));
        assert!(vote(0, 0, 0) > Vote::NOTHING);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..90)) {
            if let Ok(read) = Notification::decode(&bytes) {
                prop_assert!(read.config.as_ref().is_none_or(|text| text.len() + 44 <= bytes.len()));
            }
        }

        #[test]
        fn what_is_written_is_read(
            state in 0..4, longs in any::<[i64; 4]>(), text in prop::collection::vec(any::<u8>(), 0..60), is_ours: bool,
        ) {
            let [leader, zxid, epoch, round] = longs;
            let sent = Notification {
                state: PeerState::from_wire(state).unwrap(),
                vote: Vote { epoch, zxid, leader: ServerId(leader) },
                round,
                version: VERSION,
                config: Some(text.into()),
                is_ours,
            };
            prop_assert_eq!(Notification::decode(&sent.encode()).unwrap(), sent);
        }
    }
}
