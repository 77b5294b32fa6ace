//! Followed documents: the store reports exactly those that a checkpoint, late samples and an
//! erasure changed.

use std::collections::BTreeMap;

use granary::{
    model::{Kind, SeriesId, UnixMillis},
    store::{ChangedSeries, ErasureRequest, Matcher, Store},
};

use crate::setup::{HOUR, MINUTE, NOW, SIX, define, open, samples, send, series};

/// Returns the changed documents of the finest granularity, by start, and the number of
/// replacements and the latest record of its partitions.
fn take(store: &Store) -> (BTreeMap<i64, Vec<u32>>, u64, u64) {
    let all = store.take_changed().unwrap().expect("nobody writes");
    let (mut changed, mut replaced, mut through) = (BTreeMap::new(), 0, 0);
    for partition in all.into_iter().filter(|partition| partition.level.0 == 0) {
        replaced += partition.replaced;
        through = through.max(partition.through);
        for (start, series) in partition.changed {
            let ChangedSeries::Some(series) = series else { panic!("all series are noted") };
            changed.insert(start.0, series.iter().map(|id| id.0).collect());
        }
    }
    (changed, replaced, through)
}

#[test]
fn changed_documents_are_noted_exactly_once_they_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), NOW);
    let names: Vec<_> = (0..3).map(|host| host.to_string()).collect();
    let all: Vec<_> =
        names.iter().map(|host| series("m", &[("host", host)], Kind::Gauge)).collect();
    let ids = define(&mut appender, &all, NOW);
    let sample = |id: SeriesId, at: UnixMillis| samples(id, [(at.0, 1.0)]);
    send(&mut appender, sample(ids[0], SIX), NOW);
    store.checkpoint(NOW).unwrap();
    assert_eq!(take(&store).0, BTreeMap::new(), "nobody followed");
    store.follow_documents();
    assert!(!store.has_changed());
    // Changes: the first documents of a series, and a late sample of another series.
    send(&mut appender, sample(ids[1], SIX.plus(HOUR)), NOW);
    send(&mut appender, sample(ids[0], SIX.plus(5 * MINUTE)), NOW);
    assert!(!store.has_changed(), "the cells are in memory");
    store.checkpoint(NOW).unwrap();
    assert!(store.has_changed());
    let expected = BTreeMap::from([(SIX.0, vec![ids[0].0]), (SIX.plus(HOUR).0, vec![ids[1].0])]);
    let (changed, replaced, through) = take(&store);
    assert_eq!((changed, replaced), (expected, 0));
    assert!(!store.has_changed());
    // An erasure changes documents without another record.
    let matchers = vec![Matcher { tag: "host".into(), value: "0".into() }];
    let request = ErasureRequest { matchers, range: SIX..SIX.plus(HOUR) };
    appender.erase(&request, false, NOW).unwrap().unwrap();
    store.complete_erasure().unwrap();
    let (changed, replaced, _) = take(&store);
    assert_eq!((changed, replaced), (BTreeMap::from([(SIX.0, vec![ids[0].0])]), 1));
    // The number survives a restart; the notes do not.
    drop((store, appender));
    let (store, _appender) = open(dir.path(), NOW);
    let (changed, replaced, later) = take(&store);
    assert_eq!((changed, replaced), (BTreeMap::new(), 1));
    assert!(later >= through, "{later} {through}");
}
