//! Counts answers and errors: in slices of time as the threads fill them, and their sum.

use super::connection_load::Done;
use super::figures::{Figures, Latencies, Point};
use super::mix::Op;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Width of a slice.
pub const TICK_US: u64 = 100_000;
/// Longest latency that is measured; longer ones count as this.
const TOOK_US_MAX: u64 = 600_000_000;
/// The picture has at most this many points.
const POINTS_MAX: u64 = 120;

fn latencies() -> Latencies {
    Histogram::new_with_bounds(1, TOOK_US_MAX, 2).expect("the bounds are in order")
}

/// Errors and losses, by kind.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Failures {
    /// Answers with an error code, by operation and code.
    pub errors: BTreeMap<(Op, i32), u64>,
    pub connections_lost: u64,
    /// Operations that were under way on lost connections: it is unknown whether they were done.
    pub unanswered: u64,
    pub sessions_expired: u64,
}

impl Failures {
    pub fn add(&mut self, other: &Self) {
        for (&what, count) in &other.errors {
            *self.errors.entry(what).or_default() += count;
        }
        self.connections_lost += other.connections_lost;
        self.unanswered += other.unanswered;
        self.sessions_expired += other.sessions_expired;
    }

    pub fn errors_of(&self, op: Op) -> u64 {
        self.errors.iter().filter(|((of, _), _)| *of == op).map(|(_, count)| count).sum()
    }

    /// Number of operations and sessions that failed.
    pub fn count(&self) -> u64 {
        self.errors.values().sum::<u64>() + self.unanswered + self.sessions_expired
    }
}

/// What one thread counted between two ticks.
pub struct Slice {
    /// Ticks since the measured time began; negative in the warm-up.
    pub tick: i64,
    /// Latencies of the measured time, by operation.
    measured: [Option<Latencies>; Op::ALL.len()],
    /// Latencies of the warm-up.
    others: Option<Latencies>,
    pub troubles: Failures,
}

impl Slice {
    fn new(tick: i64) -> Self {
        Self { tick, measured: Default::default(), others: None, troubles: Failures::default() }
    }

    fn is_empty(&self) -> bool {
        self.measured.iter().all(Option::is_none)
            && self.others.is_none()
            && self.troubles == Failures::default()
    }
}

/// Counts for one thread, in one slice after the other.
pub struct Recorder {
    warm_up_us: u64,
    slice: Slice,
}

impl Recorder {
    pub fn new(warm_up_us: u64) -> Self {
        Self { warm_up_us, slice: Slice::new(i64::MIN) }
    }

    /// Must be called before anything of `now_us` is added: returns the slice that has ended, if it is not empty.
    ///
    /// * `now_us`: since the run began.
    pub fn advance(&mut self, now_us: u64) -> Option<Slice> {
        let tick = (now_us as i64 - self.warm_up_us as i64).div_euclid(TICK_US as i64);
        if self.slice.tick == tick {
            return None;
        }
        let ended = std::mem::replace(&mut self.slice, Slice::new(tick));
        (!ended.is_empty()).then_some(ended)
    }

    pub fn add(&mut self, done: Done) {
        if done.code != 0 {
            *self.slice.troubles.errors.entry((done.op, done.code)).or_default() += 1;
            return;
        }
        let into = if done.counts {
            &mut self.slice.measured[done.op as usize]
        } else {
            &mut self.slice.others
        };
        into.get_or_insert_with(latencies).saturating_record(done.took_us.max(1));
    }

    pub const fn troubles(&mut self) -> &mut Failures {
        &mut self.slice.troubles
    }
}

/// The sum of all slices.
pub struct Totals {
    by_op: [Latencies; Op::ALL.len()],
    pub troubles: Failures,
    /// Points of the picture, each of `point_ticks` ticks.
    points: Vec<Latencies>,
    point_ticks: u64,
    /// Seconds that were not reported yet, by number; negative in the warm-up.
    seconds: BTreeMap<i64, (Latencies, u64)>,
}

