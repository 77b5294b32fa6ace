//! A chart of a store with several shards: each shard answers with the cells of its lines, which
//! are merged by line and slot.
//!
//! First, each shard outlines its chart, so that all draw the same slots. The outline of a ranked
//! chart lists the lines: those that several shards have are merged before they are ranked, and of
//! the others, each shard answers with the highest or lowest. Must never know: where the shards
//! are.

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::{
    ChartAnswer, ChartRequest, PlannedChart,
    lines::{Lines, rank_number},
    merging::{MergedChart, identity},
    part::{Part, put_axis, put_group},
};
use crate::{
    model::UnixMillis,
    query::{
        Budget, QueryError, QueryLimits, Resolution,
        messages::{read_answer, written},
        series::grouping::Ranking,
    },
    store::Store,
};

/// A step of a chart of several shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChartStep {
    /// Each shard outlines its chart.
    Outline {
        /// The maximum number of slots with automatic resolution.
        points: Option<usize>,
    },
    /// Each shard answers with cells.
    Cells {
        /// The resolution.
        resolution: String,
        /// The hashes of the lines of a ranked chart that several shards have.
        shared: Vec<u64>,
    },
}

/// The series and slots of a shard's chart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ChartOutline {
    /// The width of the slots, or the name of the calendar unit.
    resolution: String,
    /// The width of the widest slot in milliseconds.
    width_ms: i64,
    series: usize,
    /// The number of lines, with each displayed number.
    lines: usize,
    /// The hash of each line of a ranked chart.
    ranked: Vec<u64>,
    notes: Vec<String>,
}

/// Answers a step of a chart for one shard.
///
/// # Errors
/// See [`super::chart`].
pub fn chart_step(
    store: &Store,
    budget: &Budget,
    (request, step): (&ChartRequest, &ChartStep),
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<Vec<u8>, QueryError> {
    let mut request = request.clone();
    match step {
        ChartStep::Outline { points } => {
            request.points = *points;
            let outline = outline(store, budget, &request, limits, now)?;
            written(&outline)
        }
        ChartStep::Cells { resolution, shared } => {
            let Ok(resolution) = resolution.parse();
            request.resolution = resolution;
            part(store, budget, (&request, shared), limits, now)
        }
    }
}

/// Asks all shards for a step, and returns their answers in the order of shards.
type AskStep<'a> = dyn Fn(&ChartStep) -> Result<Vec<Vec<u8>>, QueryError> + 'a;

/// Draws a chart of all shards, which `ask` asks for a step. When the shards choose several
/// resolutions, all draw the coarsest one.
///
/// # Errors
/// When a shard does not answer, the answer is too large, or the budget is used up.
pub fn chart_of_shards(
    budget: &Budget,
    request: &ChartRequest,
    ask: &AskStep<'_>,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<ChartAnswer, QueryError> {
    let gathered = GatheredChart::ask(budget, request, ask, limits)?;
    let parts = gathered.parts(budget)?;
    let merged = gathered.merged(&parts, (request, budget), limits)?;
    let mut shown = Lines::new(budget, request, (&merged.axis, now), merged.groups())?;
    merged.read(budget, &mut |group, cells, histograms| shown.push(group, cells, histograms))?;
    let series = shown.finish();
    Ok(request.answer(&merged.axis, (series, merged.notes), now))
}

/// The cells of a chart of all shards, as bytes.
pub(crate) struct GatheredChart {
    cells: Vec<Vec<u8>>,
    resolution: String,
    /// The notes of the outlines.
    notes: Vec<String>,
}

impl GatheredChart {
    /// Asks all shards.
    pub(crate) fn ask(
        budget: &Budget,
        request: &ChartRequest,
        ask: &AskStep<'_>,
        limits: &QueryLimits,
    ) -> Result<Self, QueryError> {
        let outlines = |points| {
            let answers = ask(&ChartStep::Outline { points })?;
            answers.iter().map(|answer| read_answer(answer, budget)).collect::<Result<Vec<_>, _>>()
        };
        let mut all: Vec<ChartOutline> = outlines(request.points)?;
        // Slots of the whole must fit as those of one store do.
        let total = all.iter().map(|outline| outline.lines.max(outline.series)).sum::<usize>();
        let fitting = limits.points_max / total.max(1);
        let range_ms = request.range.end.0.saturating_sub(request.range.start.0);
        let slots = all.iter().map(|outline| range_ms / outline.width_ms.max(1)).max();
        if request.resolution == Resolution::Auto
            && slots.is_some_and(|slots| slots as usize > fitting)
        {
            all = outlines(Some(request.points.unwrap_or(usize::MAX).min(fitting.max(1))))?;
        }
        let (resolution, notes) = common(&all);
        let shared = shared(&all);
        let cells = ask(&ChartStep::Cells { resolution: resolution.clone(), shared })?;
        Ok(Self { cells, resolution, notes })
    }

    /// Reads the parts of the shards.
    pub(crate) fn parts(&self, budget: &Budget) -> Result<Vec<Part<'_>>, QueryError> {
        self.cells.iter().map(|bytes| Part::decode(bytes, budget)).collect()
    }

    /// Merges the lines of all parts.
    pub(crate) fn merged<'p>(
        &self,
        parts: &'p [Part<'p>],
        (request, budget): (&ChartRequest, &Budget),
        limits: &QueryLimits,
    ) -> Result<MergedChart<'p>, QueryError> {
        let outlined = (self.resolution.clone(), self.notes.clone());
        MergedChart::new(parts, (request, budget), outlined, limits)
    }
}

