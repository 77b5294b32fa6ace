//! Files that are lost or completely damaged: exactly the times of their data become holes, and
//! stay so after restarts. Outside of holes, all granularities agree.

use std::{collections::BTreeMap, fs, ops::Range, path::Path};

use granary::{
    model::{GranularityIndex, GranularitySet, Kind, SeriesId, UnixMillis},
    store::{Appender, Store, restore, verify},
};

use crate::setup::{
    self, DAY, HOUR, MINUTE, NOW, SIX, define, granularities, open, open_with, samples, send,
    series, slots,
};

/// Sends a sample for each minute of the hours before a time, and runs a checkpoint.
fn fill(store: &Store, appender: &mut Appender, hours: i64, now: UnixMillis) {
    let times = (0..hours * 60).map(|minute| (now.0 - minute * MINUTE, 1.0));
    send(appender, samples(SeriesId(0), times), now);
    store.checkpoint(now).unwrap();
}

fn define_events(appender: &mut Appender) {
    define(appender, &[series("events", &[("host", "a")], Kind::Delta)], NOW);
}

fn faults(dir: &Path, now: UnixMillis) -> Vec<String> {
    let report = verify(dir, now, &mut |_| {}).unwrap();
    assert!(report.compared > 0, "{report:?}");
    report.faults.into_iter().map(|fault| format!("{}: {}", fault.file, fault.problem)).collect()
}

/// Returns true if a granularity may lack samples in a slot.
fn may_be_incomplete(store: &Store, level: usize, slot: Range<UnixMillis>) -> bool {
    let gaps = &store.gaps()[level];
    slot.start < gaps.complete_since
        || gaps.holes.iter().any(|hole| hole.start < slot.end && slot.start < hole.end)
}

/// Compares each granularity with the finest granularity where both are complete; returns the
/// number of compared slots.
fn compare(store: &Store, range: Range<UnixMillis>) -> usize {
    let mut compared = 0;
    let minutes = slots(store, 0, range.clone(), SeriesId(0));
    for level in 1..store.granularities().count() {
        let granularity = &store.granularities()[GranularityIndex(level)];
        let mut expected = BTreeMap::new();
        for slot in &minutes {
            *expected.entry(granularity.slot_start(slot.start)).or_insert(0) += slot.cell.n;
        }
        let found = slots(store, level, range.clone(), SeriesId(0));
        let found: BTreeMap<_, _> = found.iter().map(|slot| (slot.start, slot.cell.n)).collect();
        for start in expected.keys().chain(found.keys()) {
            let slot = *start..start.plus(granularity.width_ms);
            if range.start <= slot.start
                && ![0, level].iter().any(|index| may_be_incomplete(store, *index, slot.clone()))
            {
                assert_eq!(found.get(start), expected.get(start), "{} {start}", granularity.name);
                compared += 1;
            }
        }
    }
    compared
}

fn granularities_with_partition(partition: &str) -> GranularitySet {
    granularities(&[["1m", "30m", partition, "4d"], ["5m", "1h", "1d", "14d"]])
}

