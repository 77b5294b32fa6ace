//! The series that a selector matches.
//!
//! Must never know: times of windows, how cells are read.

use std::ops::Deref;

use super::{
    Selectors,
    request::{Held, ReadRequest},
};
use crate::query::{ExpressionLimits, Labels, QueryError};
use crate::{
    model::{Kind, SeriesId, SeriesKey, UnixMillis},
    query::{
        budget::cache::MatchingSeries, promql::value::range_vector::CellSeries,
        series::matched::select_cached, series::selector::CHUNK,
    },
    store::{Dictionary, ProjectDictionary},
};

/// A series that a selector matches.
pub(super) struct SelectedSeries {
    pub(super) id: SeriesId,
    /// The position in label order among all matching series.
    pub(super) position: u32,
    key: SeriesKey,
    kind: Kind,
    /// True when the series is or was a counter.
    is_counter: bool,
    ended_at: i64,
}

impl From<SelectedSeries> for CellSeries {
    /// Creates a series without cells.
    fn from(selected: SelectedSeries) -> Self {
        Self {
            labels: Labels::of_key(selected.key),
            drop_metric: false,
            kind: selected.kind,
            histogram_kind: selected.kind.of_histograms(),
            ended_at: selected.ended_at,
            cells: Vec::new(),
            counted: Vec::new(),
            histograms: Vec::new(),
        }
    }
}

/// The series of a plan.
pub(super) enum PlannedSeries {
    /// Series that are read together.
    Found(Vec<SelectedSeries>),
    /// Series that are found and read in chunks.
    InChunks(MatchingSeries),
}

impl Selectors<'_> {
    /// Returns the series that match a selector. The limit of series applies to series that are all
    /// in memory at the same time.
    pub(super) fn matching(&self, request: &ReadRequest<'_>) -> Result<MatchingSeries, QueryError> {
        let limits = self.bounds.limits;
        let without_limit = ExpressionLimits { series_max: usize::MAX, ..*limits };
        let limits = if request.held == Held::All { limits } else { &without_limit };
        select_cached(self.store, request.text, request.matchers, limits)
    }

    /// Decides whether series are read together or in chunks. `cells_max` is the maximum number of
    /// cells of a series.
    pub(super) fn planned_series(
        &self,
        request: &ReadRequest<'_>,
        matching: MatchingSeries,
        since: UnixMillis,
        cells_max: usize,
    ) -> Result<PlannedSeries, QueryError> {
        let (count, times) = (matching.ids.len(), request.windows.count);
        let has_histograms = count > self.sizes.part && self.has_histograms(&matching.ids)?;
        let is_chunk = count <= self.chunk_size((cells_max, has_histograms), times)
            && (count <= self.sizes.view || self.is_repeated(request.text));
        if request.held == Held::Chunk && !is_chunk {
            return Ok(PlannedSeries::InChunks(matching));
        }
        let found = self.found(&matching.ids, &matching.positions, since)?;
        self.bounds.check_points(found.len(), times)?;
        Ok(PlannedSeries::Found(found))
    }

    /// Returns true when a series, or a part of a series, has native histograms.
    pub(super) fn has_histograms(&self, ids: &[SeriesId]) -> Result<bool, QueryError> {
        for ids in ids.chunks(CHUNK) {
            self.bounds.check_time()?;
            let dictionary = self.store.dictionary();
            let is_histogram = |id: &SeriesId| dictionary.kind(*id).is_some_and(Kind::is_histogram);
            let has_parts = dictionary.has_parts();
            let has_part =
                |id: &SeriesId| has_parts && dictionary.parts(*id).iter().any(is_histogram);
            if ids.iter().any(|id| is_histogram(id) || has_part(id)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the series with samples at or after a time, given their IDs and positions.
    pub(super) fn found(
        &self,
        ids: &[SeriesId],
        positions: &[u32],
        since: UnixMillis,
    ) -> Result<Vec<SelectedSeries>, QueryError> {
        let mut found = Vec::new();
        for (ids, positions) in ids.chunks(CHUNK).zip(positions.chunks(CHUNK)) {
            self.bounds.check_time()?;
            let last = self.store.last_samples(ids);
            let before = found.len();
            let dictionary = self.store.dictionary();
            found.extend(ids.iter().zip(positions).zip(last).filter_map(
                |((id, position), last)| {
                    let last = last.filter(|last| last.at >= since)?;
                    Some(SelectedSeries {
                        id: *id,
                        position: *position,
                        key: dictionary.key(*id)?.clone(),
                        kind: dictionary.kind(*id)?,
                        is_counter: is_counter(&dictionary, *id),
                        ended_at: last.ended_at.map_or(i64::MAX, |ended| ended.0),
                    })
                },
            ));
            drop(dictionary);
            let labels = found[before..].iter().map(|selected| Labels::bytes_of_key(&selected.key));
            self.bounds.reserve(size_of_val(&found[before..]) + labels.sum::<usize>())?;
        }
        Ok(found)
    }

    /// Returns true when a series with samples at or after a time is or was a counter.
    pub(super) fn has_counters(
        &self,
        series: &PlannedSeries,
        since: UnixMillis,
    ) -> Result<bool, QueryError> {
        let matching = match series {
            PlannedSeries::Found(found) => {
                return Ok(found.iter().any(|selected| selected.is_counter));
            }
            PlannedSeries::InChunks(matching) => matching,
        };
        for ids in matching.ids.chunks(CHUNK) {
            self.bounds.check_time()?;
            let last = self.store.last_samples(ids);
            let dictionary = self.store.dictionary();
            let mut with_samples = ids.iter().zip(last).filter(|(id, last)| {
                last.as_ref().is_some_and(|last| last.at >= since) && dictionary.key(**id).is_some()
            });
            if with_samples.any(|(id, _)| is_counter(&dictionary, *id)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn is_counter<D>(dictionary: &ProjectDictionary<'_, D>, id: SeriesId) -> bool
where
    D: Deref<Target = Dictionary>,
{
    let is_counter =
        |id: &SeriesId| dictionary.kind(*id).map(Kind::of_counts) == Some(Kind::Counter);
    is_counter(&id) || dictionary.parts(id).iter().any(is_counter)
}
