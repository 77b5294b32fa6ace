//! Granularities that are removed from the settings and added again.

use granary::model::{GranularitySet, Kind, SeriesId, UnixMillis};

use crate::setup::{DAY, NOW, define, granularities, open_with, samples, send, series, slots};

fn hours_and_days() -> GranularitySet {
    granularities(&[["1h", "1d", "1d", "7d"], ["1d", "1mo", "1y", "5y"]])
}

fn only_hours() -> GranularitySet {
    GranularitySet::new(hours_and_days().as_slice()[..1].to_vec()).unwrap()
}

fn day_start(at: UnixMillis) -> UnixMillis {
    hours_and_days().as_slice()[1].slot_start(at)
}

fn samples_by_day(store: &granary::store::Store) -> Vec<(i64, u32)> {
    let found = slots(store, 1, NOW.minus(30 * DAY)..NOW.plus(DAY), SeriesId(0));
    found.iter().map(|slot| ((day_start(NOW).0 - slot.start.0) / DAY, slot.cell.n)).collect()
}

/// Regression: samples that only 1d contained were lost without a note, because they had no
/// document yet. When 1d was added again, all of its earlier data was hidden.
#[test]
fn samples_that_only_a_removed_granularity_had_are_kept_and_return_with_it() {
    for is_stopped_in_order in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        {
            let (store, mut appender) = open_with(dir.path(), &hours_and_days(), NOW);
            define(&mut appender, &[series("events", &[("host", "a")], Kind::Delta)], NOW);
            for days in [10, 9, 0] {
                send(&mut appender, samples(SeriesId(0), [(NOW.0 - days * DAY, 1.0)]), NOW);
            }
            if is_stopped_in_order {
                store.checkpoint(NOW).unwrap();
            }
        }
        let expected = [(10, 1), (9, 1), (0, 1)];
        {
            let (store, mut appender) = open_with(dir.path(), &only_hours(), NOW);
            assert_eq!(store.all_granularities().len(), 2);
            assert_eq!(samples_by_day(&store), expected);
            // The store receives a late sample and a current one.
            for days in [3, 0] {
                let at = NOW.0 - days * DAY + 5;
                send(&mut appender, samples(SeriesId(0), [(at, 1.0)]), NOW.plus(5));
            }
            store.checkpoint(NOW.plus(5)).unwrap();
            let late = day_start(NOW.minus(3 * DAY));
            let today = day_start(NOW)..day_start(NOW).plus(DAY);
            assert_eq!(store.gaps()[1].holes, [late..late.plus(DAY), today]);
        }
        let reopened_at = NOW.plus(5);
        let (store, _) = open_with(dir.path(), &hours_and_days(), reopened_at);
        assert_eq!(samples_by_day(&store), expected);
        let gaps = &store.gaps()[1];
        assert_eq!(gaps.complete_since, UnixMillis(i64::MIN));
        let late = day_start(NOW.minus(3 * DAY));
        assert_eq!(gaps.holes, [late..late.plus(DAY), day_start(NOW)..day_start(NOW).plus(DAY)]);
    }
}
