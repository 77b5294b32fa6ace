//! Replacement of readings: in random histories, and with a power cut at each sync in turn.

use std::sync::Arc;

use granary::{
    model::{Cell, GranularitySet, Kind, SeriesId, UnixMillis},
    store::{Appender, NewReading, ReplaceRefusal, ReplaceVerdict, Slot, Store, StoreError},
};

use crate::{
    faulty::{Call, Effect, Fault, FaultyMedium},
    history::History,
    senders::{admission, is_histogram},
    setup::{DAY, HOUR, NOW, define, samples, send, series, slots},
    upkeep::Upkeep,
    world::{Outcome, Request},
};

const MINUTE: i64 = 60_000;

impl History {
    /// Replaces a reading that was sent recently, or adds one near it.
    pub(crate) fn replace(&mut self) {
        if self.accept_replacement() {
            self.run_upkeep(&Upkeep::Erase);
        }
    }

    /// Requests a replacement; returns false when the store refuses it.
    pub(crate) fn accept_replacement(&mut self) -> bool {
        let Some((name, at)) = self.recent_sample() else { return false };
        let at =
            UnixMillis(if self.rng.u8(0..4) == 0 { at + self.rng.i64(-HOUR..HOUR) } else { at });
        let matchers =
            vec![granary::store::Matcher { tag: "name".into(), value: name.to_string() }];
        let series = self.store().dictionary().select(&matchers).first().copied();
        let Some(series) = series else { return false };
        let now = self.now();
        let set = self.levels.current.clone();
        // Damage may have removed samples that the oracle still expects.
        if self.is_damaged
            || admission(&set, now).check(at, 1.0, || None).is_err()
            || !self.worlds.know(series, at)
        {
            return false;
        }
        let reading = NewReading { series, at, value: f64::from(self.rng.i32(100..200)) };
        let request = Request::Replace { reading, set, now: now.earliest() };
        let outcome = self.appender().replace(&[reading], now);
        self.trace(|| format!("{request:?}: {outcome:?}"));
        match outcome {
            Ok(verdicts) => {
                let outcome = match verdicts.as_deref() {
                    Some([ReplaceVerdict::Replaced]) => Outcome::Replaced,
                    Some([ReplaceVerdict::Added]) => Outcome::Added,
                    Some([ReplaceVerdict::Refused(_)]) => {
                        self.tally.note("refused replacements");
                        return false;
                    }
                    other => panic!("{other:?}"),
                };
                assert!(!is_histogram(name), "a histogram was replaced by a number");
                let is_added = outcome == Outcome::Added;
                self.tally.note(if is_added { "added readings" } else { "replaced readings" });
                self.worlds.succeeded(&request, &outcome);
                true
            }
            Err(cause) => {
                self.worlds.failed(request);
                self.expect_fault(&cause, "failed replacements");
                // A restart completes the replacement, or does not find it because it was not
                // stored.
                self.restart();
                false
            }
        }
    }
}

fn open(medium: &FaultyMedium) -> Result<(Store, Appender), StoreError> {
    let opened = Store::open(Arc::new(medium.clone()), GranularitySet::default(), NOW);
    opened.map(|(store, appender, _)| (store, appender))
}

/// Returns a gauge, a delta and a counter with a reading a minute, of the last four hours.
fn filled(seed: u64) -> (FaultyMedium, Store, Appender) {
    let medium = FaultyMedium::new(seed);
    let (store, mut appender) = open(&medium).unwrap();
    let kinds = [Kind::Gauge, Kind::Delta, Kind::Counter];
    let all = kinds.map(|kind| series(&format!("{kind:?}"), &[], kind));
    for id in define(&mut appender, &all, NOW) {
        let readings = (0..240).map(|minute| (at(minute).0, minute as f64));
        send(&mut appender, samples(id, readings), NOW);
    }
    // Some are in documents, some in the head, the latest in memory.
    store.checkpoint(NOW).unwrap();
    for id in [GAUGE, DELTA] {
        send(&mut appender, samples(id, [(at(240).0, 240.0)]), NOW);
    }
    (medium, store, appender)
}

const GAUGE: SeriesId = SeriesId(0);
const DELTA: SeriesId = SeriesId(1);
const COUNTER: SeriesId = SeriesId(2);

/// Returns the time of a reading, a few seconds into its minute.
fn at(minute: i64) -> UnixMillis {
    UnixMillis(NOW.0 / HOUR * HOUR - 4 * HOUR + minute * MINUTE + 7000)
}

fn reading(series: SeriesId, minute: i64, value: f64) -> NewReading {
    NewReading { series, at: at(minute), value }
}

/// Returns readings in documents, in the head and in memory, and one for a minute without a
/// reading.
fn readings() -> Vec<NewReading> {
    let minutes = [0, 1, 59, 60, 130, 238, 239, 240, 245];
    let of = |series| move |minute: &i64| reading(series, *minute, 1000.0 - *minute as f64);
    minutes.iter().map(of(GAUGE)).chain(minutes.iter().map(of(DELTA))).collect()
}

