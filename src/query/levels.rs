//! The levels of a month: days, their hours, and their minutes, each with the sums of all that is
//! below, read from the granularities that are kept.
//!
//! Must never know: HTTP, or how a document is shown. All times are UTC.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{QueryError, SeriesEntry, Timestamp};
use crate::{
    model::{Cell, GranularitySet, SeriesId, Span, UnixMillis},
    store::{Store, View},
};

/// Width of each level's parts, outermost first.
pub(super) const PARTS_MS: [i64; 3] = [86_400_000, 3_600_000, 60_000];

/// A month of one series: days > hours > minutes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelsDocument {
    /// Which series.
    #[serde(flatten)]
    pub series: SeriesEntry,
    /// Start of the month.
    pub date: Timestamp,
    /// Samples of the month.
    pub num_samples: u64,
    /// Sum over the month: of a counter, its increase.
    pub total_samples: f64,
    /// Every day of the month, also empty ones; none where no granularity of a day or finer is
    /// kept.
    pub days: Vec<LevelPart>,
}

/// A day, an hour or a minute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelPart {
    /// When it begins.
    pub date: Timestamp,
    /// Samples in it.
    pub num_samples: u64,
    /// Sum over it.
    pub total_samples: f64,
    /// Every hour of a day, where a granularity of an hour or finer is kept for the whole day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<Vec<LevelPart>>,
    /// Every minute of an hour, where a granularity of a minute or finer is kept for the day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<Vec<LevelPart>>,
}

/// Where the parts of one level are read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rung {
    /// Index of the granularity.
    level: usize,
    part_ms: i64,
    /// What is read: whole days, or whole months for days.
    range: Range<i64>,
}

/// Which granularities the levels of some months are read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ladder {
    /// Start of each month.
    pub(super) months: Vec<UnixMillis>,
    end: i64,
    rungs: Vec<Rung>,
}

/// A ladder with the views it reads from.
pub(super) struct OpenLadder {
    pub(super) ladder: Ladder,
    views: Vec<View>,
}

/// The parts of one series at one level, without gaps.
#[derive(Debug)]
pub(super) struct Parts {
    range: Range<i64>,
    part_ms: i64,
    cells: Vec<Cell>,
}

impl Ladder {
    /// The levels of the months that overlap `range`, `depth` of them: 1 days, 2 with hours, 3
    /// with minutes. Below the days only those that overlap `fine` are read.
    pub(super) fn new(
        granularities: &GranularitySet,
        range: &Range<UnixMillis>,
        fine: &Range<UnixMillis>,
        depth: usize,
        now: UnixMillis,
    ) -> Self {
        let month = Span::Months(1);
        let mut months = vec![month.start_of(range.start)];
        let mut end = month.next(months[0]);
        while end < range.end {
            months.push(end);
            end = month.next(end);
        }
        let mut rungs = Vec::new();
        for (index, part_ms) in PARTS_MS.into_iter().enumerate().take(depth) {
            let serves = |width_ms: i64| width_ms <= part_ms && part_ms % width_ms == 0;
            let levels = granularities.levels();
            let Some(level) = levels.iter().rposition(|level| serves(level.width_ms)) else {
                break;
            };
            let granularity = &levels[level];
            let kept_from = granularity.partition_start(granularity.retention.before(now).plus(1));
            let day = |at: i64, up: i64| (at + up).div_euclid(PARTS_MS[0]) * PARTS_MS[0];
            let from = day(kept_from.0, PARTS_MS[0] - 1);
            let within = if index == 0 {
                months[0].0..end.0
            } else {
                let last = day(fine.end.0.min(end.0), PARTS_MS[0] - 1).min(end.0);
                day(fine.start.0.max(months[0].0), 0)..last
            };
            let from = from.max(within.start);
            rungs.push(Rung { level, part_ms, range: from..within.end.max(from) });
        }
        Self { months, end: end.0, rungs }
    }

    /// Slots that are read and parts that are made for one series.
    pub(super) fn parts(&self) -> i64 {
        self.rungs.iter().map(|rung| (rung.range.end - rung.range.start) / rung.part_ms).sum()
    }

    /// Start of the month after `start`.
    pub(super) fn month_end(&self, start: UnixMillis) -> UnixMillis {
        Span::Months(1).next(start).min(UnixMillis(self.end))
    }

    /// Begins to read.
    pub(super) fn open(self, store: &Store, ids: &[SeriesId]) -> Result<OpenLadder, QueryError> {
        let view = |rung: &Rung| {
            let range = UnixMillis(rung.range.start)..UnixMillis(rung.range.end);
            Ok(store.view(rung.level, range, ids)?)
        };
        let views = self.rungs.iter().map(view).collect::<Result<_, QueryError>>()?;
        Ok(OpenLadder { ladder: self, views })
    }
}

