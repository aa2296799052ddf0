//! Requests at the port of metrics.

use super::answer::{Answer, Piece};
use super::prometheus::Metrics;
use super::target;

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a request at the port of metrics asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Scrape {
    Answered(Answer),
    /// The metrics, or those of these names.
    Metrics {
        names: Vec<String>,
    },
}

/// Reads the head of a request.
///
/// Source: `PrometheusMetricsProvider` and `MetricsServlet`, ZooKeeper 3.9.5.
pub fn read_scrape(method: &str, path: &str, query: &str) -> Scrape {
    let refused = |status| Scrape::Answered(Answer::of(status, None, Vec::new()));
    match method {
        "TRACE" => return refused(403),
        "GET" | "HEAD" | "POST" if path == "/metrics" => {}
        "GET" | "HEAD" => return refused(404),
        "POST" | "PUT" | "DELETE" => return refused(405),
        _ => return refused(501),
    }
    match target::values(query, "name[]") {
        Some(names) => Scrape::Metrics { names },
        None => refused(400),
    }
}

/// The answer to a scrape.
///
/// * `names`: as in [`Scrape`].
pub fn scraped(metrics: &Metrics, names: &[String]) -> Answer {
    Answer::of(200, Some(TEXT), vec![Piece::Text(metrics.text(names))])
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: M-40
    #[test]
    fn requests_are_distinguished_by_method_and_path() {
        let asked = read_scrape("POST", "/metrics", "name[]=a&name%5B%5D=b");
        assert_eq!(asked, Scrape::Metrics { names: vec!["a".to_owned(), "b".to_owned()] });
        for (method, path, query, status) in [
            ("TRACE", "/metrics", "", 403),
            ("GET", "/", "", 404),
            ("POST", "/x", "", 405),
            ("PUT", "/metrics", "", 405),
            ("FOO", "/metrics", "", 501),
            ("GET", "/metrics", "name[]=%", 400),
        ] {
            let Scrape::Answered(answer) = read_scrape(method, path, query) else { panic!() };
            assert_eq!(answer.status, status, "{method} {path}");
        }
    }
}
