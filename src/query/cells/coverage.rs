//! The granularities of a store that contain a range.
//!
//! Must never know: what is queried.

use std::ops::Range;

use crate::{
    model::{Gaps, GranularityIndex, SeriesId, UnixMillis},
    policy::coverage::{ClassTimes, Coverage},
    store::{ClassSpan, Store},
};

/// Returns the time ranges that each granularity of the store contains for these series.
/// Granularities that were removed from the settings are included where they contain a part of the
/// range.
pub(crate) fn coverage<'a>(
    store: &'a Store,
    series: &[SeriesId],
    range: &Range<UnixMillis>,
    now: UnixMillis,
) -> Coverage<'a> {
    let (settings, gaps) = (store.granularities(), store.gaps());
    let of_settings = gaps.iter().take(settings.count()).cloned().collect();
    let all = store.all_granularities().iter().enumerate().zip(gaps.iter().cloned());
    let retired = all.skip(store.levels().len());
    let coverage = retired.fold(
        Coverage::new(settings, of_settings, now),
        |coverage, ((index, granularity), gaps)| {
            coverage.with_retired(GranularityIndex(index), granularity, gaps, range, now)
        },
    );
    let classes = store.class_spans(series);
    if classes.is_empty() {
        return coverage;
    }
    let spans = |spans: Vec<ClassSpan>| spans.into_iter().map(|span| times(span, &gaps)).collect();
    coverage.within_classes(&classes.into_iter().map(spans).collect::<Vec<_>>(), now)
}

/// Returns the levels of a class with their gaps.
fn times(span: ClassSpan, gaps: &[Gaps]) -> ClassTimes {
    let ClassSpan { times, name, levels } = span;
    let with_gaps = levels.into_iter().map(|(index, level)| (level, gaps[index.0].clone()));
    // A class of a rule whose widths changed has a number after a dot.
    let rule = name.split('.').next().unwrap_or_default().to_owned();
    let rule = (!name.is_empty()).then(|| (rule, with_gaps.collect()));
    ClassTimes { times, rule }
}
