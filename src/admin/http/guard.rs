//! The commands that ask for credentials, `snapshot` and `restore`: who may run them, and how often.
//!
//! Source: `Commands.runCommand`, `SnapshotCommand`, `RestoreCommand`, `RateLimiter`, ZooKeeper 3.9.5.

use super::answer::{Answer, Call};
use super::commands::AdminCommand;
use super::json::Json;
use super::requests::{in_json, refused};
use crate::auth::{self, Proof, Schemes};
use crate::config::{AdminServer, Config};
use crate::metrics::Registry;
use crate::model::{Identity, Zxid, perms};
use std::net::IpAddr;

/// What a request shows of its sender.
#[derive(Clone, Copy, Debug)]
pub struct Credentials<'a> {
    /// The header of that name.
    pub authorization: Option<&'a str>,
    /// The header `X-Forwarded-For`.
    pub forwarded_for: Option<&'a str>,
    pub peer: IpAddr,
    /// The subject of the client's certificate, if the connection has one.
    pub subject: Option<&'a str>,
}

/// What is to be done once a request is permitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Task {
    /// Take a snapshot; `streams`: it is the body of the answer.
    Snapshot { streams: bool },
    /// Restore the body of the request.
    Restore,
}

/// Lets one call pass in each interval. The intervals follow each other from the first one after the last pause: as in Java, a
/// call that was let through late in its interval does not move the next one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limiter {
    began_ms: u64,
    is_used: bool,
}

impl Limiter {
    fn allows(&mut self, interval_ms: i64, now_ms: u64) -> bool {
        let next_ms = (self.began_ms as i64).saturating_add(interval_ms);
        // Without an interval two calls of one millisecond pass.
        if interval_ms <= 0 || next_ms < now_ms as i64 {
            *self = Self { began_ms: now_ms, is_used: false };
        }
        !std::mem::replace(&mut self.is_used, true)
    }
}

/// The limiters of both commands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limiters {
    pub snapshot: Limiter,
    pub restore: Limiter,
}

/// Checks that the sender has every permission on the root.
///
/// * `may`: whether these identities have a permission on the root.
///
/// # Errors
/// The answer to send instead: 401 or 403.
pub fn authorize(
    call: &Call,
    credentials: Credentials<'_>,
    admin: &AdminServer,
    schemes: &Schemes,
    may: impl Fn(i32, &[Identity]) -> bool,
) -> Result<(), Answer> {
    let Some(shown) = credentials.authorization else {
        return Err(refused(401, &call.name, "Auth info is missing for the command"));
    };
    let Some(identities) = identities(shown, credentials, admin, schemes) else {
        return Err(refused(401, &call.name, "Not authenticated"));
    };
    // Each permission by itself: one of them was enough in Java 3.9.3 (ZOOKEEPER-4964).
    let bits = (0..i32::BITS).map(|bit| 1 << bit).filter(|bit| perms::ALL & bit != 0);
    match bits.into_iter().all(|wanted| may(wanted, &identities)) {
        true => Ok(()),
        false => Err(refused(403, &call.name, "Not authorized")),
    }
}

/// The sender's identities; `None`: they are not proved.
fn identities(
    shown: &str,
    credentials: Credentials<'_>,
    admin: &AdminServer,
    schemes: &Schemes,
) -> Option<Vec<Identity>> {
    let mut words: Vec<&str> = shown.split(' ').collect();
    // As Java splits a text.
    while 1 < words.len() && words.last().is_some_and(|word| word.is_empty()) {
        words.pop();
    }
    let (scheme, proof) = match words[..] {
        [scheme] => (scheme, None),
        [scheme, proof] => (scheme, Some(proof.as_bytes())),
        _ => return None,
    };
    match scheme {
        "digest" => match auth::authenticate(schemes, scheme, proof, || None) {
            Proof::Is(identities) => Some(identities),
            _ => None,
        },
        "ip" => Some(vec![Identity::new("ip", &address(credentials, admin)?)]),
        "x509" => {
            let identities = schemes.of_certificate(credentials.subject.unwrap_or_default());
            if credentials.subject.is_none() || identities.is_empty() {
                tracing::warn!(
                    target: crate::model::STRANGERS, peer = %credentials.peer,
                    "AdminServer refused an identity of scheme x509: the client showed no certificate that client ports take; \
                     set admin.needClientAuth=true, and name its CA by ssl.trustStore.location"
                );
                return None;
            }
            Some(identities)
        }
        // Java's other providers know no requests over HTTP.
        _ => None,
    }
}