/// Regression: the end of the hole was computed from the current settings, which is wrong for an
/// older partition.
#[test]
fn the_hole_of_a_lost_partition_is_as_long_as_the_partition_whatever_the_settings() {
    let expected = [SIX..SIX.plus(6 * HOUR)];
    for is_damaged in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let reopen = |partition: &str| {
            open_with(&path("data"), &granularities_with_partition(partition), NOW)
        };
        {
            let (store, mut appender) = reopen("6h");
            define_events(&mut appender);
            fill(&store, &mut appender, 12, NOW);
        }
        // The settings change before the loss.
        drop(reopen("1h"));
        let file = path("data/partitions/1m/2026-11-21T0600.redb");
        if is_damaged {
            fs::write(&file, [7; 9000]).unwrap();
        } else {
            fs::remove_file(&file).unwrap();
        }
        for partition in ["1h", "90m", "12h"] {
            let (store, _) = reopen(partition);
            assert_eq!(store.gaps()[0].holes, expected, "{partition}");
            assert!(compare(&store, NOW.minus(20 * HOUR)..NOW) > 20);
        }
        {
            // A shorter partition replaces the lost one.
            let (store, mut appender) = reopen("2h");
            send(&mut appender, samples(SeriesId(0), [(SIX.0 + 5, 1.0)]), NOW);
            store.checkpoint(NOW).unwrap();
            assert!(path("data/partitions/1m/2026-11-21T0600.redb").exists());
            store.snapshot(&path("copy"), NOW, &mut |_| {}).unwrap();
        }
        restore(&path("copy"), &path("restored"), &mut |_| {}).unwrap();
        for name in ["data", "restored"] {
            let (store, _) = open_with(&path(name), &granularities_with_partition("2h"), NOW);
            assert_eq!(store.gaps()[0].holes, expected, "{name}");
            drop(store);
            assert_eq!(faults(&path(name), NOW), [""; 0]);
        }
        // The hole exists until an operator removes the marker of the lost file, and does not
        // return.
        fs::remove_dir_all(path("data/damaged")).unwrap();
        assert_eq!(reopen("2h").0.gaps()[0].holes, []);
    }
}

/// Regression: the loss was not recorded. A slot of 1m contained 1 sample where 5m contained 5, and
/// `verify` reported 1h as faulty.
#[test]
fn a_lost_head_is_a_hole_in_each_granularity_until_its_retention_ends() {
    for (is_damaged, is_killed) in [(true, false), (false, false), (true, true), (false, true)] {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let data = path("data");
        {
            let (store, mut appender) = open(&data, NOW);
            define_events(&mut appender);
            fill(&store, &mut appender, 30, NOW);
            if is_killed {
                // These samples are only in the journal.
                let at = NOW.plus(MINUTE).0;
                send(&mut appender, samples(SeriesId(0), [(at, 1.0)]), NOW.plus(MINUTE));
            }
        }
        if is_damaged {
            fs::write(data.join("head.redb"), [7; 9000]).unwrap();
        } else {
            fs::remove_file(data.join("head.redb")).unwrap();
        }
        let noon = SIX.plus(6 * HOUR);
        let past = NOW.minus(40 * HOUR)..NOW.plus(HOUR);
        let mut now = NOW.plus(MINUTE);
        for _ in 0..3 {
            let (store, mut appender) = open(&data, now);
            let gaps = store.gaps();
            // The current hour of 1m, and the current documents of coarser granularities.
            assert_eq!(gaps[0].holes, [noon..NOW.minus(NOW.0 % MINUTE).plus(MINUTE)]);
            assert!(gaps.iter().all(|gap| gap.holes.len() == 1 && gap.holes[0].end > NOW));
            assert!(compare(&store, past.clone()) > 100);
            let count =
                setup::count(&store, 0, NOW.plus(MINUTE)..NOW.plus(2 * MINUTE), SeriesId(0));
            assert_eq!(count, u64::from(is_killed), "samples in the journal");
            assert!(store.damaged_in_all() >= 4);
            // The next checkpoint writes into a new head.
            send(&mut appender, samples(SeriesId(0), [(NOW.0, 1.0), (noon.0, 1.0)]), now);
            store.checkpoint(now).unwrap();
            compare(&store, past.clone());
            drop((store, appender));
            assert_eq!(faults_except_the_missing_head(&data, now), [""; 0]);
            now = now.plus(1);
        }
        let (store, mut appender) = open(&data, now);
        store.snapshot(&path("copy"), now, &mut |_| {}).unwrap();
        let holes =
            |store: &Store| store.gaps().into_iter().map(|gap| gap.holes).collect::<Vec<_>>();
        assert_eq!(holes(&open(&path("copy"), now).0), holes(&store));
        // The hole disappears with its partition.
        let five_days_later = NOW.plus(5 * DAY);
        send(&mut appender, samples(SeriesId(0), [(five_days_later.0, 1.0)]), five_days_later);
        store.checkpoint(five_days_later).unwrap();
        for partition in store.partitions() {
            if partition.id.granularity.0 == 0 && partition.end < five_days_later.minus(DAY) {
                assert!(store.drop_partition(partition.id).unwrap());
            }
        }
        store.checkpoint(five_days_later).unwrap();
        drop((store, appender));
        assert_eq!(open(&data, five_days_later).0.gaps()[0].holes, []);
    }
}

