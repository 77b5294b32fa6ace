//! Shells: a new period uses them, creating them twice changes nothing, a series without a shell
//! counts as missed, and no document ever grows.

use granary::{
    model::{AcceptedBatch, GranularityIndex, Kind, SeriesId, SeriesInfo, UnixMillis},
    policy::preallocation::{live_since, shells_due},
};

use crate::setup::{HOUR, define, open, samples, send, series, slots};

/// 2026-11-21T12:50:00Z
const NOW: UnixMillis = UnixMillis(1_795_265_400_000);

fn definition(name: &str) -> SeriesInfo {
    series(name, &[("host", "a")], Kind::Gauge)
}

fn single_sample(series: u32, at: UnixMillis) -> AcceptedBatch {
    samples(SeriesId(series), [(at.0, 1.0)])
}

#[test]
fn a_new_period_uses_its_shells_and_a_series_without_a_shell_counts_as_missed() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), NOW);
    define(&mut appender, &[definition("known"), definition("quiet")], NOW);
    send(&mut appender, single_sample(0, NOW), NOW);
    store.checkpoint(NOW).unwrap();
    let minute = &store.granularities().as_slice()[0];

    // Only the series with a sample is live; the other series gets no shell.
    let live = store.live_series(live_since(minute, NOW));
    assert_eq!(live, [SeriesId(0)]);
    let due = shells_due(minute, live.len(), NOW).unwrap();
    assert_eq!((due.document, due.count), (UnixMillis(NOW.0 + HOUR / 6), 1));
    assert_eq!(store.preallocate(GranularityIndex(0), due.document, &live).unwrap(), 1);
    assert_eq!(store.preallocate(GranularityIndex(0), due.document, &live).unwrap(), 0);
    let range = due.document..due.document.plus(HOUR);
    assert_eq!(slots(&store, 0, range.clone(), SeriesId(0)), []);

    let counters = store.counters();
    let missed = counters.shells_missed.get();
    let later = due.document.plus(HOUR / 12);
    define(&mut appender, &[definition("new")], later);
    appender.commit(&[], &[single_sample(0, later), single_sample(2, later)], later).unwrap();
    store.checkpoint(later).unwrap();
    assert_eq!(counters.shells_missed.get() - missed, 1, "1m of the first hour");
    // When the hour is over, the known series uses its shell, and the new series misses a shell.
    let over = later.plus(HOUR);
    send(&mut appender, single_sample(1, over), over);
    store.checkpoint(over).unwrap();
    assert_eq!(counters.shells_missed.get() - missed, 2);
    assert_eq!(counters.documents_patched.get(), 1);
    assert_eq!(counters.documents_grown.get(), 0);
    for series in [0, 2] {
        let slots = slots(&store, 0, range.clone(), SeriesId(series));
        assert_eq!(slots.len(), 1, "series {series}");
        assert_eq!(slots[0].start, later);
    }
}
