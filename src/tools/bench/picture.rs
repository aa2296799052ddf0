//! Draws a run as an SVG: throughput above, latencies below, both over time.

use super::figures::{Figures, Point};
use super::report::{Report, duration, grouped};
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 640.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = WIDTH - 132.0;
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
const INK: &str = "#1e293b";
const PALE: &str = "#64748b";
const GRID: &str = "#e2e8f0";
const BLUE: &str = "#2563eb";

/// One latency line: its name, colour, width, and value.
type Series = (&'static str, &'static str, f64, fn(&Figures) -> u64);

const SERIES: [Series; 4] = [
    ("max", "#94a3b8", 1.2, |of| of.max_us),
    ("p99.9", "#be123c", 1.6, |of| of.p999_us),
    ("p99", "#d97706", 1.8, |of| of.p99_us),
    ("p50", "#0f766e", 2.2, |of| of.p50_us),
];

/// A panel: its place, and the values of its lower and upper edge.
struct Panel {
    top: f64,
    bottom: f64,
    low: f64,
    high: f64,
    until_s: f64,
}

impl Panel {
    fn x(&self, at_s: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (at_s / self.until_s)
    }

    fn y(&self, value: f64) -> f64 {
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.bottom - (self.bottom - self.top) * share
    }
}

/// Draws the report; returns the whole file.
pub fn draw(report: &Report) -> String {
    let until_s = report.points.last().map_or(1.0, |point| point.until_s);
    let most = report.points.iter().map(|point| point.figures.ops_s).fold(0.0, f64::max);
    let throughput = Panel { top: 132.0, bottom: 322.0, low: 0.0, high: nice_above(most), until_s };
    let (low, high) = decades(&report.points);
    let latency = Panel { top: 392.0, bottom: 582.0, low, high, until_s };
    let mut svg = Svg::default();
    svg.head(report);
    svg.throughput(&throughput, report);
    svg.latencies(&latency, report);
    svg.text.push_str("</svg>\n");
    svg.text
}

/// Exponents of ten below and above all latencies.
fn decades(points: &[Point]) -> (f64, f64) {
    let with_answers = points.iter().map(|point| &point.figures).filter(|of| of.count > 0);
    let (mut least, mut most) = (f64::MAX, 1.0f64);
    for figures in with_answers {
        least = least.min(figures.p50_us.max(1) as f64);
        most = most.max(figures.max_us as f64);
    }
    let low = if least == f64::MAX { 0.0 } else { least.log10().floor() };
    (low, most.log10().ceil().max(low + 1.0))
}

/// The next higher number among some multiples of powers of ten whose quarters are short to write.
fn nice_above(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let nice = steps.into_iter().map(|step| step * power).find(|nice| value <= *nice);
    nice.unwrap_or(power * 10.0)
}

/// A step between labels, such that there are at most ten.
fn step_of(until_s: f64) -> f64 {
    let mut step = 0.1;
    for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
        if until_s / step <= 10.0 {
            break;
        }
        step *= factor;
    }
    step
}

#[derive(Default)]
struct Svg {
    text: String,
}

