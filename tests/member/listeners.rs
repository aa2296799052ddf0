//! The addresses where election connections are accepted, and ports that can't be bound or can't accept.

use core::net::SocketAddr;
use oxkeeper::member::dial::HostPort;
use oxkeeper::member::election_listeners::{Change, ListenerId, Listeners};
use oxkeeper::member::listening::{ClientListening, ListenAddress, ListenStep, Listening, Port};

fn at(host: &str, port: u16) -> HostPort {
    (host.to_owned(), port)
}

fn listen(id: u64, host: Option<&str>, port: u16) -> Change {
    let place = ListenAddress { host: host.map(str::to_owned), port };
    Change::Listen { listener: ListenerId(id), place }
}

// rows: C-28 Q-30
#[test]
fn port_at_every_address_is_bound_once() {
    let (mut listeners, mut out) = (Listeners::new(3), Vec::new());
    listeners.set(&[at("b", 1), at("a", 1), at("a", 2)], false, &mut out);
    assert_eq!(out, [listen(1, Some("a"), 1), listen(2, Some("a"), 2), listen(3, Some("b"), 1)]);
    let (mut listeners, mut out) = (Listeners::new(3), Vec::new());
    listeners.set(&[at("b", 1), at("a", 1)], true, &mut out);
    assert_eq!(out, [listen(1, None, 1)]);
}

// rows: Q-29 C-163
#[test]
fn zk_3320_listening_is_tried_for_ever_and_reported_once() {
    let (mut listeners, mut out) = (Listeners::new(2), Vec::new());
    listeners.set(&[at("a", 1)], false, &mut out);
    let (mut now_ms, mut reported) = (0, Vec::new());
    for id in 1..100 {
        assert_eq!(out.pop(), Some(listen(id, Some("a"), 1)));
        reported.extend(listeners.on_failed(ListenerId(id), "in use", now_ms));
        listeners.on_time(now_ms + 999, &mut out);
        assert!(out.is_empty(), "it waits between two attempts");
        now_ms += 1000;
        assert_eq!(listeners.next_deadline_ms(), Some(now_ms));
        listeners.on_time(now_ms, &mut out);
    }
    assert_eq!(reported, [ListenAddress { host: Some("a".to_owned()), port: 1 }]);
    listeners.on_listening(ListenerId(100));
    assert_eq!(listeners.next_deadline_ms(), None);
}

#[test]
fn unchanged_addresses_keep_listening_and_old_attempts_do_not_count() {
    let (mut listeners, mut out) = (Listeners::new(1), Vec::new());
    listeners.set(&[at("a", 1), at("a", 2)], false, &mut out);
    out.clear();
    listeners.set(&[at("a", 2), at("a", 3)], false, &mut out);
    assert_eq!(out, [Change::Stop { listener: ListenerId(1) }, listen(3, Some("a"), 3)]);
    assert_eq!(listeners.on_failed(ListenerId(1), "stopped", 0), None);
    assert_eq!(listeners.next_deadline_ms(), None);
}

/// What a port does when binding fails twice and, once bound, accepting fails: times of the steps.
fn steps(port: Port) -> Vec<(u64, ListenStep)> {
    let (mut listening, mut now_ms, mut steps) = (Listening::new(port), 0, Vec::new());
    let mut accepts_fail = 1;
    for attempt in 0.. {
        let step = listening.next(now_ms);
        steps.push((now_ms, step));
        match step {
            ListenStep::Bind if attempt < 3 => {
                assert_eq!(listening.next(now_ms), ListenStep::Wait { until_ms: None });
                assert_eq!(listening.bind_failed(now_ms), steps.len() as u32 / 2 + 1, "in a row");
            }
            ListenStep::Bind => listening.bound(),
            ListenStep::Accept if accepts_fail > 0 => {
                accepts_fail -= 1;
                listening.accept_failed(now_ms);
            }
            ListenStep::Accept => break,
            ListenStep::Wait { until_ms } => {
                now_ms = until_ms.unwrap();
                assert!(matches!(listening.next(now_ms - 1), ListenStep::Wait { .. }));
            }
        }
    }
    steps
}

// rows: Q-29 Q-30 Q-98
#[test]
fn port_that_fails_is_bound_again_after_the_pause_of_its_kind() {
    use ListenStep::{Accept, Bind, Wait};
    let wait = |until_ms| Wait { until_ms: Some(until_ms) };
    let bound = |pause: u64| {
        let wait = |times: u64| (times.saturating_sub(1) * pause, wait(times * pause));
        vec![(0, Bind), wait(1), (pause, Bind), wait(2), (2 * pause, Bind), (2 * pause, Accept)]
    };
    let with = |pause, rest: &[(u64, ListenStep)]| [&bound(pause)[..], rest].concat();
    assert_eq!(steps(Port::Clients), with(1000, &[(2000, wait(2050)), (2050, Accept)]));
    assert_eq!(steps(Port::Learners), with(500, &[(1000, wait(1500)), (1500, Accept)]));
    assert_eq!(steps(Port::Elections), with(1000, &[(2000, wait(2500)), (2500, Accept)]));
}

// rows: Q-98
#[test]
fn client_port_moves_unless_clients_are_served_at_the_address_already() {
    let at = |address: &str| address.parse::<SocketAddr>().unwrap();
    let moves = |from: &str, host: Option<&str>, port, resolved: Option<&str>| {
        let mut client = ClientListening::bound();
        let resolved = resolved.map(|ip| ip.parse().unwrap());
        let moves = {
            let address = ListenAddress { host: host.map(str::to_owned), port };
            client.move_to(address, Some(at(from)), resolved)
        };
        assert_eq!(client.listening.is_bound(), !moves);
        assert_eq!(client.wanted.is_some(), moves);
        moves
    };
    let local = Some("127.0.0.1");
    assert!(!moves("127.0.0.1:7", Some("a"), 7, local));
    assert!(!moves("[::ffff:127.0.0.1]:7", Some("a"), 7, local), "the same address");
    assert!(!moves("[::]:7", None, 7, None));
    assert!(!moves("0.0.0.0:7", None, 7, None));
    assert!(moves("127.0.0.1:7", Some("a"), 8, local), "another port");
    assert!(moves("127.0.0.2:7", Some("a"), 7, local), "another address");
    assert!(moves("[::]:7", Some("a"), 7, local), "one address in place of all");
    assert!(moves("127.0.0.1:7", None, 7, None), "all addresses in place of one");
    assert!(moves("127.0.0.1:7", Some("a"), 7, None), "a host without an address");
    let mut client = ClientListening::bound();
    assert!(client.move_to(ListenAddress { host: None, port: 7 }, None, None), "nothing is bound");
}
