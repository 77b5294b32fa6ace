//! The choice of segments that are to become one because they lie over the same time: late cells of
//! sealed documents are in segments of their own, over those of the documents.
//!
//! Must never know: what is in segments.

use std::ops::Range;

use crate::store::documents::partition::reader::PartitionReader;

/// The number of segments that may lie over the same time for long.
const LAYERS_MAX: usize = 8;
/// The segments over the largest one may take less than this part of it.
const LATE_PART: u64 = 8;

/// The part of a segment in a span.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Layer {
    /// Number of the segment.
    number: u32,
    /// Seconds from the partition's start.
    span: Range<i64>,
    bytes: u64,
}

impl PartitionReader {
    /// Numbers of the segments that are to become one while their partition is not over; none when
    /// that is not worth it. Those of a partition that changes may be more.
    pub(crate) fn layers_to_merge(&self, is_quiet: bool, bytes_min: u64) -> Vec<u32> {
        // None is lost, or nothing is folded.
        debug_assert_eq!(self.named.len(), self.segments.len());
        let pairs = self.named.iter().zip(&self.segments);
        let layers = pairs.flat_map(|(named, segment)| {
            let layer = |(span, bytes)| Layer { number: named.number, span, bytes };
            segment.spans().into_iter().map(layer)
        });
        to_merge(&layers.collect::<Vec<_>>(), is_quiet, bytes_min)
    }
}

/// Returns the segments where most overlap: all of them, or all but the largest while the others
/// are little.
fn to_merge(layers: &[Layer], is_quiet: bool, bytes_min: u64) -> Vec<u32> {
    let over = |at: i64| layers.iter().filter(move |layer| layer.span.contains(&at));
    let starts = layers.iter().map(|layer| layer.span.start);
    let Some(deepest) = starts.max_by_key(|at| over(*at).count()) else { return Vec::new() };
    let Some(largest) = over(deepest).max_by_key(|layer| layer.bytes) else { return Vec::new() };
    let late = over(deepest).map(|layer| layer.bytes).sum::<u64>() - largest.bytes;
    let is_much = late >= bytes_min && late >= largest.bytes / LATE_PART;
    let is_deep = over(deepest).count() > LAYERS_MAX;
    let numbers = over(deepest).map(|layer| layer.number);
    if is_much && (is_deep || is_quiet) {
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
    fn what_lies_side_by_side_stays() {
        let hours = [layer(1, 0..10, 800), layer(2, 10..20, 800), layer(3, 20..30, 800)];
        assert_eq!(to_merge(&hours, true, 0), [0; 0]);
        assert_eq!(to_merge(&[], true, 0), [0; 0]);
    }

    #[test]
    fn what_is_late_joins_the_rest_when_it_is_much_and_all_is_quiet() {
        let mut layers = vec![layer(1, 0..10, 800), layer(2, 10..20, 800), layer(3, 0..10, 99)];
        assert_eq!(to_merge(&layers, true, 0), [0; 0]);
        layers.push(layer(4, 0..20, 1));
        assert_eq!(to_merge(&layers, true, 0), [1, 3, 4]);
        assert_eq!(to_merge(&layers, true, 101), [0; 0]);
        assert_eq!(to_merge(&layers, false, 0), [0; 0]);
    }

    #[test]
    fn where_many_lie_they_become_one_at_once_without_the_large_one_while_they_are_little() {
        let mut layers = vec![layer(1, 0..60, 8000)];
        layers.extend((2..9).map(|number| layer(number, 20..30, 10)));
        assert_eq!(to_merge(&layers, false, 0), [0; 0]);
        layers.push(layer(9, 20..30, 10));
        assert_eq!(to_merge(&layers, false, 0), [2, 3, 4, 5, 6, 7, 8, 9]);
        layers.push(layer(10, 20..30, 920));
        assert_eq!(to_merge(&layers, false, 0), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }
}
