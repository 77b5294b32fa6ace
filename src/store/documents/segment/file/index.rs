//! The index of a segment: its tiles, found by time and row.
//!
//! Must never know: the bytes of tiles.

use std::ops::Range;

use super::{Entry, Segment, TileId};
use crate::store::documents::segment::tile::HISTOGRAMS;

impl Segment {
    /// Returns the tiles of cells, ascending: their indexes, positions and numbers of slots.
    pub(crate) fn tiles(&self) -> impl Iterator<Item = (usize, TileId, usize)> + '_ {
        let tiles = self.starts.iter().flat_map(|(_, entries)| entries.clone());
        tiles.map(|tile| (tile, self.entries[tile].id, self.entries[tile].slots as usize))
    }

    /// Returns the tiles of histograms: their indexes, seconds from the partition's start to their
    /// first slots, rows and numbers of slots.
    pub(crate) fn histogram_tiles(&self) -> impl Iterator<Item = (usize, u32, u32, usize)> + '_ {
        self.histograms.iter().map(|tile| {
            let Entry { id, slots, .. } = self.entries[*tile];
            (*tile, id.seconds, id.row & !HISTOGRAMS, slots as usize)
        })
    }

    /// Returns the size of a tile in bytes.
    pub(crate) fn tile_bytes(&self, tile: usize) -> u64 {
        let end = self.entries.get(tile + 1).map_or(self.index_at, |next| next.offset);
        end.saturating_sub(self.entries[tile].offset)
    }

    /// Returns the spans of the tiles, ascending, in seconds from the partition's start, each with
    /// the total size of its tiles in bytes.
    pub(crate) fn spans(&self) -> Vec<(Range<i64>, u64)> {
        let offset = |entry: &Entry| entry.offset;
        let spans = self.starts.iter().enumerate().map(|(position, (seconds, entries))| {
            let (entry, from) = (&self.entries[entries.start], i64::from(*seconds));
            let next = self.starts.get(position + 1).map(|(_, next)| &self.entries[next.start]);
            let bytes = next.map_or(self.index_at, offset).saturating_sub(entry.offset);
            (from..from + seconds_of(entry.slots, self.width_ms), bytes)
        });
        spans.collect()
    }

    /// Returns the tile that contains a slot of a row: its index, the start of its first slot, and
    /// its number of slots. Times are seconds from the partition's start.
    pub(crate) fn find(&self, seconds: u32, row: u32) -> Option<(usize, u32, usize)> {
        if !self.span.contains(&i64::from(seconds)) {
            return None;
        }
        let later = self.starts.partition_point(|(start, _)| *start <= seconds);
        let (start, entries) = self.starts[..later].last()?;
        let rows = &self.entries[entries.clone()];
        // Usually no row is missing.
        let guess = row.checked_sub(rows.first()?.id.row)? as usize;
        let is_right = rows.get(guess).is_some_and(|entry| entry.id.row == row);
        let search = || rows.binary_search_by_key(&row, |entry| entry.id.row).ok();
        let found = entries.start + if is_right { guess } else { search()? };
        self.reaches(found, seconds).then_some((found, *start, self.entries[found].slots as usize))
    }

    /// Returns the tile that contains the histograms of a slot of a row, as [`Self::find`] does.
    pub(crate) fn find_histograms(&self, seconds: u32, row: u32) -> Option<(usize, u32, usize)> {
        let is_before = |tile: &usize| {
            let id = self.entries[*tile].id;
            (id.row & !HISTOGRAMS, id.seconds) <= (row, seconds)
        };
        let later = self.histograms.partition_point(is_before);
        let found = *self.histograms[..later].last()?;
        let Entry { id, slots, .. } = self.entries[found];
        let is_found = id.row == row | HISTOGRAMS && self.reaches(found, seconds);
        is_found.then_some((found, id.seconds, slots as usize))
    }

    /// Returns whether a tile that begins at a slot or before it contains the slot.
    fn reaches(&self, tile: usize, seconds: u32) -> bool {
        let Entry { id, slots, .. } = self.entries[tile];
        (i64::from(seconds) - i64::from(id.seconds)) * 1000 < i64::from(slots) * self.width_ms
    }
}

/// Returns the length of a number of slots in seconds.
pub(super) fn seconds_of(slots: u32, width_ms: i64) -> i64 {
    i64::from(slots) * width_ms / 1000
}

/// Returns the starts of tiles of cells, each with its entries, and the entries of tiles of
/// histograms by row and start.
pub(super) fn directory(entries: &[Entry]) -> (Vec<(u32, Range<usize>)>, Vec<usize>) {
    let (mut starts, mut histograms): (Vec<(u32, Range<usize>)>, Vec<_>) = Default::default();
    for (index, entry) in entries.iter().enumerate() {
        if entry.id.is_of_histograms() {
            histograms.push(index);
            continue;
        }
        match starts.last_mut() {
            Some((seconds, range)) if *seconds == entry.id.seconds => range.end = index + 1,
            _ => starts.push((entry.id.seconds, index..index + 1)),
        }
    }
    histograms.sort_by_key(|index| (entries[*index].id.row, entries[*index].id.seconds));
    (starts, histograms)
}
