//! The levels of a month: days, hours and minutes, each with the sums of the levels below, read
//! from granularities that are stored for the whole level.
//!
//! Must never know: HTTP, or how a document is displayed. All times are UTC.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{
    model::{Cell, SeriesId, Span, UnixMillis},
    policy::coverage::{Coverage, Interval},
    query::{Budget, QueryError, SeriesEntry, Timestamp},
    store::{Columns, Store, View},
};

/// Width of the parts of each level, outermost first.
pub(crate) const PARTS_MS: [i64; 3] = [86_400_000, 3_600_000, 60_000];

/// A month of one series: days > hours > minutes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelsDocument {
    /// The series.
    #[serde(flatten)]
    pub series: SeriesEntry,
    /// Start of the month.
    pub date: Timestamp,
    /// Number of samples in the month.
    pub num_samples: u64,
    /// Sum over the month; for a counter, its increase.
    pub total_samples: f64,
    /// Every day of the month, including empty days. Days are missing when no granularity of a day
    /// or finer is stored.
    pub days: Vec<LevelPart>,
}

/// A day, an hour or a minute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelPart {
    /// The start of the part.
    pub date: Timestamp,
    /// Number of samples in the part.
    pub num_samples: u64,
    /// Sum over the part.
    pub total_samples: f64,
    /// Every hour of a day, when a granularity of an hour or finer is stored for the whole day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<Vec<LevelPart>>,
    /// Every minute of an hour, when a granularity of a minute or finer is stored for the whole
    /// day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<Vec<LevelPart>>,
}

/// The stored ranges of one level.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LevelRanges {
    part_ms: i64,
    /// The ranges to read: whole days, in ascending order.
    intervals: Vec<Interval>,
    /// The whole days that are stored, in ascending order.
    stored_days: Vec<Range<i64>>,
}

/// The plan for the levels of some months: the ranges to read for each level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LevelPlan {
    /// The range in whole months.
    pub(crate) range: Range<UnixMillis>,
    levels: Vec<LevelRanges>,
}

/// A plan with the views that its levels are read from.
pub(crate) struct LevelReader {
    pub(crate) plan: LevelPlan,
    views: Vec<Vec<View>>,
}

/// The parts of one series at one level.
#[derive(Debug)]
pub(crate) struct SeriesParts {
    part_ms: i64,
    /// The stored days, in ascending order.
    stored_days: Vec<Range<i64>>,
    /// The non-empty parts, in ascending order.
    filled: Vec<(i64, Cell)>,
}

impl LevelPlan {
    /// Plans the levels of the months that overlap `range`. `depth` is 1 for days, 2 for days and
    /// hours, 3 for days, hours and minutes. Below the days, only parts that overlap
    /// `finer_range` are read.
    pub(crate) fn new(
        coverage: &Coverage<'_>,
        range: &Range<UnixMillis>,
        finer_range: &Range<UnixMillis>,
        depth: usize,
    ) -> Self {
        let month = Span::Months(1);
        let last = range.end.minus(1).max(range.start);
        let range = month.start_of(range.start)..month.next(month.start_of(last));
        let mut levels = Vec::new();
        for (index, part_ms) in PARTS_MS.into_iter().enumerate().take(depth) {
            let is_suitable = |width_ms: i64| width_ms <= part_ms && part_ms % width_ms == 0;
            let Some(granularity) = coverage.granularities().coarsest_by_width(is_suitable) else {
                break;
            };
            let level_range = if index == 0 {
                range.clone()
            } else {
                finer_range.start.max(range.start)..finer_range.end.min(range.end).max(range.start)
            };
            let mut intervals = coverage.intervals(granularity, whole_days(&level_range));
            intervals.retain(|interval| interval.granularity <= granularity);
            levels.push(LevelRanges::new(part_ms, &intervals));
        }
        Self { range, levels }
    }

    /// Returns the number of parts of one series, including empty parts.
    pub(crate) fn parts(&self) -> i64 {
        let parts = |level: &LevelRanges| -> i64 {
            level.stored_days.iter().map(|days| (days.end - days.start) / level.part_ms).sum()
        };
        self.levels.iter().map(parts).sum()
    }

    /// Returns the months of the plan.
    pub(crate) fn months(&self) -> impl Iterator<Item = Range<UnixMillis>> + use<> {
        let end = self.range.end;
        let starts = std::iter::successors(Some(self.range.start), |start| {
            Some(Span::Months(1).next(*start))
        });
        starts.take_while(move |start| *start < end).map(month)
    }

    /// Creates the views.
    pub(crate) fn open(self, store: &Store, ids: &[SeriesId]) -> Result<LevelReader, QueryError> {
        let view =
            |interval: &Interval| Ok(store.view(interval.stored, interval.range.clone(), ids)?);
        let views = self.levels.iter().map(|level| level.intervals.iter().map(view).collect());
        let views = views.collect::<Result<_, QueryError>>()?;
        Ok(LevelReader { plan: self, views })
    }
}

