//! Writes at most one log line a second of each kind that strangers, single clients, looping peers or a slow disk can cause.
//!
//! Such events have the target [`STRANGERS`]. Events of the same source line whose texts differ by numbers and quoted words alone
//! are of one kind.

use crate::model::STRANGERS;
use crate::model::put_in_one_line;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Write};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

const PAUSE: Duration = Duration::from_secs(1);
/// Number of kinds that are distinguished; all others share one.
const KINDS_MAX: usize = 256;
/// A kind that has not been seen for so long makes room for another one.
const KEPT: Duration = Duration::from_secs(60);

/// The fields of an event whose texts decide its kind.
const DECIDING: [&str; 3] = ["message", "reason", "error"];

thread_local! {
    /// How many events were left out before the one that this thread is about to write.
    static LEFT_OUT: Cell<u64> = const { Cell::new(0) };
}

/// Decides which events are written.
#[derive(Default)]
pub struct LogPace {
    kinds: Mutex<Kinds>,
}

#[derive(Default)]
struct Kinds(BTreeMap<u64, Kind>);

struct Kind {
    written: Instant,
    /// When the last event of this kind came, whether it was written or left out.
    seen: Instant,
    left_out: u64,
}

impl Kinds {
    /// How many events of a kind were left out since the last one that was written; `None`: this one is left out too.
    fn admit(&mut self, kind: u64, now: Instant) -> Option<u64> {
        let kind = if self.has_room_for(kind, now) { kind } else { 0 };
        let Some(before) = self.0.get_mut(&kind) else {
            self.0.insert(kind, Kind { written: now, seen: now, left_out: 0 });
            return Some(0);
        };
        before.seen = now;
        if now.saturating_duration_since(before.written) < PAUSE {
            before.left_out += 1;
            return None;
        }
        before.written = now;
        Some(std::mem::take(&mut before.left_out))
    }

    fn has_room_for(&mut self, kind: u64, now: Instant) -> bool {
        if self.0.contains_key(&kind) || self.0.len() < KINDS_MAX {
            return true;
        }
        self.0.retain(|_, kind| now.saturating_duration_since(kind.seen) < KEPT);
        self.0.len() < KINDS_MAX
    }
}

impl<S: Subscriber> Layer<S> for LogPace {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        if event.metadata().target() != STRANGERS {
            return true;
        }
        let mut shape = Shape::default();
        event.metadata().callsite().hash(&mut shape.hasher);
        event.record(&mut shape);
        let admitted =
            self.kinds.lock().expect("a panic aborts").admit(shape.hasher.finish(), Instant::now());
        LEFT_OUT.set(admitted.unwrap_or(0));
        admitted.is_some()
    }
}

/// Hashes the words of an event's text and of its reason, without numbers and without text between quotes, which a stranger
/// chooses. A text may come in pieces.
#[derive(Default)]
struct Shape {
    hasher: DefaultHasher,
    place: Position,
}

/// Where in a text the next character is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Position {
    #[default]
    Outside,
    /// After a digit of a number, whose other digits may be letters.
    InNumber,
    InQuotes,
    /// Between quotes, after a backslash.
    Escaped,
}

impl Position {
    fn after(self, c: char) -> Self {
        match (self, c) {
            (Self::InQuotes, '\\') => Self::Escaped,
            (Self::InQuotes, '"') => Self::Outside,
            (Self::InQuotes | Self::Escaped, _) => Self::InQuotes,
            (Self::Outside | Self::InNumber, '"') => Self::InQuotes,
            (Self::Outside, c) if c.is_numeric() => Self::InNumber,
            (Self::InNumber, c) if c.is_alphanumeric() => Self::InNumber,
            (Self::Outside | Self::InNumber, _) => Self::Outside,
        }
    }
}

impl Write for Shape {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            self.place = self.place.after(c);
            if self.place == Position::Outside && c.is_alphabetic() {
                c.hash(&mut self.hasher);
            }
        }
        Ok(())
    }
}

impl Visit for Shape {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if DECIDING.contains(&field.name()) {
            self.place = Position::Outside;
            let _infallible = write!(self, "{value:?}");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if DECIDING.contains(&field.name()) {
            self.place = Position::Outside;
            let _infallible = self.write_str(value);
        }
    }
}

/// A format that also says how many lines like this one were left out.
pub struct Counted<F> {
    pub format: F,
    pub is_json: bool,
}

impl<S, N, F> FormatEvent<S, N> for Counted<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let left_out = LEFT_OUT.take();
        if left_out == 0 && (self.is_json || writer.has_ansi_escapes()) {
            return self.format.format_event(context, writer, event);
        }
        let mut line = String::new();
        self.format.format_event(context, Writer::new(&mut line), event)?;
        if !self.is_json {
            line = in_one_line(&line);
        }
        if left_out > 0 {
            line = with_count(&line, left_out, self.is_json);
        }
        writer.write_str(&line)
    }
}

