//! Answers AdminServer's requests: collects what a command needs, and fills its lists.

use super::inbox::Event;
use super::listing::{self, Date, Describe, Listing, Part};
use super::report::{Dump, FourLetterWords, describe};
use crate::admin::http::{
    self, AdminCommand, AdminRequest, Answer, Call, Metrics, Piece, Probe, Scrape,
};
use crate::admin::{Expiries, List, Mode, Status, Word};
use crate::model::Zxid;
use crate::net::{HttpAnswer, HttpBody, HttpRequest};
use crate::store::{RealDisk, names};
use std::collections::VecDeque;
use std::fs;
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// A driver that does not answer within this time has stopped processing.
const LIVE: Duration = Duration::from_secs(5);

/// Tells browsers to use https from now on, for a day.
///
/// Source: `JettyAdminServer`, ZooKeeper 3.9.5.
const STAY_SECURE: (&str, &str) = ("Strict-Transport-Security", "max-age=86400; includeSubDomains");

impl FourLetterWords {
    pub async fn answer_http(&self, asked: HttpRequest, body: HttpBody) -> HttpAnswer {
        let is_secure = asked.is_secure;
        let mut answer = self.answer_command(asked, body).await;
        if is_secure {
            let (name, value) = STAY_SECURE;
            answer.headers.push((name, value.to_owned()));
        }
        answer
    }

    async fn answer_command(&self, asked: HttpRequest, body: HttpBody) -> HttpAnswer {
        match http::read(&asked.method, &asked.path, &asked.query, &self.config) {
            AdminRequest::Answered(answer) => self.sent(answer, None).await,
            AdminRequest::Probe(probe) => {
                let answer = self.probe(probe).await;
                self.sent(answer, None).await
            }
            AdminRequest::Command(call) => {
                let status = self.status_for(&call).await;
                if call.command.is_guarded() && status.serving {
                    return self.answer_guarded(&call, &asked, body).await;
                }
                let answer = http::run(&call, &self.config, &self.metrics, &status);
                self.perform(answer.effect, |_| true);
                self.sent(answer, Some((&call, status.mode))).await
            }
        }
    }

    /// Answers a request at the port of metrics.
    pub async fn answer_scrape(&self, asked: HttpRequest) -> HttpAnswer {
        let HttpRequest { method, path, query, .. } = &asked;
        let answer = match http::read_scrape(method, path, query, self.config.probes) {
            Scrape::Answered(answer) => answer,
            Scrape::Probe(probe) => self.probe(probe).await,
            Scrape::Metrics { names } => {
                let status = self.status(Word::Mntr).await;
                http::scraped(&Metrics::of(&self.metrics, &status), &names)
            }
        };
        self.sent(answer, None).await
    }

    async fn probe(&self, probe: Probe) -> Answer {
        let (to, from) = oneshot::channel();
        self.inbox.put(Event::Report(to));
        let report = timeout(LIVE, from).await;
        match probe {
            Probe::Live => http::live(report.is_ok()),
            Probe::Ready => {
                let mode = report.ok().and_then(Result::ok).and_then(|report| report.mode);
                http::ready(mode.map(Mode::name))
            }
        }
    }

    async fn status_for(&self, call: &Call) -> Status {
        let mut status = self.status(call.command.word()).await;
        if call.command == AdminCommand::LastSnapshot {
            status.last_snapshot = self.last_snapshot();
        }
        status
    }

    /// The newest snapshot file.
    pub(super) fn last_snapshot(&self) -> Option<(Zxid, u64)> {
        let folder = self.snapshot_folder();
        let newest = names::snapshots(&RealDisk, &folder).ok()?.pop()?;
        let written = fs::metadata(folder.join(&newest.name)).ok()?.modified().ok()?;
        Some((newest.zxid, written.duration_since(UNIX_EPOCH).ok()?.as_secs()))
    }

    /// The answer with its lists, which are made while they are sent.
    pub(super) async fn sent(&self, answer: Answer, call: Option<(&Call, Mode)>) -> HttpAnswer {
        let mut dump = Dump::default();
        let mut place = None;
        if let Some((call, mode)) = call.filter(|(call, _)| call.command.lists()) {
            place = self.http_listings.clone().acquire_owned().await.ok();
            if call.command == AdminCommand::Dump {
                dump = self.dump().await;
                // As in Java, only the server that expires sessions shows when they expire.
                if !matches!(mode, Mode::Standalone | Mode::Leader) {
                    dump.sessions = Expiries::default();
                }
            }
        }
        let parts: VecDeque<Part> = answer
            .body
            .into_iter()
            .map(|piece| match piece {
                Piece::Text(text) => Part::Text(text),
                Piece::List(List::WatchesByPath) => Part::WatchesByPath(listing::ByPath::default()),
                Piece::List(List::WatchesBySession) => {
                    listing::all_watches_by_session(&self.shared)
                }
                Piece::List(list) => self.part(list, &mut dump, false),
            })
            .collect();
        let clock = self.clock;
        let date: Date = Box::new(|wall_ms| wall_ms.to_string());
        let describe: Describe = Box::new(move |conn| describe(conn, clock));
        let body = Listing::new(self.shared.clone(), parts, date, describe, place).in_json();
        HttpAnswer {
            status: answer.status,
            content_type: answer.content_type,
            headers: answer.headers,
            length: None,
            body: Box::new(body),
        }
    }
}
