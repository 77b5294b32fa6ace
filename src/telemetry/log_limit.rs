//! A limit for repeated log lines, which clients can cause at will and which must not fill the
//! disk. Dropped lines are counted, and the next written line reports their number.
//!
//! Must never know: the content of lines.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tracing::{Event, Level, Subscriber, callsite::Identifier};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{Format, Full, Json, Writer},
    },
    registry::LookupSpan,
};

use crate::clock::Stopwatch;

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// The number of lines of one place in the code that are written within [`PERIOD`].
const LINES_MAX: u64 = 100;
const PERIOD: Duration = Duration::from_secs(60);

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Returns the number of lines dropped since the start.
pub(super) fn log_lines_dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// The two formats with the limit.
pub(super) struct Limited {
    text: Format<Full>,
    json: Format<Json>,
    /// True for JSON.
    is_json: Arc<AtomicBool>,
    since: Stopwatch,
    places: Mutex<Places<Identifier>>,
}

impl Limited {
    pub(super) fn new(is_json: Arc<AtomicBool>) -> Self {
        Self {
            text: Format::default(),
            json: Format::default().json().flatten_event(true),
            is_json,
            since: Stopwatch::start(),
            places: Mutex::new(Places::default()),
        }
    }
}

impl<S, N> FormatEvent<S, N> for Limited
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let is_json = self.is_json.load(Ordering::Relaxed);
        // Debug output is never limited.
        if *event.metadata().level() <= Level::INFO {
            let verdict =
                self.places.lock().take(event.metadata().callsite(), self.since.elapsed());
            match (verdict, is_json) {
                (Verdict::Drop, _) => {
                    DROPPED.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                (Verdict::Write { dropped: 0 }, _) => {}
                (Verdict::Write { dropped }, false) => {
                    writeln!(writer, "dropped lines like the next one: {dropped}")?;
                }
                (Verdict::Write { dropped }, true) => {
                    let message = "lines like the next one were dropped";
                    writeln!(
                        writer,
                        r#"{{"level":"WARN","message":"{message}","lines":{dropped}}}"#
                    )?;
                }
            }
        }
        if is_json {
            self.json.format_event(context, writer, event)
        } else {
            self.text.format_event(context, writer, event)
        }
    }
}

/// The decision about a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The line is written, after `dropped` lines were dropped.
    Write {
        dropped: u64,
    },
    Drop,
}

/// The lines of each place in the code; the code has a limited number of places that log.
struct Places<K>(HashMap<K, Period>);

/// The number of lines of one place since a time.
struct Period {
    since: Duration,
    lines: u64,
}

impl<K> Default for Places<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Hash + Eq> Places<K> {
    fn take(&mut self, place: K, now: Duration) -> Verdict {
        let period = self.0.entry(place).or_insert(Period { since: now, lines: 0 });
        let mut dropped = 0;
        if now.saturating_sub(period.since) >= PERIOD {
            dropped = period.lines.saturating_sub(LINES_MAX);
            *period = Period { since: now, lines: 0 };
        }
        period.lines += 1;
        if period.lines > LINES_MAX { Verdict::Drop } else { Verdict::Write { dropped } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_of_a_place_are_written_and_the_others_counted() {
        let mut places = Places::default();
        let second = Duration::from_secs;
        for line in 0..LINES_MAX + 7 {
            let expected =
                if line < LINES_MAX { Verdict::Write { dropped: 0 } } else { Verdict::Drop };
            assert_eq!(places.take("a", second(line / 10)), expected, "{line}");
        }
        assert_eq!(places.take("b", second(30)), Verdict::Write { dropped: 0 });
        assert_eq!(places.take("a", second(60)), Verdict::Write { dropped: 7 });
        assert_eq!(places.take("a", second(61)), Verdict::Write { dropped: 0 });
    }
}
