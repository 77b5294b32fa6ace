//! Tests of rows that are stored and restored, and of packed counters.

use proptest::prelude::*;

use super::*;

#[test]
fn growth_of_histograms_whose_readings_were_lost_is_not_counted_twice() {
    let mut states = SeriesStates::default();
    states.add(Kind::Histogram);
    let mut grown = |at: i64, count: u32, is_lost: bool| {
        if is_lost {
            states.histograms.clear();
            states.histogram_bytes = 0;
            states.lose_histograms(0);
        }
        let mut histogram = Histogram::sketch();
        histogram.observe(2.0, count.into());
        states.observe(SeriesId(0), UnixMillis(at), count.into(), 500, UnixMillis(0));
        let observed = states.observe_histogram(SeriesId(0), (UnixMillis(at), 500), &histogram);
        observed.increase.count
    };
    assert_eq!(grown(1000, 5, false), 5.0);
    assert_eq!(grown(2000, 7, false), 2.0);
    assert_eq!(grown(3000, 8, true), 0.0);
    assert_eq!(grown(4000, 11, false), 3.0);
}

#[test]
fn remembered_readings_of_histograms_count_as_memory() {
    let new = || {
        let mut states = SeriesStates::default();
        states.add(Kind::Histogram);
        states.add(Kind::GaugeHistogram);
        states
    };
    let mut states = new();
    let mut histogram = Histogram::sketch();
    (1..1000).for_each(|value| histogram.observe(f64::from(value), 1.0));
    for at in 1..=9_i64 {
        for series in [SeriesId(0), SeriesId(1)] {
            states.observe(series, UnixMillis(at), histogram.count, 0, UnixMillis(0));
            states.observe_histogram(series, (UnixMillis(at), 0), &histogram);
        }
    }
    let (one, without) = (histogram.clone().bytes(), new().bytes()[0]);
    let readings = states.bytes()[0] - without;
    assert!((4 * one..5 * one).contains(&readings), "four readings of one series: {readings}");
    let stored = states.encode(0).histograms.unwrap();
    let mut read = new();
    for _ in 0..2 {
        assert_eq!(read.restore_histograms(0, &stored), Some(()));
        let bytes = read.histograms.values().map(HistogramReadings::bytes).sum::<usize>();
        assert_eq!(read.histogram_bytes, bytes);
    }
    states.note_erased(SeriesId(0), &(0..100));
    let bytes = states.histograms.values().map(HistogramReadings::bytes).sum::<usize>();
    assert_eq!(states.histogram_bytes, bytes);
    states.forget(SeriesId(0));
    assert_eq!(states.histogram_bytes, 0);
}

