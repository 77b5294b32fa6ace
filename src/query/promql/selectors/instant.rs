//! Instant selectors: one value per series and time.
//!
//! Must never know: how cells are read, windows of functions.

use std::ops::RangeInclusive;

use super::{
    Selectors,
    compiled::matchers_of,
    request::{Held, NeededCells, ReadRequest},
};
use crate::{
    policy::query_plan::Detail,
    query::{
        QueryError, SeriesMatcher,
        promql::{
            syntax::tree::VectorSelector,
            value::{
                histograms::HistogramColumn,
                range_vector::{CellMatrix, CellSeries},
                series::{ABSENT, Series, is_present},
                steps::{Steps, TimeShift},
            },
        },
    },
    store::Columns,
};

/// The property of the newest sample to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SampleProperty {
    /// The value.
    Value,
    /// The time in seconds.
    Time,
}

impl Selectors<'_> {
    /// Returns the newest sample of each series at each time.
    pub(crate) fn instant(
        &self,
        selector: &VectorSelector,
        steps: &Steps,
        property: SampleProperty,
    ) -> Result<Vec<Series>, QueryError> {
        let mut series = Vec::new();
        self.instant_in_chunks(selector, steps, (property, Held::All), &mut |all| {
            series = all;
            Ok(())
        })?;
        Ok(series)
    }

    /// Calls `visit` with the newest sample of some series at a time, in order of labels. For a
    /// selector whose series are all held, `visit` is called once.
    pub(crate) fn instant_in_chunks(
        &self,
        selector: &VectorSelector,
        steps: &Steps,
        (property, held): (SampleProperty, Held),
        visit: &mut dyn FnMut(Vec<Series>) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let shift = self.shift(selector)?;
        let request = ReadRequest {
            text: &selector.series_text(),
            matchers: &|| matchers_of(selector, self.bounds.limits),
            windows: &self.windows(shift, steps, 0, Detail::Aggregates),
            needed: NeededCells::Newest,
            columns: Columns::ENDS,
            held,
        };
        self.cells_in_chunks(&request, &mut |cells| {
            visit(self.series_with_values(&cells, steps, |series| {
                let ends = steps.times().map(|time| shift.of(time));
                let ends = ends.map(|end| (end, end));
                if !series.histograms.is_empty() {
                    return newest_of_both(series, self.lookback_ms, ends, property);
                }
                let values = newest_samples(series, self.lookback_ms, ends, property);
                (values, HistogramColumn::NONE)
            })?)
        })
    }

    /// Returns the times of the newest samples of each matching series, within a range of times.
    pub(crate) fn newest_times(
        &self,
        matchers: &[SeriesMatcher],
        steps: &Steps,
        times: &RangeInclusive<i64>,
    ) -> Result<Vec<Series>, QueryError> {
        let no_shift = TimeShift { at: None, offset_ms: 0 };
        let windows = self.windows(no_shift, steps, 0, Detail::Aggregates);
        let cells = self.cells_matching(&ReadRequest {
            text: &format!("info {matchers:?}"),
            matchers: &|| Ok(vec![matchers.to_vec()]),
            windows: &windows,
            needed: NeededCells::All,
            columns: Columns::ENDS,
            held: Held::All,
        })?;
        self.series_with_values(&cells, steps, |series| {
            let ends = steps.times().map(|time| (time.min(*times.end()), time));
            let mut values = newest_of_both(series, self.lookback_ms, ends, SampleProperty::Time).0;
            let first_seconds = *times.start() as f64 / 1000.0;
            for value in values.iter_mut().filter(|value| is_present(**value)) {
                if *value < first_seconds {
                    *value = ABSENT;
                }
            }
            (values, HistogramColumn::NONE)
        })
    }

    /// Builds a series from the values of each series of cells, and drops series without values.
    fn series_with_values(
        &self,
        cells: &CellMatrix,
        steps: &Steps,
        values: impl Fn(&CellSeries) -> (Vec<f64>, HistogramColumn),
    ) -> Result<Vec<Series>, QueryError> {
        self.bounds.check_points(cells.series.len(), steps.count)?;
        let mut out = Vec::with_capacity(cells.series.len());
        for series in &cells.series {
            self.bounds.check_time()?;
            let (values, histograms) = values(series);
            let labels = series.labels.clone();
            out.push(Series { labels, drop_metric: false, values, histograms });
        }
        out.retain(Series::has_values);
        Ok(out)
    }
}

/// Returns the newest sample of a series for each pair of times: the newest sample at or before the
/// first time, unless the sample is older than the lookback at the second time. The first times
/// must not decrease.
fn newest_samples(
    series: &CellSeries,
    lookback_ms: i64,
    ends: impl Iterator<Item = (i64, i64)>,
    property: SampleProperty,
) -> Vec<f64> {
    let mut next = 0;
    ends.map(|(end, now)| {
        while series.cells.get(next).is_some_and(|cell| cell.first_at <= end) {
            next += 1;
        }
        let cell = next.checked_sub(1).map(|index| &series.cells[index]);
        let Some(cell) = cell.filter(|_| now < series.ended_at) else { return ABSENT };
        // A series exists between the readings of a cell, however wide the slot is.
        let inside = cell.last_at > end;
        let (at, value) =
            if inside { (cell.first_at, cell.first) } else { (cell.last_at, cell.last) };
        if (!inside || now > end) && now - at >= lookback_ms {
            return ABSENT;
        }
        match property {
            SampleProperty::Value => value,
            SampleProperty::Time => at as f64 / 1000.0,
        }
    })
    .collect()
}

/// Returns the newest sample of a series with histograms, as [`newest_samples`] does. Without
/// numbers, the column of numbers has the times if these are requested.
fn newest_of_both(
    series: &CellSeries,
    lookback_ms: i64,
    ends: impl Iterator<Item = (i64, i64)> + Clone,
    property: SampleProperty,
) -> (Vec<f64>, HistogramColumn) {
    let mut values = newest_samples(series, lookback_ms, ends.clone(), property);
    let times = newest_samples(series, lookback_ms, ends.clone(), SampleProperty::Time);
    let mut found = vec![None; values.len()];
    for (step, (end, now)) in ends.enumerate() {
        let before = series.histograms.partition_point(|slot| slot.first_at <= end);
        let slot = before.checked_sub(1).map(|index| &series.histograms[index]);
        let Some(slot) = slot.filter(|_| now < series.ended_at) else { continue };
        let inside = slot.last_at > end;
        let (at, histogram) =
            if inside { (slot.first_at, &slot.first) } else { (slot.last_at, &slot.last) };
        let is_old = (!inside || now > end) && now - at >= lookback_ms;
        let seconds = at as f64 / 1000.0;
        if is_old || (is_present(times[step]) && times[step] > seconds) {
            continue;
        }
        if property == SampleProperty::Time {
            values[step] = seconds;
        } else {
            values[step] = ABSENT;
            found[step] = Some(histogram.clone());
        }
    }
    (values, HistogramColumn::new(found))
}
