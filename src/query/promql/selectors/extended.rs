//! Selectors that read samples beyond their windows: `anchored` and `smoothed` (Prometheus,
//! docs/querying/basics.md, "Extended range selectors").
//!
//! Must never know: what is computed from the samples.

use super::{Selectors, request::NeededCells};
use crate::query::QueryError;
use crate::{
    policy::query_plan::Detail,
    query::promql::{
        syntax::tree::VectorSelector,
        value::{
            cells::Sample,
            series::{ABSENT, Series},
            steps::Steps,
        },
    },
    store::Columns,
};

impl Selectors<'_> {
    /// Calls `compute` for each series and time with the known samples around the window, and with
    /// the end of the window. The samples begin at the lookback before the window and end
    /// `after_ms` after it.
    pub(crate) fn extended_values(
        &self,
        selector: &VectorSelector,
        steps: &Steps,
        range_ms: i64,
        after_ms: i64,
        compute: impl Fn(&[Sample], i64) -> f64,
    ) -> Result<Vec<Series>, QueryError> {
        let shift = self.shift(selector)?;
        let reach_ms = range_ms + self.lookback_ms + after_ms;
        let mut windows = self.windows(shift, steps, reach_ms, Detail::Samples);
        windows.first.0 += after_ms;
        let cells = self.cells(selector, &windows, NeededCells::All, Columns::ENDS)?;
        self.bounds.check_points(cells.series.len(), steps.count)?;
        let mut out = Vec::with_capacity(cells.series.len());
        for series in &cells.series {
            let samples = series.known_samples();
            let value = |time| {
                self.bounds.check_time()?;
                let to = shift.of(time);
                let first = to - range_ms - self.lookback_ms;
                let lo = samples.partition_point(|sample| sample.0 <= first);
                let hi = samples.partition_point(|sample| sample.0 <= to + after_ms);
                Ok(if lo < hi { compute(&samples[lo..hi], to) } else { ABSENT })
            };
            let values = steps.times().map(value).collect::<Result<Vec<_>, QueryError>>()?;
            out.push(Series::new(series.labels.clone(), false, values));
        }
        out.retain(Series::has_values);
        Ok(out)
    }
}