/// A value with a line feed in it must not look like a line of its own.
fn in_one_line(line: &str) -> String {
    let mut whole = String::new();
    let line = line.strip_suffix('\n').unwrap_or(line);
    put_in_one_line(&mut whole, line, &['\t']).expect("a string takes any text");
    whole.push('\n');
    whole
}

fn with_count(line: &str, left_out: u64, is_json: bool) -> String {
    let line = line.trim_end_matches('\n');
    match line.strip_suffix('}') {
        Some(open) if is_json => format!("{open},\"left_out\":{left_out}}}\n"),
        _ => format!("{line} left_out={left_out}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn kind_is_admitted_once_a_second_with_what_was_left_out() {
        let (mut kinds, start) = (Kinds::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(kinds.admit(7, at(0)), Some(0));
        assert_eq!(kinds.admit(7, at(500)), None);
        assert_eq!(kinds.admit(8, at(500)), Some(0), "another kind");
        assert_eq!(kinds.admit(7, at(999)), None);
        assert_eq!(kinds.admit(7, at(1000)), Some(2));
        assert_eq!(kinds.admit(7, at(2500)), Some(0));
        for kind in 1000..2000 {
            kinds.admit(kind, at(2500));
        }
        assert!(kinds.0.len() <= KINDS_MAX + 1, "strangers can't cause any number of kinds");
    }

    #[test]
    fn texts_that_differ_by_numbers_and_quoted_words_are_of_one_kind() {
        let shape = |text: &str| {
            let mut shape = Shape::default();
            shape.write_str(text).unwrap();
            shape.hasher.finish()
        };
        let frame = |len: u32| shape(&format!("connection closed: frame of {len} bytes"));
        assert_eq!(frame(5), frame(1_000_000));
        assert_eq!(shape("failed under \"a\""), shape("failed under \"bcd\""));
        assert_ne!(frame(5), shape("connection closed: undecodable request header"));
        let acknowledged = |zxid: u64| shape(&format!("acknowledges {zxid:#x} in vain"));
        assert_eq!(acknowledged(0x1ab), acknowledged(0x2cd), "a hexadecimal number has letters");
        assert_ne!(shape("acknowledges 0x1ab in vain"), shape("acknowledges 0x1ab"));
        let scheme = |scheme: &str| shape(&format!("scheme {scheme:?} failed"));
        assert_eq!(scheme("a"), scheme("a\"b"), "an escaped quote is part of the quoted text");
        assert_eq!(scheme("a"), scheme("\\"), "an escaped backslash escapes nothing");
    }

    #[test]
    fn events_of_one_line_with_other_reasons_or_errors_are_of_other_kinds() {
        let written = Written::default();
        let layers = tracing_subscriber::registry().with(written.clone());
        let subscriber = layers.with(LogPace::default());
        tracing::subscriber::with_default(subscriber, || {
            let refuse = |peer: u32, reason: &str| {
                tracing::warn!(target: STRANGERS, peer, %reason, "closed");
            };
            let fail = |peer: u32, error: &str| {
                tracing::warn!(target: STRANGERS, peer, error, "closed");
            };
            for peer in 0..3 {
                refuse(peer, "it speaks HTTP");
                refuse(peer, "it speaks TLS");
                fail(peer, "a reset");
                fail(peer, "a timeout");
            }
        });
        assert_eq!(written.0.load(Ordering::Relaxed), 4);
    }

    /// Counts the events that are written.
    #[derive(Clone, Default)]
    struct Written(Arc<AtomicU32>);

    impl<S: Subscriber> Layer<S> for Written {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn kinds_that_were_not_seen_for_a_minute_make_room_for_others() {
        let (mut kinds, start) = (Kinds::default(), Instant::now());
        let at = |s| start + Duration::from_secs(s);
        for kind in 1..=KINDS_MAX as u64 {
            assert_eq!(kinds.admit(kind, at(0)), Some(0));
        }
        assert_eq!(kinds.admit(1000, at(1)), Some(0), "the first of those that share a kind");
        assert_eq!(kinds.admit(1001, at(1)), None);
        kinds.admit(1, at(30));
        assert_eq!(kinds.admit(1002, at(70)), Some(0));
        assert_eq!(kinds.admit(1003, at(70)), Some(0), "each has a kind of its own again");
        assert_eq!(kinds.admit(1, at(70)), Some(0));
        assert_eq!(kinds.admit(1, at(70)), None, "a kind seen in the last minute is kept");
    }

    #[test]
    fn values_with_line_feeds_stay_in_their_line() {
        assert_eq!(
            in_one_line("refused reason=a\nERROR b\tc\n"),
            "refused reason=a\\u000aERROR b\tc\n"
        );
        assert_eq!(in_one_line("x"), "x\n");
    }

    #[test]
    fn count_stands_at_the_end_of_the_line() {
        assert_eq!(with_count("refused peer=1\n", 3, false), "refused peer=1 left_out=3\n");
        assert_eq!(with_count("{\"peer\":1}\n", 3, true), "{\"peer\":1,\"left_out\":3}\n");
    }
}
