//! The conversion of responses to samples. Names and labels are parsed once per series, values in
//! each response.
//!
//! Must never know: the transport of responses.

mod histograms;
mod labels;

use std::{
    collections::{HashMap, hash_map::Entry},
    io::Read,
    sync::Arc,
};

use granary_agent_kit::{KnownReading, Series, relabel::Labels};
use granary_exposition::{Families, Format, Sample, Type, read_from};
use granary_histogram::{Histogram, ResetHint};
use granary_protocol::{Kind, STALE_MARKER};
use xxhash_rust::xxh3::xxh3_128;

use self::labels::{TargetContext, add_missing, pairs};
use crate::{
    config::Job,
    memory::{Lease, Memory, Samples},
    target::Target,
};

/// The maximum number of series of a target, even if its settings allow more.
const SERIES_MAX: usize = 200_000;
/// The memory of an entry in the table of series, without the series itself.
const KNOWN_SERIES_BYTES: usize = 2 * size_of::<(u128, SeriesState)>();

/// The recent series of a target.
#[derive(Debug)]
pub(crate) struct TargetSeries {
    /// The memory of the series.
    lease: Lease,
    memory: Arc<Memory>,
    /// Series by the hash of their text.
    series: HashMap<u128, SeriesState>,
    round: u64,
    /// The series of [`Report`], in the order of its values.
    reports: Vec<Arc<Series>>,
}

#[derive(Debug)]
struct SeriesState {
    /// `None` when rules drop the series.
    series: Option<Arc<Series>>,
    /// The type that the last response declared for the series. When it changes, the kind of the
    /// series may change.
    declared_type: Type,
    /// The sort of histograms that the series has, or `None` for numbers.
    histograms: Option<Kind>,
    /// The number of the last response with this series.
    round: u64,
    /// True when a response with this series was accepted. Only such a series has to end.
    is_sent: bool,
    /// True when the target provided a timestamp. Such a series does not end when a response lacks
    /// it.
    is_timed: bool,
}

impl SeriesState {
    fn bytes(&self) -> usize {
        KNOWN_SERIES_BYTES + self.series.as_ref().map_or(0, |series| series.bytes())
    }
}

/// The result of a response.
#[derive(Debug)]
pub(crate) struct ConversionResult {
    pub(crate) samples: Samples,
    /// Samples of the response.
    pub(crate) samples_scraped: u64,
    /// Samples after relabeling.
    pub(crate) samples_kept: u64,
    /// Series that the previous response did not contain.
    pub(crate) series_added: u64,
}

/// The outcome of a scrape, for its reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Report {
    pub(crate) is_up: bool,
    pub(crate) seconds: f64,
    pub(crate) samples_scraped: u64,
    pub(crate) samples_kept: u64,
    pub(crate) series_added: u64,
}

/// The metrics of a scrape's report, in the order of [`Report`]'s fields.
const REPORTS: [(&str, &str); 5] = [
    ("up", ""),
    ("scrape_duration_seconds", "seconds"),
    ("scrape_samples_scraped", "samples"),
    ("scrape_samples_post_metric_relabeling", "samples"),
    ("scrape_series_added", "series"),
];

impl TargetSeries {
    /// Creates an empty table.
    pub(crate) fn new(memory: &Arc<Memory>) -> Self {
        let (series, reports) = (HashMap::new(), Vec::new());
        Self { lease: memory.lease(), memory: Arc::clone(memory), series, round: 0, reports }
    }

    /// Parses a response while it arrives. Series that are missing in the response end.
    ///
    /// # Errors
    /// The response is invalid or exceeds a limit. Its samples are discarded, and the caller must
    /// end all series. The error contains the number of parsed samples.
    pub(crate) fn convert(
        &mut self,
        (job, target): (&Job, &Target),
        external_labels: &Labels,
        (answer, format): (&mut dyn Read, Format),
        time_ms: i64,
    ) -> Result<ConversionResult, (u64, String)> {
        self.round += 1;
        let mut result = ConversionResult {
            samples: self.memory.samples(),
            samples_scraped: 0,
            samples_kept: 0,
            series_added: 0,
        };
        let context = TargetContext { job, target, external_labels };
        let parse_lease = self.memory.lease();
        let outcome = read_from(
            answer,
            (format, job.native_histograms()),
            &mut |bytes| parse_lease.reserve(bytes),
            |sample, families| self.sample(&context, sample, families, time_ms, &mut result),
        );
        outcome.map_err(|fault| (result.samples_scraped, fault.to_string()))?;
        result.samples_kept = result.samples.readings.len() as u64;
        self.end(time_ms, |series_state, round| series_state.round == round, &mut result.samples);
        Ok(result)
    }

    /// Ends all series, because the scrape failed or the target was removed.
    pub(crate) fn end_all(&mut self, time_ms: i64) -> Samples {
        let mut samples = self.memory.samples();
        self.end(time_ms, |_, _| false, &mut samples);
        samples
    }

