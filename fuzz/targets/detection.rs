//! Any bytes as the first of a connection at each kind of port with TLS: at most three of them decide what the connection speaks, more
//! bytes never change that, and what is taken for TLS can be no frame of a client and no packet of a server.

use oxkeeper::member::tls_detection::{
    ClientDetection, DETECTION_BYTES, Decision, Detection, Next, Rest,
};
use std::time::Duration;

const SILENT_MAX: Duration = Duration::from_secs(5);

fn ports(is_unified: bool) -> [Detection; 3] {
    [
        Detection::Servers { is_unified, silent_max: SILENT_MAX },
        Detection::Clients(ClientDetection {
            is_unified,
            sessionless_max: SILENT_MAX,
            drops_early: false,
            is_at_rest: false,
            handshakes_max: None,
        }),
        Detection::Http { is_unified, silent_max: SILENT_MAX },
    ]
}

pub fn target(input: &[u8]) {
    for port in [true, false].into_iter().flat_map(ports) {
        let next = |len: usize, rest| port.next(&input[..len], rest, Duration::ZERO);
        let mut first = None;
        for len in 0..=input.len().min(DETECTION_BYTES + 1) {
            let answer = next(len, Rest::MayFollow);
            match (answer, first) {
                (Next::Wait { .. }, decided) => assert!(decided.is_none() && len < DETECTION_BYTES),
                (Next::Decided(_), None) => first = Some(answer),
                (Next::Decided(_), Some(decided)) => assert_eq!(answer, decided),
            }
            for rest in [Rest::Ended, Rest::Late] {
                let at_last = next(len, rest);
                assert!(matches!(at_last, Next::Decided(_)), "it waits for what can't come");
                assert!(first.is_none_or(|decided| at_last == decided));
            }
        }
        let all = next(input.len(), Rest::MayFollow);
        assert!(first.is_none_or(|decided| all == decided));
        if let (Next::Decided(Decision::TlsHandshake(_)), Some(&head)) = (all, input.first_chunk())
        {
            assert!(i32::from_be_bytes(head) > 0x0fff_ffff, "a length that a setting may allow");
        }
    }
}