/// The sender's address. The first one in the header of a proxy counts only if the configuration says that there is a proxy, since
/// every client can send that header (ZOOKEEPER-4851).
fn address(credentials: Credentials<'_>, admin: &AdminServer) -> Option<String> {
    match credentials.forwarded_for.filter(|_| admin.trusts_forwarded_for) {
        Some(list) => Some(list.split(',').find(|part| !part.is_empty())?.trim().to_owned()),
        None => Some(auth::ip_text(credentials.peer)),
    }
}

/// The task of a request whose sender may ask for it.
///
/// * `now_ms`: monotonic.
///
/// # Errors
/// The answer to send instead.
pub fn task(
    call: &Call,
    config: &Config,
    admin: &AdminServer,
    metrics: &Registry,
    limiters: &mut Limiters,
    now_ms: u64,
) -> Result<Task, Answer> {
    let is_restore = call.command == AdminCommand::Restore;
    if call.is_post != call.command.is_posted() {
        let method = if is_restore { "POST" } else { "GET" };
        return Err(Answer::page(
            500,
            &format!("Server Error: this command is asked for by {method}"),
        ));
    }
    let (is_on, key) = match is_restore {
        true => (admin.restores, "admin.restore.enabled"),
        false => (admin.snapshots, "admin.snapshot.enabled"),
    };
    let name = call.command.name();
    if !is_on {
        tracing::warn!(target: crate::model::STRANGERS, "AdminServer refused {name}: it is off by {key}=false; set it to true to allow it");
        return Err(failed(call, 503));
    }
    if !config.serialize_last_processed_zxid {
        tracing::warn!(
            target: crate::model::STRANGERS,
            "AdminServer refused {name}: it needs serializeLastProcessedZxid.enabled=true; remove that setting"
        );
        return Err(failed(call, 500));
    }
    let (limiter, refusals) = match is_restore {
        true => (&mut limiters.restore, &metrics.restore_rate_limited_count),
        false => (&mut limiters.snapshot, &metrics.snapshot_rate_limited_count),
    };
    if !limiter.allows(admin.limiter_interval_ms, now_ms) {
        refusals.increment();
        tracing::warn!(
            target: crate::model::STRANGERS,
            "AdminServer refused {name}: another one was less than admin.rateLimiterIntervalInMS ago; wait, or lower it"
        );
        return Err(failed(call, 429));
    }
    Ok(match is_restore {
        true => Task::Restore,
        false => Task::Snapshot { streams: streams(call) },
    })
}

pub(super) fn streams(call: &Call) -> bool {
    call.parameters.get("streaming").is_none_or(|value| value.eq_ignore_ascii_case("true"))
}

/// The answer of a command that failed or was refused: as in Java, only the status says which.
pub fn failed(call: &Call, status: u16) -> Answer {
    in_json(status, call.command, Vec::new())
}

/// As [`failed`], with a reason that Java has no case for.
pub fn failed_because(call: &Call, status: u16, error: &str) -> Answer {
    refused(status, call.command.name(), error)
}

/// The answer to `snapshot`. With `streams` the file is its body.
pub fn snapshot_taken(call: &Call, zxid: Zxid, bytes: u64, streams: bool) -> Answer {
    let answer = match streams {
        true => Answer::of(200, Some("application/octet-stream"), Vec::new()),
        false => in_json(200, call.command, Vec::new()),
    };
    let headers = vec![
        ("last_zxid", format!("0x{:x}", zxid.to_wire())),
        ("snapshot_size", bytes.to_string()),
    ];
    Answer { headers, ..answer }
}

/// The answer to `restore`.
///
/// * `zxid`: of the snapshot.
pub fn restored(call: &Call, zxid: i64) -> Answer {
    in_json(200, call.command, vec![("last_zxid", Json::Integer(zxid))])
}
