//! The samples of a request that was read whole, judged once their series are known.
//!
//! Must never know: protocols.

use super::{Point, Row, TargetKind};
use crate::{
    ingest::{
        refusals::Refusals,
        rows::Excess,
        series_cache::{Fingerprint, Resolved, SeriesCache},
    },
    model::{AcceptedBatch, CountsOnce, DefinitionVerdict, Kind, SeriesId, SeriesInfo, UnixMillis},
    policy::{Admission, RefusalReason},
};

/// The samples of one request, decoded, with the series that have to be made known first.
#[derive(Debug)]
pub struct Decoded {
    /// What the cache's entries belonged to.
    pub(super) generation: u64,
    pub(super) samples: Vec<Row>,
    /// In order of their first samples; none where the protocol has no points.
    pub(super) points: Vec<Point>,
    pub(super) definitions: Vec<(Fingerprint, SeriesInfo)>,
    pub(super) refused: Refusals,
    /// Why the request is to be refused as a whole.
    pub excess: Option<Excess>,
}

/// A sample whose series has a number of the caller's own; nothing of it is judged yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbered {
    /// The series, or why it is refused.
    pub series: Result<SeriesId, RefusalReason>,
    /// When it was taken.
    pub at: UnixMillis,
    /// The value.
    pub value: f64,
    /// Since when a counter counts, 0 when not known.
    pub start: i64,
}

impl Decoded {
    /// The series that are not known yet, in the order in which `admit` wants the verdicts.
    pub fn definitions(&self) -> Vec<SeriesInfo> {
        self.definitions.iter().map(|(_, definition)| definition.clone()).collect()
    }

    /// Samples, refused ones not included.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Points, where the protocol has points of several samples.
    pub fn points(&self) -> usize {
        self.points.len()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Judges every sample; `kind` and `name` are asked for few of them. Returns the batch to write
    /// and what was refused.
    pub fn admit(
        mut self,
        verdicts: &[DefinitionVerdict],
        cache: &mut SeriesCache,
        admission: &Admission,
        (kind, name): (impl Fn(SeriesId) -> Option<Kind>, impl Fn(SeriesId) -> Option<String>),
        window_ms: i64,
    ) -> (AcceptedBatch, Refusals) {
        let settled = self.settle(verdicts, cache);
        let resolve = |row: &Row| match row.target {
            TargetKind::Series(id) => Resolved::Series(id),
            TargetKind::Refused(reason) => Resolved::Refused(reason),
            TargetKind::New(index) => settled[index as usize],
        };
        let mut batch = AcceptedBatch {
            counts_once: CountsOnce::ByTime { window_ms },
            ..AcceptedBatch::default()
        };
        let mut refused = std::mem::take(&mut self.refused);
        let has_starts = self.samples.iter().any(|row| row.start != 0);
        let plain = |row: &Row| match resolve(row) {
            Resolved::Series(id) => admission.check(row.at, row.value, || None).ok().map(|()| id),
            Resolved::Refused(_) => None,
        };
        // Most often that is all of them.
        let rest = take_plain(&self.samples, plain, has_starts, &mut batch);
        let mut points = std::mem::take(&mut self.points);
        for (index, row) in (self.samples.len() - rest.len()..).zip(rest) {
            let verdict = match resolve(row) {
                Resolved::Refused(reason) => Err(reason),
                Resolved::Series(id) => {
                    admission.keep(row.at, row.value, || kind(id)).map(|value| (id, value))
                }
            };
            match verdict {
                Ok((id, value)) => {
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
                        let message = admission.explain(reason, row.at, row.value);
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

    /// What became of the definitions; the cache gets those that have a series.
    fn settle(&self, verdicts: &[DefinitionVerdict], cache: &mut SeriesCache) -> Vec<Resolved> {
        let settle = |verdict: &DefinitionVerdict| match RefusalReason::settle(*verdict) {
            Ok(id) => Resolved::Series(id),
            Err(reason) => Resolved::Refused(reason),
        };
        let settled: Vec<_> = verdicts.iter().map(settle).collect();
        // Else series were deleted or renamed meanwhile, perhaps these.
        if cache.generation() == self.generation {
            for ((fingerprint, _), resolved) in self.definitions.iter().zip(&settled) {
                // A limit may be raised, and other series may be deleted: it is asked for again.
                if let Resolved::Series(_) = resolved {
                    cache.insert(*fingerprint, *resolved);
                }
            }
        }
        settled
    }

    /// How the series of a refused sample is named.
    fn series_of(&self, row: &Row, name: impl Fn(SeriesId) -> Option<String>) -> Option<String> {
        match row.target {
            TargetKind::Series(id) => name(id),
            TargetKind::New(index) => Some(self.definitions[index as usize].1.key.to_string()),
            // What is wrong with it was said when it was met first.
            TargetKind::Refused(_) => None,
        }
    }

    /// The samples one by one, for a caller that keeps no dictionary but numbers the series as
    /// they come: `number` is called once for each new one.
    pub fn number(
        self,
        cache: &mut SeriesCache,
        mut number: impl FnMut(SeriesInfo) -> SeriesId,
    ) -> impl Iterator<Item = Numbered> {
        let mut numbers = Vec::with_capacity(self.definitions.len());
        for (fingerprint, definition) in self.definitions {
            let id = number(definition);
            cache.insert(fingerprint, Resolved::Series(id));
            numbers.push(id);
        }
        self.samples.into_iter().map(move |row| {
            let series = match row.target {
                TargetKind::Series(id) => Ok(id),
                TargetKind::Refused(reason) => Err(reason),
                TargetKind::New(index) => Ok(numbers[index as usize]),
            };
            Numbered { series, at: row.at, value: row.value, start: row.start }
        })
    }
}

/// Notes that a sample of a point is refused.
fn refuse_point_of(points: &mut [Point], sample: usize) {
    let next = points.partition_point(|point| point.first as usize <= sample);
    if let Some(point) = next.checked_sub(1).and_then(|own| points.get_mut(own)) {
        point.is_refused = true;
    }
}

/// Takes samples over, column by column, up to the first that is to be looked at closely; returns those
/// from there on.
fn take_plain<'r>(
    samples: &'r [Row],
    plain: impl FnMut(&Row) -> Option<SeriesId>,
    has_starts: bool,
    batch: &mut AcceptedBatch,
) -> &'r [Row] {
    batch.series.reserve_exact(samples.len());
    batch.times.reserve_exact(samples.len());
    batch.values.reserve_exact(samples.len());
    batch.series.extend(samples.iter().map_while(plain));
    let (taken, rest) = samples.split_at(batch.series.len());
    batch.times.extend(taken.iter().map(|row| row.at.0));
    batch.values.extend(taken.iter().map(|row| row.value));
    if has_starts {
        batch.starts.extend(taken.iter().map(|row| row.start));
    }
    rest
}
