//! A chart of a store with several shards: each shard answers with the cells of its lines, which
//! are merged by line and slot.
//!
//! First, each shard outlines its chart, so that all draw the same slots. The outline of a ranked
//! chart lists the lines: those that several shards have are merged before they are ranked, and of
//! the others, each shard answers with the highest or lowest. Must never know: where the shards
//! are.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::{
    ChartAnswer, ChartRequest, PlannedChart, SEVERAL_KINDS,
    lines::{Lines, rank_number},
    part::{GroupPart, Part, put_axis, put_group},
};
use crate::{
    model::{Cell, UnixMillis},
    query::{
        Budget, QueryError, QueryLimits, Resolution, SeriesMerge,
        cells::axis::Axis,
        histograms::needs_histograms,
        messages::{damaged_answer, read_answer, written},
        series::grouping::{Group, Ranking, check_lines},
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
    if request.resolution == Resolution::Auto && slots.is_some_and(|slots| slots as usize > fitting)
    {
        all = outlines(Some(request.points.unwrap_or(usize::MAX).min(fitting.max(1))))?;
    }
    let (resolution, notes) = common(&all);
    let cells = ask(&ChartStep::Cells { resolution: resolution.clone(), shared: shared(&all) })?;
    merged(&cells, budget, (request, resolution, notes), limits, now)
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
        ranked: groups.iter().map(|group| hash(&identity(group, &request.merge))).collect(),
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
        let is_shared = || shared.contains(&hash(&identity(group, &request.merge)));
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

/// Merges the parts of all shards. `notes` come from their outlines.
fn merged(
    parts: &[Vec<u8>],
    budget: &Budget,
    (request, resolution, notes): (&ChartRequest, String, Vec<String>),
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<ChartAnswer, QueryError> {
    let parts = parts.iter().map(|bytes| Part::decode(bytes, budget));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let axis = Axis::of_slots(resolution, common_slots(&parts));
    let (groups, mut notes) =
        (merged_groups(&parts, request, budget)?, deduplicated(&parts, notes));
    let lines = request.lines(groups.len());
    check_lines(lines, limits)?;
    let points = lines.saturating_mul(axis.len()) * request.displays.len().max(1);
    if points > limits.points_max {
        return Err(QueryError::TooMuch(format!(
            "the chart has more than {} points: ask for fewer series or a coarser resolution, or \
             raise limits.query_points_max",
            limits.points_max
        )));
    }
    let groups: Vec<_> = groups.into_values().collect();
    let has_histograms =
        needs_histograms(groups.iter().map(|(group, _)| group), request.numbers())?;
    if groups.iter().any(|(group, _)| !group.is_one_kind)
        && !notes.iter().any(|note| note == SEVERAL_KINDS)
    {
        notes.push(SEVERAL_KINDS.to_owned());
    }
    budget.reserve(axis.len() * size_of::<Cell>())?;
    let (mut cells, mut reserved) = (vec![Cell::EMPTY; axis.len()], 0);
    let mut histograms = vec![None; if has_histograms { axis.len() } else { 0 }];
    let mut shown =
        Lines::new(budget, request, (&axis, now), groups.iter().map(|(group, _)| group))?;
    for (group, members) in &groups {
        budget.check()?;
        cells.fill(Cell::EMPTY);
        histograms.fill(None);
        let mut bytes = 0;
        for (slots, part) in members {
            part.merge_cells(slots, &axis, &mut cells).ok_or_else(damaged_answer)?;
            if has_histograms {
                let merged = part.merge_histograms(slots, &axis, &mut histograms);
                bytes += merged.ok_or_else(damaged_answer)?;
            }
        }
        budget.reserve(bytes.saturating_sub(reserved))?;
        reserved = reserved.max(bytes);
        shown.push(group, &cells, &histograms)?;
    }
    let series = shown.finish();
    Ok(request.answer(&axis, (series, notes), now))
}

impl ChartRequest {
    /// Returns the number of lines that are shown of a number of groups.
    fn lines(&self, groups: usize) -> usize {
        self.rank.map_or(groups, |rank| rank.count.min(groups))
    }
}

/// A line, with the slots and the cells of each part.
type MergedGroup<'p> = (Group, Vec<(&'p [(i64, i64)], &'p GroupPart<'p>)>);

/// Returns the lines of all parts in order.
fn merged_groups<'p>(
    parts: &'p [Part<'p>],
    request: &ChartRequest,
    budget: &Budget,
) -> Result<BTreeMap<String, MergedGroup<'p>>, QueryError> {
    let mut merged: BTreeMap<String, MergedGroup<'p>> = BTreeMap::new();
    for part in parts {
        budget.check()?;
        for group_part in &part.groups {
            let (group, slots) = (&group_part.group, part.slots.as_slice());
            let name = identity(group, &request.merge);
            if let Some((known, members)) = merged.get_mut(&name) {
                join(known, group);
                members.push((slots, group_part));
            } else {
                budget.reserve(2 * group.entry.bytes() + name.len())?;
                merged.insert(name, (group.clone(), vec![(slots, group_part)]));
            }
        }
    }
    Ok(merged)
}

