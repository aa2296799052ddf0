//! Asks a server one four-letter word, as `FourLetterWordMain` does.

use super::tls_options::explained;
use super::toolkits::{Failed, Outcome, Streams};
use crate::config::tls::{StorePassword, StoreSettings};
use crate::config::{Environment, flag_value};
use crate::model::{Secret, chain, without_brackets};
use crate::net::tls::{ToolClientError, tool_client, tool_client_of_stores};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// For the connection and for each wait for an answer, as in Java.
const PATIENCE: Duration = Duration::from_secs(5);
const CHUNK: usize = 64 << 10;
const USAGE: &str = "Usage: FourLetterWordMain <host> <port> <cmd> <secure(optional)>";
const GIVE_ALL: &str = "give HOST PORT WORD; oxkeeper 4lw --help says more";
/// A part of the answer to a word that is not in the whitelist.
const REFUSAL: &str = "is not executed because it is not in the whitelist";
const NO_ANSWER: &str = "no answer: is it a four-letter word, and the port a client port, with TLS or without as was asked?";
const NO_TRUST: &str = "TLS needs the certificates that are trusted: name their file by --tls-ca FILE, or their store by \
                        -Dzookeeper.ssl.trustStore.location=FILE";

/// Prints the answer of `HOST PORT WORD`, and an empty line after it, as Java does.
///
/// With `--tls`, or Java's fourth argument `true`, the word goes over TLS. Certificates are PEM files (`--tls-ca`, `--tls-cert`,
/// `--tls-key`), or stores as Java's clients name them (`-Dzookeeper.ssl.keyStore.location` and so on).
///
/// # Errors
/// [`Failed`]: arguments that make no sense, no connection, no answer in five seconds.
///
/// Source: `FourLetterWordMain`, ZooKeeper 3.9.5.
pub fn run(arguments: &[String], streams: &mut Streams<'_>) -> Outcome {
    print_answer(arguments, streams).map(|_as_in_java| 0)
}

/// As [`run`], with exit code 1 if the server does not know the word, or its whitelist lacks it.
///
/// # Errors
/// As [`run`]; and if there is no answer.
pub fn run_strictly(arguments: &[String], streams: &mut Streams<'_>) -> Outcome {
    if WordToSend::read(arguments)?.is_none() {
        return Err(Failed::Argument(GIVE_ALL.to_owned()));
    }
    match print_answer(arguments, streams)? {
        Answer::Some => Ok(0),
        Answer::Refused => Ok(1),
        Answer::None => Err(Failed::Argument(NO_ANSWER.to_owned())),
    }
}

/// What a server has answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Answer {
    Some,
    /// The word is not in its whitelist.
    Refused,
    None,
}

fn print_answer(arguments: &[String], streams: &mut Streams<'_>) -> Result<Answer, Failed> {
    let Some(to_send) = WordToSend::read(arguments)? else {
        writeln!(streams.out, "{USAGE}")?;
        return Ok(Answer::Some);
    };
    let WordToSend { host, port, word, tls } = to_send;
    let has_tls = tls.is_some();
    let failed = |source: io::Error| {
        Failed::Argument(format!("{word} to {host}:{port}: {}", explained(&source, has_tls)))
    };
    let (mut bytes, mut last) = (vec![0; CHUNK], b'\n');
    let mut answer = Answer::None;
    let stream = connect(&host, port, PATIENCE).map_err(failed)?;
    let mut stream = open(stream, &host, &word, tls).map_err(failed)?;
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => break,
            Ok(len) => {
                if answer == Answer::None {
                    let is_refusal = String::from_utf8_lossy(&bytes[..len]).contains(REFUSAL);
                    answer = if is_refusal { Answer::Refused } else { Answer::Some };
                }
                streams.out.write_all(&bytes[..len])?;
                last = bytes[len - 1];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Java's servers end TLS without saying so.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(failed(error)),
        }
    }
    if last != b'\n' {
        writeln!(streams.out)?;
    }
    writeln!(streams.out)?;
    Ok(answer)
}

/// A word, and the server that it is sent to.
struct WordToSend {
    host: String,
    port: u16,
    word: String,
    tls: Option<Arc<ClientConfig>>,
}

