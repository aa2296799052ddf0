//! Steps of SASL exchanges that may block, such as Kerberos': they run on threads that may.

use crate::request::SaslStep;
use std::task::Waker;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Steps under way at the same time. The others wait, within their time.
const STEPS_MAX: usize = 16;
/// How long a client waits for a step.
const STEP_TIME_MAX: Duration = Duration::from_secs(10);

/// Held by the thread that runs a step, also after its client was refused for the time it took.
static STEPS: Semaphore = Semaphore::const_new(STEPS_MAX);

/// Runs a step on a thread that may block, and wakes its connection.
pub(super) fn start(step: SaslStep, connection: Waker) {
    let place = step.place();
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
        if tokio::time::timeout(STEP_TIME_MAX, run).await.is_err() {
            place.give_up("the step took more than 10 s; see whether the KDC and DNS answer");
        }
        connection.wake();
    });
}
