//! Changed lengths of documents and partitions: existing files keep their length, and every sample
//! counts once, under old and new settings.

use std::{collections::BTreeMap, ops::Range, path::Path};

use fastrand::Rng;
use granary::{
    model::{GranularityIndex, GranularitySet, Kind, SeriesId, UnixMillis},
    policy::retention::is_expired,
    store::{Appender, Store, verify},
};

use crate::setup::{self, HOUR, NOW, samples, series, slots};

/// Returns granularities of minutes, hours and days whose documents and partitions have these
/// lengths.
fn granularities(minute: [&str; 2], hour: [&str; 2], day: [&str; 2]) -> GranularitySet {
    let days = if day[1].ends_with('d') { "3720d" } else { "10y" };
    setup::granularities(&[
        ["1m", minute[0], minute[1], "4w"],
        ["1h", hour[0], hour[1], "12w"],
        ["1d", day[0], day[1], days],
    ])
}

fn random_granularities(rng: &mut Rng) -> GranularitySet {
    let minute =
        rng.choice([["1h", "6h"], ["30m", "1d"], ["45m", "3h"], ["1h", "1w"], ["32m", "4d"]]);
    let hour = rng.choice([["1d", "1w"], ["2d", "4w"], ["6h", "1d"], ["1d", "3d"]]);
    let day = rng.choice([["1mo", "1y"], ["2mo", "2y"], ["31d", "62d"]]);
    granularities(minute.unwrap(), hour.unwrap(), day.unwrap())
}

fn open(root: &Path, set: &GranularitySet) -> (Store, Appender) {
    setup::open_with(root, set, NOW)
}

fn define(appender: &mut Appender) {
    setup::define(appender, &[series("page_views", &[], Kind::Delta)], NOW);
}

fn send(appender: &mut Appender, times: &[i64]) {
    setup::send(appender, samples(SeriesId(0), times.iter().map(|at| (*at, 1.0))), NOW);
}

/// Returns the number of samples of each slot.
fn counts_by_slot(store: &Store, level: usize, range: Range<UnixMillis>) -> BTreeMap<i64, u32> {
    let slots = slots(store, level, range, SeriesId(0));
    slots.into_iter().map(|slot| (slot.start.0, slot.cell.n)).collect()
}

fn compare(store: &Store, sent: &[i64], seed: u64) {
    let range = NOW.minus(40 * 24 * HOUR)..NOW;
    for (level, granularity) in store.granularities().iter().enumerate() {
        let mut expected = BTreeMap::new();
        for at in sent {
            *expected.entry(granularity.slot_start(UnixMillis(*at)).0).or_default() += 1;
        }
        let found = counts_by_slot(store, level, range.clone());
        assert_eq!(found, expected, "{}, seed {seed}", granularity.name);
    }
}

#[test]
fn spans_may_change_at_each_start_without_changing_any_slot() {
    let seed = std::env::var("GRANARY_SPANS_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in seed.map_or(1..7, |seed| seed..seed + 1) {
        let mut rng = Rng::with_seed(seed);
        let dir = tempfile::tempdir().unwrap();
        let (mut store, mut appender) = open(dir.path(), &random_granularities(&mut rng));
        define(&mut appender);
        let mut sent = Vec::new();
        for _ in 0..rng.usize(3..9) {
            // Late samples belong to documents written under earlier settings.
            let age = rng.i64(1..27) * 24 * HOUR;
            let times: Vec<_> = (0..rng.usize(1..60)).map(|_| NOW.0 - rng.i64(0..age)).collect();
            send(&mut appender, &times);
            sent.extend(times);
            compare(&store, &sent, seed);
            if rng.bool() {
                store.checkpoint(NOW).unwrap();
                compare(&store, &sent, seed);
            }
            drop((store, appender));
            (store, appender) = open(dir.path(), &random_granularities(&mut rng));
            compare(&store, &sent, seed);
        }
        store.checkpoint(NOW).unwrap();
        compare(&store, &sent, seed);
        assert!(store.damaged_partitions().is_empty(), "seed {seed}");
        let mut partitions: Vec<_> = store.partitions();
        partitions.sort_by_key(|partition| partition.id);
        for pair in
            partitions.windows(2).filter(|pair| pair[0].id.granularity == pair[1].id.granularity)
        {
            assert!(pair[0].end <= pair[1].id.start, "{pair:?} overlap, seed {seed}");
        }
        drop((store, appender));
        let report = verify(dir.path(), NOW, &mut |_| {}).unwrap();
        assert!(report.is_sound(), "{report:?}, seed {seed}");
    }
}