impl WordToSend {
    /// `None`: the arguments are as many as make no sense.
    fn read(arguments: &[String]) -> Result<Option<Self>, Failed> {
        let (mut plain, mut flags) = (Vec::new(), Vec::new());
        let (mut is_secure, mut files) = (false, [const { None::<PathBuf> }; 3]);
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let option = ["--tls-ca", "--tls-cert", "--tls-key"];
            match option.iter().position(|option| option == argument) {
                Some(at) => {
                    let lacks = || Failed::Argument(format!("{argument} needs a file"));
                    files[at] = Some(rest.next().ok_or_else(lacks)?.into());
                }
                None if argument == "--tls" => is_secure = true,
                None if argument.starts_with("-D") => flags.push(argument.clone()),
                None => plain.push(argument),
            }
        }
        let (host, port, word) = match plain[..] {
            [host, port, word] => (host, port, word),
            // `zkServer.sh status` always says whether the port has TLS.
            [host, port, word, secure] => {
                is_secure |= secure.eq_ignore_ascii_case("true");
                (host, port, word)
            }
            _ => return Ok(None),
        };
        let port: u16 = port.parse().map_err(|_| {
            Failed::Argument(format!("{port:?} is not a port; give HOST PORT WORD"))
        })?;
        let [trusted, certificate, key] = files;
        is_secure |= trusted.is_some();
        let host = without_brackets(host);
        let tls = match trusted {
            _ if !is_secure => None,
            Some(trusted) => {
                let own = certificate.as_deref().zip(key.as_deref());
                Some(tool_client(&trusted, own).map_err(|error| of_tls(&error))?)
            }
            None => Some(of_stores(&flags)?),
        };
        Ok(Some(Self { host: host.to_owned(), port, word: word.clone(), tls }))
    }
}

fn of_tls(error: &ToolClientError) -> Failed {
    Failed::Argument(chain(error))
}

/// TLS with the stores that properties of Java's clients name.
fn of_stores(flags: &[String]) -> Result<Arc<ClientConfig>, Failed> {
    let trusted = store(flags, "trustStore").ok_or(Failed::Argument(NO_TRUST.to_owned()))?;
    let own = store(flags, "keyStore");
    let compares = property(flags, "hostnameVerification");
    let compares = compares.is_none_or(|value| value.eq_ignore_ascii_case("true"));
    tool_client_of_stores(&trusted, own.as_ref(), compares).map_err(|error| of_tls(&error))
}

fn store(flags: &[String], which: &str) -> Option<StoreSettings> {
    let path = property(flags, &format!("{which}.location"))?;
    let password = property(flags, &format!("{which}.password"));
    let password = match property(flags, &format!("{which}.passwordPath")) {
        Some(file) => StorePassword::File(file.into()),
        None => password.map_or(StorePassword::None, |password| {
            StorePassword::Given(Arc::new(Secret::new(password.into_bytes())))
        }),
    };
    Some(StoreSettings { path: Path::new(&path).to_owned(), password, kind: None })
}

fn property(flags: &[String], name: &str) -> Option<String> {
    let value = flag_value(&Environment::new(), flags, &format!("zookeeper.ssl.{name}"));
    value.filter(|value| !value.is_empty())
}

/// Sends the word, and returns what the answer is read from.
pub(super) fn open(
    mut socket: TcpStream,
    host: &str,
    word: &str,
    tls: Option<Arc<ClientConfig>>,
) -> io::Result<Box<dyn Read>> {
    let Some(config) = tls else {
        socket.write_all(word.as_bytes())?;
        // The server may have answered and closed already.
        let _closed_by_then = socket.shutdown(Shutdown::Write);
        return Ok(Box::new(socket));
    };
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(tls, socket);
    stream.write_all(word.as_bytes())?;
    stream.flush()?;
    Ok(Box::new(stream))
}

