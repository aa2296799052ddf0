//! Requests at the port of metrics.

use super::answer::{Answer, Piece, Probe};
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
    Probe(Probe),
}

/// Reads the head of a request.
///
/// * `probes`: whether `/ready` and `/live` are answered.
///
/// Source: `PrometheusMetricsProvider` and `MetricsServlet`, ZooKeeper 3.9.5.
pub fn read_scrape(method: &str, path: &str, query: &str, probes: bool) -> Scrape {
    let Some(path) = target::plain_path(path) else {
        return Scrape::Answered(Answer::page(400, "Bad Request"));
    };
    let is_metrics = path == "/metrics";
    let answer = match method {
        "GET" | "HEAD" | "POST" if is_metrics => match target::values(query, "name[]") {
            Some(names) => return Scrape::Metrics { names },
            None => Answer::page(400, "Bad Request"),
        },
        "GET" | "HEAD" => match Probe::at(&path).filter(|_| probes) {
            Some(probe) => return Scrape::Probe(probe),
            None => Answer::page(404, "Not Found"),
        },
        "POST" => Answer::no_post(),
        "TRACE" => Answer::empty(403),
        "PUT" | "DELETE" => Answer::empty(405),
        "OPTIONS" => Answer::methods(is_metrics),
        _ => Answer::empty(501),
    };
    Scrape::Answered(answer)
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
        let asked = read_scrape("POST", "/metrics", "name[]=a&name%5B%5D=b", true);
        assert_eq!(asked, Scrape::Metrics { names: vec!["a".to_owned(), "b".to_owned()] });
        for path in ["/%6detrics", "/metrics;x=1", "/x/../metrics"] {
            let asked = read_scrape("GET", path, "", true);
            assert_eq!(asked, Scrape::Metrics { names: vec![] }, "{path}");
        }
        for (path, methods) in
            [("/metrics", "GET, HEAD, POST, TRACE, OPTIONS"), ("/x", "GET, HEAD, TRACE, OPTIONS")]
        {
            let Scrape::Answered(answer) = read_scrape("OPTIONS", path, "", true) else { panic!() };
            assert_eq!((answer.status, answer.headers), (200, vec![("Allow", methods.to_owned())]));
        }
        for (method, path, query, status) in [
            ("TRACE", "/metrics", "", 403),
            ("GET", "/", "", 404),
            ("POST", "/x", "", 405),
            ("PUT", "/metrics", "", 405),
            ("FOO", "/metrics", "", 501),
            ("GET", "/metrics/", "", 404),
            ("GET", "/metrics", "name[]=%", 400),
            ("GET", "/%zz", "", 400),
        ] {
            let Scrape::Answered(answer) = read_scrape(method, path, query, true) else { panic!() };
            assert_eq!(answer.status, status, "{method} {path}");
            let is_page = ["GET", "POST"].contains(&method);
            assert_eq!(answer.content_type.is_some(), is_page, "{method} {path}");
        }
    }

    #[test]
    fn probes_are_answered_beside_the_metrics_unless_they_are_off() {
        assert_eq!(read_scrape("GET", "/ready", "", true), Scrape::Probe(Probe::Ready));
        assert_eq!(read_scrape("HEAD", "/x/../live", "", true), Scrape::Probe(Probe::Live));
        for (method, probes, status) in [("GET", false, 404), ("POST", true, 405)] {
            let Scrape::Answered(answer) = read_scrape(method, "/ready", "", probes) else {
                panic!("{method}")
            };
            assert_eq!(answer.status, status, "{method}");
        }
    }
}
