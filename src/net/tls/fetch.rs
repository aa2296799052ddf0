//! Fetches what the URLs of certificates point to: CRLs by HTTP or from files, answers of OCSP responders by HTTP.
//!
//! Only URLs of certificates that lead to a trusted one are fetched. There are no redirections, no proxies and no HTTPS.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest time for a connection to an HTTP server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest CRL, and longest answer of a responder.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Why a URL gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("{scheme}: is not supported: publish the list by http: or file:")]
    Scheme { scheme: String },
    #[error("its URL has no host")]
    NoHost,
    #[error("connect: {0}")]
    Connect(std::io::Error),
    #[error("no connection within 5 s")]
    ConnectTimeout,
    #[error("HTTP: {0}")]
    Http(#[from] hyper::Error),
    #[error("HTTP: {0}")]
    Request(#[from] hyper::http::Error),
    #[error("HTTP status {0}")]
    Status(u16),
    #[error("longer than {ANSWER_BYTES_MAX} bytes, or cut short")]
    TooLong,
    #[error("read: {0}")]
    File(std::io::Error),
}

/// Fetches a URL: GET, or POST if there is an OCSP request to send.
///
/// # Errors
/// [`FetchError`]
pub async fn fetch(url: &str, request: Option<Vec<u8>>) -> Result<Vec<u8>, FetchError> {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
    match (&*scheme, request) {
        ("http", request) => http(url, request).await,
        ("file", None) => file(url).await,
        _ => Err(FetchError::Scheme { scheme }),
    }
}

/// `file:/path` and `file:///path`; a percent sign is no escape.
async fn file(url: &str) -> Result<Vec<u8>, FetchError> {
    let path = &url["file:".len()..];
    let path = PathBuf::from(path.strip_prefix("//").unwrap_or(path));
    let read = move || {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path)?;
        file.take(ANSWER_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let read = tokio::task::spawn_blocking(read).await;
    let bytes = read.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    let bytes = bytes.map_err(FetchError::File)?;
    (bytes.len() <= ANSWER_BYTES_MAX).then_some(bytes).ok_or(FetchError::TooLong)
}

async fn http(url: &str, body: Option<Vec<u8>>) -> Result<Vec<u8>, FetchError> {
    let uri: Uri = url.parse().map_err(|_| FetchError::NoHost)?;
    let host = uri.host().ok_or(FetchError::NoHost)?;
    let plain = crate::model::without_brackets(host);
    let port = uri.port_u16().unwrap_or(80);
    let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect((plain, port))).await;
    let socket = connected.map_err(|_| FetchError::ConnectTimeout)?.map_err(FetchError::Connect)?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = uri.authority().map_or(host, |authority| authority.as_str());
    let request = Request::builder().uri(path).header(HOST, authority);
    let request = match body {
        None => request.body(Full::new(Bytes::new()))?,
        Some(body) => request
            .method(Method::POST)
            .header(CONTENT_TYPE, "application/ocsp-request")
            .body(Full::new(Bytes::from(body)))?,
    };
    let exchange = async {
        let answer = sender.send_request(request).await?;
        if !answer.status().is_success() {
            return Err(FetchError::Status(answer.status().as_u16()));
        }
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        Ok(body.map_err(|_| FetchError::TooLong)?.to_bytes().to_vec())
    };
    // The exchange makes progress only while the connection is polled.
    tokio::pin!(exchange);
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        // After its end, what has arrived is still read.
        _ = connection => exchange.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::TcpListener;

    /// Answers one connection with these bytes.
    fn served(answer: &[u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, answer) = (listener.local_addr().unwrap(), answer.to_vec());
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _ = socket.read(&mut request).unwrap();
            let _ = socket.write_all(&answer);
        });
        format!("http://{address}/list.crl")
    }

    #[tokio::test]
    async fn lists_come_by_http_and_from_files() {
        let whole = served(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
        assert_eq!(fetch(&whole, None).await.unwrap(), b"abc");
        let chunks =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
        assert_eq!(fetch(&served(chunks), Some(vec![1])).await.unwrap(), b"abc");
        let to_end = served(b"HTTP/1.0 200 OK\r\n\r\nabc");
        assert_eq!(fetch(&to_end, None).await.unwrap(), b"abc");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.crl");
        std::fs::write(&path, b"abc").unwrap();
        let url = format!("file://{}", path.display());
        assert_eq!(fetch(&url, None).await.unwrap(), b"abc");
    }

    #[tokio::test]
    async fn each_failure_of_a_url_is_named() {
        let failed = async |url: &str| fetch(url, None).await.err().map(|error| error.to_string());
        let ldap = failed("ldap://host/cn=list").await.unwrap();
        assert_eq!(ldap, "ldap: is not supported: publish the list by http: or file:");
        let missing = served(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(failed(&missing).await.unwrap(), "HTTP status 404");
        let short = served(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
        assert!(failed(&short).await.unwrap().contains("cut short"));
        let long = served(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\nabc");
        assert!(failed(&long).await.is_some());
        assert!(failed(&served(b"rubbish\r\n\r\n")).await.is_some());
        assert!(failed("file:///no/such/file").await.unwrap().starts_with("read: "));
        assert!(failed("http:///").await.is_some());
    }
}
