//! Merged series, compared with a store that received all samples as one series.

use granary::{
    model::{Kind, SeriesId, SeriesInfo, SeriesLimits, UnixMillis},
    store::{
        Appender, ChangeAction, ChangeRefusal, Matcher, PARTS_MAX, Renaming, SeriesChange, Slot,
        Store, restore, verify,
    },
};
use proptest::prelude::*;

use crate::setup::{self, HOUR, MINUTE, NOW, SECOND, SIX, define, samples, send, series, slots};

const METRIC: &str = "requests";

fn series_info(part: usize, kind: Kind) -> SeriesInfo {
    series(METRIC, &[("host", "web1"), ("part", &part.to_string())], kind)
}

/// Returns a change that merges all series that match the condition under the name of part `to`.
fn merge(matcher: (&str, &str), to: usize) -> SeriesChange {
    let tags = vec![("part".to_owned(), to.to_string())];
    let renaming = Renaming { metric: None, tags, limits: SeriesLimits::default() };
    let matcher = Matcher { tag: matcher.0.into(), value: matcher.1.into() };
    SeriesChange { matchers: vec![matcher], action: ChangeAction::Merge(renaming) }
}

fn find_series(store: &Store, part: usize, kind: Kind) -> Option<SeriesId> {
    store.dictionary().find(&series_info(part, kind).key)
}

/// Returns the slots of a series, by granularity.
fn all_slots(store: &Store, series: SeriesId) -> Vec<Vec<Slot>> {
    let range = SIX.minus(HOUR)..SIX.plus(12 * HOUR);
    (0..store.granularities().count())
        .map(|level| slots(store, level, range.clone(), series))
        .collect()
}

/// Samples of one series, divided among parts: the samples of each part follow the samples of
/// the previous part.
#[derive(Debug, Clone)]
struct History {
    kind: Kind,
    /// Seconds since the preceding sample, and value.
    samples: Vec<(i64, u32)>,
    /// The index of the first sample after each part, ascending; the rest is sent after the merge.
    cuts: Vec<usize>,
    /// The order in which the parts are registered.
    order: Vec<usize>,
    /// The part whose name the merged series gets; 4 stands for a new name.
    to: usize,
    /// The indexes of the samples after which a checkpoint runs.
    checkpoints: Vec<usize>,
    /// True if the parts are merged one after another, false if all at once.
    one_by_one: bool,
}

impl History {
    fn samples(&self) -> Vec<(i64, f64)> {
        let (mut at, mut total) = (SIX.0, 0);
        let sample = |(after, value): &(i64, u32)| {
            at += after * SECOND;
            let value = match self.kind {
                // One in ten readings is a reset.
                Kind::Counter if value.is_multiple_of(10) => {
                    total = u64::from(*value);
                    total as f64
                }
                Kind::Counter => {
                    total += u64::from(*value);
                    total as f64
                }
                Kind::Gauge | Kind::Delta => f64::from(*value),
                Kind::Histogram | Kind::GaugeHistogram | Kind::DeltaHistogram => {
                    unreachable!("the histories have numbers")
                }
            };
            (at, value)
        };
        self.samples.iter().map(sample).collect()
    }
}

fn any_history() -> impl Strategy<Value = History> {
    let kind = prop_oneof![Just(Kind::Gauge), Just(Kind::Delta), Just(Kind::Counter)];
    let samples = prop::collection::vec((1_i64..400, 0_u32..1000), 2..60);
    let order = Just((0..4_usize).collect::<Vec<_>>()).prop_shuffle();
    let cuts = prop::collection::vec(0_usize..60, 4);
    let checkpoints = prop::collection::vec(0_usize..60, 0..4);
    (kind, samples, cuts, order, 0_usize..5, checkpoints, any::<bool>()).prop_map(
        |(kind, samples, mut cuts, order, to, checkpoints, one_by_one)| {
            cuts.sort_unstable();
            History { kind, samples, cuts, order, to, checkpoints, one_by_one }
        },
    )
}

/// Returns a time after all samples of a history.
fn after_history() -> UnixMillis {
    SIX.plus(7 * HOUR)
}

