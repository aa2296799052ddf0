//! The ports where Prometheus reads metrics.

use super::admin_server::{AdminPort, HttpEnd, start_thread};
use super::error::ServerError;
use super::report::FourLetterWords;
use super::tls::HttpEngines;
use crate::config::Config;
use crate::member::ListenAddress;
use crate::metrics::{PART_LASTS, Registry};
use crate::net::{HttpAnswer, HttpAnswers, HttpTls, bind, serve_http};
use std::future::Future;
use std::net::TcpListener as StdListener;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Connections in the system's queue, as in Java.
const BACKLOG: i32 = 50;
/// Java's limit on silence.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// The ports that speak HTTP.
pub struct HttpPorts {
    admin: Option<AdminPort>,
    metrics: Option<MetricsPorts>,
}

impl HttpPorts {
    /// # Errors
    /// If a port that the server needs can't be bound.
    pub fn open(config: &Config, tls: &HttpEngines) -> Result<Self, ServerError> {
        let admin = AdminPort::open(config, tls.admin.clone())?;
        Ok(Self { admin, metrics: MetricsPorts::open(config, tls.metrics.clone())? })
    }

    /// Serves them until the server stops.
    ///
    /// # Errors
    /// If there can be no threads.
    pub fn start(
        self,
        words: &Arc<FourLetterWords>,
        metrics: &Arc<Registry>,
        end: &HttpEnd,
    ) -> Result<(), ServerError> {
        if let Some(port) = self.admin {
            port.start(words.clone(), end)?;
        }
        if let Some(port) = self.metrics {
            port.start(words.clone(), metrics.clone(), end)?;
        }
        Ok(())
    }
}

/// The ports, bound.
struct MetricsPorts(Vec<(StdListener, Option<Arc<HttpTls>>)>);

impl MetricsPorts {
    /// `None`: the provider is another one.
    ///
    /// # Errors
    /// If a port can't be bound: a server whose metrics cannot be read must not seem healthy.
    fn open(config: &Config, tls: Option<Arc<HttpTls>>) -> Result<Option<Self>, ServerError> {
        let Some(prometheus) = &config.metrics.prometheus else { return Ok(None) };
        let https = prometheus.https.as_ref().map(|https| (https.port, tls));
        let mut ports = Vec::new();
        let plain = prometheus.port.filter(|_| !prometheus.is_shared()).map(|port| (port, None));
        for (port, tls) in plain.into_iter().chain(https) {
            let place = ListenAddress { host: prometheus.host.clone(), port };
            let (listener, address) = bind(&place, BACKLOG).map_err(ServerError::ListenMetrics)?;
            tracing::info!(%address, tls = tls.is_some(), "serving metrics for Prometheus");
            ports.push((listener, tls));
        }
        Ok(Some(Self(ports)))
    }

    /// Serves on a thread of its own, until the server stops.
    ///
    /// # Errors
    /// If there can be no thread.
    fn start(
        self,
        words: Arc<FourLetterWords>,
        metrics: Arc<Registry>,
        end: &HttpEnd,
    ) -> Result<(), ServerError> {
        // Samples count from now on.
        metrics.turn_windows();
        let answers: Arc<HttpAnswers> =
            Arc::new(move |asked, _body| -> Pin<Box<dyn Future<Output = HttpAnswer> + Send>> {
                let words = words.clone();
                Box::pin(async move { words.answer_scrape(asked).await })
            });
        let stop = end.stop.clone();
        start_thread("metrics", end, async move {
            let mut serving = JoinSet::new();
            for (listener, tls) in self.0 {
                match TcpListener::from_std(listener) {
                    Ok(listener) => {
                        let (answers, stop) = (answers.clone(), stop.clone());
                        serving.spawn(serve_http(listener, IDLE_MAX, tls, answers, stop));
                    }
                    Err(error) => tracing::error!(
                        %error,
                        "metrics for Prometheus can't be served: raise ulimit -n, and start again"
                    ),
                }
            }
            let _stopped: Option<()> = stop.run_until_cancelled(turn_often(metrics)).await;
            serving.join_all().await;
        })
    }
}

async fn turn_often(metrics: Arc<Registry>) {
    loop {
        tokio::time::sleep(PART_LASTS).await;
        metrics.turn_windows();
    }
}
