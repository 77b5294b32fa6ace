//! Reads a source to its end: numbers the series, checks the samples, and cuts them into batches.

use super::{
    Location, NO_TIME, Source, SourceFault,
    batcher::{Batcher, NumberedBatch},
    selection::Selection,
};
use crate::{
    ingest::{
        refusals::Refusals,
        rows::{NumberedSample, Rows},
        series_cache::SeriesCache,
    },
    model::{HistogramSample, Kind, SeriesId, SeriesLimits, UnixMillis, is_stale_marker},
    policy::RefusalReason,
};

/// The number of samples that are decoded at once.
const CHUNK_SAMPLES: usize = 4096;
/// The bytes of histograms that are decoded at once.
const CHUNK_HISTOGRAM_BYTES: usize = 16 << 20;
/// The number of pieces that are read at once, including pieces without samples.
const CHUNK_PIECES: usize = 8192;
/// The maximum number of series in a file: each uses memory until the end.
const SERIES_MAX: usize = 4_000_000;
/// The limits of series, which are wide because the daemon applies its own settings.
const LIMITS: SeriesLimits =
    SeriesLimits { tags_max: 1024, name_bytes_max: 16_384, value_bytes_max: 65_536 };

/// The ID of all series outside of the selection.
const EXCLUDED: SeriesId = SeriesId(u32::MAX);

/// A receiver of batches.
pub trait Receiver {
    /// Receives a batch; returns false to stop reading.
    fn batch(&mut self, batch: NumberedBatch) -> bool;
    /// Counts refused samples. A count of 0 only adds an explanation.
    fn refused(&mut self, location: Location, reason: RefusalReason, count: u64, message: &str);
}

/// The numbers of samples in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleTally {
    /// The number of samples, including refused ones.
    pub samples: u64,
    /// The number of stale markers, which are not samples.
    pub stale_markers: u64,
    /// The number of samples outside of the selection.
    pub left_out: u64,
}

/// Reads all selected samples. When the rest of the file cannot be read, the samples before it are
/// still passed on.
pub fn read_all(
    source: &mut dyn Source,
    sender: String,
    selection: &Selection,
    receiver: &mut dyn Receiver,
) -> (SampleTally, Result<(), SourceFault>) {
    let batcher = Batcher::new(sender);
    let mut intake = Intake { cache: SeriesCache::default(), batcher, selection, receiver };
    let mut tally = SampleTally::default();
    loop {
        let (end, continues) = intake.read_chunk(source, &mut tally);
        if !continues {
            return (tally, Ok(()));
        }
        if !matches!(end, Ok(true)) {
            intake.finish();
            return (tally, end.map(|_| ()));
        }
    }
}

/// Samples that a decoder refused, or an explanation.
struct RefusedSamples {
    location: Location,
    reason: RefusalReason,
    count: u64,
    message: String,
}

fn refusals_of(location: Location, refused: &Refusals) -> Vec<RefusedSamples> {
    let mut examples = refused.examples().iter();
    let mut out: Vec<_> = refused
        .counts
        .iter()
        .map(|(reason, count)| {
            let example = examples.by_ref().find(|example| example.reason == reason.as_str());
            let message = example.map_or(reason.remedy(), |example| &example.message).to_owned();
            RefusedSamples { location, reason: *reason, count: *count, message }
        })
        .collect();
    if out.is_empty() {
        let explained = refused.examples().iter().map(|example| example.message.clone());
        let reason = RefusalReason::BadSeries;
        out.extend(explained.map(|message| RefusedSamples { location, reason, count: 0, message }));
    }
    out
}

struct Intake<'a> {
    cache: SeriesCache,
    batcher: Batcher,
    selection: &'a Selection,
    receiver: &'a mut dyn Receiver,
}

