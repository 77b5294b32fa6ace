//! The samples of a fully decoded request, which are checked once their series are known.
//!
//! Must never know: protocols.

use super::{KindOf, Point, Row, TargetKind};
use crate::{
    ingest::{
        refusals::Refusals,
        rows::LimitExceeded,
        series_cache::{CachedSeries, Fingerprint, SeriesCache},
    },
    model::{
        AcceptedBatch, Deduplication, DefinitionVerdict, HistogramSample, Kind, SeriesId,
        SeriesInfo, UnixMillis,
    },
    policy::{Admission, RefusalReason},
};

/// The decoded samples of one request, with the series to register first.
#[derive(Debug)]
pub struct DecodedRows {
    /// The generation of the cache's entries.
    pub(super) generation: u64,
    pub(super) samples: Vec<Row>,
    /// The histograms of samples, by ascending index.
    pub(super) histograms: Vec<HistogramSample>,
    /// The points, in order of their first samples; empty for protocols without points.
    pub(super) points: Vec<Point>,
    pub(super) definitions: Vec<(Fingerprint, SeriesInfo)>,
    pub(super) declared: Vec<KindOf>,
    pub(super) refused: Refusals,
    /// The reason for refusing the request as a whole.
    pub exceeded: Option<LimitExceeded>,
}

/// A sample whose series has a number chosen by the caller; the sample is not checked yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NumberedSample {
    /// The series, or the reason for its refusal.
    pub series: Result<SeriesId, RefusalReason>,
    /// The time of the sample.
    pub at: UnixMillis,
    /// The value.
    pub value: f64,
    /// The start of a counter, 0 if unknown.
    pub start: i64,
}

impl DecodedRows {
    /// Returns the unknown series, in the order in which `admit` expects their verdicts.
    pub fn definitions(&self) -> Vec<SeriesInfo> {
        self.definitions.iter().map(|(_, definition)| definition.clone()).collect()
    }

    /// Returns true when the samples of a definition are observations by the settings.
    pub fn is_observed(&self, definition: usize) -> bool {
        self.declared.get(definition) == Some(&KindOf::Observed)
    }

    /// Returns the number of samples without refused ones.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Returns the number of points, for protocols whose points have several samples.
    pub fn points(&self) -> usize {
        self.points.len()
    }

    /// Returns true when there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Checks every sample; `kind`, `class` and `name` are called for few of them. Returns the batch to
    /// write and the refusals.
    pub fn admit(
        mut self,
        verdicts: &[DefinitionVerdict],
        cache: &mut SeriesCache,
        admission: &Admission,
        (kind, class, name): (
            impl Fn(SeriesId) -> Option<Kind>,
            impl Fn(SeriesId, UnixMillis) -> usize,
            impl Fn(SeriesId) -> Option<String>,
        ),
        window_ms: i64,
    ) -> (AcceptedBatch, Refusals) {
        let settled = self.resolve_new(verdicts, cache);
        let resolve = |row: &Row| match row.target {
            TargetKind::Series(id) => CachedSeries::Series(id),
            TargetKind::Refused(reason) => CachedSeries::Refused(reason),
            TargetKind::New(index) => settled[index as usize],
        };
        let mut batch = AcceptedBatch {
            deduplication: Deduplication::ByTime { window_ms },
            ..AcceptedBatch::default()
        };
        let mut refused = std::mem::take(&mut self.refused);
        let has_starts = self.samples.iter().any(|row| row.start != 0);
        let plain = |row: &Row| match resolve(row) {
            CachedSeries::Series(id) => {
                admission.check(row.at, row.value, || None).ok().map(|()| id)
            }
            CachedSeries::Refused(_) => None,
        };
        // In most requests, these are all samples.
        let rest = accept_plain(&self.samples, plain, has_starts, &mut batch);
        let mut histograms = std::mem::take(&mut self.histograms).into_iter().peekable();
        let is_plain = |sample: &HistogramSample| (sample.index as usize) < batch.series.len();
        batch.histograms.extend(std::iter::from_fn(|| histograms.next_if(is_plain)));
        let mut points = std::mem::take(&mut self.points);
        for (index, row) in (self.samples.len() - rest.len()..).zip(rest) {
            let mut class_of_row = 0;
            let verdict = match resolve(row) {
                CachedSeries::Refused(reason) => Err(reason),
                CachedSeries::Series(id) => {
                    let class = || {
                        class_of_row = class(id, row.at);
                        class_of_row
                    };
                    admission.keep(row.at, row.value, || kind(id), class).map(|value| (id, value))
                }
            };
            let histogram = histograms.next_if(|sample| sample.index as usize == index);
            match verdict {
                Ok((id, value)) => {
                    let index = batch.series.len() as u32;
                    let kept = histogram.map(|sample| HistogramSample { index, ..sample });
                    batch.histograms.extend(kept);
                    batch.series.push(id);
                    batch.times.push(row.at.0);
                    batch.values.push(value);
                    if has_starts {
                        batch.starts.push(row.start);
                    }
                }
                Err(reason) => {
                    refuse_point_of(&mut points, index);
                    refused.add(reason, || {
                        let sample = (row.at, row.value);
                        let message = admission.explain(reason, sample, class_of_row);
                        (self.series_of(row, &name).unwrap_or_default(), message)
                    });
                }
            }
        }
        refused.points = points.iter().filter(|point| point.is_refused).count() as u64;
        if let Some(first) = batch.times.first().copied()
            && batch.times.iter().all(|at| *at == first)
        {
            batch.times.truncate(1);
        }
        (batch, refused)
    }

