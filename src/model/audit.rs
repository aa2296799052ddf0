//! The events of the audit log, as values (U-31..U-37). Their text is made by `admin`.

use super::{Identity, SessionId};
use core::net::IpAddr;
use std::sync::Arc;

/// One event of the audit log.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEvent {
    pub by: AuditUser,
    pub operation: AuditedOperation,
    pub path: Option<Box<str>>,
    /// The kind of znode that a create asks for: `ephemeral_sequential`.
    pub znode_type: Option<&'static str>,
    /// The list that a setACL asks for, as text.
    pub acl: Option<Box<str>>,
    pub result: AuditResult,
}

/// The user of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum AuditUser {
    /// The server's own: its start and its stop.
    Server,
    /// The server's own, for a session that has ended.
    ServerFor(SessionId),
    /// A client's, with the identities that it had when it sent the request.
    Client { session: SessionId, ip: IpAddr, identities: Arc<[Identity]> },
}

/// What was done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AuditedOperation {
    ServerStart,
    ServerStop,
    Create,
    Delete,
    SetData,
    SetAcl,
    Multi,
    Reconfig,
    /// The end of a session has deleted its ephemeral znode.
    DeleteEphemeral,
}

impl AuditedOperation {
    /// Its name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ServerStart => "serverStart",
            Self::ServerStop => "serverStop",
            Self::Create => "create",
            Self::Delete => "delete",
            Self::SetData => "setData",
            Self::SetAcl => "setAcl",
            Self::Multi => "multiOperation",
            Self::Reconfig => "reconfig",
            Self::DeleteEphemeral => "ephemeralZNodeDeletionOnSessionCloseOrExpire",
        }
    }
}

/// How an operation ended, or that it has begun.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AuditResult {
    Success,
    Failure,
    /// The operation has begun; its end is not logged.
    Invoked,
}

impl AuditResult {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Invoked => "invoked",
        }
    }
}

impl AuditEvent {
    /// An event of the server's own life.
    pub const fn of_server(operation: AuditedOperation, result: AuditResult) -> Self {
        let (path, znode_type, acl) = (None, None, None);
        Self { by: AuditUser::Server, operation, path, znode_type, acl, result }
    }

    /// The end of `session` has deleted the ephemeral znode at `path`.
    pub fn ephemeral_deleted(session: SessionId, path: &str) -> Self {
        Self {
            by: AuditUser::ServerFor(session),
            path: Some(path.into()),
            ..Self::of_server(AuditedOperation::DeleteEphemeral, AuditResult::Success)
        }
    }

    /// Bytes that it takes in memory. Identities that several events share count for each.
    pub fn bytes(&self) -> u64 {
        let text = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
        let identities_len = match &self.by {
            AuditUser::Client { identities, .. } => identities.iter().map(Identity::text_len).sum(),
            AuditUser::Server | AuditUser::ServerFor(_) => 0,
        };
        (size_of::<Self>() + text(&self.path) + text(&self.acl) + identities_len) as u64
    }
}