#[test]
fn rows_survive_the_disk() {
    let mut states = SeriesStates::default();
    for index in 0..130 {
        states.add(Kind::OF_NUMBERS[index % 3]);
    }
    for index in [0_u32, 1, 64, 129] {
        for at in 0..17 {
            states.observe(SeriesId(index), UnixMillis(at), at as f64, 3, UnixMillis(0));
        }
    }
    states.end(SeriesId(64), UnixMillis(19));
    states.note_time(SeriesId(65), UnixMillis(5), 1000);
    states.freeze();
    let rows = states.frozen_rows(0, 9);
    assert_eq!(rows.iter().map(|row| row.row).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(states.frozen_rows(1, 1), rows[1..2]);
    let mut read = SeriesStates::default();
    for index in 0..130 {
        read.add(Kind::OF_NUMBERS[index % 3]);
    }
    for EncodedRow { row, states: encoded, seen, .. } in &rows {
        assert_eq!(read.restore_states(*row, encoded), Some(()));
        assert_eq!(read.restore_seen(*row, seen), Some(()));
        assert_eq!(read.restore_states(*row, &[encoded, &[0][..]].concat()), None);
    }
    assert_eq!(read.states, states.states);
    assert_eq!(read.note_time(SeriesId(65), UnixMillis(5), 1000), TimeVerdict::Duplicate);
    // Later changes do not affect frozen rows.
    states.observe(SeriesId(129), UnixMillis(99), 1.0, 3, UnixMillis(0));
    states.observe(SeriesId(129), UnixMillis(100), 2.0, 3, UnixMillis(0));
    assert_eq!(states.frozen_rows(0, 9), rows);
    assert_eq!(states.thaw().len(), 1);
    states.freeze();
    let later = states.frozen_rows(0, 9);
    assert_eq!(later.len(), 1);
    assert_ne!(later[0], rows[2]);
}

/// An event of one series, or of all series.
#[derive(Debug, Clone, Copy)]
enum Event {
    Sample {
        series: u32,
        at: i64,
        value: u32,
        start: i64,
    },
    End {
        series: u32,
        at: i64,
    },
    Forget(u32),
    /// Packs idle counters in only one of the two copies.
    Pack(i64),
    Freeze,
    Thaw,
    Restart,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let series = || 0..150_u32;
    let at = || 0..5000_i64;
    let start = prop::sample::select(vec![0, 7, -90_000_000]);
    let sample = (series(), at(), 0..50_u32, start);
    let event = prop_oneof![
        30 => sample.prop_map(|(series, at, value, start)| Event::Sample { series, at, value, start }),
        2 => (series(), at()).prop_map(|(series, at)| Event::End { series, at }),
        1 => series().prop_map(Event::Forget),
        6 => at().prop_map(Event::Pack),
        2 => Just(Event::Freeze),
        2 => Just(Event::Thaw),
        1 => Just(Event::Restart),
    ];
    prop::collection::vec(event, 0..400)
}

fn all_fresh() -> SeriesStates {
    let mut states = SeriesStates::default();
    (0..150).for_each(|id| states.add(if id % 5 == 0 { Kind::Gauge } else { Kind::Counter }));
    states
}

fn rows(states: &SeriesStates) -> Vec<EncodedRow> {
    (0..3).map(|row| states.encode(row)).collect()
}

/// Returns the states after they were stored and read again.
fn restarted(states: &SeriesStates) -> SeriesStates {
    let mut read = all_fresh();
    for EncodedRow { row, states, seen, .. } in rows(states) {
        assert_eq!(
            (read.restore_states(row, &states), read.restore_seen(row, &seen)),
            (Some(()), Some(()))
        );
    }
    read
}

proptest! {
    /// Packing does not change cells, rows of checkpoints or restored states.
    #[test]
    fn packed_counters_continue_like_unpacked_ones(events in events()) {
        let (mut unpacked, mut packed) = (all_fresh(), all_fresh());
        let mut is_frozen = false;
        let mut forgotten = BTreeSet::new();
        for event in events {
            match event {
                Event::Sample { series, at, value, start } => {
                    let observe = |states: &mut SeriesStates| {
                        let value = f64::from(value);
                        states.observe(SeriesId(series), UnixMillis(at), value, start, UnixMillis(0))
                    };
                    prop_assert_eq!(observe(&mut unpacked), observe(&mut packed));
                }
                Event::End { series, at } => {
                    for copy in [&mut unpacked, &mut packed] {
                        copy.end(SeriesId(series), UnixMillis(at));
                    }
                }
                Event::Forget(series) if forgotten.insert(series) => {
                    for copy in [&mut unpacked, &mut packed] {
                        copy.forget(SeriesId(series));
                    }
                }
                Event::Pack(before) => {
                    prop_assert!(packed.pack_idle(0..2, UnixMillis(before)));
                    prop_assert!(!packed.pack_idle(2..4, UnixMillis(before)));
                    let is_old = |state: &&SeriesState| state.last_at.0 < before;
                    let old = packed.states.iter().filter(is_old);
                    prop_assert!(old.into_iter().all(|state| state.counter().is_none()));
                }
                Event::Freeze if !is_frozen => {
                    for copy in [&mut unpacked, &mut packed] {
                        copy.freeze();
                    }
                    is_frozen = true;
                }
                // There is one checkpoint at a time, and IDs are not reused.
                Event::Freeze | Event::Forget(_) => {}
                Event::Thaw => {
                    is_frozen = false;
                    prop_assert_eq!(unpacked.thaw(), packed.thaw());
                }
                Event::Restart => {
                    (unpacked, packed) = (restarted(&unpacked), restarted(&packed));
                    is_frozen = false;
                }
            }
            prop_assert_eq!(unpacked.frozen_rows(0, 9), packed.frozen_rows(0, 9));
        }
        prop_assert_eq!(rows(&unpacked), rows(&packed));
        prop_assert_eq!(unpacked.latest(), packed.latest());
        let idle = packed.states.iter().zip(&unpacked.states);
        let idle = idle
            .filter(|(state, awake)| state.counter().is_none() && awake.counter().is_some());
        prop_assert_eq!(packed.idle_series(), idle.count());
        packed.pack_idle(0..3, UnixMillis(i64::MIN));
        (0..150).for_each(|id| packed.wake(SeriesId(id)));
        prop_assert_eq!((packed.idle_series(), packed.bytes()), (0, unpacked.bytes()));
        prop_assert_eq!(packed.states, unpacked.states);
    }
}
