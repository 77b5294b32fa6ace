//! Erasure of samples: in random histories, and with a power cut at each sync in turn.

use std::sync::Arc;

use granary::{
    model::{Cell, GranularitySet, Kind, SeriesId, UnixMillis},
    store::{Appender, ErasureRequest, Matcher, Slot, Store, StoreError},
};

use crate::{
    faulty::{Call, Effect, Fault, FaultyMedium},
    format_upgrade::{cells, golden_medium},
    history::History,
    setup::{DAY, HOUR, NOW, count, define, samples, send, series, slots},
    upkeep::Upkeep,
    world::{Outcome, Request},
};

const MINUTE: i64 = 60_000;

impl History {
    /// Erases samples of the series of a name.
    pub(crate) fn erase(&mut self) {
        if self.accept_erasure() {
            self.run_upkeep(&Upkeep::Erase);
        }
    }

    /// Requests an erasure; returns false when the store refuses it.
    pub(crate) fn accept_erasure(&mut self) -> bool {
        let name = self.rng.u32(0..12).to_string();
        let matchers = vec![Matcher { tag: "name".into(), value: name }];
        let unit = [1, MINUTE, 5 * MINUTE, HOUR, DAY][self.rng.usize(0..5)];
        let start = self.clock.time.minus(self.rng.i64(-HOUR..2 * DAY)).0 / unit * unit;
        let end = start + unit * self.rng.i64(1..20);
        let range = UnixMillis(start)..UnixMillis(end);
        let series = self.store().dictionary().select(&matchers);
        let request = Request::Erase(series, range.clone());
        let now = self.now();
        let outcome = self.appender().erase(&ErasureRequest { matchers, range }, false, now);
        self.trace(|| format!("{request:?}: {outcome:?}"));
        match outcome {
            Ok(Ok(report)) => {
                self.worlds.succeeded(&request, &Outcome::Changed(report.series));
                true
            }
            Ok(Err(_)) => {
                self.tally.note("refused erasures");
                false
            }
            Err(cause) => {
                self.worlds.failed(request);
                self.expect_fault(&cause, "failed erasures");
                // A restart completes the erasure, or does not find it because it was not stored.
                self.restart();
                false
            }
        }
    }
}

/// Returns the golden directory, with some samples in memory.
fn filled(seed: u64) -> (FaultyMedium, Store, Appender) {
    let medium = golden_medium(seed);
    let (store, mut appender) = open(&medium).unwrap();
    let series = store.dictionary().select(&[])[0];
    send(&mut appender, samples(series, [(NOW.0 - 90 * MINUTE, 7.0), (NOW.0, 9.0)]), NOW);
    (medium, store, appender)
}

fn open(medium: &FaultyMedium) -> Result<(Store, Appender), StoreError> {
    let opened = Store::open(Arc::new(medium.clone()), GranularitySet::default(), NOW);
    opened.map(|(store, appender, _)| (store, appender))
}

/// Returns a request whose times cut slots of five minutes, of an hour and of a day.
fn request() -> ErasureRequest {
    let matchers = vec![Matcher { tag: "__name__".into(), value: "golden_metric".into() }];
    ErasureRequest { matchers, range: NOW.minus(3 * HOUR - 7 * MINUTE)..NOW.minus(57 * MINUTE) }
}

fn erase(store: &Store, appender: &mut Appender) -> Result<(), StoreError> {
    appender.erase(&request(), false, NOW)?.unwrap();
    store.complete_erasure()
}

#[test]
fn cut_slots_of_a_removed_granularity_are_computed_again_from_the_next_one_with_all_samples() {
    let medium = FaultyMedium::new(3);
    let all = GranularitySet::default();
    let without_hours = all.iter().filter(|level| level.name != "1h").cloned().collect();
    let without_hours = GranularitySet::new(without_hours).unwrap();
    let open = |set: &GranularitySet| {
        let (store, appender, _) = Store::open(Arc::new(medium.clone()), set.clone(), NOW).unwrap();
        (store, appender)
    };
    let (store, mut appender) = open(&all);
    let golden = series("golden_metric", &[], Kind::Gauge);
    let id = define(&mut appender, &[golden], NOW)[0];
    let times = (0..300).map(|minute| (NOW.0 - minute * MINUTE, minute as f64));
    send(&mut appender, samples(id, times), NOW);
    store.checkpoint(NOW).unwrap();
    drop((store, appender));
    let (store, mut appender) = open(&without_hours);
    let dry = appender.erase(&request(), true, NOW).unwrap().unwrap();
    // 7 minutes less than three hours, up to 57 minutes.
    let deleted: Vec<_> = dry.levels.iter().map(|level| level.samples).collect();
    assert_eq!(deleted, [116, 116, 116, 116], "{dry:?}");
    erase(&store, &mut appender).unwrap();
    drop((store, appender));
    let (store, _appender) = open(&all);
    let counts = (0..4).map(|level| count(&store, level, NOW.minus(2 * DAY)..NOW.plus(DAY), id));
    assert_eq!(counts.collect::<Vec<_>>(), [184; 4]);
    let hours = slots(&store, 2, NOW.minus(2 * DAY)..NOW, id);
    let minutes = slots(&store, 0, NOW.minus(2 * DAY)..NOW.plus(HOUR), id);
    for Slot { start, cell } in hours {
        let of_hour = minutes.iter().filter(|slot| (slot.start.0 - start.0) / HOUR == 0);
        let of_hour = of_hour.filter(|slot| slot.start >= start);
        let mut merged = Cell::EMPTY;
        of_hour.for_each(|slot| merged.merge(&slot.cell.shifted((slot.start.0 - start.0) as u32)));
        assert_eq!(merged, cell);
    }
}

