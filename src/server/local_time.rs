//! Times as Java's loggers write them: in the zone of the machine, which they do not name.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Writes times; the zone is that of `TZ`, else the machine's.
pub struct LocalTime {
    zone: TimeZone,
    /// The last second that was written as text.
    second: (i64, String),
}

impl Default for LocalTime {
    fn default() -> Self {
        Self { zone: TimeZone::system(), second: (i64::MIN, String::new()) }
    }
}

impl LocalTime {
    /// `2026-11-22 18:00:00,123`.
    ///
    /// * `wall_ms`: milliseconds since 1970.
    pub fn text(&mut self, wall_ms: i64) -> String {
        let second = wall_ms.div_euclid(1000);
        if self.second.0 != second {
            let at = Timestamp::from_second(second).unwrap_or_default();
            let text = at.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string();
            self.second = (second, text);
        }
        format!("{},{:03}", self.second.1, wall_ms.rem_euclid(1000))
    }
}

impl LocalTime {
    /// A time in another form.
    ///
    /// * `format`: for `strftime`. `is_utc`: not in the zone.
    pub fn in_form(&self, wall_ms: i64, format: &str, is_utc: bool) -> String {
        let zone = if is_utc { TimeZone::UTC } else { self.zone.clone() };
        let at = Timestamp::from_millisecond(wall_ms).unwrap_or_default();
        at.to_zoned(zone).strftime(format).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_that_of_the_zone_with_milliseconds() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let mut time = LocalTime { zone, ..LocalTime::default() };
        assert_eq!(time.text(1_795_363_200_007), "2026-11-22 18:00:00,007");
        assert_eq!(time.text(1_795_363_200_999), "2026-11-22 18:00:00,999");
        assert_eq!(time.text(-1), "1970-01-01 01:59:59,999");
        let form = |format: &str, is_utc| time.in_form(1_795_363_200_007, format, is_utc);
        assert_eq!(form("%Y-%m-%dT%H:%M:%S.%3f%:z", false), "2026-11-22T18:00:00.007+02:00");
        assert_eq!(form("%d %b %I:%M %p", true), "22 Nov 04:00 PM");
    }
}
