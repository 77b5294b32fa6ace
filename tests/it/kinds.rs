//! Series whose kind changes: their cells are compared with cells computed from all samples.

use std::collections::BTreeMap;

use granary::{
    model::{Cell, Kind, SeriesId, SeriesInfo, UnixMillis},
    store::{Appender, Store, restore, verify},
};
use proptest::prelude::*;

use crate::setup::{self, HOUR, NOW, SECOND, SIX, define, samples, send, series, slots};

fn series_info(kind: Kind) -> SeriesInfo {
    series("queue_length", &[("host", "web1")], kind)
}

fn now() -> UnixMillis {
    SIX.plus(7 * HOUR)
}

/// Changes the kind of the series.
fn change_kind(appender: &mut Appender, kind: Kind) -> Option<SeriesId> {
    appender.change_kinds(&[series_info(kind)], now()).unwrap()[0]
}

/// Consecutive readings of one kind.
#[derive(Debug, Clone)]
struct Stretch {
    /// Seconds since the previous reading, and the increase of the value.
    readings: Vec<(i64, u32)>,
    checkpoint: bool,
    restart: bool,
    /// True if the readings are a backlog, which the part of the series before the last change
    /// receives.
    is_backlog: bool,
}

fn any_stretches(
    seconds_apart_max: i64,
    with_backlogs: bool,
) -> impl Strategy<Value = Vec<Stretch>> {
    let readings = prop::collection::vec((1..seconds_apart_max, 0_u32..1000), 1..12);
    let stretch = (readings, any::<bool>(), any::<bool>(), any::<bool>());
    let stretch = stretch.prop_map(move |(readings, checkpoint, restart, is_backlog)| Stretch {
        readings,
        checkpoint,
        restart,
        is_backlog: is_backlog && with_backlogs,
    });
    // The store allows four changes of kind an hour.
    prop::collection::vec(stretch, 2..6)
}

/// Returns the cells of all samples as one kind; sums of gauges are not compared.
fn expected_cells(all: &[(i64, f64)], kind: Kind, width: i64) -> BTreeMap<i64, Cell> {
    let mut cells: BTreeMap<i64, Cell> = BTreeMap::new();
    let mut before = None;
    for (at, value) in all {
        let start = at - at % width;
        let mut cell = Cell::single((at - start) as u32, *value);
        if kind == Kind::Counter {
            cell.sum = before.map_or(0.0, |before| value - before);
        }
        cells.entry(start).or_insert(Cell::EMPTY).merge(&cell);
        before = Some(*value);
    }
    cells
}

fn compare(store: &Store, id: SeriesId, all: &[(i64, f64)], kind: Kind) {
    let range = SIX.minus(HOUR)..SIX.plus(12 * HOUR);
    for (index, granularity) in store.granularities().indexed() {
        let compared_fields = |start: i64, cell: &Cell| {
            let sum = if kind == Kind::Counter { cell.sum } else { 0.0 };
            let extremes = if kind == Kind::Counter { (0.0, 0.0) } else { (cell.min, cell.max) };
            let times = (start, cell.n, cell.first_at, cell.last_at);
            (times, cell.first, cell.last, sum, extremes)
        };
        let found = slots(store, index.0, range.clone(), id);
        let found_fields: Vec<_> =
            found.iter().map(|slot| compared_fields(slot.start.0, &slot.cell)).collect();
        let expected_fields = expected_cells(all, kind, granularity.width_ms);
        let expected_fields: Vec<_> =
            expected_fields.iter().map(|(start, cell)| compared_fields(*start, cell)).collect();
        assert_eq!(found_fields, expected_fields, "{}", granularity.name);
        // A view of one slot contains the same cell as the view of all slots.
        for slot in &found {
            let range = slot.start..slot.start.plus(granularity.width_ms);
            assert_eq!(slots(store, index.0, range, id), [*slot]);
        }
    }
}

fn check(all: &[Stretch], kinds: [Kind; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, mut appender) = setup::open(dir.path(), now());
    let mut ids = vec![define(&mut appender, &[series_info(kinds[0])], now())[0]];
    let (mut at, mut value, mut sent) = (SIX.0, 0.0, Vec::new());
    let mut kind = kinds[0];
    for (index, stretch) in all.iter().enumerate() {
        let is_backlog = stretch.is_backlog && ids.len() > 1;
        if index > 0 && !is_backlog {
            kind = if kind == kinds[0] { kinds[1] } else { kinds[0] };
            ids.push(change_kind(&mut appender, kind).unwrap());
        }
        let id = ids[ids.len() - 1];
        let receiver = ids[ids.len() - 1 - usize::from(is_backlog)];
        let readings: Vec<_> = stretch
            .readings
            .iter()
            .map(|(after, more)| {
                (at, value) = (at + after * SECOND, value + f64::from(*more));
                (at, value)
            })
            .collect();
        send(&mut appender, samples(receiver, readings.iter().copied()), now());
        sent.extend(readings);
        if stretch.checkpoint {
            store.checkpoint(now()).unwrap();
        }
        if stretch.restart {
            drop((store, appender));
            (store, appender) = setup::open(dir.path(), now());
        }
        assert_eq!(store.dictionary().find(&series_info(kind).key), Some(id));
        assert_eq!(store.dictionary().len(), 1);
        compare(&store, id, &sent, kind);
    }
    drop((store, appender));
    assert_eq!(verify(dir.path(), now(), &mut |_| {}).unwrap().faults, []);
}