/// Where a label is, as seen from its point.
#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    fn head(&mut self, report: &Report) {
        let setting = &report.setting;
        self.raw(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" font-family=\"{FONT}\">"
        ));
        self.raw(format_args!("<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>"));
        let overall = &report.overall;
        let version =
            setting.version.as_deref().map_or_else(String::new, |version| format!(" ({version})"));
        let title = format!("{} operations/s", grouped(overall.ops_s as u64));
        self.raw(format_args!(
            "<text x=\"28\" y=\"40\" font-size=\"22\" font-weight=\"600\" fill=\"{INK}\">{}</text>",
            escaped(&title)
        ));
        self.label((28.0, 62.0), 13.0, PALE, Anchor::Start, &setting.line());
        let line = format!(
            "{}{version}, measured {:.1} s after {:.1} s of warm-up",
            setting.servers, report.measured_s, setting.warm_up_s
        );
        self.label((28.0, 81.0), 13.0, PALE, Anchor::Start, &line);
        let troubles = report.troubles.count();
        if troubles > 0 {
            let text = format!("{} operations failed", grouped(troubles));
            self.label((WIDTH - 28.0, 40.0), 13.0, "#be123c", Anchor::End, &text);
        }
    }

    fn throughput(&mut self, panel: &Panel, report: &Report) {
        self.caption(panel, "Throughput, operations per second");
        for quarter in 0..=4 {
            let value = panel.high * f64::from(quarter) / 4.0;
            self.rule(panel.y(value), &short(value));
        }
        self.seconds(panel, false);
        let mut line = String::new();
        let mut area = String::new();
        for point in &report.points {
            let y = panel.y(point.figures.ops_s);
            // Steps: a point's figure is of all of its time.
            let (from, until) = (panel.x(point.from_s), panel.x(point.until_s));
            let start = if line.is_empty() { 'M' } else { 'L' };
            let _infallible = write!(line, "{start}{from:.1} {y:.1}L{until:.1} {y:.1}");
        }
        let _infallible = write!(area, "{line}L{RIGHT:.1} {0:.1}L{LEFT:.1} {0:.1}Z", panel.bottom);
        if !line.is_empty() {
            self.raw(format_args!("<path d=\"{area}\" fill=\"{BLUE}\" fill-opacity=\"0.10\"/>"));
            self.path(&line, BLUE, 2.0);
        }
        let mean = report.overall.ops_s;
        let y = panel.y(mean);
        self.raw(format_args!(
            "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{INK}\" stroke-dasharray=\"2 4\"/>"
        ));
        self.legend(y - 2.0, BLUE, "mean", &short(mean));
    }

    fn latencies(&mut self, panel: &Panel, report: &Report) {
        self.caption(panel, "Latency, logarithmic");
        for exponent in panel.low as i32..=panel.high as i32 {
            let us = 10f64.powi(exponent);
            self.rule(panel.y(f64::from(exponent)), &plain(us));
            for minor in [2.0, 5.0] {
                let at = (us * minor).log10();
                if panel.high - panel.low <= 3.0 && at < panel.high {
                    self.rule(panel.y(at), &plain(us * minor));
                }
            }
        }
        self.seconds(panel, true);
        let mut ends = Vec::new();
        for (name, colour, width, value) in SERIES {
            let mut line = String::new();
            let mut pen_down = false;
            for point in &report.points {
                if point.figures.count == 0 {
                    pen_down = false; // No operation was answered: there is no latency to show.
                    continue;
                }
                let x = panel.x((point.from_s + point.until_s) / 2.0);
                let y = panel.y((value(&point.figures).max(1) as f64).log10());
                let _infallible = write!(line, "{}{x:.1} {y:.1}", if pen_down { 'L' } else { 'M' });
                pen_down = true;
            }
            self.path(&line, colour, width);
            let overall = value(&report.overall);
            ends.push((panel.y((overall.max(1) as f64).log10()), colour, name, duration(overall)));
        }
        // From the top down, apart from each other.
        let mut above = f64::MIN;
        for (y, colour, name, text) in ends {
            above = y.max(above + 34.0).min(panel.bottom + 4.0);
            self.legend(above, colour, name, &text);
        }
    }

    /// Name and overall figure of a line, at the right edge.
    fn legend(&mut self, y: f64, colour: &str, name: &str, figure: &str) {
        let x = RIGHT + 14.0;
        self.raw(format_args!(
            "<rect x=\"{x}\" y=\"{:.1}\" width=\"4\" height=\"26\" rx=\"2\" fill=\"{colour}\"/>",
            y - 12.0
        ));
        self.label((x + 12.0, y - 2.0), 12.0, PALE, Anchor::Start, name);
        self.raw(format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"13\" font-weight=\"600\" fill=\"{INK}\">{}</text>",
            x + 12.0,
            y + 13.0,
            escaped(figure)
        ));
    }

    fn caption(&mut self, panel: &Panel, text: &str) {
        self.raw(format_args!(
            "<text x=\"28\" y=\"{:.1}\" font-size=\"13\" font-weight=\"600\" fill=\"{INK}\">{text}</text>",
            panel.top - 16.0
        ));
    }

    /// A horizontal line of the grid and its label.
    fn rule(&mut self, y: f64, text: &str) {
        self.raw(format_args!(
            "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{GRID}\"/>"
        ));
        self.label((LEFT - 10.0, y + 4.0), 12.0, PALE, Anchor::End, text);
    }

    /// The axis of time; only the lower one is named.
    fn seconds(&mut self, panel: &Panel, named: bool) {
        let step = step_of(panel.until_s);
        let digits = usize::from(step < 1.0);
        for at in 0..=(panel.until_s / step + 1e-9) as u32 {
            let at_s = f64::from(at) * step;
            let (x, y) = (panel.x(at_s), panel.bottom);
            self.raw(format_args!(
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{y}\" y2=\"{}\" stroke=\"{PALE}\"/>",
                y + 5.0
            ));
            self.label((x, y + 20.0), 12.0, PALE, Anchor::Middle, &format!("{at_s:.digits$}"));
        }
        if named {
            let middle = f64::midpoint(LEFT, RIGHT);
            self.label((middle, panel.bottom + 42.0), 13.0, PALE, Anchor::Middle, "seconds");
        }
    }

    fn path(&mut self, d: &str, colour: &str, width: f64) {
        self.raw(format_args!(
            "<path d=\"{d}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-linejoin=\"round\" \
             stroke-linecap=\"round\"/>"
        ));
    }

    fn label(&mut self, (x, y): (f64, f64), size: f64, colour: &str, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.raw(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{colour}\" text-anchor=\"{anchor}\">{}</text>",
            escaped(text)
        ));
    }

    fn raw(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string can't fail.
        let _infallible = writeln!(self.text, "{element}");
    }
}