#[test]
fn erased_samples_do_not_come_back_when_their_partitions_are_lost() {
    let (medium, store, mut appender) = filled(5);
    let range = NOW.minus(10 * MINUTE)..NOW.plus(10 * MINUTE);
    let minutes = |store: &Store| slots(store, 0, range.clone(), SeriesId(0));
    store.checkpoint(NOW).unwrap();
    assert!(!minutes(&store).is_empty());
    // Documents are written from rows of the head, which stay there until cells are added to it.
    store.checkpoint(NOW.plus(3 * HOUR)).unwrap();
    let request = ErasureRequest { range: range.clone(), ..request() };
    appender.erase(&request, false, NOW).unwrap().unwrap();
    store.complete_erasure().unwrap();
    drop((store, appender));
    let files = medium.files();
    let partitions = files.iter().filter(|file| file.starts_with("partitions/"));
    partitions.for_each(|file| medium.erase(file));
    let (store, _appender) = open(&medium).unwrap();
    assert_eq!(minutes(&store), []);
}

#[test]
fn a_power_cut_during_an_erasure_leaves_all_or_nothing_of_it() {
    let (medium, store, mut appender) = filled(0);
    let before = cells(&store);
    erase(&store, &mut appender).unwrap();
    let after_erasure = cells(&store);
    assert!(after_erasure.len() + 60 < before.len(), "{} cells", after_erasure.len());
    let later = samples(SeriesId(0), [(NOW.0 - 80 * MINUTE, 3.0)]);
    drop((medium, store, appender));
    let (mut cuts, mut undone) = (0, 0);
    for after in 0.. {
        let (medium, store, mut appender) = filled(after);
        medium.arm(Fault { call: Call::Sync, after, times: 1, effect: Effect::PowerCut });
        let outcome = erase(&store, &mut appender);
        drop((store, appender));
        if !medium.is_power_cut() {
            outcome.unwrap();
            break;
        }
        cuts += 1;
        medium.power_up();
        let (store, mut appender) = open(&medium).unwrap();
        assert!(!store.is_erasing());
        let found = cells(&store);
        if found == before {
            undone += 1;
            erase(&store, &mut appender).unwrap();
        }
        assert!(cells(&store) == after_erasure, "cut after {after} syncs");
        // Samples that are accepted later count, and nothing else comes back.
        send(&mut appender, later.clone(), NOW);
        let with_later = cells(&store);
        for _ in 0..2 {
            store.checkpoint(NOW).unwrap();
            assert!(cells(&store) == with_later, "cut after {after} syncs, checkpoint");
        }
        store.seal(NOW, 0, &|_| true).unwrap();
        drop((store, appender));
        let (store, _appender) = open(&medium).unwrap();
        assert!(cells(&store) == with_later, "cut after {after} syncs, restart");
        let minute = slots(&store, 0, NOW.minus(81 * MINUTE)..NOW.minus(79 * MINUTE), SeriesId(0));
        assert_eq!(minute.len(), 1);
    }
    assert!(cuts > 8 && undone > 2 && undone < cuts, "{cuts} cuts, {undone} undone");
}

#[test]
fn an_interrupted_cut_after_an_erasure_keeps_the_growth_of_later_readings() {
    let ago = |minutes: i64| NOW.0 - minutes * MINUTE;
    let prepared = || {
        let medium = FaultyMedium::new(11);
        let (store, mut appender) = open(&medium).unwrap();
        let id = define(&mut appender, &[series("requests", &[], Kind::Counter)], NOW)[0];
        let readings = (41..60).rev().map(|minutes| (ago(minutes), 10.0 * (60 - minutes) as f64));
        send(&mut appender, samples(id, readings), NOW);
        let matchers = vec![Matcher { tag: "__name__".into(), value: "requests".into() }];
        let range = UnixMillis(ago(50))..UnixMillis(ago(30));
        appender.erase(&ErasureRequest { matchers, range }, false, NOW).unwrap().unwrap();
        store.complete_erasure().unwrap();
        send(&mut appender, samples(id, [(ago(40), 200.0), (ago(38), 20.0)]), NOW);
        (medium, store, appender, id)
    };
    // The counter had grown by 50 more before it restarted.
    let finish = |medium: &FaultyMedium, id: SeriesId| {
        let (store, mut appender) = open(medium).unwrap();
        send(&mut appender, samples(id, [(ago(39), 250.0)]), NOW);
        store.checkpoint(NOW).unwrap();
        let all = |level| slots(&store, level, NOW.minus(DAY)..NOW.plus(DAY), id);
        (0..3).map(all).collect::<Vec<_>>()
    };
    let (medium, store, appender, id) = prepared();
    store.checkpoint(NOW).unwrap();
    drop((store, appender));
    let expected = finish(&medium, id);
    let mut cuts = 0;
    for after in 0.. {
        let (medium, store, appender, id) = prepared();
        medium.arm(Fault { call: Call::Sync, after, times: 1, effect: Effect::PowerCut });
        let outcome = store.checkpoint(NOW);
        drop((store, appender));
        if !medium.is_power_cut() {
            outcome.unwrap();
            break;
        }
        medium.power_up();
        cuts += 1;
        assert_eq!(finish(&medium, id), expected, "cut after {after} syncs");
    }
    assert!(cuts > 3, "{cuts} cuts");
}