impl Totals {
    /// * `measured_us`: how long is measured.
    pub fn new(measured_us: u64) -> Self {
        let ticks = measured_us.div_ceil(TICK_US).max(1);
        let steps = (0..).flat_map(|power| [1, 2, 5].map(|step| step * 10u64.pow(power)));
        let point_ticks = steps
            .into_iter()
            .find(|step| ticks.div_ceil(*step) <= POINTS_MAX)
            .expect("the steps grow without end");
        let points = (0..ticks.div_ceil(point_ticks)).map(|_| latencies()).collect();
        Self {
            by_op: Op::ALL.map(|_| latencies()),
            troubles: Failures::default(),
            points,
            point_ticks,
            seconds: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, slice: Slice) {
        const SAME: &str = "all have the same bounds";
        self.troubles.add(&slice.troubles);
        let second = slice.tick.div_euclid((1_000_000 / TICK_US) as i64);
        let (latencies_of_second, troubles) =
            self.seconds.entry(second).or_insert_with(|| (latencies(), 0));
        *troubles += slice.troubles.count();
        if let Some(others) = &slice.others {
            latencies_of_second.add(others).expect(SAME);
        }
        // Answers that came after the end belong to requests before it.
        let last = self.points.len() - 1;
        let point = (slice.tick.max(0) as u64 / self.point_ticks).min(last as u64) as usize;
        for (sum, part) in self.by_op.iter_mut().zip(&slice.measured) {
            let Some(part) = part else { continue };
            for sum in [sum, latencies_of_second, &mut self.points[point]] {
                sum.add(part).expect(SAME);
            }
        }
    }

    /// Takes out the figures of one second; they are empty if no slice is of that second.
    pub fn second(&mut self, second: i64) -> (Figures, u64) {
        let (latencies, troubles) =
            self.seconds.remove(&second).unwrap_or_else(|| (latencies(), 0));
        (Figures::of(&latencies, 1.0), troubles)
    }

    /// Figures and errors of each operation that was answered.
    pub fn operations(&self, measured_us: u64) -> Vec<(Op, Figures, u64)> {
        let secs = measured_us as f64 / 1e6;
        let each = Op::ALL.into_iter().zip(&self.by_op);
        each.map(|(op, sum)| (op, Figures::of(sum, secs), self.troubles.errors_of(op)))
            .filter(|(_, figures, errors)| figures.count + errors > 0)
            .collect()
    }

    pub fn overall(&self, measured_us: u64) -> Figures {
        let mut all = latencies();
        self.by_op.iter().for_each(|sum| all.add(sum).expect("all have the same bounds"));
        Figures::of(&all, measured_us as f64 / 1e6)
    }

    /// The course of the run, for as long as it was measured.
    pub fn points(&self, measured_us: u64) -> Vec<Point> {
        let width_us = self.point_ticks * TICK_US;
        let mut points = Vec::new();
        for (sum, from_us) in self.points.iter().zip((0..measured_us).step_by(width_us as usize)) {
            let until_us = (from_us + width_us).min(measured_us);
            let secs = (until_us - from_us) as f64 / 1e6;
            points.push(Point {
                from_s: from_us as f64 / 1e6,
                until_s: until_us as f64 / 1e6,
                figures: Figures::of(sum, secs),
            });
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(op: Op, took_us: u64, counts: bool, code: i32) -> Done {
        Done { op, took_us, counts, code }
    }

    #[test]
    fn slice_ends_with_its_tick() {
        let mut recorder = Recorder::new(150_000);
        assert!(recorder.advance(0).is_none());
        recorder.add(done(Op::Get, 10, false, 0));
        let first = recorder.advance(60_000).expect("the slice of tick -2");
        assert_eq!((first.tick, first.others.expect("one").len()), (-2, 1));
        assert!(recorder.advance(149_999).is_none());
        assert!(recorder.advance(150_000).is_none(), "nothing came in tick -1");
        recorder.add(done(Op::Set, 10, true, 0));
        recorder.add(done(Op::Set, 10, true, -101));
        let second = recorder.advance(350_000).expect("the slice of tick 0");
        assert_eq!(second.tick, 0);
        assert_eq!(second.troubles.errors_of(Op::Set), 1);
        assert!(second.measured[Op::Set as usize].is_some() && second.others.is_none());
    }

    #[test]
    fn totals_are_the_sum_of_all_slices() {
        let mut totals = Totals::new(250_000);
        let mut recorder = Recorder::new(0);
        for (at_us, op, took_us) in [
            (0, Op::Get, 100),
            (100_000, Op::Set, 300),
            (240_000, Op::Get, 200),
            (900_000, Op::Get, 5000),
        ] {
            totals_add(&mut totals, recorder.advance(at_us));
            recorder.add(done(op, took_us, true, 0));
        }
        recorder.troubles().sessions_expired = 1;
        totals_add(&mut totals, recorder.advance(1_000_000));
        let operations = totals.operations(250_000);
        let figures: Vec<_> =
            operations.iter().map(|(op, of, _)| (*op, of.count, of.max_us)).collect();
        assert_eq!(figures, [(Op::Get, 3, 5000 + 23), (Op::Set, 1, 300 + 1)]);
        let overall = totals.overall(250_000);
        assert_eq!((overall.count, overall.ops_s), (4, 16.0));
        // The late answer is in the last point, which is half as wide as the others.
        let points = totals.points(250_000);
        let counts: Vec<_> = points.iter().map(|point| point.figures.count).collect();
        assert_eq!(counts, [1, 1, 2]);
        assert_eq!(
            (points[2].from_s, points[2].until_s, points[2].figures.ops_s),
            (0.2, 0.25, 40.0)
        );
        let (second, troubles) = totals.second(0);
        assert_eq!((second.count, troubles), (4, 1));
        assert_eq!(totals.second(0).0.count, 0, "each second is reported once");
    }

    fn totals_add(totals: &mut Totals, slice: Option<Slice>) {
        slice.into_iter().for_each(|slice| totals.add(slice));
    }

    #[test]
    fn long_runs_have_wider_points() {
        for (secs, points, width_s) in [(5, 50, 0.1), (60, 120, 0.5), (3600, 72, 50.0)] {
            let measured_us = secs * 1_000_000;
            let got = Totals::new(measured_us).points(measured_us);
            assert_eq!((got.len(), got[0].until_s), (points, width_s));
        }
    }
}