/// Connects to the first address of the host that answers.
///
/// * `patience`: for each address, and later for each wait for an answer.
pub(super) fn connect(host: &str, port: u16, patience: Duration) -> io::Result<TcpStream> {
    let host = without_brackets(host);
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => {
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::tls::test_certificates::{Authority, settings};
    use crate::net::tls::{Engine, EngineRole};
    use std::net::TcpListener;

    /// A server that answers one word over TLS, and its address.
    ///
    /// The thread returns what has ended the handshake.
    fn answering(engine: Engine) -> (std::thread::JoinHandle<Option<io::Error>>, String) {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let answer = move || {
            let (mut socket, _) = listener.accept().unwrap();
            let rustls::Connection::Server(mut tls) = engine.accepted().unwrap() else { panic!() };
            let mut word = [0; 4];
            let mut stream = rustls::Stream::new(&mut tls, &mut socket);
            if let Err(error) = stream.read_exact(&mut word) {
                return Some(error);
            }
            stream.write_all(&[b"is ", &word[..]].concat()).unwrap();
            stream.flush().unwrap();
            None
        };
        (std::thread::spawn(answer), port)
    }

    fn said(arguments: &[&str]) -> Result<String, String> {
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut streams = Streams { input: &mut io::empty(), out: &mut out, err: &mut err };
        run(&arguments, &mut streams).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn word_without_an_answer_and_one_that_is_refused_end_with_exit_code_1() {
        for (answer, code) in [
            ("imok", Some(0)),
            ("wchs is not executed because it is not in the whitelist.\n", Some(1)),
            ("", None),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port().to_string();
            let server = std::thread::spawn(move || {
                for _ in 0..2 {
                    let (mut socket, _) = listener.accept().unwrap();
                    let mut word = [0; 4];
                    socket.read_exact(&mut word).unwrap();
                    socket.write_all(answer.as_bytes()).unwrap();
                }
            });
            let arguments = ["127.0.0.1", &port, "wchs"].map(str::to_owned);
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut streams = Streams { input: &mut io::empty(), out: &mut out, err: &mut err };
            assert_eq!(run_strictly(&arguments, &mut streams).ok(), code, "{answer}");
            assert_eq!(run(&arguments, &mut streams).unwrap(), 0, "as in Java: {answer}");
            server.join().unwrap();
        }
    }

    // rows: T-10
    #[test]
    fn words_are_asked_over_tls_with_files_and_with_stores() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path(), "ca");
        let other = Authority::new(folder.path(), "other");
        let settings = settings(&authority.issue("server"), &authority.trust);
        let own = authority.issue("client").display().to_string();
        let trust = authority.trust.display().to_string();
        let engine = || Engine::new(settings.clone(), EngineRole::Server).unwrap().0;
        let files = ["--tls", "--tls-ca", &trust, "--tls-cert", &own, "--tls-key", &own];
        let (server, port) = answering(engine());
        let words = ["localhost", &port, "ruok"];
        assert_eq!(said(&[&words[..], &files[..]].concat()).unwrap(), "is ruok\n\n");
        server.join().unwrap();
        let flags = [
            format!("-Dzookeeper.ssl.trustStore.location={trust}"),
            format!("-Dzookeeper.ssl.keyStore.location={own}"),
        ];
        let (server, port) = answering(engine());
        let words = [&flags[0], &flags[1], "localhost", &port, "ruok", "true"];
        assert_eq!(said(&words).unwrap(), "is ruok\n\n");
        server.join().unwrap();
        let (server, port) = answering(engine());
        let strange = other.trust.display().to_string();
        let refused = said(&["localhost", &port, "ruok", "--tls-ca", &strange]).unwrap_err();
        assert!(refused.contains("ruok to localhost"), "{refused}");
        server.join().unwrap();
        let (server, port) = answering(engine());
        let other_host = said(&["127.0.0.2", &port, "ruok", "--tls-ca", &trust]).unwrap_err();
        assert!(
            other_host.contains(" is for localhost, 127.0.0.1, and the peer is 127.0.0.2"),
            "{other_host}"
        );
        let refusal = server.join().unwrap().expect("the client refuses the certificate");
        let refusal = crate::net::tls::Refusal::of(&refusal.into()).reason;
        assert!(refusal.starts_with("the peer refused this server's certificate"), "{refusal}");
        let lacks = said(&["localhost", "1", "ruok", "--tls"]).unwrap_err();
        assert_eq!(lacks, NO_TRUST);
        assert!(said(&["localhost"]).unwrap().starts_with("Usage:"));
    }
}
