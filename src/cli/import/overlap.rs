//! Series of which the daemon has samples at times at which the files have some, too: gauges and
//! deltas would count twice there.

use serde_json::json;

use super::survey::{Survey, Surveyed};
use crate::{
    cli::{
        http::{Daemon, read},
        table,
    },
    model::{UnixMillis, counted},
    query::{HELD_SERIES_MAX, HeldAnswer, SeriesEntry},
};

/// Series that are shown.
const SHOWN_MAX: usize = 5;

/// The samples that files and daemon have in common.
#[derive(Debug, Default)]
pub(super) struct Overlap {
    series: u64,
    shown: String,
    /// The first sample of the daemon that some file reaches, and the last one.
    held: Option<(UnixMillis, UnixMillis)>,
    /// Whether the files have samples before that, and behind it.
    is_around: (bool, bool),
}

impl Overlap {
    /// Asks the daemon.
    pub(super) fn find(daemon: &Daemon, survey: &Survey) -> anyhow::Result<Self> {
        let mut overlap = Self::default();
        for part in survey.series.chunks(HELD_SERIES_MAX) {
            let asked: Vec<_> = part.iter().map(question).collect();
            let answer = daemon.post_json("held", &json!({ "series": asked }))?;
            let HeldAnswer { held } = read(&answer)?;
            for (own, held) in part.iter().zip(held) {
                if let Some((first, last)) = held {
                    overlap.add(own, UnixMillis(first), UnixMillis(last));
                }
            }
        }
        if let Some((first, last)) = overlap.held {
            let is_before = |own: &Surveyed| own.first < first;
            let is_behind = |own: &Surveyed| own.last > last;
            overlap.is_around =
                (survey.series.iter().any(is_before), survey.series.iter().any(is_behind));
        }
        Ok(overlap)
    }

    fn add(&mut self, own: &Surveyed, first: UnixMillis, last: UnixMillis) {
        self.series += 1;
        let (earliest, latest) = self.held.unwrap_or((first, last));
        self.held = Some((earliest.min(first), latest.max(last)));
        if self.series as usize <= SHOWN_MAX {
            let entry = SeriesEntry::new(&own.info);
            let (name, from, to) = (table::name(&entry), own.first, own.last);
            let line = format!(
                "\n  {name}: the daemon has samples from {first} to {last}, the files from {from} to \
                 {to}"
            );
            self.shown += &line;
        }
    }

    /// The overlap and its remedy; `None` when nothing overlaps.
    pub(super) fn message(&self) -> Option<String> {
        let (first, last) = self.held?;
        let mut shown = self.shown.clone();
        if self.series as usize > SHOWN_MAX {
            shown.push_str("\n  ...");
        }
        let mut cuts = Vec::new();
        if self.is_around.0 {
            cuts.push(format!("--max-time {first}"));
        }
        if self.is_around.1 {
            cuts.push(format!("--min-time {}", last.plus(1)));
        }
        let cuts = match &cuts[..] {
            [] => String::new(),
            some => format!("; {} imports what is not there", some.join(" or ")),
        };
        let series = counted(self.series, "series");
        Some(format!(
            "the daemon has samples of {series} within the files' times already, and both would \
             count:{shown}\n--overlap imports all of them all the same{cuts}"
        ))
    }
}

fn question(own: &Surveyed) -> serde_json::Value {
    let entry = SeriesEntry::new(&own.info);
    json!({ "metric": entry.metric, "tags": entry.tags, "start": own.first.0, "end": own.last.0 })
}
