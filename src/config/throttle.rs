//! Settings that limit outstanding writes and new connections (C-91..C-97, C-123..C-133).

use super::checker::Checker;
use super::property_reader::{INT, Reader};
use super::system_properties::{SystemProperties, decode, double};

/// `oxkeeper.outstandingBytes`, `request_throttle_*`, `throttled_op_wait_time` and `connection_throttle_*`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Throttle {
    /// `oxkeeper.outstandingBytes`: limit on the bytes of outstanding writes; above it, connections that wait for a write are
    /// not read; above twice of it, every further write waits.
    pub outstanding_bytes: u32,
    /// `oxkeeper.lagBytes`: committed bytes that a follower may not have acknowledged before commits wait for it.
    pub lag_bytes: u32,
    /// `request_throttle_max_requests`: limit on outstanding writes; 0 is off.
    pub requests_max: u32,
    /// `throttled_op_wait_time`: ms that a write may wait for others before it is refused; 0 is off.
    pub op_wait_ms: u32,
    /// `request_throttle_drop_stale`: a stale write is dropped, and its connection closed.
    pub drops_stale: bool,
    /// `request_stale_latency_check`: a write that waited longer than its session's timeout is stale.
    pub late_is_stale: bool,
    /// `connection_throttle_tokens`: clients that may connect in one burst; 0 is off.
    pub tokens: u32,
    /// `connection_throttle_fill_time` in ms, and the tokens that are added after it.
    pub fill_time_ms: u32,
    pub fill_count: u32,
    /// `connection_throttle_freeze_time`: ms between changes of the chance that a connection is dropped; `None` is off.
    pub freeze_time_ms: Option<u32>,
    pub drop_increase: f64,
    pub drop_decrease: f64,
    pub decrease_ratio: f64,
    /// `connection_throttle_weight_enabled`: without it each session takes one token.
    pub weighed: bool,
    /// Tokens for a new session and for one that reconnects.
    pub new_weight: u32,
    pub renew_weight: u32,
}

/// Java has no default for these if they are no number, and does not start.
const FRACTIONS: [&str; 4] = [
    "connection_throttle_drop_increase",
    "connection_throttle_drop_decrease",
    "connection_throttle_decrease_ratio",
    "pathStats.sampleRate",
];

/// Refuses values with which Java does not start, whether they are used or not, and a token bucket that would admit no client.
pub(super) fn refuse(checker: &mut Checker, system: &SystemProperties) {
    for key in FRACTIONS {
        let property = system.get(&format!("zookeeper.{key}"));
        if let Some(property) = property.filter(|property| double(&property.value).is_none()) {
            let text = format!("{key}={} is not a number; write one such as 0.02", property.value);
            checker.problem(&property.place, text);
        }
    }
    let tokens = system.get("zookeeper.connection_throttle_tokens");
    let is_closed = |value: &str| decode(value).is_some_and(|n| (*INT.start()..0).contains(&n));
    if let Some(property) = tokens.filter(|property| is_closed(&property.value)) {
        let text = format!(
            "connection_throttle_tokens={} admits no client; write 0 for no limit",
            property.value
        );
        checker.problem(&property.place, text);
    }
}

pub(super) fn take(from: &mut Reader<'_>) -> Throttle {
    let mut number = |key: &str, default| from.number(&format!("zookeeper.{key}"), INT, default);
    let requests_max = number("request_throttle_max_requests", 0);
    let op_wait_ms = number("throttled_op_wait_time", 0);
    let tokens = number("connection_throttle_tokens", 0);
    let fill_time_ms = number("connection_throttle_fill_time", 1);
    let fill_count = number("connection_throttle_fill_count", 1);
    let freeze_time_ms = number("connection_throttle_freeze_time", -1);
    let at_least = |weight: i64, least: i64, default: i64| {
        if weight <= 0 { default } else { weight.max(least) }
    };
    let local = at_least(number("connection_throttle_local_session_weight", 1), 1, 1);
    let new = at_least(number("connection_throttle_global_session_weight", 3), local, 3);
    let renew = at_least(number("connection_throttle_renew_session_weight", 2), local, 2);
    let weighed = from.flag("zookeeper.connection_throttle_weight_enabled", false);
    let drops_stale = from.flag("zookeeper.request_throttle_drop_stale", true);
    let late_is_stale = from.flag("zookeeper.request_stale_latency_check", false);
    let mut factor = |key: &str, default: f64| {
        let text = from.text(&format!("zookeeper.connection_throttle_{key}"));
        text.and_then(|text| double(&text)).unwrap_or(default)
    };
    let (drop_increase, drop_decrease) =
        (factor("drop_increase", 0.02), factor("drop_decrease", 0.002));
    let decrease_ratio = factor("decrease_ratio", 0.0);
    let unsigned = |number: i64| u32::try_from(number).unwrap_or(0);
    Throttle {
        outstanding_bytes: from.int("oxkeeper.outstandingBytes", 32 << 20),
        lag_bytes: from.int("oxkeeper.lagBytes", 64 << 20),
        requests_max: unsigned(requests_max),
        op_wait_ms: unsigned(op_wait_ms),
        drops_stale,
        late_is_stale,
        tokens: unsigned(tokens),
        fill_time_ms: unsigned(fill_time_ms).max(1),
        fill_count: unsigned(fill_count),
        freeze_time_ms: u32::try_from(freeze_time_ms).ok(),
        drop_increase,
        drop_decrease,
        decrease_ratio,
        weighed,
        new_weight: unsigned(new),
        renew_weight: unsigned(renew),
    }
}

