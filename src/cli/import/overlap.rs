//! The overlap of files with the daemon's data: series with samples at the same times, where gauges
//! and deltas would be counted twice.

use serde_json::json;

use super::survey::{Survey, SurveyedSeries};
use crate::{
    cli::{
        http::{Daemon, read},
        table,
    },
    model::{UnixMillis, with_noun},
    query::{COVERED_SERIES_MAX, CoverageAnswer, SeriesEntry},
};

/// The maximum number of series in the message.
const SHOWN_MAX: usize = 5;

/// The samples that are both in the files and in the daemon.
#[derive(Debug, Default)]
pub(super) struct Overlap {
    series: u64,
    shown: String,
    /// The times of the first and the last overlapping sample of the daemon.
    held: Option<(UnixMillis, UnixMillis)>,
    /// True when the files have samples before the first time, and when they have samples after the
    /// last time.
    exceeds: (bool, bool),
}

impl Overlap {
    /// Asks the daemon for its samples at the times of the files.
    pub(super) fn find(daemon: &Daemon, survey: &Survey) -> anyhow::Result<Self> {
        let mut overlap = Self::default();
        for part in survey.series.chunks(COVERED_SERIES_MAX) {
            let questions: Vec<_> = part.iter().map(question).collect();
            let answer = daemon.post_json("held", &json!({ "series": questions }))?;
            let CoverageAnswer { held } = read(&answer)?;
            for (surveyed, held) in part.iter().zip(held) {
                if let Some((first, last)) = held {
                    overlap.add(surveyed, UnixMillis(first), UnixMillis(last));
                }
            }
        }
        if let Some((first, last)) = overlap.held {
            let is_before = |surveyed: &SurveyedSeries| surveyed.first < first;
            let is_after = |surveyed: &SurveyedSeries| surveyed.last > last;
            overlap.exceeds =
                (survey.series.iter().any(is_before), survey.series.iter().any(is_after));
        }
        Ok(overlap)
    }

    fn add(&mut self, surveyed: &SurveyedSeries, first: UnixMillis, last: UnixMillis) {
        self.series += 1;
        let (earliest, latest) = self.held.unwrap_or((first, last));
        self.held = Some((earliest.min(first), latest.max(last)));
        if self.series as usize <= SHOWN_MAX {
            let entry = SeriesEntry::new(&surveyed.info);
            let (name, from, to) = (table::name(&entry), surveyed.first, surveyed.last);
            let line = format!(
                "\n  {name}: the daemon has samples from {first} to {last}, the files from {from} to \
                 {to}"
            );
            self.shown += &line;
        }
    }

    /// Returns the overlap and its remedies; `None` without an overlap.
    pub(super) fn message(&self) -> Option<String> {
        let (first, last) = self.held?;
        let mut shown = self.shown.clone();
        if self.series as usize > SHOWN_MAX {
            shown.push_str("\n  ...");
        }
        let mut cuts = Vec::new();
        if self.exceeds.0 {
            cuts.push(format!("--max-time {first}"));
        }
        if self.exceeds.1 {
            cuts.push(format!("--min-time {}", last.plus(1)));
        }
        let cuts = match &cuts[..] {
            [] => String::new(),
            options => format!("; {} imports only the missing samples", options.join(" or ")),
        };
        let series = with_noun(self.series, "series");
        Some(format!(
            "the daemon already has samples of {series} at the times of the files, and both would \
             count:{shown}\n--overlap imports all samples anyway{cuts}"
        ))
    }
}

fn question(surveyed: &SurveyedSeries) -> serde_json::Value {
    let entry = SeriesEntry::new(&surveyed.info);
    json!({ "metric": entry.metric, "tags": entry.tags, "start": surveyed.first.0, "end": surveyed.last.0 })
}
