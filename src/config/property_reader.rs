//! Reads system properties by the kind of value they have; a value that has no effect is a warning.

use super::problem::Warning;
use super::system_properties::{Property, SystemProperties, as_written};
use std::ops::RangeInclusive;

pub(super) const INT: RangeInclusive<i64> = i32::MIN as i64..=i32::MAX as i64;
pub(super) const POSITIVE_INT: RangeInclusive<i64> = 1..=i32::MAX as i64;
pub(super) const LONG: RangeInclusive<i64> = i64::MIN..=i64::MAX;

/// Properties by the kind of value they have.
pub(super) struct Reader<'a> {
    pub system: &'a mut SystemProperties,
    pub warnings: &'a mut Vec<Warning>,
}

impl<'a> Reader<'a> {
    pub fn new(system: &'a mut SystemProperties, warnings: &'a mut Vec<Warning>) -> Self {
        Self { system, warnings }
    }

    /// `None` if it is not set at all.
    pub fn optional_flag(&mut self, key: &str) -> Option<bool> {
        let Property { value, place } = self.system.get(key)?.clone();
        if !["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word)) {
            let shown = as_written(key, &place);
            let text = format!(
                "{shown}={value} counts as false, being neither true nor false; write one of them"
            );
            self.warnings.push(Warning::new(place, text));
        }
        self.system.take(key);
        Some(value.eq_ignore_ascii_case("true"))
    }

    pub fn flag(&mut self, key: &str, default: bool) -> bool {
        self.optional_flag(key).unwrap_or(default)
    }

    /// The value that a name stands for; the default for an unknown name, and without one.
    pub fn named<T: Default>(&mut self, key: &str, find: impl Fn(&str) -> Option<T>) -> T {
        self.text(key).and_then(|name| find(&name)).unwrap_or_default()
    }

    pub fn text(&mut self, key: &str) -> Option<String> {
        self.system.take(key).map(|property| property.value)
    }

    pub fn number(&mut self, key: &str, range: RangeInclusive<i64>, default: i64) -> i64 {
        self.system.take_number(key, range, default, self.warnings)
    }

    /// A number that counts as `min` if it is below.
    pub fn at_least(&mut self, key: &str, min: u32, default: u32) -> u32 {
        let place = self.system.get(key).map(|property| property.place.clone());
        let number = self.number(key, INT, i64::from(default));
        match place {
            Some(place) if number < i64::from(min) => {
                let key = as_written(key, &place);
                let text =
                    format!("{key}={number} is below {min}, so {min} is used; write {min} or more");
                self.warnings.push(Warning { place, text, used: Some(min.to_string()) });
                min
            }
            _ => u32::try_from(number).unwrap_or(min),
        }
    }

    /// A number that Java reads without its other bases.
    pub fn decimal(&mut self, key: &str, range: RangeInclusive<i64>, default: i64) -> i64 {
        self.system.take_decimal(key, range, default, self.warnings)
    }

    /// `None` (off) unless above 0, without a warning.
    pub fn positive(&mut self, key: &str) -> Option<u32> {
        u32::try_from(self.number(key, INT, -1)).ok().filter(|&number| number > 0)
    }

    /// A number that should be positive; 0 if it is not.
    pub fn long(&mut self, key: &str, default: i64) -> u64 {
        u64::try_from(self.number(key, LONG, default)).unwrap_or(0)
    }

    /// A number that should be positive.
    pub fn int(&mut self, key: &str, default: u32) -> u32 {
        self.number(key, POSITIVE_INT, i64::from(default)) as u32
    }

    /// Kilobytes as bytes; `None` for values that mean "off" to Java.
    pub fn kilobytes(&mut self, key: &str, default: i64) -> Option<u64> {
        kilobytes(self.number(key, LONG, default))
    }
}

pub(super) fn kilobytes(number: i64) -> Option<u64> {
    u64::try_from(number).ok().filter(|&n| n > 0).map(|n| n.saturating_mul(1024))
}
