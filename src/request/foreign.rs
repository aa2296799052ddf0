//! Bytes of another protocol, on the client port or another one.

/// A protocol that clients send to this port by mistake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Foreign {
    Http,
    Tls,
}

/// What a request line may begin with; `PRI ` opens HTTP/2.
const HTTP_METHODS: [&[u8; 4]; 10] =
    [b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI "];

const HTTP_ANSWER: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 48\r\n\
    Connection: close\r\n\r\nThis port speaks the ZooKeeper protocol alone.\r\n";

/// A record of TLS 1.2 with a fatal alert: handshake failure.
const TLS_ANSWER: &[u8] = &[21, 3, 3, 0, 2, 2, 40];

impl Foreign {
    /// The protocol that a connection begins with. Only for bytes that can be no frame: a client may send frames as long as
    /// `jute.maxbuffer` allows, and each of these is a length of at least 369,000,000.
    pub fn recognise(head: [u8; 4]) -> Option<Self> {
        match head {
            _ if HTTP_METHODS.contains(&&head) => Some(Self::Http),
            // A handshake record of SSL 3.0 to TLS 1.3, all of which count as 3.x.
            [22, 3, 0..=4, _] => Some(Self::Tls),
            _ => None,
        }
    }

    /// An answer that such a client understands.
    pub const fn answer(self) -> &'static [u8] {
        match self {
            Self::Http => HTTP_ANSWER,
            Self::Tls => TLS_ANSWER,
        }
    }

    /// What the log says of the protocol.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Http => {
                "an HTTP request; this port speaks the ZooKeeper protocol, so dial admin.serverPort"
            }
            Self::Tls => {
                "a TLS handshake; this port speaks the ZooKeeper protocol without TLS, so dial secureClientPort"
            }
        }
    }

    /// For the log, of a port for servers.
    pub const fn reason_between_servers(self) -> &'static str {
        match self {
            Self::Http => {
                "an HTTP request; this port is for the other servers, so dial admin.serverPort"
            }
            Self::Tls => {
                "the dialing server speaks TLS, and this one does not: set sslQuorum=true here, or, while the servers are changed \
                 one by one, portUnification=true on all"
            }
        }
    }
}
