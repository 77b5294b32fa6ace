//! The bytes of a shard's part of a chart: the slots, and the cells of each line.
//!
//! Must never know: how a chart is planned, how lines are shown.

use std::collections::BTreeMap;

use crate::{
    model::{Cell, Histogram, Kind},
    query::{
        Budget, QueryError, SeriesEntry,
        cells::axis::Axis,
        messages::damaged_answer,
        series::grouping::Group,
        wire::{count, number, put_count, put_text, put_value, take, take_slice, text, value},
    },
};

/// The bytes of a cell with the index of its slot.
const CELL_BYTES: usize = 64;

/// A part of a chart, whose cells are still bytes.
pub(crate) struct Part<'a> {
    /// The start and the width of each slot.
    pub(crate) slots: Vec<(i64, i64)>,
    /// Remarks for the reader.
    pub(crate) notes: Vec<String>,
    /// The lines in the order of the shard's groups.
    pub(crate) groups: Vec<GroupPart<'a>>,
}

/// A part of a line.
pub(crate) struct GroupPart<'a> {
    /// The group without its members.
    pub(crate) group: Group,
    cells: &'a [u8],
    histograms: &'a [u8],
}

/// Writes the slots and notes of a part before its groups.
pub(crate) fn put_axis(axis: &Axis, groups: usize, out: &mut Vec<u8>) {
    put_count(axis.len(), out);
    for (start, width) in axis.slots() {
        out.extend(start.to_le_bytes());
        out.extend(width.to_le_bytes());
    }
    put_count(axis.notes.len(), out);
    for note in &axis.notes {
        put_text(note, out);
    }
    put_count(groups, out);
}

/// Writes a group with its cells and histograms.
pub(crate) fn put_group(
    group: &Group,
    cells: &[Cell],
    histograms: &[Option<Histogram>],
    out: &mut Vec<u8>,
) {
    let SeriesEntry { metric, tags, kind, unit } = &group.entry;
    put_text(metric, out);
    put_count(tags.len(), out);
    for (name, value) in tags {
        put_text(name, out);
        put_text(value, out);
    }
    put_text(unit, out);
    out.extend([kind.code(), u8::from(group.merged), u8::from(group.is_one_kind)]);
    put_count(group.count, out);
    let filled = || cells.iter().enumerate().filter(|(_, cell)| !cell.is_empty());
    put_count(filled().count(), out);
    for (index, cell) in filled() {
        put_count(index, out);
        for number in [cell.n, cell.first_at, cell.last_at] {
            out.extend(number.to_le_bytes());
        }
        for number in [cell.sum, cell.min, cell.max, cell.first, cell.last, cell.m2] {
            put_value(number, out);
        }
    }
    let mut bytes = Vec::new();
    for (index, histogram) in histograms.iter().enumerate() {
        if let Some(histogram) = histogram {
            put_count(index, &mut bytes);
            histogram.encode(&mut bytes);
        }
    }
    put_count(bytes.len(), out);
    out.extend(bytes);
}

impl<'a> Part<'a> {
    /// Reads a part, and reserves its memory besides the bytes.
    ///
    /// # Errors
    /// When the bytes are damaged, the query times out, or its memory is used up.
    pub(crate) fn decode(mut bytes: &'a [u8], budget: &Budget) -> Result<Self, QueryError> {
        budget.check()?;
        let bytes = &mut bytes;
        let (slots, notes) = axis(bytes).ok_or_else(damaged_answer)?;
        let of_notes = notes.iter().map(|note| note.len() + size_of::<String>()).sum::<usize>();
        budget.reserve(slots.capacity() * size_of::<(i64, i64)>() + of_notes)?;
        let (mut groups, mut reserved) = (Vec::new(), 0);
        for _ in 0..count(bytes).ok_or_else(damaged_answer)? {
            let part = group(bytes).ok_or_else(damaged_answer)?;
            let entry_bytes = part.group.entry.bytes();
            groups.push(part);
            let grown = groups.capacity() - reserved;
            reserved = groups.capacity();
            budget.reserve(entry_bytes + grown * size_of::<GroupPart<'_>>())?;
        }
        Ok(Self { slots, notes, groups })
    }
}

/// The starts and widths of slots, and the notes.
type SlotsAndNotes = (Vec<(i64, i64)>, Vec<String>);

fn axis(bytes: &mut &[u8]) -> Option<SlotsAndNotes> {
    let (mut slots, mut end) = (Vec::new(), i64::MIN);
    for _ in 0..count(bytes)? {
        let (start, width) = (number(bytes)?, number(bytes)?);
        if start < end || width <= 0 {
            return None;
        }
        end = start.checked_add(width)?;
        slots.push((start, width));
    }
    let mut notes = Vec::new();
    for _ in 0..count(bytes)? {
        notes.push(text(bytes)?.to_owned());
    }
    Some((slots, notes))
}

fn group<'a>(bytes: &mut &'a [u8]) -> Option<GroupPart<'a>> {
    let metric = text(bytes)?.to_owned();
    let mut tags = BTreeMap::new();
    for _ in 0..count(bytes)? {
        tags.insert(text(bytes)?.to_owned(), text(bytes)?.to_owned());
    }
    let unit = text(bytes)?.to_owned();
    let [kind, merged, is_one_kind] = take(bytes)?;
    let kind = *Kind::ALL.get(usize::from(kind))?;
    let entry = SeriesEntry { metric, tags, kind, unit };
    let (merged, is_one_kind) = (merged == 1, is_one_kind == 1);
    let group = Group { entry, merged, members: Vec::new(), count: count(bytes)?, is_one_kind };
    let cells_bytes = count(bytes)?.checked_mul(CELL_BYTES)?;
    let cells = take_slice(bytes, cells_bytes)?;
    let histogram_bytes = count(bytes)?;
    let histograms = take_slice(bytes, histogram_bytes)?;
    Some(GroupPart { group, cells, histograms })
}

