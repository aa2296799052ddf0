//! Java's `ServerAdminClient`: asks a server one of six four-letter words, and prints the first bytes of the answer.

use super::toolkits::{Failed, Outcome, Streams};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// For each wait for an answer, as in Java.
const PATIENCE: Duration = Duration::from_secs(20);
const USAGE: &str = "usage: java [-cp CLASSPATH] org.apache.zookeeper.ServerAdminClient host port op \
                     (ruok|stat|dump|kill|gettracemask|settracemask) [arguments]";

/// Asks `HOST PORT OP`. As in Java a failed connection has exit code 0.
///
/// # Errors
/// [`Failed`]: a port or a mask that is no number.
///
/// Source: `ServerAdminClient`, ZooKeeper 3.9.5.
pub fn run(arguments: &[String], streams: &mut Streams<'_>) -> Outcome {
    let [host, port, op, rest @ ..] = arguments else {
        writeln!(streams.out, "{USAGE}")?;
        return Ok(0);
    };
    let lacks = |what: &str| Failed::Argument(format!("{what}; {USAGE}"));
    let port: u16 = port.parse().map_err(|_| lacks("the port is no number"))?;
    let server = (host.as_str(), port);
    let (asked, mask) = match op.to_ascii_lowercase().as_str() {
        "gettracemask" => (ask(server, b"gtmk\0\0\0\0\0\0\0\0", 8), None),
        "settracemask" => {
            let mask = rest.first().and_then(|mask| i64::from_str_radix(mask, 8).ok());
            let mask = mask.ok_or_else(|| lacks("the trace mask is no octal number"))?;
            (ask(server, &[&b"stmk"[..], &mask.to_be_bytes()].concat(), 8), Some(mask))
        }
        word @ ("ruok" | "kill") => return print_text(ask(server, word.as_bytes(), 4), streams),
        word @ ("stat" | "dump") => return print_text(ask(server, word.as_bytes(), 1024), streams),
        _ => {
            writeln!(streams.out, "Unrecognized op: {op}")?;
            return Ok(0);
        }
    };
    let Some((count, bytes)) = or_warn(asked, streams)? else { return Ok(0) };
    let value = bytes.iter().fold(0_i64, |value, &byte| value << 8 | i64::from(byte));
    write!(streams.out, "rc={count} retv=0{value:o}")?;
    if let Some(mask) = mask {
        write!(streams.out, " masks=0{mask:o}")?;
    }
    writeln!(streams.out)?;
    Ok(0)
}

/// What one read of an answer gives: how many bytes, -1 if there are none, and as many bytes as Java's array has.
type Answer = io::Result<(i64, Vec<u8>)>;

fn ask(server: (&str, u16), request: &[u8], bytes: usize) -> Answer {
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request)?;
    let mut answer = vec![0; bytes];
    let count = stream.read(&mut answer)?;
    Ok((if count == 0 { -1 } else { count as i64 }, answer))
}

fn print_text(asked: Answer, streams: &mut Streams<'_>) -> Outcome {
    if let Some((count, bytes)) = or_warn(asked, streams)? {
        // The bytes that nothing was read into are printed too.
        writeln!(streams.out, "rc={count} retv={}", String::from_utf8_lossy(&bytes))?;
    }
    Ok(0)
}

fn or_warn(asked: Answer, streams: &mut Streams<'_>) -> io::Result<Option<(i64, Vec<u8>)>> {
    match asked {
        Ok(answer) => Ok(Some(answer)),
        Err(error) => {
            writeln!(streams.err, "Unexpected exception: {error}")?;
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// What is printed about a server that reads `sent` bytes and answers with `answer`.
    fn said(arguments: &str, sent: usize, answer: &'static [u8]) -> (String, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut bytes = vec![0; sent];
            socket.read_exact(&mut bytes).unwrap();
            socket.write_all(answer).unwrap();
            bytes
        });
        let (code, out) = outcome(&format!("127.0.0.1 {port} {arguments}"));
        assert_eq!(code, Some(0), "{out}");
        (out, server.join().unwrap())
    }

    fn outcome(arguments: &str) -> (Option<u8>, String) {
        let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut streams = Streams { input: &mut io::empty(), out: &mut out, err: &mut err };
        let code = run(&arguments, &mut streams).ok();
        (code, String::from_utf8([out, err].concat()).unwrap())
    }

    // rows: T-10
    #[test]
    fn words_of_java_s_admin_client_are_asked_and_the_first_bytes_are_printed() {
        assert_eq!(said("RuOk", 4, b"imok"), ("rc=4 retv=imok\n".to_owned(), b"ruok".to_vec()));
        assert_eq!(said("kill", 4, b""), ("rc=-1 retv=\0\0\0\0\n".to_owned(), b"kill".to_vec()));
        let (out, _) = said("stat", 4, "Zookeeper version".as_bytes());
        assert_eq!(out, format!("rc=17 retv=Zookeeper version{}\n", "\0".repeat(1007)));
        let (out, sent) = said("gettracemask", 12, b"306");
        assert_eq!(
            (&*out, &sent[..]),
            ("rc=3 retv=0314601540000000000000\n", &b"gtmk\0\0\0\0\0\0\0\0"[..])
        );
        let (out, sent) = said("settracemask 402", 12, b"258");
        assert_eq!(
            (&*out, &sent[..]),
            ("rc=3 retv=0310651600000000000000 masks=0402\n", &b"stmk\0\0\0\0\0\0\x01\x02"[..])
        );
    }

    // rows: T-10
    #[test]
    fn calls_that_java_s_admin_client_does_not_know_end_as_in_java() {
        assert_eq!(outcome("localhost 1"), (Some(0), format!("{USAGE}\n")));
        assert_eq!(outcome("localhost 1 what"), (Some(0), "Unrecognized op: what\n".to_owned()));
        for failing in
            ["localhost x ruok", "localhost 1 settracemask", "localhost 1 settracemask 9"]
        {
            assert_eq!(outcome(failing).0, None, "{failing}");
        }
        let (code, text) = outcome("127.0.0.1 1 ruok");
        assert!(code == Some(0) && text.starts_with("Unexpected exception: "), "{text}");
    }
}
