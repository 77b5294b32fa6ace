//! The granularities of a store that contain a range.
//!
//! Must never know: what is queried.

use std::ops::Range;

use crate::{
    model::{GranularityIndex, UnixMillis},
    policy::coverage::Coverage,
    store::Store,
};

/// Returns the time ranges that each granularity of the store contains. Granularities that were
/// removed from the settings are included where they contain a part of the range.
pub(crate) fn coverage<'a>(
    store: &'a Store,
    range: &Range<UnixMillis>,
    now: UnixMillis,
) -> Coverage<'a> {
    let (living, mut gaps) = (store.granularities(), store.gaps());
    let retired = gaps.split_off(living.count());
    let all = store.all_granularities().iter().enumerate();
    let retired = all.skip(living.count()).zip(retired);
    retired.fold(Coverage::new(living, gaps, now), |coverage, ((index, granularity), gaps)| {
        coverage.with_retired(GranularityIndex(index), granularity, gaps, range, now)
    })
}
