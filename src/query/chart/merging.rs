//! The lines of a chart of several shards: parts of equal lines are merged by slot.
//!
//! Must never know: where the shards are, how lines are shown.

use std::collections::BTreeMap;

use super::{
    ChartRequest, SEVERAL_KINDS, VisitGroup,
    part::{GroupPart, Part},
};
use crate::{
    model::Cell,
    query::{
        Budget, QueryError, QueryLimits, SeriesEntry, SeriesMerge,
        cells::axis::Axis,
        histograms::needs_histograms,
        messages::damaged_answer,
        series::grouping::{Group, check_lines},
    },
};

/// The slots of all shards, and the lines whose cells are still bytes.
pub(crate) struct MergedChart<'p> {
    pub(crate) axis: Axis,
    pub(super) notes: Vec<String>,
    groups: Vec<MergedGroup<'p>>,
    has_histograms: bool,
}

impl<'p> MergedChart<'p> {
    /// Merges the lines of all parts. The resolution and the notes come from their outlines.
    pub(super) fn new(
        parts: &'p [Part<'p>],
        (request, budget): (&ChartRequest, &Budget),
        (resolution, notes): (String, Vec<String>),
        limits: &QueryLimits,
    ) -> Result<Self, QueryError> {
        let axis = Axis::of_slots(resolution, common_slots(parts));
        let groups = merged_groups(parts, request, budget)?;
        let mut notes = deduplicated(parts, notes);
        let lines = request.lines(groups.len());
        check_lines(lines, limits)?;
        let points = lines.saturating_mul(axis.len()) * request.displays.len().max(1);
        if points > limits.points_max {
            return Err(QueryError::TooMuch(format!(
                "the answer has more than {} points: ask for fewer series or a coarser \
                 resolution, or raise limits.query_points_max",
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
        Ok(Self { axis, notes, groups, has_histograms })
    }

    /// Returns the lines, in order.
    pub(super) fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().map(|(group, _)| group)
    }

    /// Returns the notes without the one about kinds, which only charts have.
    pub(crate) fn notes_of_slots(&self) -> Vec<String> {
        self.notes.iter().filter(|note| *note != SEVERAL_KINDS).cloned().collect()
    }

    /// Calls `visit` with the merged cells and histograms of each line, in order.
    pub(crate) fn read(
        &self,
        budget: &Budget,
        visit: &mut VisitGroup<'_>,
    ) -> Result<(), QueryError> {
        let slots = self.axis.len();
        budget.reserve(slots * size_of::<Cell>())?;
        let (mut cells, mut reserved) = (vec![Cell::EMPTY; slots], 0);
        let mut histograms = vec![None; if self.has_histograms { slots } else { 0 }];
        for (group, members) in &self.groups {
            budget.check()?;
            cells.fill(Cell::EMPTY);
            histograms.fill(None);
            let mut bytes = 0;
            for (slots, part) in members {
                part.merge_cells(slots, &self.axis, &mut cells).ok_or_else(damaged_answer)?;
                if self.has_histograms {
                    let merged = part.merge_histograms(slots, &self.axis, &mut histograms);
                    bytes += merged.ok_or_else(damaged_answer)?;
                }
            }
            budget.reserve(bytes.saturating_sub(reserved))?;
            reserved = reserved.max(bytes);
            visit(group, &cells, &histograms)?;
        }
        Ok(())
    }
}

impl ChartRequest {
    /// Returns the number of lines that are shown of a number of groups.
    pub(super) fn lines(&self, groups: usize) -> usize {
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
            let name = identity(&group.entry, &request.merge);
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
    group.count += other.count;
    group.is_one_kind &= other.is_one_kind && group.entry.kind == other.entry.kind;
    join_entries(&mut group.entry, &other.entry);
}

/// Keeps what the entries of a line in two shards share.
pub(crate) fn join_entries(entry: &mut SeriesEntry, of_other: &SeriesEntry) {
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
pub(crate) fn identity(entry: &SeriesEntry, merge: &SeriesMerge) -> String {
    let mut name = String::new();
    let mut put = |text: &str| {
        name.push_str(text);
        name.push('\0');
    };
    match merge {
        SeriesMerge::Nothing => {
            put(&entry.metric);
            for (tag, value) in &entry.tags {
                put(tag);
                put(value);
            }
        }
        SeriesMerge::All => {}
        SeriesMerge::By(names) => {
            for tag in names {
                put(entry.tags.get(tag).map_or("", String::as_str));
            }
        }
    }
    name
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