/// Returns the month that begins at a time.
fn month(start: UnixMillis) -> Range<UnixMillis> {
    start..Span::Months(1).next(start)
}

/// Returns the whole days that overlap a range.
fn whole_days(range: &Range<UnixMillis>) -> Range<UnixMillis> {
    let border = |at: i64| at.div_euclid(PARTS_MS[0]).saturating_mul(PARTS_MS[0]);
    UnixMillis(border(range.start.0))
        ..UnixMillis(border(range.end.0.saturating_add(PARTS_MS[0] - 1)))
}

impl LevelRanges {
    /// Creates the ranges of a level from the whole days of intervals.
    fn new(part_ms: i64, intervals: &[Interval]) -> Self {
        let mut stored_days: Vec<Range<i64>> = Vec::new();
        for Interval { range, .. } in intervals {
            match stored_days.last_mut() {
                Some(last) if last.end == range.start.0 => last.end = range.end.0,
                _ => stored_days.push(range.start.0..range.end.0),
            }
        }
        let day = |at: i64| at.div_euclid(PARTS_MS[0]) * PARTS_MS[0];
        let whole =
            stored_days.into_iter().map(|days| day(days.start + PARTS_MS[0] - 1)..day(days.end));
        let stored_days: Vec<_> = whole.filter(|days| !days.is_empty()).collect();
        let is_inside = |interval: &Interval| {
            let days = stored_days.iter().find(|days| {
                days.start < interval.range.end.0 && interval.range.start.0 < days.end
            })?;
            let (start, end) = (UnixMillis(days.start), UnixMillis(days.end));
            let range = interval.range.start.max(start)..interval.range.end.min(end);
            Some(Interval { range, ..interval.clone() })
        };
        let intervals = intervals.iter().filter_map(is_inside).collect();
        Self { part_ms, intervals, stored_days }
    }
}

impl LevelReader {
    /// Returns the parts of a series at each level, outermost first. The caller charges their
    /// memory to the budget.
    pub(crate) fn read(
        &self,
        series: SeriesId,
        budget: &Budget,
    ) -> Result<Vec<SeriesParts>, QueryError> {
        let mut out = Vec::with_capacity(self.views.len());
        let mut slots = Vec::new();
        for (level, views) in self.plan.levels.iter().zip(&self.views) {
            let mut filled: Vec<(i64, Cell)> = Vec::new();
            for view in views {
                budget.check()?;
                view.slots_into(series, Columns::ALL, &mut slots)?;
                for slot in &slots {
                    let at = slot.start.0.div_euclid(level.part_ms) * level.part_ms;
                    let cell = slot.cell.shifted((slot.start.0 - at) as u32);
                    match filled.last_mut() {
                        Some((last, part)) if *last == at => part.merge(&cell),
                        _ => filled.push((at, cell)),
                    }
                }
            }
            out.push(SeriesParts {
                part_ms: level.part_ms,
                stored_days: level.stored_days.clone(),
                filled,
            });
        }
        Ok(out)
    }
}

impl LevelReader {
    /// Returns the merged parts of several series.
    pub(crate) fn read_merged(
        &self,
        series: &[SeriesId],
        budget: &Budget,
    ) -> Result<Vec<SeriesParts>, QueryError> {
        let mut all: Vec<SeriesParts> = Vec::new();
        for id in series {
            for (index, level_parts) in self.read(*id, budget)?.into_iter().enumerate() {
                match all.get_mut(index) {
                    Some(parts) => parts.merge(&level_parts),
                    None => all.push(level_parts),
                }
            }
        }
        Ok(all)
    }
}

impl SeriesParts {
    fn merge(&mut self, other: &Self) {
        self.filled.extend_from_slice(&other.filled);
        self.filled.sort_by_key(|(at, _)| *at);
        self.filled.dedup_by(|(next, cell), (last, merged)| {
            let is_same = next == last;
            if is_same {
                merged.merge(cell);
            }
            is_same
        });
    }

    /// Returns the memory of the parts in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.filled.capacity() * size_of::<(i64, Cell)>()
    }

    /// Returns the cell of the part that begins at `at`; `None` for an empty part.
    pub(crate) fn cell(&self, at: i64) -> Option<&Cell> {
        let found = self.filled.binary_search_by_key(&at, |(start, _)| *start).ok()?;
        self.filled.get(found).map(|(_, cell)| cell)
    }

    /// Returns the starts of the stored parts within a range.
    pub(crate) fn starts(&self, range: Range<i64>) -> impl Iterator<Item = i64> {
        let in_days = move |days: &Range<i64>| days.start.max(range.start)..days.end.min(range.end);
        self.stored_days.iter().map(in_days).flat_map(|days| days.step_by(self.part_ms as usize))
    }

    /// Returns the non-empty parts within a range.
    pub(crate) fn non_empty_parts(&self, range: Range<i64>) -> &[(i64, Cell)] {
        let from = self.filled.partition_point(|(at, _)| *at < range.start);
        let to = self.filled.partition_point(|(at, _)| *at < range.end);
        self.filled.get(from..to).unwrap_or_default()
    }

    /// Returns the months with at least one non-empty part.
    pub(crate) fn months(&self) -> Vec<Range<UnixMillis>> {
        let mut months: Vec<Range<UnixMillis>> = Vec::new();
        for (at, _) in &self.filled {
            if months.last().is_none_or(|last| last.end.0 <= *at) {
                months.push(month(Span::Months(1).start_of(UnixMillis(*at))));
            }
        }
        months
    }
}