/// Escapes text from outside, which is used in text elements only.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // XML has no place for control characters, not even escaped.
            character if character.is_control() => out.push(' '),
            character => out.push(character),
        }
    }
    out
}

/// A round number of operations: `250 k`.
fn short(value: f64) -> String {
    let (scaled, unit) = match value {
        1e6.. => (value / 1e6, " M"),
        1e3.. => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let digits = if scaled >= 100.0 || scaled.fract() < 0.05 { 0 } else { 1 };
    let digits = if scaled < 10.0 && (scaled * 10.0).fract() > 0.05 { 2 } else { digits };
    format!("{scaled:.digits$}{unit}")
}

/// A round latency: `50 µs`.
fn plain(us: f64) -> String {
    match us {
        1e6.. => format!("{:.0} s", us / 1e6),
        1e3.. => format!("{:.0} ms", us / 1e3),
        _ => format!("{us:.0} µs"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;

    #[test]
    fn all_coordinates_are_inside_the_panels() {
        let svg = draw(&report());
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("<path ").count(), 6, "an area, throughput and four latencies");
        for name in ["p50", "p99.9", "seconds", "150,000/s", "36 operations failed"] {
            assert!(svg.contains(name), "{name}");
        }
        // Coordinates of all that is drawn.
        for path in svg.split(" d=\"").skip(1) {
            let path = path.split('"').next().expect("an end");
            for pair in path.split(['M', 'L', 'Z']).filter(|pair| !pair.is_empty()) {
                let (x, y) = pair.split_once(' ').expect("two numbers");
                let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                assert!((LEFT..=RIGHT).contains(&x) && (0.0..=HEIGHT).contains(&y), "{pair}");
            }
        }
    }

    #[test]
    fn time_without_answers_is_a_gap_in_the_latencies() {
        let mut report = report();
        let silent = Point { from_s: 2.0, until_s: 3.0, figures: Figures::default() };
        let again = Point { from_s: 3.0, until_s: 4.0, ..report.points[0] };
        report.points.extend([silent, again]);
        let svg = draw(&report);
        let last = svg.rsplit(" d=\"").next().and_then(|path| path.split('"').next()).unwrap();
        assert_eq!(last.matches('M').count(), 2, "{last}");
        report.points.clear();
        assert!(draw(&report).ends_with("</svg>\n"));
    }

    #[test]
    fn text_from_outside_is_escaped() {
        let mut report = report();
        report.setting.version = Some("<a & b>\u{7}".into());
        assert!(draw(&report).contains("(&lt;a &amp; b&gt; )"));
    }

    #[test]
    fn axes_have_round_labels() {
        for (value, nice) in [(0.0, 1.0), (1.0, 1.0), (211_000.0, 240_000.0), (9.1, 10.0)] {
            assert!((nice_above(value) - nice).abs() < 1e-6, "{value}");
        }
        for (until_s, step) in [(1.0, 0.1), (5.0, 0.5), (10.0, 1.0), (60.0, 10.0), (3600.0, 500.0)]
        {
            assert!((step_of(until_s) - step).abs() < 1e-9, "{until_s}: {}", step_of(until_s));
        }
        assert_eq!(
            [0.0, 250.0, 1500.0, 60_000.0, 312_345.0, 1.2e6].map(short),
            ["0", "250", "1.5 k", "60 k", "312 k", "1.2 M"]
        );
        assert_eq!(decades(&report().points), (2.0, 5.0));
    }
}
