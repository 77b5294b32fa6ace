//! The setup of a store in tests: time, granularities, series and samples. Must never know what a
//! test asserts.

use std::{ops::Range, path::Path, sync::Arc};

use granary::{
    model::{
        AcceptedBatch, DefinitionVerdict, Granularity, GranularityIndex, GranularitySet,
        KeySelector, Kind, METRIC_TAG, RetentionRule, SeriesId, SeriesInfo, SeriesKey,
        SeriesLimits, Span, TagComparison, TagMatcher, UnixMillis,
    },
    store::{Appender, Folder, Medium, Slot, Store},
};

mod times;

pub(crate) use times::*;

/// Opens the store of a folder with the default granularities.
pub(crate) fn open(dir: &Path, now: UnixMillis) -> (Store, Appender) {
    open_with(dir, &GranularitySet::default(), now)
}

/// Opens the store of a folder with these granularities.
pub(crate) fn open_with(dir: &Path, set: &GranularitySet, now: UnixMillis) -> (Store, Appender) {
    open_on(Arc::new(Folder::new(dir).unwrap()), set, now)
}

/// Opens the store of a medium.
pub(crate) fn open_on(
    medium: Arc<dyn Medium>,
    set: &GranularitySet,
    now: UnixMillis,
) -> (Store, Appender) {
    let (store, appender, _) = Store::open(medium, set.clone(), now).unwrap();
    (store, appender)
}

/// Returns a rule of retention for metrics that match a pattern; `None` omits a level.
pub(crate) fn retention_rule(
    (name, metrics): (&str, &str),
    levels: &[(&str, Option<&str>)],
    set: &GranularitySet,
) -> RetentionRule {
    let matcher = TagMatcher {
        tag: METRIC_TAG.to_owned(),
        comparison: TagComparison::Pattern,
        value: metrics.to_owned(),
    };
    let kept = levels
        .iter()
        .map(|(width, kept)| ((*width).to_owned(), kept.map(|kept| kept.parse().unwrap())));
    let selector = KeySelector::new(vec![matcher]).unwrap();
    RetentionRule::new(name, selector, &kept.collect::<Vec<_>>(), set).unwrap()
}

/// Returns granularities; each has the lengths of its slots, documents and partitions, and its
/// retention.
pub(crate) fn granularities(spans: &[[&str; 4]]) -> GranularitySet {
    let granularity = |lengths: &[&str; 4]| {
        let [width, document, partition, retention] = lengths.map(|text| text.parse().unwrap());
        let Span::Fixed(width_ms) = width else { panic!("{lengths:?}") };
        Granularity::new(width_ms, document, partition, retention)
    };
    GranularitySet::new(spans.iter().map(granularity).collect()).unwrap()
}

pub(crate) fn key(metric: &str, tags: &[(&str, &str)]) -> SeriesKey {
    SeriesKey::new(metric, tags.iter().copied(), &SeriesLimits::default()).unwrap()
}

/// Returns a series without a unit or sender.
pub(crate) fn series(metric: &str, tags: &[(&str, &str)], kind: Kind) -> SeriesInfo {
    SeriesInfo { key: key(metric, tags), kind, unit: "".into(), sender: "".into() }
}

/// Registers series and returns their IDs.
pub(crate) fn define(
    appender: &mut Appender,
    series: &[SeriesInfo],
    now: UnixMillis,
) -> Vec<SeriesId> {
    let verdicts = appender.commit(series, &[], now).unwrap().definitions;
    let series_id = |verdict: DefinitionVerdict| {
        let DefinitionVerdict::Known(id) = verdict else { panic!("{verdict:?}") };
        id
    };
    verdicts.into_iter().map(series_id).collect()
}

/// Returns a batch with samples of one series, which the store does not deduplicate.
pub(crate) fn samples(
    series: SeriesId,
    readings: impl IntoIterator<Item = (i64, f64)>,
) -> AcceptedBatch {
    let (times, values): (Vec<_>, Vec<_>) = readings.into_iter().unzip();
    AcceptedBatch { series: vec![series; times.len()], times, values, ..AcceptedBatch::default() }
}

/// Commits a batch, which the store must accept.
pub(crate) fn send(appender: &mut Appender, batch: AcceptedBatch, now: UnixMillis) {
    let verdicts = appender.commit(&[], &[batch], now).unwrap().batches;
    assert!(verdicts[0].is_accepted(), "{verdicts:?}");
}

/// Returns the slots of a series at a granularity that contain samples.
pub(crate) fn slots(
    store: &Store,
    granularity: usize,
    range: Range<UnixMillis>,
    series: SeriesId,
) -> Vec<Slot> {
    let view = store.view(GranularityIndex(granularity), range, &[series]).unwrap();
    view.slots(series).unwrap()
}

/// Returns the number of samples of a series in a range, at a granularity.
pub(crate) fn count(
    store: &Store,
    granularity: usize,
    range: Range<UnixMillis>,
    series: SeriesId,
) -> u64 {
    let slots = slots(store, granularity, range, series);
    slots.iter().map(|slot| u64::from(slot.cell.n)).sum()
}
