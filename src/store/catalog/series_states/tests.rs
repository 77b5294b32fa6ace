//! Rows as they come back from the disk, and from beside the others.

use proptest::prelude::*;

use super::*;

#[test]
fn rows_survive_the_disk() {
    let mut states = SeriesStates::default();
    for index in 0..130 {
        states.add(Kind::ALL[index % 3]);
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
        read.add(Kind::ALL[index % 3]);
    }
    for EncodedRow { row, states: encoded, seen } in &rows {
        assert_eq!(read.restore_states(*row, encoded), Some(()));
        assert_eq!(read.restore_seen(*row, seen), Some(()));
        assert_eq!(read.restore_states(*row, &[encoded, &[0][..]].concat()), None);
    }
    assert_eq!(read.states, states.states);
    assert_eq!(read.note_time(SeriesId(65), UnixMillis(5), 1000), TimeVerdict::Duplicate);
    // What changes from now on changes nothing of what was set aside.
    states.observe(SeriesId(129), UnixMillis(99), 1.0, 3, UnixMillis(0));
    states.observe(SeriesId(129), UnixMillis(100), 2.0, 3, UnixMillis(0));
    assert_eq!(states.frozen_rows(0, 9), rows);
    assert_eq!(states.thaw().len(), 1);
    states.freeze();
    let later = states.frozen_rows(0, 9);
    assert_eq!(later.len(), 1);
    assert_ne!(later[0], rows[2]);
}

/// An event of one series, or of all of them.
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
    /// The second of the two only.
    PutAside(i64),
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
        6 => at().prop_map(Event::PutAside),
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

/// The states after they were stored and read again.
fn restarted(states: &SeriesStates) -> SeriesStates {
    let mut read = all_fresh();
    for EncodedRow { row, states, seen } in rows(states) {
        assert_eq!(
            (read.restore_states(row, &states), read.restore_seen(row, &seen)),
            (Some(()), Some(()))
        );
    }
    read
}

proptest! {
    /// Whatever is put aside, cells, rows of checkpoints and what a start reads are the same.
    #[test]
    fn counters_that_are_put_aside_go_on_as_if_they_had_not_been(events in events()) {
        let (mut all, mut swept) = (all_fresh(), all_fresh());
        let mut is_frozen = false;
        let mut forgotten = BTreeSet::new();
        for event in events {
            match event {
                Event::Sample { series, at, value, start } => {
                    let observe = |states: &mut SeriesStates| {
                        let value = f64::from(value);
                        states.observe(SeriesId(series), UnixMillis(at), value, start, UnixMillis(0))
                    };
                    prop_assert_eq!(observe(&mut all), observe(&mut swept));
                }
                Event::End { series, at } => {
                    for copy in [&mut all, &mut swept] {
                        copy.end(SeriesId(series), UnixMillis(at));
                    }
                }
                Event::Forget(series) if forgotten.insert(series) => {
                    for copy in [&mut all, &mut swept] {
                        copy.forget(SeriesId(series));
                    }
                }
                Event::PutAside(before) => {
                    prop_assert!(swept.pack_idle(0..2, UnixMillis(before)));
                    prop_assert!(!swept.pack_idle(2..4, UnixMillis(before)));
                    let is_old = |state: &&SeriesState| state.last_at.0 < before;
                    let old = swept.states.iter().filter(is_old);
                    prop_assert!(old.into_iter().all(|state| state.counter().is_none()));
                }
                Event::Freeze if !is_frozen => {
                    for copy in [&mut all, &mut swept] {
                        copy.freeze();
                    }
                    is_frozen = true;
                }
                // One checkpoint at a time, and an id is not given again.
                Event::Freeze | Event::Forget(_) => {}
                Event::Thaw => {
                    is_frozen = false;
                    prop_assert_eq!(all.thaw(), swept.thaw());
                }
                Event::Restart => {
                    (all, swept) = (restarted(&all), restarted(&swept));
                    is_frozen = false;
                }
            }
            prop_assert_eq!(all.frozen_rows(0, 9), swept.frozen_rows(0, 9));
        }
        prop_assert_eq!(rows(&all), rows(&swept));
        prop_assert_eq!(all.latest(), swept.latest());
        let asleep = swept.states.iter().zip(&all.states);
        let asleep = asleep
            .filter(|(state, awake)| state.counter().is_none() && awake.counter().is_some());
        prop_assert_eq!(swept.idle_series(), asleep.count());
        swept.pack_idle(0..3, UnixMillis(i64::MIN));
        (0..150).for_each(|id| swept.wake(SeriesId(id)));
        prop_assert_eq!((swept.idle_series(), swept.bytes()), (0, all.bytes()));
        prop_assert_eq!(swept.states, all.states);
    }
}
