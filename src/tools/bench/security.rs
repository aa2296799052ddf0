//! TLS and SASL of a run's connections, from the options to a session that is authenticated.

use crate::auth::digest_md5::{Client, Service};
use crate::client::{
    ClientError, ConnectRequest, ConnectResponse, Incoming, Stream, Wire, dial, put_request,
};
use crate::model::{Code, Secret, op};
use crate::net::nonce;
use crate::net::tls::{TlsStream, ToolClientError, refused, text_of};
use crate::tools::tls_options::TlsOptions;
use jute::proto::{GetSaslRequest, SetSaslResponse};
use jute::{Encode, Reader};
use rustls::{ClientConfig, ClientConnection, Connection, StreamOwned};
use rustls_pki_types::ServerName;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Rounds of SASL, at most; DIGEST-MD5 has two.
const ROUNDS_MAX: i32 = 4;

/// Options of TLS and SASL.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SecurityOptions {
    #[command(flatten)]
    pub tls: TlsOptions,
    /// Authenticate every connection as this user by SASL with DIGEST-MD5.
    #[arg(long, value_name = "USER", requires = "sasl_password_file")]
    pub sasl_user: Option<String>,
    /// File with the password of --sasl-user; one newline at its end is not part of it.
    #[arg(long, value_name = "FILE", requires = "sasl_user")]
    pub sasl_password_file: Option<PathBuf>,
}

/// Why the options of TLS and SASL can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SecurityError {
    #[error(transparent)]
    Tls(#[from] ToolClientError),
    #[error("can't read the password in {}", path.display())]
    Password { path: PathBuf, source: io::Error },
}

/// A server of the run.
#[derive(Clone, Debug)]
pub struct Server {
    pub addr: SocketAddr,
    /// As the option names it, which the server's certificate has to name too.
    pub host: String,
}

/// How the connections of a run are opened.
pub struct Security {
    tls: Option<Arc<ClientConfig>>,
    login: Option<(String, Arc<Secret>)>,
}

impl Security {
    /// # Errors
    /// If a file can't be read or used.
    pub fn of(options: &SecurityOptions) -> Result<Self, SecurityError> {
        let tls = options.tls.client()?;
        let password = options.sasl_password_file.as_ref().map(|path| {
            let read = std::fs::read(path).map(|mut password| {
                password.pop_if(|byte| *byte == b'\n');
                Arc::new(Secret::new(password))
            });
            read.map_err(|source| SecurityError::Password { path: path.clone(), source })
        });
        let login = options.sasl_user.clone().zip(password.transpose()?);
        Ok(Self { tls, login })
    }

    /// Opens a connection and a session, and authenticates.
    ///
    /// # Errors
    /// [`ClientError`] when no ZooKeeper server answers, or one of the two sides does not trust the other. A session id of 0 says that
    /// the session has expired.
    pub fn connect(
        &self,
        server: &Server,
        request: &ConnectRequest,
        patience: Duration,
    ) -> Result<(Wire<BenchStream>, ConnectResponse), ClientError> {
        let mut wire = Wire::over(self.open(server, patience)?);
        let response = wire.handshake(request, patience)?;
        if let Some((user, password)) = &self.login
            && response.session_id != 0
        {
            authenticate(&mut wire, user, password, patience)?;
        }
        Ok((wire, response))
    }

    fn open(&self, server: &Server, patience: Duration) -> Result<BenchStream, ClientError> {
        let socket = dial(server.addr, patience)?;
        let Some(config) = &self.tls else { return Ok(BenchStream::Plain(socket)) };
        let failed = |error: &dyn std::fmt::Display| ClientError::Security(format!("TLS: {error}"));
        let name = ServerName::try_from(server.host.clone()).map_err(|error| failed(&error))?;
        let tls = ClientConnection::new(config.clone(), name).map_err(|error| failed(&error))?;
        socket.set_read_timeout(Some(patience))?;
        let mut stream = StreamOwned::new(tls, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).map_err(|error| {
                let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
                match inner.and_then(refused) {
                    Some(refused) => failed(&format_args!("the server's certificate: {refused}")),
                    None => failed(&text_of(&error)),
                }
            })?;
        }
        Ok(BenchStream::Tls(Box::new(stream)))
    }

    /// The answer to a four-letter word.
    ///
    /// # Errors
    /// [`ClientError`] when no server answers.
    pub fn word(
        &self,
        server: &Server,
        word: &str,
        patience: Duration,
    ) -> Result<String, ClientError> {
        let mut stream = self.open(server, patience)?;
        stream.tcp().set_read_timeout(Some(patience))?;
        stream.write_all(word.as_bytes())?;
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            // Java's servers end TLS without saying so.
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error.into()),
            _ => {}
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

/// Authenticates a session by DIGEST-MD5: the server speaks first, after an empty token.
fn authenticate(
    wire: &mut Wire<BenchStream>,
    user: &str,
    password: &Arc<Secret>,
    patience: Duration,
) -> Result<(), ClientError> {
    let refused = |reason: &str| ClientError::Security(format!("SASL as {user}: {reason}"));
    let mut client = Client::new(Service::CLIENTS, user.to_owned(), password.clone(), nonce());
    let mut token = Vec::new();
    for xid in 1..=ROUNDS_MAX {
        let mut bytes = Vec::new();
        put_request(&mut bytes, xid, op::SASL, |to| {
            GetSaslRequest { token: Some(&token) }.encode(to);
        });
        wire.send(&bytes)?;
        let frame = wire.receive(patience)?;
        let Incoming::Reply { header, body } = Incoming::parse(&frame)? else {
            return Err(refused("the server does something else in between"));
        };
        if !Code(header.err).is_ok() {
            let text = "the server refused it; check user and password, its log has the reason";
            return Err(refused(&format!("{text} (error {})", Code(header.err))));
        }
        let response: SetSaslResponse<'_> = Reader::new(body).read()?;
        let challenge = response.token.unwrap_or_default();
        match client.step(challenge).map_err(|refusal| refused(&refusal.to_string()))? {
            None => return Ok(()),
            Some(next) => token = next,
        }
    }
    Err(refused("the server does not come to an end"))
}

/// A connection that blocks: a socket, or TLS on one.
pub enum BenchStream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// The same for a runtime.
pub enum BenchSocket {
    Plain(tokio::net::TcpStream),
    Tls(TlsStream),
}

impl BenchStream {
    /// # Errors
    /// As the socket's; outside of a runtime there is no way.
    pub fn into_socket(self) -> io::Result<BenchSocket> {
        let of = |socket: TcpStream| {
            socket.set_nonblocking(true)?;
            tokio::net::TcpStream::from_std(socket)
        };
        Ok(match self {
            Self::Plain(socket) => BenchSocket::Plain(of(socket)?),
            Self::Tls(stream) => {
                let StreamOwned { conn, sock } = *stream;
                BenchSocket::Tls(TlsStream::new(of(sock)?, Box::new(Connection::Client(conn))))
            }
        })
    }
}

impl Stream for BenchStream {
    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &stream.sock,
        }
    }
}

impl Read for BenchStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for BenchStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
