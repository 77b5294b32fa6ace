//! The conversion of responses to samples. Names and labels are parsed once per series, values in
//! each response.
//!
//! Must never know: the transport of responses.

mod labels;

use std::{
    collections::{HashMap, hash_map::Entry},
    io::Read,
    sync::Arc,
};

use granary_agent_kit::{KnownReading, Series, relabel::Labels};
use granary_exposition::{Families, Format, Sample, Type, read_from};
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
const KNOWN_BYTES: usize = 2 * size_of::<(u128, KnownSeries)>();

/// The recent series of a target.
#[derive(Debug)]
pub(crate) struct TargetSeries {
    /// The memory of the series.
    lease: Lease,
    memory: Arc<Memory>,
    /// Series by the hash of their text.
    series: HashMap<u128, KnownSeries>,
    round: u64,
    /// The series of [`Report`], in the order of its values.
    reports: Vec<Arc<Series>>,
}

#[derive(Debug)]
struct KnownSeries {
    /// `None` when rules drop the series.
    series: Option<Arc<Series>>,
    /// The type that the last response declared for the series. When it changes, the kind of the
    /// series may change.
    declared: Type,
    /// The number of the last response with this series.
    round: u64,
    /// True when a response with this series was accepted. Only such a series has to end.
    is_sent: bool,
    /// True when the target provided a timestamp. Such a series does not end when a response lacks
    /// it.
    is_timed: bool,
}

impl KnownSeries {
    fn bytes(&self) -> usize {
        KNOWN_BYTES + self.series.as_ref().map_or(0, |series| series.bytes())
    }
}

/// The result of a response.
#[derive(Debug)]
pub(crate) struct ConversionResult {
    pub(crate) samples: Samples,
    /// Samples of the response.
    pub(crate) scraped: u64,
    /// Samples after relabeling.
    pub(crate) kept: u64,
    /// Series that the previous response did not contain.
    pub(crate) added: u64,
}

/// The outcome of a scrape, for its reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Report {
    pub(crate) is_up: bool,
    pub(crate) seconds: f64,
    pub(crate) scraped: u64,
    pub(crate) kept: u64,
    pub(crate) added: u64,
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
        external: &Labels,
        (answer, format): (&mut dyn Read, Format),
        time_ms: i64,
    ) -> Result<ConversionResult, (u64, String)> {
        self.round += 1;
        let mut converted =
            ConversionResult { samples: self.memory.samples(), scraped: 0, kept: 0, added: 0 };
        let context = TargetContext { job, target, external };
        let reading = self.memory.lease();
        let outcome =
            read_from(answer, format, &mut |bytes| reading.reserve(bytes), |sample, families| {
                self.sample(&context, sample, families, time_ms, &mut converted)
            });
        outcome.map_err(|fault| (converted.scraped, fault.to_string()))?;
        converted.kept = converted.samples.readings.len() as u64;
        self.end(time_ms, |known, round| known.round == round, &mut converted.samples);
        Ok(converted)
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
        external: &Labels,
        report: Report,
        time_ms: i64,
        samples: &mut Samples,
    ) {
        let Report { is_up, seconds, scraped, kept, added } = report;
        let values =
            [f64::from(u8::from(is_up)), seconds, scraped as f64, kept as f64, added as f64];
        if self.reports.is_empty() {
            let series = |(metric, unit): &(&str, &str)| {
                let mut labels = target.labels.clone();
                add_missing(&mut labels, external);
                Arc::new(Series::new(*metric, pairs(&labels), Kind::Gauge, *unit))
            };
            self.reports = REPORTS.iter().map(series).collect();
        }
        for (series, value) in self.reports.iter().zip(values) {
            let series = Arc::clone(series);
            samples.push_always(KnownReading { series, value, time_ms, start_ms: None });
        }
    }

    /// Ends the report series of a removed target.
    pub(crate) fn end_reports(&self, time_ms: i64, samples: &mut Samples) {
        self.reports.iter().for_each(|series| samples.push_always(stale(series, time_ms)));
    }

    fn sample(
        &mut self,
        context: &TargetContext<'_>,
        sample: Sample<'_>,
        families: &Families,
        time_ms: i64,
        converted: &mut ConversionResult,
    ) -> Result<(), String> {
        converted.scraped += 1;
        let hash = xxh3_128(sample.series);
        let honored = sample.time_ms.filter(|_| context.job.honor_timestamps);
        let round = self.round;
        let is_full = self.series.len() >= SERIES_MAX;
        let known = match self.series.entry(hash) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if is_full => {
                return Err(format!("more than {SERIES_MAX} series"));
            }
            Entry::Vacant(free) => {
                let series = context.describe(sample.series, families)?.map(Arc::new);
                let declared = families.last_type();
                let known =
                    KnownSeries { series, declared, round: 0, is_sent: false, is_timed: false };
                self.lease.reserve(known.bytes())?;
                free.insert(known)
            }
        };
        if known.declared != families.last_type() {
            known.declared = families.last_type();
            let series = context.describe(sample.series, families)?;
            let kind = |series: &Series| series.kind();
            if series.as_ref().map(kind) != known.series.as_deref().map(kind) {
                known.series = series.map(Arc::new);
            }
        }
        let Some(series) = &known.series else {
            known.round = round;
            return Ok(());
        };
        if known.round == round && honored.is_none() {
            // Only the first of duplicate lines counts, as in Prometheus.
            return Ok(());
        }
        converted.added += u64::from(!known.is_sent && known.round != round);
        known.round = round;
        known.is_timed = honored.is_some() && !context.job.track_timestamps_staleness;
        let limit = context.job.sample_limit;
        if limit > 0 && converted.samples.readings.len() as u64 >= limit {
            return Err(format!("more samples than the sample_limit of {limit}"));
        }
        converted.samples.push(KnownReading {
            series: Arc::clone(series),
            value: sample.value,
            time_ms: honored.unwrap_or(time_ms),
            start_ms: sample.start_ms,
        })
    }

    /// Removes and ends the series that `stays` rejects.
    fn end(
        &mut self,
        time_ms: i64,
        stays: impl Fn(&KnownSeries, u64) -> bool,
        samples: &mut Samples,
    ) {
        let (round, lease) = (self.round, &self.lease);
        self.series.retain(|_, known| {
            let is_kept = stays(known, round);
            if !is_kept {
                let ends = known.series.as_ref().filter(|_| known.is_sent && !known.is_timed);
                match ends {
                    Some(series) => {
                        samples.push_last(stale(series, time_ms), (lease, known.bytes()));
                    }
                    None => lease.release(known.bytes()),
                }
            }
            known.is_sent = is_kept;
            is_kept
        });
        if self.series.capacity() > 4 * self.series.len() {
            self.series.shrink_to_fit();
        }
    }
}

fn stale(series: &Arc<Series>, time_ms: i64) -> KnownReading {
    KnownReading { series: Arc::clone(series), value: STALE_MARKER, time_ms, start_ms: None }
}

#[cfg(test)]
mod tests;
