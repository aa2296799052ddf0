//! Steps of SASL exchanges that may block, such as Kerberos': they run on threads that may.

use crate::request::SaslStep;
use std::task::Waker;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Steps under way at the same time. The others wait, within their time.
const STEPS_MAX: usize = 16;

/// Held by the thread that runs a step, also after its client was refused for the time it took.
static STEPS: Semaphore = Semaphore::const_new(STEPS_MAX);

/// Runs a step on a thread that may block. Its connection is woken after that, and at the latest when it gives the step up.
///
/// * `epoch`: zero of the monotonic clock.
pub(super) fn start(step: SaslStep, epoch: Instant, connection: Waker) {
    let until = epoch + Duration::from_micros(step.until_us);
    tokio::spawn(async move {
        let run = async {
            let permit = STEPS.acquire().await;
            let run = move || {
                step.run();
                drop(permit);
            };
            // A panic aborts the process, so that the step has ended.
            let _ran = tokio::task::spawn_blocking(run).await;
        };
        let _ended = tokio::time::timeout_at(until.into(), run).await;
        connection.wake();
    });
}
