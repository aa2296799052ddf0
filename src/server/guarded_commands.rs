//! Performs AdminServer's `snapshot` and `restore`.

use super::inbox::Event;
use super::operator_requests::OperatorRequest;
use super::report::FourLetterWords;
use super::restore_body::{Checked, Rules, Upload, check, draft};
use crate::admin::http::{self, Answer, Call, Credentials, Task};
use crate::config::AdminServer;
use crate::member::configured::SnapshotStyle;
use crate::model::{Zxid, chain};
use crate::net::{HttpAnswer, HttpBody, HttpRequest};
use crate::replica::RestoreRefusal;
use crate::store::{SnapshotError, names};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// A file is sent in pieces of this many bytes.
const PIECE: usize = 64 << 10;
/// How long an answer waits for the election after a restore.
const OUTCOME: Duration = Duration::from_secs(120);

impl FourLetterWords {
    pub(super) async fn answer_guarded(
        &self,
        call: &Call,
        asked: &HttpRequest,
        body: HttpBody,
    ) -> HttpAnswer {
        let task = match &self.config.admin {
            Some(admin) => self.task(call, asked, admin),
            None => Err(http::failed(call, 503)),
        };
        match task {
            Err(answer) => self.sent(answer, None).await,
            Ok(Task::Snapshot { streams }) => self.take_snapshot(call, streams).await,
            Ok(Task::Restore) => self.restore(call, body).await,
        }
    }

    /// What the request asks for, if its sender may.
    fn task(&self, call: &Call, asked: &HttpRequest, admin: &AdminServer) -> Result<Task, Answer> {
        let credentials = Credentials {
            authorization: asked.authorization.as_deref(),
            forwarded_for: asked.forwarded_for.as_deref(),
            peer: asked.peer.ip(),
            subject: asked.subject.as_deref(),
        };
        http::authorize(
            call,
            credentials,
            admin,
            &self.shared.limits.schemes,
            |wanted, identities| {
                let tree = self.shared.state.tree.read();
                let root = tree.find("").map(|root| tree.acl(tree.znode(root).acl()));
                root.is_some_and(|acl| self.shared.permits(acl, wanted, identities))
            },
        )?;
        let now_ms = self.clock.now_ms();
        let mut limiters = self.limiters.lock().expect("a panic aborts");
        http::task(call, &self.config, admin, &self.metrics, &mut limiters, now_ms)
    }

    async fn take_snapshot(&self, call: &Call, streams: bool) -> HttpAnswer {
        let (to, from) = oneshot::channel();
        self.inbox.put(Event::OperatorRequest(OperatorRequest::Snapshot(to)));
        let taken = from.await.ok().flatten();
        let opened = taken.map(|(zxid, bytes)| Ok((zxid, bytes, self.open_snapshot(zxid)?)));
        let why = match opened {
            Some(Ok((zxid, bytes, file))) => {
                let answer = http::snapshot_taken(call, zxid, bytes, streams);
                let answer = self.sent(answer, None).await;
                return if streams { with_file(answer, file, bytes) } else { answer };
            }
            Some(Err(error)) => io::Error::to_string(&error),
            None => {
                "it was given up, because this server's role or its tree has changed".to_owned()
            }
        };
        self.metrics.snapshot_error_count.increment();
        tracing::warn!(
            target: crate::model::STRANGERS,
            error = %why,
            "AdminServer took no snapshot; ask again"
        );
        self.sent(http::failed(call, 500), None).await
    }

    fn open_snapshot(&self, zxid: Zxid) -> io::Result<File> {
        let packing = SnapshotStyle::of(&self.config).packing;
        File::open(self.snapshot_folder().join(names::snapshot_name(zxid, packing)))
    }
}

/// Why a restore has failed, and the status of the answer.
struct Failure {
    status: u16,
    why: String,
}

impl Failure {
    fn of(status: u16, error: &dyn std::error::Error) -> Self {
        Self { status, why: chain(error) }
    }

    fn of_file(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull => Self {
                status: 507,
                why:
                    "the disk of dataDir has no room for the snapshot and for what the server needs"
                        .to_owned(),
            },
            _ => Self::of(500, error),
        }
    }

    fn refused(refusal: RestoreRefusal) -> Self {
        let status = match refusal {
            RestoreRefusal::NotLeading
            | RestoreRefusal::Served
            | RestoreRefusal::Reconfiguring
            | RestoreRefusal::Busy
            | RestoreRefusal::OutOfZxids => 409,
            RestoreRefusal::Foreign | RestoreRefusal::Changed | RestoreRefusal::Lost => 500,
        };
        Self::of(status, &refusal)
    }

    /// The server or one of its threads has ended.
    fn ended() -> Self {
        Self { status: 500, why: "the server is stopping".to_owned() }
    }
}