fn kinds(is_counter_first: bool) -> [Kind; 2] {
    let (counter, gauge) = (Kind::Counter, Kind::Gauge);
    if is_counter_first { [counter, gauge] } else { [gauge, counter] }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_series_of_several_kinds_counts_every_sample_once(
        all in any_stretches(400, false),
        is_counter_first in any::<bool>(),
    ) {
        check(&all, kinds(is_counter_first));
    }

    #[test]
    fn interleaved_stretches_of_a_backlog_count_once(
        all in any_stretches(60, true),
        is_counter_first in any::<bool>(),
    ) {
        check(&all, kinds(is_counter_first));
    }
}

#[test]
fn a_kind_changes_at_most_four_times_an_hour_and_not_for_another_sender_or_unit() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), NOW);
    let info_of = |kind, unit: &str, sender: &str| SeriesInfo {
        unit: unit.into(),
        sender: sender.into(),
        ..series_info(kind)
    };
    let first = define(&mut appender, &[info_of(Kind::Gauge, "bytes", "a")], NOW)[0];
    send(&mut appender, samples(first, [(NOW.0, 1.0)]), NOW);
    let mut change_kinds = |all: &[SeriesInfo], now| appender.change_kinds(all, now).unwrap();
    assert_eq!(change_kinds(&[info_of(Kind::Counter, "bytes", "b")], NOW), [None]);
    assert_eq!(change_kinds(&[info_of(Kind::Counter, "seconds", "a")], NOW), [None]);
    // Another sender may change the kind when the first is silent; without a unit, the definition
    // keeps the present unit.
    let later = NOW.plus(600 * SECOND);
    let both = [
        info_of(Kind::Counter, "", "b"),
        info_of(Kind::Delta, "", "b"),
        info_of(Kind::Counter, "", "b"),
    ];
    assert_eq!(change_kinds(&both, later), [Some(SeriesId(1)), None, Some(SeriesId(1))]);
    assert_eq!(*store.dictionary().info(SeriesId(1)).unwrap().unit, *"bytes");
    let changes = [Kind::Gauge, Kind::Delta, Kind::Counter, Kind::Gauge];
    let found = changes.map(|kind| change_kinds(&[info_of(kind, "", "b")], later)[0]);
    assert_eq!(found, [Some(SeriesId(2)), Some(SeriesId(3)), Some(SeriesId(4)), None]);
    assert_eq!(
        change_kinds(&[info_of(Kind::Gauge, "", "b")], later.plus(HOUR)),
        [Some(SeriesId(5))]
    );
    assert_eq!(store.counters().kinds_refused.get(), 4);
    assert_eq!(store.counters().kinds_changed.get(), 5);
    assert_eq!((store.dictionary().len(), store.dictionary().parts(SeriesId(5)).len()), (1, 5));
}

#[test]
fn a_snapshot_has_the_samples_of_a_former_kind() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(&dir.path().join("data"), now());
    let gauge = define(&mut appender, &[series_info(Kind::Gauge)], now())[0];
    send(&mut appender, samples(gauge, [(SIX.0, 4.0)]), now());
    let counter = change_kind(&mut appender, Kind::Counter).unwrap();
    let check = |store: &Store| {
        compare(store, counter, &[(SIX.0, 4.0)], Kind::Counter);
        let last = store.last_samples(&[counter])[0].map(|last| last.at);
        assert_eq!(last, Some(SIX));
        assert_eq!(store.series_without_samples(now(), 9), []);
    };
    check(&store);
    store.checkpoint(now()).unwrap();
    let snapshot = dir.path().join("snapshot");
    store.snapshot(&snapshot, now(), &mut |_| {}).unwrap();
    drop((store, appender));
    let (store, _appender) = setup::open(&dir.path().join("data"), now());
    check(&store);
    restore(&snapshot, &dir.path().join("restored"), &mut |_| {}).unwrap();
    let (restored, _appender) = setup::open(&dir.path().join("restored"), now());
    check(&restored);
}
