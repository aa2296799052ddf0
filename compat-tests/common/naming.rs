//! Replaces values that may differ between two correct servers by names that may not.
//!
//! * Session ids become the client's name and the number of its session: `c2#1`.
//! * Times become `now` when within an hour of this machine's clock, and stay as they are otherwise (0 is 0).
//! * Zxids stay as they are, unless clients raced: then they are numbered in the order in which one client saw them,
//!   which is the same on both servers if and only if their zxids differ by a renaming.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

const HOUR_MS: i64 = 3_600_000;

/// Names of one server's sessions.
#[derive(Default)]
pub struct Sessions {
    names: HashMap<i64, String>,
    opened: HashMap<usize, usize>,
}

impl Sessions {
    pub fn add(&mut self, id: i64, slot: usize) {
        let nth = self.opened.entry(slot).or_default();
        *nth += 1;
        self.names.insert(id, format!("c{slot}#{nth}"));
    }

    pub fn name(&self, id: i64) -> String {
        match self.names.get(&id) {
            Some(name) => name.clone(),
            None if id == 0 => "0".into(),
            None => "unknown".into(),
        }
    }
}

/// How zxids are compared: as they are, or numbered in the order of their first appearance.
#[derive(Default)]
pub enum Zxids {
    #[default]
    Exact,
    Renamed(HashMap<i64, usize>),
}

impl Zxids {
    pub fn renamed() -> Self {
        Self::Renamed(HashMap::new())
    }

    pub fn name(&mut self, zxid: i64) -> String {
        match self {
            Self::Renamed(seen) if zxid > 0 => {
                let next = seen.len();
                format!("z{}", seen.entry(zxid).or_insert(next))
            }
            _ if zxid < 0 => zxid.to_string(),
            _ => format!("{zxid:#x}"),
        }
    }

    /// The zxid in the reply header of a read: when clients race, it depends on other clients' writes.
    pub fn name_of_last_seen(&mut self, zxid: i64) -> String {
        match self {
            Self::Renamed(_) if zxid > 0 => "z".into(),
            _ => self.name(zxid),
        }
    }
}

pub fn time(ms: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock past 1970");
    let now = i64::try_from(now.as_millis()).expect("a clock before the year 292 million");
    if (now - ms).abs() < HOUR_MS { "now".into() } else { ms.to_string() }
}

/// The password Java derives from a session id: sixteen bytes of `java.util.Random`.
///
/// Computed here from the published algorithm, so that both servers are checked against it and not only against each other.
pub fn password(session_id: i64) -> Vec<u8> {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;
    let mut state = ((session_id as u64 ^ 0xB341_5C00) ^ MULTIPLIER) & MASK;
    let mut bytes = Vec::new();
    for _ in 0..4 {
        state = state.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        bytes.extend_from_slice(&((state >> 16) as u32).to_le_bytes());
    }
    bytes
}
