//! The contents of files before an import: series with their times, as a dry run shows them.

use std::collections::{BTreeMap, BTreeSet, HashMap, btree_map::Entry};

use foldhash::fast::RandomState;
use serde_json::{Value, json};

use super::parcel::Parcel;
use crate::{
    cli::{screen, table},
    model::{Kind, SeriesInfo, SeriesKey, UnixMillis, with_noun},
};

/// The maximum number of metrics in the answer.
const METRICS_SHOWN: usize = 100;
/// The maximum number of values of a tag in the answer.
const VALUES_SHOWN: usize = 3;

/// A series of the files.
#[derive(Debug)]
pub(super) struct SurveyedSeries {
    pub(super) info: SeriesInfo,
    /// The time of the first sample.
    pub(super) first: UnixMillis,
    /// The time of the last sample.
    pub(super) last: UnixMillis,
    samples: u64,
}

/// The series of the files with their times.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) series: Vec<SurveyedSeries>,
    by_key: HashMap<SeriesKey, usize, RandomState>,
    /// The index of the current file.
    file: usize,
    /// The index in `series` of each ref of the current file.
    refs: Vec<usize>,
}

/// The contents of the files for one metric.
#[derive(Debug)]
struct Metric {
    kind: Kind,
    series: u64,
    samples: u64,
    first: UnixMillis,
    last: UnixMillis,
    tags: BTreeMap<String, BTreeSet<String>>,
}

impl Survey {
    /// Adds a batch.
    pub(super) fn add(&mut self, parcel: &Parcel) {
        if parcel.file != self.file {
            self.file = parcel.file;
            self.refs.clear();
        }
        for info in &parcel.numbered.new {
            let next = self.series.len();
            let index = *self.by_key.entry(info.key.clone()).or_insert(next);
            if index == next {
                let (first, last) = (UnixMillis(i64::MAX), UnixMillis(i64::MIN));
                self.series.push(SurveyedSeries { info: info.clone(), first, last, samples: 0 });
            }
            self.refs.push(index);
        }
        let batch = &parcel.numbered.batch;
        for (reference, at) in batch.refs.iter().zip(&batch.times) {
            let at = UnixMillis(*at);
            let index = self.refs.get(*reference as usize).copied();
            if let Some(series) = index.and_then(|index| self.series.get_mut(index)) {
                (series.first, series.last) = (series.first.min(at), series.last.max(at));
                series.samples += 1;
            }
        }
    }

    fn metrics(&self) -> BTreeMap<&str, Metric> {
        let mut metrics: BTreeMap<&str, Metric> = BTreeMap::new();
        for series in &self.series {
            let SurveyedSeries { info, first, last, samples } = series;
            let metric = match metrics.entry(info.key.metric()) {
                Entry::Occupied(metric) => metric.into_mut(),
                Entry::Vacant(vacant) => vacant.insert(Metric {
                    kind: info.kind,
                    series: 0,
                    samples: 0,
                    first: *first,
                    last: *last,
                    tags: BTreeMap::new(),
                }),
            };
            metric.series += 1;
            metric.samples += samples;
            (metric.first, metric.last) = (metric.first.min(*first), metric.last.max(*last));
            for (name, value) in info.key.tags() {
                metric.tags.entry(name.to_owned()).or_default().insert(value.to_owned());
            }
        }
        metrics
    }

    /// Returns the metrics as a table.
    pub(super) fn table(&self) -> String {
        let metrics = self.metrics();
        let header = ["metric", "kind", "series", "samples", "from", "to", "tags"];
        let mut shown = table::table(header.map(str::to_owned));
        for (name, metric) in metrics.iter().take(METRICS_SHOWN) {
            let tags: Vec<_> =
                metric.tags.iter().map(|(tag, values)| values_of(tag, values)).collect();
            shown.add_row([
                screen::text(name),
                metric.kind.to_string(),
                metric.series.to_string(),
                metric.samples.to_string(),
                metric.first.to_string(),
                metric.last.to_string(),
                tags.join("\n"),
            ]);
        }
        match metrics.len().saturating_sub(METRICS_SHOWN) {
            0 => shown.to_string(),
            more => format!("{shown}\nand {}", with_noun(more, "more metric")),
        }
    }

    /// Returns the metrics as JSON.
    pub(super) fn json(&self) -> Value {
        let metrics = self.metrics();
        let shown = metrics.iter().take(METRICS_SHOWN).map(|(name, metric)| {
            let tags = metric.tags.iter().map(|(tag, values)| {
                let first: Vec<_> = values.iter().take(VALUES_SHOWN).collect();
                (tag.clone(), json!({ "values": values.len(), "first": first }))
            });
            json!({
                "metric": name, "kind": metric.kind.to_string(), "series": metric.series,
                "samples": metric.samples, "start": metric.first.0, "end": metric.last.0,
                "tags": tags.collect::<serde_json::Map<_, _>>(),
            })
        });
        shown.collect()
    }
}

/// Formats a tag with some of its values: `room (2): lab, office`.
fn values_of(tag: &str, values: &BTreeSet<String>) -> String {
    let first: Vec<_> = values.iter().take(VALUES_SHOWN).map(String::as_str).collect();
    let more = if values.len() > VALUES_SHOWN { ", ..." } else { "" };
    screen::text(&format!("{tag} ({}): {}{more}", values.len(), first.join(", ")))
}