impl Intake<'_> {
    /// Reads some pieces; returns whether more may follow, and whether the receiver continues.
    fn read_chunk(
        &mut self,
        source: &mut dyn Source,
        tally: &mut SampleTally,
    ) -> (Result<bool, SourceFault>, bool) {
        let mut rows = Rows::new(&mut self.cache, &|_| None, &LIMITS, "");
        // The number of samples up to the end of each piece.
        let mut locations: Vec<(usize, Location)> = Vec::new();
        let mut bad = Vec::new();
        let mut end = Ok(true);
        for _ in 0..CHUNK_PIECES {
            let before = rows.len();
            let location = match source.read(&mut rows) {
                Ok(Some(location)) => location,
                Ok(None) => {
                    end = Ok(false);
                    0
                }
                Err(fault) => {
                    end = Err(fault);
                    0
                }
            };
            if let Some(refused) = rows.take_refusals() {
                tally.samples += refused.total();
                bad.extend(refusals_of(location, &refused));
            }
            if rows.len() > before {
                locations.push((rows.len(), location));
            }
            let is_full =
                rows.len() >= CHUNK_SAMPLES || rows.histogram_bytes() >= CHUNK_HISTOGRAM_BYTES;
            if is_full || !matches!(end, Ok(true)) {
                break;
            }
        }
        let mut decoded = rows.finish();
        let histograms = decoded.take_histograms();
        tally.samples += decoded.len() as u64;
        let (batcher, selection) = (&mut self.batcher, self.selection);
        let numbered = decoded.number(&mut self.cache, |mut definition| {
            if !selection.has_series(&definition.key) {
                return EXCLUDED;
            }
            definition.kind = selection.kind_of(definition.kind);
            batcher.define(definition)
        });
        let numbered: Vec<_> = numbered.collect();
        // Refused series are in the cache, too.
        self.cache.trim(SERIES_MAX * 2);
        let continues = self.deliver((&numbered, histograms), &locations, bad, tally);
        if self.batcher.series() > SERIES_MAX && end.is_ok() {
            end = Err(SourceFault::Damaged(format!(
                "more than {SERIES_MAX} series in one file: split the file"
            )));
        }
        (end, continues)
    }

    fn deliver(
        &mut self,
        (samples, histograms): (&[NumberedSample], Vec<HistogramSample>),
        locations: &[(usize, Location)],
        bad: Vec<RefusedSamples>,
        tally: &mut SampleTally,
    ) -> bool {
        let mut piece = 0;
        let mut bad = bad.into_iter().peekable();
        let mut histograms = histograms.into_iter().peekable();
        for (index, sample) in samples.iter().enumerate() {
            while locations.get(piece).is_some_and(|(end, _)| *end <= index) {
                piece += 1;
            }
            let location = locations.get(piece).map_or(0, |(_, location)| *location);
            let histogram = histograms.next_if(|histogram| histogram.index as usize == index);
            let histogram = histogram.map(|sample| sample.histogram);
            while let Some(refused) = bad.next_if(|refused| refused.location <= location) {
                self.receiver.refused(
                    refused.location,
                    refused.reason,
                    refused.count,
                    &refused.message,
                );
            }
            if is_stale_marker(sample.value) {
                tally.samples -= 1;
                tally.stale_markers += 1;
                continue;
            }
            if sample.series == Ok(EXCLUDED) || !self.selection.has_time(sample.at) {
                tally.left_out += 1;
                continue;
            }
            match check(sample, &self.batcher) {
                Ok(series) => {
                    if let Some(batch) =
                        self.batcher.add(series, (sample, histogram.as_ref()), location)
                        && !self.receiver.batch(batch)
                    {
                        return false;
                    }
                }
                // The first sample of a refused series already reported the reason.
                Err((reason, message)) => self.receiver.refused(location, reason, 1, &message),
            }
        }
        for refused in bad {
            self.receiver.refused(
                refused.location,
                refused.reason,
                refused.count,
                &refused.message,
            );
        }
        true
    }

    fn finish(&mut self) {
        if let Some(batch) = self.batcher.close() {
            self.receiver.batch(batch);
        }
    }
}

/// Checks a sample as far as the file allows; the daemon checks the rest.
fn check(
    sample: &NumberedSample,
    batcher: &Batcher,
) -> Result<crate::model::SeriesId, (RefusalReason, String)> {
    let series = sample.series.map_err(|reason| (reason, String::new()))?;
    if !sample.value.is_finite() && batcher.kind(series) != Some(Kind::Gauge) {
        let message =
            format!("value {} is not finite; only gauges may have such values", sample.value);
        return Err((RefusalReason::NotFinite, message));
    }
    if sample.at == NO_TIME {
        let message =
            "no timestamp: only samples with a timestamp can be imported exactly once".to_owned();
        return Err((RefusalReason::BadSample, message));
    }
    if sample.at < UnixMillis::MIN {
        let message = format!("time {} is before 1970", sample.at);
        return Err((RefusalReason::TooOld, message));
    }
    if sample.at > UnixMillis::MAX {
        let message = format!("time {} ms is after the year 9998", sample.at.0);
        return Err((RefusalReason::TooNew, message));
    }
    Ok(series)
}

#[cfg(test)]
pub(super) mod testing {
    //! A receiver that keeps everything as text.

    use granary_protocol::read_histograms;

    use super::*;
    use crate::model::Histogram;

    /// The output of a source: `metric{tags} kind unit at value`, with the positive buckets of
    /// a histogram, and `location reason count message`.
    #[derive(Debug, Default)]
    pub(crate) struct RecordedOutput {
        pub(crate) samples: Vec<String>,
        pub(crate) refused: Vec<String>,
        series: Vec<String>,
    }

    impl Receiver for RecordedOutput {
        fn batch(&mut self, numbered: NumberedBatch) -> bool {
            self.series.extend(
                numbered.new.iter().map(|new| format!("{} {} {}", new.key, new.kind, new.unit)),
            );
            let batch = &numbered.batch;
            let found = read_histograms(&batch.histograms, batch.refs.len());
            let mut histograms = found.map(Result::unwrap).peekable();
            for index in 0..batch.refs.len() {
                let series = &self.series[batch.refs[index] as usize];
                let (at, value) = (batch.times[index], batch.values[index]);
                let histogram = histograms.next_if(|(of_sample, _)| *of_sample as usize == index);
                let buckets = histogram.map(|(_, histogram)| buckets(&histogram));
                self.samples.push(format!("{series} {at} {value}{}", buckets.unwrap_or_default()));
            }
            true
        }

        fn refused(
            &mut self,
            location: Location,
            reason: RefusalReason,
            count: u64,
            message: &str,
        ) {
            self.refused.push(format!("{location} {reason} {count} {message}"));
        }
    }

    fn buckets(histogram: &Histogram) -> String {
        let buckets = histogram.positive.iter();
        let texts: Vec<_> = buckets.map(|one| format!("{}:{}", one.index, one.count)).collect();
        format!(" {{{}}}", texts.join(","))
    }

    pub(crate) fn read(source: &mut dyn Source) -> (RecordedOutput, SampleTally) {
        let mut kept = RecordedOutput::default();
        let (tally, end) = read_all(source, "test".into(), &Selection::default(), &mut kept);
        end.unwrap();
        (kept, tally)
    }
}