/// Merges all parts into one series.
fn merge_parts(history: &History, appender: &mut Appender) {
    if history.one_by_one {
        // Each part is merged into the part that follows in time.
        for part in 0..3_usize {
            let change = merge(("part", &part.to_string()), part + 1);
            appender.change(&change, after_history()).unwrap().unwrap();
        }
        appender.change(&merge(("part", "3"), history.to), after_history()).unwrap().unwrap();
    } else {
        appender.change(&merge(("host", "web1"), history.to), after_history()).unwrap().unwrap();
    }
}

fn check(history: &History) {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), after_history());
    let mut ids = [SeriesId(0); 4];
    for part in &history.order {
        ids[*part] = define(&mut appender, &[series_info(*part, history.kind)], after_history())[0];
    }
    let all = history.samples();
    let merged_at = history.cuts[3].min(all.len());
    for (index, sample) in all[..merged_at].iter().enumerate() {
        let part = history.cuts[..3].iter().filter(|cut| **cut <= index).count();
        send(&mut appender, samples(ids[part], [*sample]), after_history());
        if history.checkpoints.contains(&index) {
            store.checkpoint(after_history()).unwrap();
        }
    }
    merge_parts(history, &mut appender);
    assert_eq!(store.dictionary().len(), 1);
    drop((store, appender));
    let (store, mut appender) = setup::open(dir.path(), after_history());
    let merged = find_series(&store, history.to, history.kind).unwrap();
    for (index, sample) in all.iter().enumerate().skip(merged_at) {
        send(&mut appender, samples(merged, [*sample]), after_history());
        if history.checkpoints.contains(&index) {
            store.checkpoint(after_history()).unwrap();
        }
    }
    let oracle_dir = tempfile::tempdir().unwrap();
    let (oracle_store, mut oracle) = setup::open(oracle_dir.path(), after_history());
    let oracle_id = define(&mut oracle, &[series_info(9, history.kind)], after_history())[0];
    send(&mut oracle, samples(oracle_id, all.iter().copied()), after_history());
    let expected = all_slots(&oracle_store, oracle_id);
    compare(history, &all_slots(&store, merged), &expected);
    drop((store, appender));
    assert_eq!(verify(dir.path(), after_history(), &mut |_| {}).unwrap().faults, []);
}

fn compare(history: &History, found: &[Vec<Slot>], expected: &[Vec<Slot>]) {
    if history.kind != Kind::Counter {
        assert_eq!(found, expected);
        return;
    }
    for (found, expected) in found.iter().zip(expected) {
        let compared_fields = |slot: &Slot| {
            let cell = &slot.cell;
            let at = (slot.start, cell.first_at, cell.last_at);
            (at, cell.sum, cell.first, cell.last)
        };
        let [found_fields, expected_fields] =
            [found, expected].map(|all| all.iter().map(compared_fields).collect::<Vec<_>>());
        assert_eq!(found_fields, expected_fields);
        // The last reading of each part may count a second time.
        let count = |all: &[Slot]| all.iter().map(|slot| slot.cell.n).sum::<u32>();
        assert!((count(expected)..=count(expected) + 3).contains(&count(found)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn merged_series_equal_one_series_with_all_samples(history in any_history()) {
        check(&history);
    }
}

#[test]
fn an_impossible_merge_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), NOW);
    let with_other_unit = SeriesInfo { unit: "bytes".into(), ..series_info(2, Kind::Gauge) };
    define(
        &mut appender,
        &[series_info(0, Kind::Gauge), series_info(1, Kind::Delta), with_other_unit],
        NOW,
    );
    for part in ["1", "2"] {
        let refused = appender.change(&merge(("part", part), 0), NOW).unwrap().unwrap_err();
        assert!(matches!(refused, ChangeRefusal::Unlike { .. }), "{refused}");
    }
    assert_eq!(store.dictionary().len(), 3);
    let many: Vec<_> = (10..10 + PARTS_MAX).map(|part| series_info(part, Kind::Gauge)).collect();
    define(&mut appender, &many, NOW);
    let delete = |part: &str| SeriesChange {
        matchers: vec![Matcher { tag: "part".into(), value: part.into() }],
        action: ChangeAction::Delete,
    };
    for part in ["1", "2"] {
        appender.change(&delete(part), NOW).unwrap().unwrap();
    }
    let refused = appender.change(&merge(("host", "web1"), 0), NOW).unwrap().unwrap_err();
    assert!(matches!(refused, ChangeRefusal::TooManyParts { .. }), "{refused}");
    appender.change(&delete("10"), NOW).unwrap().unwrap();
    let merged = appender.change(&merge(("host", "web1"), 0), NOW).unwrap().unwrap();
    assert_eq!((merged, store.dictionary().len()), (PARTS_MAX - 1, 1));
    // The series and all of its parts are deleted together.
    appender.change(&delete("0"), NOW).unwrap().unwrap();
    assert_eq!((store.dictionary().len(), store.dictionary().has_parts()), (0, false));
}

