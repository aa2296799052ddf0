//! `/ready` and `/live`, for probes that read the status alone: `ruok` is 200 also while no client is served.

use super::answer::{Answer, Piece, Probe};

impl Probe {
    pub(super) fn at(path: &str) -> Option<Self> {
        match path {
            "/ready" => Some(Self::Ready),
            "/live" => Some(Self::Live),
            _ => None,
        }
    }
}

/// * `mode`: the server's role; `None`: it serves no clients.
pub fn ready(mode: Option<&str>) -> Answer {
    match mode {
        Some(mode) => line(200, format!("serving clients as {mode}\n")),
        None => line(503, "no leader is known, so no client is served\n".to_owned()),
    }
}

/// * `turns`: whether the driver has answered in time.
pub fn live(turns: bool) -> Answer {
    match turns {
        true => line(200, "alive\n".to_owned()),
        false => line(503, "the server's loop has not turned for some seconds\n".to_owned()),
    }
}

fn line(status: u16, text: String) -> Answer {
    Answer::of(status, Some("text/plain;charset=utf-8"), vec![Piece::Text(text)])
}
