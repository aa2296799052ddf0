//! Dialing another server: which of its addresses is tried when, and when it is given up.

use std::time::Duration;

/// Longest wait for the answer to one attempt.
const ATTEMPT_MAX: Duration = Duration::from_secs(5);
/// The first and the longest pause between attempts: a leader may not listen yet when its learners dial it.
const PAUSE_MIN_MS: u64 = 10;
const PAUSE_MAX_MS: u64 = 100;

/// Where another server listens: a name or IP address, without brackets, and a port.
pub type HostPort = (String, u16);

/// How long to try to connect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DialTimeouts {
    /// How long a server is dialed that does not answer.
    pub silence: Duration,
    /// How long a server is dialed that refuses: it may not listen yet, or may be gone.
    pub refusals: Duration,
    /// How long the other addresses are tried after one address was given up because it refused: a
    /// server listens at all of its addresses or at none. `None`: as long as `silence`.
    pub others: Option<Duration>,
}

impl DialTimeouts {
    /// For a leader.
    ///
    /// * `is_needed`: no other server can be elected, so the leader is dialed while its port refuses: Java's opens it after its
    ///   election, more than half a second later on a busy machine, and then waits for this server until initLimit ends.
    pub fn of_leader(self, is_needed: bool) -> Self {
        if is_needed { Self { refusals: self.silence, ..self } } else { self }
    }
}

/// Why an attempt failed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum AttemptError {
    #[error("{0}")]
    Refused(String),
    #[error("no answer")]
    Silent,
    #[error("{0}")]
    Other(String),
}

/// Why a server was given up.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DialError {
    #[error("no address is known")]
    NoAddress,
    /// The last attempt that counts.
    #[error("{address}: {error}")]
    Failed { address: String, error: AttemptError },
}

/// What to do next.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DialStep {
    /// Connect to the address of this number, which has to answer before `until_ms`. The first attempt that succeeds ends
    /// the dial.
    Attempt {
        address: usize,
        until_ms: u64,
    },
    /// Nothing before `until_ms`, or before an attempt has failed. `None`: an attempt is under way.
    Wait {
        until_ms: Option<u64>,
    },
    GiveUp(DialError),
}

#[derive(Clone, Copy)]
enum DialStage {
    Pauses { until_ms: u64 },
    Attempts,
    Ended,
}

struct DialedAddress {
    name: String,
    stage: DialStage,
    pause_ms: u64,
}

/// One dial of a server, over all of its addresses at once.
///
/// Source: `MultipleAddresses.getReachableAddress`, `Learner.connectToLeader`, ZooKeeper 3.9.5, which test by ICMP, or at
/// port 7, which addresses can be reached, and then dial those.
pub struct Dial {
    addresses: Vec<DialedAddress>,
    silence_ms: u64,
    refusals_ms: u64,
    others_ms: Option<u64>,
    attempt_ms: u64,
    is_once: bool,
    began_ms: u64,
    /// The error of the last address that was given up.
    failed: DialError,
    /// When the other addresses are given up.
    others_until_ms: Option<u64>,
}

const fn ms(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

impl Dial {
    /// Tries each address again until the timeouts of `patience` have passed.
    ///
    /// * `addresses`: as errors name them.
    pub fn new(addresses: Vec<String>, patience: DialTimeouts, now_ms: u64) -> Self {
        let stage = DialStage::Pauses { until_ms: now_ms };
        let addresses = addresses.into_iter();
        Self {
            addresses: addresses
                .map(|name| DialedAddress { name, stage, pause_ms: PAUSE_MIN_MS })
                .collect(),
            silence_ms: ms(patience.silence),
            refusals_ms: ms(patience.refusals),
            others_ms: patience.others.map(ms),
            attempt_ms: ms(ATTEMPT_MAX.min(patience.silence)),
            is_once: false,
            began_ms: now_ms,
            failed: DialError::NoAddress,
            others_until_ms: None,
        }
    }

    /// Tries each address once.
    pub fn once(
        addresses: Vec<String>,
        within: Duration,
        others: Option<Duration>,
        now_ms: u64,
    ) -> Self {
        let patience = DialTimeouts { silence: within, refusals: within, others };
        Self { is_once: true, attempt_ms: ms(within), ..Self::new(addresses, patience, now_ms) }
    }

    /// The next step. To be called until it is [`DialStep::Wait`] or [`DialStep::GiveUp`].
    pub fn next(&mut self, now_ms: u64) -> DialStep {
        let mut until_ms = self.others_until_ms;
        let mut has_ended = true;
        if until_ms.is_some_and(|until_ms| until_ms <= now_ms) {
            return DialStep::GiveUp(self.failed.clone());
        }
        for (number, address) in self.addresses.iter_mut().enumerate() {
            match address.stage {
                DialStage::Pauses { until_ms: at_ms } if at_ms <= now_ms => {
                    address.stage = DialStage::Attempts;
                    let until_ms = now_ms + self.attempt_ms;
                    return DialStep::Attempt { address: number, until_ms };
                }
                DialStage::Pauses { until_ms: at_ms } => {
                    until_ms = Some(until_ms.map_or(at_ms, |until_ms| until_ms.min(at_ms)));
                    has_ended = false;
                }
                DialStage::Attempts => has_ended = false,
                DialStage::Ended => {}
            }
        }
        if has_ended { DialStep::GiveUp(self.failed.clone()) } else { DialStep::Wait { until_ms } }
    }

    /// An attempt has failed.
    pub fn attempt_failed(&mut self, address: usize, error: AttemptError, now_ms: u64) {
        let Some(dialed) = self.addresses.get_mut(address) else { return };
        let is_refused = matches!(error, AttemptError::Refused(_));
        let limit_ms = if is_refused { self.refusals_ms } else { self.silence_ms };
        let spent_ms = now_ms.saturating_sub(self.began_ms) + dialed.pause_ms;
        if !self.is_once && spent_ms <= limit_ms {
            dialed.stage = DialStage::Pauses { until_ms: now_ms + dialed.pause_ms };
            dialed.pause_ms = (dialed.pause_ms * 2).min(PAUSE_MAX_MS);
            return;
        }
        dialed.stage = DialStage::Ended;
        self.failed = DialError::Failed { address: dialed.name.clone(), error };
        if is_refused && self.others_until_ms.is_none() {
            self.others_until_ms = self.others_ms.map(|others_ms| now_ms + others_ms);
        }
    }
}
