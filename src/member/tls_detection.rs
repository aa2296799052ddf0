//! Whether a connection at a port with TLS speaks it, and what becomes of the connection until its handshake is done.
//!
//! [`Detection`] is given the first bytes of a connection, whether more may follow, and the time since it was accepted. What it
//! answers depends on nothing else. `net/peer_security.rs` (between servers), `net/tls_port.rs` (clients) and `net/http_tls.rs`
//! (AdminServer and metrics) perform it. A port without TLS has no detection: its connections are plain from the first byte.

use core::time::Duration;

/// From accept to a finished handshake, as Netty has it; at HTTP ports from the first bytes on. A learner's hello has the same
/// deadline, also counted from accept.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Number of first bytes that tell TLS from other protocols.
pub const DETECTION_BYTES: usize = 3;

/// A port with TLS and its settings. `is_unified`: plain connections are served as well as TLS.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Detection {
    /// A quorum or election port. `silent_max`: `ssl.quorum.handshakeDetectionTimeoutMillis`.
    Servers {
        is_unified: bool,
        silent_max: Duration,
    },
    Clients(ClientDetection),
    /// AdminServer or metrics. `silent_max`: how long a client may send nothing.
    Http {
        is_unified: bool,
        silent_max: Duration,
    },
}

/// A client port, when it accepts a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientDetection {
    pub is_unified: bool,
    /// How long a connection may go without a session.
    pub sessionless_max: Duration,
    /// `netty.server.earlyDropSecureConnectionHandshakes`.
    pub drops_early: bool,
    /// No client is served.
    pub is_at_rest: bool,
    /// `netty.server.outstandingHandshake.limit`.
    pub handshakes_max: Option<u32>,
}

/// Whether more bytes may come after those that are there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rest {
    MayFollow,
    /// The peer has ended the connection.
    Ended,
    /// The time of [`Next::Wait`] has come.
    Late,
}

/// What is done next. Times are since the accept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// More bytes are needed, until then.
    Wait {
        until: Duration,
    },
    Decided(Decision),
}

/// How a connection goes on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Decision {
    TlsHandshake(Handshake),
    Plain,
    Refuse(Refused),
}

/// A handshake that is to be performed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Handshake {
    /// Start and deadline of the handshake, since accept.
    since: Duration,
    pub until: Duration,
    handshakes_max: Option<u32>,
}

/// Why a connection is closed before its handshake is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refused {
    #[error("no client is served now")]
    NotServing,
    #[error("it does not begin with TLS, and {0}")]
    NoTls(&'static str),
    /// The peer sent no byte, or too few, as probes of a port do: it is not a fault.
    #[error("it ended before it had shown what it speaks")]
    Gone,
    #[error("no handshake within {} s", .0.as_secs_f32())]
    Late(Duration),
    #[error("netty.server.outstandingHandshake.limit is reached")]
    TooManyHandshakes,
}

/// What the first bytes say.
enum Spoken {
    Tls,
    Plain,
    /// Too few bytes have come.
    Undecided,
}

/// TLS begins with a handshake record (22) of version 3.0 to 3.4. As the length of a ZooKeeper packet these bytes would say 350 MB,
/// and no four-letter word begins so.
const fn spoken(first: &[u8]) -> Spoken {
    match first {
        [] | [0x16] | [0x16, 3] => Spoken::Undecided,
        [0x16, 3, 0..=4, ..] => Spoken::Tls,
        _ => Spoken::Plain,
    }
}

impl Detection {
    /// Decides by all bytes that have come.
    ///
    /// * `at`: the time since the accept.
    pub fn next(&self, first: &[u8], rest: Rest, at: Duration) -> Next {
        let decision = match (self, spoken(first), rest) {
            (Self::Clients(port), ..) if port.drops() => Decision::Refuse(Refused::NotServing),
            (_, Spoken::Tls, _) => Decision::TlsHandshake(self.handshake(at)),
            (_, Spoken::Plain, _) => self.plain(),
            (_, Spoken::Undecided, Rest::MayFollow) => {
                return Next::Wait { until: self.open_max() };
            }
            (_, Spoken::Undecided, Rest::Ended) => Decision::Refuse(Refused::Gone),
            // A silent connection counts as plain, as in Java: the dialing server may wait for bytes of this server.
            (Self::Servers { .. }, Spoken::Undecided, Rest::Late) => self.plain(),
            (Self::Clients(_), Spoken::Undecided, Rest::Late) => {
                Decision::Refuse(Refused::Late(self.open_max()))
            }
            (Self::Http { .. }, Spoken::Undecided, Rest::Late) => Decision::Refuse(Refused::Gone),
        };
        Next::Decided(decision)
    }

