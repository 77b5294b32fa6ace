//! A naive implementation of the rule on first readings: how early a counter may have started for
//! its first reading to count in full.

/// Returns the earliest start of a counter with which a first reading at `at` counts in full.
/// `samples` contains the times of the batch, each with the time of the previous sample of its
/// series.
pub(crate) fn counts_from(samples: &[(i64, Option<i64>)], at: i64, slot_start: i64) -> i64 {
    let times = samples
        .iter()
        .flat_map(|(time, previous_in_series)| [Some(*time), *previous_in_series])
        .flatten();
    let previous = times.filter(|time| *time < at).max();
    let intervals =
        samples.iter().filter_map(|(time, previous_in_series)| Some(time - (*previous_in_series)?));
    let interval = intervals.filter(|interval| *interval > 0).min();
    let by_interval = interval.map(|interval| at - 2 * interval);
    match (previous, by_interval) {
        (Some(round), Some(two_intervals_ago)) => round.min(two_intervals_ago),
        (round, two_intervals_ago) => round.or(two_intervals_ago).unwrap_or(slot_start),
    }
}