#[test]
fn existing_partitions_keep_their_length_and_new_partitions_have_the_configured_one() {
    let dir = tempfile::tempdir().unwrap();
    let old = granularities(["1h", "6h"], ["1d", "1w"], ["1mo", "1y"]);
    let (store, mut appender) = open(dir.path(), &old);
    define(&mut appender);
    let midnight = NOW.0 / (24 * HOUR) * 24 * HOUR;
    let yesterday = midnight - 24 * HOUR;
    send(&mut appender, &[yesterday + 7 * HOUR]);
    store.checkpoint(NOW).unwrap();
    drop((store, appender));
    let new = granularities(["30m", "1d"], ["1d", "1w"], ["1mo", "1y"]);
    let (store, mut appender) = open(dir.path(), &new);
    send(&mut appender, &[yesterday, yesterday + 8 * HOUR, yesterday + 13 * HOUR, midnight]);
    store.checkpoint(NOW).unwrap();
    let minute_partitions: Vec<_> = store
        .partitions()
        .into_iter()
        .filter(|partition| partition.id.granularity == GranularityIndex(0))
        .collect();
    let to_hours = |at: UnixMillis| (at.0 - yesterday) / HOUR;
    let found: Vec<_> = minute_partitions
        .iter()
        .map(|minute| (to_hours(minute.id.start), to_hours(minute.end)))
        .collect();
    assert_eq!(found, [(0, 6), (6, 12), (12, 24), (24, 48)]);
    // Each partition expires when a partition of the new length that covers its time would expire.
    let minute = &store.granularities().as_slice()[0];
    let end_of_retention = UnixMillis(midnight + 28 * 24 * HOUR);
    for (minute_partition, expired) in minute_partitions.iter().zip([true, true, true, false]) {
        assert!(
            !is_expired(minute, minute_partition.end, end_of_retention.minus(1)),
            "{minute_partition:?}"
        );
        assert_eq!(
            is_expired(minute, minute_partition.end, end_of_retention),
            expired,
            "{minute_partition:?}"
        );
    }
}

#[test]
fn a_granularity_removed_from_the_settings_is_read_until_its_retention_ends() {
    let dir = tempfile::tempdir().unwrap();
    let all = granularities(["1h", "6h"], ["1d", "1w"], ["1mo", "1y"]);
    let (store, mut appender) = open(dir.path(), &all);
    define(&mut appender);
    let range = NOW.minus(40 * 24 * HOUR)..NOW;
    // Most of the samples are in documents of 1h, and the last samples are in the head.
    let times: Vec<_> = (1..300).map(|hour| NOW.0 - hour * HOUR).collect();
    send(&mut appender, &times);
    store.checkpoint(NOW).unwrap();
    let hour_counts = counts_by_slot(&store, 1, range.clone());
    assert_eq!(hour_counts.len(), times.len());
    drop((store, appender));
    let levels = [0, 2].map(|level: usize| all.as_slice()[level].clone());
    let without_hours = GranularitySet::new(levels.to_vec()).unwrap();
    for _ in 0..2 {
        let (store, mut appender) = open(dir.path(), &without_hours);
        assert_eq!(store.all_granularities().last().unwrap().name, "1h");
        send(&mut appender, &[NOW.0 - 5 * HOUR]);
        assert_eq!(
            counts_by_slot(&store, 2, range.clone()),
            hour_counts,
            "a removed granularity accepts no samples"
        );
        store.checkpoint(NOW.plus(36 * HOUR)).unwrap();
        assert_eq!(counts_by_slot(&store, 2, range.clone()), hour_counts);
        let sent = times.len() + counts_by_slot(&store, 0, range.clone()).len();
        assert!(sent > times.len());
        drop((store, appender));
        let report = verify(dir.path(), NOW, &mut |_| {}).unwrap();
        assert!(report.is_sound(), "{report:?}");
    }
    let (store, appender) = open(dir.path(), &without_hours);
    let partitions: Vec<_> = store
        .partitions()
        .into_iter()
        .filter(|partition| partition.id.granularity == GranularityIndex(2))
        .collect();
    assert!(partitions.len() >= 2);
    let retention = 12 * 7 * 24 * HOUR;
    for partition in &partitions {
        let granularity = store.granularity(partition.id.granularity);
        assert!(!is_expired(granularity, partition.end, partition.end.plus(retention - 1)));
        assert!(is_expired(granularity, partition.end, partition.end.plus(retention)));
        assert!(store.drop_partition(partition.id).unwrap());
    }
    // The head might contain cells of 1h until the retention ends.
    let later = NOW.plus(2 * retention);
    store.remember_time(later).unwrap();
    assert_eq!(store.all_granularities().len(), 3);
    drop((store, appender));
    let (store, _) = crate::setup::open_with(dir.path(), &without_hours, later);
    assert_eq!(store.all_granularities().len(), 2, "nothing remains of 1h");
}
