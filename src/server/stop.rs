//! Stops the server on a signal.

use super::error::ServerError;
use super::inbox::Inbox;
use super::service_manager::ServiceManager;
use crate::member::Input;
use crate::request::Shared;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long clients have to read their last replies.
const LAST_REPLIES_MAX: Duration = Duration::from_secs(2);

/// On TERM or INT no further connection is accepted, and the driver ends once it has finished the requests it has.
pub fn on_signal(
    inbox: Arc<Inbox>,
    stop: CancellationToken,
    manager: ServiceManager,
) -> Result<JoinHandle<()>, ServerError> {
    let fail = |source| ServerError::System { what: "listen for signals", source };
    let mut term = signal(SignalKind::terminate()).map_err(fail)?;
    let mut int = signal(SignalKind::interrupt()).map_err(fail)?;
    let mut quit = signal(SignalKind::quit()).map_err(fail)?;
    // A JVM prints its threads on QUIT and goes on, so scripts send QUIT to servers that are meant to live.
    tokio::spawn(async move {
        while quit.recv().await.is_some() {
            tracing::info!(
                "QUIT: ignored, there are no Java threads; srvr, mntr and cons show the state"
            );
        }
    });
    Ok(tokio::spawn(async move {
        let name = tokio::select! {
            _ = term.recv() => "TERM",
            _ = int.recv() => "INT",
        };
        tracing::info!(
            signal = %name,
            "stopping: requests under way are finished, sessions are kept for the next start"
        );
        manager.stopping();
        stop.cancel();
        inbox.put_input(Input::Stop);
    }))
}

/// Sends every client the replies that wait for it, and closes its connection.
pub async fn close_connections(shared: &Shared, tasks: &TaskTracker) {
    tasks.close();
    let mut wakers = Vec::new();
    let conns = shared.conns.all();
    conns.iter().for_each(|conn| conn.close_after_sending(&mut wakers));
    wakers.into_iter().for_each(std::task::Waker::wake);
    if tokio::time::timeout(LAST_REPLIES_MAX, tasks.wait()).await.is_err() {
        let connections = tasks.len();
        tracing::warn!(
            connections,
            "clients did not read their final replies before shutdown; nothing to do, they reconnect"
        );
    }
    tracing::info!(connections = conns.len(), "stopped: everything acknowledged is on disk");
}
