//! The measured size of a period's documents, and a checkpoint that cannot write the documents of
//! one granularity.

use std::fs;

use granary::model::{AcceptedBatch, GranularityIndex, Kind, SeriesId};

use crate::setup::{HOUR, MINUTE, SIX, define, open, samples, send, series, slots};

/// Regression: one granularity that could not be written held back the coarser ones and the
/// journal, until the memory of accepted samples was full.
#[test]
fn documents_that_cannot_be_written_hold_back_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), SIX);
    define(&mut appender, &[series("m", &[], Kind::Gauge)], SIX);
    let times = (0..24 * 60).map(|minute| (SIX.0 - minute * MINUTE, 1.0));
    send(&mut appender, samples(SeriesId(0), times), SIX);
    let counts = |level: usize| -> u32 {
        let range = SIX.minus(48 * HOUR)..SIX.plus(HOUR);
        slots(&store, level, range, SeriesId(0)).iter().map(|slot| slot.cell.n).sum()
    };
    // A file has the name of the folder of 1m: no partition of 1m can be created.
    let minutes = dir.path().join("partitions/1m");
    fs::create_dir_all(dir.path().join("partitions")).unwrap();
    fs::write(&minutes, "").unwrap();
    let now = SIX.plus(10 * MINUTE);
    let failure = store.checkpoint(now).unwrap_err();
    assert!(failure.file().starts_with("partitions/1m/"), "{}", failure.with_causes());
    assert!(dir.path().join("partitions/5m").is_dir(), "the next granularity has documents");
    assert!(!store.is_checkpoint_cut_short(), "the cells of minutes are in the head");
    assert_eq!([counts(0), counts(1), counts(3)], [24 * 60; 3]);
    store.checkpoint(now).unwrap_err();
    fs::remove_file(&minutes).unwrap();
    assert!(store.checkpoint(now).unwrap().documents > 0);
    assert!(minutes.is_dir());
    assert_eq!([counts(0), counts(1), counts(3)], [24 * 60; 3]);
}

#[test]
fn the_size_of_complete_periods_is_measured_also_after_folding_and_a_restart() {
    const HOSTS: u32 = 1000;
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), SIX);
    let names: Vec<_> = (0..HOSTS).map(|host| host.to_string()).collect();
    let all: Vec<_> =
        names.iter().map(|host| series("m", &[("host", host)], Kind::Gauge)).collect();
    define(&mut appender, &all, SIX);
    let mut random = fastrand::Rng::with_seed(7);
    let finest = GranularityIndex::FINEST;
    assert!(store.last_periods(finest, SIX, 9).is_empty());
    let mut fill = |hour: i64, minutes: std::ops::Range<i64>| {
        for minute in minutes {
            let batch = AcceptedBatch {
                series: (0..HOSTS).map(SeriesId).collect(),
                times: vec![SIX.0 + hour * HOUR + minute * MINUTE],
                values: (0..HOSTS).map(|_| random.f64()).collect(),
                ..AcceptedBatch::default()
            };
            send(&mut appender, batch, SIX.plus(3 * HOUR));
        }
    };
    // The second of three hours has twice the samples.
    for (hour, minutes) in [(0, 20), (1, 40), (2, 20)] {
        fill(hour, 0..minutes);
    }
    let period_bytes = |store: &granary::store::Store, hour: i64| {
        store.last_periods(finest, SIX.plus(hour * HOUR + 30 * MINUTE), 1).first().copied()
    };
    store.checkpoint(SIX.plus(3 * HOUR + 30 * MINUTE)).unwrap();
    assert_eq!(period_bytes(&store, 0), None, "the first hour is not over");
    let [first, second, third] = [1, 2, 3].map(|hour| period_bytes(&store, hour).unwrap());
    let expected = u64::from(HOSTS) * 20 * 7;
    assert!((expected..expected * 5 / 4).contains(&first), "{first} {expected}");
    assert!(second > first * 7 / 4 && third < second * 4 / 7, "{first} {second} {third}");
    let all = store.last_periods(finest, SIX.plus(4 * HOUR), 9);
    assert_eq!(all, [third, second, first]);
    // Late samples are in another segment until the segments are folded into one.
    for hour in 0..3 {
        fill(hour, 40..60);
    }
    store.checkpoint(SIX.plus(4 * HOUR)).unwrap();
    let late = [1, 2, 3].map(|hour| period_bytes(&store, hour).unwrap());
    assert!(late[2] > third * 7 / 4, "{late:?} {third}");
    store.seal(SIX.plus(8 * HOUR), HOUR, &|_| true).unwrap();
    assert!(store.seal(SIX.plus(10 * HOUR), HOUR, &|_| true).unwrap().partitions > 0);
    let folded = period_bytes(&store, 3).unwrap();
    // Half of the partition's six hours have samples.
    let average = late.iter().sum::<u64>() / 6;
    assert!(folded.abs_diff(average) < average / 10, "{folded} {late:?}");
    drop((store, appender));
    let (store, _appender) = open(dir.path(), SIX.plus(10 * HOUR));
    assert_eq!(period_bytes(&store, 3), Some(folded));
}
