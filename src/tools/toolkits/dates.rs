//! Dates as Java prints them in its default time zone with English texts.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use std::cell::RefCell;

/// The formats of one time zone.
pub struct Dates {
    zone: TimeZone,
    /// The last second that was printed by [`Self::put_short`], with its text: neighbours in a log have mostly the same.
    last: RefCell<Option<(i64, String)>>,
}

impl Dates {
    /// In the time zone of `TZ`, else of the machine.
    pub fn of_machine() -> Self {
        Self::of(TimeZone::system())
    }

    const fn of(zone: TimeZone) -> Self {
        Self { zone, last: RefCell::new(None) }
    }

    /// Appends [`Self::short`].
    pub fn put_short(&self, ms: i64, to: &mut Vec<u8>) {
        let second = ms.div_euclid(1000);
        let mut last = self.last.borrow_mut();
        if let Some((_, text)) = last.as_ref().filter(|(known, _)| *known == second) {
            return to.extend_from_slice(text.as_bytes());
        }
        let text = self.short(ms);
        to.extend_from_slice(text.as_bytes());
        // Not a date that is printed as its milliseconds.
        *last = Timestamp::from_second(second).ok().map(|_| (second, text));
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
        let dates = Dates::of(TimeZone::UTC);
        assert_eq!(dates.short(1_795_261_640_098), "11/21/26, 11:47:20 AM UTC");
        assert_eq!(dates.medium(1_795_261_640_098), "Nov 21, 2026, 11:47:20 AM");
        assert_eq!(dates.long(1_795_261_640_098), "Sat Nov 21 11:47:20 UTC 2026");
        assert_eq!(dates.short(-5), "12/31/69, 11:59:59 PM UTC");
        assert_eq!(dates.short(i64::MAX), i64::MAX.to_string());
    }

    #[test]
    fn zone_is_read_as_posix_does() {
        let dates = Dates::of(TimeZone::posix("GMT+3").unwrap());
        assert_eq!(dates.short(1_795_261_640_098), "11/21/26, 8:47:20 AM GMT");
    }

    #[test]
    fn appended_date_is_that_of_its_own_second() {
        let dates = Dates::of(TimeZone::UTC);
        let max = Timestamp::MAX.as_millisecond();
        for ms in [0, 999, 1000, 1999, -1, -1000, -1001, max, max + 1, max + 2, i64::MAX, max, 5] {
            let mut text = Vec::new();
            dates.put_short(ms, &mut text);
            assert_eq!(text, dates.short(ms).into_bytes(), "{ms}");
        }
    }
}