/// Returns the cells of all levels that the readings of gauge and delta must have.
fn expected(new: &[NewReading]) -> Vec<Vec<(SeriesId, i64, Cell)>> {
    let mut stored = std::collections::BTreeMap::new();
    for id in [GAUGE, DELTA] {
        stored.extend((0..=240).map(|minute| ((id, at(minute)), minute as f64)));
    }
    stored.extend(new.iter().map(|new| ((new.series, new.at), new.value)));
    let of_level = |level: &granary::model::Granularity| {
        let mut cells = std::collections::BTreeMap::<(SeriesId, i64), Cell>::new();
        for ((series, at), value) in &stored {
            let start = level.slot_start(*at);
            let cell = Cell::single((at.0 - start.0) as u32, *value);
            cells.entry((*series, start.0)).or_insert(Cell::EMPTY).merge(&cell);
        }
        cells.into_iter().map(|((series, start), cell)| (series, start, cell)).collect()
    };
    GranularitySet::default().iter().map(of_level).collect()
}

fn found(store: &Store) -> Vec<Vec<(SeriesId, i64, Cell)>> {
    let of_level = |level: usize| {
        let range = NOW.minus(2 * DAY)..NOW.plus(2 * DAY);
        let of =
            |id| slots(store, level, range.clone(), id).into_iter().map(move |slot| (id, slot));
        let all = of(GAUGE).chain(of(DELTA));
        all.map(|(id, Slot { start, cell })| (id, start.0, cell)).collect()
    };
    (0..4).map(of_level).collect()
}

fn replace(store: &Store, appender: &mut Appender) -> Result<Vec<ReplaceVerdict>, StoreError> {
    let verdicts = appender.replace(&readings(), NOW)?.unwrap();
    store.complete_erasure()?;
    Ok(verdicts)
}

#[test]
fn a_power_cut_during_a_replacement_loses_no_reading_and_a_retry_counts_once() {
    let new = readings();
    let of_minute = |verdicts: &[ReplaceVerdict]| {
        verdicts.iter().filter(|verdict| **verdict == ReplaceVerdict::Replaced).count()
    };
    let (mut cuts, mut undone) = (0, 0);
    for after in 0.. {
        let (medium, store, mut appender) = filled(after);
        medium.arm(Fault { call: Call::Sync, after, times: 1, effect: Effect::PowerCut });
        let outcome = replace(&store, &mut appender);
        drop((store, appender));
        if !medium.is_power_cut() {
            assert_eq!(of_minute(&outcome.unwrap()), 16);
            break;
        }
        cuts += 1;
        medium.power_up();
        let (store, mut appender) = open(&medium).unwrap();
        let cells = found(&store);
        // Each reading has its old or its new value: all of them before the row, and after it.
        let replaced: Vec<_> = new.iter().copied().filter(|new| new.at <= at(240)).collect();
        let is_old = cells == expected(&[]);
        assert!(is_old || cells == expected(&replaced) || cells == expected(&new), "{after}");
        undone += u32::from(is_old);
        for _ in 0..2 {
            let verdicts = replace(&store, &mut appender).unwrap();
            assert!(of_minute(&verdicts) >= 16, "{verdicts:?}");
            assert!(found(&store) == expected(&new), "cut after {after} syncs");
        }
        store.checkpoint(NOW).unwrap();
        store.seal(NOW, 0, &|_| true).unwrap();
        drop((store, appender));
        let (store, _appender) = open(&medium).unwrap();
        assert!(found(&store) == expected(&new), "cut after {after} syncs, restart");
    }
    assert!(cuts > 8 && undone > 2 && undone < cuts, "{cuts} cuts, {undone} undone");
}

#[test]
fn readings_that_share_a_cell_or_are_of_a_counter_are_refused_and_the_others_replaced() {
    use ReplaceVerdict::{Added, Refused, Replaced};
    let (_medium, store, mut appender) = filled(1);
    let doubled = samples(GAUGE, [(at(5).plus(1).0, 5.0)]);
    send(&mut appender, doubled, NOW);
    let beside = NewReading { at: at(6).plus(1), ..reading(GAUGE, 6, 1.0) };
    let first = reading(DELTA, 250, 1.0);
    let after_first = NewReading { at: first.at.plus(1), ..first };
    let same = NewReading { value: 3.0, ..first };
    let asked = [
        reading(GAUGE, 5, 9.0),
        beside,
        reading(COUNTER, 7, 9.0),
        reading(GAUGE, 7, 9.0),
        first,
        after_first,
        same,
    ];
    let verdicts = appender.replace(&asked, NOW).unwrap().unwrap();
    store.complete_erasure().unwrap();
    assert!(
        matches!(
            &*verdicts,
            [
                Refused(ReplaceRefusal::Several { n: 2, .. }),
                Refused(ReplaceRefusal::OtherTime { .. }),
                Refused(ReplaceRefusal::Counter),
                Replaced,
                Added,
                Refused(ReplaceRefusal::OtherTime { .. }),
                Added,
            ]
        ),
        "{verdicts:?}"
    );
    let minute = |series, minute: i64| {
        let range = at(minute).minus(7000)..at(minute).plus(1);
        slots(&store, 0, range, series).first().map(|slot| slot.cell)
    };
    assert_eq!(minute(GAUGE, 7), Some(Cell::single(7000, 9.0)));
    assert_eq!(minute(GAUGE, 6), Some(Cell::single(7000, 6.0)));
    assert_eq!(minute(GAUGE, 5).unwrap().n, 2);
    assert_eq!(minute(DELTA, 250), Some(Cell::single(7000, 3.0)));
}