    /// How long a connection may leave its protocol undecided.
    fn open_max(&self) -> Duration {
        match self {
            Self::Servers { silent_max, .. } => (*silent_max).min(HANDSHAKE_MAX),
            // A silent connection at a unified port may be a plain one.
            Self::Clients(port) if port.is_unified => port.sessionless_max,
            Self::Clients(port) => port.sessionless_max.min(HANDSHAKE_MAX),
            Self::Http { silent_max, .. } => *silent_max,
        }
    }

    fn handshake(&self, at: Duration) -> Handshake {
        let accepted = Duration::ZERO;
        let (since, until) = match self {
            Self::Servers { .. } => (accepted, HANDSHAKE_MAX),
            Self::Clients(port) if port.is_unified => {
                (accepted, (at + HANDSHAKE_MAX).min(port.sessionless_max))
            }
            Self::Clients(_) => (accepted, self.open_max()),
            Self::Http { .. } => (at, at + HANDSHAKE_MAX),
        };
        let handshakes_max = match self {
            Self::Clients(port) => port.handshakes_max,
            Self::Servers { .. } | Self::Http { .. } => None,
        };
        Handshake { since, until, handshakes_max }
    }

    const fn plain(&self) -> Decision {
        let (is_unified, why) = match self {
            Self::Servers { is_unified, .. } => (*is_unified, "sslQuorum asks for it"),
            Self::Clients(port) => (port.is_unified, "this port speaks nothing else"),
            Self::Http { is_unified, .. } => (*is_unified, "this HTTP port speaks nothing else"),
        };
        if is_unified { Decision::Plain } else { Decision::Refuse(Refused::NoTls(why)) }
    }
}

impl ClientDetection {
    const fn drops(&self) -> bool {
        self.drops_early && self.is_at_rest && !self.is_unified
    }
}

impl Handshake {
    /// The handshake of a connection that this server has dialed; `None`: it is plain. Times are since it was made.
    ///
    /// * `speaks_tls`: `sslQuorum`.
    pub fn dialed(speaks_tls: bool) -> Option<Self> {
        let whole = Self { since: Duration::ZERO, until: HANDSHAKE_MAX, handshakes_max: None };
        speaks_tls.then_some(whole)
    }

    /// Whether the handshake may begin in addition to `others` that are under way on ports of this kind.
    ///
    /// # Errors
    /// If there are as many as the limit allows.
    pub fn admit(&self, others: u64) -> Result<(), Refused> {
        let is_admitted = self.handshakes_max.is_none_or(|max| others < u64::from(max));
        if is_admitted { Ok(()) } else { Err(Refused::TooManyHandshakes) }
    }