    /// Adds the report of a scrape.
    pub(crate) fn report(
        &mut self,
        target: &Target,
        external_labels: &Labels,
        report: Report,
        time_ms: i64,
        samples: &mut Samples,
    ) {
        let Report { is_up, seconds, samples_scraped, samples_kept, series_added } = report;
        let values = [
            f64::from(u8::from(is_up)),
            seconds,
            samples_scraped as f64,
            samples_kept as f64,
            series_added as f64,
        ];
        if self.reports.is_empty() {
            let series = |(metric, unit): &(&str, &str)| {
                let mut labels = target.labels.clone();
                add_missing(&mut labels, external_labels);
                Arc::new(Series::new(*metric, pairs(&labels), Kind::Gauge, *unit))
            };
            self.reports = REPORTS.iter().map(series).collect();
        }
        for (series, value) in self.reports.iter().zip(values) {
            let series = Arc::clone(series);
            let (start_ms, histogram) = (None, None);
            samples.push_always(KnownReading { series, value, time_ms, start_ms, histogram });
        }
    }

    /// Ends the report series of a removed target.
    pub(crate) fn end_reports(&self, time_ms: i64, samples: &mut Samples) {
        self.reports.iter().for_each(|series| samples.push_always(stale_reading(series, time_ms)));
    }

    fn sample(
        &mut self,
        context: &TargetContext<'_>,
        sample: Sample<'_>,
        families: &Families,
        time_ms: i64,
        result: &mut ConversionResult,
    ) -> Result<(), String> {
        result.samples_scraped += 1;
        let hash = xxh3_128(sample.series);
        let histograms = sample.histogram.map(kind_of);
        let target_time_ms = sample.time_ms.filter(|_| context.job.honor_timestamps);
        let round = self.round;
        let is_full = self.series.len() >= SERIES_MAX;
        let series_state = match self.series.entry(hash) {
            Entry::Occupied(series_state) => series_state.into_mut(),
            Entry::Vacant(_) if is_full => {
                return Err(format!("more than {SERIES_MAX} series"));
            }
            Entry::Vacant(vacant) => {
                let series =
                    context.parse_series(sample.series, histograms, families)?.map(Arc::new);
                let declared_type = families.last_type();
                let series_state = SeriesState {
                    series,
                    declared_type,
                    histograms,
                    round: 0,
                    is_sent: false,
                    is_timed: false,
                };
                self.lease.reserve(series_state.bytes())?;
                vacant.insert(series_state)
            }
        };
        let found = (families.last_type(), histograms);
        if (series_state.declared_type, series_state.histograms) != found {
            (series_state.declared_type, series_state.histograms) = found;
            let series = context.parse_series(sample.series, histograms, families)?;
            let kind = |series: &Series| series.kind();
            if series.as_ref().map(kind) != series_state.series.as_deref().map(kind) {
                series_state.series = series.map(Arc::new);
            }
        }
        let Some(series) = &series_state.series else {
            series_state.round = round;
            return Ok(());
        };
        if series_state.round == round && target_time_ms.is_none() {
            // Only the first of duplicate lines counts, as in Prometheus.
            return Ok(());
        }
        result.series_added += u64::from(!series_state.is_sent && series_state.round != round);
        series_state.round = round;
        series_state.is_timed = target_time_ms.is_some() && !context.job.track_timestamps_staleness;
        let limit = context.job.sample_limit;
        if limit > 0 && result.samples.readings.len() as u64 >= limit {
            return Err(format!("more samples than the sample_limit of {limit}"));
        }
        let limited = |histogram| context.job.limited(histogram).map(Box::new);
        result.samples.push(KnownReading {
            series: Arc::clone(series),
            value: sample.value,
            time_ms: target_time_ms.unwrap_or(time_ms),
            start_ms: sample.start_ms,
            histogram: sample.histogram.map(limited).transpose()?,
        })
    }

    /// Removes and ends the series that `is_kept` rejects.
    fn end(
        &mut self,
        time_ms: i64,
        is_kept: impl Fn(&SeriesState, u64) -> bool,
        samples: &mut Samples,
    ) {
        let (round, lease) = (self.round, &self.lease);
        self.series.retain(|_, series_state| {
            let is_kept = is_kept(series_state, round);
            if !is_kept {
                let ends = series_state
                    .series
                    .as_ref()
                    .filter(|_| series_state.is_sent && !series_state.is_timed);
                match ends {
                    Some(series) => {
                        samples.push_last(
                            stale_reading(series, time_ms),
                            (lease, series_state.bytes()),
                        );
                    }
                    None => lease.release(series_state.bytes()),
                }
            }
            series_state.is_sent = is_kept;
            is_kept
        });
        if self.series.capacity() > 4 * self.series.len() {
            self.series.shrink_to_fit();
        }
    }
}

/// Returns the kind of a series of such histograms.
fn kind_of(histogram: &Histogram) -> Kind {
    if histogram.hint == ResetHint::Gauge { Kind::GaugeHistogram } else { Kind::Histogram }
}

/// Returns the reading that ends a series. The kit makes it a histogram where the series has some.
fn stale_reading(series: &Arc<Series>, time_ms: i64) -> KnownReading {
    let (series, value) = (Arc::clone(series), STALE_MARKER);
    KnownReading { series, value, time_ms, start_ms: None, histogram: None }
}

#[cfg(test)]
mod tests;
