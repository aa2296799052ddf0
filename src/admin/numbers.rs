//! Numbers as Java prints them.

/// A double as Java's `Double.toString` prints it: at least one decimal, and an exponent outside
/// of 0.001 up to 10,000,000.
pub(super) fn java_double(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) || !value.is_finite() {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{point}E{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_printed_as_java_does() {
        let cases = [
            (0.0, "0.0"),
            (6.6667, "6.6667"),
            (78.0, "78.0"),
            (9_999_999.5, "9999999.5"),
            (1e7, "1.0E7"),
            (12_345_678.25, "1.234567825E7"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (-2.5, "-2.5"),
        ];
        for (value, expected) in cases {
            assert_eq!(java_double(value), expected);
        }
    }
}
