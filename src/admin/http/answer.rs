//! Parsed requests, and answers.

use super::super::effect::Effect;
use super::super::list::List;
use super::commands::AdminCommand;
use super::json::Json;
use std::collections::BTreeMap;

const HTML: &str = "text/html;charset=iso-8859-1";

/// What a request to AdminServer asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum AdminRequest {
    /// The answer needs no data of the server.
    Answered(Answer),
    Command(Call),
    Probe(Probe),
}

/// A path that Java's HTTP ports lack.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Probe {
    /// Whether clients are served.
    Ready,
    /// Whether the driver answers.
    Live,
}

/// A command that is asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Call {
    pub command: AdminCommand,
    /// The command's name or alias in the request.
    pub name: String,
    pub parameters: BTreeMap<String, String>,
    pub is_post: bool,
}

/// An answer; its body is sent piece by piece.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub content_type: Option<&'static str>,
    /// The headers besides the content type.
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<Piece>,
    /// What the server must do before the answer is sent.
    pub effect: Effect,
}

/// A piece of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(String),
    List(List),
}

/// A value of an answer in JSON.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Json(Json),
    List(List),
}

impl Answer {
    pub(super) fn of(status: u16, content_type: Option<&'static str>, body: Vec<Piece>) -> Self {
        Self { status, content_type, headers: Vec::new(), body, effect: Effect::None }
    }

    pub(super) fn empty(status: u16) -> Self {
        Self::of(status, None, Vec::new())
    }

    /// The answer to OPTIONS.
    ///
    /// * `takes_post`: whether the path answers POST.
    pub(super) fn methods(takes_post: bool) -> Self {
        let post = if takes_post { "POST, " } else { "" };
        let headers = vec![("Allow", format!("GET, HEAD, {post}TRACE, OPTIONS"))];
        Self { headers, ..Self::empty(200) }
    }

    /// The answer to POST at a path that takes GET alone.
    pub(super) fn no_post() -> Self {
        Self::page(405, "HTTP method POST is not supported by this URL")
    }

    /// A page for people; programs read the status.
    pub(super) fn page(status: u16, reason: &str) -> Self {
        let text = format!(
            "<html>\n<head><title>Error {status} {reason}</title></head>\n\
             <body><h2>HTTP ERROR {status} {reason}</h2></body>\n</html>\n"
        );
        Self::of(status, Some(HTML), vec![Piece::Text(text)])
    }
}