    /// Why the handshake is given up when its time is over.
    pub fn late(&self) -> Refused {
        Refused::Late(self.until.saturating_sub(self.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const fn clients(is_unified: bool, sessionless_max: u64) -> ClientDetection {
        ClientDetection {
            is_unified,
            sessionless_max: s(sessionless_max),
            drops_early: false,
            is_at_rest: false,
            handshakes_max: None,
        }
    }

    const fn tls(since: u64, until: u64, handshakes_max: Option<u32>) -> Decision {
        Decision::TlsHandshake(Handshake { since: s(since), until: s(until), handshakes_max })
    }

    const fn no_tls(why: &'static str) -> Decision {
        Decision::Refuse(Refused::NoTls(why))
    }

    /// What each port answers 3 s after the accept.
    struct Row {
        port: Detection,
        /// Without a byte that decides: until when the port waits, in seconds; and what it decides then.
        wait_s: u64,
        late: Decision,
        tls: Decision,
        plain: Decision,
    }

    const GONE: Decision = Decision::Refuse(Refused::Gone);
    const PLAIN: Decision = Decision::Plain;
    const ASKED: Decision = no_tls("sslQuorum asks for it");
    const ALONE: Decision = no_tls("this port speaks nothing else");
    const HTTP: Decision = no_tls("this HTTP port speaks nothing else");

    const fn late(seconds: u64) -> Decision {
        Decision::Refuse(Refused::Late(s(seconds)))
    }

    fn rows() -> Vec<Row> {
        let servers = |is_unified, silent| Detection::Servers { is_unified, silent_max: s(silent) };
        let http = |is_unified| Detection::Http { is_unified, silent_max: s(30) };
        let row = |port, wait_s, late, tls, plain| Row { port, wait_s, late, tls, plain };
        let of = |port: ClientDetection| Detection::Clients(port);
        let limited = |port| ClientDetection { handshakes_max: Some(2), ..port };
        let rests = |port| ClientDetection { is_at_rest: true, ..port };
        let early = |port| ClientDetection { drops_early: true, ..port };
        vec![
            row(servers(true, 5), 5, PLAIN, tls(0, 10, None), PLAIN),
            row(servers(false, 5), 5, ASKED, tls(0, 10, None), ASKED),
            row(servers(true, 60), 10, PLAIN, tls(0, 10, None), PLAIN),
            row(servers(false, 60), 10, ASKED, tls(0, 10, None), ASKED),
            row(of(clients(true, 60)), 60, late(60), tls(0, 13, None), PLAIN),
            row(of(clients(true, 11)), 11, late(11), tls(0, 11, None), PLAIN),
            row(of(clients(true, 5)), 5, late(5), tls(0, 5, None), PLAIN),
            row(of(clients(false, 60)), 10, late(10), tls(0, 10, None), ALONE),
            row(of(clients(false, 5)), 5, late(5), tls(0, 5, None), ALONE),
            row(of(limited(clients(true, 60))), 60, late(60), tls(0, 13, Some(2)), PLAIN),
            row(of(limited(clients(false, 60))), 10, late(10), tls(0, 10, Some(2)), ALONE),
            // Each of these alone drops nothing.
            row(of(rests(clients(false, 60))), 10, late(10), tls(0, 10, None), ALONE),
            row(of(early(clients(false, 60))), 10, late(10), tls(0, 10, None), ALONE),
            row(of(early(rests(clients(true, 60)))), 60, late(60), tls(0, 13, None), PLAIN),
            row(http(true), 30, GONE, tls(3, 13, None), PLAIN),
            row(http(false), 30, GONE, tls(3, 13, None), HTTP),
        ]
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Says {
        Tls,
        Plain,
        Nothing,
    }

    /// First bytes, what they say, and how many of them it takes.
    const BYTES: &[(&[u8], Says, usize)] = &[
        (b"\x16\x03\x00\x01\x00\x01", Says::Tls, 3),
        (b"\x16\x03\x01\x00\xa5\x01", Says::Tls, 3),
        (b"\x16\x03\x02\xff\xff\xff", Says::Tls, 3),
        (b"\x16\x03\x03\0\0\0", Says::Tls, 3),
        (b"\x16\x03\x04\x01\x00\x01", Says::Tls, 3),
        (b"\x16\x03\x05\x01\x00\x01", Says::Plain, 3),
        (b"\x16\x03\xff\x01\x00\x01", Says::Plain, 3),
        (b"\x16\x02\x00\x01\x00\x01", Says::Plain, 2),
        (b"\x16\x04\x03\x01\x00\x01", Says::Plain, 2),
        (b"\x16\x16\x03\x01\x00\x01", Says::Plain, 2),
        (b"\x15\x03\x01\x00\x02\x02", Says::Plain, 1), // An alert of TLS.
        (b"\x80\x2e\x01\x03\x01\x00", Says::Plain, 1), // A hello of SSL 2.
        (b"\0\0\0\x2d\0\0", Says::Plain, 1),           // A connect request.
        (b"\xff\xff\xff\xff\xff\xff", Says::Plain, 1), // The hello of an election connection.
        (b"ruok\r\n", Says::Plain, 1),
        (b"GET / ", Says::Plain, 1),
        (b"\x03\x16\x03\x01\0\0", Says::Plain, 1),
    ];

    /// Compares all inputs of a port after `len` of the bytes.
    fn compare(row: &Row, bytes: &[u8], says: Says, len: usize) {
        for (rest, undecided) in [
            (Rest::MayFollow, Next::Wait { until: s(row.wait_s) }),
            (Rest::Ended, Next::Decided(GONE)),
            (Rest::Late, Next::Decided(row.late)),
        ] {
            let wanted = match says {
                Says::Tls => Next::Decided(row.tls),
                Says::Plain => Next::Decided(row.plain),
                Says::Nothing => undecided,
            };
            let answer = row.port.next(&bytes[..len], rest, s(3));
            assert_eq!(answer, wanted, "{:?}, {len} of {bytes:x?}, {rest:?}", row.port);
        }
    }

    // rows: C-39 C-118 C-202 C-236 C-237
    #[test]
    fn each_port_decides_after_first_bytes_after_an_end_and_after_silence() {
        for row in rows() {
            for &(bytes, says, decides) in BYTES {
                for len in 0..=bytes.len() {
                    let says = if len < decides { Says::Nothing } else { says };
                    compare(&row, bytes, says, len);
                }
            }
        }
    }

    #[test]
    fn each_pair_of_first_bytes_has_its_answer() {
        let port = rows().remove(0);
        for [first, second] in (0..=u16::MAX).map(u16::to_be_bytes) {
            let says = if first == 0x16 { Says::Nothing } else { Says::Plain };
            compare(&port, &[first, second], says, 1);
            let says = if [first, second] == [0x16, 3] { Says::Nothing } else { Says::Plain };
            compare(&port, &[first, second], says, 2);
        }
        for third in 0..=u8::MAX {
            let says = if third <= 4 { Says::Tls } else { Says::Plain };
            compare(&port, &[0x16, 3, third], says, 3);
        }
    }

    /// Six bytes can come in 32 ways.
    #[test]
    fn answer_is_the_same_however_the_bytes_are_split() {
        for row in rows() {
            for &(bytes, says, decides) in BYTES {
                for cuts in 0..1_u32 << (bytes.len() - 1) {
                    let ends =
                        (1..=bytes.len()).filter(|end| *end == 6 || cuts >> (end - 1) & 1 == 1);
                    let met: Vec<(usize, Next)> = ends
                        .map(|end| (end, row.port.next(&bytes[..end], Rest::MayFollow, s(3))))
                        .collect();
                    for (end, next) in met {
                        let decided = if says == Says::Tls { row.tls } else { row.plain };
                        let waits = Next::Wait { until: s(row.wait_s) };
                        let wanted = if end < decides { waits } else { Next::Decided(decided) };
                        assert_eq!(next, wanted, "{:?}, {end} of {bytes:x?}", row.port);
                    }
                }
            }
        }
    }

    // rows: C-121
    #[test]
    fn secure_port_that_drops_early_closes_every_connection_while_no_client_is_served() {
        let port = ClientDetection { drops_early: true, is_at_rest: true, ..clients(false, 60) };
        for (bytes, ..) in BYTES {
            for len in 0..=bytes.len() {
                for rest in [Rest::MayFollow, Rest::Ended, Rest::Late] {
                    let answer = Detection::Clients(port).next(&bytes[..len], rest, s(3));
                    assert_eq!(answer, Next::Decided(Decision::Refuse(Refused::NotServing)));
                }
            }
        }
    }

    // rows: C-120
    #[test]
    fn handshake_begins_if_fewer_are_under_way_than_the_limit() {
        let of = |handshakes_max| Handshake { since: s(0), until: s(10), handshakes_max };
        assert_eq!(of(None).admit(u64::MAX), Ok(()));
        assert_eq!(of(Some(2)).admit(1), Ok(()));
        assert_eq!(of(Some(2)).admit(2), Err(Refused::TooManyHandshakes));
        assert_eq!(of(Some(0)).admit(0), Err(Refused::TooManyHandshakes));
    }

    #[test]
    fn dialed_connection_speaks_tls_from_its_first_byte_or_never() {
        assert_eq!(Handshake::dialed(true).map(Decision::TlsHandshake), Some(tls(0, 10, None)));
        assert_eq!(Handshake::dialed(false), None);
    }

    #[test]
    fn late_handshake_names_the_time_that_it_had() {
        let reason =
            |since, until| Handshake { since, until, handshakes_max: None }.late().to_string();
        assert_eq!(reason(s(0), s(10)), "no handshake within 10 s");
        assert_eq!(reason(s(3), s(13)), "no handshake within 10 s", "an HTTP port");
        assert_eq!(reason(s(0), Duration::from_millis(300)), "no handshake within 0.3 s");
        let refused = no_tls("sslQuorum asks for it");
        let Decision::Refuse(refused) = refused else { panic!("{refused:?}") };
        assert_eq!(refused.to_string(), "it does not begin with TLS, and sslQuorum asks for it");
    }
}
