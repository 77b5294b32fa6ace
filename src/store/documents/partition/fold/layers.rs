//! The choice of overlapping segments to merge. Late cells of sealed documents are in separate
//! segments, which cover the same time as the segments of these documents.
//!
//! Must never know: what is in segments.

use std::ops::Range;

use crate::store::documents::partition::reader::PartitionReader;

/// The maximum number of segments that cover the same time while the partition is busy.
const LAYERS_MAX: usize = 8;
/// Late segments are merged with the largest segment if their bytes, times this number, are at
/// least the bytes of that segment.
const LATE_PART: u64 = 8;

/// The tiles of a segment over one span.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Layer {
    /// Number of the segment.
    number: u32,
    /// Seconds from the partition's start.
    span: Range<i64>,
    bytes: u64,
}

impl PartitionReader {
    /// Returns the numbers of the segments to merge while the time of the partition is not over;
    /// empty when merging does not pay off. A partition that is not quiet may have more overlapping
    /// segments.
    pub(crate) fn layers_to_merge(&self, is_quiet: bool, bytes_min: u64) -> Vec<u32> {
        // A partition with a lost segment is never folded.
        debug_assert_eq!(self.named.len(), self.segments.len());
        let pairs = self.named.iter().zip(&self.segments);
        let layers = pairs.flat_map(|(named, segment)| {
            let layer = |(span, bytes)| Layer { number: named.number, span, bytes };
            segment.spans().into_iter().map(layer)
        });
        to_merge(&layers.collect::<Vec<_>>(), is_quiet, bytes_min)
    }
}

/// Returns the segments to merge, among the segments that cover the time with the most overlaps:
/// all of them, or all except the largest while the others are small.
fn to_merge(layers: &[Layer], is_quiet: bool, bytes_min: u64) -> Vec<u32> {
    let over = |at: i64| layers.iter().filter(move |layer| layer.span.contains(&at));
    let starts = layers.iter().map(|layer| layer.span.start);
    let Some(deepest) = starts.max_by_key(|at| over(*at).count()) else { return Vec::new() };
    let Some(largest) = over(deepest).max_by_key(|layer| layer.bytes) else { return Vec::new() };
    let late = over(deepest).map(|layer| layer.bytes).sum::<u64>() - largest.bytes;
    let is_large = late >= bytes_min && late >= largest.bytes / LATE_PART;
    let is_deep = over(deepest).count() > LAYERS_MAX;
    let numbers = over(deepest).map(|layer| layer.number);
    if is_large && (is_deep || is_quiet) {
        numbers.collect()
    } else if is_deep {
        numbers.filter(|number| *number != largest.number).collect()
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(number: u32, span: Range<i64>, bytes: u64) -> Layer {
        Layer { number, span, bytes }
    }

    #[test]
    fn segments_that_do_not_overlap_are_not_merged() {
        let hours = [layer(1, 0..10, 800), layer(2, 10..20, 800), layer(3, 20..30, 800)];
        assert_eq!(to_merge(&hours, true, 0), [0; 0]);
        assert_eq!(to_merge(&[], true, 0), [0; 0]);
    }

    #[test]
    fn late_segments_join_the_largest_when_they_are_large_and_the_partition_is_quiet() {
        let mut layers = vec![layer(1, 0..10, 800), layer(2, 10..20, 800), layer(3, 0..10, 99)];
        assert_eq!(to_merge(&layers, true, 0), [0; 0]);
        layers.push(layer(4, 0..20, 1));
        assert_eq!(to_merge(&layers, true, 0), [1, 3, 4]);
        assert_eq!(to_merge(&layers, true, 101), [0; 0]);
        assert_eq!(to_merge(&layers, false, 0), [0; 0]);
    }

    #[test]
    fn too_many_layers_are_merged_at_once_without_the_largest_while_they_are_small() {
        let mut layers = vec![layer(1, 0..60, 8000)];
        layers.extend((2..9).map(|number| layer(number, 20..30, 10)));
        assert_eq!(to_merge(&layers, false, 0), [0; 0]);
        layers.push(layer(9, 20..30, 10));
        assert_eq!(to_merge(&layers, false, 0), [2, 3, 4, 5, 6, 7, 8, 9]);
        layers.push(layer(10, 20..30, 920));
        assert_eq!(to_merge(&layers, false, 0), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }
}