impl FourLetterWords {
    async fn restore(&self, call: &Call, body: HttpBody) -> HttpAnswer {
        let began = Instant::now();
        let answer = match self.try_restore(call, body).await {
            Ok(zxid) => {
                self.metrics.restore_time.record(began.elapsed().as_millis() as i64);
                http::restored(call, zxid.to_wire())
            }
            Err(Failure { status, why }) => {
                self.metrics.restore_error_count.increment();
                tracing::warn!(
                    target: crate::model::STRANGERS,
                    error = %why,
                    "AdminServer did not restore a snapshot; mend what the error says, and ask again"
                );
                http::failed_because(call, status, &why)
            }
        };
        self.sent(answer, None).await
    }

    /// Receives, checks, writes and restores a body. The zxid is the snapshot's.
    async fn try_restore(&self, call: &Call, body: HttpBody) -> Result<Zxid, Failure> {
        let Ok(_alone) = self.restores.clone().try_acquire_owned() else {
            return Err(Failure::refused(RestoreRefusal::Busy));
        };
        let rules = Rules {
            options: self.shared.state.tree.read().options(),
            frame_max: self.config.jute_max_buffer_bytes as usize,
            is_member: self.config.ensemble.is_some(),
            takes_fuzzy: call.parameters.get("fuzzy").is_some_and(|value| value == "true"),
        };
        let upload = self.receive(body).await?;
        let checked = spawn_blocking(move || check(&upload, rules)).await;
        let checked = checked.map_err(|_| Failure::ended())?;
        let Checked { mut tree, zxid, question } =
            checked.map_err(|error| Failure::of(500, &error))?;
        let plan = self.asked(|to| OperatorRequest::Plan { question, to }).await?;
        let plan = match plan {
            Err(RestoreRefusal::Served) => return Ok(zxid),
            plan => plan.map_err(Failure::refused)?,
        };
        let (dir, style) = (self.snapshot_folder(), SnapshotStyle::of(&self.config));
        let planned = plan.clone();
        let written = spawn_blocking(move || {
            let draft = draft(&dir, &mut tree, &planned, style)?;
            Ok::<_, SnapshotError>((tree, draft))
        });
        let written = written.await.map_err(|_| Failure::ended())?;
        let (tree, draft) = written.map_err(|error| Failure::of(500, &error))?;
        let ended = self.asked(|to| OperatorRequest::Restore { plan, tree, draft, to });
        match timeout(OUTCOME, ended).await {
            Ok(ended) => ended?.map_err(Failure::refused)?,
            Err(_) => {
                let why = "the snapshot is durable on this server, but no server has led since; \
                           which data counts is decided by the next election";
                return Err(Failure { status: 500, why: why.to_owned() });
            }
        }
        tracing::info!(%zxid, "AdminServer restored a snapshot: clients are connected anew");
        Ok(zxid)
    }

    async fn receive(&self, mut body: HttpBody) -> Result<Upload, Failure> {
        let upload = Upload::create(&self.snapshot_folder());
        let mut upload = upload.map_err(|error| Failure::of_file(&error))?;
        while let Some(bytes) = body.next().await {
            let bytes = bytes.map_err(|error| Failure::of(400, &error))?;
            upload.write(&bytes).map_err(|error| Failure::of_file(&error))?;
        }
        Ok(upload)
    }

    /// Asks the driver.
    async fn asked<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> OperatorRequest,
    ) -> Result<T, Failure> {
        let (to, from) = oneshot::channel();
        self.inbox.put(Event::OperatorRequest(request(to)));
        from.await.map_err(|_| Failure::ended())
    }

    pub(super) fn snapshot_folder(&self) -> PathBuf {
        self.config.data_dir.join("version-2")
    }
}

/// The answer with a file as its body.
fn with_file(answer: HttpAnswer, file: File, bytes: u64) -> HttpAnswer {
    let pieces = FilePieces { file, left: bytes };
    HttpAnswer { length: Some(bytes), body: Box::new(pieces), ..answer }
}

/// A file that is read while it is sent. If it ends early, so does the connection.
struct FilePieces {
    file: File,
    left: u64,
}

impl Iterator for FilePieces {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut piece = vec![0; PIECE.min(usize::try_from(self.left).unwrap_or(PIECE))];
        match self.file.read(&mut piece) {
            Ok(0) => None,
            Ok(read) => {
                piece.truncate(read);
                self.left -= read as u64;
                Some(piece)
            }
            Err(error) => {
                tracing::warn!(
                    target: crate::model::STRANGERS,
                    %error,
                    "AdminServer can't read the snapshot that it sends; check the disk"
                );
                None
            }
        }
    }
}
