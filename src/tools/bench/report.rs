//! The results of a run: as a table, and as JSON.

use super::figures::{Figures, Point};
use super::mix::Op;
use super::record::Failures;
use serde_json::{Value, json};
use std::fmt::Write;

/// The settings of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Addresses as they were given.
    pub servers: String,
    /// The version that the first server reports.
    pub version: Option<String>,
    pub mix: String,
    pub connections: u32,
    pub in_flight: usize,
    pub value_bytes: usize,
    pub keys: u64,
    /// Operations a second, all connections together.
    pub rate: Option<f64>,
    pub warm_up_s: f64,
}

impl Setting {
    /// The settings on one line.
    pub fn line(&self) -> String {
        let rate =
            self.rate.map_or_else(String::new, |rate| format!(" at {}/s", grouped(rate as u64)));
        format!(
            "{}{rate}, {} connections x {} in flight, {} B values, {} znodes",
            self.mix,
            self.connections,
            self.in_flight,
            grouped(self.value_bytes as u64),
            grouped(self.keys)
        )
    }
}

/// A run and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub setting: Setting,
    pub measured_s: f64,
    /// Figures and errors of each operation that was answered.
    pub operations: Vec<(Op, Figures, u64)>,
    pub overall: Figures,
    pub points: Vec<Point>,
    pub troubles: Failures,
}

const HEAD: [&str; 8] = ["", "ops/s", "count", "errors", "p50", "p99", "p99.9", "max"];

impl Report {
    /// Lines of text, the columns aligned.
    pub fn table(&self) -> String {
        let row = |name: &str, of: &Figures, errors: u64| {
            let times = [of.p50_us, of.p99_us, of.p999_us, of.max_us];
            let times = times.map(|us| if of.count == 0 { "-".to_owned() } else { duration(us) });
            let [p50, p99, p999, max] = times;
            let (count, errors) = (grouped(of.count), grouped(errors));
            [name.to_owned(), grouped(of.ops_s as u64), count, errors, p50, p99, p999, max]
        };
        let mut rows = vec![HEAD.map(str::to_owned)];
        rows.extend(self.operations.iter().map(|(op, of, errors)| row(op.name(), of, *errors)));
        let errors = self.operations.iter().map(|(_, _, errors)| errors).sum();
        rows.push(row("all", &self.overall, errors));
        let widths: Vec<usize> = (0..HEAD.len())
            .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
            .collect();
        let mut text = format!("{}\nmeasured {:.1} s\n\n", self.setting.line(), self.measured_s);
        for row in &rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| {
                if at == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            // Writing to a string can't fail.
            let _infallible = writeln!(text, "{}", line.trim_end());
        }
        text.push_str(&self.trouble_lines());
        text
    }

    fn trouble_lines(&self) -> String {
        let mut text = String::new();
        let troubles = &self.troubles;
        for ((op, code), count) in &troubles.errors {
            let name = code_name(*code);
            let _infallible =
                writeln!(text, "{} x {}: error {code}{name}", grouped(*count), op.name());
        }
        for (count, what) in [
            (troubles.connections_lost, "connections lost and opened again"),
            (troubles.sessions_expired, "sessions expired and replaced by new ones"),
            (troubles.unanswered, "operations never answered"),
        ] {
            if count > 0 {
                let _infallible = writeln!(text, "{} {what}", grouped(count));
            }
        }
        if text.is_empty() { text } else { format!("\n{text}") }
    }

    /// The settings and all results as JSON.
    pub fn json(&self) -> String {
        let setting = &self.setting;
        let operations: serde_json::Map<String, Value> = self
            .operations
            .iter()
            .map(|(op, figures, errors)| {
                let mut value = figures.json();
                value["errors"] = json!(errors);
                (op.name().to_owned(), value)
            })
            .collect();
        let errors = self.troubles.errors.iter().map(
            |((op, code), count)| json!({ "operation": op.name(), "code": code, "count": count }),
        );
        let timeline = self.points.iter().map(|point| {
            let mut value = point.figures.json();
            value["from_s"] = json!(point.from_s);
            value["until_s"] = json!(point.until_s);
            value
        });
        let value = json!({
            "servers": setting.servers,
            "version": setting.version,
            "mix": setting.mix,
            "connections": setting.connections,
            "in_flight": setting.in_flight,
            "value_bytes": setting.value_bytes,
            "keys": setting.keys,
            "rate_per_s": setting.rate,
            "warm_up_s": setting.warm_up_s,
            "measured_s": self.measured_s,
            "all": self.overall.json(),
            "operations": operations,
            "errors": errors.collect::<Vec<_>>(),
            "connections_lost": self.troubles.connections_lost,
            "sessions_expired": self.troubles.sessions_expired,
            "unanswered": self.troubles.unanswered,
            "timeline": timeline.collect::<Vec<_>>(),
        });
        format!("{value:#}\n")
    }
}

