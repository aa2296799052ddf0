//! One line for each second of a run.

use super::figures::Figures;
use super::report::{duration, grouped};
use std::fmt::Write;

/// Width of the bar in characters.
const BAR: usize = 24;

/// Writes the progress lines, for a terminal or for a file.
pub struct Progress {
    /// Bars and colours: the lines go to a terminal.
    pub live: bool,
    /// Most operations in a second until now, shown as a whole bar.
    most: f64,
}

impl Progress {
    pub const fn new(live: bool) -> Self {
        Self { live, most: 0.0 }
    }

    /// * `second`: counted from the measured time on; seconds of the warm-up are negative.
    pub fn line(&mut self, second: i64, figures: &Figures, troubles: u64) -> String {
        self.most = self.most.max(figures.ops_s);
        let at = if second < 0 { "warm-up".to_owned() } else { format!("{} s", second + 1) };
        let [p50, p99, max] = [figures.p50_us, figures.p99_us, figures.max_us]
            .map(|us| if figures.count == 0 { "-".to_owned() } else { duration(us) });
        let rate = grouped(figures.ops_s as u64);
        let mut line =
            format!("{at:>7}  {rate:>11} ops/s  p50 {p50:>8}  p99 {p99:>8}  max {max:>8}");
        // Writing to a string can't fail.
        if self.live {
            let _infallible = write!(line, "  \x1b[34m{}\x1b[0m", bar(figures.ops_s, self.most));
        }
        if troubles > 0 {
            let (red, plain) = if self.live { ("\x1b[31m", "\x1b[0m") } else { ("", "") };
            let _infallible = write!(line, "  {red}{} failed{plain}", grouped(troubles));
        }
        line
    }
}

/// A bar in eighths of characters.
fn bar(value: f64, most: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = if most > 0.0 { (value / most * (BAR * 8) as f64) as usize } else { 0 };
    let mut bar = "█".repeat(eighths / 8);
    bar.push_str(EIGHTHS[eighths % 8]);
    let used = bar.chars().count();
    bar.extend(std::iter::repeat_n(' ', BAR - used.min(BAR)));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_shows_rate_and_latencies_and_a_bar_if_live() {
        let figures = Figures {
            count: 300_000,
            ops_s: 300_000.0,
            p50_us: 480,
            p99_us: 1200,
            max_us: 9100,
            ..Figures::default()
        };
        let mut plain = Progress::new(false);
        assert_eq!(
            plain.line(-1, &figures, 0),
            "warm-up      300,000 ops/s  p50   480 µs  p99  1.20 ms  max  9.10 ms"
        );
        assert_eq!(
            plain.line(0, &Figures::default(), 7),
            "    1 s            0 ops/s  p50        -  p99        -  max        -  7 failed"
        );
        let mut live = Progress::new(true);
        assert!(live.line(0, &figures, 0).ends_with(&format!("\x1b[34m{}\x1b[0m", "█".repeat(24))));
        let half = Figures { ops_s: 151_000.0, ..figures };
        assert!(live.line(1, &half, 0).contains(&format!("{}            \x1b", "█".repeat(12))));
    }
}
