//! The columns of a batch in the form that takes the fewest bytes on the wire.
//!
//! Must never know: series, and what the values mean.

use granary_protocol::{Batch, Kind};

/// The start of a sample whose kind has no start, until the batch is complete.
const NO_START: i64 = i64::MIN;

/// Returns the entry in the column of starts: 0 for a counter whose start is unknown.
pub(super) fn start_in_column(kind: Kind, start_ms: Option<i64>) -> i64 {
    match (kind.of_counts(), start_ms) {
        (Kind::Counter, start) => start.unwrap_or(0).max(NO_START + 1),
        // The daemon reads the starts of counters only.
        _ => NO_START,
    }
}

/// Completes a batch whose columns have one entry per sample. Columns with equal entries become
/// one entry, and the samples of a single time are sorted by their refs.
pub(super) fn tidied(mut batch: Batch, time_ms: i64) -> Batch {
    if batch.times.iter().all(|time| *time == time_ms) {
        batch.times = vec![time_ms];
        // Histograms refer to the positions of their samples.
        if batch.histograms.is_empty() && !batch.refs.is_sorted() {
            sort_by_refs(&mut batch);
        }
    }
    fill_starts(&mut batch.starts);
    batch
}

fn sort_by_refs(batch: &mut Batch) {
    let mut order: Vec<usize> = (0..batch.refs.len()).collect();
    order.sort_by_key(|index| batch.refs[*index]);
    batch.values = order.iter().map(|index| batch.values[*index]).collect();
    batch.starts = order.iter().map(|index| batch.starts[*index]).collect();
    batch.refs.sort_unstable();
}

/// Gives samples without a start the start of their neighbour, which takes the fewest bytes.
fn fill_starts(starts: &mut Vec<i64>) {
    let first = starts.iter().copied().find(|start| *start != NO_START).unwrap_or(0);
    let mut last = first;
    for start in &mut *starts {
        if *start == NO_START {
            *start = last;
        }
        last = *start;
    }
    if starts.iter().all(|start| *start == first) {
        starts.truncate(usize::from(first != 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_starts(column: &[i64], expected: &[i64]) {
        let mut starts = column.to_vec();
        fill_starts(&mut starts);
        assert_eq!(starts, expected, "{column:?}");
    }

    #[test]
    fn samples_without_a_start_get_the_start_of_a_neighbour() {
        check_starts(&[NO_START, 7, NO_START, 9, NO_START], &[7, 7, 7, 9, 9]);
        check_starts(&[NO_START, 0, NO_START, 9], &[0, 0, 0, 9]);
    }

    #[test]
    fn equal_starts_become_one_and_unknown_starts_none() {
        check_starts(&[NO_START, 7, 7], &[7]);
        check_starts(&[NO_START, NO_START], &[]);
        check_starts(&[0, NO_START], &[]);
        check_starts(&[], &[]);
    }

    #[test]
    fn only_counters_have_starts() {
        let starts = Kind::ALL.map(|kind| start_in_column(kind, Some(5)));
        assert_eq!(starts, [NO_START, 5, NO_START, 5, NO_START, NO_START]);
        assert_eq!(start_in_column(Kind::Counter, None), 0);
    }

    #[test]
    fn samples_of_one_time_are_sorted_with_their_values_and_starts() {
        let batch = Batch {
            refs: vec![0, 4, 1, 5, 2],
            times: vec![10; 5],
            values: vec![0.0, 4.0, 1.0, 5.0, 2.0],
            starts: vec![7, NO_START, 9, NO_START, 0],
            ..Batch::default()
        };
        let found = tidied(batch.clone(), 10);
        assert_eq!((found.refs, found.times), (vec![0, 1, 2, 4, 5], vec![10]));
        assert_eq!(found.values, [0.0, 1.0, 2.0, 4.0, 5.0]);
        assert_eq!(found.starts, [7, 9, 0, 0, 0]);
        let other_times = Batch { times: vec![10, 10, 11, 10, 10], ..batch.clone() };
        assert_eq!(tidied(other_times, 10).refs, batch.refs);
        let with_histograms = Batch { histograms: vec![1, 2], ..batch.clone() };
        assert_eq!(tidied(with_histograms, 10).refs, batch.refs);
    }
}
