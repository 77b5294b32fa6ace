//! Shells: a new period finds them, making them twice changes nothing, unknown series need one
//! step, and no document ever grows.

use std::sync::Arc;

use granary::{
    model::{
        AcceptedBatch, GranularityIndex, GranularitySet, Kind, SeriesId, SeriesInfo, SeriesKey,
        SeriesLimits, UnixMillis,
    },
    policy::preallocation::{live_since, shells_due},
    store::{Folder, Store},
};

/// 2026-11-21T12:50:00Z
const NOW: UnixMillis = UnixMillis(1_795_265_400_000);
const HOUR: i64 = 3_600_000;

fn definition(name: &str) -> SeriesInfo {
    let key = SeriesKey::new(name, [("host", "a")], &SeriesLimits::default()).unwrap();
    SeriesInfo { key, kind: Kind::Gauge, unit: "".into(), sender: "".into() }
}

fn one(series: u32, at: UnixMillis) -> AcceptedBatch {
    AcceptedBatch {
        series: vec![SeriesId(series)],
        times: vec![at.0],
        values: vec![1.0],
        ..AcceptedBatch::default()
    }
}

#[test]
fn a_new_period_finds_its_shells_and_an_unknown_series_needs_one_step() {
    let dir = tempfile::tempdir().unwrap();
    let medium = Arc::new(Folder::new(dir.path()).unwrap());
    let (store, mut appender, _) = Store::open(medium, GranularitySet::default(), NOW).unwrap();
    appender.commit(&[definition("known"), definition("quiet")], &[], NOW).unwrap();
    appender.commit(&[], &[one(0, NOW)], NOW).unwrap();
    store.checkpoint(NOW).unwrap();
    let minute = &store.granularities().as_slice()[0];

    // Only the series that was seen is live; the other one gets no shell.
    let live = store.live_series(live_since(minute, NOW));
    assert_eq!(live, [SeriesId(0)]);
    let due = shells_due(minute, live.len(), NOW).unwrap();
    assert_eq!((due.document, due.count), (UnixMillis(NOW.0 + HOUR / 6), 1));
    assert_eq!(store.preallocate(GranularityIndex(0), due.document, &live).unwrap(), 1);
    assert_eq!(store.preallocate(GranularityIndex(0), due.document, &live).unwrap(), 0);
    let empty =
        store.view(GranularityIndex(0), due.document..due.document.plus(HOUR), &live).unwrap();
    assert_eq!(empty.slots(SeriesId(0)).unwrap(), []);

    let counters = store.counters();
    let missed = counters.shells_missed.get();
    let later = due.document.plus(HOUR / 12);
    appender.commit(&[definition("new")], &[], later).unwrap();
    appender.commit(&[], &[one(0, later), one(2, later)], later).unwrap();
    store.checkpoint(later).unwrap();
    assert_eq!(counters.shells_missed.get() - missed, 1, "1m of the first hour");
    // When the hour is over, the known series finds its shell, and the new one needs one step.
    let over = later.plus(HOUR);
    appender.commit(&[], &[one(1, over)], over).unwrap();
    store.checkpoint(over).unwrap();
    assert_eq!(counters.shells_missed.get() - missed, 2);
    assert_eq!(counters.documents_patched.get(), 1);
    assert_eq!(counters.documents_grown.get(), 0);
    let range = due.document..due.document.plus(HOUR);
    let view = store.view(GranularityIndex(0), range, &[SeriesId(0), SeriesId(2)]).unwrap();
    for series in [0, 2] {
        let slots = view.slots(SeriesId(series)).unwrap();
        assert_eq!(slots.len(), 1, "series {series}");
        assert_eq!(slots[0].start, later);
    }
}
