//! Dates as Java prints them in its default time zone with English texts.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// The formats of one time zone.
pub struct Dates {
    zone: TimeZone,
}

impl Dates {
    /// In the time zone of `TZ`, else of the machine.
    pub fn of_machine() -> Self {
        Self { zone: TimeZone::system() }
    }

    /// `DateFormat.SHORT` for the date and `LONG` for the time: `11/21/26, 11:47:19 AM UTC`.
    pub fn short(&self, ms: i64) -> String {
        self.with(ms, |at| {
            let (month, day, year) = (at.month(), at.day(), at.year().rem_euclid(100));
            format!("{month}/{day}/{year:02}, {}", at.strftime("%-I:%M:%S %p %Z"))
        })
    }

    /// `DateFormat.MEDIUM` for both: `Nov 21, 2026, 11:47:19 AM`.
    pub fn medium(&self, ms: i64) -> String {
        self.with(ms, |at| at.strftime("%b %-d, %Y, %-I:%M:%S %p").to_string())
    }

    /// `Date.toString`: `Sat Nov 21 11:47:19 UTC 2026`.
    pub fn long(&self, ms: i64) -> String {
        self.with(ms, |at| at.strftime("%a %b %d %H:%M:%S %Z %Y").to_string())
    }

    /// Dates that only damaged bytes can hold, after the year 9999, are printed as their milliseconds.
    fn with(&self, ms: i64, print: impl FnOnce(Zoned) -> String) -> String {
        let at = Timestamp::from_millisecond(ms);
        at.map_or_else(|_| ms.to_string(), |at| print(at.to_zoned(self.zone.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_printed_as_java_does() {
        let dates = Dates { zone: TimeZone::UTC };
        assert_eq!(dates.short(1_795_261_640_098), "11/21/26, 11:47:20 AM UTC");
        assert_eq!(dates.medium(1_795_261_640_098), "Nov 21, 2026, 11:47:20 AM");
        assert_eq!(dates.long(1_795_261_640_098), "Sat Nov 21 11:47:20 UTC 2026");
        assert_eq!(dates.short(-5), "12/31/69, 11:59:59 PM UTC");
        assert_eq!(dates.short(i64::MAX), i64::MAX.to_string());
    }

    #[test]
    fn zone_is_read_as_posix_does() {
        let dates = Dates { zone: TimeZone::posix("GMT+3").unwrap() };
        assert_eq!(dates.short(1_795_261_640_098), "11/21/26, 8:47:20 AM GMT");
    }
}
