//! The end of a server that was asked to stop.

use super::error::ServerError;
use super::inbox::Inbox;
use crate::member::Input;
use crate::request::Shared;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Clients have this long to take the answers that wait for them.
const FAREWELL: Duration = Duration::from_secs(2);

/// At TERM or INT: nobody new is let in, and the driver ends once it has finished what it was asked.
pub fn on_signal(
    inbox: Arc<Inbox>,
    stop: CancellationToken,
) -> Result<JoinHandle<()>, ServerError> {
    let fail = |source| ServerError::System { what: "listen for signals", source };
    let mut term = signal(SignalKind::terminate()).map_err(fail)?;
    let mut int = signal(SignalKind::interrupt()).map_err(fail)?;
    let mut quit = signal(SignalKind::quit()).map_err(fail)?;
    // A JVM prints its threads and goes on, so scripts send this to servers that are to live.
    tokio::spawn(async move {
        while quit.recv().await.is_some() {
            tracing::info!(
                "QUIT: there are no Java threads to show; srvr, mntr and cons tell how things stand"
            );
        }
    });
    Ok(tokio::spawn(async move {
        let name = tokio::select! {
            _ = term.recv() => "TERM",
            _ = int.recv() => "INT",
        };
        tracing::info!(
            signal = name,
            "stopping: what is under way is finished, sessions stay for the next start"
        );
        stop.cancel();
        inbox.put_input(Input::Stop);
    }))
}

/// Sends every connection what waits for it, and closes it.
pub async fn say_goodbye(shared: &Shared, tasks: &TaskTracker) {
    tasks.close();
    let mut wakers = Vec::new();
    let conns = shared.conns.all();
    conns.iter().for_each(|conn| conn.close_behind(&mut wakers));
    wakers.into_iter().for_each(std::task::Waker::wake);
    if tokio::time::timeout(FAREWELL, tasks.wait()).await.is_err() {
        tracing::warn!(connections = tasks.len(), "these did not take their last answers in time");
    }
    tracing::info!(connections = conns.len(), "stopped: everything acknowledged is on disk");
}
