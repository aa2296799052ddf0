//! Asks a server one four-letter word, as `FourLetterWordMain` does.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use super::toolkits::{Failed, Outcome, Streams};

/// For the connection and for each wait for an answer, as in Java.
const PATIENCE: Duration = Duration::from_secs(5);
const CHUNK: usize = 64 << 10;

/// Prints the answer of `HOST PORT WORD`, and an empty line after it, as Java does.
///
/// # Errors
/// [`Failed`]: arguments that make no sense, no connection, no answer in five seconds.
///
/// Source: `FourLetterWordMain`, ZooKeeper 3.9.5.
pub fn run(arguments: &[String], streams: &mut Streams<'_>) -> Outcome {
    let (host, port, word) = match arguments {
        [host, port, word] => (host, port, word),
        // `zkServer.sh status` always says whether the port has TLS.
        [host, port, word, secure] if secure.eq_ignore_ascii_case("false") => (host, port, word),
        [_, _, _, secure] if secure.eq_ignore_ascii_case("true") || secure == "--tls" => {
            let why = "oxkeeper asks four-letter words on ports without TLS only; ask the client port or the HTTP port";
            return Err(Failed::Argument(why.to_owned()));
        }
        _ => {
            writeln!(
                streams.out,
                "Usage: FourLetterWordMain <host> <port> <cmd> <secure(optional)>"
            )?;
            return Ok(0);
        }
    };
    let port: u16 = port.parse().map_err(|_| Failed::Argument(format!("port {port:?}")))?;
    let failed = |source: io::Error| Failed::Argument(format!("{word} to {host}:{port}: {source}"));
    let mut stream = connect(host, port).map_err(failed)?;
    stream.write_all(word.as_bytes()).map_err(failed)?;
    // The server may have answered and closed already.
    let _closed_by_then = stream.shutdown(Shutdown::Write);
    let (mut bytes, mut last) = (vec![0; CHUNK], b'\n');
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => break,
            Ok(len) => {
                streams.out.write_all(&bytes[..len])?;
                last = bytes[len - 1];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    if last != b'\n' {
        writeln!(streams.out)?;
    }
    writeln!(streams.out)?;
    Ok(0)
}

/// Connects to the first address of the host that answers.
fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