/// Returns the coarsest resolution of the shards with series, and their notes.
fn common(outlines: &[ChartOutline]) -> (String, Vec<String>) {
    let has_series = outlines.iter().any(|outline| outline.series > 0);
    // A shard without the series suggests others.
    let counted = || outlines.iter().filter(|outline| !has_series || outline.series > 0);
    let coarsest = counted().max_by_key(|outline| outline.width_ms);
    let resolution = coarsest.map(|outline| outline.resolution.clone()).unwrap_or_default();
    let mut notes = Vec::new();
    for note in counted()
        .filter(|outline| outline.resolution == resolution)
        .flat_map(|outline| &outline.notes)
    {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    (resolution, notes)
}

/// Returns the lines that several shards have.
fn shared(outlines: &[ChartOutline]) -> Vec<u64> {
    let (mut seen, mut shared) = (HashSet::new(), BTreeSet::new());
    for line in outlines.iter().flat_map(|outline| &outline.ranked) {
        if !seen.insert(*line) {
            shared.insert(*line);
        }
    }
    shared.into_iter().collect()
}

/// Outlines the chart of a shard.
fn outline(
    store: &Store,
    budget: &Budget,
    request: &ChartRequest,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<ChartOutline, QueryError> {
    let planned = PlannedChart::new((store, budget), request, limits, now)?;
    let groups = if request.rank.is_some() { &planned.groups[..] } else { &[] };
    budget.reserve(size_of::<u64>() * groups.len())?;
    let displays = request.displays.len().max(1);
    Ok(ChartOutline {
        width_ms: planned.axis.slots().iter().map(|(_, width)| *width).max().unwrap_or_default(),
        series: planned.series,
        lines: request.lines(planned.groups.len()) * displays,
        ranked: groups.iter().map(|group| hash(&identity(&group.entry, &request.merge))).collect(),
        resolution: planned.axis.resolution,
        notes: planned.axis.notes,
    })
}

/// Returns the cells of a shard's lines, as bytes. Of a ranked chart, these are the lines with the
/// hashes `shared`, and the best of the others.
fn part(
    store: &Store,
    budget: &Budget,
    (request, shared): (&ChartRequest, &[u64]),
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<Vec<u8>, QueryError> {
    let mut planned = PlannedChart::new((store, budget), request, limits, now)?;
    let groups = std::mem::take(&mut planned.groups);
    let shared: HashSet<u64> = shared.iter().copied().collect();
    let mut ranking = request.rank.map(Ranking::new);
    let held = request.rank.map_or(0, Ranking::<Vec<u8>>::lines_in_memory_max);
    let (mut kept, mut place, mut written) = (Vec::new(), 0_usize, 0_usize);
    planned.read(&groups, &mut |group, cells, histograms| {
        let mut bytes = Vec::new();
        put_group(group, cells, histograms, &mut bytes);
        let is_shared = || shared.contains(&hash(&identity(&group.entry, &request.merge)));
        let entry = (place, bytes);
        place += 1;
        match &mut ranking {
            Some(ranking) if !is_shared() => {
                let (axis, numbers) = (&planned.axis, (cells, histograms));
                let number = rank_number(request, (axis, now), group, numbers);
                if place <= held {
                    budget.reserve(entry.1.len())?;
                }
                ranking.push(number, entry);
            }
            _ => {
                written += entry.1.len();
                budget.reserve(entry.1.len())?;
                kept.push(entry);
            }
        }
        Ok(())
    })?;
    kept.extend(ranking.into_iter().flat_map(Ranking::finish));
    kept.sort_unstable_by_key(|(place, _)| *place);
    let mut out = Vec::with_capacity(written);
    put_axis(&planned.axis, kept.len(), &mut out);
    for (_, bytes) in kept {
        out.extend(bytes);
    }
    Ok(out)
}

fn hash(name: &str) -> u64 {
    xxh3_64(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(resolution: &str, width_ms: i64, series: usize, ranked: &[u64]) -> ChartOutline {
        let (lines, notes) = (series, vec![format!("of {series}")]);
        let (resolution, ranked) = (resolution.to_owned(), ranked.to_vec());
        ChartOutline { resolution, width_ms, series, lines, ranked, notes }
    }

    #[test]
    fn shards_with_series_choose_the_coarsest_resolution_and_share_lines() {
        let all =
            [outline("1d", 86, 0, &[]), outline("1m", 1, 2, &[1, 2]), outline("5m", 5, 1, &[2])];
        assert_eq!(common(&all), ("5m".to_owned(), vec!["of 1".to_owned()]));
        assert_eq!(common(&all[..1]), ("1d".to_owned(), vec!["of 0".to_owned()]));
        assert_eq!(shared(&all), [2]);
    }
}