#[test]
fn counters_that_overlap_in_time_are_not_merged() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), NOW);
    let all = [0, 1, 2, 3].map(|part| series_info(part, Kind::Counter));
    let ids = define(&mut appender, &all, NOW);
    let at = |minute: i64| NOW.minus(HOUR).0 + minute * MINUTE;
    for (id, minutes) in ids.iter().zip([[0, 5], [10, 15], [20, 25], [24, 30]]) {
        send(&mut appender, samples(*id, minutes.map(|minute| (at(minute), minute as f64))), NOW);
    }
    let mut is_merged = |part: &str, to| {
        let changed = appender.change(&merge(("part", part), to), NOW).unwrap();
        let is_interleaved = |cause| matches!(cause, ChangeRefusal::Interleaved { .. });
        changed
            .map(|count| count == 1)
            .or_else(|cause| is_interleaved(cause).then_some(false).ok_or(()))
    };
    // The last two parts overlap in time: 20 to 25 and 24 to 30.
    assert_eq!(is_merged("2", 3), Ok(false));
    assert_eq!(is_merged("0", 2), Ok(true));
    // This merge counted the growth from minute 5 to 20, which includes that of the second part.
    assert_eq!(is_merged("1", 2), Ok(false));
    assert_eq!(store.dictionary().len(), 3);
    let merged = find_series(&store, 2, Kind::Counter).unwrap();
    let slots = slots(&store, 0, NOW.minus(2 * HOUR)..NOW, merged);
    assert_eq!(slots.iter().map(|slot| slot.cell.sum).sum::<f64>(), 25.0);
}

#[test]
fn merged_series_are_renamed_and_snapshotted_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(&dir.path().join("data"), NOW);
    let ids =
        define(&mut appender, &[series_info(0, Kind::Gauge), series_info(1, Kind::Gauge)], NOW);
    let first = NOW.minus(10 * MINUTE).0;
    send(&mut appender, samples(ids[0], [(first, 1.0)]), NOW);
    send(&mut appender, samples(ids[1], [(first + MINUTE, 2.0)]), NOW);
    store.checkpoint(NOW).unwrap();
    appender.change(&merge(("part", "0"), 1), NOW).unwrap().unwrap();
    let rename = merge(("part", "1"), 7);
    assert_eq!(appender.change(&rename, NOW).unwrap(), Ok(1));
    let count = |store: &Store, part| {
        let id = find_series(store, part, Kind::Gauge).unwrap();
        setup::count(store, 0, NOW.minus(HOUR)..NOW, id)
    };
    assert_eq!(count(&store, 7), 2);
    drop((store, appender));
    let (store, _appender) = setup::open(&dir.path().join("data"), NOW);
    assert_eq!(count(&store, 7), 2);
    let snapshot = dir.path().join("snapshot");
    store.snapshot(&snapshot, NOW, &mut |_| {}).unwrap();
    restore(&snapshot, &dir.path().join("restored"), &mut |_| {}).unwrap();
    let (restored, _appender) = setup::open(&dir.path().join("restored"), NOW);
    assert_eq!(count(&restored, 7), 2);
}
