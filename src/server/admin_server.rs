//! AdminServer's port, and the thread that serves it.

use super::error::ServerError;
use super::report::FourLetterWords;
use crate::config::{AdminServer, Config};
use crate::member::ListenAddress;
use crate::model::chain;
use crate::net::{HttpAnswer, HttpAnswers, HttpTls, ListenError, bind, serve_http};
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Pause between tries of a member whose port is in use.
const RETRY: Duration = Duration::from_secs(10);
/// Added to the thread's nice value: clients come before operators.
const NICE: i32 = 5;

/// The port, bound unless it is in use.
pub struct AdminPort {
    listener: Option<StdListener>,
    place: ListenAddress,
    backlog: i32,
    idle_max: Duration,
    tls: Option<Arc<HttpTls>>,
}

impl AdminPort {
    /// `None`: there is no AdminServer.
    ///
    /// # Errors
    /// If a standalone server can't bind the port. A member goes on without it, and tries again.
    pub fn open(config: &Config, tls: Option<Arc<HttpTls>>) -> Result<Option<Self>, ServerError> {
        let Some(AdminServer { host, port, idle_timeout_ms, .. }) = &config.admin else {
            return Ok(None);
        };
        let place = ListenAddress { host: host.clone(), port: *port };
        let backlog = config.client_port_listen_backlog;
        let listener = match bind(&place, backlog) {
            Ok((listener, address)) => {
                log_address(address);
                Some(listener)
            }
            Err(error) if config.ensemble.is_none() => return Err(ServerError::ListenAdmin(error)),
            Err(error) => {
                warn(&error);
                None
            }
        };
        let idle_max = Duration::from_millis((*idle_timeout_ms).into());
        Ok(Some(Self { listener, place, backlog, idle_max, tls }))
    }

    /// Serves on a thread of its own, until the server stops.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(self, words: Arc<FourLetterWords>, end: &HttpEnd) -> Result<(), ServerError> {
        let stop = end.stop.clone();
        let answers: Arc<HttpAnswers> =
            Arc::new(move |asked, body| -> Pin<Box<dyn Future<Output = HttpAnswer> + Send>> {
                let words = words.clone();
                Box::pin(async move { words.answer_http(asked, body).await })
            });
        start_thread("admin", end, async move { self.serve(answers, stop).await })
    }

    async fn serve(mut self, answers: Arc<HttpAnswers>, stop: CancellationToken) {
        if let Some(listener) = stop.run_until_cancelled(self.listening()).await {
            serve_http(listener, self.idle_max, self.tls, answers, stop).await;
        }
    }

    /// The listening port. A member whose port is in use waits for it.
    async fn listening(&mut self) -> TcpListener {
        let mut bound = self.listener.take();
        loop {
            match bound.take().map(TcpListener::from_std) {
                Some(Ok(listener)) => return listener,
                Some(Err(error)) => tracing::warn!(
                    %error,
                    "AdminServer can't listen, next try in 10 s; raise ulimit -n"
                ),
                None => {}
            }
            tokio::time::sleep(RETRY).await;
            match bind(&self.place, self.backlog) {
                Ok((listener, address)) => {
                    log_address(address);
                    bound = Some(listener);
                }
                Err(error) => warn(&error),
            }
        }
    }
}

fn log_address(address: SocketAddr) {
    tracing::info!(%address, "AdminServer listens");
}

fn warn(error: &ListenError) {
    tracing::warn!(
        "AdminServer {}, next try in 10 s; choose another port by admin.serverPort, or turn it off by \
         admin.enableServer=false",
        chain(error)
    );
}

/// How threads for HTTP end.
#[derive(Clone)]
pub struct HttpEnd {
    /// No request is answered any more; answers that have begun are sent.
    pub stop: CancellationToken,
    /// The server waits for these before it ends.
    pub tasks: TaskTracker,
}

/// Runs `work` on a thread with a runtime of its own. `work` ends soon after the server stops.
///
/// # Errors
/// If no thread can be started.
pub fn start_thread(
    name: &str,
    end: &HttpEnd,
    work: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServerError> {
    let failed = |source: io::Error| ServerError::Thread { what: "a thread for HTTP", source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    let running = end.tasks.token();
    let run = move || {
        // Lowers the priority of this thread alone. Where the system refuses, the thread keeps the priority of the others.
        let thread = rustix::thread::gettid();
        let nice = rustix::process::getpriority_process(Some(thread)).unwrap_or(0) + NICE;
        let _refused = rustix::process::setpriority_process(Some(thread), nice);
        runtime.block_on(work);
        drop(running);
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(failed)?;
    Ok(())
}