    /// Resolves the new series by their verdicts; registered ones enter the cache.
    fn resolve_new(
        &self,
        verdicts: &[DefinitionVerdict],
        cache: &mut SeriesCache,
    ) -> Vec<CachedSeries> {
        let kinds = self.definitions.iter().map(|(_, info)| info.kind).zip(&self.declared);
        let settled = verdicts.iter().zip(kinds).map(|(verdict, (kind, kind_of))| {
            let is_conflict = matches!(verdict, DefinitionVerdict::KindConflict(..));
            // A number is no reading of a series of other histograms.
            if is_conflict && *kind_of == KindOf::Observed {
                return CachedSeries::Refused(RefusalReason::KindConflict);
            }
            RefusalReason::settle(*verdict, kind)
                .map_or_else(CachedSeries::Refused, CachedSeries::Series)
        });
        let settled: Vec<_> = settled.collect();
        // Otherwise series, possibly the new ones, were deleted or renamed since.
        if cache.generation() == self.generation {
            for ((fingerprint, _), resolved) in self.definitions.iter().zip(&settled) {
                // Refusals are not cached: limits may be raised, and other series may be deleted.
                if let CachedSeries::Series(_) = resolved {
                    cache.insert(*fingerprint, *resolved);
                }
            }
        }
        settled
    }

    /// Returns the name of a refused sample's series.
    fn series_of(&self, row: &Row, name: impl Fn(SeriesId) -> Option<String>) -> Option<String> {
        match row.target {
            TargetKind::Series(id) => name(id),
            TargetKind::New(index) => Some(self.definitions[index as usize].1.key.to_string()),
            // The first occurrence already reported the fault.
            TargetKind::Refused(_) => None,
        }
    }

    /// Moves the histograms of the samples out, by ascending index.
    pub fn take_histograms(&mut self) -> Vec<HistogramSample> {
        std::mem::take(&mut self.histograms)
    }

    /// Converts the samples for a caller without a dictionary, which numbers the series in order of
    /// appearance: `number` is called once per new series. See [`Self::take_histograms`].
    pub fn number(
        self,
        cache: &mut SeriesCache,
        mut number: impl FnMut(SeriesInfo) -> SeriesId,
    ) -> impl Iterator<Item = NumberedSample> {
        let mut numbers = Vec::with_capacity(self.definitions.len());
        for (fingerprint, definition) in self.definitions {
            let id = number(definition);
            cache.insert(fingerprint, CachedSeries::Series(id));
            numbers.push(id);
        }
        self.samples.into_iter().map(move |row| {
            let series = match row.target {
                TargetKind::Series(id) => Ok(id),
                TargetKind::Refused(reason) => Err(reason),
                TargetKind::New(index) => Ok(numbers[index as usize]),
            };
            NumberedSample { series, at: row.at, value: row.value, start: row.start }
        })
    }
}

/// Marks the point of a refused sample.
fn refuse_point_of(points: &mut [Point], sample: usize) {
    let next = points.partition_point(|point| point.first as usize <= sample);
    if let Some(point) = next.checked_sub(1).and_then(|index| points.get_mut(index)) {
        point.is_refused = true;
    }
}

/// Moves samples column by column up to the first that needs a closer check; returns the rest.
fn accept_plain<'r>(
    samples: &'r [Row],
    plain: impl FnMut(&Row) -> Option<SeriesId>,
    has_starts: bool,
    batch: &mut AcceptedBatch,
) -> &'r [Row] {
    batch.series.reserve_exact(samples.len());
    batch.times.reserve_exact(samples.len());
    batch.values.reserve_exact(samples.len());
    batch.series.extend(samples.iter().map_while(plain));
    let (first, rest) = samples.split_at(batch.series.len());
    batch.times.extend(first.iter().map(|row| row.at.0));
    batch.values.extend(first.iter().map(|row| row.value));
    if has_starts {
        batch.starts.extend(first.iter().map(|row| row.start));
    }
    rest
}
