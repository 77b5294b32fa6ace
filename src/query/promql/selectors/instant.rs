//! Instant selectors: one value of each series at each time.
//!
//! Must never know: how documents are read, windows of functions.

use std::ops::RangeInclusive;

use promql_parser::parser::VectorSelector;

use super::cells::{Loaded, LoadedSeries};
use crate::{
    model::UnixMillis,
    policy::query_plan::{Detail, Windows},
    query::{
        SeriesMatcher,
        promql::{
            PromqlError,
            evaluate::expression::{Evaluator, offset_ms},
            value::{
                series::{ABSENT, Series, is_present},
                steps::Grid,
            },
        },
    },
};

/// What is taken of the newest sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// Its value.
    Value,
    /// Its time in seconds.
    Time,
}

impl Evaluator<'_> {
    /// The newest sample of each series at each time.
    pub(crate) fn instant(
        &self,
        selector: &VectorSelector,
        grid: &Grid,
        take: Take,
    ) -> Result<Vec<Series>, PromqlError> {
        let at = self.at(selector.at.as_ref());
        let offset_ms = offset_ms(selector.offset.as_ref());
        let windows = Windows {
            first: UnixMillis(at.unwrap_or(grid.start) - offset_ms),
            step_ms: grid.step,
            count: if at.is_some() { 1 } else { grid.count },
            range_ms: 0,
            lookback_ms: self.lookback_ms,
            detail: Detail::Aggregates,
        };
        let loaded = self.load(selector, &windows)?;
        self.each(&loaded, grid, |series| {
            let ends = grid.times().map(|time| at.unwrap_or(time) - offset_ms);
            newest(series, self.lookback_ms, ends.map(|end| (end, end)), take)
        })
    }

    /// The times of the newest samples of each series that matches, of samples within certain times
    /// only.
    pub(crate) fn newest_times(
        &self,
        matchers: &[SeriesMatcher],
        grid: &Grid,
        within: &RangeInclusive<i64>,
    ) -> Result<Vec<Series>, PromqlError> {
        let windows = Windows {
            first: UnixMillis(grid.start),
            step_ms: grid.step,
            count: grid.count,
            range_ms: 0,
            lookback_ms: self.lookback_ms,
            detail: Detail::Aggregates,
        };
        let text = format!("info {matchers:?}");
        let loaded = self.load_matching(text, &windows, &|| Ok(vec![matchers.to_vec()]))?;
        self.each(&loaded, grid, |series| {
            let ends = grid.times().map(|time| (time.min(*within.end()), time));
            let mut values = newest(series, self.lookback_ms, ends, Take::Time);
            let first = *within.start() as f64 / 1000.0;
            for value in values.iter_mut().filter(|value| is_present(**value)) {
                if *value < first {
                    *value = ABSENT;
                }
            }
            values
        })
    }

    fn each(
        &self,
        loaded: &Loaded,
        grid: &Grid,
        values: impl Fn(&LoadedSeries) -> Vec<f64>,
    ) -> Result<Vec<Series>, PromqlError> {
        self.check_points(loaded.series.len(), grid.count)?;
        let mut out = Vec::with_capacity(loaded.series.len());
        for series in &loaded.series {
            self.check_time()?;
            let (labels, values) = (series.labels.clone(), values(series));
            out.push(Series { labels, drop_metric: false, values });
        }
        out.retain(Series::has_values);
        Ok(out)
    }
}

/// The newest sample of a series up to each of the first times, none of which goes back; it may not
/// be too old at the second ones.
fn newest(
    series: &LoadedSeries,
    lookback_ms: i64,
    ends: impl Iterator<Item = (i64, i64)>,
    take: Take,
) -> Vec<f64> {
    let mut next = 0;
    ends.map(|(end, now)| {
        while series.cells.get(next).is_some_and(|cell| cell.first_at <= end) {
            next += 1;
        }
        let cell = next.checked_sub(1).map(|index| &series.cells[index]);
        let Some(cell) = cell.filter(|_| now < series.ended_at) else { return ABSENT };
        // Between the readings of a cell the series lives, however long a slot is.
        let inside = cell.last_at > end;
        let (at, value) =
            if inside { (cell.first_at, cell.first) } else { (cell.last_at, cell.last) };
        if (!inside || now > end) && now - at >= lookback_ms {
            return ABSENT;
        }
        match take {
            Take::Value => value,
            Take::Time => at as f64 / 1000.0,
        }
    })
    .collect()
}