fn faults_except_the_missing_head(dir: &Path, now: UnixMillis) -> Vec<String> {
    let mut faults = faults(dir, now);
    faults.retain(|fault| !fault.contains("head.redb: it is missing"));
    faults
}

/// Regression: the days around the last run were holes, although the log contained all of their
/// samples.
#[test]
fn a_head_that_is_lost_before_the_first_checkpoint_leaves_no_hole() {
    let dir = tempfile::tempdir().unwrap();
    {
        let (_store, mut appender) = open(dir.path(), NOW);
        define_events(&mut appender);
        send(&mut appender, samples(SeriesId(0), [(NOW.0, 1.0)]), NOW);
    }
    fs::remove_file(dir.path().join("head.redb")).unwrap();
    for _ in 0..2 {
        let (store, _) = open(dir.path(), NOW);
        assert!(store.gaps().iter().all(|gaps| gaps.holes.is_empty()));
        let range = NOW.minus(HOUR)..NOW.plus(HOUR);
        assert_eq!(setup::count(&store, 0, range, SeriesId(0)), 1);
        store.checkpoint(NOW).unwrap();
    }
}

/// Regression: while the clock was ahead, 1m did not keep present samples. After the clock was
/// corrected, queries assumed that 1m was complete, and `verify` reported 5m as faulty.
#[test]
fn samples_not_kept_while_the_clock_is_ahead_make_a_granularity_incomplete() {
    for is_checkpointed in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let ahead = NOW.plus(10 * DAY);
        {
            let (store, mut appender) = open(dir.path(), NOW);
            define_events(&mut appender);
            fill(&store, &mut appender, 30, NOW);
            send(&mut appender, samples(SeriesId(0), [(NOW.0, 1.0), (SIX.0, 1.0)]), ahead);
            if is_checkpointed {
                store.checkpoint(ahead).unwrap();
            }
        }
        let (store, mut appender) = open(dir.path(), NOW);
        let complete_since = store.gaps()[0].complete_since;
        assert!(NOW < complete_since && complete_since <= NOW.plus(5 * MINUTE), "{complete_since}");
        let later = NOW.plus(2 * HOUR);
        fill(&store, &mut appender, 2, later);
        assert!(compare(&store, NOW.minus(40 * HOUR)..later) > 20);
        drop((store, appender));
        assert_eq!(faults(dir.path(), later), [""; 0]);
        assert_eq!(open(dir.path(), later).0.gaps()[0].complete_since, complete_since);
    }
}

#[test]
fn partitions_dropped_while_the_clock_is_ahead_make_a_granularity_incomplete() {
    let dir = tempfile::tempdir().unwrap();
    {
        let (store, mut appender) = open(dir.path(), NOW);
        define_events(&mut appender);
        fill(&store, &mut appender, 30, NOW);
        for partition in store.partitions() {
            if partition.id.granularity.0 == 0 {
                assert!(store.drop_partition(partition.id).unwrap());
            }
        }
        // The process is killed before the next checkpoint.
    }
    let (store, mut appender) = open(dir.path(), NOW);
    send(&mut appender, samples(SeriesId(0), [(NOW.0 - 8 * HOUR, 1.0)]), NOW);
    store.checkpoint(NOW).unwrap();
    compare(&store, NOW.minus(40 * HOUR)..NOW);
    drop((store, appender));
    assert_eq!(faults(dir.path(), NOW), [""; 0]);
}
