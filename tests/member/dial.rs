//! When each address of another server is tried, and when it is given up.

use oxkeeper::member::dial::{AttemptError, Dial, DialError, DialStep, DialTimeouts};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

fn refused() -> AttemptError {
    AttemptError::Refused("Connection refused".to_owned())
}

fn dial(addresses: &[&str], patience: DialTimeouts) -> Dial {
    Dial::new(addresses.iter().map(|&name| name.to_owned()).collect(), patience, 1000)
}

/// Times of the attempts at the one address, each of which fails `after_ms` with `error`; and the end.
fn attempts(patience: DialTimeouts, after_ms: u64, error: AttemptError) -> (Vec<u64>, u64, String) {
    let (mut dial, mut now_ms, mut times) = (dial(&["a:1"], patience), 1000, Vec::new());
    loop {
        match dial.next(now_ms) {
            DialStep::Attempt { address: 0, until_ms } => {
                times.push(now_ms - 1000);
                now_ms = until_ms.min(now_ms + after_ms);
                dial.attempt_failed(0, error.clone(), now_ms);
            }
            DialStep::Wait { until_ms: Some(until_ms) } => now_ms = until_ms,
            DialStep::GiveUp(error) => return (times, now_ms - 1000, error.to_string()),
            step => panic!("{step:?}"),
        }
    }
}

// rows: Q-60 C-180
#[test]
fn server_that_refuses_is_dialed_with_growing_pauses_until_its_time_is_over() {
    let patience =
        DialTimeouts { silence: LONG, refusals: Duration::from_millis(400), others: None };
    let (times, ended_ms, error) = attempts(patience, 0, refused());
    assert_eq!(times, [0, 10, 30, 70, 150, 250, 350]);
    assert_eq!((ended_ms, error.as_str()), (350, "a:1: Connection refused"));
}

// rows: Q-60
#[test]
fn leader_that_refuses_and_is_needed_is_dialed_as_long_as_a_silent_one() {
    let refusals = Duration::from_millis(400);
    let patience = DialTimeouts { silence: Duration::from_millis(900), refusals, others: None };
    let (times, ended_ms, _) = attempts(patience.of_leader(true), 0, refused());
    assert_eq!((times.last(), ended_ms), (Some(&850), 850));
    let (_, ended_ms, _) = attempts(patience.of_leader(false), 0, refused());
    assert_eq!(ended_ms, 350, "another one can be elected");
}

// rows: Q-60 C-26
#[test]
fn silent_server_is_dialed_until_its_time_is_over() {
    let patience =
        DialTimeouts { silence: Duration::from_millis(150), refusals: LONG, others: None };
    let (times, ended_ms, error) = attempts(patience, 60_000, AttemptError::Silent);
    assert_eq!((times, ended_ms), (vec![0], 150), "an attempt lasts no longer than patience");
    assert_eq!(error, "a:1: no answer");
    let patience = DialTimeouts { silence: Duration::from_secs(11), ..patience };
    let (times, ended_ms, _) = attempts(patience, 60_000, AttemptError::Silent);
    assert_eq!((times, ended_ms), (vec![0, 5010, 10_030], 15_030));
    // Another error counts like silence.
    let unreachable = AttemptError::Other("No route to host".to_owned());
    let patience = DialTimeouts { silence: Duration::from_millis(40), ..patience };
    let (times, _, error) = attempts(patience, 0, unreachable);
    assert_eq!((times, error.as_str()), (vec![0, 10, 30], "a:1: No route to host"));
}

fn begin(dial: &mut Dial, addresses: usize) {
    for number in 0..addresses {
        let DialStep::Attempt { address, .. } = dial.next(1000) else { panic!("{number}") };
        assert_eq!(address, number, "all at once");
    }
}

// rows: Q-30 C-60 C-61
#[test]
fn other_addresses_are_given_up_some_time_after_one_has_refused() {
    let others = Some(Duration::from_millis(20));
    let patience = DialTimeouts { silence: LONG, refusals: Duration::ZERO, others };
    let mut dial = dial(&["a:1", "b:2", "c:3"], patience);
    begin(&mut dial, 3);
    assert_eq!(dial.next(1005), DialStep::Wait { until_ms: None });
    dial.attempt_failed(1, refused(), 1005);
    assert_eq!(dial.next(1005), DialStep::Wait { until_ms: Some(1025) });
    // A second refusal gives no more time.
    dial.attempt_failed(2, refused(), 1015);
    assert_eq!(dial.next(1024), DialStep::Wait { until_ms: Some(1025) });
    let DialStep::GiveUp(error) = dial.next(1025) else { panic!("the grace is over") };
    assert_eq!(error.to_string(), "c:3: Connection refused");
}

// rows: Q-30 C-60 C-61
#[test]
fn every_address_is_waited_for_if_no_time_for_others_is_set() {
    let patience = DialTimeouts { silence: LONG, refusals: Duration::ZERO, others: None };
    let mut both = dial(&["a:1", "b:2"], patience);
    begin(&mut both, 2);
    both.attempt_failed(1, refused(), 1005);
    assert_eq!(both.next(4000), DialStep::Wait { until_ms: None }, "it is still being dialed");
    both.attempt_failed(0, refused(), 4000);
    assert!(matches!(both.next(4000), DialStep::GiveUp(DialError::Failed { .. })));
    let nowhere = dial(&[], patience).next(1000);
    assert_eq!(nowhere, DialStep::GiveUp(DialError::NoAddress));
}

#[test]
fn dial_once_tries_each_address_once() {
    let names = vec!["a:1".to_owned(), "b:2".to_owned()];
    let mut dial = Dial::once(names, Duration::from_secs(7), None, 1000);
    assert_eq!(dial.next(1000), DialStep::Attempt { address: 0, until_ms: 8000 });
    dial.attempt_failed(0, refused(), 1001);
    assert_eq!(dial.next(1001), DialStep::Attempt { address: 1, until_ms: 8001 });
    dial.attempt_failed(1, AttemptError::Silent, 8001);
    let DialStep::GiveUp(error) = dial.next(8001) else { panic!("all have failed") };
    assert_eq!(error.to_string(), "b:2: no answer");
}