/// Builds the document of a month; `None` when the month is empty.
///
/// # Errors
/// When the budget is used up.
pub(crate) fn levels_document(
    entry: &SeriesEntry,
    month: Range<UnixMillis>,
    parts: &[SeriesParts],
    budget: &Budget,
) -> Result<Option<LevelsDocument>, QueryError> {
    let days = parts_below(parts, month.start.0..month.end.0, budget)?.unwrap_or_default();
    let num_samples = days.iter().map(|day| day.num_samples).sum();
    let total_samples = days.iter().map(|day| day.total_samples).sum();
    Ok((num_samples > 0).then(|| LevelsDocument {
        series: entry.clone(),
        date: Timestamp(month.start),
        num_samples,
        total_samples,
        days,
    }))
}

/// Returns the parts of the outermost level over a range; `None` when the level is not stored.
fn parts_below(
    parts: &[SeriesParts],
    range: Range<i64>,
    budget: &Budget,
) -> Result<Option<Vec<LevelPart>>, QueryError> {
    let Some((level, finer)) = parts.split_first() else { return Ok(None) };
    budget.check()?;
    budget.reserve(level.starts(range.clone()).count() * size_of::<LevelPart>())?;
    let part = |at: i64| {
        let cell = level.cell(at).copied().unwrap_or_default();
        let part_range = at..at + level.part_ms;
        let (hours, minutes) = match level.part_ms {
            part if part == PARTS_MS[0] => (parts_below(finer, part_range, budget)?, None),
            part if part == PARTS_MS[1] => (None, parts_below(finer, part_range, budget)?),
            _ => (None, None),
        };
        Ok(LevelPart {
            date: Timestamp(UnixMillis(at)),
            num_samples: u64::from(cell.n),
            total_samples: cell.sum,
            hours,
            minutes,
        })
    };
    let found = level.starts(range).map(part).collect::<Result<Vec<_>, QueryError>>()?;
    Ok((!found.is_empty()).then_some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Gaps, GranularitySet};

    fn at(text: &str) -> UnixMillis {
        UnixMillis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    fn stored_days(level: &LevelRanges) -> Vec<String> {
        let shown = |days: &Range<i64>| {
            let date = |at: i64| UnixMillis(at).civil().date();
            format!("{} to {}", date(days.start), date(days.end))
        };
        level.stored_days.iter().map(shown).collect()
    }

    #[test]
    fn each_level_is_read_from_the_coarsest_suitable_granularity() {
        let set = GranularitySet::default();
        let now = at("2026-11-21T12:00:00Z");
        let range = at("2026-08-10T00:00:00Z")..now;
        let mut gaps = vec![Gaps::NONE; 4];
        let coverage = Coverage::new(&set, gaps.clone(), now);
        let plan = LevelPlan::new(&coverage, &range, &range, 3);
        assert_eq!(plan.months().count(), 4);
        let levels: Vec<_> =
            plan.levels.iter().map(|level| level.intervals[0].granularity.0).collect();
        assert_eq!(levels, [3, 2, 0]);
        // Hours are stored for 9 weeks from a Monday, minutes for two days; only whole days are
        // read.
        assert_eq!(stored_days(&plan.levels[0]), ["2026-08-01 to 2026-12-01"]);
        assert_eq!(stored_days(&plan.levels[1]), ["2026-09-14 to 2026-11-22"]);
        assert_eq!(stored_days(&plan.levels[2]), ["2026-11-20 to 2026-11-22"]);
        assert_eq!(LevelPlan::new(&coverage, &range, &range, 1).parts(), 31 + 30 + 31 + 30);
        // Incomplete days are read from hours, and incomplete hours are left out.
        gaps[3].complete_since = at("2026-11-01T00:00:00Z");
        gaps[2].holes.push(at("2026-11-02T03:00:00Z")..at("2026-11-02T05:00:00Z"));
        let plan = LevelPlan::new(&Coverage::new(&set, gaps, now), &range, &range, 3);
        let levels: Vec<_> =
            plan.levels[0].intervals.iter().map(|interval| interval.granularity.0).collect();
        assert_eq!(levels, [3, 2, 3]);
        assert_eq!(
            stored_days(&plan.levels[1]),
            ["2026-09-14 to 2026-11-02", "2026-11-03 to 2026-11-22"]
        );
    }
}
