//! Creates a run's znodes before it and removes them after it, over a connection of its own.

use super::security::{BenchStream, Security, Server};
use super::znodes::{KEYS_PER_FOLDER, Znodes, put_body};
use crate::client::{ClientError, ConnectRequest, Incoming, Wire, put_request};
use crate::model::{Code, op};
use jute::{DecodeError, Reader};
use std::time::Duration;

/// Limit on the requests that are sent before the first of their answers is read; a folder may come on top.
const BATCH: usize = 256;
/// The same of the bytes of their values; one value may come on top.
const BATCH_BYTES: usize = 4 << 20;
/// Longest wait for one answer: a server may be busy with the last requests of the run.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why znodes could not be created or removed.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("undecodable answer")]
    Decode(#[from] DecodeError),
    #[error("the server refused a session")]
    Refused,
    #[error("{what} {path}: error {code}")]
    Code { what: &'static str, path: String, code: Code },
}

/// A session that creates and removes znodes.
pub struct ZnodeSetup {
    wire: Wire<BenchStream>,
    last_xid: i32,
}

impl ZnodeSetup {
    /// Connects, and opens a session.
    ///
    /// # Errors
    /// [`PrepareError`] when there is no server, or it gives no session.
    pub fn open(
        security: &Security,
        server: &Server,
        timeout_ms: i32,
        patience: Duration,
    ) -> Result<Self, PrepareError> {
        let request = ConnectRequest {
            timeout_ms,
            password: vec![0; 16],
            read_only: Some(false),
            ..ConnectRequest::default()
        };
        let (wire, response) = security.connect(server, &request, patience)?;
        if response.session_id == 0 {
            return Err(PrepareError::Refused);
        }
        Ok(Self { wire, last_xid: 0 })
    }

    /// Creates the root, the keys with their folders, and one folder for each connection.
    ///
    /// # Errors
    /// [`PrepareError`] at the first refusal; znodes that were created until then stay.
    pub fn make(
        &mut self,
        znodes: &Znodes,
        connections: u32,
        value: &[u8],
    ) -> Result<(), PrepareError> {
        self.all(op::CREATE, "create", vec![(znodes.root.clone(), &[][..])])?;
        let mut batch = Vec::with_capacity(BATCH);
        let mut path = String::new();
        for connection in 0..connections {
            znodes.own_folder(&mut path, connection);
            batch.push((path.clone(), &[][..]));
            if batch.len() == BATCH {
                self.all(op::CREATE, "create", std::mem::take(&mut batch))?;
            }
        }
        for key in 0..znodes.keys {
            if key.is_multiple_of(KEYS_PER_FOLDER) {
                znodes.folder(&mut path, key);
                batch.push((path.clone(), &[][..]));
            }
            znodes.key(&mut path, key);
            batch.push((path.clone(), value));
            if batch.len() >= BATCH || batch.len() * value.len() >= BATCH_BYTES {
                self.all(op::CREATE, "create", std::mem::take(&mut batch))?;
            }
        }
        self.all(op::CREATE, "create", batch)
    }

    /// Removes the root and all below it; returns how many znodes that were.
    ///
    /// # Errors
    /// [`PrepareError`] at the first refusal other than NoNode.
    pub fn remove(&mut self, root: &str) -> Result<u64, PrepareError> {
        let mut removed = 0;
        for folder in self.children(root)? {
            let children = self.children(&folder)?;
            // Znodes that connections created are one level deeper.
            for child in children.iter().filter(|_| Znodes::is_own_folder(root, &folder)) {
                let below = self.children(child)?;
                removed += below.len() as u64;
                self.delete(below)?;
            }
            removed += children.len() as u64 + 1;
            self.delete(children)?;
            self.delete(vec![folder])?;
        }
        self.delete(vec![root.to_owned()])?;
        Ok(removed + 1)
    }

    /// Ends the session. The server may be down already.
    pub fn close(mut self) {
        let mut bytes = Vec::new();
        put_request(&mut bytes, self.last_xid.wrapping_add(1), op::CLOSE_SESSION, |_| ());
        if self.wire.send(&bytes).is_ok() {
            let _gone = self.wire.receive(Duration::from_secs(5));
        }
    }

    fn delete(&mut self, paths: Vec<String>) -> Result<(), PrepareError> {
        let mut paths = paths.into_iter().peekable();
        while paths.peek().is_some() {
            let batch = paths.by_ref().take(BATCH).map(|path| (path, &[][..])).collect();
            self.all(op::DELETE, "delete", batch)?;
        }
        Ok(())
    }

    /// Paths of the children; none if there is no such znode.
    fn children(&mut self, path: &str) -> Result<Vec<String>, PrepareError> {
        self.send(op::GET_CHILDREN, &[(path.to_owned(), &[])])?;
        let frame = self.wire.receive(PATIENCE)?;
        let Incoming::Reply { header, body } = Incoming::parse(&frame)? else {
            return Ok(Vec::new());
        };
        match Code(header.err) {
            Code::OK => {}
            Code::NO_NODE => return Ok(Vec::new()),
            code => return Err(PrepareError::Code { what: "list", path: path.to_owned(), code }),
        }
        let names: jute::Vector<'_, jute::Ustring<'_>> = Reader::new(body).read()?;
        Ok(names.iter().flatten().map(|name| format!("{path}/{name}")).collect())
    }

    /// Sends one kind of request for each path; a delete may find no znode.
    fn all(
        &mut self,
        kind: i32,
        what: &'static str,
        batch: Vec<(String, &[u8])>,
    ) -> Result<(), PrepareError> {
        self.send(kind, &batch)?;
        let mut refused = None;
        for (path, _) in batch {
            let frame = self.wire.receive(PATIENCE)?;
            let Incoming::Reply { header, .. } = Incoming::parse(&frame)? else { continue };
            let code = Code(header.err);
            if !(code.is_ok() || kind == op::DELETE && code == Code::NO_NODE) {
                refused.get_or_insert(PrepareError::Code { what, path, code });
            }
        }
        refused.map_or(Ok(()), Err)
    }

    fn send(&mut self, kind: i32, batch: &[(String, &[u8])]) -> Result<(), PrepareError> {
        let mut bytes = Vec::new();
        for (path, value) in batch {
            self.last_xid = self.last_xid.checked_add(1).unwrap_or(1);
            put_request(&mut bytes, self.last_xid, kind, |to| put_body(to, kind, path, value));
        }
        Ok(self.wire.send(&bytes)?)
    }
}