/// Adds the series of another shard to a line.
fn join(group: &mut Group, other: &Group) {
    let (entry, of_other) = (&mut group.entry, &other.entry);
    group.count += other.count;
    group.is_one_kind &= other.is_one_kind && entry.kind == of_other.kind;
    for (text, other) in [(&mut entry.metric, &of_other.metric), (&mut entry.unit, &of_other.unit)]
    {
        if text != other {
            text.clear();
        }
    }
    entry.tags.retain(|name, value| of_other.tags.get(name) == Some(value));
}

/// Returns the text that identifies a line, in whose order lines are: the metric and tags of a
/// series, or the values of the tags by which series are merged.
fn identity(group: &Group, merge: &SeriesMerge) -> String {
    let mut name = String::new();
    let mut put = |text: &str| {
        name.push_str(text);
        name.push('\0');
    };
    match merge {
        SeriesMerge::Nothing => {
            put(&group.entry.metric);
            for (tag, value) in &group.entry.tags {
                put(tag);
                put(value);
            }
        }
        SeriesMerge::All => {}
        SeriesMerge::By(names) => {
            for tag in names {
                put(group.entry.tags.get(tag).map_or("", String::as_str));
            }
        }
    }
    name
}

fn hash(name: &str) -> u64 {
    xxh3_64(name.as_bytes())
}

/// Returns slots that contain whole slots of each part: overlapping slots become one.
pub(crate) fn common_slots(parts: &[Part<'_>]) -> Vec<(i64, i64)> {
    let mut all: Vec<_> = parts.iter().flat_map(|part| part.slots.iter().copied()).collect();
    all.sort_unstable();
    let mut common: Vec<(i64, i64)> = Vec::new();
    for (start, width) in all {
        match common.last_mut() {
            Some((last, last_width)) if start < *last + *last_width => {
                *last_width = (*last_width).max(start + width - *last);
            }
            _ => common.push((start, width)),
        }
    }
    common
}

/// Adds the notes of the parts with lines, once each. Notes of the others only tell that they have
/// none.
fn deduplicated(parts: &[Part<'_>], mut notes: Vec<String>) -> Vec<String> {
    for note in parts.iter().filter(|part| !part.groups.is_empty()).flat_map(|part| &part.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes
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

    fn part(slots: &[(i64, i64)]) -> Part<'static> {
        Part { slots: slots.to_vec(), notes: Vec::new(), groups: Vec::new() }
    }

    #[test]
    fn common_slots_contain_whole_slots_of_all_parts() {
        let fine = part(&[(0, 60), (60, 60), (120, 60), (240, 60)]);
        let coarse = part(&[(60, 120), (180, 60)]);
        let expected = [(0, 60), (60, 120), (180, 60), (240, 60)];
        assert_eq!(common_slots(&[fine, coarse]), expected);
        assert!(common_slots(&[part(&[])]).is_empty());
    }
}