const fn code_name(code: i32) -> &'static str {
    match code {
        -4 => " (connection loss)",
        -5 => " (marshalling)",
        -101 => " (no node)",
        -102 => " (not authorized)",
        -110 => " (node exists)",
        -112 => " (session expired)",
        -118 => " (session moved)",
        -125 => " (quota exceeded)",
        -127 => " (throttled)",
        _ => "",
    }
}

/// Three significant digits with a suitable unit.
pub fn duration(us: u64) -> String {
    let value = us as f64;
    match us {
        0..1000 => format!("{us} µs"),
        1000..9_995 => format!("{:.2} ms", value / 1e3),
        9_995..99_950 => format!("{:.1} ms", value / 1e3),
        99_950..999_500 => format!("{:.0} ms", value / 1e3),
        999_500..9_995_000 => format!("{:.2} s", value / 1e6),
        _ => format!("{:.1} s", value / 1e6),
    }
}

/// Thousands set apart: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A run with every kind of result.
    pub fn report() -> Report {
        let figures = |count: u64, p50_us| Figures {
            count,
            ops_s: count as f64 / 2.0,
            mean_us: p50_us as f64,
            p50_us,
            p99_us: p50_us * 4,
            p999_us: p50_us * 20,
            max_us: p50_us * 50,
        };
        let point = |at: u32| Point {
            from_s: f64::from(at),
            until_s: f64::from(at + 1),
            figures: figures(60_000 + u64::from(at) * 900, 480),
        };
        let errors = [((Op::Create, -110), 3), ((Op::Create, -9), 1)].into();
        Report {
            setting: Setting {
                servers: "127.0.0.1:2181".into(),
                version: Some("3.9.5".into()),
                mix: "get=80,create=20".into(),
                connections: 32,
                in_flight: 16,
                value_bytes: 1024,
                keys: 10_000,
                rate: Some(150_000.0),
                warm_up_s: 1.0,
            },
            measured_s: 2.0,
            operations: vec![
                (Op::Get, figures(200_000, 480), 0),
                (Op::Create, figures(999, 1900), 4),
            ],
            overall: figures(200_999, 500),
            points: vec![point(0), point(1)],
            troubles: Failures { errors, connections_lost: 2, unanswered: 31, sessions_expired: 1 },
        }
    }

    #[test]
    fn table_has_aligned_columns_and_lists_errors() {
        let expected = "\
get=80,create=20 at 150,000/s, 32 connections x 16 in flight, 1,024 B values, 10,000 znodes
measured 2.0 s

          ops/s    count  errors      p50      p99    p99.9      max
get     100,000  200,000       0   480 µs  1.92 ms  9.60 ms  24.0 ms
create      499      999       4  1.90 ms  7.60 ms  38.0 ms  95.0 ms
all     100,499  200,999       4   500 µs  2.00 ms  10.0 ms  25.0 ms

3 x create: error -110 (node exists)
1 x create: error -9
2 connections lost and opened again
1 sessions expired and replaced by new ones
31 operations never answered
";
        let mut report = report();
        assert_eq!(report.table(), expected);
        report.troubles = Failures::default();
        report.operations[1].1.count = 0;
        assert!(report.table().ends_with("25.0 ms\n"));
        assert!(report.table().contains("create      499        0       4       -        -"));
    }

    #[test]
    fn json_has_all_results() {
        let value: Value = serde_json::from_str(&report().json()).expect("JSON");
        assert_eq!(value["all"]["p999_us"], 10_000);
        assert_eq!(value["operations"]["create"]["errors"], 4);
        assert_eq!(value["operations"]["get"]["ops_per_s"], 100_000.0);
        assert_eq!(value["errors"][0]["code"], -110);
        assert_eq!(
            (&value["sessions_expired"], &value["rate_per_s"]),
            (&json!(1), &json!(150_000.0))
        );
        assert_eq!(value["timeline"][1]["until_s"], 2.0);
    }

    #[test]
    fn durations_and_numbers_are_short_to_read() {
        let cases = [
            (0, "0 µs"),
            (999, "999 µs"),
            (1000, "1.00 ms"),
            (9_994, "9.99 ms"),
            (9_995, "10.0 ms"),
            (99_950, "100 ms"),
            (999_499, "999 ms"),
            (999_500, "1.00 s"),
            (61_000_000, "61.0 s"),
        ];
        for (us, text) in cases {
            assert_eq!(duration(us), text);
        }
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
