//! The earliest start of a counter with which its first reading counts in full, by a naive
//! implementation of the rule.

/// The earliest start of a counter with which a first reading at `at` counts in full. `samples` are
/// the times of the batch, each with the time of the preceding sample in its series.
pub(crate) fn counts_from(samples: &[(i64, Option<i64>)], at: i64, slot_start: i64) -> i64 {
    let times = samples.iter().flat_map(|(time, before)| [Some(*time), *before]).flatten();
    let previous = times.filter(|time| *time < at).max();
    let passed = samples.iter().filter_map(|(time, before)| Some(time - (*before)?));
    let interval = passed.filter(|passed| *passed > 0).min();
    let by_interval = interval.map(|interval| at - 2 * interval);
    match (previous, by_interval) {
        (Some(round), Some(near)) => round.min(near),
        (round, near) => round.or(near).unwrap_or(slot_start),
    }
}