impl OpenLadder {
    /// The parts of a series at each level, outermost first.
    pub(super) fn read(&self, series: SeriesId) -> Result<Vec<Parts>, QueryError> {
        let mut out = Vec::with_capacity(self.views.len());
        let mut filled = Vec::new();
        for (rung, view) in self.ladder.rungs.iter().zip(&self.views) {
            let Range { start, end } = rung.range;
            let mut cells = vec![Cell::EMPTY; ((end - start) / rung.part_ms) as usize];
            if !cells.is_empty() {
                view.slots_into(series, &mut filled)?;
                for slot in &filled {
                    let offset = slot.start.0 - start;
                    let shift = offset.rem_euclid(rung.part_ms) as u32;
                    let part = usize::try_from(offset.div_euclid(rung.part_ms));
                    if let Some(cell) = part.ok().and_then(|part| cells.get_mut(part)) {
                        cell.merge(&slot.cell.shifted(shift));
                    }
                }
            }
            out.push(Parts { range: start..end, part_ms: rung.part_ms, cells });
        }
        Ok(out)
    }
}

impl Parts {
    /// The cell of the part that begins at `at`; `None` where nothing is kept.
    pub(super) fn cell(&self, at: i64) -> Option<&Cell> {
        let index = usize::try_from((at - self.range.start).div_euclid(self.part_ms)).ok()?;
        self.cells.get(index)
    }

    /// Starts of the parts within a range that are kept.
    pub(super) fn starts(&self, range: Range<i64>) -> impl Iterator<Item = i64> + use<> {
        let from = range.start.max(self.range.start);
        (from..range.end.min(self.range.end)).step_by(self.part_ms as usize)
    }
}

/// The document of a month; `None` when nothing fell into it.
pub(super) fn levels_document(
    entry: &SeriesEntry,
    month: Range<UnixMillis>,
    parts: &[Parts],
) -> Option<LevelsDocument> {
    let days = below(parts, month.start.0..month.end.0).unwrap_or_default();
    let num_samples = days.iter().map(|day| day.num_samples).sum();
    let total_samples = days.iter().map(|day| day.total_samples).sum();
    (num_samples > 0).then(|| LevelsDocument {
        series: entry.clone(),
        date: Timestamp(month.start),
        num_samples,
        total_samples,
        days,
    })
}

/// The parts of the outermost level over a range; `None` where that level is not kept.
fn below(parts: &[Parts], range: Range<i64>) -> Option<Vec<LevelPart>> {
    let (level, finer) = parts.split_first()?;
    let part = |at: i64| {
        let cell = level.cell(at).copied().unwrap_or_default();
        let own = at..at + level.part_ms;
        let (hours, minutes) = match level.part_ms {
            part if part == PARTS_MS[0] => (below(finer, own), None),
            part if part == PARTS_MS[1] => (None, below(finer, own)),
            _ => (None, None),
        };
        LevelPart {
            date: Timestamp(UnixMillis(at)),
            num_samples: u64::from(cell.n),
            total_samples: cell.sum,
            hours,
            minutes,
        }
    };
    let found: Vec<_> = level.starts(range).map(part).collect();
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_is_read_from_the_coarsest_granularity_that_serves_it() {
        let set = GranularitySet::default();
        let at = |text: &str| UnixMillis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond());
        let now = at("2026-11-21T12:00:00Z");
        let range = at("2026-08-10T00:00:00Z")..now;
        let ladder = Ladder::new(&set, &range, &range, 3, now);
        assert_eq!(ladder.months.len(), 4);
        let levels: Vec<_> = ladder.rungs.iter().map(|rung| rung.level).collect();
        assert_eq!(levels, [3, 2, 0]);
        let starts: Vec<_> =
            ladder.rungs.iter().map(|rung| UnixMillis(rung.range.start).to_string()).collect();
        // Hours are kept for 9 weeks from a Monday, minutes for two days; whole days are read.
        assert_eq!(
            starts,
            ["2026-08-01T00:00:00Z", "2026-09-14T00:00:00Z", "2026-11-20T00:00:00Z"]
        );
        assert_eq!(ladder.rungs[0].range.end, at("2026-12-01T00:00:00Z").0);
        assert_eq!(ladder.rungs[2].range.end, at("2026-11-22T00:00:00Z").0);
        let days = Ladder::new(&set, &range, &range, 1, now);
        assert_eq!(days.parts(), 31 + 30 + 31 + 30);
    }
}
