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
        time::{FormatTime, SystemTime},
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

/// The number of lines of one call site that are written within [`PERIOD`].
const LINES_MAX: u64 = 100;
const PERIOD: Duration = Duration::from_secs(60);

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Returns the number of lines dropped since the start.
pub(super) fn log_lines_dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// The two formats with the limit.
pub(super) struct LimitedFormat {
    text: Format<Full>,
    json: Format<Json>,
    /// True for JSON.
    is_json: Arc<AtomicBool>,
    since: Stopwatch,
    call_sites: Mutex<CallSites<Identifier>>,
}

impl LimitedFormat {
    pub(super) fn new(is_json: Arc<AtomicBool>) -> Self {
        Self {
            text: Format::default(),
            json: Format::default().json().flatten_event(true),
            is_json,
            since: Stopwatch::start(),
            call_sites: Mutex::new(CallSites::default()),
        }
    }
}

impl<S, N> FormatEvent<S, N> for LimitedFormat
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
                self.call_sites.lock().decide(event.metadata().callsite(), self.since.elapsed());
            match (verdict, is_json) {
                (LineDecision::Drop, _) => {
                    DROPPED.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                (LineDecision::Write { dropped: 0 }, _) => {}
                (LineDecision::Write { dropped }, false) => {
                    SystemTime.format_time(&mut writer)?;
                    writeln!(writer, "  WARN dropped lines like the next one: {dropped}")?;
                }
                (LineDecision::Write { dropped }, true) => {
                    let message = "lines like the next one were dropped";
                    writer.write_str(r#"{"timestamp":""#)?;
                    SystemTime.format_time(&mut writer)?;
                    writeln!(
                        writer,
                        r#"","level":"WARN","message":"{message}","lines":{dropped}}}"#
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
enum LineDecision {
    /// The line is written, after `dropped` lines were dropped.
    Write {
        dropped: u64,
    },
    Drop,
}

/// The lines of each call site; the code has a limited number of call sites that log.
struct CallSites<K>(HashMap<K, Period>);

/// The number of lines of one call site since a time.
struct Period {
    since: Duration,
    lines: u64,
}

impl<K> Default for CallSites<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Hash + Eq> CallSites<K> {
    fn decide(&mut self, call_site: K, now: Duration) -> LineDecision {
        let period = self.0.entry(call_site).or_insert(Period { since: now, lines: 0 });
        let mut dropped = 0;
        if now.saturating_sub(period.since) >= PERIOD {
            dropped = period.lines.saturating_sub(LINES_MAX);
            *period = Period { since: now, lines: 0 };
        }
        period.lines += 1;
        if period.lines > LINES_MAX { LineDecision::Drop } else { LineDecision::Write { dropped } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_of_a_call_site_are_written_and_the_others_counted() {
        let mut call_sites = CallSites::default();
        let second = Duration::from_secs;
        for line in 0..LINES_MAX + 7 {
            let expected = if line < LINES_MAX {
                LineDecision::Write { dropped: 0 }
            } else {
                LineDecision::Drop
            };
            assert_eq!(call_sites.decide("a", second(line / 10)), expected, "{line}");
        }
        assert_eq!(call_sites.decide("b", second(30)), LineDecision::Write { dropped: 0 });
        assert_eq!(call_sites.decide("a", second(60)), LineDecision::Write { dropped: 7 });
        assert_eq!(call_sites.decide("a", second(61)), LineDecision::Write { dropped: 0 });
    }
}