impl GroupPart<'_> {
    /// Merges the cells into those of a common axis. Returns `None` when the bytes are damaged.
    pub(crate) fn merge_cells(
        &self,
        slots: &[(i64, i64)],
        axis: &Axis,
        cells: &mut [Cell],
    ) -> Option<()> {
        for mut bytes in self.cells.chunks_exact(CELL_BYTES) {
            let bytes = &mut bytes;
            let slot = *slots.get(count(bytes)?)?;
            let mut whole = || take(bytes).map(u32::from_le_bytes);
            let [n, first_at, last_at] = [whole()?, whole()?, whole()?];
            let mut next = || value(bytes);
            let [sum, min, max] = [next()?, next()?, next()?];
            let [first, last, m2] = [next()?, next()?, next()?];
            let cell = Cell { n, first_at, last_at, sum, min, max, first, last, m2 };
            axis.merge_cell(slot, &cell, cells);
        }
        Some(())
    }

    /// Merges the histograms into those of a common axis. Returns the bytes that they take; `None`
    /// when the bytes are damaged.
    pub(crate) fn merge_histograms(
        &self,
        slots: &[(i64, i64)],
        axis: &Axis,
        histograms: &mut [Option<Histogram>],
    ) -> Option<usize> {
        let (mut bytes, mut grown) = (self.histograms, 0);
        while !bytes.is_empty() {
            let (start, _) = *slots.get(count(&mut bytes)?)?;
            let histogram = Histogram::decode(&mut bytes).ok()?;
            grown += histogram.bytes();
            match histograms.get_mut(axis.index_of(start)?)? {
                Some(merged) => merged.merge(&histogram),
                empty @ None => *empty = Some(histogram),
            }
        }
        Some(grown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::SeriesId, setup};

    #[test]
    fn a_decoded_part_takes_memory_for_its_slots_and_groups_and_no_prefix_is_whole() {
        let axis =
            Axis::of_slots(String::new(), (0..1000).map(|slot| (slot * 60_000, 60_000)).collect());
        let info = setup::series("m", &[("host", &"h".repeat(500))], Kind::Gauge);
        let group = Group {
            entry: SeriesEntry::new(&info),
            merged: false,
            members: vec![SeriesId(0)],
            count: 1,
            is_one_kind: true,
        };
        let mut bytes = Vec::new();
        put_axis(&axis, 2, &mut bytes);
        put_group(&group, &[Cell::single(1, 2.0)], &[], &mut bytes);
        put_group(&group, &[], &[], &mut bytes);
        let budget = Budget::of_memory(1 << 20);
        let part = Part::decode(&bytes, &budget).unwrap();
        assert_eq!((part.slots.len(), part.groups.len()), (1000, 2));
        assert!(budget.reserved() > 16_000 + 2 * 500, "{}", budget.reserved());
        let refused = Part::decode(&bytes, &Budget::of_memory(16_500));
        assert!(refused.is_err_and(|cause| cause.to_string().contains("memory")));
        let is_cut = |length| Part::decode(&bytes[..length], &Budget::UNLIMITED).is_err();
        assert!((0..bytes.len()).all(is_cut));
    }
}