#[cfg(test)]
mod tests {
    use super::Throttle;
    use crate::config::{Environment, Source, parse};

    fn of(lines: &str) -> Throttle {
        let text = format!("dataDir=/d\nclientPort=2181\n{lines}\n");
        let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: None };
        parse(source, &Environment::new(), &[]).unwrap().throttle
    }

    // rows: C-123 C-126 C-130 C-131 C-132 C-133
    #[test]
    fn weights_are_at_least_that_of_a_local_session() {
        let plain = of("");
        assert_eq!((plain.tokens, plain.fill_time_ms, plain.fill_count), (0, 1, 1));
        assert_eq!((plain.freeze_time_ms, plain.weighed), (None, false));
        assert_eq!((plain.new_weight, plain.renew_weight), (3, 2));
        let heavy = of("connection_throttle_local_session_weight=5\n\
            connection_throttle_renew_session_weight=7\nconnection_throttle_weight_enabled=true\n\
            connection_throttle_freeze_time=0");
        assert_eq!((heavy.new_weight, heavy.renew_weight, heavy.weighed), (5, 7, true));
        assert_eq!(heavy.freeze_time_ms, Some(0));
        let wrong = of("connection_throttle_global_session_weight=0\n\
            connection_throttle_renew_session_weight=-1");
        assert_eq!((wrong.new_weight, wrong.renew_weight), (3, 2));
        let text = b"dataDir=/d\nclientPort=2181\nconnection_throttle_tokens=-5";
        let source = Source { name: "zoo.cfg", text, my_id: None };
        let error = parse(source, &Environment::new(), &[]).unwrap_err().to_string();
        assert!(
            error.starts_with("zoo.cfg:3: connection_throttle_tokens=-5 admits no client"),
            "{error}"
        );
    }

    // rows: C-127 C-128 C-129
    #[test]
    fn chance_to_be_dropped_that_is_no_number_is_refused() {
        let set =
            of("connection_throttle_drop_increase=1e-1\nconnection_throttle_drop_decrease=.5d\n\
            connection_throttle_decrease_ratio= 0.25 ");
        assert_eq!((set.drop_increase, set.drop_decrease, set.decrease_ratio), (0.1, 0.5, 0.25));
        for key in super::FRACTIONS {
            let text = format!("dataDir=/d\nclientPort=2181\n{key}=0,5\ntickTime=x\n");
            let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: None };
            let error = parse(source, &Environment::new(), &[]).unwrap_err().to_string();
            let expected = format!("zoo.cfg:3: {key}=0,5 is not a number");
            assert!(error.starts_with(&expected) && error.contains("\nzoo.cfg:4: "), "{error}");
        }
    }

    // rows: C-91 C-92 C-94 C-97
    #[test]
    fn writes_are_not_throttled_by_default() {
        let plain = of("");
        assert_eq!((plain.requests_max, plain.op_wait_ms), (0, 0));
        assert!(plain.drops_stale && !plain.late_is_stale);
        let set = of("request_throttle_max_requests=3\nthrottled_op_wait_time=4\n\
            request_throttle_drop_stale=false\nrequest_stale_latency_check=true");
        assert_eq!((set.requests_max, set.op_wait_ms), (3, 4));
        assert!(!set.drops_stale && set.late_is_stale);
    }
}
